// SPDX-License-Identifier: GPL-2.0
/* Dart: the Active Unique Sender Set (§III-B, Figure 4), and how much of the receiver's
 * line rate is in use (§III-C).
 *
 *	namespace ---> tenant ---> host, messages 2 <--- connection, in a message
 *	               n = 2  \                     <--- connection, in a message
 *	                       --> host, messages 1 <--- connection, in a message
 *	                           connections between messages point to no host
 *
 * A sender is a host, not a connection, because the host's own link serialises the packets of
 * its connections.  A host enters the set when one of its messages begins, and leaves it
 * when its last message ends.  A host whose messages bring no packet for DART_IDLE is taken
 * for dead and leaves the set; its next packet puts it back.
 *
 * A tenant is a mark or a cgroup of the receiving sockets (net.ipv4.dart_tenant).  Each
 * tenant has its own set, so that one tenant's senders do not change another's rates
 * (§III-E).  Sockets without a mark, or in the root cgroup, are in the common tenant, which
 * unrelated applications share.
 */
#include <linux/cgroup.h>
#include <linux/slab.h>
#include <net/sock.h>

#include "dart_lookahead.h"
#include "dart_senders.h"

/* "Any flow that is idle for long (e.g., 2 seconds) is assumed to be dead" (§III-B). */
#define DART_IDLE		(2 * HZ)
/* How often to look for dead hosts. */
#define DART_REAP		(HZ / 4 ?: 1)

/* An announced host counts for this long without having sent: the senders of an incast do
 * not begin at the same instant (§V-B: within 100 us).  Each message of an incast
 * announces the same hosts, so a further announcement of a host is ignored for twice as
 * long.
 */
#define DART_EXPECT_NS		(1 * NSEC_PER_MSEC)
/* Announcements that a tenant may make in one burst. */
#define DART_NAMINGS		16
/* Maximum number of a tenant's announced hosts that have not sent yet: one list of full length.
 * Without a limit, lists of hosts that never send would take the whole line rate from the hosts
 * that send.
 */
#define DART_EXPECTED		GREENLANE_SENDERS_MAX

/* The meter's window: a round trip, or enough full-size frames to distinguish a full link
 * from one that is not.
 */
#define DART_WINDOW_NS		(20 * NSEC_PER_USEC)
#define DART_WINDOW_BYTES	(16 * 1538)
/* Congestion ends this many windows after the last mark. */
#define DART_MARK_WINDOWS	5

/* The shares add up to the line rate, so a queue that has grown before the senders knew
 * their shares would never drain.  While marks last, the receiver keeps a reserve of its
 * line rate, in 1/DART_PARTS: one part in the first millisecond, in which a flow that has joined
 * must get its share (Figure 9), four in the second, and then half of the line rate, for a
 * queue that has not drained.
 */
#define DART_PARTS		32
#define DART_DRAIN		4	/* 2^4 parts at most */
#define DART_DRAIN_NS		NSEC_PER_MSEC

/**
 * dart_senders_init() - prepare a namespace's senders
 * @s: zeroed memory
 */
void dart_senders_init(struct dart_senders *s)
{
	spin_lock_init(&s->lock);
	INIT_LIST_HEAD(&s->tenants);
	s->reap_at = jiffies;
	spin_lock_init(&s->meter_lock);
}

/* Time from @then to @now, ns.  A connection reads @now before it takes a lock, so another CPU may
 * have stored a later time.
 */
static u64 dart_since(u64 now, u64 then)
{
	return max_t(s64, now - then, 0);
}

static u64 dart_tenant_id(const struct sock *sk, enum dart_tenancy how)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *cgroup;
#endif

	switch (how) {
	case DART_TENANT_MARK:
		return READ_ONCE(sk->sk_mark);
	case DART_TENANT_CGROUP:
#ifdef CONFIG_SOCK_CGROUP_DATA
		cgroup = sock_cgroup_ptr((struct sock_cgroup_data *)&sk->sk_cgrp_data);
		return cgroup_parent(cgroup) ? cgroup_id(cgroup) : DART_COMMON;
#endif
	default:
		return DART_COMMON;
	}
}

/**
 * dart_is_common() - whether a socket is in the common tenant
 * @sk: the socket
 * @how: the criterion of its tenant
 *
 * Return: true if it is; senders that its application names would then take shares from the
 * senders of other applications.
 */
bool dart_is_common(const struct sock *sk, enum dart_tenancy how)
{
	return dart_tenant_id(sk, how) == DART_COMMON;
}

/**
 * dart_address_id() - the number that identifies a host
 * @a: its IPv6 or v4-mapped address
 *
 * Return: the IPv4 address, or a hash of the IPv6 address that is the same on every
 * machine.  With 1000 senders the probability of a collision is 1e-4.
 */
