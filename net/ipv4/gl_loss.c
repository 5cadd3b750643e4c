// SPDX-License-Identifier: GPL-2.0
/* What an answer says about losses: a packet has arrived, and the network keeps the
 * order of a flow, so what left before it has arrived too, or is lost.
 *
 * TLT §5.1 "Loss detection" (an important packet and its echo), Aeolus §III-C (a
 * probe and its ACK).
 */
#include <net/gl_compat.h>
#include "gl_internal.h"

/* In the Open state nothing is lost, for TCP: an ACK that moves snd_una is above
 * suspicion then, and what is sent again is a reason to warn.
 */
static void gl_leave_open(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (icsk->icsk_ca_state == TCP_CA_Open)
		icsk->icsk_ca_state = TCP_CA_Disorder;
}

static bool gl_is_forgotten(const struct sk_buff *skb)
{
	return !(TCP_SKB_CB(skb)->sacked & (TCPCB_SACKED_ACKED | TCPCB_LOST)) &&
	       list_empty(&skb->tcp_tsorted_anchor);
}

/* RACK takes what is lost out of its list, and a retransmission puts it there again.
 * But where TCP undoes a recovery (tcp_undo_cwnd_reduction()) it is not lost any more,
 * was not sent again, and RACK never looks at it: only a timer would.  It is the oldest.
 */
static void gl_remember(struct sock *sk)
{
	struct sk_buff *skb = tcp_rtx_queue_head(sk);
	LIST_HEAD(forgotten);

	if (!skb || !gl_is_forgotten(skb))
		return;
	for (; skb; skb = skb_rb_next(skb))
		if (gl_is_forgotten(skb))
			list_add_tail(&skb->tcp_tsorted_anchor, &forgotten);
	list_splice(&forgotten, &tcp_sk(sk)->tsorted_sent_queue);
}

/* Of what was sent and is neither acked nor SACKed, has anything left before?
 * Retransmissions included.
 */
static bool gl_left_before(struct tcp_sock *tp, u64 us, u32 end_seq)
{
	const struct sk_buff *skb;

	skb = list_first_entry_or_null(&tp->tsorted_sent_queue, struct sk_buff,
				       tcp_tsorted_anchor);
	return skb && tcp_skb_sent_after(us, tcp_skb_timestamp_us(skb), end_seq,
					 TCP_SKB_CB(skb)->end_seq);
}

/**
 * gl_lose_before() - TCP shall take for lost what left before a packet
 * @sk: the connection, locked; TCP has not looked for losses yet
 * @us: when that packet left, in TCP's microseconds
 * @end_seq: its end
 *
 * TCP marks it, with the rules of RACK, which are just these: what was sent before
 * the packet that was delivered last is lost, after a while that allows for
 * reordering: a round trip, and a part of one for each D-SACK of late, which with
 * Aeolus is none of reordering but of a credit that had nothing better to send.
 * There is no such while with 0 of both; gl_lose_settle() undoes it.
 *
 * Return: false if there is no such thing.
 */
bool gl_lose_before(struct sock *sk, u64 us, u32 end_seq)
{
	struct tcp_sock *tp = tcp_sk(sk);

	gl_remember(sk);
	if (!gl_left_before(tp, us, end_seq))
		return false;
	if (tcp_skb_sent_after(us, tp->rack.mstamp, end_seq, tp->rack.end_seq)) {
		tp->rack.mstamp = us;
		tp->rack.end_seq = end_seq;
	}
	tp->rack.rtt_us = 0;
	tp->rack.reo_wnd_steps = 0;
	tp->rack.dsack_seen = 0;
	tp->rack.advanced = 1;
	gl_leave_open(sk);
	return true;
}
EXPORT_SYMBOL_GPL(gl_lose_before);

/**
 * gl_lose_settle() - TCP has looked: give RACK back what it begins with
 * @sk: the connection, locked and at rest
 */
void gl_lose_settle(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->rack.rtt_us)
		tp->rack.rtt_us = tp->srtt_us >> 3;
	if (!tp->rack.reo_wnd_steps)
		tp->rack.reo_wnd_steps = 1;
}
EXPORT_SYMBOL_GPL(gl_lose_settle);

/**
 * gl_lose() - TCP shall send a packet again, as its next
 * @sk: the connection, locked and at rest
 * @skb: in its retransmit queue, neither acked, SACKed nor lost; nothing that is
 *	lost comes before it
 */
void gl_lose(struct sock *sk, struct sk_buff *skb)
{
	struct tcp_sock *tp = tcp_sk(sk);

	TCP_SKB_CB(skb)->sacked |= TCPCB_LOST;
	tp->lost_out += tcp_skb_pcount(skb);
	tp->lost += tcp_skb_pcount(skb);
	tp->retransmit_skb_hint = skb;
	gl_leave_open(sk);
}
EXPORT_SYMBOL_GPL(gl_lose);
