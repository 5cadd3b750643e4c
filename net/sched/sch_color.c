// SPDX-License-Identifier: GPL-2.0-only
/*
 * A switch port that knows which packets may be lost: the `color` qdisc.
 *
 * A switch that runs out of buffer has to drop packets.  If the hosts mark the
 * packets that are cheap to lose, it can drop these, and early, and so keep
 * room for the packets whose loss would make a sender wait for a timer:
 *
 *	 bits of the
 *	 IP header      threshold      shared buffer     limit
 *	             +-------------+  +-------------+  +--------+
 *	 red    ---->| q_r <= 270k |->|             |->|        |   one FIFO
 *	 yellow ---->| q_y <= ...  |->| q <=        |->| q <=   |-->|||||||--> link
 *	 green  ---->| q_g <= ...  |->| a (S - used)|->| limit  |      ^        ^
 *	             +------+------+  +------+------+  +---+----+      |        |
 *	                    |                |             |        CE mark   virtual
 *	              drop: color      drop: pool    drop: limit    above K   clock
 *
 * - Colour-aware dropping: "TLT: towards timeout-less transport" (EuroSys '21),
 *   sections 4.3 and 5.3.  Red packets can be lost, because protected packets let
 *   the sender detect their loss; red's threshold is far below the limit, and the
 *   room between the two is reserved for green packets.  One FIFO: the colours are
 *   never reordered.
 * - Selective dropping: "Aeolus: a building block for proactive transport"
 *   (SIGCOMM '20), section 3.2, is the same rule with a threshold of a few
 *   packets, compared with the whole queue (`count queue`: all bytes of the
 *   packet's band; `count port`: all bytes of the port) and, in its testbed,
 *   with the ECN field as the colour (`classify ecn`).
 * - Dynamic threshold: Choudhury and Hahne (ToN '98).  Ports of one switch share
 *   its memory; each may hold alpha times the free memory.  See color_thresh.h.
 * - Bands: a port may have several FIFOs instead of one, served in strict priority,
 *   and each band may have a shaper and a limit of packets: ExpressPass (SIGCOMM '17)
 *   needs both for its credits.  See color_band.h.
 * - Trimming: a packet that would be dropped loses its data only (NDP, SIGCOMM '17).  See
 *   color_trim.h.
 * - Pause: a port may pause the neighbour from which its packets arrive before the buffer
 *   is full, and stops when the neighbour on its own link pauses it (IEEE 802.1Qbb).  See
 *   color_pause.h.
 * - The link is a virtual clock (color_clock.c): exact at any rate, although timers are
 *   late.  A packet leaves the queue when its transmission *starts*, so the packet in
 *   transmission is not part of the occupancy.
 *
 * The straight path.  Most packets arrive at a port that is below all of its thresholds
 * and its peaks.  Two comparisons decide that (color_straight()): the bytes of the colour
 * with @own_max, and the bytes of the port with @port_max.  These two are the minimum of
 * everything that could stop a packet or needs work for it: thresholds, limit, the ECN
 * minimum, the peaks, and the bytes that the port holds of the shared buffer.  Other packets
 * take color_enqueue_slow(), which tests each of these alone.  color_refresh() computes the
 * two again when one of them changes.  So a feature that a port does not use has no cost.
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
#include <linux/moduleparam.h>
#include <linux/random.h>
#include <net/pkt_sched.h>
#include <net/gl_compat.h>
#include <net/link_speed.h>
#include <uapi/linux/pkt_color.h>

#include "color.h"
#include "color_auto.h"
#include "color_band.h"
#include "color_clock.h"
#include "color_config.h"
#include "color_int.h"
#include "color_ip.h"
#include "color_map.h"
#include "color_pause.h"
#include "color_pool.h"
#include "color_stats.h"
#include "color_thresh.h"
#include "color_trim.h"

/* The default slack of new ports.  20 us are 16 packets of 1514 bytes at 10 Gbit/s, so one timer
 * serves 16 packets; a network card delays its interrupts for about as long.
 */
static unsigned int slack = 20 * NSEC_PER_USEC;
module_param(slack, uint, 0644);
MODULE_PARM_DESC(slack, "default of the option slack, ns (20000)");

/* The default of the option catch-up is at least this: timers are not later than 50 us on a host
 * that is not overloaded, and at low rates four packets take longer than that.
 */
#define COLOR_CATCH_UP		(50 * NSEC_PER_USEC)
#define COLOR_CATCH_UP_PACKETS	4

/**
 * struct color_sched_data - a port; root lock, unless a field states otherwise
 * @unusual_in: the port has bands, a rate, pauses or `red auto`: a packet needs more work at
 *	enqueue
 * @unusual_out: the port has bands, a rate, pauses or trimmed packets: a packet needs more work at
 *	dequeue
 * @low: bytes in the port below which it returns reserved bytes to the pool; 0 without a pool
 * @seen: time of the port's last reading of the clock, ns
 * @clock: virtual clock of the link
 * @share: the shared buffer that the port charges, and the bytes that it holds there
 * @bands: its bands, or NULL if the port is one FIFO: the queue of the qdisc
 * @pause: state of pause, or NULL
 * @of: colour by DS field
 * @peak: maximum of the bytes in the port
 * @mark_above: bytes in the port above which CE marks begin, U64_MAX for never
 * @gso_drops: packets dropped because they could not be split
 * @red_refused: bytes of red packets that were refused in a window, which is @window of @tune long
 * @control_drops: pause frames of other links, dropped
 * @stats: by colour: limits of the straight path, and counters
 * @drops: drop counters by colour
 * @trim: state of trimming
 * @tel: state of `int`, the utilisation of the link
 * @tune: state of `red auto`, the automatic threshold of red
 * @cfg: configuration
 * @watchdog: fires when the next packet may be sent
 * @port: announces the rate to the transports of this host; RTNL
 */
struct color_sched_data {
	bool			unusual_in;
	bool			unusual_out;
	u64			low;
	u64			seen;
	struct color_clock	clock;
	struct color_share	share;
	struct color_bands	*bands;
	struct color_pause	*pause;
	u8			of[256];

	struct color_stats	stats[__TC_COLOR_MAX];
	struct color_drops	drops[__TC_COLOR_MAX];

	u64			peak;
	u64			mark_above;
	u64			gso_drops;
	struct color_refused	red_refused;
	u64			control_drops;
	struct color_trim	trim;
	struct color_auto	tune;
	struct color_int	tel;
	struct color_config	cfg;
	struct qdisc_watchdog	watchdog;
	struct link_speed_port	port;
};

/**
 * struct color_skb_cb - private area of a packet in the queue
 * @charged: return value of color_pause_charge(); 0 if the port did not pause at enqueue
 * @color: &enum tc_color
 * @trimmed: the packet counts in @qlen of struct color_trim
 */
