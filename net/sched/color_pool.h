/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The buffer that the ports of one switch share: who charges it, how much, and
 * how long it lives.  A switch is a network namespace, a pool has a name in it.
 *
 * Ports charge a pool under the root locks of different trees, so what they
 * charge is atomic.  Pools come and go under RTNL.
 */
#ifndef _COLOR_POOL_H
#define _COLOR_POOL_H

#include <linux/ctype.h>
#include <linux/list.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <uapi/linux/pkt_color.h>

#include "color_thresh.h"

/**
 * struct color_pool - a buffer that ports of one network namespace share
 * @list: in struct color_net; RTNL
 * @ports: ports that charge it; RTNL
 * @name: as the user knows it
 * @size: bytes
 * @used: bytes that the ports have in their queues
 * @peak: the most that @used has been
 */
struct color_pool {
	struct list_head	list;
	unsigned int		ports;
	char			name[TC_COLOR_POOL_NAMSIZ];
	u64			size;

	/* dirtied by every packet of every port */
	atomic64_t		used ____cacheline_aligned_in_smp;
	atomic64_t		peak;
};

/**
 * struct color_net - what this module keeps for a network namespace
 * @pools: struct color_pool; RTNL
 */
struct color_net {
	struct list_head	pools;
};

static unsigned int color_net_id __read_mostly;

static void color_pool_set_peak(struct color_pool *pool, s64 used)
{
	s64 peak = atomic64_read(&pool->peak);

	while (used > peak && !atomic64_try_cmpxchg(&pool->peak, &peak, used))
		;
}

/* Exact, although other ports charge the pool at the same time. */
static noinline bool color_pool_charge(struct color_pool *pool, u32 alpha,
				       u64 occ, u32 len)
{
	s64 used = atomic64_read(&pool->used);

	do {
		if (!color_pool_fits(pool->size, used, alpha, occ, len))
			return false;
	} while (!atomic64_try_cmpxchg(&pool->used, &used, used + len));
	color_pool_set_peak(pool, used + len);
	return true;
}

static void color_pool_uncharge(struct color_pool *pool, u64 len)
{
	atomic64_sub(len, &pool->used);
}

/* A port with @occ bytes goes from the pool @from to the pool @to; either may be
 * NULL, and both may be the same.
 */
static void color_pool_swap(struct color_pool **from, struct color_pool **to,
			    u64 occ)
{
	swap(*from, *to);
	if (*from == *to)
		return;
	if (*from)
		color_pool_set_peak(*from,
				    atomic64_add_return(occ, &(*from)->used));
	if (*to)
		color_pool_uncharge(*to, occ);
}

static struct color_pool *color_pool_find(struct net *net, const char *name)
{
	struct color_net *cn = net_generic(net, color_net_id);
	struct color_pool *pool;

	list_for_each_entry(pool, &cn->pools, list)
		if (!strcmp(pool->name, name))
			return pool;
	return NULL;
}

static void color_pool_put(struct color_pool *pool)
{
	ASSERT_RTNL();
	if (!pool || --pool->ports)
		return;
	list_del(&pool->list);
	kfree(pool);
}

static bool color_pool_valid_name(const char *name)
{
	for (; *name; name++)
		if (!isascii(*name) || !isgraph(*name))
			return false;
	return true;
}

/* The pool that a port which has @pool shall have from now on, with a reference. */
static struct color_pool *color_pool_get(struct net *net, struct color_pool *pool,
					 struct nlattr **tb,
					 struct netlink_ext_ack *extack)
{
	struct color_net *cn = net_generic(net, color_net_id);
	const char *name = NULL;
	u32 size = 0;

	ASSERT_RTNL();
	if (tb[TCA_COLOR_POOL]) {
		name = nla_data(tb[TCA_COLOR_POOL]);
		pool = *name ? color_pool_find(net, name) : NULL;
	}
	if (tb[TCA_COLOR_POOL_SIZE])
		size = nla_get_u32(tb[TCA_COLOR_POOL_SIZE]);

	if (pool) {
		if (size && size != pool->size) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL_SIZE],
					    "The pool exists with another size");
			return ERR_PTR(-EEXIST);
		}
		pool->ports++;
		return pool;
	}

	if (!name || !*name) {
		if (!size && !tb[TCA_COLOR_POOL_ALPHA])
			return NULL;
		NL_SET_ERR_MSG(extack, "Size and alpha need a pool");
		return ERR_PTR(-EINVAL);
	}
	if (!color_pool_valid_name(name)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL],
				    "A pool's name is made of printable ASCII characters");
		return ERR_PTR(-EINVAL);
	}
	if (!size) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL],
				    "There is no such pool; a new one needs a size");
		return ERR_PTR(-ENOENT);
	}

	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	strscpy(pool->name, name, sizeof(pool->name));
	pool->size = size;
	pool->ports = 1;
	list_add(&pool->list, &cn->pools);
	return pool;
}

static int __net_init color_net_init(struct net *net)
{
	struct color_net *cn = net_generic(net, color_net_id);

	INIT_LIST_HEAD(&cn->pools);
	return 0;
}

/* The devices of the namespace are gone, and with them its ports. */
static void __net_exit color_net_exit(struct net *net)
{
	struct color_net *cn = net_generic(net, color_net_id);

	WARN_ON_ONCE(!list_empty(&cn->pools));
}

static struct pernet_operations color_net_ops = {
	.init	= color_net_init,
	.exit	= color_net_exit,
	.id	= &color_net_id,
	.size	= sizeof(struct color_net),
};

#endif /* _COLOR_POOL_H */
