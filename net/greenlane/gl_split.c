// SPDX-License-Identifier: GPL-2.0
/* Split a TSO packet where the mark changes: into all segments but the last, and the last.
 *
 *	[h|1 2 3 4 5 6 7 8]  ->  [h|1 2 3 4 5 6 7]  [h|8]
 *	     GSO, data                GSO, data    important
 *
 * This happens once a round trip.  skb_gso_segment() would make eight packets instead of two.
 */
#include <linux/skbuff.h>
#include <net/ip6_checksum.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/**
 * gl_tcp_check() - leave TCP's checksum to the device
 * @sk: the connection
 * @skb: a packet without an IP header yet
 */
void gl_tcp_check(const struct sock *sk, struct sk_buff *skb)
{
	struct tcphdr *th = tcp_hdr(skb);

#if IS_ENABLED(CONFIG_IPV6)
	/* An IPv6 socket of an IPv4 connection has the length of struct iphdr. */
	if (inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct ipv6hdr))
		th->check = ~tcp_v6_check(skb->len, &sk->sk_v6_rcv_saddr,
					  &sk->sk_v6_daddr, 0);
	else
#endif
		th->check = ~tcp_v4_check(skb->len, inet_sk(sk)->inet_saddr,
					  inet_sk(sk)->inet_daddr, 0);
	skb->ip_summed = CHECKSUM_PARTIAL;
	skb->csum_start = skb_transport_header(skb) - skb->head;
	skb->csum_offset = offsetof(struct tcphdr, check);
}

static void gl_split_gso(struct sk_buff *skb, const struct sk_buff *whole,
			 unsigned int segs)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);

	shinfo->gso_segs = segs;
	shinfo->gso_type = segs > 1 ? skb_shinfo(whole)->gso_type : 0;
	shinfo->gso_size = segs > 1 ? skb_shinfo(whole)->gso_size : 0;
}

/* A requested time stamp stays with the part that has the requested byte. */
static void gl_split_tstamp(struct sk_buff *head, struct sk_buff *tail,
			    const struct sk_buff *whole, u32 tail_seq)
{
	const struct skb_shared_info *from = skb_shinfo(whole);
	struct sk_buff *skb = before(from->tskey, tail_seq) ? head : tail;

	if (!(from->tx_flags & SKBTX_ANY_TSTAMP))
		return;
	skb_shinfo(skb)->tx_flags |= from->tx_flags & SKBTX_ANY_TSTAMP;
	skb_shinfo(skb)->tskey = from->tskey;
}

/* Charge each part to the socket's send memory, as tcp_gso_segment() does, so that TCP small
 * queues count the packet until both parts are freed.
 */
static void gl_split_own(struct sk_buff *skb, const struct sk_buff *whole)
{
	skb->sk = whole->sk;
	skb->destructor = whole->destructor;
	refcount_add(skb->truesize, &skb->sk->sk_wmem_alloc);
}

/* Cut the last segment off @head, which keeps @len bytes of data.  Both parts get headers. */
static struct sk_buff *gl_split_tail(struct sk_buff *head, unsigned int hlen,
				     unsigned int len)
{
	unsigned int headroom = skb_headroom(head);
	struct sk_buff *tail;

	/* The linear part may have data behind the headers. */
	tail = alloc_skb(headroom + skb_headlen(head), GFP_ATOMIC | __GFP_NOWARN);
	if (!tail)
		return NULL;
	skb_reserve(tail, headroom + hlen);
	skb_copy_header(tail, head);
	skb_split(head, tail, hlen + len);

	/* skb_copy_header() copied the header offsets, so lay out the head in the same way. */
	__skb_push(tail, hlen);
	memcpy(tail->data, head->data, hlen);
	tail->truesize += tail->data_len;
	head->truesize -= tail->data_len;
	return tail;
}

/**
 * gl_split() - split a TSO packet before its last segment
 * @sk: its socket, locked
 * @skb: a packet from TCP without an IP header yet; a clone that TCP has just made
 * @head: all but the last segment
 * @tail: the last segment
 *
 * Return: true if @skb was split and freed; false, with @skb unchanged, if it cannot be split.
 */
bool gl_split(struct sock *sk, struct sk_buff *skb, struct sk_buff **head,
	      struct sk_buff **tail)
{
	unsigned int hlen = tcp_hdrlen(skb);
	unsigned int mss = skb_shinfo(skb)->gso_size;
	unsigned int payload = skb->len - hlen;
	unsigned int segs;
	struct tcphdr *th;
	u32 tail_seq;

	if (!mss || payload <= mss || skb_headlen(skb) < hlen || gl_tcp_signed(sk) ||
	    skb->ip_summed != CHECKSUM_PARTIAL)
		goto whole;
	segs = DIV_ROUND_UP(payload, mss);

	*head = pskb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!*head)
		goto whole;
	*tail = gl_split_tail(*head, hlen, (segs - 1) * mss);
	if (!*tail) {
		consume_skb(*head);
		goto whole;
	}
	tail_seq = ntohl(tcp_hdr(skb)->seq) + (segs - 1) * mss;

	th = tcp_hdr(*head);
	th->fin = 0;
	th->psh = 0;
	th = tcp_hdr(*tail);
	th->seq = htonl(tail_seq);
	/* RFC 3168 sends CWR once; with AccECN the three bits are a counter. */
	if (!(skb_shinfo(skb)->gso_type & GL_GSO_TCP_ACCECN))
		th->cwr = 0;

	gl_split_gso(*head, skb, segs - 1);
	gl_split_gso(*tail, skb, 1);
	gl_tcp_check(sk, *head);
	gl_tcp_check(sk, *tail);
	gl_split_tstamp(*head, *tail, skb, tail_seq);
	(*tail)->ooo_okay = 0;
	gl_split_own(*head, skb);
	gl_split_own(*tail, skb);
	consume_skb(skb);
	gl_inc_stats(sock_net(sk), GL_MIB_SPLIT);
	return true;

whole:
	gl_inc_stats(sock_net(sk), GL_MIB_SPLITFAILED);
	return false;
}
