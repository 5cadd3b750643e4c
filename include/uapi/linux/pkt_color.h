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
 * enum tc_color - the drop precedence of a packet
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
 * enum tc_color_count - the bytes that a colour's threshold is compared with
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

/**
 * enum tc_color_pause - priority flow control (IEEE 802.1Qbb) of the port's link
 * @TC_COLOR_PAUSE_NONE: off: the port neither sends nor obeys pause frames
 * @TC_COLOR_PAUSE_OBEY: the port stops when the neighbour pauses it, and never pauses the neighbour
 * @TC_COLOR_PAUSE_ALL: the port also pauses the neighbour when more than Xoff bytes that arrived
 *	from it are queued in the ports of the network namespace that pause
 * @TC_COLOR_PAUSE_GREEN: the same, but only green packets count
 */
enum tc_color_pause {
	TC_COLOR_PAUSE_NONE,
	TC_COLOR_PAUSE_OBEY,
	TC_COLOR_PAUSE_ALL,
	TC_COLOR_PAUSE_GREEN,
	/* private: */
	__TC_COLOR_PAUSE_MAX,
};

#define TC_COLOR_DSCPS		64		/* entries of TCA_COLOR_MAP */
#define TC_COLOR_MAP_KEEP	0xff		/* entry of a map: do not change it */
#define TC_COLOR_BANDS_MAX	16
#define TC_COLOR_BAND_RATE_KEEP	(~0ull)		/* entry of TCA_COLOR_BAND_RATE64 */
#define TC_COLOR_BAND_RATE_PPS	(1ull << 63)	/* flag in one: packets/s, not bytes/s */
#define TC_COLOR_BAND_LIMIT_KEEP 0xffffffffu	/* entry of TCA_COLOR_BAND_LIMIT */
#define TC_COLOR_BAND_LIMIT_MAX	0x7fffffffu	/* packets */
#define TC_COLOR_BAND_YIELD_KEEP 0xffffffffu	/* entry of TCA_COLOR_BAND_YIELD */
#define TC_COLOR_BAND_YIELD_ONE	0x10000u	/* TCA_COLOR_BAND_YIELD of 1, the maximum */
#define TC_COLOR_POOL_NAMSIZ	16		/* with the terminating NUL */
#define TC_COLOR_ALPHA_ONE	0x10000u	/* TCA_COLOR_POOL_ALPHA of 1 */
#define TC_COLOR_ALPHA_MAX	(1024 * TC_COLOR_ALPHA_ONE)
#define TC_COLOR_PROB_ONE	0xffffffffu	/* TCA_COLOR_ECN_PROB of 1 */
#define TC_COLOR_LIMIT_MAX	0x7fffffffu	/* bytes, of a port or a pool */
#define TC_COLOR_RATE_MAX	12500000000000ull /* bytes/s: 100 Tbit/s */
#define TC_COLOR_OVERHEAD_MAX	1024		/* bytes */
#define TC_COLOR_SLACK_MAX	1000000u	/* ns */
#define TC_COLOR_CATCH_UP_MAX	1000000000u	/* ns */
#define TC_COLOR_TRIM_COLORS_ALL ((1u << __TC_COLOR_MAX) - 1)
#define TC_COLOR_TRIM_SIZE_MAX	9216u		/* bytes: more than a packet usually has */
#define TC_COLOR_PAUSE_PRIOS	8		/* entries of TCA_COLOR_PAUSE_MAP */
#define TC_COLOR_PAUSE_NO_BAND	0xfe		/* entry of it: the priority has no band */
#define TC_COLOR_PAUSE_DELAY_MAX 10000000u	/* ns */
#define TC_COLOR_PAUSE_STORM_MAX 4000000000u	/* ns */
#define TC_COLOR_PAUSE_UNIT_MIN	60u		/* bytes: Ethernet's smallest frame */
#define TC_COLOR_PAUSE_UNIT_MAX	1048576u	/* bytes: more than a GSO packet may have */
#define TC_COLOR_INT_RTT_MIN	1000u		/* ns */
#define TC_COLOR_INT_RTT_MAX	1000000000u	/* ns */

