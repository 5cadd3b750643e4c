/* SPDX-License-Identifier: GPL-2.0 */
/* Who is sending to this host: the Active Unique Sender Set (Dart §III-B, Figure 4), and
 * how much of its line is in use (§III-C).
 *
 *	namespace ---> tenant ---> host, messages 2 <--- connection, in a message
 *	               n = 2  \                     <--- connection, in a message
 *	                       --> host, messages 1 <--- connection, in a message
 *	                           connections without a message are in no set
 *
 * A sender is a host, not a connection: its own line serialises what it sends.  It is in
 * the set while it has a message in flight; one whose messages bring nothing for
 * DART_IDLE is taken for dead, and is back with its next packet.
 *
 * A tenant is a mark or a cgroup of the receiving sockets (net.ipv4.dart_tenant), and
 * has a set of its own, so that no tenant's senders move another's rate (§III-E).
 */
#ifndef _DART_SENDERS_H
#define _DART_SENDERS_H

#include <linux/cgroup.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/sock.h>

#include "dart_lookahead.h"

/* "Any flow that is idle for long (e.g., 2 seconds) is assumed to be dead" (§III-B). */
#define DART_IDLE		(2 * HZ)
/* How often the dead are looked for. */
#define DART_REAP		(HZ / 4 ?: 1)

/* Named senders are counted for so long, if nothing of them comes: the senders of an
 * incast do not begin at the same instant (§V-B: within 100 us).  For as long after that
 * they are not counted again: each of their messages names them.
 */
#define DART_EXPECT_NS		(1 * NSEC_PER_MSEC)
/* Namings at once, of what a tenant may have in a second. */
#define DART_NAMINGS		16

/* What is received is counted for this long, and for as long before: a round trip, or
 * what is enough to tell a line that is full from one that is not.
 */
#define DART_WINDOW_NS		(20 * NSEC_PER_USEC)
#define DART_WINDOW_BYTES	(16 * 1538)
/* For so many windows a mark is remembered. */
#define DART_MARK_WINDOWS	5

/* All shares together are the line, so a queue that has grown before they were known
 * would stay for ever.  While there are marks a part of the line is kept back, in 1/32:
 * one, and one more for each millisecond that they last.  The line stays busy all the
 * same: at four it takes a queue the 100 us that a mark is remembered to lose 12.5 us of
 * itself, which is less than there is when marks end (22.5 kB at 10 Gbit/s are 18 us).
 */
#define DART_PARTS		32
#define DART_DRAIN		4
#define DART_DRAIN_NS		NSEC_PER_MSEC

/* A divisor of 1, and the largest that fits into the option beside the flags. */
#define DART_ONE		256
#define DART_DIVISOR		0xffffff

enum dart_tenancy {
	DART_TENANT_ALL,	/* one for all */
	DART_TENANT_MARK,	/* SO_MARK, or what iptables and ip rule have made of it */
	DART_TENANT_CGROUP,
	__DART_TENANT_MAX,
};

/* What there is of congestion (§III-C, Figure 5). */
enum dart_state {
	DART_NO_CONGESTION,
	DART_RECEIVER_CONGESTION,	/* marks, and the line is full: shares do it */
	DART_OTHER_CONGESTION,		/* marks, and it is not: DCQCN does it */
};

/**
 * struct dart_host - a sender
 * @node: in its tenant's hosts
 * @tenant: whose it is
 * @id: its address, or a hash of it
 * @messages: connections of it that are in a message
 * @refs: connections that point to it; one that is dead may still have some
 * @weight: of its share
 * @seen: when it has brought something last, jiffies; written without the lock
 * @epoch: how often it has been found dead
 * @named: when it was named last, and counted for it, ns; 0 for never
 * @alive: it is in the set, and counts
 * @expected: only because it has been named; nothing has come of it yet
 */
struct dart_host {
	struct hlist_node	node;
	struct dart_tenant	*tenant;
	u32			id;
	u32			messages;
	u32			refs;
	u32			weight;
	unsigned long		seen;
	u32			epoch;
	u64			named;
	bool			alive;
	bool			expected;
};

