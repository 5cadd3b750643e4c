// SPDX-License-Identifier: GPL-2.0-only
/*
 * In-order flow deflection: the `iofd` qdisc.
 *
 * A short message that meets a long queue is faster on a detour: a hop or two cost
 * microseconds, the queue costs tens of them.  Its packets must not overtake each
 * other, so all of them take the same detour:
 *
 *	                              table
 *	            +------+  hit  +-----------+        +------+
 *	 DSCP   +-->| key? |------>| msg: port |------->| FIFO |--> work --> port's
 *	xxxx11  |   +------+       +-----------+        +------+             neighbour
 *	--------+      | miss            ^                 ^
 *	 others |      |   start, queue  |                 |
 *	        |      +-- > threshold --+-- a live port --+
 *	        |      |
 *	        |      v else
 *	        +--> child: the port's own qdisc (color) --> link
 *
 * - "Dart: Divide and Specialize for Fast Response to Congestion in RDMA-based
 *   Datacenter Networks" (ToN 2020), section IV.  The first packet of a message, if
 *   it finds more than `threshold` bytes in the queue and a free entry in the table,
 *   takes the entry and a random port; later packets follow it, however long the
 *   queue is; the last one frees the entry.  See iofd_table.c.
 * - The DSCP of a packet marks the first and the last packet of a message, and limits
 *   how often it may still be deflected: see net/gl_deflect.h.  Packets of long flows
 *   have other DSCPs, and pass after a test of one byte.
 * - A port is a device and a next hop on it: see iofd_ports.h.  Packets whose port is
 *   down or removed are dropped ("not allowed to locally reroute around the failed",
 *   section IV-C), since another path would reorder them.  They do not refresh their
 *   entry, so the flow of a dead port is blocked for `timeout` at most.
 * - Multicast, broadcast and link-local packets pass: a next hop would not forward
 *   them to their receivers.
 *
 * The qdisc must not enqueue to another device.  It would take the root lock of that
 * device inside its own, and a qdisc there that deflects as well would take them in the
 * opposite order: a deadlock.  So deflected packets wait in a FIFO for a work item in
 * softirq context, which holds no root lock.  A work item never runs on two CPUs at a
 * time, so packets stay in order.  See iofd_fifo.c.
 *
 * Locking.  The root lock of the qdisc tree protects all fields of struct
 * iofd_sched_data whose comment does not name another lock.  The configuration is
 * written with RTNL *and* the root lock held, so either is enough to read it.
 */

#include <linux/etherdevice.h>
#include <linux/if_arp.h>
#include <linux/in.h>
#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/if_vlan.h>
#include <linux/kernel.h>
#include <linux/list.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>
#include <net/inet_ecn.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/pkt_sched.h>
#include <net/gl_compat.h>
#include <net/gl_deflect.h>
#include <uapi/linux/pkt_iofd.h>

#include "color.h"
#include "iofd_fifo.h"
#include "iofd_ports.h"
#include "iofd_table.h"

/* Defaults: section VI-A.  The paper has no timeout; this one is longer than a packet
 * can stay in the network.
 */
#define IOFD_THRESHOLD	(15 << 10)
#define IOFD_ENTRIES	8
#define IOFD_TIMEOUT	(100 * NSEC_PER_MSEC)

/* A bit of the DS field that all codepoints of gl_deflect.h have: packets that may be
 * deflected (xxxx11), and packets with no tokens left (xxxx01).
 */
#define IOFD_DS_BIT	0x04

/* All iofd qdiscs, for the notifier; protected by RTNL. */
static LIST_HEAD(iofd_all);

/**
 * struct iofd_stats - counters under the root lock; see &enum tca_iofd_stats
 * @messages: messages that were deflected
 * @starts: packets deflected as the first of their message
 * @followers: packets deflected because their message has an entry
 * @bytes: bytes of @starts and @followers
 * @no_port: messages not deflected because no port was up
 * @spent: packets above the threshold with no tokens left
 * @drops_port: packets dropped because their port was down or removed
 * @drops_fifo: packets dropped because the FIFO was full
 * @drops_memory: packets dropped because their header could not be written
 * @drops_reset: packets that waited in the FIFO when the qdisc was reset
 */