struct color_skb_cb {
	unsigned long	charged;
	u8		color;
	bool		trimmed;
};

/* The occupancy of the port, bytes.  The core counts it, including requeued packets. */
static u64 color_backlog(const struct Qdisc *sch)
{
	return sch->qstats.backlog;
}

/* Bytes in the port's queues, without requeued packets. */
static u64 color_queued(const struct color_sched_data *q)
{
	u64 queued = 0;
	int i;

	for (i = 0; i <= TC_COLOR_MAX; i++)
		queued += q->stats[i].backlog;
	return queued;
}

/* The occupancy that the port's limits are compared with, bytes.  A port that pauses has promised
 * room for each byte of its links, and a requeued packet is charged to none any more.
 */
static u64 color_occupancy(struct Qdisc *sch)
{
	const struct color_sched_data *q = qdisc_priv(sch);

	return q->pause ? color_queued(q) : color_backlog(sch);
}

static struct color_skb_cb *color_skb_cb(const struct sk_buff *skb)
{
	qdisc_cb_private_validate(skb, sizeof(struct color_skb_cb));
	return (struct color_skb_cb *)qdisc_skb_cb(skb)->data;
}

/**
 * enum color_verdict - may a packet be queued?
 * @COLOR_REFUSED_COLOR: no, %TC_COLOR_DROP_COLOR
 * @COLOR_REFUSED_POOL: no, %TC_COLOR_DROP_POOL
 * @COLOR_REFUSED_LIMIT: no, %TC_COLOR_DROP_LIMIT
 * @COLOR_REFUSED_BAND: no, its band has reached its limit of packets
 * @COLOR_ADMITTED: yes
 */
enum color_verdict {
	COLOR_REFUSED_COLOR	= TC_COLOR_DROP_COLOR,
	COLOR_REFUSED_POOL	= TC_COLOR_DROP_POOL,
	COLOR_REFUSED_LIMIT	= TC_COLOR_DROP_LIMIT,
	COLOR_REFUSED_BAND,
	COLOR_ADMITTED,
};

/* The port is full.  Report the pool if it refuses the packet, too: see enum tc_color_drop. */
static enum color_verdict color_full(struct Qdisc *sch, u32 len)
{
	const struct color_sched_data *q = qdisc_priv(sch);

	if (q->share.pool &&
	    !color_share_fits(&q->share, q->cfg.alpha, color_queued(q), len))
		return COLOR_REFUSED_POOL;
	return COLOR_REFUSED_LIMIT;
}

static enum qdisc_drop_reason color_drop_reason(enum color_verdict why)
{
	switch (why) {
	case COLOR_REFUSED_POOL:
		return QDISC_DROP_CONGESTED;
	case COLOR_REFUSED_LIMIT:
		return QDISC_DROP_OVERLIMIT;
	default:
		return QDISC_DROP_BAND_LIMIT;
	}
}

/* The result for the sender.  A port that drops early has room: as from red and gred, TCP learns of
 * congestion and continues.  NET_XMIT_DROP would report that the packet was never sent, and TCP
 * would wait for its window-probe timer, 200 ms, if it has no data in flight.
 */
static int color_drop_result(enum color_verdict why)
{
	return why == COLOR_REFUSED_LIMIT ? NET_XMIT_DROP : NET_XMIT_CN;
}

/* @band: band of the packet, or NULL */
static noinline int color_drop(struct sk_buff *skb, struct Qdisc *sch, enum tc_color color,
			       struct color_band *band, enum color_verdict why,
			       struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (why == COLOR_REFUSED_BAND)
		band->stats.drops += qdisc_pkt_segs(skb);
	else
		q->drops[color].by[why] += qdisc_pkt_segs(skb);
	qdisc_drop_reason(skb, sch, to_free, color_drop_reason(why));
	return color_drop_result(why);
}

/* The port is above the ECN minimum, this packet included. */
static noinline void color_mark(struct color_sched_data *q, u64 occ,
				struct color_stats *st, struct sk_buff *skb)
{
	u32 prob = color_ecn_prob(&q->cfg.ecn, occ);

	if (prob != TC_COLOR_PROB_ONE &&
	    !color_ecn_hit(prob, get_random_u32()))
		return;
	if (color_set_ce(skb))
		st->marks += qdisc_pkt_segs(skb);
}

/* Bytes of yellow packets, and of requeued packets of any colour. */
static u64 color_auto_others(const struct Qdisc *sch, const struct color_sched_data *q)
{
	return color_backlog(sch) - q->stats[TC_COLOR_GREEN].backlog -
	       q->stats[TC_COLOR_RED].backlog;
}

/* The automatic threshold of red packets, bytes. */
static noinline u64 color_auto_red(const struct Qdisc *sch, const struct color_sched_data *q)
{
	return color_auto_thresh(&q->tune, &q->cfg, &q->share, color_queued(q),
				 q->stats[TC_COLOR_GREEN].backlog, color_auto_others(sch, q));
}

/* The threshold of red packets, bytes. */
static u64 color_red_thresh(const struct Qdisc *sch, const struct color_sched_data *q)
{
	return q->cfg.red_auto ? color_auto_red(sch, q) : q->cfg.thresh[TC_COLOR_RED];
}

/* Yellow's threshold falls to red's when red packets fill an eighth of red's: a flow that has
 * backed off holds no more.  A refused byte counts as eight queued ones: with `count queue` a
 * flow sends a few packets in a window, and all of them find the queue too long.
 */
#define COLOR_RED_WEIGHT	8
#define COLOR_REFUSED_WEIGHT	64

/* Bytes for which red packets compete with yellow ones: queued bytes and bytes refused in the last
 * window, with their weights.
 */
static u64 color_red_wants(const struct color_sched_data *q)
{
	u64 refused = color_refused_lately(&q->red_refused, jiffies, q->tune.window);

	return COLOR_RED_WEIGHT * q->stats[TC_COLOR_RED].backlog + COLOR_REFUSED_WEIGHT * refused;
}

/* The threshold of yellow packets, bytes.
 *
 * In a FIFO a flow's share of the link is its share of the buffer.  A colour marks packets that
 * are cheap to lose, not flows of lower priority; but where yellow may hold more than red, flows
 * with red packets lose packets at queue lengths that the other flows still fill, and get a tenth
 * of the link (measured: 0.8 of 9.6 Gbit/s, tlt_cubic beside cubic).  And a buffer full of yellow
 * packets has no room for green ones.  So yellow's threshold falls towards red's, in proportion to
 * the part of red's threshold that red packets fill, or would fill: without red packets yellow
 * packets may fill the buffer, and a few red packets take only a little of it.  Yellow packets may
 * always fill a bandwidth-delay product: the 6 kB of Aeolus are too little for a window.
 */
