/* SPDX-License-Identifier: GPL-2.0 */
/* Dart: the set of hosts that send to this one, and the bytes that its link receives.
 *
 * dart_senders.c describes the set; tcp_dart.c and dart_use.c use it by this header.
 */
#ifndef _DART_SENDERS_H
#define _DART_SENDERS_H

#include <linux/bits.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/list.h>
#include <linux/spinlock.h>
#include <linux/types.h>

struct dart_group;
struct in6_addr;
struct sock;

/* A share is the line rate divided by a divisor, which is in 1/256.  DART_ONE is the
 * divisor 1, and DART_DIVISOR the largest one, for 65536 senders.
 */
#define DART_ONE		256
#define DART_DIVISOR		0xffffff

/* A host's share of the line rate, and the part of the line rate that it uses, are in 1/2^20. */
#define DART_USE_ONE		((u32)BIT(20))

/* The criterion by which receiving sockets belong to one tenant (net.ipv4.dart_tenant). */
enum dart_tenancy {
	DART_TENANT_ALL,	/* all sockets of the namespace are one tenant */
	DART_TENANT_MARK,	/* SO_MARK, which iptables and ip rule may set too */
	DART_TENANT_CGROUP,
	__DART_TENANT_MAX,
};

/* The id of the common tenant, of sockets without a mark or in the root cgroup. */
#define DART_COMMON		0

/* Where packets are marked (§III-C, Figure 5). */
enum dart_state {
	DART_NO_CONGESTION,
	DART_RECEIVER_CONGESTION,	/* marks, and the link is full: shares react */
	DART_OTHER_CONGESTION,		/* marks, and the link is not full: DCQCN reacts */
};

/**
 * struct dart_host - a host that sends to this one
 * @node: entry in its tenant's @hosts
 * @tenant: the tenant that it sends to
 * @id: its IPv4 address, or a hash of its IPv6 address
 * @messages: its messages in flight, at most one for each connection; read without the
 *	lock
 * @refs: connections that point to it; a dead host may still have some
 * @weight: weight of its share; read without the lock
 * @seen: arrival of its last packet, in jiffies; read and written without the lock
 * @epoch: how often it has been found dead; read without the lock
 * @named: when it was last announced and counted for that, in ns; 0 for never
 * @bytes: bytes received from it in this interval, whole frames
 * @allow: if @limited: if @bytes exceeds this in an interval, the host is no longer limited
 * @used: if @limited: twice the part of the line rate that it used in the last interval, in
 *	1/DART_USE_ONE; else 0.  Read without the lock
 * @busy: number of its messages that brought data in the last interval; read without the lock
 * @busy_now: number of its messages that brought data in this interval; read without the lock
 * @alive: it is in the set
 * @expected: it is in the set because it was announced, and has not sent yet
 * @limited: it counts as @used instead of its share; see dart_use.c.  Read without the lock
 * @fresh: it entered the set, or exceeded @allow, in this interval
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
	u32			bytes;
	u32			allow;
	u32			used;
	u32			busy;
	u32			busy_now;
	bool			alive;
	bool			expected;
	bool			limited;
	bool			fresh;
};

/**
 * struct dart_message - the message that a connection receives
 * @host: its sender, or NULL between messages
 * @epoch: the sender's epoch when the message began
 * @look: the tenant's @look when it last brought data; under the senders' @lock
 *
 * Protected by the connection's socket lock.
 */
struct dart_message {
	struct dart_host	*host;
	u32			epoch;
	u32			look;
};

/**
 * struct dart_tenant - receiving sockets that share a set of senders
 * @list: entry in the namespace's @tenants
 * @id: a mark or a cgroup's id, depending on enum dart_tenancy, or DART_COMMON
 * @hosts: the set, and dead hosts that a connection points to or that were announced
 * @known: hosts in @hosts
 * @n: hosts in the set; read without the lock
 * @weight: sum of the weights in the set; read without the lock
 * @messages: messages of the hosts in the set; read without the lock
 * @used: sum of @used of the limited hosts, in 1/DART_USE_ONE; read without the lock
 * @limited: sum of their weights; read without the lock
 * @look: number of the interval in which the use of shares is counted; read without the lock
 * @looked: when the interval began, ns
 * @look_at: when it ends, ns; read without the lock
 * @expected: hosts in the set that were announced and have not sent yet
 * @expires: when the next announced host leaves the set unless it sends, in ns; 0 for
 *	never.  Read without the lock
 * @named: token clock of the announcements, in ns: each advances it by its cost
 * @forget: when all tokens are back, in ns; until then the tenant is kept
 * @marked: when the last CE mark arrived, in ns; read and written without the lock
 * @since: when the current period of marks began, in ns; likewise
 * @state: enum dart_state at the last mark; likewise
 */
