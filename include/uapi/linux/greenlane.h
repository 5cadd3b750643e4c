/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Socket options of greenlane, for connections that run one of its transports.
 *
 * Level IPPROTO_IP on IPv4 and IPPROTO_IPV6 on IPv6 sockets, like the other
 * options that come with netfilter; on a socket whose congestion control is
 * not greenlane's both fail with ENOPROTOOPT.
 */
#ifndef _UAPI_LINUX_GREENLANE_H
#define _UAPI_LINUX_GREENLANE_H

#include <linux/types.h>

#define GREENLANE_SO_BASE	0x4c470		/* far from netfilter's users */

/* get: struct greenlane_info, as much of it as fits */
#define GREENLANE_INFO		(GREENLANE_SO_BASE + 0)
/* get, set: int, 1 = mark this connection's packets, 0 = behave as the base */
#define GREENLANE_TLT		(GREENLANE_SO_BASE + 1)
/* get, set: int, 1 = spend the first RTT without credits, 0 = wait for them; of
 * an aeolus_* connection, EOPNOTSUPP on others
 */
#define GREENLANE_AEOLUS	(GREENLANE_SO_BASE + 2)
/* get, set: int, bytes that a first RTT may have; 0 (set) = the route's initcwnd,
 * or what the line carries in the smallest RTT seen; as GREENLANE_AEOLUS
 */
#define GREENLANE_BDP		(GREENLANE_SO_BASE + 3)
/* get, set: int, 1 = what is sent from now on is one message, 0 = it ends here; of a
 * dart connection, EOPNOTSUPP on others.  Without it a message ends where nothing is
 * left to send
 */
#define GREENLANE_MESSAGE	(GREENLANE_SO_BASE + 4)
/* get, set: int, 1 … 1000, the weight of the peer's share of this host's line; set needs
 * CAP_NET_ADMIN in the user namespace of the socket's network namespace, or fails with EPERM;
 * as GREENLANE_MESSAGE
 */
#define GREENLANE_WEIGHT	(GREENLANE_SO_BASE + 5)
/* set: up to GREENLANE_SENDERS_MAX struct in6_addr (of IPv4 the mapped ones): when a
 * message comes in, these will send too, this connection's peer among them; none (an
 * empty list) undoes it.  Sockets in the tenant that all applications have in common
 * (net.ipv4.dart_tenant) need CAP_NET_ADMIN to set it, or net.ipv4.dart_trust, or fail with
 * EPERM.  get: int, how many.  As GREENLANE_MESSAGE
 */
#define GREENLANE_SENDERS	(GREENLANE_SO_BASE + 6)
/* the same, at a sender: these will send to this connection's peer when we do; the peer counts
 * them if its net.ipv4.dart_trust is on
 */
#define GREENLANE_COSENDERS	(GREENLANE_SO_BASE + 7)
#define GREENLANE_SO_MAX	(GREENLANE_SO_BASE + 7)

#define GREENLANE_SENDERS_MAX	64

/**
 * enum greenlane_peer - what is known of the other end
 * @GREENLANE_PEER_YES: the handshake said that it runs a transport like ours
 * @GREENLANE_PEER_NO: it did not; the connection behaves as its base
 *
 * Only the handshake decides.  If the transport was selected when the connection was already
 * established, the peer was not asked, and the value is NO.
 */
enum greenlane_peer {
	GREENLANE_PEER_YES = 1,
	GREENLANE_PEER_NO,
};

/**
 * enum greenlane_state - where a TLT sender is in its echo cycle
 * @GREENLANE_ARMED_LAST: the last packet of the burst will be important
 * @GREENLANE_ARMED_NEXT: the next data packet will be important
 * @GREENLANE_WAITING: one important packet is in flight
 */
enum greenlane_state {
	GREENLANE_ARMED_LAST,
	GREENLANE_ARMED_NEXT,
	GREENLANE_WAITING,
};

/* bits of greenlane_info.flags */
#define GREENLANE_F_OFF		0x01	/* by GREENLANE_TLT or GREENLANE_AEOLUS */
#define GREENLANE_F_UNSUPPORTED	0x04	/* no SACK or RACK, MPTCP, or keyed segments */
#define GREENLANE_F_REORDERED	0x08	/* packets overtake each other on the path */

/**
 * struct greenlane_info - one connection's state and counters
 * @state: enum greenlane_state
 * @peer: enum greenlane_peer
 * @flags: GREENLANE_F_*
 * @reserved: 0
 * @important_sent: data packets sent as important
 * @echoes: important packets that the peer has acknowledged, clocks included
 * @clocks_byte: clocks sent that carry the first unacked byte
 * @clocks_mss: clocks sent that carry an MSS of lost data
 * @marked_lost: packets found lost by an echo
 * @rearmed: times an RTO armed the sender again
 * @echoes_sent: packets of the peer that wanted an immediate ACK or an answer, and got one
 * @credits_sent: credits sent, as the receiver
 * @credits_received: credits received, as the sender
 * @credit_rate: credits a second that are being sent; 0 if none are
 * @credits_wanted: packets that wait for a credit
 * @unscheduled: packets sent in a first RTT, without a credit
 * @bdp: bytes that the next first RTT may have
 * @messages: messages of the peer that have begun to come in
 * @senders: hosts that have a message on its way to this one, the peer among them; 0 if
 *	the peer has none
 * @divisor: 256 times the number by which this host's line rate has to be divided to get
 *	our share of the peer's line rate; 256 if our share is more than our line rate; 0 if
 *	the peer has not advertised one
 *
 * What belongs to another kind of transport is 0.
 */
struct greenlane_info {
	__u8	state;
	__u8	peer;
	__u8	flags;
	__u8	reserved;
	__u32	important_sent;
	__u32	echoes;
	__u32	clocks_byte;
	__u32	clocks_mss;
	__u32	marked_lost;
	__u32	rearmed;
	__u32	echoes_sent;
	__u32	credits_sent;
	__u32	credits_received;
	__u32	credit_rate;
	__u32	credits_wanted;
	__u32	unscheduled;
	__u32	bdp;
	__u32	messages;
	__u32	senders;
	__u32	divisor;
};

#endif /* _UAPI_LINUX_GREENLANE_H */
