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
#include <linux/random.h>
#include <net/mptcp.h>
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
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_waste);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_credit);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_credited);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_request);

unsigned int gl_net_id __read_mostly;

/* --- a connection gets and loses its transport --------------------------------- */

/**
 * gl_attach() - allocate the state of a connection, in the init() of its transport
 * @sk: the connection, locked
 *
 * Return: the state; NULL if the connection can only behave as its base: without SACK an
 * echo does not report the packets that it covers, without RACK TCP does not mark the packets
 * that an echo finds lost, MPTCP schedules packets by its own rules, signed segments cannot be
 * split or crafted, packets that another protocol sends cannot be marked, and a kernel socket
 * that holds no reference on its namespace can outlive it.
 */
struct gl_sock *gl_attach(struct sock *sk)
{
	struct gl_sock *gs;

	/* Not connected yet: whether SACK will be negotiated is not known.  TCP calls
	 * init() again when the connection is established, but not if an application
	 * selects the transport after connect() and before that.  Such a connection
	 * runs its base, unless gl_init_again() makes TCP call init(): at the next SYN,
	 * or at the SYN-ACK.
	 */
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return NULL;
	if (!tcp_is_sack(tcp_sk(sk)) || !gl_tcp_rack(sk) || sk_is_mptcp(sk) || gl_tcp_signed(sk) ||
	    !gl_can_take(inet_csk(sk)->icsk_af_ops) || !gl_net_stays(sk)) {
		gl_inc_stats(sock_net(sk), GL_MIB_UNSUPPORTED);
		return NULL;
	}
	gl_activate_soon(sock_net(sk));
	gs = gl_sock_alloc(gl_transport(sk)->sock_size);
	if (!gs) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return NULL;
	}
	gs->sk = sk;
	gs->transport = gl_transport(sk);
	/* Of a transport that was selected before, answers may be in flight. */
	gs->asked = get_random_u32();
	refcount_set(&gs->refs, 1);
	gs->peer = gl_first_peer(sk);
	if (gs->peer == GREENLANE_PEER_NO) {
		gl_inc_stats(sock_net(sk), GL_MIB_PEERWITHOUT);
		trace_greenlane_fallback(sk, tcp_sk(sk)->snd_una, 0);
	}
	gl_take(sk, gs);
	gl_room_take(sk, gs);
	return gs;
}
EXPORT_SYMBOL_GPL(gl_attach);

/**
 * gl_detach() - undo gl_attach()
 * @sk: the connection, locked or about to be freed
 */
void gl_detach(struct sock *sk)
{
	struct gl_sock *gs;

	/* An MPTCP socket only passes its congestion control on to its subflows. */
	if (!inet_csk(sk)->icsk_af_ops)
		return;
	gs = gl_sock(sk) ?: gl_mapped_find(sk);
	if (!gs)
		return;
	if (gl_marking(gs))
		gs->transport->on_switch(sk, gs, false);
	/* An ACK may wait for the application's answer, but no kick follows that would send it. */
	if (gs->patient && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
	gl_dupthresh_restore(sk, gs);
	if (gs->transport->on_free)
		gs->transport->on_free(gs);
	gl_room_give(sk, gs);
	gl_give_back(sk, gs);
	gl_sock_put(gs);
}
EXPORT_SYMBOL_GPL(gl_detach);

/**
 * gl_release() - the release() of every transport
 * @sk: the connection, locked or about to be freed
 *
 * If transports are built around each other, the connection has one state, and the innermost
 * base is released.
 */
void gl_release(struct sock *sk)
{
	const struct gl_transport *t = gl_ours(sk);

	/* gl_out_hello() calls it without the lock, if a SYN passes LOCAL_OUT again. */
	if (!t)
		return;
	while (t->inner)
		t = t->inner;
	gl_detach(sk);
	if (t->base && t->base->release)
		t->base->release(sk);
}
EXPORT_SYMBOL_GPL(gl_release);

/* --- namespaces and the module ------------------------------------------------- */

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
