// SPDX-License-Identifier: GPL-2.0-only
/* Pause a neighbour, and be paused by it; see color_pause.h. */

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/refcount.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/xarray.h>
#include <net/gl_compat.h>
#include <net/netlink.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>
#include <net/rtnetlink.h>

#include "color_band.h"
#include "color_map.h"
#include "color_pause.h"

/* 1 km of fibre. */
#define COLOR_PAUSE_DELAY	(5 * NSEC_PER_USEC)
/* PFC watchdogs of switches look for pauses of some hundred milliseconds. */
#define COLOR_PAUSE_STORM	(200 * NSEC_PER_MSEC)
/* Frames come no closer than that, even if the device takes none, or at 10 Tbit/s. */
#define COLOR_PAUSE_PERIOD_MIN	(10 * NSEC_PER_USEC)

/* Xoff of a link that does not pause its neighbour. */
#define COLOR_PAUSE_NEVER	U64_MAX

/**
 * struct color_pause_link - a device with ports that pause
 * @xoff: bytes of a priority above which the neighbour is paused; written under RTNL, read by every
 *	port of the namespace
 * @xon: bytes of it up to which the neighbour may go on; likewise
 * @green: only green packets count; likewise
 * @gone: no port is left; set under RTNL, once
 * @off: priorities that the neighbour has been told to pause; written by @work, read by every port
 * @refs: one for all ports of the device, and one for each packet that is charged
 * @bytes: by priority
 * @peak: the most that one of them has been
 * @ever: priorities that the neighbour has ever paused; written under @lock, read by every port
 * @until: by priority, when the neighbour's last pause ends or has ended, ns; likewise
 * @lock: of the next three; taken in softirq context
 * @heard: by priority
 * @heard_frames: how many
 * @storms: how often a pause was too long
 * @groups: priorities that pause together, because they are one band, by priority; RTNL
 * @owed: priorities whose last frame the device did not take; @work
 * @told: priorities, as the frame had them, that the neighbour has been told to pause; @work
 * @again: the time of the last frame is nearly over; set by @timer, taken by @work
 * @sent_off: frames sent; @work, as the next two
 * @sent_on: frames sent that end pauses only
 * @unsent: frames that the device did not take
 * @rate: of the link, bytes/s; RTNL, and READ_ONCE() in softirq context
 * @storm: ns after which a pause is ignored; likewise
 * @packet: bytes of its longest packet; RTNL, as all below
 * @users: ports of the device, and those that are about to be one
 * @buffer: bytes that the switch has for packets that count
 * @cfg: that of the port that was set last
 * @ports: struct color_pause; changed under RTNL, read under RCU
 * @dev: the device; valid until @gone
 * @net: the links of its namespace.  The device may be in another one, with another number, when
 *	its last port goes: requests for filters hold qdiscs without RTNL
 * @ifindex: its number there
 * @taps: hears all that comes in
 * @timer: queues @work before a pause is over
 * @work: sends
 * @rcu: to free it
 */
struct color_pause_link {
	u64			xoff;
	u64			xon;
	bool			green;
	bool			gone;
	u8			off;

	/* dirtied by every packet that comes by this link */
	refcount_t		refs ____cacheline_aligned_in_smp;
	atomic64_t		bytes[TC_COLOR_PAUSE_PRIOS];
	atomic64_t		peak;

	/* dirtied by every frame of the neighbour */
	u8			ever ____cacheline_aligned_in_smp;
	atomic64_t		until[TC_COLOR_PAUSE_PRIOS];
	spinlock_t		lock;	/* of what has been heard */
	struct color_pfc_heard	heard[TC_COLOR_PAUSE_PRIOS];
	u64			heard_frames;
	u64			storms;

	u8			groups[TC_COLOR_PAUSE_PRIOS] ____cacheline_aligned_in_smp;
	u8			owed;
	u8			told;
	bool			again;
	u64			sent_off;
	u64			sent_on;
	u64			unsent;
	u64			rate;
	u32			storm;
	u32			packet;
	unsigned int		users;
	u64			buffer;
	struct color_pause_config cfg;
	struct list_head	ports;
	struct net_device	*dev;
	struct color_pause_net	*net;
	int			ifindex;
	struct packet_type	taps;
	struct hrtimer		timer;
	struct gl_bh_work	work;
	struct rcu_head		rcu;
};

/**
 * struct color_pause_net - the links of a network namespace
 * @links: struct color_pause_link by ifindex; changed under RTNL, read under RCU
 */
struct color_pause_net {
	struct xarray	links;
};

static unsigned int color_pause_net_id __read_mostly;

