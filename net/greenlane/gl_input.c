// SPDX-License-Identifier: GPL-2.0
/* Input: find the packets that a transport processes, and process them before TCP does.
 *
 * gl_local_in() finds a connection's packets at LOCAL_IN, and its hello in a handshake
 * (gl_handshake.c).  The flags of a packet's kind decide: acknowledge it immediately, answer it, or
 * pass it to the transport.  This file does so while no process owns the socket; gl_defer.c has the
 * other case.
 */
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/xfrm.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- could the peer have sent it? ---------------------------------------------- */

/* Could the peer have sent this segment, if it has received data up to @sent at most?  TCP's own
 * check runs later, and never for packets that are consumed here.  An attacker that is not on
 * the path has to guess both numbers.
 */
static bool gl_in_window(const struct tcp_sock *tp, const struct gl_seg *seg, u32 sent)
{
	return !after(seg->end_seq, tp->rcv_nxt + gl_max_receive_window(tp)) &&
	       !after(seg->ack, sent);
}

/* As gl_in_window(), and not long ago? */
static bool gl_is_recent(const struct tcp_sock *tp, const struct gl_seg *seg)
{
	u32 behind = max(tp->rcv_wnd, tp->window_clamp);
	u32 unacked = min_t(u64, tp->max_window, tp->bytes_acked);

	return !before(seg->seq, tp->rcv_nxt - behind) && !before(seg->ack, tp->snd_una - unacked);
}

/**
 * gl_plausible() - could the peer have sent this segment?
 * @sk: the socket; a process may own it
 * @seg: the segment
 *
 * The sequence numbers are read without the lock and may be slightly old; windows are wide
 * enough for that.  Over a short path an ACK can arrive before TCP has advanced snd_nxt, so
 * compare with write_seq.
 *
 * Return: true if the peer could have sent it.
 */
bool gl_plausible(const struct sock *sk, const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* Without the lock the numbers may be slightly old: see above. */
	return data_race(gl_in_window(tp, seg, tp->write_seq) && gl_is_recent(tp, seg));
}

/**
 * gl_heeds() - as gl_plausible(), for a connection that can send or receive data
 * @sk: the socket, locked
 * @seg: the segment
 * @held: was it held while a process owned the socket?  Meanwhile the process may have passed a
 *	whole window of the backlog to TCP, but the segment was recent when it arrived.
 *
 * Return: true if the peer could have sent it; if not, it is counted.
 */
bool gl_heeds(struct sock *sk, const struct gl_seg *seg, bool held)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!((1 << sk->sk_state) & GL_STATES))
		return false;
	if (gl_in_window(tp, seg, tp->snd_nxt) && (held || gl_is_recent(tp, seg)))
		return true;
	gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
	return false;
}

/**
 * gl_is_sound() - does a packet with our option have the form of its kind?
 * @kind: the kind of the option's code
 * @seg: the segment
 *
 * Return: true if it has; if not, TCP gets the packet as if it had no option.
 */
bool gl_is_sound(const struct gl_kind *kind, const struct gl_seg *seg)
{
	bool data = seg->end_seq != seg->seq;

	return data == !!(kind->flags & GL_KIND_DATA) && seg->words >= kind->words;
}

/* --- data -------------------------------------------------------------------- */

/**
 * gl_count_received() - count a packet
 * @sk: the socket
 * @kind: the packet's kind
 */
void gl_count_received(struct sock *sk, const struct gl_kind *kind)
{
	gl_count(sock_net(sk), kind->protocol, kind->received, 1);
}

/* Can the ACK wait GL_SOON_NS, and at most twice that, for data that carries it?  Only if the
 * sender does not wait for it: the last packet of a burst, which is below the MSS, ends a message,
 * and no data before it is missing.  (The ACK of a kind with GL_KIND_ENDS, or without @before,
 * reports more than that, and does not wait.  Nagle's algorithm may hold back the sender's next
 * write until this ACK, for 100 us at most, where the base takes milliseconds.)  And only if the
 * application usually answers (TCP's pingpong mode), and all data that it has written has left and
 * is not lost: data that waits for the window, and a retransmission, are no answers.
 */
