// SPDX-License-Identifier: GPL-2.0
/* ExpressPass: credit-scheduled TCP
 *
 *	Inho Cho, Keon Jang, Dongsu Han:
 *	"Credit-Scheduled Delay-Bounded Congestion Control for Datacenters",
 *	SIGCOMM 2017
 *
 * The receiver decides who sends: each data packet needs a *credit*, a small packet
 * that the receiver sends at a paced rate.
 *
 *	sender                          switch                 receiver
 *	has data  --- request (n packets) -------------------->
 *	          <-- c . c . c . c . c . c .  x  c . c .  ----  credits, paced
 *	one packet a credit  --- d . d . d . d ----->
 *	          --- report, once a round trip -------------->  counts lost credits
 *	has no data left  --- stop (0 packets) --------------->
 *
 * Each switch port limits the rate of credits, so that the data they trigger just
 * fills the link in the other direction; it drops the excess.  Losing a credit costs
 * little, and the feedback control (xpass_rate.h) adjusts the credit rate to a target
 * loss.  The receiver's own link needs no such control: its connections take turns
 * (rd_queue.c).  Data is not lost, and queues stay short.
 *
 * To make TCP wait for credits, its congestion window is kept equal to the packets
 * in flight.  tcp_write_xmit() and tcp_xmit_retransmit_queue() both call
 * min_tso_segs() before they read the window, and that callback opens it by the
 * number of credits at hand.
 *
 * Documentation/xpass.rst lists the differences from the paper and their reasons.
 */
#include <linux/jhash.h>
#include <linux/module.h>
#include <net/greenlane.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "tcp_xpass.h"
#include "xpass_line.h"
#include "xpass_rate.h"

/* Bytes that Ethernet adds: header, FCS, preamble, gap; its smallest frame with them. */
#define XPASS_WIRE		(14 + 4 + 8 + 12)
#define XPASS_WIRE_MIN		84
/* The TCP header of a credit, with an option of one word. */
#define XPASS_CREDIT_HLEN	(sizeof(struct tcphdr) + GL_OPT_LEN(1))

/* The second word of a credit: ns until the next one, if nothing changes.  It is left out if it
 * is shorter than a sender waits anyway.
 */
#define XPASS_WAIT_MIN		(XPASS_RETRY_NS / 2)
/* A sender believes no more than this, or a forged word would stop it for long. */
#define XPASS_WAIT_MAX		(100 * NSEC_PER_MSEC)
/* It is no credit: the first word is the last credit that was sent.  The receiver has heard the
 * request, and there are many senders.
 */
#define XPASS_HEARD		0x80000000
/* The link has many receivers, so that a credit is rare; not because credits were lost. */
#define XPASS_BUSY		0x40000000
/* With XPASS_HEARD: there will be no more credits, because the application has chosen another
 * congestion control, or this end has fallen back.
 */
#define XPASS_GONE		0x20000000

/* A credit number further ahead than this is taken for a forged one. */
#define XPASS_SEQ_AHEAD		65536
/* Credits may arrive late by this many numbers. */
#define XPASS_WINDOW		32

/* A sender repeats its request if no credit arrives for the longest of this time,
 * four round trips, and twice the wait that the receiver has advertised.  It is four times that on
 * a busy link, where others may come meanwhile.
 */
#define XPASS_RETRY_NS		(50 * NSEC_PER_USEC)
#define XPASS_PATIENCE		2
#define XPASS_PATIENCE_BUSY	4
/* A sender on a busy link reports with every fourth credit. */
#define XPASS_REPORT		4
/* The time doubles with each repetition, at most this often. */
#define XPASS_RETRIES_MAX	10
/* The sender falls back to TCP if at least this many requests in a row brought no
 * credit, while this many of its uncredited packets were acknowledged: the path or
 * the peer drops credits, but not data.
 */
#define XPASS_RETRIES_MIN	5
#define XPASS_ALIVE		3

/* A receiver stops sending credits if no report arrives for the longest of this
 * time, eight round trips and eight gaps between credits: the stop was lost, or
 * the sender is gone.
 */
#define XPASS_SILENCE_NS	(1 * NSEC_PER_MSEC)
#define XPASS_SILENCE		8
/* The time of the last request is kept in units of 1024 ns.  In units of 1 ns it would be known for
 * 4.3 s only: less than eight gaps between credits on a slow link, and a pause of that length would
 * look like none.
 */
#define XPASS_HEARD_SHIFT	10

/* The third word of a request: the number of packets, and a flag that says that the
 * sender has given up on all credits sent so far.
 */
#define XPASS_WANT_MAX		0x7fffffff
#define XPASS_RETRY		0x80000000

/* A process that owns the socket at its turn is likely to be done soon: look again after this
 * time, and after twice and four times and eight times that.  Then wait for the process; the kick
 * comes some 50 us after it has released the socket.
 */
#define XPASS_OWNED_NS		(2 * NSEC_PER_USEC)
#define XPASS_OWNED_MAX		4

