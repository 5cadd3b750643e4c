// SPDX-License-Identifier: GPL-2.0
/* TLT: timeout-less transport
 *
 *	Hwijoon Lim, Wei Bai, Yibo Zhu, Youngmok Jung, Dongsu Han:
 *	"Towards Timeout-less Transport in Commodity Datacenter Networks",
 *	EuroSys 2021
 *
 * TCP waits for a timer only if no ACK arrives: when the tail of a window,
 * a whole window or a retransmission is lost.  So one packet in flight of
 * every flow is *important*, and the switch drops the others first (sch_color).
 * The important packet arrives, its ACK arrives, and the ACK clock continues:
 *
 *	sender                        switch                  receiver
 *	d d d d d d d d d I   ----->  x x x x d d I   ----->  d d I
 *	                                                      | at once
 *	all before I not acked: lost  <-------------------    echo
 *	the next packet is I
 *
 * If that echo permits TCP to send, the next packet is important.  If TCP may
 * not send (window closed, no data), TLT sends a *clock* beyond the window: an
 * MSS of lost data, or else a single byte, which the receiver answers and
 * drops.  The sender has three states:
 *
 *	           burst begins                      echo
 *	ARMED_LAST -------------> tag its last  -> WAITING -> ARMED_NEXT
 *	   ^                      packet             ^            |
 *	   |                                         |            v
 *	   +--- nothing is in flight                 +--- tag the next packet,
 *	                                                  or send a clock
 *
 * A connection has at most one important packet in flight, so a thousand flows
 * fit below the switch's limit.
 *
 * More flows than that wait between an echo and the next important packet: tlt_crowd.c.
 *
 * A base with a rate instead of a window (dcqcn) sends by timers, without
 * waiting for ACKs, and other packets are important (§5.2): the last of a message,
 * the first and the last of each round of retransmissions, and one in 96 besides (tlt_every).
 *
 * TLT changes no congestion control, it is built around one: tlt_reno,
 * tlt_cubic, tlt_dctcp, tlt_dcqcn and tlt_bbr are clones of their bases with three
 * more callbacks.  tlt_dart and tlt_hpcc are built around a transport: dart decides the
 * rate, hpcc the window, TLT decides which packets are important.  aeolus_reno, aeolus_cubic and
 * aeolus_dctcp are TLT with a first round trip at line rate: tlt_burst.c.
 *
 * Documentation/tlt.rst lists, rule by rule, the differences from the paper and
 * from the authors' code, and the reasons.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/greenlane.h>
#include <net/link_speed.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>

#include "tlt_burst.h"
#include "tlt_crowd.h"

/**
 * struct tlt - TLT's part of a connection: the sender's state (§5.1, Algorithm 1)
 * @n: counters that struct greenlane_info reports
 * @dups: tp->dsack_dups (segments that were D-SACKed) at the last timeout
 * @retrans: tp->total_retrans (segments that were retransmitted) at the last timeout
 * @imp_end: end of the important packet in flight, sequence number; if it is a clock, end of
 *	the first byte that TCP sends after it
 * @echo_us: arrival of the last echo, TCP's clock, us, low 16 bits
 * @first: departure of the first of the last @clocks clocks, TCP's clock, units of 16 us, low 16
 *	bits
 * @imp_us: departure of the important packet, TCP's clock, us, low 32 bits
 * @lost: tp->lost (packets found lost) when the echo arrived, low 16 bits
 * @rtt: if TCP does not pace, the minimum RTT to which tlt_order() has lowered TCP's, us, low 16
 *	bits
 * @since: if the base has a rate, and so paces, data packets since the last important one, at most
 *	U16_MAX
 * @state: enum greenlane_state
 * @clock: the important packet in flight is a clock
 * @counting: @lost is set; the next kick counts the packets that the echo found lost
 * @accused: TCP has retransmitted a packet that an echo, or the duplicate threshold of one,
 *	found lost; cleared by a timeout
 * @chatty: within GL_SOON_NS of an echo, while a clock was in flight, the application sent new data
 *	or an ACK acknowledged all data, so the next clock can wait
 * @reordered: the path reorders packets: TCP or TLT has detected it, and it is counted
 * @ended: @end is set
 * @refused: consecutive packets, at most TLT_REFUSED_MAX, that the host has not sent
 * @ahead: by how much it has, us, at most TLT_AHEAD_MAX
 * @idle: consecutive clocks, at most TLT_IDLE_CLOCKS_MAX, while no packet was delivered
 * @clocks: number of the last clocks whose answers count, at most TLT_CLOCKS_MAX: more than one if
 *	a clock was late, and another one has replaced it
 * @delivered: tp->delivered (packets) when the last clock was due, low 16 bits
 * @left_us: departure of the last data packet or clock, TCP's clock, us, low 16 bits
 * @left_end: the highest end of a packet that left in that microsecond, sequence number
 * @end: if the base has a rate, end of the last message whose last packet was important, sequence
 *	number
 * @crowd: if the base has a window, its part in a crowd
 *
 * All fields: socket lock.
 */
struct tlt {
	struct {
		u32	important;
		u32	echoes;
		u32	clocks_byte;
		u32	clocks_mss;
		u32	marked_lost;
		u32	rearmed;
	} n;
	u32	dups;
	u32	retrans;
	/* the fields from here on are cleared when marking begins or ends */
	u32	imp_end;
	u16	echo_us;
	u16	first;
	u32	imp_us;
	u16	lost;
	union {
		u16	rtt;
		u16	since;
	};
	u8	state:2,
		clock:1,
		counting:1,
		accused:1,
		chatty:1,
		reordered:1,
		ended:1;
	u8	refused;
	u16	ahead:4,
		idle:5,
		clocks:7;
	u16	delivered;
	u16	left_us;
	u32	left_end;
	union {
		u32	end;
		struct tlt_crowd crowd;
	};
};

/**
 * struct tlt_transport - a form of TLT
 * @t: the transport
 * @bursts: the first round trip is at line rate; a struct tlt_burst follows a connection's struct
 *	tlt
 */
struct tlt_transport {
	struct gl_transport	t;
	bool			bursts;
};

static bool tlt_bursts(const struct gl_transport *t)
{
	return container_of(t, struct tlt_transport, t)->bursts;
}

static struct tlt *tlt_of(const struct gl_sock *gs)
{
	return (void *)gs + gs->transport->part;
}

/* NULL for a form without bursts. */
static struct tlt_burst *tlt_burst_of(const struct gl_sock *gs)
{
	return tlt_bursts(gs->transport) ? (void *)(tlt_of(gs) + 1) : NULL;
}

enum tlt_counter {
	TLT_DATASENT = 1,
	TLT_DATABYTES,
	TLT_IMPORTANTSENT,
	TLT_IMPORTANTBYTES,
	TLT_ECHOSENT,
	TLT_ECHORECEIVED,
	TLT_CLOCKBYTESENT,
	TLT_CLOCKMSSSENT,
	TLT_CLOCKBYTES,
	TLT_CLOCKRECEIVED,
	TLT_CLOCKECHOSENT,
	TLT_CLOCKECHORECEIVED,
	TLT_CLOCKECHOCONSUMED,
	TLT_LOSSBYECHO,
	TLT_REARMEDBYRTO,
	TLT_REORDERED,
	TLT_CROWDWAITS,
	TLT_ECHOESLATE,
	TLT_BURSTSENT,
	TLT_BURSTBYTES,
	TLT_COUNTERS,
};

static const char * const tlt_counter_name[TLT_COUNTERS] = {
	[TLT_DATASENT]		= "DataSent",
	[TLT_DATABYTES]		= "DataSentBytes",
	[TLT_IMPORTANTSENT]	= "ImportantSent",
	[TLT_IMPORTANTBYTES]	= "ImportantSentBytes",
	[TLT_ECHOSENT]		= "EchoSent",
	[TLT_ECHORECEIVED]	= "EchoReceived",
	[TLT_CLOCKBYTESENT]	= "ClockByteSent",
	[TLT_CLOCKMSSSENT]	= "ClockMssSent",
	[TLT_CLOCKBYTES]	= "ClockSentBytes",
	[TLT_CLOCKRECEIVED]	= "ClockReceived",
	[TLT_CLOCKECHOSENT]	= "ClockEchoSent",
	[TLT_CLOCKECHORECEIVED]	= "ClockEchoReceived",
	[TLT_CLOCKECHOCONSUMED]	= "ClockEchoConsumed",
	[TLT_LOSSBYECHO]	= "LossByEcho",
	[TLT_REARMEDBYRTO]	= "RearmedByRto",
	[TLT_REORDERED]		= "Reordered",
	[TLT_CROWDWAITS]	= "CrowdWaits",
	[TLT_ECHOESLATE]	= "EchoesLate",
	[TLT_BURSTSENT]		= "BurstSent",
	[TLT_BURSTBYTES]	= "BurstSentBytes",
};

