// SPDX-License-Identifier: GPL-2.0-only
/* Pause a neighbour, and be paused by it; see color_pause.h. */

#include <linux/ethtool.h>
#include <linux/hrtimer.h>
#include <linux/ipv6.h>
#include <linux/netdevice.h>
#include <linux/netlink.h>
#include <linux/pkt_sched.h>
#include <linux/refcount.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/tcp.h>
#include <linux/xarray.h>
#include <net/gl_compat.h>
#include <net/netlink.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>
#include <net/rtnetlink.h>

#include "color_band.h"
#include "color_map.h"
#include "color_pause.h"
#include "color_pool.h"
#include "color_thresh.h"

/* Of a segment: Ethernet, IPv6, and TCP with all its options. */
#define COLOR_PAUSE_HEADERS	(ETH_HLEN + sizeof(struct ipv6hdr) + 60)
/* 1 km of fibre. */
#define COLOR_PAUSE_DELAY	(5 * NSEC_PER_USEC)
/* PFC watchdogs of switches look for pauses of some hundred milliseconds. */
#define COLOR_PAUSE_STORM	(200 * NSEC_PER_MSEC)
/* A frame asks for no longer pause: a quarter of the default of storm, or a healthy pause of a slow
 * link would be a storm for the neighbour.
 */
#define COLOR_PAUSE_TIME	(50 * NSEC_PER_MSEC)
/* Frames are no closer than that, even if the device takes none, or at 10 Tbit/s. */
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
 * @retry: ns to the next attempt if the device does not take a frame; @work
 * @rate: of the link, bytes/s, which quanta count in; RTNL, and READ_ONCE() in softirq context
 * @fastest: the most that either end can send, bytes/s; likewise
 * @storm: ns after which a pause is ignored; likewise
 * @speed: bytes/s, as the device has it; 0 if it does not know; RTNL, as all below
 * @users: ports of the device, and those that are about to be one
 * @ports: struct color_pause; changed under RTNL, read under RCU
 * @dev: the device; valid until @gone
 * @net: the links of its namespace.  The device may be in another one, with another number, when
 *	its last port goes: requests for filters hold qdiscs without RTNL
 * @ifindex: its number there
 * @stale: the device's speed may have changed
 * @all: entry in color_pause_links
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
	u64			retry;
	u64			rate;
	u64			fastest;
	u32			storm;
	u64			speed;
	unsigned int		users;
	bool			stale;
	struct list_head	all;
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

/* The links of all namespaces; RTNL */
static LIST_HEAD(color_pause_links);

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

/* The device by which a packet arrived; 0 if it did not. */
static int color_pause_iif(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_REDIRECT
	/* act_mirred has written the device that it took the packet from. */
	if (skb_is_redirected(skb) && !skb->from_ingress)
		return 0;
#endif
	return skb->skb_iif;
}

/**
 * color_pause_charge() - a packet is queued
 * @pause: the port's
 * @skb: the packet
 * @band: number of its band
 * @color: its colour
 * @len: bytes of it
 *
 * Return: what color_pause_uncharge() needs; 0 if it is charged to no link.
 */
