// SPDX-License-Identifier: GPL-2.0
/* Work that waits: until TCP has finished with a packet, or until a process releases the socket.
 *
 * The kick calls a transport when TCP has finished with a packet, so that it can send more.  TCP
 * calls a congestion control in the middle of its work, where sending is not possible.  So
 * the transport queues the socket, and its on_kick() is called later with the socket locked and
 * not owned by a process:
 *
 *	gl_kick()	in a tasklet, after the packets of this softirq
 *	gl_kick_soon()	in a timer, after GL_SOON_NS: checks a burst that may have ended
 *			without an important packet
 *
 * Both lists are per CPU and lock-free.  A socket is on each list at most once, and the list
 * holds a reference on the socket and on its state.
 *
 * TCP queues packets that arrive while a process owns the socket on the socket's backlog, and the
 * process handles them when it releases the socket.  Greenlane's packets wait with their
 * connection:
 *
 *	a packet with our option	in gs->held, until the next kick
 *	data				in the backlog as usual; gl_backlog_rcv() reads its
 *					DS field before TCP processes it
 *
 * A packet that arrives then sets a bit GL_OWED_* of gs->flags, and not gs->owed or gs->prompt,
 * which the next packet from TCP obeys: the process may send one before the backlog is processed,
 * and an answer in it would report data as lost that has arrived.
 *
 * If a kick finds that a process owns the socket, release_sock() kicks, after the backlog: see
 * gl_kick_at_release().  A kick after that might find the next process that owns the socket.
 */
#include <linux/hrtimer.h>
#include <linux/interrupt.h>
#include <linux/percpu.h>
#include <linux/skbuff.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- request a kick ------------------------------------------------------------ */

/**
 * struct gl_kicks - a CPU's lists
 * @now: linked by struct gl_sock.now; lock-free
 * @soon: linked by struct gl_sock.soon; lock-free
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

/* Return: true if the caller has to put @gs on the list of @bit; the references are taken.
 *
 * The caller may hold the spinlock of a socket that a process owns, and the process may be in
 * gl_detach() at the same time and have dropped the last reference.
 */
static bool gl_kick_hold(struct sock *sk, struct gl_sock *gs, int bit)
{
	if (test_and_set_bit(bit, &gs->flags) || !refcount_inc_not_zero(&gs->refs))
		return false;
	sock_hold(sk);
	return true;
}

/**
 * gl_kick() - have on_kick() called when TCP has finished with the current packet
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
 * gl_kick_soon() - have on_kick() called after GL_SOON_NS
 * @sk: the socket, locked
 * @gs: its state
 *
 * The sockets of a CPU share the timer.
 *
 * Return: true if this call starts the timer; else on_kick() is called earlier.
 */
bool gl_kick_soon(struct sock *sk, struct gl_sock *gs)
{
	struct gl_kicks *kicks;
	bool first;

	if (!gl_kick_hold(sk, gs, GL_QUEUED_SOON))
		return false;
	local_bh_disable();
	kicks = this_cpu_ptr(&gl_kicks);
	first = llist_add(&gs->soon, &kicks->soon);
	if (first)
		hrtimer_start(&kicks->timer, GL_SOON_NS,
			      HRTIMER_MODE_REL_PINNED_SOFT);
	local_bh_enable();
	return first;
}
EXPORT_SYMBOL_GPL(gl_kick_soon);

/* Above the MTU of every path, loopback's (64 kB) included: no reduction, if release_sock() calls
 * TCP's function, after IPV6_ADDRFORM or when the transport has left.
 */
#define GL_MTU_NONE	BIT(20)

/**
 * gl_kick_at_release() - have on_kick() called when the process releases the socket
 * @sk: the socket, owned by a process; under its spinlock, BH off
 * @gs: its state
 *
 * release_sock() calls icsk_af_ops->mtu_reduced(), with the spinlock held, if the path's MTU was
 * reduced while the process owned the socket.
 */
static void gl_kick_at_release(struct sock *sk, struct gl_sock *gs)
{
	set_bit(GL_AT_RELEASE, &gs->flags);
	if (test_and_set_bit(TCP_MTU_REDUCED_DEFERRED, &sk->sk_tsq_flags))
		return;
	sock_hold(sk);
	WRITE_ONCE(tcp_sk(sk)->mtu_info, GL_MTU_NONE);
}