struct iofd_stats {
	u64	messages;
	u64	starts;
	u64	followers;
	u64	bytes;
	u64	no_port;
	u64	spent;
	u64	drops_port;
	u64	drops_fifo;
	u64	drops_memory;
	u64	drops_reset;
};

/**
 * struct iofd_sched_data - a port that deflects
 * @child: the port's own qdisc
 * @threshold: bytes in @child above which messages are deflected
 * @timeout: ns without a packet after which an entry is stale
 * @ports: the ports to deflect to; RCU
 * @table: the messages that are deflected
 * @rnd: state of the random choice of ports
 * @stats: counters that have no other place
 * @fifo: deflected packets that wait for @work; has a lock of its own
 * @work: sends them; uses @fifo, @ports and @late only
 * @late: packets that @work could not send, by &enum iofd_sent
 * @all: entry of the list iofd_all
 * @seed: the user's seed for @rnd; RTNL
 * @seeded: the user gave a seed; RTNL
 * @next_id: number for the next new port; RTNL
 */
struct iofd_sched_data {
	/* read by every packet */
	struct Qdisc		*child;

	/* read by packets that may be deflected */
	u32			threshold;
	u64			timeout;
	struct iofd_ports __rcu	*ports;
	struct iofd_table	*table;

	/* written by packets that are deflected */
	struct rnd_state	rnd;
	struct iofd_stats	stats;
	struct iofd_fifo	fifo;
	struct gl_bh_work	work;
	atomic64_t		late[IOFD_SENT_MAX];

	struct list_head	all;
	u32			seed;
	bool			seeded;
	u32			next_id;
};

/* Pull a network header of this length.  Return: false if the packet is too short. */
static noinline bool iofd_pull(struct sk_buff *skb, unsigned int len)
{
	int off = skb_network_offset(skb);

	return off >= 0 && pskb_may_pull(skb, off + len);
}

/* The DS field of a packet, 0 if it has no IP header.  A packet with a VLAN tag belongs to
 * another network than the next hops of the ports, and passes.
 */
static __always_inline u8 iofd_dsfield(struct sk_buff *skb)
{
	void *h = skb_network_header(skb), *end = skb_tail_pointer(skb);

	if (likely(skb->protocol == htons(ETH_P_IP))) {
		if (likely(h + sizeof(struct iphdr) <= end))
			return ipv4_get_dsfield(h);
		return iofd_pull(skb, sizeof(struct iphdr)) ?
		       ipv4_get_dsfield(ip_hdr(skb)) : 0;
	}
	if (skb->protocol == htons(ETH_P_IPV6)) {
		if (likely(h + sizeof(struct ipv6hdr) <= end))
			return ipv6_get_dsfield(h);
		return iofd_pull(skb, sizeof(struct ipv6hdr)) ?
		       ipv6_get_dsfield(ipv6_hdr(skb)) : 0;
	}
	return 0;
}

/* Is the packet a link-layer multicast or broadcast?  In a qdisc its data begins with
 * the link-layer header.
 */
static bool iofd_link_multicast(const struct sk_buff *skb)
{
	return skb->dev->type == ARPHRD_ETHER &&
	       skb_network_offset(skb) >= ETH_HLEN &&
	       is_multicast_ether_addr(skb->data);
}

/* A router does not forward packets for a link-local address. */
static bool iofd_dst4_ok(__be32 dst)
{
	return !ipv4_is_multicast(dst) && !ipv4_is_lbcast(dst) &&
	       !ipv4_is_linklocal_169(dst);
}

static bool iofd_dst6_ok(const struct in6_addr *dst)
{
	return !(ipv6_addr_type(dst) & (IPV6_ADDR_MULTICAST | IPV6_ADDR_LINKLOCAL));
}

/* Fill in the key of a packet with a complete IP header.
 *
 * Return: false if the packet must not be deflected with any DSCP.
 */
