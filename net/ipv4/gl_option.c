// SPDX-License-Identifier: GPL-2.0
/* Our TCP option: what a packet is, said where nobody but the other end changes it.
 *
 * Networks re-mark DSCPs, and applications use them too.  So a DSCP only tells a switch
 * what may be dropped, and the option tells the other end what it may answer or take:
 *
 *	 0        8        16                32       40                64
 *	|  254   | length | 0x474c, "GL"    |  code  |  0                | words ...
 *
 * Kind 254 is for experiments, of which each has a number (RFC 6994; ours is not
 * registered); who does not know it skips the option.  In a SYN or SYN-ACK the code says
 * which transport its sender runs, else what the packet is.
 */
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* TCP's header has 60 bytes at most. */
#define GL_HEADER_MAX	60

/* Codes are for the wire: they do not change. */
static const u8 gl_codes[GL_KINDS] = {
	[GL_IMPORTANT]	= 1,	/* TLT's hello */
	[GL_SCHEDULED]	= 2,	/* the credit transports' */
	[GL_SHARE]	= 3,	/* dart's; and a share of the line */
	[GL_CLOCK]	= 4,
	[GL_CLOCK_ECHO]	= 5,
	[GL_REQUEST]	= 6,
	[GL_CREDIT]	= 7,
};

static enum gl_kind gl_kind_of_code(u8 code)
{
	enum gl_kind kind;

	for (kind = GL_DATA; code && kind < GL_SHORT; kind++)
		if (gl_codes[kind] == code)
			return kind;
	return GL_NONE;
}

/**
 * gl_option_next() - find a TCP option
 * @th: a complete TCP header
 * @kind: the option's
 * @from: where to look: NULL for the first of them, or what this returned
 *
 * Return: the option, from its kind on; NULL if there is none.
 */
const u8 *gl_option_next(const struct tcphdr *th, u8 kind, const u8 *from)
{
	const u8 *end = (const u8 *)th + th->doff * 4;
	const u8 *opt = from ? from + from[1] : (const u8 *)(th + 1);

	while (opt < end) {
		if (*opt == TCPOPT_EOL)
			return NULL;
		if (*opt == TCPOPT_NOP) {
			opt++;
			continue;
		}
		if (end - opt < 2 || opt[1] < 2 || opt[1] > end - opt)
			return NULL;
		if (*opt == kind)
			return opt;
		opt += opt[1];
	}
	return NULL;
}

/**
 * gl_option_read() - what is this packet, by our option?
 * @th: a complete TCP header
 * @seg: its words go there; or NULL
 *
 * Return: GL_NONE if it has none, or one of a kind that we do not know.
 */
enum gl_kind gl_option_read(const struct tcphdr *th, struct gl_seg *seg)
{
	const u8 *opt = NULL;
	int i;

	/* Other experiments (Fast Open's first, SMC) have options of the same kind. */
	do {
		opt = gl_option_next(th, TCPOPT_EXP, opt);
		if (!opt)
			return GL_NONE;
	} while (opt[1] < GL_OPT_LEN(0) || get_unaligned_be16(opt + 2) != GL_OPT_EXID);

	if (seg) {
		seg->words = min((opt[1] - GL_OPT_LEN(0)) / 4, GL_WORDS_MAX);
		for (i = 0; i < seg->words; i++)
			seg->word[i] = get_unaligned_be32(opt + GL_OPT_LEN(i));
	}
	return gl_kind_of_code(opt[4]);
}

/**
 * gl_option_write() - write our option
 * @option: there; GL_OPT_LEN(@words) bytes
 * @kind: what the packet is
 * @word: what it says besides
 * @words: how many, GL_WORDS_MAX at most
 */
void gl_option_write(__be32 *option, enum gl_kind kind, const u32 *word, unsigned int words)
{
	unsigned int i;

	option[0] = htonl(TCPOPT_EXP << 24 | GL_OPT_LEN(words) << 16 | GL_OPT_EXID);
	option[1] = htonl(gl_codes[kind] << 24);
	for (i = 0; i < words; i++)
		option[2 + i] = htonl(word[i]);
}

/* The oldest of the SACK blocks makes room, and is reported again by the next ACK (RFC
 * 2018 has the newest first).
 */