u32 dart_address_id(const struct in6_addr *a)
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

/* Free a tenant without hosts, but not before all of its tokens are back: allocated again, it
 * would have all of them at once.
 */
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

/* Free a host without references, and its tenant if that was its last host. */
static void dart_host_put(struct dart_host *host)
{
	struct dart_tenant *tenant = host->tenant;

	if (host->refs || host->alive ||
	    (host->named && dart_since(ktime_get_ns(), host->named) < 2 * DART_EXPECT_NS))
		return;
	hash_del(&host->node);
	kfree(host);
	tenant->known--;
	dart_tenant_put(tenant);
}

/* A tenant is active if a host sends: those that are only announced overrun no link, and an
 * application can announce hosts that never send.
 */
static bool dart_tenant_is_active(const struct dart_tenant *tenant)
{
	return tenant->n > tenant->expected;
}

static void dart_tenant_count(struct dart_senders *s, const struct dart_tenant *tenant, bool before)
{
	WRITE_ONCE(s->active, s->active + dart_tenant_is_active(tenant) - before);
}

static void dart_host_not_expected(struct dart_host *host)
{
	host->tenant->expected -= host->expected;
	host->expected = false;
}

/* Put a host into the set, or raise its weight if it is there.  @expected: it was announced */
static void dart_host_enters(struct dart_senders *s, struct dart_host *host, u32 weight,
			     bool expected)
{
	struct dart_tenant *tenant = host->tenant;
	bool active = dart_tenant_is_active(tenant);

	dart_host_not_expected(host);
	if (!host->alive) {
		host->alive = true;
		host->weight = 0;
		host->busy = 0;
		host->busy_now = 0;
		dart_use_begins(host);
		tenant->n++;
	}
	host->expected = expected;
	tenant->expected += expected;
	dart_tenant_count(s, tenant, active);
	if (weight > host->weight) {
		if (host->limited)
			WRITE_ONCE(tenant->limited, tenant->limited + weight - host->weight);
		WRITE_ONCE(tenant->weight, tenant->weight + weight - host->weight);
		WRITE_ONCE(host->weight, weight);
	}
}

static void dart_host_leaves(struct dart_senders *s, struct dart_host *host)
{
	struct dart_tenant *tenant = host->tenant;
	bool active = dart_tenant_is_active(tenant);

	host->alive = false;
	dart_host_not_expected(host);
	dart_use_ends(host);
	WRITE_ONCE(tenant->weight, tenant->weight - host->weight);
	tenant->n--;
	dart_tenant_count(s, tenant, active);
}

/* Remove idle hosts from the set; connections may still point to them.  Return: number removed. */
static u32 dart_senders_reap_locked(struct dart_senders *s)
{
	struct dart_tenant *tenant, *next;
	struct dart_host *host;
	struct hlist_node *tmp;
	u32 dead = 0;
	int i;

	WRITE_ONCE(s->reap_at, jiffies + DART_REAP);
	list_for_each_entry_safe(tenant, next, &s->tenants, list) {
		tenant->known++;	/* keeps the tenant while its hosts are freed */
		hash_for_each_safe(tenant->hosts, i, tmp, host, node) {
			if (host->alive &&
			    time_after_eq(jiffies, READ_ONCE(host->seen) + DART_IDLE)) {
				dead++;
				WRITE_ONCE(tenant->messages, tenant->messages - host->messages);
				WRITE_ONCE(host->messages, 0);
				WRITE_ONCE(host->epoch, host->epoch + 1);
				dart_host_leaves(s, host);
			}
			/* This also frees hosts that were announced and have left since. */
			dart_host_put(host);
		}
		tenant->known--;
		dart_tenant_put(tenant);
	}
	return dead;
}

/* --- announced senders (§III-D) ------------------------------------------------- */

/**
 * dart_tenant_expire() - remove announced hosts that have not sent in time
 * @s: the namespace's senders
 * @tenant: the tenant that they were announced to
 * @now: in ns
 */
void dart_tenant_expire(struct dart_senders *s, struct dart_tenant *tenant, u64 now)
{
	struct dart_host *host;
	u64 next = 0;
	int i;

	spin_lock_bh(&s->lock);
	hash_for_each(tenant->hosts, i, host, node) {
		if (!host->expected)
			continue;
		if (dart_since(now, host->named) >= DART_EXPECT_NS)
			dart_host_leaves(s, host);
		else
			next = min_not_zero(next, host->named + DART_EXPECT_NS);
	}
	WRITE_ONCE(tenant->expires, next);
	spin_unlock_bh(&s->lock);
}

/* Take a token for one announcement.  @rate: tokens a second.  Return: true if there was
 * one.  The lock is held.
 */
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

