// SPDX-License-Identifier: GPL-2.0
/* DCQCN: the congestion control of RoCE, for TCP
 *
 *	Yibo Zhu, Haggai Eran, Daniel Firestone, Chuanxiong Guo, Marina Lipshteyn,
 *	Yehonatan Liron, Jitendra Padhye, Shachar Raindel, Mohamad Haj Yahia, Ming Zhang:
 *	"Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015
 *
 * A flow starts at line rate.  It is controlled by a rate instead of a window, and TCP's pacing
 * enforces the rate.  ECN marks reduce the rate; time and bytes without a mark increase it again.
 * Losses do not change it.
 *
 *	reaction point             congestion point           notification point
 *	(sender)                   (switch)                   (receiver)
 *	d d d d d d d d d  ----->  CE above Kmin    ----->    d d* d* d
 *	                                                       |
 *	rate *= 1 - alpha / 2  <-----------------------------  ECE, at once,
 *	at most each 50 us                                     at most each 50 us
 *
 * The congestion point is sch_color with `ecn MIN MAX PROB`.  The arithmetic of the reaction point
 * is in dcqcn_rate.c.  The rest is in this file.
 *
 * A NIC reports congestion with a packet of its own, the CNP.  TCP has the ECE bit of its ACKs.  A
 * receiver that runs dcqcn sets ECE once per CNP; any other receiver sets it until the sender
 * reports a reduction (RFC 3168).  So the sender itself enforces the minimum of 50 us between two
 * reductions, for every kind of receiver.
 *
 * If ECN was not negotiated there is no signal to react to, and the connection runs reno.
 *
 * Losses are repaired in one of three ways (net.ipv4.dcqcn_recovery):
 *
 *	0  TCP's SACK
 *	1  go-back-N, as RoCE's first version does: the receiver discards data that is out of order,
 *	   and the sender sends everything again from the first missing packet
 *	2  IRN (Mittal et al., "Revisiting Network Support for RDMA", SIGCOMM 2018): TCP's SACK, a
 *	   window of one BDP and two constant RTOs
 *
 * Documentation/dart.rst explains the differences from the paper.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/gl_rate.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "dcqcn_rate.h"
#include "tcp_dcqcn.h"

/* The minimum window of IRN in packets: a receiver may delay the ACK of a single packet. */
#define DCQCN_IRN_MIN		2
/* IRN uses RTO_low if fewer packets are in flight (IRN §3.1). */
#define DCQCN_IRN_FEW		3

enum dcqcn_recovery {
	DCQCN_SACK,
	DCQCN_GO_BACK_N,
	DCQCN_IRN,
};

/* Departures differ by more than 16 ns, the transmission time of 1500 bytes at 750 Gbit/s, and u32
 * counts 68 s of these.
 */
#define DCQCN_BACK_SHIFT	4

/**
 * struct dcqcn - the state of a flow
 * @rate: state of the reaction point
 * @cap: upper limit of the rate, kB/s; U32_MAX for no limit
 * @sent: tp->bytes_sent at the last update of @rate
 * @cut_at: time of the last reduction, µs; valid if @was_cut
 * @echo_at: time of the last ECE that was sent, µs; valid if @echoed
 * @echo_out: tp->segs_out when that was due
 * @back: the sequence number that go-back-N has gone back to; valid if @went_back
 * @back_at: departure of the first packet after that, TCP's clock, ns >> DCQCN_BACK_SHIFT
 * @was_cut: the rate has been reduced
 * @echoed: an ECE has been sent
 * @paces: TCP's own pacing is on because of dcqcn
 * @went_back: @back and @back_at are set
 * @recovery: enum dcqcn_recovery
 *
 * All fields: socket lock.
 */
struct dcqcn {
	struct dcqcn_rate	rate;
	u32			cap;
	u32			sent;
	u32			cut_at;
	u32			echo_at;
	u32			echo_out;
	u32			back;
	u32			back_at;
	u8			was_cut:1,
				echoed:1,
				paces:1,
				went_back:1,
				recovery:2;
};