/* --- the neighbour is paused ------------------------------------------------ */

static void color_pause_link_put(struct color_pause_link *link)
{
	if (refcount_dec_and_test(&link->refs))
		kfree_rcu(link, rcu);
}

/* Have the work look at the bytes.  Nothing queues it when color_pause_link_remove() has waited for
 * those who are in here.
 */
static void color_pause_kick(struct color_pause_link *link)
{
	rcu_read_lock();
	if (!READ_ONCE(link->gone))
		gl_bh_queue(&link->work);
	rcu_read_unlock();
}

static void color_pause_set_peak(struct color_pause_link *link, s64 bytes)
{
	s64 peak = atomic64_read(&link->peak);

	while (bytes > peak && !atomic64_try_cmpxchg(&link->peak, &peak, bytes))
		;
}

/* What is charged is one word, as there is little room in a packet: the link and the priority. */
static struct color_pause_link *color_pause_word_link(unsigned long charged)
{
	return (struct color_pause_link *)(charged & ~(TC_COLOR_PAUSE_PRIOS - 1ul));
}

/**
 * color_pause_charge() - a packet is queued
 * @pause: the port's
 * @iif: the device by which the packet came
 * @band: number of its band
 * @color: its colour
 * @len: bytes of it
 *
 * Return: what color_pause_uncharge() needs; 0 if it is charged to no link.
 */
unsigned long color_pause_charge(const struct color_pause *pause, int iif, unsigned int band,
				 enum tc_color color, u32 len)
{
	struct color_pause_net *cn;
	struct color_pause_link *link;
	u8 prio = pause->prio[band];
	unsigned long charged = 0;
	s64 bytes;
	u64 xoff;

	if (!iif || prio == COLOR_PAUSE_NO_PRIO)
		return 0;
	cn = net_generic(dev_net(qdisc_dev(pause->sch)), color_pause_net_id);
	rcu_read_lock();
	link = xa_load(&cn->links, iif);
	if (!link)
		goto out;
	xoff = READ_ONCE(link->xoff);
	if (xoff == COLOR_PAUSE_NEVER || (READ_ONCE(link->green) && color != TC_COLOR_GREEN) ||
	    !refcount_inc_not_zero(&link->refs))
		goto out;
	charged = (unsigned long)link | prio;
	bytes = atomic64_add_return(len, &link->bytes[prio]);
	if (bytes > atomic64_read(&link->peak))
		color_pause_set_peak(link, bytes);
	if (bytes > xoff && !(READ_ONCE(link->off) & BIT(prio)))
		color_pause_kick(link);
out:
	rcu_read_unlock();
	return charged;
}

/**
 * color_pause_uncharge() - a packet leaves the queue
 * @charged: what color_pause_charge() has returned
 * @len: bytes of the packet
 */
void color_pause_uncharge(unsigned long charged, u32 len)
{
	struct color_pause_link *link = color_pause_word_link(charged);
	unsigned int prio = charged & (TC_COLOR_PAUSE_PRIOS - 1);
	s64 bytes;

	if (!charged)
		return;
	bytes = atomic64_sub_return(len, &link->bytes[prio]);
	if (READ_ONCE(link->off) & BIT(prio) && bytes <= READ_ONCE(link->xon))
		color_pause_kick(link);
	color_pause_link_put(link);
}

/* Which priorities should be paused, if these are? */
static u8 color_pause_wanted(const struct color_pause_link *link, u8 off)
{
	u64 xoff = READ_ONCE(link->xoff), xon = READ_ONCE(link->xon);
	u8 wanted = 0;
	int prio;

	if (xoff == COLOR_PAUSE_NEVER)
		return 0;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		u64 bytes = atomic64_read(&link->bytes[prio]);

		if (bytes > xoff || (off & BIT(prio) && bytes > xon))
			wanted |= BIT(prio);
	}
	return wanted;
}

/* The priorities, and those of the same bands. */
static u8 color_pause_grouped(const struct color_pause_link *link, u8 prios)
{
	u8 grouped = 0;
	int prio;

	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++)
		if (prios & BIT(prio))
			grouped |= READ_ONCE(link->groups[prio]);
	return grouped;
}

