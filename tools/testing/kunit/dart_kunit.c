// SPDX-License-Identifier: GPL-2.0
/* KUnit: the set of senders (net/ipv4/dart_senders.c) and the lists that announce them
 * (net/ipv4/dart_lookahead.c).
 *
 * Both files are compiled into this one, with a clock that only the cases advance, and an
 * allocator that counts live allocations and fails when a case requests it.
 */
#include <kunit/test.h>
#include <linux/cgroup.h>
#include <linux/hashtable.h>
#include <linux/jiffies.h>
#include <linux/ktime.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/slab.h>
#include <net/greenlane.h>
#include <net/sock.h>

static u64 dart_test_ns;
static unsigned long dart_test_jiffies;
static int dart_test_allocated;
static int dart_test_allocations_left;	/* negative: no limit */

static void *dart_test_zalloc(size_t size, gfp_t flags)
{
	void *p;

	if (!dart_test_allocations_left)
		return NULL;
	dart_test_allocations_left--;
	p = kzalloc(size, flags);
	dart_test_allocated += !!p;
	return p;
}

static void dart_test_free(const void *p)
{
	dart_test_allocated -= !!p;
	kfree(p);
}

#define ktime_get_ns()		dart_test_ns
#define jiffies			dart_test_jiffies
#undef kzalloc
#define kzalloc(size, flags)	dart_test_zalloc(size, flags)
#define kfree(p)		dart_test_free(p)

#include "net/ipv4/dart_lookahead.c"
#include "net/ipv4/dart_senders.c"
#include "net/ipv4/dart_use.c"

/* Line rates in kB/s.  At 10 Gbit/s a window is 20 us, in which 25000 bytes arrive. */
#define LINE		1250000
#define WINDOW		20000
#define LINE_1G		125000

/* The host 10.0.0.@n */
#define HOST(n)		(0x0a000000 | (n))

static struct dart_senders *set;

/**
 * struct conn - a connection, as far as the set is concerned
 * @sk: the receiving socket
 * @msg: its message
 */
struct conn {
	struct sock		sk;
	struct dart_message	msg;
};

static struct conn *new_conn(struct kunit *test, u32 host)
{
	struct conn *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, c);
	c->sk.sk_family = AF_INET;
	c->sk.sk_daddr = htonl(host);
	return c;
}

static void begins_weighted(struct conn *c, enum dart_tenancy how, u32 weight)
{
	dart_message_begins(set, &c->msg, &c->sk, how, weight);
}

static void begins(struct conn *c)
{
	begins_weighted(c, DART_TENANT_ALL, 1);
}

static void ends(struct conn *c)
{
	dart_message_ends(set, &c->msg);
}

static struct dart_tenant *tenant_of(const struct conn *c)
{
	return c->msg.host->tenant;
}

static u32 divisor(const struct conn *c)
{
	return dart_message_divisor(&c->msg);
}

/* The only tenant, or NULL if there is none. */
static struct dart_tenant *only_tenant(void)
{
	return list_first_entry_or_null(&set->tenants, struct dart_tenant, list);
}

/* Announce @n hosts from HOST(@first) on to the tenant of @c. */
static bool announce(struct conn *c, u32 first, u32 n, u32 rate)
{
	struct dart_group group = { .n = n };
	u32 i;

	for (i = 0; i < n; i++)
		group.id[i] = HOST(first + i);
	return dart_senders_name(set, tenant_of(c), &group, dart_test_ns, rate);
}

static void pass_ns(u64 ns)
{
	dart_test_ns += ns;
}

/* Advance to a time at which the set searches for dead hosts; returns their number. */
static u32 look_after(unsigned long ticks)
{
	dart_test_jiffies += ticks;
	set->reap_at = dart_test_jiffies;
	return dart_senders_look(set);
}

/* The invariants between any two calls. */
static void check(struct kunit *test)
{
	struct dart_tenant *tenant;
	struct dart_host *host;
	u32 active = 0;
	int i;

	list_for_each_entry(tenant, &set->tenants, list) {
		u32 known = 0, n = 0, weight = 0, expected = 0;

		hash_for_each(tenant->hosts, i, host, node) {
			known++;
			KUNIT_ASSERT_PTR_EQ(test, host->tenant, tenant);
			KUNIT_ASSERT_GE(test, host->refs, host->messages);
			KUNIT_ASSERT_EQ(test, host->alive, host->messages || host->expected);
			KUNIT_ASSERT_FALSE(test, host->messages && host->expected);
			/* An expected host expires at a time that the tenant knows. */
			if (host->expected) {
				KUNIT_ASSERT_NE(test, tenant->expires, 0);
				KUNIT_ASSERT_LE(test, tenant->expires,
						host->named + DART_EXPECT_NS);
			}
			expected += host->expected;
			if (host->alive) {
				n++;
				weight += host->weight;
			}
		}
		KUNIT_ASSERT_EQ(test, tenant->known, known);
		KUNIT_ASSERT_EQ(test, tenant->n, n);
		KUNIT_ASSERT_EQ(test, tenant->weight, weight);
		KUNIT_ASSERT_EQ(test, tenant->expected, expected);
		KUNIT_ASSERT_LE(test, expected, DART_EXPECTED);
		active += n > expected;
	}
	KUNIT_ASSERT_EQ(test, set->active, active);
}

static int dart_senders_test_init(struct kunit *test)
{
	dart_test_ns = 100 * NSEC_PER_SEC;
	dart_test_jiffies = 100 * HZ;
	dart_test_allocated = 0;
	dart_test_allocations_left = -1;
	set = kunit_kzalloc(test, sizeof(*set), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, set);
	dart_senders_init(set);
	return 0;
}

/* A case need not empty its set; after dart_senders_exit() no allocation may remain. */
static void dart_senders_test_exit(struct kunit *test)
{
	if (!set)
		return;
	dart_senders_exit(set);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
	set = NULL;
}

/* --- the set ---------------------------------------------------------------- */

static void dart_message_begins__a_sender_is_a_host(struct kunit *test)
{
	struct conn *a1 = new_conn(test, HOST(1)), *a2 = new_conn(test, HOST(1));
	struct conn *b = new_conn(test, HOST(2));

	begins(a1);
	KUNIT_EXPECT_EQ(test, tenant_of(a1)->n, 1);
	KUNIT_EXPECT_EQ(test, divisor(a1), DART_ONE);
	begins(a2);
	KUNIT_EXPECT_PTR_EQ(test, a1->msg.host, a2->msg.host);
	KUNIT_EXPECT_EQ(test, tenant_of(a1)->n, 1);
	KUNIT_EXPECT_EQ(test, divisor(a1), 2 * DART_ONE);
	begins(b);
	KUNIT_EXPECT_PTR_NE(test, a1->msg.host, b->msg.host);
	KUNIT_EXPECT_EQ(test, tenant_of(a1)->n, 2);
	check(test);
	/* Each host has half, and a host's messages divide its half. */
	KUNIT_EXPECT_EQ(test, divisor(a1), 4 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(a2), 4 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(b), 2 * DART_ONE);
}

static void dart_message_ends__the_last_one_takes_its_host_out(struct kunit *test)
{
	struct conn *a1 = new_conn(test, HOST(1)), *a2 = new_conn(test, HOST(1));
	struct conn *b = new_conn(test, HOST(2));

	begins(a1);
	begins(a2);
	begins(b);
	ends(a1);
	KUNIT_EXPECT_NULL(test, a1->msg.host);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 2);
	KUNIT_EXPECT_EQ(test, divisor(a2), 2 * DART_ONE);
	ends(a2);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->weight, 1);
	KUNIT_EXPECT_EQ(test, divisor(b), DART_ONE);
	KUNIT_EXPECT_EQ(test, set->active, 1);
	/* b and its tenant */
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 2);
	ends(b);
	KUNIT_EXPECT_EQ(test, set->active, 0);
	KUNIT_EXPECT_TRUE(test, list_empty(&set->tenants));
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
}

