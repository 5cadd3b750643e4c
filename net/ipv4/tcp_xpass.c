// SPDX-License-Identifier: GPL-2.0
/* ExpressPass: credit-scheduled TCP
 *
 *	Inho Cho, Keon Jang, Dongsu Han:
 *	"Credit-Scheduled Delay-Bounded Congestion Control for Datacenters",
 *	SIGCOMM 2017
 *
 * The receiver schedules its senders: each data packet needs a *credit*, a small packet that the
 * receiver sends at a paced rate.
 *
 *	receiver            switch                       sender
 *	c . c . c . c . c . c . c . c  x  c  x  c  --->  one packet a credit
 *	                  <--- d ... d ... d ... d ---
 *
 * Each switch port limits the rate of credits, so that the data they trigger just fills the link
 * in the other direction; it drops the excess.  Losing a credit costs little, and the feedback
 * control (xpass_rate.c) adjusts the credit rate to a target loss.  The receiver's own link needs
 * no such control: rd_queue.c schedules its connections.  Data is not lost, and queues stay short.
 *
 * The core handles requests and credits and schedules the receivers (include/net/rd_core.h).  This
 * file has the two parts that are ExpressPass's own: the codepoints of the packets, by which
 * switches distinguish them, and the rate at which a connection sends credits.
 *
 * Documentation/credits.rst lists the differences from the paper and their reasons.
 */
#include <linux/jhash.h>
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/rd_core.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "xpass_rate.h"

/* After this many round trips without a request, the credit rate starts anew. */
#define XPASS_PAUSE	4

/**
 * struct xpass - the state of a connection
 * @rs: the core's part
 * @slowed: receiver: number of the last credit sent before the rate was reduced; losses of credits
 *	up to it belong to the old rate
 * @rate: receiver: the feedback control
 *
 * The socket lock protects all fields.
 */
struct xpass {
	struct rd_sock		rs;
	u32			slowed;
	struct xpass_rate	rate;
};

/**
 * struct xpass_net - the settings of a network namespace
 * @mbit: the speed of its links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 *	(net.ipv4.xpass_rate)
 * @initial: a connection begins with 1/@initial of the link's credit rate (net.ipv4.xpass_initial)
 * @pick: enum rd_pick (net.ipv4.xpass_pick)
 * @sysctl: registered as long as the namespace lives
 */
struct xpass_net {
	unsigned int		mbit;
	unsigned int		initial;
	unsigned int		pick;
	struct ctl_table_header	*sysctl;
};

static unsigned int xpass_net_id __read_mostly;

static struct xpass_net *xpass_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), xpass_net_id);
}

static struct xpass *xpass_of(struct rd_sock *rs)
{
	return container_of(rs, struct xpass, rs);
}

static const struct xpass_rate *xpass_rate_of(const struct rd_sock *rs)
{
	return &container_of(rs, struct xpass, rs)->rate;
}

/* --- its packets ----------------------------------------------------------- */

static const char * const xpass_counter_name[RD_COUNTERS] = {
	RD_COUNTER_NAMES(""),
};

static struct gl_protocol xpass_protocol;

static const struct gl_kind xpass_kind[RD_KINDS] = {
	[RD_SCHEDULED] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.flags		= GL_KIND_ECT,
		.sent		= RD_SCHEDULEDSENT,
	},
	[RD_UNSCHEDULED] = {
		.protocol	= &xpass_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.flags		= GL_KIND_NOT_ECT | GL_KIND_PROMPT,
		.sent		= RD_UNSCHEDULEDSENT,
	},
	RD_SIGNALS(&xpass_protocol, GL_CP_SCHEDULED),
};

static struct gl_protocol xpass_protocol __read_mostly = {
	.hello		= GL_CODE_CREDITS,
	.told_as	= GL_CP_SCHEDULED,
	.kind		= xpass_kind,
	.kinds		= RD_KINDS,
	.control	= &xpass_kind[RD_CONTROL],
	.answer		= &xpass_kind[RD_PROBE_ACK],
	.counter	= xpass_counter_name,
	.counters	= RD_COUNTERS,
};

/* --- its policy ------------------------------------------------------------ */

static u32 xpass_mbit(const struct sock *sk)
{
	return READ_ONCE(xpass_net(sk)->mbit);
}

static enum rd_pick xpass_pick(const struct sock *sk)
{
	return READ_ONCE(xpass_net(sk)->pick);
}

static u64 xpass_gap(const struct rd_sock *rs)
{
	return NSEC_PER_SEC / xpass_rate_of(rs)->cur;
}

/* The gap to the next credit at the connection's own rate, with a jitter of ±10 % so that
 * connections do not lose credits in lockstep.  A hash suffices, as they only have to differ;
 * unlike random numbers it keeps experiments in virtual time reproducible.  At the full rate the
 * link decides.
 */
static u64 xpass_issue(struct sock *sk, struct rd_sock *rs, u64 now, u32 wait)
{
	const struct xpass_rate *rate = xpass_rate_of(rs);
	u32 gap, any;

	rd_send_credit(sk, rs, wait);
	if (rate->cur == rate->max)
		return 0;
	gap = max_t(u32, xpass_gap(rs), 10);
	any = jhash_3words(now, (__force u32)sk->sk_daddr, (__force u32)sk->sk_portpair,
			   rs->credit);
	return gap - gap / 10 + reciprocal_scale(any, gap / 5 + 1);
}