static bool iofd_key(struct iofd_key *key, const struct sk_buff *skb, u8 dscp)
{
	int off = skb_network_offset(skb), ports;
	const __be32 *p;
	__be32 _p;

	if (off < 0 || skb_vlan_tag_present(skb) || iofd_link_multicast(skb))
		return false;
	memset(key, 0, sizeof(*key));
	key->tokens = gl_deflect_tokens(dscp);
	if (skb->protocol == htons(ETH_P_IP)) {
		const struct iphdr *iph = ip_hdr(skb);

		if (iph->version != 4 || iph->ihl < 5 || !iofd_dst4_ok(iph->daddr))
			return false;
		key->version = 4;
		key->src.s6_addr32[0] = iph->saddr;
		key->dst.s6_addr32[0] = iph->daddr;
		key->proto = iph->protocol;
		if (ip_is_fragment(iph))	/* only the first has ports */
			return true;
		off += iph->ihl * 4;
	} else {
		const struct ipv6hdr *ip6h = ipv6_hdr(skb);

		if (ip6h->version != 6 || !iofd_dst6_ok(&ip6h->daddr))
			return false;
		key->version = 6;
		key->src = ip6h->saddr;
		key->dst = ip6h->daddr;
		key->proto = ip6h->nexthdr;
		off += sizeof(*ip6h);
	}
	ports = proto_ports_offset(key->proto);
	if (ports >= 0) {
		p = skb_header_pointer(skb, off + ports, sizeof(_p), &_p);
		if (p)
			key->ports = *p;
	}
	return true;
}

/* Take a token from the packet; ECN does not change. */
static bool iofd_spend(struct sk_buff *skb, u8 dscp)
{
	u8 ds = gl_deflect_spend(dscp) << 2;
	int off = skb_network_offset(skb);

	if (skb->protocol == htons(ETH_P_IP)) {
		if (skb_ensure_writable(skb, off + sizeof(struct iphdr)))
			return false;
		ipv4_change_dsfield(ip_hdr(skb), INET_ECN_MASK, ds);
	} else {
		if (skb_ensure_writable(skb, off + sizeof(struct ipv6hdr)))
			return false;
		ipv6_change_dsfield(ipv6_hdr(skb), INET_ECN_MASK, ds);
	}
	return true;
}

/* Choose a port for a new message.  Return: NULL if no port is up; under RCU. */
static struct iofd_port *iofd_choose(struct iofd_sched_data *q,
				     struct iofd_ports *ports)
{
	struct iofd_port *live[TC_IOFD_PORTS_MAX];
	int i, n = 0;

	for (i = 0; i < ports->n; i++)
		if (iofd_port_live(&ports->port[i]))
			live[n++] = &ports->port[i];
	if (!n)
		return NULL;
	return live[reciprocal_scale(prandom_u32_state(&q->rnd), n)];
}

/* Add a packet to the FIFO; @port is NULL if it was removed.  The packet is not in the
 * queue of this qdisc, so NET_XMIT_STOLEN keeps parents from counting it.  A packet that is dropped
 * here is lost on the other path: the sender's own port has room, so the result is NET_XMIT_CN
 * (see color_drop_result() in sch_color.c).
 */
static int iofd_deflect(struct sk_buff *skb, struct Qdisc *sch,
			struct iofd_port *port, u8 dscp, u64 *count,
			struct sk_buff **to_free)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	u32 segs = qdisc_pkt_segs(skb), len = qdisc_pkt_len(skb);

	if (unlikely(!iofd_port_live(port))) {
		q->stats.drops_port += segs;
		gl_qdisc_drop(skb, sch, to_free, SKB_DROP_REASON_DEV_READY);
		return NET_XMIT_CN;
	}
	if (unlikely(iofd_fifo_full(&q->fifo))) {
		q->stats.drops_fifo += segs;
		qdisc_drop_reason(skb, sch, to_free, QDISC_DROP_OVERLIMIT);
		return NET_XMIT_CN;
	}
	if (unlikely(!iofd_spend(skb, dscp))) {
		q->stats.drops_memory += segs;
		gl_qdisc_drop(skb, sch, to_free, SKB_DROP_REASON_NOMEM);
		return NET_XMIT_CN;
	}

	*count += segs;
	q->stats.bytes += len;
	port->stats.packets += segs;
	port->stats.bytes += len;
	iofd_fifo_add(&q->fifo, skb, port->id, segs);
	gl_bh_queue(&q->work);
	return NET_XMIT_SUCCESS | __NET_XMIT_STOLEN;
}

