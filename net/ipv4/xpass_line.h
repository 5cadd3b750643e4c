/* SPDX-License-Identifier: GPL-2.0 */
/* ExpressPass: the link that a network namespace's credits leave on, and the settings of
 * the namespace, net.ipv4.xpass_*.
 *
 * ExpressPass has a NIC that holds credits to their share of the link and drops those
 * that exceed it.  Here a clock takes that queue's place: it says when all credits that
 * have been sent will be through, together with the data that they call for.  A host
 * needs no qdisc for that.
 *
 * TCP acknowledges what the host itself sends, with ACKs on the link that the credited
 * data comes in on.  So sending data advances the clock too.
 */
#ifndef _XPASS_LINE_H
#define _XPASS_LINE_H

#include <linux/atomic.h>
#include <linux/minmax.h>
#include <net/netns/generic.h>
#include <net/sock.h>

struct ctl_table_header;

/* Credits that a port's queue holds (§3.2: 8).  A late timer makes up for as many at
 * once.
 */
#define XPASS_QUEUE		8

/* The clock may be ahead by this many ACKs, which is more than XPASS_QUEUE credits take. */
#define XPASS_YIELDED		256

/**
 * struct xpass_line - the link that a namespace's credits leave on
 * @free: when all credits that have been sent will be through, in ns; many sockets
 *	advance it, each under its own lock only
 * @mbit: the line rate, in Mbit/s (net.ipv4.xpass_rate)
 * @initial: a flow begins with 1/@initial of it (net.ipv4.xpass_initial)
 * @sysctl: registered as long as the namespace lives
 */
struct xpass_line {
	atomic64_t		free;
	unsigned int		mbit;
	unsigned int		initial;
	struct ctl_table_header	*sysctl;
};

extern unsigned int xpass_line_net_id;

int xpass_line_init(void);
void xpass_line_exit(void);

/* The rest runs for each packet or credit. */

/**
 * xpass_line() - the link of a socket's namespace
 * @sk: the socket
 *
 * Return: the link.
 */
static inline struct xpass_line *xpass_line(const struct sock *sk)
{
	return net_generic(sock_net(sk), xpass_line_net_id);
}

/**
 * xpass_line_takes() - send a credit, if the link has room for one
 * @line: the link
 * @now: in ns
 * @cost: time that the credit and its data take on the link, in ns
 *
 * Return: false if the NIC's queue would be full and drop the credit.
 */
static inline bool xpass_line_takes(struct xpass_line *line, u64 now, u64 cost)
{
	s64 free = atomic64_read(&line->free);

	do {
		if (free > now + (XPASS_QUEUE - 1) * cost)
			return false;
	} while (!atomic64_try_cmpxchg(&line->free, &free, max_t(u64, free, now) + cost));
	return true;
}

/**
 * xpass_line_yields() - leave room on the link for an ACK
 * @line: the link
 * @now: in ns
 * @cost: time that the ACK takes on the link, in ns
 *
 * An idle link has room anyway.  The clock stays close to @now: the data that is
 * acknowledged may leave on a link that is much faster than this one.
 */
static inline void xpass_line_yields(struct xpass_line *line, u64 now, u64 cost)
{
	if (atomic64_read(&line->free) < now + XPASS_YIELDED * cost)
		atomic64_add(cost, &line->free);
}

#endif /* _XPASS_LINE_H */