static bool gl_option_drop_sack(struct sk_buff *skb)
{
	struct tcphdr *th = tcp_hdr(skb);
	u8 *sack = (u8 *)gl_option_next(th, TCPOPT_SACK, NULL);
	u8 *end = (u8 *)th + th->doff * 4;
	u8 *block;

	if (!sack || sack[1] < TCPOLEN_SACK_BASE + 2 * TCPOLEN_SACK_PERBLOCK)
		return false;
	block = sack + sack[1] - TCPOLEN_SACK_PERBLOCK;
	memmove(block, block + TCPOLEN_SACK_PERBLOCK, end - block - TCPOLEN_SACK_PERBLOCK);
	sack[1] -= TCPOLEN_SACK_PERBLOCK;
	th->doff -= TCPOLEN_SACK_PERBLOCK / 4;
	skb_trim(skb, skb->len - TCPOLEN_SACK_PERBLOCK);
	return true;
}

/**
 * gl_option_fits() - is there room for our option?
 * @skb: TCP's own packet, with the TCP header in front
 * @words: with so many words
 */
bool gl_option_fits(const struct sk_buff *skb, unsigned int words)
{
	return tcp_hdrlen(skb) + GL_OPT_LEN(words) <= GL_HEADER_MAX;
}

/* Move all headers, @hlen bytes of them, and write our option behind TCP's, which begins at
 * @thoff.  There is headroom.
 */
static void gl_option_insert(struct sk_buff *skb, unsigned int thoff, unsigned int hlen,
			     enum gl_kind kind, const u32 *word, unsigned int words)
{
	const unsigned int len = GL_OPT_LEN(words);
	const void *old = skb->data;

	memmove(skb_push(skb, len), old, hlen);
	skb_set_transport_header(skb, thoff);
	gl_option_write((__be32 *)(skb->data + hlen), kind, word, words);
	tcp_hdr(skb)->doff += len / 4;
}

/**
 * gl_option_add() - put our option into TCP's own ACK
 * @sk: its socket
 * @skb: the ACK, without data, with the TCP header in front
 * @kind: what it is
 * @word: what the option says besides
 * @words: how many
 *
 * Return: false if there is no room for it.
 */
bool gl_option_add(struct sock *sk, struct sk_buff *skb, enum gl_kind kind, const u32 *word,
		   unsigned int words)
{
	if (skb->len != tcp_hdrlen(skb) || skb_cloned(skb) ||
	    skb_headroom(skb) < GL_OPT_LEN(words))
		return false;
	if (!gl_option_fits(skb, words) && !gl_option_drop_sack(skb))
		return false;
	if (!gl_option_fits(skb, words))
		return false;
	/* TCP reserves MAX_TCP_HEADER, which allows for as many options as fit. */
	gl_option_insert(skb, 0, tcp_hdrlen(skb), kind, word, words);
	gl_tcp_check(sk, skb);
	return true;
}

/**
 * gl_option_add_hello() - put our option into a SYN or SYN-ACK that has its IP header
 * @skb: the packet, at LOCAL_OUT
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 * @hello: which transport
 *
 * Return: false, and nothing has changed, if there is no room: a Fast Open cookie and what
 * all have may fill the header, and its data the packet.
 */
bool gl_option_add_hello(struct sk_buff *skb, u8 family, enum gl_kind hello)
{
	const struct dst_entry *dst = skb_dst(skb);
	unsigned int ihl = skb_transport_offset(skb);
	const unsigned int len = GL_OPT_LEN(0);
	unsigned int old = skb->len - ihl;

	if (!gl_option_fits(skb, 0) || skb->ip_summed != CHECKSUM_PARTIAL || skb_is_gso(skb) ||
	    !dst || skb->len + len > dst_mtu(dst) ||
	    skb_cow_head(skb, LL_RESERVED_SPACE(dst->dev) + len))
		return false;

	gl_option_insert(skb, ihl, ihl + tcp_hdrlen(skb), hello, NULL, 0);
	skb_reset_network_header(skb);
	skb->csum_start -= len;
	/* Of the checksum there is only what the device does not add: the length is in it. */
	inet_proto_csum_replace2(&tcp_hdr(skb)->check, skb, htons(old), htons(old + len), true);
	if (family == NFPROTO_IPV4) {
		ip_hdr(skb)->tot_len = htons(skb->len);
		ip_send_check(ip_hdr(skb));
	} else {
		ipv6_hdr(skb)->payload_len = htons(skb->len - sizeof(struct ipv6hdr));
	}
	return true;
}