/* color, the usual child, is called directly: with indirect calls, each of them a branch that the
 * processor has to predict, the two qdiscs cost a tenth more.
 */
static __always_inline int iofd_child_enqueue(struct sk_buff *skb, struct Qdisc *child,
					      struct sk_buff **to_free)
{
	if (likely(child->enqueue == color_enqueue))
		return color_enqueue(skb, child, to_free);
	return child->enqueue(skb, child, to_free);
}

static __always_inline struct sk_buff *iofd_child_dequeue(struct Qdisc *child)
{
	if (likely(child->dequeue == color_dequeue && skb_queue_empty(&child->gso_skb)))
		return color_dequeue(child);
	return qdisc_dequeue_peeked(child);
}

static __always_inline int iofd_enqueue_child(struct sk_buff *skb,
					      struct Qdisc *sch,
					      struct sk_buff **to_free)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	u32 len = qdisc_pkt_len(skb);
	int ret;

	ret = iofd_child_enqueue(skb, q->child, to_free);
	if (likely(ret == NET_XMIT_SUCCESS)) {
		WRITE_ONCE(sch->qstats.backlog, sch->qstats.backlog + len);
		WRITE_ONCE(sch->q.qlen, sch->q.qlen + 1);
	} else if (net_xmit_drop_count(ret)) {
		qdisc_qstats_drop(sch);
	}
	return ret;
}

/* Is the queue above the threshold?  The backlog includes the child's packets and requeued
 * packets, as the core counts it for every kind of child.
 */
static bool iofd_congested(struct Qdisc *sch)
{
	const struct iofd_sched_data *q = qdisc_priv(sch);

	return sch->qstats.backlog > q->threshold;
}

/* Deflect a new message, if a port is up and an entry is free.  The packet is a start,
 * the queue is above the threshold, and the table has no entry for it.
 *
 * Return: the port, or NULL; under RCU.
 */
static struct iofd_port *iofd_start(struct iofd_sched_data *q,
				    const struct iofd_key *key, u8 dscp, u32 len,
				    struct iofd_ports *ports)
{
	struct iofd_port *port;

	port = iofd_choose(q, ports);
	if (!port) {
		q->stats.no_port++;
		return NULL;
	}
	/* The only packet of a message needs no entry: no other packet follows. */
	if (!gl_deflect_end(dscp) &&
	    !iofd_table_take(q->table, key, port->id, ktime_get_ns(),
			     q->timeout, len))
		return NULL;
	q->stats.messages++;
	return port;
}

/* The entry of a packet, or NULL; a stale one is freed and is a miss.  Sets @now if
 * there is an entry.
 */
static struct iofd_entry *iofd_lookup(struct iofd_sched_data *q,
				      const struct iofd_key *key, u64 *now)
{
	struct iofd_entry *entry = iofd_table_find(q->table, key);

	if (!entry)
		return NULL;
	*now = ktime_get_ns();
	if (iofd_table_expire(q->table, entry, *now, q->timeout))
		return NULL;
	return entry;
}

/* A packet with IOFD_DS_BIT. */
static noinline int iofd_enqueue_marked(struct sk_buff *skb, struct Qdisc *sch,
					u8 dscp, struct sk_buff **to_free)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	struct iofd_ports *ports;
	struct iofd_entry *entry;
	struct iofd_port *port;
	struct iofd_key key;
	bool start;
	u64 now;
	int ret;

	if (!gl_deflectable(dscp)) {
		if ((dscp == GREENLANE_DSCP_SPENT || dscp == GREENLANE_DSCP_SPENT_END) &&
		    iofd_congested(sch))
			q->stats.spent += qdisc_pkt_segs(skb);
		return iofd_enqueue_child(skb, sch, to_free);
	}
	start = gl_deflect_start(dscp) && iofd_congested(sch);
	/* No message is deflected, and this packet does not start one. */
	if (!q->table->used && !start)
		return iofd_enqueue_child(skb, sch, to_free);
	if (!iofd_key(&key, skb, dscp))
		return iofd_enqueue_child(skb, sch, to_free);

	rcu_read_lock();
	ports = rcu_dereference(q->ports);
	entry = iofd_lookup(q, &key, &now);
	if (entry) {
		port = iofd_port_find(ports, entry->port);
		/* The last packet ends the message, even if it is dropped.  A packet that
		 * is dropped because its port is down does not refresh the entry: so the
		 * entries of a port that stays down become stale.
		 */
		if (gl_deflect_end(dscp))
			iofd_table_free(q->table, entry);
		else if (iofd_port_live(port))
			iofd_table_seen(q->table, entry, now, qdisc_pkt_len(skb));
		ret = iofd_deflect(skb, sch, port, dscp, &q->stats.followers,
				   to_free);
	} else {
		port = start ? iofd_start(q, &key, dscp, qdisc_pkt_len(skb), ports) : NULL;
		ret = port ? iofd_deflect(skb, sch, port, dscp,
					  &q->stats.starts, to_free) :
			     iofd_enqueue_child(skb, sch, to_free);
	}
	rcu_read_unlock();
	return ret;
}