/**
 * struct dart_message - a connection's part in the set
 * @host: its sender while it is in a message, or NULL
 * @epoch: that one's, when the message began
 *
 * The connection's socket lock.
 */
struct dart_message {
	struct dart_host	*host;
	u32			epoch;
};

/**
 * struct dart_tenant - those who have a set in common
 * @list: in the namespace's tenants
 * @id: a mark, or a cgroup's id
 * @hosts: the set, and hosts that are dead and not forgotten
 * @known: hosts in it, dead or alive
 * @n: those alive
 * @weight: the sum of theirs
 * @expires: when to look for those who were named and have not come, ns; 0 for never.
 *	Read without the lock
 * @named: how much of its namings a tenant has used up, as a time, ns
 * @forget: when it has all of them again, ns
 * @marked: when a mark came last, ns; written without the lock
 * @since: since when they have come; likewise
 * @state: what it was then
 */
struct dart_tenant {
	struct list_head	list;
	u64			id;
	DECLARE_HASHTABLE(hosts, 6);
	u32			known;
	u32			n;
	u32			weight;
	u64			expires;
	u64			named;
	u64			forget;
	u64			marked;
	u64			since;
	u8			state;
};

/**
 * struct dart_meter - how much comes
 * @start: of the window, ns
 * @bytes: in it, so far
 * @last: bytes of the window before, or 0
 * @length: that one's length, ns
 */
struct dart_meter {
	u64	start;
	u64	bytes;
	u64	last;
	u64	length;
};

/**
 * struct dart_senders - a namespace's part
 * @lock: of all hosts and tenants; what is written without it says so.  BH off
 * @tenants: by use
 * @active: tenants that have a host alive
 * @reap_at: when to look for the dead next, jiffies
 * @meter_lock: of @meter.  BH off
 * @meter: all tenants'
 */
struct dart_senders {
	spinlock_t		lock;	/* of hosts and tenants; BH off */
	struct list_head	tenants;
	unsigned int		active;
	unsigned long		reap_at;
	spinlock_t		meter_lock;	/* of the meter; BH off */
	struct dart_meter	meter;
};

static void dart_senders_init(struct dart_senders *s)
{
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->tenants);
	s->reap_at = jiffies;
	spin_lock_init(&s->meter_lock);
}

static u64 dart_tenant_id(const struct sock *sk, enum dart_tenancy how)
{
	switch (how) {
	case DART_TENANT_MARK:
		return READ_ONCE(sk->sk_mark);
	case DART_TENANT_CGROUP:
#ifdef CONFIG_SOCK_CGROUP_DATA
		return cgroup_id(sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data));
#endif
	default:
		return 0;
	}
}

/* An IPv4 address is itself; of an IPv6 address a hash will do, the same on every host:
 * two of a thousand senders are one by it once in ten thousand sets.
 */
static u32 dart_address_id(const struct in6_addr *a)
{
	if (ipv6_addr_v4mapped(a))
		return ntohl(a->s6_addr32[3]);
	return ntohl(a->s6_addr32[0] ^ a->s6_addr32[1] ^ a->s6_addr32[2] ^ a->s6_addr32[3]);
}

static u32 dart_host_id(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6)
		return dart_address_id(&sk->sk_v6_daddr);
#endif
	return ntohl(sk->sk_daddr);
}

/* --- the set; the lock is held ---------------------------------------------- */

static struct dart_tenant *dart_tenant_get(struct dart_senders *s, u64 id)
{
	struct dart_tenant *tenant;

	list_for_each_entry(tenant, &s->tenants, list)
		if (tenant->id == id)
			return tenant;
	tenant = kzalloc(sizeof(*tenant), GFP_ATOMIC | __GFP_NOWARN);
	if (!tenant)
		return NULL;
	tenant->id = id;
	hash_init(tenant->hosts);
	list_add(&tenant->list, &s->tenants);
	return tenant;
}