/**
 * struct dcqcn_net - net.ipv4.dcqcn_* of a namespace
 * @mbit: rate of the links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 * @ai_kbit: additive increase, kbit/s; 0 for 1/1000 of the link's rate
 * @hai_kbit: hyper increase, kbit/s; 0 for 1/200 of the link's rate
 * @counter: bytes between two increase events
 * @timer_us: time between two increase events
 * @alpha_us: time without a notification after which alpha decays
 * @g: alpha's gain is 2^-@g
 * @fast: number of increase events in fast recovery
 * @cnp_us: the minimum time between two notifications
 * @burst_us: the longest burst that TCP may hand down, as time at the flow's rate
 * @recovery: enum dcqcn_recovery of new connections
 * @rto_low_us: RTO of IRN with fewer than DCQCN_IRN_FEW packets in flight
 * @rto_high_us: RTO of IRN otherwise
 * @sysctl: registered for the namespace's life
 */
struct dcqcn_net {
	unsigned int		mbit;
	unsigned int		ai_kbit;
	unsigned int		hai_kbit;
	unsigned int		counter;
	unsigned int		timer_us;
	unsigned int		alpha_us;
	unsigned int		g;
	unsigned int		fast;
	unsigned int		cnp_us;
	unsigned int		burst_us;
	unsigned int		recovery;
	unsigned int		rto_low_us;
	unsigned int		rto_high_us;
	struct ctl_table_header	*sysctl;
};

static unsigned int dcqcn_net_id __read_mostly;

static struct dcqcn_net *dcqcn_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), dcqcn_net_id);
}

static struct dcqcn *dcqcn_of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static struct gl_rate_link dcqcn_path(const struct sock *sk)
{
	return gl_rate_link(sk, READ_ONCE(dcqcn_net(sk)->mbit));
}

/**
 * dcqcn_line() - the rate of the link by which a socket's packets leave
 * @sk: the socket
 *
 * Return: kB/s (of 1000 bytes).
 */
u32 dcqcn_line(const struct sock *sk)
{
	return dcqcn_path(sk).mbit * 125;
}
EXPORT_SYMBOL_GPL(dcqcn_line);

static void dcqcn_params(const struct dcqcn_net *dn, u32 mbit, struct dcqcn_params *p)
{
	p->max = mbit * 125;
	/* The authors' simulator has 40 and 200 Mbit/s at 40 Gbit/s.  8 kbit/s are 1 kB/s. */
	p->ai = max((READ_ONCE(dn->ai_kbit) ?: mbit) / 8, 1U);
	p->hai = max((READ_ONCE(dn->hai_kbit) ?: mbit * 5) / 8, 1U);
	p->counter = READ_ONCE(dn->counter);
	p->timer_us = READ_ONCE(dn->timer_us);
	p->alpha_us = READ_ONCE(dn->alpha_us);
	p->g = READ_ONCE(dn->g);
	p->fast = READ_ONCE(dn->fast);
}

/* --- the reaction point ---------------------------------------------------- */

static u32 dcqcn_now(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

static void dcqcn_set_pacing(struct sock *sk, u32 extra)
{
	const struct dcqcn *ca = dcqcn_of(sk);

	gl_rate_pace(sk, min(ca->rate.cur, ca->cap), extra);
}

/* Bring the reaction point up to date. */
static void dcqcn_advance(struct sock *sk, const struct dcqcn_params *p)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dcqcn *ca = dcqcn_of(sk);
	u32 sent = (u32)tp->bytes_sent - ca->sent;

	ca->sent = tp->bytes_sent;
	dcqcn_rate_fit(&ca->rate, p);
	dcqcn_rate_advance(&ca->rate, p, dcqcn_now(sk), sent);
}

/* Reduce the rate, but ignore a notification that follows the last one too closely: "at most one
 * CNP every N microseconds" (§3.2).
 */
static void dcqcn_notified(struct sock *sk, const struct dcqcn_params *p)
{
	struct dcqcn *ca = dcqcn_of(sk);
	u32 now = dcqcn_now(sk);

	if (ca->was_cut && now - ca->cut_at < READ_ONCE(dcqcn_net(sk)->cnp_us))
		return;
	ca->was_cut = 1;
	ca->cut_at = now;
	dcqcn_rate_cut(&ca->rate, p, now);
}

