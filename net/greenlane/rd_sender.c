// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the sender.
 *
 * It requests credits for its backlog (a request), sends one packet a credit, reports once a round
 * trip which credits have arrived (a report), and that it has no more data (a stop).  All three
 * are one packet, a request.
 *
 * To make TCP wait for credits, the core keeps its congestion window equal to the packets in
 * flight. tcp_write_xmit() and tcp_xmit_retransmit_queue() both call min_tso_segs() before they
 * read the window, and that callback opens it by the number of unused credits.
 *
 * See include/net/rd_core.h.
 */
#include <net/tcp.h>

#include <trace/events/greenlane.h>
#include "rd_internal.h"

/* The wait before a repeated request doubles this many times at most. */
#define RD_DOUBLINGS_MAX	10
/* It falls back to TCP if the wait has doubled this many times without a credit, while this many of
 * its uncredited packets were acknowledged: the path or the peer drops credits, but not data.
 */
#define RD_DOUBLINGS_MIN	5
#define RD_ALIVE		3

/* If the wait has doubled this many times on a connection that has sent no data, after 1528 round
 * trips and at least 19 ms, a packet of data follows the request: TCP's timer would send it after
 * 200 ms.  Connections that start at a port which drops most credits have had one by then.
 */
#define RD_DOUBLINGS_DATA	7

/* Period of reports if credits are cumulative: the receiver expects one in RD_SILENCE_NS. */
#define RD_ALIVE_NS		(250ULL * NSEC_PER_USEC)

/* Buffers of the write queue that a request counts packet by packet; for the rest it divides bytes
 * by the MSS.  A link of 100 Gbit/s carries this many packets in a round trip of 30 us.
 */
#define RD_LOOK			256

/* No link is faster: LINK_SPEED_MBIT_MAX in bytes/s. */
#define RD_RATE_MAX		(LINK_SPEED_MBIT_MAX * 125000ULL)

/* A sender that expects fewer credits requests more at once, not with its next report. */
#define RD_FEW			8

/* Does TCP hold back the last packet of the write queue, which is shorter than an MSS?  Nagle's
 * algorithm, CORK and MSG_MORE do: TCP sets PSH at the end of a write without MSG_MORE.  close()
 * and TCP_NODELAY release the packet.
 */
static bool rd_holds(const struct sock *sk, const struct sk_buff *last)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (gl_fin_written(sk) || tp->nonagle & TCP_NAGLE_PUSH)
		return false;
	return gl_nagle_holds(tp) || !(TCP_SKB_CB(last)->tcp_flags & TCPHDR_PSH);
}

/* Number of packets in one buffer of the write queue.  Records (MSG_EOR) and writes while a packet
 * waits leave buffers shorter than an MSS, and TCP sends each as a packet of its own.
 */
static u32 rd_packets(const struct sock *sk, const struct sk_buff *skb)
{
	u32 mss = tcp_sk(sk)->mss_cache;

	return skb->len / mss + (skb->len % mss &&
				 !(skb == skb_peek_tail(&sk->sk_write_queue) && rd_holds(sk, skb)));
}

/* Number of requests that stay within the peer's window after a credit was unused because of it: a
 * process that reads in bursts repeatedly stops reading while data is in flight.
 */
#define RD_SHUT_REQUESTS	255

/* The end of the peer's window when the credits of this request arrive.  A receiver sends the
 * credits of one request for two round trips, most of them while earlier data is in flight: the
 * ACKs of that data advance the window, if the peer's process reads.
 */
static u32 rd_window_end(const struct sock *sk, const struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tcp_wnd_end(tp) + (rs->shut ? 0 : tp->snd_nxt - tp->snd_una);
}

/* Number of new packets that need a credit; @most stands for @most or more.  A lone FIN needs
 * none; data outside the peer's window, or held back, cannot be sent yet.
 */
static u32 rd_new(const struct sock *sk, const struct rd_sock *rs, u32 most)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 end = rd_window_end(sk, rs), n = 0, looked = 0;
	const struct sk_buff *skb;

	skb_queue_walk(&sk->sk_write_queue, skb) {
		u32 seq = TCP_SKB_CB(skb)->seq;

		if (n >= most)
			break;
		if (after(seq + skb->len, end))
			return n + max_t(s32, end - seq, 0) / tp->mss_cache;
		if (looked++ == RD_LOOK)
			return n + min(gl_data_end(sk) - seq, end - seq) / tp->mss_cache;
		n += rd_packets(sk, skb);
	}
	return n;
}

