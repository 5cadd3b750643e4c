// SPDX-License-Identifier: GPL-2.0
/* ExpressPass: credit-scheduled TCP
 *
 *	Inho Cho, Keon Jang, Dongsu Han:
 *	"Credit-Scheduled Delay-Bounded Congestion Control for Datacenters",
 *	SIGCOMM 2017
 *
 * The receiver decides who sends: nothing leaves without a *credit*, and a credit
 * is one packet's worth.
 *
 *	sender                          switch                 receiver
 *	data waits  --- request (n packets) ------------------>
 *	            <-- c . c . c . c . c . c .  x  c . c .  --  paced, by feedback
 *	one packet a credit  --- d . d . d . d ----->
 *	            --- report, once a round trip ------------>  how many were lost?
 *	nothing is left  --- stop (0 packets) ---------------->
 *
 * Each switch port, and the receiver's own line (struct xpass_line), lets so many
 * credits pass that the data which they call for just fills the line the other
 * way, and drops the others: a credit is small, and its loss is the signal that
 * the feedback control (xpass_rate.h) works with.  So data is not lost, and
 * queues stay short.
 *
 * How TCP is made to wait: its congestion window is what is in flight and not a
 * packet more.  tcp_write_xmit() and tcp_xmit_retransmit_queue() both ask for
 * min_tso_segs() before they look at the window, which is where it is set.
 *
 * What differs from the paper, and why: Documentation/xpass.rst.
 */
#include <linux/hrtimer.h>
#include <linux/jhash.h>
#include <linux/module.h>
#include <net/greenlane.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "tcp_xpass.h"
#include "xpass_line.h"
#include "xpass_rate.h"

/* Ethernet: header and FCS, preamble and gap; the smallest frame. */
#define XPASS_WIRE		(14 + 4 + 8 + 12)
#define XPASS_WIRE_MIN		84
/* A credit's TCP header, with one word of option. */
#define XPASS_CREDIT_HLEN	(sizeof(struct tcphdr) + 12)

/* Credits that may be between the receiver and us; more is not credible. */
#define XPASS_SEQ_AHEAD		65536
#define XPASS_WINDOW		32	/* and so many may have been overtaken */

/* A sender asks again if no credit comes for this time, or four round trips, or
 * four times what lies between two credits.
 */
#define XPASS_RETRY_NS		(50 * NSEC_PER_USEC)
#define XPASS_RETRIES_MAX	10	/* doublings of it */
#define XPASS_RETRIES_MIN	5	/* before a peer is thought to have no credits */
#define XPASS_ALIVE		3	/* and so often it has acked what TCP sent even so */

/* A receiver gives up if no report comes for this time, or eight round trips, or
 * as many credits' gaps: the stop was lost, or the sender is.
 */
#define XPASS_SILENCE_NS	(1 * NSEC_PER_MSEC)
#define XPASS_SILENCE		8

/* The third word of a request: packets; and all credits sent are lost. */
#define XPASS_WANT_MAX		0x7fffffff
#define XPASS_RETRY		0x80000000

/* Round trips without a request after which a flow begins anew. */
#define XPASS_PAUSE		4

#define XPASS_NEVER		U64_MAX

/**
 * struct xpass - a connection, as a sender and as a receiver
 * @gs: greenlane's part
 * @timer: kicks when the earlier of @retry and @next has come
 * @retry: sender: when to ask again, ns
 * @told: sender: when the receiver was told last, ns, the low half
 * @told_end: sender: the credit that the receiver will send last, for all it knows
 * @came: sender: when the last credit came, the same; 0 after a pause
 * @gap: sender: time between two, ns, smoothed
 * @una: sender: TCP's snd_una when it asked again last
 * @seq: sender: the newest credit
 * @seen_seq: sender: which of the 32 up to it have come, the newest first
 * @received: sender: credits, since ever
 * @next: receiver: when the next credit leaves, ns
 * @credit: receiver: the last credit sent
 * @asked_ns: receiver: when the last request came
 * @end: receiver: the last credit to send
 * @throttled: receiver: how many the line did not take, in this round
 * @seen: receiver: the last credit that the sender has told of
 * @heard: receiver: how many it had got then
 * @slowed: receiver: the last credit that left at a rate that was too high, if
 *	that is after @seen
 * @rate: receiver
 * @asking: sender: the receiver was told that there is something to send
 * @asked: sender: it was told so once
 * @alive: sender: how often data was acked since, by a peer that sends no credits
 * @retries: sender: requests in a row that brought nothing
 * @tokens: sender: credits not yet used; 0 at rest
 *
 * Times are ktime_get_ns(), XPASS_NEVER is never; of those that are never old the low
 * half is enough.  Of a connection's 256 bytes each counts.  All fields: socket lock.
 */