static int iofd_enqueue(struct sk_buff *skb, struct Qdisc *sch,
			struct sk_buff **to_free)
{
	u8 ds = iofd_dsfield(skb);

	if (unlikely(ds & IOFD_DS_BIT))
		return iofd_enqueue_marked(skb, sch, ds >> 2, to_free);
	return iofd_enqueue_child(skb, sch, to_free);
}

static struct sk_buff *iofd_dequeue(struct Qdisc *sch)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	struct sk_buff *skb = iofd_child_dequeue(q->child);

	if (skb) {
		qdisc_bstats_update(sch, skb);
		qdisc_qstats_backlog_dec(sch, skb);
		WRITE_ONCE(sch->q.qlen, sch->q.qlen - 1);
	}
	return skb;
}

static struct sk_buff *iofd_peek(struct Qdisc *sch)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	return q->child->ops->peek(q->child);
}

/* Send the packets in the FIFO, a budget at a time, so that the CPU can run its other
 * softirqs between two runs.
 */
static void iofd_work(struct gl_bh_work *work)
{
	struct iofd_sched_data *q = container_of(work, struct iofd_sched_data, work);
	struct iofd_ports *ports;
	struct sk_buff_head list;
	struct sk_buff *skb;
	bool more;

	__skb_queue_head_init(&list);
	more = iofd_fifo_take(&q->fifo, &list, IOFD_BUDGET);

	rcu_read_lock();
	ports = rcu_dereference(q->ports);
	while ((skb = __skb_dequeue(&list))) {
		struct iofd_port *port = iofd_port_find(ports, iofd_skb_cb(skb)->port);
		u32 segs = iofd_skb_cb(skb)->segs;
		enum iofd_sent sent = iofd_port_xmit(port, skb);

		if (unlikely(sent != IOFD_SENT))
			atomic64_add(segs, &q->late[sent]);
	}
	rcu_read_unlock();
	if (more)
		gl_bh_queue(&q->work);
}

/* The table stays: a message that continues after the device was down keeps its port. */
static void iofd_reset(struct Qdisc *sch)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	qdisc_reset(q->child);
	q->stats.drops_reset += iofd_fifo_purge(&q->fifo);
}

static struct netlink_range_validation iofd_threshold_range = {
	.min = 1,
	.max = TC_IOFD_THRESHOLD_MAX,
};

static struct netlink_range_validation iofd_timeout_range = {
	.min = TC_IOFD_TIMEOUT_MIN,
	.max = TC_IOFD_TIMEOUT_MAX,
};

static const struct nla_policy iofd_policy[TCA_IOFD_MAX + 1] = {
	[TCA_IOFD_THRESHOLD]	= NLA_POLICY_FULL_RANGE(NLA_U32, &iofd_threshold_range),
	[TCA_IOFD_ENTRIES]	= NLA_POLICY_RANGE(NLA_U32, 1, TC_IOFD_ENTRIES_MAX),
	[TCA_IOFD_TIMEOUT]	= NLA_POLICY_FULL_RANGE(NLA_U64, &iofd_timeout_range),
	[TCA_IOFD_SEED]		= { .type = NLA_U32 },
	[TCA_IOFD_PORTS]	= { .type = NLA_NESTED },
};