unsigned long color_pause_charge(const struct color_pause *pause, const struct sk_buff *skb,
				 unsigned int band, enum tc_color color, u32 len)
{
	int iif = color_pause_iif(skb);
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

/* A frame was sent past the qdisc, or not. */
static bool color_pause_sent(struct color_pause_link *link, int ret, u8 pause, bool off)
{
	if (ret != NETDEV_TX_OK) {
		link->unsent++;
		/* A device that is down has no neighbour.  Others drop for lack of room. */
		return !netif_running(link->dev) || !netif_carrier_ok(link->dev);
	}
	link->told = pause;
	if (off)
		link->sent_off++;
	else
		link->sent_on++;
	return true;
}

/* Send a frame past the qdisc; false if the device has no room for it now. */
static bool color_pause_send(struct color_pause_link *link, u8 prios, u8 off, gfp_t gfp)
{
	u8 pause = color_pause_grouped(link, off);
	struct net_device *dev = link->dev;
	struct sk_buff *skb;
	int ret;

	skb = alloc_skb(LL_RESERVED_SPACE(dev) + ETH_ZLEN + dev->needed_tailroom, gfp);
	if (!skb)
		return color_pause_sent(link, NETDEV_TX_BUSY, 0, false);
	skb_reserve(skb, LL_RESERVED_SPACE(dev));
	skb->dev = dev;
	skb->protocol = htons(ETH_P_PAUSE);
	skb->priority = TC_PRIO_CONTROL;
	skb_reset_mac_header(skb);
	color_pfc_fill(skb_put(skb, ETH_ZLEN), dev->dev_addr,
		       color_pause_grouped(link, prios) | link->told, pause,
		       color_pfc_quanta(COLOR_PAUSE_TIME, READ_ONCE(link->rate)));
	skb_set_network_header(skb, ETH_HLEN);

	ret = __dev_direct_xmit(skb, 0);
	if (!dev_xmit_complete(ret))
		kfree_skb(skb);
	return color_pause_sent(link, ret, pause, prios & off);
}

/* ns to the next frame: half of the shortest time that the neighbour may make of a pause, so that
 * the frame is there before the end.
 */
static u64 color_pause_period(const struct color_pause_link *link)
{
	u16 quanta = color_pfc_quanta(COLOR_PAUSE_TIME, READ_ONCE(link->rate));

	return max_t(u64, color_pfc_ns(quanta, READ_ONCE(link->fastest)) / 2,
		     COLOR_PAUSE_PERIOD_MIN);
}

/* The same if the device had no room for the last frame: soon, and less often if that does not
 * change.
 */
static u64 color_pause_retry(struct color_pause_link *link)
{
	u64 most = color_pause_period(link);

	link->retry = clamp_t(u64, 2 * link->retry, COLOR_PAUSE_PERIOD_MIN, most);
	return link->retry;
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
		if (!link->owed)
			link->retry = 0;
		if ((wanted || link->owed) && !READ_ONCE(link->gone))
			hrtimer_start(&link->timer,
				      ns_to_ktime(link->owed ? color_pause_retry(link) :
							       color_pause_period(link)),
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
	u64 now, rate = READ_ONCE(link->rate);
	u32 storm = READ_ONCE(link->storm);
	u8 enabled = ntohs(mac->enabled);
	bool wake = false;
	int prio;

	spin_lock(&link->lock);
	now = ktime_get_ns();
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

/* Bytes/s, 0 if they do not know. */
static u64 color_pause_settings_speed(const struct ethtool_link_ksettings *settings)
{
	if (settings->base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return min(settings->base.speed * (1000000ull / 8), TC_COLOR_RATE_MAX);
}

/* The same of a device's link, and 0 if it is down. */
static u64 color_pause_speed(struct net_device *dev)
{
	struct ethtool_link_ksettings settings;

	return gl_get_link_ksettings(dev, &settings) ? 0 : color_pause_settings_speed(&settings);
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

/* Bands that have a priority: each may have Xoff, and the headroom. */
static u8 color_pause_prios(const struct color_pause *pause)
{
	u8 prios = 0;
	u32 i;

	for (i = 0; i < pause->port.bands; i++)
		if (pause->prio[i] != COLOR_PAUSE_NO_PRIO)
			prios |= BIT(pause->prio[i]);
	return prios;
}

/* --- room: see "Lossless" in color_pause.h ----------------------------------- */

/**
 * struct color_pause_plan - the ports of a namespace as they are, or as they would be
 * @cn: the namespace's links
 * @old: a port's state that is replaced, or NULL
 * @new: the state that replaces it, or NULL
 * @pool: the pool that the port is going to be in, or NULL
 * @size: the size that the pool is going to have, bytes
 * @old_share: the port's part of a pool as it is, or NULL
 * @fill: how much of @pool the port is going to fill
 */
struct color_pause_plan {
	struct color_pause_net		*cn;
	const struct color_pause	*old;
	const struct color_pause	*new;
	const struct color_pool		*pool;
	u64				size;
	const struct color_share	*old_share;
	struct color_fill		fill;
};

/* The next of a link's ports, after this entry of its list. */
static const struct color_pause *color_pause_after(const struct color_pause_plan *plan,
						   const struct color_pause_link *link,
						   const struct list_head *pos)
{
	const struct color_pause *pause;

	for (pos = pos->next; pos != &link->ports; pos = pos->next) {
		pause = list_entry(pos, struct color_pause, entry);
		if (pause != plan->old)
			return pause;
	}
	return NULL;
}

/* The port that the link's options are taken from: the one that was set last. */
static const struct color_pause *color_pause_first(const struct color_pause_plan *plan,
						   const struct color_pause_link *link)
{
	if (plan->new && plan->new->link == link)
		return plan->new;
	return color_pause_after(plan, link, &link->ports);
}

static const struct color_pause *color_pause_next(const struct color_pause_plan *plan,
						  const struct color_pause_link *link,
						  const struct color_pause *pause)
{
	return color_pause_after(plan, link, pause == plan->new ? &link->ports : &pause->entry);
}

#define color_pause_for_each(plan, index, link, pause)					\
	xa_for_each(&(plan)->cn->links, index, link)					\
		for (pause = color_pause_first(plan, link); pause;			\
		     pause = color_pause_next(plan, link, pause))

/**
 * enum color_pause_why - what leaves the least room
 * @COLOR_PAUSE_LIMIT: a port's limit
 * @COLOR_PAUSE_POOL: a pool
 * @COLOR_PAUSE_COLOR: a threshold of green packets
 * @COLOR_PAUSE_BAND: a band's limit of packets
 * @COLOR_PAUSE_RED: red packets without a threshold, beside green ones that pause
 * @COLOR_PAUSE_OPEN: a band without a priority and without a limit
 */
enum color_pause_why {
	COLOR_PAUSE_LIMIT,
	COLOR_PAUSE_POOL,
	COLOR_PAUSE_COLOR,
	COLOR_PAUSE_BAND,
	COLOR_PAUSE_RED,
	COLOR_PAUSE_OPEN,
};

static const char * const color_pause_messages[] = {
	[COLOR_PAUSE_LIMIT] =
		"pause: the smallest limit of the ports that pause has no room for Xoff and headroom of all links, by priority",
	[COLOR_PAUSE_POOL] =
		"pause: alpha / (1 + alpha) of the pool, less what ports without pause can take, has no room for Xoff and headroom of all links, by priority",
	[COLOR_PAUSE_COLOR] =
		"pause: a threshold of green has no room for Xoff and headroom of all links",
	[COLOR_PAUSE_BAND] =
		"pause: a band-limit, in packets of 60 bytes, has no room for Xoff and headroom of all links: see pause-map",
	[COLOR_PAUSE_RED] =
		"pause green needs a threshold of red in each port that pauses: red packets would fill the buffer",
	[COLOR_PAUSE_OPEN] =
		"pause: a band without a priority needs a band-limit: its packets would fill the buffer",
};

/**
 * struct color_pause_sum - all ports of a plan
 * @prios: priorities that packets are charged to
 * @links: those that pause and have no Xoff of their own
 * @taken: bytes of a priority that the Xoff of the others, and their headroom, take
 * @green: a link counts only green packets
 * @room: bytes of a priority that the port with the least room can queue
 * @why: what makes it the least
 * @margin: bytes that the link with the least room has above the least Xoff; negative if that does
 *	not fit
 */
struct color_pause_sum {
	u8			prios;
	unsigned int		links;
	u64			taken;
	bool			green;
	u64			room;
	enum color_pause_why	why;
	s64			margin;
};

static void color_pause_least(struct color_pause_sum *sum, u64 room, enum color_pause_why why)
{
	if (room >= sum->room)
		return;
	sum->room = room;
	sum->why = why;
}

static u64 color_pause_less(u64 bytes, u64 less)
{
	return bytes - min(bytes, less);
}

/* Does the device have a link whose speed bounds what arrives?  A veth or tap has none. */
static bool color_pause_is_virtual(const struct net_device *dev)
{
	return !dev->dev.parent;
}

/* Bytes of the port's longest packet on the link */
static u32 color_pause_packet(const struct color_pause *pause)
{
	return psched_mtu(pause->link->dev) + pause->port.overhead;
}

/**
 * color_gso_max() - how much the largest GSO packet of a device counts
 * @dev: the device
 *
 * It counts with the headers of each segment (qdisc_pkt_len); segments have 536 bytes at least.
 *
 * Return: bytes.
 */
u32 color_gso_max(const struct net_device *dev)
{
	u32 size = READ_ONCE(dev->gso_max_size);

	return size + DIV_ROUND_UP(size, TCP_MSS_DEFAULT) * COLOR_PAUSE_HEADERS;
}

/* Bytes of the largest packet that the neighbour sends at once. */
static u32 color_pause_unit(const struct color_pause_link *link, const struct color_pause *pause)
{
	const struct net_device *dev = link->dev;

	if (pause->cfg.unit)
		return pause->cfg.unit;
	if (!color_pause_is_virtual(dev))
		return color_pause_packet(pause);
	/* GSO packets pass whole. */
	return max(color_pause_packet(pause), color_gso_max(dev));
}

/* Bytes/s that either end can send. */
static u64 color_pause_fastest(const struct color_pause_link *link,
			       const struct color_pause *pause)
{
	return max(link->speed, pause->port.rate);
}

static u64 color_pause_headroom(const struct color_pause_link *link,
				const struct color_pause *pause)
{
	return color_pfc_headroom(&(struct color_pfc_reach) {
		.rate	= color_pause_fastest(link, pause),
		.delay	= pause->cfg.delay,
		/* On a real link the burst is no faster than the rest. */
		.burst	= color_pause_is_virtual(link->dev) ? pause->port.burst : 0,
		.unit	= color_pause_unit(link, pause),
		.packet	= color_pause_packet(pause),
	});
}

/* The least Xoff that is not refused: Xon is two packets below. */
static u64 color_pause_xoff_min(const struct color_pause *pause)
{
	return 2 * (u64)color_pause_packet(pause);
}

/* Bytes of packets that never count: those of bands without a priority, and with `pause green` red
 * and yellow ones.  U64_MAX if nothing limits them.
 */
static u64 color_pause_uncounted(const struct color_pause *pause, bool green,
				 enum color_pause_why *why)
{
	const struct color_pause_port *port = &pause->port;
	u64 bytes = green ? port->others : 0;
	u32 i;

	*why = COLOR_PAUSE_RED;
	if (green && !bytes)
		return U64_MAX;
	*why = COLOR_PAUSE_OPEN;
	for (i = 0; i < port->bands; i++) {
		if (pause->prio[i] != COLOR_PAUSE_NO_PRIO)
			continue;
		if (!port->band_limit[i])
			return U64_MAX;
		bytes += (u64)port->band_limit[i] * color_pause_packet(pause);
	}
	return bytes;
}

/* Bytes that a port may have of its pool while the other ports have packets that never count: all
 * of the ports that do not pause.  By the dynamic threshold, and if no packet but theirs is in the
 * pool: see color_pool_thresh().
 */
static u64 color_pause_pool_room(const struct color_pause_plan *plan,
				 const struct color_pause_port *port, bool green)
{
	const struct color_pool *pool = port->pool;
	u64 size = pool == plan->pool ? plan->size : READ_ONCE(pool->size);
	const struct color_pause *pause;
	struct color_pause_link *link;
	enum color_pause_why why;
	unsigned long index;

	color_pause_for_each(plan, index, link, pause) {
		u64 bytes = color_pause_uncounted(pause, green, &why);

		/* the port itself has no room if nothing limits them */
		if (pause->port.pool == pool && bytes != U64_MAX)
			size = color_pause_less(size, bytes);
	}
	size = color_pool_left(pool, size, plan->old_share,
			       pool == plan->pool ? &plan->fill : NULL);
	return mul_u64_u32_div(size, port->fill.alpha,
			       port->fill.alpha + TC_COLOR_ALPHA_ONE);
}

/* The port's limits of bytes for green packets, and of packets. */
static void color_pause_add_bands(const struct color_pause *pause, u64 uncounted,
				  struct color_pause_sum *sum)
{
	const struct color_pause_port *port = &pause->port;
	unsigned int prios = hweight8(sum->prios);
	u32 i;

	if (port->green != COLOR_NO_THRESH) {
		if (port->count == TC_COLOR_COUNT_COLOR)
			color_pause_least(sum, div_u64(port->green, prios), COLOR_PAUSE_COLOR);
		else if (port->count == TC_COLOR_COUNT_PORT || port->bands == 1)
			color_pause_least(sum, div_u64(color_pause_less(port->green, uncounted),
						       prios), COLOR_PAUSE_COLOR);
		else
			color_pause_least(sum, color_pause_less(port->green, uncounted),
					  COLOR_PAUSE_COLOR);
	}
	for (i = 0; i < port->bands; i++)
		if (port->band_limit[i] && pause->prio[i] != COLOR_PAUSE_NO_PRIO)
			color_pause_least(sum, (u64)port->band_limit[i] * ETH_ZLEN,
					  COLOR_PAUSE_BAND);
}

/* How much of each priority can a port queue? */
static void color_pause_add_port(const struct color_pause_plan *plan,
				 const struct color_pause *pause, struct color_pause_sum *sum)
{
	const struct color_pause_port *port = &pause->port;
	unsigned int prios = hweight8(sum->prios);
	enum color_pause_why why;
	u64 uncounted = color_pause_uncounted(pause, sum->green, &why);

	if (uncounted == U64_MAX) {
		color_pause_least(sum, 0, why);
		return;
	}
	color_pause_least(sum, div_u64(color_pause_less(port->fill.limit, uncounted), prios),
			  COLOR_PAUSE_LIMIT);
	if (port->pool)
		color_pause_least(sum, div_u64(color_pause_pool_room(plan, port, sum->green),
					       prios), COLOR_PAUSE_POOL);
	color_pause_add_bands(pause, uncounted, sum);
}

static void color_pause_add_link(const struct color_pause_link *link,
				 const struct color_pause *pause, struct color_pause_sum *sum)
{
	if (!pause || !color_pause_sends(pause->cfg.mode))
		return;
	sum->green |= pause->cfg.mode == TC_COLOR_PAUSE_GREEN;
	if (pause->cfg.xoff)
		sum->taken += pause->cfg.xoff + color_pause_headroom(link, pause);
	else
		sum->links++;
}

/* Xoff of a link; negative if its headroom alone is too much. */
static s64 color_pause_xoff(const struct color_pause_link *link, const struct color_pause *pause,
			    const struct color_pause_sum *sum)
{
	u64 left = color_pause_less(sum->room, sum->taken);

	if (pause->cfg.xoff)
		return pause->cfg.xoff;
	return (s64)div_u64(left, sum->links) - (s64)color_pause_headroom(link, pause);
}

/* What the link has more than it needs. */
static s64 color_pause_margin(const struct color_pause_link *link, const struct color_pause *pause,
			      const struct color_pause_sum *sum)
{
	if (pause->cfg.xoff)
		return (s64)(sum->room - pause->cfg.xoff - color_pause_headroom(link, pause));
	return color_pause_xoff(link, pause, sum) - (s64)color_pause_xoff_min(pause);
}

/* How much room do the links that pause have?  Each may fill its part of the port that has the
 * least room, for each priority.
 */
static void color_pause_solve(const struct color_pause_plan *plan, struct color_pause_sum *sum)
{
	const struct color_pause *pause;
	struct color_pause_link *link;
	unsigned long index;

	ASSERT_RTNL();
	*sum = (struct color_pause_sum) { .room = S64_MAX, .margin = S64_MAX };
	xa_for_each(&plan->cn->links, index, link)
		color_pause_add_link(link, color_pause_first(plan, link), sum);
	color_pause_for_each(plan, index, link, pause)
		sum->prios |= color_pause_prios(pause);
	if (!sum->prios)
		return;
	color_pause_for_each(plan, index, link, pause)
		color_pause_add_port(plan, pause, sum);
	xa_for_each(&plan->cn->links, index, link) {
		pause = color_pause_first(plan, link);
		if (pause && color_pause_sends(pause->cfg.mode))
			sum->margin = min(sum->margin, color_pause_margin(link, pause, sum));
	}
}

/* The options of the link, and its thresholds. */
static void color_pause_set_link(struct color_pause_link *link, const struct color_pause *pause,
				 const struct color_pause_sum *sum)
{
	const struct color_pause_config *cfg = &pause->cfg;
	u64 xoff = COLOR_PAUSE_NEVER, xon = 0, gap = color_pause_xoff_min(pause);
	int prio;

	WRITE_ONCE(link->rate, link->speed ?: pause->port.rate);
	WRITE_ONCE(link->fastest, color_pause_fastest(link, pause));
	WRITE_ONCE(link->storm, cfg->storm);
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		u8 band = cfg->map[prio];

		/* a port with other bands may charge a priority that none of these has */
		WRITE_ONCE(link->groups[prio], band == TC_COLOR_PAUSE_NO_BAND ? BIT(prio) :
						 pause->mask[band]);
	}
	if (color_pause_sends(cfg->mode)) {
		/* If there is too little room each packet pauses. */
		xoff = max_t(s64, 0, color_pause_xoff(link, pause, sum));
		xon = min(xoff, cfg->xon ?: xoff - min(gap, xoff));
	}
	WRITE_ONCE(link->green, cfg->mode == TC_COLOR_PAUSE_GREEN);
	WRITE_ONCE(link->xoff, xoff);
	WRITE_ONCE(link->xon, xon);
	color_pause_kick(link);
}

/* Set each link's thresholds anew: links share the buffers. */
static void color_pause_update(struct color_pause_net *cn)
{
	struct color_pause_plan plan = { .cn = cn };
	const struct color_pause *pause;
	struct color_pause_link *link;
	struct color_pause_sum sum;
	unsigned long index;

	color_pause_solve(&plan, &sum);
	xa_for_each(&cn->links, index, link) {
		pause = color_pause_first(&plan, link);
		if (pause)
			color_pause_set_link(link, pause, &sum);
	}
}

/**
 * color_pause_update_net() - something that ports promise has changed; RTNL
 * @net: their namespace
 */
void color_pause_update_net(struct net *net)
{
	color_pause_update(net_generic(net, color_pause_net_id));
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
	link->fastest = TC_COLOR_RATE_MAX;
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
	list_add(&link->all, &color_pause_links);
	dev_mc_add(dev, color_pfc_address);
	dev_add_pack(&link->taps);
	return link;
}

/* The last port of the device goes.  Packets that are charged may still be queued elsewhere. */
static void color_pause_link_remove(struct color_pause_link *link)
{
	xa_erase(&link->net->links, link->ifindex);
	list_del(&link->all);
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
	if (tb[TCA_COLOR_PAUSE_UNIT])
		cfg->unit = nla_get_u32(tb[TCA_COLOR_PAUSE_UNIT]);
	if (tb[TCA_COLOR_PAUSE_MAP] &&
	    !color_pause_map_merge(cfg->map, nla_data(tb[TCA_COLOR_PAUSE_MAP]), port->bands)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE_MAP],
				    "A priority is mapped to a band that does not exist");
		return -EINVAL;
	}
	if (cfg->unit && cfg->unit < TC_COLOR_PAUSE_UNIT_MIN) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE_UNIT],
				    "unit: a packet has 60 bytes at least");
		return -ERANGE;
	}
	if (cfg->xoff && cfg->xon > cfg->xoff) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE_XON] ?: tb[TCA_COLOR_PAUSE_XOFF],
				    "With Xon above Xoff the neighbour would be paused and let go at once");
		return -EINVAL;
	}
	return 0;
}