/* The kinds of packets (§5.1, Appendix A).  A switch drops TLT_DATA first, the others last. */
enum tlt_kind {
	TLT_DATA,		/* unimportant data */
	TLT_IMPORTANT,		/* important data */
	TLT_CLOCK,		/* data sent only to keep the ACK clock alive */
	TLT_CLOCK_ECHO,		/* the answer to a clock */
	TLT_CONTROL,		/* pure ACK, FIN, RST; also SYN and SYN-ACK */
	TLT_UNSCHEDULED,	/* data beyond TCP's window (Aeolus) */
	TLT_IMPORTANT_LAST,	/* important data behind it */
	TLT_KINDS,
};

static struct gl_protocol tlt_protocol;

static const struct gl_kind tlt_kind[TLT_KINDS] = {
	[TLT_DATA] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_DROPPABLE,
		.sent		= TLT_DATASENT,
		.bytes		= TLT_DATABYTES,
	},
	[TLT_IMPORTANT] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.flags		= GL_KIND_PROMPT,
		.before		= &tlt_kind[TLT_DATA],
		.sent		= TLT_IMPORTANTSENT,
		.bytes		= TLT_IMPORTANTBYTES,
		.received	= TLT_ECHOSENT,
	},
	[TLT_CLOCK] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_CLOCK,
		.flags		= GL_KIND_DATA | GL_KIND_ANSWERED,
		.received	= TLT_CLOCKRECEIVED,
	},
	[TLT_CLOCK_ECHO] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_CLOCK_ECHO,
		.flags		= GL_KIND_TCPS | GL_KIND_SACK,
		.sent		= TLT_CLOCKECHOSENT,
		.received	= TLT_CLOCKECHORECEIVED,
	},
	[TLT_CONTROL] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED,
	},
	[TLT_UNSCHEDULED] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.sent		= TLT_BURSTSENT,
		.bytes		= TLT_BURSTBYTES,
	},
	/* A receiver takes it for TLT_IMPORTANT. */
	[TLT_IMPORTANT_LAST] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.before		= &tlt_kind[TLT_UNSCHEDULED],
		.sent		= TLT_IMPORTANTSENT,
		.bytes		= TLT_IMPORTANTBYTES,
	},
};

static struct gl_protocol tlt_protocol __read_mostly = {
	.hello		= GL_CODE_TLT,
	.told_as	= GL_CP_PROTECTED,
	.kind		= tlt_kind,
	.kinds		= TLT_KINDS,
	.control	= &tlt_kind[TLT_CONTROL],
	.answer		= &tlt_kind[TLT_CLOCK_ECHO],
	.counter	= tlt_counter_name,
	.counters	= TLT_COUNTERS,
};

/* TLT around dart.  The protocol has all kinds of TLT and of dart, and two more: data that ends a
 * message, important or not.  The data itself must signal the end to dart's receiver, because TCP
 * retransmits lost data.  Both kinds are counted as TLT's data.
 */
enum tlt_dart_kind {
	TLT_DART_END,
	TLT_DART_IMPORTANT_END,
	TLT_DART_KINDS,
};

static struct gl_protocol tlt_dart_protocol;

static const struct gl_kind tlt_dart_kind[TLT_DART_KINDS] = {
	[TLT_DART_END] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_MESSAGE_END,
		.flags		= GL_KIND_PROMPT | GL_KIND_ENDS,
		.before		= &tlt_kind[TLT_DATA],
		.sent		= TLT_DATASENT,
		.bytes		= TLT_DATABYTES,
	},
	[TLT_DART_IMPORTANT_END] = {
		.protocol	= &tlt_protocol,
		.codepoint	= GL_CP_PROTECTED_END,
		.flags		= GL_KIND_PROMPT | GL_KIND_ENDS,
		.before		= &tlt_kind[TLT_DATA],
		.sent		= TLT_IMPORTANTSENT,
		.bytes		= TLT_IMPORTANTBYTES,
		.received	= TLT_ECHOSENT,
	},
};

static struct gl_protocol tlt_dart_protocol __read_mostly = {
	.hello		= GL_CODE_TLT_DART,
	.told_as	= GL_CP_MESSAGE_END,
	.kind		= tlt_dart_kind,
	.kinds		= TLT_DART_KINDS,
	.control	= &tlt_kind[TLT_CONTROL],
	.answer		= &tlt_kind[TLT_CLOCK_ECHO],
	.counters	= 1,
	.part		= { &tlt_protocol },
};

/* TLT around hpcc.  The protocol has all kinds of both: a packet of data has TLT's DSCP, and the
 * option with which hpcc requests telemetry.
 */
static struct gl_protocol tlt_hpcc_protocol __read_mostly = {
	.hello		= GL_CODE_TLT_HPCC,
	.told_as	= GL_CP_PROTECTED_END,
	.control	= &tlt_kind[TLT_CONTROL],
	.answer		= &tlt_kind[TLT_CLOCK_ECHO],
	.counters	= 1,
	.part		= { &tlt_protocol },
};

static void tlt_count(const struct sock *sk, enum tlt_counter counter, u64 n)
{
	gl_count(sock_net(sk), &tlt_protocol, counter, n);
}

/* The data in a clock.  The first is the paper's; the paper compares it with the others
 * (Appendix B, Figure 17).
 */
enum tlt_clock {
	TLT_CLOCK_ADAPTIVE,	/* an MSS of lost data, or else a byte */
	TLT_CLOCK_BYTE,
	TLT_CLOCK_MSS,
};

/**
 * struct tlt_net - TLT's settings in a network namespace
 * @clock: enum tlt_clock (net.ipv4.tlt_clock)
 * @crowd: queue above which connections of a crowd wait, us; 0 for never (net.ipv4.tlt_crowd)
 * @every: if the base has a rate, one packet in @every is important; 0 for no packet
 *	(net.ipv4.tlt_every)
 * @mbit: the speed of the links for bursts, Mbit/s; 0 for the one that link_speed.c finds for each
 *	link (net.ipv4.tlt_rate)
 * @sysctl: registered for the namespace's life
 * @crowds: see tlt_crowd.c
 */
struct tlt_net {
	unsigned int		clock;
	unsigned int		crowd;
	unsigned int		every;
	unsigned int		mbit;
	struct ctl_table_header	*sysctl;
	struct tlt_crowds	crowds;
};

static unsigned int tlt_net_id __read_mostly;

static struct tlt_net *tlt_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), tlt_net_id);
}

/* --- losses found by an echo (§5.1 "Loss detection") ---------------------- */

/* The time since the important packet left, us: negative if pacing, or tlt_order(), has put its
 * departure ahead of the clock.  @now: TCP's clock, us.
 */
static s32 tlt_age_us(const struct tlt *tlt, u64 now)
{
	return (u32)now - tlt->imp_us;
}

/* Packets that left before the echoed packet, retransmissions included, and are not acknowledged
 * are lost; if the path reorders packets, only after RACK's reordering window.
 */
static void tlt_mark_lost_by_echo(struct sock *sk, struct tlt *tlt)
{
	u64 now = tcp_clock_us(), us = now - tlt_age_us(tlt, now);
	bool any = tcp_sk(sk)->reord_seen ?
		   gl_suspect_before(sk, us, tlt->imp_end) :
		   gl_lose_before(sk, us, tlt->imp_end);

	if (!any)
		return;
	tlt->lost = tcp_sk(sk)->lost;
	tlt->counting = 1;
}

/* TCP has looked for losses: count the packets that it marked, and restore RACK's RTT. */
static void tlt_settle(struct sock *sk, struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u16 lost;

	if (!tlt->counting)
		return;
	tlt->counting = 0;
	gl_lose_settle(sk);
	lost = tp->lost - tlt->lost;
	if (!lost)
		return;
	tlt->n.marked_lost += lost;
	tlt_count(sk, TLT_LOSSBYECHO, lost);
	trace_greenlane_lost(sk, tp->snd_una, lost);
}

/* Does an ACK with a D-SACK answer a tail loss probe?  Then the probe's timer was too short, and
 * the D-SACK is no evidence of reordering.
 */
static bool tlt_is_probe_answered(const struct tcp_sock *tp)
{
	return tp->tlp_high_seq && tp->tlp_retrans;
}

/* Does the path reorder packets?  It does if packets that an echo, or the duplicate threshold of
 * one, found lost arrived twice: other packets had overtaken them.  The paper assumes one path for
 * a flow; TCP itself detects no reordering here, because it has retransmitted a late packet before
 * its ACK arrives (tcp_check_sack_reordering() ignores retransmissions).
 *
 * One D-SACK is no proof: on a single path too an echo finds a packet lost that has arrived, if the
 * receiver has more blocks than fit into the SACK option and the ACKs that reported this packet
 * were lost with the data that carried them (1 % of the retransmissions of 40 connections that send
 * in both directions).  So at least half of the retransmissions, and at least two, have to be
 * needless.
 */
