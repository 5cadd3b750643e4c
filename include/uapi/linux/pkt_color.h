/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The netlink interface of the `color` qdisc: one colour-aware switch port.
 *
 * This would be part of <linux/pkt_sched.h> in the kernel proper.
 */
#ifndef _UAPI_LINUX_PKT_COLOR_H
#define _UAPI_LINUX_PKT_COLOR_H

#include <linux/types.h>

/**
 * enum tc_color - what a packet is worth to the network
 * @TC_COLOR_RED: may be lost; dropped first
 * @TC_COLOR_YELLOW: not classified; neither sacrificed nor protected
 * @TC_COLOR_GREEN: must not be lost; dropped last
 */
enum tc_color {
	TC_COLOR_RED,
	TC_COLOR_YELLOW,
	TC_COLOR_GREEN,
	/* private: */
	__TC_COLOR_MAX,
};

#define TC_COLOR_MAX (__TC_COLOR_MAX - 1)

/**
 * enum tc_color_drop - why the port refused a packet, in the order of the tests
 * @TC_COLOR_DROP_COLOR: over the threshold of its colour
 * @TC_COLOR_DROP_POOL: over the dynamic threshold of the shared buffer
 * @TC_COLOR_DROP_LIMIT: over the port's own limit
 */
enum tc_color_drop {
	TC_COLOR_DROP_COLOR,
	TC_COLOR_DROP_POOL,
	TC_COLOR_DROP_LIMIT,
	/* private: */
	__TC_COLOR_DROP_MAX,
};

/**
 * enum tc_color_count - what a colour's threshold is compared with
 * @TC_COLOR_COUNT_COLOR: the bytes of that colour in the queues of the port
 * @TC_COLOR_COUNT_QUEUE: all bytes in the queue of the packet's band
 * @TC_COLOR_COUNT_PORT: all bytes in the queues of the port
 */
enum tc_color_count {
	TC_COLOR_COUNT_COLOR,
	TC_COLOR_COUNT_QUEUE,
	TC_COLOR_COUNT_PORT,
	/* private: */
	__TC_COLOR_COUNT_MAX,
};

/**
 * enum tc_color_classify - which bits of the IP header are the colour
 * @TC_COLOR_CLASSIFY_DSCP: the DSCP, through the 64-entry map
 * @TC_COLOR_CLASSIFY_ECN: the ECN field: Non-ECT is red, ECT and CE are green
 */
enum tc_color_classify {
	TC_COLOR_CLASSIFY_DSCP,
	TC_COLOR_CLASSIFY_ECN,
	/* private: */
	__TC_COLOR_CLASSIFY_MAX,
};

#define TC_COLOR_DSCPS		64		/* entries of TCA_COLOR_MAP */
#define TC_COLOR_MAP_KEEP	0xff		/* entry of _MAP or _PRIO: leave */
#define TC_COLOR_BANDS_MAX	8
#define TC_COLOR_BAND_RATE_KEEP	(~0ull)		/* entry of TCA_COLOR_BAND_RATE64 */
#define TC_COLOR_BAND_RATE_PPS	(1ull << 63)	/* flag in one: packets/s, not bytes/s */
#define TC_COLOR_BAND_LIMIT_KEEP 0xffffffffu	/* entry of TCA_COLOR_BAND_LIMIT */
#define TC_COLOR_BAND_LIMIT_MAX	0x7fffffffu	/* packets */
#define TC_COLOR_BAND_YIELD_KEEP 0xffffffffu	/* entry of TCA_COLOR_BAND_YIELD */
#define TC_COLOR_BAND_YIELD_ONE	0x10000u	/* all of it, and the most there is */
#define TC_COLOR_POOL_NAMSIZ	16		/* with the terminating NUL */
#define TC_COLOR_ALPHA_ONE	0x10000u	/* TCA_COLOR_POOL_ALPHA of 1 */
#define TC_COLOR_ALPHA_MAX	(1024 * TC_COLOR_ALPHA_ONE)
#define TC_COLOR_PROB_ONE	0xffffffffu	/* TCA_COLOR_ECN_PROB of 1 */
#define TC_COLOR_LIMIT_MAX	0x7fffffffu	/* bytes, of a port or a pool */
#define TC_COLOR_RATE_MAX	12500000000000ull /* bytes/s: 100 Tbit/s */
#define TC_COLOR_OVERHEAD_MAX	1024		/* bytes */