/* After this many round trips without a request, the credit rate starts anew. */
#define XPASS_PAUSE		4

/**
 * struct xpass - the state of a connection, both as a sender and as a receiver
 * @gs: greenlane's part
 * @alarm: sender: kicks the socket at @retry, or too early
 * @told: sender: when the last request or report left, ns, low half
 * @told_end: sender: the last credit that the receiver will send, as far as we know
 * @retry: sender: when to repeat the request, if @asking, ns, low half
 * @wait: sender: time until the next credit, as the receiver has advertised it, ns
 * @una: sender: TCP's snd_una at the last repeated request
 * @seq: sender: the highest credit number received
 * @seen_seq: sender: bitmap of the 32 credits up to @seq that have arrived; bit 0
 *	is @seq itself
 * @received: sender: credits received on this connection
 * @r: receiver: its place among the receivers of the link
 * @heard_at: receiver: when the last request arrived, in units of 1024 ns, low half
 * @came: receiver: TCP's data_segs_in less @credit when the sender began to ask, or sent a probe
 * @credit: receiver: the last credit sent
 * @end: receiver: the last credit to send
 * @seen: receiver: the highest credit that the sender has reported
 * @heard: receiver: how many credits the sender had received by then
 * @slowed: receiver: the last credit sent before the rate was reduced; losses up to
 *	it belong to the old rate
 * @rate: receiver: the feedback control
 * @burst: sender: what its burst has of the host's bursts, ns of the link's time
 * @asking: sender: the receiver knows that we have data to send
 * @busy: sender: @wait is that long because the link has many receivers
 * @asked: sender: a request was sent on this connection
 * @gone: sender: the peer sends no more credits
 * @alive: sender: how often uncredited data was acknowledged while requests brought
 *	no credit
 * @retries: sender: requests in a row that brought no credit
 * @skipped: receiver: turns in a row at which a process owned the socket; its spinlock
 * @epoch: sender: when @burst was granted, see rd_burst()
 * @tokens: sender: credits received and not used yet; 0 outside of xpass_spend()
 *
 * Times are ktime_get_ns(); RD_NEVER stands for no time.  A field that is only
 * compared with recent times keeps the low 32 bits: the size of a connection is
 * limited (see xpass_module_init()).  The socket lock protects all fields but @r.
 */
struct xpass {
	struct gl_sock		gs;
	struct rd_alarm		alarm;
	u32			retry;
	u32			told;
	u32			told_end;
	u32			wait;
	u32			una;
	u32			seq;
	u32			seen_seq;
	u32			received;
	struct rd_receiver	r;
	u32			heard_at;
	u32			came;
	u32			credit;
	u32			end;
	u32			seen;
	u32			heard;
	u32			slowed;
	struct xpass_rate	rate;
	u32			burst;
	u8			asking:1,
				busy:1,
				asked:1,
				gone:1,
				alive:2,
				tokens:1;
	u8			epoch;
	u8			retries;
	u8			skipped;
};

enum xpass_counter {
	XPASS_SCHEDULEDSENT = 1,
	XPASS_UNSCHEDULEDSENT,
	XPASS_UNCREDITED,
	XPASS_REQUESTSENT,
	XPASS_REQUESTRETRIED,
	XPASS_REQUESTRECEIVED,
	XPASS_CREDITSENT,
	XPASS_CREDITWAITED,
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
	[XPASS_CREDITWAITED]		= "CreditWaited",
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
	/* A probe must share the queue of the unscheduled data that it asks about: if it
	 * overtook the data, its answer would report that data as lost.
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

/* The round trip without queueing, which is how often a sender reports.  TCP does not know it if
 * the SYN was sent again, or a SYN cookie; then it is the same guess as above.
 */
static u64 xpass_rtt_ns(const struct sock *sk)
{
	u32 us = tcp_min_rtt(tcp_sk(sk));

	if (us == U32_MAX)
		return xpass_srtt_ns(sk);
	return (u64)clamp(us, 1U, (u32)USEC_PER_SEC) * NSEC_PER_USEC;
}

/**
 * xpass_burst_over() - give back what xpass_burst() has granted
 * @gs: the state of a connection, locked or about to be freed
 */
void xpass_burst_over(struct gl_sock *gs)
{
	struct xpass *xp = xpass_of(gs);

	if (!xp->burst)
		return;
	rd_burst_over(xp->r.queue, get_jiffies_64(), xp->burst, xp->epoch);
	xp->burst = 0;
}
EXPORT_SYMBOL_GPL(xpass_burst_over);

static void xpass_leave_link(struct xpass *xp)
{
	if (!xp->r.queue)
		return;
	xpass_burst_over(&xp->gs);
	rd_alarm_set(xp->r.queue, &xp->alarm, RD_NEVER);
	rd_leave(xp->r.queue, &xp->r);
	rd_link_put(container_of(xp->r.queue, struct rd_link, queue));
	WRITE_ONCE(xp->r.queue, NULL);
}

/* Share the link that the connection's packets leave on now. */
static void xpass_follow(struct sock *sk, struct xpass *xp)
{
	struct rd_link *link = rd_link_get(sk);

	if (likely(xp->r.queue == &link->queue)) {
		rd_link_put(link);
		return;
	}
	xpass_leave_link(xp);
	xp->r.rank = 0;
	WRITE_ONCE(xp->r.queue, &link->queue);
}

static void xpass_alarm(struct rd_alarm *a)
{
	struct xpass *xp = container_of(a, struct xpass, alarm);

	/* The socket still exists: xpass_leave() waits for the lock of the link's queue. */
	gl_kick(xp->gs.sk, &xp->gs);
}

/* --- the sender ---------------------------------------------------------- */

/* Number of new packets that need a credit.  A lone FIN needs none; data outside of
 * the peer's window, or held by Nagle's algorithm, cannot be sent yet.
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
	/* close() has TCP send all that it held back. */
	return left / tp->mss_cache + (left % tp->mss_cache &&
				       (gl_fin_written(sk) || !gl_nagle_holds(tp)));
}

