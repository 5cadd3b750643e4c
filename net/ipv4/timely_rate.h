/* SPDX-License-Identifier: GPL-2.0 */
/* The rate of TIMELY.  See timely_rate.c. */
#ifndef _TIMELY_RATE_H
#define _TIMELY_RATE_H

#include <linux/types.h>

/* Fixed point of the averaged difference: 2^-10 us. */
#define TIMELY_SHIFT	10
/* Maximum RTT, us.  The difference of two fits into 32 bits. */
#define TIMELY_RTT_MAX	1000000
/* Unit of @alpha and @beta. */
#define TIMELY_MILLE	1000

/**
 * struct timely_params - what is the same for all flows of a path
 * @max: rate of the link, kB/s (of 1000 bytes)
 * @delta: additive increase, kB/s
 * @t_low: RTT below which the rate always increases, us
 * @t_high: RTT above which the rate always decreases, us
 * @min_rtt: base RTT, by which the gradient is normalized, us, not 0
 * @alpha: weight of a new difference in the average, 1/1000
 * @beta: multiplicative decrease, 1/1000
 */
struct timely_params {
	u32 max;
	u32 delta;
	u32 t_low;
	u32 t_high;
	u32 min_rtt;
	u16 alpha;
	u16 beta;
};

/**
 * struct timely_rate - a flow's rate
 * @cur: the rate, kB/s
 * @rtt: the previous RTT, us; 0 before the first
 * @diff: average of the differences between successive RTTs, 2^-10 us
 * @falling: completion events without a positive gradient, at most TIMELY_HAI
 */
struct timely_rate {
	u32 cur;
	u32 rtt;
	s32 diff;
	u8 falling;
};

void timely_rate_init(struct timely_rate *r, const struct timely_params *p, u32 flows);
void timely_rate_sample(struct timely_rate *r, const struct timely_params *p, u32 rtt);
void timely_rate_fit(struct timely_rate *r, const struct timely_params *p);

#endif /* _TIMELY_RATE_H */
