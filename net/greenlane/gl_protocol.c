// SPDX-License-Identifier: GPL-2.0
/* Protocols: the kinds of packets, counters and hello that compatible transports share. */
#include <linux/module.h>
#include <linux/mutex.h>

#include "gl_internal.h"

static DEFINE_MUTEX(gl_protocol_mutex);
/* Written under gl_protocol_mutex. */
static const struct gl_protocol __rcu *gl_protocols[GL_PROTOCOLS];

/**
 * gl_protocol_at() - the protocol in a slot
 * @slot: 0 … GL_PROTOCOLS - 1
 *
 * Return: the protocol, or NULL.  Under RCU, or gl_protocol_mutex.
 */
const struct gl_protocol *gl_protocol_at(unsigned int slot)
{
	return rcu_dereference_check(gl_protocols[slot], lockdep_is_held(&gl_protocol_mutex));
}

/**
 * gl_protocol_of_hello() - find a protocol
 * @code: enum gl_code, the code of the option in a SYN or SYN-ACK
 *
 * Return: the protocol, or NULL if no protocol registered on this host has this hello.  Under RCU.
 */
const struct gl_protocol *gl_protocol_of_hello(u8 code)
{
	unsigned int i;

	for (i = 0; code && i < GL_PROTOCOLS; i++) {
		const struct gl_protocol *protocol = gl_protocol_at(i);

		if (protocol && protocol->hello == code)
			return protocol;
	}
	return NULL;
}

/**
 * gl_protocol_told_as() - find a protocol
 * @cp: the codepoint by which LOCAL_IN passed the protocol's hello to TCP (gl_handshake.c)
 *
 * Return: the protocol, or NULL.  Under RCU.
 */
const struct gl_protocol *gl_protocol_told_as(enum gl_codepoint cp)
{
	unsigned int i;

	for (i = 0; cp != GL_CP_NONE && i < GL_PROTOCOLS; i++) {
		const struct gl_protocol *protocol = gl_protocol_at(i);

		if (protocol && protocol->told_as == cp)
			return protocol;
	}
	return NULL;
}

/* --- checks of gl_register_protocol() ------------------------------------------ */

/* Is @other @protocol itself, or one of its parts? */
static bool gl_protocol_contains(const struct gl_protocol *protocol,
				 const struct gl_protocol *other)
{
	unsigned int i;

	for (i = 0; i < GL_PARTS && protocol->part[i]; i++)
		if (other == protocol->part[i])
			return true;
	return other == protocol;
}

static bool gl_protocol_has_row(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	unsigned int i;

	for (i = 0; i < protocol->kinds; i++)
		if (kind == &protocol->kind[i])
			return true;
	return false;
}

/* Is @kind a row of @protocol's table, or of one of its parts'? */
static bool gl_protocol_has(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	unsigned int i;

	if (gl_protocol_has_row(protocol, kind))
		return true;
	for (i = 0; i < GL_PARTS && protocol->part[i]; i++)
		if (gl_protocol_has_row(protocol->part[i], kind))
			return true;
	return false;
}

/* Could a receiver take a packet of kind @a for one of kind @b? */
static bool gl_kinds_clash(const struct gl_kind *a, const struct gl_kind *b)
{
	if (a->code || b->code)
		return a->code == b->code;
	return a->flags & b->flags & GL_KIND_PROMPT && a->codepoint == b->codepoint;
}

static bool gl_kind_is_unique(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	unsigned int i, part;

	for (i = 0; i < protocol->kinds; i++)
		if (kind != &protocol->kind[i] && gl_kinds_clash(kind, &protocol->kind[i]))
			return false;
	/* Kinds without a code need no check: gl_protocol_find_prompt() prefers the protocol's own
	 * row to a row of a part.
	 */
	for (part = 0; kind->code && part < GL_PARTS && protocol->part[part]; part++)
		for (i = 0; i < protocol->part[part]->kinds; i++)
			if (gl_kinds_clash(kind, &protocol->part[part]->kind[i]))
				return false;
	return true;
}

/* Are the flags consistent?  Data with our option must reach TCP (GL_KIND_TCPS), or be a copy of
 * bytes that TCP has sent, whose only purpose is an answer (GL_KIND_ANSWERED).
 */
static bool gl_flags_are_sound(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	const u8 of_code = GL_KIND_DATA | GL_KIND_ANSWERED | GL_KIND_TCPS | GL_KIND_SACK;
	const u8 of_data = GL_KIND_PROMPT | GL_KIND_ENDS;
	u8 flags = kind->flags;

	if (flags & (kind->code ? of_data : of_code))
		return false;
	if (flags & GL_KIND_ENDS && !(flags & GL_KIND_PROMPT))
		return false;
	if (flags & GL_KIND_DATA && !(flags & (GL_KIND_ANSWERED | GL_KIND_TCPS)))
		return false;
	if (flags & GL_KIND_ANSWERED && (flags & GL_KIND_TCPS || !protocol->answer))
		return false;
	return !(flags & GL_KIND_ECT && flags & GL_KIND_NOT_ECT);
}