/* A process waits for room in the send buffer: as its packets are acknowledged, as many will be
 * written.  Without credits for those, each buffer would take a round trip more.
 */
static u32 xpass_to_come(const struct sock *sk, u32 new)
{
	const struct socket *sock = sk->sk_socket;

	return sock && test_bit(SOCK_NOSPACE, &sock->flags) ? tcp_sk(sk)->packets_out + new : 0;
}

/* Enough room for two round trips at the link's rate, which the receiver may grant at any time.
 * The size of a packet is that of tcp_sndbuf_expand(), which TCP does not call, as its window is
 * always full.
 */
static void xpass_expand_sndbuf(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 size = roundup_pow_of_two(max_t(u32, tp->rx_opt.mss_clamp, tp->mss_cache) +
				      MAX_TCP_HEADER +
				      SKB_DATA_ALIGN(sizeof(struct skb_shared_info))) +
		   SKB_DATA_ALIGN(sizeof(struct sk_buff));
	u64 bdp = div_u64(xpass_path_of(sk).mbit * xpass_srtt_ns(sk), 8000);
	u64 room = 2ULL * size * (div_u64(bdp, tp->mss_cache) + TCP_INIT_CWND);

	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK || room <= sk->sk_sndbuf)
		return;
	room = min_t(u64, room, READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]));
	/* The next ACK wakes a process that waits for it. */
	if (room > sk->sk_sndbuf)
		WRITE_ONCE(sk->sk_sndbuf, room);
}

/* Number of packets that wait for a credit, retransmissions included. */
static u32 xpass_waiting(const struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 waiting = tp->lost_out - min(tp->lost_out, tp->retrans_out);
	u32 new = xpass_new(sk);

	if (pre)
		waiting += pre->waiting(sk, &xp->gs);
	return waiting + new + xpass_to_come(sk, new);
}

/* How often to report: once a round trip.  On a busy link, where a round trip has no credit, that
 * would be with each credit; the reports of all would take more of the link than the time of
 * their credits leaves free.
 */
static u64 xpass_round_ns(const struct sock *sk, const struct xpass *xp)
{
	u64 rare = xp->busy ? XPASS_REPORT * (u64)xp->wait : 0;

	return max(xpass_rtt_ns(sk), rare);
}

/* How long to wait for a credit before the request is repeated. */
static u32 xpass_patience_ns(const struct sock *sk, const struct xpass *xp)
{
	u64 wait = (u64)xp->wait * (xp->busy ? XPASS_PATIENCE_BUSY : XPASS_PATIENCE);
	u64 ns = max3(XPASS_RETRY_NS, 4 * xpass_rtt_ns(sk), wait);

	return min(ns << xp->retries, NSEC_PER_SEC);
}

/* Repeat the request if no credit arrives for long enough. */
static void xpass_be_patient(struct sock *sk, struct xpass *xp, u64 now)
{
	u32 patience = xpass_patience_ns(sk, xp);

	xp->retry = now + patience;
	rd_alarm_set(xp->r.queue, &xp->alarm, now + patience);
}

/* Send a request, report or stop.  All three have the same format: the credits that
 * have arrived, and the number of packets that wait.
 */
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
	xpass_follow(sk, xp);
	xpass_expand_sndbuf(sk);
	/* What the receiver said before a pause is old. */
	if (!xp->asking)
		xp->wait = 0;
	xp->told = now;
	xp->told_end = xp->seq + waiting;
	xp->asking = !!waiting;
	xp->asked |= xp->asking;
	if (waiting)
		xpass_be_patient(sk, xp, now);
	else
		rd_alarm_set(xp->r.queue, &xp->alarm, RD_NEVER);
	xpass_count(sk, XPASS_REQUESTSENT, 1);
	gl_send_words(sk, &xp->gs, &xpass_kind[kind], word, words);
}

