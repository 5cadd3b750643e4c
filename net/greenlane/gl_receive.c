// SPDX-License-Identifier: GPL-2.0
/* Received packets: acknowledge them immediately, answer them, or pass them to the transport,
 * depending on the flags of their kind.
 *
 * This runs at LOCAL_IN, before TCP, and only while no process owns the socket; gl_defer.c has
 * the other case.
 */
#include <net/gl_compat.h>
#include "gl_internal.h"

/* States in which data can be sent or received. */
#define GL_STATES	(TCPF_ESTABLISHED | TCPF_SYN_RECV | TCPF_FIN_WAIT1 |	\
			 TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_CLOSING |	\
			 TCPF_LAST_ACK)

/* Could the peer have sent this segment, if it has received data up to @sent at most?  TCP's own
 * check runs later, and never for packets that are consumed here.  An attacker that is not on
 * the path has to guess both numbers.
 */
static bool gl_in_window(const struct tcp_sock *tp, const struct gl_seg *seg, u32 sent)
{
	u32 behind = max(tp->rcv_wnd, tp->window_clamp);
	u32 unacked = min_t(u64, tp->max_window, tp->bytes_acked);

	return !after(seg->end_seq, tp->rcv_nxt + tcp_receive_window(tp)) &&
	       !before(seg->seq, tp->rcv_nxt - behind) &&
	       !after(seg->ack, sent) &&
	       !before(seg->ack, tp->snd_una - unacked);
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
	return data_race(gl_in_window(tp, seg, tp->write_seq));
}

static bool gl_heeds(struct sock *sk, const struct gl_seg *seg)
{
	if (!((1 << sk->sk_state) & GL_STATES))
		return false;
	if (gl_in_window(tcp_sk(sk), seg, tcp_sk(sk)->snd_nxt))
		return true;
	gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
	return false;
}

/* --- data -------------------------------------------------------------------- */

/**
 * gl_kind_of_data() - the kind of data without our option
 * @gs: state of the connection
 * @dsfield: the packet's DS field
 *
 * A wrong DSCP at worst causes an extra ACK.  Needs no lock.
 *
 * Return: the kind, if it requests an immediate ACK, else NULL.
 */
const struct gl_kind *gl_kind_of_data(const struct gl_sock *gs, u8 dsfield)
{
	return gs->transport->protocol->prompt[gl_codepoint(sock_net(gs->sk), dsfield)];
}

static const struct gl_kind *gl_kind_in(const struct gl_protocol *protocol, u8 code)
{
	unsigned int i;

	for (i = 0; code && i < protocol->kinds; i++)
		if (protocol->kind[i].code == code)
			return &protocol->kind[i];
	return NULL;
}

/**
 * gl_kind_of_code() - the kind of a packet with our option
 * @gs: state of the connection
 * @code: the option's code
 *
 * Return: the kind, or NULL if the connection's protocol has no kind with this code.
 */
const struct gl_kind *gl_kind_of_code(const struct gl_sock *gs, u8 code)
{
	const struct gl_protocol *protocol = gs->transport->protocol;
	const struct gl_kind *kind = gl_kind_in(protocol, code);
	unsigned int i;

	for (i = 0; !kind && i < GL_PARTS && protocol->part[i]; i++)
		kind = gl_kind_in(protocol->part[i], code);
	return kind;
}

/**
 * gl_count_received() - count a packet
 * @sk: the socket
 * @kind: the packet's kind
 */
void gl_count_received(struct sock *sk, const struct gl_kind *kind)
{
	gl_count(sock_net(sk), kind->protocol, kind->received, 1);
}

/* Can the ACK wait up to GL_SOON_NS for data that carries it?  Only if the sender does not wait for
 * it: the last packet of a burst, which is below the MSS, ends a message, and no data before it is
 * missing.  (The ACK of a kind with GL_KIND_ENDS, or without @before, reports more than that, and
 * does not wait.  Nagle's algorithm may hold back the sender's next write until this ACK, for
 * 50 us, where the base takes milliseconds.)  And only if the application usually answers (TCP's
 * pingpong mode), and all data that it has written has left and is not lost: data that waits for
 * the window, and a retransmission, are no answers.
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
	gs->patient = gl_may_wait(sk, kind, seg);
	if (gs->patient)
		gl_kick_soon(sk, gs);
	else
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
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
void gl_receive_data(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		     const struct gl_seg *seg)
{
	if (!gl_heeds(sk, seg))
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
	if (!gl_heeds(sk, seg))
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
