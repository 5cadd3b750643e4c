// SPDX-License-Identifier: GPL-2.0
/* TIMELY: a rate from the RTT's gradient, for TCP
 *
 *	Radhika Mittal, Vinh The Lam, Nandita Dukkipati, Emily Blem, Hassan Wassel, Monia Ghobadi,
 *	Amin Vahdat, Yaogong Wang, David Wetherall, David Zats: "TIMELY: RTT-based Congestion
 *	Control for the Datacenter", SIGCOMM 2015
 *
 * A queue that grows makes the RTT of each segment longer than that of the one before.  So a sender
 * needs no help of switches or receivers: it compares successive RTTs, and reduces its rate by
 * their difference.  A loss does not change the rate.
 *
 *	segment 1  |<---- RTT ---->|			rate
 *	segment 2     |<------ RTT ------->|		rate *= 1 - beta (difference / base RTT)
 *	segment 3        |<----- RTT ----->|		rate += delta
 *
 * The arithmetic is in timely_rate.c.  This file decides which RTTs are samples, and enforces the
 * rate by TCP's pacing.
 *
 * A completion event is the ACK with which timely_segment more bytes are delivered, a base RTT
 * after the previous event at the earliest, or that ends the application's data.  Its RTT is the
 * last packet's, by TCP's clock, which starts when the packet leaves.  An ACK of data that was sent
 * twice is no sample: TCP has its RTT from a time stamp, in milliseconds.
 *
 * Documentation/timely.rst lists the differences from the paper.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/gl_rate.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "timely_rate.h"

/* After this number of base RTTs without data in flight a connection starts again.  The paper's
 * flows are messages, and each starts anew; a connection has many.
 */
#define TIMELY_IDLE	8

/**
 * struct timely - the state of a flow
 * @rate: the rate
 * @delivered: tp->delivered at the last completion event
 * @event_at: time of that, us
 * @idle_at: time since when no data is in flight, us; valid if not @active
 * @retrans: tp->total_retrans when no retransmission was in flight
 * @active: data is in flight or waits for its pace; the namespace counts the flow
 * @paces: TCP's own pacing is on because of timely
 *
 * The socket lock protects all fields.
 */
struct timely {
	struct timely_rate	rate;
	u32			delivered;
	u32			event_at;
	u32			idle_at;
	u32			retrans;
	u8			active:1,
				paces:1;
};

/**
 * struct timely_net - net.ipv4.timely_* of a namespace
 * @mbit: rate of the links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 * @delta_kbit: additive increase, kbit/s
 * @alpha: weight of a new difference, 1/1000
 * @beta: multiplicative decrease, 1/1000
 * @t_low_us: RTT below which the rate always increases
 * @t_high_us: RTT above which the rate always decreases
 * @rtt_us: base RTT; 0 for the minimum RTT that TCP has measured for a connection
 * @segment: bytes of a completion event, in full packets
 * @burst_us: the longest burst that TCP may hand down, as time at the flow's rate
 * @flows: number of active flows; one that TCP has aborted counts until its socket is closed
 * @sysctl: registered for the namespace's life
 */
struct timely_net {
	unsigned int		mbit;
	unsigned int		delta_kbit;
	unsigned int		alpha;
	unsigned int		beta;
	unsigned int		t_low_us;
	unsigned int		t_high_us;
	unsigned int		rtt_us;
	unsigned int		segment;
	unsigned int		burst_us;
	atomic_t		flows;
	struct ctl_table_header	*sysctl;
};

static unsigned int timely_net_id __read_mostly;

static struct timely_net *timely_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), timely_net_id);
}

static struct timely *timely_of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static u32 timely_now(const struct sock *sk)
{
	return tcp_sk(sk)->tcp_mstamp;
}

static struct gl_rate_link timely_link(const struct sock *sk)
{
	return gl_rate_link(sk, READ_ONCE(timely_net(sk)->mbit));
}

static u32 timely_rtt(const struct sock *sk)
{
	return gl_rate_rtt(sk, READ_ONCE(timely_net(sk)->rtt_us));
}

static void timely_params(const struct sock *sk, u32 mbit, struct timely_params *p)
{
	const struct timely_net *tn = timely_net(sk);

	p->max = mbit * 125;
	p->delta = max(READ_ONCE(tn->delta_kbit) / 8, 1U);
	p->t_low = READ_ONCE(tn->t_low_us);
	p->t_high = READ_ONCE(tn->t_high_us);
	p->min_rtt = clamp(timely_rtt(sk), 1U, (u32)TIMELY_RTT_MAX);
	p->alpha = READ_ONCE(tn->alpha);
	p->beta = READ_ONCE(tn->beta);
}

/* --- completion events -------------------------------------------------------- */

/* Does an ACK confirm only data that was sent once? */
static bool timely_is_first_copy(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct timely *ca = timely_of(sk);
	bool first = ca->retrans == tp->total_retrans;

	if (!tp->retrans_out)
		ca->retrans = tp->total_retrans;
	return first;
}

