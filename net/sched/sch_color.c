// SPDX-License-Identifier: GPL-2.0-only
/*
 * A switch port that knows which packets may be lost: the `color` qdisc.
 *
 * A switch that runs out of buffer has to drop something.  If the hosts say
 * what each packet is worth, it can drop what is cheap to lose, and early, and
 * so keep room for the packets whose loss would make a sender wait for a timer:
 *
 *	 bits of the
 *	 IP header      threshold      shared buffer     limit
 *	             +-------------+  +-------------+  +--------+
 *	 red    ---->| q_r <= 270k |->|             |->|        |   one FIFO
 *	 yellow ---->| q_y <= ...  |->| q <=        |->| q <=   |-->|||||||--> line
 *	 green  ---->| q_g <= ...  |->| a (S - used)|->| limit  |      ^        ^
 *	             +------+------+  +------+------+  +---+----+      |        |
 *	                    |                |             |        CE mark   virtual
 *	              drop: color      drop: pool    drop: limit    above K   clock
 *
 * - Colour-aware dropping: "TLT: towards timeout-less transport" (EuroSys '21),
 *   sections 4.3 and 5.3.  Red is what can be lost because something protected
 *   will notice; its threshold is far below the limit, and what is in between
 *   belongs to the green packets.  One FIFO: the colours are never reordered.
 * - Selective dropping: "Aeolus: a building block for proactive transport"
 *   (SIGCOMM '20), section 3.2, is the same thing with a threshold of a few
 *   packets, compared with the whole queue (`count queue`) and, in its testbed,
 *   with the ECN field as the colour (`classify ecn`).
 * - Dynamic threshold: Choudhury and Hahne (ToN '98).  Ports of one switch share
 *   its memory; each may hold alpha times what is free.  See color_thresh.h.
 * - The line is a virtual clock (color_clock.h): exact at any rate, however late
 *   the timers.  A packet leaves the queue when its serialisation *starts*, so
 *   the packet on the line is not part of the occupancy.
 *
 * Locking.  Everything in struct color_sched_data is protected by the root lock
 * of the qdisc tree, but for the configuration, which is only written with RTNL
 * *and* that lock held, and so can be read under either.  A pool is charged by
 * ports of different trees, hence under different locks: its counters are
 * atomics.  The list of pools and the number of their ports belong to RTNL.
 */

#include <linux/module.h>
#include <linux/types.h>
#include <linux/kernel.h>
#include <linux/skbuff.h>
#include <linux/if_vlan.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/random.h>
#include <net/inet_ecn.h>
#include <net/pkt_sched.h>
#include <net/gl_compat.h>
#include <uapi/linux/pkt_color.h>

#include "color_clock.h"
#include "color_map.h"
#include "color_pool.h"
#include "color_thresh.h"

#define COLOR_MAX_VLANS	8	/* tags in a payload, VLAN_MAX_DEPTH */

/**
 * struct color_config - what the user asked for
 * @rate: of the line, bytes/s; 0 for no shaping
 * @thresh: bytes allowed to each colour, or COLOR_NO_THRESH
 * @limit: bytes allowed to the queue
 * @overhead: bytes that the line adds to each packet
 * @alpha: share of what is free in the pool, Q16
 * @ecn: when to set CE
 * @by_queue: thresholds are compared with the whole queue
 * @by_ecn: the colour is in the ECN field
 * @split_gso: queue the segments of a GSO packet one by one
 * @map: colour of each DSCP
 */
struct color_config {
	u64			rate;
	u64			thresh[__TC_COLOR_MAX];
	u32			limit;
	u32			overhead;
	u32			alpha;
	struct color_ecn	ecn;
	bool			by_queue;
	bool			by_ecn;
	bool			split_gso;
	u8			map[TC_COLOR_DSCPS];
};

/**
 * struct color_sched_data - a port
 * @cfg: what the user asked for
 * @mark_above: bytes in the queue above which CE marks begin, if they do
 * @pool: the shared buffer that it charges, or NULL
 * @peak: the most bytes that the queue has had
 * @clock: when the line is free
 * @gso_drops: packets that could not be split
 * @stats: counters by colour, a cache line each
 * @watchdog: fires when the line is free
 */
struct color_sched_data {
	/* read by every packet, written by `tc qdisc change` */
	u64			mark_above;
	struct color_pool	*pool;
	struct color_config	cfg;