static bool gl_may_wait(const struct sock *sk, const struct gl_kind *kind,
			const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return kind->before && !(kind->flags & GL_KIND_ENDS) &&
	       inet_csk_in_pingpong_mode((struct sock *)sk) && !tcp_send_head(sk) &&
	       inet_csk(sk)->icsk_ca_state == TCP_CA_Open && !tp->sacked_out &&
	       seg->seq == tp->rcv_nxt &&
	       seg->end_seq - seg->seq < inet_csk(sk)->icsk_ack.rcv_mss &&
	       RB_EMPTY_ROOT(&tp->out_of_order_queue);
}

/**
 * gl_acknowledge() - have TCP acknowledge the next data at once, or with its application's answer
 * @sk: the socket, locked
 * @gs: its state
 * @kind: the data's kind
 * @seg: the segment
 *
 * TCP has not processed the data yet.  It does so next, and then checks ICSK_ACK_NOW; see
 * gl_out_prompt() for packets that it sends before the check.
 */
void gl_acknowledge(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		    const struct gl_seg *seg)
{
	bool waits = gs->patient;

	gs->patient = gl_may_wait(sk, kind, seg);
	if (!gs->patient)
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	else if (!waits)	/* an ACK that waits already waits no longer for this packet */
		gs->young = !gl_kick_soon(sk, gs) || test_bit(GL_SOON_PASSED, &gs->flags);
	gs->prompt = 1;
	gs->prompt_end = seg->end_seq;
	gs->echoes_sent++;
	gl_count_received(sk, kind);
}

/**
 * gl_receive_data() - process data that requests an immediate ACK
 * @sk: the socket, locked and not owned by a process, BH off; TCP gets the data afterwards
 * @gs: its state
 * @kind: the data's kind
 * @seg: the segment
 */
static void gl_receive_data(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			    const struct gl_seg *seg)
{
	if (!gl_heeds(sk, seg, false))
		return;
	gl_acknowledge(sk, gs, kind, seg);
	if (kind->flags & GL_KIND_ENDS)
		gs->transport->on_packet(sk, gs, kind, seg);
}

/* --- packets with our option ---------------------------------------------------- */

/* Does a packet that is answered have data that TCP waits for?  More than one byte repairs a loss;
 * the sender sends a single byte only to get an answer.  The data of a packet that was held (!@skb)
 * is not available.
 */
static bool gl_repairs(const struct sock *sk, const struct sk_buff *skb,
		       const struct gl_seg *seg)
{
	return skb && seg->end_seq - seg->seq > 1 && seg->seq == tcp_sk(sk)->rcv_nxt;
}

/**
 * gl_heed_ce() - react to the CE mark of a consumed packet, which TCP does not see
 * @sk: the socket, locked and not owned by a process
 *
 * As TCP reacts to a mark on data (tcp_data_ecn_check()).
 */
void gl_heed_ce(struct sock *sk)
{
	gl_tcp_accecn_heed(tcp_sk(sk));
	if (!gl_tcp_ecn_rfc3168(tcp_sk(sk)))
		return;
	if (tcp_ca_needs_ecn(sk))
		tcp_ca_event(sk, CA_EVENT_ECN_IS_CE);
	tcp_sk(sk)->ecn_flags |= TCP_ECN_DEMAND_CWR;
}

/* Answer a packet and consume it, unless it repairs a loss.  If it retransmits a byte only to get
 * an ACK, TCP would answer too, but with a D-SACK, and the sender would conclude that its
 * retransmissions had been spurious.
 */
