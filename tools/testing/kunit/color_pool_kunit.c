// SPDX-License-Identifier: GPL-2.0
/* KUnit: the shared buffer of a switch (net/sched/color_pool.c). */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "net/sched/color_pool.c"
#include "nlattr.h"

/* alpha = 1 */
#define ALPHA	TC_COLOR_ALPHA_ONE

static struct nlattr *tb[TCA_COLOR_MAX + 1];
static struct netlink_ext_ack extack;

static int color_pool_test_init(struct kunit *test)
{
	memset(tb, 0, sizeof(tb));
	memset(&extack, 0, sizeof(extack));
	return register_pernet_subsys(&color_pool_net_ops);
}

/* Warns if a case has left a pool behind, which fails the run. */
static void color_pool_test_exit(struct kunit *test)
{
	unregister_pernet_subsys(&color_pool_net_ops);
}

/* Set the attributes for the next color_pool_get(); NULL or 0 leaves one out. */
static void ask(struct kunit *test, const char *name, u32 size, u32 alpha)
{
	memset(tb, 0, sizeof(tb));
	if (name)
		kunit_set_attr(test, tb, TCA_COLOR_POOL, name, strlen(name) + 1);
	if (size)
		kunit_set_attr(test, tb, TCA_COLOR_POOL_SIZE, &size, sizeof(size));
	if (alpha)
		kunit_set_attr(test, tb, TCA_COLOR_POOL_ALPHA, &alpha, sizeof(alpha));
}

static struct color_pool *get(struct color_pool *pool)
{
	struct color_pool *new;

	rtnl_lock();
	new = color_pool_get(&init_net, pool, tb, &extack);
	rtnl_unlock();
	return new;
}

static void put(struct color_pool *pool)
{
	rtnl_lock();
	color_pool_put(pool);
	rtnl_unlock();
}

static struct color_pool *new_pool(struct kunit *test, const char *name, u32 size)
{
	struct color_pool *pool;

	ask(test, name, size, 0);
	pool = get(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR_OR_NULL(pool));
	return pool;
}

static u64 used(struct color_pool *pool)
{
	return atomic64_read(&pool->used);
}

static u64 peak(struct color_pool *pool)
{
	return atomic64_read(&pool->peak);
}

/* A port as in the qdisc: bytes of its packets, and a share of a pool. */
struct test_port {
	struct color_share	share;
	u64			queued;
};

static bool enqueue(struct test_port *port, u32 alpha, u32 len)
{
	if (port->queued + len > port->share.held &&
	    !color_share_charge(&port->share, alpha, port->queued, len))
		return false;
	port->queued += len;
	return true;
}

static void dequeue(struct test_port *port, u32 len)
{
	port->queued -= len;
	if (port->queued < color_share_low(&port->share))
		color_share_release(&port->share, port->queued);
}

static void color_share_charge__two_ports(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 1000);
	struct test_port a = { .share.pool = pool }, b = { .share.pool = pool };

	KUNIT_EXPECT_TRUE(test, enqueue(&a, ALPHA, 500));
	KUNIT_EXPECT_EQ(test, used(pool), 500);
	/* With alpha 1 the port may hold at most the bytes that are free: it holds half. */
	KUNIT_EXPECT_FALSE(test, enqueue(&a, ALPHA, 1));
	KUNIT_EXPECT_EQ(test, used(pool), 500);
	/* Another port charges the rest, and then the pool is full. */
	KUNIT_EXPECT_TRUE(test, enqueue(&b, ALPHA, 500));
	KUNIT_EXPECT_FALSE(test, enqueue(&b, TC_COLOR_ALPHA_MAX, 1));
	KUNIT_EXPECT_EQ(test, used(pool), 1000);
	/* Without reserves every byte returns to the pool. */
	dequeue(&a, 300);
	KUNIT_EXPECT_EQ(test, used(pool), 700);
	KUNIT_EXPECT_TRUE(test, enqueue(&a, ALPHA, 10));
	KUNIT_EXPECT_EQ(test, used(pool), 710);
	KUNIT_EXPECT_EQ(test, peak(pool), 1000);
	put(pool);
}