static void dcqcn_look(struct sock *sk, bool notified)
{
	struct gl_rate_link path = dcqcn_path(sk);
	struct dcqcn_params p;

	dcqcn_params(dcqcn_net(sk), path.mbit, &p);
	dcqcn_advance(sk, &p);
	if (notified)
		dcqcn_notified(sk, &p);
	dcqcn_set_pacing(sk, path.extra);
}

/* --- go-back-N ---------------------------------------------------------------- */

/* The receiver: discard data behind a missing packet.  TCP has sent the duplicate ACK for it, which
 * is the NACK, and has not processed the next packet yet.
 */
static void dcqcn_discard(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct rb_node *p;

	if (likely(RB_EMPTY_ROOT(&tp->out_of_order_queue)))
		return;
	while ((p = rb_first(&tp->out_of_order_queue))) {
		rb_erase(p, &tp->out_of_order_queue);
		kfree_skb_reason(rb_to_skb(p), SKB_DROP_REASON_TCP_OFO_QUEUE_PRUNE);
	}
	tp->ooo_last_skb = NULL;
	tcp_sack_reset(&tp->rx_opt);
}

/* The receiver has discarded a packet that it SACKed: it is lost, or in flight again. */
static void dcqcn_unsack(struct tcp_sock *tp, struct tcp_skb_cb *cb, u32 segs, bool in_flight)
{
	cb->sacked &= ~TCPCB_SACKED_ACKED;
	tp->sacked_out -= segs;
	cb->sacked |= TCPCB_LOST;
	tp->lost_out += segs;
	if (!in_flight)
		return;
	cb->sacked |= TCPCB_SACKED_RETRANS;
	tp->retrans_out += segs;
}

static void dcqcn_lose(struct tcp_sock *tp, struct tcp_skb_cb *cb, u32 segs)
{
	if (cb->sacked & TCPCB_SACKED_RETRANS) {
		cb->sacked &= ~TCPCB_SACKED_RETRANS;
		tp->retrans_out -= segs;
	}
	if (cb->sacked & TCPCB_LOST)
		return;
	cb->sacked |= TCPCB_LOST;
	tp->lost_out += segs;
	tp->lost += segs;
}

/* Forget all SACK blocks; with @all, have TCP send all unacknowledged packets again, in order.  A
 * packet that has left since the sender went back is in flight, though the receiver has discarded
 * an earlier copy.
 */
static void dcqcn_again(struct sock *sk, bool all)
{
	const struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;

	for (skb = tcp_rtx_queue_head(sk); skb; skb = skb_rb_next(skb)) {
		struct tcp_skb_cb *cb = TCP_SKB_CB(skb);
		u32 left = skb->skb_mstamp_ns >> DCQCN_BACK_SHIFT;
		bool late = (s32)(left - ca->back_at) >= 0;

		/* Before 6.15, TCP has not removed acknowledged packets yet. */
		if (!after(cb->end_seq, tp->snd_una))
			continue;
		if (cb->sacked & TCPCB_SACKED_ACKED)
			dcqcn_unsack(tp, cb, tcp_skb_pcount(skb), late && !all);
		if (all)
			dcqcn_lose(tp, cb, tcp_skb_pcount(skb));
	}
	/* Without SACK, TCP counts duplicate ACKs here. */
	if (!tcp_is_sack(tp))
		tp->sacked_out = 0;
	tp->retransmit_skb_hint = NULL;
	/* The recovery ends when all of these packets are acknowledged. */
	tp->high_seq = tp->snd_nxt;
}

static void dcqcn_go_back(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dcqcn *ca = dcqcn_of(sk);

	ca->went_back = 1;
	ca->back = tp->snd_una;
	/* The departure of the next packet: fq may still hold packets that TCP has sent. */
	ca->back_at = max(tp->tcp_wstamp_ns, tp->tcp_clock_cache) >> DCQCN_BACK_SHIFT;
	dcqcn_again(sk, true);
}