/* The attribute of a request by which a plan promises too much: the first that is there. */
static const struct nlattr *color_pause_culprit(struct nlattr **tb)
{
	static const u8 may[] = {
		TCA_COLOR_PAUSE_XOFF, TCA_COLOR_POOL_SIZE, TCA_COLOR_POOL_ALPHA, TCA_COLOR_POOL,
		TCA_COLOR_BAND_LIMIT, TCA_COLOR_GREEN, TCA_COLOR_COUNT, TCA_COLOR_LIMIT,
		TCA_COLOR_PAUSE_UNIT, TCA_COLOR_PAUSE_DELAY, TCA_COLOR_PAUSE_MAP, TCA_COLOR_BANDS,
		TCA_COLOR_SLACK, TCA_COLOR_CATCH_UP, TCA_COLOR_RED, TCA_COLOR_PAUSE,
		TCA_COLOR_RATE64,
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(may); i++)
		if (tb[may[i]])
			return tb[may[i]];
	return NULL;
}

/* A plan that promises too much is refused, unless that is so already and it does not get worse. */
static int color_pause_check(const struct color_pause_plan *plan, struct nlattr **tb,
			     struct netlink_ext_ack *extack)
{
	struct color_pause_plan now = { .cn = plan->cn };
	struct color_pause_sum sum, before;