static noinline u64 color_yellow_thresh(const struct Qdisc *sch, const struct color_sched_data *q)
{
	u64 own = min_t(u64, q->cfg.thresh[TC_COLOR_YELLOW], q->cfg.limit);
	u64 red = max_t(u64, color_red_thresh(sch, q), q->tune.min);

	if (red >= own)
		return q->cfg.thresh[TC_COLOR_YELLOW];
	return own - div64_u64((own - red) * min(color_red_wants(q), red), max_t(u64, red, 1));
}

static u64 color_thresh(const struct Qdisc *sch, const struct color_sched_data *q,
			enum tc_color color)
{
	switch (color) {
	case TC_COLOR_RED:
		return color_red_thresh(sch, q);
	case TC_COLOR_YELLOW:
		return color_yellow_thresh(sch, q);
	default:
		return q->cfg.thresh[color];
	}
}

/* The threshold that the straight path uses, bytes: yellow's is the one beside many red packets. */
static u64 color_straight_thresh(const struct color_sched_data *q, enum tc_color color)
{
	const struct color_config *cfg = &q->cfg;
	u64 red = cfg->red_auto ? 0 : cfg->thresh[TC_COLOR_RED];

	if (color != TC_COLOR_YELLOW)
		return cfg->thresh[color];
	return min(cfg->thresh[color], max_t(u64, red, q->tune.min));
}

/* With `red auto` the straight path admits green packets up to the maximum of this window, and red
 * packets for which there is room even beside that many green ones.  In a pool that room can
 * change at any time, so there it admits red packets up to the minimum only.
 */
static void color_auto_refresh(struct color_sched_data *q)
{
	struct color_stats *red = &q->stats[TC_COLOR_RED], *green = &q->stats[TC_COLOR_GREEN];
	u64 thresh = q->tune.min;

	if (!q->share.pool)
		thresh = color_auto_thresh(&q->tune, &q->cfg, &q->share, 0, q->tune.top, 0);
	if (thresh == q->tune.min)
		red->own_max = min_t(u64, red->own_max, thresh);
	else
		red->port_max = min_t(u64, red->port_max, thresh);
	green->own_max = min_t(u64, green->own_max, q->tune.top);
}

/* Recompute the limits of the straight path. */
static void color_refresh(const struct Qdisc *sch, struct color_sched_data *q)
{
	const struct color_config *cfg = &q->cfg;
	u64 port = min3((u64)cfg->limit, q->mark_above, q->peak);
	int i;

	q->unusual_in = q->bands || q->clock.mult || q->pause || cfg->red_auto;
	q->unusual_out = q->bands || q->clock.mult || q->pause || q->trim.qlen;
	q->low = 0;
	if (q->share.pool) {
		port = min(port, q->share.held);
		/* The backlog is with requeued packets. */
		q->low = color_share_low(&q->share) +
			 color_backlog(sch) - color_queued(q);
	}
	for (i = 0; i <= TC_COLOR_MAX; i++) {
		u64 own = q->stats[i].peak_backlog, all = port;
		u64 thresh = color_straight_thresh(q, i);

		if (cfg->count == TC_COLOR_COUNT_COLOR)
			own = min(own, thresh);
		else if (cfg->count == TC_COLOR_COUNT_PORT || !q->bands)
			all = min(all, thresh);
		else if (thresh != COLOR_NO_THRESH)
			own = 0;	/* the slow path compares with the band's bytes */
		q->stats[i].own_max = own;
		q->stats[i].port_max = all;
	}
	if (cfg->red_auto)
		color_auto_refresh(q);
}

/* A window of `red auto` is over. */
static noinline void color_auto_next(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	color_auto_roll(&q->tune, q->stats[TC_COLOR_GREEN].backlog, jiffies);
	color_refresh(sch, q);
}

/* May a packet of @len bytes take the straight path?  See the top of the file. */
static __always_inline bool color_straight(const struct Qdisc *sch,
					   const struct color_stats *st, u64 len)
{
	return likely(st->backlog + len <= st->own_max &&
		      sch->qstats.backlog + len <= st->port_max);
}

/* Queue an admitted packet. */
static __always_inline void color_push(struct sk_buff *skb, struct Qdisc *sch,
				       struct color_stats *st, struct color_skb_cb cb,
				       struct color_bands *bands, struct color_band *band,
				       const struct color_pause *pause, u32 len, u32 segs)
{
	/* color_straight() has read both.  After a store the compiler would read them again. */
	u64 own = st->backlog + len;
	u64 all = (u64)sch->qstats.backlog + len;

	st->backlog = own;
	WRITE_ONCE(sch->qstats.backlog, all);
	/* The neighbour sent a trimmed packet in another band: pausing this one would not help. */
	if (pause && !cb.trimmed)
		cb.charged = color_pause_charge(pause, skb, band ? band - bands->band : 0,
						cb.color, len);
	color_skb_cb(skb)->charged = cb.charged;
	color_skb_cb(skb)->color = cb.color;
	color_skb_cb(skb)->trimmed = cb.trimmed;
	st->packets += segs;
	st->bytes += len;
	if (!band) {
		__qdisc_enqueue_tail(skb, &sch->q);
		return;
	}
	color_band_push(bands, band, skb, len, segs);
	WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
}

/* May a packet be queued?  If so, charge the pool.  @band is NULL if the port is one FIFO. */
static enum color_verdict color_admit(struct Qdisc *sch, const struct color_stats *st, u64 thresh,
				      const struct color_band *band, u32 len, u32 segs,
				      bool *refresh)
{
	struct color_sched_data *q = qdisc_priv(sch);
	const struct color_config *cfg = &q->cfg;
	u64 occ, queued;

	if (cfg->count == TC_COLOR_COUNT_COLOR)
		occ = st->backlog;
	else if (band && cfg->count == TC_COLOR_COUNT_QUEUE)
		occ = band->stats.backlog;
	else
		occ = color_occupancy(sch);
	if (unlikely(!color_fits(occ, len, thresh)))
		return COLOR_REFUSED_COLOR;
	if (band && !color_band_fits(band, segs))
		return COLOR_REFUSED_BAND;
	if (unlikely(!color_fits(color_occupancy(sch), len, cfg->limit)))
		return color_full(sch, len);
	if (!q->share.pool)
		return COLOR_ADMITTED;

	queued = color_queued(q);
	if (queued + len <= q->share.held)
		return COLOR_ADMITTED;
	if (!color_share_charge(&q->share, cfg->alpha, queued, len))
		return COLOR_REFUSED_POOL;
	*refresh = true;
	return COLOR_ADMITTED;
}