/* The sender: TCP has processed an ACK's SACK blocks, and has not looked for losses yet.  A block
 * is a NACK for the first unacknowledged packet.  Another NACK for the same packet is ignored: a
 * packet that left before the sender went back may have caused it (TLT §5.2).
 */
static void dcqcn_nacked(struct sock *sk)
{
	const struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (ca->went_back)
		dcqcn_again(sk, false);
	else
		dcqcn_go_back(sk);
	/* RACK would find single packets lost. */
	tp->rack.advanced = 0;
}

static void dcqcn_go_back_n(struct sock *sk)
{
	struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	dcqcn_discard(sk);
	/* An earlier copy that arrives late does not prove that the later ones have arrived. */
	tp->undo_marker = 0;
	/* After a timeout F-RTO would send new data first, which the receiver discards. */
	tp->frto = 0;
	if (ca->went_back && after(tp->snd_una, ca->back))
		ca->went_back = 0;
	if (tp->sacked_out)
		dcqcn_nacked(sk);
	/* TLT must not take the block of a discarded packet for the echo of its next copy. */
	memset(tp->recv_sack_cache, 0, sizeof(tp->recv_sack_cache));
}

/* After a timeout, too, the receiver needs all packets again: also those that have left recently,
 * which TCP does not count as lost.
 */
static void dcqcn_set_state(struct sock *sk, u8 new_state)
{
	if (new_state == TCP_CA_Loss && dcqcn_of(sk)->recovery == DCQCN_GO_BACK_N)
		dcqcn_go_back(sk);
}

/* --- IRN ----------------------------------------------------------------------- */

/* Set the RTO by the packets in flight, and those that wait to be sent.  On a path that is longer
 * than the constant, each packet would be sent again.  TCP's timers expire at a tick: a tick more,
 * so that the RTO is not shorter.  After a timeout TCP's backoff applies.
 */
static void dcqcn_set_rto(struct sock *sk)
{
	const struct dcqcn_net *dn = dcqcn_net(sk);
	struct inet_connection_sock *icsk = inet_csk(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 n = tcp_packets_in_flight(tp) +
		DIV_ROUND_UP(tp->write_seq - tp->snd_nxt, tp->mss_cache);
	u32 us = n < DCQCN_IRN_FEW ? READ_ONCE(dn->rto_low_us) : READ_ONCE(dn->rto_high_us);

	if (!icsk->icsk_backoff)
		icsk->icsk_rto = usecs_to_jiffies(max(us, gl_rate_rtt(sk, 0))) + 1;
}

/* TCP has set the RTO by the RTT of an ACK, and has not armed its timer yet. */
static void dcqcn_pkts_acked(struct sock *sk, const struct ack_sample *sample)
{
	if (dcqcn_of(sk)->recovery == DCQCN_IRN)
		dcqcn_set_rto(sk);
}

/* TCP is about to send.  It does not arm its timer again for packets that follow others: a timer of
 * RTO_low becomes one of RTO_high.
 */
static void dcqcn_raise_rto(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);
	u32 rto = icsk->icsk_rto;

	dcqcn_set_rto(sk);
	if (icsk->icsk_rto > rto && icsk->icsk_pending == ICSK_TIME_RETRANS)
		inet_csk_reset_xmit_timer(sk, ICSK_TIME_RETRANS, icsk->icsk_rto, TCP_RTO_MAX);
}

static void dcqcn_release(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (dcqcn_of(sk)->recovery == DCQCN_IRN && tcp_sk(sk)->srtt_us && !icsk->icsk_backoff)
		icsk->icsk_rto = __tcp_set_rto(tcp_sk(sk));
	gl_leave_rate(sk, dcqcn_of(sk)->paces);
}

/* --- ACKs and pauses -------------------------------------------------------------- */

static struct tcp_congestion_ops dcqcn_ops, dcqcn_reno;

/* In SYN_SENT an application can select dcqcn before the peer has answered the SYN, and TCP calls
 * init() only then.  Return: true if the peer has refused ECN: the connection has fallen back.
 */
