// SPDX-License-Identifier: GPL-2.0
/* Split a packet of TCP's retransmit queue.
 *
 * TCP sends many segments as one GSO packet, and splits it where a SACK block begins or ends
 * (tcp_fragment(), which is not exported).  A report of a trimmed packet names one segment, so that
 * one has to be split off here:
 *
 *	[1 2 3 4 5 6 7 8]  ->  [1 2 3] [4] [5 6 7 8]
 */
#include <linux/skbuff.h>

#include "gl_internal.h"

/* The segments of a part; @mss is that of the whole. */
static void gl_cut_segs(struct sk_buff *skb, u32 mss)
{
	u32 n = max(DIV_ROUND_UP(skb->len, mss), 1U);

	tcp_skb_pcount_set(skb, n);
	TCP_SKB_CB(skb)->tcp_gso_size = n > 1 ? mss : 0;
}

/* A packet that is charged to the socket, without data; @linear is the room for linear data. */
static struct sk_buff *gl_cut_alloc(struct sock *sk, unsigned int linear)
{
	struct sk_buff *rest;

	rest = alloc_skb_fclone(MAX_TCP_HEADER + linear, GFP_ATOMIC | __GFP_NOWARN);
	if (!rest)
		return NULL;
	if (!sk_wmem_schedule(sk, rest->truesize)) {
		__kfree_skb(rest);
		return NULL;
	}
	skb_reserve(rest, MAX_TCP_HEADER);
	rest->ip_summed = CHECKSUM_PARTIAL;
	sk_wmem_queued_add(sk, rest->truesize);
	sk_mem_charge(sk, rest->truesize);
	return rest;
}

/* Two parts may have more segments than the whole, if the cut is not between two segments. */
static void gl_cut_count(struct sock *sk, const struct sk_buff *skb, int more)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->packets_out += more;
	if (TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_RETRANS)
		tp->retrans_out += more;
	if (TCP_SKB_CB(skb)->sacked & TCPCB_LOST)
		tp->lost_out += more;
}

/* A requested time stamp stays with the part that has the requested byte. */
static void gl_cut_tstamp(struct sk_buff *skb, struct sk_buff *rest)
{
	struct skb_shared_info *from = skb_shinfo(skb), *to = skb_shinfo(rest);
	u8 flags = from->tx_flags & SKBTX_ANY_TSTAMP;

	if (!(flags || TCP_SKB_CB(skb)->txstamp_ack) ||
	    before(from->tskey, TCP_SKB_CB(rest)->seq))
		return;
	from->tx_flags &= ~flags;
	to->tx_flags |= flags;
	swap(from->tskey, to->tskey);
	TCP_SKB_CB(rest)->txstamp_ack = TCP_SKB_CB(skb)->txstamp_ack;
	TCP_SKB_CB(skb)->txstamp_ack = 0;
}

static void gl_cut_cb(struct tcp_skb_cb *cb, struct tcp_skb_cb *rest, u32 len)
{
	rest->seq = cb->seq + len;
	rest->end_seq = cb->end_seq;
	cb->end_seq = rest->seq;
	rest->tcp_flags = cb->tcp_flags;
	cb->tcp_flags &= ~(TCPHDR_FIN | TCPHDR_PSH);
	rest->sacked = cb->sacked;
	rest->eor = cb->eor;
	cb->eor = 0;
	rest->tx = cb->tx;
}

/* Put @rest behind @skb: into the queue by sequence number, and on RACK's list. */
static void gl_cut_link(struct sock *sk, struct sk_buff *skb, struct sk_buff *rest)
{
	struct rb_node *parent = &skb->rbnode, **link = &parent->rb_right;

	while (*link) {
		parent = *link;
		link = &parent->rb_left;
	}
	rb_link_node(&rest->rbnode, parent, link);
	rb_insert_color(&rest->rbnode, &sk->tcp_rtx_queue);
	list_add(&rest->tcp_tsorted_anchor, &skb->tcp_tsorted_anchor);
}

/* Make the packet writable; a device may still have a clone of it.  Its part of the socket's memory
 * stays the same, as with skb_unclone_keeptruesize().
 */
static bool gl_cut_unclone(struct sk_buff *skb)
{
	unsigned int truesize = skb->truesize;
	bool done = !skb_unclone(skb, GFP_ATOMIC | __GFP_NOWARN);

	skb->truesize = truesize;
	return done;
}

/* May the socket have one more packet?  As tcp_fragment(): a peer with a small MSS that reports
 * each segment as lost must not fill the memory (CVE-2019-11478).
 */
static bool gl_cut_is_allowed(const struct sock *sk, const struct sk_buff *skb)
{
	long limit = sk->sk_sndbuf + 2 * SKB_TRUESIZE(GSO_LEGACY_MAX_SIZE);

	return sk->sk_wmem_queued >> 1 <= limit || skb == tcp_rtx_queue_head(sk) ||
	       skb == tcp_rtx_queue_tail(sk);
}

/**
 * gl_cut() - split a packet of the retransmit queue
 * @sk: the connection, locked and not owned by a process
 * @skb: the packet, not SACKed
 * @len: bytes that remain in @skb, not 0
 *
 * Return: the second part; NULL, with @skb unchanged, if it is one segment, or if memory is short
 * or the socket has too much of it.
 */
struct sk_buff *gl_cut(struct sock *sk, struct sk_buff *skb, u32 len)
{
	u32 linear = skb_headlen(skb) - min(skb_headlen(skb), len);
	int segs = tcp_skb_pcount(skb);
	u32 mss = tcp_skb_mss(skb);
	struct sk_buff *rest;
	u32 moved;

	if (segs < 2 || len >= skb->len || !gl_cut_is_allowed(sk, skb) || !gl_cut_unclone(skb))
		return NULL;
	rest = gl_cut_alloc(sk, linear);
	if (!rest)
		return NULL;
	moved = skb->len - len - linear;
	rest->truesize += moved;
	skb->truesize -= moved;

	gl_cut_cb(TCP_SKB_CB(skb), TCP_SKB_CB(rest), len);
	skb_copy_decrypted(rest, skb);
	skb_split(skb, rest, len);
	rest->tstamp = skb->tstamp;
	gl_cut_tstamp(skb, rest);
	gl_cut_segs(skb, mss);
	gl_cut_segs(rest, mss);
	gl_cut_count(sk, skb, tcp_skb_pcount(skb) + tcp_skb_pcount(rest) - segs);
	__skb_header_release(rest);
	gl_cut_link(sk, skb, rest);
	return rest;
}
