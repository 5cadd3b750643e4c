// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a connection.
 *
 * include/net/rd_core.h describes the core.  rd_sender.c and rd_receiver.c are a connection's two
 * ends, and rd_path.c is its link.  This file has the callbacks of TCP and of the tagging layer.
 */
#include <linux/module.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "rd_internal.h"

/* --- callbacks of the tagging layer ---------------------------------------- */

/**
 * rd_on_packet() - gl_transport's on_packet()
 * @sk: the connection
 * @gs: its state
 * @kind: kind of the packet
 * @seg: the packet
 *
 * Return: GL_CONSUME for a request, credit or probe, else GL_PASS.
 */
enum gl_verdict rd_on_packet(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			     const struct gl_seg *seg)
{
	struct rd_sock *rs = rd_sock(gs);

	switch (kind - gs->transport->protocol->kind) {
	case RD_CREDIT:
		rd_credited(sk, rs, seg);
		return GL_CONSUME;
	case RD_REQUEST:
	case RD_PROBE:
		rd_requested(sk, rs, seg, kind == rd_kind(gs, RD_PROBE));
		return GL_CONSUME;
	default:
		return GL_PASS;
	}
}
EXPORT_SYMBOL_GPL(rd_on_packet);

/**
 * rd_on_kick() - gl_transport's on_kick()
 * @sk: the connection
 * @gs: its state
 */
void rd_on_kick(struct sock *sk, struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);
	u64 now = ktime_get_ns();

	/* MD5 or TCP-AO was enabled in mid-connection: requests and credits are not signed, so
	 * this end must not send any more.
	 */
	if (rs->closed || gl_tcp_signed(sk)) {
		rd_fall_back(sk, rs);
		return;
	}
	rd_receiver_kicked(sk, rs, now);
	rd_sender_kicked(sk, rs, now);
}
EXPORT_SYMBOL_GPL(rd_on_kick);

/* Restore TCP's own window and pacing rate, which held the core's values until now.  TCP may have
 * entered CWR while the window was 0, which left a threshold of 2 packets; and it would warn about
 * a reduction from prior_cwnd 0.
 */
static void rd_restore(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	inet_csk(sk)->icsk_mtup.enabled |= READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_mtu_probing) > 1;
	tcp_snd_cwnd_set(tp, gl_cwnd_left(tp));
	tp->snd_ssthresh = TCP_INFINITE_SSTHRESH;
	if (!tp->prior_cwnd)
		tp->prior_cwnd = TCP_INIT_CWND;
	gl_pace_as_tcp(sk);
	gl_gso_default(sk);
}

static void rd_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	struct rd_sock *rs = rd_sock(gs);

	if (on)
		return;
	rd_send_closed(sk, rs);
	rd_leave_link(rs);
	rd_restore(sk);
	/* TCP sends data that has waited for credits when the process releases the socket. */
	if (sock_owned_by_user(sk) && sk->sk_state != TCP_CLOSE)
		gl_xmit_at_release(sk);
}

/**
 * rd_on_info() - gl_transport's on_info()
 * @gs: the state of a connection
 * @info: filled in
 */
void rd_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
	const struct rd_sock *rs = container_of(gs, struct rd_sock, gs);

	info->credits_sent = rs->credit;
	info->credits_received = rs->received;
	info->credits_wanted = rs->requesting ? max_t(s32, rs->credit_end - rs->seq, 0) : 0;
	if (!rd_transport(rs)->first)
		return;
	info->unscheduled = rs->first.unscheduled;
	info->bdp = rd_first_bytes(gs->sk, gs);
}
EXPORT_SYMBOL_GPL(rd_on_info);

/* --- callbacks of TCP ------------------------------------------------------ */

/* Credits set the window and the pace, not ACKs.  An active open calls this once before init(),
 * when the peer is not known yet: set the pacing rate as TCP would.
 */
static GL_CONG_CONTROL(rd_cong_control, sk, sample)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	if (sk->sk_state == TCP_SYN_SENT)
		gl_pace_as_tcp(sk);
	if (gs)
		rd_postpone_rto(sk, rd_sock(gs));
}

/**
 * rd_in_ack_event() - tcp_congestion_ops' in_ack_event()
 * @sk: the connection
 * @flags: CA_ACK_* of the ACK
 *
 * When TCP detects that all its retransmissions were spurious, it undoes the recovery: it restores
 * the window, and marks no packet as lost any more.  Here credits set the window, and packets that
 * were lost would wait for an RTO, because RACK has forgotten them.  Without a marker TCP does not
 * undo.
 */
void rd_in_ack_event(struct sock *sk, u32 flags)
{
	tcp_sk(sk)->undo_marker = 0;
}
EXPORT_SYMBOL_GPL(rd_in_ack_event);

