// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the receiver.
 *
 * It sends the credits that its peer has requested.  rd_queue.c schedules one credit at a time
 * among the connections of a link, by the cost, gap and discipline of the transport's policy.
 *
 * See include/net/rd_core.h.
 */
#include <net/tcp.h>

#include <trace/events/greenlane.h>
#include "rd_internal.h"

/* A receiver stops sending credits if no report arrives for the longest of this time, eight round
 * trips and eight gaps between credits: the stop was lost, or the sender no longer exists.
 */
#define RD_SILENCE_NS	(1 * NSEC_PER_MSEC)
#define RD_SILENCE	8
/* A peer that answers the handshake late chooses its round trip.  Data is not later than this, ns:
 * longer than the queue of any port, 16 MB at 10 Gbit/s.
 */
#define RD_LATE_NS		(20 * NSEC_PER_MSEC)
/* The time of the last request has units of 1024 ns.  In units of 1 ns it would wrap after 4.3 s:
 * less than eight gaps between credits on a slow link, and a pause of that length would look
 * short.
 */
#define RD_REQUESTED_SHIFT	10

/* In the fair queue a window keeps its part of a busy link for this number of holds, 64 round
 * trips: the sender's NIC may queue 64 windows of other receivers.
 */
#define RD_HOLDS	8

/* Packets, beside the time by which softirqs are late, that a window of the fair queue has more if
 * it is alone on the link.  The minimum round trip is that of small packets, and full ones wait for
 * their last byte at each hop.  Beside others the sum of the windows fills the link.
 */
#define RD_SLACK	4

/* No policy waits longer between two credits of a connection. */
#define RD_GAP_MAX	NSEC_PER_SEC

#define RD_PS		1000	/* in a ns */

/* A process that owns a scheduled socket is likely to release it soon: schedule the socket again
 * after this time, and after two, four and eight times this.  Then wait for the process: releasing
 * the socket kicks it.
 */
#define RD_OWNED_NS	(2 * NSEC_PER_USEC)
#define RD_OWNED_MAX	4

/**
 * struct rd_terms - a connection's parameters for the queue, read once for each credit
 * @now: ns
 * @ps: link time of a credit and the packet that it permits, ps
 * @cost: the same, ns, rounded down
 * @gap: time between two credits if the connection had the link alone, ns
 * @shortest: the discipline is SRPT
 * @window: packets that may be in flight; 0: the link limits the connection, and not a window
 * @slack: packets beyond @window, in the fair queue and alone on the link
 * @slots: number of full windows that all connections of the link may have in flight
 * @hold: time for which a closed window keeps its place, ns
 */
struct rd_terms {
	u64	now;
	u64	ps;
	u64	cost;
	u64	gap;
	bool	shortest;
	u32	window;
	u32	slack;
	u32	slots;
	u64	hold;
};

static u64 rd_cost_ps(const struct sock *sk, const struct rd_sock *rs)
{
	return max_t(u64, rd_transport(rs)->policy->cost(sk, rs), RD_PS);
}

/* The account of data in flight; NULL if the link paces credits. */
static struct rd_grants *rd_grants_of(struct rd_sock *rs)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;

	return policy->grants ? policy->grants(rs) : NULL;
}

/* The round trip that a window covers, ns: the sender's minimum RTT if it is shorter than ours.  A
 * longer one may be the queue that the window itself has caused: the window would grow without end.
 */
static u64 rd_window_rtt_ns(const struct sock *sk, struct rd_sock *rs)
{
	return min_not_zero(rd_grants_of(rs)->rtt * (u64)NSEC_PER_USEC, rd_rtt_ns(sk));
}