/* Number of packets that a process will write when it has room in the send buffer: one for each
 * that is acknowledged.  Without credits for them, each buffer would take one round trip more.  0
 * if the peer's window would hold them back.
 */
static u32 rd_unwritten(const struct sock *sk, const struct rd_sock *rs, u32 new)
{
	const struct socket *sock = sk->sk_socket;
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!sock || !test_bit(SOCK_NOSPACE, &sock->flags) ||
	    after(gl_data_end(sk), rd_window_end(sk, rs)))
		return 0;
	return tp->packets_out + new;
}

/* Expand the send buffer to two round trips at the link's rate, which the receiver may grant at
 * any time.  A packet has the size that tcp_sndbuf_expand() uses; TCP does not call that, because
 * its window is always full.
 */
static void rd_expand_sndbuf(struct sock *sk, const struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 size = roundup_pow_of_two(max_t(u32, tp->rx_opt.mss_clamp, tp->mss_cache) +
				      MAX_TCP_HEADER +
				      SKB_DATA_ALIGN(sizeof(struct skb_shared_info))) +
		   SKB_DATA_ALIGN(sizeof(struct sk_buff));
	u64 bdp = div_u64(rd_mbit(sk, rs) * rd_srtt_ns(sk), 8000);
	u64 room = 2ULL * size * (div_u64(bdp, tp->mss_cache) + TCP_INIT_CWND);

	if (sk->sk_userlocks & SOCK_SNDBUF_LOCK || room <= sk->sk_sndbuf)
		return;
	room = min_t(u64, room, READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_wmem[2]));
	/* The next ACK wakes a process that waits for it. */
	if (room > sk->sk_sndbuf)
		WRITE_ONCE(sk->sk_sndbuf, room);
}

/* Number of packets that wait, retransmissions included; @most stands for @most or more. */
static u32 rd_backlog(const struct sock *sk, struct rd_sock *rs, u32 most)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 n = tp->lost_out - min(tp->lost_out, tp->retrans_out), new;

	if (n >= most)
		return n;
	new = rd_new(sk, rs, most - n);
	n += new;
	if (n < most)
		n += rd_unwritten(sk, rs, new);
	if (first && first->waiting && n < most)
		n += first->waiting(sk, &rs->gs, most - n);
	return n;
}

/* Has the application limited the pacing rate (SO_MAX_PACING_RATE)? */
static bool rd_is_paced(const struct sock *sk)
{
	return READ_ONCE(sk->sk_pacing_rate) != ~0UL;
}

/* Time for which a paced connection requests credits, ns.  It requests more when half of that is
 * left (rd_needs_request()): twice the time until a credit arrives.  With two in place of four a
 * limit of half of the link gave 0.90 of that limit at 10 Gbit/s and 20 us.
 */
static u64 rd_ahead_ns(const struct sock *sk, const struct rd_sock *rs)
{
	return 4 * (rd_rtt_ns(sk) + rs->wait);
}

/* Number of packets that the pacing rate permits in that time; TCP schedules the next one. */
static u32 rd_permitted(const struct sock *sk, const struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now, begin, end, bytes, rate;

	if (!rd_is_paced(sk))
		return U32_MAX;
	now = ktime_get_ns();
	begin = max(now, tp->tcp_wstamp_ns);
	end = now + rd_ahead_ns(sk, rs);
	if (begin > end)
		return 0;
	rate = min_t(u64, READ_ONCE(sk->sk_pacing_rate), RD_RATE_MAX);
	bytes = mul_u64_u64_div_u64(end - begin, rate, NSEC_PER_SEC);
	return min_t(u64, 1 + div_u64(bytes, tp->mss_cache), RD_TOKENS_MAX);
}

/* Number of packets that a burst may still send, and for which no credits are requested. */
static u32 rd_unasked(const struct sock *sk, struct rd_sock *rs)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;

	return first && rd_is_exact(rd_transport(rs)->policy) ? first->allow(sk, &rs->gs) : 0;
}

/* Number of packets that wait for a credit, within the limit of the pacing rate; @most stands for
 * @most or more.
 */
static u32 rd_waiting(const struct sock *sk, struct rd_sock *rs, u32 most)
{
	u32 permitted = rd_permitted(sk, rs), had = rs->tokens + rd_unasked(sk, rs), n;

	if (permitted <= had)
		return 0;
	most = min_t(u64, (u64)most + had, permitted);
	n = min(rd_backlog(sk, rs, most), permitted);
	return n - min(n, had);
}