	/* dirtied by every packet */
	u64			peak ____cacheline_aligned_in_smp;
	struct color_clock	clock;
	u64			gso_drops;
	struct tc_color_stats	stats[__TC_COLOR_MAX] ____cacheline_aligned_in_smp;

	struct qdisc_watchdog	watchdog;
};

/**
 * struct color_skb_cb - what the port remembers of a packet in its queue
 * @color: &enum tc_color
 */
struct color_skb_cb {
	u8	color;
};

/* Bytes in the queue: the core counts them anyway. */
static u64 color_backlog(const struct Qdisc *sch)
{
	return sch->qstats.backlog;
}

static struct color_skb_cb *color_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct color_skb_cb));
	return (struct color_skb_cb *)qdisc_skb_cb(skb)->data;
}

/* The IP header of a packet, pulled, or NULL if there is none.  The network
 * header of a packet with VLAN tags in its payload is where the first tag is,
 * or behind the last, depending on how it came here: walk.
 */
static noinline void *color_ip_hdr(struct sk_buff *skb)
{
	int depth, off = skb_network_offset(skb);
	__be16 proto = skb->protocol;
	struct ipv6hdr *ip6h;
	struct iphdr *iph;

	if (eth_type_vlan(proto))
		off = ETH_HLEN;
	for (depth = 0; eth_type_vlan(proto); depth++) {
		const struct vlan_hdr *vh;
		struct vlan_hdr _vh;

		vh = skb_header_pointer(skb, off, sizeof(_vh), &_vh);
		if (!vh || depth == COLOR_MAX_VLANS)
			return NULL;
		proto = vh->h_vlan_encapsulated_proto;
		off += VLAN_HLEN;
	}
	if (off < 0)
		return NULL;

	switch (proto) {
	case htons(ETH_P_IP):
		if (!pskb_may_pull(skb, off + sizeof(*iph)))
			return NULL;
		iph = (struct iphdr *)(skb->data + off);
		return iph->version == 4 ? iph : NULL;
	case htons(ETH_P_IPV6):
		if (!pskb_may_pull(skb, off + sizeof(*ip6h)))
			return NULL;
		ip6h = (struct ipv6hdr *)(skb->data + off);
		return ip6h->version == 6 ? ip6h : NULL;
	}
	return NULL;
}

/* TOS byte or traffic class of a packet; -1 if it has none.  The common case
 * needs no more of the skb than the cache line that knows the headers.  A
 * header is believed to be IP if it and the protocol agree.
 */
static __always_inline int color_dsfield(struct sk_buff *skb)
{
	void *h = skb_network_header(skb);
	u8 *end = skb_tail_pointer(skb);

	if (likely(skb->protocol == htons(ETH_P_IP) &&
		   h + sizeof(struct iphdr) <= (void *)end &&
		   ((struct iphdr *)h)->version == 4))
		return ipv4_get_dsfield(h);
	if (skb->protocol == htons(ETH_P_IPV6) &&
	    h + sizeof(struct ipv6hdr) <= (void *)end &&
	    ((struct ipv6hdr *)h)->version == 6)
		return ipv6_get_dsfield(h);

	h = color_ip_hdr(skb);
	if (!h)
		return -1;
	return ((struct iphdr *)h)->version == 4 ? ipv4_get_dsfield(h) :
						   ipv6_get_dsfield(h);
}

/* Set CE, if it was not there already and the packet can bear it. */
static bool color_set_ce(struct sk_buff *skb)
{
	void *h = color_ip_hdr(skb);

	if (!h)
		return false;
	if (((struct iphdr *)h)->version == 4)
		return !INET_ECN_is_ce(ipv4_get_dsfield(h)) && IP_ECN_set_ce(h);
	return !INET_ECN_is_ce(ipv6_get_dsfield(h)) && IP6_ECN_set_ce(skb, h);
}

/* The queue is full; was it the pool that stood in the way first? */
static enum tc_color_drop color_full(struct Qdisc *sch, u32 len)
{
	const struct color_sched_data *q = qdisc_priv(sch);

	if (q->pool && !color_pool_fits(q->pool->size,
					atomic64_read(&q->pool->used),
					q->cfg.alpha, color_backlog(sch), len))
		return TC_COLOR_DROP_POOL;
	return TC_COLOR_DROP_LIMIT;
}

static enum qdisc_drop_reason color_drop_reason(enum tc_color_drop why)
{
	switch (why) {
	case TC_COLOR_DROP_COLOR:
		return QDISC_DROP_BAND_LIMIT;
	case TC_COLOR_DROP_POOL:
		return QDISC_DROP_CONGESTED;
	default:
		return QDISC_DROP_OVERLIMIT;
	}
}

