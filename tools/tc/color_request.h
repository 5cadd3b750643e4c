/* SPDX-License-Identifier: GPL-2.0 */
/* A parsed command line of a `color` qdisc. */
#ifndef _COLOR_REQUEST_H
#define _COLOR_REQUEST_H

#include <stdbool.h>
#include <linux/pkt_color.h>
#include <linux/types.h>

#define TC_KIND "color"

#include "tc_words.h"

#define REQUEST_PRESET	(TCA_COLOR_MAX + 1)	/* like an attribute */

/* By attribute; @u32 has the values of one or two words. */
struct request {
	bool	given[REQUEST_PRESET + 1];
	__u32	u32[REQUEST_PRESET + 1];
	__u64	rate;
	__u8	map[TC_COLOR_DSCPS];
	char	pool[TC_COLOR_POOL_NAMSIZ];
	__u8	prio[TC_COLOR_DSCPS];
	__u64	band_rate[TC_COLOR_BANDS_MAX];
	__u32	band_limit[TC_COLOR_BANDS_MAX];
	__u32	band_yield[TC_COLOR_BANDS_MAX];
	__u8	pause_map[TC_COLOR_PAUSE_PRIOS];
};

#define REQUEST_INIT {							      \
	.map = { [0 ... TC_COLOR_DSCPS - 1] = TC_COLOR_MAP_KEEP },	      \
	.prio = { [0 ... TC_COLOR_DSCPS - 1] = TC_COLOR_MAP_KEEP },	      \
	.band_rate = { [0 ... TC_COLOR_BANDS_MAX - 1] =			      \
		       TC_COLOR_BAND_RATE_KEEP },			      \
	.band_limit = { [0 ... TC_COLOR_BANDS_MAX - 1] =		      \
			TC_COLOR_BAND_LIMIT_KEEP },			      \
	.band_yield = { [0 ... TC_COLOR_BANDS_MAX - 1] =		      \
			TC_COLOR_BAND_YIELD_KEEP },			      \
	.pause_map = { [0 ... TC_COLOR_PAUSE_PRIOS - 1] =		      \
		       TC_COLOR_MAP_KEEP },				      \
}

#endif /* _COLOR_REQUEST_H */
