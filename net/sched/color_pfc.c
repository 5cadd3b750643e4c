// SPDX-License-Identifier: GPL-2.0-only
/*
 * Priority flow control (IEEE 802.1Qbb): the frame, its times, and the effect of received frames on
 * a port.  Only arithmetic; color_pause.h describes how ports send and receive the frames.
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
#include <linux/etherdevice.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/string.h>
#include <linux/time64.h>

#include "color_pfc.h"

/* ether_addr_equal() reads 16 bits at a time. */
const u8 color_pfc_address[ETH_ALEN] __aligned(2) = { 0x01, 0x80, 0xc2, 0x00, 0x00, 0x01 };

/**
 * color_pfc_ns() - the duration of a pause
 * @quanta: its time in a frame
 * @rate: rate of the link, bytes/s, not 0
 *
 * Return: ns, rounded down.
 */
u64 color_pfc_ns(u16 quanta, u64 rate)
{
	return div64_u64((u64)quanta * COLOR_PFC_QUANTUM * NSEC_PER_SEC, rate);
}

/**
 * color_pfc_quanta() - the time to request in a frame
 * @ns: duration of the pause, ns
 * @rate: rate of the link, bytes/s, not 0
 *
 * Return: quanta, at least 1 and at most %COLOR_PFC_TIME_MAX.
 */
u16 color_pfc_quanta(u32 ns, u64 rate)
{
	u64 quanta = div_u64(mul_u64_u32_div(rate, ns, NSEC_PER_SEC), COLOR_PFC_QUANTUM);

	return clamp_t(u64, quanta, 1, COLOR_PFC_TIME_MAX);
}

/**
 * color_pfc_headroom() - bytes of a priority that arrive above Xoff
 * @r: the neighbour
 *
 * The packet that crosses Xoff exceeds it by a unit at most.  This end finishes the packet that it
 * sends, then the frame reaches the neighbour after @delay.  The neighbour finishes its own unit,
 * and its last data arrives @delay later.
 *
 * Return: bytes.
 */
u64 color_pfc_headroom(const struct color_pfc_reach *r)
{
	return mul_u64_u32_div(r->rate, 2 * r->delay + r->burst, NSEC_PER_SEC) +
	       2 * (u64)r->unit + r->packet + ETH_ZLEN;
}

/**
 * color_pfc_fill() - write a frame
 * @frame: the frame
 * @source: address of the port
 * @enabled: priorities for which the frame has a time
 * @off: priorities to pause; the other ones of @enabled may resume
 * @quanta: duration of the pause, quanta
 */
void color_pfc_fill(struct color_pfc_frame *frame, const u8 *source, u8 enabled, u8 off,
		    u16 quanta)
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
			frame->mac.time[prio] = htons(quanta);
}

/* ns of the time from @since to @now that lie before @end */
static u64 color_pfc_part(u64 since, u64 now, u64 end)
{
	end = min(now, end);
	return end > since ? end - since : 0;
}

/**
 * color_pfc_account() - count the time that has passed
 * @h: the priority
 * @now: the time, ns
 * @most: ns of pauses that are obeyed, see color_pfc_receive(); 0 for no limit
 *
 * Return: true if a storm has begun.
 */
bool color_pfc_account(struct color_pfc_received *h, u64 now, u64 most)
{
	u64 asked = color_pfc_part(h->since, now, h->asked), idle = now - h->since - asked;
	bool began = most && !h->storm && h->spent + asked > most;

	h->paused += color_pfc_part(h->since, now, h->until);
	h->spent = most ? min(h->spent + asked, most) : 0;
	h->spent = idle > h->spent >> COLOR_PFC_LEAK_SHIFT ?
		   0 : h->spent - (idle << COLOR_PFC_LEAK_SHIFT);
	h->storm = (h->storm || began) && h->spent;
	h->since = now;
	return began;
}

/**
 * color_pfc_receive() - apply the time that a received frame has for a priority
 * @h: the priority
 * @ns: the time, ns; 0 to end a pause
 * @now: arrival of the frame, ns; not before @now of the last call
 * @most: ns of pauses that are obeyed; 0 for no limit
 *
 * Storms.  A neighbour that is broken, or whose own neighbours are, may pause for ever, and its
 * pause spreads through the network.  So stopped time fills a bucket of @most, which leaks while
 * the neighbour requests no pause.  When the bucket is full pauses are ignored, until it is empty.
 * A frame that ends a pause does not empty it, or a pause after each end would stop the port for
 * good.
 *
 * Return: true if a storm has begun.
 */
bool color_pfc_receive(struct color_pfc_received *h, u64 ns, u64 now, u64 most)
{
	bool began = color_pfc_account(h, now, most);

	if (!ns) {
		h->asked = min(h->asked, now);
		h->until = min(h->until, now);
		return began;
	}
	h->asked = now + ns;
	if (!h->storm)
		h->until = now + (most ? min(ns, most - h->spent) : ns);
	return began;
}