/* The reserve grows and shrinks with the queue, and no packet is dropped because of it. */
static void color_share_charge__reserve(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 4 << 20);
	struct test_port a = { .share.pool = pool };

	KUNIT_EXPECT_TRUE(test, enqueue(&a, ALPHA, 1500));
	KUNIT_EXPECT_EQ(test, used(pool), 1500);
	KUNIT_EXPECT_TRUE(test, enqueue(&a, ALPHA, 1500));
	KUNIT_EXPECT_EQ(test, used(pool), 3000 + 1500);
	while (enqueue(&a, ALPHA, 1500)) {
		KUNIT_ASSERT_LE(test, a.share.held - a.queued, a.queued);
		KUNIT_ASSERT_LE(test, a.share.held - a.queued, COLOR_POOL_CHUNK);
	}
	/* Half of the pool, as without a reserve. */
	KUNIT_EXPECT_EQ(test, a.queued, (2 << 20) / 1500 * 1500);
	while (a.queued) {
		dequeue(&a, 1500);
		KUNIT_ASSERT_LE(test, a.share.held - a.queued, 2 * COLOR_POOL_CHUNK);
		KUNIT_ASSERT_LE(test, a.share.held - a.queued, 2 * a.queued);
	}
	KUNIT_EXPECT_EQ(test, used(pool), 0);
	put(pool);
}

/* While less than an eighth is free, ports charge a packet without a reserve. */
static void color_share_charge__tight(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 4 << 20);
	struct test_port a = { .share.pool = pool }, b = { .share.pool = pool };

	KUNIT_EXPECT_TRUE(test, enqueue(&b, ALPHA, 1500));
	KUNIT_EXPECT_TRUE(test, enqueue(&b, ALPHA, 1500));
	while (enqueue(&a, TC_COLOR_ALPHA_MAX, 1500))
		;
	KUNIT_EXPECT_EQ(test, a.share.held, a.queued);
	KUNIT_EXPECT_EQ(test, b.share.held, 3000 + 1500);
	color_share_release(&b.share, b.queued);
	KUNIT_EXPECT_EQ(test, b.share.held, 3000);
	color_share_release(&a.share, 0);
	color_share_release(&b.share, 0);
	KUNIT_EXPECT_EQ(test, used(pool), 0);
	put(pool);
}

/* After a change of the size or alpha a reserve is returned: it was tested with the old ones. */
static void color_share_give_back__all(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 4 << 20);
	struct test_port a = { .share.pool = pool };

	enqueue(&a, ALPHA, 1500);
	enqueue(&a, ALPHA, 1500);
	color_share_give_back(&a.share, a.queued);
	KUNIT_EXPECT_EQ(test, a.share.held, 3000);
	KUNIT_EXPECT_EQ(test, used(pool), 3000);
	KUNIT_EXPECT_FALSE(test, enqueue(&a, 1, 1500));
	color_share_give_back(&a.share, 0);
	KUNIT_EXPECT_EQ(test, used(pool), 0);
	put(pool);
}

/* A port's bytes move with it, whether the new pool has room for them or not. */
static void color_share_move__from_and_to(struct kunit *test)
{
	struct color_pool *a = new_pool(test, "a", 1000), *b = new_pool(test, "b", 100);
	struct color_share mine = {};

	KUNIT_EXPECT_NULL(test, color_share_move(&mine, a, 300));
	KUNIT_EXPECT_EQ(test, used(a), 300);
	KUNIT_EXPECT_EQ(test, peak(a), 300);
	KUNIT_EXPECT_PTR_EQ(test, color_share_move(&mine, a, 300), a);
	KUNIT_EXPECT_EQ(test, used(a), 300);
	/* 50 of the bytes that it holds are a reserve, which it does not charge to the new pool. */
	KUNIT_EXPECT_PTR_EQ(test, color_share_move(&mine, b, 250), a);
	KUNIT_EXPECT_EQ(test, used(a), 0);
	KUNIT_EXPECT_EQ(test, used(b), 250);
	KUNIT_EXPECT_EQ(test, peak(b), 250);
	KUNIT_EXPECT_FALSE(test, color_share_charge(&mine, ALPHA, 250, 1));
	KUNIT_EXPECT_PTR_EQ(test, color_share_move(&mine, NULL, 250), b);
	KUNIT_EXPECT_EQ(test, mine.held, 0);
	KUNIT_EXPECT_EQ(test, used(b), 0);
	KUNIT_EXPECT_EQ(test, peak(b), 250);
	put(a);
	put(b);
}