static int color_refuse(struct sk_buff *skb, struct Qdisc *sch, struct color_skb_cb cb,
			struct color_band *band, enum color_verdict why,
			struct sk_buff **to_free);

/* @band is NULL if the port is one FIFO. */
static int color_enqueue_one(struct sk_buff *skb, struct Qdisc *sch,
			     struct color_skb_cb cb, struct color_band *band,
			     struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_stats *st = &q->stats[cb.color];
	u32 len = qdisc_pkt_len(skb), segs = qdisc_pkt_segs(skb);
	u64 occ, thresh = color_thresh(sch, q, cb.color);
	enum color_verdict verdict;
	bool refresh = false;

	verdict = color_admit(sch, st, thresh, band, len, segs, &refresh);
	if (unlikely(verdict != COLOR_ADMITTED))
		return color_refuse(skb, sch, cb, band, verdict, to_free);

	if (!band && !qdisc_peek_head(sch) && q->clock.mult) {
		q->seen = ktime_get_ns();
		color_clock_arrive(&q->clock, q->seen);
	}
	occ = color_backlog(sch) + len;
	if (unlikely(occ > q->mark_above))
		color_mark(q, occ, st, skb);
	color_push(skb, sch, st, cb, q->bands, band, q->pause, len, segs);
	if (cb.trimmed && !q->trim.qlen++)
		refresh = true;
	if (occ > q->peak) {
		q->peak = occ;
		refresh = true;
	}
	if (st->backlog > st->peak_backlog) {
		st->peak_backlog = st->backlog;
		refresh = true;
	}
	if (q->cfg.red_auto && cb.color == TC_COLOR_GREEN)
		refresh |= color_auto_saw(&q->tune, st->backlog);
	if (refresh)
		color_refresh(sch, q);
	return NET_XMIT_SUCCESS;
}

/* Queue the segments that a network card would send.  The parent counts one packet, so correct its
 * count for the others.
 */
static noinline int color_enqueue_split(struct sk_buff *skb, struct Qdisc *sch,
					struct color_skb_cb cb,
					struct color_band *band,
					struct sk_buff **to_free)
{
	netdev_features_t features = netif_skb_features(skb);
	struct color_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb), queued = 0;
	struct sk_buff *segs, *next;
	int n = 0, ret, result = NET_XMIT_DROP;

	segs = skb_gso_segment(skb, features & ~NETIF_F_GSO_MASK);
	if (IS_ERR_OR_NULL(segs)) {
		q->gso_drops += qdisc_pkt_segs(skb);
		return qdisc_drop(skb, sch, to_free);
	}

	skb_list_walk_safe(segs, segs, next) {
		u32 seg_len = segs->len;

		skb_mark_not_on_list(segs);
		qdisc_skb_set_pkt(segs, seg_len, 1);
		ret = color_enqueue_one(segs, sch, cb, band, to_free);
		if (ret == NET_XMIT_SUCCESS) {
			n++;
			queued += seg_len;
		} else if (ret == NET_XMIT_CN) {
			result = ret;
		}
	}

	if (n)
		qdisc_tree_reduce_backlog(sch, 1 - n, len - queued);
	consume_skb(skb);
	return n ? NET_XMIT_SUCCESS : result;
}

/* Cut off the data of a refused packet, and queue the rest. */
static noinline int color_enqueue_trimmed(struct sk_buff *skb, struct Qdisc *sch,
					  struct color_skb_cb cb, struct color_band *band,
					  enum color_verdict why, struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	int ds, ret;

	/* Each segment is trimmed by itself, unless it fits. */
	if (skb_is_gso(skb))
		return color_enqueue_split(skb, sch, cb, band, to_free);
	if (q->trim.qlen >= q->cfg.trim.limit) {
		q->trim.limited++;
		return color_drop(skb, sch, cb.color, band, why, to_free);
	}
	if (!color_trim_skb(&q->cfg.trim, skb)) {
		q->trim.unfit++;
		return color_drop(skb, sch, cb.color, band, why, to_free);
	}

	q->drops[cb.color].trims++;
	qdisc_skb_set_pkt(skb, skb->len, 1);
	ds = color_dsfield(skb);
	cb.color = q->of[ds];
	cb.trimmed = true;
	if (band)
		band = color_bands_of(q->bands, ds);
	len -= qdisc_pkt_len(skb);
	ret = color_enqueue_one(skb, sch, cb, band, to_free);
	/* The parent counts the bytes of the packet with its data. */
	if (ret == NET_XMIT_SUCCESS)
		qdisc_tree_reduce_backlog(sch, 0, len);
	return ret;
}

/* There is no room for a packet: trim or drop it. */
static int color_refuse(struct sk_buff *skb, struct Qdisc *sch, struct color_skb_cb cb,
			struct color_band *band, enum color_verdict why,
			struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	bool trim = color_trims_color(&q->cfg.trim, cb.color) && !cb.trimmed;

	/* A GSO packet is split before it is trimmed, and then its segments count. */
	if (cb.color == TC_COLOR_RED && !(trim && skb_is_gso(skb)))
		color_refused_add(&q->red_refused, qdisc_pkt_len(skb), jiffies, q->tune.window);
	if (trim)
		return color_enqueue_trimmed(skb, sch, cb, band, why, to_free);
	return color_drop(skb, sch, cb.color, band, why, to_free);
}

/* Has a frame with the address of pause frames arrived by another link?  A bridge does not forward
 * such frames (IEEE 802.1Q, 8.6.3).  Redirection by tc does, and the next switch would take the
 * frame for one that this switch has sent.
 */
static bool color_is_mac_control(const struct sk_buff *skb)
{
	return skb->skb_iif && skb_headlen(skb) >= ETH_HLEN &&
	       ether_addr_equal_unaligned(skb->data, color_pfc_address);
}

/* Packets that the straight path does not admit: GSO packets, packets whose IP header is not where
 * it should be, and packets that reach a threshold, the limit, the ECN minimum, a peak, the bytes
 * that the port holds of the pool, or an idle link.
 */
static noinline int color_enqueue_slow(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_skb_cb cb = { .color = TC_COLOR_YELLOW };
	struct color_band *band = NULL;
	int ds = color_dsfield(skb);

	if (likely(ds >= 0)) {
		cb.color = q->of[ds];
	} else if (unlikely(color_is_mac_control(skb))) {
		q->control_drops++;
		return qdisc_drop(skb, sch, to_free);
	}
	if (q->bands)
		band = color_bands_of(q->bands, ds);

	if (qdisc_pkt_segs(skb) > 1 && color_config_splits(&q->cfg))
		return color_enqueue_split(skb, sch, cb, band, to_free);
	return color_enqueue_one(skb, sch, cb, band, to_free);
}

