/* SPDX-License-Identifier: GPL-2.0-only */
/* Priority flow control (IEEE 802.1Qbb).  See color_pfc.c. */
#ifndef _COLOR_PFC_H
#define _COLOR_PFC_H

#include <linux/bits.h>
#include <linux/if_ether.h>
#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

#define COLOR_PFC_OPCODE	0x0101
#define COLOR_PFC_QUANTUM	64u	/* bytes: 512 bit times */
#define COLOR_PFC_TIME_MAX	0xffffu	/* quanta */

/**
 * struct color_pfc_mac - the MAC control parameters, behind the Ethernet header
 * @opcode: COLOR_PFC_OPCODE
 * @enabled: bit N is set if @time has a time for priority N
 * @time: duration of the pause, by priority, quanta; 0 ends it
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

/* 01-80-C2-00-00-01: no bridge forwards it, so the sender is the other end of the link. */
extern const u8 color_pfc_address[ETH_ALEN];

/**
 * struct color_pfc_reach - the properties of a link and its neighbour that the headroom depends on
 * @rate: maximum rate of the neighbour, bytes/s
 * @delay: propagation delay from one end of the link to the other, ns
 * @burst: ns of @rate that the neighbour sends at once when its timer is late
 * @unit: bytes of the largest packet that the neighbour sends at once
 * @packet: bytes of the longest packet that this end sends
 */
struct color_pfc_reach {
	u64	rate;
	u32	delay;
	u32	burst;
	u32	unit;
	u32	packet;
};

/* The watchdog subtracts 64 ns of stopped time for each ns without a pause: a neighbour that lets
 * the port send for 1/65 of the time causes no storm.  One of 64 senders that share a link fairly
 * is stopped for a smaller part of the time.
 */
#define COLOR_PFC_LEAK_SHIFT	6

/**
 * struct color_pfc_received - pauses of one priority
 * @asked: end of the last pause that the neighbour requested, ns; may be in the past
 * @until: time at which the port may send, ns: @asked, or earlier if the pause is too long
 * @since: the time up to which @paused and @spent count, ns
 * @paused: ns for which the port was stopped
 * @spent: ns for which the neighbour requested a pause, less 64 times the ns for which it did not
 * @storm: pauses are ignored
 */
struct color_pfc_received {
	u64	asked;
	u64	until;
	u64	since;
	u64	paused;
	u64	spent;
	bool	storm;
};

u64 color_pfc_ns(u16 quanta, u64 rate);
u16 color_pfc_quanta(u32 ns, u64 rate);
u64 color_pfc_headroom(const struct color_pfc_reach *r);
void color_pfc_fill(struct color_pfc_frame *frame, const u8 *source, u8 enabled, u8 off,
		    u16 quanta);
bool color_pfc_account(struct color_pfc_received *h, u64 now, u64 most);
bool color_pfc_receive(struct color_pfc_received *h, u64 ns, u64 now, u64 most);

#endif /* _COLOR_PFC_H */
