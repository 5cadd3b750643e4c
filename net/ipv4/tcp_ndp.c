// SPDX-License-Identifier: GPL-2.0
/* NDP: TCP over switches that trim
 *
 *	Mark Handley, Costin Raiciu, Alexandru Agache, Andrei Voinescu, Andrew W. Moore,
 *	Gianni Antichi, Marcin Wójcik: "Re-architecting datacenter networks and stacks for low
 *	latency and high performance", SIGCOMM 2017
 *
 * A switch port queues few packets.  When they are too many, it cuts off the data of a packet and
 * forwards the headers first, so the receiver knows all packets that its senders have sent, and
 * *pulls* the trimmed ones at the speed of its link.
 *
 *	sender                         port                     receiver
 *	first window, d d d d d  ----> d d [h] [h] d  ------->  d d h h d
 *	marks two packets lost   <----- report, report -------  pulls two packets
 *	d d                      <------- pull, pull ---------  (round robin, paced)
 *
 * A pull is a credit of the core (include/net/rd_core.h): the receiver sends it for data that the
 * sender has requested, and for each packet that was trimmed.  It is cumulative, so a lost one
 * costs nothing if another follows.  The report of a trimmed packet (gl_trim.c) is NDP's NACK; TCP
 * acknowledges data.
 *
 * In the paper each packet that arrives pulls one, so a sender has at most its first window on the
 * way.  Here the receiver has at most a bandwidth-delay product of pulled data in flight from one
 * sender, and a few of them from all: a busy sender would collect the pulls of a whole message, and
 * send their data when the link carries others'.
 *
 * This file has the parts that are NDP's own: the codepoints of its packets, the first window, and
 * pulls without a rate.
 *
 * Documentation/ndp.rst lists the differences from the paper and their reasons.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/rd_core.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

/* Windows of a link that may be in flight, by default.  One fills the link if each sender sends at
 * once, but some are busy with other receivers: at load 80, 16 hosts, one carries 0.95 of what two
 * carry, but short flows take 0.6 of the time (results.rst, *NDP*).
 */
#define NDP_OVERCOMMIT		2

/**
 * struct ndp - the state of a connection
 * @rs: the core's part
 * @trims: the account of trimmed packets
 * @grants: receiver: the account of pulled data in flight
 *
 * The socket lock protects all fields.
 */
struct ndp {
	struct rd_sock		rs;
	struct rd_trims		trims;
	struct rd_grants	grants;
};

/**
 * struct ndp_net - the settings of a network namespace
 * @mbit: the speed of its links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 *	(net.ipv4.ndp_rate)
 * @idle: a connection may send a first window again after this idle time, ms; 0: as soon as all
 *	data that it has sent is acknowledged (net.ipv4.ndp_idle)
 * @overcommit: number of full windows of pulled data that a link may have in flight
 *	(net.ipv4.ndp_overcommit)
 * @sysctl: registered as long as the namespace lives
 */
struct ndp_net {
	unsigned int		mbit;
	unsigned int		idle;
	unsigned int		overcommit;
	struct ctl_table_header	*sysctl;
};

static unsigned int ndp_net_id __read_mostly;

static struct ndp_net *ndp_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), ndp_net_id);
}

/* --- its packets ----------------------------------------------------------- */

static const char * const ndp_counter_name[RD_COUNTERS] = {
	RD_COUNTER_NAMES("Ndp"),
};

static struct gl_protocol ndp_protocol;
static struct rd_transport ndp;

/* Pulled data of ports that drop, not trim: Aeolus's. */
#define NDP_PROTECTED	RD_KINDS
#define NDP_KINDS	(NDP_PROTECTED + 1)

/* A port trims all data alike: pulled data waits in short queues too. */
static const struct gl_kind ndp_kind[NDP_KINDS] = {
	[RD_SCHEDULED] = {
		.protocol	= &ndp_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.flags		= GL_KIND_ECT,
		.sent		= RD_SCHEDULEDSENT,
	},
	[RD_UNSCHEDULED] = {
		.protocol	= &ndp_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.flags		= GL_KIND_ECT | GL_KIND_PROMPT,
		.sent		= RD_UNSCHEDULEDSENT,
	},
	RD_SIGNALS(&ndp_protocol, GL_CP_SCHEDULED),
	[NDP_PROTECTED] = {
		.protocol	= &ndp_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.flags		= GL_KIND_ECT,
		.sent		= RD_SCHEDULEDSENT,
	},
};

static struct gl_protocol ndp_protocol __read_mostly = {
	.hello		= GL_CODE_NDP,
	.told_as	= GL_CP_UNSCHEDULED,
	.kind		= ndp_kind,
	.kinds		= NDP_KINDS,
	.control	= &ndp_kind[RD_CONTROL],
	.answer		= &ndp_kind[RD_PROBE_ACK],
	.counter	= ndp_counter_name,
	.counters	= RD_COUNTERS,
};

/* --- pulls (§3.2) ----------------------------------------------------------- */

static u32 ndp_mbit(const struct sock *sk)
{
	return READ_ONCE(ndp_net(sk)->mbit);
}

static enum rd_pick ndp_pick(const struct sock *sk)
{
	return RD_PICK_FAIR;
}