static bool dcqcn_is_refused(struct sock *sk)
{
	if (likely(gl_tcp_ecn(tcp_sk(sk))) || inet_csk(sk)->icsk_ca_ops != &dcqcn_ops)
		return false;
	dcqcn_release(sk);
	gl_fall_back(sk, &dcqcn_reno);
	INET_ECN_dontxmit(sk);
	return true;
}

static void dcqcn_in_ack_event(struct sock *sk, u32 flags)
{
	/* TCP calls this for the ACK of the SYN before init(). */
	if (sk->sk_state == TCP_SYN_SENT || dcqcn_is_refused(sk))
		return;
	dcqcn_look(sk, flags & CA_ACK_ECE);
	if (dcqcn_of(sk)->recovery == DCQCN_GO_BACK_N)
		dcqcn_go_back_n(sk);
	/* dcqcn_min_tso_segs() limits bursts as they are sent.  The limit must not apply to data
	 * that the application writes before.
	 */
	gl_gso_default(sk);
}

/* The first packet after a pause, in which no ACK has updated the rate. */
static void dcqcn_tx_start(struct sock *sk)
{
	if (!dcqcn_is_refused(sk))
		dcqcn_look(sk, false);
}

/**
 * dcqcn_set_cap() - limit the rate that the reaction point computes
 * @sk: a socket whose congestion control is built on dcqcn, locked
 * @cap: upper limit, kB/s; U32_MAX for no limit
 */
void dcqcn_set_cap(struct sock *sk, u32 cap)
{
	struct dcqcn *ca = dcqcn_of(sk);

	if (ca->cap == cap)
		return;
	ca->cap = cap;
	dcqcn_set_pacing(sk, dcqcn_path(sk).extra);
}
EXPORT_SYMBOL_GPL(dcqcn_set_cap);

/* --- the notification point ------------------------------------------------- */