/* All options are checked before any of them changes.  Entries stay, with their ports. */
static int iofd_change(struct Qdisc *sch, struct nlattr *opt,
		       struct netlink_ext_ack *extack)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	struct iofd_ports *ports = NULL, *old = rtnl_dereference(q->ports);
	struct nlattr *tb[TCA_IOFD_MAX + 1];
	struct iofd_table *table = NULL;
	int err;

	err = nla_parse_nested(tb, TCA_IOFD_MAX, opt, iofd_policy, extack);
	if (err < 0)
		return err;
	if (!tb[TCA_IOFD_PORTS] && !old) {
		NL_SET_ERR_ATTR_MISS(extack, opt, TCA_IOFD_PORTS);
		NL_SET_ERR_MSG(extack, "A deflect port is needed");
		return -EINVAL;
	}
	if (tb[TCA_IOFD_ENTRIES] &&
	    nla_get_u32(tb[TCA_IOFD_ENTRIES]) != q->table->size) {
		table = iofd_table_alloc(nla_get_u32(tb[TCA_IOFD_ENTRIES]),
					 get_random_u32());
		if (!table)
			return -ENOMEM;
	}
	if (tb[TCA_IOFD_PORTS]) {
		ports = iofd_ports_parse(tb[TCA_IOFD_PORTS], old,
					 qdisc_dev(sch), &q->next_id, extack);
		if (IS_ERR(ports)) {
			kvfree(table);
			return PTR_ERR(ports);
		}
	}

	sch_tree_lock(sch);
	if (table)
		iofd_table_expire_all(q->table, ktime_get_ns(), q->timeout);
	if (table && q->table->used > table->size) {
		sch_tree_unlock(sch);
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_IOFD_ENTRIES],
				    "More entries are in use");
		iofd_ports_free(ports);
		kvfree(table);
		return -EBUSY;
	}
	if (table) {
		iofd_table_move(table, q->table);
		swap(q->table, table);
	}
	if (ports) {
		if (old)
			iofd_ports_take_over(ports, old);
		rcu_assign_pointer(q->ports, ports);
	}
	if (tb[TCA_IOFD_THRESHOLD])
		q->threshold = nla_get_u32(tb[TCA_IOFD_THRESHOLD]);
	if (tb[TCA_IOFD_TIMEOUT])
		q->timeout = nla_get_u64(tb[TCA_IOFD_TIMEOUT]);
	if (tb[TCA_IOFD_SEED]) {
		q->seed = nla_get_u32(tb[TCA_IOFD_SEED]);
		q->seeded = true;
		prandom_seed_state(&q->rnd, q->seed);
	}
	sch_tree_unlock(sch);

	if (ports)
		iofd_ports_free(old);
	kvfree(table);
	return 0;
}

/* The child of a port whose user has not added one. */
static struct Qdisc *iofd_default_child(struct Qdisc *sch,
					struct netlink_ext_ack *extack)
{
	u64 limit = (u64)DEFAULT_TX_QUEUE_LEN * psched_mtu(qdisc_dev(sch));
	struct Qdisc *child;

	child = fifo_create_dflt(sch, &bfifo_qdisc_ops,
				 min_t(u64, limit, S32_MAX), extack);
	if (!IS_ERR(child) && child != &noop_qdisc)
		qdisc_hash_add(child, true);
	return child;
}

static int iofd_init(struct Qdisc *sch, struct nlattr *opt,
		     struct netlink_ext_ack *extack)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	struct Qdisc *child;
	int err;

	/* iofd_destroy() needs these, and is called after an error as well. */
	q->child = &noop_qdisc;
	iofd_fifo_init(&q->fifo);
	gl_bh_init(&q->work, iofd_work);
	INIT_LIST_HEAD(&q->all);

	q->threshold = IOFD_THRESHOLD;
	q->timeout = IOFD_TIMEOUT;
	prandom_seed_state(&q->rnd, get_random_u64());
	q->table = iofd_table_alloc(IOFD_ENTRIES, get_random_u32());
	if (!q->table)
		return -ENOMEM;
	if (!opt) {
		NL_SET_ERR_ATTR_MISS(extack, opt, TCA_IOFD_PORTS);
		NL_SET_ERR_MSG(extack, "A deflect port is needed");
		return -EINVAL;
	}
	err = iofd_change(sch, opt, extack);
	if (err)
		return err;

	child = iofd_default_child(sch, extack);
	if (IS_ERR(child))
		return PTR_ERR(child);
	q->child = child;
	list_add(&q->all, &iofd_all);
	return 0;
}