/* A round trip has ended in which @sent credits were sent, of which the network lost @lost.  With
 * fair queueing (RD_PICK_FAIR) the connection sent them at its share of the link if that was less
 * than its rate.
 */
static void xpass_round(struct sock *sk, struct xpass *xp, u32 sent, u32 lost)
{
	u32 share = xp->rate.max / max(READ_ONCE(xp->rs.r.queue->receivers), 1U) + 1;

	if (lost && xpass_pick(sk) == RD_PICK_FAIR)
		xp->rate.cur = min(xp->rate.cur, share);
	xpass_rate_update(&xp->rate, sent, lost);
}

/* Update the rate at the end of a round trip.  Reports arrive once per minimum RTT; with queues the
 * actual RTT is longer, so a report may still describe credits sent before the last reduction.
 * Ignore such credits.
 */
static void xpass_learn(struct sock *sk, struct rd_sock *rs, u32 last, u32 came, u64 cost)
{
	struct xpass *xp = xpass_of(rs);
	u32 old, sent, rate;

	/* After a jump of the numbers an old value would seem to lie ahead. */
	if (after(xp->slowed, rs->credit))
		xp->slowed = rs->seen;
	old = after(xp->slowed, rs->seen) ? xp->slowed : rs->seen;
	sent = last - old;
	/* The administrator may have changed the link's speed. */
	xp->rate.max = max_t(u32, div64_u64(PSEC_PER_SEC, cost), 1);
	xp->rate.cur = min(xp->rate.cur, xp->rate.max);
	if (!after(last, old))
		return;
	rate = xp->rate.cur;
	xpass_round(sk, xp, sent, sent - min(came, sent));
	/* Without a reduction, move @slowed along: credit numbers wrap, and an old value would
	 * seem to lie ahead.
	 */
	xp->slowed = xp->rate.cur < rate ? rs->credit : last;
}

/* After a pause of more than XPASS_PAUSE round trips the old rate is out of date. */
static void xpass_begins(struct sock *sk, struct rd_sock *rs, u64 idle)
{
	struct xpass_rate *rate = &xpass_of(rs)->rate;

	if (!rate->cur || idle > XPASS_PAUSE * rd_srtt_ns(sk))
		xpass_rate_init(rate, READ_ONCE(xpass_net(sk)->initial));
}

static const struct rd_policy xpass_policy = {
	.mbit	= xpass_mbit,
	.pick	= xpass_pick,
	.cost	= rd_credit_ps,
	.gap	= xpass_gap,
	.issue	= xpass_issue,
	.learn	= xpass_learn,
	.begins	= xpass_begins,
};

static void xpass_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct rd_sock *rs = container_of(gs, struct rd_sock, gs);

	rd_on_info(gs, info);
	info->credit_rate = rd_is_off(&rs->r) ? 0 : xpass_rate_of(rs)->cur;
}

static struct tcp_congestion_ops xpass_reno __read_mostly = GL_RENO("xpass-reno");

static struct rd_transport xpass __read_mostly = {
	.t = {
		.ops = {
			.name	= "xpass",
			.owner	= THIS_MODULE,
		},
		.complete	= rd_complete,
		.protocol	= &xpass_protocol,
		.sock_size	= sizeof(struct xpass),
		.on_info	= xpass_on_info,
	},
	.fallback	= &xpass_reno,
	.policy		= &xpass_policy,
};

/* --- a module -------------------------------------------------------------- */

static unsigned int xpass_mbit_max = LINK_SPEED_MBIT_MAX;

static const struct ctl_table xpass_sysctl_template[] = {
	GL_SYSCTL_UINT("xpass_rate", struct xpass_net, mbit, SYSCTL_ZERO, &xpass_mbit_max),
	GL_SYSCTL_UINT("xpass_initial", struct xpass_net, initial, SYSCTL_ONE,
		       SYSCTL_ONE_THOUSAND),
	GL_SYSCTL_UINT("xpass_pick", struct xpass_net, pick, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init xpass_net_init(struct net *net)
{
	struct xpass_net *xn = net_generic(net, xpass_net_id);

	xn->initial = 16;
	xn->sysctl = gl_sysctl_add(net, xpass_sysctl_template,
				   ARRAY_SIZE(xpass_sysctl_template), xn);
	return xn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit xpass_net_exit(struct net *net)
{
	struct xpass_net *xn = net_generic(net, xpass_net_id);

	gl_sysctl_remove(xn->sysctl);
}

static struct pernet_operations xpass_net_ops = {
	.init	= xpass_net_init,
	.exit	= xpass_net_exit,
	.id	= &xpass_net_id,
	.size	= sizeof(struct xpass_net),
};

static int __init xpass_module_init(void)
{
	int err;

	/* A connection may take GL_SOCK_SIZE_MAX bytes: leave 16 of them to a wrapper (Aeolus). */
	BUILD_BUG_ON(sizeof(struct xpass) > GL_SOCK_SIZE_MAX - 16);

	err = register_pernet_subsys(&xpass_net_ops);
	if (err)
		return err;
	err = gl_register_transport(&xpass.t);
	if (err)
		unregister_pernet_subsys(&xpass_net_ops);
	return err;
}

static void __exit xpass_module_exit(void)
{
	gl_unregister_transport(&xpass.t);
	unregister_pernet_subsys(&xpass_net_ops);
}

module_init(xpass_module_init);
module_exit(xpass_module_exit);

MODULE_DESCRIPTION("ExpressPass: credit-scheduled TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