static enum gl_verdict gl_answer(struct sock *sk, struct gl_sock *gs, const struct sk_buff *skb,
				 const struct gl_kind *kind, const struct gl_seg *seg)
{
	if (kind->words)
		gs->transport->on_packet(sk, gs, kind, seg);
	gs->owed = 1;
	gl_set_number(gs, GL_OWED_TO, seg->field);
	if (gl_repairs(sk, skb, seg)) {
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		gl_kick(sk, gs);
		return GL_PASS;
	}
	if (seg->ce)
		gl_heed_ce(sk);
	/* Packets that were held share one answer: gl_release_held(). */
	if (skb)
		gl_send_ack(sk);
	return GL_CONSUME;
}

/**
 * gl_receive() - process a packet with our option
 * @sk: the socket, locked and not owned by a process, BH off
 * @gs: its state
 * @skb: the packet; NULL if it was held while a process owned the socket
 * @kind: a kind with a code
 * @seg: the segment
 *
 * Return: GL_PASS if TCP gets the packet too, GL_CONSUME if not.
 */
enum gl_verdict gl_receive(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			   const struct gl_kind *kind, const struct gl_seg *seg)
{
	if (!gl_heeds(sk, seg, !skb))
		return GL_PASS;
	if (!gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	gl_count_received(sk, kind);
	if (kind->flags & GL_KIND_ANSWERED)
		return gl_answer(sk, gs, skb, kind, seg);
	return gs->transport->on_packet(sk, gs, kind, seg);
}

/* --- LOCAL_IN ------------------------------------------------------------------ */

/* Return: the offset of a complete, linear TCP header, or -1.  May reallocate the headers. */
static int gl_in_tcp_offset(struct sk_buff *skb, u8 family)
{
	unsigned int thoff, hlen;
	const struct tcphdr *th;

	if (family == NFPROTO_IPV4) {
		if (ip_hdr(skb)->protocol != IPPROTO_TCP)
			return -1;
		thoff = ip_hdrlen(skb);
	} else {
		u8 next = ipv6_hdr(skb)->nexthdr;
		unsigned int auth = 0;
		__be16 frag;
		int off;

		/* IPsec has not verified the packet yet; verified, it passes here again. */
		if (next != IPPROTO_TCP &&
		    ipv6_find_hdr(skb, &auth, NEXTHDR_AUTH, NULL, NULL) >= 0)
			return -1;
		off = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &next, &frag);
		if (off < 0 || next != IPPROTO_TCP)
			return -1;
		thoff = off;
	}
	if (!pskb_may_pull(skb, thoff + sizeof(*th)))
		return -1;
	th = (const struct tcphdr *)(skb->data + thoff);
	hlen = th->doff * 4;
	if (hlen < sizeof(*th) || !pskb_may_pull(skb, thoff + hlen))
		return -1;
	return thoff;
}

/* Look up the connection of a packet without a socket: early demux may be off. */
static struct sock *gl_in_lookup(struct net *net, struct sk_buff *skb,
				 const struct tcphdr *th, u8 family)
{
	if (family == NFPROTO_IPV4)
		return __inet_lookup_established(net, GL_HASHINFO(net)
						 ip_hdr(skb)->saddr, th->source,
						 ip_hdr(skb)->daddr, ntohs(th->dest),
						 skb->skb_iif, inet_sdif(skb));
#if IS_ENABLED(CONFIG_IPV6)
	return __inet6_lookup_established(net, GL_HASHINFO(net)
					  &ipv6_hdr(skb)->saddr, th->source,
					  &ipv6_hdr(skb)->daddr, ntohs(th->dest),
					  inet6_iif(skb), inet6_sdif(skb));
#else
	return NULL;
#endif
}

static void gl_in_seg(const struct sk_buff *skb, int thoff, struct gl_seg *seg)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);

	seg->seq = ntohl(th->seq);
	seg->end_seq = seg->seq + skb->len - thoff - th->doff * 4;
	seg->ack = ntohl(th->ack_seq);
	seg->segs = max_t(u16, skb_shinfo(skb)->gso_segs, 1);
	seg->window = ntohs(th->window);
}