/* Send a frame past the qdisc; false if the device has no room for it now. */
static bool color_pause_send(struct color_pause_link *link, u8 prios, u8 off, gfp_t gfp)
{
	u8 pause = color_pause_grouped(link, off);
	struct net_device *dev = link->dev;
	struct sk_buff *skb;
	int ret;

	skb = alloc_skb(LL_RESERVED_SPACE(dev) + ETH_ZLEN + dev->needed_tailroom, gfp);
	if (!skb) {
		link->unsent++;
		return false;
	}
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	skb->dev = dev;
	skb->protocol = htons(ETH_P_PAUSE);
	skb->priority = TC_PRIO_CONTROL;
	skb_reset_mac_header(skb);
	color_pfc_fill(skb_put(skb, ETH_ZLEN), dev->dev_addr,
		       color_pause_grouped(link, prios) | link->told, pause);
	skb_set_network_header(skb, ETH_HLEN);

	ret = __dev_direct_xmit(skb, 0);
	if (ret == NETDEV_TX_OK) {
		link->told = pause;
		if (prios & off)
			link->sent_off++;
		else
			link->sent_on++;
		return true;
	}
	link->unsent++;
	/* A device that is down has no neighbour. */
	if (dev_xmit_complete(ret))
		return true;
	kfree_skb(skb);
	return false;
}

/* ns to the next frame: half the time of a pause, so that it comes before the end; less if the
 * device had no room for the last one.
 */
static u64 color_pause_period(const struct color_pause_link *link, bool owed)
{
	u16 quanta = owed ? COLOR_PFC_TIME_MAX / 16 : COLOR_PFC_TIME_MAX / 2;

	return max_t(u64, color_pfc_ns(quanta, READ_ONCE(link->rate)), COLOR_PAUSE_PERIOD_MIN);
}

static void color_pause_work(struct gl_bh_work *work)
{
	struct color_pause_link *link = container_of(work, struct color_pause_link, work);
	u8 off = link->off, wanted = color_pause_wanted(link, off);
	u8 prios = (wanted ^ off) | link->owed;
	bool again = READ_ONCE(link->again);

	if (again)
		WRITE_ONCE(link->again, false);
	WRITE_ONCE(link->off, wanted);
	if (prios || (again && wanted)) {
		/* With all that are paused: there is one timer for all. */
		prios |= wanted;
		link->owed = color_pause_send(link, prios, wanted, GFP_ATOMIC) ? 0 : prios;
		if ((wanted || link->owed) && !READ_ONCE(link->gone))
			hrtimer_start(&link->timer,
				      ns_to_ktime(color_pause_period(link, link->owed)),
				      HRTIMER_MODE_REL_SOFT);
	}

	/* A port that crossed a threshold before it saw @off queues nothing: look again.  The
	 * atomics that change the bytes are ordered.
	 */
	smp_mb();
	if (color_pause_wanted(link, wanted) != wanted)
		color_pause_kick(link);
}

static enum hrtimer_restart color_pause_timer(struct hrtimer *timer)
{
	struct color_pause_link *link = container_of(timer, struct color_pause_link, timer);

	WRITE_ONCE(link->again, true);
	color_pause_kick(link);
	return HRTIMER_NORESTART;
}

/* --- the neighbour pauses --------------------------------------------------- */

/**
 * color_pause_end() - until when is a band paused?
 * @pause: the port's
 * @band: number of the band
 *
 * Return: ns; when its last pause has ended, if that is over; 0 if there was none.
 */
u64 color_pause_end(const struct color_pause *pause, unsigned int band)
{
	const struct color_pause_link *link = pause->link;
	u8 mask = pause->mask[band] & READ_ONCE(link->ever);
	u64 end = 0;

	for (; unlikely(mask); mask &= mask - 1)
		end = max_t(u64, end, atomic64_read(&link->until[__ffs(mask)]));
	return end;
}

/**
 * color_pause_bands() - which of the bands that have packets are paused?
 * @pause: the port's
 * @bands: its bands
 * @seen: the time, as the port has read it last; read again if it matters
 * @first: when the first of them may go on, U64_MAX if none is paused
 *
 * The clocks of the others know when their pauses have ended, so that a band does not catch up on
 * time in which it might not send.  A band whose packet a parent has seen is not paused.
 *
 * Return: the bands' bits.
 */
unsigned long color_pause_bands(const struct color_pause *pause, struct color_bands *bands,
				u64 *seen, u64 *first)
{
	unsigned long paused = 0;
	unsigned int n;

	*first = U64_MAX;
	for_each_set_bit(n, &bands->busy, TC_COLOR_BANDS_MAX) {
		struct color_band *band = &bands->band[n];
		u64 end = color_pause_end(pause, n);

		if (end > *seen)
			*seen = ktime_get_ns();
		if (end <= *seen) {
			color_clock_arrive(&band->clock, end);
		} else if (band != bands->peeked) {
			paused |= band->bit;
			*first = min(*first, end);
		}
	}
	return paused;
}

