// SPDX-License-Identifier: GPL-2.0
/* A connection comes and goes. */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/ipv6.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "gl_internal.h"

/* --- TCP's functions, and ours ------------------------------------------------ */

/* IPV6_ADDRFORM makes an IPv6 socket that speaks IPv4 an IPv4 socket, and writes TCP's own
 * icsk_af_ops over ours.  The state is found here then, and ours written again, when TCP
 * next calls the transport, or when the connection leaves.  Seldom used: one lock will do.
 */
static DEFINE_HASHTABLE(gl_mapped, 8);
static DEFINE_SPINLOCK(gl_mapped_lock);

static void gl_mapped_add(struct sock *sk, struct gl_sock *gs)
{
	if (sk->sk_family != AF_INET6 || !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		return;
	spin_lock_bh(&gl_mapped_lock);
	hash_add(gl_mapped, &gs->node, (unsigned long)sk);
	spin_unlock_bh(&gl_mapped_lock);
}

static void gl_mapped_del(struct gl_sock *gs)
{
	if (hlist_unhashed(&gs->node))
		return;
	spin_lock_bh(&gl_mapped_lock);
	hash_del(&gs->node);
	spin_unlock_bh(&gl_mapped_lock);
}

/* The state of a socket that IPV6_ADDRFORM may have changed. */
static struct gl_sock *gl_mapped_find(const struct sock *sk)
{
	struct gl_sock *gs, *found = NULL;

	spin_lock_bh(&gl_mapped_lock);
	hash_for_each_possible(gl_mapped, gs, node, (unsigned long)sk)
		if (gs->sk == sk)
			found = gs;
	spin_unlock_bh(&gl_mapped_lock);
	return found;
}

static void gl_take(struct sock *sk, struct gl_sock *gs)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	gs->tcp_ops = icsk->icsk_af_ops;
	gs->af_ops = *gs->tcp_ops;
	gs->af_ops.queue_xmit = gl_queue_xmit;
	gs->backlog_rcv = sk->sk_backlog_rcv;
	sk->sk_backlog_rcv = gl_backlog_rcv;
	gl_mapped_add(sk, gs);
	/* setsockopt() reads it without the lock, and calls through it. */
	smp_store_release(&icsk->icsk_af_ops, &gs->af_ops);
}

/**
 * gl_sock_again() - the same as gl_sock(), of a socket that IPV6_ADDRFORM may have changed
 * @sk: the socket, locked
 *
 * Return: its state, back where gl_sock() finds it; NULL if it has none.
 */
struct gl_sock *gl_sock_again(struct sock *sk)
{
	struct gl_sock *gs = gl_mapped_find(sk);

	if (gs && gl_can_take(inet_csk(sk)->icsk_af_ops)) {
		gl_mapped_del(gs);
		sk->sk_backlog_rcv = gs->backlog_rcv;
		gl_take(sk, gs);
	}
	return gl_sock(sk);
}
EXPORT_SYMBOL_GPL(gl_sock_again);

static void gl_give_back(struct sock *sk, struct gl_sock *gs)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_af_ops == &gs->af_ops)
		WRITE_ONCE(icsk->icsk_af_ops, gs->tcp_ops);
	sk->sk_backlog_rcv = gs->backlog_rcv;
	gl_mapped_del(gs);
}

/**
 * gl_attach() - a transport's init() takes up a connection
 * @sk: the connection, locked
 *
 * Return: the state; NULL where the connection can only behave as its base:
 * without SACK an echo does not say what it covers, MPTCP schedules packets
 * by rules of its own, signed segments cannot be split or crafted, and where another
 * protocol sends the packets they cannot be marked.
 */
struct gl_sock *gl_attach(struct sock *sk)
{
	struct gl_sock *gs;

	/* No connection yet, and whether it will have SACK is not known.  TCP
	 * calls init() when it stands; but not if an application has chosen us
	 * between connect() and then, which makes a connection like its base.
	 */
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return NULL;
	if (!tcp_is_sack(tcp_sk(sk)) || sk_is_mptcp(sk) || gl_tcp_signed(sk) ||
	    !gl_can_take(inet_csk(sk)->icsk_af_ops)) {
		gl_inc_stats(sock_net(sk), GL_MIB_UNSUPPORTED);
		return NULL;
	}
	gs = kzalloc(gl_transport(sk)->sock_size, GFP_ATOMIC | __GFP_NOWARN);
	if (!gs) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return NULL;
	}
	gs->sk = sk;
	gs->transport = gl_transport(sk);
	refcount_set(&gs->refs, 1);
	gs->peer = gl_first_peer(sk);
	if (gs->peer == GREENLANE_PEER_NO) {
		gl_inc_stats(sock_net(sk), GL_MIB_PEERWITHOUT);
		trace_greenlane_fallback(sk, tcp_sk(sk)->snd_una, 0);
	}
	gl_take(sk, gs);
	return gs;
}
EXPORT_SYMBOL_GPL(gl_attach);

static void gl_sock_free(struct rcu_head *rcu)
{
	struct gl_sock *gs = container_of(rcu, struct gl_sock, rcu);

	gl_free_held(gs);
	kfree_rcu(gs, rcu);
}

/* Its icsk_af_ops may still be in use: by packets that see the socket under RCU, and by
 * setsockopt(), which has no lock and can be preempted between reading the pointer and
 * what is behind it.  That is over when each task has slept or run in user space.
 */
void gl_sock_put(struct gl_sock *gs)
{
	if (refcount_dec_and_test(&gs->refs))
		call_rcu_tasks(&gs->rcu, gl_sock_free);
}

void gl_sock_exit(void)
{
	/* gl_queue_xmit() is in what setsockopt() may have read. */
	gl_rcu_barrier_tasks();
	rcu_barrier();
}

/**
 * gl_detach() - undo gl_attach()
 * @sk: the connection, locked, or already out of everybody's reach
 */
void gl_detach(struct sock *sk)
{
	struct gl_sock *gs;

	/* An MPTCP socket has a congestion control only to hand it to its subflows. */
	if (!inet_csk(sk)->icsk_af_ops)
		return;
	gs = gl_sock(sk) ?: gl_mapped_find(sk);
	if (!gs)
		return;
	if (gl_marking(gs))
		gs->transport->on_switch(sk, gs, false);
	if (gs->transport->on_free)
		gs->transport->on_free(gs);
	gl_give_back(sk, gs);
	gl_sock_put(gs);
}
EXPORT_SYMBOL_GPL(gl_detach);

/**
 * gl_release() - the release() of every transport
 * @sk: the connection, locked, or already out of everybody's reach
 */
void gl_release(struct sock *sk)
{
	const struct tcp_congestion_ops *base = gl_transport(sk)->base;

	gl_detach(sk);
	if (base && base->release)
		base->release(sk);
}
EXPORT_SYMBOL_GPL(gl_release);
