/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The arithmetic of a port's buffer: thresholds, shared pool, CE marks.
 */
#ifndef _COLOR_THRESH_H
#define _COLOR_THRESH_H

#include <linux/limits.h>
#include <linux/math64.h>
#include <uapi/linux/pkt_color.h>
#include <linux/types.h>

#define COLOR_NO_THRESH		U64_MAX

/**
 * color_fits() - may @len more bytes be queued?
 * @occ: bytes queued, well below 2^63
 * @len: bytes to add
 * @thresh: bytes allowed
 *
 * Return: true if then no more than @thresh bytes are queued.
 */
static inline bool color_fits(u64 occ, u32 len, u64 thresh)
{
	return occ + len <= thresh;
}

/**
 * color_pool_thresh() - dynamic threshold of a port that shares a buffer
 * @size: bytes of the buffer
 * @used: bytes of it in use; more than @size after ports with packets joined
 * @alpha: the port's share of the free bytes, Q16
 *
 * Choudhury & Hahne, "Dynamic Queue Length Thresholds for Shared-Memory Packet
 * Switches" (ToN 1998): a port may hold alpha times the free bytes, so one
 * busy port leaves 1 / (1 + alpha) of the buffer for the next.
 *
 * Return: bytes that the port may have in the buffer.
 */
static inline u64 color_pool_thresh(u64 size, u64 used, u32 alpha)
{
	return used < size ? (size - used) * alpha >> 16 : 0;
}

/**
 * color_pool_fits() - may @len more bytes of a port enter the shared buffer?
 * @size: bytes of the buffer
 * @used: bytes of it in use
 * @alpha: the port's share of the free bytes, Q16
 * @occ: bytes that the port has in it
 * @len: bytes to add
 *
 * With alpha above 1 the dynamic threshold alone would admit a packet for
 * which there is no memory.
 *
 * Return: true if they may.
 */
static inline bool color_pool_fits(u64 size, u64 used, u32 alpha, u64 occ,
				   u32 len)
{
	return color_fits(used, len, size) &&
	       color_fits(occ, len, color_pool_thresh(size, used, alpha));
}

/**
 * struct color_ecn - when to set CE
 * @min: bytes in the queue above which marks begin
 * @max: bytes in the queue above which everything is marked
 * @prob: probability at @max, %TC_COLOR_PROB_ONE for 1; 0 for no marks at all
 *
 * DCTCP's step at K is @min = @max = K.
 */
struct color_ecn {
	u32	min;
	u32	max;
	u32	prob;
};

/**
 * color_ecn_prob() - probability of a mark
 * @e: when to set CE
 * @occ: bytes in the queue, the packet included
 *
 * Return: 0 for never … %TC_COLOR_PROB_ONE for always.
 */
static inline u32 color_ecn_prob(const struct color_ecn *e, u64 occ)
{
	if (!e->prob || occ <= e->min)
		return 0;
	if (occ > e->max)
		return TC_COLOR_PROB_ONE;
	return div_u64(e->prob * (occ - e->min), e->max - e->min);
}

/**
 * color_ecn_hit() - does this packet get the mark?
 * @prob: probability, %TC_COLOR_PROB_ONE for 1
 * @random: 32 random bits
 *
 * Return: true if it does.
 */
static inline bool color_ecn_hit(u32 prob, u32 random)
{
	return prob == TC_COLOR_PROB_ONE || random < prob;
}

/**
 * struct color_refused - bytes that a port has refused lately
 * @since: start of the current window, jiffies
 * @bytes: bytes refused in the current window
 */
struct color_refused {
	unsigned long	since;
	u64		bytes;
};

/**
 * color_refused_lately() - bytes refused in the current window
 * @r: the port's counter
 * @now: jiffies
 * @window: length of a window, jiffies
 *
 * Compares the age of the window, not its end with time_before(): 2^31 jiffies later, 25 days at
 * 1000 Hz on 32 bit, the end would be in the future again.
 *
 * Return: bytes, 0 if the window is over.
 */
static inline u64 color_refused_lately(const struct color_refused *r, unsigned long now,
				       unsigned long window)
{
	return now - r->since < window ? r->bytes : 0;
}

/**
 * color_refused_add() - the port refuses a packet
 * @r: the port's counter
 * @len: bytes of the packet
 * @now: jiffies
 * @window: length of a window, jiffies
 */
static inline void color_refused_add(struct color_refused *r, u32 len, unsigned long now,
				     unsigned long window)
{
	if (now - r->since >= window) {
		r->since = now;
		r->bytes = 0;
	}
	r->bytes += len;
}

#endif /* _COLOR_THRESH_H */