/* Is all data acknowledged? */
static bool timely_has_ended(const struct sock *sk)
{
	return !tcp_sk(sk)->packets_out && !tcp_send_head(sk);
}

/* A receiver delays ACKs by 40 ms or more. */
#define TIMELY_DELACKS	25	/* per second */

/* May the receiver have delayed the ACK?  It delays that of a lone packet, unless another one
 * follows.  While data waits for its pace, the next packet arrives before the delay is over
 * (TIMELY_LEAST), unless the application has limited the rate.
 */
static bool timely_is_delayed(const struct sock *sk, const struct rate_sample *rs)
{
	if (rs->acked_sacked > 1)
		return false;
	return timely_has_ended(sk) ||
	       READ_ONCE(sk->sk_pacing_rate) < TIMELY_DELACKS * tcp_sk(sk)->mss_cache;
}

/* Events are a base RTT apart, as in Zhu et al., "ECN or Delay", CoNEXT 2016, §4: at 10 Gbit/s a
 * segment of 16 kB completes in 13 us, and several in a row would reduce the rate for the same
 * queue.
 */
static bool timely_is_event(const struct sock *sk, const struct rate_sample *rs)
{
	const struct timely *ca = timely_of(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 bytes = (u64)(tp->delivered - ca->delivered) * tp->mss_cache;

	if (rs->rtt_us < 0 || timely_is_delayed(sk, rs))
		return false;
	if (timely_has_ended(sk))
		return true;
	return bytes >= READ_ONCE(timely_net(sk)->segment) &&
	       timely_now(sk) - ca->event_at >= timely_rtt(sk);
}

static void timely_event(struct sock *sk, const struct gl_rate_link *link, u32 rtt)
{
	struct timely *ca = timely_of(sk);
	struct timely_params p;

	timely_params(sk, link->mbit, &p);
	timely_rate_fit(&ca->rate, &p);
	timely_rate_sample(&ca->rate, &p, rtt);
	ca->delivered = tcp_sk(sk)->delivered;
	ca->event_at = timely_now(sk);
	gl_rate_pace(sk, ca->rate.cur, link->extra);
}

/* --- active flows ---------------------------------------------------------------- */

static void timely_pause(struct sock *sk)
{
	struct timely *ca = timely_of(sk);

	if (!ca->active)
		return;
	ca->active = 0;
	ca->idle_at = timely_now(sk);
	atomic_dec(&timely_net(sk)->flows);
}

/* Pause, unless data is in flight or waits for its pace.  Data that waits for the peer's window or
 * for the application (TCP_CORK) is not active.
 */
static void timely_pause_if_idle(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->packets_out &&
	    !(tcp_send_head(sk) && tp->tcp_wstamp_ns > tp->tcp_clock_cache))
		timely_pause(sk);
}

static void timely_start(struct sock *sk, u32 flows)
{
	struct gl_rate_link link = timely_link(sk);
	struct timely *ca = timely_of(sk);
	struct timely_params p;

	timely_params(sk, link.mbit, &p);
	/* A flow without a sample has not started; the link was another one's at init(). */
	if (!ca->rate.rtt || timely_now(sk) - ca->idle_at > TIMELY_IDLE * p.min_rtt)
		timely_rate_init(&ca->rate, &p, flows);
	ca->delivered = tcp_sk(sk)->delivered;
	gl_rate_pace(sk, ca->rate.cur, link.extra);
	gl_rate_window(sk, p.max);
}

/* The first packet after a pause. */
static void timely_tx_start(struct sock *sk)
{
	struct timely *ca = timely_of(sk);

	if (ca->active)
		return;
	ca->active = 1;
	timely_start(sk, atomic_inc_return(&timely_net(sk)->flows));
}

static void __maybe_unused timely_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	if (ev == CA_EVENT_TX_START)
		timely_tx_start(sk);
}

/* --- struct tcp_congestion_ops ------------------------------------------------ */

static GL_CONG_CONTROL(timely_cong_control, sk, rs)
{
	struct gl_rate_link link;

	/* TCP calls this for the ACK of the SYN before init(), or after it, if the application has
	 * selected timely meanwhile: then the SYN was in flight.
	 */
	if (sk->sk_state == TCP_SYN_SENT) {
		gl_pace_as_tcp(sk);
		timely_pause_if_idle(sk);
		return;
	}
	link = timely_link(sk);
	if (timely_is_first_copy(sk) && timely_is_event(sk, rs))
		timely_event(sk, &link, rs->rtt_us);
	timely_pause_if_idle(sk);
	gl_rate_window(sk, link.mbit * 125);
	gl_gso_default(sk);
}

/* A loss does not change the rate. */
static u32 timely_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 timely_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

static u32 timely_min_tso_segs(struct sock *sk)
{
	if (gl_pace_is_lost(sk) && timely_of(sk)->rate.cur)
		gl_rate_pace(sk, timely_of(sk)->rate.cur, timely_link(sk).extra);
	return gl_rate_burst(sk, READ_ONCE(timely_net(sk)->burst_us));
}

