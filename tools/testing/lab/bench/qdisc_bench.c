// SPDX-License-Identifier: GPL-2.0
/*
 * What does a qdisc cost?  Drives the root qdiscs of some devices directly, by
 * turns, so that whatever else the machine does hits all of them alike:
 *
 *	insmod qdisc_bench.ko devs=dummy0,dummy1
 *
 * A turn is many bursts of packets enqueued and dequeued again, with the root
 * lock held as the stack would.  Nothing is transmitted and nothing allocated.
 * Before a packet is enqueued its TTL is written, as forwarding does, so that its
 * header is in the cache for every qdisc.
 * The kernel's log gets, for each device, the processor cycles of one packet's
 * enqueue and dequeue in the fastest and in the median turn.
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
#include <net/pkt_sched.h>
#include <net/sch_generic.h>

#include "turns.h"

#define MAX_DEVS	16
#define PACKETS		25600	/* of a turn */
#define MAX_BURST	1024
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

/* TLT's codepoints, as often as an incast has them. */
static const u8 dscps[] = { 8, 8, 8, 10, 8, 8, 8, 10 };

static struct sk_buff *packets[MAX_BURST];
static u64 cycles[MAX_DEVS][TURNS];

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
	/* with an option that asks for telemetry (include/net/gl_int.h) */
	th = (struct tcphdr *)(iph + 1);
	th->doff = 7;
	memcpy(th + 1, option, sizeof(option));
	skb->protocol = htons(ETH_P_IP);
	skb->dev = dev;
	skb->priority = 0;
	return skb;
}

/* One burst through a qdisc; the packets come back. */
static int one_burst(struct Qdisc *q)
{
	struct sk_buff *to_free = NULL;
	unsigned int i, back = 0;

	for (i = 0; i < burst; i++) {
		qdisc_skb_cb(packets[i])->pkt_len = PACKET;
		WRITE_ONCE(ip_hdr(packets[i])->ttl, 63 + (i & 1));
		/* nothing collected yet */
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

static int turn(struct Qdisc *q, u64 *spent)
{
	unsigned int i;
	u64 before;
	int err = 0;

	spin_lock_bh(qdisc_lock(q));
	before = tsc();
	for (i = 0; i < PACKETS / burst && !err; i++)
		err = one_burst(q);
	*spent = tsc() - before;
	spin_unlock_bh(qdisc_lock(q));
	return err;
}

static int measure(struct net_device *dev[])
{
	int i, t, err = 0;

	for (i = 0; i < (int)burst; i++) {
		packets[i] = make_packet(dev[0], dscp >= 0 ? dscp :
					 dscps[i % ARRAY_SIZE(dscps)]);
		if (!packets[i])
			return -ENOMEM;
	}
	rtnl_lock();
	for (t = 0; t < TURNS && !err; t++)
		for (i = 0; i < n_devs && !err; i++)
			err = turn(rtnl_dereference(dev[i]->qdisc), &cycles[i][t]);
	rtnl_unlock();
	for (i = 0; i < n_devs && !err; i++)
		report("qdisc_bench", devs[i], cycles[i], PACKETS / burst * burst);
	return err;
}

static int __init qdisc_bench_init(void)
{
	struct net_device *dev[MAX_DEVS] = {};
	int i, err = 0;

	if (!burst || burst > MAX_BURST)
		return -EINVAL;
	for (i = 0; i < n_devs && !err; i++) {
		dev[i] = dev_get_by_name(&init_net, devs[i]);
		if (!dev[i])
			err = -ENODEV;
	}
	if (!err && n_devs)
		err = measure(dev);
	/* After an error the qdiscs may still have some: leave them there. */
	for (i = 0; i < MAX_BURST && !err; i++)
		kfree_skb(packets[i]);
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