static bool tlt_is_reordered(const struct tcp_sock *tp, const struct tlt *tlt)
{
	u32 needless = tp->dsack_dups - tlt->dups;

	/* TCP, too, ignores D-SACKs of more segments than it has retransmitted. */
	return tlt->accused && needless >= 2 && tp->dsack_dups <= tp->total_retrans &&
	       needless >= (tp->total_retrans - tlt->retrans + 1) / 2 &&
	       !tlt_is_probe_answered(tp);
}

static void tlt_learn_reordering(struct sock *sk, struct gl_sock *gs, struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tlt->reordered)
		return;
	if (!tp->reord_seen && tlt_is_reordered(tp, tlt))
		gl_reorder_seen(sk, gs);
	if (!tp->reord_seen)
		return;
	tlt->reordered = 1;
	tlt_count(sk, TLT_REORDERED, 1);
}

/* A packet, or a clock, has this departure and this end. */
static void tlt_left(struct tlt *tlt, u64 us, u32 end_seq)
{
	if (tlt->left_us == (u16)us && before(end_seq, tlt->left_end))
		return;
	tlt->left_us = us;
	tlt->left_end = end_seq;
}

/* Limit of @ahead, us: 4 bits. */
#define TLT_AHEAD_MAX		15U

/* For RACK a retransmission leaves @ahead us later than it does, and RACK ignores its ACK in less
 * than the minimum RTT.  So lower that by as much until its ACK arrives; not twice, unless TCP has
 * measured another minimum since.
 */
static void tlt_lower_rtt(struct tcp_sock *tp, struct tlt *tlt, u32 ahead)
{
	u32 rtt = tcp_min_rtt(tp);

	if (rtt == U32_MAX)
		return;
	if ((u16)rtt != tlt->rtt)
		tlt->ahead = 0;
	if (ahead <= tlt->ahead)
		return;
	rtt += tlt->ahead;
	ahead = min(ahead, rtt - 1);
	minmax_reset(&tp->rtt_min, tp->rtt_min.s[0].t, rtt - ahead);
	tlt->rtt = rtt - ahead;
	tlt->ahead = ahead;
}

/* The retransmissions that needed the lower minimum RTT are acknowledged. */
static void tlt_restore_rtt(struct tcp_sock *tp, struct tlt *tlt)
{
	u32 rtt = tcp_min_rtt(tp);

	if (!tlt->ahead)
		return;
	if (rtt != U32_MAX && (u16)rtt == tlt->rtt)
		minmax_reset(&tp->rtt_min, tp->rtt_min.s[0].t, rtt + tlt->ahead);
	tlt->ahead = 0;
}

/* TCP is about to retransmit.  tcp_skb_sent_after() orders packets by their departure in
 * microseconds, and those of one microsecond by their sequence numbers.  A retransmission in the
 * microsecond of a packet with a higher number would precede that packet, whose ACK would then find
 * the retransmission lost: in a fabric of 96 hosts one in twenty was sent again needlessly.  So the
 * retransmission leaves in the next microsecond.  (Pacing spaces departures itself.)
 *
 * The departure also measures the RTT: it may be ahead of the clock by a quarter of the minimum
 * RTT, RACK's least reordering window.
 */
static void tlt_order(struct sock *sk, struct tlt *tlt)
{
	struct tcp_sock *tp = tcp_sk(sk);
	const struct sk_buff *skb = tp->retransmit_skb_hint ?: tcp_rtx_queue_head(sk);
	u64 us = div_u64(max(tp->tcp_wstamp_ns, tp->tcp_clock_cache), NSEC_PER_USEC);
	u32 ahead = us + 1 - div_u64(tp->tcp_clock_cache, NSEC_PER_USEC);
	u32 rtt = min(tcp_min_rtt(tp), tp->srtt_us >> 3);

	if (READ_ONCE(sk->sk_pacing_status) != SK_PACING_NONE || tlt->left_us != (u16)us ||
	    !skb || !before(TCP_SKB_CB(skb)->seq, tlt->left_end))
		return;
	if (ahead > min(DIV_ROUND_UP(rtt, 4), TLT_AHEAD_MAX))
		return;
	tp->tcp_wstamp_ns = (us + 1) * NSEC_PER_USEC;
	tlt_lower_rtt(tp, tlt, ahead);
}

/* --- crowds (beyond the paper; tlt_crowd.c) -------------------------------- */

/* Does the base's rate alone decide when a packet leaves?  bbr paces too, but also has a window,
 * in which an ACK permits the next packet: it follows the rules for windows.
 */
static bool tlt_is_rated(const struct sock *sk)
{
	return gl_transport(sk)->rated;
}

/* Bursts of fewer packets are guarded only in a crowd: that of most requests costs no timer. */
#define TLT_BURST		4

/* The echo of an important packet is late after four smoothed RTTs, and 1 ms or the longest queue
 * of the port more: the smoothed RTT has no sample of a new connection's queues, nor while all
 * packets are retransmissions.  The queue is 2.5 times net.ipv4.tlt_crowd, whose value for a port
 * is 0.4 of it (150 us for 1.8 MB at 40 Gbit/s).
 */
#define TLT_GUARD_US		1000U

static u64 tlt_guard_ns(const struct sock *sk)
{
	u32 queue = READ_ONCE(tlt_net(sk)->crowd) * 5 / 2;

	return (4 * (tcp_sk(sk)->srtt_us >> 3) + max(TLT_GUARD_US, queue)) * (u64)NSEC_PER_USEC;
}

static struct tlt_crowd_dest *tlt_dest(const struct sock *sk)
{
	return tlt_crowd_find(sk, &tlt_net(sk)->crowds);
}

/* Does TCP wait, in a crowd, before it sends the next packet? */
static bool tlt_is_waiting(const struct sock *sk, const struct tlt *tlt)
{
	return !tlt_is_rated(sk) && tlt_crowd_is_waiting(sk, &tlt->crowd);
}

/* Was the echo of the important packet late, and the clock that replaces it has no answer yet? */
static bool tlt_is_late(const struct sock *sk, const struct tlt *tlt)
{
	return !tlt_is_rated(sk) && tlt->crowd.late;
}

/* No important packet is late. */
static void tlt_in_time(const struct sock *sk, struct tlt *tlt)
{
	if (tlt_is_rated(sk))
		return;
	tlt->crowd.late = 0;
	tlt->crowd.missing = 0;
}

/* No echo is expected any longer. */
static void tlt_abandon(const struct sock *sk, struct tlt *tlt, u8 state)
{
	tlt_in_time(sk, tlt);
	tlt->clocks = 0;
	tlt->state = state;
}

/* Has a packet been delivered since the last call?  Then the clocks are not idle, and if an
 * important packet is late, it has arrived.
 */
static void tlt_note_delivered(const struct sock *sk, struct tlt *tlt)
{
	u16 delivered = tcp_sk(sk)->delivered;

	if (tlt->delivered == delivered)
		return;
	tlt->delivered = delivered;
	tlt->idle = 0;
	if (!tlt_is_rated(sk))
		tlt->crowd.missing = 0;
}

/* The clock follows the important packet that it replaces.  If that one was only late, its ACK has
 * arrived since the clock left, or the clock's answer has its number, which TCP has processed now.
 */
static void tlt_report(struct sock *sk, struct tlt *tlt)
{
	if (tlt_is_rated(sk) || !tlt->crowd.suspect)
		return;
	tlt->crowd.suspect = 0;
	if (tlt->delivered == (u16)tcp_sk(sk)->delivered)
		tlt_crowd_report(sk, &tlt_net(sk)->crowds);
}

/* An echo has arrived: divide the port with the crowd.  @now: TCP's clock, us; @rtt: us, or not
 * positive if pacing has put the departure ahead of the clock.
 */
static void tlt_divide(struct sock *sk, struct tlt *tlt, u64 now, s32 rtt)
{
	u32 target = READ_ONCE(tlt_net(sk)->crowd);

	if (tlt_is_rated(sk))
		return;
	tlt->crowd.suspect = tlt->clock && tlt->crowd.missing;
	tlt_in_time(sk, tlt);
	tlt->crowd.watched = 0;
	if (!target || !tlt_crowd_is_free(sk, &tlt->crowd)) {
		tlt_crowd_end(sk, &tlt->crowd);
		return;
	}
	if (tlt_crowd_echo(sk, &tlt->crowd, tlt_dest(sk), now, max(rtt, 1), target, tlt->counting))
		tlt_count(sk, TLT_CROWDWAITS, 1);
}

/* Is the first unacked packet older than two RTOs?  Then the clocks are lost, too. */
static bool tlt_is_dead(const struct sock *sk)
{
	const struct sk_buff *skb = tcp_rtx_queue_head(sk);
	u64 now = tcp_sk(sk)->tcp_mstamp;

	return skb && tcp_stamp_us_delta(now, tcp_skb_timestamp_us(skb)) >
		      2 * jiffies_to_usecs(inet_csk(sk)->icsk_rto);
}

/* The ACK clock is alive while TCP waits, and when a clock or data replaces a late important
 * packet: TCP's timer begins anew, when the wait ends.  Not after a timeout: the timer may then be
 * that of TCP_USER_TIMEOUT.
 */
