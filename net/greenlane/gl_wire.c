// SPDX-License-Identifier: GPL-2.0
/* The bytes of a packet that the layer reads and writes: the DS field, the greenlane TCP option,
 * whose form is in <net/gl_option.h>, and TCP's checksum.
 */
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/netfilter.h>
#include <net/dsfield.h>
#include <net/gl_int.h>
#include <net/ip.h>
#include <net/ip6_checksum.h>
#include <net/ipv6.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- the DS field ---------------------------------------------------------- */

u8 gl_dsfield(const struct sk_buff *skb, u8 family)
{
	return family == NFPROTO_IPV4 ? ipv4_get_dsfield(ip_hdr(skb)) :
					ipv6_get_dsfield(ipv6_hdr(skb));
}

/* @keep: bits of the DS field that stay.  The header is writable. */
void gl_set_dsfield(struct sk_buff *skb, u8 family, u8 keep, u8 dsfield)
{
	__be16 *word = (__be16 *)skb_network_header(skb), old = *word;

	if (family == NFPROTO_IPV4) {
		ipv4_change_dsfield(ip_hdr(skb), keep, dsfield);
		return;
	}
	ipv6_change_dsfield(ipv6_hdr(skb), keep, dsfield);
	/* IPv4's header checksum compensates the change in skb->csum; IPv6 has no such checksum. */
	if (skb->ip_summed == CHECKSUM_COMPLETE)
		skb->csum = csum_add(csum_sub(skb->csum, (__force __wsum)old),
				     (__force __wsum)*word);
}

/**
 * gl_change_dsfield() - as gl_set_dsfield(), for a packet whose header may be shared
 * @net: the namespace
 * @skb: the packet; its data begins with the IP header
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 * @keep: bits of the DS field to keep
 * @dsfield: bits to set
 *
 * Return: false, with the packet unchanged, if memory is short.
 */
bool gl_change_dsfield(const struct net *net, struct sk_buff *skb, u8 family, u8 keep,
		       u8 dsfield)
{
	unsigned int hlen = family == NFPROTO_IPV4 ? sizeof(struct iphdr) :
						     sizeof(struct ipv6hdr);

	if (skb_ensure_writable(skb, hlen)) {
		gl_inc_stats(net, GL_MIB_NOMEMORY);
		return false;
	}
	gl_set_dsfield(skb, family, keep, dsfield);
	return true;
}

/* --- the option ------------------------------------------------------------ */

/* The AccECN options (RFC 9768, 3.2.3); defined in <net/tcp.h> since 6.18. */
#define GL_TCPOPT_ACCECN0	172
#define GL_TCPOPT_ACCECN1	174

/**
 * gl_option_read() - read the greenlane option
 * @th: a complete TCP header
 * @seg: where to store the option's field and words, or NULL
 *
 * Return: its code; 0 without the option.
 */
u8 gl_option_read(const struct tcphdr *th, struct gl_seg *seg)
{
	const u8 *opt = gl_option_find(th, NULL);
	int i;

	if (!opt || (th->syn && opt[5] != th->ack))
		return 0;
	if (seg) {
		seg->field = get_unaligned_be16(opt + GL_INT_OFFSET);
		seg->words = min((opt[1] - GL_OPT_LEN(0)) / 4, GL_WORDS_MAX);
		for (i = 0; i < seg->words; i++)
			seg->word[i] = get_unaligned_be32(opt + GL_OPT_LEN(i));
	}
	return opt[4];
}

/* Remove the last SACK block to make room.  It is the oldest one (RFC 2018: newest first), and
 * the next ACK will report it again.
 */
static void gl_option_drop_sack(struct sk_buff *skb)
{
	struct tcphdr *th = tcp_hdr(skb);
	u8 *sack = (u8 *)gl_option_next(th, TCPOPT_SACK, NULL);
	u8 *end = (u8 *)th + th->doff * 4;
	u8 *block;

	if (!sack || sack[1] < TCPOLEN_SACK_BASE + 2 * TCPOLEN_SACK_PERBLOCK)
		return;
	block = sack + sack[1] - TCPOLEN_SACK_PERBLOCK;
	memmove(block, block + TCPOLEN_SACK_PERBLOCK, end - block - TCPOLEN_SACK_PERBLOCK);
	sack[1] -= TCPOLEN_SACK_PERBLOCK;
	th->doff -= TCPOLEN_SACK_PERBLOCK / 4;
	skb_trim(skb, skb->len - TCPOLEN_SACK_PERBLOCK);
}

/* Remove the AccECN option to make room.  Its counters are cumulative, and the next AccECN option
 * reports them (RFC 9768, 3.2.3: any segment may be without it).
 */
static void gl_option_drop_accecn(struct sk_buff *skb)
{
	struct tcphdr *th = tcp_hdr(skb);
	u8 *end = (u8 *)th + th->doff * 4;
	unsigned int len, cut;
	u8 *opt;

	opt = (u8 *)gl_option_next(th, GL_TCPOPT_ACCECN0, NULL);
	if (!opt)
		opt = (u8 *)gl_option_next(th, GL_TCPOPT_ACCECN1, NULL);
	if (!opt)
		return;
	len = opt[1];
	cut = round_down(len, 4);
	memmove(opt, opt + len, end - opt - len);
	memset(end - len, TCPOPT_NOP, len - cut);
	th->doff -= cut / 4;
	skb_trim(skb, skb->len - cut);
}