static struct tcp_congestion_ops timely_reno __read_mostly = GL_RENO("timely-reno");

static void timely_init(struct sock *sk)
{
	struct timely *ca = timely_of(sk);

	memset(ca, 0, sizeof(*ca));
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE))
		return;
	/* The socket may outlive its namespace's @flows. */
	if (!gl_net_stays(sk)) {
		gl_fall_back(sk, &timely_reno);
		return;
	}
	ca->retrans = tcp_sk(sk)->total_retrans;
	ca->paces = gl_pacing_begin(sk);
	if (tcp_sk(sk)->packets_out)
		timely_tx_start(sk);
	else
		timely_start(sk, 1);
}

static void timely_release(struct sock *sk)
{
	timely_pause(sk);
	gl_leave_rate(sk, timely_of(sk)->paces);
}

static struct tcp_congestion_ops timely_ops __read_mostly = {
	.name		= "timely",
	.owner		= THIS_MODULE,
	.init		= timely_init,
	.release	= timely_release,
	.ssthresh	= timely_ssthresh,
	.undo_cwnd	= timely_undo_cwnd,
	.cong_control	= timely_cong_control,
#ifdef GL_HAVE_TX_START
	.cwnd_event_tx_start = timely_tx_start,
#else
	.cwnd_event	= timely_cwnd_event,
#endif
	.min_tso_segs	= timely_min_tso_segs,
};

/* --- net.ipv4.timely_* -------------------------------------------------------- */

static unsigned int timely_mbit_max = LINK_SPEED_MBIT_MAX;
static unsigned int timely_kbit_max = 1600000000;
static unsigned int timely_mille = TIMELY_MILLE;
static unsigned int timely_us_max = TIMELY_RTT_MAX;
static unsigned int timely_segment_max = 1 << 20;

#define TIMELY_SYSCTL(name, field, least, most)	\
	GL_SYSCTL_UINT("timely_" name, struct timely_net, field, least, most)

static const struct ctl_table timely_sysctl_template[] = {
	TIMELY_SYSCTL("rate", mbit, SYSCTL_ZERO, &timely_mbit_max),
	TIMELY_SYSCTL("delta", delta_kbit, SYSCTL_ONE, &timely_kbit_max),
	TIMELY_SYSCTL("alpha", alpha, SYSCTL_ONE, &timely_mille),
	TIMELY_SYSCTL("beta", beta, SYSCTL_ZERO, &timely_mille),
	TIMELY_SYSCTL("t_low", t_low_us, SYSCTL_ZERO, &timely_us_max),
	TIMELY_SYSCTL("t_high", t_high_us, SYSCTL_ZERO, &timely_us_max),
	TIMELY_SYSCTL("rtt", rtt_us, SYSCTL_ZERO, &timely_us_max),
	TIMELY_SYSCTL("segment", segment, SYSCTL_ONE, &timely_segment_max),
	TIMELY_SYSCTL("burst", burst_us, SYSCTL_ZERO, SYSCTL_ONE_THOUSAND),
};

static int __net_init timely_net_init(struct net *net)
{
	struct timely_net *tn = net_generic(net, timely_net_id);

	/* From §4.4 and §5 of the paper.  It does not give alpha: that of the simulators of
	 * HPCC's authors and of Zhu et al., "ECN or Delay", CoNEXT 2016.
	 */
	tn->delta_kbit = 10000;
	tn->alpha = 875;
	tn->beta = 800;
	tn->t_low_us = 50;
	tn->t_high_us = 500;
	tn->segment = 16384;
	/* As dcqcn's: a quarter of a datacenter's RTT.  The paper's burst is a segment. */
	tn->burst_us = 5;
	tn->sysctl = gl_sysctl_add(net, timely_sysctl_template,
				   ARRAY_SIZE(timely_sysctl_template), tn);
	return tn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit timely_net_exit(struct net *net)
{
	struct timely_net *tn = net_generic(net, timely_net_id);

	gl_sysctl_remove(tn->sysctl);
}

static struct pernet_operations timely_net_ops = {
	.init	= timely_net_init,
	.exit	= timely_net_exit,
	.id	= &timely_net_id,
	.size	= sizeof(struct timely_net),
};

static int __init timely_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct timely) > ICSK_CA_PRIV_SIZE);

	err = register_pernet_subsys(&timely_net_ops);
	if (err)
		return err;
	err = tcp_register_congestion_control(&timely_ops);
	if (err)
		unregister_pernet_subsys(&timely_net_ops);
	return err;
}

static void __exit timely_module_exit(void)
{
	tcp_unregister_congestion_control(&timely_ops);
	unregister_pernet_subsys(&timely_net_ops);
}

module_init(timely_module_init);
module_exit(timely_module_exit);

MODULE_DESCRIPTION("TIMELY: rate-based congestion control by the gradient of the RTT, for TCP");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