static struct rd_terms rd_terms_of(const struct sock *sk, struct rd_sock *rs, u64 now, u64 ps)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u64 own = policy->gap ? policy->gap(rs) : 0;
	u64 cost = div_u64(ps, RD_PS);
	struct rd_terms t = {
		.now		= now,
		.ps		= ps,
		.cost		= cost,
		.gap		= rd_use_gap(&rs->use, max(own, cost), cost),
		.shortest	= policy->pick(sk) == RD_PICK_SHORTEST,
	};

	/* A sender that does not use its credits has no window: one credit in its gap. */
	if (policy->grants && !rs->use.low) {
		u64 rtt = rd_window_rtt_ns(sk, rs);

		t.window = min_t(u64, div64_u64(rtt, cost) + RD_WINDOW_MORE, RD_TOKENS_MAX);
		t.slots = policy->slots(sk);
		/* The link may be shared, or alone, a moment later. */
		if (!t.shortest && data_race(rs->r.queue->out) <= RD_WINDOW_FULL)
			t.slack = RD_SLACK + div64_u64(RD_CATCH_UP_NS, cost);
		t.hold = min_t(u64, RD_SILENCE * rtt, rtt + RD_LATE_NS);
		t.hold = clamp_t(u64, t.hold, RD_SILENCE_NS, NSEC_PER_SEC);
	}
	return t;
}

/* --- a window --------------------------------------------------------------- */

/* Packets in flight that count for the window.  A port that trims has no queue of unscheduled data,
 * so only permitted packets count then.
 */
static u32 rd_out(struct rd_sock *rs)
{
	const struct rd_grants *g = rd_grants_of(rs);

	return rd_transport(rs)->policy->trims ? g->granted : g->out;
}

/* The longest time between reading the clock and locking the socket, ns; a virtual CPU pauses. */
#define RD_SINCE_SKEW	(10 * (u32)NSEC_PER_MSEC)

/* Time from @then to @now, ns.  Another CPU may have stored a later time than @now.  Any other is
 * in the past: an outage may be longer than an s32 has bits.
 */
static u32 rd_ago(u64 now, u32 then)
{
	u32 ago = (u32)now - then;

	return ago < -RD_SINCE_SKEW ? ago : 0;
}

/* Time since the window granted data, or data arrived, ns. */
static u32 rd_since(const struct rd_sock *rs, u64 now)
{
	return rd_ago(now, rs->next);
}

/* Time for which a window still keeps its part, ns, if no data arrives.  As long as data arrives
 * for another window of the link, its own data may wait in the last band of a switch; in the fair
 * queue it waits behind other data of its sender only, and that has a limit.
 */
static u64 rd_keeps_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	u64 link = rd_ago(t->now, READ_ONCE(rs->r.queue->moved));
	u64 own = rd_since(rs, t->now), most = RD_HOLDS * t->hold;
	u64 left = t->hold - min3(t->hold, own, link);

	return t->shortest ? left : min(left, most - min(most, own));
}

/* Has a sender let its pulls wait for so long that it must be silent? */
static bool rd_is_stale(struct rd_sock *rs, const struct rd_terms *t)
{
	return t->window && !t->shortest && rd_out(rs) && !rd_keeps_ns(rs, t);
}

/* Has a receiver of SRPT been scheduled because no data arrives?  It has data in flight, and the
 * windows of the link leave no room: it must not permit more.  Another CPU may change the account
 * meanwhile: then it waits for its own data, whose arrival enqueues it again.
 */
static bool rd_is_stalled(struct rd_sock *rs, const struct rd_terms *t)
{
	return t->window && t->shortest && rd_out(rs) && rd_is_full(rs->r.queue);
}

/* The time at which a closed window gives up, ns. */
static u64 rd_give_up_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	return t->now + rd_keeps_ns(rs, t);
}

/* Update the queue's account, in which no connection has more than its window: a peer may claim any
 * number.
 */
static void rd_account(struct rd_sock *rs, const struct rd_terms *t)
{
	u32 out = min_t(u32, rd_out(rs), t->window);
	u32 part = t->window ? out * RD_WINDOW_FULL / t->window : 0;

	if (part < rs->r.charged)
		WRITE_ONCE(rs->r.queue->moved, t->now);
	/* The holds of a link's senders differ with their round trips.  A stall ends after them: a
	 * sender whose hold is a little longer must not have a pull, and with it a new hold.
	 */
	rd_window(rs->r.queue, &rs->r, part, t->slots, rd_give_up_ns(rs, t),
		  t->now + t->hold + t->hold / 8);
}

/* Set the number of packets in flight.  A receiver that is off is not in the queue's account. */
static void rd_set_out(struct rd_sock *rs, const struct rd_terms *t, u32 out, u32 granted)
{
	struct rd_grants *g = rd_grants_of(rs);

	g->out = min_t(u32, out, U16_MAX);
	g->granted = min_t(u32, granted, g->out);
	if (!rd_is_off(&rs->r))
		rd_account(rs, t);
}