/* No packet is enqueued any more, so the work item is not queued again. */
static void iofd_destroy(struct Qdisc *sch)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	list_del(&q->all);
	gl_bh_cancel_sync(&q->work);
	iofd_fifo_purge(&q->fifo);
	iofd_ports_free(rtnl_dereference(q->ports));
	kvfree(q->table);
	qdisc_put(q->child);
}

static int iofd_dump(struct Qdisc *sch, struct sk_buff *skb)
{
	struct iofd_sched_data *q = qdisc_priv(sch);
	struct nlattr *opts;
	int err;

	opts = nla_nest_start(skb, TCA_OPTIONS);
	if (!opts)
		return -EMSGSIZE;
	rcu_read_lock();
	err = iofd_ports_dump(rcu_dereference(q->ports), skb);
	rcu_read_unlock();
	if (err ||
	    nla_put_u32(skb, TCA_IOFD_THRESHOLD, q->threshold) ||
	    nla_put_u32(skb, TCA_IOFD_ENTRIES, q->table->size) ||
	    nla_put_u64_64bit(skb, TCA_IOFD_TIMEOUT, q->timeout,
			      TCA_IOFD_PAD) ||
	    (q->seeded && nla_put_u32(skb, TCA_IOFD_SEED, q->seed))) {
		nla_nest_cancel(skb, opts);
		return -EMSGSIZE;
	}
	return nla_nest_end(skb, opts);
}

/* The counters, under the root lock. */
static int iofd_put_stats(struct iofd_sched_data *q, struct sk_buff *skb)
{
	const struct iofd_table *t = q->table;
	const struct iofd_stats *st = &q->stats;
	const u64 stats[] = {
		[TCA_IOFD_STATS_MESSAGES]	= st->messages,
		[TCA_IOFD_STATS_STARTS]		= st->starts,
		[TCA_IOFD_STATS_FOLLOWERS]	= st->followers,
		[TCA_IOFD_STATS_BYTES]		= st->bytes,
		[TCA_IOFD_STATS_ENTRIES]	= t->used,
		[TCA_IOFD_STATS_PEAK]		= t->peak,
		[TCA_IOFD_STATS_EXPIRED]	= t->expired,
		[TCA_IOFD_STATS_FULL]		= t->full,
		[TCA_IOFD_STATS_NO_PORT]	= st->no_port,
		[TCA_IOFD_STATS_SPENT]		= st->spent,
		[TCA_IOFD_STATS_DROPS_PORT]	= st->drops_port +
						  atomic64_read(&q->late[IOFD_PORT_DOWN]),
		[TCA_IOFD_STATS_DROPS_FIFO]	= st->drops_fifo,
		[TCA_IOFD_STATS_DROPS_MEMORY]	= st->drops_memory +
						  atomic64_read(&q->late[IOFD_NO_MEMORY]),
		[TCA_IOFD_STATS_DROPS_RESET]	= st->drops_reset,
		[TCA_IOFD_STATS_DROPS_REFUSED]	= atomic64_read(&q->late[IOFD_REFUSED]),
		[TCA_IOFD_STATS_WAIT_PACKETS]	= READ_ONCE(q->fifo.segs),
		[TCA_IOFD_STATS_WAIT_BYTES]	= READ_ONCE(q->fifo.bytes),
		[TCA_IOFD_STATS_WAIT_PEAK]	= READ_ONCE(q->fifo.peak),
	};
	int i, err;

	for (i = TCA_IOFD_STATS_MESSAGES; i < ARRAY_SIZE(stats); i++)
		if (nla_put_u64_64bit(skb, i, stats[i], TCA_IOFD_STATS_PAD))
			return -EMSGSIZE;

	rcu_read_lock();
	err = iofd_ports_dump_stats(rcu_dereference(q->ports), skb);
	rcu_read_unlock();
	return err;
}