/* The straight path.  @bands is NULL if the port is one FIFO, @pause if it does not pause. */
static __always_inline int color_enqueue_straight(struct sk_buff *skb, struct Qdisc *sch,
						  struct color_bands *bands,
						  const struct color_pause *pause,
						  struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);
	int ds = color_dsfield_straight(skb);
	u32 len = qdisc_pkt_len(skb);
	struct color_stats *st;
	struct color_band *band;
	struct color_skb_cb cb;

	if (unlikely(ds < 0 || !gl_qdisc_one_segment(skb)))
		return color_enqueue_slow(skb, sch, to_free);
	cb = (struct color_skb_cb){ .color = q->of[ds] };
	band = bands ? color_bands_of(bands, ds) : NULL;
	st = &q->stats[cb.color];
	if (!color_straight(sch, st, len) ||
	    (band && !color_band_fits(band, 1)))
		return color_enqueue_slow(skb, sch, to_free);
	color_push(skb, sch, st, cb, bands, band, pause, len, 1);
	return NET_XMIT_SUCCESS;
}

/* A function of its own, so that ports without pause save fewer registers. */
static noinline int color_enqueue_pausing(struct sk_buff *skb, struct Qdisc *sch,
					  struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	return color_enqueue_straight(skb, sch, q->bands, q->pause, to_free);
}

static noinline int color_enqueue_bands(struct sk_buff *skb, struct Qdisc *sch,
					struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (unlikely(q->pause))
		return color_enqueue_pausing(skb, sch, to_free);
	return color_enqueue_straight(skb, sch, q->bands, NULL, to_free);
}

static noinline int color_enqueue_unusual(struct sk_buff *skb, struct Qdisc *sch,
					  struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	/* The link may have been idle: read the clock. */
	if (q->clock.mult && !qdisc_peek_head(sch))
		return color_enqueue_slow(skb, sch, to_free);
	if (unlikely(q->pause))
		return color_enqueue_pausing(skb, sch, to_free);
	return color_enqueue_straight(skb, sch, NULL, NULL, to_free);
}

/* The packet is the first of a window of `red auto`. */
static noinline int color_enqueue_next(struct sk_buff *skb, struct Qdisc *sch,
				       struct sk_buff **to_free)
{
	color_auto_next(sch);
	return color_enqueue(skb, sch, to_free);
}

/* The straight path calls other functions only as its last act.  The compiler makes jumps of such
 * calls, so the path needs no stack frame.  color_dequeue() likewise.
 */
int color_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (unlikely(q->unusual_in)) {
		if (q->cfg.red_auto && color_auto_due(&q->tune, jiffies))
			return color_enqueue_next(skb, sch, to_free);
		return q->bands ? color_enqueue_bands(skb, sch, to_free) :
				  color_enqueue_unusual(skb, sch, to_free);
	}
	return color_enqueue_straight(skb, sch, NULL, NULL, to_free);
}
EXPORT_SYMBOL_GPL(color_enqueue);

/* Arm the timer for @until, the time at which the port may send next. */
static void color_wait(struct Qdisc *sch, u64 until)
{
	struct color_sched_data *q = qdisc_priv(sch);

	qdisc_qstats_overlimit(sch);
	qdisc_watchdog_schedule_range_ns(&q->watchdog, until, q->cfg.slack);
}

/* Maximum time for which the port catches up when it is served late, ns.  @clock is the link's; if
 * the link has no rate, the band's.  @len is the length of the longest packet, in its units.
 */
static u64 color_catch_up(const struct color_config *cfg, const struct color_clock *clock, u64 len)
{
	if (cfg->catch_up)
		return cfg->catch_up;
	return max3((u64)COLOR_CATCH_UP, 2 * (u64)cfg->slack,
		    COLOR_CATCH_UP_PACKETS * color_clock_ns(clock, len));
}

/* Bytes of the device's longest packet on the link.  The MTU may change at any time. */
static u64 color_packet(const struct Qdisc *sch, const struct color_config *cfg)
{
	return psched_mtu(qdisc_dev(sch)) + (u64)cfg->overhead;
}

/* Is the link free for the packet at the head?  It was not when the port read the clock last, so
 * read it again; arm the timer if the link is still busy.
 */
static noinline bool color_line_free(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	q->seen = ktime_get_ns();
	if (q->clock.next > q->seen) {
		color_wait(sch, q->clock.next);
		return false;
	}
	color_clock_catch_up(&q->clock, q->seen,
			     color_catch_up(&q->cfg, &q->clock, color_packet(sch, &q->cfg)));
	return true;
}

/* Select the band that may send now; if there is no such band, arm the timer and return NULL.
 * @start is for color_band_advance().  Not all bands are empty.
 */
static struct color_band *color_band_ready(struct Qdisc *sch, u64 *start)
{
	struct color_sched_data *q = qdisc_priv(sch);
	const struct color_clock *clock = &q->clock;
	struct color_band *band;
	u64 catch_up, packet;

	if (!q->bands->timed)
		return color_bands_head(q->bands);
	/* If the first band with a packet may send, a later time gives the same result. */
	band = color_bands_next(q->bands, &q->clock, q->seen, start);
	if (band && band == color_bands_head(q->bands))
		return band;

	q->seen = ktime_get_ns();
	band = color_bands_next(q->bands, &q->clock, q->seen, start);
	if (!band) {
		color_wait(sch, *start);
		return NULL;
	}
	packet = color_packet(sch, &q->cfg);
	if (!clock->mult) {
		clock = &band->clock;
		packet = band->by_packet ? 1 : packet;
	}
	catch_up = color_catch_up(&q->cfg, clock, packet);
	if (q->seen > catch_up)
		*start = max(*start, q->seen - catch_up);
	return band;
}

/* The same for a port that pauses, without the bands that the neighbour has paused. */
static noinline struct color_band *color_band_unpaused(struct Qdisc *sch, u64 *start)
{
	struct color_sched_data *q = qdisc_priv(sch);
	unsigned long busy = q->bands->busy, paused;
	struct color_band *band = NULL;
	u64 end;

	paused = color_pause_bands(q->pause, q->bands, &q->seen, &end);
	*start = U64_MAX;
	q->bands->busy = busy & ~paused;
	if (q->bands->busy)
		band = color_band_ready(sch, start);
	q->bands->busy = busy;
	if (!band && end < *start)
		color_wait(sch, end);
	return band;
}

static struct color_band *color_band_next(struct Qdisc *sch, u64 *start)
{
	struct color_sched_data *q = qdisc_priv(sch);

	return unlikely(q->pause) ? color_band_unpaused(sch, start) : color_band_ready(sch, start);
}

/* Has the neighbour paused the FIFO of this port?  If so, arm the timer for the end of the pause.
 * The link does not catch up for the time in which it was paused.
 */