/* Number of packets and trimmed headers that have arrived since @out of the account was right. */
static u16 rd_came(const struct rd_sock *rs, const struct rd_grants *g)
{
	return rs->arrived - g->segs;
}

/* Number of packets that have arrived, and that TCP has not seen: the socket's spinlock is free
 * before TCP gets them.
 */
static u16 rd_unseen(const struct sock *sk, const struct rd_sock *rs, const struct rd_grants *g)
{
	return rs->data_segs == tcp_sk(sk)->data_segs_in ? g->unseen : 0;
}

/* Data has arrived (rd_on_data()), or trimmed headers (rd_trimmed()). */
static void rd_arrived(struct rd_sock *rs, const struct rd_terms *t)
{
	struct rd_grants *g = rd_grants_of(rs);
	u16 n = rd_came(rs, g);

	if (!n)
		return;
	g->segs = rs->arrived;
	if (t->window)
		rs->next = t->now;
	rd_set_out(rs, t, g->out - min(g->out, n), g->granted);
}

/* Number of packets that a window permits.  Without one the link has permitted one packet. */
static u32 rd_permits(struct rd_sock *rs, const struct rd_terms *t)
{
	u32 most;

	if (!t->window)
		return 1;
	most = t->window + t->slack;
	return most - min_t(u32, most, rd_out(rs));
}

/* Has all data that was permitted arrived? */
static bool rd_is_all_in(struct rd_sock *rs)
{
	const struct rd_grants *g = rd_grants_of(rs);

	return !g || !g->out;
}

/* Bytes of a connection's data that have arrived behind a gap.  A peer may send many small packets:
 * look at a window's worth of ranges.
 */
static u32 rd_gapped(const struct sock *sk)
{
	struct rb_node *p = rb_first(&tcp_sk(sk)->out_of_order_queue);
	u32 bytes = 0;
	int n;

	for (n = 0; p && n < RD_GAPS; n++, p = rb_next(p))
		bytes += TCP_SKB_CB(rb_to_skb(p))->end_seq - TCP_SKB_CB(rb_to_skb(p))->seq;
	return bytes;
}

/* Number of packets before a sequence number that have not arrived, less later ones that have. */
static s32 rd_missing(const struct sock *sk, u32 seq)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	s32 mss = max_t(u32, min_t(u32, tp->mss_cache, tp->advmss),
			inet_csk(sk)->icsk_ack.rcv_mss);
	s32 bytes = seq - tp->rcv_nxt - rd_gapped(sk);

	return bytes > 0 ? DIV_ROUND_UP(bytes, mss) : bytes / mss;
}

/* --- a credit -------------------------------------------------------------- */

/* Link time of the requested packets that no credit has permitted yet, ns.  0 for the fair queue,
 * and for a message without such packets.
 */
static u64 rd_left_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	return t->shortest ? (u64)(rs->end - rs->credit) * t->cost : 0;
}

/* Time between two credits at present, ns: at the connection's own rate, or until the queue has
 * scheduled all others of the link.  With SRPT a connection that waits is scheduled round robin;
 * the receiver advertises twice that time, because others may join meanwhile.
 */
static u64 rd_wait_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	u64 round = READ_ONCE(rs->r.queue->receivers) * t->cost;

	if (t->shortest)
		round *= 2 * RD_ROUND;
	return max(round, t->gap);
}

/* The second word of a credit. */
static u32 rd_wait_word(const struct rd_sock *rs, const struct rd_terms *t)
{
	u32 wait = min_t(u64, rd_wait_ns(rs, t), RD_WAIT_MAX);

	/* With SRPT a scheduled sender has many credits, and reports once a round trip. */
	return wait > 2 * t->gap && !t->shortest ? wait | RD_BUSY : wait;
}

/**
 * rd_send_credit() - send a credit
 * @sk: the connection, locked
 * @rs: its state
 * @wait: its second word, as the core has passed it to issue()
 */