static int iofd_dump_stats(struct Qdisc *sch, struct gnet_dump *d)
{
	struct nlattr *nest = nla_nest_start_noflag(d->skb, TCA_STATS_APP);
	int err;

	if (!nest)
		return -EMSGSIZE;
	sch_tree_lock(sch);
	err = iofd_put_stats(qdisc_priv(sch), d->skb);
	sch_tree_unlock(sch);
	if (err) {
		nla_nest_cancel(d->skb, nest);
		return err;
	}
	nla_nest_end(d->skb, nest);
	return 0;
}

/* One class, 1:1: the child. */

static int iofd_graft(struct Qdisc *sch, unsigned long arg, struct Qdisc *new,
		      struct Qdisc **old, struct netlink_ext_ack *extack)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	if (!new) {
		new = iofd_default_child(sch, extack);
		if (IS_ERR(new))
			new = &noop_qdisc;
	}
	*old = qdisc_replace(sch, new, &q->child);
	return 0;
}

static struct Qdisc *iofd_leaf(struct Qdisc *sch, unsigned long arg)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	return q->child;
}

static unsigned long iofd_find(struct Qdisc *sch, u32 classid)
{
	return TC_H_MIN(classid) == 1;
}

static void iofd_walk(struct Qdisc *sch, struct qdisc_walker *walker)
{
	if (!walker->stop)
		tc_qdisc_stats_dump(sch, 1, walker);
}

static int iofd_dump_class(struct Qdisc *sch, unsigned long cl,
			   struct sk_buff *skb, struct tcmsg *tcm)
{
	struct iofd_sched_data *q = qdisc_priv(sch);

	tcm->tcm_handle |= TC_H_MIN(1);
	tcm->tcm_info = q->child->handle;
	return 0;
}

static const struct Qdisc_class_ops iofd_class_ops = {
	.graft		=	iofd_graft,
	.leaf		=	iofd_leaf,
	.find		=	iofd_find,
	.walk		=	iofd_walk,
	.dump		=	iofd_dump_class,
};

static struct Qdisc_ops iofd_qdisc_ops __read_mostly = {
	.cl_ops		=	&iofd_class_ops,
	.id		=	"iofd",
	.priv_size	=	sizeof(struct iofd_sched_data),
	.enqueue	=	iofd_enqueue,
	.dequeue	=	iofd_dequeue,
	.peek		=	iofd_peek,
	.init		=	iofd_init,
	.reset		=	iofd_reset,
	.destroy	=	iofd_destroy,
	.change		=	iofd_change,
	.dump		=	iofd_dump,
	.dump_stats	=	iofd_dump_stats,
	.owner		=	THIS_MODULE,
};
MODULE_ALIAS_NET_SCH("iofd");

/* Release the references to a device that is unregistered.  A device that is down needs
 * no event: the state of the device is checked for each packet.
 */
static int iofd_netdev_event(struct notifier_block *nb, unsigned long event,
			     void *ptr)
{
	const struct net_device *dev = netdev_notifier_info_to_dev(ptr);
	struct iofd_sched_data *q;

	if (event != NETDEV_UNREGISTER)
		return NOTIFY_DONE;
	list_for_each_entry(q, &iofd_all, all)
		iofd_ports_gone(rtnl_dereference(q->ports), dev);
	return NOTIFY_DONE;
}

static struct notifier_block iofd_netdev_notifier = {
	.notifier_call = iofd_netdev_event,
};

static int __init iofd_module_init(void)
{
	int err;

	err = register_netdevice_notifier(&iofd_netdev_notifier);
	if (err)
		return err;
	err = register_qdisc(&iofd_qdisc_ops);
	if (err)
		unregister_netdevice_notifier(&iofd_netdev_notifier);
	return err;
}

static void __exit iofd_module_exit(void)
{
	unregister_qdisc(&iofd_qdisc_ops);
	unregister_netdevice_notifier(&iofd_netdev_notifier);
}

module_init(iofd_module_init);
module_exit(iofd_module_exit);

MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
MODULE_DESCRIPTION("In-order flow deflection: short messages take a detour, in order");
