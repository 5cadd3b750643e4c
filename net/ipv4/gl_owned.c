// SPDX-License-Identifier: GPL-2.0
/* A packet for us, and a process owns the socket.
 *
 * TCP puts what comes meanwhile into the socket's backlog, and the process takes it from
 * there when it lets go.  What is for us waits with the connection:
 *
 *	a packet with our option	in gs->held, for the next kick
 *	data				in the backlog, as ever; gl_backlog_rcv() looks at
 *					its DS field before TCP does
 *
 * A kick that finds the socket owned puts a packet of ours into the backlog, the nudge, by
 * which the process tells us when it is done: it asks for a kick a little later.  So nobody
 * polls, and nobody sleeps on the socket's lock.
 */
#include <linux/skbuff.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* A process may sleep with the socket, and the network must not fill it meanwhile.  More
 * credits than a receiver has on their way to one sender (a BDP of 100 Gbit/s and 8 µs), and
 * than a round trip has of what else there is.  What is beyond is lost, as on the way.
 */
#define GL_HELD_MAX	64

/* struct gl_held - in the control block of a packet that is held */
struct gl_held {
	struct gl_seg seg;
	enum gl_kind kind;
};

static struct gl_held *gl_held(struct sk_buff *skb)
{
	BUILD_BUG_ON(sizeof(struct gl_held) > sizeof(skb->cb));
	return (struct gl_held *)skb->cb;
}

/* --- LOCAL_IN ---------------------------------------------------------------- */

/* What TCP is to see as well it takes from the backlog. */
static bool gl_is_also_tcps(enum gl_kind kind)
{
	return kind == GL_CLOCK_ECHO || kind == GL_SHARE;
}

/**
 * gl_hold() - a packet with our option has come, and a process owns the socket
 * @sk: the socket; under its spinlock, BH off
 * @gs: its state
 * @skb: the packet
 * @kind: what it is
 * @seg: the segment
 *
 * Return: GL_PASS if TCP may see it; GL_HELD if it is ours now; GL_CONSUME if it is lost.
 */
enum gl_verdict gl_hold(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			enum gl_kind kind, const struct gl_seg *seg)
{
	bool pass = gl_is_also_tcps(kind);
	struct sk_buff *ours = skb;