/* A pause has ended before its time: the ports need not wait for their timers. */
static void color_pause_wake(struct color_pause_link *link)
{
	struct color_pause *pause;

	list_for_each_entry_rcu(pause, &link->ports, entry)
		__netif_schedule(qdisc_root(pause->sch));
}

static void color_pause_hear(struct color_pause_link *link, const struct color_pfc_mac *mac)
{
	u64 now = ktime_get_ns(), rate = READ_ONCE(link->rate);
	u32 storm = READ_ONCE(link->storm);
	u8 enabled = ntohs(mac->enabled);
	bool wake = false;
	int prio;

	spin_lock(&link->lock);
	link->heard_frames++;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		struct color_pfc_heard *h = &link->heard[prio];
		u64 before = h->until;

		if (!(enabled & BIT(prio)))
			continue;
		link->storms += color_pfc_hear(h, color_pfc_ns(ntohs(mac->time[prio]), rate), now,
					       storm);
		atomic64_set(&link->until[prio], h->until);
		wake |= h->until < before;
	}
	WRITE_ONCE(link->ever, link->ever | enabled);
	spin_unlock(&link->lock);
	if (wake)
		color_pause_wake(link);
}

/* Everything that comes in by the device, in softirq context and under RCU. */
static int color_pause_receive(struct sk_buff *skb, struct net_device *dev,
			       struct packet_type *pt, struct net_device *orig_dev)
{
	struct color_pause_link *link = container_of(pt, struct color_pause_link, taps);
	const struct color_pfc_mac *mac;
	struct color_pfc_mac _mac;

	if (likely(skb->protocol != htons(ETH_P_PAUSE)) || skb_vlan_tag_present(skb) ||
	    !ether_addr_equal(eth_hdr(skb)->h_dest, color_pfc_address))
		goto out;
	/* Others have the packet too: don't pull. */
	mac = skb_header_pointer(skb, 0, sizeof(_mac), &_mac);
	if (mac && mac->opcode == htons(COLOR_PFC_OPCODE))
		color_pause_hear(link, mac);
out:
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

/* --- configuration ---------------------------------------------------------- */

/* Is it one end of a wire?  Others have no neighbour, or their frames pass another device on the
 * way, which would have to be paused in their place.
 */
static bool color_pause_has_wire(const struct net_device *dev)
{
	const char *kind = dev->rtnl_link_ops ? dev->rtnl_link_ops->kind : "";

	if (dev->type != ARPHRD_ETHER || dev->addr_len != ETH_ALEN ||
	    dev->flags & IFF_LOOPBACK || !list_empty(&dev->adj_list.lower))
		return false;
	return dev->dev.parent || !strcmp(kind, "veth") || !strcmp(kind, "tun");
}

/* Bytes/s of the device's link, 0 if it does not know. */
static u64 color_pause_speed(struct net_device *dev)
{
	struct ethtool_link_ksettings settings;

	if (gl_get_link_ksettings(dev, &settings) || !settings.base.speed ||
	    settings.base.speed == SPEED_UNKNOWN)
		return 0;
	return settings.base.speed * (1000000ull / 8);
}

static void color_pause_map_default(u8 *map, u32 bands)
{
	u32 i;

	for (i = 0; i < TC_COLOR_PAUSE_PRIOS; i++)
		map[i] = min(TC_COLOR_PAUSE_PRIOS - 1 - i, bands - 1);
}

static bool color_pause_map_merge(u8 *map, const u8 *change, u32 bands)
{
	int i;

	for (i = 0; i < TC_COLOR_PAUSE_PRIOS; i++)
		if (change[i] >= bands && change[i] != TC_COLOR_PAUSE_NO_BAND &&
		    change[i] != TC_COLOR_MAP_KEEP)
			return false;
	for (i = 0; i < TC_COLOR_PAUSE_PRIOS; i++)
		if (change[i] != TC_COLOR_MAP_KEEP)
			map[i] = change[i];
	return true;
}

static bool color_pause_sends(u32 mode)
{
	return mode == TC_COLOR_PAUSE_ALL || mode == TC_COLOR_PAUSE_GREEN;
}

/* Xoff of a link that has none of its own: so that the sum of all, with their headrooms, is the
 * buffer.  Negative if there is not enough.
 */
static s64 color_pause_share(u64 buffer, unsigned int shares, u64 headroom)
{
	return (s64)div_u64(buffer, shares) - (s64)headroom;
}

/* Bands that pause: each of them may have Xoff, and the headroom. */
static unsigned int color_pause_lossless(const struct color_pause_config *cfg)
{
	u32 bands = 0;
	int prio;

	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++)
		if (cfg->map[prio] != TC_COLOR_PAUSE_NO_BAND)
			bands |= BIT(cfg->map[prio]);
	return max(hweight32(bands), 1u);
}

