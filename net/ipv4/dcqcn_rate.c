// SPDX-License-Identifier: GPL-2.0
/* The reaction point of DCQCN, which computes a sender's rate (Zhu et al., "Congestion Control
 * for Large-Scale RDMA Deployments", SIGCOMM 2015, §3.3, Figure 7).
 *
 *	notification:	target = rate, rate *= 1 - alpha / 2, alpha += g (1 - alpha)
 *	no notification for @alpha_us: alpha *= 1 - g
 *	increase event, every @timer_us and every @counter bytes:
 *	  fewer than F events of each kind	fast recovery	target unchanged
 *	  F or more events of one kind		additive	target += ai
 *	  more than F events of both kinds	hyper		target += i hai, i = events beyond F
 *	  in each case				rate = (target + rate) / 2
 *
 * A NIC runs two timers for each flow.  Here the state is brought up to date only when it is
 * needed, for an ACK or for the first packet after a pause, by applying all events since the last
 * time.  So an idle flow needs no timer.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>

#include "dcqcn_rate.h"

/* The minimum rate is the maximum divided by this.  The paper has no minimum, but NICs do.  At
 * 10 Gbit/s a packet of 1500 bytes is then sent every 1.2 ms, well within the shortest RTO in use
 * (4 ms).
 */
#define DCQCN_SHARES	1024

/* Maximum number of timer periods that are applied one by one.  After them the rate is within
 * 2^-64 of its target, and only the target still changes.
 */
#define DCQCN_PERIODS	64

/**
 * dcqcn_rate_init() - start a flow, at the rate of the link
 * @r: the flow
 * @p: parameters
 * @now: µs
 */
void dcqcn_rate_init(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now)
{
	*r = (struct dcqcn_rate) {
		.cur = p->max, .target = p->max, .alpha = DCQCN_ONE,
		.timer_at = now, .alpha_at = now,
	};
}

static u32 dcqcn_rate_least(const struct dcqcn_params *p)
{
	return p->max / DCQCN_SHARES + 1;
}

/* Increase the rate after an event, which has been counted already. */
static void dcqcn_rate_increase(struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	u64 target = r->target;

	if (min(r->timers, r->counters) > p->fast)
		target += (u64)(min(r->timers, r->counters) - p->fast) * p->hai;
	else if (max(r->timers, r->counters) >= p->fast)
		target += p->ai;
	r->target = min_t(u64, target, p->max);
	r->cur = ((u64)r->cur + r->target + 1) / 2;
}

static bool dcqcn_rate_is_max(const struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	return r->cur == p->max && r->target == p->max;
}

/* Apply @n timer events. */
static void dcqcn_rate_timers(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 n)
{
	u32 fast = max(r->timers, r->counters) < p->fast ?
		   min_t(u32, n, p->fast - 1 - r->timers) : 0;
	u32 one_by_one;

	/* @fast events do not change the target, which @cur reaches. */
	if (fast > DCQCN_PERIODS) {
		r->timers += fast;
		r->cur = r->target;
		n -= fast;
	}
	one_by_one = min(n, DCQCN_PERIODS);
	n -= one_by_one;
	while (one_by_one-- && !dcqcn_rate_is_max(r, p)) {
		r->timers = min(r->timers + 1, U16_MAX);
		dcqcn_rate_increase(r, p);
	}
	if (!n || dcqcn_rate_is_max(r, p))
		return;
	/* The rest are additive: a hyper increase also needs byte-counter events, which
	 * are applied after this.
	 */
	r->timers = min_t(u64, (u64)r->timers + n, U16_MAX);
	r->target = min_t(u64, r->target + (u64)n * p->ai, p->max);
	r->cur = r->target == p->max ? p->max : r->target - p->ai;
}

/**
 * dcqcn_rate_advance() - apply the events of the timers and the byte counter up to now
 * @r: the flow
 * @p: parameters
 * @now: µs
 * @bytes: sent since the last call
 */
void dcqcn_rate_advance(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now, u32 bytes)
{
	u32 n = (now - r->alpha_at) / p->alpha_us;
	u64 sum = (u64)r->bytes + bytes;

	r->alpha_at += n * p->alpha_us;
	/* Stop where the decrease would round to 0. */
	for (; n && r->alpha >> p->g; n--)
		r->alpha -= r->alpha >> p->g;

	n = (now - r->timer_at) / p->timer_us;
	r->timer_at += n * p->timer_us;
	dcqcn_rate_timers(r, p, n);

	for (; sum >= p->counter; sum -= p->counter) {
		r->counters = min(r->counters + 1, U16_MAX);
		dcqcn_rate_increase(r, p);
	}
	r->bytes = sum;
}

/**
 * dcqcn_rate_cut() - reduce the rate after a notification
 * @r: the flow; dcqcn_rate_advance() has brought it up to date
 * @p: parameters
 * @now: µs
 */
void dcqcn_rate_cut(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now)
{
	u32 cut = (u64)r->cur * r->alpha / DCQCN_ONE / 2;

	r->target = r->cur;
	r->cur = max(r->cur - cut, dcqcn_rate_least(p));
	r->alpha += (DCQCN_ONE - r->alpha) >> p->g;
	r->timer_at = now;
	r->alpha_at = now;
	r->bytes = 0;
	r->timers = 0;
	r->counters = 0;
}

/**
 * dcqcn_rate_fit() - adapt to parameters that may have changed
 * @r: the flow
 * @p: parameters
 */
void dcqcn_rate_fit(struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	r->target = min(r->target, p->max);
	r->cur = clamp(r->cur, dcqcn_rate_least(p), p->max);
}
