/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Presets: the switch ports of the papers, as sets of options.  The kernel does not
 * know presets.  An option on the command line overrides the preset's.
 */
#ifndef _COLOR_PRESET_H
#define _COLOR_PRESET_H

#include <linux/greenlane_dscp.h>
#include "color_request.h"

enum preset {
	PRESET_XPASS,
	PRESET_AEOLUS,
	PRESET_TLT,
	PRESET_NDP,
	PRESET_HOMA,
};

static const char * const preset_names[] = {
	[PRESET_XPASS]	= "xpass",
	[PRESET_AEOLUS]	= "aeolus",
	[PRESET_TLT]	= "tlt",
	[PRESET_NDP]	= "ndp",
	[PRESET_HOMA]	= "homa",
};

/* ExpressPass (SIGCOMM '17): the rate of credits fills the link with credits and the
 * data that they permit.  8 credits queue, or those of 10 us, which are more above 10
 * Gbit/s: a receiver whose timer is late catches up with the credits of that time
 * at once (RD_CATCH_UP_NS in net/rd_queue.h).  Lengths are those of Ethernet frames as a qdisc
 * counts them, without FCS, preamble and gap: of a credit with IPv6, TCP and 12 bytes
 * of option (IPv4's are shorter by 20, which leaves 1 % of the link unused), and of
 * full data.
 *
 * The paper has no TCP ACKs.  They add at most one packet with a time stamp for each
 * data packet in the other direction.
 */
#define PRESET_CREDIT		(14 + 40 + 20 + 12)
#define PRESET_ACK		(14 + 40 + 20 + 12)
#define PRESET_DATA		(14 + 1500)
#define PRESET_OVERHEAD		24	/* FCS 4, preamble 8, gap 12 */
#define PRESET_CREDITS		8
#define PRESET_CREDITS_US	10

/* Aeolus (ToN '21, section V): four packets. */
#define PRESET_AEOLUS_RED	(6 << 10)

/* TLT (EuroSys '21, section 6), for its 40 Gbit/s. */
#define PRESET_TLT_RATE		5000000000ull	/* bytes/s */
#define PRESET_TLT_LIMIT	(1800 << 10)
#define PRESET_TLT_RED		(270 << 10)
#define PRESET_TLT_ECN		(200 << 10)

/* NDP (SIGCOMM '17, section 3.1): eight packets of data queue.  Headers, pulls and reports precede
 * them.
 */
#define PRESET_NDP_RED		(8 * PRESET_DATA)

static void preset_u32(struct request *r, int attr, __u32 val)
{
	if (r->given[attr])
		return;
	r->given[attr] = true;
	r->u32[attr] = val;
}

/* The band of a DSCP; the others have the last one. */
static void preset_band(struct request *r, int dscp, int band)
{
	if (r->prio[dscp] == TC_COLOR_MAP_KEEP)
		r->prio[dscp] = band;
	r->given[TCA_COLOR_PRIO] = true;
}

static int preset_xpass(struct request *r)
{
	__u64 credit, data, ack, rate, queued;

	preset_u32(r, TCA_COLOR_OVERHEAD, PRESET_OVERHEAD);
	credit = PRESET_CREDIT + r->u32[TCA_COLOR_OVERHEAD];
	data = PRESET_DATA + r->u32[TCA_COLOR_OVERHEAD];
	ack = PRESET_ACK + r->u32[TCA_COLOR_OVERHEAD];
	rate = r->rate / (credit + data);
	queued = rate * PRESET_CREDITS_US / 1000000;
	if (queued < PRESET_CREDITS)
		queued = PRESET_CREDITS;
	preset_u32(r, TCA_COLOR_BANDS, 2);
	preset_band(r, GREENLANE_DSCP_CREDIT, 0);
	if (r->band_rate[0] == TC_COLOR_BAND_RATE_KEEP) {
		if (!rate)
			return bad("preset: no credits fit this rate");
		r->band_rate[0] = rate | TC_COLOR_BAND_RATE_PPS;
	}
	if (r->band_limit[0] == TC_COLOR_BAND_LIMIT_KEEP)
		r->band_limit[0] = queued;
	if (r->band_yield[0] == TC_COLOR_BAND_YIELD_KEEP)
		r->band_yield[0] = ack * TC_COLOR_BAND_YIELD_ONE / data;
	r->given[TCA_COLOR_BAND_RATE64] = true;
	r->given[TCA_COLOR_BAND_LIMIT] = true;
	r->given[TCA_COLOR_BAND_YIELD] = true;
	return 0;
}