/**
 * gl_in_refused() - would TCP refuse a packet?
 * @sk: its socket
 * @skb: the packet, at LOCAL_IN
 * @thoff: offset of the TCP header, which is complete
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 *
 * A packet that is processed here would miss TCP's own checks (signature, TTL, policy, checksum,
 * socket filter), so do them first.
 *
 * Return: true if one of them fails.
 */
bool gl_in_refused(struct sock *sk, struct sk_buff *skb, int thoff, u8 family)
{
	unsigned int tcp_hlen = ((const struct tcphdr *)(skb->data + thoff))->doff * 4;
	bool refused;

	if (gl_tcp_signed(sk))
		return true;
	if (family == NFPROTO_IPV4) {
		if (ip_hdr(skb)->ttl < READ_ONCE(inet_sk(sk)->min_ttl) ||
		    !xfrm4_policy_check(sk, XFRM_POLICY_IN, skb))
			return true;
	} else {
#if IS_ENABLED(CONFIG_IPV6)
		if (ipv6_hdr(skb)->hop_limit < READ_ONCE(inet6_sk(sk)->min_hopcount) ||
		    !xfrm6_policy_check(sk, XFRM_POLICY_IN, skb))
			return true;
#endif
	}
	if (nf_checksum(skb, NF_INET_LOCAL_IN, thoff, IPPROTO_TCP, family))
		return true;
	/* TCP runs the filter on a packet that begins with the TCP header. */
	__skb_pull(skb, thoff);
	refused = sk_filter_trim_cap(sk, skb, tcp_hlen);
	__skb_push(skb, thoff);
	return refused;
}

/* Does the transport process the arrival of data, of any kind? */
static bool gl_in_is_data(const struct gl_sock *gs, const struct gl_seg *seg)
{
	return gs->transport->on_data && seg->end_seq != seg->seq;
}

/* @option: the packet's kind by our option, or NULL; @data: its kind by its DSCP, or NULL.  Called
 * under the socket's spinlock, BH off.
 */
static enum gl_verdict gl_in_locked(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
				    const struct gl_kind *option, const struct gl_kind *data,
				    const struct gl_seg *seg)
{
	bool owned = sock_owned_by_user(sk);
	enum gl_verdict verdict = GL_PASS;

	/* Packets that were held while a process owned the socket are older: process them first. */
	if (!owned && gs->held && gl_sock(sk) == gs)
		gl_release_held(sk, gs);
	/* The connection may have changed its congestion control meanwhile. */
	if (gl_sock(sk) != gs)
		return GL_PASS;
	/* TCP's data_segs_in also counts packets that TCP drops: any host that knows the ports can
	 * raise it.
	 */
	if (gl_in_is_data(gs, seg) && gl_plausible(sk, seg))
		gs->transport->on_data(sk, gs, seg);
	if (option)
		verdict = owned ? gl_hold(sk, gs, option, seg) :
				  gl_receive(sk, gs, skb, option, seg);
	if (data && owned)
		gl_hold_data(sk, gs, data, seg);
	else if (data)
		gl_receive_data(sk, gs, data, seg);
	return verdict;
}

/* May the DSCP of a packet with our option be that of data, too?  Of data that TCP has sent, and
 * not of a copy that requests an answer.
 */
static bool gl_in_has_data(const struct gl_kind *option, const struct gl_seg *seg)
{
	const u8 flags = GL_KIND_DATA | GL_KIND_TCPS;

	return seg->end_seq != seg->seq && (!option || (option->flags & flags) == flags);
}

/* A packet for a connection that runs a greenlane transport.  Only a packet with our option may
 * be consumed.  The DSCP of data can only request an immediate ACK or signal the end of a message,
 * and TCP always gets the data.
 */
