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

/* Bytes of a segment's headers: Ethernet, IPv6, and TCP with all its options. */
#define COLOR_PAUSE_HEADERS	(ETH_HLEN + sizeof(struct ipv6hdr) + 60)
/* The default propagation delay: 1 km of fibre. */
#define COLOR_PAUSE_DELAY	(5 * NSEC_PER_USEC)
/* The default of storm: PFC watchdogs of switches look for pauses of some hundred milliseconds. */
#define COLOR_PAUSE_STORM	(200 * NSEC_PER_MSEC)
/* The longest pause that a frame requests: a quarter of the default of storm.  Otherwise a normal
 * pause of a slow link would be a storm for the neighbour.
 */
#define COLOR_PAUSE_TIME	(50 * NSEC_PER_MSEC)
/* The minimum interval between frames, even if the device accepts no frame, or at 10 Tbit/s. */
#define COLOR_PAUSE_PERIOD_MIN	(10 * NSEC_PER_USEC)

/* Xoff of a link that does not pause its neighbour. */
#define COLOR_PAUSE_NEVER	U64_MAX

/**
 * struct color_pause_link - a device with ports that pause
 * @xoff: bytes of a priority above which the neighbour is paused; written under RTNL, read by every
 *	port of the namespace
 * @xon: bytes of a priority up to which the neighbour may resume; likewise
 * @green: only green packets count; likewise
 * @gone: the device has no port any more; set under RTNL, once
 * @off: priorities that the neighbour should pause; written by @work, read by every port
 * @refs: one for all ports of the device, and one for each packet that is charged
 * @bytes: queued bytes that are charged to the link, by priority
 * @peak: maximum of @bytes of any priority
 * @ever: priorities that the neighbour has ever paused; written under @lock, read by every port
 * @until: end of the neighbour's last pause, by priority, ns; may be in the past; likewise
 * @lock: protects the next three; taken in softirq context
 * @received: pauses received, by priority
 * @received_frames: PFC frames received
 * @storms: number of storms: see color_pfc_receive()
 * @groups: priorities that pause together, because they are one band, by priority; RTNL
 * @owed: priorities of the last frame, if the device did not accept it; @work
 * @sent: priorities that are paused by the last frame sent; @work
 * @again: the time of the last frame is nearly over; set by @timer, cleared by @work
 * @sent_off: frames sent that start or extend a pause; @work, as the next two
 * @sent_on: frames sent that only end pauses
 * @unsent: frames that the device did not accept
 * @retry: ns to the next attempt if the device does not accept a frame; @work
 * @rate: rate of the link that quanta depend on, bytes/s; RTNL, and READ_ONCE() in softirq context
 * @fastest: maximum rate of either end, bytes/s; likewise
 * @storm: ns of stopped time after which pauses are ignored; 0 for never; likewise
 * @speed: last known speed of the device, bytes/s; 0 if unknown; RTNL, as all below
 * @users: struct color_pause that refer to the link, including one not committed yet
 * @ports: struct color_pause; changed under RTNL, read under RCU
 * @dev: the device; valid until @gone
 * @net: the links of the device's namespace.  The device may be in another namespace, with another
 *	ifindex, when its last port is destroyed: requests for filters hold qdiscs without RTNL
 * @ifindex: ifindex of the device in the namespace of @net
 * @downs: the device's carrier_down_count at the last event; RTNL
 * @stale: the device's speed may have changed
 * @all: entry in color_pause_links
 * @taps: packet handler: receives all packets that arrive by the device
 * @timer: queues @work before a pause is over
 * @work: sends frames
 * @rcu: for kfree_rcu()
 */
struct color_pause_link {
	u64			xoff;
	u64			xon;
	bool			green;
	bool			gone;
	u8			off;

	/* dirtied by every packet that has arrived by this link */
	refcount_t		refs ____cacheline_aligned_in_smp;
	atomic64_t		bytes[TC_COLOR_PAUSE_PRIOS];
	atomic64_t		peak;

	/* dirtied by every frame of the neighbour */
	u8			ever ____cacheline_aligned_in_smp;
	atomic64_t		until[TC_COLOR_PAUSE_PRIOS];
	spinlock_t		lock;	/* of the pauses received */
	struct color_pfc_received	received[TC_COLOR_PAUSE_PRIOS];
	u64			received_frames;
	u64			storms;