/* The period of reports, ns: a round trip.  On a busy link, where a round trip has no credit, a
 * sender would report with each credit; the reports of all senders would take more of the link
 * than their credits leave free.
 */
static u64 rd_round_ns(const struct sock *sk, const struct rd_sock *rs)
{
	u64 rare = rs->busy ? RD_REPORT * (u64)rs->wait : 0;

	/* No credit is lost, so a report only shows that the sender exists. */
	if (rd_transport(rs)->policy->cumulative)
		rare = max(rare, RD_ALIVE_NS);
	return max(rd_rtt_ns(sk), rare);
}

/* A port that shapes credits drops several of one sender in a row, while those of others pass: the
 * wait doubles with each second request.  No port shapes cumulative credits.
 */
static u32 rd_doublings(const struct rd_sock *rs)
{
	return rd_transport(rs)->policy->cumulative ? rs->retries : rs->retries / 2;
}

/* The longest time before a request is repeated, ns. */
#define RD_RETRY_MAX	(1ULL * NSEC_PER_SEC)

/* Time to wait for a credit before the request is repeated, ns. */
static u32 rd_retry_ns(const struct sock *sk, const struct rd_sock *rs)
{
	u64 wait = (u64)rs->wait * (rs->busy ? RD_RETRY_WAITS_BUSY : RD_RETRY_WAITS);
	u64 ns = max3(RD_RETRY_NS, 4 * rd_rtt_ns(sk), wait);

	return min(ns << rd_doublings(rs), RD_RETRY_MAX);
}

/* Repeat the request if no credit arrives for long enough. */
static void rd_arm_retry(struct sock *sk, struct rd_sock *rs, u64 now)
{
	u32 wait = rd_retry_ns(sk, rs);

	rs->retry = now + wait;
	rd_alarm_set(rs->r.queue, &rs->alarm, now + wait);
}

/* Lost packets wait for the receiver for this time, ms, before TCP's timer counts: twice the
 * longest wait that it can advertise.
 */
#define RD_POSTPONED	(2 * (u32)(RD_WAIT_MAX / NSEC_PER_MSEC))

/**
 * rd_postpone_rto() - TCP may have armed its timer
 * @sk: the connection
 * @rs: its state
 *
 * Lost packets wait for credits, and no packet is in flight that the timer could find lost: it
 * would send one of them without a credit.  It begins anew when the request would be repeated, so
 * TCP repairs the loss if the receiver does not answer.  A peer that answers, but sends no credits,
 * postpones it by RD_POSTPONED or TCP_USER_TIMEOUT at most.
 */
void rd_postpone_rto(struct sock *sk, struct rd_sock *rs)
{
	const struct inet_connection_sock *icsk = inet_csk(sk);
	u32 most = READ_ONCE(icsk->icsk_user_timeout);
	const struct tcp_sock *tp = tcp_sk(sk);
	s64 left;

	if (!rs->requesting || rs->retries || !tp->lost_out || tcp_packets_in_flight(tp) ||
	    icsk->icsk_retransmits)
		return;
	/* The peer has dropped a packet that it had SACKed: TCP's timer for that is a short one. */
	if (TCP_SKB_CB(tcp_rtx_queue_head(sk))->sacked & TCPCB_SACKED_ACKED)
		return;
	most = min(most ?: U32_MAX, RD_POSTPONED);
	left = tcp_skb_timestamp_us(tcp_rtx_queue_head(sk)) + most * USEC_PER_MSEC - tcp_clock_us();
	if (left <= 0)
		return;
	left = min_t(u64, left * NSEC_PER_USEC, rd_retry_ns(sk, rs));
	inet_csk_reset_xmit_timer(sk, ICSK_TIME_RETRANS, icsk->icsk_rto + nsecs_to_jiffies(left),
				  TCP_RTO_MAX);
}

/* The time at which a connection without a request has to send one: RD_NEVER, unless the pacing
 * rate holds back data.
 */
static u64 rd_resume_ns(const struct sock *sk, struct rd_sock *rs)
{
	u64 at = tcp_sk(sk)->tcp_wstamp_ns, ahead = rd_ahead_ns(sk, rs);

	if (!rd_is_paced(sk) || rs->tokens || !rd_backlog(sk, rs, 1))
		return RD_NEVER;
	return at - min(at, ahead);
}

/* A connection has no request.  If the pacing rate holds back its data, the alarm kicks when it
 * permits a request.  Return: false if it permits one now.
 */