/* Messages of one host overlap: the host is in the set all the time, once. */
static void dart_message_begins__overlapping(struct kunit *test)
{
	struct conn *a1 = new_conn(test, HOST(1)), *a2 = new_conn(test, HOST(1));
	int i;

	begins(a1);
	for (i = 0; i < 100; i++) {
		begins(a2);
		ends(a1);
		KUNIT_EXPECT_EQ(test, tenant_of(a2)->n, 1);
		KUNIT_EXPECT_EQ(test, divisor(a2), DART_ONE);
		begins(a1);
		ends(a2);
		check(test);
	}
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 2);
	ends(a1);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
}

static void dart_message_begins__weights(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));
	struct conn *b2 = new_conn(test, HOST(2));

	begins_weighted(a, DART_TENANT_ALL, 1);
	begins_weighted(b, DART_TENANT_ALL, 3);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 4);
	KUNIT_EXPECT_EQ(test, divisor(a), 4 * DART_ONE);
	/* 4 / 3 of 256 */
	KUNIT_EXPECT_EQ(test, divisor(b), 341);
	/* The largest weight of a host's messages is the host's. */
	begins_weighted(b2, DART_TENANT_ALL, 2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 4);
	KUNIT_EXPECT_EQ(test, divisor(b2), 682);
	ends(b2);
	begins_weighted(b2, DART_TENANT_ALL, 7);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 8);
	check(test);
	/* The host keeps its weight until it leaves; then the tenant's sum is without it. */
	ends(b2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 8);
	ends(b);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 1);
	KUNIT_EXPECT_EQ(test, divisor(a), DART_ONE);
	check(test);
}

/* A host that left and was not freed, because it has been announced, begins anew. */
static void dart_message_begins__weight_of_a_host_that_was_here(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	begins(a);
	begins_weighted(b, DART_TENANT_ALL, 5);
	KUNIT_EXPECT_TRUE(test, announce(a, 2, 1, 1000));
	ends(b);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->known, 2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	begins_weighted(b, DART_TENANT_ALL, 2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->weight, 3);
	check(test);
}

static void dart_address_id__addresses(struct kunit *test)
{
	static const struct in6_addr mapped = { .s6_addr = {
		[10] = 0xff, [11] = 0xff, [12] = 10, [15] = 7 } };
	static const struct in6_addr v6 = { .s6_addr = {
		0x20, 1, 0x0d, 0xb8, 0, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 1 } };

	KUNIT_EXPECT_EQ(test, dart_address_id(&mapped), HOST(7));
	/* 20010db8 ^ 0 ^ 80000000 ^ 1 */
	KUNIT_EXPECT_EQ(test, dart_address_id(&v6), 0xa0010db9);
	/* :: is not v4-mapped, and loopback has one bit */
	KUNIT_EXPECT_EQ(test, dart_address_id(&in6addr_any), 0);
	KUNIT_EXPECT_EQ(test, dart_address_id(&in6addr_loopback), 1);
}

/* A host is the same one over an IPv4 socket and over an IPv6 socket. */
static void dart_message_begins__v4_mapped_is_v4(struct kunit *test)
{
#if IS_ENABLED(CONFIG_IPV6)
	struct conn *a = new_conn(test, HOST(7)), *b = new_conn(test, HOST(9));
	struct conn *c = new_conn(test, 0);

	b->sk.sk_family = AF_INET6;
	ipv6_addr_set_v4mapped(htonl(HOST(7)), &b->sk.sk_v6_daddr);
	c->sk.sk_family = AF_INET6;
	c->sk.sk_v6_daddr = in6addr_loopback;
	begins(a);
	begins(b);
	begins(c);
	KUNIT_EXPECT_PTR_EQ(test, a->msg.host, b->msg.host);
	KUNIT_EXPECT_EQ(test, a->msg.host->id, HOST(7));
	KUNIT_EXPECT_EQ(test, c->msg.host->id, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
#else
	kunit_skip(test, "no IPv6");
#endif
}

/* More hosts than the table has buckets. */
static void dart_message_begins__many_hosts(struct kunit *test)
{
	struct conn **c = kunit_kcalloc(test, 300, sizeof(*c), GFP_KERNEL);
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	for (i = 0; i < 300; i++) {
		c[i] = new_conn(test, HOST(i * 64));
		begins(c[i]);
		KUNIT_ASSERT_EQ(test, tenant_of(c[i])->n, i + 1);
	}
	check(test);
	for (i = 0; i < 300; i++)
		KUNIT_EXPECT_EQ(test, divisor(c[i]), 300 * DART_ONE);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 301);
	for (i = 0; i < 300; i += 2)
		ends(c[i]);
	check(test);
	KUNIT_EXPECT_EQ(test, tenant_of(c[1])->n, 150);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 151);
}

/* --- tenants ------------------------------------------------------------------ */

static void dart_message_begins__tenants_have_sets_of_their_own(struct kunit *test)
{
	struct conn *c[4];
	int i;

	for (i = 0; i < ARRAY_SIZE(c); i++)
		c[i] = new_conn(test, HOST(i == 3 ? 2 : i));
	/* Hosts 0, 1 and 2 to mark 5, host 2 to mark 6 as well. */
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i]->sk.sk_mark = i == 3 ? 6 : 5;
		begins_weighted(c[i], DART_TENANT_MARK, 1);
	}
	KUNIT_EXPECT_PTR_EQ(test, tenant_of(c[0]), tenant_of(c[2]));
	KUNIT_EXPECT_PTR_NE(test, tenant_of(c[2]), tenant_of(c[3]));
	KUNIT_EXPECT_EQ(test, set->active, 2);
	KUNIT_EXPECT_EQ(test, divisor(c[2]), 3 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(c[3]), DART_ONE);
	check(test);
	ends(c[0]);
	KUNIT_EXPECT_EQ(test, divisor(c[2]), 2 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(c[3]), DART_ONE);
	ends(c[3]);
	KUNIT_EXPECT_EQ(test, set->active, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[2]), 2 * DART_ONE);
	KUNIT_EXPECT_PTR_EQ(test, only_tenant(), tenant_of(c[2]));
	check(test);
}

static void dart_message_begins__one_tenant_for_all(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	a->sk.sk_mark = 5;
	b->sk.sk_mark = 6;
	begins(a);
	begins(b);
	KUNIT_EXPECT_PTR_EQ(test, tenant_of(a), tenant_of(b));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->id, 0);
	KUNIT_EXPECT_EQ(test, set->active, 1);
}

