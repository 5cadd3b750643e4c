// SPDX-License-Identifier: GPL-2.0
/* The kick: once TCP is done with a packet, its transport may send more.
 *
 * A congestion control is called in the middle of TCP's work and may not send
 * there.  So it queues the socket, and is called back (on_kick) with the
 * socket locked and at rest:
 *
 *	gl_kick()	in a tasklet, which runs when the packets of this softirq
 *			have been processed
 *	gl_kick_soon()	in a timer, GL_SOON_NS later: a look at a burst that may
 *			have ended without an important packet, and at a socket that
 *			a process has just let go of (gl_owned.c)
 *
 * Both lists are per CPU and lock-free; a socket is in each of them once at
 * most, with a reference on the socket and on its state.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/percpu.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* A few round trips of a datacenter network (20 µs), and far less than any
 * timer of TCP's (RTO_min 4 ms).
 */
#define GL_SOON_NS	(50 * NSEC_PER_USEC)

/**
 * struct gl_kicks - a CPU's lists
 * @now: by struct gl_sock.now
 * @soon: by struct gl_sock.soon
 * @tasklet: empties @now
 * @timer: empties @soon
 */
struct gl_kicks {
	struct llist_head	now;
	struct llist_head	soon;
	struct tasklet_struct	tasklet;
	struct hrtimer		timer;
};

static DEFINE_PER_CPU(struct gl_kicks, gl_kicks);

/* true: @gs goes on that list now, and holds what it needs there */
static bool gl_kick_hold(struct sock *sk, struct gl_sock *gs, int bit)
{
	if (test_and_set_bit(bit, &gs->flags))
		return false;
	sock_hold(sk);
	refcount_inc(&gs->refs);
	return true;
}

/**
 * gl_kick() - call the transport back when TCP is done with this packet
 * @sk: the socket, locked
 * @gs: its state
 */
