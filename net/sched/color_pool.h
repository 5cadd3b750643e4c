/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared buffer of a switch: which ports use it, how much, and how long it
 * lives.  A network namespace is a switch, and a pool has a name in it.
 *
 * Ports charge a pool under the root locks of different qdisc trees, so the
 * number of bytes in use is atomic.  Pools come and go under RTNL.
 */
#ifndef _COLOR_POOL_H
#define _COLOR_POOL_H

#include <linux/cache.h>
#include <linux/atomic.h>
#include <linux/list.h>
#include <uapi/linux/pkt_color.h>

struct net;
struct netlink_ext_ack;
struct nlattr;

/**
 * struct color_pool - a buffer that ports of one network namespace share
 * @list: entry in the namespace's pools; RTNL
 * @ports: ports that use it; RTNL
 * @name: the user's name for it
 * @size: bytes
 * @used: bytes in the ports' queues
 * @peak: maximum of @used
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

bool color_pool_charge(struct color_pool *pool, u32 alpha, u64 occ, u32 len);
void color_pool_swap(struct color_pool **from, struct color_pool **to, u64 occ);
struct color_pool *color_pool_get(struct net *net, struct color_pool *pool,
				  struct nlattr **tb,
				  struct netlink_ext_ack *extack);
void color_pool_put(struct color_pool *pool);
int color_pool_init(void);
void color_pool_exit(void);

/**
 * color_pool_uncharge() - packets leave a port that uses the pool
 * @pool: the pool
 * @len: bytes that leave
 */
static inline void color_pool_uncharge(struct color_pool *pool, u64 len)
{
	atomic64_sub(len, &pool->used);
}

#endif /* _COLOR_POOL_H */