void rd_send_credit(struct sock *sk, struct rd_sock *rs, u32 wait)
{
	u32 word[2] = { rs->credit, wait };
	bool second = wait & RD_ACCEPTED || (wait & ~RD_BUSY) > RD_WAIT_MIN;

	gl_send_words(sk, &rs->gs, rd_kind(&rs->gs, RD_CREDIT), word, second ? 2 : 1);
}
EXPORT_SYMBOL_GPL(rd_send_credit);

/* Time since the last request, ns.  It wraps after more than half an hour, and then is too short,
 * or 0.  A request may have arrived after another processor has read @now.
 */
static u64 rd_silence_ns(const struct rd_sock *rs, u64 now)
{
	s32 ago = (u32)(now >> RD_REQUESTED_SHIFT) - rs->requested_at;

	return (u64)max(ago, 0) << RD_REQUESTED_SHIFT;
}

/* Has no report arrived for so long that the sender can no longer exist?  A sender with few
 * credits has none to report: on a busy link its report may be four credits old, and when others
 * leave the link the time between credits becomes much shorter than it was then.
 */
static bool rd_is_silent(const struct sock *sk, const struct rd_sock *rs, const struct rd_terms *t)
{
	u64 ago = rd_silence_ns(rs, t->now), round;

	if (rs->credit - rs->seen < 2 * RD_REPORT && ago < NSEC_PER_SEC)
		return false;
	round = max(rd_srtt_ns(sk), rd_wait_ns(rs, t));
	return ago > max_t(u64, RD_SILENCE_NS, RD_SILENCE * round);
}

/* Link time of credits and their packets, ns; the next credit is charged for the fraction. */
static u64 rd_charge(struct rd_sock *rs, const struct rd_terms *t, u32 n)
{
	u32 left;
	u64 ns = div_u64_rem(n * t->ps + rs->ps, RD_PS, &left);

	rs->ps = left;
	return ns;
}

/* Set the time at which the next credit is due, if the link is free: a late timer catches up, also
 * one that found the socket owned by a process (rd_issue_locked()).
 */
static void rd_set_due(struct rd_sock *rs, const struct rd_terms *t, u64 gap)
{
	s32 ahead = rs->next - (u32)t->now;
	/* A time further ahead than a gap has wrapped: it is more than two seconds old. */
	u64 due = ahead < 0 || ahead <= gap ? t->now + ahead : t->now;

	rs->next = max(due, rd_catch_up(t->now, gap)) + gap;
}

/* The level of a grant, in its second word. */
static u32 rd_level_word(const struct rd_sock *rs, const struct rd_terms *t)
{
	u32 level;

	if (!t->window || !t->shortest)
		return 0;
	level = rd_level(rs->r.queue, &rs->r, t->now, rd_left_ns(rs, t), t->hold);
	return FIELD_PREP(RD_LEVEL, level);
}

/* The queue has scheduled a connection that may not send a credit: it leaves.  If its window was
 * closed for too long, or no data arrives for the link, others may have its part.  The data of a
 * grant may wait behind shorter messages, so only a request for more without that data is a reason
 * to judge its sender: rd_recount().  But a request may have closed the window since it was in the
 * queue: it stays.
 */
static void rd_give_up(struct rd_sock *rs, const struct rd_terms *t)
{
	u64 at = RD_NEVER;

	if (t->window && rd_keeps_ns(rs, t))
		at = rd_give_up_ns(rs, t);
	/* Without a window it cannot keep others waiting again, until it uses its pulls. */
	if (rd_is_stale(rs, t))
		rs->use.low = rs->use.low ?: 1;
	rd_served(rs->r.queue, &rs->r, t->now, 0, at, 0);
}

/* The time at which the first credit of a connection that joins the queue is due: now.  But a
 * sender with a reduced share must not gain a credit by requesting again: it waits for the rest of
 * its gap. A time further ahead than that has wrapped.
 */
static u64 rd_from(struct rd_sock *rs, const struct rd_terms *t)
{
	s32 ahead = rs->next - (u32)t->now;

	if (!rd_permits(rs, t))
		return rd_give_up_ns(rs, t);
	if (t->window || !rd_is_off(&rs->r))
		return t->now;
	if (!rs->use.low || ahead < 0 || ahead > t->gap)
		ahead = 0;
	rs->next = t->now + ahead;
	return t->now + ahead;
}

