// SPDX-License-Identifier: GPL-2.0
/* Two network cards, nic0 and nic1, that are linked to each other
 *
 *	qdisc of a queue --> ring --\
 *	qdisc of a queue --> ring ----> TSO, one link --> the other card
 *	qdisc of a queue --> ring --/
 *
 * A ring holds packets before TSO: a slot has up to 64 kB.  The link serves the rings round robin,
 * packet by packet.  A full ring stops its queue, and further packets wait in the queue's qdisc.
 * A ring is full with @slots packets or, if @limit is not 0, more than @limit bytes, as with byte
 * queue limits (BQL).  BQL adapts its limit; a fixed one makes runs repeatable.
 *
 * For selftests/nic_queue.py.  The cards start in the first namespace.
 */
#include <linux/etherdevice.h>
#include <linux/device.h>
#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/module.h>
#include <linux/rtnetlink.h>

#include <net/gl_compat.h>

#define NIC_QUEUES	4
/* The preamble, the gap and the checksum of a frame. */
#define NIC_OVERHEAD	24

static unsigned int mbit = 10000;
module_param(mbit, uint, 0444);
MODULE_PARM_DESC(mbit, "rate of the link, Mbit/s (10000)");

static unsigned int slots = 512;
module_param(slots, uint, 0644);
MODULE_PARM_DESC(slots, "packets in a ring (512)");

static unsigned int limit;
module_param(limit, uint, 0644);
MODULE_PARM_DESC(limit, "bytes in a ring; 0 for no limit (0)");

static unsigned int answers;
module_param(answers, uint, 0644);
MODULE_PARM_DESC(answers, "the speed is unknown once, after this number of answers less one; 0: known (0)");

/**
 * struct nic_ring - the packets of a queue
 * @skbs: waiting for the link
 * @bytes: their length, and that of the packet on the link
 * @count: their number, with the packet on the link
 */
struct nic_ring {
	struct sk_buff_head	skbs;
	unsigned int		bytes;
	unsigned int		count;
};

/**
 * struct nic - a card
 * @dev: its device
 * @peer: the other card
 * @lock: protects all fields below, and the peer's counters of received packets
 * @timer: the segment on the link has been sent
 * @ring: by number of the queue
 * @current_ring: the ring whose packet is on the link
 * @segs: segments of that packet that have not been sent, the first is on the link
 * @len: bytes of that packet before TSO
 * @busy: a segment is on the link
 */
struct nic {
	struct net_device	*dev;
	struct nic		*peer;
	spinlock_t		lock;	/* see above */
	struct hrtimer		timer;
	struct nic_ring		ring[NIC_QUEUES];
	unsigned int		current_ring;
	struct sk_buff		*segs;
	unsigned int		len;
	bool			busy;
};

static struct nic *nics[2];
/* A device without a parent is not taken for a card, which receives pause frames. */
static struct device *nic_parent;

static bool nic_is_full(const struct nic_ring *ring)
{
	unsigned int most = READ_ONCE(limit);

	return ring->count >= READ_ONCE(slots) || (most && ring->bytes > most);
}

static ktime_t nic_time(const struct sk_buff *skb)
{
	return ns_to_ktime(div_u64((skb->len + NIC_OVERHEAD) * 8000ULL, mbit));
}

/* Take the next packet, and make segments of it.  Return whether there was one. */
static bool nic_load(struct nic *nic)
{
	struct nic_ring *ring;
	struct sk_buff *skb, *segs;
	unsigned int i;

	for (i = 0; i < NIC_QUEUES; i++) {
		nic->current_ring = (nic->current_ring + 1) % NIC_QUEUES;
		ring = &nic->ring[nic->current_ring];
		skb = __skb_dequeue(&ring->skbs);
		if (skb)
			break;
	}
	if (i == NIC_QUEUES)
		return false;
	nic->len = skb->len;
	nic->segs = skb;
	if (!skb_is_gso(skb))
		return true;
	segs = skb_gso_segment(skb, nic->dev->features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs))
		return true;
	consume_skb(skb);
	nic->segs = segs;
	return true;
}

static void nic_complete(struct nic *nic)
{
	struct nic_ring *ring = &nic->ring[nic->current_ring];

	ring->bytes -= nic->len;
	ring->count--;
	if (!nic_is_full(ring))
		netif_wake_subqueue(nic->dev, nic->current_ring);
}

static enum hrtimer_restart nic_sent(struct hrtimer *timer)
{
	struct nic *nic = container_of(timer, struct nic, timer);
	struct net_device_stats *stats = &nic->peer->dev->stats;
	struct sk_buff *skb;

	spin_lock(&nic->lock);
	skb = nic->segs;
	nic->segs = skb->next;
	skb_mark_not_on_list(skb);
	if (!nic->segs) {
		nic_complete(nic);
		nic->busy = nic_load(nic);
	}
	if (nic->busy)
		hrtimer_forward_now(timer, nic_time(nic->segs));
	stats->rx_packets++;
	stats->rx_bytes += skb->len;
	spin_unlock(&nic->lock);
	dev_forward_skb(nic->peer->dev, skb);
	return nic->busy ? HRTIMER_RESTART : HRTIMER_NORESTART;
}