void gl_kick(struct sock *sk, struct gl_sock *gs)
{
	struct gl_kicks *kicks;

	if (!gl_kick_hold(sk, gs, GL_QUEUED_NOW))
		return;
	local_bh_disable();
	kicks = this_cpu_ptr(&gl_kicks);
	if (llist_add(&gs->now, &kicks->now))
		tasklet_schedule(&kicks->tasklet);
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(gl_kick);

/**
 * gl_kick_soon() - the same, a little later
 * @sk: the socket, locked
 * @gs: its state
 */
void gl_kick_soon(struct sock *sk, struct gl_sock *gs)
{
	struct gl_kicks *kicks;

	if (!gl_kick_hold(sk, gs, GL_QUEUED_SOON))
		return;
	local_bh_disable();
	kicks = this_cpu_ptr(&gl_kicks);
	if (llist_add(&gs->soon, &kicks->soon))
		hrtimer_start(&kicks->timer, GL_SOON_NS,
			      HRTIMER_MODE_REL_PINNED_SOFT);
	local_bh_enable();
}
EXPORT_SYMBOL_GPL(gl_kick_soon);

/* TCP is at rest: what is there to do?  BH off. */
static void gl_kicked(struct sock *sk, struct gl_sock *gs)
{
	gl_inc_stats(sock_net(sk), GL_MIB_KICKS);
	gl_release_held(sk, gs);
	if (gl_sock(sk) != gs)
		return;
	/* TCP saw no need for an ACK, or it left on data. */
	if (gs->owed_clock)
		gl_send_ack(sk);
	gs->transport->on_kick(sk, gs);
}

static void gl_kick_one(struct gl_sock *gs)
{
	struct sock *sk = gs->sk;

	bh_lock_sock(sk);
	/* Unless the connection has chosen another congestion control. */
	if (sock_owned_by_user(sk)) {
		if (gl_sock(sk) == gs)
			gl_nudge(sk, gs);
	} else if (gl_sock_locked(sk) == gs && sk->sk_state != TCP_CLOSE) {
		gl_kicked(sk, gs);
	}
	bh_unlock_sock(sk);
	sock_put(sk);
	gl_sock_put(gs);
}

static void gl_kick_tasklet(struct tasklet_struct *tasklet)
{
	struct gl_kicks *kicks = from_tasklet(kicks, tasklet, tasklet);
	struct gl_sock *gs, *next;
	struct llist_node *list;

	list = llist_reverse_order(llist_del_all(&kicks->now));
	llist_for_each_entry_safe(gs, next, list, now) {
		clear_bit_unlock(GL_QUEUED_NOW, &gs->flags);
		gl_kick_one(gs);
	}
}

static enum hrtimer_restart gl_kick_timer(struct hrtimer *timer)
{
	struct gl_kicks *kicks = container_of(timer, struct gl_kicks, timer);
	struct gl_sock *gs, *next;
	struct llist_node *list;

	list = llist_reverse_order(llist_del_all(&kicks->soon));
	llist_for_each_entry_safe(gs, next, list, soon) {
		clear_bit_unlock(GL_QUEUED_SOON, &gs->flags);
		gl_kick_one(gs);
	}
	/* gl_kick_soon() starts it again when the list is not empty any more. */
	return HRTIMER_NORESTART;
}

/**
 * gl_xmit_later() - let TCP send when the process lets go of the socket
 * @sk: the socket, locked
 *
 * TCP's own handler for a socket that was throttled drops a reference, and TCP
 * asks for it with a flag that may be set already, with a reference of its own.
 */
void gl_xmit_later(struct sock *sk)
{
	if (!test_and_set_bit(TCP_TSQ_DEFERRED, &sk->sk_tsq_flags))
		sock_hold(sk);
}
EXPORT_SYMBOL_GPL(gl_xmit_later);

/**
 * gl_xmit() - let TCP send what its window allows
 * @sk: the socket, locked and at rest, BH off
 *
 * The same handler, now: retransmits what is marked lost, then sends new data,
 * within snd_cwnd.
 */
void gl_xmit(struct sock *sk)
{
	gl_xmit_later(sk);
	sk->sk_prot->release_cb(sk);
}
EXPORT_SYMBOL_GPL(gl_xmit);

/**
 * gl_xmit_one() - let TCP send one packet beyond its window
 * @sk: the socket, locked and at rest, BH off
 */
void gl_xmit_one(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 beyond = tcp_packets_in_flight(tp) + 1;

	if (beyond > cwnd)
		tcp_snd_cwnd_set(tp, beyond);
	gl_xmit(sk);
	/* If TCP has set it since, TCP knows better. */
	if (beyond > cwnd && tcp_snd_cwnd(tp) == beyond)
		tcp_snd_cwnd_set(tp, cwnd);
}
EXPORT_SYMBOL_GPL(gl_xmit_one);

void gl_kick_init(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct gl_kicks *kicks = per_cpu_ptr(&gl_kicks, cpu);

		init_llist_head(&kicks->now);
		init_llist_head(&kicks->soon);
		tasklet_setup(&kicks->tasklet, gl_kick_tasklet);
		hrtimer_setup(&kicks->timer, gl_kick_timer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_REL_PINNED_SOFT);
	}
}

/* Nothing is queued any more, but what was may still wait.  All of these connections
 * have left us, or their transports would be there and keep us: they are not queued
 * again, not even if a process owns the socket, and each list empties in one go.
 */
void gl_kick_exit(void)
{
	int cpu;

	for_each_possible_cpu(cpu) {
		struct gl_kicks *kicks = per_cpu_ptr(&gl_kicks, cpu);

		hrtimer_cancel(&kicks->timer);
		tasklet_kill(&kicks->tasklet);
		local_bh_disable();
		gl_kick_timer(&kicks->timer);
		gl_kick_tasklet(&kicks->tasklet);
		local_bh_enable();
	}
}
