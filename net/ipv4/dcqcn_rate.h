/* SPDX-License-Identifier: GPL-2.0 */
/* The reaction point of DCQCN.  See dcqcn_rate.c. */
#ifndef _DCQCN_RATE_H
#define _DCQCN_RATE_H

#include <linux/bits.h>
#include <linux/types.h>

/* The fixed-point value of alpha = 1. */
#define DCQCN_ONE	((u32)BIT(30))

/**
 * struct dcqcn_params - what is the same for all flows of a namespace
 * @max: rate of the link, kB/s (of 1000 bytes)
 * @ai: additive increase, kB/s
 * @hai: hyper increase, kB/s
 * @counter: bytes between two increase events
 * @timer_us: time between two increase events
 * @alpha_us: time without a notification after which alpha decays
 * @g: alpha's gain is 2^-@g
 * @fast: events of fast recovery, F
 */
struct dcqcn_params {
	u32 max;
	u32 ai;
	u32 hai;
	u32 counter;
	u32 timer_us;
	u32 alpha_us;
	u8 g;
	u8 fast;
};

/**
 * struct dcqcn_rate - a flow's reaction point
 * @cur: the current rate, kB/s
 * @target: the rate that @cur recovers to, kB/s
 * @alpha: estimate of the congestion, from 0 to DCQCN_ONE
 * @timer_at: time of the last timer event, µs
 * @alpha_at: time of alpha's last change, µs
 * @bytes: sent since the last byte-counter event
 * @timers: timer events since the last notification
 * @counters: byte-counter events since the last notification
 *
 * Times wrap around after 71 minutes, so a longer pause counts as a shorter one.
 */
struct dcqcn_rate {
	u32 cur;
	u32 target;
	u32 alpha;
	u32 timer_at;
	u32 alpha_at;
	u32 bytes;
	u16 timers;
	u16 counters;
};

void dcqcn_rate_init(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now);
void dcqcn_rate_advance(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now, u32 bytes);
void dcqcn_rate_cut(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now);
void dcqcn_rate_fit(struct dcqcn_rate *r, const struct dcqcn_params *p);

#endif /* _DCQCN_RATE_H */