/* --- a packet arrives while a process owns the socket -------------------------- */

/* Maximum number of packets held per socket: a process may sleep while it owns the socket, and the
 * network must not fill the memory meanwhile.  1024 packets take 64 kB, and are more credits than a
 * receiver has in flight to one sender (the BDP of 400 Gbit/s and 31 µs).  Packets beyond it are
 * dropped; the protocols recover from that as from a loss in the network.
 */
#define GL_HELD_MAX	1024

/* Put a segment at the head of the list, or drop it. */
static void gl_held_add(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			const struct gl_seg *seg)
{
	struct gl_held *held = NULL;

	BUILD_BUG_ON(sizeof(*held) > 64);
	if (gs->held_n < GL_HELD_MAX)
		held = kmalloc(sizeof(*held), GFP_ATOMIC | __GFP_NOWARN);
	if (!held) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return;
	}
	held->seg = *seg;
	held->kind = kind;
	held->next = gs->held;
	gs->held = held;
	gs->held_n++;
	gl_kick_at_release(sk, gs);
}

/**
 * gl_hold() - keep a segment with our option until the process releases the socket
 * @sk: the socket; under its spinlock, BH off
 * @gs: its state
 * @kind: the packet's kind
 * @seg: the segment
 *
 * Return: GL_PASS if TCP gets the packet too, from the backlog; else GL_CONSUME.
 */
