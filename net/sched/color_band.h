/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strict-priority bands: the queues of a port that has more than one.
 *
 *	                    limit     clock
 *	 DSCP 33 ---> band 0 (8) |||--(760k)--+
 *	                                      +--> line (10G)
 *	 others  ---> band 1  |||||||||||-----+
 *
 * The line serves the first band that has a packet and whose own clock, if it
 * has one, lets it go.  A band that waits for its clock leaves the line to those
 * below it, so the port is never idle while any band could use it.
 *
 * A band's clock is the line's clock once more (color_clock.h): spacing is
 * counted from when a packet *might* have started, so what a band loses because
 * the line was busy with one packet comes back.  What it loses beyond that does
 * not: the next packet's time never lies before the start of the one in front of
 * it, which is a bucket of two packets.  Credits need no more: what delays them
 * is the data packet that each of them calls for, and that is shorter than their
 * spacing.
 *
 * A band's clock may count packets in place of bytes.  What a credit calls for is a
 * packet, whatever the credit's own length, which differs between IPv4 and IPv6.
 *
 * A band may yield: while others have the line, its clock goes on by a part of that
 * time.  Data that leaves here is acknowledged on the way back, where the data that
 * credits call for will be: so many credits fewer, and there is room for both.
 *
 * Locking is that of the port: see sch_color.c.
 */
#ifndef _COLOR_BAND_H
#define _COLOR_BAND_H

#include <linux/minmax.h>
#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/sch_generic.h>
#include <uapi/linux/pkt_color.h>

#include "color_clock.h"
#include "color_map.h"

/**
 * struct color_band_config - what the user asked for
 * @n: bands
 * @limit: packets allowed to each, 0 for no limit but the port's
 * @rate: of each, bytes/s, or packets/s and TC_COLOR_BAND_RATE_PPS; 0 for no
 *	shaping
 * @yield: part of the time that others have the line which each loses, Q16
 * @prio: band of each DSCP
 */
struct color_band_config {
	u32	n;
	u32	limit[TC_COLOR_BANDS_MAX];
	u64	rate[TC_COLOR_BANDS_MAX];
	u32	yield[TC_COLOR_BANDS_MAX];
	u8	prio[TC_COLOR_DSCPS];
};

/**
 * struct color_band - one queue
 * @q: the packets
 * @clock: when the packet at the head may start, as far as the band knows
 * @by_packet: @clock counts packets
 * @stats: counters; those of what is queued are kept here only
 */
struct color_band {
	struct qdisc_skb_head		q;
	struct color_clock		clock;
	bool				by_packet;
	struct tc_color_band_stats	stats;
};

/**
 * struct color_bands - the queues of a port
 * @cfg: what the user asked for
 * @peeked: whose packet a parent has been shown, and gets; or NULL
 * @band: in the order in which they are served
 */
struct color_bands {
	struct color_band_config	cfg;
	struct color_band		*peeked;
	struct color_band		band[];
};

static inline void color_band_config_init(struct color_band_config *cfg, u32 n)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->n = n;
	memset(cfg->prio, n - 1, sizeof(cfg->prio));
}

/**
 * color_bands_alloc() - empty bands
 * @n: how many
 *
 * Return: the bands, without their configuration, or NULL.
 */
static inline struct color_bands *color_bands_alloc(u32 n)
{
	struct color_bands *bands;

	bands = kzalloc(struct_size(bands, band, n), GFP_KERNEL);
	if (bands)
		bands->cfg.n = n;
	return bands;
}

/**
 * color_bands_of() - the band of a packet
 * @bands: the bands
 * @dsfield: TOS byte or traffic class, negative if it has none
 *
 * Return: the band.
 */
static inline struct color_band *color_bands_of(struct color_bands *bands,
						int dsfield)
{
	const struct color_band_config *cfg = &bands->cfg;

	return &bands->band[dsfield >= 0 ? cfg->prio[dsfield >> 2] :
					   cfg->n - 1];
}

/**
 * color_band_fits() - may @segs more packets come?
 * @bands: the bands
 * @band: one of them
 * @segs: packets to come
 *
 * Return: true if the band has no more than its limit of packets then.
 */
static inline bool color_band_fits(const struct color_bands *bands,
				   const struct color_band *band, u32 segs)
{
	u32 limit = bands->cfg.limit[band - bands->band];

	return !limit || band->stats.qlen + segs <= limit;
}

/**
 * color_band_push() - a packet comes
 * @band: its band
 * @skb: the packet
 * @len: bytes of it
 * @segs: packets that it is
 */
static inline void color_band_push(struct color_band *band, struct sk_buff *skb,
				   u32 len, u32 segs)
{
	struct tc_color_band_stats *st = &band->stats;

	if (!band->q.head)
		color_clock_arrive(&band->clock, ktime_get_ns());
	st->packets += segs;
	st->bytes += len;
	st->qlen += segs;
	st->backlog += len;
	if (st->backlog > st->peak_backlog)
		st->peak_backlog = st->backlog;
	__qdisc_enqueue_tail(skb, &band->q);
}