static noinline int color_drop(struct sk_buff *skb, struct Qdisc *sch,
			       struct tc_color_stats *st,
			       enum tc_color_drop why, struct sk_buff **to_free)
{
	st->drops[why] += qdisc_pkt_segs(skb);
	return qdisc_drop_reason(skb, sch, to_free, color_drop_reason(why));
}

/* The queue is above the ECN minimum, this packet included. */
static noinline void color_mark(struct color_sched_data *q, u64 occ,
				struct tc_color_stats *st, struct sk_buff *skb)
{
	u32 prob = color_ecn_prob(&q->cfg.ecn, occ);

	if (prob != TC_COLOR_PROB_ONE &&
	    !color_ecn_hit(prob, get_random_u32()))
		return;
	if (color_set_ce(skb))
		st->marks += qdisc_pkt_segs(skb);
}

static __always_inline int color_enqueue_one(struct sk_buff *skb,
					     struct Qdisc *sch,
					     enum tc_color color,
					     struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct tc_color_stats *st = &q->stats[color];
	const struct color_config *cfg = &q->cfg;
	u32 len = qdisc_pkt_len(skb);
	u64 occ;

	occ = cfg->by_queue ? color_backlog(sch) : st->backlog;
	if (unlikely(!color_fits(occ, len, cfg->thresh[color])))
		return color_drop(skb, sch, st, TC_COLOR_DROP_COLOR, to_free);

	occ = color_backlog(sch);
	if (unlikely(!color_fits(occ, len, cfg->limit)))
		return color_drop(skb, sch, st, color_full(sch, len), to_free);
	if (q->pool && !color_pool_charge(q->pool, cfg->alpha, occ, len))
		return color_drop(skb, sch, st, TC_COLOR_DROP_POOL, to_free);

	if (q->clock.mult && !sch->q.qlen)
		color_clock_arrive(&q->clock, ktime_get_ns());

	occ += len;
	if (unlikely(occ > q->peak))
		q->peak = occ;
	st->packets += qdisc_pkt_segs(skb);
	st->bytes += len;
	st->backlog += len;
	if (unlikely(st->backlog > st->peak_backlog))
		st->peak_backlog = st->backlog;
	if (unlikely(occ > q->mark_above))
		color_mark(q, occ, st, skb);

	color_skb_cb(skb)->color = color;
	return qdisc_enqueue_tail(skb, sch);
}

/* What a network card would put on the line, a segment at a time.  The parent
 * will count one packet for us and has to hear of the others.
 */
static noinline int color_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
					enum tc_color color,
					struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	struct color_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb), queued = 0;
	struct sk_buff *segs, *next;
	int n = 0;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		q->gso_drops += qdisc_pkt_segs(skb);
		return qdisc_drop(skb, sch, to_free);
	}

	skb_list_walk_safe(segs, segs, next) {
		u32 seg_len = segs->len;

		skb_mark_not_on_list(segs);
		qdisc_skb_set_pkt(segs, seg_len, 1);
		if (color_enqueue_one(segs, sch, color, to_free) ==
		    NET_XMIT_SUCCESS) {
			n++;
			queued += seg_len;
		}
	}

	if (n)
		qdisc_tree_reduce_backlog(sch, 1 - n, len - queued);
	consume_skb(skb);
	return n ? NET_XMIT_SUCCESS : NET_XMIT_DROP;
}

static int color_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	enum tc_color color = TC_COLOR_YELLOW;
	int ds = color_dsfield(skb);

	if (likely(ds >= 0))
		color = color_of_dsfield(q->cfg.map, q->cfg.by_ecn, ds);

	if (qdisc_pkt_segs(skb) > 1 && q->cfg.split_gso)
		return color_enqueue_split(skb, sch, color, to_free);
	return color_enqueue_one(skb, sch, color, to_free);
}

/* Is the line free for the packet at the head?  If not, be called when it is. */
static bool color_line_free(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (!q->clock.mult || q->clock.next <= ktime_get_ns())
		return true;

	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next);
	return false;
}

static struct sk_buff *color_peek(struct Qdisc *sch)
{
	struct sk_buff *skb = qdisc_peek_head(sch);

	return skb && color_line_free(sch) ? skb : NULL;
}

