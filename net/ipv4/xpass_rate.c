// SPDX-License-Identifier: GPL-2.0
/* The rate at which a receiver sends credits: the feedback control of ExpressPass
 * (SIGCOMM 2017, Algorithm 1; the constants are from the authors' code).
 *
 * The network drops excess credits, so a small loss shows that the link is fully used.
 * The control aims at such a loss.
 *
 * Unlike in the paper, one update at most halves the rate.  A flow with less than one
 * credit per round trip would otherwise stop when that credit is lost.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "xpass_rate.h"

/* Fractions are in units of 1/1024. */
#define XPASS_ONE	1024
#define XPASS_W		64	/* 1/16, as Aeolus's authors ran it */
#define XPASS_W_MIN	10	/* 0.01 */
#define XPASS_W_MAX	512	/* 0.5 */
#define XPASS_W_STEP	51	/* 0.05 */
#define XPASS_LOSS	128	/* 0.125: target loss at rate 0; it falls to 0 at the full rate */

/* The lowest rate is 1/1024 of the link's credit rate.  If many flows of different receivers share
 * a congested link, each loses most of its credits, at any rate; at the lowest rate a
 * flow still sends a credit each 1.3 ms (10 Gbit/s), before TCP's timers expire.
 */
#define XPASS_SHARES	1024

/**
 * xpass_rate_init() - start a flow's rate
 * @r: the rate; @r->max is set, and not 0
 * @initial: the flow starts at @r->max / @initial
 */
void xpass_rate_init(struct xpass_rate *r, u32 initial)
{
	r->cur = max(r->max / initial, 1U);
	r->w = XPASS_W;
	r->clean = false;
}

/**
 * xpass_rate_update() - adjust the rate at the end of a round trip
 * @r: the rate
 * @sent: credits sent in the round trip; not 0
 * @lost: number of them that did not reach the sender
 */
void xpass_rate_update(struct xpass_rate *r, u32 sent, u32 lost)
{
	u32 aim = div_u64((u64)XPASS_LOSS * (r->max - r->cur), r->max);
	u64 cur = r->cur;

	if ((u64)lost * XPASS_ONE > (u64)aim * sent) {
		/* The rate of the credits that arrived, plus the target loss; at least half of
		 * the old rate.
		 */
		cur = div_u64(cur * (sent - lost), sent);
		cur = max_t(u64, cur * (XPASS_ONE + aim) / XPASS_ONE, r->cur / 2);
		r->w = max(r->w / 2, XPASS_W_MIN);
		r->clean = false;
	} else {
		if (r->clean)
			r->w = min(r->w + XPASS_W_STEP, XPASS_W_MAX);
		cur = (r->w * (u64)r->max + (XPASS_ONE - r->w) * cur) / XPASS_ONE;
		r->clean = true;
	}
	r->cur = clamp_t(u64, cur, r->max / XPASS_SHARES + 1, r->max);
}