/* Ports that do not pause fill a pool one after the other: no order leaves less than
 * color_pool_left(), and limits count where they are small.
 */
static void color_pool_left__in_any_order(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 1000);
	struct test_port port[3] = {
		{ .share.fill = { .limit = 10000, .alpha = ALPHA, .packet = 1 } },
		{ .share.fill = { .limit = 10000, .alpha = 3 * ALPHA, .packet = 1 } },
		{ .share.fill = { .limit = 30, .alpha = ALPHA, .packet = 30 } },
	};
	const struct color_share *first = &port[0].share;

	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, NULL, NULL), 1000);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, NULL, &first->fill), 499);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, NULL, &port[2].share.fill), 970);
	color_share_move(&port[0].share, pool, 0);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, NULL, NULL), 499);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, first, NULL), 1000);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, first, &port[1].share.fill), 249);
	color_share_move(&port[1].share, pool, 0);
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, NULL, NULL), 124);
	while (enqueue(&port[0], ALPHA, 1))
		;
	while (enqueue(&port[1], 3 * ALPHA, 1))
		;
	KUNIT_EXPECT_GE(test, 1000 - used(pool), 124);
	KUNIT_EXPECT_LE(test, 1000 - used(pool), 126);
	/* A large last packet. */
	port[0].share.fill.packet = 400;
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, &port[1].share, NULL), 300);
	/* A port that pauses takes no bytes. */
	port[0].share.fill.limit = 0;
	KUNIT_EXPECT_EQ(test, color_pool_left(pool, 1000, &port[1].share, NULL), 1000);
	color_share_move(&port[0].share, NULL, 0);
	color_share_move(&port[1].share, NULL, 0);
	put(pool);
}

/* After each of a million operations a pool has what its ports hold, each at least its packets. */
static void color_share__million_operations(struct kunit *test)
{
	struct color_pool *pools[] = {
		new_pool(test, "a", 4 << 20), new_pool(test, "b", 64 << 10), NULL,
	};
	struct test_port ports[8] = {};
	struct rnd_state rnd;
	int i, j, n;

	prandom_seed_state(&rnd, 17);
	for (i = 0; i < 1000000; i++) {
		struct test_port *port = &ports[prandom_u32_state(&rnd) % ARRAY_SIZE(ports)];
		u32 what = prandom_u32_state(&rnd) % 1000, len = prandom_u32_state(&rnd) % 9000 + 1;
		u64 held[3] = {}, reserves[3] = {};

		if (what < 1) {
			color_share_move(&port->share, pools[prandom_u32_state(&rnd) % 3],
					 port->queued);
		} else if (!port->share.pool) {
			continue;
		} else if (what < 2) {
			port->queued = 0;
			color_share_release(&port->share, 0);
		} else if (what < 3) {
			WRITE_ONCE(port->share.pool->size, prandom_u32_state(&rnd) % (8 << 20) + 1);
		} else if (what < 500 + (i >> 13) % 2 * 400) {
			enqueue(port, 1 << prandom_u32_state(&rnd) % 20, len);
		} else {
			dequeue(port, min_t(u64, len, port->queued));
		}
		for (j = 0; j < ARRAY_SIZE(ports); j++) {
			n = ports[j].share.pool == pools[0] ? 0 : ports[j].share.pool ? 1 : 2;
			held[n] += ports[j].share.held;
			if (ports[j].share.pool)
				KUNIT_ASSERT_GE(test, ports[j].share.held, ports[j].queued);
			reserves[n] += ports[j].share.held - ports[j].queued;
		}
		KUNIT_ASSERT_EQ(test, used(pools[0]), held[0]);
		KUNIT_ASSERT_EQ(test, used(pools[1]), held[1]);
		KUNIT_ASSERT_EQ(test, held[2], 0);
	}
	for (j = 0; j < ARRAY_SIZE(ports); j++)
		color_share_move(&ports[j].share, NULL, ports[j].queued);
	for (n = 0; n < 2; n++) {
		KUNIT_EXPECT_EQ(test, used(pools[n]), 0);
		put(pools[n]);
	}
}