static void dart_message_begins__cgroups(struct kunit *test)
{
#ifdef CONFIG_SOCK_CGROUP_DATA
	struct cgroup *cgroup = kunit_kcalloc(test, 3, sizeof(*cgroup), GFP_KERNEL);
	struct kernfs_node kn[3] = { { .id = 77 }, { .id = 1ULL << 40 }, { .id = 1 } };
	struct conn *c[5];
	int i;

	KUNIT_ASSERT_NOT_NULL(test, cgroup);
	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = new_conn(test, HOST(i));
		c[i]->sk.sk_mark = i;
		cgroup[i / 2].kn = &kn[i / 2];
		/* The last one is the root cgroup. */
		cgroup[i / 2].self.parent = i / 2 < 2 ? &cgroup[2].self : NULL;
		c[i]->sk.sk_cgrp_data.cgroup = &cgroup[i / 2];
		begins_weighted(c[i], DART_TENANT_CGROUP, 1);
	}
	KUNIT_EXPECT_PTR_EQ(test, tenant_of(c[0]), tenant_of(c[1]));
	KUNIT_EXPECT_PTR_NE(test, tenant_of(c[1]), tenant_of(c[2]));
	KUNIT_EXPECT_EQ(test, tenant_of(c[0])->id, 77);
	KUNIT_EXPECT_EQ(test, tenant_of(c[2])->id, 1ULL << 40);
	KUNIT_EXPECT_FALSE(test, dart_is_common(&c[0]->sk, DART_TENANT_CGROUP));
	KUNIT_EXPECT_EQ(test, tenant_of(c[4])->id, DART_COMMON);
	KUNIT_EXPECT_TRUE(test, dart_is_common(&c[4]->sk, DART_TENANT_CGROUP));
	/* By mark, sockets without a mark belong to the common tenant. */
	KUNIT_EXPECT_TRUE(test, dart_is_common(&c[0]->sk, DART_TENANT_MARK));
	KUNIT_EXPECT_FALSE(test, dart_is_common(&c[1]->sk, DART_TENANT_MARK));
	KUNIT_EXPECT_TRUE(test, dart_is_common(&c[1]->sk, DART_TENANT_ALL));
#else
	kunit_skip(test, "no cgroups of sockets");
#endif
}

/* --- dead hosts ----------------------------------------------------------------- */

/* Idle for 2 s, and not a tick less, while the tick counter wraps around. */
static void dart_senders_look__idle_hosts_die(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	dart_test_jiffies = -DART_IDLE / 2;
	begins(a);
	begins(b);
	KUNIT_EXPECT_EQ(test, look_after(HZ / 2), 0);
	KUNIT_EXPECT_TRUE(test, dart_message_seen(&b->msg));
	KUNIT_EXPECT_EQ(test, look_after(DART_IDLE - HZ / 2 - 1), 0);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_EQ(test, look_after(1), 1);
	check(test);
	KUNIT_EXPECT_FALSE(test, dart_message_seen(&a->msg));
	KUNIT_EXPECT_TRUE(test, dart_message_seen(&b->msg));
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 1);
	KUNIT_EXPECT_EQ(test, divisor(b), DART_ONE);
	/* Its connection still points to it, and a dead host dies once. */
	KUNIT_EXPECT_EQ(test, tenant_of(b)->known, 2);
	KUNIT_EXPECT_EQ(test, a->msg.host->refs, 1);
	KUNIT_EXPECT_EQ(test, look_after(HZ), 0);
}

static void dart_senders_look__seldom(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));

	KUNIT_EXPECT_EQ(test, DART_IDLE, 2 * HZ);
	KUNIT_EXPECT_EQ(test, DART_REAP, HZ / 4);
	begins(a);
	KUNIT_EXPECT_EQ(test, look_after(DART_IDLE - 1), 0);
	/* The host is due, but the last search was just before. */
	dart_test_jiffies += DART_REAP - 1;
	KUNIT_EXPECT_EQ(test, dart_senders_look(set), 0);
	/* Another CPU waits for the lock meanwhile. */
	KUNIT_EXPECT_EQ(test, dart_senders_reap(set), 0);
	dart_test_jiffies++;
	KUNIT_EXPECT_EQ(test, dart_senders_look(set), 1);
	KUNIT_EXPECT_TRUE(test, list_is_singular(&set->tenants));
}

static void dart_message_seen__keeps_its_host(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));
	int i;

	begins(a);
	for (i = 0; i < 10; i++) {
		KUNIT_EXPECT_EQ(test, look_after(DART_IDLE - 1), 0);
		KUNIT_EXPECT_TRUE(test, dart_message_seen(&a->msg));
	}
	KUNIT_EXPECT_EQ(test, a->msg.host->epoch, 0);
}

/* The connection's next packet finds its host dead: the message begins again. */
static void dart_message_begins__a_dead_host_comes_back(struct kunit *test)
{
	struct conn *a1 = new_conn(test, HOST(1)), *a2 = new_conn(test, HOST(1));
	struct conn *a3 = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));
	struct dart_host *host;

	begins(a1);
	begins(a2);
	begins(a3);
	KUNIT_EXPECT_EQ(test, look_after(DART_IDLE), 1);
	host = a1->msg.host;
	KUNIT_EXPECT_EQ(test, host->messages, 0);
	KUNIT_EXPECT_EQ(test, host->refs, 3);
	KUNIT_EXPECT_EQ(test, set->active, 0);
	begins(b);

	KUNIT_EXPECT_FALSE(test, dart_message_seen(&a1->msg));
	ends(a1);
	begins(a1);
	KUNIT_EXPECT_PTR_EQ(test, a1->msg.host, host);
	KUNIT_EXPECT_TRUE(test, dart_message_seen(&a1->msg));
	KUNIT_EXPECT_EQ(test, host->messages, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 2);
	KUNIT_EXPECT_EQ(test, divisor(a1), 2 * DART_ONE);
	check(test);
	/* A message from before its death does not end one of now. */
	ends(a2);
	KUNIT_EXPECT_EQ(test, host->messages, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 2);
	check(test);
	/* And neither does the last message that points to the host, after the host has left. */
	ends(a1);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->n, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->known, 2);
	check(test);
	ends(a3);
	KUNIT_EXPECT_EQ(test, tenant_of(b)->known, 1);
	check(test);
}

static void dart_senders_look__tenants_of_the_dead(struct kunit *test)
{
	struct conn *c[6];
	int i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = new_conn(test, HOST(i));
		c[i]->sk.sk_mark = i / 2;
		begins_weighted(c[i], DART_TENANT_MARK, 1);
	}
	/* One of the second tenant's hosts sends. */
	dart_test_jiffies += DART_IDLE - 1;
	dart_message_seen(&c[2]->msg);
	KUNIT_EXPECT_EQ(test, look_after(1), 5);
	KUNIT_EXPECT_EQ(test, set->active, 1);
	check(test);
	for (i = 0; i < ARRAY_SIZE(c); i++)
		ends(c[i]);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
}

/* --- announced hosts -------------------------------------------------------------- */

static void dart_senders_name__counts_at_once(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));

	begins(a);
	/* Hosts 1 to 5, and host 1 is the sender. */
	KUNIT_EXPECT_TRUE(test, announce(a, 1, 5, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 5);
	KUNIT_EXPECT_EQ(test, divisor(a), 5 * DART_ONE);
	check(test);
	/* They do not send, and 1 ms later they do not count any more. */
	pass_ns(DART_EXPECT_NS - 1);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 5);
	check(test);
	pass_ns(1);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->expires, 0);
	KUNIT_EXPECT_EQ(test, divisor(a), DART_ONE);
	KUNIT_EXPECT_EQ(test, DART_EXPECT_NS, NSEC_PER_MSEC);
	check(test);
}

static void dart_senders_name__those_who_come_stay(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	begins(a);
	announce(a, 1, 3, 1000);
	pass_ns(DART_EXPECT_NS / 2);
	begins(b);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 3);
	check(test);
	pass_ns(DART_EXPECT_NS);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_EQ(test, b->msg.host->messages, 1);
	check(test);
	ends(b);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	check(test);
}

