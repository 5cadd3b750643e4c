// SPDX-License-Identifier: GPL-2.0-only
/* Trimming: instead of dropping a packet, a port cuts off its data; see color_trim.h. */

#include <linux/minmax.h>
#include <linux/netlink.h>
#include <linux/tcp.h>
#include <net/gl_option.h>
#include <net/ip6_checksum.h>
#include <net/netlink.h>
#include <net/tcp.h>

#include "color_ip.h"
#include "color_stats.h"
#include "color_trim.h"

/* The option's word: bytes of data that were cut, and whether there was a FIN behind them. */
#define COLOR_TRIM_FIN		BIT(31)
#define COLOR_TRIM_WORDS	1
#define COLOR_TRIM_OPT		GL_OPT_LEN(COLOR_TRIM_WORDS)

/* The default limit.  NDP's queue of headers has the size of its queue of data, eight packets of
 * 9000 bytes (section 3.1): room for a thousand headers.
 */
#define COLOR_TRIM_LIMIT	1000

/**
 * struct color_segment - where the parts of a TCP segment are: bytes from the start of the frame
 * @ip: the IP header
 * @tcp: the TCP header
 * @data: the data
 * @end: behind the data, where Ethernet's padding may begin
 */
struct color_segment {
	unsigned int ip;
	unsigned int tcp;
	unsigned int data;
	unsigned int end;
};

static struct tcphdr *color_tcp_hdr(const struct sk_buff *skb, const struct color_segment *seg)
{
	return (struct tcphdr *)(skb->data + seg->tcp);
}

/* Find the TCP header of an IP packet that is all there.  Its headers are pulled. */
static bool color_segment_find(struct sk_buff *skb, struct color_segment *seg)
{
	const struct iphdr *iph = color_ip_hdr(skb);
	unsigned int len = iph ? color_ip_tcp(iph) : 0;

	if (!len)
		return false;
	seg->ip = (u8 *)iph - skb->data;
	seg->tcp = seg->ip + len;
	seg->end = iph->version == 4 ?
		   seg->ip + ntohs(iph->tot_len) :
		   seg->tcp + ntohs(((const struct ipv6hdr *)iph)->payload_len);
	if (seg->end > skb->len || seg->tcp + sizeof(struct tcphdr) > seg->end ||
	    !pskb_may_pull(skb, seg->tcp + sizeof(struct tcphdr)))
		return false;
	seg->data = seg->tcp + color_tcp_hdr(skb, seg)->doff * 4;
	return seg->data >= seg->tcp + sizeof(struct tcphdr) &&
	       seg->data + COLOR_TRIM_OPT < seg->end &&
	       pskb_may_pull(skb, seg->data + COLOR_TRIM_OPT);
}

/* Where the options end: at an EOL or the end of the header; NULL if they are malformed. */
static u8 *color_options_end(struct tcphdr *th)
{
	u8 *opt = (u8 *)(th + 1), *end = (u8 *)th + th->doff * 4;

	while (opt < end && *opt != TCPOPT_EOL) {
		if (*opt == TCPOPT_NOP) {
			opt++;
			continue;
		}
		if (end - opt < 2 || opt[1] < 2 || opt[1] > end - opt)
			return NULL;
		opt += opt[1];
	}
	return opt;
}

/* Can the segment be trimmed?  See color_trim.h. */
static bool color_segment_is_fit(struct tcphdr *th)
{
	return !th->syn && !th->rst && th->ack && th->doff * 4 + COLOR_TRIM_OPT <= GL_HEADER_MAX &&
	       color_options_end(th) &&
	       !gl_option_next(th, TCPOPT_MD5SIG, NULL) &&
	       !gl_option_next(th, GL_TCPOPT_AO, NULL) &&
	       !gl_option_next(th, TCPOPT_MPTCP, NULL);
}

/* The checksum of the first @len bytes from the TCP header on, which is 0 if it is right. */
static __sum16 color_tcp_checksum(const struct sk_buff *skb, const struct color_segment *seg,
				  unsigned int len)
{
	const void *h = skb->data + seg->ip;
	__wsum csum = skb_checksum(skb, seg->tcp, len, 0);
	const struct ipv6hdr *ip6h = h;
	const struct iphdr *iph = h;

	return iph->version == 4 ?
	       csum_tcpudp_magic(iph->saddr, iph->daddr, len, IPPROTO_TCP, csum) :
	       csum_ipv6_magic(&ip6h->saddr, &ip6h->daddr, len, IPPROTO_TCP, csum);
}

/* Is the checksum right?  A packet whose checksum a network card has to fill in is from this
 * host.
 */
static bool color_segment_is_valid(const struct sk_buff *skb, const struct color_segment *seg)
{
	if (skb->ip_summed == CHECKSUM_PARTIAL)
		return skb_checksum_start_offset(skb) == seg->tcp;
	return skb_csum_unnecessary(skb) || !color_tcp_checksum(skb, seg, seg->end - seg->tcp);
}

/* Write the option behind the header, where the data began. */
static void color_segment_cut(struct sk_buff *skb, const struct color_segment *seg)
{
	struct tcphdr *th = color_tcp_hdr(skb, seg);
	u32 word = seg->end - seg->data;
	u8 *end;

	if (th->fin)
		word |= COLOR_TRIM_FIN;
	/* A receiver does not read options behind an EOL. */
	end = color_options_end(th);
	memset(end, TCPOPT_NOP, skb->data + seg->data - end);
	gl_option_write((__be32 *)(skb->data + seg->data), GL_CODE_TRIMMED, 0, &word,
			COLOR_TRIM_WORDS);
	th->doff += COLOR_TRIM_OPT / 4;
	th->fin = 0;
	th->psh = 0;
	th->urg = 0;
	th->urg_ptr = 0;
	th->check = 0;
	th->check = color_tcp_checksum(skb, seg, th->doff * 4);
}

