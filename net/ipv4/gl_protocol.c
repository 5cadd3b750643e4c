// SPDX-License-Identifier: GPL-2.0
/* Protocols: what transports that understand each other have in common. */
#include <linux/module.h>
#include <linux/mutex.h>

#include "gl_internal.h"

/* Written under gl_protocol_mutex, read under RCU. */
static DEFINE_MUTEX(gl_protocol_mutex);
static struct gl_protocol *gl_protocols[GL_PROTOCOLS];

/**
 * gl_protocol_at() - the protocol in a slot
 * @slot: 0 … GL_PROTOCOLS - 1
 *
 * Return: the protocol, or NULL.  Under RCU.
 */
const struct gl_protocol *gl_protocol_at(unsigned int slot)
{
	return READ_ONCE(gl_protocols[slot]);
}

/**
 * gl_protocol_of_hello() - find a protocol
 * @code: what the option in a SYN or SYN-ACK says
 *
 * Return: the protocol, or NULL if none of this host's has this hello.  Under RCU.
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
 * @cp: the codepoint by which TCP was told of its hello
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

static bool gl_kind_is_sound(const struct gl_protocol *protocol, const struct gl_kind *kind)
{
	if (kind->codepoint >= GL_CPS || kind->code > GL_CODE_MAX || kind->words > GL_WORDS_MAX)
		return false;
	if ((kind->flags & GL_KIND_ENDS && !(kind->flags & GL_KIND_PROMPT)) ||
	    (kind->flags & GL_KIND_ANSWERED && !protocol->answer))
		return false;
	return kind->protocol == protocol && kind->sent < protocol->counters &&
	       kind->bytes < protocol->counters && kind->received < protocol->counters;
}

static void gl_protocol_add_prompt(struct gl_protocol *protocol, const struct gl_protocol *from)
{
	unsigned int i;

	for (i = 0; i < from->kinds; i++) {
		const struct gl_kind *kind = &from->kind[i];

		if (kind->flags & GL_KIND_PROMPT && !protocol->prompt[kind->codepoint])
			protocol->prompt[kind->codepoint] = kind;
	}
}

/* Fill in what gl_register_protocol() sets.  Return: false if @protocol is not sound. */
static bool gl_protocol_complete(struct gl_protocol *protocol)
{
	unsigned int i;

	if (!protocol->hello || protocol->hello > GL_CODE_MAX || !protocol->control ||
	    protocol->told_as == GL_CP_NONE || protocol->told_as >= GL_CP_SHORT ||
	    !protocol->counters || protocol->counters > GL_COUNTERS_MAX)
		return false;
	for (i = 0; i < protocol->kinds; i++)
		if (!gl_kind_is_sound(protocol, &protocol->kind[i]))
			return false;
	memset(protocol->prompt, 0, sizeof(protocol->prompt));
	gl_protocol_add_prompt(protocol, protocol);
	for (i = 0; i < GL_PARTS && protocol->part[i]; i++)
		gl_protocol_add_prompt(protocol, protocol->part[i]);
	return true;
}

/**
 * gl_register_protocol() - register a protocol, before the transports that have it
 * @protocol: the protocol; the caller's module has all that it points to
 *
 * Return: 0; -EINVAL if it is not sound; -EEXIST if another one has its hello or @told_as;
 * -ENOSPC if there are too many.
 */
int gl_register_protocol(struct gl_protocol *protocol)
{
	unsigned int i;
	int err = 0;

	if (!gl_protocol_complete(protocol))
		return -EINVAL;
	mutex_lock(&gl_protocol_mutex);
	for (i = 0; i < GL_PROTOCOLS; i++)
		if (!gl_protocols[i])
			break;
	if (gl_protocol_of_hello(protocol->hello) || gl_protocol_told_as(protocol->told_as)) {
		err = -EEXIST;
	} else if (i == GL_PROTOCOLS) {
		err = -ENOSPC;
	} else {
		protocol->slot = i;
		/* Pairs with the address dependency of its readers. */
		smp_store_release(&gl_protocols[i], protocol);
	}
	mutex_unlock(&gl_protocol_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_protocol);

/**
 * gl_unregister_protocol() - undo gl_register_protocol()
 * @protocol: the protocol; no transport has it any more.  Its counters are set to 0
 */
void gl_unregister_protocol(struct gl_protocol *protocol)
{
	mutex_lock(&gl_protocol_mutex);
	WRITE_ONCE(gl_protocols[protocol->slot], NULL);
	/* A packet of a handshake, or a reader of /proc/net/greenlane, may be using it. */
	synchronize_rcu();
	gl_stats_forget(protocol->slot);
	mutex_unlock(&gl_protocol_mutex);
}
EXPORT_SYMBOL_GPL(gl_unregister_protocol);