/* Hosts that were announced at different times expire at different times. */
static void dart_tenant_expire__each_in_its_time(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));
	u64 began = dart_test_ns;

	begins(a);
	announce(a, 10, 1, 1000);
	pass_ns(300);
	announce(a, 20, 2, 1000);
	pass_ns(300);
	announce(a, 30, 1, 1000);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 5);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->expires, began + DART_EXPECT_NS);
	dart_message_expire(set, &a->msg, began + DART_EXPECT_NS);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 4);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->expires, began + 300 + DART_EXPECT_NS);
	check(test);
	dart_message_expire(set, &a->msg, began + 300 + DART_EXPECT_NS);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->expires, began + 600 + DART_EXPECT_NS);
	dart_message_expire(set, &a->msg, began + 600 + DART_EXPECT_NS);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->expires, 0);
	check(test);
}

/* Each message of an incast announces the same hosts, among them such as have sent
 * already and left the set.
 */
static void dart_senders_name__not_twice_for_one_incast(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	begins(a);
	announce(a, 1, 3, 1000);
	begins(b);
	ends(b);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	/* Host 2 has left; host 3 is still expected. */
	KUNIT_EXPECT_TRUE(test, announce(a, 1, 3, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	check(test);
	pass_ns(DART_EXPECT_NS);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	pass_ns(DART_EXPECT_NS - 1);
	KUNIT_EXPECT_TRUE(test, announce(a, 1, 3, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	/* 2 ms after the first time it may be the next incast. */
	pass_ns(1);
	KUNIT_EXPECT_TRUE(test, announce(a, 1, 3, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 3);
	check(test);
}

/* An announced host is idle from then on, not from its last packet on. */
static void dart_senders_name__is_a_sign_of_life(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	begins(b);
	KUNIT_EXPECT_EQ(test, look_after(DART_IDLE), 1);
	begins(a);
	KUNIT_EXPECT_TRUE(test, announce(a, 2, 1, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_EQ(test, look_after(0), 0);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	check(test);
	/* If dart_message_expire() is not called, the search removes the announced host. */
	dart_test_jiffies += DART_IDLE - 1;
	dart_message_seen(&a->msg);
	KUNIT_EXPECT_EQ(test, look_after(1), 1);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	check(test);
	/* The epoch of host 2 has changed twice, and its message is of the first epoch. */
	ends(b);
	check(test);
}

static void dart_senders_name__limited(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));
	int i;

	b->sk.sk_mark = 1;
	begins_weighted(a, DART_TENANT_MARK, 1);
	begins_weighted(b, DART_TENANT_MARK, 1);
	KUNIT_EXPECT_FALSE(test, announce(a, 10, 1, 0));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->known, 1);
	/* A burst of 16, then one a millisecond. */
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_TRUE(test, announce(a, 10 + i, 1, 1000));
	KUNIT_EXPECT_FALSE(test, announce(a, 40, 1, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->known, 17);
	pass_ns(NSEC_PER_MSEC - 1);
	KUNIT_EXPECT_FALSE(test, announce(a, 40, 1, 1000));
	pass_ns(1);
	KUNIT_EXPECT_TRUE(test, announce(a, 40, 1, 1000));
	KUNIT_EXPECT_FALSE(test, announce(a, 41, 1, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->known, 18);
	/* The other tenant has its own tokens. */
	KUNIT_EXPECT_TRUE(test, announce(b, 41, 1, 1000));
	/* After an hour there are 16 tokens, and no more. */
	pass_ns(3600 * NSEC_PER_SEC);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_TRUE(test, announce(a, 10 + i, 1, 1000));
	KUNIT_EXPECT_FALSE(test, announce(a, 40, 1, 1000));
	check(test);
}

/* Just after boot there has not been enough time for 16 tokens at a low rate. */
static void dart_senders_name__after_boot(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));

	begins(a);
	dart_test_ns = NSEC_PER_SEC + 1;
	KUNIT_EXPECT_TRUE(test, announce(a, 10, 1, 1));
	KUNIT_EXPECT_FALSE(test, announce(a, 11, 1, 1));
}

/* An idle tenant is kept until its tokens are back, so that it cannot get new ones by
 * leaving and joining again.
 */
static void dart_tenant_put__not_before_its_tokens_are_back(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));
	u64 began = dart_test_ns;
	int i;

	begins(a);
	for (i = 0; i < 16; i++)
		KUNIT_EXPECT_TRUE(test, announce(a, 1, 1, 10));
	ends(a);
	KUNIT_EXPECT_EQ(test, set->active, 0);
	begins(a);
	KUNIT_EXPECT_FALSE(test, announce(a, 1, 1, 10));
	ends(a);
	/* 16 tokens of 100 ms each */
	dart_test_ns = began + 1600 * NSEC_PER_MSEC - 1;
	look_after(DART_REAP);
	KUNIT_ASSERT_NOT_NULL(test, only_tenant());
	KUNIT_EXPECT_EQ(test, only_tenant()->known, 0);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 1);
	pass_ns(1);
	look_after(DART_REAP);
	KUNIT_EXPECT_NULL(test, only_tenant());
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
	/* One token is back after 100 ms. */
	begins(a);
	KUNIT_EXPECT_TRUE(test, announce(a, 1, 1, 10));
	ends(a);
	pass_ns(100 * NSEC_PER_MSEC);
	look_after(DART_REAP);
	KUNIT_EXPECT_NULL(test, only_tenant());
}

/* At most 64 announced hosts are expected at a time; a host that sends or leaves makes room. */
static void dart_senders_name__expected_at_a_time(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(70));

	begins(a);
	KUNIT_EXPECT_TRUE(test, announce(a, 10, 40, 1000));
	KUNIT_EXPECT_TRUE(test, announce(a, 60, 40, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1 + 64);
	KUNIT_EXPECT_TRUE(test, announce(a, 200, 1, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1 + 64);
	check(test);
	/* Host 70 was expected and sends, so another may be expected. */
	begins(b);
	KUNIT_EXPECT_TRUE(test, announce(a, 200, 2, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1 + 1 + 64);
	check(test);
	pass_ns(DART_EXPECT_NS);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2);
	KUNIT_EXPECT_TRUE(test, announce(a, 300, 64, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 2 + 64);
	check(test);
}

/* The maximum to be announced at once is one list of 64 hosts; further lists find no room. */
static void dart_senders_name__memory_is_given_back(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));
	int i;

	begins(a);
	for (i = 0; i < 16; i++)
		announce(a, 64 * (i + 1), 64, 1000);
	announce(a, 64 * 17, 64, 1000);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 65);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 66);
	check(test);
	pass_ns(2 * DART_EXPECT_NS - 1);
	dart_message_expire(set, &a->msg, dart_test_ns);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 1);
	/* They are known a little longer, so that they are not counted again. */
	look_after(0);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 66);
	pass_ns(1);
	KUNIT_EXPECT_EQ(test, look_after(0), 0);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 2);
	check(test);
}

/* --- without memory ---------------------------------------------------------------- */

static void dart_message_begins__no_memory(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(2));

	/* not for the tenant */
	dart_test_allocations_left = 0;
	begins(a);
	KUNIT_EXPECT_NULL(test, a->msg.host);
	KUNIT_EXPECT_TRUE(test, list_empty(&set->tenants));
	/* for the tenant, not for the host */
	dart_test_allocations_left = 1;
	begins(a);
	KUNIT_EXPECT_NULL(test, a->msg.host);
	KUNIT_EXPECT_TRUE(test, list_empty(&set->tenants));
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
	/* and with one host there */
	dart_test_allocations_left = 2;
	begins(a);
	begins(b);
	KUNIT_EXPECT_NULL(test, b->msg.host);
	KUNIT_EXPECT_EQ(test, divisor(a), DART_ONE);
	check(test);
}