	color_pause_solve(plan, &sum);
	if (sum.margin >= 0)
		return 0;
	color_pause_solve(&now, &before);
	if (before.margin < 0 && sum.margin >= before.margin)
		return 0;
	if (extack) {
		extack->_msg = color_pause_messages[sum.why];
		NL_SET_BAD_ATTR(extack, color_pause_culprit(tb));
	}
	return -ENOSPC;
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

/* The options of a port that pauses, or that it does not. */
static int color_pause_options(struct color_pause_config *cfg, const struct color_pause *own,
			       const struct color_pause_port *port, struct nlattr **tb,
			       struct netlink_ext_ack *extack)
{
	static const u8 need[] = {
		TCA_COLOR_PAUSE_XOFF, TCA_COLOR_PAUSE_XON, TCA_COLOR_PAUSE_DELAY,
		TCA_COLOR_PAUSE_STORM, TCA_COLOR_PAUSE_MAP, TCA_COLOR_PAUSE_UNIT,
	};
	int i;

	*cfg = own ? own->cfg : (struct color_pause_config) {
		.delay = COLOR_PAUSE_DELAY, .storm = COLOR_PAUSE_STORM,
	};
	if (!own || own->port.bands != port->bands)
		color_pause_map_default(cfg->map, port->bands);
	if (tb[TCA_COLOR_PAUSE])
		cfg->mode = nla_get_u32(tb[TCA_COLOR_PAUSE]);
	if (cfg->mode != TC_COLOR_PAUSE_NONE)
		return color_pause_parse(cfg, port, tb, extack);
	for (i = 0; i < ARRAY_SIZE(need); i++) {
		if (!tb[need[i]])
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[need[i]],
				    "xoff, xon, delay, storm, unit and pause-map need pause");
		return -EINVAL;
	}
	return 0;
}

