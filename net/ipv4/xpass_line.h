/* SPDX-License-Identifier: GPL-2.0 */
/* The line that a host's credits leave on: one a network namespace, and what is to be
 * known of it, net.ipv4.xpass_*.
 *
 * ExpressPass has a NIC that holds credits to their share of the line and drops what
 * more there is.  Here that queue is a clock: when will all credits that have left be
 * through, with the data that they call for?  So a host needs no qdisc.
 *
 * What the host itself sends is acknowledged by TCP, on the line that the data comes in
 * on: the clock goes on by that too.
 */
#ifndef _XPASS_LINE_H
#define _XPASS_LINE_H

#include <linux/atomic.h>
#include <linux/sysctl.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

/* Credits that a port's queue holds (§3.2: 8), and as many are made up for at once
 * when the timer was late.
 */
#define XPASS_QUEUE		8

/* ACKs that the line's clock may be ahead for: more than those credits take. */
#define XPASS_YIELDED		256

/**
 * struct xpass_line - the line that a namespace's credits leave on
 * @free: when all credits that have left are through, ns; many sockets move it, each
 *	with its own lock only
 * @mbit: what it carries, Mbit/s (net.ipv4.xpass_rate)
 * @initial: a flow begins with 1/@initial of it (net.ipv4.xpass_initial)
 * @sysctl: registered for the namespace's life
 */
struct xpass_line {
	atomic64_t		free;
	unsigned int		mbit;
	unsigned int		initial;
	struct ctl_table_header	*sysctl;
};

static unsigned int xpass_net_id __read_mostly;

static struct xpass_line *xpass_line(const struct sock *sk)
{
	return net_generic(sock_net(sk), xpass_net_id);
}

static u32 xpass_line_mbit(const struct sock *sk)
{
	return READ_ONCE(xpass_line(sk)->mbit);
}

/* Has the line room for one more credit?  It stands for a queue that holds a few
 * and drops the others.
 */
static bool xpass_line_takes(struct xpass_line *line, u64 now, u64 cost)
{
	s64 free = atomic64_read(&line->free);

	do {
		if (free > now + (XPASS_QUEUE - 1) * cost)
			return false;
	} while (!atomic64_try_cmpxchg(&line->free, &free, max_t(u64, free, now) + cost));
	return true;
}

/* Something else will come on it.  While it is idle there is room for that anyway.  The
 * clock stays near: it may have been that of a line far slower than what is sent.
 */
static void xpass_line_yields(struct xpass_line *line, u64 now, u64 cost)
{
	if (atomic64_read(&line->free) < now + XPASS_YIELDED * cost)
		atomic64_add(cost, &line->free);
}

static unsigned int xpass_mbit_max = 1600000;

static const struct ctl_table xpass_sysctl_template[] = {
	GL_SYSCTL_UINT("xpass_rate", struct xpass_line, mbit, SYSCTL_ONE, &xpass_mbit_max),
	GL_SYSCTL_UINT("xpass_initial", struct xpass_line, initial, SYSCTL_ONE,
		       SYSCTL_ONE_THOUSAND),
};

static int __net_init xpass_net_init(struct net *net)
{
	struct xpass_line *line = net_generic(net, xpass_net_id);

	line->mbit = 10000;
	line->initial = 16;
	line->sysctl = gl_sysctl_add(net, xpass_sysctl_template,
				     ARRAY_SIZE(xpass_sysctl_template), line);
	return line->sysctl ? 0 : -ENOMEM;
}

static void __net_exit xpass_net_exit(struct net *net)
{
	struct xpass_line *line = net_generic(net, xpass_net_id);

	gl_sysctl_remove(line->sysctl);
}

static struct pernet_operations xpass_net_ops = {
	.init	= xpass_net_init,
	.exit	= xpass_net_exit,
	.id	= &xpass_net_id,
	.size	= sizeof(struct xpass_line),
};

#endif /* _XPASS_LINE_H */
