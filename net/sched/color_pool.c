// SPDX-License-Identifier: GPL-2.0-only
/* The shared buffer of a switch; see color_pool.h. */

#include <linux/ctype.h>
#include <linux/minmax.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/net_namespace.h>
#include <net/netlink.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>

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

/* The maximum that a port charges beyond a packet, bytes. */
static u32 color_pool_chunk(const struct color_pool *pool, u32 size)
{
	if (size < COLOR_POOL_CHUNKS_FROM || READ_ONCE(pool->exact))
		return 0;
	return min(COLOR_POOL_CHUNK, size >> 8);
}

/* Is less than 1/8 of the pool free?  Then ports keep no reserve. */
static bool color_pool_tight(u32 size, u64 used)
{
	return used + (size >> 3) > size;
}

/**
 * color_share_fits() - is there room for a packet of the port, by the dynamic threshold?
 * @share: the port's part of the pool
 * @alpha: the port's share of the free bytes, Q16
 * @queued: bytes of the port's packets
 * @len: bytes of the packet
 *
 * Return: true if there is.
 */
bool color_share_fits(const struct color_share *share, u32 alpha, u64 queued, u32 len)
{
	u64 used = atomic64_read(&share->pool->used);

	return color_pool_fits(READ_ONCE(share->pool->size), used - (share->held - queued),
			       alpha, queued, len);
}

/**
 * color_share_charge() - charge a packet that the reserve has no room for
 * @share: the port's part of the pool
 * @alpha: the port's share of the free bytes, Q16
 * @queued: bytes of the port's packets
 * @len: bytes of the packet; @queued + @len is more than the port holds
 *
 * The test is exact even while other ports charge the pool; their reserves count as
 * used, the port's own does not.
 *
 * Return: true if the port holds enough for the packet now.
 */
bool color_share_charge(struct color_share *share, u32 alpha, u64 queued, u32 len)
{
	struct color_pool *pool = share->pool;
	u32 size = READ_ONCE(pool->size);
	u32 chunk = min_t(u64, color_pool_chunk(pool, size), queued);
	u64 reserve = share->held - queued;
	s64 used = atomic64_read(&pool->used);
	u64 more;

	do {
		u64 others = used - reserve;

		if (!color_pool_fits(size, others, alpha, queued, len))
			return false;
		more = len - reserve;
		/* The last packet that fits into the chunk has to pass the test as well. */
		if (chunk && !color_pool_tight(size, others + len + chunk) &&
		    color_pool_fits(size, others + chunk, alpha, queued + chunk, len))
			more += chunk;
	} while (!atomic64_try_cmpxchg(&pool->used, &used, used + more));
	share->held += more;
	color_pool_set_peak(pool, used + more);
	return true;
}

/**
 * color_share_low() - the threshold below which to call color_share_release()
 * @share: the port's part of a pool
 *
 * Return: bytes of the port's packets.
 */
u64 color_share_low(const struct color_share *share)
{
	u32 chunk = color_pool_chunk(share->pool, READ_ONCE(share->pool->size));
	u64 held = share->held;

	if (!chunk || !held)
		return held;
	/* Below it the reserve is above two chunks, or above twice the queue; below 1 no byte is
	 * queued.
	 */
	return max3((u64)1, held / 3, held - min_t(u64, held, 2 * chunk));
}

/**
 * color_share_release() - return the part of the reserve that is not needed
 * @share: the port's part of a pool
 * @queued: bytes of the port's packets
 */
void color_share_release(struct color_share *share, u64 queued)
{
	struct color_pool *pool = share->pool;
	u32 size = READ_ONCE(pool->size);
	u64 keep = min_t(u64, color_pool_chunk(pool, size), queued);
	u64 reserve = share->held - queued;

	if (color_pool_tight(size, atomic64_read(&pool->used)))
		keep = 0;
	if (reserve <= keep)
		return;
	share->held -= reserve - keep;
	atomic64_sub(reserve - keep, &pool->used);
}

/**
 * color_share_give_back() - return the reserve: its test used a size or alpha that has changed
 * @share: the port's part of a pool
 * @queued: bytes of the port's packets
 */
void color_share_give_back(struct color_share *share, u64 queued)
{
	atomic64_sub(share->held - queued, &share->pool->used);
	share->held = queued;
}

/**
 * color_share_move() - move a port from one pool to another
 * @share: the port's part of its pool; afterwards of the new one
 * @pool: the new pool, the same one, or NULL
 * @queued: bytes of the port's packets
 *
 * The new pool takes the port's bytes even if it has no room for them.  The caller has
 * RTNL and the port's root lock.
 *
 * Return: the old pool, for color_pool_put().
 */
