/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Pause: a port pauses the neighbour before its buffer is full, and stops while the neighbour
 * pauses it.
 *
 *	 neighbour            this switch: a network namespace           neighbour
 *	 +-------+   data    +--------------------------------+   data   +-------+
 *	 |       |---------->| p0 ingress ----> p1's queue ---|--------->|       |
 *	 |       |           |   ^ skb_iif       |            |          |       |
 *	 | stops |<----------| p0 <-- Xoff <-- link p0:       |<---------| pause |
 *	 +-------+ 802.1Qbb  |         bytes by priority      | 802.1Qbb +-------+
 *	                     |                  p1's queue    |
 *	                     |                  stops         |
 *	                     +--------------------------------+
 *
 * A link (struct color_pause_link) is a device with a port that pauses.  Each packet that arrives
 * by it and is queued in a port of the namespace that pauses is charged to it, by priority.  Above
 * Xoff the device sends a frame, and again before the time of that frame is over; at Xon it sends
 * another one that lets the neighbour continue.  The data that still arrives after the first frame,
 * the headroom, needs room in the buffer.
 *
 * Lossless.  No port drops a packet that counts if each has room for Xoff and headroom of all links
 * that pause, for each priority.  That is a property of all ports of the namespace: all packets may
 * be queued in one port, also in the port with the minimum of room.  color_pause_solve() is the one
 * place that computes it, after every change of a port, pool or device on which it depends.
 *
 * Charging.  A packet's skb_iif is the device by which it arrived, so bridges, OVS, routes and tc's
 * redirection all work.  Packets of the host itself, and packets of a VLAN's device, are charged to
 * no link: there is no neighbour to pause for them.  act_mirred writes skb_iif at egress, too, so a
 * packet that it redirected there is not charged.  VRFs and bonds replace skb_iif by their own
 * number: their lower devices cannot pause.  Ports charge a link under the root locks of different
 * qdisc trees, so its bytes are atomic.  A packet that is charged holds a reference: the device,
 * and its link, may be removed while it is queued.
 *
 * Sending.  The port that reaches Xoff holds the root lock of its own tree, and another device
 * sends the frame.  Its port may be about to do the same: a deadlock, if the frame were sent at
 * once.  So a work item in softirq context sends it, not through the qdisc.  The item reads the
 * bytes when it runs, so there is one for each link, however many packets cross a threshold
 * meanwhile.
 *
 * Listening.  Bridges and OVS drop pause frames in their rx_handler.  A packet handler for all
 * protocols of one device runs ahead of it, and of tc's ingress.  The handler cannot keep tc from
 * forwarding the frame, so no port queues frames for its address: color_is_mac_control().
 */
#ifndef _COLOR_PAUSE_H
#define _COLOR_PAUSE_H

#include <linux/atomic.h>
#include <linux/list.h>
#include <linux/skbuff.h>
#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

#include "color_pfc.h"
#include "color_pool.h"

struct Qdisc;
struct color_bands;
struct color_pause_link;
struct net;
struct net_device;
struct netlink_ext_ack;
struct nlattr;

/**
 * struct color_pause_config - the user's options
 * @mode: &enum tc_color_pause
 * @xoff: bytes, 0 for the link's share of the buffer
 * @xon: bytes, 0 for a little less than Xoff
 * @delay: propagation delay from one end of the link to the other, ns
 * @storm: ns of stopped time after which pauses are ignored; 0 for never
 * @unit: bytes of the largest packet that the neighbour sends at once, 0 for the default
 * @map: band of each priority, or TC_COLOR_PAUSE_NO_BAND
 */
struct color_pause_config {
	u32	mode;
	u32	xoff;
	u32	xon;
	u32	delay;
	u32	storm;
	u32	unit;
	u8	map[TC_COLOR_PAUSE_PRIOS];
};

/**
 * struct color_pause_port - properties of a port that decide how many bytes it can queue
 * @rate: rate of its link, bytes/s; 0 for the device's speed
 * @others: maximum of red and yellow packets in it, bytes; 0 if red has no threshold
 * @trimmed: maximum of trimmed packets in it, bytes
 * @green: threshold of green packets, bytes, or COLOR_NO_THRESH
 * @count: the bytes that @green is compared with
 * @pool: the shared buffer that it charges, or NULL
 * @share: the port's part of the pool that it charges now
 * @fill: how much of @pool it can fill, if it does not pause; the limit and alpha if it does
 * @overhead: bytes that the link adds to each packet
 * @burst: ns of its rate that it sends at once when its timer is late; its neighbour is assumed to
 *	do the same
 * @bands: queues
 * @band_limit: packets that each may have; 0 for any number
 */
struct color_pause_port {
	u64			rate;
	u64			others;
	u64			trimmed;
	u64			green;
	enum tc_color_count	count;
	const struct color_pool	*pool;
	const struct color_share *share;
	struct color_fill	fill;
	u32			overhead;
	u32			burst;
	u32			bands;
	u32			band_limit[TC_COLOR_BANDS_MAX];
};

#define COLOR_PAUSE_NO_PRIO	0xff	/* @prio of a band that is never paused */

/**
 * struct color_pause - state of a port that pauses; written under RTNL; once the port uses it only
 *	@entry, @listed and @peeked change
 * @link: the link of its device
 * @sch: the port
 * @entry: entry in @ports of the link; read under RCU
 * @listed: @entry is in that list
 * @peeked: the parent has peeked at a packet, which must be dequeued next, paused or not; root lock
 *	of the port
 * @cfg: the user's options
 * @port: the properties of the port that decide how many bytes it can queue
 * @prio: priority that each band's packets are charged to, or COLOR_PAUSE_NO_PRIO
 * @mask: priorities that pause each band
 * @rcu: for kfree_rcu()
 */
struct color_pause {
	struct color_pause_link		*link;
	struct Qdisc			*sch;
	struct list_head		entry;
	bool				listed;
	bool				peeked;
	struct color_pause_config	cfg;
	struct color_pause_port		port;
	u8				prio[TC_COLOR_BANDS_MAX];
	u8				mask[TC_COLOR_BANDS_MAX];
	struct rcu_head			rcu;
};

u32 color_gso_max(const struct net_device *dev);
struct color_pause *color_pause_get(struct Qdisc *sch, const struct color_pause *own,
				    const struct color_pause_port *port, u32 pool_size,
				    struct nlattr **tb, struct netlink_ext_ack *extack);
void color_pause_commit(struct color_pause *pause, struct color_pause *before);
void color_pause_put(struct color_pause *pause);
void color_pause_update_net(struct net *net);
unsigned long color_pause_charge(const struct color_pause *pause, const struct sk_buff *skb,
				 unsigned int band, enum tc_color color, u32 len);
void color_pause_uncharge(unsigned long charged, u32 len);
u64 color_pause_end(const struct color_pause *pause, unsigned int band);
unsigned long color_pause_bands(const struct color_pause *pause, struct color_bands *bands,
				u64 *seen, u64 *first);
int color_pause_dump(const struct color_pause *pause, struct sk_buff *skb);
void color_pause_dump_stats(const struct color_pause *pause, struct sk_buff *skb);
int color_pause_init(void);
void color_pause_exit(void);

#endif /* _COLOR_PAUSE_H */