static void dart_senders_name__no_memory(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));

	begins(a);
	dart_test_allocations_left = 2;
	KUNIT_EXPECT_TRUE(test, announce(a, 10, 5, 1000));
	KUNIT_EXPECT_EQ(test, tenant_of(a)->n, 3);
	check(test);
}

/* Teardown with members left: dart_senders_test_exit() looks for leaks. */
static void dart_senders_exit__members_left(struct kunit *test)
{
	struct conn *c[8];
	int i;

	for (i = 0; i < ARRAY_SIZE(c); i++) {
		c[i] = new_conn(test, HOST(i));
		c[i]->sk.sk_mark = i / 3;
		begins_weighted(c[i], DART_TENANT_MARK, 1);
	}
	announce(c[0], 100, 64, 1000);
	/* A tenant without hosts, and dead hosts that a connection points to. */
	announce(c[7], 7, 1, 1);
	ends(c[7]);
	ends(c[6]);
	pass_ns(2 * DART_EXPECT_NS);
	KUNIT_EXPECT_GT(test, look_after(DART_IDLE), 0);
	announce(c[3], 200, 64, 1000);
	check(test);
	KUNIT_EXPECT_GT(test, dart_test_allocated, 64);
}

/* --- divisors ----------------------------------------------------------------------- */

static void dart_message_divisor__bounds(struct kunit *test)
{
	struct dart_tenant tenant = { .weight = 1 };
	struct dart_host host = { .tenant = &tenant, .weight = 1, .messages = 1 };
	struct dart_message msg = { .host = &host };

	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 256);
	/* 65535.996 is the largest divisor */
	tenant.weight = 65535;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 65535 * 256);
	tenant.weight = 65536;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 0xffffff);
	tenant.weight = U32_MAX;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 0xffffff);
	host.messages = 1 << 24;
	host.busy = 1 << 24;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 0xffffff);
	/* in 64 bits: 2^24 * 2^10 * 2^8 */
	tenant.weight = 1 << 24;
	host.weight = 1 << 24;
	host.messages = 1 << 10;
	host.busy = 1 << 10;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 256 << 10);
	/* The lock is not held: the host may leave or join the set meanwhile. */
	host.messages = 0;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 256);
	host.weight = 1;
	tenant.weight = 4;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 4 * 256);
	tenant.weight = 0;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 256);
	host.weight = 0;
	KUNIT_EXPECT_EQ(test, dart_message_divisor(&msg), 256);
}

/* --- the use of shares ------------------------------------------------------------------ */

/* An interval of 1 ms, in which host I sends @bytes[I]. */
static void brings(struct conn **c, const u32 *bytes, int n)
{
	int i;

	for (i = 0; i < n; i++)
		dart_use_add(set, &c[i]->msg, bytes[i]);
	dart_test_ns += DART_LOOK_NS;
	dart_use_look(set, tenant_of(c[0]), dart_test_ns, LINE, 20);
}

/* Limited hosts count at twice their use, and the others divide the rest of the line rate. */
static void dart_use_look__the_rest_is_divided(struct kunit *test)
{
	/* of 1.25 MB in 1 ms: a fiftieth, 0, and two quarters */
	const u32 bytes[] = { 25000, 0, 312500, 312500 };
	struct conn *c[4];
	int i;

	for (i = 0; i < 4; i++) {
		c[i] = new_conn(test, HOST(i));
		begins(c[i]);
	}
	/* In the first interval all hosts are fresh: no host is limited. */
	brings(c, bytes, 4);
	for (i = 0; i < 4; i++)
		KUNIT_EXPECT_EQ(test, divisor(c[i]), 4 * DART_ONE);
	brings(c, bytes, 4);
	KUNIT_EXPECT_EQ(test, tenant_of(c[0])->limited, 2);
	/* 0.48, 0.48 */
	KUNIT_EXPECT_EQ(test, divisor(c[2]), DART_ONE * 100 / 48);
	KUNIT_EXPECT_EQ(test, divisor(c[3]), DART_ONE * 100 / 48);
	/* The shares that the limited hosts would have: a third of all, and of 0.96 */
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 3 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(c[1]), 300 * DART_ONE / 96);
	for (i = 0; i < 4; i++)
		ends(c[i]);
	KUNIT_EXPECT_NULL(test, only_tenant());
}

/* Up to half of the line rate was reserved: a host that used half of its share is not limited. */
static void dart_use_look__beside_the_reserve(struct kunit *test)
{
	/* a sixth of the line rate is half of a third; and a 25th */
	const u32 bytes[] = { 208000, 208000, 50000 };
	struct conn *c[3];
	int i;

	for (i = 0; i < 3; i++) {
		c[i] = new_conn(test, HOST(i));
		begins(c[i]);
	}
	brings(c, bytes, 3);
	dart_tenant_marked(set, tenant_of(c[0]), dart_test_ns, LINE);
	brings(c, bytes, 3);
	KUNIT_EXPECT_FALSE(test, c[0]->msg.host->limited);
	KUNIT_EXPECT_FALSE(test, c[1]->msg.host->limited);
	KUNIT_EXPECT_TRUE(test, c[2]->msg.host->limited);
	brings(c, bytes, 3);
	KUNIT_EXPECT_TRUE(test, c[0]->msg.host->limited);
	for (i = 0; i < 3; i++)
		ends(c[i]);
}

/* An hour without dart_use_look(), at 400 Gbit/s */
static void dart_use_look__after_a_pause(struct kunit *test)
{
	struct conn *c = new_conn(test, HOST(1));

	begins(c);
	dart_use_look(set, tenant_of(c), dart_test_ns, 50000000, 20);
	dart_test_ns += 3600 * NSEC_PER_SEC;
	dart_use_add(set, &c->msg, U32_MAX / 4);
	dart_use_look(set, tenant_of(c), dart_test_ns, 50000000, 20);
	KUNIT_EXPECT_EQ(test, c->msg.host->used,
			div64_u64((u64)(U32_MAX / 4) * 2 * DART_USE_ONE, 180000000000000ull));
	ends(c);
}

/* A connection whose round trip was 900 ms does not stop the tenant's next look. */
static void dart_use_look__a_long_path(struct kunit *test)
{
	struct conn *c = new_conn(test, HOST(1));

	begins(c);
	dart_use_look(set, tenant_of(c), dart_test_ns, LINE, 900000);
	KUNIT_EXPECT_EQ(test, tenant_of(c)->look_at, dart_test_ns + 20 * NSEC_PER_MSEC);
	ends(c);
}

static void dart_use_add__a_host_comes_back(struct kunit *test)
{
	const u32 bytes[] = { 600000, 0 };
	struct conn *c[2] = { new_conn(test, HOST(1)), new_conn(test, HOST(2)) };

	begins(c[0]);
	begins(c[1]);
	brings(c, bytes, 2);
	brings(c, bytes, 2);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), DART_ONE);
	dart_use_add(set, &c[1]->msg, DART_BACK);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), DART_ONE);
	dart_use_add(set, &c[1]->msg, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 2 * DART_ONE);
	KUNIT_EXPECT_EQ(test, divisor(c[1]), 2 * DART_ONE);
	/* Host 2 was limited for a part of the interval, so its use does not count. */
	brings(c, bytes, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 2 * DART_ONE);
	/* Without data it is limited again, and then leaves the set as any other host. */
	brings(c, bytes, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), DART_ONE);
	ends(c[1]);
	KUNIT_EXPECT_EQ(test, tenant_of(c[0])->limited, 0);
	KUNIT_EXPECT_EQ(test, tenant_of(c[0])->used, 0);
	ends(c[0]);
}

