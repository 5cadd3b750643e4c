// SPDX-License-Identifier: GPL-2.0
/* The state of a connection: how it is allocated, found and freed. */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/ipv6.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "gl_internal.h"

/* --- icsk_af_ops ---------------------------------------------------------------- */

/* IPV6_ADDRFORM converts an IPv6 socket of an IPv4 connection to an IPv4 socket, and overwrites our
 * icsk_af_ops with TCP's.  This table finds the state again: when TCP next calls the
 * transport, when a packet arrives, or when the connection ends.  sk_backlog_rcv, which stays ours,
 * shows that there is a state (gl_is_hidden()).  The table is read for such sockets only, so one
 * lock is enough; it contains all IPv4 clients of a listener on [::].
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

/* The state of a socket that IPV6_ADDRFORM has hidden from gl_sock(), or NULL. */
struct gl_sock *gl_mapped_find(const struct sock *sk)
{
	struct gl_sock *gs, *found = NULL;

	if (!gl_is_hidden(sk))
		return NULL;
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
	gs->af_ops.mtu_reduced = gl_mtu_reduced;
	gs->backlog_rcv = sk->sk_backlog_rcv;
	sk->sk_backlog_rcv = gl_backlog_rcv;
	gl_mapped_add(sk, gs);
	/* setsockopt() reads the pointer without the lock and calls through it. */
	smp_store_release(&icsk->icsk_af_ops, &gs->af_ops);
}

/**
 * gl_sock_again() - as gl_sock(), for a socket that IPV6_ADDRFORM may have changed
 * @sk: the socket, locked
 *
 * Installs our icsk_af_ops again, so that gl_sock() finds the state from now on.
 *
 * Return: the state, or NULL.
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

/**
 * gl_sock_received() - as gl_sock(), for a packet that was received
 * @sk: the socket, under RCU
 *
 * After IPV6_ADDRFORM a connection that only receives may not call its transport for a long time.
 *
 * Return: its state, or NULL.
 */
struct gl_sock *gl_sock_received(struct sock *sk)
{
	struct gl_sock *gs = gl_sock(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (likely(gs || !gl_is_hidden(sk)))
		return gs;
	local_bh_disable();
	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk))
		gs = gl_sock_again(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
#endif
	return gs;
}

static void gl_give_back(struct sock *sk, struct gl_sock *gs)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_af_ops == &gs->af_ops)
		WRITE_ONCE(icsk->icsk_af_ops, gs->tcp_ops);
	sk->sk_backlog_rcv = gs->backlog_rcv;
	gl_mapped_del(gs);
}

/* --- memory ------------------------------------------------------------------------ */

/* kmalloc() has slabs of 256 and 512 bytes.  States larger than 256 are at most GL_SOCK_SIZE_MAX,
 * and get slabs of their own.
 */
#define GL_SOCK_KMALLOC		256

static struct kmem_cache *gl_sock_cache;

static struct gl_sock *gl_sock_alloc(size_t size)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;

	return size > GL_SOCK_KMALLOC ? kmem_cache_zalloc(gl_sock_cache, gfp) : kzalloc(size, gfp);
}

static void gl_sock_free(struct rcu_head *rcu)
{
	kfree(container_of(rcu, struct gl_sock, rcu));
}

static void gl_sock_unused(struct rcu_head *rcu)
{
	struct gl_sock *gs = container_of(rcu, struct gl_sock, rcu);

	gl_free_held(gs);
	call_rcu(&gs->rcu, gl_sock_free);
}

/* Drop a reference; the last one frees the state.  Its icsk_af_ops may still be in use: by packets
 * that see the socket under RCU, and by setsockopt(), which takes no lock and can be preempted
 * between reading the pointer and calling through it.  The latter is over after a grace period
 * of RCU tasks, when each task has slept voluntarily or run in user space.
 */
void gl_sock_put(struct gl_sock *gs)
{
	if (refcount_dec_and_test(&gs->refs))
		call_rcu_tasks(&gs->rcu, gl_sock_unused);
}

int __init gl_sock_init(void)
{
	gl_sock_cache = kmem_cache_create("greenlane_sock", GL_SOCK_SIZE_MAX, 0, 0, NULL);
	return gl_sock_cache ? 0 : -ENOMEM;
}

void gl_sock_exit(void)
{
	/* setsockopt() may be about to call a function of this module: see gl_sock_put(). */
	gl_rcu_barrier_tasks();
	rcu_barrier();
	kmem_cache_destroy(gl_sock_cache);
}

/* --- attach and detach ---------------------------------------------------------------- */

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
	const struct gl_transport *t = gl_transport(sk);

	while (t->inner)
		t = t->inner;
	gl_detach(sk);
	if (t->base && t->base->release)
		t->base->release(sk);
}
EXPORT_SYMBOL_GPL(gl_release);
