// SPDX-License-Identifier: GPL-2.0
/* Aeolus: a building block for proactive transport
 *
 *	Shuihai Hu, Wei Bai, Gaoxiong Zeng, Zilong Wang, Baochen Qiao, Kai Chen,
 *	Kun Tan, Yi Wang: "Aeolus: A Building Block for Proactive Transport in
 *	Datacenter Networks", SIGCOMM 2020; IEEE/ACM ToN 2021
 *
 * A credit transport waits a round trip for its first credit.  Aeolus uses that time:
 * it sends a bandwidth-delay product at once, as *unscheduled* packets, and a switch
 * whose queue is longer than a few packets drops them (sch_color).  Packets sent by
 * credit are *scheduled*; unscheduled packets do not delay them or push them out.
 *
 *	sender                        switch                  receiver
 *	request, u u u u u u   ----->  . . x x . x   ----->  request, u u u
 *	probe (no data)        ----------------------------->  answers immediately
 *	                       <----- credits --------------
 *	                       <----- probe ACK, SACK -------
 *	unscheduled packets not SACKed by now are lost
 *	each credit: retransmit a lost packet, else send new data, else retransmit
 *	an unscheduled packet not acknowledged yet, the last one first
 *
 * A loss is thus known after one round trip, and repaired once, by a credit.
 *
 * Aeolus wraps a credit transport and does not change it: aeolus_xpass wraps xpass,
 * aeolus_homa wraps homa, and aeolus_ndp wraps ndp, through struct rd_first_rtt.  The receivers of
 * homa and ndp permit the repair when the probe arrives, so a sender requests no credits for
 * packets that may be lost.
 *
 * Documentation/credits.rst lists the differences from the paper and their reasons.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/rd_core.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

/**
 * struct aeolus - Aeolus's state of a connection; it follows the inner transport's
 * @first_us: departure of the first probe since the last unscheduled packet, us, low 32
 *	bits of TCP's clock
 * @probe_us: the same of the last one
 * @unprobed: unscheduled packets were sent since the last probe
 * @again: the probe is to be repeated
 * @probes: probes since the last unscheduled packet, none of which is answered; at most U8_MAX
 *
 * The socket lock protects all fields.
 */
struct aeolus {
	u32			first_us;
	u32			probe_us;
	bool			unprobed;
	bool			again;
	u8			probes;
};

static struct aeolus *aeolus_of(struct gl_sock *gs)
{
	return (void *)gs + gs->transport->part;
}

static struct rd_first_burst *aeolus_burst(struct gl_sock *gs)
{
	return &rd_sock(gs)->first;
}

/**
 * struct aeolus_net - the settings of a network namespace
 * @idle: net.ipv4.aeolus_idle: a connection may burst again after this idle time, ms; 0: as
 *	soon as all data that it has sent is acknowledged
 * @probe: net.ipv4.aeolus_probe: 0 sends a plain request in place of the probe
 *	(§V-E, Figure 22)
 * @sysctl: the registered table
 */
struct aeolus_net {
	unsigned int		idle;
	unsigned int		probe;
	struct ctl_table_header	*sysctl;
};

static unsigned int aeolus_net_id __read_mostly;

static struct aeolus_net *aeolus_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), aeolus_net_id);
}

/* --- the burst (§III-A) ---------------------------------------------------- */

static void aeolus_begin(struct sock *sk, struct gl_sock *gs, bool asked)
{
	unsigned int idle = READ_ONCE(aeolus_net(sk)->idle);
	struct aeolus *ae = aeolus_of(gs);

	if (!rd_first_begin(sk, gs, asked, idle))
		return;
	/* Answers to the probes of an earlier burst do not count. */
	ae->probes = 0;
	ae->again = false;
}

/* Can TCP send more of the burst?  If not, the burst ends early: there is no more data,
 * or the peer's receive window is full.
 */
static bool aeolus_goes_on(const struct sock *sk, struct gl_sock *gs)
{
	const struct sk_buff *head = tcp_send_head(sk);
	const struct tcp_sock *tp = tcp_sk(sk);

	return rd_first_left(sk, gs) && head &&
	       !after(TCP_SKB_CB(head)->seq + min(head->len, tp->mss_cache), tcp_wnd_end(tp));
}

static bool aeolus_owes_probe(const struct aeolus *ae)
{
	return ae->unprobed || ae->again;
}

