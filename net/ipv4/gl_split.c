// SPDX-License-Identifier: GPL-2.0
/* Split a TSO packet in two where the mark changes: all but the last segment,
 * and the last.
 *
 *	[h|1 2 3 4 5 6 7 8]  ->  [h|1 2 3 4 5 6 7]  [h|8]
 *	     GSO, data                GSO, data    important
 *
 * Once a round trip, and not with skb_gso_segment(), which would make eight.
 */
#include <linux/skbuff.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Older kernels say in a hop-by-hop header that an IPv6 packet has more than
 * 64 kB; it would have to go.  It is left whole; the clock that follows stands in
 * for its important packet.
 */
static bool gl_split_has_jumbo(const struct sk_buff *skb)
{
	return skb->protocol == htons(ETH_P_IPV6) &&
	       ipv6_hdr(skb)->nexthdr == NEXTHDR_HOP;
}

/**
 * gl_tcp_check() - leave TCP's checksum to the device
 * @sk: the connection
 * @skb: with its transport header set
 * @len: bytes from there on; they and the addresses are all that is in it yet
 */
void gl_tcp_check(const struct sock *sk, struct sk_buff *skb, unsigned int len)
{
	struct tcphdr *th = tcp_hdr(skb);

#if IS_ENABLED(CONFIG_IPV6)
	/* not an IPv6 socket that speaks IPv4 */
	if (inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct ipv6hdr))
		th->check = ~tcp_v6_check(len, &sk->sk_v6_rcv_saddr,
					  &sk->sk_v6_daddr, 0);
	else
#endif
		th->check = ~tcp_v4_check(len, inet_sk(sk)->inet_saddr,
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

/* A time stamp belongs to the part that has the byte it was asked for. */
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

/* Each part holds the socket's send memory that it uses, as tcp_gso_segment()
 * has it, so that TCP small queues see the packet until both are gone.
 */
static void gl_split_own(struct sk_buff *skb, const struct sk_buff *whole)
{
	skb->sk = whole->sk;
	skb->destructor = whole->destructor;
	refcount_add(skb->truesize, &skb->sk->sk_wmem_alloc);
}

/* The last segment, cut off @head, which keeps the rest: both with headers. */
static struct sk_buff *gl_split_tail(struct sk_buff *head, unsigned int hlen,
				     unsigned int len, unsigned int n)
{
	unsigned int headroom = skb_headroom(head);
	struct sk_buff *tail;

	/* Room for what lies in the linear part beyond the headers, if any. */
	tail = alloc_skb(headroom + skb_headlen(head), GFP_ATOMIC | __GFP_NOWARN);
	if (!tail)
		return NULL;
	skb_reserve(tail, headroom + hlen);
	skb_copy_header(tail, head);
	skb_split(head, tail, hlen + len);

	/* skb_copy_header() took the offsets for a head of the same layout. */
	__skb_push(tail, hlen);
	memcpy(tail->data, head->data, hlen);
	tail->truesize += tail->data_len;
	head->truesize -= tail->data_len;
	if (tail->protocol == htons(ETH_P_IP))
		ip_hdr(tail)->id = htons(ntohs(ip_hdr(head)->id) + n);
	return tail;
}

/* From the top: the length in the IP header, its checksum, and every hook,
 * ours included, which is told what it is.
 */
static void gl_split_out(struct net *net, struct sock *sk, struct gl_sock *gs,
			 struct sk_buff *skb, enum gl_kind kind)
{
	gs->preset = kind;
	if (skb->protocol == htons(ETH_P_IP))
		ip_local_out(net, sk, skb);
#if IS_ENABLED(CONFIG_IPV6)
	else
		ip6_local_out(net, sk, skb);
#endif
	gs->preset = GL_NONE;
}

/**
 * gl_split_send() - send a TSO packet whose last segment is another kind
 * @net: namespace
 * @sk: its socket, ours, locked
 * @gs: the socket's state
 * @skb: the packet at LOCAL_OUT, a clone that TCP has just made
 * @thoff: offset of the TCP header in it
 * @last: what the last segment is
 *
 * Return: true if both parts are on their way, and @skb is gone.  False if it
 * could not be split: then it has to go out whole, as what comes before the last, and
 * the transport is asked again with the next one.
 */
bool gl_split_send(struct net *net, struct sock *sk, struct gl_sock *gs,
		   struct sk_buff *skb, unsigned int thoff, enum gl_kind last)
{
	unsigned int hlen = thoff + tcp_hdrlen(skb);
	unsigned int mss = skb_shinfo(skb)->gso_size;
	unsigned int payload = skb->len - hlen;
	struct sk_buff *head, *tail;
	unsigned int segs;
	struct tcphdr *th;
	u32 tail_seq;

	if (!mss || payload <= mss || gl_split_has_jumbo(skb) ||
	    skb_headlen(skb) < hlen || skb->ip_summed != CHECKSUM_PARTIAL)
		goto whole;
	segs = DIV_ROUND_UP(payload, mss);

	head = pskb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!head)
		goto whole;
	tail = gl_split_tail(head, hlen, (segs - 1) * mss, segs - 1);
	if (!tail) {
		consume_skb(head);
		goto whole;
	}
	tail_seq = ntohl(tcp_hdr(skb)->seq) + (segs - 1) * mss;

	th = tcp_hdr(head);
	th->fin = 0;
	th->psh = 0;
	th = tcp_hdr(tail);
	th->seq = htonl(tail_seq);
	/* Classic ECN says CWR once; AccECN's three bits are a counter. */
	if (!(skb_shinfo(skb)->gso_type & GL_GSO_TCP_ACCECN))
		th->cwr = 0;

	gl_split_gso(head, skb, segs - 1);
	gl_split_gso(tail, skb, 1);
	gl_tcp_check(sk, head, head->len - thoff);
	gl_tcp_check(sk, tail, tail->len - thoff);
	gl_split_tstamp(head, tail, skb, tail_seq);
	tail->ooo_okay = 0;
	gl_split_own(head, skb);
	gl_split_own(tail, skb);
	consume_skb(skb);

	gl_inc_stats(net, GL_MIB_SPLIT);
	gl_split_out(net, sk, gs, head, gl_before_last(last));
	gl_split_out(net, sk, gs, tail, last);
	return true;

whole:
	gl_inc_stats(net, GL_MIB_SPLITFAILED);
	return false;
}