static bool rd_awaits_pace(struct sock *sk, struct rd_sock *rs, u64 now)
{
	u64 at = rd_resume_ns(sk, rs);

	if (at <= now)
		return false;
	if (at != RD_NEVER && rs->r.queue)
		rd_alarm_set(rs->r.queue, &rs->alarm, at);
	return true;
}

/* Number of unused credits that precede their reports: the receiver counts them as sent. */
static u32 rd_kept_early(const struct sock *sk, const struct rd_sock *rs)
{
	return rd_transport(rs)->policy->trims && !rd_is_paced(sk) ? rs->tokens : 0;
}

/* Data that is sent, as the receiver sees it by the sequence number of a request, is not all data
 * that arrives without a new credit: a burst sends more, and lost packets do not arrive.  Packets.
 */
static s32 rd_beyond(const struct sock *sk, struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return rd_unasked(sk, rs) - (tp->lost_out - min(tp->lost_out, tp->retrans_out));
}

/* The fourth word of a request. */
static u32 rd_account_word(const struct sock *sk, struct rd_sock *rs)
{
	const struct rd_policy *policy = rd_transport(rs)->policy;
	u32 named = policy->trims ? policy->trims(rs)->named : 0;
	u16 beyond = clamp(rd_beyond(sk, rs), S16_MIN, S16_MAX);

	return FIELD_PREP(RD_NAMED, named) | FIELD_PREP(RD_BEYOND, beyond);
}

/* The minimum RTT, in the third word of a request.  A receiver that sends no data has no sample
 * after the handshake, which ARP or a queue may have delayed.  TCP's samples of retransmissions
 * have time stamps of milliseconds, rounded down: a minimum of a millisecond or more may be too
 * short.
 */
static u32 rd_rtt_word(const struct sock *sk, const struct rd_sock *rs)
{
	u32 us = tcp_min_rtt(tcp_sk(sk));

	if (!rd_transport(rs)->policy->grants || us >= USEC_PER_MSEC)
		return 0;
	return FIELD_PREP(RD_RTT, us);
}

/* Has a burst ended with a probe?  See struct rd_first_rtt. */
static bool rd_probes(struct sock *sk, struct rd_sock *rs, u32 *word)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;

	return first && first->probe && first->probe(sk, &rs->gs, word);
}

/* The probe is repeated until this number of answers has arrived.  If a process owned the socket,
 * TCP has processed the first answer before this end can have it mark the losses.  More would keep
 * TCP's timer from expiring where the path drops all repairs, as they are too large.
 */
#define RD_ANSWERS		2

/* Does the sender wait for the end of a burst after its probe, as for credits?  It requests no
 * credits for the burst, so only the answer shows which of its last packets are lost.
 */
static bool rd_is_probing(const struct sock *sk, const struct rd_sock *rs)
{
	return rs->first.probed && rd_is_exact(rd_transport(rs)->policy) &&
	       before(tcp_sk(sk)->snd_una, rs->first.end);
}

/* Nothing waits for a credit. */
static void rd_rest(struct sock *sk, struct rd_sock *rs, u64 now)
{
	rs->requesting = 0;
	if (rd_is_probing(sk, rs))
		rd_arm_retry(sk, rs, now);
	else
		rd_alarm_set(rs->r.queue, &rs->alarm, rd_resume_ns(sk, rs));
}

/* Send a request, report or stop.  All three have the same format: the credits that have arrived,
 * and the number of packets that wait.
 */
static void rd_send_request(struct sock *sk, struct rd_sock *rs, u32 flags)
{
	u32 waiting = min_t(u32, rd_waiting(sk, rs, U32_MAX), FIELD_MAX(RD_WANT));
	u32 word[GL_WORDS_MAX] = { rs->seq, rs->received,
				   waiting | rd_rtt_word(sk, rs) | flags };
	enum rd_kind kind = RD_REQUEST;
	u64 now = ktime_get_ns();
	unsigned int words = 3;

	if (rd_probes(sk, rs, &word[3])) {
		kind = RD_PROBE;
		words = 4;
		rs->first.probed = rs->first.probed ?: RD_ANSWERS;
		rd_count(rs, RD_PROBESENT, 1);
	} else if (rd_is_exact(rd_transport(rs)->policy)) {
		word[words++] = rd_account_word(sk, rs);
	}
	rd_follow(sk, rs);
	rd_expand_sndbuf(sk, rs);
	/* A wait that the receiver has advertised before a pause is out of date. */
	if (!rs->requesting)
		rs->wait = 0;
	rs->reported_at = now;
	rs->shut -= !!rs->shut;
	rs->credit_end = rs->seq + waiting - rd_kept_early(sk, rs);
	if (waiting) {
		rs->requesting = 1;
		rs->requested = 1;
		rd_arm_retry(sk, rs, now);
	} else {
		rd_rest(sk, rs, now);
	}
	rd_count(rs, RD_REQUESTSENT, 1);
	gl_send_words(sk, &rs->gs, rd_kind(&rs->gs, kind), word, words);
}