/* Can the device pause at all? */
static int color_pause_check_dev(struct net_device *dev, const struct color_pause_link *link,
				 const struct color_pause_port *port, struct nlattr **tb,
				 struct netlink_ext_ack *extack)
{
	if (!color_pause_has_wire(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE],
				    "No pause frames are heard here: pause is for network cards, veth and tap devices");
		return -EOPNOTSUPP;
	}
	if (netif_is_l3_slave(dev) || netif_is_lag_port(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE],
				    "pause: a VRF or a bond above the device hides by which link packets arrive");
		return -EOPNOTSUPP;
	}
	if (!port->rate && !color_pause_speed(dev) && !(link && link->speed)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE] ?: tb[TCA_COLOR_RATE64],
				    "The device does not know its speed, which pause frames count in: pause needs a rate");
		return -EINVAL;
	}
	return 0;
}

static struct color_pause_link *color_pause_link_get(struct color_pause_net *cn,
						     struct net_device *dev)
{
	struct color_pause_link *link = xa_load(&cn->links, dev->ifindex);

	if (!link)
		link = color_pause_link_new(cn, dev);
	if (IS_ERR(link))
		return link;
	link->users++;
	link->speed = color_pause_speed(dev) ?: link->speed;
	return link;
}

/**
 * color_pause_get() - what the user wants a port to do about pauses
 * @sch: the port
 * @own: what it does now, or NULL for nothing
 * @port: what it is going to be
 * @pool_size: the size that its pool is going to have
 * @tb: the attributes; those of &enum tca_color that begin with TCA_COLOR_PAUSE count
 * @extack: says what is wrong
 *
 * Nothing changes before color_pause_commit().
 *
 * Return: the new state of the port, for color_pause_put(), NULL for none; or an error.
 */
