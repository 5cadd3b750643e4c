// SPDX-License-Identifier: GPL-2.0
/* What a marked packet asks of us, and what to do if a process owns the socket.
 *
 * A receiver's duty (TLT §5.1): echo important data at once, answer a clock
 * at once.  A sender's: hear the echo (gl_in_echo() in gl_hook.c).
 *
 * LOCAL_IN comes before the socket lock.  If a process owns the socket then,
 * TCP takes the packet from the backlog later, and nothing of ours may be read
 * meanwhile.  A note is left for a worker, which waits for the socket: by then
 * TCP has seen the packet.
 */
#include <linux/hashtable.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* A connection in which data may flow. */
#define GL_STATES	(TCPF_ESTABLISHED | TCPF_SYN_RECV | TCPF_FIN_WAIT1 |	\
			 TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_CLOSING |	\
			 TCPF_LAST_ACK)

/* Could the peer have sent this, if @sent is the end of what it may have got?
 * TCP's own check comes later, and not for what ends here.  Who is not on the
 * path has to guess it.
 */
static bool gl_in_window(const struct tcp_sock *tp, const struct gl_seg *seg,
			 u32 sent)
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
 * @sk: for this TCP socket; TCP may be at work on it
 * @seg: the segment
 *
 * The numbers are those of a moment ago, and windows are wide.  Over a short
 * wire an ACK comes before TCP has noted that it has sent what is acked.
 */
bool gl_plausible(const struct sock *sk, const struct gl_seg *seg)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	/* What was true a moment ago will do. */
	return data_race(gl_in_window(tp, seg, tp->write_seq));
}

/* --- the receiver ------------------------------------------------------- */

/* Important data is acknowledged at once, whatever delayed ACKs would do. */
static void gl_owe_echo(struct sock *sk, struct gl_sock *gs,
			const struct gl_seg *seg, bool late)
{
	/* Or has an ACK of TCP's own been the echo, or owed it? */
	if (late && !gl_tsq_take(sk, GL_TSQ_IMPORTANT))
		return;
	gs->owed_echo = 1;
	gs->owed_end = seg->end_seq;
	if (!late)
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
	/* In case the ACK leaves on a data packet, which is no echo. */
	gl_kick(sk, gs);
}

/**
 * gl_receive_unscheduled() - data that had no credit has come
 * @sk: for this socket, locked and not owned by another
 *
 * It is acknowledged at once, packet by packet, whatever delayed ACKs would do
 * (Aeolus §III-C): the sender then knows which of them it need not send again.
 */