/**
 * enum tca_color - attributes in TCA_OPTIONS
 * @TCA_COLOR_UNSPEC: not used
 * @TCA_COLOR_PAD: alignment
 * @TCA_COLOR_RATE64: u64, line rate in bytes/s; 0 for no shaping
 * @TCA_COLOR_OVERHEAD: u32, bytes that the line adds to each packet
 * @TCA_COLOR_LIMIT: u32, bytes that the port can queue
 * @TCA_COLOR_RED: u32, threshold in bytes; 0 for none but the limit
 * @TCA_COLOR_YELLOW: u32, likewise
 * @TCA_COLOR_GREEN: u32, likewise
 * @TCA_COLOR_COUNT: u32, &enum tc_color_count
 * @TCA_COLOR_CLASSIFY: u32, &enum tc_color_classify
 * @TCA_COLOR_MAP: 64 bytes, &enum tc_color of each DSCP or %TC_COLOR_MAP_KEEP
 * @TCA_COLOR_ECN_MIN: u32, bytes in the port above which CE marks begin
 * @TCA_COLOR_ECN_MAX: u32, bytes in the port above which all are marked
 * @TCA_COLOR_ECN_PROB: u32, probability at ECN_MAX in units of 2^-32
 *	(%TC_COLOR_PROB_ONE is always); 0 for no marks
 * @TCA_COLOR_POOL: string, the shared buffer to charge; "" for none
 * @TCA_COLOR_POOL_SIZE: u32, bytes; when the pool is new, or to insist
 * @TCA_COLOR_POOL_ALPHA: u32, this port's share of what is free in the pool,
 *	in units of 2^-16
 * @TCA_COLOR_SPLIT_GSO: u32, 1 to queue the segments of a GSO packet one by one
 * @TCA_COLOR_BANDS: u32, queues of the port, 1 to %TC_COLOR_BANDS_MAX; another
 *	number than before takes the four below back to their defaults
 * @TCA_COLOR_PRIO: 64 bytes, band of each DSCP or %TC_COLOR_MAP_KEEP; band 0 is
 *	served first, the last band is the default
 * @TCA_COLOR_BAND_RATE64: %TC_COLOR_BANDS_MAX u64, bytes/s of each band, or
 *	packets/s with %TC_COLOR_BAND_RATE_PPS, 0 for no shaping, or
 *	%TC_COLOR_BAND_RATE_KEEP
 * @TCA_COLOR_BAND_LIMIT: %TC_COLOR_BANDS_MAX u32, packets that each band can
 *	queue, 0 for no limit but the port's, or %TC_COLOR_BAND_LIMIT_KEEP
 * @TCA_COLOR_BAND_YIELD: %TC_COLOR_BANDS_MAX u32, what each band's rate loses while
 *	others have the line: of their time on it this part, in units of 2^-16, or
 *	%TC_COLOR_BAND_YIELD_KEEP; nothing without a rate of the band and of the port
 */
enum tca_color {
	TCA_COLOR_UNSPEC,
	TCA_COLOR_PAD,
	TCA_COLOR_RATE64,
	TCA_COLOR_OVERHEAD,
	TCA_COLOR_LIMIT,
	TCA_COLOR_RED,
	TCA_COLOR_YELLOW,
	TCA_COLOR_GREEN,
	TCA_COLOR_COUNT,
	TCA_COLOR_CLASSIFY,
	TCA_COLOR_MAP,
	TCA_COLOR_ECN_MIN,
	TCA_COLOR_ECN_MAX,
	TCA_COLOR_ECN_PROB,
	TCA_COLOR_POOL,
	TCA_COLOR_POOL_SIZE,
	TCA_COLOR_POOL_ALPHA,
	TCA_COLOR_SPLIT_GSO,
	TCA_COLOR_BANDS,
	TCA_COLOR_PRIO,
	TCA_COLOR_BAND_RATE64,
	TCA_COLOR_BAND_LIMIT,
	TCA_COLOR_BAND_YIELD,
	/* private: */
	__TCA_COLOR_MAX,
};

#define TCA_COLOR_MAX (__TCA_COLOR_MAX - 1)

/**
 * struct tc_color_stats - counters of one colour
 * @packets: packets admitted to the queue
 * @bytes: bytes admitted to the queue
 * @drops: packets refused, by &enum tc_color_drop
 * @marks: packets of @packets in which the port set CE
 * @backlog: bytes in the queue
 * @peak_backlog: the most that @backlog has been
 *
 * A GSO packet counts as the segments that it is.  64 bytes: a cache line.
 */
struct tc_color_stats {
	__u64	packets;
	__u64	bytes;
	__u64	drops[__TC_COLOR_DROP_MAX];
	__u64	marks;
	__u64	backlog;
	__u64	peak_backlog;
};

/**
 * struct tc_color_band_stats - counters of one band
 * @packets: packets admitted to the band
 * @bytes: bytes admitted to the band
 * @drops: packets refused because the band had its limit of packets
 * @backlog: bytes in the band
 * @peak_backlog: the most that @backlog has been
 * @qlen: packets in the band
 *
 * A GSO packet counts as the segments that it is.
 */
struct tc_color_band_stats {
	__u64	packets;
	__u64	bytes;
	__u64	drops;
	__u64	backlog;
	__u64	peak_backlog;
	__u64	qlen;
};

/**
 * struct tc_color_xstats - application statistics of a `color` qdisc
 * @color: counters by &enum tc_color
 * @backlog: bytes in the port
 * @peak_backlog: the most that @backlog has been
 * @gso_drops: packets dropped because they could not be split
 * @pool_size: bytes of the shared buffer; 0 if the port has none
 * @pool_used: bytes of it in use, by all its ports
 * @pool_peak: the most that @pool_used has been
 * @pool_ports: ports that share it
 * @bands: how many of @band there are; 0 for a port with one queue
 * @band: counters by band, served in this order
 *
 * Grows at the end; a reader takes what it knows and is given.
 */
struct tc_color_xstats {
	struct tc_color_stats	color[__TC_COLOR_MAX];
	__u64			backlog;
	__u64			peak_backlog;
	__u64			gso_drops;
	__u64			pool_size;
	__u64			pool_used;
	__u64			pool_peak;
	__u64			pool_ports;
	__u64			bands;
	struct tc_color_band_stats	band[TC_COLOR_BANDS_MAX];
};

#endif /* _UAPI_LINUX_PKT_COLOR_H */