struct xpass {
	struct gl_sock		gs;
	struct hrtimer		timer;
	u64			retry;
	u32			told;
	u32			told_end;
	u32			came;
	u32			gap;
	u32			una;
	u32			seq;
	u32			seen_seq;
	u32			received;
	u64			next;
	u64			asked_ns;
	u32			credit;
	u32			end;
	u32			throttled;
	u32			seen;
	u32			heard;
	u32			slowed;
	struct xpass_rate	rate;
	u8			asking:1,
				asked:1,
				alive:2;
	u8			retries;
	u8			tokens;
};

enum xpass_counter {
	XPASS_SCHEDULEDSENT = 1,
	XPASS_UNSCHEDULEDSENT,
	XPASS_UNCREDITED,
	XPASS_REQUESTSENT,
	XPASS_REQUESTRETRIED,
	XPASS_REQUESTRECEIVED,
	XPASS_CREDITSENT,
	XPASS_CREDITTHROTTLED,
	XPASS_CREDITRECEIVED,
	XPASS_CREDITWASTED,
	XPASS_CREDITLOST,
	XPASS_PROBESENT,
	XPASS_PROBERECEIVED,
	XPASS_PROBEACKSENT,
	XPASS_PROBEACKRECEIVED,
	XPASS_COUNTERS,
};

static const char * const xpass_counter_name[XPASS_COUNTERS] = {
	[XPASS_SCHEDULEDSENT]		= "ScheduledSent",
	[XPASS_UNSCHEDULEDSENT]		= "UnscheduledSent",
	[XPASS_UNCREDITED]		= "Uncredited",
	[XPASS_REQUESTSENT]		= "RequestSent",
	[XPASS_REQUESTRETRIED]		= "RequestRetried",
	[XPASS_REQUESTRECEIVED]		= "RequestReceived",
	[XPASS_CREDITSENT]		= "CreditSent",
	[XPASS_CREDITTHROTTLED]		= "CreditThrottled",
	[XPASS_CREDITRECEIVED]		= "CreditReceived",
	[XPASS_CREDITWASTED]		= "CreditWasted",
	[XPASS_CREDITLOST]		= "CreditLost",
	[XPASS_PROBESENT]		= "ProbeSent",
	[XPASS_PROBERECEIVED]		= "ProbeReceived",
	[XPASS_PROBEACKSENT]		= "ProbeAckSent",
	[XPASS_PROBEACKRECEIVED]	= "ProbeAckReceived",
};

static struct gl_protocol xpass_protocol;

const struct gl_kind xpass_kind[XPASS_KINDS] = {
	[XPASS_SCHEDULED] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.flags		= GL_KIND_ECT,
		.sent		= XPASS_SCHEDULEDSENT,
	},
	[XPASS_UNSCHEDULED] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.flags		= GL_KIND_NOT_ECT | GL_KIND_PROMPT,
		.sent		= XPASS_UNSCHEDULEDSENT,
	},
	[XPASS_CONTROL] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.flags		= GL_KIND_ECT,
	},
	[XPASS_REQUEST] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.code		= GL_CODE_REQUEST,
		.flags		= GL_KIND_ECT,
	},
	[XPASS_CREDIT] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_CREDIT,
		.code		= GL_CODE_CREDIT,
		.flags		= GL_KIND_ECT,
	},
	/* These are in the queue of what they are about: a probe that a switch sends ahead of
	 * unscheduled data would say that the data is lost.
	 */
	[XPASS_PROBE] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_PROBE,
		.words		= 1,
		.flags		= GL_KIND_ECT | GL_KIND_ANSWERED,
		.received	= XPASS_PROBERECEIVED,
	},
	[XPASS_PROBE_ACK] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_PROBE_ACK,
		.flags		= GL_KIND_ECT | GL_KIND_TCPS,
		.sent		= XPASS_PROBEACKSENT,
		.received	= XPASS_PROBEACKRECEIVED,
	},
};
EXPORT_SYMBOL_GPL(xpass_kind);