	u8			groups[TC_COLOR_PAUSE_PRIOS] ____cacheline_aligned_in_smp;
	u8			owed;
	u8			sent;
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
	int			downs;
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

/* --- send: pause the neighbour ---------------------------------------------- */

static void color_pause_link_put(struct color_pause_link *link)
{
	if (refcount_dec_and_test(&link->refs))
		kfree_rcu(link, rcu);
}

/* Queue the work, which compares the bytes with the thresholds.  No caller queues it any more after
 * color_pause_link_remove() has set @gone and waited for the callers that had not seen that.
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

/* The link of a charge.  A charge is one word, as there is little room in a packet: the address of
 * the link, with the priority in its low bits.
 */
static struct color_pause_link *color_pause_word_link(unsigned long charged)
{
	return (struct color_pause_link *)(charged & ~(TC_COLOR_PAUSE_PRIOS - 1ul));
}

/* The ifindex of the device by which a packet arrived; 0 if it did not arrive by a device. */
static int color_pause_iif(const struct sk_buff *skb)
{
#ifdef CONFIG_NET_REDIRECT
	/* At egress, act_mirred has set skb_iif to the device that it redirected from. */
	if (skb_is_redirected(skb) && !skb->from_ingress)
		return 0;
#endif
	return skb->skb_iif;
}

/**
 * color_pause_charge() - charge a packet to the link by which it arrived, at enqueue
 * @pause: the port's state
 * @skb: the packet
 * @band: number of its band
 * @color: its colour
 * @len: bytes of the packet
 *
 * Return: the charge, for color_pause_uncharge(); 0 if the packet is charged to no link.
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
 * color_pause_uncharge() - undo color_pause_charge(), at dequeue
 * @charged: return value of color_pause_charge()
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

/* The priorities that should be paused, if @off are paused now. */
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

/* The priorities, and all other priorities of their bands. */
static u8 color_pause_grouped(const struct color_pause_link *link, u8 prios)
{
	u8 grouped = 0;
	int prio;

	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++)
		if (prios & BIT(prio))
			grouped |= READ_ONCE(link->groups[prio]);
	return grouped;
}

/* Account a frame that was sent, or could not be.  Return: false if it has to be sent again. */
static bool color_pause_sent(struct color_pause_link *link, int ret, u8 pause, bool off)
{
	if (ret != NETDEV_TX_OK) {
		link->unsent++;
		/* A device that is down has no neighbour.  Other devices drop for lack of room. */
		return !netif_running(link->dev) || !netif_carrier_ok(link->dev);
	}
	link->sent = pause;
	if (off)
		link->sent_off++;
	else
		link->sent_on++;
	return true;
}

/* Send a frame, not through the qdisc.  Return: false if the device has no room for it now. */
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
		       color_pause_grouped(link, prios) | link->sent, pause,
		       color_pfc_quanta(COLOR_PAUSE_TIME, READ_ONCE(link->rate)));
	skb_set_network_header(skb, ETH_HLEN);

	ret = __dev_direct_xmit(skb, 0);
	if (!dev_xmit_complete(ret))
		kfree_skb(skb);
	return color_pause_sent(link, ret, pause, prios & off);
}

/* ns to the next frame: half of the shortest time for which the neighbour may obey a pause, so that
 * the frame arrives before the pause ends.
 */
static u64 color_pause_period(const struct color_pause_link *link)
{
	u16 quanta = color_pfc_quanta(COLOR_PAUSE_TIME, READ_ONCE(link->rate));

	return max_t(u64, color_pfc_ns(quanta, READ_ONCE(link->fastest)) / 2,
		     COLOR_PAUSE_PERIOD_MIN);
}

/* ns to the next attempt if the device had no room for the last frame: doubled by each failure, up
 * to the period.
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
		/* The frame has all paused priorities: one timer serves all of them. */
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

	/* A port that crossed a threshold before it saw the new @off has not queued the work:
	 * compare again.  The atomics that change the bytes are ordered.
	 */
	smp_mb();
	if (color_pause_wanted(link, wanted) != wanted)
		color_pause_kick(link);
}

