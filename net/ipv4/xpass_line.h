/* SPDX-License-Identifier: GPL-2.0 */
/* ExpressPass: what a connection's packets cost on the link that they leave on, and the settings
 * of a network namespace, net.ipv4.xpass_*.
 *
 * ExpressPass has a NIC that holds credits to their share of the link and drops those
 * that exceed it.  Here the link's receivers take turns (rd_queue.h), so that there is no
 * excess, and a host needs no qdisc for that.
 *
 * TCP acknowledges what the host itself sends, with ACKs on the link that the credited
 * data comes in on.  So sending data delays credits.
 */
#ifndef _XPASS_LINE_H
#define _XPASS_LINE_H

#include <net/netns/generic.h>
#include <net/rd_link.h>
#include <net/sock.h>

struct ctl_table_header;

/* Credits that a port's queue holds (§3.2). */
#define XPASS_QUEUE		8

/* They may delay them by this many ACKs. */
#define XPASS_YIELDED		256

/* Which of the link's receivers has the next turn (net.ipv4.xpass_pick). */
enum xpass_pick {
	XPASS_PICK_FAIR,	/* the one that has had least of the link's time */
	XPASS_PICK_SHORTEST,	/* the one with the least left of its message */
};

/**
 * struct xpass_line - the settings of a namespace
 * @mbit: the speed of its links, in Mbit/s; 0 for what they say (net.ipv4.xpass_rate)
 * @initial: a flow begins with 1/@initial of it (net.ipv4.xpass_initial)
 * @pick: enum xpass_pick (net.ipv4.xpass_pick)
 * @sysctl: registered as long as the namespace lives
 */
struct xpass_line {
	unsigned int		mbit;
	unsigned int		initial;
	unsigned int		pick;
	struct ctl_table_header	*sysctl;
};

/**
 * struct xpass_path - the link that a connection's packets leave on, as it is now
 * @mbit: its speed, in Mbit/s
 * @extra: bytes that the device adds to each packet, beyond Ethernet's
 */
struct xpass_path {
	u32			mbit;
	u32			extra;
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
 * xpass_path_of() - the link that a socket's packets leave on
 * @sk: the socket
 *
 * Return: what it is like now.
 */
static inline struct xpass_path xpass_path_of(const struct sock *sk)
{
	struct xpass_path path;
	struct rd_link *link;

	rcu_read_lock();
	link = rd_link_rcu(sk);
	path.mbit = READ_ONCE(xpass_line(sk)->mbit) ?: rd_link_mbit(link);
	path.extra = READ_ONCE(link->extra);
	rcu_read_unlock();
	return path;
}

#endif /* _XPASS_LINE_H */
