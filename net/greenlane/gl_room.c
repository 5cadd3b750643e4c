// SPDX-License-Identifier: GPL-2.0
/* Room for the option in packets of data.
 *
 * TCP fills its packets up to the MTU.  A transport whose data carries the option (room in struct
 * gl_transport) needs an MSS that is smaller by the option:
 *
 *	| IP | TCP, time stamp | option |         data           |
 *	|<---------------------- MTU --------------------------->|
 *
 * TCP subtracts icsk_ext_hdr_len, the length of the socket's IP options, from each MSS that it
 * computes: at the handshake, for a new path MTU, and for a probe of the MTU.  So the room is added
 * to it, and no MSS has to be watched.  When the application changes its IP options, TCP adds the
 * difference (IPv4) or writes the length without the room (IPv6): gl_room_has() finds that out.
 *
 * A packet that the option would make too large leaves without it.
 */
#include <linux/ipv6.h>
#include <net/dst.h>
#include <net/ipv6.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Length of the IP options or extension headers of a connection's packets. */
static unsigned int gl_room_ip_options(const struct sock *sk)
{
	const struct ip_options_rcu *opt;
	unsigned int len;

	rcu_read_lock();
	opt = rcu_dereference(inet_sk(sk)->inet_opt);
	len = opt ? opt->opt.optlen : 0;
#if IS_ENABLED(CONFIG_IPV6)
	/* An IPv6 socket of an IPv4 connection has the length of struct iphdr. */
	if (inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct ipv6hdr)) {
		const struct ipv6_txoptions *opt6 = rcu_dereference(inet6_sk(sk)->opt);

		len = opt6 ? opt6->opt_flen + opt6->opt_nflen : 0;
	}
#endif
	rcu_read_unlock();
	return len;
}

static void gl_room_set(struct sock *sk, unsigned int len)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (likely(icsk->icsk_ext_hdr_len == len))
		return;
	icsk->icsk_ext_hdr_len = len;
	/* A closed socket has no path; connect() computes the MSS again. */
	if (sk->sk_state != TCP_CLOSE)
		icsk->icsk_sync_mss(sk, icsk->icsk_pmtu_cookie);
}

static bool gl_room_is_used(const struct gl_sock *gs)
{
	return gs->transport->room && gs->peer == GREENLANE_PEER_YES;
}

/**
 * gl_room_take() - reduce the MSS of a connection by its transport's room
 * @sk: the connection, locked; established
 * @gs: its state
 */
void gl_room_take(struct sock *sk, struct gl_sock *gs)
{
	if (gl_room_is_used(gs))
		gl_room_set(sk, gl_room_ip_options(sk) + gs->transport->room);
}

/**
 * gl_room_give() - undo gl_room_take()
 * @sk: the connection, locked or about to be freed
 * @gs: its state
 */
void gl_room_give(struct sock *sk, struct gl_sock *gs)
{
	if (gl_room_is_used(gs))
		gl_room_set(sk, gl_room_ip_options(sk));
}

/**
 * gl_room_has() - does a packet of data have room for its transport's option?
 * @sk: its connection, locked
 * @gs: the connection's state
 * @skb: the packet, with the TCP header in front
 * @seg: the segment
 *
 * Data has no room if TCP has made the packet before gl_room_take() or for a larger MTU.
 *
 * Return: true if it has.
 */
bool gl_room_has(struct sock *sk, struct gl_sock *gs, const struct sk_buff *skb,
		 const struct gl_seg *seg)
{
	unsigned int len = skb_shinfo(skb)->gso_size ?: seg->end_seq - seg->seq;
	const struct dst_entry *dst = __sk_dst_get(sk);
	unsigned int ip;

	if (!gl_room_is_used(gs) || !dst)
		return false;
	ip = gl_room_ip_options(sk);
	gl_room_set(sk, ip + gs->transport->room);
	ip += inet_csk(sk)->icsk_af_ops->net_header_len;
	len += tcp_hdrlen(skb) + gs->transport->room;
	/* The peer's MSS does not include TCP's options (RFC 6691). */
	return len + ip <= dst_mtu(dst) &&
	       len <= tcp_sk(sk)->rx_opt.mss_clamp + sizeof(struct tcphdr);
}
