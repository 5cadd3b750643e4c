// SPDX-License-Identifier: GPL-2.0
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
#include <linux/math64.h>
#include <linux/time64.h>

#include "color_clock.h"

/* The transmission time of a byte is 10^9 / @rate ns: long division, a bit at a
 * time, until the quotient has its 42 bits.  Needs @rate <= 2^50; 1 byte/s (2^30 ns)
 * and 100 Tbit/s (2^-14 ns) need 12 and 55 steps.
 */
static void color_clock_set_mult(struct color_clock *c, u64 rate)
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
 * color_clock_set_rate() - change the rate of the link
 * @c: the clock
 * @old: the rate until now, bytes/s
 * @rate: the new rate, bytes/s; 0 for no limit
 * @now: the time, ns
 *
 * The rest of the packet in transmission is timed at the new rate.
 */
void color_clock_set_rate(struct color_clock *c, u64 old, u64 rate, u64 now)
{
	u64 left = 0;

	/* left * old is bytes * 10^9: at most 2^20 * 2^30, and rounding */
	if (c->mult && c->next > now)
		left = div_u64((c->next - now) * old, NSEC_PER_SEC);

	color_clock_set_mult(c, rate);
	c->next = now + color_clock_ns(c, left);
}