/**
 * dart_senders_name() - count announced senders from now on
 * @s: the namespace's senders
 * @tenant: the tenant that they will send to
 * @group: the senders
 * @now: in ns
 * @rate: announcements that a tenant may make in a second; 0 for none
 *
 * A host for which there is no memory does not count, nor does one beyond DART_EXPECTED.
 *
 * Return: false if the tenant has made too many announcements; this one has no effect.
 */
bool dart_senders_name(struct dart_senders *s, struct dart_tenant *tenant,
		       const struct dart_group *group, u64 now, u32 rate)
{
	bool may;
	u32 i;

	spin_lock_bh(&s->lock);
	may = dart_tenant_may_name(tenant, now, rate);
	for (i = 0; may && i < group->n && tenant->expected < DART_EXPECTED; i++) {
		struct dart_host *host = dart_host_get(tenant, group->id[i]);

		/* It was counted for this incast already, and may have sent and left. */
		if (!host || (host->named && dart_since(now, host->named) < 2 * DART_EXPECT_NS))
			continue;
		host->named = now;
		if (host->alive)
			continue;
		WRITE_ONCE(host->seen, jiffies);
		dart_host_enters(s, host, 1, true);
		WRITE_ONCE(tenant->expires, min_not_zero(tenant->expires, now + DART_EXPECT_NS));
	}
	spin_unlock_bh(&s->lock);
	return may;
}

/* --- the set, to a connection -------------------------------------------------- */

/**
 * dart_senders_reap() - remove hosts from the set that have not sent for DART_IDLE
 * @s: the namespace's senders
 *
 * Does nothing if another CPU has just looked for them.
 *
 * Return: the number of hosts removed.
 */
u32 dart_senders_reap(struct dart_senders *s)
{
	u32 dead = 0;

	spin_lock_bh(&s->lock);
	if (time_after_eq(jiffies, s->reap_at))
		dead = dart_senders_reap_locked(s);
	spin_unlock_bh(&s->lock);
	return dead;
}

/**
 * dart_message_begins() - the first packet of a message has arrived
 * @s: the namespace's senders
 * @msg: the connection's message; it has no sender, as no message is arriving
 * @sk: the connection
 * @how: the criterion of its tenant
 * @weight: weight of its sender's share
 *
 * If there is no memory for the sender, the message has none and does not count.
 */
void dart_message_begins(struct dart_senders *s, struct dart_message *msg,
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
		WRITE_ONCE(tenant->messages, tenant->messages + 1);
		WRITE_ONCE(host->seen, jiffies);
		dart_host_enters(s, host, weight, false);
		WRITE_ONCE(host->busy_now, host->busy_now + 1);
		msg->look = tenant->look;
		msg->epoch = host->epoch;
	}
	msg->host = host;
	spin_unlock_bh(&s->lock);
}

/**
 * dart_message_ends() - a message has arrived as a whole, or its connection ends before that
 * @s: the namespace's senders
 * @msg: the message; it has a sender, and has none afterwards
 */
void dart_message_ends(struct dart_senders *s, struct dart_message *msg)
{
	struct dart_host *host = msg->host;

	spin_lock_bh(&s->lock);
	host->refs--;
	/* A host that has been found dead since then has lost its messages. */
	if (host->epoch == msg->epoch) {
		WRITE_ONCE(host->messages, host->messages - 1);
		WRITE_ONCE(host->tenant->messages, host->tenant->messages - 1);
		if (msg->look == host->tenant->look)
			WRITE_ONCE(host->busy_now, host->busy_now - 1);
		if (!host->messages)
			dart_host_leaves(s, host);
	}
	dart_host_put(host);
	spin_unlock_bh(&s->lock);
	msg->host = NULL;
}

/**
 * dart_message_divisor() - a message's share
 * @msg: the message; it has a sender
 *
 * A host's share of the line rate depends on its weight and on the use of the other hosts, and is
 * divided equally among the host's messages that bring data.
 *
 * Return: the divisor of the line rate, in 1/256: DART_ONE to DART_DIVISOR.
 */
u32 dart_message_divisor(const struct dart_message *msg)
{
	const struct dart_host *host = msg->host;
	u64 all = READ_ONCE(host->tenant->weight), weight = READ_ONCE(host->weight);
	u64 messages = dart_use_messages(host), divisor;

	if (!weight)
		return DART_ONE;
	if (READ_ONCE(host->tenant->limited))
		divisor = div_u64(DART_USE_ONE * messages * DART_ONE, dart_use_share(host));
	else
		divisor = div64_u64(all * messages * DART_ONE, weight);
	return clamp_t(u64, divisor, DART_ONE, DART_DIVISOR);
}