struct color_pool *color_share_move(struct color_share *share, struct color_pool *pool,
				    u64 queued)
{
	struct color_pool *before = share->pool;

	if (pool == before)
		return before;
	if (before) {
		atomic64_sub(share->held, &before->used);
		list_del(&share->entry);
	}
	if (pool) {
		color_pool_set_peak(pool, atomic64_add_return(queued, &pool->used));
		list_add(&share->entry, &pool->shares);
	}
	share->pool = pool;
	share->held = pool ? queued : 0;
	return before;
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
 * color_pool_set_exact() - a port of the pool has begun to pause its neighbours, or has ended that
 * @pool: the pool, or NULL
 *
 * Xoff promises room for bytes that are queued, and knows no reserves of other ports.
 *
 * Return: true if all ports have to give their reserves back.
 */
bool color_pool_set_exact(struct color_pool *pool)
{
	const struct color_share *share;
	bool exact = false;

	ASSERT_RTNL();
	if (!pool)
		return false;
	list_for_each_entry(share, &pool->shares, entry)
		exact |= !share->fill.limit;
	if (exact == pool->exact)
		return false;
	WRITE_ONCE(pool->exact, exact);
	return exact;
}

/**
 * color_pool_put() - a port stops using a pool
 * @pool: the pool, or NULL; freed with its last port
 */
void color_pool_put(struct color_pool *pool)
{
	ASSERT_RTNL();
	if (!pool)
		return;
	if (--pool->ports) {
		/* The port may have been the last one that pauses. */
		color_pool_set_exact(pool);
		return;
	}
	list_del(&pool->list);
	kfree(pool);
}

static bool color_pool_valid_name(const char *name)
{
	/* tc's word for no pool */
	if (!strcmp(name, "none"))
		return false;
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
 * @extack: for the error message
 *
 * Without %TCA_COLOR_POOL the port keeps its pool; an empty name removes it from the pool.
 * %TCA_COLOR_POOL_SIZE of the pool that the port is in resizes it, for all its ports; a
 * port that joins a pool of another size is refused, as the user may mean another pool.
 *
 * Return: the pool, for color_pool_put(); or NULL for no pool; or an error.
 */
struct color_pool *color_pool_get(struct net *net, struct color_pool *pool,
				  struct nlattr **tb,
				  struct netlink_ext_ack *extack)
{
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);
	struct color_pool *own = pool;
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
		if (size && size != pool->size && pool != own) {
			NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL_SIZE],
					    "The pool exists with another size, which a change of its ports can set");
			return ERR_PTR(-EEXIST);
		}
		pool->ports++;
		return pool;
	}

	if (!name || !*name) {
		if (!size && !tb[TCA_COLOR_POOL_ALPHA])
			return NULL;
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL_SIZE] ?: tb[TCA_COLOR_POOL_ALPHA],
				    "size and alpha need a pool");
		return ERR_PTR(-EINVAL);
	}
	if (!color_pool_valid_name(name)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL],
				    "A pool's name is made of printable ASCII characters, and is not \"none\"");
		return ERR_PTR(-EINVAL);
	}
	if (!size) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_POOL],
				    "The pool does not exist; a new pool needs a size");
		return ERR_PTR(-ENOENT);
	}

	pool = kzalloc(sizeof(*pool), GFP_KERNEL);
	if (!pool)
		return ERR_PTR(-ENOMEM);
	strscpy(pool->name, name, sizeof(pool->name));
	pool->net = net;
	pool->size = size;
	pool->ports = 1;
	INIT_LIST_HEAD(&pool->shares);
	list_add(&pool->list, &cn->pools);
	return pool;
}

/**
 * color_pool_new_size() - the size of a port's pool after the request
 * @pool: the pool, of color_pool_get(), or NULL
 * @tb: the same attributes
 *
 * Return: bytes; U32_MAX without a pool.
 */
u32 color_pool_new_size(const struct color_pool *pool, struct nlattr **tb)
{
	if (!pool)
		return U32_MAX;
	return tb[TCA_COLOR_POOL_SIZE] ? nla_get_u32(tb[TCA_COLOR_POOL_SIZE]) : pool->size;
}

/**
 * color_pool_resize() - resize the pool of a port, if the user requests it
 * @pool: the pool, of color_pool_get(), or NULL
 * @tb: the same attributes
 *
 * A pool that holds more than its new size admits no packet until it has drained.
 *
 * Return: true if the size has changed: all ports have to give their reserves back.
 */
bool color_pool_resize(struct color_pool *pool, struct nlattr **tb)
{
	u32 size;

	ASSERT_RTNL();
	if (!pool || !tb[TCA_COLOR_POOL_SIZE])
		return false;
	size = nla_get_u32(tb[TCA_COLOR_POOL_SIZE]);
	if (size == pool->size)
		return false;
	WRITE_ONCE(pool->size, size);
	return true;
}

/* A port that does not pause fills the pool.  @left: bytes that the dynamic thresholds leave free;
 * @most: sum of the limits, bytes.  The bytes that are free before the port's last packet decide if
 * it is admitted: q <= alpha * (@left - (q - packet)).
 */
static void color_pool_fill(const struct color_fill *fill, u64 *left, u64 *most)
{
	u32 packet = fill->dev ? psched_mtu(fill->dev) : fill->packet;
	u64 last = mul_u64_u32_shr(packet, fill->alpha, 16);

	if (!fill->limit)
		return;
	*left = mul_u64_u32_div(*left - min(*left, last), TC_COLOR_ALPHA_ONE,
				TC_COLOR_ALPHA_ONE + fill->alpha);
	*most += fill->limit;
}

/**
 * color_pool_left() - the bytes of a pool that ports without pause leave free
 * @pool: the pool
 * @size: bytes of the pool that are free for these ports
 * @old: a port that is not counted, or NULL
 * @new: a port that is counted too, or NULL
 *
 * A full port keeps its bytes, so the order in which the ports fill matters: by its threshold each
 * port leaves 1 / (1 + alpha) of the bytes that it finds free, less for its last packet, and all
 * ports together hold the sum of their limits at most.  In any order they leave the greater of
 * both.  RTNL.
 *
 * Return: bytes.
 */
u64 color_pool_left(const struct color_pool *pool, u64 size, const struct color_share *old,
		    const struct color_fill *new)
{
	const struct color_share *share;
	u64 left = size, most = 0;

	list_for_each_entry(share, &pool->shares, entry)
		if (share != old)
			color_pool_fill(&share->fill, &left, &most);
	if (new)
		color_pool_fill(new, &left, &most);
	return max(left, size - min(size, most));
}

static int __net_init color_pool_net_init(struct net *net)
{
	struct color_pool_net *cn = net_generic(net, color_pool_net_id);

	INIT_LIST_HEAD(&cn->pools);
	return 0;
}

/* The namespace's devices have been removed, and their ports with them. */
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