/**
 * enum tca_color - attributes in TCA_OPTIONS
 * @TCA_COLOR_UNSPEC: not used
 * @TCA_COLOR_PAD: alignment
 * @TCA_COLOR_RATE64: u64, line rate in bytes/s; 0 for no shaping
 * @TCA_COLOR_OVERHEAD: u32, bytes that the link adds to each packet
 * @TCA_COLOR_LIMIT: u32, bytes that the port can queue
 * @TCA_COLOR_RED: u32, threshold in bytes; 0 for no threshold but the limit
 * @TCA_COLOR_YELLOW: u32, likewise
 * @TCA_COLOR_GREEN: u32, likewise
 * @TCA_COLOR_COUNT: u32, &enum tc_color_count
 * @TCA_COLOR_CLASSIFY: u32, &enum tc_color_classify
 * @TCA_COLOR_MAP: 64 bytes, &enum tc_color of each DSCP or %TC_COLOR_MAP_KEEP
 * @TCA_COLOR_ECN_MIN: u32, bytes in the port above which CE marks begin
 * @TCA_COLOR_ECN_MAX: u32, bytes in the port above which all are marked
 * @TCA_COLOR_ECN_PROB: u32, probability at ECN_MAX in units of 2^-32
 *	(%TC_COLOR_PROB_ONE is always); 0 for no marks
 * @TCA_COLOR_POOL: string, the shared buffer to charge; "" for no pool
 * @TCA_COLOR_POOL_SIZE: u32, size of the pool, bytes; a new pool needs it, and a port that is in
 *	the pool already resizes it
 * @TCA_COLOR_POOL_ALPHA: u32, alpha: the port may hold alpha times the free bytes of the pool;
 *	in units of 2^-16
 * @TCA_COLOR_SPLIT_GSO: u32, 1 to queue the segments of a GSO packet one by one, 0 to queue it
 *	whole, 2 (the default, which a dump omits) to split it if the port has a rate
 * @TCA_COLOR_BANDS: u32, queues of the port, 1 to %TC_COLOR_BANDS_MAX; a change of the
 *	number resets the four attributes below to their defaults
 * @TCA_COLOR_PRIO: 64 bytes, band of each DSCP or %TC_COLOR_MAP_KEEP; band 0 is
 *	served first, the last band is the default
 * @TCA_COLOR_BAND_RATE64: u64 for each of the first bands, up to %TC_COLOR_BANDS_MAX: bytes/s, or
 *	packets/s with %TC_COLOR_BAND_RATE_PPS, 0 for no shaping, or
 *	%TC_COLOR_BAND_RATE_KEEP
 * @TCA_COLOR_BAND_LIMIT: u32 for each of the first bands: packets that it can
 *	queue, 0 for no limit but the port's, or %TC_COLOR_BAND_LIMIT_KEEP
 * @TCA_COLOR_BAND_YIELD: u32 for each of the first bands: fraction of the other bands'
 *	transmission time by which its clock advances, in units of 2^-16, or
 *	%TC_COLOR_BAND_YIELD_KEEP; no effect without a rate of the band and of the port
 * @TCA_COLOR_SLACK: u32, ns by which the timer for the next transmission may be late, so that one
 *	timer serves several packets
 * @TCA_COLOR_CATCH_UP: u32, maximum time for which the port catches up when it is served late, ns;
 *	0 for the longest of 50 us, twice the slack, and the transmission time of four packets of
 *	the device's MTU
 * @TCA_COLOR_TRIM_DSCP: u32, DSCP of trimmed packets: the port cuts off the data of packets that it
 *	would drop, and sets this DSCP; %TC_COLOR_DSCPS to drop them
 * @TCA_COLOR_TRIM_COLORS: u32, bit N: trim packets of colour N, &enum tc_color
 * @TCA_COLOR_TRIM_LIMIT: u32, maximum number of trimmed packets in the queues
 * @TCA_COLOR_TRIM_SIZE: u32, minimum size of a trimmed packet, or its size before if that is less,
 *	bytes; the bytes behind the headers are padding
 * @TCA_COLOR_PAUSE: u32, &enum tc_color_pause; the other options of pausing need a value that is
 *	not NONE.  They belong to the link: if the device has several ports, the options of the
 *	port that was configured last apply
 * @TCA_COLOR_PAUSE_XOFF: u32, bytes of a priority above which the neighbour is paused; 0 for the
 *	link's share of the bytes that the port with the least room can queue, less the headroom
 * @TCA_COLOR_PAUSE_XON: u32, bytes of a priority up to which the neighbour may resume; 0 for two
 *	packets of the device's MTU less than Xoff
 * @TCA_COLOR_PAUSE_DELAY: u32, propagation delay from one end of the link to the other, ns, for the
 *	headroom
 * @TCA_COLOR_PAUSE_STORM: u32, ns of stopped time after which pauses are ignored; 0 for never
 * @TCA_COLOR_PAUSE_MAP: 8 bytes, band of each priority, %TC_COLOR_PAUSE_NO_BAND or
 *	%TC_COLOR_MAP_KEEP; by default priority 7 is band 0, 6 is 1, and so on; the remaining
 *	priorities are the last band.  A change of the number of bands resets the map to this
 * @TCA_COLOR_RED_AUTO: u32, 1 for an automatic threshold of red packets, 0 to disable it; needs
 *	%TC_COLOR_COUNT_COLOR.  %TCA_COLOR_RED disables it
 * @TCA_COLOR_RED_MIN: u32, minimum of the automatic threshold, bytes; 0 for the bytes that the link
 *	sends in 25 us, or without a rate 1/16 of the limit
 * @TCA_COLOR_INT_RTT: u32, base RTT of the network, ns: the port writes the utilisation of the link
 *	into packets that request it; 0 to disable that; needs a rate
 * @TCA_COLOR_PAUSE_UNIT: u32, bytes of the largest packet that the neighbour sends at once, for the
 *	headroom; 0 for the MTU of a network card, and for a GSO packet on a veth or tap
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
	TCA_COLOR_SLACK,
	TCA_COLOR_CATCH_UP,
	TCA_COLOR_TRIM_DSCP,
	TCA_COLOR_TRIM_COLORS,
	TCA_COLOR_TRIM_LIMIT,
	TCA_COLOR_TRIM_SIZE,
	TCA_COLOR_PAUSE,
	TCA_COLOR_PAUSE_XOFF,
	TCA_COLOR_PAUSE_XON,
	TCA_COLOR_PAUSE_DELAY,
	TCA_COLOR_PAUSE_STORM,
	TCA_COLOR_PAUSE_MAP,
	TCA_COLOR_RED_AUTO,
	TCA_COLOR_RED_MIN,
	TCA_COLOR_INT_RTT,
	TCA_COLOR_PAUSE_UNIT,
	/* private: */
	__TCA_COLOR_MAX,
};