/* One that has used up its namings is not forgotten before it has them again. */
static void dart_tenant_put(struct dart_tenant *tenant)
{
	if (tenant->known || ktime_get_ns() < tenant->forget)
		return;
	list_del(&tenant->list);
	kfree(tenant);
}

static struct dart_host *dart_host_get(struct dart_tenant *tenant, u32 id)
{
	struct dart_host *host;

	hash_for_each_possible(tenant->hosts, host, node, id)
		if (host->id == id)
			return host;
	host = kzalloc(sizeof(*host), GFP_ATOMIC | __GFP_NOWARN);
	if (!host)
		return NULL;
	host->id = id;
	host->tenant = tenant;
	hash_add(tenant->hosts, &host->node, id);
	tenant->known++;
	return host;
}

static void dart_host_put(struct dart_host *host)
{
	struct dart_tenant *tenant = host->tenant;

	if (host->refs || host->alive ||
	    (host->named && ktime_get_ns() - host->named < 2 * DART_EXPECT_NS))
		return;
	hash_del(&host->node);
	kfree(host);
	tenant->known--;
	dart_tenant_put(tenant);
}

static void dart_host_enters(struct dart_senders *s, struct dart_host *host, u32 weight)
{
	struct dart_tenant *tenant = host->tenant;

	host->expected = false;
	if (!host->alive) {
		host->alive = true;
		host->weight = 0;
		if (!tenant->n++)
			WRITE_ONCE(s->active, s->active + 1);
	}
	if (weight > host->weight) {
		WRITE_ONCE(tenant->weight, tenant->weight + weight - host->weight);
		WRITE_ONCE(host->weight, weight);
	}
}

static void dart_host_leaves(struct dart_senders *s, struct dart_host *host)
{
	struct dart_tenant *tenant = host->tenant;

	host->alive = false;
	host->expected = false;
	WRITE_ONCE(tenant->weight, tenant->weight - host->weight);
	if (!--tenant->n)
		WRITE_ONCE(s->active, s->active - 1);
}

/* Those who bring nothing any more; their connections may live on.  Returns how many. */
static u32 dart_senders_reap(struct dart_senders *s)
{
	struct dart_tenant *tenant, *next;
	struct dart_host *host;
	struct hlist_node *tmp;
	u32 dead = 0;
	int i;

	WRITE_ONCE(s->reap_at, jiffies + DART_REAP);
	list_for_each_entry_safe(tenant, next, &s->tenants, list) {
		tenant->known++;	/* while we look at its hosts */
		hash_for_each_safe(tenant->hosts, i, tmp, host, node) {
			if (host->alive &&
			    time_after_eq(jiffies, READ_ONCE(host->seen) + DART_IDLE)) {
				dead++;
				WRITE_ONCE(host->messages, 0);
				WRITE_ONCE(host->epoch, host->epoch + 1);
				dart_host_leaves(s, host);
			}
			/* or one who was named, and has been here, and gone */
			dart_host_put(host);
		}
		tenant->known--;
		dart_tenant_put(tenant);
	}
	return dead;
}

/* --- those who were named (§III-D) ---------------------------------------------- */

/* Those of whom nothing has come. */
static void dart_tenant_expire(struct dart_senders *s, struct dart_tenant *tenant, u64 now)
{
	struct dart_host *host;
	u64 next = 0;
	int i;

	hash_for_each(tenant->hosts, i, host, node) {
		if (!host->expected)
			continue;
		if (now - host->named >= DART_EXPECT_NS)
			dart_host_leaves(s, host);
		else
			next = min_not_zero(next, host->named + DART_EXPECT_NS);
	}
	WRITE_ONCE(tenant->expires, next);
}

/* May a tenant name senders once more?  @rate: a second */
static bool dart_tenant_may_name(struct dart_tenant *tenant, u64 now, u32 rate)
{
	u64 cost;

	if (!rate)
		return false;
	cost = NSEC_PER_SEC / rate;
	tenant->named = max(tenant->named, now > DART_NAMINGS * cost ?
					   now - DART_NAMINGS * cost : 0);
	if (tenant->named + cost > now)
		return false;
	tenant->named += cost;
	tenant->forget = tenant->named + DART_NAMINGS * cost;
	return true;
}