static void tlt_postpone_rto(struct sock *sk)
{
	s64 ns = tcp_sk(sk)->tcp_wstamp_ns - tcp_clock_ns();

	if (inet_csk(sk)->icsk_pending != ICSK_TIME_RETRANS || inet_csk(sk)->icsk_retransmits)
		return;
	if (ns <= 0 && tlt_is_dead(sk))
		return;
	inet_csk_reset_xmit_timer(sk, ICSK_TIME_RETRANS,
				  inet_csk(sk)->icsk_rto + nsecs_to_jiffies(max_t(s64, ns, 0)),
				  TCP_RTO_MAX);
}

/* A port that drops important packets of a crowd leaves no ACK that could report it.  So while a
 * crowd is likely, a timer of some round trips guards each important packet, and one that TCP finds
 * a loss beside: the retransmission may be lost, too.
 */
static void tlt_guard(struct sock *sk, struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (tlt_is_rated(sk) || !READ_ONCE(tlt_net(sk)->crowd) || !tp->srtt_us ||
	    !tlt_crowd_is_free(sk, &tlt->crowd))
		return;
	if (!tp->lost_out && !tlt_dest(sk) &&
	    tlt->imp_end - tp->snd_una <= (TLT_BURST - 1) * tp->mss_cache)
		return;
	tlt->crowd.watched = 1;
	tlt_crowd_wake(sk, tp->tcp_clock_cache + tlt_guard_ns(sk));
}

/* Is an important packet on its way that no timer guards? */
static bool tlt_is_unguarded(const struct sock *sk, const struct tlt *tlt)
{
	return !tlt_is_rated(sk) && tlt->state == GREENLANE_WAITING && !tlt->crowd.watched;
}

/* The guard's timer has expired, or TCP sends for another reason.  If it is time, the important
 * packet is lost; or TCP has waited and then sent nothing, because the device still had the packet
 * that TCP would have retransmitted.  In both cases a clock replaces the packet.
 */
static void tlt_guard_check(struct sock *sk, struct gl_sock *gs, struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tp->tcp_clock_cache, at;

	if (!tp->packets_out || !READ_ONCE(tlt_net(sk)->crowd)) {
		tlt->crowd.watched = 0;
		return;
	}
	at = now - tlt_age_us(tlt, tp->tcp_mstamp) * (s64)NSEC_PER_USEC;
	if (tlt->state != GREENLANE_WAITING)
		at = max(at, tp->tcp_wstamp_ns);
	at += tlt_guard_ns(sk);
	/* The echo may wait there. */
	if (READ_ONCE(sk->sk_backlog.tail) || READ_ONCE(gs->held))
		at = max(at, now + tlt_guard_ns(sk));
	if (now < at) {
		/* TCP does not set its timer while it is pending. */
		tlt_crowd_wake(sk, tp->tcp_wstamp_ns > now ? tp->tcp_wstamp_ns : at);
		return;
	}
	tlt_count(sk, TLT_ECHOESLATE, 1);
	tlt_note_delivered(sk, tlt);
	tlt->crowd.missing |= !tlt->clock && tlt->state == GREENLANE_WAITING;
	tlt->state = GREENLANE_ARMED_NEXT;
	tlt->crowd.waits = 0;
	tlt->crowd.watched = 0;
	tlt->crowd.late = 1;
	gl_kick(sk, gs);
}

/* --- which packet is important (Algorithm 1) ----------------------------- */

/* Does the receiver's window forbid the packet that begins at @end_seq? */
static bool tlt_window_ends(const struct sock *sk, u32 end_seq)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return after(end_seq + min(gl_data_end(sk) - end_seq, tp->mss_cache), tcp_wnd_end(tp));
}

/* "The last packet of the initial window": the one after which the congestion
 * window is full, no data is left to send, TCP holds back the rest (Nagle, cork),
 * or the receiver's window forbids the next packet.
 */
static bool tlt_is_last_of_burst(const struct sock *sk, const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 left = gl_data_end(sk) - seg->end_seq;

	if (tcp_packets_in_flight(tp) + seg->segs >= tcp_snd_cwnd(tp))
		return true;
	/* In the middle of a write TCP may have sent all data so far, although more follows. */
	if (!left)
		return !seg->more;
	if (left < tp->mss_cache && gl_nagle_holds(tp))
		return true;
	return tlt_window_ends(sk, seg->end_seq);
}

/* Is the last packet of @seg important? */
static bool tlt_is_important(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	const struct tlt_burst *burst = tlt_burst_of(gs);
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tlt *tlt = tlt_of(gs);

	/* No data is in flight: a burst begins, the first one or after an idle time.
	 * An echo that is still expected could not find a loss.
	 */
	if (!tp->packets_out && !tlt_crowd_has_waited(sk, &tlt->crowd)) {
		tlt_abandon(sk, tlt, GREENLANE_ARMED_LAST);
		tlt->clock = 0;
		tlt_crowd_end(sk, &tlt->crowd);
	}

	switch (tlt->state) {
	case GREENLANE_ARMED_LAST:
		if (before(seg->seq, tp->snd_nxt) || tlt_is_last_of_burst(sk, seg))
			return true;
		/* TCP may stop before the last packet (TSO deferral, a cork). */
		gl_kick_soon(sk, gs);
		return false;
	case GREENLANE_ARMED_NEXT:
		return true;
	default:
		/* In the middle of a write TCP may have sent all data so far. */
		if (burst && tlt_burst_grows(sk, burst) && tlt_is_last_of_burst(sk, seg))
			return true;
		/* TCP found the important packet itself lost, and retransmits it. */
		return !tlt->clock && before(seg->seq, tlt->imp_end) &&
		       !before(seg->end_seq, tlt->imp_end);
	}
}

/* --- which packet is important if the base has a rate (§5.2) --------------- */

/* Is a retransmission the first or the last packet of a round of retransmissions? */
static bool tlt_is_edge_of_round(const struct tcp_sock *tp, const struct gl_seg *seg)
{
	return !tp->retrans_out || tp->lost_out <= tp->retrans_out + seg->segs;
}

/* Is a packet that ends a message, or fills the receiver's window, important?  In a stream of short
 * messages each packet ends one, so only one such packet is important until it is acked, and a
 * clock follows for the others (tlt_on_kick()).  But no ACK causes that clock if an important
 * packet is no longer in flight: a SACK covers it, or the device has refused it.
 */
static bool tlt_ends_message(const struct tcp_sock *tp, struct tlt *tlt, const struct gl_seg *seg)
{
	if (tlt->state == GREENLANE_WAITING && tlt->ended && after(tlt->end, tp->snd_una))
		return false;
	tlt->ended = 1;
	tlt->end = seg->end_seq;
	return true;
}

static bool tlt_is_important_rated(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 every = READ_ONCE(tlt_net(sk)->every);
	struct tlt *tlt = tlt_of(gs);

	if (before(seg->seq, tp->snd_nxt))
		return tlt_is_edge_of_round(tp, seg);
	tlt->since = min(tlt->since + seg->segs, U16_MAX);
	if (every && tlt->since >= every)
		return true;
	if (tlt_is_last_of_burst(sk, seg))
		return tlt_ends_message(tp, tlt, seg);
	/* TCP may hold back the rest of a write, and then no timer sends it. */
	if (gl_data_end(sk) - seg->end_seq < tp->mss_cache)
		gl_kick_soon(sk, gs);
	return false;
}

/* Will TCP send a packet at the base's rate, without waiting for an ACK? */
static bool tlt_rate_sends(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 left = gl_data_end(sk) - tp->snd_nxt;

	if (tcp_packets_in_flight(tp) >= tcp_snd_cwnd(tp))
		return false;
	if (tp->lost_out > tp->retrans_out)
		return true;
	/* snd_nxt counts a FIN that was sent. */
	if (!before(tp->snd_nxt, gl_data_end(sk)))
		return false;
	return (left >= tp->mss_cache || !gl_nagle_holds(tp)) &&
	       !tlt_window_ends(sk, tp->snd_nxt);
}

/* Map the inner transport's kind of data to TLT's.  hpcc's data has none. */
static const struct gl_kind *tlt_kind_around(const struct gl_kind *inner, bool important)
{
	if (inner && inner->flags & GL_KIND_ENDS)
		return &tlt_dart_kind[important ? TLT_DART_IMPORTANT_END : TLT_DART_END];
	return &tlt_kind[important ? TLT_IMPORTANT : TLT_DATA];
}

/* Did the last echo arrive less than GL_SOON_NS ago (@echo_us wraps after 65 ms)?  A clock
 * waits up to that time for the application's next data, which replaces it if no packet is lost.
 * Without the wait, requests and responses, or small messages, would take twice the packets.
 */
static bool tlt_is_echo_recent(const struct tlt *tlt)
{
	return (u16)(tcp_clock_us() - tlt->echo_us) < GL_SOON_NS / NSEC_PER_USEC;
}