/* The queue has scheduled the connection: send its next credit. */
static void rd_issue(struct sock *sk, struct rd_sock *rs, const struct rd_terms *t)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u64 at = RD_NEVER, gap = 0;
	struct rd_grants *g = rd_grants_of(rs);
	u32 n = 0, word;

	if (g)
		rd_arrived(rs, t);
	/* A window gives up by itself. */
	if (before(rs->credit, rs->end) && !rd_is_stale(rs, t) && !rd_is_stalled(rs, t) &&
	    (t->window || !rd_is_silent(sk, rs, t)))
		n = min(rd_permits(rs, t), rs->end - rs->credit);
	n = t->shortest ? n : min(n, 1U);
	if (!n) {
		rd_give_up(rs, t);
		return;
	}
	rs->credit += n;
	rs->skipped = 0;
	rd_count(rs, RD_CREDITSENT, n);
	trace_greenlane_credit(sk, rs->credit, n);
	word = rd_wait_word(rs, t) | rd_level_word(rs, t);
	if (policy->issue)
		gap = policy->issue(sk, rs, t->now, word);
	else
		rd_send_credit(sk, rs, word);
	if (t->window)
		rs->next = t->now;
	if (g)
		rd_set_out(rs, t, g->out + n, g->granted + n);
	if (t->window) {
		at = before(rs->credit, rs->end) ? rd_from(rs, t) : rd_give_up_ns(rs, t);
	} else {
		rd_set_due(rs, t, rd_use_gap(&rs->use, min_t(u64, gap, RD_GAP_MAX), t->cost));
		if (before(rs->credit, rs->end))
			at = t->now + (s32)(rs->next - (u32)t->now);
	}
	rd_served(rs->r.queue, &rs->r, t->now, rd_charge(rs, t, n), at, rd_left_ns(rs, t));
}

/* Join the queue, and send the credits that it schedules at once. */
static void rd_enqueue(struct sock *sk, struct rd_sock *rs, const struct rd_terms *t)
{
	int n;

	if (!before(rs->credit, rs->end))
		return;
	/* A closed window keeps its part for a while. */
	if (!rd_permits(rs, t) && rd_since(rs, t->now) >= t->hold) {
		rd_leave(rs->r.queue, &rs->r);
		return;
	}
	if (rd_is_off(&rs->r) && rd_grants_of(rs))
		rd_account(rs, t);
	for (n = 0; n < RD_CATCH_UP && before(rs->credit, rs->end); n++) {
		if (!rd_want(rs->r.queue, &rs->r, t->now, rd_from(rs, t), rd_left_ns(rs, t)))
			break;
		rd_issue(sk, rs, t);
		/* It has given up. */
		if (rd_is_off(&rs->r))
			break;
	}
}

static void rd_issue_locked(struct sock *sk, struct gl_sock *gs, u64 now, bool may)
{
	struct rd_sock *rs = rd_sock(gs);
	/* A process that owns the socket may be about to leave the link; RCU keeps it. */
	struct rd_queue *q = READ_ONCE(rs->r.queue);

	if (may) {
		struct rd_terms t = rd_terms_of(sk, rs, now, rd_cost_ps(sk, rs));

		rd_issue(sk, rs, &t);
	} else if (q) {
		u64 at = RD_NEVER;

		if (sock_owned_by_user(sk) && rs->skipped < RD_OWNED_MAX)
			at = now + (RD_OWNED_NS << rs->skipped++);
		rd_served(q, &rs->r, now, 0, at, 0);
	}
}

/**
 * rd_issue_hold() - take the references that rd_issue_socket() drops
 * @r: the receiver; under its queue's lock
 */
void rd_issue_hold(struct rd_receiver *r)
{
	gl_call_hold(&container_of(r, struct rd_sock, r)->gs);
}

/**
 * rd_issue_socket() - a receiver is scheduled: lock its socket, and send a credit
 * @r: the receiver, which rd_issue_hold() holds
 * @now: ns
 *
 * Calls rd_served() with the socket locked.  If a process owns the socket, it calls rd_served()
 * with RD_NEVER or a time soon, and rd_receiver_kicked() follows when the process has released the
 * socket.  May release the last reference on the socket, and on the transport.  Softirq.
 */