#define TCA_COLOR_MAX (__TCA_COLOR_MAX - 1)

/**
 * enum tca_color_stats - attributes in TCA_STATS_APP, u64 but for the nests and arrays
 * @TCA_COLOR_STATS_UNSPEC: not used
 * @TCA_COLOR_STATS_PAD: alignment
 * @TCA_COLOR_STATS_BACKLOG: bytes in the port
 * @TCA_COLOR_STATS_PEAK_BACKLOG: maximum of the bytes in the port
 * @TCA_COLOR_STATS_GSO_DROPS: packets dropped because they could not be split
 * @TCA_COLOR_STATS_POOL_SIZE: bytes of the shared buffer; absent without one, as the next four
 * @TCA_COLOR_STATS_POOL_USED: bytes of it that its ports hold
 * @TCA_COLOR_STATS_POOL_PEAK: maximum of the bytes that its ports have held
 * @TCA_COLOR_STATS_POOL_PORTS: ports that share it
 * @TCA_COLOR_STATS_POOL_HELD: bytes of it that this port holds: its packets, and a reserve
 * @TCA_COLOR_STATS_COLORS: nest of %TCA_COLOR_STATS_COLOR, one for each &enum tc_color, in order
 * @TCA_COLOR_STATS_COLOR: u64 by &enum tc_color_stat
 * @TCA_COLOR_STATS_BANDS: nest of %TCA_COLOR_STATS_BAND, one for each band, in the order in which
 *	they are served; absent if the port has one queue
 * @TCA_COLOR_STATS_BAND: u64 by &enum tc_color_band_stat
 * @TCA_COLOR_STATS_TRIM: u64 by &enum tc_color_trim_stat; absent if the port does not trim and all
 *	are 0
 * @TCA_COLOR_STATS_PAUSE: u64 by &enum tc_color_pause_stat, of the link; absent without pause, and,
 *	as the next one, in a notification that has no room for it
 * @TCA_COLOR_STATS_PAUSED: u64 for each priority: ns for which the neighbour has paused it
 * @TCA_COLOR_STATS_RED_THRESH: current threshold of red packets, bytes; absent without
 *	%TCA_COLOR_RED_AUTO, as the next one
 * @TCA_COLOR_STATS_RED_NEED: bytes reserved for green packets, and the bytes of the yellow ones
 *	in the port
 * @TCA_COLOR_STATS_INT_STAMPED: packets into which the port wrote the utilisation of the link;
 *	absent without %TCA_COLOR_INT_RTT, as the next one
 * @TCA_COLOR_STATS_INT_UTIL: the utilisation as of the last packet sent, in units of 2^-10
 * @TCA_COLOR_STATS_CONTROL_DROPS: pause frames of another link, which were not forwarded; absent
 *	if 0
 *
 * The kernel notifies of a port that replaces another one in one message of less than a page, which
 * has room for the arrays of two ports with 16 bands, and not for an attribute for each counter.
 * The zeros at the end of an array are not sent.
 */
