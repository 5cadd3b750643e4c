// SPDX-License-Identifier: GPL-2.0-only
/* The counters of a port as netlink attributes; see color_stats.h. */

#include <net/netlink.h>

#include "color_stats.h"

/**
 * color_stats_put() - write a counter of the port
 * @skb: the message
 * @attr: &enum tca_color_stats
 * @value: the counter
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_stats_put(struct sk_buff *skb, int attr, u64 value)
{
	return nla_put_u64_64bit(skb, attr, value, TCA_COLOR_STATS_PAD);
}

static int color_stats_nest(struct sk_buff *skb, int nest_attr, int pad,
			    const u64 *values, int n)
{
	struct nlattr *nest = nla_nest_start(skb, nest_attr);
	int i;

	if (!nest)
		return -EMSGSIZE;
	/* The attributes of a nest are numbered from @pad + 1 on, in the order of @values. */
	for (i = 0; i < n; i++)
		if (nla_put_u64_64bit(skb, pad + 1 + i, values[i], pad))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * color_stats_dump_color() - write the counters of one colour
 * @skb: the message
 * @st: the counters
 * @drops: those of its drops
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_stats_dump_color(struct sk_buff *skb, const struct color_stats *st,
			   const struct color_drops *drops)
{
	const u64 values[] = {
		st->packets, st->bytes, drops->by[TC_COLOR_DROP_COLOR],
		drops->by[TC_COLOR_DROP_POOL], drops->by[TC_COLOR_DROP_LIMIT],
		st->marks, st->backlog, st->peak_backlog,
	};

	BUILD_BUG_ON(ARRAY_SIZE(values) + TCA_COLOR_STATS_COLOR_PAD != TCA_COLOR_STATS_COLOR_MAX);
	return color_stats_nest(skb, TCA_COLOR_STATS_COLOR, TCA_COLOR_STATS_COLOR_PAD,
				values, ARRAY_SIZE(values));
}

/**
 * color_stats_dump_band() - write the counters of one band
 * @skb: the message
 * @st: the counters
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_stats_dump_band(struct sk_buff *skb, const struct color_band_stats *st)
{
	const u64 values[] = {
		st->packets, st->bytes, st->drops, st->backlog, st->peak_backlog,
		st->qlen,
	};

	BUILD_BUG_ON(ARRAY_SIZE(values) + TCA_COLOR_STATS_BAND_PAD != TCA_COLOR_STATS_BAND_MAX);
	return color_stats_nest(skb, TCA_COLOR_STATS_BAND, TCA_COLOR_STATS_BAND_PAD,
				values, ARRAY_SIZE(values));
}
