// SPDX-License-Identifier: GPL-2.0
/* What a packet of the peer asks of a connection: an answer at once, or what its
 * transport says.
 *
 * LOCAL_IN comes before TCP, which may own the socket in a process: see gl_owned.c.
 */
#include <net/gl_compat.h>
#include "gl_internal.h"

/* A connection in which data may flow. */
#define GL_STATES	(TCPF_ESTABLISHED | TCPF_SYN_RECV | TCPF_FIN_WAIT1 |	\
			 TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_CLOSING |	\
			 TCPF_LAST_ACK)

/* Could the peer have sent this, if @sent is the end of what it may have got?  TCP's own
 * check comes later, and not for what ends here.  Who is not on the path has to guess it.
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
 * gl_plausible() - could the peer have sent this?
 * @sk: for this socket; its owner may be at work on it
 * @seg: the segment
 *
 * The numbers are those of a moment ago, and windows are wide.  Over a short wire an ACK
 * comes before TCP has noted that it has sent what is acked.
 */
bool gl_plausible(const struct sock *sk, const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* What was true a moment ago will do. */
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
 * gl_is_prompt() - is data of this kind acknowledged at once?
 * @gs: of this connection
 * @kind: what its DSCP says
 *
 * Important data (TLT §5.1), what had no credit (Aeolus §III-C: the sender then knows what
 * need not be sent again), and the end of a message.  A DSCP that somebody else has
 * written costs an ACK.  Needs no lock.
 */
bool gl_is_prompt(const struct gl_sock *gs, enum gl_kind kind)
{
	enum gl_kind hello = gs->transport->hello;

	if (kind == GL_DATA)
		return gl_kind_of_credits(hello);
	return gl_kind_protected(kind) && gl_family(kind) == gl_family(hello) &&
	       (kind == GL_IMPORTANT || gl_kind_ends(kind));
}

/**
 * gl_acknowledge() - data that has come is acknowledged at once
 * @sk: for this socket, locked
 * @gs: its state
 * @kind: what it is
 *
 * Whatever delayed ACKs would do: TCP will look when it takes the data, which is next.
 */
void gl_acknowledge(struct sock *sk, struct gl_sock *gs, enum gl_kind kind)
{
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	if (kind != GL_IMPORTANT)
		return;
	gs->echoes_sent++;
	gl_inc_stats(sock_net(sk), GL_MIB_ECHOSENT);
}

/**
 * gl_receive_data() - data has come that is to be acknowledged at once
 * @sk: for this socket; locked and at rest, BH off; TCP has not seen it yet
 * @gs: its state
 * @kind: what it is
 * @seg: the segment
 */
void gl_receive_data(struct sock *sk, struct gl_sock *gs, enum gl_kind kind,
		     const struct gl_seg *seg)
{
	if (!gl_heeds(sk, seg))
		return;
	gl_acknowledge(sk, gs, kind);
	if (gl_kind_ends(kind))
		gs->transport->on_packet(sk, gs, kind, seg);
}

/* --- what has our option ------------------------------------------------------- */

/* More than a byte, and what TCP waits for: such a clock may repair a loss.  If a process
 * owned the socket it is gone (!@skb).
 */
static bool gl_clock_repairs(const struct sock *sk, const struct sk_buff *skb,
			     const struct gl_seg *seg)
{
	return skb && seg->end_seq - seg->seq > 1 && seg->seq == tcp_sk(sk)->rcv_nxt;
}

/* A clock asks only for an answer: it repeats a byte that was sent before, and
 * ends here.  TCP would answer a repeated byte too, but with a D-SACK, which
 * the sender takes for a sign that its retransmissions were spurious.
 */
static enum gl_verdict gl_answer_clock(struct sock *sk, struct gl_sock *gs,
				       const struct sk_buff *skb, const struct gl_seg *seg)
{
	gl_inc_stats(sock_net(sk), GL_MIB_CLOCKRECEIVED);
	if (seg->words)
		gs->transport->on_packet(sk, gs, GL_CLOCK, seg);
	gs->owed_clock = 1;
	if (gl_clock_repairs(sk, skb, seg)) {
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		gl_kick(sk, gs);
		return GL_PASS;
	}
	/* Of those that were held, one answer will do. */
	if (skb)
		gl_send_ack(sk);
	return GL_CONSUME;
}

/**
 * gl_is_sound() - does a packet with our option make sense?
 * @kind: what it says that it is
 * @seg: the segment
 *
 * A clock has a byte, or it is a probe and has words; what else is for us has no data.
 * All else is TCP's.
 */
bool gl_is_sound(enum gl_kind kind, const struct gl_seg *seg)
{
	bool data = seg->end_seq != seg->seq;

	if (kind == GL_CLOCK)
		return data || seg->words;
	return !data && (kind != GL_SHARE || seg->words);
}

/**
 * gl_receive() - a packet with our option has come
 * @sk: for this socket; locked and at rest, BH off
 * @gs: its state
 * @skb: the packet; NULL if it was held because a process owned the socket
 * @kind: GL_CLOCK, GL_CLOCK_ECHO, GL_REQUEST, GL_CREDIT or GL_SHARE
 * @seg: the segment
 *
 * Return: whether TCP may see it.
 */
enum gl_verdict gl_receive(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			   enum gl_kind kind, const struct gl_seg *seg)
{
	if (!gl_heeds(sk, seg))
		return GL_PASS;
	if (!gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	if (kind == GL_CLOCK)
		return gl_answer_clock(sk, gs, skb, seg);
	if (kind == GL_CLOCK_ECHO)
		gl_inc_stats(sock_net(sk), GL_MIB_CLOCKECHORECEIVED);
	return gs->transport->on_packet(sk, gs, kind, seg);
}