static noinline bool color_paused(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u64 end = color_pause_end(q->pause, 0);

	if (end > q->seen)
		q->seen = ktime_get_ns();
	if (end > q->seen) {
		/* a packet that the parent has peeked at must be dequeued next */
		if (q->pause->peeked)
			return false;
		color_wait(sch, end);
		return true;
	}
	color_clock_arrive(&q->clock, end);
	return false;
}

static noinline struct sk_buff *color_peek_bands(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u64 start;

	if (!q->bands->busy)
		return NULL;
	q->bands->peeked = color_band_next(sch, &start);
	return q->bands->peeked ? q->bands->peeked->q.head : NULL;
}

static struct sk_buff *color_peek(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = qdisc_peek_head(sch);

	if (!skb)
		return q->bands ? color_peek_bands(sch) : NULL;
	if (unlikely(q->pause) && color_paused(sch))
		return NULL;
	if (q->clock.next > q->seen && !color_line_free(sch))
		return NULL;
	if (unlikely(q->pause))
		q->pause->peeked = true;
	return skb;
}

/* The queue is short, or empty: return the bytes that are not needed to the pool. */
static noinline void color_release(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	color_share_release(&q->share, color_queued(q));
	color_refresh(sch, q);
}

/* The queue is empty.  The dequeue of its last packet did not release the pool if requeued packets
 * counted in the backlog at that time.
 */
static void color_empty(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (q->share.held)
		color_release(sch);
}

static noinline void color_left_trimmed(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (!--q->trim.qlen)
		color_refresh(sch, q);
}

/* Account a packet that an unusual port has dequeued. */
static __always_inline void color_left(struct Qdisc *sch, const struct sk_buff *skb, u32 len)
{
	struct color_sched_data *q = qdisc_priv(sch);
	const struct color_skb_cb *cb = color_skb_cb(skb);

	q->stats[cb->color].backlog -= len;
	if (unlikely(cb->trimmed))
		color_left_trimmed(sch);
	if (unlikely(q->pause))
		color_pause_uncharge(cb->charged, len);
}

/* A packet's transmission starts at @start: account it, and write the utilisation if requested. */
static noinline void color_tell(struct Qdisc *sch, struct sk_buff *skb, u64 start)
{
	struct color_sched_data *q = qdisc_priv(sch);
	void *h = color_ip_hdr(skb);

	color_int_sent(&q->tel, start,
		       qdisc_pkt_len(skb) + (u64)q->cfg.overhead * qdisc_pkt_segs(skb));
	if (h && color_int_stamp(&q->tel, skb, h, color_queued(q)))
		q->tel.stamped += qdisc_pkt_segs(skb);
}

/* A packet was dequeued, and the port holds more of the pool than it needs. */
static noinline struct sk_buff *color_dequeue_low(struct Qdisc *sch, struct sk_buff *skb)
{
	color_release(sch);
	return skb;
}

static noinline void color_yield(struct color_sched_data *q, const struct color_band *band,
				 u64 start, u64 on_line)
{
	color_bands_yield(q->bands, band, &q->clock, start, on_line);
}

/* The transmission of a packet of a band starts at @start. */
static __always_inline void color_band_sent(struct Qdisc *sch, struct color_band *band,
					    struct sk_buff *skb, u64 start, u32 len, u32 segs)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u64 on_line = len + (u64)q->cfg.overhead * segs;

	color_band_advance(band, &q->clock, start, on_line, segs);
	if (unlikely(q->bands->yielding))
		color_yield(q, band, start, on_line);
	if (unlikely(q->cfg.int_rtt))
		color_tell(sch, skb, start);
}

static noinline struct sk_buff *color_dequeue_bands(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_bands *bands = q->bands;
	struct color_band *band;
	struct sk_buff *skb;
	u32 len, segs, backlog;
	u64 start = q->clock.next, later;

	if (unlikely(!bands->busy)) {
		color_empty(sch);
		return NULL;
	}
	band = color_bands_head(bands);
	if (unlikely(q->pause) ||
	    (bands->timed && !color_bands_due(band, &q->clock, q->seen))) {
		band = color_band_next(sch, &later);
		if (!band)
			return NULL;
		start = later;
	}
	band = color_bands_take(bands, band);

	skb = band->q.head;
	len = qdisc_pkt_len(skb);
	segs = qdisc_pkt_segs(skb);
	backlog = sch->qstats.backlog - len;
	WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	WRITE_ONCE(sch->qstats.backlog, backlog);
	_bstats_update(&sch->bstats, len, segs);
	color_band_pop(bands, band, len, segs);
	color_left(sch, skb, len);
	if (bands->timed)
		color_band_sent(sch, band, skb, start, len, segs);
	if (unlikely(backlog < q->low))
		return color_dequeue_low(sch, skb);
	return skb;
}

static noinline struct sk_buff *color_dequeue_unusual(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u64 start;
	u32 len;

	if (unlikely(!qdisc_peek_head(sch))) {
		color_empty(sch);
		return NULL;
	}
	if (unlikely(q->pause) && color_paused(sch))
		return NULL;
	/* never true without a rate */
	if (q->clock.next > q->seen && !color_line_free(sch))
		return NULL;

	skb = qdisc_dequeue_head(sch);
	len = qdisc_pkt_len(skb);
	if (unlikely(q->pause))
		q->pause->peeked = false;
	start = q->clock.next;
	if (q->clock.mult)
		color_clock_advance(&q->clock, len + (u64)q->cfg.overhead *
						     qdisc_pkt_segs(skb));
	color_left(sch, skb, len);
	if (q->cfg.int_rtt)
		color_tell(sch, skb, start);
	if (unlikely(color_backlog(sch) < q->low))
		color_release(sch);
	return skb;
}

static noinline struct sk_buff *color_dequeue_empty(struct Qdisc *sch)
{
	color_empty(sch);
	return NULL;
}

struct sk_buff *color_dequeue(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb;
	u32 len, backlog;

	if (unlikely(q->unusual_out))
		return q->bands ? color_dequeue_bands(sch) : color_dequeue_unusual(sch);
	if (unlikely(!sch->q.head))
		return color_dequeue_empty(sch);
	skb = __qdisc_dequeue_head(&sch->q);
	len = qdisc_pkt_len(skb);
	backlog = sch->qstats.backlog - len;
	WRITE_ONCE(sch->qstats.backlog, backlog);
	q->stats[color_skb_cb(skb)->color].backlog -= len;
	qdisc_bstats_update(sch, skb);
	if (unlikely(backlog < q->low))
		return color_dequeue_low(sch, skb);
	return skb;
}
EXPORT_SYMBOL_GPL(color_dequeue);

