// SPDX-License-Identifier: GPL-2.0
/* Packets that arrive while a process owns the socket.
 *
 * TCP queues such packets on the socket's backlog, and the process handles them when it
 * releases the socket.  Greenlane's packets wait with their connection:
 *
 *	a packet with our option	in gs->held, until the next kick
 *	data				in the backlog as usual; gl_backlog_rcv() reads its
 *					DS field before TCP processes it
 *
 * If a kick finds that a process owns the socket, release_sock() kicks, after the backlog: see
 * gl_kick_at_release().  A kick after that might find the next process that owns the socket.
 */
#include <linux/skbuff.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Maximum number of packets held per socket: a process may sleep while it owns the socket, and the
 * network must not fill the memory meanwhile.  1024 packets take 64 kB, and are more credits than a
 * receiver has in flight to one sender (the BDP of 400 Gbit/s and 31 µs).  Packets beyond it are
 * dropped; the protocols recover from that as from a loss in the network.
 */
#define GL_HELD_MAX	1024

/**
 * struct gl_held - a segment with our option
 * @next: the next older segment in gl_sock.held
 * @kind: its kind
 * @seg: the segment
 */
struct gl_held {
	struct gl_held *next;
	const struct gl_kind *kind;
	struct gl_seg seg;
};

/* --- LOCAL_IN ---------------------------------------------------------------- */

/* Put a segment at the head of the list, or drop it. */
static void gl_held_add(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			const struct gl_seg *seg)
{
	struct gl_held *held = NULL;

	BUILD_BUG_ON(sizeof(*held) > 64);
	if (gs->held_n < GL_HELD_MAX)
		held = kmalloc(sizeof(*held), GFP_ATOMIC | __GFP_NOWARN);
	if (!held) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return;
	}
	held->seg = *seg;
	held->kind = kind;
	held->next = gs->held;
	gs->held = held;
	gs->held_n++;
	gl_kick_at_release(sk, gs);
}

/**
 * gl_hold() - keep a segment with our option until the process releases the socket
 * @sk: the socket; under its spinlock, BH off
 * @gs: its state
 * @kind: the packet's kind
 * @seg: the segment
 *
 * Return: GL_PASS if TCP gets the packet too, from the backlog; else GL_CONSUME.
 */