/* Must the receiver hear of more data now?  True if it would otherwise run out of
 * credits to send before the next report.  An unscheduled burst in progress can
 * wait: its last packet is followed by a request.
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

/* Let TCP send @more packets.  The window may become 0, which tcp_snd_cwnd_set() does
 * not allow; 0 is correct here, as nothing may leave.
 */
static void xpass_set_window(struct sock *sk, u32 more)
{
	struct tcp_sock *tp = tcp_sk(sk);

	WRITE_ONCE(tp->snd_cwnd, tcp_packets_in_flight(tp) + more);
}

/* Set the window just before TCP reads it. */
static void xpass_gate(struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	const struct sk_buff *head = tcp_send_head(sk);
	u32 more = xp->tokens;

	if (!more) {
		u32 waiting = xpass_waiting(sk, xp);

		if (pre && waiting)
			pre->begin(sk, &xp->gs, xp->asking);
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
		/* A credit permits one packet; TCP must not wait to fill a larger skb. */
		sk->sk_gso_max_segs = 1;
	}
	return 1;
}

/* Bytes on the link of a packet with @len bytes of TCP header and data. */
static u32 xpass_wire(const struct sock *sk, const struct xpass_path *path, u32 len)
{
	return max_t(u32, inet_csk(sk)->icsk_af_ops->net_header_len + len + XPASS_WIRE +
			  path->extra, XPASS_WIRE_MIN);
}

/* Time that a packet with @len bytes of TCP header and data occupies the link, ns. */
static u64 xpass_packet_ns(const struct sock *sk, u32 len)
{
	struct xpass_path path = xpass_path_of(sk);

	return rd_link_ns(path.mbit, xpass_wire(sk, &path, len));
}

/* The same for one that carries an MSS. */
static u64 xpass_full_ns(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return max_t(u64, xpass_packet_ns(sk, tp->tcp_header_len + tp->mss_cache), 1);
}

/**
 * xpass_burst() - send before any credit has come
 * @sk: the connection, locked
 * @gs: its state
 * @want: how much there is, packets
 * @most: what the host may send so in a round trip, packets
 *
 * Return: how many packets may be sent, see rd_burst(); until xpass_burst_over().
 */
u32 xpass_burst(struct sock *sk, struct gl_sock *gs, u32 want, u32 most)
{
	struct xpass *xp = xpass_of(gs);
	u64 one = xpass_full_ns(sk);
	u32 may;

	xpass_follow(sk, xp);
	may = rd_burst(xp->r.queue, get_jiffies_64(), want, one, most * one, &xp->epoch);
	xp->burst = min_t(u64, xp->burst + may * one, U32_MAX);
	return may;
}
EXPORT_SYMBOL_GPL(xpass_burst);

/**
 * xpass_burst_came() - the receiver has counted what came of a burst, and sends no credits for it
 * @gs: the state of a connection, locked
 */
void xpass_burst_came(struct gl_sock *gs)
{
	struct xpass *xp = xpass_of(gs);

	xp->told_end = xp->seq;
}
EXPORT_SYMBOL_GPL(xpass_burst_came);

/* Data was sent by a credit, and its ACK will take some of the link's time. */
static void xpass_yield(const struct sock *sk, struct xpass *xp, u64 now)
{
	u64 ack = xpass_packet_ns(sk, tcp_sk(sk)->tcp_header_len);

	rd_yield(xp->r.queue, now, ack, XPASS_YIELDED * ack);
}

/* Data leaves.  If there is no credit, this is an RTO, a loss probe or a window probe:
 * TCP sends those without reading its window.
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

/* Spend a credit: on a retransmission if one waits, otherwise on new data. */
static void xpass_spend(struct sock *sk, struct xpass *xp, u64 now)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);

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
		xpass_yield(sk, xp, now);
	xp->tokens = 0;
	xpass_set_window(sk, 0);
}

/* Accept each credit once, and in any order within XPASS_WINDOW: credits are
 * reordered on the path, or when a process owns the socket.  The bitmap is the
 * anti-replay window of RFC 4303.
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

/* Does it answer a request that counts?  Not if a credit has come that was sent later. */
static bool xpass_is_current(const struct xpass *xp, u32 seq)
{
	return seq - xp->seq <= XPASS_SEQ_AHEAD;
}

static void xpass_told_wait(struct xpass *xp, u32 word)
{
	xp->wait = min_t(u32, word & ~(XPASS_HEARD | XPASS_BUSY | XPASS_GONE),
			 XPASS_WAIT_MAX);
	xp->busy = !!(word & XPASS_BUSY);
}

