// SPDX-License-Identifier: GPL-2.0
/* greenlane: the tagging layer
 *
 * A transport (tcp_tlt.c) decides the kind of each packet.  This module writes it into the DS
 * field of the IP header, where a switch (sch_color.c) reads it, and into a TCP option for the
 * other end.
 *
 *	 application
 *	     |
 *	    TCP ---- congestion control = transport (tcp_tlt.c)
 *	     |            ^  on_xmit          ^ on_packet     ^ on_kick
 *	 queue_xmit() ----+               LOCAL_IN            |
 *	 gl_output.c                      gl_input.c      gl_defer.c
 *	 marks; splits a TSO packet       answers         lets TCP send beyond
 *	 where the mark changes           (gl_defer.c)    its window (gl_craft.c)
 *
 * The DSCP selects the packets that a switch drops first, and the data that a receiver acknowledges
 * immediately.  It has no other effect, because networks change it.  The two ends communicate by a
 * TCP option (gl_wire.c), after they have agreed on it in the handshake (gl_handshake.c).
 *
 * A connection that runs a transport has a struct gl_sock with a copy of TCP's icsk_af_ops, in
 * which queue_xmit() is replaced.  That copy identifies the connection and leads to its state
 * (gl_output.c, gl_sock.c).  The state is protected by the socket lock; packets that arrive while a
 * process owns the socket wait in it (gl_defer.c).
 */
#include <linux/module.h>
#include <linux/netfilter.h>
#include <net/net_namespace.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/greenlane.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_important);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_echo);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_clock);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_lost);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_fallback);

unsigned int gl_net_id __read_mostly;

/* All transports, to find one by its key.  Written under gl_transport_mutex, read under RCU.
 * tcp_unregister_congestion_control() waits for the readers.
 */
#define GL_TRANSPORTS	16
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

/**
 * gl_register_transport() - register a transport with TCP and with the tagging layer
 * @t: the transport; its ops are complete and ops.release is gl_release()
 *
 * Return: 0; -EINVAL if @t is incomplete or its state too large; -ENOSPC if GL_TRANSPORTS are
 * registered; or the error of tcp_register_congestion_control().
 */
int gl_register_transport(struct gl_transport *t)
{
	int i, err;

	if (t->ops.release != gl_release || t->sock_size < sizeof(struct gl_sock) ||
	    t->sock_size > GL_SOCK_SIZE_MAX || !t->protocol || !t->on_xmit ||
	    !t->on_packet || !t->on_kick || !t->on_switch || !t->on_info)
		return -EINVAL;

	mutex_lock(&gl_transport_mutex);
	for (i = 0; i < GL_TRANSPORTS; i++)
		if (!gl_transports[i])
			break;
	err = -ENOSPC;
	if (i < GL_TRANSPORTS)
		err = tcp_register_congestion_control(&t->ops);
	if (!err)
		WRITE_ONCE(gl_transports[i], t);
	mutex_unlock(&gl_transport_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_transport);

/**
 * gl_unregister_transport() - undo gl_register_transport()
 * @t: the transport; no socket uses it, as its sockets hold a reference on its module
 */
void gl_unregister_transport(struct gl_transport *t)
{
	int i;

	mutex_lock(&gl_transport_mutex);
	for (i = 0; i < GL_TRANSPORTS; i++)
		if (gl_transports[i] == t)
			WRITE_ONCE(gl_transports[i], NULL);
	tcp_unregister_congestion_control(&t->ops);
	mutex_unlock(&gl_transport_mutex);
}
EXPORT_SYMBOL_GPL(gl_unregister_transport);

static int __net_init gl_net_init(struct net *net)
{
	int err;

	err = gl_proc_net_init(net);
	if (err)
		return err;
	err = gl_active_net_init(net);
	if (err)
		gl_proc_net_exit(net);
	return err;
}

/* A packet may be in our hooks until a grace period after this.  A grace period passes before
 * gl_proc_net_exit(), which frees the data that the hooks read.
 */
static void __net_exit gl_net_pre_exit(struct net *net)
{
	gl_active_net_exit(net);
}

/* A pernet subsystem, not a pernet device: the sockets that hold a reference on a namespace are
 * freed before exit() is called.  Sockets without a reference never run a transport: see
 * gl_attach().
 */
static struct pernet_operations gl_net_ops = {
	.init		= gl_net_init,
	.pre_exit	= gl_net_pre_exit,
	.exit		= gl_proc_net_exit,
	.id		= &gl_net_id,
	.size		= sizeof(struct gl_net),
};

static int __init gl_init(void)
{
	int err;

	gl_kick_init();
	err = gl_sock_init();
	if (err)
		goto kick;
	err = register_pernet_subsys(&gl_net_ops);
	if (err)
		goto sock;
	err = gl_sockopt_init();
	if (err)
		goto net;
	return 0;

net:
	unregister_pernet_subsys(&gl_net_ops);
sock:
	gl_sock_exit();
kick:
	gl_kick_exit();
	return err;
}

static void __exit gl_exit(void)
{
	gl_sockopt_exit();
	/* The hooks are removed by this, so no more packets are held and no more sockets kicked. */
	unregister_pernet_subsys(&gl_net_ops);
	gl_kick_exit();
	gl_sock_exit();
}

module_init(gl_init);
module_exit(gl_exit);

MODULE_DESCRIPTION("greenlane: decide which packet may be lost");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