struct color_pause *color_pause_get(struct Qdisc *sch, const struct color_pause *own,
				    const struct color_pause_port *port, u32 pool_size,
				    struct nlattr **tb, struct netlink_ext_ack *extack)
{
	struct net_device *dev = qdisc_dev(sch);
	struct color_pause_net *cn = net_generic(dev_net(dev), color_pause_net_id);
	struct color_pause_plan plan = {
		.cn = cn, .old = own, .pool = port->pool, .size = pool_size,
		.old_share = port->share, .fill = port->fill,
	};
	struct color_pause_config cfg;
	struct color_pause_link *link;
	struct color_pause *pause;
	int err;

	ASSERT_RTNL();
	err = color_pause_options(&cfg, own, port, tb, extack);
	if (err)
		return ERR_PTR(err);
	if (cfg.mode == TC_COLOR_PAUSE_NONE) {
		/* Others may use the pool. */
		err = color_pause_check(&plan, tb, extack);
		return ERR_PTR(err);
	}
	err = color_pause_check_dev(dev, own ? own->link : NULL, port, tb, extack);
	if (err)
		return ERR_PTR(err);

	link = color_pause_link_get(cn, dev);
	if (IS_ERR(link))
		return ERR_CAST(link);
	pause = color_pause_new(link, sch, &cfg, port);
	if (!pause) {
		if (!--link->users)
			color_pause_link_remove(link);
		return ERR_PTR(-ENOMEM);
	}
	plan.new = pause;
	plan.fill.limit = 0;
	err = color_pause_check(&plan, tb, extack);
	if (err) {
		color_pause_put(pause);
		return ERR_PTR(err);
	}
	return pause;
}

