// SPDX-License-Identifier: GPL-2.0
/* Homa: TCP by grants, the shortest messages first
 *
 *	Behnam Montazeri, Yilong Li, Mohammad Alizadeh, John Ousterhout: "Homa: A Receiver-Driven
 *	Low-Latency Transport Protocol Using Network Priorities", SIGCOMM 2018
 *
 * The receiver knows the rest of each message that its senders have, and grants data of the
 * shortest ones.  The arrival of their data permits more, so a few messages have a bandwidth-delay
 * product in flight at once (overcommitment): if one sender is slow, the others fill the link.
 *
 *	sender                         port                     receiver
 *	u u u u, request (n packets) --> by priority ---------->  ranks by the rest
 *	                             <---- grant, level ---------  the first few messages
 *	d d d d (in its level)       --> by priority ---------->  more grants for the rest
 *
 * The first bandwidth-delay product of a message leaves *unscheduled*, without a grant.  Eight
 * priorities of the switch keep short messages apart from long ones: the highest is for packets
 * without data, three are for unscheduled data, by the length of its message, and four for granted
 * data, by the rank of its message.
 *
 * A grant is a credit of the core (include/net/rd_core.h) that stands for several packets.  This
 * file has the parts that are Homa's own: the codepoints of the priorities, the unscheduled data,
 * and the number of messages that may have data in flight.
 *
 * Documentation/homa.rst lists the differences from the paper and their reasons.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/rd_core.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

/* Windows of a link that may be in flight, by default: the number of priorities for granted data
 * (§3.5).
 */
#define HOMA_OVERCOMMIT		4

/* Lengths of the messages whose unscheduled data is more urgent than others', bytes, by default:
 * less than a full packet of Ethernet, and 10 kB.  The paper has the receiver choose them by its
 * traffic, so that each priority has the same number of bytes (§3.4).
 */
#define HOMA_SHORT		1400
#define HOMA_MEDIUM		10000

/**
 * struct homa - the state of a connection
 * @rs: the core's part
 * @grants: receiver: the account of data in flight
 * @urgency: sender: the row of unscheduled data
 * @level: sender: the level of granted data
 *
 * The socket lock protects all fields.
 */
struct homa {
	struct rd_sock		rs;
	struct rd_grants	grants;
	u8			urgency;
	u8			level;
};

/**
 * struct homa_net - the settings of a network namespace
 * @mbit: the speed of its links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 *	(net.ipv4.homa_rate)
 * @idle: a connection may send unscheduled data again after this idle time, ms; 0: as soon as all
 *	data that it has sent is acknowledged (net.ipv4.homa_idle)
 * @overcommit: number of full windows of granted data that a link may have in flight
 *	(net.ipv4.homa_overcommit)
 * @shortest: longest message whose unscheduled data is the most urgent, bytes
 *	(net.ipv4.homa_short)
 * @medium: longest message whose unscheduled data is less urgent; of longer ones it is the least
 *	urgent, bytes (net.ipv4.homa_medium)
 * @sysctl: registered as long as the namespace lives
 */
struct homa_net {
	unsigned int		mbit;
	unsigned int		idle;
	unsigned int		overcommit;
	unsigned int		shortest;
	unsigned int		medium;
	struct ctl_table_header	*sysctl;
};

static unsigned int homa_net_id __read_mostly;

static struct homa_net *homa_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), homa_net_id);
}

static struct homa *homa_of(struct gl_sock *gs)
{
	return container_of(gs, struct homa, rs.gs);
}

/* --- its packets ----------------------------------------------------------- */

static const char * const homa_counter_name[RD_COUNTERS] = {
	RD_COUNTER_NAMES("Homa"),
};

static struct gl_protocol homa_protocol;

/* Granted data of RD_SCHEDULED is the most urgent, and unscheduled data of RD_UNSCHEDULED. */
enum homa_kind {
	HOMA_UNSCHEDULED_2 = RD_KINDS,
	HOMA_UNSCHEDULED_3,
	HOMA_SCHEDULED_2,
	HOMA_SCHEDULED_3,
	HOMA_SCHEDULED_4,
	HOMA_KINDS,
};

#define HOMA_DATA(cp, of, counter)					\
	{								\
		.protocol	= &homa_protocol,			\
		.codepoint	= (cp),					\
		.flags		= GL_KIND_ECT | (of),			\
		.sent		= (counter),				\
	}
#define HOMA_SCHEDULED(cp)	HOMA_DATA(cp, 0, RD_SCHEDULEDSENT)
#define HOMA_UNSCHEDULED(cp)	HOMA_DATA(cp, GL_KIND_PROMPT, RD_UNSCHEDULEDSENT)