/* Each of the group counts from now on.  false: too many namings. */
static bool dart_senders_name(struct dart_senders *s, struct dart_tenant *tenant,
			      const struct dart_group *group, u64 now, u32 rate)
{
	bool may;
	u32 i;

	spin_lock_bh(&s->lock);
	may = dart_tenant_may_name(tenant, now, rate);
	for (i = 0; may && i < group->n; i++) {
		struct dart_host *host = dart_host_get(tenant, group->id[i]);

		/* Of this incast it has been counted, and may be gone again. */
		if (!host || (host->named && now - host->named < 2 * DART_EXPECT_NS))
			continue;
		host->named = now;
		if (host->alive)
			continue;
		WRITE_ONCE(host->seen, jiffies);
		dart_host_enters(s, host, 1);
		host->expected = true;
		WRITE_ONCE(tenant->expires, min_not_zero(tenant->expires, now + DART_EXPECT_NS));
	}
	spin_unlock_bh(&s->lock);
	return may;
}

/* --- the set, to a connection -------------------------------------------------- */

/* Is it time to look for the dead?  Returns how many there were. */
static u32 dart_senders_look(struct dart_senders *s)
{
	u32 dead = 0;

	if (time_before(jiffies, READ_ONCE(s->reap_at)))
		return 0;
	spin_lock_bh(&s->lock);
	if (time_after_eq(jiffies, s->reap_at))
		dead = dart_senders_reap(s);
	spin_unlock_bh(&s->lock);
	return dead;
}

/* A message of @sk begins to come in.  Without memory it does not count. */
static void dart_message_begins(struct dart_senders *s, struct dart_message *msg,
				const struct sock *sk, enum dart_tenancy how, u32 weight)
{
	struct dart_host *host = NULL;
	struct dart_tenant *tenant;

	spin_lock_bh(&s->lock);
	tenant = dart_tenant_get(s, dart_tenant_id(sk, how));
	if (tenant) {
		host = dart_host_get(tenant, dart_host_id(sk));
		if (!host)
			dart_tenant_put(tenant);
	}
	if (host) {
		host->refs++;
		WRITE_ONCE(host->messages, host->messages + 1);
		WRITE_ONCE(host->seen, jiffies);
		dart_host_enters(s, host, weight);
		msg->epoch = host->epoch;
	}
	msg->host = host;
	spin_unlock_bh(&s->lock);
}

/* It has come in, or nobody waits for the rest. */
static void dart_message_ends(struct dart_senders *s, struct dart_message *msg)
{
	struct dart_host *host = msg->host;

	spin_lock_bh(&s->lock);
	host->refs--;
	/* If it has been dead in between, its messages have been forgotten. */
	if (host->epoch == msg->epoch) {
		WRITE_ONCE(host->messages, host->messages - 1);
		if (!host->messages)
			dart_host_leaves(s, host);
	}
	dart_host_put(host);
	spin_unlock_bh(&s->lock);
	msg->host = NULL;
}

/* Part of it has come.  false: its sender was dead; let it begin once more. */
static bool dart_message_seen(const struct dart_message *msg)
{
	struct dart_host *host = msg->host;

	/* Most packets of a jiffy leave the cache line alone. */
	if (time_after(jiffies, READ_ONCE(host->seen)))
		WRITE_ONCE(host->seen, jiffies);
	return READ_ONCE(host->epoch) == msg->epoch;
}

/* Those who were named and have not come do not count any more. */
static void dart_message_expire(struct dart_senders *s, const struct dart_message *msg, u64 now)
{
	struct dart_tenant *tenant = msg->host->tenant;
	u64 expires = READ_ONCE(tenant->expires);

	if (likely(!expires || now < expires))
		return;
	spin_lock_bh(&s->lock);
	dart_tenant_expire(s, tenant, now);
	spin_unlock_bh(&s->lock);
}

/* The divisor of the line that is this message's share, in 1/256: of its host's share,
 * by weight, its part of the host's messages.
 */