/* Data leaves while a clock is in flight.  If the data is unimportant and is lost, only another
 * clock can detect that, so permit another clock even after TLT_IDLE_CLOCKS_MAX idle ones: pacing
 * may have held back a retransmission for longer than they took.  The clock was needless if the
 * application sends new data within GL_SOON_NS of the echo.
 */
static void tlt_clock_is_followed(const struct tcp_sock *tp, struct tlt *tlt,
				  const struct gl_seg *seg)
{
	if (tlt->state != GREENLANE_WAITING || !tlt->clock)
		return;
	tlt->idle = 0;
	if (seg->seq == tp->snd_nxt && tlt_is_echo_recent(tlt))
		tlt->chatty = 1;
}

/* An ACK acknowledges all data while a clock is in flight: the clock was needless, too, if that ACK
 * follows the echo within GL_SOON_NS.
 */
static void tlt_clock_is_overtaken(const struct tcp_sock *tp, struct tlt *tlt)
{
	if (tlt->state == GREENLANE_WAITING && tlt->clock && tp->snd_una == tp->snd_nxt &&
	    tlt_is_echo_recent(tlt))
		tlt->chatty = 1;
}

/* Does TCP send a tail loss probe?  Then no ACK has arrived for two round trips, so the packets in
 * flight are lost, the important one included.
 */
static bool tlt_is_loss_probe(const struct sock *sk)
{
	return inet_csk(sk)->icsk_pending == ICSK_TIME_LOSS_PROBE &&
	       !time_after(gl_tcp_timeout(sk), jiffies);
}

static const struct gl_kind *tlt_on_xmit(struct sock *sk, struct gl_sock *gs,
					 const struct gl_seg *seg)
{
	const struct gl_transport *inner = gs->transport->inner;
	struct tlt_burst *burst = tlt_burst_of(gs);
	bool again = before(seg->seq, tcp_sk(sk)->snd_nxt);
	struct tlt *tlt = tlt_of(gs);
	bool important = tlt_is_rated(sk) ? tlt_is_important_rated(sk, gs, seg) :
					    tlt_is_important(sk, gs, seg);

	if (tlt_is_loss_probe(sk)) {
		important = true;
		if (burst)
			tlt_burst_lost(sk, burst);
	}
	tlt->accused |= again && inet_csk(sk)->icsk_ca_state == TCP_CA_Recovery;
	gl_dupthresh_one(sk, gs);
	if (!tlt_is_rated(sk))
		tlt->crowd.waits = 0;
	tlt_left(tlt, div_u64(tcp_sk(sk)->tcp_wstamp_ns, NSEC_PER_USEC), seg->end_seq);
	tlt_clock_is_followed(tcp_sk(sk), tlt, seg);
	if (again && tlt_is_unguarded(sk, tlt))
		tlt_guard(sk, tlt);
	/* ARMED_NEXT until the packet has left: tlt_on_last(). */
	if (important)
		tlt->state = GREENLANE_ARMED_NEXT;
	if (inner)
		return tlt_kind_around(inner->on_xmit(sk, gs, seg), important);
	if (burst && tlt_burst_sends(sk, burst, seg->seq, seg->segs)) {
		burst->sent += seg->segs - important;
		return &tlt_kind[important ? TLT_IMPORTANT_LAST : TLT_UNSCHEDULED];
	}
	return &tlt_kind[important ? TLT_IMPORTANT : TLT_DATA];
}

/* Limit of @clocks: 7 bits. */
#define TLT_CLOCKS_MAX		127

/* The unit of @first, 2^4 us. */
#define TLT_FIRST_SHIFT		4

/* Time from the departure of the first of the last clocks to that of the last one, us; up to 16 us
 * more, so that no packet that left after the first counts as sent before it.
 */
static u32 tlt_span_us(const struct tlt *tlt)
{
	u32 units = (u16)((tlt->imp_us >> TLT_FIRST_SHIFT) - tlt->first);

	return (units << TLT_FIRST_SHIFT) + tlt->imp_us % (1 << TLT_FIRST_SHIFT);
}

/* A clock leaves.  If it replaces a late one, the answers of both count: behind a long queue each
 * clock would be replaced before its own answer arrives.  @first wraps after a second; then only
 * the last clock counts.
 */
static void tlt_clock_left(const struct sock *sk, struct tlt *tlt, u32 us)
{
	u64 span = (u64)tlt_span_us(tlt) + (u32)(us - tlt->imp_us);

	if (!tlt_is_late(sk, tlt) || !tlt->clocks || span >> TLT_FIRST_SHIFT >= U16_MAX) {
		tlt->clocks = 0;
		tlt->first = us >> TLT_FIRST_SHIFT;
	}
	tlt->clocks += tlt->clocks < TLT_CLOCKS_MAX;
}

static void tlt_wait(struct sock *sk, struct tlt *tlt, u32 us, u32 end_seq, bool clock)
{
	if (clock)
		tlt_clock_left(sk, tlt, us);
	else
		tlt->clocks = 0;
	tlt->state = GREENLANE_WAITING;
	tlt->imp_us = us;
	tlt->imp_end = end_seq;
	tlt->clock = clock;
	if (tlt_is_rated(sk))
		tlt->since = 0;
	if (tlt_is_late(sk, tlt)) {
		tlt_postpone_rto(sk);
		if (!clock)
			tlt_in_time(sk, tlt);
	}
	tlt_guard(sk, tlt);
}

/* An important packet has left, or an unimportant one that ends a message. */
static void tlt_on_last(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			u32 end_seq)
{
	struct tlt *tlt = tlt_of(gs);

	if (kind->flags & GL_KIND_ENDS)
		gs->transport->inner->on_last(sk, gs, kind, end_seq);
	if (kind == &tlt_dart_kind[TLT_DART_END])
		return;
	trace_greenlane_important(sk, end_seq, tcp_packets_in_flight(tcp_sk(sk)));
	tlt->n.important++;
	tlt->refused = 0;
	tlt_wait(sk, tlt, div_u64(tcp_sk(sk)->tcp_wstamp_ns, NSEC_PER_USEC), end_seq, false);
}

/* If the host has no route, or its device refuses a packet, TLT tries again this often, every
 * GL_SOON_NS: for 10 ms, the transmission time of about a thousand packets at 1 Gbit/s.  Then TCP's
 * timers retransmit, until a packet leaves.
 */
#define TLT_REFUSED_MAX		200

static void tlt_on_refused(struct sock *sk, struct gl_sock *gs)
{
	struct tlt *tlt = tlt_of(gs);

	if (tlt->refused == TLT_REFUSED_MAX)
		return;
	tlt->refused++;
	gl_kick_soon(sk, gs);
}

/* --- important ACK-clocking (§5.1) --------------------------------------- */

static void tlt_count_clock(struct sock *sk, struct tlt *tlt, u32 bytes, bool mss)
{
	if (mss)
		tlt->n.clocks_mss++;
	else
		tlt->n.clocks_byte++;
	tlt_count(sk, mss ? TLT_CLOCKMSSSENT : TLT_CLOCKBYTESENT, 1);
	tlt_count(sk, TLT_CLOCKBYTES, bytes);
	trace_greenlane_clock(sk, tcp_sk(sk)->snd_una, bytes);
}

/* Have TCP retransmit an MSS of lost data, even beyond the congestion window: recovery then
 * advances by at least one packet per round trip.
 */
static bool tlt_clock_lost(struct sock *sk, struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 before = tp->bytes_retrans;

	if (tp->lost_out <= tp->retrans_out)
		return false;
	tlt->state = GREENLANE_ARMED_NEXT;
	gl_xmit_one(sk);
	if (tlt->state != GREENLANE_WAITING)
		return false;
	tlt_count_clock(sk, tlt, tp->bytes_retrans - before, true);
	return true;
}

/* When the echo of a clock arrives, each packet sent before the clock has arrived or is
 * lost.  If this many consecutive clocks find neither a delivered nor a lost packet, pacing
 * holds back TCP's next packet, or a forged ACK has made the two ends disagree: leave
 * recovery to TCP's timers.
 */
#define TLT_IDLE_CLOCKS_MAX	16

static bool tlt_clock_is_idle(const struct sock *sk, struct tlt *tlt)
{
	tlt_note_delivered(sk, tlt);
	return tlt->idle == TLT_IDLE_CLOCKS_MAX;
}

/* Send the first unacked byte, which is enough to request an ACK, or with @mss up to an MSS.  All
 * packets that TCP has sent left before this clock.
 */