enum tca_color_stats {
	TCA_COLOR_STATS_UNSPEC,
	TCA_COLOR_STATS_PAD,
	TCA_COLOR_STATS_BACKLOG,
	TCA_COLOR_STATS_PEAK_BACKLOG,
	TCA_COLOR_STATS_GSO_DROPS,
	TCA_COLOR_STATS_POOL_SIZE,
	TCA_COLOR_STATS_POOL_USED,
	TCA_COLOR_STATS_POOL_PEAK,
	TCA_COLOR_STATS_POOL_PORTS,
	TCA_COLOR_STATS_POOL_HELD,
	TCA_COLOR_STATS_COLORS,
	TCA_COLOR_STATS_COLOR,
	TCA_COLOR_STATS_BANDS,
	TCA_COLOR_STATS_BAND,
	TCA_COLOR_STATS_TRIM,
	TCA_COLOR_STATS_PAUSE,
	TCA_COLOR_STATS_PAUSED,
	TCA_COLOR_STATS_RED_THRESH,
	TCA_COLOR_STATS_RED_NEED,
	TCA_COLOR_STATS_INT_STAMPED,
	TCA_COLOR_STATS_INT_UTIL,
	TCA_COLOR_STATS_CONTROL_DROPS,
	/* private: */
	__TCA_COLOR_STATS_MAX,
};

#define TCA_COLOR_STATS_MAX (__TCA_COLOR_STATS_MAX - 1)

/**
 * enum tc_color_stat - elements of TCA_COLOR_STATS_COLOR: an array of u64, longer in later kernels
 * @TC_COLOR_STAT_PACKETS: packets admitted to the queue
 * @TC_COLOR_STAT_BYTES: bytes admitted to the queue
 * @TC_COLOR_STAT_DROPS_COLOR: packets refused: %TC_COLOR_DROP_COLOR
 * @TC_COLOR_STAT_DROPS_POOL: packets refused: %TC_COLOR_DROP_POOL
 * @TC_COLOR_STAT_DROPS_LIMIT: packets refused: %TC_COLOR_DROP_LIMIT
 * @TC_COLOR_STAT_MARKS: packets admitted in which the port set CE
 * @TC_COLOR_STAT_BACKLOG: bytes in the queue
 * @TC_COLOR_STAT_PEAK_BACKLOG: maximum of the bytes in the queue
 * @TC_COLOR_STAT_TRIMS: packets that were trimmed instead of dropped; the trimmed packet then
 *	counts for the colour of its new DSCP
 *
 * A GSO packet counts as its segments.
 */
enum tc_color_stat {
	TC_COLOR_STAT_PACKETS,
	TC_COLOR_STAT_BYTES,
	TC_COLOR_STAT_DROPS_COLOR,
	TC_COLOR_STAT_DROPS_POOL,
	TC_COLOR_STAT_DROPS_LIMIT,
	TC_COLOR_STAT_MARKS,
	TC_COLOR_STAT_BACKLOG,
	TC_COLOR_STAT_PEAK_BACKLOG,
	TC_COLOR_STAT_TRIMS,
	/* private: */
	__TC_COLOR_STAT_MAX,
};

