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
 * to it, and no MSS has to be watched.  TCP itself writes that field again when the application
 * changes IP options, and gl_room_keep() finds that out.
 *
 * Nothing here has to be exact: a packet that the option would make too large leaves without it.
 */
#include <net/dst.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

static void gl_room_sync(struct sock *sk, struct gl_sock *gs, int change)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	icsk->icsk_ext_hdr_len += change;
	gs->ext_hdr_len = icsk->icsk_ext_hdr_len;
	/* A closed socket has no path; connect() computes the MSS again. */
	if (sk->sk_state != TCP_CLOSE)
		icsk->icsk_sync_mss(sk, icsk->icsk_pmtu_cookie);
}

/**
 * gl_room_take() - reduce the MSS of a connection by its transport's room
 * @sk: the connection, locked; established
 * @gs: its state
 */
void gl_room_take(struct sock *sk, struct gl_sock *gs)
{
	if (gs->peer == GREENLANE_PEER_YES && gs->transport->room)
		gl_room_sync(sk, gs, gs->transport->room);
}

/* The application may have changed the IP options.  IPv4 adds the difference to the field, IPv6
 * overwrites it.
 */
static void gl_room_keep(struct sock *sk, struct gl_sock *gs)
{
	if (likely((u8)inet_csk(sk)->icsk_ext_hdr_len == gs->ext_hdr_len))
		return;
	gl_room_sync(sk, gs, sk->sk_family == AF_INET6 ? gs->transport->room : 0);
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
	const struct inet_connection_sock *icsk = inet_csk(sk);
	const struct dst_entry *dst = __sk_dst_get(sk);
	unsigned int len = skb_shinfo(skb)->gso_size ?: seg->end_seq - seg->seq;

	if (!gs->transport->room || gs->peer != GREENLANE_PEER_YES || !dst)
		return false;
	gl_room_keep(sk, gs);
	len += tcp_hdrlen(skb);
	/* The peer's MSS does not include TCP's options (RFC 6691). */
	return len + icsk->icsk_ext_hdr_len + icsk->icsk_af_ops->net_header_len <= dst_mtu(dst) &&
	       len + gs->transport->room <= tcp_sk(sk)->rx_opt.mss_clamp + sizeof(struct tcphdr);
}

/**
 * gl_room_give() - undo gl_room_take()
 * @sk: the connection, locked or about to be freed
 * @gs: its state
 */
void gl_room_give(struct sock *sk, struct gl_sock *gs)
{
	if (gs->peer != GREENLANE_PEER_YES || !gs->transport->room)
		return;
	gl_room_keep(sk, gs);
	gl_room_sync(sk, gs, -min_t(int, gs->transport->room, inet_csk(sk)->icsk_ext_hdr_len));
}