static const struct gl_kind homa_kind[HOMA_KINDS] = {
	[RD_SCHEDULED]		= HOMA_SCHEDULED(GL_CP_SCHEDULED),
	[RD_UNSCHEDULED]	= HOMA_UNSCHEDULED(GL_CP_UNSCHEDULED),
	/* Packets without data precede all data (§3.4). */
	RD_SIGNALS(&homa_protocol, GL_CP_CREDIT),
	[HOMA_UNSCHEDULED_2]	= HOMA_UNSCHEDULED(GL_CP_UNSCHEDULED_2),
	[HOMA_UNSCHEDULED_3]	= HOMA_UNSCHEDULED(GL_CP_UNSCHEDULED_3),
	[HOMA_SCHEDULED_2]	= HOMA_SCHEDULED(GL_CP_SCHEDULED_2),
	[HOMA_SCHEDULED_3]	= HOMA_SCHEDULED(GL_CP_SCHEDULED_3),
	[HOMA_SCHEDULED_4]	= HOMA_SCHEDULED(GL_CP_SCHEDULED_4),
};

static struct gl_protocol homa_protocol __read_mostly = {
	.hello		= GL_CODE_HOMA,
	.told_as	= GL_CP_SCHEDULED_2,
	.kind		= homa_kind,
	.kinds		= HOMA_KINDS,
	.control	= &homa_kind[RD_CONTROL],
	.answer		= &homa_kind[RD_PROBE_ACK],
	.counter	= homa_counter_name,
	.counters	= RD_COUNTERS,
};

/* --- grants (§3.3, §3.5) ----------------------------------------------------- */

static u32 homa_mbit(const struct sock *sk)
{
	return READ_ONCE(homa_net(sk)->mbit);
}

static enum rd_pick homa_pick(const struct sock *sk)
{
	return RD_PICK_SHORTEST;
}

static struct rd_grants *homa_grants(struct rd_sock *rs)
{
	return &container_of(rs, struct homa, rs)->grants;
}

static unsigned int homa_slots(const struct sock *sk)
{
	return READ_ONCE(homa_net(sk)->overcommit);
}

static const struct rd_policy homa_policy = {
	.mbit		= homa_mbit,
	.pick		= homa_pick,
	.cost		= rd_data_ps,
	.cumulative	= true,
	.grants		= homa_grants,
	.slots		= homa_slots,
};

/* --- unscheduled data (§3.3) -------------------------------------------------- */

/* The row of an unscheduled packet, by the bytes that the application has written (§3.4).  TCP
 * sends the first packet of a long write before it has the rest.  Later packets of the message must
 * not overtake it.
 */
static u8 homa_urgency(const struct sock *sk, const struct homa *homa, const struct gl_seg *seg)
{
	bool more = seg->more && seg->end_seq == gl_data_end(sk);
	u32 bytes = gl_data_end(sk) - homa->rs.first.begin + more;
	u8 urgency = HOMA_UNSCHEDULED_3;

	if (bytes <= READ_ONCE(homa_net(sk)->shortest))
		urgency = RD_UNSCHEDULED;
	else if (bytes <= READ_ONCE(homa_net(sk)->medium))
		urgency = HOMA_UNSCHEDULED_2;
	return max(urgency, homa->urgency);
}

static void homa_begin(struct sock *sk, struct gl_sock *gs, bool asked)
{
	if (rd_first_begin(sk, gs, asked, READ_ONCE(homa_net(sk)->idle)))
		homa_of(gs)->urgency = RD_UNSCHEDULED;
}

static const struct rd_first_rtt homa_first = {
	.begin		= homa_begin,
	.allow		= rd_first_left,
	.credited	= rd_first_over,
	.lost		= rd_first_over,
};

/* Is granted data in flight?  The bands of unscheduled data precede those of granted data. */
static bool homa_has_granted(const struct tcp_sock *tp, const struct rd_first_burst *burst)
{
	if (tp->retrans_out || tp->tlp_high_seq)
		return true;
	return tp->packets_out && (before(tp->snd_una, burst->begin) ||
				   after(tp->snd_nxt, burst->end));
}

/* A grant selects the priority of the data that it permits (§3.4): the lowest that is free, so a
 * shorter message finds one above it.  The priority does not rise while granted data is in flight,
 * which would be overtaken: TCP would find it lost.
 */