/* Must more data be requested now?  True if the receiver would otherwise have no credits to send
 * before the next report.  An unscheduled burst in progress can wait: a request follows its last
 * packet.  A paced connection requests when half of its credits are left.
 */
static bool rd_needs_request(struct sock *sk, struct rd_sock *rs)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;
	u32 left = rs->credit_end - rs->seq, more = left + 1;

	if (!rs->requesting)
		return rd_waiting(sk, rs, 1);
	if ((s32)left >= RD_FEW || (first && first->allow(sk, &rs->gs)))
		return false;
	if (rd_is_paced(sk))
		more += rd_permitted(sk, rs) / 2;
	return rd_waiting(sk, rs, more) >= more;
}

/* Let TCP send @more packets.  The window may become 0, which tcp_snd_cwnd_set() does not allow; 0
 * is correct here: no packet may leave.
 */
static void rd_set_window(struct sock *sk, u32 more)
{
	struct tcp_sock *tp = tcp_sk(sk);

	WRITE_ONCE(tp->snd_cwnd, tcp_packets_in_flight(tp) + more);
}

/**
 * rd_keep() - set the pacing rate and MTU probing, which TCP and setsockopt() change
 * @sk: the connection, locked
 *
 * Pacing rate: the receiver paces credits, so only the application's limit applies, which may have
 * been raised since (SO_MAX_PACING_RATE).  TCP leaves the rate to a congestion control with
 * cong_control(); without this function the rate of the handshake would stay.
 *
 * MTU probing: an RTO on a path that drops large packets enables it, which lowers the MSS.  To
 * probe for a larger MSS, TCP would wait for a window that it never has: end the search.
 */
void rd_keep(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	unsigned long rate = READ_ONCE(sk->sk_max_pacing_rate);

	if (READ_ONCE(sk->sk_pacing_rate) != rate)
		WRITE_ONCE(sk->sk_pacing_rate, rate);
	if (icsk->icsk_mtup.enabled)
		icsk->icsk_mtup.search_high = icsk->icsk_mtup.search_low;
}

static void rd_waste(struct rd_sock *rs, u32 kept)
{
	if (rs->tokens <= kept)
		return;
	rd_count(rs, RD_CREDITWASTED, rs->tokens - kept);
	trace_greenlane_waste(rs->gs.sk, tcp_sk(rs->gs.sk)->snd_nxt, rs->tokens - kept);
	rs->tokens = kept;
}

/* Set the window just before TCP reads it. */
static void rd_gate(struct sock *sk, struct rd_sock *rs)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;
	const struct sk_buff *head = tcp_send_head(sk);
	u32 more = 0;

	if (!rs->spending) {
		/* No report is missing any more. */
		if (!tcp_sk(sk)->packets_out && !rd_is_paced(sk))
			rd_waste(rs, 0);
		if (first && rd_waiting(sk, rs, 1))
			first->begin(sk, &rs->gs, rs->requesting);
		if (rd_needs_request(sk, rs) || rd_probes(sk, rs, NULL))
			rd_send_request(sk, rs, 0);
		/* After a burst, for which no credits are requested; fq gives TCP no timer. */
		else if (rd_is_paced(sk) && !rs->requesting && !rd_is_probing(sk, rs))
			rd_awaits_pace(sk, rs, ktime_get_ns());
		if (first)
			more = first->allow(sk, &rs->gs);
	}
	more += rs->tokens;
	if (head && !head->len)
		more++;
	rd_set_window(sk, more);
}

/**
 * rd_min_tso_segs() - tcp_congestion_ops' min_tso_segs()
 * @sk: the connection
 *
 * Return: 1.
 */
u32 rd_min_tso_segs(struct sock *sk)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	if (gs) {
		rd_keep(sk);
		rd_gate(sk, rd_sock(gs));
		/* A credit permits one packet; TCP must not defer to fill a larger skb. */
		sk->sk_gso_max_segs = 1;
	}
	return 1;
}

