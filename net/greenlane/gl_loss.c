// SPDX-License-Identifier: GPL-2.0
/* Loss detection by an answer.  The network keeps the order of a flow, so when a packet has
 * arrived, each packet sent before it has arrived too or is lost.
 *
 * TLT §5.1 "Loss detection" (an important packet and its echo), Aeolus §III-C (a probe and its
 * ACK).  A report of a trimmed packet (gl_trim.c) names the lost bytes: gl_lose_range().
 */
#include <linux/list_sort.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* In the Open state TCP assumes that nothing is lost: it does not look for losses on an ACK that
 * advances snd_una, and warns about retransmissions.
 */
static void gl_leave_open(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_ca_state == TCP_CA_Open)
		icsk->icsk_ca_state = TCP_CA_Disorder;
}

static bool gl_may_be_lost(const struct sk_buff *skb)
{
	return !(TCP_SKB_CB(skb)->sacked & (TCPCB_SACKED_ACKED | TCPCB_LOST));
}

/* Is a packet that may be lost missing on RACK's list?  RACK removes lost packets from the list,
 * and a retransmission adds them again.  But when TCP undoes a recovery
 * (tcp_undo_cwnd_reduction()), packets are no longer lost, were not retransmitted, and are not on
 * the list, so only a timer would find them.
 *
 * Such a packet is linked to itself only, until a SACK block splits it: then its parts are linked
 * to each other (tcp_fragment()).  So follow the links; they are few unless the packet is on RACK's
 * list, where the oldest packet usually is the first.
 */
static bool gl_is_forgotten(const struct tcp_sock *tp, const struct sk_buff *skb)
{
	const struct list_head *list = &tp->tsorted_sent_queue;
	const struct list_head *link = &skb->tcp_tsorted_anchor, *at;

	if (!gl_may_be_lost(skb) || link->prev == list)
		return false;
	for (at = link->next; at != link; at = at->next)
		if (at == list)
			return false;
	return true;
}

static int gl_by_time(void *unused, const struct list_head *a, const struct list_head *b)
{
	const struct sk_buff *x = list_entry(a, struct sk_buff, tcp_tsorted_anchor);
	const struct sk_buff *y = list_entry(b, struct sk_buff, tcp_tsorted_anchor);

	return tcp_skb_sent_after(tcp_skb_timestamp_us(x), tcp_skb_timestamp_us(y),
				  TCP_SKB_CB(x)->end_seq, TCP_SKB_CB(y)->end_seq);
}

/* If the oldest packet is missing on RACK's list, put all packets on it that may be lost. */
static void gl_remember(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb = tcp_rtx_queue_head(sk);

	if (!skb || !gl_is_forgotten(tp, skb))
		return;
	for (; skb; skb = skb_rb_next(skb))
		if (gl_may_be_lost(skb))
			list_move_tail(&skb->tcp_tsorted_anchor, &tp->tsorted_sent_queue);
	/* RACK stops at the first packet that was sent after the last delivered one. */
	list_sort(NULL, &tp->tsorted_sent_queue, gl_by_time);
}

/* Was any packet that is neither acked nor SACKed sent, or retransmitted, before the packet that
 * left at @us and ends at @end_seq?
 */
static bool gl_left_before(struct tcp_sock *tp, u64 us, u32 end_seq)
{
	const struct sk_buff *skb;

	skb = list_first_entry_or_null(&tp->tsorted_sent_queue, struct sk_buff,
				       tcp_tsorted_anchor);
	return skb && tcp_skb_sent_after(us, tcp_skb_timestamp_us(skb), end_seq,
					 TCP_SKB_CB(skb)->end_seq);
}

/* Make RACK's reordering window a round trip of @rtt_us, the maximum in RFC 8985 (§6.2).  RACK
 * itself begins with a quarter of the minimum RTT, and adds a quarter in each round trip with a
 * D-SACK.  Behind a queue an RTT is many of these quarters, and at each step TCP may retransmit all
 * packets in flight: RACK takes the ACK of a late packet for the ACK of its retransmission, and
 * finds the packets lost that left before.
 */
static void gl_rack_widen(struct tcp_sock *tp, u32 rtt_us)
{
	u32 step = max(tcp_min_rtt(tp) >> 2, 1U);

	tp->rack.reo_wnd_steps = min_t(u32, DIV_ROUND_UP(rtt_us, step), U8_MAX);
	tp->rack.reo_wnd_persist = TCP_RACK_RECOVERY_THRESH;
}

