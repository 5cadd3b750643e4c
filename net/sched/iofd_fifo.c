// SPDX-License-Identifier: GPL-2.0-only
/*
 * The FIFO of deflected packets, which wait there for the work item that sends them.
 *
 * The qdisc adds packets with its root lock held, the work item takes them away with
 * no lock held.  The lock of the list protects the whole FIFO; it nests inside the
 * root lock.
 */
#include "iofd_fifo.h"

void iofd_fifo_init(struct iofd_fifo *fifo)
{
	skb_queue_head_init(&fifo->list);
	fifo->segs = 0;
	fifo->bytes = 0;
	fifo->peak = 0;
}

static void iofd_fifo_count(struct iofd_fifo *fifo, u32 segs, u32 bytes)
{
	WRITE_ONCE(fifo->segs, segs);
	WRITE_ONCE(fifo->bytes, bytes);
	if (segs > fifo->peak)
		WRITE_ONCE(fifo->peak, segs);
}

/**
 * iofd_fifo_add() - add a packet at the end
 * @fifo: the FIFO, which has room
 * @skb: the packet
 * @port: the number of the port that the packet is for
 * @segs: segments of the packet
 *
 * The caller holds the root lock, with bottom halves disabled.
 */
void iofd_fifo_add(struct iofd_fifo *fifo, struct sk_buff *skb, u32 port, u32 segs)
{
	iofd_skb_cb(skb)->port = port;
	iofd_skb_cb(skb)->segs = segs;

	spin_lock(&fifo->list.lock);
	__skb_queue_tail(&fifo->list, skb);
	iofd_fifo_count(fifo, fifo->segs + segs,
			fifo->bytes + qdisc_pkt_len(skb));
	spin_unlock(&fifo->list.lock);
}

/**
 * iofd_fifo_take() - take the first packets
 * @fifo: the FIFO
 * @to: an empty list, which gets the packets in their order
 * @budget: the maximum number of packets
 *
 * The caller has bottom halves disabled.
 *
 * Return: true if packets are left in the FIFO.
 */
bool iofd_fifo_take(struct iofd_fifo *fifo, struct sk_buff_head *to, int budget)
{
	struct sk_buff *skb;
	bool more;

	spin_lock(&fifo->list.lock);
	while (budget-- > 0 && (skb = __skb_dequeue(&fifo->list))) {
		iofd_fifo_count(fifo, fifo->segs - iofd_skb_cb(skb)->segs,
				fifo->bytes - qdisc_pkt_len(skb));
		__skb_queue_tail(to, skb);
	}
	more = !skb_queue_empty(&fifo->list);
	spin_unlock(&fifo->list.lock);
	return more;
}

/**
 * iofd_fifo_purge() - drop all packets
 * @fifo: the FIFO
 *
 * Return: the number of segments that were dropped.
 */
u32 iofd_fifo_purge(struct iofd_fifo *fifo)
{
	struct sk_buff_head list;
	u32 segs;

	__skb_queue_head_init(&list);
	spin_lock_bh(&fifo->list.lock);
	skb_queue_splice_init(&fifo->list, &list);
	segs = fifo->segs;
	iofd_fifo_count(fifo, 0, 0);
	spin_unlock_bh(&fifo->list.lock);
	__skb_queue_purge(&list);
	return segs;
}