/* One of a host's two messages brings no data: the other has all of the host's share. */
static void dart_use_messages__those_that_bring_data(struct kunit *test)
{
	const u32 bytes[] = { 600000 };
	struct conn *c[2] = { new_conn(test, HOST(1)), new_conn(test, HOST(1)) };

	begins(c[0]);
	begins(c[1]);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 2 * DART_ONE);
	brings(c, bytes, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 2 * DART_ONE);
	brings(c, bytes, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), DART_ONE);
	dart_use_add(set, &c[0]->msg, 1);
	dart_use_add(set, &c[1]->msg, 1);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), 2 * DART_ONE);
	ends(c[1]);
	KUNIT_EXPECT_EQ(test, divisor(c[0]), DART_ONE);
	ends(c[0]);
}

/* --- the meter ----------------------------------------------------------------------- */

static void dart_window__lines(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, dart_window(LINE), WINDOW);
	/* 16 * 1538 bytes at 1 Gbit/s, and at 1 kB/s */
	KUNIT_EXPECT_EQ(test, dart_window(LINE_1G), 196864);
	KUNIT_EXPECT_EQ(test, dart_window(1), 24608 * NSEC_PER_MSEC);
	KUNIT_EXPECT_EQ(test, dart_window(U32_MAX), WINDOW);
}

/* @n packets of @bytes, one each @gap ns. */
static void receive(int n, u64 gap, u32 bytes)
{
	while (n--) {
		pass_ns(gap);
		dart_meter_add(set, dart_test_ns, bytes, LINE);
	}
}

static bool full(void)
{
	return dart_meter_full(set, dart_test_ns, LINE);
}

/* 1250 bytes a microsecond are the line rate.  The meter has the current window and the
 * one before.
 */
static void dart_meter_full__this_window_and_the_last(struct kunit *test)
{
	KUNIT_EXPECT_FALSE(test, full());
	receive(1, 1000, 1250);
	/* The packet begins a window, and its bytes arrived before that. */
	KUNIT_EXPECT_EQ(test, set->meter.start, dart_test_ns);
	KUNIT_EXPECT_EQ(test, set->meter.bytes, 0);
	KUNIT_EXPECT_EQ(test, set->meter.length, 0);
	KUNIT_EXPECT_FALSE(test, full());
	receive(19, 1000, 1250);
	KUNIT_EXPECT_EQ(test, set->meter.bytes, 19 * 1250);
	KUNIT_EXPECT_TRUE(test, full());
	/* The window has ended: its bytes are now those of the last window. */
	receive(1, 1000, 1250);
	KUNIT_EXPECT_EQ(test, set->meter.start, dart_test_ns);
	KUNIT_EXPECT_EQ(test, set->meter.last, 19 * 1250);
	KUNIT_EXPECT_EQ(test, set->meter.length, WINDOW);
	KUNIT_EXPECT_EQ(test, set->meter.bytes, 1250);
	KUNIT_EXPECT_TRUE(test, full());
	/* No packet arrives: 20 packets in 22 us, in 23 us. */
	pass_ns(2000);
	KUNIT_EXPECT_TRUE(test, full());
	pass_ns(1000);
	KUNIT_EXPECT_FALSE(test, full());
	/* Half of the line rate is not full, in any window. */
	receive(100, 2000, 1250);
	KUNIT_EXPECT_FALSE(test, full());
	/* One window at the line rate beside one at half of it is not full either. */
	set->meter = (struct dart_meter){ .start = dart_test_ns, .last = 12500, .length = WINDOW };
	receive(19, 1000, 1250);
	KUNIT_EXPECT_FALSE(test, full());
}

static void dart_meter_full__seven_eighths(struct kunit *test)
{
	/* In 32 us 40000 bytes arrive at 1250 bytes/us, of which 7/8 are 35000. */
	set->meter = (struct dart_meter){
		.start = dart_test_ns - 12000, .bytes = 15000, .last = 20000, .length = 20000 };
	KUNIT_EXPECT_TRUE(test, full());
	set->meter.last--;
	KUNIT_EXPECT_FALSE(test, full());
}

static void dart_meter_add__pause(struct kunit *test)
{
	receive(25, 1000, 1250);
	KUNIT_EXPECT_TRUE(test, full());
	/* One tick less than two windows is a long window. */
	set->meter.start = dart_test_ns;
	set->meter.bytes = 7;
	receive(1, 2 * WINDOW - 1, 1250);
	KUNIT_EXPECT_EQ(test, set->meter.last, 7);
	KUNIT_EXPECT_EQ(test, set->meter.length, 2 * WINDOW - 1);
	KUNIT_EXPECT_EQ(test, set->meter.bytes, 1250);
	/* Two windows are a pause: the meter forgets earlier bytes. */
	receive(1, 2 * WINDOW, 1250);
	KUNIT_EXPECT_EQ(test, set->meter.last, 0);
	KUNIT_EXPECT_EQ(test, set->meter.length, 0);
	KUNIT_EXPECT_EQ(test, set->meter.bytes, 0);
	KUNIT_EXPECT_EQ(test, set->meter.start, dart_test_ns);
	/* and the link may be full with the next packet */
	receive(1, 1000, 1250);
	KUNIT_EXPECT_TRUE(test, full());
}

static void dart_meter_full__fast_and_long(struct kunit *test)
{
	/* 400 Gbit/s, in 64 bits: 50 kB/us */
	set->meter = (struct dart_meter){ .start = dart_test_ns - 100000, .bytes = 5000000 };
	KUNIT_EXPECT_TRUE(test, dart_meter_full(set, dart_test_ns, 50000000));
	set->meter.bytes = 4375000 - 1;
	KUNIT_EXPECT_FALSE(test, dart_meter_full(set, dart_test_ns, 50000000));
}

/* A packet of another CPU, whose clock was read a little earlier: no pause, and no new window. */
static void dart_meter_add__earlier(struct kunit *test)
{
	u64 start;

	receive(41, 1000, 1250);
	start = set->meter.start;
	dart_meter_add(set, start - 300, 1250, LINE);
	KUNIT_EXPECT_EQ(test, set->meter.start, start);
	KUNIT_EXPECT_EQ(test, set->meter.length, WINDOW);
	KUNIT_EXPECT_TRUE(test, dart_meter_full(set, start - 300, LINE));
}

/* --- the state of congestion --------------------------------------------------------- */

static enum dart_state state_of(const struct conn *c)
{
	return dart_tenant_state(set, tenant_of(c), dart_test_ns, LINE);
}

static void mark(struct conn *c)
{
	dart_tenant_marked(set, tenant_of(c), dart_test_ns, LINE);
}

static void dart_tenant_state__three(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));

	begins(a);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_NO_CONGESTION);
	/* A link that is full is no congestion. */
	receive(30, 1000, 1250);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_NO_CONGESTION);
	/* With a mark it is the receiver's, for five windows. */
	mark(a);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
	pass_ns(5 * WINDOW);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
	pass_ns(1);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_NO_CONGESTION);
	/* A mark while the receiver's link is not full was set on another link. */
	receive(30, 2000, 1250);
	mark(a);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_OTHER_CONGESTION);
	/* The newest mark decides. */
	receive(60, 1000, 1250);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_OTHER_CONGESTION);
	mark(a);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
}

/* The mark of a packet of another CPU, whose clock was read a little earlier, is not the first of a
 * congestion: the senders still leave half of the line rate free.
 */