/**
 * gl_rack_wait() - let RACK wait a round trip before it finds a packet lost
 * @sk: the connection, locked
 *
 * For a transport whose peer names the lost packets: RACK, and three SACKed packets, would often
 * find them first.  TCP may reset the window, so call this with each ACK.
 */
void gl_rack_wait(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->reord_seen = max(tp->reord_seen, 1U);
	gl_rack_widen(tp, tp->srtt_us >> 3);
	/* RACK ignores the ACK of a retransmission that is faster than the minimum round trip, and
	 * TCP replaces RACK's timer by that of the RTO.
	 */
	if (inet_csk(sk)->icsk_ca_state != TCP_CA_Open)
		tp->rack.advanced = 1;
}
EXPORT_SYMBOL_GPL(gl_rack_wait);

/* Have RACK learn that a packet which left at @us has arrived. */
static void gl_rack_advance(struct tcp_sock *tp, u64 us, u32 end_seq)
{
	if (tcp_skb_sent_after(us, tp->rack.mstamp, end_seq, tp->rack.end_seq)) {
		tp->rack.mstamp = us;
		tp->rack.end_seq = end_seq;
	}
	tp->rack.advanced = 1;
}

/* Have TCP look for losses among the packets that left before a packet that has arrived.  Return:
 * false if no packet did.
 */
static bool gl_examine_before(struct sock *sk, u64 us, u32 end_seq)
{
	gl_remember(sk);
	if (!gl_left_before(tcp_sk(sk), us, end_seq))
		return false;
	gl_rack_advance(tcp_sk(sk), us, end_seq);
	gl_leave_open(sk);
	return true;
}

/**
 * gl_lose_before() - have TCP mark the packets lost that were sent before a packet
 * @sk: the connection, locked; TCP has not looked for losses of this ACK yet
 * @us: when that packet was sent, in TCP's microseconds
 * @end_seq: its end
 *
 * RACK has this rule: packets sent before the last delivered packet are lost, once a reordering
 * window has passed.  The window depends on the round trip and on recent D-SACKs; with Aeolus
 * D-SACKs do not indicate reordering, as it retransmits unacknowledged data when a credit would
 * be wasted.  Setting both to 0 makes the window 0; gl_lose_settle() restores them.
 *
 * Return: false if no unacknowledged packet was sent before it.
 */
bool gl_lose_before(struct sock *sk, u64 us, u32 end_seq)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!gl_examine_before(sk, us, end_seq))
		return false;
	tp->rack.rtt_us = 0;
	tp->rack.reo_wnd_steps = 0;
	tp->rack.dsack_seen = 0;
	return true;
}
EXPORT_SYMBOL_GPL(gl_lose_before);

/**
 * gl_suspect_before() - have TCP examine the packets that were sent before a packet
 * @sk: the connection, locked; TCP has not looked for losses of this ACK yet
 * @us: when that packet was sent, in TCP's microseconds
 * @end_seq: its end
 *
 * As gl_lose_before(), for a path that reorders packets: RACK's reordering window is a round trip,
 * so a packet that is only late is not retransmitted.
 *
 * Return: false if no unacknowledged packet was sent before it.
 */
bool gl_suspect_before(struct sock *sk, u64 us, u32 end_seq)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!gl_examine_before(sk, us, end_seq))
		return false;
	tp->rack.rtt_us = max_t(u64, tcp_clock_us() - us, 1);
	gl_rack_widen(tp, tp->rack.rtt_us);
	return true;
}
EXPORT_SYMBOL_GPL(gl_suspect_before);

/**
 * gl_reorder_seen() - set in TCP's state that the path reorders packets
 * @sk: the connection, locked
 * @gs: its state
 *
 * RACK's reordering window, and TCP's own duplicate threshold, apply from now on.
 */
void gl_reorder_seen(struct sock *sk, struct gl_sock *gs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	WRITE_ONCE(tp->reord_seen, tp->reord_seen + 1);
	gl_rack_widen(tp, tp->srtt_us >> 3);
	gl_dupthresh_restore(sk, gs);
}
EXPORT_SYMBOL_GPL(gl_reorder_seen);

/**
 * gl_lose_settle() - restore RACK's reordering window after TCP has looked for losses
 * @sk: the connection, locked and not owned by a process
 *
 * The restored RTT is the RTT of the packet that has just arrived.  The smoothed RTT is shorter
 * while a queue grows, and with it RACK would find packets lost that are only as late as that
 * packet.
 */
void gl_lose_settle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->rack.rtt_us)
		tp->rack.rtt_us = max_t(u64, tcp_clock_us() - tp->rack.mstamp, 1);
	if (!tp->rack.reo_wnd_steps)
		tp->rack.reo_wnd_steps = 1;
}
EXPORT_SYMBOL_GPL(gl_lose_settle);