/* Data was sent by a credit: reserve link time for its ACK, and for the credit if the receivers of
 * this end's link do not (struct rd_policy's @trims).
 */
static void rd_make_room(const struct sock *sk, struct rd_sock *rs)
{
	u64 ns = rd_packet_ns(sk, rs, tcp_sk(sk)->tcp_header_len);

	if (rd_transport(rs)->policy->trims)
		ns += rd_packet_ns(sk, rs, RD_CREDIT_HLEN);
	rd_yield(rs->r.queue, ktime_get_ns(), ns, RD_YIELDED * ns);
}

/**
 * rd_on_xmit() - gl_transport's on_xmit()
 * @sk: the connection
 * @gs: its state
 * @seg: the packet
 *
 * Data leaves.  If there is no credit, this is an RTO, a loss probe or a window probe: TCP sends
 * those without reading its window.  A switch protects such a packet, as the others that repair a
 * loss: if it dropped the packets of many senders, whose timers have expired at the same tick, all
 * would be dropped again at each of their later RTOs.
 *
 * Return: its kind.
 */
const struct gl_kind *rd_on_xmit(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	struct rd_sock *rs = rd_sock(gs);

	if (rs->tokens < seg->segs) {
		rd_count(rs, RD_UNCREDITED, seg->segs);
	} else {
		rs->tokens -= seg->segs;
		rd_make_room(sk, rs);
	}
	return rd_kind(gs, RD_SCHEDULED);
}
EXPORT_SYMBOL_GPL(rd_on_xmit);

/* Does TCP's pacing hold back packets?  The connection keeps credits for them, and TCP's timer
 * sends them.
 */
static bool rd_is_held(const struct sock *sk, struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return rd_is_paced(sk) && tcp_needs_internal_pacing(sk) &&
	       tp->tcp_wstamp_ns > tp->tcp_clock_cache &&
	       rd_backlog(sk, rs, rs->tokens) >= rs->tokens;
}

/* Number of credits that may precede the reports of the packets that they are for: while a process
 * owns the socket, reports wait.  They name packets in flight only.
 */
static u32 rd_early(const struct sock *sk, const struct rd_sock *rs)
{
	return rd_is_exact(rd_transport(rs)->policy) ? tcp_packets_in_flight(tcp_sk(sk)) : 0;
}

/* Number of unused credits that the connection keeps: credits that its pace holds back, or credits
 * beyond the requested ones that precede their reports.
 */
static u32 rd_kept(const struct sock *sk, struct rd_sock *rs)
{
	s32 more = rs->seq - rs->credit_end;

	if (rd_is_held(sk, rs))
		return rs->tokens;
	return min3((u32)max(more, 0), rd_early(sk, rs), (u32)rs->tokens);
}

/* Spend @n credits: on retransmissions if any wait, otherwise on new data. */
static void rd_spend(struct sock *sk, struct rd_sock *rs, u32 n)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;
	u32 had = rs->tokens, kept;

	if (first)
		first->credited(sk, &rs->gs);
	rs->spending = 1;
	rs->tokens = min_t(u32, rs->tokens + n, RD_TOKENS_MAX);
	rd_set_window(sk, rs->tokens);
	gl_xmit(sk);
	if (rs->tokens > had && first && first->spend && first->spend(sk, &rs->gs)) {
		rd_set_window(sk, rs->tokens);
		gl_xmit(sk);
	}
	rs->spending = 0;
	kept = rs->tokens ? rd_kept(sk, rs) : 0;
	if (rs->tokens > kept) {
		rd_waste(rs, kept);
		if (after(gl_data_end(sk), tcp_wnd_end(tcp_sk(sk))))
			rs->shut = RD_SHUT_REQUESTS;
	}
	rd_set_window(sk, 0);
}

/* Nothing waits.  The receiver has to know, unless it has no credit left to send either: it counts
 * the packets that need one as this end does.
 */
static void rd_stop(struct sock *sk, struct rd_sock *rs)
{
	if (!rd_is_exact(rd_transport(rs)->policy) || after(rs->credit_end, rs->seq))
		rd_send_request(sk, rs, 0);
	else
		rd_rest(sk, rs, ktime_get_ns());
}

/* Accept each credit once, and in any order within RD_WINDOW: the path reorders credits, or the
 * backlog of a socket that a process owns.  The bitmap is the anti-replay window of RFC 4303.
 */
