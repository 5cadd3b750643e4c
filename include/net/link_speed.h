/* SPDX-License-Identifier: GPL-2.0 */
/* The link that a socket's packets leave on: its speed, and the bytes of a packet on it.  See
 * link_speed.c.
 */
#ifndef _NET_LINK_SPEED_H
#define _NET_LINK_SPEED_H

#include <linux/atomic.h>
#include <linux/if_ether.h>
#include <linux/if_vlan.h>
#include <linux/list.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <net/sock.h>

struct Qdisc;

/* Mbit/s assumed for a device that reports no speed, and for loopback. */
#define LINK_SPEED_MBIT		10000
/* Bytes that Ethernet adds to an IP packet: header, FCS, preamble, gap. */
#define LINK_SPEED_FRAME	(14 + 4 + 8 + 12)
/* Rates in kB/s, and the sum of two, fit into a u32. */
#define LINK_SPEED_MBIT_MAX	1600000
/* Limit of the bytes that tunnel headers add.  A tunnel that has not found its route yet requests
 * the headroom that any device might need.
 */
#define LINK_SPEED_EXTRA_MAX	128

/**
 * struct link_speed - a network device of a namespace, as transports that divide a link see it
 * @mbit: speed, Mbit/s; 0 if it is not known.  Written with RTNL, read by READ_ONCE()
 * @extra: bytes that the device adds to an IP packet, beyond Ethernet's: VLAN tags, tunnel
 *	headers. Written with RTNL, read by READ_ONCE()
 * @local: packets do not leave the host: loopback, VRF.  Written before the link is published
 * @by_port: @mbit is that of a port's qdisc.  Written with RTNL, read by READ_ONCE()
 * @wire: the link that this one's packets occupy, if that is another one of the namespace: the
 *	device below a VLAN's.  Holds a reference.  Written with RTNL, read with RCU
 * @attached: state that the users of the link share: the queue of rd_core.ko, or NULL.  Written by
 *	cmpxchg(), read with RCU.  Its owner holds a reference on the link, and sets it to NULL
 *	before it puts that
 * @repairs: the repairs of trimmed packets have reserved the link until then, ns; see
 *	link_speed_reserve()
 * @guesses: how often a transport needed the speed, and it was not known
 * @dev: the device, NULL once it has left the namespace.  Written with RTNL, read with RCU
 * @speed: Mbit/s that ethtool reported last while the link was up; RTNL
 * @ports: qdiscs of the device that have a rate, struct link_speed_port; RTNL
 * @refs: the namespace's reference, those of link_speed_get(), of links above, of ports, and of
 *	@changed's list
 * @changed: on the list of links to be read again; link_speed_lock
 * @rcu: readers may still be there when the last reference is put
 *
 * The link outlives its device for as long as a reference is held.
 */
struct link_speed {
	u32			mbit;
	u16			extra;
	bool			local;
	bool			by_port;
	struct link_speed __rcu	*wire;
	void __rcu		*attached;
	atomic64_t		repairs;
	atomic_t		guesses;

	struct net_device __rcu	*dev;
	u32			speed;
	struct list_head	ports;
	refcount_t		refs;
	struct list_head	changed;
	struct rcu_head		rcu;
};

/**
 * struct link_speed_port - a qdisc's rate, which its device's link may have
 * @entry: in the list of the link; RTNL
 * @link: the link, NULL while there is no rate; RTNL
 * @sch: the qdisc
 * @rate: bytes/s; RTNL
 */
struct link_speed_port {
	struct list_head	entry;
	struct link_speed	*link;
	const struct Qdisc	*sch;
	u64			rate;
};

struct link_speed *link_speed_rcu(const struct sock *sk);
struct link_speed *link_speed_get(const struct sock *sk);
void link_speed_put(struct link_speed *link);
void link_speed_port_set(struct link_speed_port *port, const struct Qdisc *sch, u64 rate);
void link_speed_port_clear(struct link_speed_port *port);

/**
 * link_speed_wire() - the link whose time a link's packets take
 * @link: the link; RCU
 *
 * Return: the link of the device below, or @link.
 */
static inline struct link_speed *link_speed_wire(struct link_speed *link)
{
	return rcu_dereference(link->wire) ?: link;
}

/* Count to half of what an int holds: the limit is no lock, and each CPU may exceed it by one. */
static inline void link_speed_guess(struct link_speed *link)
{
	if (atomic_read(&link->guesses) < INT_MAX / 2)
		atomic_inc(&link->guesses);
}

/**
 * link_speed_mbit() - the speed of a link
 * @link: the link
 *
 * Return: Mbit/s; an assumption if it is not known, which is counted.
 */
static inline u32 link_speed_mbit(struct link_speed *link)
{
	u32 mbit = READ_ONCE(link->mbit);

	if (likely(mbit))
		return mbit;
	if (!link->local)
		link_speed_guess(link);
	return LINK_SPEED_MBIT;
}

/**
 * link_speed_ns() - time on a link
 * @mbit: the link's speed, Mbit/s, not 0
 * @bytes: of a packet, with all that the link adds
 *
 * Return: ns, rounded down.
 */
static inline u64 link_speed_ns(u32 mbit, u32 bytes)
{
	return div_u64(bytes * 8000ULL, mbit);
}

/**
 * link_speed_ps() - time on a link, with fractions
 * @mbit: the link's speed, Mbit/s, not 0
 * @bytes: of a packet, with all that the link adds
 *
 * Return: ps.  At 400 Gbit/s a packet takes some 30 ns, and rounding to ns would be 3 % of it.
 */
static inline u64 link_speed_ps(u32 mbit, u32 bytes)
{
	return div_u64(bytes * 8000000ULL, mbit);
}

/**
 * link_speed_reserve() - reserve link time for the repair of a trimmed packet
 * @link: the link; RCU
 * @now: ns
 * @ns: time on the link
 * @most: limit of all reservations ahead of @now, ns
 *
 * Return: when the reserved time begins, ns; 0, with nothing reserved, beyond @most.
 */
static inline u64 link_speed_reserve(struct link_speed *link, u64 now, u64 ns, u64 most)
{
	s64 free = atomic64_read(&link->repairs), at;

	do {
		at = max_t(s64, free, now);
		if (at - now > most)
			return 0;
	} while (!atomic64_try_cmpxchg(&link->repairs, &free, at + ns));
	return at;
}

/**
 * link_speed_mbit_of() - the speed of a link with a certain rate
 * @rate: bytes/s; 0 for none
 *
 * Return: Mbit/s, between 1 and LINK_SPEED_MBIT_MAX; 0 for none.
 */
static inline u32 link_speed_mbit_of(u64 rate)
{
	return rate ? clamp_t(u64, div_u64(rate, 125000), 1, LINK_SPEED_MBIT_MAX) : 0;
}

/**
 * link_speed_headers() - bytes that a tunnel adds to a packet
 * @headroom: what its device needs in front of the packets it gets
 * @below: bytes of that which are the link-layer header of the device below
 *
 * Return: bytes, at most LINK_SPEED_EXTRA_MAX.
 */
static inline u32 link_speed_headers(u32 headroom, u32 below)
{
	return min_t(u32, headroom - min(headroom, below), LINK_SPEED_EXTRA_MAX);
}

#endif /* _NET_LINK_SPEED_H */