/**
 * color_bands_next() - who has the line next?
 * @bands: the bands, not all of them empty
 * @line: clock of the port
 * @now: the time, ns
 * @start: since when the line has been free for a packet that was there; if
 *	that is still to come, when it will be
 *
 * If the timer was late, a band may be ready now that was not at @start.  It
 * goes first, and the line still counts from @start: it was not idle.
 *
 * Return: the band, or NULL if @start is still to come.
 */
static inline struct color_band *color_bands_next(struct color_bands *bands,
						  const struct color_clock *line,
						  u64 now, u64 *start)
{
	struct color_band *band, *found = NULL;
	u64 first = U64_MAX;

	for (band = bands->band; band < bands->band + bands->cfg.n; band++) {
		if (!band->q.head)
			continue;
		first = min(first, band->clock.next);
		if (!found && band->clock.next <= now)
			found = band;
	}
	*start = max(line->next, first);
	return *start <= now ? found : NULL;
}

/**
 * color_bands_take() - whose packet leaves?
 * @bands: the bands
 * @next: who has the line
 *
 * Return: @next, but if a parent has been shown a packet, then whose that was,
 * even if a better one has come since.
 */
static inline struct color_band *color_bands_take(struct color_bands *bands,
						  struct color_band *next)
{
	struct color_band *band = bands->peeked ?: next;

	bands->peeked = NULL;
	return band;
}

/**
 * color_band_advance() - the packet at the head of a band starts
 * @band: the band
 * @line: clock of the port
 * @start: since when the line has been free for it
 * @len: bytes of the packet on the line
 * @segs: packets that it is
 */
static inline void color_band_advance(struct color_band *band,
				      struct color_clock *line, u64 start,
				      u64 len, u32 segs)
{
	color_clock_advance(&band->clock, band->by_packet ? segs : len);
	color_clock_arrive(&band->clock, start);
	color_clock_arrive(line, start);
	color_clock_advance(line, len);
}

/**
 * color_bands_yield() - a packet starts, and others make room for what it brings
 * @bands: the bands
 * @band: whose packet it is
 * @line: clock of the port
 * @start: when it starts
 * @len: bytes of the packet on the line
 */
static inline void color_bands_yield(struct color_bands *bands,
				     const struct color_band *band,
				     const struct color_clock *line, u64 start,
				     u64 len)
{
	struct color_band *other;

	for (other = bands->band; other < bands->band + bands->cfg.n; other++) {
		u32 part = bands->cfg.yield[other - bands->band];

		if (!part || other == band || !other->clock.mult)
			continue;
		if (!other->q.head)
			color_clock_arrive(&other->clock, start);
		color_clock_yield(&other->clock, line, len, part);
	}
}

/**
 * color_bands_reset() - drop what is queued, keep counters and configuration
 * @bands: the bands
 */
static inline void color_bands_reset(struct color_bands *bands)
{
	struct color_band *band;

	for (band = bands->band; band < bands->band + bands->cfg.n; band++) {
		__qdisc_reset_queue(&band->q);
		band->stats.qlen = 0;
		band->stats.backlog = 0;
		band->clock.next = 0;
		band->clock.frac = 0;
	}
	bands->peeked = NULL;
}

/**
 * color_bands_set() - give bands another configuration of as many
 * @bands: the bands
 * @cfg: the configuration
 * @now: the time, ns
 */
static inline void color_bands_set(struct color_bands *bands,
				   const struct color_band_config *cfg, u64 now)
{
	int i;

	for (i = 0; i < cfg->n; i++) {
		struct color_band *band = &bands->band[i];
		u64 old = bands->cfg.rate[i], rate = cfg->rate[i];

		if (rate == old)
			continue;
		/* Of bytes nothing is left to count in packets. */
		if ((rate ^ old) & TC_COLOR_BAND_RATE_PPS)
			old = 0;
		band->by_packet = rate & TC_COLOR_BAND_RATE_PPS;
		color_clock_set_rate(&band->clock, old & ~TC_COLOR_BAND_RATE_PPS,
				     rate & ~TC_COLOR_BAND_RATE_PPS, now);
	}
	bands->cfg = *cfg;
}

static inline int color_band_parse_each(struct color_band_config *cfg,
					const struct nlattr *rates,
					const struct nlattr *limits,
					const struct nlattr *yields,
					struct netlink_ext_ack *extack)
{
	u64 rate[TC_COLOR_BANDS_MAX];
	u32 limit[TC_COLOR_BANDS_MAX];
	u32 yield[TC_COLOR_BANDS_MAX];
	int i;