static netdev_tx_t nic_xmit(struct sk_buff *skb, struct net_device *dev)
{
	struct nic *nic = *(struct nic **)netdev_priv(dev);
	unsigned int queue = skb_get_queue_mapping(skb);
	struct nic_ring *ring = &nic->ring[queue];

	spin_lock(&nic->lock);
	__skb_queue_tail(&ring->skbs, skb);
	ring->bytes += skb->len;
	ring->count++;
	if (nic_is_full(ring))
		netif_stop_subqueue(dev, queue);
	if (!nic->busy) {
		nic->busy = nic_load(nic);
		hrtimer_start(&nic->timer, nic_time(nic->segs), HRTIMER_MODE_REL_SOFT);
	}
	spin_unlock(&nic->lock);
	return NETDEV_TX_OK;
}

static int nic_open(struct net_device *dev)
{
	netif_tx_start_all_queues(dev);
	return 0;
}

static int nic_stop(struct net_device *dev)
{
	struct nic *nic = *(struct nic **)netdev_priv(dev);
	unsigned int i;

	netif_tx_disable(dev);
	hrtimer_cancel(&nic->timer);
	kfree_skb_list(nic->segs);
	nic->segs = NULL;
	nic->busy = false;
	for (i = 0; i < NIC_QUEUES; i++) {
		__skb_queue_purge(&nic->ring[i].skbs);
		nic->ring[i].bytes = 0;
		nic->ring[i].count = 0;
	}
	return 0;
}

static const struct net_device_ops nic_ops = {
	.ndo_open		= nic_open,
	.ndo_stop		= nic_stop,
	.ndo_start_xmit		= nic_xmit,
	.ndo_set_mac_address	= eth_mac_addr,
	.ndo_validate_addr	= eth_validate_addr,
};

static int nic_link(struct net_device *dev, struct ethtool_link_ksettings *settings)
{
	settings->base.speed = answers && !--answers ? SPEED_UNKNOWN : mbit;
	settings->base.duplex = DUPLEX_FULL;
	return 0;
}

static const struct ethtool_ops nic_ethtool_ops = {
	.get_link		= ethtool_op_get_link,
	.get_link_ksettings	= nic_link,
};

static struct nic *nic_alloc(unsigned int number)
{
	netdev_features_t features = NETIF_F_SG | NETIF_F_FRAGLIST | NETIF_F_HW_CSUM |
				     NETIF_F_TSO | NETIF_F_TSO6 | NETIF_F_TSO_ECN | NETIF_F_HIGHDMA;
	struct nic *nic = kzalloc(sizeof(*nic), GFP_KERNEL);
	struct net_device *dev;
	unsigned int i;

	if (!nic)
		return NULL;
	dev = alloc_etherdev_mqs(sizeof(nic), NIC_QUEUES, 1);
	if (!dev)
		goto free;
	*(struct nic **)netdev_priv(dev) = nic;
	nic->dev = dev;
	spin_lock_init(&nic->lock);
	hrtimer_setup(&nic->timer, nic_sent, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	for (i = 0; i < NIC_QUEUES; i++)
		__skb_queue_head_init(&nic->ring[i].skbs);
	snprintf(dev->name, IFNAMSIZ, "nic%u", number);
	SET_NETDEV_DEV(dev, nic_parent);
	dev->netdev_ops = &nic_ops;
	dev->ethtool_ops = &nic_ethtool_ops;
	dev->features |= features;
	dev->hw_features |= features;
	dev->vlan_features |= features;
	dev->max_mtu = ETH_MAX_MTU;
	eth_hw_addr_random(dev);
	return nic;
free:
	kfree(nic);
	return NULL;
}

static void nic_free(struct nic *nic)
{
	if (!nic)
		return;
	free_netdev(nic->dev);
	kfree(nic);
}

static int __init nic_init(void)
{
	int err = -ENOMEM;

	if (!mbit)
		return -EINVAL;
	nic_parent = root_device_register("gl_nic");
	if (IS_ERR(nic_parent))
		return PTR_ERR(nic_parent);
	nics[0] = nic_alloc(0);
	nics[1] = nic_alloc(1);
	if (!nics[0] || !nics[1])
		goto free;
	nics[0]->peer = nics[1];
	nics[1]->peer = nics[0];
	err = register_netdev(nics[0]->dev);
	if (err)
		goto free;
	err = register_netdev(nics[1]->dev);
	if (!err)
		return 0;
	unregister_netdev(nics[0]->dev);
free:
	nic_free(nics[0]);
	nic_free(nics[1]);
	root_device_unregister(nic_parent);
	return err;
}

static void __exit nic_exit(void)
{
	/* A card that is down sends nothing to the other one. */
	rtnl_lock();
	dev_close(nics[0]->dev);
	dev_close(nics[1]->dev);
	rtnl_unlock();
	unregister_netdev(nics[0]->dev);
	unregister_netdev(nics[1]->dev);
	nic_free(nics[0]);
	nic_free(nics[1]);
	root_device_unregister(nic_parent);
}

module_init(nic_init);
module_exit(nic_exit);

MODULE_DESCRIPTION("two linked network cards with rings (greenlane's selftests)");
MODULE_LICENSE("GPL");
