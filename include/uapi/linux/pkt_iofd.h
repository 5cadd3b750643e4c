/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/*
 * The netlink interface of the `iofd` qdisc: in-order flow deflection.
 *
 * This would be part of <linux/pkt_sched.h> in the kernel proper.
 */
#ifndef _UAPI_LINUX_PKT_IOFD_H
#define _UAPI_LINUX_PKT_IOFD_H

#include <linux/types.h>

#define TC_IOFD_THRESHOLD_MAX	0x7fffffffu	/* bytes */
#define TC_IOFD_ENTRIES_MAX	4096
#define TC_IOFD_TIMEOUT_MIN	1000ull		/* ns */
#define TC_IOFD_TIMEOUT_MAX	3600000000000ull	/* ns: an hour */
#define TC_IOFD_PORTS_MAX	16

/**
 * enum tca_iofd_port - attributes in TCA_IOFD_PORT
 * @TCA_IOFD_PORT_UNSPEC: not used
 * @TCA_IOFD_PORT_DEV: string, the device
 * @TCA_IOFD_PORT_VIA: 4 bytes, the IPv4 next hop on the device; this or VIA6
 * @TCA_IOFD_PORT_VIA6: 16 bytes, the IPv6 next hop on the device
 * @TCA_IOFD_PORT_GONE: flag, in a dump: the device was unregistered
 */
enum tca_iofd_port {
	TCA_IOFD_PORT_UNSPEC,
	TCA_IOFD_PORT_DEV,
	TCA_IOFD_PORT_VIA,
	TCA_IOFD_PORT_VIA6,
	TCA_IOFD_PORT_GONE,
	/* private: */
	__TCA_IOFD_PORT_MAX,
};

#define TCA_IOFD_PORT_MAX (__TCA_IOFD_PORT_MAX - 1)

/**
 * enum tca_iofd - attributes in TCA_OPTIONS
 * @TCA_IOFD_UNSPEC: not used
 * @TCA_IOFD_PAD: alignment
 * @TCA_IOFD_THRESHOLD: u32, bytes in the queue above which messages are deflected
 * @TCA_IOFD_ENTRIES: u32, messages that can be deflected at a time, 1 to
 *	%TC_IOFD_ENTRIES_MAX
 * @TCA_IOFD_TIMEOUT: u64, ns without a packet after which an entry is stale
 * @TCA_IOFD_SEED: u32, seed of the choice of ports; random without it
 * @TCA_IOFD_PORTS: nest of 1 to %TC_IOFD_PORTS_MAX TCA_IOFD_PORT, the whole list;
 *	a port that is not in it is removed
 * @TCA_IOFD_PORT: nest of &enum tca_iofd_port, in TCA_IOFD_PORTS
 */
enum tca_iofd {
	TCA_IOFD_UNSPEC,
	TCA_IOFD_PAD,
	TCA_IOFD_THRESHOLD,
	TCA_IOFD_ENTRIES,
	TCA_IOFD_TIMEOUT,
	TCA_IOFD_SEED,
	TCA_IOFD_PORTS,
	TCA_IOFD_PORT,
	/* private: */
	__TCA_IOFD_MAX,
};

#define TCA_IOFD_MAX (__TCA_IOFD_MAX - 1)

/**
 * enum tca_iofd_port_stats - attributes in TCA_IOFD_STATS_PORT
 * @TCA_IOFD_PORT_STATS_UNSPEC: not used
 * @TCA_IOFD_PORT_STATS_PAD: alignment
 * @TCA_IOFD_PORT_STATS_PACKETS: u64, packets deflected to the port
 * @TCA_IOFD_PORT_STATS_BYTES: u64, bytes of these
 */
enum tca_iofd_port_stats {
	TCA_IOFD_PORT_STATS_UNSPEC,
	TCA_IOFD_PORT_STATS_PAD,
	TCA_IOFD_PORT_STATS_PACKETS,
	TCA_IOFD_PORT_STATS_BYTES,
	/* private: */
	__TCA_IOFD_PORT_STATS_MAX,
};

#define TCA_IOFD_PORT_STATS_MAX (__TCA_IOFD_PORT_STATS_MAX - 1)

