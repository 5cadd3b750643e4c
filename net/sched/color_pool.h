/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The shared buffer of a switch: which ports use it, how much, and how long it
 * lives.  A network namespace is a switch, and a pool has a name in it.
 *
 *	                 pool: size, used
 *	 +--------------------------------------------------+
 *	 | port a: held           | port b: held  |  free   |
 *	 | [ queued    ][reserve] | [ queued ][r] |         |
 *	 +--------------------------------------------------+
 *
 * Ports charge a pool under the root locks of different qdisc trees, so the number
 * of bytes in use is atomic.  An atomic operation for each packet would cost more
 * than the rest of the port does, and two processors would take the cache line from
 * each other, so a port charges a chunk at a time and keeps the bytes that it does not
 * use yet as a reserve.  A reserve has passed the same test as the packets that it is for.
 *
 * Reserves are small.  The bytes that a port charges beyond a packet are at most the bytes
 * that it has queued already, at most COLOR_POOL_CHUNK, and at most 1/256 of the pool; they
 * are 0 while less than 1/8 of the pool is free.  As the queue gets shorter, so does the
 * reserve.  A pool of less than COLOR_POOL_CHUNKS_FROM has no reserves, and is exact to the
 * byte.  When a pool is resized all its ports return their reserves.
 */
#ifndef _COLOR_POOL_H
#define _COLOR_POOL_H

#include <linux/atomic.h>
#include <linux/cache.h>
#include <linux/list.h>
#include <linux/sizes.h>
#include <uapi/linux/pkt_color.h>

struct net;
struct netlink_ext_ack;
struct nlattr;

/* Bytes: eleven packets of 1500 bytes, so a tenth of an atomic operation for each. */
#define COLOR_POOL_CHUNK	16384u
/* Below that 1/256 of the pool is less than three packets, and would save little. */
#define COLOR_POOL_CHUNKS_FROM	SZ_1M

/**
 * struct color_pool - a buffer that ports of one network namespace share
 * @net: the namespace, which removes its pools
 * @list: entry in its pools; RTNL
 * @shares: &struct color_share of each port; RTNL
 * @ports: ports that use it; RTNL
 * @name: the user's name for it
 * @size: bytes; written under RTNL, read by every port
 * @exact: no port keeps a reserve, as one of them has promised its neighbours room; likewise
 * @used: bytes that ports hold
 * @peak: maximum of @used
 */
struct color_pool {
	struct net		*net;
	struct list_head	list;
	struct list_head	shares;
	unsigned int		ports;
	char			name[TC_COLOR_POOL_NAMSIZ];
	u32			size;
	bool			exact;

	/* dirtied by every chunk of every port */
	atomic64_t		used ____cacheline_aligned_in_smp;
	atomic64_t		peak;
};

/**
 * struct color_fill - how much of a pool a port can fill; RTNL
 * @limit: bytes that the port can queue; 0 if it pauses its neighbours, in a share
 * @dev: the device whose MTU is the size of its largest packet, or NULL
 * @alpha: its share of the free bytes, Q16
 * @packet: bytes of its largest packet where @dev is NULL
 */
struct color_fill {
	u64			limit;
	const struct net_device	*dev;
	u32			alpha;
	u32			packet;
};

/**
 * struct color_share - a port's part of a pool; root lock of the port
 * @pool: the pool, or NULL
 * @held: bytes of it that the port has charged: its packets, and a reserve
 * @entry: in @shares of the pool; RTNL
 * @fill: how much of it the port can fill; RTNL
 */
struct color_share {
	struct color_pool	*pool;
	u64			held;
	struct list_head	entry;
	struct color_fill	fill;
};

bool color_share_charge(struct color_share *share, u32 alpha, u64 queued, u32 len);
bool color_share_fits(const struct color_share *share, u32 alpha, u64 queued, u32 len);
void color_share_release(struct color_share *share, u64 queued);
void color_share_give_back(struct color_share *share, u64 queued);
u64 color_share_low(const struct color_share *share);
u64 color_pool_left(const struct color_pool *pool, u64 size, const struct color_share *old,
		    const struct color_fill *new);
struct color_pool *color_share_move(struct color_share *share, struct color_pool *pool,
				    u64 queued);
struct color_pool *color_pool_get(struct net *net, struct color_pool *pool,
				  struct nlattr **tb,
				  struct netlink_ext_ack *extack);
u32 color_pool_new_size(const struct color_pool *pool, struct nlattr **tb);
bool color_pool_set_exact(struct color_pool *pool);
bool color_pool_resize(struct color_pool *pool, struct nlattr **tb);
void color_pool_put(struct color_pool *pool);
int color_pool_init(void);
void color_pool_exit(void);

#endif /* _COLOR_POOL_H */
