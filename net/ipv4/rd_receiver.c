// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the receiver.
 *
 * It sends the credits that its peer has asked for, one at a turn.  rd_queue.c decides whose turn
 * it is among the connections of a link, from what the transport's policy says of this one.
 *
 * See include/net/rd_core.h.
 */
#include <net/tcp.h>

#include "rd_internal.h"

/* A receiver stops sending credits if no report arrives for the longest of this
 * time, eight round trips and eight gaps between credits: the stop was lost, or
 * the sender is gone.
 */
#define RD_SILENCE_NS	(1 * NSEC_PER_MSEC)
#define RD_SILENCE	8
/* The time of the last request is kept in units of 1024 ns.  In units of 1 ns it would be known for
 * 4.3 s only: less than eight gaps between credits on a slow link, and a pause of that length would
 * look like none.
 */
#define RD_HEARD_SHIFT	10

/* No policy waits longer between two credits of a connection. */
#define RD_GAP_MAX	NSEC_PER_SEC

#define RD_PS		1000	/* in a ns */

/* A process that owns the socket at its turn is likely to be done soon: look again after this
 * time, and after twice and four times and eight times that.  Then wait for the process; the kick
 * comes some 50 us after it has released the socket.
 */
#define RD_OWNED_NS	(2 * NSEC_PER_USEC)
#define RD_OWNED_MAX	4

/**
 * struct rd_terms - what a connection takes its turns on, read once for a turn
 * @now: ns
 * @ps: how long a turn occupies the link, ps
 * @cost: the same, ns, rounded down
 * @gap: time between two turns if the connection had the link for itself, ns
 * @shortest: the shortest message goes first
 */
struct rd_terms {
	u64	now;
	u64	ps;
	u64	cost;
	u64	gap;
	bool	shortest;
};

static u64 rd_cost_ps(const struct sock *sk, const struct rd_sock *rs)
{
	return max_t(u64, rd_transport(rs)->policy->cost(sk, rs), RD_PS);
}

static struct rd_terms rd_terms_of(const struct sock *sk, const struct rd_sock *rs, u64 now,
				   u64 ps)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u64 cost = div_u64(ps, RD_PS);

	return (struct rd_terms) {
		.now		= now,
		.ps		= ps,
		.cost		= cost,
		.gap		= rd_use_gap(&rs->use, max(policy->gap(rs), cost), cost),
		.shortest	= policy->pick(sk) == RD_PICK_SHORTEST,
	};
}

/* --- a turn ---------------------------------------------------------------- */

/* What is left of the message that the sender has asked for, ns of the link's time.  0 is for
 * turns that are fair, and for a message that is through.
 */
static u64 rd_left_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	return t->shortest ? (u64)(rs->end - rs->credit) * t->cost : 0;
}

/* Time between two credits as it is now: at the connection's own rate, or until all others of the
 * link have had theirs.  Where the shortest goes first a connection that waits has one of the turns
 * that go round; the receiver advertises twice that, since others may come meanwhile.
 */
static u64 rd_wait_ns(const struct rd_sock *rs, const struct rd_terms *t)
{
	u64 turns = READ_ONCE(rs->r.queue->receivers) * t->cost;

	if (t->shortest)
		turns *= 2 * RD_ROUND;
	return max(turns, t->gap);
}

/* The second word of a credit. */
static u32 rd_wait_word(const struct rd_sock *rs, const struct rd_terms *t)
{
	u32 wait = min_t(u64, rd_wait_ns(rs, t), RD_WAIT_MAX);

	/* Where the shortest goes first, it has many credits, and reports once a round trip. */
	return wait > 2 * t->gap && !t->shortest ? wait | RD_BUSY : wait;
}

/**
 * rd_send_credit() - send a credit
 * @sk: the connection, locked
 * @rs: its state
 * @wait: what it says of the next one: what the core has given to issue()
 */
void rd_send_credit(struct sock *sk, struct rd_sock *rs, u32 wait)
{
	u32 word[2] = { rs->credit, wait };
	bool told = wait & RD_HEARD || (wait & ~RD_BUSY) > RD_WAIT_MIN;

	gl_send_words(sk, &rs->gs, rd_kind(&rs->gs, RD_CREDIT), word, told ? 2 : 1);
}
EXPORT_SYMBOL_GPL(rd_send_credit);

/* Time since the last request, ns.  It is known up to half an hour; after that it may seem short,
 * or 0.  A request may have arrived after another processor has read @now.
 */
static u64 rd_unheard_ns(const struct rd_sock *rs, u64 now)
{
	s32 ago = (u32)(now >> RD_HEARD_SHIFT) - rs->heard_at;

	return (u64)max(ago, 0) << RD_HEARD_SHIFT;
}

/* No report has arrived for so long that the sender must be gone.  While it has had few credits it
 * had nothing to report: on a busy link its report may be four credits old, and when others leave
 * the link the time between credits becomes much shorter than it was then.
 */