static struct gl_protocol xpass_protocol __read_mostly = {
	.hello		= GL_CODE_CREDITS,
	.told_as	= GL_CP_SCHEDULED,
	.kind		= xpass_kind,
	.kinds		= XPASS_KINDS,
	.control	= &xpass_kind[XPASS_CONTROL],
	.answer		= &xpass_kind[XPASS_PROBE_ACK],
	.counter	= xpass_counter_name,
	.counters	= XPASS_COUNTERS,
};

static void xpass_count(const struct sock *sk, enum xpass_counter counter, u64 n)
{
	gl_count(sock_net(sk), &xpass_protocol, counter, n);
}

static const struct xpass_transport *xpass_transport_of(const struct sock *sk)
{
	return container_of(gl_transport(sk), struct xpass_transport, t);
}

static const struct xpass_precredit *xpass_precredit(const struct sock *sk)
{
	return xpass_transport_of(sk)->precredit;
}

static struct xpass *xpass_of(struct gl_sock *gs)
{
	return container_of(gs, struct xpass, gs);
}

static u64 xpass_srtt_ns(const struct sock *sk)
{
	u64 us = tcp_sk(sk)->srtt_us >> 3;

	return us ? us * NSEC_PER_USEC : NSEC_PER_MSEC;
}

/* Of an idle network, not of its queues: a report an RTT. */
static u64 xpass_rtt_ns(const struct sock *sk)
{
	return (u64)clamp(tcp_min_rtt(tcp_sk(sk)), 1U, (u32)USEC_PER_SEC) * NSEC_PER_USEC;
}