/* color_pause_share() of a link as it is, if so many pause. */
static s64 color_pause_link_share(const struct color_pause_link *link, unsigned int links)
{
	return color_pause_share(link->buffer, links * color_pause_lossless(&link->cfg),
				 color_pfc_headroom(link->rate, link->cfg.delay, link->packet));
}

/* Links that pause, without this one. */
static unsigned int color_pause_links(struct color_pause_net *cn,
				      const struct color_pause_link *without)
{
	const struct color_pause_link *link;
	unsigned int links = 0;
	unsigned long index;

	xa_for_each(&cn->links, index, link)
		links += link != without && color_pause_sends(link->cfg.mode);
	return links;
}

/* Bytes of a port's buffer that packets which count may have. */
static u64 color_pause_room(const struct color_pause_config *cfg,
			    const struct color_pause_port *port)
{
	return cfg->mode == TC_COLOR_PAUSE_GREEN ? port->buffer - min(port->buffer, port->others) :
						   port->buffer;
}

/* Set each link's thresholds anew: links share the buffer. */
static void color_pause_update(struct color_pause_net *cn)
{
	unsigned int links = color_pause_links(cn, NULL);
	struct color_pause_link *link;
	unsigned long index;

	ASSERT_RTNL();
	xa_for_each(&cn->links, index, link) {
		const struct color_pause_config *cfg = &link->cfg;
		u64 xoff = COLOR_PAUSE_NEVER, xon = 0, gap = 2 * link->packet;

		if (color_pause_sends(cfg->mode)) {
			/* A buffer that has been made too small since pauses with each packet. */
			xoff = cfg->xoff ?: max_t(s64, 0, color_pause_link_share(link, links));
			xon = min(xoff, cfg->xon ?: xoff - min(gap, xoff));
		}
		WRITE_ONCE(link->green, cfg->mode == TC_COLOR_PAUSE_GREEN);
		WRITE_ONCE(link->xoff, xoff);
		WRITE_ONCE(link->xon, xon);
		color_pause_kick(link);
	}
}

/* Would each link that has no Xoff of its own still have room for one, if @own had this? */
static bool color_pause_fits(struct color_pause_net *cn, const struct color_pause_link *own,
			     const struct color_pause_config *cfg, u64 buffer, u64 headroom,
			     u32 packet)
{
	unsigned int links = color_pause_links(cn, own) + 1;
	const struct color_pause_link *link;
	unsigned long index;

	if (!cfg->xoff &&
	    color_pause_share(buffer, links * color_pause_lossless(cfg), headroom) < 2 * packet)
		return false;
	xa_for_each(&cn->links, index, link) {
		if (link == own || !color_pause_sends(link->cfg.mode) || link->cfg.xoff)
			continue;
		if (color_pause_link_share(link, links) < 2 * link->packet)
			return false;
	}
	return true;
}

static struct color_pause_link *color_pause_link_new(struct color_pause_net *cn,
						     struct net_device *dev)
{
	struct color_pause_link *link = kzalloc(sizeof(*link), GFP_KERNEL);
	int err;

	if (!link)
		return ERR_PTR(-ENOMEM);
	BUILD_BUG_ON(__alignof__(*link) < TC_COLOR_PAUSE_PRIOS);
	refcount_set(&link->refs, 1);
	link->xoff = COLOR_PAUSE_NEVER;
	link->dev = dev;
	link->net = cn;
	link->ifindex = dev->ifindex;
	/* until the port is there */
	link->rate = TC_COLOR_RATE_MAX;
	spin_lock_init(&link->lock);
	INIT_LIST_HEAD(&link->ports);
	hrtimer_setup(&link->timer, color_pause_timer, CLOCK_MONOTONIC, HRTIMER_MODE_REL_SOFT);
	gl_bh_init(&link->work, color_pause_work);
	err = xa_err(xa_store(&cn->links, link->ifindex, link, GFP_KERNEL));
	if (err) {
		kfree(link);
		return ERR_PTR(err);
	}
	/* Frames that the device sends are none of the neighbour's. */
	link->taps.type = htons(ETH_P_ALL);
	link->taps.dev = dev;
	link->taps.func = color_pause_receive;
	link->taps.ignore_outgoing = true;
	dev_mc_add(dev, color_pfc_address);
	dev_add_pack(&link->taps);
	return link;
}