static bool gl_option_fits(const struct sk_buff *skb, unsigned int words)
{
	return tcp_hdrlen(skb) + GL_OPT_LEN(words) <= GL_HEADER_MAX;
}

/**
 * gl_option_room() - room for the option in the TCP header
 * @skb: a packet from TCP; its data begins with the TCP header
 *
 * Return: the number of words that the option may have; negative if there is no room for it.
 */
int gl_option_room(const struct sk_buff *skb)
{
	int room = GL_HEADER_MAX - GL_OPT_LEN(0) - (int)tcp_hdrlen(skb);

	return room < 0 ? -1 : min(room / 4, GL_WORDS_MAX);
}

/* Move the headers, @hlen bytes with the TCP header at @thoff, towards the headroom and write
 * the option behind them.  The caller made sure of the headroom.
 */
static void gl_option_insert(struct sk_buff *skb, unsigned int thoff, unsigned int hlen,
			     u8 code, u16 field, const u32 *word, unsigned int words)
{
	const unsigned int len = GL_OPT_LEN(words);
	const void *old = skb->data;

	memmove(skb_push(skb, len), old, hlen);
	skb_set_transport_header(skb, thoff);
	gl_option_write((__be32 *)(skb->data + hlen), code, field, word, words);
	tcp_hdr(skb)->doff += len / 4;
}

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

/* Does this packet own its headers?  TCP's clone of data does, and TCP writes them there too: its
 * original keeps the payload only.
 */
static bool gl_option_may_write(const struct sk_buff *skb)
{
	return skb->len == tcp_hdrlen(skb) ? !skb_cloned(skb) :
					     skb->ip_summed == CHECKSUM_PARTIAL;
}

/* Make room in a pure ACK.  Data keeps its options: TCP has chosen its length by them. */
static bool gl_option_make_room(struct sk_buff *skb, unsigned int words)
{
	bool pure = skb->len == tcp_hdrlen(skb);

	if (pure && !gl_option_fits(skb, words))
		gl_option_drop_sack(skb);
	if (pure && !gl_option_fits(skb, words))
		gl_option_drop_accecn(skb);
	return gl_option_fits(skb, words);
}

/**
 * gl_option_add() - add the option to a packet from TCP
 * @sk: its socket
 * @skb: the packet; its data begins with the TCP header
 * @kind: the kind with the option's code and number of words
 * @seg: the option's field and words
 *
 * The oldest of several SACK blocks of a pure ACK is dropped if the option needs its room, and if
 * that is not enough, the AccECN option.
 *
 * Return: false if there is still no room.
 */
bool gl_option_add(struct sock *sk, struct sk_buff *skb, const struct gl_kind *kind,
		   const struct gl_seg *seg)
{
	unsigned int hlen;

	if (!gl_option_may_write(skb) || skb_headroom(skb) < GL_OPT_LEN(kind->words) ||
	    !gl_option_make_room(skb, kind->words))
		return false;
	if (skb_cow_head(skb, GL_OPT_LEN(kind->words)))
		return false;
	hlen = tcp_hdrlen(skb);
	gl_option_insert(skb, 0, hlen, kind->code, seg->field, seg->word, kind->words);
	gl_tcp_check(sk, skb);
	return true;
}

/**
 * gl_option_add_hello() - add the option to a SYN or SYN-ACK that has its IP header
 * @skb: the packet, at LOCAL_OUT
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 * @hello: its code
 *
 * Return: false, with the packet unchanged, if there is no room: the usual options and a Fast Open
 * cookie may fill the TCP header, and Fast Open's data the MTU.
 */
bool gl_option_add_hello(struct sk_buff *skb, u8 family, u8 hello)
{
	const struct dst_entry *dst = skb_dst(skb);
	unsigned int ihl = skb_transport_offset(skb);
	const unsigned int len = GL_OPT_LEN(0);
	unsigned int old = skb->len - ihl;

	if (!gl_option_fits(skb, 0) || skb->ip_summed != CHECKSUM_PARTIAL || skb_is_gso(skb) ||
	    !dst || skb->len + len > dst_mtu(dst) ||
	    skb_cow_head(skb, LL_RESERVED_SPACE(dst->dev) + len))
		return false;

	gl_option_insert(skb, ihl, ihl + tcp_hdrlen(skb), hello, 0, NULL, 0);
	skb->data[ihl + tcp_hdrlen(skb) - len + 5] = tcp_hdr(skb)->ack;
	skb_reset_network_header(skb);
	skb->csum_start -= len;
	/* With CHECKSUM_PARTIAL, check holds the pseudo-header's sum, which includes the length. */
	inet_proto_csum_replace2(&tcp_hdr(skb)->check, skb, htons(old), htons(old + len), true);
	if (family == NFPROTO_IPV4) {
		ip_hdr(skb)->tot_len = htons(skb->len);
		ip_send_check(ip_hdr(skb));
	} else {
		ipv6_hdr(skb)->payload_len = htons(skb->len - sizeof(struct ipv6hdr));
	}
	return true;
}
