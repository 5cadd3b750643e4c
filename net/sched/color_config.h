/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The configuration of a port, except for its pool and its bands: from netlink
 * attributes, and back.
 */
#ifndef _COLOR_CONFIG_H
#define _COLOR_CONFIG_H

#include <linux/types.h>
#include <net/netlink.h>
#include <uapi/linux/pkt_color.h>

#include "color_thresh.h"
#include "color_trim.h"

struct net_device;
struct sk_buff;

/**
 * enum color_split - when a GSO packet is split into its segments
 * @COLOR_SPLIT_NO: never
 * @COLOR_SPLIT_YES: always
 * @COLOR_SPLIT_AUTO: if the port has a rate; the default.  A link transmits segments;
 *	without a rate, splitting would only cost CPU time
 */
enum color_split {
	COLOR_SPLIT_NO,
	COLOR_SPLIT_YES,
	COLOR_SPLIT_AUTO,
};

/**
 * struct color_config - the configuration of a port
 * @rate: the line rate, bytes/s; 0 for no shaping
 * @thresh: bytes allowed to each colour, or COLOR_NO_THRESH
 * @limit: bytes allowed to the port
 * @overhead: bytes that the link adds to each packet
 * @alpha: the port's share of the free bytes of the pool, Q16
 * @ecn: when to set CE
 * @count: the bytes that thresholds are compared with
 * @by_ecn: the ECN field is the colour
 * @slack: ns by which the port's timer may be late
 * @catch_up: maximum time for which the port catches up, ns; 0 for the default
 * @red_min: minimum of the automatic threshold of red, bytes; 0 for the default
 * @int_rtt: base RTT for the telemetry, ns; 0 for no telemetry
 * @red_auto: the threshold of red is automatic
 * @split_gso: queue the segments of a GSO packet one by one: &enum color_split
 * @trim: when to trim packets, and how
 * @map: colour of each DSCP
 */
struct color_config {
	u64			rate;
	u64			thresh[__TC_COLOR_MAX];
	u32			limit;
	u32			overhead;
	u32			alpha;
	u32			slack;
	u32			catch_up;
	u32			red_min;
	u32			int_rtt;
	struct color_ecn	ecn;
	enum tc_color_count	count;
	bool			by_ecn;
	bool			red_auto;
	u8			split_gso;
	struct color_trim_config trim;
	u8			map[TC_COLOR_DSCPS];
};

extern const struct nla_policy color_config_policy[TCA_COLOR_MAX + 1];

void color_config_init(struct color_config *cfg, const struct net_device *dev, u32 slack);
int color_config_parse(struct color_config *cfg, u32 packet, struct nlattr **tb,
		       struct netlink_ext_ack *extack);
u64 color_config_others(const struct color_config *cfg, u32 bands);
int color_config_dump_thresh(const struct color_config *cfg,
			     struct sk_buff *skb);
int color_config_dump_auto(const struct color_config *cfg, struct sk_buff *skb);
int color_config_dump_ecn(const struct color_ecn *e, struct sk_buff *skb);

/**
 * color_config_splits() - does the port split GSO packets?
 * @cfg: its configuration
 *
 * Return: true if it does.
 */
static inline bool color_config_splits(const struct color_config *cfg)
{
	return cfg->split_gso == COLOR_SPLIT_AUTO ? cfg->rate : cfg->split_gso;
}

#endif /* _COLOR_CONFIG_H */