/* At the end of a burst the next request is a probe, which carries the end's sequence
 * number.  If the application writes more before the first credit arrives, the burst continues
 * and ends with another probe, whose answer counts.  With net.ipv4.aeolus_probe=0
 * the next request is a plain one; SACK then finds the losses, or aeolus_spend() retransmits the
 * packets when credits are left over.
 */
static bool aeolus_probe(struct sock *sk, struct gl_sock *gs, u32 *word)
{
	struct aeolus *ae = aeolus_of(gs);

	if (!aeolus_owes_probe(ae) || aeolus_goes_on(sk, gs))
		return false;
	if (!word)
		return true;
	/* Data that the peer's window holds back waits for credits. */
	if (tcp_send_head(sk))
		aeolus_burst(gs)->allow = 0;
	ae->probe_us = tcp_clock_us();
	if (!ae->probes)
		ae->first_us = ae->probe_us;
	ae->probes += ae->probes < U8_MAX;
	ae->unprobed = false;
	ae->again = false;
	*word = aeolus_burst(gs)->end;
	if (READ_ONCE(aeolus_net(sk)->probe))
		return true;
	/* The answer to an earlier probe is none to this request. */
	gs->asked++;
	return false;
}

static const struct gl_kind *aeolus_on_xmit(struct sock *sk, struct gl_sock *gs,
					    const struct gl_seg *seg)
{
	struct aeolus *ae = aeolus_of(gs);

	if (aeolus_burst(gs)->begun)
		gl_dupthresh_one(sk, gs);
	if (!rd_first_sends(sk, gs, seg))
		return gs->transport->inner->on_xmit(sk, gs, seg);
	ae->unprobed = true;
	ae->probes = 0;
	/* rd_min_tso_segs() sends the probe when TCP tries to send again.  Make TCP
	 * do so after this packet, or when the process has released the socket.
	 */
	gl_kick(sk, gs);
	return rd_kind(gs, RD_UNSCHEDULED);
}

/* --- repair (§III-C) -------------------------------------------------------- */

/* An unscheduled packet that is neither acknowledged, nor lost, nor retransmitted. */
static bool aeolus_is_open(const struct rd_first_burst *b, const struct sk_buff *skb)
{
	const struct tcp_skb_cb *scb = TCP_SKB_CB(skb);

	return !after(scb->end_seq, b->end) && !before(scb->seq, b->begin) &&
	       !(scb->sacked & (TCPCB_SACKED_ACKED | TCPCB_LOST | TCPCB_EVER_RETRANS));
}

/* Number of open unscheduled packets; at least @most stands for more.  The burst is the oldest data
 * in flight, so stop at its end.
 */
static u32 aeolus_waiting(const struct sock *sk, struct gl_sock *gs, u32 most)
{
	const struct rd_first_burst *b = aeolus_burst(gs);
	const struct aeolus *ae = aeolus_of(gs);
	struct rb_node *p;
	u32 n = 0;

	if ((!ae->probes && !ae->unprobed) || !before(tcp_sk(sk)->snd_una, b->end))
		return 0;
	for (p = rb_first(&sk->tcp_rtx_queue); p && n < most; p = rb_next(p)) {
		const struct sk_buff *skb = rb_to_skb(p);

		if (!before(TCP_SKB_CB(skb)->seq, b->end))
			break;
		if (aeolus_is_open(b, skb))
			n += tcp_skb_pcount(skb);
	}
	return n;
}

/* The last packet of the burst in TCP's tree of packets in flight. */
static struct rb_node *aeolus_last(struct sock *sk, const struct rd_first_burst *b)
{
	struct rb_node *p = sk->tcp_rtx_queue.rb_node, *last = NULL;

	while (p) {
		bool within = before(TCP_SKB_CB(rb_to_skb(p))->seq, b->end);

		if (within)
			last = p;
		p = within ? p->rb_right : p->rb_left;
	}
	return last;
}

/* The request is repeated, so send the probe again too. */
static void aeolus_lost(struct sock *sk, struct gl_sock *gs)
{
	struct aeolus *ae = aeolus_of(gs);

	rd_first_over(sk, gs);
	if (!before(tcp_sk(sk)->snd_una, aeolus_burst(gs)->end))
		ae->probes = 0;
	ae->again |= !!ae->probes;
}

