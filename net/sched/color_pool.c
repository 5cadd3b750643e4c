// SPDX-License-Identifier: GPL-2.0-only
/* The shared buffer of a switch; see color_pool.h. */

#include <linux/ctype.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/netns/generic.h>

#include "color_pool.h"
#include "color_thresh.h"

/**
 * struct color_pool_net - the pools of a network namespace
 * @pools: struct color_pool; RTNL
 */
struct color_pool_net {
	struct list_head	pools;
};

static unsigned int color_pool_net_id __read_mostly;

static void color_pool_set_peak(struct color_pool *pool, s64 used)
{
	s64 peak = atomic64_read(&pool->peak);

	while (used > peak && !atomic64_try_cmpxchg(&pool->peak, &peak, used))
		;
}

/**
 * color_pool_charge() - let a packet into the pool, if it has room
 * @pool: the pool
 * @alpha: the port's share of what is free, Q16
 * @occ: bytes that the port has in the pool
 * @len: bytes of the packet
 *
 * The test is exact even while other ports charge the pool.
 *
 * Return: true if the packet is in.
 */
bool color_pool_charge(struct color_pool *pool, u32 alpha, u64 occ, u32 len)
{
	s64 used = atomic64_read(&pool->used);

	do {
		if (!color_pool_fits(pool->size, used, alpha, occ, len))
			return false;
	} while (!atomic64_try_cmpxchg(&pool->used, &used, used + len));
	color_pool_set_peak(pool, used + len);
	return true;
}

/**
 * color_pool_swap() - a port goes from one pool to another
 * @from: the port's pool; afterwards the new one
 * @to: the new pool; afterwards the port's earlier one
 * @occ: bytes in the port's queues
 *
 * Either pool may be NULL, and both may be the same.  The new one takes the
 * port's bytes even if it has no room for them.
 */
void color_pool_swap(struct color_pool **from, struct color_pool **to, u64 occ)
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
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);
	struct color_pool *pool;

	list_for_each_entry(pool, &cn->pools, list)
		if (!strcmp(pool->name, name))
			return pool;
	return NULL;
}

/**
 * color_pool_put() - a port stops using a pool
 * @pool: the pool, or NULL; freed with its last port
 */
void color_pool_put(struct color_pool *pool)
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

/**
 * color_pool_get() - find or create the pool that the user wants a port to use
 * @net: the port's namespace
 * @pool: the pool that the port uses now, or NULL
 * @tb: the attributes; %TCA_COLOR_POOL, %TCA_COLOR_POOL_SIZE and
 *	%TCA_COLOR_POOL_ALPHA count
 * @extack: says what is wrong
 *
 * Without %TCA_COLOR_POOL the port keeps its pool; an empty name takes it away.
 *
 * Return: the pool, for color_pool_put(); or NULL for none; or an error.
 */
struct color_pool *color_pool_get(struct net *net, struct color_pool *pool,
				  struct nlattr **tb,
				  struct netlink_ext_ack *extack)
{
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);
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

static int __net_init color_pool_net_init(struct net *net)
{
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);

	INIT_LIST_HEAD(&cn->pools);
	return 0;
}

/* The namespace's devices are gone, and their ports with them. */
static void __net_exit color_pool_net_exit(struct net *net)
{
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);

	WARN_ON_ONCE(!list_empty(&cn->pools));
}

static struct pernet_operations color_pool_net_ops = {
	.init	= color_pool_net_init,
	.exit	= color_pool_net_exit,
	.id	= &color_pool_net_id,
	.size	= sizeof(struct color_pool_net),
};

/**
 * color_pool_init() - prepare every network namespace for pools
 *
 * Return: 0, or an error.
 */
int __init color_pool_init(void)
{
	return register_pernet_subsys(&color_pool_net_ops);
}

/**
 * color_pool_exit() - undo color_pool_init()
 */
void color_pool_exit(void)
{
	unregister_pernet_subsys(&color_pool_net_ops);
}