static struct sk_buff *color_dequeue(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 len;

	if (!qdisc_peek_head(sch) || !color_line_free(sch))
		return NULL;

	skb = qdisc_dequeue_head(sch);
	len = qdisc_pkt_len(skb);
	if (q->clock.mult)
		color_clock_advance(&q->clock, len + (u64)q->cfg.overhead *
						     qdisc_pkt_segs(skb));
	q->stats[color_skb_cb(skb)->color].backlog -= len;
	if (q->pool)
		color_pool_uncharge(q->pool, len);
	return skb;
}

static void color_reset(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	int i;

	if (q->pool)
		color_pool_uncharge(q->pool, color_backlog(sch));
	qdisc_reset_queue(sch);
	for (i = 0; i <= TC_COLOR_MAX; i++)
		q->stats[i].backlog = 0;
	q->clock.next = 0;
	q->clock.frac = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

static struct netlink_range_validation color_rate_range = {
	.max = TC_COLOR_RATE_MAX,
};

static struct netlink_range_validation color_bytes_range = {
	.max = TC_COLOR_LIMIT_MAX,
};

static struct netlink_range_validation color_size_range = {
	.min = 1,
	.max = TC_COLOR_LIMIT_MAX,
};

static struct netlink_range_validation color_alpha_range = {
	.min = 1,
	.max = TC_COLOR_ALPHA_MAX,
};

static const struct nla_policy color_policy[TCA_COLOR_MAX + 1] = {
	[TCA_COLOR_RATE64]	= NLA_POLICY_FULL_RANGE(NLA_U64, &color_rate_range),
	[TCA_COLOR_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, TC_COLOR_OVERHEAD_MAX),
	[TCA_COLOR_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_size_range),
	[TCA_COLOR_RED]		= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_YELLOW]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_GREEN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_COUNT]	= NLA_POLICY_MAX(NLA_U32, __TC_COLOR_COUNT_MAX - 1),
	[TCA_COLOR_CLASSIFY]	= NLA_POLICY_MAX(NLA_U32, __TC_COLOR_CLASSIFY_MAX - 1),
	[TCA_COLOR_MAP]		= NLA_POLICY_EXACT_LEN(TC_COLOR_DSCPS),
	[TCA_COLOR_ECN_MIN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_ECN_MAX]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_ECN_PROB]	= { .type = NLA_U32 },
	[TCA_COLOR_POOL]	= { .type = NLA_NUL_STRING,
				    .len = TC_COLOR_POOL_NAMSIZ - 1 },
	[TCA_COLOR_POOL_SIZE]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_size_range),
	[TCA_COLOR_POOL_ALPHA]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_alpha_range),
	[TCA_COLOR_SPLIT_GSO]	= NLA_POLICY_MAX(NLA_U32, 1),
};

static int color_parse_thresh(struct color_config *cfg, struct nlattr **tb,
			      struct netlink_ext_ack *extack)
{
	int i;

	for (i = 0; i <= TC_COLOR_MAX; i++) {
		struct nlattr *attr = tb[TCA_COLOR_RED + i];

		if (attr)
			cfg->thresh[i] = nla_get_u32(attr) ?: COLOR_NO_THRESH;
		if (cfg->thresh[i] == COLOR_NO_THRESH ||
		    cfg->thresh[i] <= cfg->limit)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, attr ?: tb[TCA_COLOR_LIMIT],
				    "A colour's threshold above the limit never acts");
		return -EINVAL;
	}
	return 0;
}

static int color_parse_ecn(struct color_config *cfg, struct nlattr **tb,
			   struct netlink_ext_ack *extack)
{
	struct color_ecn *e = &cfg->ecn;

	if (tb[TCA_COLOR_ECN_MIN])
		e->min = nla_get_u32(tb[TCA_COLOR_ECN_MIN]);
	if (tb[TCA_COLOR_ECN_MAX])
		e->max = nla_get_u32(tb[TCA_COLOR_ECN_MAX]);
	if (tb[TCA_COLOR_ECN_PROB])
		e->prob = nla_get_u32(tb[TCA_COLOR_ECN_PROB]);

	if (!e->prob) {
		if (!e->min && !e->max)
			return 0;
		NL_SET_ERR_MSG(extack, "ECN thresholds need a probability above 0");
		return -EINVAL;
	}
	if (e->min > e->max) {
		NL_SET_ERR_MSG(extack, "ECN minimum is above the maximum");
		return -EINVAL;
	}
	if (e->max > cfg->limit) {
		NL_SET_ERR_MSG_ATTR(extack,
				    tb[TCA_COLOR_ECN_MAX] ?: tb[TCA_COLOR_LIMIT],
				    "An ECN threshold above the limit is never reached");
		return -EINVAL;
	}
	return 0;
}