static bool rd_is_silent(const struct sock *sk, const struct rd_sock *rs, const struct rd_terms *t)
{
	u64 ago = rd_unheard_ns(rs, t->now), round;

	if (rs->credit - rs->seen < 2 * RD_REPORT && ago < NSEC_PER_SEC)
		return false;
	round = max(rd_srtt_ns(sk), rd_wait_ns(rs, t));
	return ago > max_t(u64, RD_SILENCE_NS, RD_SILENCE * round);
}

/* Link time of a credit and its packet, ns; the fraction waits for the next one. */
static u64 rd_charge(struct rd_sock *rs, const struct rd_terms *t)
{
	u32 left;
	u64 ns = div_u64_rem(t->ps + rs->ps, RD_PS, &left);

	rs->ps = left;
	return ns;
}

/* When the next credit is due, if the link is free: a late timer makes up for lost time, also one
 * that found the socket owned by a process (rd_turn_locked()).
 */
static void rd_schedule(struct rd_sock *rs, const struct rd_terms *t, u64 gap)
{
	s32 ahead = rs->next - (u32)t->now;
	/* One that seems to be further ahead than a gap is more than two seconds old. */
	u64 due = ahead < 0 || ahead <= gap ? t->now + ahead : t->now;

	rs->next = max(due, rd_catch_up(t->now, gap)) + gap;
}

/* It is our turn on the link. */
static void rd_issue(struct sock *sk, struct rd_sock *rs, const struct rd_terms *t)
{
	u64 at = RD_NEVER, gap;

	if (!before(rs->credit, rs->end) || rd_is_silent(sk, rs, t)) {
		rd_served(rs->r.queue, &rs->r, t->now, 0, RD_NEVER, 0);
		return;
	}
	rs->credit++;
	rs->skipped = 0;
	rd_count(rs, RD_CREDITSENT, 1);
	gap = rd_transport(rs)->policy->issue(sk, rs, t->now, rd_wait_word(rs, t));
	rd_schedule(rs, t, rd_use_gap(&rs->use, min_t(u64, gap, RD_GAP_MAX), t->cost));
	if (before(rs->credit, rs->end))
		at = t->now + (s32)(rs->next - (u32)t->now);
	rd_served(rs->r.queue, &rs->r, t->now, rd_charge(rs, t), at, rd_left_ns(rs, t));
}

/* A connection that was on no queue begins now.  A sender with a reduced share gets no credit at
 * once by requesting again; a time that is further ahead than its gap is an old one.
 */
static u64 rd_from(struct rd_sock *rs, const struct rd_terms *t)
{
	s32 ahead = rs->next - (u32)t->now;

	if (!rd_is_off(&rs->r))
		return t->now;
	if (!rs->use.low || ahead < 0 || ahead > t->gap)
		ahead = 0;
	rs->next = t->now + ahead;
	return t->now + ahead;
}

/* Wait for our turn, or take it at once. */
static void rd_take_turns(struct sock *sk, struct rd_sock *rs, const struct rd_terms *t)
{
	int n;

	for (n = 0; n < RD_CATCH_UP && before(rs->credit, rs->end); n++) {
		if (!rd_want(rs->r.queue, &rs->r, t->now, rd_from(rs, t), rd_left_ns(rs, t)))
			break;
		rd_issue(sk, rs, t);
	}
}

static void rd_turn_locked(struct sock *sk, struct gl_sock *gs, u64 now, bool may)
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

static void rd_turn_hold(struct rd_receiver *r)
{
	gl_turn_hold(&container_of(r, struct rd_sock, r)->gs);
}

static void rd_turn(struct rd_receiver *r, u64 now)
{
	gl_turn(&container_of(r, struct rd_sock, r)->gs, now, rd_turn_locked);
}

/* A sender's, which waits for a credit. */
static void rd_alarm(struct rd_alarm *a)
{
	struct rd_sock *rs = container_of(a, struct rd_sock, alarm);

	/* The socket still exists: rd_on_switch() waits for the lock of the link's queue. */
	gl_kick(rs->gs.sk, &rs->gs);
}

const struct rd_ops rd_core_ops = {
	.hold	= rd_turn_hold,
	.turn	= rd_turn,
	.alarm	= rd_alarm,
};

/* --- a request ------------------------------------------------------------- */

static void rd_learn(struct sock *sk, struct rd_sock *rs, u32 last, u32 came, u64 cost)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;

	if (policy->learn)
		policy->learn(sk, rs, last, came, cost);
}

/* The sender has received @came more credits.  If its share has grown, its next credit is due after
 * the new gap, not the old one.
 */
static void rd_judge(struct sock *sk, struct rd_sock *rs, u32 came, u64 cost)
{
	struct rd_use *use = &rs->use;

	if (!rd_use_report(use, came, tcp_sk(sk)->data_segs_in))
		return;
	rs->next = ktime_get_ns() + rd_use_gap(use, 0, div_u64(cost, RD_PS));
	rd_leave(rs->r.queue, &rs->r);
}

