/* SPDX-License-Identifier: GPL-2.0-only */
/* The FIFO of deflected packets.  See iofd_fifo.c. */
#ifndef _IOFD_FIFO_H
#define _IOFD_FIFO_H

#include <linux/skbuff.h>
#include <linux/spinlock.h>
#include <linux/types.h>
#include <net/sch_generic.h>

/* The kernel's own limit for packets that wait until a CPU runs its next softirq,
 * which is how long packets wait here: the default of net.core.netdev_max_backlog.
 */
#define IOFD_FIFO_LIMIT	1000

/* Packets that one run of the work item sends: the weight of a NAPI poll. */
#define IOFD_BUDGET	64

/**
 * struct iofd_skb_cb - the private area of a packet in the FIFO
 * @port: the number of the port that the packet is for
 * @segs: segments of the packet
 */
struct iofd_skb_cb {
	u32	port;
	u32	segs;
};

static inline struct iofd_skb_cb *iofd_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct iofd_skb_cb));
	return (struct iofd_skb_cb *)qdisc_skb_cb(skb)->data;
}

/**
 * struct iofd_fifo - the FIFO
 * @list: the packets; %IOFD_FIFO_LIMIT counts a GSO packet as one
 * @segs: their segments
 * @bytes: their bytes, as the qdisc layer counts them
 * @peak: the highest value of @segs so far
 *
 * A dump reads the last three without the lock.
 */
struct iofd_fifo {
	struct sk_buff_head	list;
	u32			segs;
	u32			bytes;
	u32			peak;
};

/* Only the holder of the root lock adds packets, so a FIFO with room keeps its room
 * until the holder uses it.
 */
static inline bool iofd_fifo_full(const struct iofd_fifo *fifo)
{
	return skb_queue_len_lockless(&fifo->list) >= IOFD_FIFO_LIMIT;
}

void iofd_fifo_init(struct iofd_fifo *fifo);
void iofd_fifo_add(struct iofd_fifo *fifo, struct sk_buff *skb, u32 port, u32 segs);
bool iofd_fifo_take(struct iofd_fifo *fifo, struct sk_buff_head *to, int budget);
u32 iofd_fifo_purge(struct iofd_fifo *fifo);

#endif /* _IOFD_FIFO_H */
