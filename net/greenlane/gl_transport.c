// SPDX-License-Identifier: GPL-2.0
/* The tables: protocols with their kinds and counters, transports, and the bases that they extend.
 *
 * A protocol is what two ends agree on in the handshake: the kinds of packets, counters and the
 * hello that compatible transports share.  A transport is the congestion control that a connection
 * runs.  A module registers its transports; each takes its base and its protocol with it.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- protocols ----------------------------------------------------------------- */

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

/* --- kinds --------------------------------------------------------------------- */

/**
 * gl_kind_of_data() - the kind of data without our option
 * @gs: state of the connection
 * @dsfield: the packet's DS field
 *
 * A wrong DSCP at worst causes an extra ACK.  Needs no lock.
 *
 * Return: the kind, if it requests an immediate ACK, else NULL.
 */
const struct gl_kind *gl_kind_of_data(const struct gl_sock *gs, u8 dsfield)
{
	return gs->transport->protocol->prompt[gl_codepoint(sock_net(gs->sk), dsfield)];
}

static const struct gl_kind *gl_kind_in(const struct gl_protocol *protocol, u8 code)
{
	unsigned int i;

	for (i = 0; code && i < protocol->kinds; i++)
		if (protocol->kind[i].code == code)
			return &protocol->kind[i];
	return NULL;
}

/**
 * gl_kind_of_code() - the kind of a packet with our option
 * @gs: state of the connection
 * @code: the option's code
 *
 * Return: the kind, or NULL if the connection's protocol has no kind with this code.
 */
const struct gl_kind *gl_kind_of_code(const struct gl_sock *gs, u8 code)
{
	const struct gl_protocol *protocol = gs->transport->protocol;
	const struct gl_kind *kind = gl_kind_in(protocol, code);
	unsigned int i;

	for (i = 0; !kind && i < GL_PARTS && protocol->part[i]; i++)
		kind = gl_kind_in(protocol->part[i], code);
	return kind;
}

/* --- counters ------------------------------------------------------------------ */

/**
 * gl_count() - add to a counter of a protocol, in a namespace
 * @net: the namespace
 * @protocol: the protocol, registered
 * @counter: number of the counter in @protocol; 0 adds to no counter
 * @n: number to add
 *
 * In any context but a hard interrupt.
 */
void gl_count(const struct net *net, const struct gl_protocol *protocol, unsigned int counter,
	      u64 n)
{
	if (counter)
		this_cpu_add(gl_net(net)->counters->protocol[protocol->slot][counter], n);
}
EXPORT_SYMBOL_GPL(gl_count);

/**
 * gl_stats_forget() - set the counters of a protocol to 0, in all namespaces
 * @slot: the protocol's slot, which no registered protocol uses
 */