static void xpass_credited(struct sock *sk, struct xpass *xp, const struct gl_seg *seg)
{
	bool heard = seg->words > 1 && seg->word[1] & XPASS_HEARD;
	u64 now = ktime_get_ns();
	u32 waiting;

	if (heard && seg->word[1] & XPASS_GONE) {
		xp->gone = 1;
		gl_kick(sk, &xp->gs);
		return;
	}
	if (!seg->words || !xp->asked || !(heard ? xpass_is_current(xp, seg->word[0]) :
						   xpass_is_fresh(xp, seg->word[0]))) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	xpass_told_wait(xp, seg->words > 1 ? seg->word[1] : 0);
	xp->retries = 0;
	xp->alive = 0;
	if (heard) {
		if (xp->asking)
			xpass_be_patient(sk, xp, now);
		return;
	}
	xp->received++;
	xpass_count(sk, XPASS_CREDITRECEIVED, 1);

	xpass_spend(sk, xp, now);
	waiting = xpass_waiting(sk, xp);
	if ((!waiting && xp->asking) || (u32)now - xp->told >= xpass_round_ns(sk, xp))
		xpass_tell(sk, xp, waiting, 0);
	else if (waiting)
		xpass_be_patient(sk, xp, now);
}

/* Continue as plain TCP: the peer has stopped sending credits, or the path drops or
 * re-marks them.
 */
static void xpass_fall_back(struct sock *sk)
{
	const struct tcp_congestion_ops *fallback = xpass_transport_of(sk)->fallback;

	gl_inc_stats(sock_net(sk), GL_MIB_FALLBACK);
	trace_greenlane_fallback(sk, tcp_sk(sk)->snd_una, 1);
	gl_detach(sk);
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, fallback);
	gl_xmit(sk);
}

/* No credit has arrived for too long: the request or all credits were lost.  Repeat
 * the request.
 *
 * Return: false if the connection should fall back.  That is when several requests
 * in a row brought no credit although the peer acknowledged data that TCP's timers
 * sent.  In an outage nothing is acknowledged, and the sender keeps trying.
 */
static bool xpass_ask_again(struct sock *sk, struct xpass *xp)
{
	const struct xpass_precredit *pre = xpass_precredit(sk);
	u32 waiting = xpass_waiting(sk, xp);
	u32 una = tcp_sk(sk)->snd_una;

	if (!waiting) {
		if (pre)
			pre->credited(sk, &xp->gs);
		xpass_tell(sk, xp, 0, XPASS_RETRY);
		return true;
	}
	if (xp->retries >= XPASS_RETRIES_MIN) {
		if (xp->alive == XPASS_ALIVE)
			return false;
		xp->alive += una != xp->una;
	}
	xp->una = una;
	/* Alternate between probe and plain request, and finally send requests only:
	 * a device that drops this probe may drop every probe.
	 */
	if (pre && !(xp->retries & 1) && xp->retries < XPASS_RETRIES_MAX)
		pre->lost(sk, &xp->gs);
	xpass_count(sk, XPASS_REQUESTRETRIED, 1);
	xp->retries = min(xp->retries + 1, XPASS_RETRIES_MAX);
	xpass_tell(sk, xp, waiting, XPASS_RETRY);
	return true;
}

/* --- the receiver --------------------------------------------------------- */

/* Time that a credit and the data packet it triggers occupy the link, ns.  The peer's packets are
 * at most as large as ours, which its MSS limits, and as the MSS that we have announced.
 */
static u64 xpass_cost_ns(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 len = min_t(u32, tp->tcp_header_len + tp->mss_cache,
			sizeof(struct tcphdr) + tp->advmss);
	struct xpass_path path = xpass_path_of(sk);
	u32 bytes = xpass_wire(sk, &path, XPASS_CREDIT_HLEN) + xpass_wire(sk, &path, len);

	return max_t(u64, rd_link_ns(path.mbit, bytes), 1);
}

/* The gap to the next credit at the flow's own rate, with a jitter of ±10 % so that flows do not
 * lose credits in lockstep.  A hash suffices, as the flows only have to differ; unlike random
 * numbers it keeps experiments in virtual time reproducible.  At the full rate the link decides.
 */
static u64 xpass_gap_ns(const struct sock *sk, const struct xpass *xp, u64 now)
{
	u32 gap = max_t(u32, NSEC_PER_SEC / xp->rate.cur, 10);
	u32 any = jhash_3words(now, (__force u32)sk->sk_daddr, (__force u32)sk->sk_portpair,
			       xp->credit);

	if (xp->rate.cur == xp->rate.max)
		return 0;
	return gap - gap / 10 + reciprocal_scale(any, gap / 5 + 1);
}

static bool xpass_is_shortest_first(const struct sock *sk)
{
	return READ_ONCE(xpass_line(sk)->pick) == XPASS_PICK_SHORTEST;
}

/* What is left of the message that the sender has asked for, ns of the link's time.  0 is for
 * turns that are fair, and for a message that is through.
 */
static u64 xpass_left_ns(const struct sock *sk, const struct xpass *xp, u64 cost)
{
	return xpass_is_shortest_first(sk) ? (u64)(xp->end - xp->credit) * cost : 0;
}

/* Time between two credits as it is now: at the flow's own rate, or until all others of the link
 * have had theirs.  Where the shortest goes first a flow that waits has one of the turns that go
 * round; the receiver advertises twice that, since others may come meanwhile.
 */