/* The timer is set for whatever comes first.  It may come for nothing. */
static void xpass_arm(struct xpass *xp)
{
	u64 at = min(xp->retry, xp->next);

	if (at == XPASS_NEVER)
		hrtimer_try_to_cancel(&xp->timer);
	else if (!hrtimer_is_queued(&xp->timer) ||
		 ktime_to_ns(hrtimer_get_expires(&xp->timer)) != at)
		hrtimer_start(&xp->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

static enum hrtimer_restart xpass_timer(struct hrtimer *timer)
{
	struct xpass *xp = container_of(timer, struct xpass, timer);

	/* Its socket is alive: xpass_leave() waits for us. */
	gl_kick(xp->gs.sk, &xp->gs);
	return HRTIMER_NORESTART;
}

/* --- the sender ---------------------------------------------------------- */

/* Packets that are new and may leave: a lone FIN needs no credit, and what TCP
 * would not send anyway is not asked for.
 */
static u32 xpass_new(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff *head = tcp_send_head(sk);
	u32 left = gl_data_end(sk) - tp->snd_nxt;
	s32 room = tcp_wnd_end(tp) - tp->snd_nxt;

	if (!head || !head->len || room < (s32)min(left, tp->mss_cache))
		return 0;
	left = min_t(u32, left, room);
	return left / tp->mss_cache + (left % tp->mss_cache && !gl_nagle_holds(tp));
}

/* Packets that wait for a credit: lost ones and new ones. */
static u32 xpass_waiting(const struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 waiting = tp->lost_out - min(tp->lost_out, tp->retrans_out);

	if (pre)
		waiting += pre->waiting(sk, &xp->gs);
	return waiting + xpass_new(sk);
}

static u64 xpass_patience_ns(const struct sock *sk, const struct xpass *xp)
{
	return max3(XPASS_RETRY_NS, 4 * xpass_rtt_ns(sk), 4ULL * xp->gap) << xp->retries;
}

/* Request, report and stop: how much waits, and which credits have come. */
static void xpass_tell(struct sock *sk, struct xpass *xp, u32 waiting, u32 flags)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	u32 word[GL_WORDS_MAX] = { xp->seq, xp->received,
				   min_t(u32, waiting, XPASS_WANT_MAX) | flags };
	enum xpass_kind kind = XPASS_REQUEST;
	u64 now = ktime_get_ns();
	unsigned int words = 3;

	if (pre && pre->probe(sk, &xp->gs, &word[3])) {
		kind = XPASS_PROBE;
		words = 4;
		xpass_count(sk, XPASS_PROBESENT, 1);
	}
	/* A pause, or an outage, is no gap between two credits. */
	if (!xp->asking || (flags & XPASS_RETRY))
		xp->came = 0;
	xp->told = now;
	xp->told_end = xp->seq + waiting;
	xp->asking = !!waiting;
	xp->asked |= xp->asking;
	xp->retry = XPASS_NEVER;
	if (waiting)
		xp->retry = now + xpass_patience_ns(sk, xp);
	xpass_arm(xp);
	xpass_count(sk, XPASS_REQUESTSENT, 1);
	gl_send_words(sk, &xp->gs, &xpass_kind[kind], word, words);
}

/* Does so much more wait than the receiver knows of that it would pause?  While a
 * burst lasts that can wait: its end is told.
 */
static bool xpass_is_news(struct sock *sk, struct xpass *xp, u32 waiting)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	u32 left = xp->told_end - xp->seq;

	if (!xp->asking)
		return waiting;
	return (s32)left < XPASS_QUEUE && (s32)(waiting - left) > 0 &&
	       !(pre && pre->allow(sk, &xp->gs));
}

/* TCP's window: what is in flight, and so many packets more.  With neither it is 0,
 * which tcp_snd_cwnd_set() does not allow, and which is just what is meant.
 */
static void xpass_set_window(struct sock *sk, u32 more)
{
	struct tcp_sock *tp = tcp_sk(sk);

	WRITE_ONCE(tp->snd_cwnd, tcp_packets_in_flight(tp) + more);
}

/* TCP is about to look at its window. */
static void xpass_gate(struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	const struct sk_buff *head = tcp_send_head(sk);
	u32 more = xp->tokens;

	if (!more) {
		u32 waiting = xpass_waiting(sk, xp);

		if (pre && waiting && !xp->asking)
			pre->begin(sk, &xp->gs);
		if (xpass_is_news(sk, xp, waiting) || (pre && pre->probe(sk, &xp->gs, NULL)))
			xpass_tell(sk, xp, waiting, 0);
		if (pre)
			more = pre->allow(sk, &xp->gs);
	}
	if (head && !head->len)
		more++;
	xpass_set_window(sk, more);
}

static u32 xpass_min_tso_segs(struct sock *sk)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	if (gs) {
		xpass_gate(sk, xpass_of(gs));
		/* A credit is one packet's, and no reason to wait for another. */
		sk->sk_gso_max_segs = 1;
	}
	return 1;
}

/* What a packet with so many bytes of TCP and above takes of the line, bytes. */
static u32 xpass_wire(const struct sock *sk, u32 len)
{
	return max_t(u32, inet_csk(sk)->icsk_af_ops->net_header_len + len + XPASS_WIRE,
		     XPASS_WIRE_MIN);
}

static u64 xpass_line_ns(const struct xpass_line *line, u32 bytes)
{
	return div_u64(bytes * 8000ULL, READ_ONCE(line->mbit));
}

/* What a packet's ACK takes of the line, which has the same headers, ns. */
static u64 xpass_ack_ns(const struct sock *sk, const struct xpass_line *line)
{
	return xpass_line_ns(line, xpass_wire(sk, tcp_sk(sk)->tcp_header_len));
}