/* Around Homa and NDP only a probe has the receiver permit the repair of packets that this end does
 * not know to be lost.
 */
static void aeolus_exact_lost(struct sock *sk, struct gl_sock *gs)
{
	aeolus_lost(sk, gs);
	aeolus_of(gs)->again |= aeolus_burst(gs)->probed && !tcp_sk(sk)->lost_out;
}

/* A credit is left over.  Declare the last open unscheduled packet lost, so that TCP
 * retransmits it: later packets are more likely to have been dropped.
 */
static bool aeolus_spend(struct sock *sk, struct gl_sock *gs)
{
	const struct rd_first_burst *b = aeolus_burst(gs);
	struct rb_node *p;

	if (!aeolus_of(gs)->probes || !before(tcp_sk(sk)->snd_una, b->end))
		return false;
	for (p = aeolus_last(sk, b); p; p = rb_prev(p)) {
		struct sk_buff *skb = rb_to_skb(p);

		if (aeolus_is_open(b, skb)) {
			gl_lose(sk, skb);
			return true;
		}
	}
	return false;
}

/* Departure of the probe, or of the first one of several: see struct aeolus. */
static u32 aeolus_left_us(const struct aeolus *ae, const struct gl_sock *gs,
			  const struct gl_seg *seg)
{
	return gl_is_answered(gs, seg, 1) ? ae->probe_us : ae->first_us;
}

/* The answer to the probe: each packet sent before the probe has arrived by now, or is
 * lost.  Of a repeated probe any answer counts: behind a long queue each probe would be repeated
 * before its own answer arrives.  TCP processes the SACK blocks of this ACK first, and then marks
 * the losses.
 */
static enum gl_verdict aeolus_on_packet(struct sock *sk, struct gl_sock *gs,
					const struct gl_kind *kind,
					const struct gl_seg *seg)
{
	u32 end = aeolus_burst(gs)->end;
	struct aeolus *ae = aeolus_of(gs);
	u64 now = tcp_clock_us();

	if (kind != rd_kind(gs, RD_PROBE_ACK))
		return gs->transport->inner->on_packet(sk, gs, kind, seg);
	if (!gl_is_answered(gs, seg, ae->probes))
		return GL_PASS;
	ae->probes = 0;
	ae->again = false;
	rd_first_over(sk, gs);
	gl_lose_before(sk, now - ((u32)now - aeolus_left_us(ae, gs, seg)), end + 1);
	rd_first_counted(gs);
	gl_kick(sk, gs);
	return GL_PASS;
}

static void aeolus_on_kick(struct sock *sk, struct gl_sock *gs)
{
	gl_lose_settle(sk);
	if (aeolus_owes_probe(aeolus_of(gs)))
		gl_xmit(sk);
	gs->transport->inner->on_kick(sk, gs);
}

static const struct rd_first_rtt aeolus_first = {
	.begin		= aeolus_begin,
	.allow		= rd_first_left,
	.waiting	= aeolus_waiting,
	.credited	= rd_first_over,
	.probe		= aeolus_probe,
	.lost		= aeolus_lost,
	.spend		= aeolus_spend,
};

/* Around Homa and NDP. */
static const struct rd_first_rtt aeolus_exact = {
	.begin		= aeolus_begin,
	.allow		= rd_first_left,
	.credited	= rd_first_over,
	.probe		= aeolus_probe,
	.lost		= aeolus_exact_lost,
};

/* --- options ----------------------------------------------------------------- */

static int aeolus_set_on(struct sock *sk, struct gl_sock *gs, int on)
{
	aeolus_burst(gs)->off = !on;
	return 0;
}

static int aeolus_get_on(const struct sock *sk, struct gl_sock *gs)
{
	return !aeolus_burst(gs)->off;
}

static const struct gl_sockopt aeolus_sockopt[] = {
	{ GREENLANE_AEOLUS, 1, .set = aeolus_set_on, .get = aeolus_get_on },
	RD_FIRST_BDP,
	{}
};

static void aeolus_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	gs->transport->inner->on_info(gs, info);
	if (container_of(gs, struct rd_sock, gs)->first.off)
		info->flags |= GREENLANE_F_OFF;
}

