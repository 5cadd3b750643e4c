/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * Priority flow control (IEEE 802.1Qbb): the frame, its times, and what a port makes of the frames
 * that it hears.  Only arithmetic; who sends and who listens is in color_pause.h.
 *
 *	 0        6        12     14      16      18                    34            60
 *	 +--------+--------+------+-------+-------+---------------------+-------------+
 *	 | dst    | src    | type | op    | class | time of priority    | zeros       |
 *	 | 01:80: | the    | 8808 | 0101  | enable| 0, 1, ... 7, each   |             |
 *	 | c2:..01| port's |      |       | 0..7  | 16 bits             |             |
 *	 +--------+--------+------+-------+-------+---------------------+-------------+
 *
 * A time is in quanta of 512 bit times of the link; 0 ends a pause.
 */
#ifndef _COLOR_PFC_H
#define _COLOR_PFC_H

#include <linux/bits.h>
#include <linux/build_bug.h>
#include <linux/etherdevice.h>
#include <linux/if_ether.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

#define COLOR_PFC_OPCODE	0x0101
#define COLOR_PFC_QUANTUM	64u	/* bytes: 512 bit times */
#define COLOR_PFC_TIME_MAX	0xffffu	/* quanta */

/**
 * struct color_pfc_mac - what follows the Ethernet header
 * @opcode: COLOR_PFC_OPCODE
 * @enabled: bit N says that @time has a time for priority N
 * @time: by priority, quanta
 */
struct color_pfc_mac {
	__be16	opcode;
	__be16	enabled;
	__be16	time[TC_COLOR_PAUSE_PRIOS];
};

/**
 * struct color_pfc_frame - the whole frame, without the FCS
 * @eth: Ethernet header
 * @mac: the MAC control parameters
 * @pad: zeros, up to Ethernet's smallest frame
 */
struct color_pfc_frame {
	struct ethhdr		eth;
	struct color_pfc_mac	mac;
	u8			pad[ETH_ZLEN - ETH_HLEN - sizeof(struct color_pfc_mac)];
} __packed;

/* 01-80-C2-00-00-01: no bridge forwards it, so it comes from the other end of the link. */
static const u8 color_pfc_address[ETH_ALEN] __aligned(2) = {
	0x01, 0x80, 0xc2, 0x00, 0x00, 0x01
};

/**
 * color_pfc_ns() - how long a pause is
 * @quanta: its time
 * @rate: rate of the link, bytes/s, not 0
 *
 * Return: ns, rounded down.
 */
static inline u64 color_pfc_ns(u16 quanta, u64 rate)
{
	return div64_u64((u64)quanta * COLOR_PFC_QUANTUM * NSEC_PER_SEC, rate);
}

/**
 * color_pfc_headroom() - bytes that still come after the decision to pause
 * @rate: rate of the link, bytes/s
 * @delay: ns from one end of the link to the other
 * @packet: bytes of the longest packet on the link
 *
 * The pause frame takes @delay to get there, and what leaves before it is heard takes as long to
 * come; the other end finishes a packet that it has begun, and so does this one before its frame.
 *
 * Return: bytes.
 */
static inline u64 color_pfc_headroom(u64 rate, u32 delay, u32 packet)
{
	return 2 * (mul_u64_u32_div(rate, delay, NSEC_PER_SEC) + packet) + ETH_ZLEN;
}

/**
 * color_pfc_fill() - write a frame
 * @frame: where to
 * @source: address of the port
 * @enabled: priorities that it has a time for
 * @off: those of them that are to pause; the others may go on
 */
static inline void color_pfc_fill(struct color_pfc_frame *frame, const u8 *source, u8 enabled,
				  u8 off)
{
	int prio;

	BUILD_BUG_ON(sizeof(*frame) != ETH_ZLEN);
	memset(frame, 0, sizeof(*frame));
	ether_addr_copy(frame->eth.h_dest, color_pfc_address);
	ether_addr_copy(frame->eth.h_source, source);
	frame->eth.h_proto = htons(ETH_P_PAUSE);
	frame->mac.opcode = htons(COLOR_PFC_OPCODE);
	frame->mac.enabled = htons(enabled);
	for (prio = 0; prio < TC_COLOR_PAUSE_PRIOS; prio++)
		if (enabled & off & BIT(prio))
			frame->mac.time[prio] = htons(COLOR_PFC_TIME_MAX);
}

/**
 * struct color_pfc_heard - what has been heard for one priority
 * @until: when its last pause ends, or has ended, ns
 * @since: from when to @until time is not in @paused yet
 * @began: when the pause began that has lasted without an end
 * @last: when the last frame came that asked for a pause
 * @paused: ns of pauses
 * @cut: the pause is longer than is allowed, and was cut
 * @storm: pauses are ignored
 */
struct color_pfc_heard {
	u64	until;
	u64	since;
	u64	began;
	u64	last;
	u64	paused;
	bool	cut;
	bool	storm;
};

/**
 * color_pfc_paused() - how long a priority has been paused in all
 * @h: what has been heard
 * @now: the time, ns
 *
 * Return: ns.
 */
static inline u64 color_pfc_paused(const struct color_pfc_heard *h, u64 now)
{
	u64 end = min(now, h->until);

	return h->paused + (end > h->since ? end - h->since : 0);
}

/**
 * color_pfc_hear() - a frame has a time for a priority
 * @h: what has been heard so far
 * @ns: the time, 0 to end a pause
 * @now: when it comes, ns
 * @most: the longest pause without an end, ns; 0 for any length
 *
 * Storms.  A neighbour that is broken, or whose own neighbours are, may pause for ever, and its
 * pause spreads through the network.  So a pause that has lasted for @most is ignored from then on,
 * until the neighbour ends it, or asks for no pause for as long.
 *
 * Return: true if a storm begins.
 */
static inline bool color_pfc_hear(struct color_pfc_heard *h, u64 ns, u64 now, u64 most)
{
	bool quiet = now - h->last > most, going = now < h->until || (h->cut && !quiet);

	h->paused = color_pfc_paused(h, now);
	if (!ns) {
		h->until = min(h->until, now);
		h->since = h->until;
		h->cut = false;
		h->storm = false;
		return false;
	}

	h->last = now;
	h->since = now;
	if (h->storm && !quiet)
		return false;
	if (h->storm || !going)
		h->began = now;
	h->storm = false;
	h->cut = false;
	h->until = now + ns;
	if (!most || h->until - h->began <= most)
		return false;

	/* longer than it may be */
	h->until = h->began + most;
	h->cut = true;
	h->storm = h->until <= now;
	return h->storm;
}

#endif /* _COLOR_PFC_H */
