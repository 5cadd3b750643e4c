// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the use that a sender makes of its credits.
 *
 * A credit reserves link time for a packet.  A sender that requests credits and does not use them
 * would keep that time from the others, so the receiver compares the credits that arrived at the
 * sender with the data packets that arrived from it:
 *
 *	sender                             receiver
 *	     <-- c . c . c . c -----------   4 credits
 *	     --- d . d . d ------------->    arrived += 3
 *	     --- report: 4 received ---->    granted 4, arrived 3: used
 *
 * The report follows the data on the same path, so data that has not arrived before it was not
 * sent, or was lost.  Lost credits do not count here, because the transport's rate control reacts
 * to them (struct rd_policy, learn()).
 *
 * If a sender uses less than half of its credits, each report doubles the gap between two of them.
 * When it uses them again, it has its share back after four reports: @low is halved from 12 to 6,
 * 3, 1, 0, and these gaps are 74 packets together.
 */
#include <linux/limits.h>
#include <linux/minmax.h>

#include "rd_internal.h"

/* Credits that are judged together: a sender whose application stops in mid-flight has
 * requested up to one send buffer too many, once.
 */
#define RD_USE_MIN	16
/* The lowest share is 1/4096 of the link ... */
#define RD_USE_LOW	12
/* ... and a credit each 10 ms: 49 such senders take 6 % of 1 Gbit/s. */
#define RD_USE_GAP	(10 * NSEC_PER_MSEC)

/**
 * rd_use_report() - account for a report of the sender
 * @u: the connection's
 * @granted: credits that it has received since its last report
 * @arrived: packets of data that have arrived on the connection
 *
 * Return: true if the share has grown.
 */
bool rd_use_report(struct rd_use *u, u32 granted, u32 arrived)
{
	u32 used = u->arrived + (u16)(arrived - u->segs);
	u8 low = u->low;

	granted += u->granted;
	u->segs = arrived;
	if (granted < (low ? 1 : RD_USE_MIN)) {
		u->granted = granted;
		/* Unscheduled data does not count for later credits. */
		u->arrived = min(used, granted);
		return false;
	}
	u->granted = 0;
	u->arrived = 0;
	u->low = 2 * (u64)used < granted ? min(low + 1, RD_USE_LOW) : low / 2;
	return u->low < low;
}

/**
 * rd_use_gap() - time between two credits of a sender
 * @u: the connection's
 * @gap: the transport's gap, ns
 * @cost: link time of a credit and its packet, ns
 *
 * Return: ns.
 */
u64 rd_use_gap(const struct rd_use *u, u64 gap, u64 cost)
{
	if (!u->low)
		return gap;
	return max(gap, min_t(u64, cost << u->low, max_t(u64, cost, RD_USE_GAP)));
}