/**
 * color_pause_commit() - the port has its new state; RTNL
 * @pause: what color_pause_get() has returned, or NULL
 * @before: the state before, or NULL; for color_pause_put()
 */
void color_pause_commit(struct color_pause *pause, struct color_pause *before)
{
	if (before) {
		list_del_rcu(&before->entry);
		before->listed = false;
	}
	if (pause) {
		pause->listed = true;
		list_add_rcu(&pause->entry, &pause->link->ports);
	}
}

/**
 * color_pause_put() - a port has another state, or none, or is gone; RTNL
 * @pause: the state before, or NULL
 */
void color_pause_put(struct color_pause *pause)
{
	struct color_pause_net *cn;

	ASSERT_RTNL();
	if (!pause)
		return;
	cn = pause->link->net;
	if (pause->listed)
		list_del_rcu(&pause->entry);
	if (!--pause->link->users)
		color_pause_link_remove(pause->link);
	if (pause->listed)
		color_pause_update(cn);
	kfree_rcu(pause, rcu);
}

/* --- devices ---------------------------------------------------------------- */

/* Read again the speed of the devices that may have another one.  Drivers sleep, and notifiers hold
 * locks that depend on the event: see rd_link.c.
 */
static void color_pause_read_speeds(struct work_struct *work)
{
	struct ethtool_link_ksettings settings;
	struct color_pause_link *link;

	rtnl_lock();
	list_for_each_entry(link, &color_pause_links, all) {
		if (!link->stale)
			continue;
		link->stale = false;
		if (__ethtool_get_link_ksettings(link->dev, &settings))
			continue;
		/* While it is down the last one counts. */
		link->speed = color_pause_settings_speed(&settings) ?: link->speed;
		color_pause_update(link->net);
	}
	rtnl_unlock();
}