struct dart_tenant {
	struct list_head	list;
	u64			id;
	DECLARE_HASHTABLE(hosts, 6);
	u32			known;
	u32			n;
	u32			weight;
	u32			messages;
	u32			used;
	u32			limited;
	u32			look;
	u64			looked;
	u64			look_at;
	u32			expected;
	u64			expires;
	u64			named;
	u64			forget;
	u64			marked;
	u64			since;
	u8			state;
};

/**
 * struct dart_meter - bytes received in the current window and in the one before
 * @start: when the current window began, in ns
 * @bytes: bytes in the current window
 * @last: bytes in the window before; 0 after a pause
 * @length: length of the window before, in ns; 0 after a pause
 */
struct dart_meter {
	u64	start;
	u64	bytes;
	u64	last;
	u64	length;
};

/**
 * struct dart_senders - the senders of a network namespace
 * @lock: protects all hosts and tenants, except for the fields marked otherwise.  BH off
 * @tenants: every tenant that is known
 * @active: tenants whose set has a host that has sent; read without the lock
 * @reap_at: when dart_senders_reap() is due, in jiffies; read without the lock
 * @meter_lock: protects @meter.  BH off
 * @meter: bytes that the link receives, for all tenants together
 */
struct dart_senders {
	spinlock_t		lock;	/* of hosts and tenants; BH off */
	struct list_head	tenants;
	unsigned int		active;
	unsigned long		reap_at;
	spinlock_t		meter_lock;	/* of the meter; BH off */
	struct dart_meter	meter;
};

void dart_senders_init(struct dart_senders *s);
void dart_senders_exit(struct dart_senders *s);
u32 dart_senders_reap(struct dart_senders *s);
bool dart_senders_name(struct dart_senders *s, struct dart_tenant *tenant,
		       const struct dart_group *group, u64 now, u32 rate);
u32 dart_address_id(const struct in6_addr *a);
bool dart_is_common(const struct sock *sk, enum dart_tenancy how);

void dart_message_begins(struct dart_senders *s, struct dart_message *msg,
			 const struct sock *sk, enum dart_tenancy how, u32 weight);
void dart_message_ends(struct dart_senders *s, struct dart_message *msg);
u32 dart_message_divisor(const struct dart_message *msg);

void dart_tenant_expire(struct dart_senders *s, struct dart_tenant *tenant, u64 now);
void dart_tenant_marked(struct dart_senders *s, struct dart_tenant *tenant, u64 now,
			u32 line);
u32 dart_tenant_drains(const struct dart_tenant *tenant, u32 divisor, u64 now);
enum dart_state dart_tenant_state(struct dart_senders *s,
				  const struct dart_tenant *tenant, u64 now, u32 line);

/* dart_use.c */
void dart_use_begins(struct dart_host *host);
void dart_use_ends(struct dart_host *host);
u32 dart_use_share(const struct dart_host *host);
u32 dart_use_messages(const struct dart_host *host);
void dart_use_look(struct dart_senders *s, struct dart_tenant *tenant, u64 now, u32 line,
		   u32 rtt_us);
void dart_use_add(struct dart_senders *s, struct dart_message *msg, u32 bytes);

void dart_meter_add(struct dart_senders *s, u64 now, u32 bytes, u32 line);

/* The rest runs for each packet, and nearly always ends at its first test. */

/**
 * dart_senders_look() - remove dead hosts, if it is time to look for them
 * @s: the namespace's senders
 *
 * Return: the number of hosts removed.
 */
static inline u32 dart_senders_look(struct dart_senders *s)
{
	return time_before(jiffies, READ_ONCE(s->reap_at)) ? 0 : dart_senders_reap(s);
}

/**
 * dart_message_seen() - a packet of a message has arrived
 * @msg: the message; it has a sender
 *
 * Return: false if its sender has been found dead since the message began.  The message
 * no longer counts then, and has to begin again.
 */
static inline bool dart_message_seen(const struct dart_message *msg)
{
	struct dart_host *host = msg->host;

	/* Only the first packet of a jiffy writes to the cache line. */
	if (time_after(jiffies, READ_ONCE(host->seen)))
		WRITE_ONCE(host->seen, jiffies);
	return READ_ONCE(host->epoch) == msg->epoch;
}

/**
 * dart_message_expire() - remove announced hosts that have not sent in time
 * @s: the namespace's senders
 * @msg: a message to the tenant concerned; it has a sender
 * @now: in ns
 */
static inline void dart_message_expire(struct dart_senders *s, const struct dart_message *msg,
				       u64 now)
{
	struct dart_tenant *tenant = msg->host->tenant;
	u64 expires = READ_ONCE(tenant->expires);

	if (unlikely(expires && now >= expires))
		dart_tenant_expire(s, tenant, now);
}

#endif /* _DART_SENDERS_H */
