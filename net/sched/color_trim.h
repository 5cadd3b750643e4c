/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Trimming: instead of dropping a packet, a port cuts off its data and forwards the rest.
 *
 *	 +----+-----+---------+-------------------------+
 *	 | IP | TCP | options | data, 1448 bytes        |
 *	 +----+-----+---------+-------------------------+
 *	 +----+-----+---------+---------------+
 *	 | IP | TCP | options | TRIMMED, 1448 |	in the band of its new DSCP
 *	 +----+-----+---------+---------------+
 *
 * The receiver learns at once, instead of after a timeout, which data was lost and how congested
 * the path is: "Re-architecting datacenter networks and stacks for low latency and high
 * performance" (NDP, SIGCOMM '17), section 3.1.  The terms are used by switches that can trim (SAI,
 * SONiC, Cumulus Linux): the DSCP of trimmed packets, which selects their queue, and the size of
 * a trimmed packet.
 *
 * A trimmed packet is a valid one: its lengths and checksums are right, and the length of the
 * data that was cut is in our TCP option (<net/gl_option.h>).  A TCP that does not know the option
 * takes the packet for an ACK without data.  That is why FIN, PSH and URG are cleared: a FIN is at
 * the end of the data, so without the data it would end the connection early.  The other fields of
 * the headers do not change.  These packets are not trimmed:
 *
 * - Data that belongs together with a signature or with other options (MD5, TCP-AO, MPTCP).
 * - IP fragments, other protocols than TCP, IPv6 with extension headers.
 * - A wrong checksum.  The checksum of the trimmed packet is calculated anew, which would make a
 *   damaged header valid.
 * - No room for the option, options that are malformed (a receiver would not find ours), or so
 *   little data that the trimmed packet would not be shorter.
 *
 * They are dropped, as on a port that does not trim.  So is a packet that arrives while the limit
 * of trimmed packets is queued: without a limit, headers could take as much of the link as the
 * data did.
 *
 * The port's locking applies: see sch_color.c.
 */
#ifndef _COLOR_TRIM_H
#define _COLOR_TRIM_H

#include <linux/bits.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/minmax.h>
#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/**
 * struct color_trim_config - configuration of trimming
 * @dscp: DSCP of trimmed packets; TC_COLOR_DSCPS if the port does not trim
 * @colors: bit N is set if packets of colour N are trimmed
 * @limit: maximum number of trimmed packets in the queues
 * @size: minimum size of a trimmed packet, bytes
 */
struct color_trim_config {
	u8	dscp;
	u8	colors;
	u32	limit;
	u32	size;
};

/**
 * struct color_trim - trimming on a port
 * @qlen: trimmed packets in the queues
 * @limited: packets dropped because the limit of trimmed packets was queued
 * @unfit: packets dropped because they cannot be trimmed
 */
struct color_trim {
	u32	qlen;
	u64	limited;
	u64	unfit;
};

/* The longest headers of a trimmed packet: two tags, and IPv4's and TCP's options. */
#define COLOR_TRIM_HEADERS_MAX	(ETH_HLEN + 2 * VLAN_HLEN + 60 + 60)

/* Maximum of the trimmed packets in the queues, bytes. */
static inline u64 color_trim_most(const struct color_trim_config *cfg)
{
	if (cfg->dscp == TC_COLOR_DSCPS)
		return 0;
	return (u64)cfg->limit * max_t(u32, cfg->size, COLOR_TRIM_HEADERS_MAX);
}

void color_trim_config_init(struct color_trim_config *cfg);
int color_trim_parse(struct color_trim_config *cfg, struct nlattr **tb,
		     struct netlink_ext_ack *extack);
int color_trim_dump(const struct color_trim_config *cfg, struct sk_buff *skb);
int color_trim_dump_stats(const struct color_trim *trim, const struct color_trim_config *cfg,
			  struct sk_buff *skb);
bool color_trim_skb(const struct color_trim_config *cfg, struct sk_buff *skb);

/* Does the port trim at all? */
static inline bool color_trims(const struct color_trim_config *cfg)
{
	return cfg->dscp < TC_COLOR_DSCPS;
}

/* Does the port trim packets of this colour? */
static inline bool color_trims_color(const struct color_trim_config *cfg, enum tc_color color)
{
	return color_trims(cfg) && cfg->colors & BIT(color);
}

#endif /* _COLOR_TRIM_H */