static void tlt_clock_unacked(struct sock *sk, struct gl_sock *gs, bool mss)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct tlt *tlt = tlt_of(gs);
	u8 asked = gs->asked;
	int bytes;
	u64 us;

	if (tlt_clock_is_idle(sk, tlt))
		return;
	bytes = gl_send_repeat(sk, gs, &tlt_kind[TLT_CLOCK], mss ? tp->mss_cache : 1);
	if (bytes < 0 && tlt->clocks)
		tlt->clocks = min_t(u8, tlt->clocks + (u8)(gs->asked - asked), TLT_CLOCKS_MAX);
	/* The receiver's window forbids a byte.  The ACK that opens it kicks: tlt_acked(). */
	if (!bytes)
		tlt->state = GREENLANE_ARMED_NEXT;
	if (bytes < 0)
		tlt_on_refused(sk, gs);
	if (bytes <= 0)
		return;
	tlt->idle++;
	tlt->refused = 0;
	us = div_u64(gl_departure_ns(sk), NSEC_PER_USEC);
	tlt_wait(sk, tlt, us, tp->snd_nxt + 1, true);
	tlt_left(tlt, us, tlt->imp_end);
	tlt_count_clock(sk, tlt, bytes, mss);
}

/* Can a clock wait for the application's next data?  Only if the application was in time before,
 * the last echo is recent, no packet is missing and TCP holds back no data.
 */
static bool tlt_may_wait(const struct sock *sk, const struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tlt->chatty && tlt_is_echo_recent(tlt) && !tp->sacked_out &&
	       inet_csk(sk)->icsk_ca_state == TCP_CA_Open &&
	       !before(tp->snd_nxt, gl_data_end(sk));
}

/* No packet is in flight although data is queued: the device may have refused it.  TCP would retry
 * only when its timer for window probes expires, after 200 ms.
 */
static void tlt_again(struct sock *sk, struct gl_sock *gs)
{
	struct tlt *tlt = tlt_of(gs);
	u8 refused = tlt->refused;

	if (!tcp_send_head(sk) || refused == TLT_REFUSED_MAX || tlt_is_waiting(sk, tlt))
		return;
	gl_xmit(sk);
	/* A burst may have begun. */
	if (tcp_sk(sk)->packets_out)
		gl_kick_soon(sk, gs);
	/* on_refused() counts no unimportant packets: tlt_is_important() has kicked for them. */
	else if (tlt->refused == refused)
		tlt->refused++;
}

/* Data is unacked and no important packet is in flight: send a clock, to keep the ACK clock alive.
 * If the receiver's window forbids even a byte, stay armed: the window update kicks.
 */
static void tlt_keep_alive(struct sock *sk, struct gl_sock *gs)
{
	struct tlt *tlt = tlt_of(gs);
	enum tlt_clock clock = READ_ONCE(tlt_net(sk)->clock);
	bool waits = tlt_is_waiting(sk, tlt), late = tlt_is_late(sk, tlt);

	if (waits)
		tlt_postpone_rto(sk);
	/* No clock is needed if TCP sends a packet by a timer. */
	if ((tlt_is_rated(sk) || waits) && tlt_rate_sends(sk))
		return;
	if (tlt_may_wait(sk, tlt)) {
		gl_kick_soon(sk, gs);
		return;
	}
	tlt->chatty = 0;
	/* The port is full, or a packet of TCP's follows: the least clock suffices. */
	if (waits || late)
		clock = TLT_CLOCK_BYTE;
	if (clock == TLT_CLOCK_BYTE || !tlt_clock_lost(sk, tlt))
		/* A clock cannot signal the end of a message: with dart it has a single byte. */
		tlt_clock_unacked(sk, gs, clock == TLT_CLOCK_MSS && !gs->transport->inner);
}

/* TCP has processed the packets that arrived, and has sent all data that it may. */
static void tlt_on_kick(struct sock *sk, struct gl_sock *gs)
{
	struct tlt *tlt = tlt_of(gs);

	if (gs->transport->inner)
		gs->transport->inner->on_kick(sk, gs);
	tlt_settle(sk, tlt);
	tlt_report(sk, tlt);
	if (!gl_marking(gs))
		return;
	if (!tcp_sk(sk)->packets_out)
		tlt_again(sk, gs);
	else if (tlt->state != GREENLANE_WAITING)
		tlt_keep_alive(sk, gs);
}

/* Can a clock leave now?  Not if only a FIN is unacked, nor while the receiver's window is closed,
 * whose update kicks; nor after too many idle or refused clocks, which leave recovery to TCP's
 * timers.
 */
static bool tlt_can_clock(const struct sock *sk, const struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return before(tp->snd_una, tcp_wnd_end(tp)) && before(tp->snd_una, gl_data_end(sk)) &&
	       tlt->idle != TLT_IDLE_CLOCKS_MAX && tlt->refused < TLT_REFUSED_MAX &&
	       !gl_tcp_signed(sk);
}

/* See gl_assert_alive(). */
static bool tlt_is_alive(const struct sock *sk, const struct gl_sock *gs)
{
	const struct tlt *tlt = tlt_of(gs);
	bool timed;

	if (tlt_is_rated(sk))
		timed = tlt_rate_sends(sk);
	else
		timed = (tlt->crowd.watched || tlt_crowd_is_waiting(sk, &tlt->crowd)) &&
			hrtimer_active(&tcp_sk(sk)->pacing_timer);
	return !tcp_sk(sk)->packets_out || tlt->state == GREENLANE_WAITING || timed ||
	       !tlt_can_clock(sk, tlt);
}

/* --- marking begins and ends ---------------------------------------------- */

static void tlt_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	struct tlt_burst *burst = tlt_burst_of(gs);

	if (gs->transport->inner)
		gs->transport->inner->on_switch(sk, gs, on);
	if (!tlt_is_rated(sk))
		tlt_crowd_leave(sk, &tlt_of(gs)->crowd);
	if (burst)
		tlt_burst_end(sk, burst);
	tlt_restore_rtt(tcp_sk(sk), tlt_of(gs));
	memset_startat(tlt_of(gs), 0, imp_end);
	if (!on)
		gl_dupthresh_restore(sk, gs);
	else if (tcp_sk(sk)->packets_out)
		gl_kick_soon(sk, gs);
}

/* --- echoes --------------------------------------------------------------- */

/* The important packet has arrived: an ACK or SACK covers it, or a clock was answered.
 * @last: it is the last of several clocks; another one left after the first, or is it
 */
static void tlt_echoed(struct sock *sk, struct gl_sock *gs, struct tlt *tlt, bool last)
{
	struct tlt_burst *burst = tlt_burst_of(gs);
	u64 now = tcp_clock_us();
	s32 age = tlt_age_us(tlt, now);

	if (!last) {
		tlt->imp_us -= tlt_span_us(tlt);
		tlt->imp_end = tcp_sk(sk)->snd_una;
	}
	trace_greenlane_echo(sk, tlt->imp_end, age);
	tlt->n.echoes++;
	tlt->echo_us = now;
	tlt->state = GREENLANE_ARMED_NEXT;
	tlt->clocks = 0;
	tlt_mark_lost_by_echo(sk, tlt);
	if (burst && tlt->clock)
		tlt_burst_lost(sk, burst);
	else if (burst)
		tlt_burst_echoed(sk, burst, gs->transport->base->ssthresh);
	tlt_divide(sk, tlt, now, age);
}

/* Does a block of the last SACK option cover @end, the end of the important packet?  TCP's
 * scoreboard may never show it: if SACK options make the MSS vary, a block can begin in the middle
 * of a packet that TCP does not split there, and TCP does not examine again the part of a block
 * that it has cached (recv_sack_cache).
 */
static bool tlt_is_in_sack(const struct tcp_sock *tp, u32 end)
{
	const struct tcp_sack_block *block = tp->recv_sack_cache;
	int i;

	for (i = 0; i < ARRAY_SIZE(tp->recv_sack_cache); i++, block++)
		if (block->start_seq != block->end_seq && before(block->start_seq, end) &&
		    !before(block->end_seq, end))
			return true;
	return false;
}

/* Has TCP received an ACK that covers the important packet, cumulatively or by a
 * SACK block?
 */
static bool tlt_is_delivered(const struct sock *sk, const struct tlt *tlt)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct rb_node *p = sk->tcp_rtx_queue.rb_node;
	u32 last = tlt->imp_end - 1;

	if (!after(tlt->imp_end, tp->snd_una) || tlt_is_in_sack(tp, tlt->imp_end))
		return true;
	while (p) {
		const struct sk_buff *skb = rb_to_skb(p);

		if (before(last, TCP_SKB_CB(skb)->seq))
			p = p->rb_left;
		else if (!before(last, TCP_SKB_CB(skb)->end_seq))
			p = p->rb_right;
		else
			return TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED;
	}
	return false;
}

/* A receiver whose memory is full drops data and withdraws the window that the data was sent in
 * (since 6.6: ICSK_ACK_NOMEM).  A packet beyond the new end of the window gets no echo, and the
 * last packet of a burst does not leave.
 */
static bool tlt_is_withdrawn(const struct tcp_sock *tp, const struct tlt *tlt)
{
	u32 end = tlt->clock ? tp->snd_una + 1 : tlt->imp_end;

	if (tlt->state == GREENLANE_ARMED_LAST)
		end = tp->snd_nxt;
	return tp->packets_out && before(tcp_wnd_end(tp), end);
}

