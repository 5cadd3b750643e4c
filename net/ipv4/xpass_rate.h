/* SPDX-License-Identifier: GPL-2.0 */
/* The rate at which a receiver sends credits.  See xpass_rate.c. */
#ifndef _XPASS_RATE_H
#define _XPASS_RATE_H

#include <linux/types.h>

/**
 * struct xpass_rate - the rate of one flow's credits
 * @cur: current rate, credits per second
 * @max: the rate that fills the link, credits per second
 * @w: weight of @max in an increase, in 1/1024 (the paper's w)
 * @clean: the loss at the last update was at most the target
 */
struct xpass_rate {
	u32 cur;
	u32 max;
	u16 w;
	bool clean;
};

void xpass_rate_init(struct xpass_rate *r, u32 initial);
void xpass_rate_update(struct xpass_rate *r, u32 sent, u32 lost);

#endif /* _XPASS_RATE_H */
