/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* Socket options of greenlane, for connections that run one of its transports.
 *
 * Level IPPROTO_IP on IPv4 and IPPROTO_IPV6 on IPv6 sockets, like other
 * socket options of netfilter; on a socket whose congestion control is
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
/* get, set: int, 1 = send in the first RTT without credits, 0 = wait for credits; on
 * an aeolus_* connection, EOPNOTSUPP on others
 */
#define GREENLANE_AEOLUS	(GREENLANE_SO_BASE + 2)
/* get, set: int, bytes that may be sent in a first RTT; 0 (set) = the route's initcwnd,
 * or the bytes that the link carries in the minimum RTT; as GREENLANE_AEOLUS
 */
#define GREENLANE_BDP		(GREENLANE_SO_BASE + 3)
/* get, set: int, 1 = data sent from now on is one message, 0 = the message ends here; on a
 * dart connection, EOPNOTSUPP on others.  Without this option a message ends when no data is
 * left to send
 */
#define GREENLANE_MESSAGE	(GREENLANE_SO_BASE + 4)
/* get, set: int, 1 … 1000, the weight of the peer's share of this host's line rate; set needs
 * CAP_NET_ADMIN in the user namespace of the socket's network namespace, or fails with EPERM;
 * as GREENLANE_MESSAGE
 */
#define GREENLANE_WEIGHT	(GREENLANE_SO_BASE + 5)
/* set: up to GREENLANE_SENDERS_MAX struct in6_addr (v4-mapped for IPv4): the hosts that will send
 * when a message arrives on this connection, its peer among them; an empty list undoes it.
 * Sockets in the tenant that all applications share (net.ipv4.dart_tenant) need CAP_NET_ADMIN
 * to set it, or net.ipv4.dart_trust, or fail with EPERM.  get: int, number of hosts.  As
 * GREENLANE_MESSAGE
 */
#define GREENLANE_SENDERS	(GREENLANE_SO_BASE + 6)
/* the same, at a sender: the hosts that will send to this connection's peer when this host sends;
 * the peer counts them if its net.ipv4.dart_trust is on
 */
#define GREENLANE_COSENDERS	(GREENLANE_SO_BASE + 7)
#define GREENLANE_SO_MAX	(GREENLANE_SO_BASE + 7)

#define GREENLANE_SENDERS_MAX	64

/**
 * enum greenlane_peer - whether the other end runs a compatible transport
 * @GREENLANE_PEER_YES: it has advertised a transport of the same protocol in the handshake
 * @GREENLANE_PEER_NO: it has not; the connection behaves as its base
 *
 * Only the handshake decides.  If the transport was selected when the connection was already
 * established, the handshake did not advertise it, and the value is NO.
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
#define GREENLANE_F_REORDERED	0x08	/* the path reorders packets */

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
 * @rearmed: number of RTOs that armed the sender again
 * @echoes_sent: packets of the peer that requested an immediate ACK or an answer, and got one
 * @credits_sent: credits sent, as the receiver
 * @credits_received: credits received, as the sender
 * @credit_rate: credits sent per second; 0 if no credits are being sent
 * @credits_wanted: packets that wait for a credit
 * @unscheduled: packets sent in a first RTT, without a credit
 * @bdp: bytes that may be sent in the next first RTT
 * @messages: messages of the peer whose first packet has arrived
 * @senders: hosts that are sending a message to this one, the peer among them; 0 if the
 *	peer is not sending one
 * @divisor: 256 times this host's line rate, divided by our share of the peer's line rate; 256
 *	if our share is more than our line rate; 0 if the peer has not advertised a share
 *
 * Fields of other kinds of transports are 0.
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