static u64 xpass_wait_ns(const struct sock *sk, const struct xpass *xp, u64 cost)
{
	u32 receivers = READ_ONCE(xp->r.queue->receivers);
	u64 turns = receivers * cost;

	if (xpass_is_shortest_first(sk))
		turns *= 2 * RD_ROUND;
	return max_t(u64, turns, NSEC_PER_SEC / xp->rate.cur);
}

/* Time since the last request, ns.  It is known up to half an hour; after that it may seem short,
 * or 0.  A request may have arrived after another processor has read @now.
 */
static u64 xpass_unheard_ns(const struct xpass *xp, u64 now)
{
	s32 ago = (u32)(now >> XPASS_HEARD_SHIFT) - xp->heard_at;

	return (u64)max(ago, 0) << XPASS_HEARD_SHIFT;
}

/* No report has arrived for so long that the sender must be gone.  While it has had few credits it
 * had nothing to report: on a busy link its report may be four credits old, and when others leave
 * the link the time between credits becomes much shorter than it was then.
 */
static bool xpass_is_silent(const struct sock *sk, const struct xpass *xp, u64 now, u64 cost)
{
	u64 round = max_t(u64, xpass_srtt_ns(sk), xpass_wait_ns(sk, xp, cost));
	u64 most = max_t(u64, XPASS_SILENCE_NS, XPASS_SILENCE * round);
	u64 ago = xpass_unheard_ns(xp, now);

	if (xp->credit - xp->seen < 2 * XPASS_REPORT && ago < NSEC_PER_SEC)
		return false;
	return ago > most;
}

/* Send a credit, or tell the sender that its request was heard. */
static void xpass_send_credit(struct sock *sk, struct xpass *xp, u64 cost, u32 heard)
{
	u32 wait = min_t(u64, xpass_wait_ns(sk, xp, cost), XPASS_WAIT_MAX);
	u32 word[2] = { xp->credit, wait | heard };

	/* Where the shortest goes first, it has many credits, and reports once a round trip. */
	if (wait > 2 * (NSEC_PER_SEC / xp->rate.cur) && !xpass_is_shortest_first(sk))
		word[1] |= XPASS_BUSY;
	gl_send_words(sk, &xp->gs, &xpass_kind[XPASS_CREDIT], word,
		      heard || wait > XPASS_WAIT_MIN ? 2 : 1);
}

/* It is our turn on the link. */
static void xpass_issue(struct sock *sk, struct xpass *xp, u64 now, u64 cost)
{
	u64 at = RD_NEVER, gap;

	if (!before(xp->credit, xp->end) || xpass_is_silent(sk, xp, now, cost)) {
		rd_served(xp->r.queue, &xp->r, now, 0, RD_NEVER, 0);
		return;
	}
	xp->credit++;
	xp->skipped = 0;
	xpass_count(sk, XPASS_CREDITSENT, 1);
	/* A late timer makes up for as many credits as a port's queue holds. */
	if (before(xp->credit, xp->end)) {
		gap = xpass_gap_ns(sk, xp, now);
		at = max_t(u64, xp->r.at, now - min(now, RD_CATCH_UP * gap)) + gap;
	}
	xpass_send_credit(sk, xp, cost, 0);
	rd_served(xp->r.queue, &xp->r, now, cost, at, xpass_left_ns(sk, xp, cost));
}

/* Wait for our turn, or take it at once. */
static void xpass_take_turns(struct sock *sk, struct xpass *xp, u64 now, u64 cost)
{
	int n;

	for (n = 0; n < RD_CATCH_UP && before(xp->credit, xp->end); n++) {
		if (!rd_want(xp->r.queue, &xp->r, now, now, xpass_left_ns(sk, xp, cost)))
			break;
		xpass_issue(sk, xp, now, cost);
	}
}

static void xpass_turn_locked(struct sock *sk, struct gl_sock *gs, u64 now, bool may)
{
	struct xpass *xp = xpass_of(gs);
	/* A process that owns the socket may be about to leave the link; RCU keeps it. */
	struct rd_queue *q = READ_ONCE(xp->r.queue);

	if (may) {
		xpass_issue(sk, xp, now, xpass_cost_ns(sk));
	} else if (q) {
		u64 at = RD_NEVER;

		if (sock_owned_by_user(sk) && xp->skipped < XPASS_OWNED_MAX)
			at = now + (XPASS_OWNED_NS << xp->skipped++);
		rd_served(q, &xp->r, now, 0, at, 0);
	}
}

static void xpass_turn_hold(struct rd_receiver *r)
{
	gl_turn_hold(&container_of(r, struct xpass, r)->gs);
}

static void xpass_turn(struct rd_receiver *r, u64 now)
{
	gl_turn(&container_of(r, struct xpass, r)->gs, now, xpass_turn_locked);
}

static const struct rd_ops xpass_rd_ops = {
	.hold	= xpass_turn_hold,
	.turn	= xpass_turn,
	.alarm	= xpass_alarm,
};