/* --- the meter ------------------------------------------------------------------ */

/* The window's length in ns.  @line: the line rate in kB/s, which are bytes/ms */
static u64 dart_window(u32 line)
{
	return max_t(u64, DART_WINDOW_NS, (u64)DART_WINDOW_BYTES * NSEC_PER_MSEC / line);
}

/**
 * dart_meter_add() - count received bytes
 * @s: the namespace's senders
 * @now: when they arrived, in ns
 * @bytes: number of bytes, of whole frames
 * @line: the line rate, in kB/s
 */
void dart_meter_add(struct dart_senders *s, u64 now, u32 bytes, u32 line)
{
	struct dart_meter *m = &s->meter;
	u64 window = dart_window(line);
	u64 length;

	spin_lock_bh(&s->meter_lock);
	length = dart_since(now, m->start);
	if (length >= window) {
		/* After a pause there is no window before this one, which begins when its
		 * first packet has arrived.
		 */
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

/* Does the link receive at its line rate, in the two windows? */
static bool dart_meter_full(struct dart_senders *s, u64 now, u32 line)
{
	struct dart_meter m;
	u64 length;

	spin_lock_bh(&s->meter_lock);
	m = s->meter;
	spin_unlock_bh(&s->meter_lock);
	length = dart_since(now, m.start) + m.length;
	/* 7/8, because a window may end in the middle of a frame. */
	return length && (m.bytes + m.last) * 8 >= div_u64(line * length, NSEC_PER_MSEC) * 7;
}

/* --- the state of congestion ----------------------------------------------------- */

/* The line rate without the reserve, in 1/DART_PARTS. */
static u32 dart_tenant_left(const struct dart_tenant *tenant, u64 now)
{
	u64 ms = div_u64(dart_since(now, READ_ONCE(tenant->since)), DART_DRAIN_NS);

	return DART_PARTS - (1 << min(2 * ms, DART_DRAIN));
}

/* Has no mark arrived for so long that the congestion is over? */
static bool dart_tenant_is_calm(const struct dart_tenant *tenant, u64 now, u32 line)
{
	u64 age = dart_since(now, READ_ONCE(tenant->marked));

	return age > DART_MARK_WINDOWS * dart_window(line);
}

/**
 * dart_tenant_marked() - a packet with a CE mark has arrived
 * @s: the namespace's senders
 * @tenant: the tenant that received it
 * @now: in ns
 * @line: the line rate, in kB/s
 */
void dart_tenant_marked(struct dart_senders *s, struct dart_tenant *tenant, u64 now,
			u32 line)
{
	u32 full = line;

	if (dart_tenant_is_calm(tenant, now, line))
		WRITE_ONCE(tenant->since, now);
	/* The senders use no more than the line rate without the reserve. */
	else if (READ_ONCE(tenant->state) == DART_RECEIVER_CONGESTION)
		full = div_u64((u64)line * dart_tenant_left(tenant, now), DART_PARTS);
	WRITE_ONCE(tenant->state, dart_meter_full(s, now, full) ? DART_RECEIVER_CONGESTION :
								  DART_OTHER_CONGESTION);
	WRITE_ONCE(tenant->marked, max(now, READ_ONCE(tenant->marked)));
}

/**
 * dart_tenant_drains() - reduce a share to keep the reserve free
 * @tenant: the tenant; it is in receiver congestion
 * @divisor: the share's divisor of the line rate, in 1/256
 * @now: in ns
 *
 * Return: the divisor of the reduced share, in 1/256.
 */
u32 dart_tenant_drains(const struct dart_tenant *tenant, u32 divisor, u64 now)
{
	return div_u64((u64)divisor * DART_PARTS, dart_tenant_left(tenant, now));
}

/**
 * dart_tenant_state() - the state of congestion
 * @s: the namespace's senders
 * @tenant: the tenant
 * @now: in ns
 * @line: the line rate, in kB/s
 *
 * Several active tenants together overrun the link, and only marks can signal that to their
 * senders: leave it to DCQCN.
 *
 * Return: enum dart_state.
 */
enum dart_state dart_tenant_state(struct dart_senders *s,
				  const struct dart_tenant *tenant, u64 now, u32 line)
{
	if (dart_tenant_is_calm(tenant, now, line))
		return DART_NO_CONGESTION;
	if (READ_ONCE(s->active) > 1)
		return DART_OTHER_CONGESTION;
	return READ_ONCE(tenant->state);
}

/**
 * dart_senders_exit() - free the hosts and tenants that are left
 * @s: the namespace's senders
 *
 * The namespace has no sockets any more.  Announced hosts that dart_senders_reap() has not
 * freed, and tenants whose tokens were not back, are left.
 */
void dart_senders_exit(struct dart_senders *s)
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
