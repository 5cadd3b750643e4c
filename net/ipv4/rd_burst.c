// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: what a host sends before the receivers have let anything come.
 *
 * A burst is to fill the link for the round trip until the receiver's answer.  All connections of
 * a host share that: what exceeds it would only wait in the host's own queue, what the receivers
 * let come would wait behind it, and under incast most of it would be dropped.
 *
 * What was granted counts until the answer, or for one or two RD_EPOCHs if there is none.
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
 * rd_burst() - send before the receiver has let anything come
 * @q: the link's queue
 * @now: jiffies
 * @want: how much there is to send, packets
 * @cost: time of a packet on the link, ns
 * @most: what the link carries in a round trip, ns
 * @epoch: for rd_burst_over()
 *
 * Return: how many packets may be sent; rd_burst_over() gives them back, or time does.
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
 * rd_burst_over() - a receiver has answered to a burst, or did not for too long
 * @q: the link's queue
 * @now: jiffies
 * @cost: time on the link of what rd_burst() has granted, ns
 * @epoch: when that was
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