static void color_uncharge_list(const struct qdisc_skb_head *list)
{
	struct sk_buff *skb;

	for (skb = list->head; skb; skb = skb->next) {
		color_pause_uncharge(color_skb_cb(skb)->charged, qdisc_pkt_len(skb));
		color_skb_cb(skb)->charged = 0;
	}
}

/* Uncharge all queued packets. */
static void color_uncharge_all(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	u32 i;

	color_uncharge_list(&sch->q);
	for (i = 0; q->bands && i < q->bands->cfg.n; i++)
		color_uncharge_list(&q->bands->band[i].q);
}

/* Replace the port's state of pause.  Return: the old state. */
static struct color_pause *color_move_pause(struct Qdisc *sch, struct color_pause *pause)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_pause *before = q->pause;

	if (before && !pause)
		color_uncharge_all(sch);
	else if (before)
		pause->peeked = before->peeked;
	q->pause = pause;
	return before;
}

static void color_reset(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	int i;

	if (q->pause) {
		color_uncharge_all(sch);
		q->pause->peeked = false;
	}
	qdisc_reset_queue(sch);
	if (q->bands) {
		color_bands_reset(q->bands);
		WRITE_ONCE(sch->q.qlen, 0);
	}
	for (i = 0; i <= TC_COLOR_MAX; i++)
		q->stats[i].backlog = 0;
	q->trim.qlen = 0;
	if (q->share.pool)
		color_share_release(&q->share, 0);
	q->clock.next = 0;
	q->clock.frac = 0;
	color_auto_reset(&q->tune, 0);
	color_refresh(sch, q);
	qdisc_watchdog_cancel(&q->watchdog);
}

/* The pool has a new size, or keeps no reserves from now on: each of its ports returns its own. */
static void color_resized(struct color_pool *pool)
{
	struct color_sched_data *q;

	ASSERT_RTNL();
	list_for_each_entry(q, &pool->shares, share.entry) {
		struct Qdisc *sch = q->watchdog.qdisc;

		sch_tree_lock(sch);
		color_share_give_back(&q->share, color_queued(q));
		color_refresh(sch, q);
		sch_tree_unlock(sch);
	}
}

/* The properties of a port with this configuration that decide how much it can queue. */
static struct color_pause_port color_pause_port_of(struct Qdisc *sch,
						   const struct color_config *cfg,
						   const struct color_band_config *bands,
						   const struct color_pool *pool)
{
	const struct color_sched_data *q = qdisc_priv(sch);
	const struct net_device *dev = qdisc_dev(sch);
	struct color_pause_port port = {
		.rate		= min(cfg->rate, TC_COLOR_RATE_MAX),
		.others		= color_config_others(cfg, bands->n),
		.trimmed	= color_trim_most(&cfg->trim),
		.green		= cfg->thresh[TC_COLOR_GREEN],
		.count		= cfg->count,
		.pool		= pool,
		.share		= &q->share,
		.fill		= {
			.limit	= cfg->limit,
			.alpha	= cfg->alpha,
			.dev	= color_config_splits(cfg) ? dev : NULL,
			.packet	= color_gso_max(dev),
		},
		.overhead	= cfg->overhead,
		.burst		= cfg->catch_up ?: cfg->slack,
		.bands		= bands->n,
	};

	memcpy(port.band_limit, bands->limit, sizeof(port.band_limit));
	return port;
}

/* All attributes are checked before any state changes, and no packet is dropped: a
 * queue above its new limit drains.  The number of bands cannot change while packets
 * are queued: they would have to be moved, and a flow would be reordered.
 */
static int color_change(struct Qdisc *sch, struct nlattr *opt,
			struct netlink_ext_ack *extack)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct nlattr *tb[TCA_COLOR_MAX + 1];
	struct color_config cfg = q->cfg;
	struct color_bands *bands = q->bands;
	struct color_band_config band_cfg;
	struct color_pool *pool;	/* the new one, after the commit the old one */
	struct color_pause *pause;	/* likewise */
	struct color_pause_port port;
	bool resized, was_auto = q->cfg.red_auto;
	u64 now;
	int err;

	err = nla_parse_nested(tb, TCA_COLOR_MAX, opt, color_config_policy,
			       extack);
	if (err < 0)
		return err;
	err = color_config_parse(&cfg, psched_mtu(qdisc_dev(sch)), tb, extack);
	if (err)
		return err;
	err = color_trim_parse(&cfg.trim, tb, extack);
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
	pool = color_pool_get(dev_net(qdisc_dev(sch)), q->share.pool, tb, extack);
	if (IS_ERR(pool)) {
		err = PTR_ERR(pool);
		goto out_bands;
	}
	port = color_pause_port_of(sch, &cfg, &band_cfg, pool);
	pause = color_pause_get(sch, q->pause, &port, color_pool_new_size(pool, tb), tb, extack);
	if (IS_ERR(pause)) {
		err = PTR_ERR(pause);
		goto out_pool;
	}

	sch_tree_lock(sch);
	if (bands != q->bands && sch->q.qlen) {
		sch_tree_unlock(sch);
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_BANDS],
				    "The number of bands cannot change while packets are queued");
		err = -EBUSY;
		goto out_pause;
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
	color_map_spread(q->of, cfg.map, cfg.by_ecn);
	color_int_set(&q->tel, &cfg);
	color_auto_set(&q->tune, &cfg, psched_mtu(qdisc_dev(sch)));
	if (!was_auto)
		color_auto_reset(&q->tune, q->stats[TC_COLOR_GREEN].backlog);
	swap(q->bands, bands);
	if (q->bands) {
		color_bands_set(q->bands, &band_cfg, q->clock.mult, now);
		/* a band may be allowed to send earlier than before */
		if (sch->q.qlen)
			qdisc_watchdog_schedule_ns(&q->watchdog,
						   q->clock.next);
	}
	resized = color_pool_resize(pool, tb);
	pool = color_share_move(&q->share, pool, color_queued(q));
	/* alpha may have changed */
	if (q->share.pool)
		color_share_give_back(&q->share, color_queued(q));
	pause = color_move_pause(sch, pause);
	q->share.fill = port.fill;
	if (q->pause)
		q->share.fill.limit = 0;
	color_refresh(sch, q);
	sch_tree_unlock(sch);
	link_speed_port_set(&q->port, sch, cfg.rate);
	color_pause_commit(q->pause, pause);
	/* bands that were paused may not be any more */
	if (pause && sch->q.qlen)
		qdisc_watchdog_schedule_ns(&q->watchdog, q->clock.next);
	if (color_pool_set_exact(q->share.pool) || resized)
		color_resized(q->share.pool);
	if (q->pause || pause || q->share.pool || pool)
		color_pause_update_net(dev_net(qdisc_dev(sch)));