/* Is data in flight, and no important packet?  If the base has a rate, packets follow by a timer,
 * and one of them will be important: unless the window has become smaller than the data in flight
 * (that of IRN, when TCP measures a shorter RTT).
 */
static bool tlt_is_clock_due(const struct sock *sk, const struct tlt *tlt)
{
	if (!tcp_sk(sk)->packets_out)
		return false;
	return tlt->state == GREENLANE_ARMED_NEXT ||
	       (tlt_is_rated(sk) && tlt->state == GREENLANE_ARMED_LAST && !tlt_rate_sends(sk));
}

/* TCP has processed the number and the SACK blocks of an ACK, but has not looked for losses yet. */
static void tlt_acked(struct sock *sk, struct gl_sock *gs)
{
	struct tlt *tlt = tlt_of(gs);

	if (!gl_marking(gs))
		return;
	tlt_learn_reordering(sk, gs, tlt);
	/* tlt_on_packet() has processed a clock echo before TCP processed its acknowledgments,
	 * which gave RACK a new RTT: mark again.  Not if the next important packet
	 * has left since: imp_us and imp_end are that packet's, which has no echo yet.
	 */
	if (tlt->counting && tlt->state == GREENLANE_ARMED_NEXT)
		tlt_mark_lost_by_echo(sk, tlt);
	if (tlt->state == GREENLANE_WAITING && tlt_is_delivered(sk, tlt)) {
		if (tlt->clock) {
			/* A packet that left after the clock was acked: the clock, or its answer,
			 * is lost.
			 */
			tlt_abandon(sk, tlt, GREENLANE_ARMED_NEXT);
		} else {
			tlt_count(sk, TLT_ECHORECEIVED, 1);
			tlt_echoed(sk, gs, tlt, true);
		}
	}
	if (tlt->state != GREENLANE_ARMED_NEXT && tlt_is_withdrawn(tcp_sk(sk), tlt))
		tlt_abandon(sk, tlt, GREENLANE_ARMED_NEXT);
	tlt_clock_is_overtaken(tcp_sk(sk), tlt);
	if (tlt->counting || tlt_is_clock_due(sk, tlt))
		gl_kick(sk, gs);
}

/* A clock echo is an ACK, and often a duplicate that no packet of TCP's caused:
 * F-RTO would take it for a sign of loss.  So TCP does not get it (Appendix A),
 * unless it acknowledges data, has SACK blocks or another window, or TCP has yet to
 * mark the losses that an echo found.
 */
static enum gl_verdict tlt_on_packet(struct sock *sk, struct gl_sock *gs,
				     const struct gl_kind *kind, const struct gl_seg *seg)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct tlt *tlt = tlt_of(gs);

	if (kind != &tlt_kind[TLT_CLOCK_ECHO])
		return gs->transport->inner->on_packet(sk, gs, kind, seg);
	if (!gl_marking(gs))
		return GL_PASS;
	/* The guard may have found the clock late, and not sent another one yet. */
	if (gl_is_answered(gs, seg, tlt->clocks)) {
		tlt_echoed(sk, gs, tlt, gl_is_answered(gs, seg, 1));
		gl_kick(sk, gs);
	}
	if (tlt->counting || after(seg->ack, tp->snd_una) || seg->sack ||
	    (u32)seg->window << tp->rx_opt.snd_wscale != tp->snd_wnd)
		return GL_PASS;
	tlt_count(sk, TLT_CLOCKECHOCONSUMED, 1);
	return GL_CONSUME;
}

/* --- the combinator ------------------------------------------------------- */

static void tlt_in_ack_event(struct sock *sk, u32 flags)
{
	const struct gl_transport *t = gl_transport(sk);
	struct gl_sock *gs = gl_sock_locked(sk);
	struct tlt_burst *burst = gs ? tlt_burst_of(gs) : NULL;

	if (burst)
		tlt_burst_acked(sk, burst);
	if (t->base->in_ack_event)
		t->base->in_ack_event(sk, flags);
	if (gs) {
		if (!tcp_sk(sk)->retrans_out)
			tlt_restore_rtt(tcp_sk(sk), tlt_of(gs));
		tlt_acked(sk, gs);
		gl_dupthresh_acked(sk, gs);
		gl_assert_alive(sk, gs);
	}
}

/* TCP has removed the packets that an ACK covers.  If a packet was only late, and TCP has
 * retransmitted it, the ACK of the late packet arrives too early for the retransmission.  RACK
 * takes it for the ACK of the retransmission if the time is above the minimum RTT, which behind a
 * queue is a small part of the RTT, and finds all packets lost that left before the retransmission.
 * So RACK must not use an ACK that arrives in less than half of the smoothed RTT: the next echo
 * finds the losses.
 */
static void tlt_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	const struct gl_transport *t = gl_transport(sk);
	struct gl_sock *gs = gl_sock_locked(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (t->base->pkts_acked)
		t->base->pkts_acked(sk, sample);
	if (gs && tlt_of(gs)->accused && !tlt_of(gs)->counting &&
	    tp->rack.rtt_us < tp->srtt_us >> 4)
		tp->rack.advanced = 0;
}

static void tlt_before_sending(struct sock *sk, struct gl_sock *gs, struct tlt *tlt)
{
	struct tlt_burst *burst = tlt_burst_of(gs);
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!tlt_is_rated(sk) && tlt->crowd.watched)
		tlt_guard_check(sk, gs, tlt);
	if (tp->lost_out > tp->retrans_out)
		tlt_order(sk, tlt);
	if (burst)
		tlt_burst_lend(sk, burst, READ_ONCE(tlt_net(sk)->mbit));
}

/* TCP is about to send, and sends lost packets first. */
static u32 tlt_min_tso_segs(struct sock *sk)
{
	const struct gl_transport *t = gl_transport(sk);
	struct gl_sock *gs = gl_sock_locked(sk);

	if (gs && gl_marking(gs))
		tlt_before_sending(sk, gs, tlt_of(gs));
	if (t->base->min_tso_segs)
		return t->base->min_tso_segs(sk);
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_min_tso_segs);
}

/* A timeout: the packets in flight are lost, and the next packet is important.  If the device still
 * has the packet that TCP would retransmit, TCP sends no packet now, but the kick does.
 */
static void tlt_rto(struct sock *sk, struct gl_sock *gs)
{
	struct tlt_burst *burst = tlt_burst_of(gs);
	struct tlt *tlt = tlt_of(gs);

	if (!gl_marking(gs))
		return;
	tlt_abandon(sk, tlt, GREENLANE_ARMED_NEXT);
	if (burst)
		tlt_burst_lost(sk, burst);
	tlt->accused = 0;
	tlt->dups = tcp_sk(sk)->dsack_dups;
	tlt->retrans = tcp_sk(sk)->total_retrans;
	gl_kick_soon(sk, gs);
	tlt->n.rearmed++;
	tlt_count(sk, TLT_REARMEDBYRTO, 1);
}

/* Of aeolus_*.  At a timeout TCP has saved the window of the burst. */
static u32 tlt_ssthresh(struct sock *sk)
{
	const struct gl_transport *t = gl_transport(sk);
	struct gl_sock *gs = gl_sock_locked(sk);
	struct tlt_burst *burst = gs ? tlt_burst_of(gs) : NULL;
	struct tcp_sock *tp = tcp_sk(sk);

	if (burst && burst->window) {
		tlt_burst_return(sk, burst);
		tp->prior_cwnd = tcp_snd_cwnd(tp);
		tp->prior_ssthresh = min(tp->prior_ssthresh, tcp_current_ssthresh(sk));
	}
	return t->base->ssthresh(sk);
}

static void tlt_set_state(struct sock *sk, u8 new_state)
{
	const struct gl_transport *t = gl_transport(sk);
	struct gl_sock *gs = gl_sock_locked(sk);

	if (t->base->set_state)
		t->base->set_state(sk, new_state);
	if (gs && new_state == TCP_CA_Loss)
		tlt_rto(sk, gs);
}

static void tlt_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct tlt_burst *burst = tlt_burst_of(gs);
	const struct tlt *tlt = tlt_of(gs);

	if (gs->transport->inner)
		gs->transport->inner->on_info(gs, info);

	info->state = tlt->state;
	if (tlt->reordered)
		info->flags |= GREENLANE_F_REORDERED;
	info->important_sent = tlt->n.important;
	info->echoes = tlt->n.echoes;
	info->clocks_byte = tlt->n.clocks_byte;
	info->clocks_mss = tlt->n.clocks_mss;
	info->marked_lost = tlt->n.marked_lost;
	info->rearmed = tlt->n.rearmed;
	if (!burst)
		return;
	info->unscheduled = burst->sent;
	info->bdp = tlt_burst_bytes(gs->sk, burst, READ_ONCE(tlt_net(gs->sk)->mbit));
	if (burst->off)
		info->flags |= GREENLANE_F_OFF;
}