/* Data leaves.  Without a credit it is TCP's last resort: an RTO, a loss probe or
 * a window probe.
 */
static const struct gl_kind *xpass_on_xmit(struct sock *sk, struct gl_sock *gs,
					   const struct gl_seg *seg)
{
	struct xpass *xp = xpass_of(gs);

	if (xp->tokens < seg->segs) {
		xpass_count(sk, XPASS_UNCREDITED, seg->segs);
		return &xpass_kind[XPASS_UNSCHEDULED];
	}
	xp->tokens -= seg->segs;
	return &xpass_kind[XPASS_SCHEDULED];
}

/* Spend a credit: what is lost first, then what is new. */
static void xpass_spend(struct sock *sk, struct xpass *xp, u64 now)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	struct xpass_line *line = xpass_line(sk);

	if (pre)
		pre->credited(sk, &xp->gs);
	xp->tokens = 1;
	xpass_set_window(sk, 1);
	gl_xmit(sk);
	if (xp->tokens && pre && pre->spend(sk, &xp->gs)) {
		xpass_set_window(sk, 1);
		gl_xmit(sk);
	}
	if (xp->tokens)
		xpass_count(sk, XPASS_CREDITWASTED, 1);
	else
		xpass_line_yields(line, now, xpass_ack_ns(sk, line));
	xp->tokens = 0;
	xpass_set_window(sk, 0);
}

/* A credit counts once, and may be overtaken by a few: on the way, or because a
 * process owned the socket when it came (RFC 4303's window against replay).
 */
static bool xpass_is_fresh(struct xpass *xp, u32 seq)
{
	u32 ahead = seq - xp->seq, behind = xp->seq - seq;

	if ((s32)ahead > 0) {
		if (ahead > XPASS_SEQ_AHEAD)
			return false;
		xp->seen_seq = ahead < XPASS_WINDOW ? xp->seen_seq << ahead | 1 : 1;
		xp->seq = seq;
		return true;
	}
	if (behind >= XPASS_WINDOW || xp->seen_seq & BIT(behind))
		return false;
	xp->seen_seq |= BIT(behind);
	return true;
}

static void xpass_credited(struct sock *sk, struct xpass *xp, const struct gl_seg *seg)
{
	u64 now = ktime_get_ns();
	u32 waiting;

	if (!seg->words || !xp->asked || !xpass_is_fresh(xp, seg->word[0])) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	/* The gain of RFC 6298, for a similar use. */
	if (xp->came)
		xp->gap += (max((s32)((u32)now - xp->came), 0) - (s32)xp->gap) / 8;
	xp->came = (u32)now ?: 1;
	xp->received++;
	xp->retries = 0;
	xp->alive = 0;
	xpass_count(sk, XPASS_CREDITRECEIVED, 1);

	xpass_spend(sk, xp, now);
	waiting = xpass_waiting(sk, xp);
	if ((!waiting && xp->asking) || (u32)now - xp->told >= xpass_rtt_ns(sk)) {
		xpass_tell(sk, xp, waiting, 0);
	} else if (waiting) {
		xp->retry = now + xpass_patience_ns(sk, xp);
		xpass_arm(xp);
	}
}

/* The peer has left us, or the codepoints get lost on the way. */
static void xpass_fall_back(struct sock *sk)
{
	const struct tcp_congestion_ops *fallback = xpass_transport_of(sk)->fallback;

	gl_inc_stats(sock_net(sk), GL_MIB_FALLBACK);
	trace_greenlane_fallback(sk, tcp_sk(sk)->snd_una, 1);
	gl_detach(sk);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, fallback);
	gl_xmit(sk);
}

/* No credit has come for too long: the request, or all credits, are lost.  False if
 * it is no use: time and again data was acked meanwhile, what TCP sends as its last
 * resort, and no request was answered.  In an outage nothing is acked.
 */