enum gl_verdict gl_hold(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			const struct gl_seg *seg)
{
	if (!gl_plausible(sk, seg) || !gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	/* One answer serves all packets that arrive meanwhile and only request an answer. */
	if (kind->flags & GL_KIND_ANSWERED && !kind->words) {
		gl_count_received(sk, kind);
		set_bit(GL_OWED_ANSWER, &gs->flags);
		gl_set_number(gs, GL_HELD_TO, seg->field);
		if (seg->ce)
			set_bit(GL_OWED_CE, &gs->flags);
		gl_kick_at_release(sk, gs);
		return GL_CONSUME;
	}
	gl_held_add(sk, gs, kind, seg);
	return kind->flags & GL_KIND_TCPS ? GL_PASS : GL_CONSUME;
}

/**
 * gl_hold_data() - note that data was received that requests an immediate ACK
 * @sk: the socket, owned by a process; under its spinlock, BH off
 * @gs: its state
 * @kind: the packet's kind
 * @seg: the segment
 *
 * TCP gets the packet itself.  Usually the packet passes through the backlog, where
 * gl_backlog_rcv() processes it.  If the process releases the socket before TCP adds the packet to
 * the backlog, the kick sends the ACK.
 */
void gl_hold_data(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		  const struct gl_seg *seg)
{
	if (!gl_plausible(sk, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	if (kind->flags & GL_KIND_ENDS) {
		gs->held_end = seg->end_seq;
		gs->held_last = kind->codepoint;
	}
	set_bit(GL_OWED_ACK, &gs->flags);
	gl_kick(sk, gs);
}

/* --- the backlog -------------------------------------------------------------- */

/* The kind of data from the backlog, if it requests an immediate ACK, else NULL.  Fills @seg. */
static const struct gl_kind *gl_backlog_kind(const struct sock *sk, const struct gl_sock *gs,
					     const struct sk_buff *skb, struct gl_seg *seg)
{
	const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

	seg->seq = cb->seq;
	seg->end_seq = cb->end_seq - !!(cb->tcp_flags & TCPHDR_FIN);
	seg->ack = cb->ack_seq;
	if (gs->peer != GREENLANE_PEER_YES || seg->seq == seg->end_seq || !gl_plausible(sk, seg))
		return NULL;
	return gl_kind_of_data(gs, cb->ip_dsfield);
}

/* TCP has finished with data from the backlog that requests an immediate ACK.  Since 6.7 it sends
 * one ACK for the whole backlog, at its end (net.ipv4.tcp_backlog_ack_defer).  That ACK has room
 * for three SACK blocks only, and the peer needs an acknowledgment of this packet.
 */
static void gl_backlog_acked(struct sock *sk, struct gl_sock *gs)
{
	/* TCP may have ended the connection, and @gs with it. */
	if (gl_sock_locked(sk) != gs || !gs->prompt || gs->patient)
		return;
	gs->prompt = 0;
	if (!RB_EMPTY_ROOT(&tcp_sk(sk)->out_of_order_queue))
		gl_send_ack(sk);
}

/**
 * gl_backlog_rcv() - sk_backlog_rcv() of a connection that runs a greenlane transport
 * @sk: the connection; the caller owns it
 * @skb: a packet from its backlog
 *
 * Return: as tcp_v4_do_rcv().
 */
int gl_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	const struct gl_kind *kind;
	struct gl_seg seg = {};
	int err;

	if (!gs)
		return sk->sk_prot->backlog_rcv(sk, skb);
	kind = gl_backlog_kind(sk, gs, skb, &seg);
	if (!kind)
		return gs->backlog_rcv(sk, skb);
	clear_bit(GL_OWED_ACK, &gs->flags);
	gl_acknowledge(sk, gs, kind, &seg);
	err = gs->backlog_rcv(sk, skb);
	gl_backlog_acked(sk, gs);
	return err;
}

/* --- the socket is free ----------------------------------------------------------- */

/**
 * gl_release_held() - process the packets that arrived while a process owned the socket
 * @sk: the socket, locked and not owned by a process, BH off
 * @gs: its state
 */
void gl_release_held(struct sock *sk, struct gl_sock *gs)
{
	struct gl_held *held, *next, *first = NULL;

	/* For data out of order TCP may have cleared the ACK's request: see gl_out_prompt(). */
	if (test_and_clear_bit(GL_OWED_ACK, &gs->flags) &&
	    (inet_csk_ack_scheduled(sk) || !RB_EMPTY_ROOT(&tcp_sk(sk)->out_of_order_queue)))
		gl_send_ack(sk);
	if (test_and_clear_bit(GL_OWED_ANSWER, &gs->flags)) {
		gs->owed = 1;
		gl_set_number(gs, GL_OWED_TO, gl_number(gs, GL_HELD_TO));
	}
	if (test_and_clear_bit(GL_OWED_CE, &gs->flags))
		gl_heed_ce(sk);
	if (gs->held_last) {
		struct gl_seg seg = { .seq = gs->held_end - 1, .end_seq = gs->held_end };

		gs->transport->on_packet(sk, gs, gs->transport->protocol->prompt[gs->held_last],
					 &seg);
		gs->held_last = 0;
	}
	/* The list has the newest packet first; process the oldest first. */
	for (held = gs->held; held; held = next) {
		next = held->next;
		held->next = first;
		first = held;
	}
	gs->held = NULL;
	gs->held_n = 0;
	for (held = first; held; held = next) {
		next = held->next;
		gl_receive(sk, gs, NULL, held->kind, &held->seg);
		kfree(held);
	}
}

/* --- the kick ------------------------------------------------------------------ */

/* May a transport send?  Not on a closed socket without a reference on its namespace: TCP has
 * stopped its timers.
 */
static bool gl_may_send(const struct sock *sk)
{
	return !sock_flag(sk, SOCK_DEAD) || sk->sk_net_refcnt;
}

#ifdef GL_DEBUG
/**
 * gl_assert_alive() - warn if a connection can continue only by TCP's timers
 * @sk: the connection, locked
 * @gs: its state
 *
 * The invariant: while data is in flight, a packet that no switch drops first is in flight, or the
 * answer to it, or a kick is queued.  Called after each packet that is sent, each ACK and each
 * kick, in debug builds only: in other builds no packet of a peer may cause a warning.
 */
void gl_assert_alive(const struct sock *sk, const struct gl_sock *gs)
{
	const struct gl_transport *t = gs->transport;

	/* A closed socket sends no packet but a reset. */
	if (sk->sk_state == TCP_CLOSE)
		return;
	WARN_ONCE(gl_marking(gs) && t->is_alive && !gl_kick_is_queued(gs) && !t->is_alive(sk, gs),
		  "greenlane: %s waits for TCP's timers, %u packets are in flight\n",
		  t->ops.name, tcp_sk(sk)->packets_out);
}
EXPORT_SYMBOL_GPL(gl_assert_alive);
#endif

/* TCP has finished with the data that requested an ACK: see gl_out_prompt().  If the ACK waited for
 * an answer of the application that was not in time, send the ACK now, and as after a missed
 * delayed ACK (tcp_delack_timer_handler()) expect no answer until the application answers again.
 */
static void gl_end_prompt(struct sock *sk, struct gl_sock *gs, bool soon)
{
	bool late = gs->patient;

	if (late && !soon)
		return;
	/* An earlier packet, or another socket of this CPU, has started the timer. */
	if (late && gs->young) {
		gs->young = 0;
		gl_kick_soon(sk, gs);
		return;
	}
	gs->prompt = 0;
	gs->patient = 0;
	if (!late)
		return;
	inet_csk_exit_pingpong_mode(sk);
	gl_send_ack(sk);
}

/* Before on_kick(): process the packets that arrived while a process owned the socket, and send the
 * ACKs and answers that are owed.  Return: true if the connection still runs @gs's transport, and
 * may send.
 */
static bool gl_kick_owed(struct sock *sk, struct gl_sock *gs, bool soon)
{
	gl_release_held(sk, gs);
	if (gl_sock(sk) != gs || !gl_may_send(sk))
		return false;
	gl_end_prompt(sk, gs, soon);
	/* An answer is still owed: TCP sent no pure ACK. */
	if (gs->owed)
		gl_send_ack(sk);
	return true;
}

/* A kick, with the socket locked and not owned by a process, or released by it, BH off.
 * @soon: GL_SOON_NS have passed.
 */
static void gl_kicked(struct sock *sk, struct gl_sock *gs, bool soon)
{
	bool may;

	gl_inc_stats(sock_net(sk), GL_MIB_KICKS);
	gs->kicked = 1;
	may = gl_kick_owed(sk, gs, soon);
	gs->kicked = 0;
	if (!may)
		return;
	gs->transport->on_kick(sk, gs);
	gl_assert_alive(sk, gs);
}

/**
 * gl_mtu_reduced() - icsk_af_ops->mtu_reduced() of a connection with a greenlane transport
 * @sk: the connection; its process releases it, and holds its spinlock, BH off
 *
 * If an ICMP message that arrived after gl_kick_at_release() has set the MTU, call TCP's function.
 */
void gl_mtu_reduced(struct sock *sk)
{
	struct gl_sock *gs = gl_sock(sk);

	if (READ_ONCE(tcp_sk(sk)->mtu_info) != GL_MTU_NONE)
		gs->tcp_ops->mtu_reduced(sk);
	if (!test_and_clear_bit(GL_AT_RELEASE, &gs->flags) || sk->sk_state == TCP_CLOSE)
		return;
	/* The transport may leave the connection. */
	refcount_inc(&gs->refs);
	gl_kicked(sk, gs, test_and_clear_bit(GL_SOON_PASSED, &gs->flags));
	gl_sock_put(gs);
}

/* Under the socket's spinlock.  If a process owns the socket, request a kick at its release.
 *
 * Return: true if the socket runs @gs's transport, and no process owns it.
 */
static bool gl_enter(struct sock *sk, struct gl_sock *gs)
{
	/* Not if the connection has changed its congestion control since. */
	if (sock_owned_by_user(sk)) {
		if (gl_sock(sk) == gs)
			gl_kick_at_release(sk, gs);
		else if (gl_mapped_find(sk) == gs)	/* release_sock() calls TCP's function */
			gl_kick_soon(sk, gs);
		return false;
	}
	return gl_sock_locked(sk) == gs && sk->sk_state != TCP_CLOSE;
}

/* Clear @bit, of the list that @gs was on, under the spinlock: another CPU that processes a packet
 * before that sees that a kick follows.
 */
static void gl_kick_one(struct gl_sock *gs, int bit)
{
	bool soon = bit == GL_QUEUED_SOON;
	struct sock *sk = gs->sk;

	bh_lock_sock(sk);
	clear_bit_unlock(bit, &gs->flags);
	if (gl_enter(sk, gs))
		gl_kicked(sk, gs, soon);
	else if (soon)
		set_bit(GL_SOON_PASSED, &gs->flags);
	bh_unlock_sock(sk);
	sock_put(sk);
	gl_sock_put(gs);
}

/**
 * gl_call_hold() - take the references that gl_call() drops
 * @gs: the state of a socket for which on_switch() has not been called to end the marking
 */
void gl_call_hold(struct gl_sock *gs)
{
	refcount_inc(&gs->refs);
	sock_hold(gs->sk);
}
EXPORT_SYMBOL_GPL(gl_call_hold);

/**
 * gl_call() - call a function of a transport that may send, from a timer
 * @gs: the state of the socket, see gl_call_hold()
 * @now: the time that the timer has read, passed to @call
 * @call: called with the socket's spinlock held, BH off; with @may if the socket still runs the
 *	transport, no process owns it and it may send.  If a process owns it, on_kick() is called
 *	later
 */
void gl_call(struct gl_sock *gs, u64 now,
	     void (*call)(struct sock *sk, struct gl_sock *gs, u64 now, bool may))
{
	struct sock *sk = gs->sk;

	bh_lock_sock(sk);
	call(sk, gs, now, gl_enter(sk, gs) && gl_may_send(sk));
	bh_unlock_sock(sk);
	sock_put(sk);
	gl_sock_put(gs);
}
EXPORT_SYMBOL_GPL(gl_call);

static void gl_kick_tasklet(struct tasklet_struct *tasklet)
{
	struct gl_kicks *kicks = from_tasklet(kicks, tasklet, tasklet);
	struct gl_sock *gs, *next;
	struct llist_node *list;

	list = llist_reverse_order(llist_del_all(&kicks->now));
	llist_for_each_entry_safe(gs, next, list, now)
		gl_kick_one(gs, GL_QUEUED_NOW);
}

static enum hrtimer_restart gl_kick_timer(struct hrtimer *timer)
{
	struct gl_kicks *kicks = container_of(timer, struct gl_kicks, timer);
	struct gl_sock *gs, *next;
	struct llist_node *list;

	list = llist_reverse_order(llist_del_all(&kicks->soon));
	llist_for_each_entry_safe(gs, next, list, soon)
		gl_kick_one(gs, GL_QUEUED_SOON);
	/* gl_kick_soon() starts it again for the next socket on the list. */
	return HRTIMER_NORESTART;
}

/* --- send ---------------------------------------------------------------------- */

/**
 * gl_xmit_at_release() - as gl_xmit(), when the process releases the socket
 * @sk: the socket, locked
 *
 * TCP's handler for sockets that TCP small queues throttled retransmits the packets marked lost and
 * then sends new data, within snd_cwnd.  It drops a socket reference, so take one, unless the flag
 * is set and TCP has done so.
 */
void gl_xmit_at_release(struct sock *sk)
{
	if (!test_and_set_bit(TCP_TSQ_DEFERRED, &sk->sk_tsq_flags))
		sock_hold(sk);
}
EXPORT_SYMBOL_GPL(gl_xmit_at_release);

/**
 * gl_xmit() - have TCP send now the packets that its window permits
 * @sk: the socket, locked and not owned by a process, BH off
 */
void gl_xmit(struct sock *sk)
{
	gl_xmit_at_release(sk);
	sk->sk_prot->release_cb(sk);
}
EXPORT_SYMBOL_GPL(gl_xmit);

/**
 * gl_xmit_one() - have TCP send one packet beyond its window
 * @sk: the socket, locked and not owned by a process, BH off
 */
void gl_xmit_one(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 cwnd = tcp_snd_cwnd(tp);
	u32 beyond = tcp_packets_in_flight(tp) + 1;

	if (beyond > cwnd)
		tcp_snd_cwnd_set(tp, beyond);
	gl_xmit(sk);
	/* Keep a window that TCP has set meanwhile. */
	if (beyond > cwnd && tcp_snd_cwnd(tp) == beyond)
		tcp_snd_cwnd_set(tp, cwnd);
}
EXPORT_SYMBOL_GPL(gl_xmit_one);

/* --- the module ---------------------------------------------------------------- */

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

/* Called when no more sockets are queued.  Sockets may still be on the lists, but they no longer
 * run a transport, or that transport's module would hold a reference on this one.  So no
 * socket is queued again, not even if a process owns it, and each list empties in one pass.
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