static void dart_tenant_state__earlier(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1));
	u64 since;
	int i;

	begins(a);
	receive(30, 1000, 1250);
	mark(a);
	since = tenant_of(a)->since;
	/* The line rate, for more than 2 ms, and then half of it */
	for (i = 0; i < 200; i++) {
		receive(20, i < 120 ? 1000 : 2000, 1250);
		mark(a);
	}
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
	dart_tenant_marked(set, tenant_of(a), dart_test_ns - 300, LINE);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->since, since);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->marked, dart_test_ns);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
	KUNIT_EXPECT_EQ(test, dart_tenant_state(set, tenant_of(a), dart_test_ns - 300, LINE),
			DART_RECEIVER_CONGESTION);
}

/* Several tenants overrun the link together, and DCQCN reacts. */
static void dart_tenant_state__two_tenants(struct kunit *test)
{
	struct conn *a = new_conn(test, HOST(1)), *b = new_conn(test, HOST(1));

	b->sk.sk_mark = 1;
	begins_weighted(a, DART_TENANT_MARK, 1);
	begins_weighted(b, DART_TENANT_MARK, 1);
	receive(30, 1000, 1250);
	mark(a);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_OTHER_CONGESTION);
	/* Marks are a tenant's own. */
	KUNIT_EXPECT_EQ(test, state_of(b), DART_NO_CONGESTION);
	ends(b);
	KUNIT_EXPECT_EQ(test, state_of(a), DART_RECEIVER_CONGESTION);
}

/* The reserve: one part of 32, four after a millisecond of marks, and half after two. */
static void dart_tenant_drains__by_the_millisecond(struct kunit *test)
{
	/* 256 * 32 / 31, / 28, / 16 */
	static const u32 expected[] = { 264, 292, 512, 512 };
	struct conn *a = new_conn(test, HOST(1));
	u64 began;
	int i, j;

	begins(a);
	mark(a);
	began = dart_test_ns;
	for (i = 0; i < ARRAY_SIZE(expected); i++) {
		KUNIT_EXPECT_EQ(test, dart_tenant_drains(tenant_of(a), 256, dart_test_ns),
				expected[i]);
		/* 10 marks, which are 5 windows apart, and 10 * 100 us are the millisecond. */
		for (j = 0; j < 10; j++) {
			pass_ns(5 * WINDOW);
			if (i == 0 && j == 9)
				KUNIT_EXPECT_EQ(test, dart_tenant_drains(tenant_of(a), 256,
									 dart_test_ns - 1), 264);
			mark(a);
		}
		KUNIT_EXPECT_EQ(test, tenant_of(a)->since, began);
	}
	/* The largest divisor, and a day of marks */
	KUNIT_EXPECT_EQ(test, dart_tenant_drains(tenant_of(a), DART_DIVISOR,
						 began + 86400 * NSEC_PER_SEC),
			0xffffff * 2);
	/* Without a mark for longer than that the reserve begins anew. */
	pass_ns(5 * WINDOW + 1);
	mark(a);
	KUNIT_EXPECT_EQ(test, tenant_of(a)->since, dart_test_ns);
	KUNIT_EXPECT_EQ(test, dart_tenant_drains(tenant_of(a), 256, dart_test_ns), 264);
}

/* --- all of it, at random ----------------------------------------------------------- */

#define CONNS	48
#define HOSTS	12
#define MARKS	3
#define STEPS	200000

/* Connections of 12 hosts to 3 tenants, and check() after every tenth step. */
static void dart_senders__random(struct kunit *test)
{
	struct rnd_state rnd;
	struct conn *c[CONNS];
	int i, step;

	for (i = 0; i < CONNS; i++) {
		c[i] = new_conn(test, HOST(i % HOSTS));
		c[i]->sk.sk_mark = i % MARKS;
	}
	prandom_seed_state(&rnd, 1);
	for (step = 0; step < STEPS; step++) {
		struct conn *one = c[prandom_u32_state(&rnd) % CONNS];
		u32 what = prandom_u32_state(&rnd) % 100;

		if (what < 50) {
			/* a packet, and sometimes its message's end */
			if (one->msg.host && !dart_message_seen(&one->msg))
				ends(one);
			if (!one->msg.host)
				begins_weighted(one, DART_TENANT_MARK, 1 + what % 4);
			dart_message_expire(set, &one->msg, dart_test_ns);
		} else if (what < 85) {
			if (one->msg.host)
				ends(one);
		} else if (what < 90) {
			if (one->msg.host)
				announce(one, what - 85, 10, 1000);
		} else if (what < 99) {
			pass_ns(100 * NSEC_PER_USEC);
			dart_test_jiffies += what == 98;
		} else {
			pass_ns(NSEC_PER_MSEC);
			dart_test_jiffies += HZ / 8;
			dart_senders_look(set);
		}
		if (step % 10 == 0)
			check(test);
	}
	for (i = 0; i < CONNS; i++)
		if (c[i]->msg.host)
			ends(c[i]);
	check(test);
	/* In the end every announced host and tenant is freed. */
	pass_ns(NSEC_PER_SEC);
	look_after(DART_IDLE);
	look_after(DART_REAP);
	KUNIT_EXPECT_EQ(test, set->active, 0);
	KUNIT_EXPECT_EQ(test, dart_test_allocated, 0);
}

static struct kunit_case dart_senders_cases[] = {
	KUNIT_CASE(dart_message_begins__a_sender_is_a_host),
	KUNIT_CASE(dart_message_ends__the_last_one_takes_its_host_out),
	KUNIT_CASE(dart_message_begins__overlapping),
	KUNIT_CASE(dart_message_begins__weights),
	KUNIT_CASE(dart_message_begins__weight_of_a_host_that_was_here),
	KUNIT_CASE(dart_address_id__addresses),
	KUNIT_CASE(dart_message_begins__v4_mapped_is_v4),
	KUNIT_CASE(dart_message_begins__many_hosts),
	KUNIT_CASE(dart_message_begins__tenants_have_sets_of_their_own),
	KUNIT_CASE(dart_message_begins__one_tenant_for_all),
	KUNIT_CASE(dart_message_begins__cgroups),
	KUNIT_CASE(dart_senders_look__idle_hosts_die),
	KUNIT_CASE(dart_senders_look__seldom),
	KUNIT_CASE(dart_message_seen__keeps_its_host),
	KUNIT_CASE(dart_message_begins__a_dead_host_comes_back),
	KUNIT_CASE(dart_senders_look__tenants_of_the_dead),
	KUNIT_CASE(dart_senders_name__counts_at_once),
	KUNIT_CASE(dart_senders_name__those_who_come_stay),
	KUNIT_CASE(dart_tenant_expire__each_in_its_time),
	KUNIT_CASE(dart_senders_name__not_twice_for_one_incast),
	KUNIT_CASE(dart_senders_name__is_a_sign_of_life),
	KUNIT_CASE(dart_senders_name__limited),
	KUNIT_CASE(dart_senders_name__after_boot),
	KUNIT_CASE(dart_tenant_put__not_before_its_tokens_are_back),
	KUNIT_CASE(dart_senders_name__expected_at_a_time),
	KUNIT_CASE(dart_senders_name__memory_is_given_back),
	KUNIT_CASE(dart_message_begins__no_memory),
	KUNIT_CASE(dart_senders_name__no_memory),
	KUNIT_CASE(dart_senders_exit__members_left),
	KUNIT_CASE(dart_message_divisor__bounds),
	KUNIT_CASE(dart_use_look__the_rest_is_divided),
	KUNIT_CASE(dart_use_look__beside_the_reserve),
	KUNIT_CASE(dart_use_look__after_a_pause),
	KUNIT_CASE(dart_use_look__a_long_path),
	KUNIT_CASE(dart_use_add__a_host_comes_back),
	KUNIT_CASE(dart_use_messages__those_that_bring_data),
	KUNIT_CASE(dart_window__lines),
	KUNIT_CASE(dart_meter_full__this_window_and_the_last),
	KUNIT_CASE(dart_meter_full__seven_eighths),
	KUNIT_CASE(dart_meter_add__pause),
	KUNIT_CASE(dart_meter_add__earlier),
	KUNIT_CASE(dart_meter_full__fast_and_long),
	KUNIT_CASE(dart_tenant_state__three),
	KUNIT_CASE(dart_tenant_state__earlier),
	KUNIT_CASE(dart_tenant_state__two_tenants),
	KUNIT_CASE(dart_tenant_drains__by_the_millisecond),
	KUNIT_CASE(dart_senders__random),
	{}
};