/* The sender has reported the credits up to @seq, of which it has had @received in all. */
static void rd_reported(struct sock *sk, struct rd_sock *rs, u32 seq, u32 received, u64 cost)
{
	u32 came = min(received - rs->heard, seq - rs->seen);

	rd_learn(sk, rs, seq, came, cost);
	rd_judge(sk, rs, came, cost);
	if (seq == rs->seen)
		return;
	rd_count(rs, RD_CREDITLOST, seq - rs->seen - came);
	rs->seen = seq;
	rs->heard = received;
}

/* A repeated request reports a credit that we never sent: the sender accepted a forged
 * one, and would ignore ours as old.  Continue with numbers above it.
 */
static void rd_resync(struct rd_sock *rs, u32 seq, u32 received)
{
	if (!after(seq, rs->credit) || seq - rs->credit > RD_SEQ_AHEAD)
		return;
	rs->credit = seq;
	rs->seen = seq;
	rs->heard = received;
}

/* A probe ends a burst.  What came of the burst has occupied the link as well, and needs no credit,
 * although the sender does not know yet that it came.
 *
 * @since is the time since the last request, ns; a burst has not occupied the link for longer.
 *
 * Return: packets of data that came, less those that credits let come, from when the sender began
 * to ask, or from the last probe.  Credits that are on their way make it less.
 */
static u32 rd_came(struct sock *sk, struct rd_sock *rs, bool begins, bool probe, u64 now, u64 since)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	s32 n = tp->data_segs_in - rs->credit - rs->came;
	u64 one;

	if (probe || begins)
		rs->came = tp->data_segs_in - rs->credit;
	if (!probe || begins || n <= 0)
		return 0;
	one = rd_full_ns(sk, rs);
	rd_yield(rs->r.queue, now, min_t(u64, n * one, since), RD_YIELDED * one);
	return n;
}

/**
 * rd_requested() - a request, report, stop or probe has come
 * @sk: the connection
 * @rs: its state
 * @seg: the packet
 * @probe: it is a probe
 */
void rd_requested(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg, bool probe)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u32 seq = seg->word[0], received = seg->word[1];
	u32 want = seg->word[2] & RD_WANT_MAX;
	bool again = seg->word[2] & RD_AGAIN;
	u64 now = ktime_get_ns();
	u64 idle = rd_unheard_ns(rs, now);
	struct rd_terms t;
	bool joins;
	u64 cost;
	u32 last;

	if (seg->words == 3 && again)
		rd_resync(rs, seq, received);
	/* Ignore a request that reports credits the sender cannot have. */
	if (seg->words < 3 || after(seq, rs->credit) || before(seq, rs->seen) ||
	    received - rs->heard > seq - rs->seen + RD_WINDOW) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	rd_count(rs, RD_REQUESTRECEIVED, 1);
	rd_follow(sk, rs);
	rs->heard_at = now >> RD_HEARD_SHIFT;
	cost = rd_cost_ps(sk, rs);
	joins = rd_is_off(&rs->r);
	rd_reported(sk, rs, seq, received, cost);
	/* The sender has given up on all credits that it does not report. */
	if (again)
		rd_learn(sk, rs, rs->credit, 0, cost);
	/* No more data will come for which TCP would send a delayed ACK. */
	if (!want && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
	want -= min(want, rd_came(sk, rs, joins, probe, now, idle));
	rs->end = (again ? rs->credit : seq) + want;
	/* It would wait for a turn that it does not need, and make the others' waits longer. */
	if (!before(rs->credit, rs->end)) {
		rd_leave(rs->r.queue, &rs->r);
		return;
	}
	if (joins && policy->begins)
		policy->begins(sk, rs, idle);
	last = rs->credit;
	t = rd_terms_of(sk, rs, now, cost);
	rd_take_turns(sk, rs, &t);
	if ((joins || again) && rs->credit == last && rd_wait_ns(rs, &t) > RD_WAIT_MIN) {
		rd_count(rs, RD_CREDITWAITED, 1);
		rd_send_credit(sk, rs, rd_wait_word(rs, &t) | RD_HEARD);
	}
}

/**
 * rd_receiver_kicked() - TCP has finished with something, or a process with the socket
 * @sk: the connection, not owned by a process, BH off
 * @rs: its state
 * @now: ns
 *
 * The process may have owned the socket when it was the connection's turn.
 */
void rd_receiver_kicked(struct sock *sk, struct rd_sock *rs, u64 now)
{
	if (before(rs->credit, rs->end)) {
		struct rd_terms t = rd_terms_of(sk, rs, now, rd_cost_ps(sk, rs));

		rd_take_turns(sk, rs, &t);
	}
}

/**
 * rd_say_gone() - tell the peer that its requests will bring no credits
 * @sk: the connection
 * @rs: its state
 *
 * It would find out, but only after half a second or more.
 */
void rd_say_gone(struct sock *sk, struct rd_sock *rs)
{
	if (rs->gone || gl_tcp_signed(sk) ||
	    !(BIT(sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)))
		return;
	rd_send_credit(sk, rs, RD_HEARD | RD_GONE);
}