static int color_parse(struct color_config *cfg, struct nlattr **tb,
		       struct netlink_ext_ack *extack)
{
	int err;

	if (tb[TCA_COLOR_RATE64])
		cfg->rate = nla_get_u64(tb[TCA_COLOR_RATE64]);
	if (tb[TCA_COLOR_OVERHEAD])
		cfg->overhead = nla_get_u32(tb[TCA_COLOR_OVERHEAD]);
	if (tb[TCA_COLOR_LIMIT])
		cfg->limit = nla_get_u32(tb[TCA_COLOR_LIMIT]);
	if (tb[TCA_COLOR_COUNT])
		cfg->by_queue = nla_get_u32(tb[TCA_COLOR_COUNT]) ==
				TC_COLOR_COUNT_QUEUE;
	if (tb[TCA_COLOR_CLASSIFY])
		cfg->by_ecn = nla_get_u32(tb[TCA_COLOR_CLASSIFY]) ==
			      TC_COLOR_CLASSIFY_ECN;
	if (tb[TCA_COLOR_SPLIT_GSO])
		cfg->split_gso = nla_get_u32(tb[TCA_COLOR_SPLIT_GSO]);
	if (tb[TCA_COLOR_POOL_ALPHA])
		cfg->alpha = nla_get_u32(tb[TCA_COLOR_POOL_ALPHA]);

	err = color_parse_thresh(cfg, tb, extack);
	if (err)
		return err;
	err = color_parse_ecn(cfg, tb, extack);
	if (err)
		return err;

	if (tb[TCA_COLOR_MAP] &&
	    !color_map_merge(cfg->map, nla_data(tb[TCA_COLOR_MAP]))) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_MAP],
				    "A DSCP is mapped to a colour that does not exist");
		return -EINVAL;
	}
	return 0;
}

/* Nothing is touched before everything is known to be right, and no packet is
 * dropped: a queue above its new limit drains.
 */
static int color_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_COLOR_MAX + 1];
	struct color_config cfg = q->cfg;
	struct color_pool *pool, *old;
	int err;

	err = nla_parse_nested(tb, TCA_COLOR_MAX, opt, color_policy, extack);
	if (err < 0)
		return err;
	err = color_parse(&cfg, tb, extack);
	if (err)
		return err;
	pool = color_pool_get(dev_net(qdisc_dev(sch)), q->pool, tb, extack);
	if (IS_ERR(pool))
		return PTR_ERR(pool);

	sch_tree_lock(sch);
	if (cfg.rate != q->cfg.rate) {
		color_clock_set_rate(&q->clock, q->cfg.rate, cfg.rate,
				     ktime_get_ns());
		if (sch->q.qlen)
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   q->clock.next);
	}
	q->cfg = cfg;
	q->mark_above = cfg.ecn.prob ? cfg.ecn.min : U64_MAX;
	old = q->pool;
	if (pool != old) {
		q->pool = pool;
		if (pool) {
			color_pool_set_peak(pool,
					    atomic64_add_return(color_backlog(sch),
								&pool->used));
		}
		if (old)
			color_pool_uncharge(old, color_backlog(sch));
	}
	sch_tree_unlock(sch);

	color_pool_put(old);
	return 0;
}

static int color_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct color_sched_data *q = qdisc_priv(sch);
	int i;

	qdisc_watchdog_init(&q->watchdog, sch);

	/* what bfifo allows by default */
	q->cfg.limit = min_t(u64, TC_COLOR_LIMIT_MAX,
			     (u64)DEFAULT_TX_QUEUE_LEN *
			     psched_mtu(qdisc_dev(sch)));
	for (i = 0; i <= TC_COLOR_MAX; i++)
		q->cfg.thresh[i] = COLOR_NO_THRESH;
	q->mark_above = U64_MAX;
	q->cfg.alpha = TC_COLOR_ALPHA_ONE;
	q->cfg.split_gso = true;
	color_map_default(q->cfg.map);

	return opt ? color_change(sch, opt, extack) : 0;
}

static void color_destroy(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	color_pool_put(q->pool);
}

static int color_dump_thresh(const struct color_config *cfg,
			     struct sk_buff *skb)
{
	int i;

