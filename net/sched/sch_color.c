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
 *   packets, compared with the whole queue (`count queue`; with several bands
 *   that of the band, or `count port` for all) and, in its testbed,
 *   with the ECN field as the colour (`classify ecn`).
 * - Dynamic threshold: Choudhury and Hahne (ToN '98).  Ports of one switch share
 *   its memory; each may hold alpha times what is free.  See color_thresh.h.
 * - Bands: a port may have several FIFOs instead of one, served in strict
 *   priority, each with a shaper and a limit of packets if it likes: ExpressPass
 *   (SIGCOMM '17) wants its credits treated so.  See color_band.h.
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

#include "color_band.h"
#include "color_clock.h"
#include "color_config.h"
#include "color_map.h"
#include "color_pool.h"
#include "color_thresh.h"

#define COLOR_MAX_VLANS	8	/* tags in a payload, VLAN_MAX_DEPTH */

/**
 * struct color_sched_data - a port
 * @cfg: what the user asked for
 * @mark_above: bytes in the port above which CE marks begin, if they do
 * @pool: the shared buffer that it charges, or NULL
 * @bands: its queues, or NULL if it is one FIFO, that of the qdisc
 * @peak: the most bytes that the port has had
 * @clock: when the line is free
 * @gso_drops: packets that could not be split
 * @stats: counters by colour, a cache line each
 * @watchdog: fires when the line is free for a packet that may go
 */
struct color_sched_data {
	/* read by every packet, written by `tc qdisc change` */
	u64			mark_above;
	struct color_pool	*pool;
	struct color_bands	*bands;
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

/* Bytes in all bands: the core counts them anyway. */
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

/* The port is full; was it the pool that stood in the way first? */
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

/* The port is above the ECN minimum, this packet included. */
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

static noinline int color_drop_band(struct sk_buff *skb, struct Qdisc *sch,
				    struct color_band *band,
				    struct sk_buff **to_free)
{
	band->stats.drops += qdisc_pkt_segs(skb);
	return qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_BAND_LIMIT);
}

/* @band is NULL if the port is one FIFO. */
static __always_inline int color_enqueue_one(struct sk_buff *skb,
					     struct Qdisc *sch,
					     enum tc_color color,
					     struct color_band *band,
					     struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct tc_color_stats *st = &q->stats[color];
	const struct color_config *cfg = &q->cfg;
	u32 len = qdisc_pkt_len(skb);
	u64 occ;

	if (cfg->count == TC_COLOR_COUNT_COLOR)
		occ = st->backlog;
	else if (band && cfg->count == TC_COLOR_COUNT_QUEUE)
		occ = band->stats.backlog;
	else
		occ = color_backlog(sch);
	if (unlikely(!color_fits(occ, len, cfg->thresh[color])))
		return color_drop(skb, sch, st, TC_COLOR_DROP_COLOR, to_free);
	if (band && !color_band_fits(q->bands, band, qdisc_pkt_segs(skb)))
		return color_drop_band(skb, sch, band, to_free);

	occ = color_backlog(sch);
	if (unlikely(!color_fits(occ, len, cfg->limit)))
		return color_drop(skb, sch, st, color_full(sch, len), to_free);
	if (q->pool && !color_pool_charge(q->pool, cfg->alpha, occ, len))
		return color_drop(skb, sch, st, TC_COLOR_DROP_POOL, to_free);

	if (!band && !sch->q.qlen && q->clock.mult)
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
	if (!band)
		return qdisc_enqueue_tail(skb, sch);
	color_band_push(band, skb, len, qdisc_pkt_segs(skb));
	qdisc_qstats_backlog_inc(sch, skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	return NET_XMIT_SUCCESS;
}

/* What a network card would put on the line, a segment at a time.  The parent
 * will count one packet for us and has to hear of the others.
 */
static noinline int color_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
					enum tc_color color,
					struct color_band *band,
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
		if (color_enqueue_one(segs, sch, color, band, to_free) ==
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

/* @bands is NULL if the port is one FIFO, and known to be: the test costs. */
static __always_inline int color_enqueue_any(struct sk_buff *skb,
					     struct Qdisc *sch,
					     struct color_bands *bands,
					     struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	enum tc_color color = TC_COLOR_YELLOW;
	struct color_band *band = NULL;
	int ds = color_dsfield(skb);

	if (likely(ds >= 0))
		color = color_of_dsfield(q->cfg.map, q->cfg.by_ecn, ds);
	if (bands)
		band = color_bands_of(bands, ds);

	if (qdisc_pkt_segs(skb) > 1 && q->cfg.split_gso)
		return color_enqueue_split(skb, sch, color, band, to_free);
	return color_enqueue_one(skb, sch, color, band, to_free);
}

static noinline int color_enqueue_bands(struct sk_buff *skb, struct Qdisc *sch,
					struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	return color_enqueue_any(skb, sch, q->bands, to_free);
}

static int color_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			 struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (unlikely(q->bands))
		return color_enqueue_bands(skb, sch, to_free);
	return color_enqueue_any(skb, sch, NULL, to_free);
}

/* Is the line free for the packet at the head?  If not, be called when it is. */
static bool color_line_free(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (q->clock.next <= ktime_get_ns())
		return true;

	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next);
	return false;
}

/* The band that has the line now; @start is for color_band_advance().  If there
 * is none, be called when there is.
 */
static struct color_band *color_band_ready(struct Qdisc *sch, u64 *start)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_band *band;

	if (!sch->q.qlen)
		return NULL;
	band = color_bands_next(q->bands, &q->clock, ktime_get_ns(), start);
	if (!band) {
		qdisc_qstats_overlimit(sch);
		qdisc_watchdog_schedule_ns(&q->watchdog, *start);
	}
	return band;
}

static noinline struct sk_buff *color_peek_bands(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u64 start;

	q->bands->peeked = color_band_ready(sch, &start);
	return q->bands->peeked ? q->bands->peeked->q.head : NULL;
}

static struct sk_buff *color_peek(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_peek_head(sch);

	if (!skb)
		return q->bands ? color_peek_bands(sch) : NULL;
	return !q->clock.mult || color_line_free(sch) ? skb : NULL;
}

static void color_left(struct color_sched_data *q, const struct sk_buff *skb,
		       u32 len)
{
	q->stats[color_skb_cb(skb)->color].backlog -= len;
	if (q->pool)
		color_pool_uncharge(q->pool, len);
}

static noinline struct sk_buff *color_dequeue_bands(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_band *band;
	struct sk_buff *skb;
	u64 start, on_line;
	u32 len, segs;

	band = color_band_ready(sch, &start);
	if (!band)
		return NULL;
	band = color_bands_take(q->bands, band);

	skb = __qdisc_dequeue_head(&band->q);
	len = qdisc_pkt_len(skb);
	segs = qdisc_pkt_segs(skb);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	qdisc_qstats_backlog_dec(sch, skb);
	qdisc_bstats_update(sch, skb);
	band->stats.qlen -= segs;
	band->stats.backlog -= len;
	on_line = len + (u64)q->cfg.overhead * segs;
	color_band_advance(band, &q->clock, start, on_line, segs);
	color_bands_yield(q->bands, band, &q->clock, start, on_line);
	color_left(q, skb, len);
	return skb;
}

static struct sk_buff *color_dequeue(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	bool shaped = q->clock.mult;
	struct sk_buff *skb;
	u32 len;

	/* a port with bands never has a packet in the qdisc's own FIFO */
	if (!qdisc_peek_head(sch))
		return q->bands ? color_dequeue_bands(sch) : NULL;
	if (shaped && !color_line_free(sch))
		return NULL;

	skb = qdisc_dequeue_head(sch);
	len = qdisc_pkt_len(skb);
	if (shaped)
		color_clock_advance(&q->clock, len + (u64)q->cfg.overhead *
						     qdisc_pkt_segs(skb));
	color_left(q, skb, len);
	return skb;
}

static void color_reset(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	int i;

	if (q->pool)
		color_pool_uncharge(q->pool, color_backlog(sch));
	qdisc_reset_queue(sch);
	if (q->bands) {
		color_bands_reset(q->bands);
		WRITE_ONCE(sch->q.qlen, 0);
	}
	for (i = 0; i <= TC_COLOR_MAX; i++)
		q->stats[i].backlog = 0;
	q->clock.next = 0;
	q->clock.frac = 0;
	qdisc_watchdog_cancel(&q->watchdog);
}

/* Nothing is touched before everything is known to be right, and no packet is
 * dropped: a queue above its new limit drains.  The number of bands is another
 * thing: packets would have to go where others of their flow are not.
 */
static int color_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_COLOR_MAX + 1];
	struct color_config cfg = q->cfg;
	struct color_bands *bands = q->bands;
	struct color_band_config band_cfg;
	struct color_pool *pool;
	u64 now;
	int err;

	err = nla_parse_nested(tb, TCA_COLOR_MAX, opt, color_config_policy,
			       extack);
	if (err < 0)
		return err;
	err = color_config_parse(&cfg, tb, extack);
	if (err)
		return err;
	if (bands)
		band_cfg = bands->cfg;
	else
		color_band_config_init(&band_cfg, 1);
	err = color_band_parse(&band_cfg, cfg.rate, tb, extack);
	if (err)
		return err;
	if (band_cfg.n != (bands ? bands->cfg.n : 1)) {
		bands = NULL;
		if (band_cfg.n > 1) {
			bands = color_bands_alloc(band_cfg.n);
			if (!bands)
				return -ENOMEM;
		}
	}
	pool = color_pool_get(dev_net(qdisc_dev(sch)), q->pool, tb, extack);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto out_bands;
	}

	sch_tree_lock(sch);
	if (bands != q->bands && sch->q.qlen) {
		sch_tree_unlock(sch);
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_BANDS],
				    "The number of bands cannot change while packets are queued");
		err = -EBUSY;
		goto out_pool;
	}
	now = ktime_get_ns();
	if (cfg.rate != q->cfg.rate) {
		color_clock_set_rate(&q->clock, q->cfg.rate, cfg.rate, now);
		if (sch->q.qlen)
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   q->clock.next);
	}
	q->cfg = cfg;
	q->mark_above = cfg.ecn.prob ? cfg.ecn.min : U64_MAX;
	swap(q->bands, bands);
	if (q->bands) {
		color_bands_set(q->bands, &band_cfg, now);
		/* whoever may go earlier than before */
		if (sch->q.qlen)
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   q->clock.next);
	}
	color_pool_swap(&q->pool, &pool, color_backlog(sch));
	sch_tree_unlock(sch);

