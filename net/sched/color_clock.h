/* SPDX-License-Identifier: GPL-2.0 */
/* The virtual clock of a link.  See color_clock.c. */
#ifndef _COLOR_CLOCK_H
#define _COLOR_CLOCK_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* The maximum length of a packet that is timed correctly, bytes; longer ones (only
 * a size table can make them) are timed as if they had this length.  2^20 * 2^42,
 * the product in color_clock_advance(), leaves room for the fraction.
 */
#define COLOR_CLOCK_LEN_MAX	BIT(20)
#define COLOR_CLOCK_MULT_BITS	42

/**
 * struct color_clock - the clock of one link
 * @next: time at which the link is free again, ns
 * @frac: fraction of a nanosecond to add to @next, in units of 2^-@shift ns
 * @mult: transmission time of a byte, in units of 2^-@shift ns; 0 for no rate limit
 * @shift: fractional bits of @frac and @mult
 */
struct color_clock {
	u64	next;
	u64	frac;
	u64	mult;
	u8	shift;
};

/**
 * color_clock_ns() - transmission time of a packet
 * @c: the clock
 * @len: bytes of the packet on the link
 *
 * Return: ns, rounded down.
 */
static inline u64 color_clock_ns(const struct color_clock *c, u64 len)
{
	return (min_t(u64, len, COLOR_CLOCK_LEN_MAX) * c->mult) >> c->shift;
}

/**
 * color_clock_arrive() - a packet arrives at an empty queue
 * @c: the clock
 * @now: the time, ns
 */
static inline void color_clock_arrive(struct color_clock *c, u64 now)
{
	if (c->next < now) {
		c->next = now;
		c->frac = 0;
	}
}

/**
 * color_clock_catch_up() - limit the time for which the link catches up
 * @c: the clock
 * @now: the time, ns
 * @most: maximum time for which the link catches up, ns
 *
 * A port that is served late sends the packets that are overdue back to back.  That is
 * correct after a late timer, and a burst if the device was stopped for long.
 */
static inline void color_clock_catch_up(struct color_clock *c, u64 now, u64 most)
{
	if (now > most)
		color_clock_arrive(c, now - most);
}

/**
 * color_clock_advance() - the packet at the head starts at @c->next
 * @c: the clock, @c->next not in the future
 * @len: bytes of the packet on the link
 */
static inline void color_clock_advance(struct color_clock *c, u64 len)
{
	u64 t = c->frac + min_t(u64, len, COLOR_CLOCK_LEN_MAX) * c->mult;

	c->next += t >> c->shift;
	c->frac = t & (BIT_ULL(c->shift) - 1);
}

/**
 * color_clock_yield() - advance a band's clock by a part of another band's packet
 * @c: the band's clock
 * @line: the link's clock
 * @len: bytes on the link of a packet of another band
 * @part: fraction of that packet's transmission time, in units of 2^-16, at most 2^16
 */
static inline void color_clock_yield(struct color_clock *c,
				     const struct color_clock *line, u64 len,
				     u32 part)
{
	u64 t = ((min_t(u64, len, COLOR_CLOCK_LEN_MAX) * line->mult) >> 16) * part;
	u64 frac = t & (BIT_ULL(line->shift) - 1);

	if (c->shift >= line->shift)
		frac <<= c->shift - line->shift;
	else
		frac >>= line->shift - c->shift;
	frac += c->frac;
	c->next += (t >> line->shift) + (frac >> c->shift);
	c->frac = frac & (BIT_ULL(c->shift) - 1);
}

void color_clock_set_rate(struct color_clock *c, u64 old, u64 rate, u64 now);

#endif /* _COLOR_CLOCK_H */