static DECLARE_WORK(color_pause_reader, color_pause_read_speeds);

/* The link of a device, if it has one. */
static struct color_pause_link *color_pause_link_of(const struct net_device *dev)
{
	struct color_pause_link *link;

	list_for_each_entry(link, &color_pause_links, all)
		if (link->dev == dev)
			return link;
	return NULL;
}

/* A VRF or a bond would hide by which link packets arrive. */
static int color_pause_enslave(const struct netdev_notifier_changeupper_info *info)
{
	if (!info->linking ||
	    !(netif_is_l3_master(info->upper_dev) || netif_is_lag_master(info->upper_dev)))
		return NOTIFY_DONE;
	NL_SET_ERR_MSG(info->info.extack,
		       "The device has a color port that pauses, which a VRF or a bond does not allow");
	return notifier_from_errno(-EBUSY);
}

static int color_pause_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct color_pause_link *link;

	/* The device's ports may pause, or be in the pool of one that does. */
	if (event == NETDEV_CHANGEMTU) {
		color_pause_update_net(dev_net(dev));
		return NOTIFY_DONE;
	}
	link = color_pause_link_of(dev);
	if (!link)
		return NOTIFY_DONE;
	switch (event) {
	case NETDEV_PRECHANGEUPPER:
		return color_pause_enslave(ptr);
	case NETDEV_UP:
	case NETDEV_CHANGE:
		link->stale = true;
		schedule_work(&color_pause_reader);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block color_pause_notifier = {
	.notifier_call	= color_pause_event,
};

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
	    (cfg->unit && nla_put_u32(skb, TCA_COLOR_PAUSE_UNIT, cfg->unit)) ||
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
	u64 now, xoff;
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
	now = ktime_get_ns();
	values[TC_COLOR_PAUSE_STAT_HEARD] = link->heard_frames;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		link->storms += color_pfc_account(&link->heard[prio], now,
						  READ_ONCE(link->storm));
		paused[prio] = link->heard[prio].paused;
		values[TC_COLOR_PAUSE_STAT_BACKLOG] += atomic64_read(&link->bytes[prio]);
	}
	values[TC_COLOR_PAUSE_STAT_STORMS] = link->storms;
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
	int err = register_pernet_subsys(&color_pause_net_ops);

	if (err)
		return err;
	err = register_netdevice_notifier(&color_pause_notifier);
	if (err)
		unregister_pernet_subsys(&color_pause_net_ops);
	return err;
}

/**
 * color_pause_exit() - undo color_pause_init()
 */
void color_pause_exit(void)
{
	unregister_netdevice_notifier(&color_pause_notifier);
	cancel_work_sync(&color_pause_reader);
	unregister_pernet_subsys(&color_pause_net_ops);
}
