/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Strict-priority bands: the queues of a port that has more than one.
 *
 *	                    limit     clock
 *	 DSCP 33 ---> band 0 (8) |||--(760k)--+
 *	                                      +--> link (10G)
 *	 others  ---> band 1  |||||||||||-----+
 *
 * The port dequeues from the first band that has a packet and whose own clock, if it
 * has a rate, permits one.  While a band waits for its clock the port serves the bands
 * below it, so the link is never idle while any band may send.
 *
 * A band's clock works like the link's (color_clock.c): it advances from the time at
 * which a packet was *permitted* to start, so a band makes up for the delay by one packet
 * of another band.  It makes up for no more: its next packet is never permitted before
 * the start of the packet in front of it, which equals a token bucket of two packets.
 * Credits need no more: the data packets that credits permit delay them, and such a
 * packet's transmission time is shorter than the interval between two credits.
 *
 * A band's clock may count packets instead of bytes: a credit permits one data packet,
 * whether the credit itself is an IPv4 packet or a longer one of IPv6.
 *
 * A band may yield: its clock then also advances by a fraction of the transmission time
 * of other bands' packets.  The ACKs of the data that this port sends take the reverse
 * path, as will the data that this port's credits permit.  With fewer credits there is
 * room for both.
 *
 * The port's locking applies: see sch_color.c.
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
 * struct color_band_config - configuration of the bands
 * @n: number of bands
 * @limit: packets that each band can queue, 0 for no limit but the port's
 * @rate: rate of each band, bytes/s, or packets/s and TC_COLOR_BAND_RATE_PPS; 0 for no
 *	shaping
 * @yield: fraction of the other bands' transmission time by which each band's clock
 *	advances, Q16
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
 * @limit: packets that the band can queue, U32_MAX for no limit but the port's
 * @bit: bit of this band in @busy of struct color_bands
 * @by_packet: @clock counts packets
 * @timed: copy of @timed of struct color_bands: arrivals at the empty band read the time
 * @stats: counters; the segments and bytes in the band are counted only here
 * @clock: time at which the band's own rate permits the packet at the head to start
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
 * @cfg: configuration
 * @busy: bit N is set if band N has a packet
 * @yielding: bit N is set if band N yields to the others
 * @timed: the port or a band has a rate
 * @peeked: band whose head packet the parent has peeked at, and which must be dequeued
 *	next; or NULL
 * @band: the bands, highest priority first
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
 * @dsfield: TOS byte or traffic class, negative if the packet has no IP header
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
 * color_band_fits() - may the band queue @segs more packets?
 * @band: the band
 * @segs: number of packets
 *
 * Return: true if the band then has no more packets than its limit.
 */
static inline bool color_band_fits(const struct color_band *band, u32 segs)
{
	return band->stats.qlen + segs <= band->limit;
}

/**
 * color_band_push() - enqueue a packet
 * @bands: the bands
 * @band: the packet's band
 * @skb: the packet
 * @len: bytes of the packet
 * @segs: its number of segments
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
 * color_bands_popped() - update @busy after a packet was removed from a band
 * @bands: the bands
 * @band: the packet's band
 */
static inline void color_bands_popped(struct color_bands *bands, const struct color_band *band)
{
	if (!band->q.head)
		bands->busy &= ~(unsigned long)band->bit;
}

/**
 * color_band_pop() - dequeue the packet at the head of a band
 * @bands: the bands
 * @band: the packet's band
 * @len: bytes of the packet
 * @segs: its number of segments
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
 * color_bands_next() - select the band that may transmit
 * @bands: the bands, not all of them empty
 * @line: clock of the port
 * @now: the time, ns
 * @start: set to the earliest time at which the link is free and any band may send, ns
 *
 * If the timer was late, a band of higher priority may have become ready after @start.
 * It is served first, and the link's clock still advances from @start: the link was not
 * idle.
 *
 * If the link was busy when the first of the bands became ready, @start is @line->next,
 * independent of the other bands, and the loop ends.
 *
 * Return: the band, or NULL if @start is in the future.
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
 * color_bands_due() - may the first band's packet follow the last packet at once?
 * @band: the first band that has a packet
 * @line: clock of the port
 * @now: the time, ns
 *
 * The usual result of color_bands_next() without its loop.
 *
 * Return: true if color_bands_next() returns @band, and a start of @line->next.
 */
static __always_inline bool color_bands_due(const struct color_band *band,
					    const struct color_clock *line, u64 now)
{
	return line->next <= now && band->clock.next <= line->next;
}

/**
 * color_bands_take() - select the band to dequeue from
 * @bands: the bands
 * @next: the band that may transmit
 *
 * Return: the band whose packet the parent has peeked at, even if a packet of a band of
 * higher priority has arrived since; otherwise @next.
 */
static inline struct color_band *color_bands_take(struct color_bands *bands,
						  struct color_band *next)
{
	struct color_band *band = bands->peeked ?: next;

	bands->peeked = NULL;
	return band;
}

/**
 * color_band_advance() - advance the clocks: transmission of a band's packet starts
 * @band: the band
 * @line: clock of the port
 * @start: earliest time at which the link was free for the packet, ns
 * @len: bytes of the packet on the link
 * @segs: its number of segments
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
 * color_bands_yield() - advance the clocks of the other bands, to leave room for an ACK
 * @bands: the bands
 * @band: the band of the packet whose transmission starts
 * @line: clock of the port
 * @start: start of the transmission, ns
 * @len: bytes of the packet on the link
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