static bool rd_is_fresh(struct rd_sock *rs, u32 seq)
{
	u32 ahead = seq - rs->seq, behind = rs->seq - seq;

	if ((s32)ahead > 0) {
		if (ahead > RD_SEQ_AHEAD)
			return false;
		rs->seen_seq = ahead < RD_WINDOW ? rs->seen_seq << ahead | 1 : 1;
		rs->seq = seq;
		return true;
	}
	if (behind >= RD_WINDOW || rs->seen_seq & BIT(behind))
		return false;
	rs->seen_seq |= BIT(behind);
	return true;
}

/* Number of credits that a credit stands for; 0 for one that arrives twice, or is forged.  A
 * cumulative credit that has been overtaken was already spent, and one with a forged number permits
 * no more than the sender may expect.
 */
static u32 rd_fresh(const struct sock *sk, struct rd_sock *rs, u32 seq)
{
	u32 ahead = seq - rs->seq, expected = max_t(s32, rs->credit_end - rs->seq, 0);

	if (!rd_transport(rs)->policy->cumulative)
		return rd_is_fresh(rs, seq);
	if (!ahead || ahead > RD_SEQ_AHEAD)
		return 0;
	rs->seq = seq;
	return min(ahead, max(expected + rd_early(sk, rs), 1U));
}

/* Is the "request accepted" current?  Not if a credit that was sent later has arrived. */
static bool rd_is_current(const struct rd_sock *rs, u32 seq)
{
	return seq - rs->seq <= RD_SEQ_AHEAD;
}

static void rd_set_wait(struct rd_sock *rs, u32 word)
{
	rs->wait = min_t(u32, word & ~(RD_ACCEPTED | RD_BUSY | RD_CLOSED | RD_LEVEL), RD_WAIT_MAX);
	rs->busy = !!(word & RD_BUSY);
}

/**
 * rd_credited() - a credit has arrived, or "request accepted" or "closed" in its place
 * @sk: the connection
 * @rs: its state
 * @seg: the packet
 */
void rd_credited(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg)
{
	bool accepted = seg->words > 1 && seg->word[1] & RD_ACCEPTED;
	u64 now = ktime_get_ns();
	bool waiting;
	u32 n = 0;

	if (accepted && seg->word[1] & RD_CLOSED) {
		rs->closed = 1;
		gl_kick(sk, &rs->gs);
		return;
	}
	/* The first pull may precede its report, which is held while a process owns the socket. */
	if (seg->words && (rs->requested || rd_is_exact(rd_transport(rs)->policy)))
		n = accepted ? rd_is_current(rs, seg->word[0]) :
			       rd_fresh(sk, rs, seg->word[0]);
	if (!n) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	rd_set_wait(rs, seg->words > 1 ? seg->word[1] : 0);
	rs->retries = 0;
	rs->alive = 0;
	if (accepted) {
		if (rs->requesting || rd_is_probing(sk, rs))
			rd_arm_retry(sk, rs, now);
		return;
	}
	/* The peer may permit data before this end has requested, or sent, any. */
	if (!rs->r.queue)
		rd_follow(sk, rs);
	rs->received += n;
	rd_count(rs, RD_CREDITRECEIVED, n);
	trace_greenlane_credited(sk, seg->word[0], n);

	rd_spend(sk, rs, n);
	waiting = rd_waiting(sk, rs, 1);
	if (!waiting && rs->requesting)
		rd_stop(sk, rs);
	else if ((u32)now - rs->reported_at >= rd_round_ns(sk, rs))
		rd_send_request(sk, rs, 0);
	else if (waiting)
		rd_arm_retry(sk, rs, now);
}

/**
 * rd_named() - gl_transport's on_named(): a report of a trimmed packet has arrived
 * @sk: the connection, locked and not owned by a process, BH off
 * @gs: its state
 * @number: of the report
 *
 * The receiver permits the repair without a request, also those that earlier reports named which
 * were lost.
 */
void rd_named(struct sock *sk, struct gl_sock *gs, u16 number)
{
	struct rd_sock *rs = rd_sock(gs);
	struct rd_trims *trims = rd_transport(rs)->policy->trims(rs);
	s16 n = number - trims->named;

	/* An old one, or a forged one: TCP has not that many packets in flight. */
	if (n <= 0 || n > RD_TOKENS_MAX)
		return;
	trims->named = number;
	rs->requesting = 1;
	rs->requested = 1;
	rs->credit_end += n;
	rd_follow(sk, rs);
	rd_arm_retry(sk, rs, ktime_get_ns());
}