/**
 * enum tc_color_band_stat - elements of TCA_COLOR_STATS_BAND: an array of u64, longer in later
 *	kernels
 * @TC_COLOR_BAND_STAT_PACKETS: packets admitted to the band
 * @TC_COLOR_BAND_STAT_BYTES: bytes admitted to the band
 * @TC_COLOR_BAND_STAT_DROPS: packets refused because the band had its limit of packets
 * @TC_COLOR_BAND_STAT_BACKLOG: bytes in the band
 * @TC_COLOR_BAND_STAT_PEAK_BACKLOG: maximum of the bytes in the band
 * @TC_COLOR_BAND_STAT_QLEN: packets in the band
 *
 * A GSO packet counts as its segments.
 */
enum tc_color_band_stat {
	TC_COLOR_BAND_STAT_PACKETS,
	TC_COLOR_BAND_STAT_BYTES,
	TC_COLOR_BAND_STAT_DROPS,
	TC_COLOR_BAND_STAT_BACKLOG,
	TC_COLOR_BAND_STAT_PEAK_BACKLOG,
	TC_COLOR_BAND_STAT_QLEN,
	/* private: */
	__TC_COLOR_BAND_STAT_MAX,
};

/**
 * enum tc_color_trim_stat - elements of TCA_COLOR_STATS_TRIM: an array of u64, longer in later
 *	kernels
 * @TC_COLOR_TRIM_STAT_QLEN: trimmed packets in the queues
 * @TC_COLOR_TRIM_STAT_LIMITED: packets dropped because %TCA_COLOR_TRIM_LIMIT trimmed ones were
 *	queued
 * @TC_COLOR_TRIM_STAT_UNFIT: packets dropped because they cannot be trimmed
 *
 * Both count among the drops of their colour or band, too.
 */
enum tc_color_trim_stat {
	TC_COLOR_TRIM_STAT_QLEN,
	TC_COLOR_TRIM_STAT_LIMITED,
	TC_COLOR_TRIM_STAT_UNFIT,
	/* private: */
	__TC_COLOR_TRIM_STAT_MAX,
};

/**
 * enum tc_color_pause_stat - elements of TCA_COLOR_STATS_PAUSE: an array of u64, longer in later
 *	kernels
 * @TC_COLOR_PAUSE_STAT_OFF: PFC frames sent that start or extend a pause
 * @TC_COLOR_PAUSE_STAT_ON: PFC frames sent that only end pauses
 * @TC_COLOR_PAUSE_STAT_UNSENT: PFC frames that the device did not accept
 * @TC_COLOR_PAUSE_STAT_HEARD: PFC frames received
 * @TC_COLOR_PAUSE_STAT_STORMS: storms: a priority was paused for longer than the limit
 * @TC_COLOR_PAUSE_STAT_BACKLOG: queued bytes that arrived from the neighbour, of the packets that
 *	count
 * @TC_COLOR_PAUSE_STAT_PEAK: maximum of the backlog of one priority, bytes
 * @TC_COLOR_PAUSE_STAT_XOFF: current Xoff, bytes; 0 if the neighbour is never paused
 * @TC_COLOR_PAUSE_STAT_XON: current Xon, bytes
 */
enum tc_color_pause_stat {
	TC_COLOR_PAUSE_STAT_OFF,
	TC_COLOR_PAUSE_STAT_ON,
	TC_COLOR_PAUSE_STAT_UNSENT,
	TC_COLOR_PAUSE_STAT_HEARD,
	TC_COLOR_PAUSE_STAT_STORMS,
	TC_COLOR_PAUSE_STAT_BACKLOG,
	TC_COLOR_PAUSE_STAT_PEAK,
	TC_COLOR_PAUSE_STAT_XOFF,
	TC_COLOR_PAUSE_STAT_XON,
	/* private: */
	__TC_COLOR_PAUSE_STAT_MAX,
};

#endif /* _UAPI_LINUX_PKT_COLOR_H */