/* A packet with CE was received.  TCP sets ECE in its next ACK; send that ACK at once. */
static void dcqcn_marked(struct sock *sk)
{
	struct dcqcn *ca = dcqcn_of(sk);
	u32 now = tcp_clock_us();

	if (ca->echoed && now - ca->echo_at < READ_ONCE(dcqcn_net(sk)->cnp_us))
		return;
	ca->echoed = 1;
	ca->echo_at = now;
	ca->echo_out = tcp_sk(sk)->segs_out;
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* RFC 3168 repeats ECE until the peer sends CWR.  DCQCN reports a mark once, but not less: while a
 * process owns the socket TCP defers the ACK (tcp_backlog_ack_defer), and the next packet of the
 * backlog may have no mark.
 */
static void dcqcn_unmarked(struct sock *sk)
{
	const struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);

	if (!gl_tcp_ecn_rfc3168(tp))
		return;
	/* A CWR that arrived behind the mark has removed the report, too. */
	if (ca->echoed && ca->echo_out == tp->segs_out)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

/* A packet of data was received.  IRN's NIC acknowledges each, and RTO_low is shorter than TCP's
 * delay of an ACK.
 */
static void dcqcn_received(struct sock *sk)
{
	if (dcqcn_of(sk)->recovery == DCQCN_IRN)
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

static void dcqcn_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	switch (ev) {
	case CA_EVENT_TX_START:
		dcqcn_tx_start(sk);
		break;
	case CA_EVENT_ECN_IS_CE:
		dcqcn_marked(sk);
		dcqcn_received(sk);
		break;
	case CA_EVENT_ECN_NO_CE:
		dcqcn_unmarked(sk);
		dcqcn_received(sk);
		break;
	default:
		break;
	}
}

/* --- struct tcp_congestion_ops ------------------------------------------------ */

/* The window of IRN: a BDP of the network without queues (IRN §3.2); TCP has measured the RTT. */
static void dcqcn_irn_window(struct sock *sk, const struct gl_rate_link *path)
{
	u64 bdp = div_u64((u64)path->mbit * 125 * tcp_min_rtt(tcp_sk(sk)), USEC_PER_MSEC);

	gl_rate_set_cwnd(sk, max_t(u64, div_u64(bdp, gl_rate_packet(sk, path->extra)),
				   DCQCN_IRN_MIN));
}

static void dcqcn_set_window(struct sock *sk, const struct gl_rate_link *path)
{
	if (dcqcn_of(sk)->recovery == DCQCN_IRN && tcp_min_rtt(tcp_sk(sk)) != ~0U)
		dcqcn_irn_window(sk, path);
	else
		gl_rate_window(sk, path->mbit * 125);
}

static GL_CONG_CONTROL(dcqcn_cong_control, sk, rs)
{
	struct gl_rate_link path;

	if (sk->sk_state == TCP_SYN_SENT) {
		gl_pace_as_tcp(sk);
		return;
	}
	path = dcqcn_path(sk);
	dcqcn_set_window(sk, &path);
}

/* A loss does not change the rate. */
static u32 dcqcn_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 dcqcn_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static u32 dcqcn_min_tso_segs(struct sock *sk)
{
	const struct dcqcn *ca = dcqcn_of(sk);
	u32 least;

	if (gl_pace_is_lost(sk))
		dcqcn_set_pacing(sk, dcqcn_path(sk).extra);
	least = gl_rate_burst(sk, READ_ONCE(dcqcn_net(sk)->burst_us));
	/* The packet that go-back-N goes back to leaves alone: TLT makes the last packet of a burst
	 * important, and a NACK cannot report that this one is lost again.
	 */
	if (ca->recovery == DCQCN_GO_BACK_N && tcp_sk(sk)->lost_out && !tcp_sk(sk)->retrans_out)
		sk->sk_gso_max_segs = 1;
	if (ca->recovery == DCQCN_IRN)
		dcqcn_raise_rto(sk);
	return least;
}

static void dcqcn_init(struct sock *sk)
{
	struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct gl_rate_link path;
	struct dcqcn_params p;

	/* As dctcp: before the connection is established ECN has not been negotiated. */
	if ((!gl_tcp_ecn(tp) || !gl_net_stays(sk)) &&
	    !((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE))) {
		gl_fall_back(sk, &dcqcn_reno);
		INET_ECN_dontxmit(sk);
		return;
	}
	path = dcqcn_path(sk);
	dcqcn_params(dcqcn_net(sk), path.mbit, &p);
	dcqcn_rate_init(&ca->rate, &p, tcp_clock_us());
	ca->cap = U32_MAX;
	ca->sent = tp->bytes_sent;
	ca->was_cut = 0;
	ca->echoed = 0;
	ca->paces = 0;
	ca->went_back = 0;
	ca->recovery = READ_ONCE(dcqcn_net(sk)->recovery);
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE))
		return;
	ca->paces = gl_pacing_begin(sk);
	dcqcn_set_pacing(sk, path.extra);
	dcqcn_set_window(sk, &path);
	if (ca->recovery == DCQCN_IRN && sk->sk_state != TCP_SYN_SENT)
		dcqcn_set_rto(sk);
}

static struct tcp_congestion_ops dcqcn_reno __read_mostly = GL_RENO("dcqcn-reno");

static struct tcp_congestion_ops dcqcn_ops __read_mostly = {
	.name		= "dcqcn",
	.owner		= THIS_MODULE,
	.flags		= TCP_CONG_NEEDS_ECN,
	.init		= dcqcn_init,
	.release	= dcqcn_release,
	.ssthresh	= dcqcn_ssthresh,
	.undo_cwnd	= dcqcn_undo_cwnd,
	.cong_control	= dcqcn_cong_control,
	.in_ack_event	= dcqcn_in_ack_event,
	.pkts_acked	= dcqcn_pkts_acked,
	.set_state	= dcqcn_set_state,
	.cwnd_event	= dcqcn_cwnd_event,
#ifdef GL_HAVE_TX_START
	.cwnd_event_tx_start = dcqcn_tx_start,
#endif
	.min_tso_segs	= dcqcn_min_tso_segs,
};

/* --- net.ipv4.dcqcn_* -------------------------------------------------------- */