/* Give the IP header its new length and DSCP; the ECN field stays. */
static void color_segment_set_ip(struct sk_buff *skb, const struct color_segment *seg, u8 dscp)
{
	void *h = skb->data + seg->ip;
	__be16 len = htons(seg->data + COLOR_TRIM_OPT - seg->ip);
	struct ipv6hdr *ip6h = h;
	struct iphdr *iph = h;

	if (iph->version == 4) {
		csum_replace2(&iph->check, iph->tot_len, len);
		iph->tot_len = len;
		ipv4_change_dsfield(iph, INET_ECN_MASK, dscp << 2);
	} else {
		ip6h->payload_len = htons(ntohs(len) - sizeof(*ip6h));
		ipv6_change_dsfield(ip6h, INET_ECN_MASK, dscp << 2);
	}
}

/**
 * color_trim_skb() - cut off the data of a packet
 * @cfg: the configuration of trimming
 * @skb: the packet, not a GSO packet
 *
 * If @cfg->size is above the size of the headers, the rest of the data stays as padding, which the
 * length in the IP header does not include.
 *
 * Return: false if it cannot be trimmed; then its bytes are the same as before.
 */
bool color_trim_skb(const struct color_trim_config *cfg, struct sk_buff *skb)
{
	struct color_segment seg;

	if (!color_segment_find(skb, &seg) || !color_segment_is_fit(color_tcp_hdr(skb, &seg)) ||
	    !color_segment_is_valid(skb, &seg))
		return false;
	/* TCP may keep the same bytes for a retransmission. */
	if (skb_unclone(skb, GFP_ATOMIC) ||
	    pskb_trim(skb, clamp(cfg->size, seg.data + COLOR_TRIM_OPT, skb->len)))
		return false;
	color_segment_cut(skb, &seg);
	color_segment_set_ip(skb, &seg, cfg->dscp);
	skb->ip_summed = CHECKSUM_NONE;
	return true;
}

/**
 * color_trim_config_init() - the default: no trimming
 * @cfg: zeroed memory
 */
void color_trim_config_init(struct color_trim_config *cfg)
{
	cfg->dscp = TC_COLOR_DSCPS;
	cfg->colors = TC_COLOR_TRIM_COLORS_ALL;
	cfg->limit = COLOR_TRIM_LIMIT;
}

/**
 * color_trim_parse() - read the attributes of trimming
 * @cfg: the configuration so far; undefined after an error
 * @tb: attributes, valid by color_config_policy
 * @extack: for the error message
 *
 * Return: 0, or an error.
 */
int color_trim_parse(struct color_trim_config *cfg, struct nlattr **tb,
		     struct netlink_ext_ack *extack)
{
	if (tb[TCA_COLOR_TRIM_DSCP])
		cfg->dscp = nla_get_u32(tb[TCA_COLOR_TRIM_DSCP]);
	if (tb[TCA_COLOR_TRIM_COLORS])
		cfg->colors = nla_get_u32(tb[TCA_COLOR_TRIM_COLORS]);
	if (tb[TCA_COLOR_TRIM_LIMIT])
		cfg->limit = nla_get_u32(tb[TCA_COLOR_TRIM_LIMIT]);
	if (tb[TCA_COLOR_TRIM_SIZE])
		cfg->size = nla_get_u32(tb[TCA_COLOR_TRIM_SIZE]);

	if (color_trims(cfg))
		return 0;
	if (tb[TCA_COLOR_TRIM_COLORS] || tb[TCA_COLOR_TRIM_LIMIT] || tb[TCA_COLOR_TRIM_SIZE]) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_TRIM_COLORS] ?: tb[TCA_COLOR_TRIM_LIMIT] ?:
					    tb[TCA_COLOR_TRIM_SIZE],
				    "trim-colors, trim-limit and trim-size need trim: the DSCP of trimmed packets");
		return -EINVAL;
	}
	return 0;
}

/**
 * color_trim_dump() - write the configuration of trimming
 * @cfg: the configuration
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_trim_dump(const struct color_trim_config *cfg, struct sk_buff *skb)
{
	if (color_trims(cfg) &&
	    (nla_put_u32(skb, TCA_COLOR_TRIM_DSCP, cfg->dscp) ||
	     nla_put_u32(skb, TCA_COLOR_TRIM_COLORS, cfg->colors) ||
	     nla_put_u32(skb, TCA_COLOR_TRIM_LIMIT, cfg->limit) ||
	     nla_put_u32(skb, TCA_COLOR_TRIM_SIZE, cfg->size)))
		return -EMSGSIZE;
	return 0;
}

/**
 * color_trim_dump_stats() - write the counters of trimming
 * @trim: the counters
 * @cfg: the configuration
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_trim_dump_stats(const struct color_trim *trim, const struct color_trim_config *cfg,
			  struct sk_buff *skb)
{
	const u64 values[__TC_COLOR_TRIM_STAT_MAX] = {
		[TC_COLOR_TRIM_STAT_QLEN]	= trim->qlen,
		[TC_COLOR_TRIM_STAT_LIMITED]	= trim->limited,
		[TC_COLOR_TRIM_STAT_UNFIT]	= trim->unfit,
	};

	if (!color_trims(cfg) && !trim->qlen && !trim->limited && !trim->unfit)
		return 0;
	return color_stats_put_array(skb, TCA_COLOR_STATS_TRIM, values, ARRAY_SIZE(values));
}