static struct kunit_suite dart_senders_suite = {
	.name		= "dart_senders",
	.init		= dart_senders_test_init,
	.exit		= dart_senders_test_exit,
	.test_cases	= dart_senders_cases,
};

/* --- dart_lookahead.c ---------------------------------------------------------------- */

/* A list of @n names, list number @list. */
static struct dart_group *new_group(struct kunit *test, u32 n, u8 list)
{
	struct dart_group *group = kunit_kzalloc(test, sizeof(*group), GFP_KERNEL);
	u32 i;

	KUNIT_ASSERT_NOT_NULL(test, group);
	group->n = n;
	group->list = list;
	for (i = 0; i < n; i++)
		group->id[i] = HOST(i) ^ list << 8;
	return group;
}

static void dart_names_pack__words(struct kunit *test)
{
	const struct dart_group *group = new_group(test, 5, 0x17);
	u32 word[GL_WORDS_MAX];

	KUNIT_EXPECT_EQ(test, dart_names_pack(group, 0, word), 4);
	/* ALONE and NAMES, the list, the first name, the number of names */
	KUNIT_EXPECT_EQ(test, word[0], 0x50170005);
	KUNIT_EXPECT_EQ(test, word[1], 0x0a001700);
	KUNIT_EXPECT_EQ(test, word[3], 0x0a001702);
	KUNIT_EXPECT_EQ(test, dart_names_pack(group, 3, word), 3);
	KUNIT_EXPECT_EQ(test, word[0], 0x50170305);
	KUNIT_EXPECT_EQ(test, word[1], 0x0a001703);
	KUNIT_EXPECT_EQ(test, word[2], 0x0a001704);
	/* an empty list */
	KUNIT_EXPECT_EQ(test, dart_names_pack(new_group(test, 0, 255), 0, word), 1);
	KUNIT_EXPECT_EQ(test, word[0], 0x50ff0000);
}

/* Every length of a list, and its packets in both orders. */
static void dart_names_unpack__every_length(struct kunit *test)
{
	struct dart_group *heard = new_group(test, 0, 200);
	u32 n, i;
	int turn;

	for (turn = 0; turn < 2; turn++) {
		for (n = 0; n <= GREENLANE_SENDERS_MAX; n++) {
			const struct dart_group *group = new_group(test, n, n + turn);
			u32 packets = max(DIV_ROUND_UP(n, DART_NAMES), 1);

			for (i = 0; i < packets; i++) {
				u32 first = (turn ? packets - 1 - i : i) * DART_NAMES;
				u32 word[GL_WORDS_MAX];
				unsigned int words = dart_names_pack(group, first, word);

				KUNIT_ASSERT_TRUE(test, dart_names_unpack(heard, word, words));
				KUNIT_ASSERT_EQ(test, heard->known, i == packets - 1);
			}
			KUNIT_EXPECT_EQ(test, heard->n, n);
			KUNIT_EXPECT_EQ(test, heard->list, group->list);
			KUNIT_EXPECT_EQ(test, memcmp(heard->id, group->id, n * sizeof(u32)), 0);
		}
	}
}

static void dart_names_unpack__lost_and_again(struct kunit *test)
{
	const struct dart_group *one = new_group(test, 6, 1), *two = new_group(test, 6, 2);
	const struct dart_group *longer = new_group(test, 7, 2);
	struct dart_group *heard = new_group(test, 0, 0);
	u32 word[GL_WORDS_MAX];

	/* The same packet twice is half of the list. */
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(one, 3, word)));
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(one, 3, word)));
	KUNIT_EXPECT_FALSE(test, heard->known);
	/* The other half of another list does not complete it. */
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(two, 0, word)));
	KUNIT_EXPECT_FALSE(test, heard->known);
	KUNIT_EXPECT_EQ(test, heard->have, 7);
	/* And neither does one of another length. */
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(longer, 3, word)));
	KUNIT_EXPECT_EQ(test, heard->have, 0x38);
	KUNIT_EXPECT_EQ(test, heard->n, 7);
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(longer, 0, word)));
	KUNIT_EXPECT_FALSE(test, heard->known);
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(longer, 6, word)));
	KUNIT_EXPECT_TRUE(test, heard->known);
	/* The next list is incomplete when it begins. */
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, dart_names_pack(one, 0, word)));
	KUNIT_EXPECT_FALSE(test, heard->known);
}

static void dart_names_unpack__refuses(struct kunit *test)
{
	struct dart_group *heard = new_group(test, 64, 3);
	struct dart_group before = *heard;
	u32 word[GL_WORDS_MAX] = {};

	KUNIT_EXPECT_FALSE(test, dart_names_unpack(heard, word, 0));
	word[0] = DART_WORD_NAMES | 1 << 8 | 64;
	KUNIT_EXPECT_FALSE(test, dart_names_unpack(heard, word, 0));
	/* more than 64 names */
	word[0] = DART_WORD_NAMES | 65;
	KUNIT_EXPECT_FALSE(test, dart_names_unpack(heard, word, 1));
	/* a name beyond the last one */
	word[0] = DART_WORD_NAMES | 62 << 8 | 64;
	KUNIT_EXPECT_FALSE(test, dart_names_unpack(heard, word, 4));
	word[0] = DART_WORD_NAMES | 255 << 8 | 64;
	KUNIT_EXPECT_FALSE(test, dart_names_unpack(heard, word, 1));
	KUNIT_EXPECT_EQ(test, memcmp(heard, &before, sizeof(before)), 0);
	/* the last names of the longest list */
	word[0] = DART_WORD_NAMES | 3 << 16 | 61 << 8 | 64;
	KUNIT_EXPECT_TRUE(test, dart_names_unpack(heard, word, 4));
	KUNIT_EXPECT_EQ(test, heard->have, 7ULL << 61);
	KUNIT_EXPECT_EQ(test, heard->id[63], 0);
}

static struct kunit_case dart_lookahead_cases[] = {
	KUNIT_CASE(dart_names_pack__words),
	KUNIT_CASE(dart_names_unpack__every_length),
	KUNIT_CASE(dart_names_unpack__lost_and_again),
	KUNIT_CASE(dart_names_unpack__refuses),
	{}
};

static struct kunit_suite dart_lookahead_suite = {
	.name		= "dart_lookahead",
	.test_cases	= dart_lookahead_cases,
};

kunit_test_suites(&dart_senders_suite, &dart_lookahead_suite);

MODULE_DESCRIPTION("KUnit tests of Dart's senders and look-ahead");
MODULE_LICENSE("GPL");
