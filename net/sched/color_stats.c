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

/**
 * color_stats_put_array() - write counters as an array, without the zeros at its end
 * @skb: the message
 * @attr: &enum tca_color_stats
 * @values: the counters
 * @n: number of counters
 *
 * A reader takes missing counters for 0, as from an older kernel.
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_stats_put_array(struct sk_buff *skb, int attr, const u64 *values, int n)
{
	while (n && !values[n - 1])
		n--;
	return nla_put(skb, attr, n * sizeof(*values), values);
}

/**
 * color_stats_dump_color() - write the counters of one colour
 * @skb: the message
 * @st: the counters
 * @drops: the counters of its drops
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_stats_dump_color(struct sk_buff *skb, const struct color_stats *st,
			   const struct color_drops *drops)
{
	const u64 values[__TC_COLOR_STAT_MAX] = {
		[TC_COLOR_STAT_PACKETS]		= st->packets,
		[TC_COLOR_STAT_BYTES]		= st->bytes,
		[TC_COLOR_STAT_DROPS_COLOR]	= drops->by[TC_COLOR_DROP_COLOR],
		[TC_COLOR_STAT_DROPS_POOL]	= drops->by[TC_COLOR_DROP_POOL],
		[TC_COLOR_STAT_DROPS_LIMIT]	= drops->by[TC_COLOR_DROP_LIMIT],
		[TC_COLOR_STAT_MARKS]		= st->marks,
		[TC_COLOR_STAT_BACKLOG]		= st->backlog,
		[TC_COLOR_STAT_PEAK_BACKLOG]	= st->peak_backlog,
		[TC_COLOR_STAT_TRIMS]		= drops->trims,
	};

	return color_stats_put_array(skb, TCA_COLOR_STATS_COLOR, values, ARRAY_SIZE(values));
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
	const u64 values[__TC_COLOR_BAND_STAT_MAX] = {
		[TC_COLOR_BAND_STAT_PACKETS]	  = st->packets,
		[TC_COLOR_BAND_STAT_BYTES]	  = st->bytes,
		[TC_COLOR_BAND_STAT_DROPS]	  = st->drops,
		[TC_COLOR_BAND_STAT_BACKLOG]	  = st->backlog,
		[TC_COLOR_BAND_STAT_PEAK_BACKLOG] = st->peak_backlog,
		[TC_COLOR_BAND_STAT_QLEN]	  = st->qlen,
	};

	return color_stats_put_array(skb, TCA_COLOR_STATS_BAND, values, ARRAY_SIZE(values));
}