/* Send the pause again: it ends soon, or the neighbour does not know of it. */
static void color_pause_again(struct color_pause_link *link)
{
	WRITE_ONCE(link->again, true);
	color_pause_kick(link);
}

static enum hrtimer_restart color_pause_timer(struct hrtimer *timer)
{
	color_pause_again(container_of(timer, struct color_pause_link, timer));
	return HRTIMER_NORESTART;
}

/* --- receive: the neighbour pauses a port ----------------------------------- */

/**
 * color_pause_end() - the end of a band's last pause
 * @pause: the port's state
 * @band: number of the band
 *
 * Return: ns; in the past if the band is not paused now; 0 if it has never been.
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
 * color_pause_bands() - the bands that have packets and are paused
 * @pause: the port's state
 * @bands: its bands
 * @seen: time of the port's last reading of the clock, ns; read again if the result depends on it
 * @first: set to the earliest end of their pauses, ns; U64_MAX if no band is paused
 *
 * The clocks of the other bands advance to the ends of their pauses, so that a band does not catch
 * up for the time in which it was paused.  A band whose packet the parent has peeked at counts as
 * not paused.
 *
 * Return: the bits of the bands.
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

/* The neighbour has ended a pause before its time: the ports need not wait for their timers. */
static void color_pause_wake(struct color_pause_link *link)
{
	struct color_pause *pause;

	list_for_each_entry_rcu(pause, &link->ports, entry)
		__netif_schedule(qdisc_root(pause->sch));
}

/* The link is down.  When it is up again its neighbour pauses nothing: another one may be there. */
static void color_pause_forget(struct color_pause_link *link)
{
	u32 storm = READ_ONCE(link->storm);
	int prio;
	u64 now;

	spin_lock_bh(&link->lock);
	now = ktime_get_ns();
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		struct color_pfc_received *h = &link->received[prio];

		link->storms += color_pfc_receive(h, 0, now, storm);
		atomic64_set(&link->until[prio], h->until);
	}
	spin_unlock_bh(&link->lock);
	rcu_read_lock();
	color_pause_wake(link);
	rcu_read_unlock();
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
	link->received_frames++;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		struct color_pfc_received *h = &link->received[prio];
		u64 before = h->until;

		if (!(enabled & BIT(prio)))
			continue;
		link->storms += color_pfc_receive(h, color_pfc_ns(ntohs(mac->time[prio]), rate),
						  now, storm);
		atomic64_set(&link->until[prio], h->until);
		wake |= h->until < before;
	}
	WRITE_ONCE(link->ever, link->ever | enabled);
	spin_unlock(&link->lock);
	if (wake)
		color_pause_wake(link);
}

/* All packets that arrive by the device, in softirq context and under RCU. */
static int color_pause_receive(struct sk_buff *skb, struct net_device *dev,
			       struct packet_type *pt, struct net_device *orig_dev)
{
	struct color_pause_link *link = container_of(pt, struct color_pause_link, taps);
	const struct color_pfc_mac *mac;
	struct color_pfc_mac _mac;

	if (likely(skb->protocol != htons(ETH_P_PAUSE)) || skb_vlan_tag_present(skb) ||
	    !ether_addr_equal(eth_hdr(skb)->h_dest, color_pfc_address))
		goto out;
	/* Other handlers share the packet: don't pull. */
	mac = skb_header_pointer(skb, 0, sizeof(_mac), &_mac);
	if (mac && mac->opcode == htons(COLOR_PFC_OPCODE))
		color_pause_hear(link, mac);
out:
	consume_skb(skb);
	return NET_RX_SUCCESS;
}

/* --- configuration ---------------------------------------------------------- */

/* Is the device one end of a wire?  Other devices have no neighbour, or their frames pass a second
 * device, which would have to be paused in their place.
 */
static bool color_pause_has_wire(const struct net_device *dev)
{
	const char *kind = dev->rtnl_link_ops ? dev->rtnl_link_ops->kind : "";

	if (dev->type != ARPHRD_ETHER || dev->addr_len != ETH_ALEN ||
	    dev->flags & IFF_LOOPBACK || !list_empty(&dev->adj_list.lower))
		return false;
	return dev->dev.parent || !strcmp(kind, "veth") || !strcmp(kind, "tun");
}