static bool gl_kind_is_sound(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	const struct gl_protocol *counts = kind->protocol;

	if (kind->codepoint == GL_CP_NONE || kind->codepoint >= GL_CPS ||
	    kind->code > GL_CODE_MAX || kind->words > (kind->code ? GL_WORDS_MAX : 0))
		return false;
	if (!gl_protocol_contains(protocol, counts) || kind->sent >= counts->counters ||
	    kind->bytes >= counts->counters || kind->received >= counts->counters)
		return false;
	if (kind->before && (kind->code || kind->before->before ||
			     !gl_protocol_has(protocol, kind->before)))
		return false;
	return gl_flags_are_sound(protocol, kind) && gl_kind_is_unique(protocol, kind);
}

static bool gl_protocol_is_sound(const struct gl_protocol *protocol)
{
	const struct gl_kind *answer = protocol->answer;
	unsigned int i;

	if (!protocol->hello || protocol->hello > GL_CODE_MAX ||
	    protocol->told_as == GL_CP_NONE || protocol->told_as >= GL_CP_SHORT ||
	    !protocol->counters || protocol->counters > GL_COUNTERS_MAX)
		return false;
	if (!protocol->control || protocol->control->code ||
	    !gl_protocol_has(protocol, protocol->control))
		return false;
	if (answer && (!answer->code || answer->words || answer->flags & GL_KIND_DATA ||
		       !gl_protocol_has(protocol, answer)))
		return false;
	for (i = 0; i < protocol->kinds; i++)
		if (!gl_kind_is_sound(protocol, &protocol->kind[i]))
			return false;
	return true;
}

/* --- registration ---------------------------------------------------------------- */

static void gl_protocol_add_prompt(struct gl_protocol *protocol, const struct gl_protocol *from)
{
	unsigned int i;

	for (i = 0; i < from->kinds; i++) {
		const struct gl_kind *kind = &from->kind[i];

		if (kind->flags & GL_KIND_PROMPT && !protocol->prompt[kind->codepoint])
			protocol->prompt[kind->codepoint] = kind;
	}
}

static void gl_protocol_find_prompt(struct gl_protocol *protocol)
{
	unsigned int i;

	memset(protocol->prompt, 0, sizeof(protocol->prompt));
	gl_protocol_add_prompt(protocol, protocol);
	for (i = 0; i < GL_PARTS && protocol->part[i]; i++)
		gl_protocol_add_prompt(protocol, protocol->part[i]);
}

/**
 * gl_register_protocol() - register a protocol, before the transports that use it
 * @protocol: the protocol; the caller's module contains everything that it points to
 *
 * Return: 0; -EINVAL if a field or a row is invalid; -EEXIST if another protocol has the same hello
 * or @told_as; -ENOSPC if GL_PROTOCOLS are registered.
 */
int gl_register_protocol(struct gl_protocol *protocol)
{
	unsigned int slot;
	int err = 0;

	if (!gl_protocol_is_sound(protocol))
		return -EINVAL;
	mutex_lock(&gl_protocol_mutex);
	for (slot = 0; slot < GL_PROTOCOLS; slot++)
		if (!gl_protocol_at(slot))
			break;
	if (gl_protocol_of_hello(protocol->hello) || gl_protocol_told_as(protocol->told_as)) {
		err = -EEXIST;
	} else if (slot == GL_PROTOCOLS) {
		err = -ENOSPC;
	} else {
		protocol->slot = slot;
		gl_protocol_find_prompt(protocol);
		rcu_assign_pointer(gl_protocols[slot], protocol);
	}
	mutex_unlock(&gl_protocol_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_protocol);

/**
 * gl_unregister_protocol() - undo gl_register_protocol()
 * @protocol: the protocol; no registered transport uses it.  Its counters are set to 0
 */
void gl_unregister_protocol(struct gl_protocol *protocol)
{
	mutex_lock(&gl_protocol_mutex);
	RCU_INIT_POINTER(gl_protocols[protocol->slot], NULL);
	/* A packet of a handshake, or a reader of /proc/net/greenlane, may be using it. */
	synchronize_rcu();
	gl_stats_forget(protocol->slot);
	mutex_unlock(&gl_protocol_mutex);
}
EXPORT_SYMBOL_GPL(gl_unregister_protocol);