	for (i = 0; i <= TC_COLOR_MAX; i++)
		if (cfg->thresh[i] != COLOR_NO_THRESH &&
		    nla_put_u32(skb, TCA_COLOR_RED + i, cfg->thresh[i]))
			return -EMSGSIZE;
	return 0;
}

static int color_dump_ecn(const struct color_ecn *e, struct sk_buff *skb)
{
	if (e->prob &&
	    (nla_put_u32(skb, TCA_COLOR_ECN_MIN, e->min) ||
	     nla_put_u32(skb, TCA_COLOR_ECN_MAX, e->max) ||
	     nla_put_u32(skb, TCA_COLOR_ECN_PROB, e->prob)))
		return -EMSGSIZE;
	return 0;
}

static int color_dump_pool(const struct color_sched_data *q,
			   struct sk_buff *skb)
{
	if (q->pool &&
	    (nla_put_string(skb, TCA_COLOR_POOL, q->pool->name) ||
	     nla_put_u32(skb, TCA_COLOR_POOL_SIZE, q->pool->size) ||
	     nla_put_u32(skb, TCA_COLOR_POOL_ALPHA, q->cfg.alpha)))
		return -EMSGSIZE;
	return 0;
}

static int color_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct color_sched_data *q = qdisc_priv(sch);
	const struct color_config *cfg = &q->cfg;
	struct nlattr *opts;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;

	if (nla_put_u64_64bit(skb, TCA_COLOR_RATE64, cfg->rate,
			      TCA_COLOR_PAD) ||
	    nla_put_u32(skb, TCA_COLOR_OVERHEAD, cfg->overhead) ||
	    nla_put_u32(skb, TCA_COLOR_LIMIT, cfg->limit) ||
	    color_dump_thresh(cfg, skb) ||
	    nla_put_u32(skb, TCA_COLOR_COUNT,
			cfg->by_queue ? TC_COLOR_COUNT_QUEUE :
					TC_COLOR_COUNT_COLOR) ||
	    nla_put_u32(skb, TCA_COLOR_CLASSIFY,
			cfg->by_ecn ? TC_COLOR_CLASSIFY_ECN :
				      TC_COLOR_CLASSIFY_DSCP) ||
	    nla_put(skb, TCA_COLOR_MAP, sizeof(cfg->map), cfg->map) ||
	    color_dump_ecn(&cfg->ecn, skb) ||
	    color_dump_pool(q, skb) ||
	    nla_put_u32(skb, TCA_COLOR_SPLIT_GSO, cfg->split_gso)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int color_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct tc_color_xstats st = {};

	sch_tree_lock(sch);
	memcpy(st.color, q->stats, sizeof(st.color));
	st.backlog = color_backlog(sch);
	st.peak_backlog = q->peak;
	st.gso_drops = q->gso_drops;
	sch_tree_unlock(sch);

	if (q->pool) {
		st.pool_size = q->pool->size;
		st.pool_used = atomic64_read(&q->pool->used);
		st.pool_peak = atomic64_read(&q->pool->peak);
		st.pool_ports = q->pool->ports;
	}
	return gnet_stats_copy_app(d, &st, sizeof(st));
}

static struct Qdisc_ops color_qdisc_ops __read_mostly = {
	.id		=	"color",
	.priv_size	=	sizeof(struct color_sched_data),
	.enqueue	=	color_enqueue,
	.dequeue	=	color_dequeue,
	.peek		=	color_peek,
	.init		=	color_init,
	.reset		=	color_reset,
	.destroy	=	color_destroy,
	.change		=	color_change,
	.dump		=	color_dump,
	.dump_stats	=	color_dump_stats,
	.owner		=	THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("color");

static int __init color_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct tc_color_stats) != 64);
	/* a port costs a page at most */
	BUILD_BUG_ON(sizeof(struct Qdisc) + sizeof(struct color_sched_data) >
		     4096);

	err = register_pernet_subsys(&color_net_ops);
	if (err)
		return err;
	err = register_qdisc(&color_qdisc_ops);
	if (err)
		unregister_pernet_subsys(&color_net_ops);
	return err;
}

static void __exit color_module_exit(void)
{
	unregister_qdisc(&color_qdisc_ops);
	unregister_pernet_subsys(&color_net_ops);
}

module_init(color_module_init)
module_exit(color_module_exit)

MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
MODULE_DESCRIPTION("Colour-aware switch port: thresholds, shared buffer, ECN, line rate");