static void aeolus_in_ack_event(struct sock *sk, u32 flags)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	rd_in_ack_event(sk, flags);
	if (!gs)
		return;
	if (!before(tcp_sk(sk)->snd_una, aeolus_burst(gs)->end))
		aeolus_burst(gs)->probed = 0;
	gl_dupthresh_acked(sk, gs);
}

static struct tcp_congestion_ops aeolus_reno __read_mostly = GL_RENO("aeolus-reno");

static int aeolus_complete(struct gl_transport *t)
{
	const struct gl_transport *inner = container_of(t->base, struct gl_transport, ops);

	gl_nest(t, inner, sizeof(struct aeolus));
	t->protocol = inner->protocol;
	container_of(t, struct rd_transport, t)->policy =
		container_of(inner, struct rd_transport, t)->policy;
	return rd_complete(t);
}

#define AEOLUS(cc, inner, policy)					\
	{								\
		.t = {							\
			.ops = {					\
				.name		= cc,			\
				.owner		= THIS_MODULE,		\
				.in_ack_event	= aeolus_in_ack_event,	\
			},						\
			.extends	= inner,			\
			.complete	= aeolus_complete,		\
			.on_xmit	= aeolus_on_xmit,		\
			.on_packet	= aeolus_on_packet,		\
			.on_kick	= aeolus_on_kick,		\
			.on_info	= aeolus_on_info,		\
			.sockopt	= aeolus_sockopt,		\
		},							\
		.fallback	= &aeolus_reno,				\
		.first		= (policy),				\
	}

static struct rd_transport aeolus_transports[] __read_mostly = {
	AEOLUS("aeolus_xpass", "xpass", &aeolus_first),
	AEOLUS("aeolus_homa", "homa", &aeolus_exact),
	AEOLUS("aeolus_ndp", "ndp", &aeolus_exact),
};

/* --- a module ------------------------------------------------------------------ */

static unsigned int aeolus_idle_max = 3600 * MSEC_PER_SEC;

static const struct ctl_table aeolus_sysctl_template[] = {
	GL_SYSCTL_UINT("aeolus_idle", struct aeolus_net, idle, SYSCTL_ZERO, &aeolus_idle_max),
	GL_SYSCTL_UINT("aeolus_probe", struct aeolus_net, probe, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init aeolus_net_init(struct net *net)
{
	struct aeolus_net *an = net_generic(net, aeolus_net_id);

	an->probe = 1;
	an->sysctl = gl_sysctl_add(net, aeolus_sysctl_template,
				   ARRAY_SIZE(aeolus_sysctl_template), an);
	return an->sysctl ? 0 : -ENOMEM;
}

static void __net_exit aeolus_net_exit(struct net *net)
{
	struct aeolus_net *an = net_generic(net, aeolus_net_id);

	gl_sysctl_remove(an->sysctl);
}

static struct pernet_operations aeolus_net_ops = {
	.init	= aeolus_net_init,
	.exit	= aeolus_net_exit,
	.id	= &aeolus_net_id,
	.size	= sizeof(struct aeolus_net),
};

static int __init aeolus_module_init(void)
{
	int i, err;

	/* The init functions of the three inner modules leave 16 bytes of a connection's state. */
	BUILD_BUG_ON(sizeof(struct aeolus) > 16);

	err = register_pernet_subsys(&aeolus_net_ops);
	if (err)
		return err;
	for (i = 0; i < ARRAY_SIZE(aeolus_transports); i++) {
		err = gl_register_transport(&aeolus_transports[i].t);
		if (err && !i) {
			unregister_pernet_subsys(&aeolus_net_ops);
			return err;
		}
		if (err)
			pr_info("tcp_aeolus: no %s without its base (%d)\n",
				aeolus_transports[i].t.ops.name, err);
	}
	return 0;
}

static void __exit aeolus_module_exit(void)
{
	int i;

	/* One that has failed has no base. */
	for (i = 0; i < ARRAY_SIZE(aeolus_transports); i++)
		if (aeolus_transports[i].t.base)
			gl_unregister_transport(&aeolus_transports[i].t);
	unregister_pernet_subsys(&aeolus_net_ops);
}

module_init(aeolus_module_init);
module_exit(aeolus_module_exit);

MODULE_ALIAS("tcp_aeolus_xpass");
MODULE_ALIAS("tcp_aeolus_homa");
MODULE_ALIAS("tcp_aeolus_ndp");
MODULE_DESCRIPTION("Aeolus: the first RTT of credit transports");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