out_pool:
	color_pool_put(pool);
out_bands:
	if (bands != q->bands)
		kfree(bands);
	return err;
}

static int color_init(struct Qdisc *sch, struct nlattr *opt,
		      struct netlink_ext_ack *extack)
{
	struct color_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_init(&q->watchdog, sch);
	color_config_init(&q->cfg, qdisc_dev(sch));
	q->mark_above = U64_MAX;

	return opt ? color_change(sch, opt, extack) : 0;
}

static void color_destroy(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	qdisc_watchdog_cancel(&q->watchdog);
	color_pool_put(q->pool);
	kfree(q->bands);
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
	    color_config_dump_thresh(cfg, skb) ||
	    nla_put_u32(skb, TCA_COLOR_COUNT, cfg->count) ||
	    nla_put_u32(skb, TCA_COLOR_CLASSIFY,
			cfg->by_ecn ? TC_COLOR_CLASSIFY_ECN :
				      TC_COLOR_CLASSIFY_DSCP) ||
	    nla_put(skb, TCA_COLOR_MAP, sizeof(cfg->map), cfg->map) ||
	    color_config_dump_ecn(&cfg->ecn, skb) ||
	    color_dump_pool(q, skb) ||
	    nla_put_u32(skb, TCA_COLOR_SPLIT_GSO, cfg->split_gso) ||
	    color_bands_dump(q->bands, skb)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int color_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct tc_color_xstats st = {};
	int i;

	sch_tree_lock(sch);
	memcpy(st.color, q->stats, sizeof(st.color));
	st.backlog = color_backlog(sch);
	st.peak_backlog = q->peak;
	st.gso_drops = q->gso_drops;
	st.bands = q->bands ? q->bands->cfg.n : 0;
	for (i = 0; i < st.bands; i++)
		st.band[i] = q->bands->band[i].stats;
	sch_tree_unlock(sch);

	if (q->pool) {
		st.pool_size = q->pool->size;
		st.pool_used = atomic64_read(&q->pool->used);
		st.pool_peak = atomic64_read(&q->pool->peak);
		st.pool_ports = q->pool->ports;
	}
	return gnet_stats_copy_app(d, &st,
				   offsetof(typeof(st), band[st.bands]));
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

	err = color_pool_init();
	if (err)
		return err;
	err = register_qdisc(&color_qdisc_ops);
	if (err)
		color_pool_exit();
	return err;
}

static void __exit color_module_exit(void)
{
	unregister_qdisc(&color_qdisc_ops);
	color_pool_exit();
}

module_init(color_module_init)
module_exit(color_module_exit)

MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
MODULE_DESCRIPTION("Colour-aware switch port: thresholds, shared buffer, ECN, line rate");
