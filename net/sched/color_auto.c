// SPDX-License-Identifier: GPL-2.0-only
/* `red auto`: an automatic threshold of red packets; see color_auto.h. */

#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/time64.h>

#include "color_auto.h"
#include "color_config.h"
#include "color_pool.h"
#include "color_thresh.h"

static u32 color_auto_min(const struct color_config *cfg, u32 mtu)
{
	u64 min = cfg->limit / COLOR_AUTO_MIN_LIMIT;

	if (cfg->red_min)
		return cfg->red_min;
	if (cfg->rate)
		min = div_u64(cfg->rate, USEC_PER_SEC / COLOR_AUTO_MIN_US);
	min = max_t(u64, min, COLOR_AUTO_MIN_PACKETS * (u64)mtu);
	return min_t(u64, min, cfg->limit / COLOR_AUTO_MIN_MAX);
}

/* alpha / b with b^2 = b + alpha, all in Q16; see color_auto.h. */
static u32 color_auto_alpha(u32 alpha)
{
	u64 one = TC_COLOR_ALPHA_ONE;
	u32 b = (one + int_sqrt64(one * one + 4 * one * alpha)) / 2;

	return div_u64(alpha * one, b);
}

/**
 * color_auto_set() - apply a configuration
 * @a: the state
 * @cfg: the configuration
 * @mtu: bytes of the device's longest packet
 */
void color_auto_set(struct color_auto *a, const struct color_config *cfg, u32 mtu)
{
	u64 ms = cfg->rate ? div64_u64(cfg->limit * (u64)MSEC_PER_SEC, cfg->rate) : 1;
	unsigned long window = msecs_to_jiffies(clamp_t(u64, ms, 1, COLOR_AUTO_WINDOW_MAX));

	/* The time up to now was one window, and not several short ones. */
	if (window != a->window) {
		a->peak = max(a->peak, a->top);
		a->since = jiffies;
	}
	a->window = window;
	a->min = color_auto_min(cfg, mtu);
	a->alpha = color_auto_alpha(cfg->alpha);
}

/**
 * color_auto_reset() - discard the recent peak
 * @a: the state
 * @protected: bytes of protected packets in the port
 */
void color_auto_reset(struct color_auto *a, u64 protected)
{
	a->peak = 0;
	a->top = round_up(protected, COLOR_AUTO_STEP);
	a->since = jiffies;
}

/**
 * color_auto_roll() - start a new window, if the current one is over
 * @a: the state
 * @protected: bytes of protected packets
 * @now: jiffies
 *
 * Several windows may have passed, if no packet has arrived.
 */
void color_auto_roll(struct color_auto *a, u64 protected, unsigned long now)
{
	unsigned long windows = (now - a->since) / a->window;

	if (!windows)
		return;
	a->since += windows * a->window;
	/* @top is of the first of these windows: in the others no packet has arrived. */
	a->peak = max(a->peak - div_u64(a->peak, COLOR_AUTO_WINDOWS), a->top);
	windows = min_t(unsigned long, windows - 1, COLOR_AUTO_WINDOWS);
	a->peak -= div_u64(a->peak * windows, COLOR_AUTO_WINDOWS);
	a->top = round_up(protected, COLOR_AUTO_STEP);
}

/**
 * color_auto_need() - the room to keep for protected packets
 * @a: the state
 * @protected: bytes of protected packets
 *
 * Return: bytes.
 */
u64 color_auto_need(const struct color_auto *a, u64 protected)
{
	return max(a->peak, COLOR_AUTO_GROWTH * protected);
}

/**
 * color_auto_thresh() - the automatic threshold of red packets
 * @a: the state
 * @cfg: the configuration
 * @share: the port's part of a pool, if it has a pool
 * @queued: bytes of the port's packets
 * @protected: bytes of protected packets
 * @others: bytes of packets that are neither protected nor red
 *
 * Return: the threshold, bytes.
 */
u64 color_auto_thresh(const struct color_auto *a, const struct color_config *cfg,
		      const struct color_share *share, u64 queued, u64 protected, u64 others)
{
	u64 known = max(a->peak, protected), need = color_auto_need(a, protected);
	u64 room = cfg->limit, most = U64_MAX;

	if (share->pool) {
		/* Count the room that is kept as used. */
		u64 used = atomic64_read(&share->pool->used) - (share->held - queued) - protected;
		u32 size = READ_ONCE(share->pool->size);

		room = min(room, color_pool_thresh(size, used + need, cfg->alpha));
		most = color_pool_thresh(size, used + known, a->alpha);
		most -= min(most, known + others);
	}
	room -= room / COLOR_AUTO_RESERVE;
	room -= min(room, need + others);
	return max_t(u64, min(most, room), a->min);
}
