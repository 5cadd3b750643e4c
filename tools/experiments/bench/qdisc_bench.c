// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of qdiscs.  Calls the root qdiscs of some devices directly,
 * interleaved, so that other load on the machine affects all of them alike:
 *
 *	insmod qdisc_bench.ko devs=dummy0,dummy1
 *
 * A repetition is many bursts of packets, which are enqueued and dequeued again
 * with the root lock held, as in the stack.  It neither transmits nor allocates packets.
 * Before a packet is enqueued its TTL is written, as forwarding does, so that its
 * header is in the cache for every qdisc.
 * The kernel's log gets, for each device, the processor cycles of one packet's
 * enqueue and dequeue in the fastest and in the median repetition.
 *
 * With spread=N packet I has the DSCP I mod N, so that N bands of a qdisc are busy.
 *
 * With queues=N it calls instead the qdiscs of the first N transmit queues of each
 * device, queue I on processor I: first that of queue 0 alone, then all at one time.
 * The log gets the cycles of both, of the slowest queue, as "device/1" and "device/N".
 */
#include <linux/if_ether.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/netdevice.h>
#include <linux/rtnetlink.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <linux/string.h>
#include <linux/workqueue.h>
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "turns.h"

#define MAX_DEVS	16
#define PACKETS		25600	/* of a repetition */
#define MAX_BURST	1024
#define MAX_QUEUES	4
#define PACKET		1514	/* bytes */

static char *devs[MAX_DEVS];
static int n_devs;
module_param_array(devs, charp, &n_devs, 0444);
MODULE_PARM_DESC(devs, "devices whose root qdiscs are measured");

static unsigned int burst = 64;
module_param(burst, uint, 0444);
MODULE_PARM_DESC(burst, "packets that are queued at a time, 1 ... 1024");

static int dscp = -1;
module_param(dscp, int, 0444);
MODULE_PARM_DESC(dscp, "of all packets; -1 for a mix");

/* DSCPs of TLT's codepoints, with the frequencies of an incast. */
static const u8 dscps[] = { 8, 8, 8, 10, 8, 8, 8, 10 };

static unsigned int spread;
module_param(spread, uint, 0444);
MODULE_PARM_DESC(spread, "DSCPs of the packets, 0 ... spread - 1 by turns; 0 for that of dscp=");

static unsigned int queues;
module_param(queues, uint, 0444);
MODULE_PARM_DESC(queues, "transmit queues that are driven at one time, each by its processor");

/**
 * struct lane - a qdisc and the packets with which one processor measures it
 * @work: calls lane_work() on that processor
 * @q: the qdisc
 * @packets: the first `burst` of them pass through @q, again and again
 * @start: number of lanes that must be ready before any begins
 * @spent: duration of the last repetition, cycles
 * @err: 0, or a negative error code
 */
struct lane {
	struct work_struct	work;
	struct Qdisc		*q;
	struct sk_buff		*packets[MAX_BURST];
	int			start;
	u64			spent;
	int			err;
};

static struct lane lanes[MAX_QUEUES];
static atomic_t ready;
static u64 cycles[MAX_DEVS][TURNS], together[MAX_DEVS][TURNS];

static const u8 option[] = { 254, 8, 0x47, 0x4c, 0, 0, 0x80, 0 };

static struct sk_buff *make_packet(struct net_device *dev, u8 dscp)
{
	struct sk_buff *skb = alloc_skb(PACKET + 64, GFP_KERNEL);
	struct tcphdr *th;
	struct iphdr *iph;

	if (!skb)
		return NULL;
	skb_reserve(skb, 64);
	skb_reset_mac_header(skb);
	skb_put_zero(skb, ETH_HLEN);
	skb_set_network_header(skb, ETH_HLEN);
	iph = skb_put_zero(skb, PACKET - ETH_HLEN);
	iph->version = 4;
	iph->ihl = 5;
	iph->tos = dscp << 2 | 2;	/* ECT(0) */
	iph->ttl = 64;
	iph->protocol = IPPROTO_TCP;
	iph->tot_len = htons(PACKET - ETH_HLEN);
	/* with an option that requests telemetry (include/net/gl_int.h) */
	th = (struct tcphdr *)(iph + 1);
	th->doff = 7;
	memcpy(th + 1, option, sizeof(option));
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	skb->priority = 0;
	return skb;
}

static int dscp_of(unsigned int i)
{
	if (spread)
		return i % spread;
	return dscp >= 0 ? dscp : dscps[i % ARRAY_SIZE(dscps)];
}