	memset(rate, 0xff, sizeof(rate));	/* TC_COLOR_BAND_RATE_KEEP */
	memset(limit, 0xff, sizeof(limit));	/* TC_COLOR_BAND_LIMIT_KEEP */
	memset(yield, 0xff, sizeof(yield));	/* TC_COLOR_BAND_YIELD_KEEP */
	if (rates)
		nla_memcpy(rate, rates, sizeof(rate));
	if (limits)
		nla_memcpy(limit, limits, sizeof(limit));
	if (yields)
		nla_memcpy(yield, yields, sizeof(yield));

	for (i = 0; i < TC_COLOR_BANDS_MAX; i++) {
		bool new_rate = rate[i] != TC_COLOR_BAND_RATE_KEEP;
		bool new_limit = limit[i] != TC_COLOR_BAND_LIMIT_KEEP;
		bool new_yield = yield[i] != TC_COLOR_BAND_YIELD_KEEP;

		if (!new_rate && !new_limit && !new_yield)
			continue;
		if (i >= cfg->n) {
			NL_SET_ERR_MSG(extack,
				       "A rate, a limit or a yield of a band that does not exist");
			return -EINVAL;
		}
		if (cfg->n == 1) {
			NL_SET_ERR_MSG(extack,
				       "A single band has the rate and the limit of its port, and yields to none");
			return -EINVAL;
		}
		if (rate[i] == TC_COLOR_BAND_RATE_PPS)
			rate[i] = 0;
		if ((new_rate &&
		     (rate[i] & ~TC_COLOR_BAND_RATE_PPS) > TC_COLOR_RATE_MAX) ||
		    (new_limit && limit[i] > TC_COLOR_BAND_LIMIT_MAX) ||
		    (new_yield && yield[i] > TC_COLOR_BAND_YIELD_ONE)) {
			NL_SET_ERR_MSG(extack,
				       "A rate, a limit or a yield of a band is out of range");
			return -ERANGE;
		}
		if (new_rate)
			cfg->rate[i] = rate[i];
		if (new_limit)
			cfg->limit[i] = limit[i];
		if (new_yield)
			cfg->yield[i] = yield[i];
	}
	return 0;
}

/**
 * color_band_parse() - the attributes that are about bands
 * @cfg: what holds until now; undefined after an error
 * @line: rate of the port from now on, bytes/s; 0 for no shaping
 * @tb: attributes, whose lengths have been checked
 * @extack: what is wrong with them
 *
 * Return: 0, or an error.
 */
static inline int color_band_parse(struct color_band_config *cfg, u64 line,
				   struct nlattr **tb,
				   struct netlink_ext_ack *extack)
{
	int i, err;

	if (tb[TCA_COLOR_BANDS] && nla_get_u32(tb[TCA_COLOR_BANDS]) != cfg->n)
		color_band_config_init(cfg, nla_get_u32(tb[TCA_COLOR_BANDS]));
	if (tb[TCA_COLOR_PRIO] &&
	    !color_map_merge(cfg->prio, nla_data(tb[TCA_COLOR_PRIO]),
			     cfg->n - 1)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PRIO],
				    "A DSCP is mapped to a band that does not exist");
		return -EINVAL;
	}
	err = color_band_parse_each(cfg, tb[TCA_COLOR_BAND_RATE64],
				    tb[TCA_COLOR_BAND_LIMIT],
				    tb[TCA_COLOR_BAND_YIELD], extack);
	if (err)
		return err;

	for (i = 0; line && i < cfg->n; i++) {
		if (cfg->rate[i] & TC_COLOR_BAND_RATE_PPS || cfg->rate[i] <= line)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_BAND_RATE64] ?:
					    tb[TCA_COLOR_RATE64],
				    "A band's rate above the line's never acts");
		return -EINVAL;
	}
	return 0;
}

/**
 * color_bands_dump() - tell about bands
 * @bands: the bands, or NULL
 * @skb: the netlink message
 *
 * Return: 0, or -EMSGSIZE.
 */
static inline int color_bands_dump(const struct color_bands *bands,
				   struct sk_buff *skb)
{
	const struct color_band_config *cfg;

	if (!bands)
		return nla_put_u32(skb, TCA_COLOR_BANDS, 1);

	cfg = &bands->cfg;
	if (nla_put_u32(skb, TCA_COLOR_BANDS, cfg->n) ||
	    nla_put(skb, TCA_COLOR_PRIO, sizeof(cfg->prio), cfg->prio) ||
	    nla_put(skb, TCA_COLOR_BAND_RATE64, sizeof(cfg->rate), cfg->rate) ||
	    nla_put(skb, TCA_COLOR_BAND_LIMIT, sizeof(cfg->limit), cfg->limit) ||
	    nla_put(skb, TCA_COLOR_BAND_YIELD, sizeof(cfg->yield), cfg->yield))
		return -EMSGSIZE;
	return 0;
}

#endif /* _COLOR_BAND_H */