void rd_issue_socket(struct rd_receiver *r, u64 now)
{
	gl_call(&container_of(r, struct rd_sock, r)->gs, now, rd_issue_locked);
}

/**
 * rd_alarm_expired() - the alarm of a sender that waits for a credit
 * @a: the alarm; under its queue's lock, softirq
 */
void rd_alarm_expired(struct rd_alarm *a)
{
	struct rd_sock *rs = container_of(a, struct rd_sock, alarm);

	/* The socket still exists: rd_on_switch() waits for the lock of the link's queue. */
	gl_kick(rs->gs.sk, &rs->gs);
}

/* --- a request ------------------------------------------------------------- */

static void rd_learn(struct sock *sk, struct rd_sock *rs, u32 last, u32 came, u64 cost)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;

	if (policy->learn)
		policy->learn(sk, rs, last, came, cost);
}

/* The sender has received @came more credits: compare them with its data.  If its share has grown,
 * its next credit is due after the new gap, not the old one.
 */
static void rd_judge(struct rd_sock *rs, u32 came, u64 cost)
{
	struct rd_use *use = &rs->use;
	bool low = use->low, grown = rd_use_report(use, came, rs->arrived);

	if (grown)
		rs->next = ktime_get_ns() + rd_use_gap(use, 0, div_u64(cost, RD_PS));
	/* It rejoins with its new gap, and with or without a window. */
	if (grown || low != !!use->low)
		rd_leave(rs->r.queue, &rs->r);
}

/* The sender has reported the credits up to @seq, and has received @received in all.
 *
 * Return: number of credits that have arrived there since its last report.
 */
static u32 rd_reported(struct sock *sk, struct rd_sock *rs, u32 seq, u32 received, u64 cost)
{
	u32 came = min(received - rs->reported, seq - rs->seen);

	rd_learn(sk, rs, seq, came, cost);
	if (seq == rs->seen)
		return came;
	rd_count(rs, RD_CREDITLOST, seq - rs->seen - came);
	rs->seen = seq;
	rs->reported = received;
	return came;
}

/* A request has arrived: count the packets that are in flight, or will be without a new credit.
 * Of @credits that have not arrived yet the peer will use those up to @used, less packets that it
 * does not know to be trimmed.  Data before a probe has arrived, or is lost.
 *
 * Return: number of permitted packets that have arrived since the last request, or will not arrive.
 */
static u32 rd_recount(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg, bool probe,
		      u32 credits, s32 used)
{
	struct rd_grants *g = rd_grants_of(rs);
	u32 had = g->out - min(g->out, rd_came(rs, g));
	u32 granted = min_t(u32, g->granted, had), out, lost;
	s32 sent = 0, more = 0;

	if (!probe)
		sent = rd_missing(sk, seg->seq) - rd_unseen(sk, rs, g);
	if (!probe && seg->words > 3)
		more = (s16)FIELD_GET(RD_BEYOND, seg->word[3]);
	/* Lost packets are among those that were sent. */
	sent = max(sent + more, min(sent, 0));
	out = max_t(s32, sent + used, 0);
	g->segs = rs->arrived;
	g->out = min_t(u32, out, U16_MAX);
	g->granted = min_t(u32, granted, g->out);
	/* Granted packets that are no longer expected, and have not arrived, count as not sent. */
	lost = had - min(had, out + max_t(s32, credits - used, 0));
	lost -= min(lost, had - granted);
	return (u16)(rs->arrived - rs->use.segs) + lost;
}

/* A repeated request reports a credit that this end never sent: the sender accepted a forged one,
 * and would drop ours as old.  Continue with numbers above it.
 */
static void rd_resync(struct rd_sock *rs, u32 seq, u32 received)
{
	if (!after(seq, rs->credit) || seq - rs->credit > RD_SEQ_AHEAD)
		return;
	rs->credit = seq;
	rs->seen = seq;
	rs->reported = received;
}

/* A probe ends a burst.  The packets of the burst that arrived have occupied the link, too, and
 * need no credit, although the sender does not know yet that they arrived.
 *
 * @since is the time since the last request, ns; a burst has not occupied the link for longer.
 *
 * Return: data packets that arrived since the sender began to request, or since its last probe,
 * less the credits sent since then.  Credits in flight make it less.
 */
