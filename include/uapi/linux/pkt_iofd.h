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
 * @TCA_IOFD_PORT_VIA: 4 bytes, the next hop there; this or VIA6
 * @TCA_IOFD_PORT_VIA6: 16 bytes, likewise
 * @TCA_IOFD_PORT_GONE: flag, in a dump: the device is no more
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
 * @TCA_IOFD_ENTRIES: u32, messages that can be under way elsewhere, 1 to
 *	%TC_IOFD_ENTRIES_MAX
 * @TCA_IOFD_TIMEOUT: u64, ns without a packet after which an entry may be reused
 * @TCA_IOFD_SEED: u32, of the choice of ports; none for a random one
 * @TCA_IOFD_PORTS: nest of 1 to %TC_IOFD_PORTS_MAX TCA_IOFD_PORT; all of them, a
 *	port that is not there any more is removed
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
 * struct tc_iofd_port_stats - counters of a port of the list
 * @packets: packets deflected to it
 * @bytes: bytes deflected to it
 */
struct tc_iofd_port_stats {
	__u64	packets;
	__u64	bytes;
};

/**
 * struct tc_iofd_xstats - application statistics of an `iofd` qdisc
 * @messages: messages that were given another way
 * @starts: packets deflected that were the first of those, or all there was
 * @followers: packets deflected because another of their message was
 * @bytes: bytes of @starts and @followers
 * @entries: entries in use
 * @peak: the most that @entries has been
 * @expired: entries that were reused because their message had gone quiet
 * @full: messages not deflected for want of an entry
 * @no_port: messages not deflected because no port was up
 * @spent: packets not deflected because they had no token left
 * @drops_port: packets dropped because their message's port is down or gone
 * @drops_fifo: packets dropped because too many waited to be sent on
 * @ports: how many of @port there are
 * @port: counters by port, in the order of the list
 *
 * A GSO packet counts as the segments that it is.  Grows at the end; a reader
 * takes what it knows and is given.
 */
struct tc_iofd_xstats {
	__u64	messages;
	__u64	starts;
	__u64	followers;
	__u64	bytes;
	__u64	entries;
	__u64	peak;
	__u64	expired;
	__u64	full;
	__u64	no_port;
	__u64	spent;
	__u64	drops_port;
	__u64	drops_fifo;
	__u64	ports;
	struct tc_iofd_port_stats	port[TC_IOFD_PORTS_MAX];
};

#endif /* _UAPI_LINUX_PKT_IOFD_H */