/* Enqueue and dequeue one burst; @packets are then in the order of dequeue. */
static int one_burst(struct Qdisc *q, struct sk_buff **packets)
{
	struct sk_buff *to_free = NULL;
	unsigned int i, back = 0;

	for (i = 0; i < burst; i++) {
		qdisc_skb_cb(packets[i])->pkt_len = PACKET;
		WRITE_ONCE(ip_hdr(packets[i])->ttl, 63 + (i & 1));
		/* reset the option: no telemetry collected yet */
		memcpy((u8 *)(ip_hdr(packets[i]) + 1) + sizeof(struct tcphdr) + 6, option + 6, 2);
		if (q->enqueue(packets[i], q, &to_free) != NET_XMIT_SUCCESS)
			break;
	}
	while (back < i) {
		packets[back] = q->dequeue(q);
		if (!packets[back])
			break;
		back++;
	}
	return back == burst ? 0 : -EIO;
}

static void turn(struct lane *lane)
{
	unsigned int i;
	u64 before;

	spin_lock_bh(qdisc_lock(lane->q));
	before = tsc();
	for (i = 0; i < PACKETS / burst && !lane->err; i++)
		lane->err = one_burst(lane->q, lane->packets);
	lane->spent = tsc() - before;
	spin_unlock_bh(qdisc_lock(lane->q));
}

static void lane_work(struct work_struct *work)
{
	struct lane *lane = container_of(work, struct lane, work);

	/* A processor may be a thread on a machine with other work: begin when all lanes run. */
	atomic_inc(&ready);
	while (atomic_read(&ready) < lane->start)
		cpu_relax();
	turn(lane);
}

/* One repetition with the first @n queues of a device; @spent: cycles of the slowest. */
static int turn_together(struct net_device *dev, int n, u64 *spent)
{
	int i, err = 0;

	*spent = 0;
	atomic_set(&ready, 0);
	for (i = 0; i < n; i++) {
		lanes[i].q = rtnl_dereference(netdev_get_tx_queue(dev, i)->qdisc);
		lanes[i].start = n;
		INIT_WORK(&lanes[i].work, lane_work);
	}
	for (i = 0; i < n; i++)
		queue_work_on(i, system_highpri_wq, &lanes[i].work);
	for (i = 0; i < n; i++) {
		flush_work(&lanes[i].work);
		*spent = max(*spent, lanes[i].spent);
		err = err ?: lanes[i].err;
	}
	return err;
}

static int turn_alone(struct net_device *dev, u64 *spent)
{
	lanes->q = rtnl_dereference(dev->qdisc);
	turn(lanes);
	*spent = lanes->spent;
	return lanes->err;
}

static int measure(struct net_device *dev[])
{
	unsigned int i, t, lane;
	char what[IFNAMSIZ + 4];
	int err = 0;

	for (lane = 0; lane < max(queues, 1u); lane++) {
		for (i = 0; i < burst; i++) {
			struct sk_buff *skb = make_packet(dev[0], dscp_of(i));

			if (!skb)
				return -ENOMEM;
			lanes[lane].packets[i] = skb;
		}
	}
	rtnl_lock();
	for (t = 0; t < TURNS; t++) {
		for (i = 0; i < n_devs && !err; i++) {
			if (!queues)
				err = turn_alone(dev[i], &cycles[i][t]);
			else
				err = turn_together(dev[i], 1, &cycles[i][t]) ?:
				      turn_together(dev[i], queues, &together[i][t]);
		}
	}
	rtnl_unlock();
	for (i = 0; i < n_devs && !err; i++) {
		if (!queues) {
			report("qdisc_bench", devs[i], cycles[i], PACKETS / burst * burst);
			continue;
		}
		snprintf(what, sizeof(what), "%s/1", devs[i]);
		report("qdisc_bench", what, cycles[i], PACKETS / burst * burst);
		snprintf(what, sizeof(what), "%s/%u", devs[i], queues);
		report("qdisc_bench", what, together[i], PACKETS / burst * burst);
	}
	return err;
}

static int __init qdisc_bench_init(void)
{
	struct net_device *dev[MAX_DEVS] = {};
	int i, lane, err = 0;

	if (!burst || burst > MAX_BURST || queues > MAX_QUEUES || queues > num_online_cpus())
		return -EINVAL;
	for (i = 0; i < n_devs && !err; i++) {
		dev[i] = dev_get_by_name(&init_net, devs[i]);
		if (!dev[i])
			err = -ENODEV;
		else if (dev[i]->real_num_tx_queues < queues)
			err = -EINVAL;
	}
	if (!err && n_devs)
		err = measure(dev);
	/* After an error the qdiscs may still hold packets: do not free these. */
	for (lane = 0; lane < MAX_QUEUES && !err; lane++)
		for (i = 0; i < MAX_BURST; i++)
			kfree_skb(lanes[lane].packets[i]);
	for (i = 0; i < n_devs; i++)
		dev_put(dev[i]);
	return err;
}

static void __exit qdisc_bench_exit(void)
{
}

module_init(qdisc_bench_init);
module_exit(qdisc_bench_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Benchmark of qdiscs: cycles of a packet's enqueue and dequeue");