/**
 * enum tca_iofd_stats - attributes in TCA_STATS_APP of an `iofd` qdisc
 * @TCA_IOFD_STATS_UNSPEC: not used
 * @TCA_IOFD_STATS_PAD: alignment
 * @TCA_IOFD_STATS_MESSAGES: u64, messages that were deflected
 * @TCA_IOFD_STATS_STARTS: u64, packets deflected as the first of their message
 * @TCA_IOFD_STATS_FOLLOWERS: u64, packets deflected because their message has an
 *	entry
 * @TCA_IOFD_STATS_BYTES: u64, bytes of STARTS and FOLLOWERS
 * @TCA_IOFD_STATS_ENTRIES: u64, entries in use, stale ones too
 * @TCA_IOFD_STATS_PEAK: u64, the highest value of ENTRIES so far
 * @TCA_IOFD_STATS_EXPIRED: u64, entries that were freed because they were stale
 * @TCA_IOFD_STATS_FULL: u64, messages not deflected because all entries were in use
 * @TCA_IOFD_STATS_NO_PORT: u64, messages not deflected because no port was up
 * @TCA_IOFD_STATS_SPENT: u64, packets above the threshold with no tokens left
 * @TCA_IOFD_STATS_DROPS_PORT: u64, packets dropped because the port of their message
 *	was down or removed
 * @TCA_IOFD_STATS_DROPS_FIFO: u64, packets dropped because the FIFO was full
 * @TCA_IOFD_STATS_DROPS_MEMORY: u64, packets dropped because memory for their header
 *	was short
 * @TCA_IOFD_STATS_DROPS_RESET: u64, packets that waited in the FIFO when the qdisc
 *	was reset, as it is when its device is set down
 * @TCA_IOFD_STATS_DROPS_REFUSED: u64, packets dropped by the neighbour layer, or by
 *	the queue or driver of their port
 * @TCA_IOFD_STATS_WAIT_PACKETS: u64, packets that wait in the FIFO
 * @TCA_IOFD_STATS_WAIT_BYTES: u64, bytes of these
 * @TCA_IOFD_STATS_WAIT_PEAK: u64, the highest value of WAIT_PACKETS so far
 * @TCA_IOFD_STATS_PORTS: nest of a TCA_IOFD_STATS_PORT for each port, in the order of
 *	the list
 * @TCA_IOFD_STATS_PORT: nest of &enum tca_iofd_port_stats, in TCA_IOFD_STATS_PORTS
 *
 * A GSO packet counts as its segments.  New attributes are added at the end; a reader skips
 * the types that it does not know.
 */
enum tca_iofd_stats {
	TCA_IOFD_STATS_UNSPEC,
	TCA_IOFD_STATS_PAD,
	TCA_IOFD_STATS_MESSAGES,
	TCA_IOFD_STATS_STARTS,
	TCA_IOFD_STATS_FOLLOWERS,
	TCA_IOFD_STATS_BYTES,
	TCA_IOFD_STATS_ENTRIES,
	TCA_IOFD_STATS_PEAK,
	TCA_IOFD_STATS_EXPIRED,
	TCA_IOFD_STATS_FULL,
	TCA_IOFD_STATS_NO_PORT,
	TCA_IOFD_STATS_SPENT,
	TCA_IOFD_STATS_DROPS_PORT,
	TCA_IOFD_STATS_DROPS_FIFO,
	TCA_IOFD_STATS_DROPS_MEMORY,
	TCA_IOFD_STATS_DROPS_RESET,
	TCA_IOFD_STATS_DROPS_REFUSED,
	TCA_IOFD_STATS_WAIT_PACKETS,
	TCA_IOFD_STATS_WAIT_BYTES,
	TCA_IOFD_STATS_WAIT_PEAK,
	TCA_IOFD_STATS_PORTS,
	TCA_IOFD_STATS_PORT,
	/* private: */
	__TCA_IOFD_STATS_MAX,
};

#define TCA_IOFD_STATS_MAX (__TCA_IOFD_STATS_MAX - 1)

#endif /* _UAPI_LINUX_PKT_IOFD_H */