static struct rd_trims *ndp_trims(struct rd_sock *rs)
{
	return &container_of(rs, struct ndp, rs)->trims;
}

static struct rd_grants *ndp_grants(struct rd_sock *rs)
{
	return &container_of(rs, struct ndp, rs)->grants;
}

static unsigned int ndp_slots(const struct sock *sk)
{
	return READ_ONCE(ndp_net(sk)->overcommit);
}

static const struct rd_policy ndp_policy = {
	.mbit		= ndp_mbit,
	.pick		= ndp_pick,
	.cost		= rd_data_ps,
	.cumulative	= true,
	.grants		= ndp_grants,
	.slots		= ndp_slots,
	.trims		= ndp_trims,
};

/* --- the first window (§3.2) -------------------------------------------------- */

static void ndp_begin(struct sock *sk, struct gl_sock *gs, bool asked)
{
	rd_first_begin(sk, gs, asked, READ_ONCE(ndp_net(sk)->idle));
}

static const struct rd_first_rtt ndp_first = {
	.begin		= ndp_begin,
	.allow		= rd_first_left,
	.credited	= rd_first_over,
	.lost		= rd_first_over,
};

static const struct gl_kind *ndp_on_xmit(struct sock *sk, struct gl_sock *gs,
					 const struct gl_seg *seg)
{
	const struct gl_kind *kind;

	if (rd_first_sends(sk, gs, seg))
		return rd_kind(gs, RD_UNSCHEDULED);
	kind = rd_on_xmit(sk, gs, seg);
	/* aeolus_ndp is built around this transport. */
	if (gs->transport != &ndp.t && kind == rd_kind(gs, RD_SCHEDULED))
		return &ndp_kind[NDP_PROTECTED];
	return kind;
}

static void ndp_in_ack_event(struct sock *sk, u32 flags)
{
	rd_first_in_ack_event(sk, flags);
	/* TCP calls this for the handshake, too, whose peer may be without NDP. */
	if (gl_sock_locked(sk))
		gl_rack_wait(sk);
}

/* --- options ----------------------------------------------------------------- */

static const struct gl_sockopt ndp_sockopt[] = {
	RD_FIRST_BDP,
	{}
};

static struct tcp_congestion_ops ndp_reno __read_mostly = GL_RENO("ndp-reno");

static struct rd_transport ndp __read_mostly = {
	.t = {
		.ops = {
			.name		= "ndp",
			.owner		= THIS_MODULE,
			.in_ack_event	= ndp_in_ack_event,
		},
		.complete	= rd_complete,
		.protocol	= &ndp_protocol,
		.sprays		= true,
		.sock_size	= sizeof(struct ndp),
		.sockopt	= ndp_sockopt,
		.on_xmit	= ndp_on_xmit,
	},
	.fallback	= &ndp_reno,
	.policy		= &ndp_policy,
	.first		= &ndp_first,
};

/* --- a module -------------------------------------------------------------- */

static unsigned int ndp_mbit_max = LINK_SPEED_MBIT_MAX;
static unsigned int ndp_overcommit_max = 64;
static unsigned int ndp_idle_max = 3600 * MSEC_PER_SEC;

static const struct ctl_table ndp_sysctl_template[] = {
	GL_SYSCTL_UINT("ndp_rate", struct ndp_net, mbit, SYSCTL_ZERO, &ndp_mbit_max),
	GL_SYSCTL_UINT("ndp_idle", struct ndp_net, idle, SYSCTL_ZERO, &ndp_idle_max),
	GL_SYSCTL_UINT("ndp_overcommit", struct ndp_net, overcommit, SYSCTL_ONE,
		       &ndp_overcommit_max),
};

static int __net_init ndp_net_init(struct net *net)
{
	struct ndp_net *nn = net_generic(net, ndp_net_id);

	nn->overcommit = NDP_OVERCOMMIT;
	nn->sysctl = gl_sysctl_add(net, ndp_sysctl_template, ARRAY_SIZE(ndp_sysctl_template), nn);
	return nn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit ndp_net_exit(struct net *net)
{
	struct ndp_net *nn = net_generic(net, ndp_net_id);

	gl_sysctl_remove(nn->sysctl);
}

static struct pernet_operations ndp_net_ops = {
	.init	= ndp_net_init,
	.exit	= ndp_net_exit,
	.id	= &ndp_net_id,
	.size	= sizeof(struct ndp_net),
};

static int __init ndp_module_init(void)
{
	int err;

	/* Aeolus takes 16 bytes more. */
	BUILD_BUG_ON(sizeof(struct ndp) > GL_SOCK_SIZE_MAX - 16);

	err = register_pernet_subsys(&ndp_net_ops);
	if (err)
		return err;
	err = gl_register_transport(&ndp.t);
	if (err)
		unregister_pernet_subsys(&ndp_net_ops);
	return err;
}

static void __exit ndp_module_exit(void)
{
	gl_unregister_transport(&ndp.t);
	unregister_pernet_subsys(&ndp_net_ops);
}

module_init(ndp_module_init);
module_exit(ndp_module_exit);

MODULE_DESCRIPTION("NDP: TCP over switches that trim");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
