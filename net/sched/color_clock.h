/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The virtual clock of a link: the time at which the next packet may start.
 *
 *	  start 0       start 1       start 2            start 3
 *	  |             |             |                  |
 *	  v             v             v                  v
 *	--+-------------+-------------+------------+.....+---------> time
 *	  |  packet 0   |  packet 1   |  packet 2  | idle|  packet 3
 *	  +-------------+-------------+------------+     +--------
 *	                                           ^     ^
 *	                                        @next    a packet arrives: @next = now
 *
 * While the link is busy, the start of a packet is computed from the start of the
 * packet before it, never from the time at which a timer fired.  So late timers do
 * not reduce the rate, if they are no later than the port's catch-up time.  Time
 * spent idle is lost and permits no burst.
 *
 * At 100 Gbit/s the transmission time of a byte is 0.08 ns: @frac keeps the part of
 * a nanosecond that @next cannot.  The time of a byte is rounded up at 42 significant
 * bits, so a link is never faster than its configured rate, and slower by less than
 * one part in 2^41: a nanosecond in half an hour of back-to-back packets.
 */
#ifndef _COLOR_CLOCK_H
#define _COLOR_CLOCK_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>
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

/* The transmission time of a byte is 10^9 / @rate ns: long division, a bit at a
 * time, until the quotient has its 42 bits.  Needs @rate <= 2^50; 1 byte/s (2^30 ns)
 * and 100 Tbit/s (2^-14 ns) need 12 and 55 steps.
 */
static inline void color_clock_set_mult(struct color_clock *c, u64 rate)
{
	u64 rem;

	c->mult = 0;
	c->shift = 0;
	c->frac = 0;
	if (!rate)
		return;

	c->mult = div64_u64_rem(NSEC_PER_SEC, rate, &rem);
	while (c->mult < BIT_ULL(COLOR_CLOCK_MULT_BITS - 1)) {
		rem <<= 1;
		c->mult <<= 1;
		c->shift++;
		if (rem >= rate) {
			rem -= rate;
			c->mult++;
		}
	}
	if (rem)
		c->mult++;
}

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
 * color_clock_set_rate() - change the rate of the link
 * @c: the clock
 * @old: the rate until now, bytes/s
 * @rate: the new rate, bytes/s; 0 for no limit
 * @now: the time, ns
 *
 * The rest of the packet in transmission is timed at the new rate.
 */
static inline void color_clock_set_rate(struct color_clock *c, u64 old,
					u64 rate, u64 now)
{
	u64 left = 0;

	/* left * old is bytes * 10^9: at most 2^20 * 2^30, and rounding */
	if (c->mult && c->next > now)
		left = div_u64((c->next - now) * old, NSEC_PER_SEC);

	color_clock_set_mult(c, rate);
	c->next = now + color_clock_ns(c, left);
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

#endif /* _COLOR_CLOCK_H */