static u32 rd_burst_arrived(struct sock *sk, struct rd_sock *rs, bool begins, bool probe, u64 now,
			    u64 since)
{
	s32 n = rs->arrived - rs->credit - rs->base_segs;
	u64 one;

	if (probe || begins)
		rs->base_segs = rs->arrived - rs->credit;
	if (!probe || begins || n <= 0)
		return 0;
	one = rd_full_ns(sk, rs);
	rd_yield(rs->r.queue, now, min_t(u64, n * one, since), RD_YIELDED * one);
	return n;
}

/* Number of credits for trimmed packets that the sender does not know of yet, and does not request.
 * Once a credit has arrived that left after the last report, none is outstanding: a report that is
 * missing then is lost.  A probe has no number of a report, and needs none: data before it has
 * arrived, or is lost.
 */
static u32 rd_unread(struct rd_sock *rs, const struct gl_seg *seg, bool probe)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	const struct rd_trims *trims;
	s32 unread, left;

	if (!policy->trims || probe || seg->words < 4)
		return 0;
	trims = policy->trims(rs);
	unread = (s16)(trims->sent - FIELD_GET(RD_NAMED, seg->word[3]));
	left = trims->end - seg->word[0];
	return max(min(unread, left), 0);
}

/* A packet of this number of words and without data has arrived: reserve link time for it where
 * pulls fill the link.  Without this the queue of a port grows with each of its senders.
 */
static void rd_yield_header(struct sock *sk, struct rd_sock *rs, u64 now, unsigned int words)
{
	u64 ns = rd_packet_ns(sk, rs, tcp_sk(sk)->tcp_header_len + GL_OPT_LEN(words));

	rd_yield(rs->r.queue, now, ns, RD_YIELDED * ns);
}

/**
 * rd_requested() - a request, report, stop or probe has arrived
 * @sk: the connection
 * @rs: its state
 * @seg: the packet
 * @probe: it is a probe
 */
void rd_requested(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg, bool probe)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u32 seq = seg->word[0], received = seg->word[1];
	u32 want = seg->word[2] & RD_WANT;
	bool again = seg->word[2] & RD_AGAIN;
	u64 now = ktime_get_ns();
	u64 idle = rd_silence_ns(rs, now);
	struct rd_terms t;
	u32 last, unread, came;
	bool joins;
	u64 cost;

	if (seg->words >= 3 && again && !probe)
		rd_resync(rs, seq, received);
	/* The host's queue may send later requests first, as the probe follows its burst. */
	if (probe && seg->words >= 3 && before(seq, rs->seen))
		return;
	/* Drop a request that reports credits that the sender cannot have. */
	if (seg->words < 3 || after(seq, rs->credit) || before(seq, rs->seen) ||
	    received - rs->reported > seq - rs->seen + RD_WINDOW) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	rd_count(rs, RD_REQUESTRECEIVED, 1);
	trace_greenlane_request(sk, seq, want);
	rd_follow(sk, rs);
	rs->requested_at = now >> RD_REQUESTED_SHIFT;
	if (policy->grants)
		rd_grants_of(rs)->rtt = FIELD_GET(RD_RTT, seg->word[2]);
	cost = rd_cost_ps(sk, rs);
	if (policy->trims)
		rd_yield_header(sk, rs, now, seg->words);
	/* It may have crossed a grant. */
	if (policy->grants && rd_since(rs, now) < 2 * rd_window_rtt_ns(sk, rs))
		again = false;
	joins = rd_is_off(&rs->r) || !before(rs->credit, rs->end);
	came = rd_reported(sk, rs, seq, received, cost);
	/* The sender expects none of the credits that it does not report. */
	if (again)
		rd_learn(sk, rs, rs->credit, 0, cost);
	unread = rd_unread(rs, seg, probe);
	if (policy->grants) {
		u32 credits = again ? 0 : rs->credit - seq;
		s32 used = min(credits, want + unread) - unread;
		u32 known = rd_recount(sk, rs, seg, probe, credits, used);

		/* Trimmed data makes no use of its credits; granted data may wait in a switch. */
		came = policy->trims ? max(came, known) : known;
	}
	rd_judge(rs, came, cost);
	/* No more data will arrive that makes TCP send its delayed ACK. */
	if (!want && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
	if (!rd_is_exact(policy))
		want -= min(want, rd_burst_arrived(sk, rs, joins, probe, now, idle));
	else if (probe)
		want += clamp(rd_missing(sk, seg->word[3]), 0, RD_TOKENS_MAX);
	rs->end = again ? rs->credit + want : seq + want + unread;
	/* On the queue it would lengthen the waits of the others for no use. */
	if (!before(rs->credit, rs->end) && rd_is_all_in(rs)) {
		rd_leave(rs->r.queue, &rs->r);
		return;
	}
	if (joins && policy->begins)
		policy->begins(sk, rs, idle);
	last = rs->credit;
	t = rd_terms_of(sk, rs, now, cost);
	if (policy->grants && !rd_is_off(&rs->r))
		rd_account(rs, &t);
	rd_enqueue(sk, rs, &t);
	if ((joins || again) && rs->credit == last && rd_wait_ns(rs, &t) > RD_WAIT_MIN) {
		rd_count(rs, RD_CREDITWAITED, 1);
		rd_send_credit(sk, rs, rd_wait_word(rs, &t) | RD_ACCEPTED);
	}
}

