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
 * has one, allows it.  A band that waits for its clock leaves the line to the bands
 * below it, so the port is never idle while a band could use it.
 *
 * A band's clock works like the line's (color_clock.h): it counts from when a packet
 * *might* have started, so a band gets back what it loses while the line sends one
 * packet of another band.  It does not get back more: the next packet's time is never
 * before the start of the packet in front of it, which is a bucket of two packets.
 * Credits need no more: the data packet that each credit calls for delays them, and
 * that takes less time than lies between two credits.
 *
 * A band's clock may count packets instead of bytes.  A credit calls for one packet,
 * and its own length differs between IPv4 and IPv6.
 *
 * A band may yield: while other bands have the line, its clock advances by a part of
 * that time.  Data that leaves here is acknowledged on the way back, where the data that
 * the credits call for will be.  With fewer credits there is room for both.
 *
 * Locking is that of the port: see sch_color.c.
 */
#ifndef _COLOR_BAND_H
#define _COLOR_BAND_H

#include <linux/bitops.h>
#include <linux/minmax.h>
#include <linux/timekeeping.h>
#include <net/sch_generic.h>
#include <uapi/linux/pkt_color.h>

#include "color_clock.h"
#include "color_stats.h"

struct netlink_ext_ack;
struct nlattr;

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
 * struct color_band - one queue, in two cache lines
 * @q: the packets
 * @limit: packets allowed, U32_MAX for no limit but the port's
 * @bit: of this band in @busy of struct color_bands
 * @by_packet: @clock counts packets
 * @timed: arrivals at the empty band need the time: @timed of struct color_bands
 * @stats: counters; only these count what the band has queued
 * @clock: when the packet at the head may start, as far as the band knows
 */
struct color_band {
	struct qdisc_skb_head		q;
	u32				limit;
	u16				bit;
	bool				by_packet;
	bool				timed;
	struct color_band_stats		stats;
	struct color_clock		clock;
} __aligned(64);

/**
 * struct color_bands - the queues of a port
 * @cfg: what the user asked for
 * @busy: bit N is set if band N has a packet
 * @yielding: bit N is set if band N yields to the others
 * @timed: the port or a band has a rate
 * @peeked: the band whose packet a parent has seen, and will get; or NULL
 * @band: in the order in which they are served
 */
struct color_bands {
	struct color_band_config	cfg;
	unsigned long			busy;
	unsigned long			yielding;
	bool				timed;
	struct color_band		*peeked;
	struct color_band		band[];
};

void color_band_config_init(struct color_band_config *cfg, u32 n);
struct color_bands *color_bands_alloc(u32 n);
void color_bands_reset(struct color_bands *bands);
void color_bands_set(struct color_bands *bands, const struct color_band_config *cfg,
		     bool line, u64 now);
int color_band_parse(struct color_band_config *cfg, u64 line, struct nlattr **tb,
		     struct netlink_ext_ack *extack);
int color_bands_dump(const struct color_bands *bands, struct sk_buff *skb);

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
 * @band: the band
 * @segs: packets to come
 *
 * Return: true if the band has no more than its limit of packets then.
 */
static inline bool color_band_fits(const struct color_band *band, u32 segs)
{
	return band->stats.qlen + segs <= band->limit;
}

/**
 * color_band_push() - a packet comes
 * @bands: the bands
 * @band: its band
 * @skb: the packet
 * @len: bytes of it
 * @segs: packets that it is
 */
static inline void color_band_push(struct color_bands *bands, struct color_band *band,
				   struct sk_buff *skb, u32 len, u32 segs)
{
	struct color_band_stats *st = &band->stats;

	if (!band->q.head && band->timed)
		color_clock_arrive(&band->clock, ktime_get_ns());
	st->packets += segs;
	st->bytes += len;
	st->qlen += segs;
	st->backlog += len;
	if (st->backlog > st->peak_backlog)
		st->peak_backlog = st->backlog;
	__qdisc_enqueue_tail(skb, &band->q);
	bands->busy |= band->bit;
}

/**
 * color_bands_popped() - a packet has left a band
 * @bands: the bands
 * @band: its band
 */
static inline void color_bands_popped(struct color_bands *bands, const struct color_band *band)
{
	if (!band->q.head)
		bands->busy &= ~(unsigned long)band->bit;
}

/**
 * color_band_pop() - the packet at the head of a band leaves
 * @bands: the bands
 * @band: its band
 * @len: bytes of it
 * @segs: packets that it is
 */
static inline void color_band_pop(struct color_bands *bands, struct color_band *band,
				  u32 len, u32 segs)
{
	__qdisc_dequeue_head(&band->q);
	band->stats.qlen -= segs;
	band->stats.backlog -= len;
	color_bands_popped(bands, band);
}

/**
 * color_bands_head() - the first band that has a packet
 * @bands: the bands, not all of them empty
 *
 * Return: the band.
 */
static inline struct color_band *color_bands_head(struct color_bands *bands)
{
	return &bands->band[__ffs(bands->busy)];
}

/**
 * color_bands_next() - which band has the line next?
 * @bands: the bands, not all of them empty
 * @line: clock of the port
 * @now: the time, ns
 * @start: since when the line has been free for a packet that was there; if
 *	that is still to come, when it will be
 *
 * If the timer was late, a band may be ready now that was not at @start.  It
 * goes first, and the line still counts from @start: it was not idle.
 *
 * A line that has been busy since a packet could start is free at @line->next, whatever the other
 * bands have: they need no look.
 *
 * Return: the band, or NULL if @start is still to come.
 */
static inline struct color_band *color_bands_next(struct color_bands *bands,
						  const struct color_clock *line,
						  u64 now, u64 *start)
{
	struct color_band *band, *found = NULL;
	u64 first = U64_MAX;
	unsigned int n;

	for_each_set_bit(n, &bands->busy, TC_COLOR_BANDS_MAX) {
		band = &bands->band[n];
		first = min(first, band->clock.next);
		if (!found && band->clock.next <= now)
			found = band;
		if (found && first <= line->next)
			break;
	}
	*start = max(line->next, first);
	return *start <= now ? found : NULL;
}

/**
 * color_bands_due() - may the first band's packet follow the one before it?
 * @band: the first band that has a packet
 * @line: clock of the port
 * @now: the time, ns
 *
 * The usual answer of color_bands_next() without its loop.
 *
 * Return: true if color_bands_next() returns @band, and a start of @line->next.
 */
static __always_inline bool color_bands_due(const struct color_band *band,
					    const struct color_clock *line, u64 now)
{
	return line->next <= now && band->clock.next <= line->next;
}

/**
 * color_bands_take() - which band's packet leaves?
 * @bands: the bands
 * @next: the band that has the line
 *
 * Return: @next; but if a parent has seen a packet, the band of that one, even if a
 * packet of a better band has come since.
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
	if (band->clock.mult)
		color_clock_advance(&band->clock, band->by_packet ? segs : len);
	color_clock_arrive(&band->clock, start);
	color_clock_arrive(line, start);
	color_clock_advance(line, len);
}

/**
 * color_bands_yield() - a packet starts, and the other bands leave room for its ACK
 * @bands: the bands
 * @band: the band of the packet
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
	unsigned int n;

	for_each_set_bit(n, &bands->yielding, TC_COLOR_BANDS_MAX) {
		other = &bands->band[n];
		if (other == band)
			continue;
		if (!other->q.head)
			color_clock_arrive(&other->clock, start);
		color_clock_yield(&other->clock, line, len, bands->cfg.yield[n]);
	}
}

#endif /* _COLOR_BAND_H */