static bool xpass_ask_again(struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	u32 waiting = xpass_waiting(sk, xp);
	u32 una = tcp_sk(sk)->snd_una;

	if (!waiting) {
		xpass_tell(sk, xp, 0, XPASS_RETRY);
		return true;
	}
	if (xp->retries >= XPASS_RETRIES_MIN) {
		if (xp->alive == XPASS_ALIVE)
			return false;
		xp->alive += una != xp->una;
	}
	xp->una = una;
	/* Not always as a probe, and in the end never: what loses one may lose all. */
	if (pre && !(xp->retries & 1) && xp->retries < XPASS_RETRIES_MAX)
		pre->lost(sk, &xp->gs);
	xpass_count(sk, XPASS_REQUESTRETRIED, 1);
	xp->retries = min(xp->retries + 1, XPASS_RETRIES_MAX);
	xpass_tell(sk, xp, waiting, XPASS_RETRY);
	return true;
}

/* --- the receiver --------------------------------------------------------- */

/* What a credit and the packet that it calls for take of the line, ns. */
static u64 xpass_cost_ns(const struct sock *sk, const struct xpass_line *line)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 bytes = xpass_wire(sk, XPASS_CREDIT_HLEN) +
		    xpass_wire(sk, tp->tcp_header_len + tp->mss_cache);

	return max_t(u64, xpass_line_ns(line, bytes), 1);
}

/* The gap to the next credit, ±10 %: or flows would lose in lockstep.  To be different is
 * all that is asked of them, and the same experiment in virtual time comes out the same.
 */
static u64 xpass_gap_ns(const struct sock *sk, const struct xpass *xp, u64 now)
{
	u32 gap = max_t(u32, NSEC_PER_SEC / xp->rate.cur, 10);
	u32 any = jhash_3words(now, (__force u32)sk->sk_daddr, (__force u32)sk->sk_portpair,
			       xp->credit + xp->throttled);

	return gap - gap / 10 + reciprocal_scale(any, gap / 5 + 1);
}

/* Has nothing been heard of the sender for so long that it must be gone? */
static bool xpass_is_silent(const struct sock *sk, const struct xpass *xp, u64 now)
{
	u64 round = max_t(u64, xpass_srtt_ns(sk), NSEC_PER_SEC / xp->rate.cur);

	return now - xp->asked_ns > max_t(u64, XPASS_SILENCE_NS, XPASS_SILENCE * round);
}

static void xpass_send_credits(struct sock *sk, struct xpass *xp, u64 now)
{
	struct xpass_line *line = xpass_line(sk);
	u64 cost;
	int n;

	if (xp->next > now)
		return;
	if (xpass_is_silent(sk, xp, now)) {
		xp->next = XPASS_NEVER;
		return;
	}
	cost = xpass_cost_ns(sk, line);
	for (n = 0; n < XPASS_QUEUE && xp->next <= now; n++) {
		if (!before(xp->credit, xp->end)) {
			xp->next = XPASS_NEVER;
			return;
		}
		xp->next += xpass_gap_ns(sk, xp, now);
		if (!xpass_line_takes(line, now, cost)) {
			xp->throttled++;
			xpass_count(sk, XPASS_CREDITTHROTTLED, 1);
			continue;
		}
		xp->credit++;
		xpass_count(sk, XPASS_CREDITSENT, 1);
		gl_send_words(sk, &xp->gs, &xpass_kind[XPASS_CREDIT], &xp->credit, 1);
	}
	xp->next = max(xp->next, now);
}

/* The line may have been given another rate. */
static void xpass_set_max(const struct sock *sk, struct xpass *xp)
{
	xp->rate.max = max_t(u32, div64_u64(NSEC_PER_SEC, xpass_cost_ns(sk, xpass_line(sk))), 1);
	xp->rate.cur = min(xp->rate.cur, xp->rate.max);
}

/* The last credit that has nothing to say of the rate that there is now. */
static u32 xpass_old(const struct xpass *xp)
{
	return after(xp->slowed, xp->seen) ? xp->slowed : xp->seen;
}

/* A round trip has ended.  Where credits queue it is longer than the least one: what
 * they tell of a rate that is not the rate any more is not heeded.
 */
