/* SPDX-License-Identifier: GPL-2.0 */
/* How fast a receiver sends credits: the feedback control of ExpressPass
 * (SIGCOMM 2017, Algorithm 1; constants as the authors' code has them).
 *
 * Credits that the network had no room for are dropped, so a little loss of them
 * is a sign of a link that is used in full, and the aim.
 *
 * Unlike there, a round halves the rate at most: where a flow gets less than a credit
 * a round trip, one that is lost is all, and would stop it.
 */
#ifndef _XPASS_RATE_H
#define _XPASS_RATE_H

#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/types.h>

/* Parts of one are in 1/1024. */
#define XPASS_ONE	1024
#define XPASS_W		64	/* 1/16, as in Aeolus's runs */
#define XPASS_W_MIN	10	/* 0.01 */
#define XPASS_W_MAX	512	/* 0.5 */
#define XPASS_W_STEP	51	/* 0.05 */
#define XPASS_LOSS	128	/* 0.125: the loss that is aimed at, at rate 0 */

/* Where many flows meet that none of their receivers can see, each loses most of its
 * credits, whatever its rate.  The least share of the line is so much that a flow
 * does not have to wait for TCP's timers all the same: 1.3 ms at 10 Gbit/s.
 */
#define XPASS_SHARES	1024

/**
 * struct xpass_rate - the rate of one flow's credits
 * @cur: credits a second, now
 * @max: credits a second that fill the line
 * @w: how eager it is to go up, in 1/1024
 * @clean: the last round had no more loss than is aimed at
 */
struct xpass_rate {
	u32 cur;
	u32 max;
	u16 w;
	bool clean;
};

/**
 * xpass_rate_init() - a flow begins
 * @r: the rate; @r->max is set, and not 0
 * @initial: 1/@initial of that is where it begins
 */
static inline void xpass_rate_init(struct xpass_rate *r, u32 initial)
{
	r->cur = max(r->max / initial, 1U);
	r->w = XPASS_W;
	r->clean = false;
}

/**
 * xpass_rate_update() - a round has ended
 * @r: the rate
 * @sent: credits sent in it; not 0
 * @lost: how many of them the sender has not got
 */
static inline void xpass_rate_update(struct xpass_rate *r, u32 sent, u32 lost)
{
	u32 aim = div_u64((u64)XPASS_LOSS * (r->max - r->cur), r->max);
	u64 cur = r->cur;

	if ((u64)lost * XPASS_ONE > (u64)aim * sent) {
		/* What arrives, and what is aimed to be lost; half at least. */
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

#endif /* _XPASS_RATE_H */