static unsigned int dcqcn_mbit_max = LINK_SPEED_MBIT_MAX;
static unsigned int dcqcn_kbit_max = 1600000000;
static unsigned int dcqcn_counter_min = 65536;
static unsigned int dcqcn_counter_max = 1 << 30;
static unsigned int dcqcn_us_max = USEC_PER_SEC;
/* With a gain of 2^-10 alpha decays in 15,000 steps, which may have to be applied at once. */
static unsigned int dcqcn_g_max = 10;

#define DCQCN_SYSCTL(name, field, least, most)	\
	GL_SYSCTL_UINT("dcqcn_" name, struct dcqcn_net, field, least, most)

static const struct ctl_table dcqcn_sysctl_template[] = {
	DCQCN_SYSCTL("rate", mbit, SYSCTL_ZERO, &dcqcn_mbit_max),
	DCQCN_SYSCTL("ai", ai_kbit, SYSCTL_ZERO, &dcqcn_kbit_max),
	DCQCN_SYSCTL("hai", hai_kbit, SYSCTL_ZERO, &dcqcn_kbit_max),
	DCQCN_SYSCTL("counter", counter, &dcqcn_counter_min, &dcqcn_counter_max),
	DCQCN_SYSCTL("timer", timer_us, SYSCTL_ONE, &dcqcn_us_max),
	DCQCN_SYSCTL("alpha_timer", alpha_us, SYSCTL_ONE, &dcqcn_us_max),
	DCQCN_SYSCTL("g", g, SYSCTL_ONE, &dcqcn_g_max),
	DCQCN_SYSCTL("fast", fast, SYSCTL_ONE, SYSCTL_ONE_HUNDRED),
	DCQCN_SYSCTL("cnp", cnp_us, SYSCTL_ZERO, &dcqcn_us_max),
	DCQCN_SYSCTL("burst", burst_us, SYSCTL_ZERO, SYSCTL_ONE_THOUSAND),
	DCQCN_SYSCTL("recovery", recovery, SYSCTL_ZERO, SYSCTL_TWO),
	DCQCN_SYSCTL("rto_low", rto_low_us, SYSCTL_ONE, &dcqcn_us_max),
	DCQCN_SYSCTL("rto_high", rto_high_us, SYSCTL_ONE, &dcqcn_us_max),
};

static int __net_init dcqcn_net_init(struct net *net)
{
	struct dcqcn_net *dn = net_generic(net, dcqcn_net_id);

	/* From §6.2 of the paper and Dart §VI-A, except for the burst, which
	 * is four packets in Dart, and a quarter of a datacenter's RTT here.
	 */
	dn->counter = 10 * 1000 * 1000;
	dn->timer_us = 55;
	dn->alpha_us = 55;
	dn->g = 8;
	dn->fast = 5;
	dn->cnp_us = 50;
	dn->burst_us = 5;
	/* IRN §4.1 */
	dn->rto_low_us = 100;
	dn->rto_high_us = 320;
	dn->sysctl = gl_sysctl_add(net, dcqcn_sysctl_template,
				   ARRAY_SIZE(dcqcn_sysctl_template), dn);
	return dn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit dcqcn_net_exit(struct net *net)
{
	struct dcqcn_net *dn = net_generic(net, dcqcn_net_id);

	gl_sysctl_remove(dn->sysctl);
}

static struct pernet_operations dcqcn_net_ops = {
	.init	= dcqcn_net_init,
	.exit	= dcqcn_net_exit,
	.id	= &dcqcn_net_id,
	.size	= sizeof(struct dcqcn_net),
};

static int __init dcqcn_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct dcqcn) > ICSK_CA_PRIV_SIZE);

	err = register_pernet_subsys(&dcqcn_net_ops);
	if (err)
		return err;
	err = tcp_register_congestion_control(&dcqcn_ops);
	if (err)
		unregister_pernet_subsys(&dcqcn_net_ops);
	return err;
}

static void __exit dcqcn_module_exit(void)
{
	tcp_unregister_congestion_control(&dcqcn_ops);
	unregister_pernet_subsys(&dcqcn_net_ops);
}

module_init(dcqcn_module_init);
module_exit(dcqcn_module_exit);

MODULE_DESCRIPTION("DCQCN: rate-based congestion control by ECN, for TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