static int preset_aeolus(struct request *r)
{
	if (preset_xpass(r))
		return -1;
	preset_u32(r, TCA_COLOR_RED, PRESET_AEOLUS_RED);
	preset_u32(r, TCA_COLOR_COUNT, TC_COLOR_COUNT_QUEUE);
	preset_u32(r, TCA_COLOR_CLASSIFY, TC_COLOR_CLASSIFY_DSCP);
	return 0;
}

/* Scale the thresholds so that the queueing delay is the same at any rate. */
static int preset_tlt(struct request *r)
{
	double scale = (double)r->rate / PRESET_TLT_RATE;

	if (PRESET_TLT_ECN * scale < 1 ||
	    PRESET_TLT_LIMIT * scale > TC_COLOR_LIMIT_MAX)
		return bad("preset: tlt does not fit this rate");
	preset_u32(r, TCA_COLOR_LIMIT, PRESET_TLT_LIMIT * scale);
	preset_u32(r, TCA_COLOR_RED, PRESET_TLT_RED * scale);
	preset_u32(r, TCA_COLOR_COUNT, TC_COLOR_COUNT_COLOR);
	preset_u32(r, TCA_COLOR_CLASSIFY, TC_COLOR_CLASSIFY_DSCP);
	if (!r->given[TCA_COLOR_ECN_MIN]) {
		preset_u32(r, TCA_COLOR_ECN_MIN, PRESET_TLT_ECN * scale);
		preset_u32(r, TCA_COLOR_ECN_MAX, PRESET_TLT_ECN * scale);
		preset_u32(r, TCA_COLOR_ECN_PROB, TC_COLOR_PROB_ONE);
	}
	return 0;
}

static int preset_ndp(struct request *r)
{
	preset_u32(r, TCA_COLOR_OVERHEAD, PRESET_OVERHEAD);
	preset_u32(r, TCA_COLOR_BANDS, 2);
	preset_band(r, GREENLANE_DSCP_TRIMMED, 0);
	preset_band(r, GREENLANE_DSCP_CREDIT, 0);
	preset_u32(r, TCA_COLOR_TRIM_DSCP, GREENLANE_DSCP_TRIMMED);
	preset_u32(r, TCA_COLOR_RED, PRESET_NDP_RED);
	preset_u32(r, TCA_COLOR_COUNT, TC_COLOR_COUNT_QUEUE);
	preset_u32(r, TCA_COLOR_CLASSIFY, TC_COLOR_CLASSIFY_DSCP);
	return 0;
}

/* Homa (SIGCOMM '18, section 3.4): packets without data, three priorities of unscheduled data, and
 * four of granted data, the last with all other packets.
 */
static int preset_homa(struct request *r)
{
	static const int dscp[] = {
		GREENLANE_DSCP_CREDIT, GREENLANE_DSCP_UNSCHEDULED, GREENLANE_DSCP_UNSCHEDULED_2,
		GREENLANE_DSCP_UNSCHEDULED_3, GREENLANE_DSCP_SCHEDULED, GREENLANE_DSCP_SCHEDULED_2,
		GREENLANE_DSCP_SCHEDULED_3, GREENLANE_DSCP_SCHEDULED_4,
	};
	unsigned int band;

	preset_u32(r, TCA_COLOR_OVERHEAD, PRESET_OVERHEAD);
	preset_u32(r, TCA_COLOR_BANDS, N(dscp));
	for (band = 0; band < N(dscp); band++)
		preset_band(r, dscp[band], band);
	/* Aeolus's probe must not overtake its unscheduled data. */
	preset_band(r, GREENLANE_DSCP_PROTECTED, 1);
	return 0;
}

static int preset_apply(struct request *r)
{
	static int (* const apply[])(struct request *r) = {
		[PRESET_XPASS]	= preset_xpass,
		[PRESET_AEOLUS]	= preset_aeolus,
		[PRESET_TLT]	= preset_tlt,
		[PRESET_NDP]	= preset_ndp,
		[PRESET_HOMA]	= preset_homa,
	};
	__u32 preset = r->u32[REQUEST_PRESET];

	if (!r->rate)
		return bad("preset %s needs a rate", preset_names[preset]);
	return apply[preset](r);
}

#endif /* _COLOR_PRESET_H */
