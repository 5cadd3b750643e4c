/* SPDX-License-Identifier: GPL-2.0-only */
/* The counters of a port, by colour and by band, and their netlink attributes. */
#ifndef _COLOR_STATS_H
#define _COLOR_STATS_H

#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

struct sk_buff;

/**
 * struct color_stats - one colour, in a cache line; root lock
 * @own_max: bytes of the colour up to which the straight path may queue a packet of it
 * @port_max: bytes of the port up to which it may
 * @backlog: bytes in the queue
 * @packets: packets admitted to the queue
 * @bytes: bytes admitted to the queue
 * @peak_backlog: maximum of @backlog
 * @marks: packets admitted in which the port set CE
 */
struct color_stats {
	u64	own_max;
	u64	port_max;
	u64	backlog;
	u64	packets;
	u64	bytes;
	u64	peak_backlog;
	u64	marks;
} __aligned(64);

/**
 * struct color_drops - packets of one colour refused; root lock
 * @by: by &enum tc_color_drop
 * @trims: packets trimmed instead
 */
struct color_drops {
	u64	by[__TC_COLOR_DROP_MAX];
	u64	trims;
};

/**
 * struct color_band_stats - counters of one band; root lock
 * @packets: packets admitted to the band
 * @bytes: bytes admitted to the band
 * @qlen: packets in the band
 * @backlog: bytes in the band
 * @peak_backlog: maximum of @backlog
 * @drops: packets refused because the band had its limit of packets
 */
struct color_band_stats {
	u64	packets;
	u64	bytes;
	u64	qlen;
	u64	backlog;
	u64	peak_backlog;
	u64	drops;
};

int color_stats_put(struct sk_buff *skb, int attr, u64 value);
int color_stats_put_array(struct sk_buff *skb, int attr, const u64 *values, int n);
int color_stats_dump_color(struct sk_buff *skb, const struct color_stats *st,
			   const struct color_drops *drops);
int color_stats_dump_band(struct sk_buff *skb, const struct color_band_stats *st);

#endif /* _COLOR_STATS_H */
