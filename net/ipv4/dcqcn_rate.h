/* SPDX-License-Identifier: GPL-2.0 */
/* How fast a sender sends: the reaction point of DCQCN (Zhu et al., "Congestion Control
 * for Large-Scale RDMA Deployments", SIGCOMM 2015, §3.3, Figure 7).
 *
 *	notification:	target = rate, rate *= 1 - alpha / 2, alpha += g (1 - alpha)
 *	without one for @alpha_us: alpha *= 1 - g
 *	an event, each @timer_us and each @counter bytes:
 *	  fewer than F of either	fast recovery	(target stays)
 *	  F or more of one		additive	target += ai
 *	  more than F of both		hyper		target += i hai, i = those beyond F
 *	  and then			rate = (target + rate) / 2
 *
 * A NIC has two timers for each flow.  Here they are looked at when there is a reason
 * to, an ACK or the first packet after a pause, and then all that would have happened
 * since then happens: ten thousand idle flows cost nothing.
 */
#ifndef _DCQCN_RATE_H
#define _DCQCN_RATE_H

#include <linux/bits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* alpha of 1 */
#define DCQCN_ONE	((u32)BIT(30))

/* The paper has no least rate; cards have.  So much that a packet of 1500 bytes waits
 * 1.2 ms at 10 Gbit/s, which is below the least RTO in use (4 ms).
 */
#define DCQCN_SHARES	1024

/* Periods that are gone through one by one: the rate has come within 2^-64 of its
 * target then, and only the target still moves.
 */
#define DCQCN_PERIODS	64

/**
 * struct dcqcn_params - what is the same for all flows of a namespace
 * @max: what the line carries, kB/s (of 1000 bytes)
 * @ai: additive increase, kB/s
 * @hai: hyper increase, kB/s
 * @counter: bytes of an event
 * @timer_us: time of an event
 * @alpha_us: time without a notification that lets alpha decay
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
 * @cur: the rate, kB/s
 * @target: where it goes back to, kB/s
 * @alpha: how congested it is, DCQCN_ONE is 1
 * @timer_at: when the last event by time was, µs
 * @alpha_at: when alpha changed last, µs
 * @bytes: sent since the last event by bytes
 * @timers: events by time since the last notification
 * @counters: events by bytes since then
 *
 * Times wrap around; a pause of more than an hour is taken for a shorter one.
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

/**
 * dcqcn_rate_init() - a flow begins, at line rate
 * @r: the flow
 * @p: parameters
 * @now: µs
 */
static inline void dcqcn_rate_init(struct dcqcn_rate *r, const struct dcqcn_params *p,
				   u32 now)
{
	*r = (struct dcqcn_rate) {
		.cur = p->max, .target = p->max, .alpha = DCQCN_ONE,
		.timer_at = now, .alpha_at = now,
	};
}

static inline u32 dcqcn_rate_least(const struct dcqcn_params *p)
{
	return p->max / DCQCN_SHARES + 1;
}

/* An event has been counted: go up. */
static inline void dcqcn_rate_increase(struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	u64 target = r->target;

	if (min(r->timers, r->counters) > p->fast)
		target += (u64)(min(r->timers, r->counters) - p->fast) * p->hai;
	else if (max(r->timers, r->counters) >= p->fast)
		target += p->ai;
	r->target = min_t(u64, target, p->max);
	r->cur = ((u64)r->cur + r->target + 1) / 2;
}

static inline bool dcqcn_rate_is_max(const struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	return r->cur == p->max && r->target == p->max;
}

/* @n periods have passed without a notification. */
static inline void dcqcn_rate_timers(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 n)
{
	u32 one_by_one = min(n, DCQCN_PERIODS);

	n -= one_by_one;
	while (one_by_one-- && !dcqcn_rate_is_max(r, p)) {
		r->timers = min(r->timers + 1, U16_MAX);
		dcqcn_rate_increase(r, p);
	}
	if (!n || dcqcn_rate_is_max(r, p))
		return;
	/* What is left is additive: nothing has been sent, or there were more looks. */
	r->timers = min_t(u64, (u64)r->timers + n, U16_MAX);
	r->target = min_t(u64, r->target + (u64)n * p->ai, p->max);
	r->cur = r->target == p->max ? p->max : r->target - p->ai;
}

/**
 * dcqcn_rate_advance() - do what the timers and the byte counter would have done
 * @r: the flow
 * @p: parameters
 * @now: µs
 * @bytes: sent since this was called last
 */
static inline void dcqcn_rate_advance(struct dcqcn_rate *r, const struct dcqcn_params *p,
				      u32 now, u32 bytes)
{
	u32 n = (now - r->alpha_at) / p->alpha_us;
	u64 sum = (u64)r->bytes + bytes;

	r->alpha_at += n * p->alpha_us;
	/* It decays to nothing, and stops where its gain of it is less than one. */
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
 * dcqcn_rate_cut() - a notification has come
 * @r: the flow, which has been advanced
 * @p: parameters
 * @now: µs
 */
static inline void dcqcn_rate_cut(struct dcqcn_rate *r, const struct dcqcn_params *p, u32 now)
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
 * dcqcn_rate_fit() - the line has another rate
 * @r: the flow
 * @p: parameters
 */
static inline void dcqcn_rate_fit(struct dcqcn_rate *r, const struct dcqcn_params *p)
{
	r->target = min(r->target, p->max);
	r->cur = clamp(r->cur, dcqcn_rate_least(p), p->max);
}

#endif /* _DCQCN_RATE_H */