/* The speed, bytes/s; 0 if it is unknown. */
static u64 color_pause_settings_speed(const struct ethtool_link_ksettings *settings)
{
	if (settings->base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return min(settings->base.speed * (1000000ull / 8), TC_COLOR_RATE_MAX);
}

/* The speed of a device's link, bytes/s; 0 if it is unknown, or if the link is down. */
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

/* The priorities that the port charges packets to: for each it may queue Xoff and the headroom. */
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
 * struct color_pause_plan - the ports of a namespace as they are, or after one port has changed
 * @cn: the namespace's links
 * @old: a port's state that is replaced, or NULL
 * @new: the state that replaces it, or NULL
 * @pool: the port's pool after the change, or NULL
 * @size: size of @pool after the change, bytes
 * @old_share: the port's part of a pool before the change, or NULL
 * @fill: how much of @pool the port can fill after the change
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

/* The next port of a link, after the entry @pos of its list; without the port that is replaced. */
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

/* The port whose options apply to the link: the one that was configured last. */
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
 * enum color_pause_why - the limit that determines the room of all links
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
 * struct color_pause_sum - the room that all ports of a plan provide, and the links' use of it
 * @prios: priorities that packets are charged to
 * @links: number of links that pause and have an automatic Xoff
 * @taken: bytes of a priority that the configured Xoff of the other links, and their headroom, take
 * @green: a link counts only green packets
 * @room: bytes of a priority that every port can queue: the minimum over all ports
 * @why: the limit that determines @room
 * @margin: minimum over all links of the room beyond the room that a link needs, bytes; negative if
 *	there is not enough
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

/* Is it a veth or tap, which has no link whose speed bounds the rate of arrivals? */
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
 * color_gso_max() - the maximum qdisc_pkt_len of a device's GSO packets
 * @dev: the device
 *
 * The length includes the headers of each segment; a segment has 536 bytes of data at least.
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
	/* A veth or tap passes GSO packets whole. */
	return max(color_pause_packet(pause), color_gso_max(dev));
}

/* The maximum rate of either end, bytes/s. */
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
		/* On a real link a burst is no faster than the link. */
		.burst	= color_pause_is_virtual(link->dev) ? pause->port.burst : 0,
		.unit	= color_pause_unit(link, pause),
		.packet	= color_pause_packet(pause),
	});
}

/* The minimum Xoff that is accepted, bytes: Xon is two packets below. */
static u64 color_pause_xoff_min(const struct color_pause *pause)
{
	return 2 * (u64)color_pause_packet(pause);
}

/* Maximum bytes of a port's packets that never count: trimmed ones, packets of bands without a
 * priority, and with `pause green` red and yellow ones.  U64_MAX if they have no limit, and @why is
 * the reason.
 */
static u64 color_pause_uncounted(const struct color_pause *pause, bool green,
				 enum color_pause_why *why)
{
	const struct color_pause_port *port = &pause->port;
	u64 bytes = port->trimmed;
	u32 i;

	*why = COLOR_PAUSE_RED;
	if (green && !port->others)
		return U64_MAX;
	if (green)
		bytes += port->others;
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

/* Bytes of its pool that a port may fill by the dynamic threshold, see color_pool_thresh(), if the
 * pool is empty but for packets that never count.  Of ports that pause these are the uncounted
 * packets, of the other ports all packets.
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

		/* without a limit, that port has no room: color_pause_add_port() */
		if (pause->port.pool == pool && bytes != U64_MAX)
			size = color_pause_less(size, bytes);
	}
	size = color_pool_left(pool, size, plan->old_share,
			       pool == plan->pool ? &plan->fill : NULL);
	return mul_u64_u32_div(size, port->fill.alpha,
			       port->fill.alpha + TC_COLOR_ALPHA_ONE);
}

/* Add the port's threshold of green packets, and its bands' limits of packets. */
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

/* Add the limits of a port: how many bytes of each priority can it queue? */
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

/* Xoff of a link, bytes; negative if its headroom alone does not fit. */
static s64 color_pause_xoff(const struct color_pause_link *link, const struct color_pause *pause,
			    const struct color_pause_sum *sum)
{
	u64 left = color_pause_less(sum->room, sum->taken);

	if (pause->cfg.xoff)
		return pause->cfg.xoff;
	return (s64)div_u64(left, sum->links) - (s64)color_pause_headroom(link, pause);
}