/* Recompute the highest credit rate: the administrator may have changed the link's. */
static void xpass_set_max(struct xpass *xp, u64 cost)
{
	xp->rate.max = max_t(u32, div64_u64(NSEC_PER_SEC, cost), 1);
	xp->rate.cur = min(xp->rate.cur, xp->rate.max);
}

/* The last credit whose fate says nothing about the current rate: it was reported
 * already, or sent before the rate was reduced.
 */
static u32 xpass_old(const struct xpass *xp)
{
	return after(xp->slowed, xp->seen) ? xp->slowed : xp->seen;
}

/* A round of @sent credits, @lost of them in the network, has ended.  Where turns are fair, the
 * flow sent them at its share of the link if that was less than its rate.
 */
static void xpass_lost(struct sock *sk, struct xpass *xp, u32 sent, u32 lost)
{
	u32 share = xp->rate.max / max(READ_ONCE(xp->r.queue->receivers), 1U) + 1;

	if (lost && !xpass_is_shortest_first(sk))
		xp->rate.cur = min(xp->rate.cur, share);
	xpass_rate_update(&xp->rate, sent, lost);
}

/* Update the rate at the end of a round trip.  Reports come once per minimum RTT; with
 * queues the actual RTT is longer, so a report may still describe credits sent before
 * the last reduction.  Those are ignored.
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

		xpass_lost(sk, xp, sent, sent - min(came, sent));
		/* Without a reduction, move @slowed along: credit numbers wrap, and an
		 * old value would seem to lie ahead.
		 */
		xp->slowed = xp->rate.cur < rate ? xp->credit : seq;
	}
	xp->seen = seq;
	xp->heard = received;
}

/* A repeated request: the sender has given up on all credits it has not reported. */
static void xpass_all_lost(struct sock *sk, struct xpass *xp)
{
	u32 sent = xp->credit - xpass_old(xp);

	if (!sent)
		return;
	xpass_lost(sk, xp, sent, sent);
	xp->slowed = xp->credit;
}

/* A repeated request reports a credit that we never sent: the sender accepted a forged
 * one, and would ignore ours as old.  Continue with numbers above it.
 */
static void xpass_resync(struct xpass *xp, u32 seq, u32 received)
{
	if (!after(seq, xp->credit) || seq - xp->credit > XPASS_SEQ_AHEAD)
		return;
	xp->credit = seq;
	xp->seen = seq;
	xp->heard = received;
}

/* A probe ends a burst.  What came of the burst has occupied the link as well, and needs no credit,
 * although the sender does not know yet that it came.
 *
 * @since is the time since the last request, ns; a burst has not occupied the link for longer.
 *
 * Return: packets of data that came, less those that credits let come, from when the sender began
 * to ask, or from the last probe.  Credits that are on their way make it less.
 */
static u32 xpass_came(struct sock *sk, struct xpass *xp, bool begins, bool probe, u64 now,
		      u64 since)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	s32 n = tp->data_segs_in - xp->credit - xp->came;
	u64 one;

	if (probe || begins)
		xp->came = tp->data_segs_in - xp->credit;
	if (!probe || begins || n <= 0)
		return 0;
	one = xpass_full_ns(sk);
	rd_yield(xp->r.queue, now, min_t(u64, n * one, since), XPASS_YIELDED * one);
	return n;
}

static void xpass_requested(struct sock *sk, struct xpass *xp, const struct gl_seg *seg,
			    bool probe)
{
	u32 seq = seg->word[0], received = seg->word[1];
	u32 want = seg->word[2] & XPASS_WANT_MAX;
	bool again = seg->word[2] & XPASS_RETRY;
	u64 now = ktime_get_ns();
	u64 idle = xpass_unheard_ns(xp, now);
	u64 cost;
	bool joins;
	u32 last;

	if (seg->words == 3 && again)
		xpass_resync(xp, seq, received);
	/* Ignore a request that reports credits the sender cannot have. */
	if (seg->words < 3 || after(seq, xp->credit) || before(seq, xp->seen) ||
	    received - xp->heard > seq - xp->seen + XPASS_WINDOW) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	xpass_count(sk, XPASS_REQUESTRECEIVED, 1);
	xpass_follow(sk, xp);
	xp->heard_at = now >> XPASS_HEARD_SHIFT;
	cost = xpass_cost_ns(sk);
	xpass_set_max(xp, cost);
	xpass_feedback(sk, xp, seq, received);
	if (again)
		xpass_all_lost(sk, xp);
	/* No more data will come for which TCP would send a delayed ACK. */
	if (!want && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
	joins = rd_is_off(&xp->r);
	want -= min(want, xpass_came(sk, xp, joins, probe, now, idle));
	xp->end = (again ? xp->credit : seq) + want;
	joins &= before(xp->credit, xp->end);
	/* After a pause the old rate says nothing about the network. */
	if (joins && (!xp->rate.cur || idle > XPASS_PAUSE * xpass_srtt_ns(sk)))
		xpass_rate_init(&xp->rate, READ_ONCE(xpass_line(sk)->initial));
	/* Or it would wait for a turn that it does not need, and make the others' waits longer. */
	if (!before(xp->credit, xp->end))
		rd_leave(xp->r.queue, &xp->r);
	last = xp->credit;
	xpass_take_turns(sk, xp, now, cost);
	if ((joins || again) && want && xp->credit == last &&
	    xpass_wait_ns(sk, xp, cost) > XPASS_WAIT_MIN) {
		xpass_count(sk, XPASS_CREDITWAITED, 1);
		xpass_send_credit(sk, xp, cost, XPASS_HEARD);
	}
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
		xpass_requested(sk, xp, seg, kind == &xpass_kind[XPASS_PROBE]);
		return GL_CONSUME;
	default:
		return GL_PASS;
	}
}