	if (!gl_plausible(sk, seg) || !gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	/* One answer will do for all clocks of that time. */
	if (kind == GL_CLOCK && !seg->words) {
		gl_inc_stats(sock_net(sk), GL_MIB_CLOCKRECEIVED);
		set_bit(GL_OWED_ECHO, &gs->flags);
		gl_nudge(sk, gs);
		return GL_CONSUME;
	}
	if (gs->held_n < GL_HELD_MAX && pass)
		ours = skb_clone(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (gs->held_n == GL_HELD_MAX || !ours) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return pass ? GL_PASS : GL_CONSUME;
	}
	skb_orphan(ours);
	skb_dst_drop(ours);
	nf_reset_ct(ours);
	gl_held(ours)->seg = *seg;
	gl_held(ours)->kind = kind;
	ours->next = gs->held;
	gs->held = ours;
	gs->held_n++;
	gl_nudge(sk, gs);
	return pass ? GL_PASS : GL_HELD;
}

/**
 * gl_hold_data() - the same of data that is to be acknowledged at once
 * @sk: the socket; under its spinlock, BH off
 * @gs: its state
 * @kind: what it is
 * @seg: the segment
 *
 * TCP gets it.  If that is from the backlog, gl_backlog_rcv() sees it; if the process has
 * let go by then, the kick does.
 */
void gl_hold_data(struct sock *sk, struct gl_sock *gs, enum gl_kind kind,
		  const struct gl_seg *seg)
{
	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	if (gl_kind_ends(kind)) {
		gs->held_end = seg->end_seq;
		set_bit(GL_ENDED, &gs->flags);
	}
	set_bit(GL_OWED_ACK, &gs->flags);
	gl_kick(sk, gs);
}

/* --- the nudge ----------------------------------------------------------------- */

/* A TCP header without a flag, which TCP drops, if the connection has left us when it is
 * its turn; and flags in the control block that no packet has together and that let TCP put
 * no other packet behind it.
 */
#define GL_NUDGE_FLAGS	(TCPHDR_SYN | TCPHDR_RST)

static bool gl_is_nudge(const struct sk_buff *skb)
{
	return TCP_SKB_CB(skb)->tcp_flags == GL_NUDGE_FLAGS &&
	       skb->len == sizeof(struct tcphdr) && !tcp_hdr(skb)->syn;
}

static struct sk_buff *gl_nudge_alloc(void)
{
	struct sk_buff *skb = alloc_skb(sizeof(struct tcphdr), GFP_ATOMIC | __GFP_NOWARN);
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reset_network_header(skb);
	skb_reset_transport_header(skb);
	th = skb_put_zero(skb, sizeof(*th));
	th->doff = sizeof(*th) / 4;
	skb->ip_summed = CHECKSUM_UNNECESSARY;
	skb->protocol = htons(ETH_P_IP);
	memset(TCP_SKB_CB(skb), 0, sizeof(*TCP_SKB_CB(skb)));
	TCP_SKB_CB(skb)->tcp_flags = GL_NUDGE_FLAGS;
	return skb;
}

/**
 * gl_nudge() - have a kick when the process lets go of the socket
 * @sk: the socket, owned by a process; under its spinlock, BH off
 * @gs: its state
 */
void gl_nudge(struct sock *sk, struct gl_sock *gs)
{
	struct sk_buff *skb;

	if (test_and_set_bit(GL_NUDGED, &gs->flags))
		return;
	skb = gl_nudge_alloc();
	if (!skb) {
		clear_bit(GL_NUDGED, &gs->flags);
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		gl_kick_soon(sk, gs);
		return;
	}
	__sk_add_backlog(sk, skb);
}

/**
 * gl_backlog_rcv() - sk_backlog_rcv() of a connection of ours
 * @sk: the connection; the caller owns it
 * @skb: a packet from its backlog
 *
 * Return: what TCP's own returns.
 */
int gl_backlog_rcv(struct sock *sk, struct sk_buff *skb)
{
	struct gl_sock *gs = gl_sock_locked(sk);
	enum gl_kind kind;

	if (gl_is_nudge(skb)) {
		consume_skb(skb);
		if (!gs)
			return 0;
		clear_bit(GL_NUDGED, &gs->flags);
		gl_kick_soon(sk, gs);
		return 0;
	}
	if (!gs)
		return sk->sk_prot->backlog_rcv(sk, skb);
	kind = gl_kind_of(&gl_net(sock_net(sk))->cp, TCP_SKB_CB(skb)->ip_dsfield);
	if (gs->peer == GREENLANE_PEER_YES && gl_is_prompt(gs, kind) &&
	    skb->len > tcp_hdrlen(skb)) {
		clear_bit(GL_OWED_ACK, &gs->flags);
		gl_acknowledge(sk, gs, kind);
	}
	return gs->backlog_rcv(sk, skb);
}

/* --- when it is free -------------------------------------------------------------- */

/**
 * gl_release_held() - now look at what has come meanwhile
 * @sk: the socket, locked and at rest, BH off
 * @gs: its state
 */
void gl_release_held(struct sock *sk, struct gl_sock *gs)
{
	struct sk_buff *skb, *next, *first = NULL;

	if (test_and_clear_bit(GL_OWED_ACK, &gs->flags) && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
	if (test_and_clear_bit(GL_OWED_ECHO, &gs->flags))
		gs->owed_clock = 1;
	if (test_and_clear_bit(GL_ENDED, &gs->flags)) {
		struct gl_seg seg = { .seq = gs->held_end - 1, .end_seq = gs->held_end };

		gs->transport->on_packet(sk, gs, GL_MESSAGE_END, &seg);
	}
	/* The oldest first. */
	for (skb = gs->held; skb; skb = next) {
		next = skb->next;
		skb->next = first;
		first = skb;
	}
	gs->held = NULL;
	gs->held_n = 0;
	for (skb = first; skb; skb = next) {
		next = skb->next;
		skb_mark_not_on_list(skb);
		gl_receive(sk, gs, NULL, gl_held(skb)->kind, &gl_held(skb)->seg);
		consume_skb(skb);
	}
}

/**
 * gl_free_held() - the connection has left us
 * @gs: its state, which nobody else sees any more
 */
void gl_free_held(struct gl_sock *gs)
{
	kfree_skb_list(gs->held);
}