/* Room of a link beyond the room that it needs, bytes; negative if it needs more. */
static s64 color_pause_margin(const struct color_pause_link *link, const struct color_pause *pause,
			      const struct color_pause_sum *sum)
{
	if (pause->cfg.xoff)
		return (s64)(sum->room - pause->cfg.xoff - color_pause_headroom(link, pause));
	return color_pause_xoff(link, pause, sum) - (s64)color_pause_xoff_min(pause);
}

/* Compute the room of the links that pause.  For each priority, each link may fill its part of the
 * port that has the minimum of room.
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

/* Set the options of the link, and its thresholds. */
static void color_pause_set_link(struct color_pause_link *link, const struct color_pause *pause,
				 const struct color_pause_sum *sum)
{
	const struct color_pause_config *cfg = &pause->cfg;
	u64 xoff = COLOR_PAUSE_NEVER, xon = 0, gap = color_pause_xoff_min(pause);
	int prio;

	WRITE_ONCE(link->rate, link->speed ?: pause->port.rate);
	/* A timer that runs expires too late for a faster link. */
	if (color_pause_fastest(link, pause) > link->fastest)
		WRITE_ONCE(link->again, true);
	WRITE_ONCE(link->fastest, color_pause_fastest(link, pause));
	WRITE_ONCE(link->storm, cfg->storm);
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		u8 band = cfg->map[prio];

		/* a port with other bands may charge a priority that has no band here */
		WRITE_ONCE(link->groups[prio], band == TC_COLOR_PAUSE_NO_BAND ? BIT(prio) :
						 pause->mask[band]);
	}
	if (color_pause_sends(cfg->mode)) {
		/* If there is too little room, Xoff is 0: each packet pauses the neighbour. */
		xoff = max_t(s64, 0, color_pause_xoff(link, pause, sum));
		xon = min(xoff, cfg->xon ?: xoff - min(gap, xoff));
	}
	WRITE_ONCE(link->green, cfg->mode == TC_COLOR_PAUSE_GREEN);
	WRITE_ONCE(link->xoff, xoff);
	WRITE_ONCE(link->xon, xon);
	color_pause_kick(link);
}

/* Recompute the thresholds of every link: links share the buffers. */
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
 * color_pause_update_net() - recompute Xoff and Xon after a change of ports, pools or MTUs; RTNL
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
	/* until the port is committed */
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
	/* Frames that the device sends are not from the neighbour. */
	link->taps.type = htons(ETH_P_ALL);
	link->taps.dev = dev;
	link->downs = atomic_read(&dev->carrier_down_count);
	link->taps.func = color_pause_receive;
	link->taps.ignore_outgoing = true;
	list_add(&link->all, &color_pause_links);
	dev_mc_add(dev, color_pfc_address);
	dev_add_pack(&link->taps);
	return link;
}

/* The device has no port any more.  Packets that are charged may still be queued in other ports. */
static void color_pause_link_remove(struct color_pause_link *link)
{
	xa_erase(&link->net->links, link->ifindex);
	list_del(&link->all);
	WRITE_ONCE(link->gone, true);
	dev_mc_del(link->dev, color_pfc_address);
	dev_remove_pack(&link->taps);	/* waits for all readers of the old @gone */
	hrtimer_cancel(&link->timer);
	gl_bh_cancel_sync(&link->work);
	/* The work may have armed the timer once more. */
	hrtimer_cancel(&link->timer);
	if (link->off | link->owed)
		color_pause_send(link, link->off | link->owed, 0, GFP_KERNEL);
	color_pause_link_put(link);
}

/* Parse and check the options of a port that pauses. */
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
				    "Xon is above Xoff: each pause would end at once");
		return -EINVAL;
	}
	return 0;
}

/* The attribute to report if a plan has not enough room: the first of @may in the request. */
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

/* Refuse a plan without enough room, unless the present ports have no more room than the plan. */
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

/* Compute the options of pausing; @cfg->mode is TC_COLOR_PAUSE_NONE if the port does not pause. */
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