void gl_receive_unscheduled(struct sock *sk)
{
	if (((1 << sk->sk_state) & GL_STATES) && gl_sock(sk))
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* More than a byte, and what TCP waits for: such a clock may repair a loss.  If it is
 * @late, because a process owned the socket, it is gone.
 */
static bool gl_clock_repairs(const struct sock *sk, const struct gl_seg *seg, bool late)
{
	return !late && seg->end_seq - seg->seq > 1 && seg->seq == tcp_sk(sk)->rcv_nxt;
}

/* A clock asks only for an answer: it repeats a byte that was sent before, and
 * ends here.  TCP would answer a repeated byte too, but with a D-SACK, which
 * the sender takes for a sign that its retransmissions were spurious.
 */
static enum gl_verdict gl_answer_clock(struct sock *sk, struct gl_sock *gs,
				       const struct gl_seg *seg, bool late)
{
	gl_inc_stats(sock_net(sk), GL_MIB_CLOCKRECEIVED);
	if (seg->words)
		gs->transport->on_packet(sk, gs, GL_CLOCK, seg);
	gs->owed_clock = 1;
	if (gl_clock_repairs(sk, seg, late)) {
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		gl_kick(sk, gs);
		return GL_PASS;
	}
	gl_send_ack(sk);
	return GL_CONSUME;
}

/* A clock has a byte, a probe words, dart's last packet data; what else is not for TCP
 * has no data.
 */
static bool gl_is_sound(enum gl_kind kind, const struct gl_seg *seg)
{
	bool data = seg->end_seq != seg->seq;

	if (kind == GL_CLOCK)
		return data || seg->words;
	if (kind == GL_IMPORTANT)
		return true;
	return data == gl_kind_ends(kind);
}

/**
 * gl_receive() - a marked packet has come
 * @sk: for this socket; locked and not owned by another, BH off
 * @kind: GL_IMPORTANT, GL_CLOCK, GL_CLOCK_ECHO, GL_REQUEST, GL_CREDIT, GL_SHARE, or the
 *	last packet of a message
 * @seg: the segment
 * @late: TCP has seen it already
 *
 * Return: whether TCP may see it.
 */
enum gl_verdict gl_receive(struct sock *sk, enum gl_kind kind,
			   const struct gl_seg *seg, bool late)
{
	bool data = seg->end_seq != seg->seq;
	struct gl_sock *gs = gl_sock(sk);

	if (!gs || !((1 << sk->sk_state) & GL_STATES))
		return GL_PASS;
	if (!gl_in_window(tcp_sk(sk), seg, tcp_sk(sk)->snd_nxt) ||
	    !gl_is_sound(kind, seg)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}
	if (gl_speaks(gs->transport, kind))
		gl_set_peer(sk, gs, GREENLANE_PEER_YES);

	switch (kind) {
	case GL_IMPORTANT:
		if (data)
			gl_owe_echo(sk, gs, seg, late);
		return GL_PASS;
	case GL_CLOCK:
		return gl_answer_clock(sk, gs, seg, late);
	case GL_CLOCK_ECHO:
		gl_inc_stats(sock_net(sk), GL_MIB_CLOCKECHORECEIVED);
		fallthrough;
	default:
		return gs->transport->on_packet(sk, gs, kind, seg);
	}
}

/* --- notes -------------------------------------------------------------- */

/* struct gl_note - what LOCAL_IN saw while a process owned the socket */
struct gl_note {
	struct work_struct work;
	struct hlist_node node;	/* in gl_noted */
	struct sock *sk;	/* a reference */
	struct gl_seg seg;
	enum gl_kind kind;
};

/* A bound on memory: a process that sleeps with the socket must not let the
 * network fill it.  TCP bounds the backlog in the same way.
 */
#define GL_NOTES_MAX	4096

/* The notes that wait, by their sockets.  Who owns one looks here, without the spin lock
 * under which they were written; seldom, so that one lock will do.
 */
static DEFINE_HASHTABLE(gl_noted, 6);
static DEFINE_SPINLOCK(gl_noted_lock);

static struct workqueue_struct *gl_note_wq;
static atomic_t gl_notes = ATOMIC_INIT(0);

static void gl_note_work(struct work_struct *work)
{
	struct gl_note *note = container_of(work, struct gl_note, work);
	struct sock *sk = note->sk;

	/* Wait for the owner, who takes the packet from the backlog as he goes.
	 * Then go on as a softirq would, and not as the next owner: the kick
	 * calls tcp_release_cb(), which may let go of the ownership (6.1).
	 */
	for (;;) {
		lock_sock(sk);
		release_sock(sk);
		spin_lock_bh(&sk->sk_lock.slock);
		if (!sock_owned_by_user(sk))
			break;
		spin_unlock_bh(&sk->sk_lock.slock);
	}
	spin_lock(&gl_noted_lock);
	hash_del(&note->node);
	spin_unlock(&gl_noted_lock);
	gl_receive(sk, note->kind, &note->seg, true);
	if (((1 << sk->sk_state) & GL_STATES) && gl_sock(sk))
		gl_kicked(sk, gl_sock(sk));
	spin_unlock_bh(&sk->sk_lock.slock);
	sock_put(sk);
	kfree(note);
	atomic_dec(&gl_notes);
}

/**
 * gl_note() - leave a note, because a process owns the socket
 * @sk: the socket, one of ours; only its spin lock is held
 * @kind: as for gl_receive()
 * @seg: as for gl_receive()
 *
 * Return: true if it will be read.
 */
bool gl_note(struct sock *sk, enum gl_kind kind, const struct gl_seg *seg)
{
	struct gl_note *note;

	gl_inc_stats(sock_net(sk), GL_MIB_KICKSOWNED);
	if (atomic_inc_return(&gl_notes) > GL_NOTES_MAX)
		goto full;
	note = kmalloc(sizeof(*note), GFP_ATOMIC | __GFP_NOWARN);
	if (!note)
		goto full;
	sock_hold(sk);
	note->sk = sk;
	note->seg = *seg;
	note->kind = kind;
	spin_lock(&gl_noted_lock);
	hash_add(gl_noted, &note->node, (unsigned long)sk);
	spin_unlock(&gl_noted_lock);
	INIT_WORK(&note->work, gl_note_work);
	queue_work(gl_note_wq, &note->work);
	return true;
full:
	atomic_dec(&gl_notes);
	gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
	return false;
}

/**
 * gl_noted_end() - where does the important packet end that was noted last for a socket?
 * @sk: the socket, locked, or owned by the caller
 *
 * Return: the end, or that of what TCP has in order if there is no note: memory was short.
 */
u32 gl_noted_end(struct sock *sk)
{
	u32 end = tcp_sk(sk)->rcv_nxt;
	struct gl_note *note;

	spin_lock_bh(&gl_noted_lock);
	/* The newest comes first. */
	hash_for_each_possible(gl_noted, note, node, (unsigned long)sk)
		if (note->sk == sk && note->kind == GL_IMPORTANT) {
			end = note->seg.end_seq;
			break;
		}
	spin_unlock_bh(&gl_noted_lock);
	return end;
}

int gl_note_init(void)
{
	gl_note_wq = alloc_workqueue("greenlane", WQ_MEM_RECLAIM | WQ_HIGHPRI | WQ_PERCPU, 0);
	return gl_note_wq ? 0 : -ENOMEM;
}

void gl_note_exit(void)
{
	destroy_workqueue(gl_note_wq);
}