static void xpass_feedback(struct sock *sk, struct xpass *xp, u32 seq, u32 received)
{
	u32 came = min(received - xp->heard, seq - xp->seen);
	u32 old = xpass_old(xp);

	if (seq == xp->seen)
		return;
	xpass_count(sk, XPASS_CREDITLOST, seq - xp->seen - came);
	if (after(seq, old)) {
		u32 sent = seq - old, rate = xp->rate.cur;

		xpass_rate_update(&xp->rate, sent + xp->throttled,
				  sent - min(came, sent) + xp->throttled);
		/* It must not be left behind: numbers wrap around. */
		xp->slowed = xp->rate.cur < rate ? xp->credit : seq;
	}
	xp->seen = seq;
	xp->heard = received;
	xp->throttled = 0;
}

/* The sender asks again: none will come of those that it has not told of. */
static void xpass_all_lost(struct xpass *xp)
{
	u32 sent = xp->credit - xpass_old(xp);

	if (!sent)
		return;
	xpass_rate_update(&xp->rate, sent, sent);
	xp->slowed = xp->credit;
}

/* The sender asks for the second time, and tells of a credit that was never sent:
 * somebody has forged it.  Ours would be stale: go on behind it.
 */
static void xpass_resync(struct xpass *xp, u32 seq, u32 received)
{
	if (!after(seq, xp->credit) || seq - xp->credit > XPASS_SEQ_AHEAD)
		return;
	xp->credit = seq;
	xp->seen = seq;
	xp->heard = received;
}

static void xpass_requested(struct sock *sk, struct xpass *xp, const struct gl_seg *seg)
{
	u32 seq = seg->word[0], received = seg->word[1];
	u32 want = seg->word[2] & XPASS_WANT_MAX;
	bool again = seg->word[2] & XPASS_RETRY;
	u64 now = ktime_get_ns();
	u64 idle = now - xp->asked_ns;

	if (seg->words == 3 && again)
		xpass_resync(xp, seq, received);
	/* It tells of credits that it cannot have. */
	if (seg->words < 3 || after(seq, xp->credit) || before(seq, xp->seen) ||
	    received - xp->heard > seq - xp->seen + XPASS_WINDOW) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	xpass_count(sk, XPASS_REQUESTRECEIVED, 1);
	xp->asked_ns = now;
	xpass_set_max(sk, xp);
	xpass_feedback(sk, xp, seq, received);
	if (again)
		xpass_all_lost(xp);
	xp->end = (again ? xp->credit : seq) + want;
	if (xp->next == XPASS_NEVER && before(xp->credit, xp->end)) {
		xp->next = now;
		/* After a pause what was learned is old. */
		if (!xp->rate.cur || idle > XPASS_PAUSE * xpass_srtt_ns(sk))
			xpass_rate_init(&xp->rate, READ_ONCE(xpass_line(sk)->initial));
	}
	xpass_send_credits(sk, xp, now);
	xpass_arm(xp);
}

/* --- a transport ----------------------------------------------------------- */

static enum gl_verdict xpass_on_packet(struct sock *sk, struct gl_sock *gs,
				       const struct gl_kind *kind, const struct gl_seg *seg)
{
	struct xpass *xp = xpass_of(gs);

	switch (kind - xpass_kind) {
	case XPASS_CREDIT:
		xpass_credited(sk, xp, seg);
		return GL_CONSUME;
	case XPASS_REQUEST:
	case XPASS_PROBE:
		xpass_requested(sk, xp, seg);
		return GL_CONSUME;
	default:
		return GL_PASS;
	}
}

static void xpass_on_kick(struct sock *sk, struct gl_sock *gs)
{
	struct xpass *xp = xpass_of(gs);
	u64 now = ktime_get_ns();

	/* Signed since it began: no request can be sent, and no credit. */
	if (gl_tcp_signed(sk)) {
		xpass_fall_back(sk);
		return;
	}
	xpass_send_credits(sk, xp, now);
	if (xp->retry <= now && !xpass_ask_again(sk, xp)) {
		xpass_fall_back(sk);
		return;
	}
	xpass_arm(xp);
}