static enum gl_verdict gl_in_ours(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
				  int thoff, u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	const struct gl_kind *option, *data = NULL;
	enum gl_verdict verdict;
	struct gl_seg seg = {};

	/* Only the handshake decides whether the peer runs a greenlane transport. */
	if (th->rst || th->syn || gs->peer != GREENLANE_PEER_YES)
		return GL_PASS;
	option = gl_kind_of_code(gs, gl_option_read(th, &seg));
	gl_in_seg(skb, thoff, &seg);
	if (gl_in_has_data(option, &seg))
		data = gl_kind_of_data(gs, gl_dsfield(skb, family));
	if (!option && !data && !gl_in_is_data(gs, &seg))
		return GL_PASS;
	if (option && option->flags & GL_KIND_SACK)
		seg.sack = gl_option_next(th, TCPOPT_SACK, NULL);
	seg.ce = option && INET_ECN_is_ce(gl_dsfield(skb, family));
	if (option && gl_in_refused(sk, skb, thoff, family)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}

	local_bh_disable();	/* NFQUEUE reinjects packets in process context */
	bh_lock_sock_nested(sk);
	verdict = gl_in_locked(sk, gs, skb, option, data, &seg);
	bh_unlock_sock(sk);
	local_bh_enable();
	return verdict;
}

/* May a packet have been trimmed, or report that one was?  By its DSCP; the option decides. */
static bool gl_in_is_trimmed(const struct nf_hook_state *state, const struct sk_buff *skb)
{
	return unlikely(gl_codepoint(state->net, gl_dsfield(skb, state->pf)) == GL_CP_TRIMMED);
}

/* Early demux has found the socket of nearly every packet of a connection, and gl_sock() finds out
 * whether it runs a greenlane transport.  Of other packets only handshake packets matter.
 */
static noinline unsigned int gl_in_slow(const struct nf_hook_state *state, struct sk_buff *skb)
{
	bool trimmed = gl_in_is_trimmed(state, skb);
	enum gl_verdict verdict = GL_PASS;
	struct sock *sk = skb->sk;
	struct gl_sock *gs = NULL;
	bool ref = false;
	int thoff;

	if (sk && sk_fullsock(sk)) {
		gs = gl_sock_received(sk);
		if (!gs && !trimmed &&
		    (1 << READ_ONCE(sk->sk_state)) & ~(TCPF_LISTEN | TCPF_SYN_SENT))
			return NF_ACCEPT;
	}
	thoff = gl_in_tcp_offset(skb, state->pf);
	if (thoff < 0)
		return NF_ACCEPT;
	if (!sk) {
		sk = gl_in_lookup(state->net, skb, (struct tcphdr *)(skb->data + thoff), state->pf);
		ref = sk;
		if (sk && sk_fullsock(sk))
			gs = gl_sock_received(sk);
	}
	trimmed = trimmed && sk && sk_fullsock(sk) && gl_trim_in(sk, skb, thoff, state->pf);
	if (gs && !trimmed)
		verdict = gl_in_ours(sk, gs, skb, thoff, state->pf);
	else if (!trimmed)
		gl_in_handshake(state->net, skb, sk, thoff, state->pf);
	if (ref)
		sock_gen_put(sk);

	if (verdict == GL_PASS)
		return NF_ACCEPT;
	consume_skb(skb);
	return NF_STOLEN;
}

/* Does TCP process the packets of this socket without us?  A listener and a client that waits for
 * a SYN-ACK are part of a handshake.
 */
static bool gl_in_is_foreign(const struct sock *sk)
{
	return !gl_sock(sk) && !gl_is_hidden(sk) &&
	       !((1 << READ_ONCE(sk->sk_state)) & (TCPF_LISTEN | TCPF_SYN_SENT));
}

/* As gl_local_out(): no stack frame for packets that need no processing. */
unsigned int gl_local_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk) &&
	    (!sk_is_tcp(sk) || (gl_in_is_foreign(sk) && !gl_in_is_trimmed(state, skb))))
		return NF_ACCEPT;
	return gl_in_slow(state, skb);
}