static u32 dart_message_divisor(const struct dart_message *msg)
{
	const struct dart_host *host = msg->host;
	u64 all = READ_ONCE(host->tenant->weight), weight = READ_ONCE(host->weight);
	u32 messages = max(READ_ONCE(host->messages), 1U);

	if (!weight)
		return DART_ONE;
	return clamp_t(u64, div64_u64(all * messages * DART_ONE, weight), DART_ONE, DART_DIVISOR);
}

/* --- how much comes ------------------------------------------------------------ */

/* @line: kB/s, which are bytes a ms */
static u64 dart_window(u32 line)
{
	return max_t(u64, DART_WINDOW_NS, (u64)DART_WINDOW_BYTES * NSEC_PER_MSEC / line);
}

/* @bytes have come, of what the line carries */
static void dart_meter_add(struct dart_senders *s, u64 now, u32 bytes, u32 line)
{
	struct dart_meter *m = &s->meter;
	u64 window = dart_window(line);
	u64 length;

	spin_lock_bh(&s->meter_lock);
	length = now - m->start;
	if (length >= window) {
		/* After a pause there is no window before, and this packet begins one. */
		bool paused = length >= 2 * window;

		m->last = paused ? 0 : m->bytes;
		m->length = paused ? 0 : length;
		m->start = now;
		m->bytes = 0;
		if (paused)
			bytes = 0;
	}
	m->bytes += bytes;
	spin_unlock_bh(&s->meter_lock);
}

/* Does the line bring all it can? */
static bool dart_meter_full(struct dart_senders *s, u64 now, u32 line)
{
	struct dart_meter m;
	u64 length;

	spin_lock_bh(&s->meter_lock);
	m = s->meter;
	spin_unlock_bh(&s->meter_lock);
	length = now - m.start + m.length;
	/* 7/8: windows do not end where packets do. */
	return length && (m.bytes + m.last) * 8 >= div_u64(line * length, NSEC_PER_MSEC) * 7;
}

/* --- what congestion it is ------------------------------------------------------- */

/* A packet of this tenant came with a mark. */
static void dart_tenant_marked(struct dart_senders *s, struct dart_tenant *tenant, u64 now,
			       u32 line)
{
	WRITE_ONCE(tenant->state, dart_meter_full(s, now, line) ? DART_RECEIVER_CONGESTION :
								  DART_OTHER_CONGESTION);
	if (now - READ_ONCE(tenant->marked) > DART_MARK_WINDOWS * dart_window(line))
		WRITE_ONCE(tenant->since, now);
	WRITE_ONCE(tenant->marked, now);
}

/* A share of a line that has a queue to lose. */
static u32 dart_tenant_drains(const struct dart_tenant *tenant, u32 divisor, u64 now)
{
	u64 parts = 1 + div_u64(now - READ_ONCE(tenant->since), DART_DRAIN_NS);

	return div_u64((u64)divisor * DART_PARTS, DART_PARTS - min(parts, DART_DRAIN));
}

/* If more tenants than one have the line, marks are all that tells them of each other. */
static enum dart_state dart_tenant_state(struct dart_senders *s,
					 const struct dart_tenant *tenant, u64 now, u32 line)
{
	if (now - READ_ONCE(tenant->marked) > DART_MARK_WINDOWS * dart_window(line))
		return DART_NO_CONGESTION;
	if (READ_ONCE(s->active) > 1)
		return DART_OTHER_CONGESTION;
	return READ_ONCE(tenant->state);
}

/* All sockets are gone; what is left has been named, and nobody has looked since. */
static void dart_senders_exit(struct dart_senders *s)
{
	struct dart_tenant *tenant, *next;
	struct dart_host *host;
	struct hlist_node *tmp;
	int i;

	list_for_each_entry_safe(tenant, next, &s->tenants, list) {
		hash_for_each_safe(tenant->hosts, i, tmp, host, node)
			kfree(host);
		kfree(tenant);
	}
}

#endif /* _DART_SENDERS_H */