static int tlt_set_aeolus(struct sock *sk, struct gl_sock *gs, int on)
{
	tlt_burst_of(gs)->off = !on;
	if (!on)
		tlt_burst_end(sk, tlt_burst_of(gs));
	return 0;
}

static int tlt_get_aeolus(const struct sock *sk, struct gl_sock *gs)
{
	return !tlt_burst_of(gs)->off;
}

static int tlt_set_bdp(struct sock *sk, struct gl_sock *gs, int bytes)
{
	tlt_burst_of(gs)->bdp = bytes;
	return 0;
}

static int tlt_get_bdp(const struct sock *sk, struct gl_sock *gs)
{
	return tlt_burst_of(gs)->bdp;
}

static const struct gl_sockopt tlt_burst_sockopt[] = {
	{ GREENLANE_AEOLUS, 1, .set = tlt_set_aeolus, .get = tlt_get_aeolus },
	{ GREENLANE_BDP, INT_MAX, .set = tlt_set_bdp, .get = tlt_get_bdp },
	{}
};

static int tlt_complete(struct gl_transport *t);

#define TLT_AS(its_name, base_name, has_rate, its_protocol)	\
	.ops = { .name = its_name base_name },			\
	.extends	= base_name,				\
	.complete	= tlt_complete,				\
	.rated		= has_rate,				\
	.protocol	= its_protocol,				\
	.on_xmit	= tlt_on_xmit,				\
	.on_last	= tlt_on_last,				\
	.on_refused	= tlt_on_refused,			\
	.on_packet	= tlt_on_packet,			\
	.on_kick	= tlt_on_kick,				\
	.on_switch	= tlt_on_switch,			\
	.is_alive	= tlt_is_alive,				\
	.on_info	= tlt_on_info

#define TLT(base, rated, protocol)				\
	{ .t = { TLT_AS("tlt_", base, rated, protocol) } }
#define AEOLUS(base)						\
	{							\
		.t = {						\
			TLT_AS("aeolus_", base, false, &tlt_protocol),	\
			.sockopt = tlt_burst_sockopt,		\
		},						\
		.bursts = true,					\
	}

/* The first ones: the fallbacks of the others. */
enum {
	TLT_RENO,
	TLT_AEOLUS_RENO,
};

static struct tlt_transport tlt_transports[] __read_mostly = {
	[TLT_RENO] = TLT("reno", false, &tlt_protocol),
	[TLT_AEOLUS_RENO] = AEOLUS("reno"),
	TLT("cubic", false, &tlt_protocol),
	TLT("dctcp", false, &tlt_protocol),
	TLT("dcqcn", true, &tlt_protocol),
	TLT("bbr", false, &tlt_protocol),
	TLT("dart", true, &tlt_dart_protocol),
	TLT("hpcc", false, &tlt_hpcc_protocol),
	AEOLUS("cubic"),
	AEOLUS("dctcp"),
};

static void tlt_init(struct sock *sk)
{
	struct gl_transport *t = gl_transport(sk);

	if (t->base->init)
		t->base->init(sk);
	/* Without ECN, dctcp and dcqcn switch the socket to reno.  Switch it to a form of reno. */
	if (inet_csk(sk)->icsk_ca_ops != &t->ops) {
		int form = tlt_bursts(t) ? TLT_AEOLUS_RENO : TLT_RENO;

		gl_fall_back(sk, &tlt_transports[form].t.ops);
	}

	/* A base that is a transport has attached the state.  The zeroed state is ARMED_LAST: the
	 * last packet of the first burst will be important.
	 */
	if (!gl_transport(sk)->inner)
		gl_attach(sk);
}

/* The base is a transport: the connection uses its callbacks, socket options and protocol, too. */
static void tlt_nest(struct gl_transport *t, const struct gl_transport *inner)
{
	t->on_ack = inner->on_ack;
	t->on_free = inner->on_free;
	t->sockopt = inner->sockopt;
	t->room = inner->room;
	t->always = inner->always;
	t->protocol->part[1] = inner->protocol;
}

static int tlt_complete(struct gl_transport *t)
{
	const struct tcp_congestion_ops *base = t->base;
	const struct gl_transport *inner = NULL;
	struct tcp_congestion_ops *ops = &t->ops;

	if (base->release == gl_release)
		inner = container_of(base, struct gl_transport, ops);
	gl_nest(t, inner, sizeof(struct tlt) + (tlt_bursts(t) ? sizeof(struct tlt_burst) : 0));
	if (inner)
		tlt_nest(t, inner);
	gl_base_clone(ops, base, THIS_MODULE);
	ops->init = tlt_init;
	ops->release = gl_release;
	ops->in_ack_event = tlt_in_ack_event;
	ops->pkts_acked = tlt_pkts_acked;
	ops->min_tso_segs = tlt_min_tso_segs;
	ops->set_state = tlt_set_state;
	if (tlt_bursts(t)) {
		/* Bursts need ports that drop them first. */
		ops->flags &= ~TCP_CONG_NON_RESTRICTED;
		ops->ssthresh = tlt_ssthresh;
	}
	return 0;
}

/* Default and limit of tlt_crowd, us.  A port of 1.8 MB drains in 360 us at 40 Gbit/s: half of that
 * leaves room for the connections that learn of the crowd later.
 */
#define TLT_CROWD		150
/* "N should be larger than the fan out degree" (§5.2); the paper's simulations have 96. */
#define TLT_EVERY		96
/* Twice the longest wait: the queue that counts at most. */
static unsigned int tlt_crowd_max = 20000;
static unsigned int tlt_every_max = U16_MAX;
static unsigned int tlt_mbit_max = LINK_SPEED_MBIT_MAX;

static const struct ctl_table tlt_sysctl_template[] = {
	GL_SYSCTL_UINT("tlt_clock", struct tlt_net, clock, SYSCTL_ZERO, SYSCTL_TWO),
	GL_SYSCTL_UINT("tlt_crowd", struct tlt_net, crowd, SYSCTL_ZERO, &tlt_crowd_max),
	GL_SYSCTL_UINT("tlt_every", struct tlt_net, every, SYSCTL_ZERO, &tlt_every_max),
	GL_SYSCTL_UINT("tlt_rate", struct tlt_net, mbit, SYSCTL_ZERO, &tlt_mbit_max),
};

static int __net_init tlt_net_init(struct net *net)
{
	struct tlt_net *tn = net_generic(net, tlt_net_id);

	tn->crowd = TLT_CROWD;
	tn->every = TLT_EVERY;
	tlt_crowds_init(&tn->crowds);
	tn->sysctl = gl_sysctl_add(net, tlt_sysctl_template,
				   ARRAY_SIZE(tlt_sysctl_template), tn);
	return tn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit tlt_net_exit(struct net *net)
{
	struct tlt_net *tn = net_generic(net, tlt_net_id);

	gl_sysctl_remove(tn->sysctl);
}

static struct pernet_operations tlt_net_ops = {
	.init	= tlt_net_init,
	.exit	= tlt_net_exit,
	.id	= &tlt_net_id,
	.size	= sizeof(struct tlt_net),
};

static int __init tlt_module_init(void)
{
	int i, err;

	/* Limit of a connection's state, bytes; 10,000 connections are usual. */
	BUILD_BUG_ON(sizeof(struct gl_sock) + sizeof(struct tlt) > 256);

	err = register_pernet_subsys(&tlt_net_ops);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(tlt_transports); i++) {
		err = gl_register_transport(&tlt_transports[i].t);
		/* The others fall back to these. */
		if (err && i <= TLT_AEOLUS_RENO)
			goto undo;
		if (err)
			pr_info("tcp_tlt: no %s without its base (%d)\n",
				tlt_transports[i].t.ops.name, err);
	}
	return 0;

undo:
	while (i--)
		gl_unregister_transport(&tlt_transports[i].t);
	unregister_pernet_subsys(&tlt_net_ops);
	return err;
}

static void __exit tlt_module_exit(void)
{
	int i;

	/* One that has failed has no base.  The last ones first: their protocols have parts. */
	for (i = ARRAY_SIZE(tlt_transports) - 1; i >= 0; i--)
		if (tlt_transports[i].t.base)
			gl_unregister_transport(&tlt_transports[i].t);
	unregister_pernet_subsys(&tlt_net_ops);
}

module_init(tlt_module_init);
module_exit(tlt_module_exit);

MODULE_ALIAS("tcp_tlt_reno");
MODULE_ALIAS("tcp_tlt_cubic");
MODULE_ALIAS("tcp_tlt_dctcp");
MODULE_ALIAS("tcp_tlt_dcqcn");
MODULE_ALIAS("tcp_tlt_bbr");
MODULE_ALIAS("tcp_tlt_dart");
MODULE_ALIAS("tcp_tlt_hpcc");
MODULE_ALIAS("tcp_aeolus_reno");
MODULE_ALIAS("tcp_aeolus_cubic");
MODULE_ALIAS("tcp_aeolus_dctcp");
MODULE_DESCRIPTION("TLT: timeout-less transport over reno, cubic, dctcp, dcqcn, bbr, dart and hpcc");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
