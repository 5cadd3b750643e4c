/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `red auto`: an automatic threshold of red packets.
 *
 *	 0                                                         bytes allowed to the port
 *	 |<------------- red's threshold ------------>|<-- need -->|<------ reserve ------>|
 *	 +--------------------------------------------+------------+-----------------------+
 *	 | min |                                      |            |                       |
 *	 +-----+--------------------------------------+------------+-----------------------+
 *
 * Red packets may use the room that protected (green) ones do not need.  These need the greater of
 *
 * - the recent peak of their bytes: the peak of the last window, or of an earlier one, less 1/64
 *   for each window since.  A window is the time in which the link sends a full buffer, 1 ms at
 *   least;
 *
 * - three times the bytes that are queued.  More flows may follow the flows whose packets arrive
 *   now, and a packet cannot be removed from the queue again, so red has to stop before the
 *   green packets of the last flow arrive.  The worst flows have windows of three or four
 *   packets.  A port of 1.8 MB that they fill at eight times the rate of its link loses green
 *   packets of 680 flows with a factor of one, of 1000 with two, and of 1200 with three
 *   (color_auto_kunit: first_round_trip).  A recent peak is no reason for a smaller factor: a peak
 *   of 360 flows does not predict the 1000 that arrive now (color_auto_kunit: larger_crowd).
 *
 * Yellow packets and requeued packets count at their size, without a factor.
 *
 * The reserve is an eighth of the bytes allowed to the port.  In a shared buffer that allowance,
 * a (S - used), falls when other ports get busy, and a port that holds more loses green packets.
 * So there is a second condition, in which green packets count once: all bytes that the port queues
 * and keeps for green packets have to fit into 1/b of its allowance.  If another port then fills up
 * to its own red threshold at once, the bytes that this port holds, and keeps for green packets,
 * are still within its allowance:
 *
 *	alone, it holds		x = a/b (S - x)		= a / (a + b) S
 *	the other port fills	y = a/b (S - x - y)	= a b / (a + b)^2 S
 *	its allowance then	a (S - x - y)		= a b^2 / (a + b)^2 S
 *
 * which is x for b^2 = b + a: 1.62 for a = 1.  Alone, the port then holds 1.7 MB of 4.5 MB, while
 * without red it may hold 2.25 MB (color_auto_kunit: second_port).
 *
 * Red's threshold is at least @min, a bandwidth-delay product.
 *
 * Windows are counted in jiffies: no packet reads a clock for them.
 */
#ifndef _COLOR_AUTO_H
#define _COLOR_AUTO_H

#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/types.h>

struct color_config;
struct color_share;

/* The peak loses 1/64 of itself in a window: half in 44 windows. */
#define COLOR_AUTO_WINDOWS	64
#define COLOR_AUTO_WINDOW_MAX	1000	/* ms */
#define COLOR_AUTO_GROWTH	3
#define COLOR_AUTO_RESERVE	8	/* the reserve is 1/8 of the allowance */
/* @top is a multiple of that, so that not each green packet of a growing queue changes it. */
#define COLOR_AUTO_STEP		4096u

/* The default of @min: the bytes that the link sends in 25 us, the base RTT of a datacenter;
 * without a rate, 1/16 of the limit.  At least 16 packets, but at most 1/4 of the limit.
 */
#define COLOR_AUTO_MIN_US	25
#define COLOR_AUTO_MIN_LIMIT	16
#define COLOR_AUTO_MIN_PACKETS	16
#define COLOR_AUTO_MIN_MAX	4

/**
 * struct color_auto - the state of `red auto`; root lock
 * @peak: recent peak of the bytes of protected packets, without the current window
 * @top: maximum of the bytes of protected packets in the current window, rounded up to a step
 * @since: start of the current window, jiffies
 * @window: length of a window, jiffies
 * @min: minimum of the threshold, bytes
 * @alpha: red's share of the free bytes of the pool, a / b, Q16
 */
struct color_auto {
	u64		peak;
	u64		top;
	unsigned long	since;
	unsigned long	window;
	u32		min;
	u32		alpha;
};

void color_auto_set(struct color_auto *a, const struct color_config *cfg, u32 mtu);
void color_auto_reset(struct color_auto *a, u64 protected);
void color_auto_roll(struct color_auto *a, u64 protected, unsigned long now);
u64 color_auto_need(const struct color_auto *a, u64 protected);
u64 color_auto_thresh(const struct color_auto *a, const struct color_config *cfg,
		      const struct color_share *share, u64 queued, u64 protected, u64 others);

/**
 * color_auto_due() - is the window over?
 * @a: the state
 * @now: jiffies
 *
 * Return: true if it is time for color_auto_roll().
 */
static inline bool color_auto_due(const struct color_auto *a, unsigned long now)
{
	return now - a->since >= a->window;
}

/**
 * color_auto_saw() - update the maximum of the current window
 * @a: the state
 * @protected: bytes of protected packets
 *
 * Return: true if @top has changed.
 */
static inline bool color_auto_saw(struct color_auto *a, u64 protected)
{
	if (protected <= a->top)
		return false;
	a->top = round_up(protected, COLOR_AUTO_STEP);
	return true;
}

#endif /* _COLOR_AUTO_H */
