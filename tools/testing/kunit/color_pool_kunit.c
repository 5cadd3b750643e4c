// SPDX-License-Identifier: GPL-2.0
/* KUnit: the shared buffer of a switch (net/sched/color_pool.c). */
#include <kunit/test.h>
#include <linux/module.h>

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

/* The attributes that the next color_pool_get() sees; NULL and 0 for none. */
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

static void color_pool_charge__two_ports(struct kunit *test)
{
	struct color_pool *pool = new_pool(test, "sw", 1000);

	KUNIT_EXPECT_TRUE(test, color_pool_charge(pool, ALPHA, 0, 500));
	KUNIT_EXPECT_EQ(test, used(pool), 500);
	/* The port may hold as much as is free, and holds that. */
	KUNIT_EXPECT_FALSE(test, color_pool_charge(pool, ALPHA, 500, 1));
	KUNIT_EXPECT_EQ(test, used(pool), 500);
	/* Another port has the rest, and then the pool is full. */
	KUNIT_EXPECT_TRUE(test, color_pool_charge(pool, ALPHA, 0, 500));
	KUNIT_EXPECT_FALSE(test, color_pool_charge(pool, TC_COLOR_ALPHA_MAX, 0, 1));
	KUNIT_EXPECT_EQ(test, used(pool), 1000);
	color_pool_uncharge(pool, 300);
	KUNIT_EXPECT_EQ(test, used(pool), 700);
	KUNIT_EXPECT_TRUE(test, color_pool_charge(pool, ALPHA, 0, 10));
	KUNIT_EXPECT_EQ(test, used(pool), 710);
	KUNIT_EXPECT_EQ(test, peak(pool), 1000);
	put(pool);
}

/* A port's bytes go with it, whether the new pool has room for them or not. */
static void color_pool_swap__from_and_to(struct kunit *test)
{
	struct color_pool *a = new_pool(test, "a", 1000), *b = new_pool(test, "b", 100);
	struct color_pool *mine = NULL, *other = a;

	color_pool_swap(&mine, &other, 300);
	KUNIT_EXPECT_PTR_EQ(test, mine, a);
	KUNIT_EXPECT_NULL(test, other);
	KUNIT_EXPECT_EQ(test, used(a), 300);
	KUNIT_EXPECT_EQ(test, peak(a), 300);
	other = a;
	color_pool_swap(&mine, &other, 300);
	KUNIT_EXPECT_EQ(test, used(a), 300);
	KUNIT_EXPECT_EQ(test, peak(a), 300);
	other = b;
	color_pool_swap(&mine, &other, 250);
	KUNIT_EXPECT_PTR_EQ(test, mine, b);
	KUNIT_EXPECT_PTR_EQ(test, other, a);
	KUNIT_EXPECT_EQ(test, used(a), 50);
	KUNIT_EXPECT_EQ(test, used(b), 250);
	KUNIT_EXPECT_EQ(test, peak(b), 250);
	KUNIT_EXPECT_FALSE(test, color_pool_charge(b, ALPHA, 0, 1));
	other = NULL;
	color_pool_swap(&mine, &other, 250);
	KUNIT_EXPECT_NULL(test, mine);
	KUNIT_EXPECT_EQ(test, used(b), 0);
	KUNIT_EXPECT_EQ(test, peak(b), 250);
	put(a);
	put(b);
}

/* The first port makes the pool, and the last one takes it away. */
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
	/* A port that says nothing of pools keeps its own. */
	ask(test, NULL, 0, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), pool);
	ask(test, NULL, 1000, ALPHA);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), pool);
	KUNIT_EXPECT_EQ(test, pool->ports, 5);
	ask(test, NULL, 0, 0);
	KUNIT_EXPECT_NULL(test, get(NULL));
	/* The empty name takes a port out of its pool. */
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
	/* It is gone: a new one needs a size. */
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-ENOENT));
}

static void color_pool_get__mistakes(struct kunit *test)
{
	static const char * const bad[] = { "a b", "tab\t", "\x7f", "caf\xc3\xa9" };
	struct color_pool *pool = new_pool(test, "sw", 1000);
	int i;

	ask(test, "sw", 1001, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(NULL), ERR_PTR(-EEXIST));
	KUNIT_EXPECT_PTR_EQ(test, extack.bad_attr, tb[TCA_COLOR_POOL_SIZE]);
	ask(test, NULL, 1001, 0);
	KUNIT_EXPECT_PTR_EQ(test, get(pool), ERR_PTR(-EEXIST));
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
	KUNIT_CASE(color_pool_charge__two_ports),
	KUNIT_CASE(color_pool_swap__from_and_to),
	KUNIT_CASE(color_pool_get__as_long_as_it_has_ports),
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
