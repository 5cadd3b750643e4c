// SPDX-License-Identifier: GPL-2.0
/* The state of a connection: how it is allocated, found and freed. */
#include <linux/hash.h>
#include <linux/hashtable.h>
#include <linux/ipv6.h>
#include <net/inet6_connection_sock.h>
#include <net/ip.h>

#include <net/gl_compat.h>
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

/**
 * gl_can_take() - does this connection send by TCP's own queue_xmit()?
 * @ops: its icsk_af_ops
 *
 * Return: false if another protocol (SMC, MPTCP) has replaced it.
 */
bool gl_can_take(const struct inet_connection_sock_af_ops *ops)
{
	if (ops->queue_xmit == ip_queue_xmit)
		return true;
	return IS_ENABLED(CONFIG_IPV6) && ops->queue_xmit == inet6_csk_xmit;
}

/**
 * gl_take() - have TCP call the layer: install our icsk_af_ops and sk_backlog_rcv
 * @sk: the connection, locked; gl_can_take() is true
 * @gs: its state
 */
void gl_take(struct sock *sk, struct gl_sock *gs)
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

/**
 * gl_give_back() - undo gl_take()
 * @sk: the connection, locked or about to be freed
 * @gs: its state
 */
void gl_give_back(struct sock *sk, struct gl_sock *gs)
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

/**
 * gl_sock_alloc() - allocate a state
 * @size: bytes, of the transport
 *
 * Return: the state, zeroed, or NULL.
 */
struct gl_sock *gl_sock_alloc(size_t size)
{
	const gfp_t gfp = GFP_ATOMIC | __GFP_NOWARN;

	return size > GL_SOCK_KMALLOC ? kmem_cache_zalloc(gl_sock_cache, gfp) : kzalloc(size, gfp);
}

/* Packets may wait for a process that has closed the socket. */
static void gl_free_held(struct gl_sock *gs)
{
	struct gl_held *held, *next;

	for (held = gs->held; held; held = next) {
		next = held->next;
		kfree(held);
	}
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