/* The window was the transport's.  Start TCP's own anew, also what it would reduce: TCP may
 * have entered CWR while the window was 0, and warns of a reduction that begins there.
 */
static void xpass_leave(struct sock *sk, struct xpass *xp)
{
	struct tcp_sock *tp = tcp_sk(sk);

	hrtimer_cancel(&xp->timer);
	tcp_snd_cwnd_set(tp, TCP_INIT_CWND);
	if (!tp->prior_cwnd)
		tp->prior_cwnd = TCP_INIT_CWND;
	gl_gso_default(sk);
}

static void xpass_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	if (!on)
		xpass_leave(sk, xpass_of(gs));
}

static void xpass_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct xpass *xp = container_of(gs, struct xpass, gs);

	info->credits_sent = xp->credit;
	info->credits_received = xp->received;
	info->credit_rate = xp->next == XPASS_NEVER ? 0 : xp->rate.cur;
	info->credits_wanted = xp->asking ? max_t(s32, xp->told_end - xp->seq, 0) : 0;
}

/* Credits decide, not ACKs.  Before init() that is not known. */
static GL_CONG_CONTROL(xpass_cong_control, sk, rs)
{
	if (sk->sk_state == TCP_SYN_SENT)
		gl_pace_as_tcp(sk);
}

static u32 xpass_undo_cwnd(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 1U);
}

static void xpass_init(struct sock *sk);

static struct tcp_congestion_ops xpass_reno __read_mostly = GL_RENO("xpass-reno");

static struct xpass_transport xpass __read_mostly = {
	.t = {
		.ops = {
			.name		= "xpass",
			.owner		= THIS_MODULE,
			.init		= xpass_init,
			.release	= gl_release,
			.ssthresh	= tcp_reno_ssthresh,
			.undo_cwnd	= xpass_undo_cwnd,
			.cong_control	= xpass_cong_control,
			.min_tso_segs	= xpass_min_tso_segs,
		},
		.protocol	= &xpass_protocol,
		.always		= true,
		.sock_size	= sizeof(struct xpass),
		.on_xmit	= xpass_on_xmit,
		.on_packet	= xpass_on_packet,
		.on_kick	= xpass_on_kick,
		.on_switch	= xpass_on_switch,
		.on_info	= xpass_on_info,
	},
	.fallback = &xpass_reno,
};

static void xpass_init(struct sock *sk)
{
	const struct tcp_congestion_ops *fallback = xpass_transport_of(sk)->fallback;
	struct gl_sock *gs = gl_attach(sk);

	if (gs) {
		struct xpass *xp = xpass_of(gs);

		hrtimer_setup(&xp->timer, xpass_timer, CLOCK_MONOTONIC,
			      HRTIMER_MODE_ABS_SOFT);
		xp->retry = XPASS_NEVER;
		xp->next = XPASS_NEVER;
		xp->seen_seq = U32_MAX;		/* credits begin with 1 */
		if (gs->peer == GREENLANE_PEER_YES)
			return;
		gl_detach(sk);
	}
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, fallback);
}

static int __init xpass_module_init(void)
{
	int err;

	/* 384 bytes a connection, of which a combinator may have 32. */
	BUILD_BUG_ON(sizeof(struct xpass) > 384 - 32);

	err = xpass_line_init();
	if (err)
		return err;
	err = gl_register_protocol(&xpass_protocol);
	if (err)
		goto line;
	err = gl_register_transport(&xpass.t);
	if (err)
		goto protocol;
	return 0;

protocol:
	gl_unregister_protocol(&xpass_protocol);
line:
	xpass_line_exit();
	return err;
}

static void __exit xpass_module_exit(void)
{
	gl_unregister_transport(&xpass.t);
	gl_unregister_protocol(&xpass_protocol);
	xpass_line_exit();
}

module_init(xpass_module_init);
module_exit(xpass_module_exit);

MODULE_DESCRIPTION("ExpressPass: credit-scheduled TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