/* The last port of the device goes.  Packets that are charged may still be queued elsewhere. */
static void color_pause_link_remove(struct color_pause_link *link)
{
	xa_erase(&link->net->links, link->ifindex);
	WRITE_ONCE(link->gone, true);
	dev_mc_del(link->dev, color_pfc_address);
	dev_remove_pack(&link->taps);	/* waits until nothing reads @gone as it was */
	hrtimer_cancel(&link->timer);
	gl_bh_cancel_sync(&link->work);
	/* The work may have set it once more. */
	hrtimer_cancel(&link->timer);
	if (link->off | link->owed)
		color_pause_send(link, link->off | link->owed, 0, GFP_KERNEL);
	color_pause_link_put(link);
}

/* What the user wants of this port, and whether that can be. */
static int color_pause_parse(struct color_pause_config *cfg, const struct color_pause_port *port,
			     struct nlattr **tb, struct netlink_ext_ack *extack)
{
	if (tb[TCA_COLOR_PAUSE_XOFF])
		cfg->xoff = nla_get_u32(tb[TCA_COLOR_PAUSE_XOFF]);
	if (tb[TCA_COLOR_PAUSE_XON])
		cfg->xon = nla_get_u32(tb[TCA_COLOR_PAUSE_XON]);
	if (tb[TCA_COLOR_PAUSE_DELAY])
		cfg->delay = nla_get_u32(tb[TCA_COLOR_PAUSE_DELAY]);
	if (tb[TCA_COLOR_PAUSE_STORM])
		cfg->storm = nla_get_u32(tb[TCA_COLOR_PAUSE_STORM]);
	if (tb[TCA_COLOR_PAUSE_MAP] &&
	    !color_pause_map_merge(cfg->map, nla_data(tb[TCA_COLOR_PAUSE_MAP]), port->bands)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE_MAP],
				    "A priority is mapped to a band that does not exist");
		return -EINVAL;
	}
	if (cfg->xoff && cfg->xon > cfg->xoff) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE_XON] ?: tb[TCA_COLOR_PAUSE_XOFF],
				    "With Xon above Xoff the neighbour would be paused and let go at once");
		return -EINVAL;
	}
	return 0;
}

static int color_pause_check(struct color_pause_net *cn, const struct color_pause_link *link,
			     const struct color_pause_config *cfg,
			     const struct color_pause_port *port, u32 packet,
			     struct netlink_ext_ack *extack)
{
	u64 headroom = color_pfc_headroom(port->rate, cfg->delay, packet);
	u64 buffer = color_pause_room(cfg, port);

	if (!color_pause_sends(cfg->mode))
		return 0;
	if (cfg->mode == TC_COLOR_PAUSE_GREEN && !port->others) {
		NL_SET_ERR_MSG(extack,
			       "Red packets would fill the buffer: pause green needs a threshold of red");
		return -EINVAL;
	}
	if (cfg->xoff && (cfg->xoff + headroom) * color_pause_lossless(cfg) > buffer) {
		NL_SET_ERR_MSG(extack,
			       "Xoff and headroom (twice rate by delay, and two packets) of each band are more than the buffer");
		return -EINVAL;
	}
	if (!color_pause_fits(cn, link, cfg, buffer, headroom, packet)) {
		NL_SET_ERR_MSG(extack,
			       "The buffer has no room for the headroom of so many links that pause");
		return -ENOSPC;
	}
	return 0;
}

static struct color_pause *color_pause_new(struct color_pause_link *link, struct Qdisc *sch,
					   const struct color_pause_config *cfg,
					   const struct color_pause_port *port)
{
	struct color_pause *pause = kzalloc(sizeof(*pause), GFP_KERNEL);
	int prio;

	if (!pause)
		return NULL;
	pause->link = link;
	pause->sch = sch;
	pause->cfg = *cfg;
	pause->port = *port;
	memset(pause->prio, COLOR_PAUSE_NO_PRIO, sizeof(pause->prio));
	for (prio = TC_COLOR_PAUSE_PRIOS - 1; prio >= 0; prio--) {
		u8 band = cfg->map[prio];

		if (band == TC_COLOR_PAUSE_NO_BAND)
			continue;
		pause->prio[band] = prio;
		pause->mask[band] |= BIT(prio);
	}
	return pause;
}

/**
 * color_pause_get() - what the user wants a port to do about pauses
 * @sch: the port
 * @own: what it does now, or NULL for nothing
 * @port: what it is going to be
 * @tb: the attributes; those of &enum tca_color that begin with TCA_COLOR_PAUSE count
 * @extack: says what is wrong
 *
 * Nothing changes before color_pause_commit().
 *
 * Return: the new state of the port, for color_pause_put(), NULL for none; or an error.
 */
