/* SPDX-License-Identifier: GPL-2.0 */
/* ExpressPass: what a connection's packets cost on the link that they leave on, and the settings
 * of a network namespace, net.ipv4.xpass_*.
 *
 * ExpressPass has a NIC that holds credits to their share of the link and drops those
 * that exceed it.  Here a clock takes that queue's place: it says when all credits that
 * have been sent will be through, together with the data that they call for.  A host
 * needs no qdisc for that.  Each link has a clock (rd_link.h).
 *
 * TCP acknowledges what the host itself sends, with ACKs on the link that the credited
 * data comes in on.  So sending data advances the clock too.
 */
#ifndef _XPASS_LINE_H
#define _XPASS_LINE_H

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <net/netns/generic.h>
#include <net/rd_link.h>
#include <net/sock.h>

struct ctl_table_header;

/* Credits that a port's queue holds (§3.2: 8).  A late timer makes up for as many at
 * once.
 */
#define XPASS_QUEUE		8

/* The clock may be ahead by this many ACKs, which is more than XPASS_QUEUE credits take. */
#define XPASS_YIELDED		256

/**
 * struct xpass_line - the settings of a namespace
 * @mbit: the speed of its links, in Mbit/s; 0 for what they say (net.ipv4.xpass_rate)
 * @initial: a flow begins with 1/@initial of it (net.ipv4.xpass_initial)
 * @sysctl: registered as long as the namespace lives
 */
struct xpass_line {
	unsigned int		mbit;
	unsigned int		initial;
	struct ctl_table_header	*sysctl;
};

/**
 * struct xpass_path - where a connection's packets leave, as it is now
 * @wire: the link that carries them, whose clock counts; RCU
 * @mbit: its speed, in Mbit/s
 * @extra: bytes that the device adds to each packet, beyond Ethernet's
 * @mtu: of @wire, in bytes
 */
struct xpass_path {
	struct rd_link		*wire;
	u32			mbit;
	u32			extra;
	u32			mtu;
};

extern unsigned int xpass_line_net_id;

int xpass_line_init(void);
void xpass_line_exit(void);

/* The rest runs for each packet or credit. */

/**
 * xpass_line() - the settings of a socket's namespace
 * @sk: the socket
 *
 * Return: the settings.
 */
static inline struct xpass_line *xpass_line(const struct sock *sk)
{
	return net_generic(sock_net(sk), xpass_line_net_id);
}

/**
 * xpass_path_of() - where a socket's packets leave
 * @sk: the socket
 *
 * Return: the path, valid until rcu_read_unlock().
 */
static inline struct xpass_path xpass_path_of(const struct sock *sk)
{
	struct rd_link *link = rd_link_rcu(sk), *wire = rd_link_wire(link);

	return (struct xpass_path){
		.wire	= wire,
		.mbit	= READ_ONCE(xpass_line(sk)->mbit) ?: rd_link_mbit(link),
		.extra	= READ_ONCE(link->extra),
		.mtu	= READ_ONCE(wire->mtu),
	};
}

/**
 * xpass_line_takes() - send a credit, if the link has room for one
 * @free: the link's clock
 * @now: in ns
 * @cost: time that the credit and its data take on the link, in ns
 * @unit: the same of the largest packet that the link carries, in ns
 *
 * The queue holds as much time for all.  If it held as many credits instead, one for 9000 bytes
 * would find room behind six times as much as one for 1500, and on a full link only the large ones
 * would.
 *
 * Return: false if the NIC's queue would be full and drop the credit.
 */
static inline bool xpass_line_takes(atomic64_t *free, u64 now, u64 cost, u64 unit)
{
	s64 at = atomic64_read(free);

	do {
		if (at > now + (XPASS_QUEUE - 1) * unit)
			return false;
	} while (!atomic64_try_cmpxchg(free, &at, max_t(u64, at, now) + cost));
	return true;
}

/**
 * xpass_line_yields() - leave room on the link for an ACK
 * @free: the link's clock
 * @now: in ns
 * @cost: time that the ACK takes on the link, in ns
 *
 * An idle link has room anyway.  The clock stays close to @now: the data that is
 * acknowledged may leave on a link that is much faster than this one.
 */
static inline void xpass_line_yields(atomic64_t *free, u64 now, u64 cost)
{
	if (atomic64_read(free) < now + XPASS_YIELDED * cost)
		atomic64_add(cost, free);
}

#endif /* _XPASS_LINE_H */
