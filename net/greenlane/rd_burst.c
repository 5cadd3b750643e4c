// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a host's limit of unscheduled packets.
 *
 * An unscheduled burst fills the link for the round trip until the receiver's credits.  All
 * connections of a host share one bandwidth-delay product: more packets would only wait in the
 * host's own queue, in front of scheduled ones, and under incast the switch would drop most of
 * them.
 *
 * Granted packets count until the receiver acknowledges the burst, or else for one or two epochs.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include <net/rd_queue.h>

static u64 rd_burst_age(struct rd_queue *q, u64 now)
{
	u64 epoch = div_u64(now, RD_EPOCH);

	if (epoch != q->epoch) {
		q->burst[epoch & 1] = 0;
		if (epoch != q->epoch + 1)
			q->burst[~epoch & 1] = 0;
		q->epoch = epoch;
	}
	return epoch;
}

/**
 * rd_burst() - grant packets of an unscheduled burst
 * @q: the link's queue
 * @now: jiffies
 * @want: number of packets to send
 * @cost: link time of a packet, ns
 * @most: limit of the host: link time of a round trip, ns
 * @epoch: set to the epoch of the grant, for rd_burst_over()
 *
 * Return: number of packets granted.  rd_burst_over() returns them, or the second epoch does.
 */
u32 rd_burst(struct rd_queue *q, u64 now, u32 want, u64 cost, u64 most, u8 *epoch)
{
	u64 used, at;
	u32 may = 0;

	spin_lock_bh(&q->lock);
	at = rd_burst_age(q, now);
	used = q->burst[0] + q->burst[1];
	if (used < most)
		may = min_t(u64, want, div64_u64(most - used + cost - 1, cost));
	q->burst[at & 1] += may * cost;
	*epoch = at;
	spin_unlock_bh(&q->lock);
	return may;
}
EXPORT_SYMBOL_GPL(rd_burst);

/**
 * rd_burst_over() - return the packets of a burst that was acknowledged, or timed out
 * @q: the link's queue
 * @now: jiffies
 * @cost: link time of the granted packets, ns
 * @epoch: epoch of the grant
 */
void rd_burst_over(struct rd_queue *q, u64 now, u64 cost, u8 epoch)
{
	u8 ago;

	spin_lock_bh(&q->lock);
	ago = rd_burst_age(q, now) - epoch;
	if (ago < 2)
		q->burst[epoch & 1] -= min(cost, q->burst[epoch & 1]);
	spin_unlock_bh(&q->lock);
}
EXPORT_SYMBOL_GPL(rd_burst_over);
