// SPDX-License-Identifier: GPL-2.0
/* The rate of TIMELY (Mittal et al., "TIMELY: RTT-based Congestion Control for the Datacenter",
 * SIGCOMM 2015, Algorithm 1).
 *
 *	diff = (1 - alpha) diff + alpha (rtt - previous rtt),  gradient = diff / min_rtt
 *
 *	  rtt
 *	   ^
 *	   |   rate *= 1 - beta (1 - t_high / rtt)
 *	t_high ------------------------------------------------------------------
 *	   |   gradient > 0:   rate *= 1 - beta gradient
 *	   |   gradient <= 0:  rate += delta, and 5 delta from the fifth in a row on
 *	t_low  ------------------------------------------------------------------
 *	   |   rate += delta
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "timely_rate.h"

/* The minimum rate is the maximum divided by this, as dcqcn's, or TIMELY_LEAST. */
#define TIMELY_SHARES	1024
/* A packet of 1500 bytes each 10 ms, kB/s.  A slower flow would measure delayed ACKs, which TCP
 * sends after 40 ms.
 */
#define TIMELY_LEAST	150
/* Hyperactive increase (HAI, §4.3): after this number of completion events without a positive
 * gradient the increase is this number of steps.
 */
#define TIMELY_HAI	5

static u32 timely_rate_least(const struct timely_params *p)
{
	return min(max(p->max / TIMELY_SHARES + 1, TIMELY_LEAST), p->max);
}

/**
 * timely_rate_init() - start a flow
 * @r: the flow
 * @p: parameters
 * @flows: number of active flows of the host, with this one, not 0
 *
 * "If there are N active flows, start at C / (N + 1)" (§4.1).
 */
void timely_rate_init(struct timely_rate *r, const struct timely_params *p, u32 flows)
{
	*r = (struct timely_rate) { .cur = p->max / flows };
	timely_rate_fit(r, p);
}

/**
 * timely_rate_fit() - adapt to parameters that may have changed
 * @r: the flow
 * @p: parameters
 */
void timely_rate_fit(struct timely_rate *r, const struct timely_params *p)
{
	r->cur = clamp(r->cur, timely_rate_least(p), p->max);
}

static void timely_rate_increase(struct timely_rate *r, const struct timely_params *p, u32 steps)
{
	r->cur = min_t(u64, r->cur + (u64)p->delta * steps, p->max);
}

/* One event at most halves the rate, as in the code that the authors published.  The paper has no
 * limit, and the rate would be negative after an RTT that is 2.4 times the one before.
 */
static void timely_rate_decrease(struct timely_rate *r, const struct timely_params *p, u32 cut)
{
	r->cur = max(r->cur - min(cut, r->cur / 2), timely_rate_least(p));
}

/* rate beta (1 - t_high / rtt).  At most 28 + 10 + 20 bits. */
static u32 timely_rate_above(const struct timely_rate *r, const struct timely_params *p)
{
	return div_u64((u64)r->cur * p->beta * (r->rtt - p->t_high), TIMELY_MILLE * r->rtt);
}

/* rate beta gradient.  The factor is in 2^-20, and is 1 at most: timely_rate_decrease() limits it
 * to less.
 */
static u32 timely_rate_rising(const struct timely_rate *r, const struct timely_params *p)
{
	u64 factor = div_u64((u64)r->diff * p->beta << (20 - TIMELY_SHIFT),
			     TIMELY_MILLE * p->min_rtt);

	return r->cur * min_t(u64, factor, 1 << 20) >> 20;
}

/* Returns whether the gradient is positive. */
static bool timely_rate_gradient(struct timely_rate *r, const struct timely_params *p, u32 rtt)
{
	s64 diff = r->rtt ? (s64)(s32)(rtt - r->rtt) * (1 << TIMELY_SHIFT) : 0;
	s64 step = (diff - r->diff) * p->alpha;

	r->rtt = rtt;
	/* Round down: an average that falls would not reach 0. */
	r->diff += (s32)div_s64(step - (step < 0 ? TIMELY_MILLE - 1 : 0), TIMELY_MILLE);
	r->falling = r->diff > 0 ? 0 : min(r->falling + 1, TIMELY_HAI);
	return r->diff > 0;
}

/**
 * timely_rate_sample() - a completion event
 * @r: the flow
 * @p: parameters
 * @rtt: of the segment, us
 */
void timely_rate_sample(struct timely_rate *r, const struct timely_params *p, u32 rtt)
{
	bool rising = timely_rate_gradient(r, p, clamp(rtt, 1U, (u32)TIMELY_RTT_MAX));

	if (r->rtt < p->t_low)
		timely_rate_increase(r, p, 1);
	else if (r->rtt > p->t_high)
		timely_rate_decrease(r, p, timely_rate_above(r, p));
	else if (rising)
		timely_rate_decrease(r, p, timely_rate_rising(r, p));
	else
		timely_rate_increase(r, p, r->falling < TIMELY_HAI ? 1 : TIMELY_HAI);
}