static void xpass_on_kick(struct sock *sk, struct gl_sock *gs)
{
	struct xpass *xp = xpass_of(gs);
	u64 now = ktime_get_ns();

	/* MD5 or TCP-AO was enabled in mid-connection: requests and credits are not
	 * signed, so none may be sent any more.
	 */
	if (xp->gone || gl_tcp_signed(sk)) {
		xpass_fall_back(sk);
		return;
	}
	/* A process may have owned the socket when it was its turn. */
	if (before(xp->credit, xp->end))
		xpass_take_turns(sk, xp, now, xpass_cost_ns(sk));
	if (!xp->asking)
		return;
	/* All of a burst has come: there will be no credit that would end the request. */
	if (xp->told_end == xp->seq && !xpass_waiting(sk, xp))
		xpass_tell(sk, xp, 0, 0);
	else if ((s32)(xp->retry - (u32)now) > 0)
		rd_alarm_set(xp->r.queue, &xp->alarm, now + (xp->retry - (u32)now));
	else if (!xpass_ask_again(sk, xp))
		xpass_fall_back(sk);
}

/* Tell the peer that its requests will bring no credits.  It would find out, but only after half a
 * second or more.
 */
static void xpass_say_gone(struct sock *sk, struct xpass *xp)
{
	u32 word[2] = { xp->credit, XPASS_HEARD | XPASS_GONE };

	if (xp->gone || gl_tcp_signed(sk) ||
	    !(BIT(sk->sk_state) & (TCPF_ESTABLISHED | TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2)))
		return;
	gl_send_words(sk, &xp->gs, &xpass_kind[XPASS_CREDIT], word, 2);
}

/* Restore TCP's own window, which held this transport's values until now.  TCP may have
 * entered CWR while the window was 0; it would warn about a reduction from prior_cwnd 0.
 */
static void xpass_leave(struct sock *sk, struct xpass *xp)
{
	struct tcp_sock *tp = tcp_sk(sk);

	xpass_leave_link(xp);
	inet_csk(sk)->icsk_mtup.enabled = READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_mtu_probing) > 1;
	tcp_snd_cwnd_set(tp, TCP_INIT_CWND);
	if (!tp->prior_cwnd)
		tp->prior_cwnd = TCP_INIT_CWND;
	gl_gso_default(sk);
}

static void xpass_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	if (on)
		return;
	xpass_say_gone(sk, xpass_of(gs));
	xpass_leave(sk, xpass_of(gs));
}

static void xpass_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct xpass *xp = container_of(gs, struct xpass, gs);

	info->credits_sent = xp->credit;
	info->credits_received = xp->received;
	info->credit_rate = rd_is_off(&xp->r) ? 0 : xp->rate.cur;
	info->credits_wanted = xp->asking ? max_t(s32, xp->told_end - xp->seq, 0) : 0;
}

/* Credits set the window, not ACKs.  An active open calls this once before init(), when
 * the peer is not known yet: set the pacing rate as TCP would.
 */
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

		xp->alarm.at = RD_NEVER;
		xp->seen_seq = U32_MAX;		/* credits begin with 1 */
		if (gs->peer == GREENLANE_PEER_YES) {
			/* To probe for the MTU, TCP would wait for a window that it never has. */
			inet_csk(sk)->icsk_mtup.enabled = 0;
			return;
		}
		gl_detach(sk);
	}
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, fallback);
}

static int __init xpass_module_init(void)
{
	int err;

	/* A connection may take 384 bytes, of which 32 are left to a combinator. */
	BUILD_BUG_ON(sizeof(struct xpass) > 384 - 32);

	err = xpass_line_init();
	if (err)
		return err;
	rd_ops_set(&xpass_rd_ops);
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
	rd_ops_set(NULL);
	xpass_line_exit();
	return err;
}

static void __exit xpass_module_exit(void)
{
	gl_unregister_transport(&xpass.t);
	gl_unregister_protocol(&xpass_protocol);
	rd_ops_set(NULL);
	/* The timer of a link may still be in xpass_turn(). */
	synchronize_net();
	xpass_line_exit();
}

module_init(xpass_module_init);
module_exit(xpass_module_exit);

MODULE_DESCRIPTION("ExpressPass: credit-scheduled TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