/**
 * rd_on_data() - gl_transport's on_data(): data of the peer has arrived
 * @sk: the connection, under its spinlock; a process may own it
 * @gs: its state
 * @seg: the packet
 */
void rd_on_data(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	struct rd_sock *rs = rd_sock(gs);
	struct rd_grants *g = rd_grants_of(rs);

	rs->arrived += seg->segs;
	if (!g)
		return;
	g->unseen = rd_unseen(sk, rs, g) + seg->segs;
	rs->data_segs = tcp_sk(sk)->data_segs_in;
	/* It permits more. */
	gl_kick(sk, gs);
}

/**
 * rd_trimmed() - gl_transport's on_trimmed(): data of the peer was trimmed
 * @sk: the connection, locked and not owned by a process, BH off
 * @gs: its state
 *
 * Permits the repair.
 *
 * Return: number of the report that is about to be sent, before the credit.
 */
u16 rd_trimmed(struct sock *sk, struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);
	u64 now = ktime_get_ns(), idle = rd_silence_ns(rs, now);
	const struct rd_policy *policy = rd_transport(rs)->policy;
	struct rd_trims *trims = policy->trims(rs);

	rd_follow(sk, rs);
	rd_yield_header(sk, rs, now, 1);
	/* The tasklet that joins the queue runs after other packets of this softirq. */
	if (!before(rs->credit, rs->end)) {
		if (policy->begins)
			policy->begins(sk, rs, idle);
		rs->end = rs->credit;
	}
	rs->requested_at = now >> RD_REQUESTED_SHIFT;
	/* A packet of the window more has arrived than rd_on_data() counts. */
	if (policy->grants)
		rd_grants_of(rs)->segs--;
	trims->end = ++rs->end;
	gl_kick(sk, gs);
	return ++trims->sent;
}

/**
 * rd_receiver_kicked() - TCP has processed a packet, or a process has released the socket
 * @sk: the connection, not owned by a process, BH off
 * @rs: its state
 * @now: ns
 *
 * The process may have owned the socket when the queue scheduled it.
 */
void rd_receiver_kicked(struct sock *sk, struct rd_sock *rs, u64 now)
{
	struct rd_terms t;

	if (rd_is_all_in(rs) && !before(rs->credit, rs->end))
		return;
	t = rd_terms_of(sk, rs, now, rd_cost_ps(sk, rs));
	if (rd_grants_of(rs))
		rd_arrived(rs, &t);
	if (before(rs->credit, rs->end))
		rd_enqueue(sk, rs, &t);
	else if (rd_is_all_in(rs))
		rd_leave(rs->r.queue, &rs->r);
}

/**
 * rd_send_closed() - signal to the peer that this end sends no more credits
 * @sk: the connection
 * @rs: its state
 *
 * Without the signal the peer falls back after half a second or more.
 */
void rd_send_closed(struct sock *sk, struct rd_sock *rs)
{
	if (rs->closed || gl_tcp_signed(sk) ||
	    !(BIT(sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)))
		return;
	rd_send_credit(sk, rs, RD_ACCEPTED | RD_CLOSED);
}