struct color_pause *color_pause_get(struct Qdisc *sch, const struct color_pause *own,
				    const struct color_pause_port *port, struct nlattr **tb,
				    struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(sch);
	struct color_pause_net *cn = net_generic(dev_net(dev), color_pause_net_id);
	struct color_pause_config cfg = {
		.delay = COLOR_PAUSE_DELAY, .storm = COLOR_PAUSE_STORM,
	};
	struct color_pause_port with = *port;
	struct color_pause_link *link;
	struct color_pause *pause;
	u32 packet;
	int err;

	ASSERT_RTNL();
	if (own)
		cfg = own->cfg;
	if (!own || own->port.bands != port->bands)
		color_pause_map_default(cfg.map, port->bands);
	if (tb[TCA_COLOR_PAUSE])
		cfg.mode = nla_get_u32(tb[TCA_COLOR_PAUSE]);
	if (cfg.mode == TC_COLOR_PAUSE_NONE) {
		if (!tb[TCA_COLOR_PAUSE_XOFF] && !tb[TCA_COLOR_PAUSE_XON] &&
		    !tb[TCA_COLOR_PAUSE_DELAY] && !tb[TCA_COLOR_PAUSE_STORM] &&
		    !tb[TCA_COLOR_PAUSE_MAP])
			return NULL;
		NL_SET_ERR_MSG(extack,
			       "Xoff, Xon, delay, storm and the map of priorities need pause");
		return ERR_PTR(-EINVAL);
	}
	err = color_pause_parse(&cfg, port, tb, extack);
	if (err)
		return ERR_PTR(err);
	if (!own && !color_pause_has_wire(dev)) {
		NL_SET_ERR_MSG(extack,
			       "No pause frames are heard here: pause is for network cards, veth and tap devices");
		return ERR_PTR(-EOPNOTSUPP);
	}
	if (!with.rate)
		with.rate = color_pause_speed(dev);
	if (!with.rate) {
		NL_SET_ERR_MSG(extack,
			       "The device does not say its speed, which pause frames count in: pause needs a rate");
		return ERR_PTR(-EINVAL);
	}
	with.rate = min(with.rate, TC_COLOR_RATE_MAX);
	packet = psched_mtu(dev) + port->overhead;

	link = xa_load(&cn->links, dev->ifindex);
	err = color_pause_check(cn, link, &cfg, &with, packet, extack);
	if (err)
		return ERR_PTR(err);
	if (!link) {
		link = color_pause_link_new(cn, dev);
		if (IS_ERR(link))
			return ERR_CAST(link);
	}
	link->users++;
	pause = color_pause_new(link, sch, &cfg, &with);
	if (!pause) {
		if (!--link->users)
			color_pause_link_remove(link);
		return ERR_PTR(-ENOMEM);
	}
	return pause;
}

/* The link is that of this port. */
static void color_pause_adopt(const struct color_pause *pause)
{
	struct color_pause_link *link = pause->link;
	int prio;

	link->cfg = pause->cfg;
	WRITE_ONCE(link->rate, pause->port.rate);
	WRITE_ONCE(link->storm, pause->cfg.storm);
	link->buffer = color_pause_room(&pause->cfg, &pause->port);
	link->packet = psched_mtu(link->dev) + pause->port.overhead;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		u8 band = pause->cfg.map[prio];

		/* a port with other bands may charge a priority that none of these has */
		WRITE_ONCE(link->groups[prio], band == TC_COLOR_PAUSE_NO_BAND ? BIT(prio) :
						 pause->mask[band]);
	}
	color_pause_update(link->net);
}

/**
 * color_pause_commit() - the port has its new state; RTNL
 * @pause: what color_pause_get() has returned
 */
void color_pause_commit(struct color_pause *pause)
{
	pause->listed = true;
	list_add_rcu(&pause->entry, &pause->link->ports);
	color_pause_adopt(pause);
}

/**
 * color_pause_set_buffer() - the buffer has another size; RTNL
 * @pause: a port's
 * @buffer: bytes
 */
void color_pause_set_buffer(struct color_pause *pause, u64 buffer)
{
	pause->port.buffer = buffer;
	pause->link->buffer = color_pause_room(&pause->cfg, &pause->port);
	color_pause_update(pause->link->net);
}

/**
 * color_pause_put() - a port has another state, or none, or is gone; RTNL
 * @pause: the state before, or NULL
 */