out_pause:
	color_pause_put(pause);
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
	color_config_init(&q->cfg, qdisc_dev(sch),
			  min(READ_ONCE(slack), TC_COLOR_SLACK_MAX));
	color_trim_config_init(&q->cfg.trim);
	q->mark_above = U64_MAX;
	color_map_spread(q->of, q->cfg.map, q->cfg.by_ecn);
	color_auto_set(&q->tune, &q->cfg, psched_mtu(qdisc_dev(sch)));
	color_refresh(sch, q);

	return opt ? color_change(sch, opt, extack) : 0;
}

static void color_destroy(struct Qdisc *sch)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct color_pool *pool;

	qdisc_watchdog_cancel(&q->watchdog);
	link_speed_port_clear(&q->port);
	pool = color_share_move(&q->share, NULL, 0);
	color_pause_put(q->pause);
	/* The device may be in another namespace by now. */
	if (pool && !q->pause)
		color_pause_update_net(pool->net);
	color_pool_put(pool);
	kfree(q->bands);
}

static int color_dump_pool(const struct color_sched_data *q,
			   struct sk_buff *skb)
{
	const struct color_pool *pool = q->share.pool;

	if (pool &&
	    (nla_put_string(skb, TCA_COLOR_POOL, pool->name) ||
	     nla_put_u32(skb, TCA_COLOR_POOL_SIZE, pool->size) ||
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
	    color_config_dump_auto(cfg, skb) ||
	    (cfg->int_rtt && nla_put_u32(skb, TCA_COLOR_INT_RTT, cfg->int_rtt)) ||
	    nla_put_u32(skb, TCA_COLOR_COUNT, cfg->count) ||
	    nla_put_u32(skb, TCA_COLOR_CLASSIFY,
			cfg->by_ecn ? TC_COLOR_CLASSIFY_ECN :
				      TC_COLOR_CLASSIFY_DSCP) ||
	    nla_put(skb, TCA_COLOR_MAP, sizeof(cfg->map), cfg->map) ||
	    color_config_dump_ecn(&cfg->ecn, skb) ||
	    color_dump_pool(q, skb) ||
	    (cfg->split_gso != COLOR_SPLIT_AUTO &&
	     nla_put_u32(skb, TCA_COLOR_SPLIT_GSO, cfg->split_gso)) ||
	    nla_put_u32(skb, TCA_COLOR_SLACK, cfg->slack) ||
	    nla_put_u32(skb, TCA_COLOR_CATCH_UP, cfg->catch_up) ||
	    color_bands_dump(q->bands, skb) ||
	    color_pause_dump(q->pause, skb) ||
	    color_trim_dump(&cfg->trim, skb)) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

static int color_dump_pool_stats(const struct color_share *share, struct sk_buff *skb)
{
	const struct color_pool *pool = share->pool;

	if (!pool)
		return 0;
	return color_stats_put(skb, TCA_COLOR_STATS_POOL_SIZE, pool->size) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_POOL_USED, atomic64_read(&pool->used)) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_POOL_PEAK, atomic64_read(&pool->peak)) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_POOL_PORTS, pool->ports) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_POOL_HELD, share->held);
}

static int color_dump_auto(struct Qdisc *sch, struct sk_buff *skb)
{
	struct color_sched_data *q = qdisc_priv(sch);

	if (!q->cfg.red_auto)
		return 0;
	color_auto_next(sch);
	return color_stats_put(skb, TCA_COLOR_STATS_RED_THRESH, color_auto_red(sch, q)) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_RED_NEED,
			       color_auto_need(&q->tune, q->stats[TC_COLOR_GREEN].backlog) +
			       color_auto_others(sch, q));
}

static int color_dump_int(const struct color_sched_data *q, struct sk_buff *skb)
{
	if (!q->cfg.int_rtt)
		return 0;
	return color_stats_put(skb, TCA_COLOR_STATS_INT_STAMPED, q->tel.stamped) ?:
	       color_stats_put(skb, TCA_COLOR_STATS_INT_UTIL,
			       color_int_utilisation(&q->tel, color_queued(q)));
}

static int color_dump_colors(const struct color_sched_data *q, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_COLOR_STATS_COLORS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i <= TC_COLOR_MAX; i++)
		if (color_stats_dump_color(skb, &q->stats[i], &q->drops[i]))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int color_dump_bands(const struct color_bands *bands, struct sk_buff *skb)
{
	struct nlattr *nest;
	int i;

	if (!bands)
		return 0;
	nest = nla_nest_start(skb, TCA_COLOR_STATS_BANDS);
	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < bands->cfg.n; i++)
		if (color_stats_dump_band(skb, &bands->band[i].stats))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int color_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct color_sched_data *q = qdisc_priv(sch);
	struct nlattr *nest = nla_nest_start_noflag(d->skb, TCA_STATS_APP);
	int err;

	if (!nest)
		return -1;
	sch_tree_lock(sch);
	err = color_stats_put(d->skb, TCA_COLOR_STATS_BACKLOG, color_backlog(sch)) ?:
	      color_stats_put(d->skb, TCA_COLOR_STATS_PEAK_BACKLOG, q->peak) ?:
	      color_stats_put(d->skb, TCA_COLOR_STATS_GSO_DROPS, q->gso_drops) ?:
	      (q->control_drops ? color_stats_put(d->skb, TCA_COLOR_STATS_CONTROL_DROPS,
						  q->control_drops) : 0) ?:
	      color_dump_pool_stats(&q->share, d->skb) ?:
	      color_dump_auto(sch, d->skb) ?:
	      color_dump_int(q, d->skb) ?:
	      color_dump_colors(q, d->skb) ?:
	      color_dump_bands(q->bands, d->skb) ?:
	      color_trim_dump_stats(&q->trim, &q->cfg.trim, d->skb);
	if (!err)
		color_pause_dump_stats(q->pause, d->skb);
	sch_tree_unlock(sch);
	if (err) {
		nla_nest_cancel(d->skb, nest);
		return -1;
	}
	nla_nest_end(d->skb, nest);
	return 0;
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

	/* a port costs a page at most */
	BUILD_BUG_ON(sizeof(struct Qdisc) + sizeof(struct color_sched_data) >
		     4096);

	err = color_pool_init();
	if (err)
		return err;
	err = color_pause_init();
	if (err)
		goto err_pool;
	err = register_qdisc(&color_qdisc_ops);
	if (!err)
		return 0;
	color_pause_exit();
err_pool:
	color_pool_exit();
	return err;
}

static void __exit color_module_exit(void)
{
	unregister_qdisc(&color_qdisc_ops);
	color_pause_exit();
	color_pool_exit();
}

module_init(color_module_init)
module_exit(color_module_exit)

MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
MODULE_DESCRIPTION("Colour-aware switch port: thresholds, shared buffer, ECN, line rate");
