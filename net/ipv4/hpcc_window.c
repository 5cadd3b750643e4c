// SPDX-License-Identifier: GPL-2.0
/* HPCC's window (Li et al., "HPCC: High Precision Congestion Control", SIGCOMM 2019, Algorithm 1):
 *
 *	sample u:	U = (1 - tau/T) U + tau/T u	tau: time since the last sample, at most T
 *	U >= eta, or after maxStage updates without that:
 *			W = Wc eta / U + W_AI		multiplicative, to the target in one step
 *	else:		W = Wc + W_AI			additive, for fairness
 *	update:		Wc = W				once per round trip
 *
 * The samples of one round trip are effects of the same window, so each computes W from Wc, and
 * only one of them moves Wc.
 *
 * W leaves the range from Winit / HPCC_SHARES to Winit * HPCC_WINDOWS at no time, so a utilisation
 * near 0, or a wrong one, has a limited effect.
 */
#include <linux/limits.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/time64.h>

#include "hpcc_window.h"

/* A sample is in 2^-10: see <net/gl_int.h>. */
#define HPCC_SAMPLE_SHIFT	(HPCC_ONE_SHIFT - 10)

/**
 * hpcc_params_set() - compute the parameters of a path
 * @p: the result; @p->stages and @p->average are not changed
 * @mbit: rate of the sender's link, Mbit/s, up to 1.6 Tbit/s
 * @rtt_us: base RTT, us; counts as 1 us … 1 s
 * @percent: target utilisation
 * @flows: expected number of flows on a link, N; not 0
 */
void hpcc_params_set(struct hpcc_params *p, u32 mbit, u32 rtt_us, u32 percent, u32 flows)
{
	rtt_us = clamp(rtt_us, 1U, HPCC_RTT_MAX / (u32)NSEC_PER_USEC);
	p->rtt = rtt_us * (u32)NSEC_PER_USEC;
	/* 1 Mbit/s times 1 us is a bit. */
	p->init = (u64)mbit * rtt_us << (HPCC_SHIFT - 3);
	p->eta = (percent << HPCC_ONE_SHIFT) / 100;
	p->ai = max_t(u64, div_u64(div_u64(p->init * (100 - percent), 100), flows), 1);
}

/**
 * hpcc_window_init() - start at line rate
 * @w: the state
 * @p: parameters
 */
void hpcc_window_init(struct hpcc_window *w, const struct hpcc_params *p)
{
	*w = (struct hpcc_window) { .now = p->init, .base = p->init };
}

/**
 * hpcc_window_set() - continue with a window of packets
 * @w: the state
 * @p: parameters
 * @packets: the window
 * @packet: bytes of a full packet on the link
 *
 * The next sample is the first one.
 */
void hpcc_window_set(struct hpcc_window *w, const struct hpcc_params *p, u32 packets, u32 packet)
{
	*w = (struct hpcc_window) { .now = (u64)packets * packet << HPCC_SHIFT };
	w->base = w->now;
	hpcc_window_fit(w, p);
}

static u64 hpcc_window_limit(u64 window, const struct hpcc_params *p)
{
	return clamp_t(u64, window, p->init / HPCC_SHARES + 1, p->init * HPCC_WINDOWS);
}

/**
 * hpcc_window_fit() - adapt to parameters that may have changed
 * @w: the state
 * @p: parameters
 */
void hpcc_window_fit(struct hpcc_window *w, const struct hpcc_params *p)
{
	w->now = hpcc_window_limit(w->now, p);
	w->base = hpcc_window_limit(w->base, p);
}

/* U = (1 - tau/T) U + tau/T u */
static void hpcc_window_average(struct hpcc_window *w, const struct hpcc_params *p, u32 util,
				u64 now)
{
	u32 tau = now > w->at ? min_t(u64, now - w->at, p->rtt) : 0;

	if (!p->average || !w->begun)
		tau = p->rtt;
	w->util = div_u64((u64)w->util * (p->rtt - tau) + (u64)util * tau, p->rtt);
	w->at = now;
	w->begun = true;
}

/**
 * hpcc_window_sample() - react to a sample of the utilisation
 * @w: the state
 * @p: parameters
 * @util: the sample, 2^-10, below 2^15; 0 counts as the least
 * @now: ns
 * @update: a round trip has passed since the last update
 */
void hpcc_window_sample(struct hpcc_window *w, const struct hpcc_params *p, u32 util, u64 now,
			bool update)
{
	bool multiply;

	hpcc_window_average(w, p, max(util, 1U) << HPCC_SAMPLE_SHIFT, now);
	multiply = w->util >= p->eta || w->stage >= p->stages;
	hpcc_window_fit(w, p);
	w->now = w->base;
	if (multiply)
		w->now = mul_u64_u32_div(w->now, p->eta, max(w->util, 1U << HPCC_SAMPLE_SHIFT));
	w->now = hpcc_window_limit(w->now + p->ai, p);
	if (!update)
		return;
	w->stage = multiply ? 0 : w->stage + 1;
	w->base = w->now;
}

/**
 * hpcc_window_timeout() - continue after a retransmission timeout
 * @w: the state
 * @p: parameters
 * @packet: bytes of a full packet on the link
 *
 * All telemetry is old.  Continue with one packet, as TCP does, and let the next sample multiply
 * the window, also if the path is not full.
 */
void hpcc_window_timeout(struct hpcc_window *w, const struct hpcc_params *p, u32 packet)
{
	hpcc_window_fit(w, p);
	w->base = min(w->base, hpcc_window_limit((u64)packet << HPCC_SHIFT, p));
	w->now = w->base;
	w->stage = p->stages;
	w->begun = false;
}

/**
 * hpcc_window_bytes() - the window
 * @w: the state
 *
 * Return: bytes on the link, rounded down.
 */
u64 hpcc_window_bytes(const struct hpcc_window *w)
{
	return w->now >> HPCC_SHIFT;
}

/**
 * hpcc_window_packets() - the window in packets
 * @w: the state
 * @packet: bytes of a full packet on the link
 *
 * Return: packets, rounded up, at least 1: the rate limits a flow below that.
 */
u32 hpcc_window_packets(const struct hpcc_window *w, u32 packet)
{
	u64 packets = div_u64(hpcc_window_bytes(w) + packet - 1, packet);

	return clamp_t(u64, packets, 1, S32_MAX);
}

/**
 * hpcc_window_rate() - the rate R = W / T
 * @w: the state
 * @p: parameters
 *
 * Return: bytes/s on the link, at least 1.
 */
u64 hpcc_window_rate(const struct hpcc_window *w, const struct hpcc_params *p)
{
	return max_t(u64, mul_u64_u32_div(w->now, NSEC_PER_SEC, p->rtt) >> HPCC_SHIFT, 1);
}