void color_pause_put(struct color_pause *pause)
{
	struct color_pause_net *cn;
	struct color_pause *left;

	ASSERT_RTNL();
	if (!pause)
		return;
	cn = pause->link->net;
	if (pause->listed)
		list_del_rcu(&pause->entry);
	if (!--pause->link->users) {
		color_pause_link_remove(pause->link);
		color_pause_update(cn);
	} else {
		/* The link is that of the port that was set last of those that are left. */
		left = list_first_entry_or_null(&pause->link->ports, struct color_pause, entry);
		if (left)
			color_pause_adopt(left);
	}
	kfree_rcu(pause, rcu);
}

/* --- what tc sees ----------------------------------------------------------- */

/**
 * color_pause_dump() - write the configuration
 * @pause: the port's, or NULL
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_pause_dump(const struct color_pause *pause, struct sk_buff *skb)
{
	const struct color_pause_config *cfg;

	if (!pause)
		return 0;
	cfg = &pause->cfg;
	if (nla_put_u32(skb, TCA_COLOR_PAUSE, cfg->mode) ||
	    (cfg->xoff && nla_put_u32(skb, TCA_COLOR_PAUSE_XOFF, cfg->xoff)) ||
	    (cfg->xon && nla_put_u32(skb, TCA_COLOR_PAUSE_XON, cfg->xon)) ||
	    nla_put_u32(skb, TCA_COLOR_PAUSE_DELAY, cfg->delay) ||
	    nla_put_u32(skb, TCA_COLOR_PAUSE_STORM, cfg->storm) ||
	    nla_put(skb, TCA_COLOR_PAUSE_MAP, sizeof(cfg->map), cfg->map))
		return -EMSGSIZE;
	return 0;
}

/**
 * color_pause_dump_stats() - write the counters of a port's link
 * @pause: the port's, or NULL
 * @skb: the message; what it has no room for is left out
 */
void color_pause_dump_stats(const struct color_pause *pause, struct sk_buff *skb)
{
	u64 values[__TC_COLOR_PAUSE_STAT_MAX] = {}, paused[TC_COLOR_PAUSE_PRIOS];
	struct color_pause_link *link;
	u64 now = ktime_get_ns(), xoff;
	int prio;

	if (!pause)
		return;
	link = pause->link;
	xoff = READ_ONCE(link->xoff);
	values[TC_COLOR_PAUSE_STAT_OFF] = READ_ONCE(link->sent_off);
	values[TC_COLOR_PAUSE_STAT_ON] = READ_ONCE(link->sent_on);
	values[TC_COLOR_PAUSE_STAT_UNSENT] = READ_ONCE(link->unsent);
	values[TC_COLOR_PAUSE_STAT_PEAK] = atomic64_read(&link->peak);
	if (xoff != COLOR_PAUSE_NEVER) {
		values[TC_COLOR_PAUSE_STAT_XOFF] = xoff;
		values[TC_COLOR_PAUSE_STAT_XON] = READ_ONCE(link->xon);
	}
	spin_lock_bh(&link->lock);
	values[TC_COLOR_PAUSE_STAT_HEARD] = link->heard_frames;
	values[TC_COLOR_PAUSE_STAT_STORMS] = link->storms;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		paused[prio] = color_pfc_paused(&link->heard[prio], now);
		values[TC_COLOR_PAUSE_STAT_BACKLOG] += atomic64_read(&link->bytes[prio]);
	}
	spin_unlock_bh(&link->lock);
	if (!color_stats_put_array(skb, TCA_COLOR_STATS_PAUSE, values, ARRAY_SIZE(values)))
		color_stats_put_array(skb, TCA_COLOR_STATS_PAUSED, paused, ARRAY_SIZE(paused));
}

static int __net_init color_pause_net_init(struct net *net)
{
	struct color_pause_net *cn = net_generic(net, color_pause_net_id);

	xa_init(&cn->links);
	return 0;
}

/* The namespace's devices are gone, and their ports and links with them. */
static void __net_exit color_pause_net_exit(struct net *net)
{
	struct color_pause_net *cn = net_generic(net, color_pause_net_id);

	WARN_ON_ONCE(!xa_empty(&cn->links));
	xa_destroy(&cn->links);
}

static struct pernet_operations color_pause_net_ops = {
	.init	= color_pause_net_init,
	.exit	= color_pause_net_exit,
	.id	= &color_pause_net_id,
	.size	= sizeof(struct color_pause_net),
};

/**
 * color_pause_init() - prepare every network namespace for links
 *
 * Return: 0, or an error.
 */
int __init color_pause_init(void)
{
	return register_pernet_subsys(&color_pause_net_ops);
}

/**
 * color_pause_exit() - undo color_pause_init()
 */
void color_pause_exit(void)
{
	unregister_pernet_subsys(&color_pause_net_ops);
}