/**
 * rd_fall_back() - continue as plain TCP
 * @sk: the connection, not owned by a process, BH off
 * @rs: its state, which this frees
 *
 * The peer has stopped sending credits, or the path drops or re-marks them.
 */
void rd_fall_back(struct sock *sk, struct rd_sock *rs)
{
	const struct tcp_congestion_ops *fallback = rd_transport(rs)->fallback;

	gl_inc_stats(sock_net(sk), GL_MIB_FALLBACK);
	trace_greenlane_fallback(sk, tcp_sk(sk)->snd_una, 1);
	gl_detach(sk);
	gl_fall_back(sk, fallback);
	gl_xmit(sk);
}

/* Send a packet without a credit: a listener with TCP_DEFER_ACCEPT drops requests until data
 * arrives.
 */
static void rd_send_uncredited(struct sock *sk, struct rd_sock *rs)
{
	rs->spending = 1;
	rs->tokens = 1;
	gl_xmit(sk);
	rs->spending = 0;
	rd_count(rs, RD_UNCREDITED, !rs->tokens);
	rs->tokens = 0;
	rd_set_window(sk, 0);
}

/* No credit has arrived for too long: the request or all credits were lost.  Repeat the request.
 *
 * Return: false if the connection should fall back: several requests in a row brought no credit
 * although the peer acknowledged data that TCP's timers sent.  In an outage the peer acknowledges
 * no data, and the sender keeps trying.
 */
static bool rd_retry(struct sock *sk, struct rd_sock *rs)
{
	const struct rd_first_rtt *first = rd_transport(rs)->first;
	u32 una = tcp_sk(sk)->snd_una, doublings = rd_doublings(rs);
	bool waiting = rd_waiting(sk, rs, 1);

	if (!waiting && !rd_is_probing(sk, rs)) {
		if (first)
			first->credited(sk, &rs->gs);
		rd_send_request(sk, rs, RD_AGAIN);
		return true;
	}
	if (waiting && doublings >= RD_DOUBLINGS_MIN) {
		if (rs->alive == RD_ALIVE)
			return false;
		rs->alive += una != rs->una;
	}
	rs->una = una;
	/* Alternate between probe and plain request, and finally send requests only:
	 * a device that drops this probe may drop every probe.
	 */
	if (first && !(rs->retries & 1) && doublings < RD_DOUBLINGS_MAX)
		first->lost(sk, &rs->gs);
	rd_count(rs, RD_REQUESTRETRIED, 1);
	rs->retries += doublings < RD_DOUBLINGS_MAX;
	rd_send_request(sk, rs, RD_AGAIN);
	if (waiting && !tcp_sk(sk)->data_segs_out && doublings >= RD_DOUBLINGS_DATA)
		rd_send_uncredited(sk, rs);
	return true;
}

/**
 * rd_sender_kicked() - the alarm has expired, or TCP has processed a packet
 * @sk: the connection, not owned by a process, BH off
 * @rs: its state, which is freed if the connection falls back
 * @now: ns
 */
void rd_sender_kicked(struct sock *sk, struct rd_sock *rs, u64 now)
{
	bool probing = rd_is_probing(sk, rs);
	u32 left = rs->retry - (u32)now;

	rd_postpone_rto(sk, rs);
	if (!rs->requesting && !probing) {
		/* When TCP tries to send, rd_gate() requests credits. */
		if (!rd_awaits_pace(sk, rs, now))
			gl_xmit(sk);
		return;
	}
	/* All of a burst has arrived, so no credit will arrive that would end the request. */
	if (!probing && rs->credit_end == rs->seq && !rd_waiting(sk, rs, 1))
		rd_stop(sk, rs);
	/* A time further ahead than any wait is past: a process has owned the socket. */
	else if (left && left <= RD_RETRY_MAX)
		rd_alarm_set(rs->r.queue, &rs->alarm, now + left);
	else if (!rd_retry(sk, rs))
		rd_fall_back(sk, rs);
}

/* --- unscheduled packets ---------------------------------------------------- */

/**
 * rd_first_counted() - the receiver has counted the packets of the burst that arrived
 * @gs: the state of a connection, locked
 *
 * It sends no credits for these packets, so the sender no longer expects the requested credits.
 */
void rd_first_counted(struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);

	rs->credit_end = rs->seq;
	rs->retries = 0;
	rs->alive = 0;
	rs->first.probed -= !!rs->first.probed;
}
EXPORT_SYMBOL_GPL(rd_first_counted);