static enum gl_verdict homa_on_packet(struct sock *sk, struct gl_sock *gs,
				      const struct gl_kind *kind, const struct gl_seg *seg)
{
	struct homa *homa = homa_of(gs);
	u32 word = seg->words > 1 ? seg->word[1] : 0;
	u8 level = FIELD_GET(RD_LEVEL, word);

	if (kind == rd_kind(gs, RD_CREDIT) && !(word & RD_ACCEPTED))
		homa->level = homa_has_granted(tcp_sk(sk), &homa->rs.first) ?
			      min(homa->level, level) : level;
	return rd_on_packet(sk, gs, kind, seg);
}

static const struct gl_kind *homa_on_xmit(struct sock *sk, struct gl_sock *gs,
					  const struct gl_seg *seg)
{
	static const u8 row[] = {
		HOMA_SCHEDULED_4, HOMA_SCHEDULED_3, HOMA_SCHEDULED_2, RD_SCHEDULED,
	};
	struct homa *homa = homa_of(gs);
	const struct gl_kind *kind;

	BUILD_BUG_ON(ARRAY_SIZE(row) != FIELD_MAX(RD_LEVEL) + 1);
	if (rd_first_sends(sk, gs, seg)) {
		homa->urgency = homa_urgency(sk, homa, seg);
		return &homa_kind[homa->urgency];
	}
	kind = rd_on_xmit(sk, gs, seg);
	return kind == rd_kind(gs, RD_SCHEDULED) ? &homa_kind[row[homa->level]] : kind;
}

/* --- options ----------------------------------------------------------------- */

static const struct gl_sockopt homa_sockopt[] = {
	RD_FIRST_BDP,
	{}
};

static struct tcp_congestion_ops homa_reno __read_mostly = GL_RENO("homa-reno");

static struct rd_transport homa __read_mostly = {
	.t = {
		.ops = {
			.name		= "homa",
			.owner		= THIS_MODULE,
			.in_ack_event	= rd_first_in_ack_event,
		},
		.complete	= rd_complete,
		.protocol	= &homa_protocol,
		.sock_size	= sizeof(struct homa),
		.sockopt	= homa_sockopt,
		.on_xmit	= homa_on_xmit,
		.on_packet	= homa_on_packet,
	},
	.fallback	= &homa_reno,
	.policy		= &homa_policy,
	.first		= &homa_first,
};

/* --- a module -------------------------------------------------------------- */

static unsigned int homa_mbit_max = LINK_SPEED_MBIT_MAX;
static unsigned int homa_idle_max = 3600 * MSEC_PER_SEC;
static unsigned int homa_overcommit_max = 64;

static const struct ctl_table homa_sysctl_template[] = {
	GL_SYSCTL_UINT("homa_rate", struct homa_net, mbit, SYSCTL_ZERO, &homa_mbit_max),
	GL_SYSCTL_UINT("homa_idle", struct homa_net, idle, SYSCTL_ZERO, &homa_idle_max),
	GL_SYSCTL_UINT("homa_overcommit", struct homa_net, overcommit, SYSCTL_ONE,
		       &homa_overcommit_max),
	GL_SYSCTL_UINT("homa_short", struct homa_net, shortest, SYSCTL_ZERO, SYSCTL_INT_MAX),
	GL_SYSCTL_UINT("homa_medium", struct homa_net, medium, SYSCTL_ZERO, SYSCTL_INT_MAX),
};

static int __net_init homa_net_init(struct net *net)
{
	struct homa_net *hn = net_generic(net, homa_net_id);

	hn->overcommit = HOMA_OVERCOMMIT;
	hn->shortest = HOMA_SHORT;
	hn->medium = HOMA_MEDIUM;
	hn->sysctl = gl_sysctl_add(net, homa_sysctl_template, ARRAY_SIZE(homa_sysctl_template), hn);
	return hn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit homa_net_exit(struct net *net)
{
	struct homa_net *hn = net_generic(net, homa_net_id);

	gl_sysctl_remove(hn->sysctl);
}

static struct pernet_operations homa_net_ops = {
	.init	= homa_net_init,
	.exit	= homa_net_exit,
	.id	= &homa_net_id,
	.size	= sizeof(struct homa_net),
};

static int __init homa_module_init(void)
{
	int err;

	/* Aeolus takes 16 bytes more. */
	BUILD_BUG_ON(sizeof(struct homa) > GL_SOCK_SIZE_MAX - 16);

	err = register_pernet_subsys(&homa_net_ops);
	if (err)
		return err;
	err = gl_register_transport(&homa.t);
	if (err)
		unregister_pernet_subsys(&homa_net_ops);
	return err;
}

static void __exit homa_module_exit(void)
{
	gl_unregister_transport(&homa.t);
	unregister_pernet_subsys(&homa_net_ops);
}

module_init(homa_module_init);
module_exit(homa_module_exit);

MODULE_DESCRIPTION("Homa: TCP by grants, the shortest messages first");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