/* TCP retransmits from its hint on; without one from the head, where packets may wait since an RTO.
 * As tcp_verify_retransmit_hint(), before the packet is marked.
 */
static void gl_lose_hint(struct tcp_sock *tp, struct sk_buff *skb)
{
	const struct sk_buff *hint = tp->retransmit_skb_hint;

	if (hint ? before(TCP_SKB_CB(skb)->seq, TCP_SKB_CB(hint)->seq) :
		   tp->retrans_out >= tp->lost_out)
		tp->retransmit_skb_hint = skb;
}

/**
 * gl_lose() - mark a packet, or its retransmission, as lost, so that TCP retransmits it
 * @sk: the connection, locked and not owned by a process
 * @skb: a packet in the retransmit queue that is not SACKed
 */
void gl_lose(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u8 *sacked = &TCP_SKB_CB(skb)->sacked;
	u32 segs = tcp_skb_pcount(skb);

	if ((*sacked & (TCPCB_LOST | TCPCB_SACKED_RETRANS)) == TCPCB_LOST)
		return;
	gl_lose_hint(tp, skb);
	/* After an undo a packet that was retransmitted is not lost. */
	if (*sacked & TCPCB_SACKED_RETRANS) {
		*sacked &= ~TCPCB_SACKED_RETRANS;
		tp->retrans_out -= segs;
	}
	if (!(*sacked & TCPCB_LOST)) {
		*sacked |= TCPCB_LOST;
		tp->lost_out += segs;
	}
	tp->lost += segs;
	gl_leave_open(sk);
}
EXPORT_SYMBOL_GPL(gl_lose);

/* The packet of the retransmit queue that has the byte @seq, or NULL. */
static struct sk_buff *gl_rtx_find(struct sock *sk, u32 seq)
{
	struct rb_node *p = sk->tcp_rtx_queue.rb_node;

	while (p) {
		struct sk_buff *skb = rb_to_skb(p);

		if (before(seq, TCP_SKB_CB(skb)->seq))
			p = p->rb_left;
		else if (!before(seq, TCP_SKB_CB(skb)->end_seq))
			p = p->rb_right;
		else
			return skb;
	}
	return NULL;
}

/* No report of a packet arrives sooner after it left: the round trip through one switch.  TCP's
 * minimum RTT is no measure, as headers bypass the queues that it may contain.
 */
#define GL_REPORT_US	5

/* Was the packet retransmitted just now, or does fq still hold it?  Then the report is about an
 * earlier transmission.
 */
static bool gl_is_newer(const struct sk_buff *skb)
{
	s64 age = tcp_clock_us() - tcp_skb_timestamp_us(skb);

	return TCP_SKB_CB(skb)->sacked & TCPCB_RETRANS && age < GL_REPORT_US;
}

/* Split off the segments from @seq to @end.  A forged report must not split segments. */
static struct sk_buff *gl_cut_out(struct sock *sk, struct sk_buff *skb, u32 seq, u32 end)
{
	u32 mss = max(tcp_skb_mss(skb), 1), skip, keep;

	skip = rounddown(seq - TCP_SKB_CB(skb)->seq, mss);
	if (skip)
		skb = gl_cut(sk, skb, skip) ?: skb;
	keep = roundup(end - TCP_SKB_CB(skb)->seq, mss);
	if (keep < skb->len)
		gl_cut(sk, skb, keep);
	return skb;
}

/**
 * gl_lose_range() - mark bytes as lost
 * @sk: the connection, locked and not owned by a process
 * @seq: the first one
 * @end: behind the last one
 *
 * Bytes that are SACKed, or were sent again meanwhile, are not marked.
 *
 * Return: whether a packet is marked.
 */
bool gl_lose_range(struct sock *sk, u32 seq, u32 end)
{
	struct sk_buff *skb;
	bool lost = false;

	seq = before(seq, tcp_sk(sk)->snd_una) ? tcp_sk(sk)->snd_una : seq;
	for (skb = gl_rtx_find(sk, seq); skb && before(seq, end); skb = skb_rb_next(skb)) {
		if (!(TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED) && !gl_is_newer(skb)) {
			if (tcp_skb_pcount(skb) > 1)
				skb = gl_cut_out(sk, skb, seq, end);
			gl_lose(sk, skb);
			lost = true;
		}
		seq = TCP_SKB_CB(skb)->end_seq;
	}
	return lost;
}