enum gl_verdict gl_hold(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			const struct gl_seg *seg)
{
	if (!gl_plausible(sk, seg) || !gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	/* One answer serves all packets that arrive meanwhile and only request an answer. */
	if (kind->flags & GL_KIND_ANSWERED && !kind->words) {
		gl_count_received(sk, kind);
		set_bit(GL_OWED_ANSWER, &gs->flags);
		if (seg->ce)
			set_bit(GL_OWED_CE, &gs->flags);
		gl_kick_at_release(sk, gs);
		return GL_CONSUME;
	}
	gl_held_add(sk, gs, kind, seg);
	return kind->flags & GL_KIND_TCPS ? GL_PASS : GL_CONSUME;
}

/**
 * gl_hold_data() - note that data was received that requests an immediate ACK
 * @sk: the socket, owned by a process; under its spinlock, BH off
 * @gs: its state
 * @kind: the packet's kind
 * @seg: the segment
 *
 * TCP gets the packet itself.  Usually the packet passes through the backlog, where
 * gl_backlog_rcv() processes it.  If the process releases the socket before TCP adds the packet to
 * the backlog, the kick sends the ACK.
 */
void gl_hold_data(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		  const struct gl_seg *seg)
{
	if (!gl_plausible(sk, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return;
	}
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	if (kind->flags & GL_KIND_ENDS) {
		gs->held_end = seg->end_seq;
		gs->held_last = kind->codepoint;
	}
	set_bit(GL_OWED_ACK, &gs->flags);
	gl_kick(sk, gs);
}

/* --- the backlog -------------------------------------------------------------- */

/* The kind of data from the backlog, if it requests an immediate ACK, else NULL.  Fills @seg. */
static const struct gl_kind *gl_backlog_kind(const struct sock *sk, const struct gl_sock *gs,
					     const struct sk_buff *skb, struct gl_seg *seg)
{
	const struct tcp_skb_cb *cb = TCP_SKB_CB(skb);

	seg->seq = cb->seq;
	seg->end_seq = cb->end_seq - !!(cb->tcp_flags & TCPHDR_FIN);
	seg->ack = cb->ack_seq;
	if (gs->peer != GREENLANE_PEER_YES || seg->seq == seg->end_seq || !gl_plausible(sk, seg))
		return NULL;
	return gl_kind_of_data(gs, cb->ip_dsfield);
}

/* TCP has finished with data from the backlog that requests an immediate ACK.  Since 6.7 it sends
 * one ACK for the whole backlog, at its end (net.ipv4.tcp_backlog_ack_defer).  That ACK has room
 * for three SACK blocks only, and the peer needs an acknowledgment of this packet.
 */
static void gl_backlog_acked(struct sock *sk, struct gl_sock *gs)
{
	/* TCP may have ended the connection, and @gs with it. */
	if (gl_sock_locked(sk) != gs || !gs->prompt || gs->patient)
		return;
	gs->prompt = 0;
	if (!RB_EMPTY_ROOT(&tcp_sk(sk)->out_of_order_queue))
		gl_send_ack(sk);
}

/**
 * gl_backlog_rcv() - sk_backlog_rcv() of a connection that runs a greenlane transport
 * @sk: the connection; the caller owns it
 * @skb: a packet from its backlog
 *
 * Return: as tcp_v4_do_rcv().
 */
int gl_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	const struct gl_kind *kind;
	struct gl_seg seg = {};
	int err;

	if (!gs)
		return sk->sk_prot->backlog_rcv(sk, skb);
	kind = gl_backlog_kind(sk, gs, skb, &seg);
	if (!kind)
		return gs->backlog_rcv(sk, skb);
	clear_bit(GL_OWED_ACK, &gs->flags);
	gl_acknowledge(sk, gs, kind, &seg);
	err = gs->backlog_rcv(sk, skb);
	gl_backlog_acked(sk, gs);
	return err;
}

/* --- the socket is free ----------------------------------------------------------- */

/**
 * gl_release_held() - process the packets that arrived while a process owned the socket
 * @sk: the socket, locked and not owned by a process, BH off
 * @gs: its state
 */
void gl_release_held(struct sock *sk, struct gl_sock *gs)
{
	struct gl_held *held, *next, *first = NULL;

	/* For data out of order TCP may have cleared the ACK's request: see gl_out_prompt(). */
	if (test_and_clear_bit(GL_OWED_ACK, &gs->flags) &&
	    (inet_csk_ack_scheduled(sk) || !RB_EMPTY_ROOT(&tcp_sk(sk)->out_of_order_queue)))
		gl_send_ack(sk);
	if (test_and_clear_bit(GL_OWED_ANSWER, &gs->flags))
		gs->owed = 1;
	if (test_and_clear_bit(GL_OWED_CE, &gs->flags))
		gl_heed_ce(sk);
	if (gs->held_last) {
		struct gl_seg seg = { .seq = gs->held_end - 1, .end_seq = gs->held_end };

		gs->transport->on_packet(sk, gs, gs->transport->protocol->prompt[gs->held_last],
					 &seg);
		gs->held_last = 0;
	}
	/* The list has the newest packet first; process the oldest first. */
	for (held = gs->held; held; held = next) {
		next = held->next;
		held->next = first;
		first = held;
	}
	gs->held = NULL;
	gs->held_n = 0;
	for (held = first; held; held = next) {
		next = held->next;
		gl_receive(sk, gs, NULL, held->kind, &held->seg);
		kfree(held);
	}
}

/**
 * gl_free_held() - drop the held packets of a connection that ends or leaves greenlane
 * @gs: its state; the caller has the only reference
 */
void gl_free_held(struct gl_sock *gs)
{
	struct gl_held *held, *next;

	for (held = gs->held; held; held = next) {
		next = held->next;
		kfree(held);
	}
}
