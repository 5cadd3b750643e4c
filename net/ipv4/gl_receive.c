// SPDX-License-Identifier: GPL-2.0
/* Received packets: answer clocks and important data at once, and pass the other kinds to the
 * transport.
 *
 * This runs at LOCAL_IN, before TCP, and only while no process owns the socket; gl_owned.c has
 * the other case.
 */
#include <net/gl_compat.h>
#include "gl_internal.h"

/* States in which data can be sent or received. */
#define GL_STATES	(TCPF_ESTABLISHED | TCPF_SYN_RECV | TCPF_FIN_WAIT1 |	\
			 TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_CLOSING |	\
			 TCPF_LAST_ACK)

/* Could the peer have sent this segment, if it has received at most up to @sent?  TCP's own
 * check comes later, and never for packets that are consumed here.  An attacker who is not on
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
 * gl_is_prompt() - does data of this kind want an immediate ACK?
 * @gs: state of the connection
 * @kind: the data's kind, by its DSCP
 *
 * These are important data (TLT §5.1), unscheduled data (Aeolus §III-C: the ACK tells the
 * sender what not to retransmit) and the end of a message.  The worst that a wrong DSCP does
 * is an extra ACK.  Needs no lock.
 */
bool gl_is_prompt(const struct gl_sock *gs, enum gl_kind kind)
{
	enum gl_kind hello = gs->transport->hello;

	if (kind == GL_DATA)
		return gl_kind_of_credits(hello);
	return (kind == GL_IMPORTANT || gl_kind_ends(kind)) &&
	       gl_family(kind) == gl_family(hello);
}

/**
 * gl_acknowledge() - have TCP acknowledge the next data at once
 * @sk: the socket, locked
 * @gs: its state
 * @kind: the data's kind
 *
 * TCP has not processed the data yet.  It does so next, and then checks ICSK_ACK_NOW.
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
 * gl_receive_data() - process data that wants an immediate ACK
 * @sk: the socket, locked and not owned by a process, BH off; TCP gets the data afterwards
 * @gs: its state
 * @kind: the data's kind
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

/* --- packets with our option ---------------------------------------------------- */

/* A clock with more than one byte that TCP is waiting for repairs a loss.  One that was held
 * (!@skb) cannot: its data is gone.
 */
static bool gl_clock_repairs(const struct sock *sk, const struct sk_buff *skb,
			     const struct gl_seg *seg)
{
	return skb && seg->end_seq - seg->seq > 1 && seg->seq == tcp_sk(sk)->rcv_nxt;
}

/* Answer a clock, which retransmits a byte only to get an ACK, and consume it.  TCP would
 * answer too, but with a D-SACK, and the sender would conclude that its retransmissions had
 * been spurious.
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
	/* Clocks that were held share one answer: gl_release_held(). */
	if (skb)
		gl_send_ack(sk);
	return GL_CONSUME;
}

/**
 * gl_is_sound() - does a packet with our option have the form of its kind?
 * @kind: the kind that the option says
 * @seg: the segment
 *
 * A clock has data, or is a probe that has words instead.  All other kinds have no data, and
 * a share has a word.  A hello belongs in a SYN.  Any other packet goes to TCP as if it had no
 * option.
 */
bool gl_is_sound(enum gl_kind kind, const struct gl_seg *seg)
{
	bool data = seg->end_seq != seg->seq;

	if (kind == GL_CLOCK)
		return data || seg->words;
	if (kind == GL_IMPORTANT || kind == GL_SCHEDULED)
		return false;
	return !data && (kind != GL_SHARE || seg->words);
}

/**
 * gl_receive() - process a packet with our option
 * @sk: the socket, locked and not owned by a process, BH off
 * @gs: its state
 * @skb: the packet; NULL if it was held while a process owned the socket
 * @kind: GL_CLOCK, GL_CLOCK_ECHO, GL_REQUEST, GL_CREDIT or GL_SHARE
 * @seg: the segment
 *
 * Return: GL_PASS if the packet goes to TCP too, GL_CONSUME if not.
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