/* Can the device's ports pause?  @speed: that of the device, bytes/s; 0 if it is unknown. */
static int color_pause_check_dev(const struct net_device *dev, u64 speed,
				 const struct color_pause_port *port, struct nlattr **tb,
				 struct netlink_ext_ack *extack)
{
	if (!color_pause_has_wire(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE],
				    "The device receives no pause frames: pause needs a network card, veth or tap device");
		return -EOPNOTSUPP;
	}
	if (netif_is_l3_slave(dev) || netif_is_lag_port(dev)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE],
				    "pause: a VRF or a bond above the device hides by which link packets arrive");
		return -EOPNOTSUPP;
	}
	if (!port->rate && !speed) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PAUSE] ?: tb[TCA_COLOR_RATE64],
				    "The device reports no speed, the unit of pause times: pause needs a rate");
		return -EINVAL;
	}
	return 0;
}

static struct color_pause_link *color_pause_link_get(struct color_pause_net *cn,
						     struct net_device *dev, u64 speed)
{
	struct color_pause_link *link = xa_load(&cn->links, dev->ifindex);

	if (!link)
		link = color_pause_link_new(cn, dev);
	if (IS_ERR(link))
		return link;
	/* A port of a device that has left the namespace may be destroyed late. */
	if (link->dev != dev)
		return ERR_PTR(-EBUSY);
	link->users++;
	link->speed = speed ?: link->speed;
	return link;
}

/**
 * color_pause_get() - create a port's new state of pausing from the user's attributes
 * @sch: the port
 * @own: its present state, or NULL if it does not pause
 * @port: its properties after the change
 * @pool_size: size of its pool after the change, bytes
 * @tb: the attributes; the options are read from TCA_COLOR_PAUSE and TCA_COLOR_PAUSE_*
 * @extack: for the error message
 *
 * The port does not change before color_pause_commit().
 *
 * Return: the new state, for color_pause_put(); NULL if the port does not pause; or an error.
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
	u64 speed;
	int err;

	ASSERT_RTNL();
	err = color_pause_options(&cfg, own, port, tb, extack);
	if (err)
		return ERR_PTR(err);
	if (cfg.mode == TC_COLOR_PAUSE_NONE) {
		/* Ports that pause may share the pool. */
		err = color_pause_check(&plan, tb, extack);
		return ERR_PTR(err);
	}
	/* Read it once: a link that flaps has none the next time. */
	speed = color_pause_speed(dev) ?: own ? own->link->speed : 0;
	err = color_pause_check_dev(dev, speed, port, tb, extack);
	if (err)
		return ERR_PTR(err);

	link = color_pause_link_get(cn, dev, speed);
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
 * @pause: the new state, of color_pause_get(), or NULL
 * @before: the old state, or NULL; for color_pause_put()
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
 * color_pause_put() - free a state that the port does not use, or not any more; RTNL
 * @pause: the state, or NULL
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

/* Read the speed of the devices whose speed may have changed.  Drivers sleep, and notifiers hold
 * locks that depend on the event: see link_speed.c.
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
		/* While the link is down its last speed applies. */
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
		       "A device that has a color port with pause cannot be below a VRF or a bond");
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
	case NETDEV_DOWN:
		color_pause_forget(link);
		break;
	case NETDEV_UP:
	case NETDEV_CHANGE:
		/* One event may stand for a link that went down and came up. */
		if (link->downs != atomic_read(&dev->carrier_down_count)) {
			link->downs = atomic_read(&dev->carrier_down_count);
			color_pause_forget(link);
		}
		if (netif_carrier_ok(dev))
			color_pause_again(link);
		link->stale = true;
		schedule_work(&color_pause_reader);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block color_pause_notifier = {
	.notifier_call	= color_pause_event,
};

/* --- dump ------------------------------------------------------------------- */

/**
 * color_pause_dump() - write the configuration
 * @pause: the port's state, or NULL
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
 * @pause: the port's state, or NULL
 * @skb: the message; attributes for which it has no room are left out
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
	values[TC_COLOR_PAUSE_STAT_HEARD] = link->received_frames;
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++) {
		link->storms += color_pfc_account(&link->received[prio], now,
						  READ_ONCE(link->storm));
		paused[prio] = link->received[prio].paused;
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

/* The namespace's devices have been removed, and their ports and links with them. */
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