static void gl_stats_forget(unsigned int slot)
{
	struct net *net;
	int cpu;

	/* Under net_rwsem a namespace stays on the list and keeps its counters. */
	down_read(&net_rwsem);
	for_each_net(net)
		for_each_possible_cpu(cpu)
			memset(per_cpu_ptr(gl_net(net)->counters, cpu)->protocol[slot], 0,
			       sizeof(gl_net(net)->counters->protocol[slot]));
	up_read(&net_rwsem);
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

/* Under gl_protocol_mutex. */
static int gl_protocol_add(struct gl_protocol *protocol)
{
	unsigned int slot;

	if (!gl_protocol_is_sound(protocol))
		return -EINVAL;
	if (gl_protocol_of_hello(protocol->hello) || gl_protocol_told_as(protocol->told_as))
		return -EEXIST;
	for (slot = 0; slot < GL_PROTOCOLS; slot++)
		if (!gl_protocol_at(slot))
			break;
	if (slot == GL_PROTOCOLS)
		return -ENOSPC;
	protocol->slot = slot;
	gl_protocol_find_prompt(protocol);
	rcu_assign_pointer(gl_protocols[slot], protocol);
	return 0;
}

/**
 * gl_register_protocol() - register a protocol, for one more user
 * @protocol: the protocol; its module contains everything that it points to
 *
 * gl_register_transport() does so for a transport's protocol.
 *
 * Return: 0; -EINVAL if a field or a row is invalid; -EEXIST if another protocol has the same hello
 * or @told_as; -ENOSPC if GL_PROTOCOLS are registered.
 */
int gl_register_protocol(struct gl_protocol *protocol)
{
	int err = 0;

	mutex_lock(&gl_protocol_mutex);
	if (!protocol->users)
		err = gl_protocol_add(protocol);
	if (!err)
		protocol->users++;
	mutex_unlock(&gl_protocol_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_protocol);

/**
 * gl_unregister_protocol() - undo gl_register_protocol()
 * @protocol: the protocol.  Without its last user its counters are set to 0
 */
void gl_unregister_protocol(struct gl_protocol *protocol)
{
	mutex_lock(&gl_protocol_mutex);
	if (WARN_ON_ONCE(!protocol->users) || --protocol->users)
		goto unlock;
	RCU_INIT_POINTER(gl_protocols[protocol->slot], NULL);
	/* A packet of a handshake, or a reader of /proc/net/greenlane, may be using it. */
	synchronize_rcu();
	gl_stats_forget(protocol->slot);
unlock:
	mutex_unlock(&gl_protocol_mutex);
}
EXPORT_SYMBOL_GPL(gl_unregister_protocol);

/* --- transports ---------------------------------------------------------------- */

/* All transports, to find one by its key.  Written under gl_transport_mutex, read under RCU.
 * tcp_unregister_congestion_control() waits for the readers.
 */
#define GL_TRANSPORTS	24
static DEFINE_MUTEX(gl_transport_mutex);
static struct gl_transport *gl_transports[GL_TRANSPORTS];

/* The transport with this key, or NULL.  A route with "congctl NAME" stores the key of NAME. */
const struct gl_transport *gl_transport_of_key(u32 key)
{
	int i;

	for (i = 0; i < GL_TRANSPORTS; i++) {
		const struct gl_transport *t = READ_ONCE(gl_transports[i]);

		if (t && t->ops.key == key)
			return t;
	}
	return NULL;
}

/**
 * gl_nest() - lay out the state of a transport that can be built around others
 * @t: the transport; this sets @t->inner, @t->part and @t->sock_size
 * @inner: the transport that it is built around, or NULL
 * @size: size of its own part of the state, bytes
 *
 * The state begins with the part of the innermost transport, which contains the struct gl_sock; the
 * other parts follow, that of the outermost transport last.  TCP and the tagging layer call the
 * outermost transport, and each transport calls its inner one for decisions that it leaves to it.
 */
void gl_nest(struct gl_transport *t, const struct gl_transport *inner, size_t size)
{
	t->inner = inner;
	t->part = ALIGN(inner ? inner->sock_size : sizeof(struct gl_sock), 8);
	t->sock_size = t->part + size;
}
EXPORT_SYMBOL_GPL(gl_nest);

/* --- bases --------------------------------------------------------------------- */

/**
 * gl_base_get() - find a congestion control and take a reference on its module
 * @name: its name; the module is loaded if necessary
 *
 * tcp_ca_find() is not exported, so set the congestion control of a temporary socket and read
 * the pointer from there.
 *
 * Return: the congestion control; release it with gl_base_put().  On error an ERR_PTR():
 * -EOPNOTSUPP for one written in BPF, as its lifetime is not a module's, or the error of
 * setsockopt(TCP_CONGESTION).
 */
static const struct tcp_congestion_ops *gl_base_get(const char *name)
{
	const struct tcp_congestion_ops *base;
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return ERR_PTR(err);
	err = sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				    KERNEL_SOCKPTR((void *)name), strlen(name));
	base = inet_csk(sock->sk)->icsk_ca_ops;
	if (!err && gl_is_bpf(base->owner))
		err = -EOPNOTSUPP;
	else if (!err && !try_module_get(base->owner))
		err = -ENOENT;
	sock_release(sock);
	return err ? ERR_PTR(err) : base;
}

static void gl_base_put(const struct tcp_congestion_ops *base)
{
	if (base)
		module_put(base->owner);
}

/**
 * gl_base_clone() - copy a base, without its registration
 * @ops: the copy; keeps its name
 * @base: the base
 * @owner: the copy's module
 *
 * The copy has the base's flags too, so an application that may not select the base
 * (tcp_allowed_congestion_control) may not select the copy.
 */
void gl_base_clone(struct tcp_congestion_ops *ops,
		   const struct tcp_congestion_ops *base, struct module *owner)
{
	char name[TCP_CA_NAME_MAX];

	strscpy(name, ops->name, sizeof(name));
	*ops = *base;
	strscpy(ops->name, name, sizeof(ops->name));
	INIT_LIST_HEAD(&ops->list);
	ops->key = 0;
	ops->owner = owner;
}
EXPORT_SYMBOL_GPL(gl_base_clone);

/* --- registration of a transport -------------------------------------------------- */

/* Take the base that a transport extends, and have it fill in what depends on that. */
static int gl_transport_extend(struct gl_transport *t)
{
	const struct tcp_congestion_ops *base;

	if (t->extends) {
		base = gl_base_get(t->extends);
		if (IS_ERR(base))
			return PTR_ERR(base);
		t->base = base;
	}
	return t->complete ? t->complete(t) : 0;
}

/* The slot of a transport, or a free one for NULL; NULL if there is none. */
static struct gl_transport **gl_transport_slot(const struct gl_transport *t)
{
	int i;

	for (i = 0; i < GL_TRANSPORTS; i++)
		if (READ_ONCE(gl_transports[i]) == t)
			return &gl_transports[i];
	return NULL;
}

static bool gl_transport_is_complete(const struct gl_transport *t)
{
	return t->ops.release == gl_release && t->sock_size >= sizeof(struct gl_sock) &&
	       t->sock_size <= GL_SOCK_SIZE_MAX && t->protocol && t->on_xmit && t->on_packet &&
	       t->on_kick && t->on_switch && t->on_info;
}

static int gl_transport_add(struct gl_transport *t)
{
	struct gl_transport **slot;
	int err = -ENOSPC;

	mutex_lock(&gl_transport_mutex);
	slot = gl_transport_slot(NULL);
	if (slot)
		err = tcp_register_congestion_control(&t->ops);
	if (!err)
		WRITE_ONCE(*slot, t);
	mutex_unlock(&gl_transport_mutex);
	return err;
}

/**
 * gl_register_transport() - register a transport with TCP and with the tagging layer
 * @t: the transport
 *
 * Takes a reference on the congestion control that it extends, whose module is loaded if
 * necessary, has the transport complete itself, and registers its protocol.
 *
 * Return: 0; -EINVAL if @t is incomplete or its state too large; -ENOSPC if GL_TRANSPORTS are
 * registered; the error of @t->complete(), of gl_register_protocol(), of gl_base_get() or of
 * tcp_register_congestion_control().
 */
int gl_register_transport(struct gl_transport *t)
{
	int err;

	/* A mistake of a module, which would change ops that are in use. */
	if (WARN_ON_ONCE(gl_transport_slot(t)))
		return -EEXIST;
	err = gl_transport_extend(t);
	if (!err && !gl_transport_is_complete(t))
		err = -EINVAL;
	if (err)
		goto put;
	err = gl_register_protocol(t->protocol);
	if (err)
		goto put;
	err = gl_transport_add(t);
	if (err)
		goto protocol;
	return 0;

protocol:
	gl_unregister_protocol(t->protocol);
put:
	gl_base_put(t->base);
	t->base = NULL;
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_transport);

/**
 * gl_unregister_transport() - undo gl_register_transport()
 * @t: the transport; no socket uses it, as its sockets hold a reference on its module
 */
void gl_unregister_transport(struct gl_transport *t)
{
	struct gl_transport **slot;

	mutex_lock(&gl_transport_mutex);
	slot = gl_transport_slot(t);
	if (slot)
		WRITE_ONCE(*slot, NULL);
	tcp_unregister_congestion_control(&t->ops);
	mutex_unlock(&gl_transport_mutex);
	gl_unregister_protocol(t->protocol);
	gl_base_put(t->base);
	t->base = NULL;
}
EXPORT_SYMBOL_GPL(gl_unregister_transport);