static u32 rd_undo_cwnd(struct sock *sk)
{
	return max(tcp_snd_cwnd(tcp_sk(sk)), 1U);
}

static void rd_init(struct sock *sk)
{
	const struct rd_transport *rt = container_of(gl_transport(sk), struct rd_transport, t);
	struct gl_sock *gs = gl_attach(sk);

	if (gs) {
		struct rd_sock *rs = rd_sock(gs);

		rs->alarm.at = RD_NEVER;
		rs->seen_seq = U32_MAX;		/* credits begin with 1 */
		if (gs->peer == GREENLANE_PEER_YES) {
			inet_csk(sk)->icsk_mtup.enabled = 0;
			rd_keep(sk);
			return;
		}
		gl_detach(sk);
	}
	gl_fall_back(sk, rt->fallback);
}

/* --- a transport ----------------------------------------------------------- */

static bool rd_has_rows(const struct gl_protocol *protocol)
{
	const u8 answers = GL_KIND_DATA | GL_KIND_ANSWERED | GL_KIND_TCPS;
	const struct gl_kind *kind = protocol->kind;

	if (protocol->kinds < RD_KINDS || protocol->counters < RD_COUNTERS ||
	    protocol->control != &kind[RD_CONTROL] || protocol->answer != &kind[RD_PROBE_ACK])
		return false;
	if (kind[RD_SCHEDULED].code || kind[RD_UNSCHEDULED].code || kind[RD_CONTROL].code ||
	    !kind[RD_REQUEST].code || !kind[RD_CREDIT].code || !kind[RD_PROBE].code)
		return false;
	return !((kind[RD_REQUEST].flags | kind[RD_CREDIT].flags) & answers) &&
	       kind[RD_PROBE].flags & GL_KIND_ANSWERED && kind[RD_PROBE].words;
}

static bool rd_has_policy(const struct rd_policy *policy)
{
	return policy && policy->mbit && policy->pick && policy->cost &&
	       (!policy->grants || (policy->slots && policy->cumulative));
}

static bool rd_has_first(const struct rd_first_rtt *first, const struct rd_policy *policy)
{
	if (!first)
		return true;
	return first->begin && first->allow && first->credited && first->lost &&
	       !first->waiting == rd_is_exact(policy);
}

static void rd_fill(struct gl_transport *t)
{
	t->always = true;
	t->ops.init = rd_init;
	t->ops.release = gl_release;
	t->ops.ssthresh = tcp_reno_ssthresh;
	t->ops.undo_cwnd = rd_undo_cwnd;
	t->ops.cong_control = rd_cong_control;
	t->ops.in_ack_event = t->ops.in_ack_event ?: rd_in_ack_event;
	t->ops.min_tso_segs = rd_min_tso_segs;
	t->on_xmit = t->on_xmit ?: rd_on_xmit;
	t->on_packet = t->on_packet ?: rd_on_packet;
	t->on_kick = t->on_kick ?: rd_on_kick;
	t->on_switch = rd_on_switch;
	t->on_info = t->on_info ?: rd_on_info;
	t->on_data = rd_on_data;
	if (container_of(t, struct rd_transport, t)->policy->trims) {
		t->on_trimmed = rd_trimmed;
		t->on_named = rd_named;
	}
}

/**
 * rd_complete() - the complete() of a receiver-driven transport
 * @t: the transport, whose protocol, policy and size of the state are set
 *
 * The core keeps name, owner and in_ack_event() of its congestion control, and sets all other
 * callbacks, and on_switch().  on_xmit(), on_packet(), on_kick(), on_info() and in_ack_event() may
 * be NULL: the core sets its own.  A transport's own one calls the core's for the rest.
 *
 * Return: 0, or an error: -EINVAL if a table does not begin with the core's rows, or if a
 * mandatory callback or table is NULL.
 */
int rd_complete(struct gl_transport *t)
{
	const struct rd_transport *rt = container_of(t, struct rd_transport, t);

	if (!t->protocol || !rd_has_rows(t->protocol) || !rd_has_policy(rt->policy) ||
	    !rd_has_first(rt->first, rt->policy) || !rt->fallback ||
	    t->sock_size < sizeof(struct rd_sock))
		return -EINVAL;
	rd_fill(t);
	return 0;
}
EXPORT_SYMBOL_GPL(rd_complete);

static int __init rd_core_init(void)
{
	rd_path_init();
	return 0;
}

static void __exit rd_core_exit(void)
{
	rd_path_exit();
}

module_init(rd_core_init);
module_exit(rd_core_exit);

MODULE_DESCRIPTION("Receiver-driven transports: requests, credits and their queue");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