/* The first port makes the pool, and the last one removes it. */
static void color_pool_get__as_long_as_it_has_ports(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 1000), *other;

	KUNIT_EXPECT_STREQ(test, pool->name, "sw");
	KUNIT_EXPECT_EQ(test, pool->size, 1000);
	/* by its name, with its size or without */
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), pool);
	ask(test, "sw", 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), pool);
	KUNIT_EXPECT_EQ(test, pool->ports, 3);
	/* A port keeps its pool if no pool is named. */
	ask(test, NULL, 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), pool);
	ask(test, NULL, 1000, ALPHA);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), pool);
	KUNIT_EXPECT_EQ(test, pool->ports, 5);
	ask(test, NULL, 0, 0);
	KUNIT_EXPECT_NULL(test, get(NULL));
	/* The empty name removes a port from its pool. */
	ask(test, "", 0, 0);
	KUNIT_EXPECT_NULL(test, get(pool));
	other = new_pool(test, "swi", 500);
	KUNIT_EXPECT_PTR_NE(test, other, pool);
	put(other);
	while (pool->ports > 1)
		put(pool);
	ask(test, "sw", 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), pool);
	put(pool);
	put(pool);
	put(NULL);
	/* The pool was removed: a new one needs a size. */
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-ENOENT));
}

/* A port of the pool resizes it, with its name or without. */
static void color_pool_resize__own(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 1000);

	ask(test, NULL, 1001, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), pool);
	KUNIT_EXPECT_EQ(test, pool->size, 1000);
	rtnl_lock();
	KUNIT_EXPECT_TRUE(test, color_pool_resize(pool, tb));
	KUNIT_EXPECT_FALSE(test, color_pool_resize(pool, tb));
	KUNIT_EXPECT_EQ(test, pool->size, 1001);
	ask(test, "sw", 0, ALPHA);
	KUNIT_EXPECT_FALSE(test, color_pool_resize(pool, tb));
	KUNIT_EXPECT_FALSE(test, color_pool_resize(NULL, tb));
	rtnl_unlock();
	KUNIT_EXPECT_EQ(test, pool->size, 1001);
	put(pool);
	put(pool);
}

static void color_pool_get__mistakes(struct kunit *test)
{
	static const char * const bad[] = { "none", "a b", "tab\t", "\x7f", "caf\xc3\xa9" };
	struct color_pool *pool = new_pool(test, "sw", 1000);
	int i;

	ask(test, "sw", 1001, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-EEXIST));
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, tb[TCA_COLOR_POOL_SIZE]);
	KUNIT_EXPECT_EQ(test, pool->ports, 1);
	ask(test, NULL, 1000, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-EINVAL));
	ask(test, NULL, 0, ALPHA);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-EINVAL));
	ask(test, "", 1000, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), ERR_PTR(-EINVAL));
	ask(test, "other", 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), ERR_PTR(-ENOENT));
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, tb[TCA_COLOR_POOL]);
	for (i = 0; i < ARRAY_SIZE(bad); i++) {
		ask(test, bad[i], 1000, 0);
		KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-EINVAL));
	}
	put(pool);
}

static struct kunit_case color_pool_cases[] = {
	KUNIT_CASE(color_share_charge__two_ports),
	KUNIT_CASE(color_share_charge__reserve),
	KUNIT_CASE(color_share_charge__tight),
	KUNIT_CASE(color_share_give_back__all),
	KUNIT_CASE(color_share_move__from_and_to),
	KUNIT_CASE(color_pool_left__in_any_order),
	KUNIT_CASE(color_share__million_operations),
	KUNIT_CASE(color_pool_get__as_long_as_it_has_ports),
	KUNIT_CASE(color_pool_resize__own),
	KUNIT_CASE(color_pool_get__mistakes),
	{}
};

static struct kunit_suite color_pool_suite = {
	.name		= "color_pool",
	.init		= color_pool_test_init,
	.exit		= color_pool_test_exit,
	.test_cases	= color_pool_cases,
};

kunit_test_suite(color_pool_suite);

MODULE_DESCRIPTION("KUnit tests of the color qdisc's shared buffer");
MODULE_LICENSE("GPL");
