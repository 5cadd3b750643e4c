// SPDX-License-Identifier: GPL-2.0
/* DCQCN: the congestion control of RoCE, for TCP
 *
 *	Yibo Zhu, Haggai Eran, Daniel Firestone, Chuanxiong Guo, Marina Lipshteyn,
 *	Yehonatan Liron, Jitendra Padhye, Shachar Raindel, Mohamad Haj Yahia, Ming Zhang:
 *	"Congestion Control for Large-Scale RDMA Deployments", SIGCOMM 2015
 *
 * A flow begins at line rate.  It has a rate, not a window: TCP's own pacing sends a
 * packet when its time has come.  Marks of the network (ECN) slow it down, time and
 * bytes without marks speed it up again; losses do not matter.
 *
 *	reaction point             congestion point           notification point
 *	(sender)                   (switch)                   (receiver)
 *	d d d d d d d d d  ----->  CE above Kmin    ----->    d d* d* d
 *	                                                       |
 *	rate *= 1 - alpha / 2  <-----------------------------  ECE, at once,
 *	at most each 50 us                                     at most each 50 us
 *
 * The congestion point is sch_color's `ecn MIN MAX PROB`; the reaction point's arithmetic
 * is dcqcn_rate.h; this file is the rest.
 *
 * A card sends a packet to say that congestion is there (CNP).  TCP has ACKs and a bit in
 * them, ECE.  Set by a receiver of ours it means just that; a receiver without us sets
 * it until it sees that we have slowed down (RFC 3168), so the least distance of 50 us is
 * kept by the sender, whoever has sent it.
 *
 * Without ECN there would be nothing to react to, and the connection is reno's.
 *
 * Documentation/dcqcn.rst has what differs from the paper, and why.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/gl_cong.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "dcqcn_rate.h"
#include "tcp_dcqcn.h"

/* The window is for TCP's sake: it stops a sender whose ACKs have stopped, and otherwise
 * never acts.  So many times what the line carries in a (smoothed) round trip.  With
 * twice as much a queue of 300 kB at 40 Gbit/s, which grows faster than TCP's average
 * does, made senders pause.
 */
#define DCQCN_WINDOWS		8
/* In packets: TCP's first round trip may have been that of an idle network. */
#define DCQCN_WINDOW_MIN	64

/**
 * struct dcqcn - a flow
 * @rate: the reaction point
 * @cap: the most that it may send at, kB/s; U32_MAX for no such thing
 * @sent: TCP's count of bytes sent, when the reaction point saw it last
 * @cut_at: when the rate was cut last, µs
 * @echo_at: when the peer was told of marks last, µs
 * @was_cut: @cut_at means something
 * @echoed: so does @echo_at
 *
 * All fields: socket lock.
 */
struct dcqcn {
	struct dcqcn_rate	rate;
	u32			cap;
	u32			sent;
	u32			cut_at;
	u32			echo_at;
	u8			was_cut:1,
				echoed:1;
};

/**
 * struct dcqcn_net - net.ipv4.dcqcn_* of a namespace
 * @mbit: what the line carries, Mbit/s
 * @ai_kbit: additive increase, kbit/s; 0 for 5/25 Mbit/s for each Gbit/s of the line
 * @hai_kbit: hyper increase; 0 for ten times that
 * @counter: bytes of an event
 * @timer_us: time of an event
 * @alpha_us: time without a notification that lets alpha decay
 * @g: alpha's gain is 2^-@g
 * @fast: events of fast recovery
 * @cnp_us: the least time between two notifications
 * @burst_us: what TCP may send at a time
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

/**
 * dcqcn_line() - what the line carries
 * @sk: of this socket
 *
 * Return: kB/s (of 1000 bytes).
 */
u32 dcqcn_line(const struct sock *sk)
{
	return READ_ONCE(dcqcn_net(sk)->mbit) * 125;
}
EXPORT_SYMBOL_GPL(dcqcn_line);

static void dcqcn_params(const struct sock *sk, struct dcqcn_params *p)
{
	const struct dcqcn_net *dn = dcqcn_net(sk);
	u32 mbit = READ_ONCE(dn->mbit);

	p->max = mbit * 125;
	/* 5 Mbit/s at 25 Gbit/s, as the cards have it; kbit/s are 8 to the kB/s. */
	p->ai = max((READ_ONCE(dn->ai_kbit) ?: mbit / 5) / 8, 1U);
	p->hai = max((READ_ONCE(dn->hai_kbit) ?: mbit * 2) / 8, 1U);
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

/* TCP counts what it puts into packets, the line what a packet is. */
static u64 dcqcn_payload(const struct sock *sk, u64 rate)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packet = tp->mss_cache + tp->tcp_header_len + DCQCN_FRAME +
		     inet_csk(sk)->icsk_af_ops->net_header_len;

	return div_u64(rate * tp->mss_cache, packet);
}

static void dcqcn_set_pacing(struct sock *sk)
{
	const struct dcqcn *ca = dcqcn_of(sk);
	u64 rate = min(ca->rate.cur, ca->cap) * 1000ULL;

	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, dcqcn_payload(sk, rate),
					     READ_ONCE(sk->sk_max_pacing_rate)));
}

/* What has happened since the last look. */
static void dcqcn_advance(struct sock *sk, const struct dcqcn_params *p)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dcqcn *ca = dcqcn_of(sk);
	u32 sent = (u32)tp->bytes_sent - ca->sent;

	ca->sent = tp->bytes_sent;
	dcqcn_rate_fit(&ca->rate, p);
	dcqcn_rate_advance(&ca->rate, p, dcqcn_now(sk), sent);
}

/* "At most one CNP every N microseconds" (§3.2), and then it is one. */
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
	struct dcqcn_params p;

	dcqcn_params(sk, &p);
	dcqcn_advance(sk, &p);
	if (notified)
		dcqcn_notified(sk, &p);
	dcqcn_set_pacing(sk);
}

static void dcqcn_in_ack_event(struct sock *sk, u32 flags)
{
	/* The ACK of the SYN comes before init(). */
	if (sk->sk_state == TCP_SYN_SENT)
		return;
	dcqcn_look(sk, flags & CA_ACK_ECE);
	/* Bursts are cut when they leave; what is written meanwhile may be long. */
	gl_gso_default(sk);
}

/* The first packet after a pause: time has gone by, and no ACK has told us. */
static void dcqcn_tx_start(struct sock *sk)
{
	dcqcn_look(sk, false);
}

/**
 * dcqcn_set_cap() - send no faster than this, whatever the reaction point says
 * @sk: a socket whose congestion control is built on dcqcn, locked
 * @cap: kB/s
 */
void dcqcn_set_cap(struct sock *sk, u32 cap)
{
	struct dcqcn *ca = dcqcn_of(sk);

	if (ca->cap == cap)
		return;
	ca->cap = cap;
	dcqcn_set_pacing(sk);
}
EXPORT_SYMBOL_GPL(dcqcn_set_cap);

/* --- the notification point ------------------------------------------------- */

/* TCP is about to note that the peer is to be told.  See to it that it is told soon. */
static void dcqcn_marked(struct sock *sk)
{
	struct dcqcn *ca = dcqcn_of(sk);
	u32 now = tcp_clock_us();

	if (ca->echoed && now - ca->echo_at < READ_ONCE(dcqcn_net(sk)->cnp_us))
		return;
	ca->echoed = 1;
	ca->echo_at = now;
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

/* TCP tells the peer of a mark until the peer says that it has heard (RFC 3168).  Here a
 * mark is told once.
 */
static void dcqcn_unmarked(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (gl_tcp_ecn_rfc3168(tp))
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

static void dcqcn_cwnd_event(struct sock *sk, enum tcp_ca_event ev)
{
	switch (ev) {
	case CA_EVENT_TX_START:
		dcqcn_tx_start(sk);
		break;
	case CA_EVENT_ECN_IS_CE:
		dcqcn_marked(sk);
		break;
	case CA_EVENT_ECN_NO_CE:
		dcqcn_unmarked(sk);
		break;
	default:
		break;
	}
}

/* --- what TCP wants of a congestion control --------------------------------- */

/* The window, which is to be none. */
static void dcqcn_set_window(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 window = (u64)dcqcn_line(sk) * 1000 * (tp->srtt_us >> 3) * DCQCN_WINDOWS;

	window = div_u64(window, USEC_PER_SEC);
	window = max_t(u64, div_u64(window, tp->mss_cache), DCQCN_WINDOW_MIN);
	tcp_snd_cwnd_set(tp, min_t(u64, window, tp->snd_cwnd_clamp));
}

static GL_CONG_CONTROL(dcqcn_cong_control, sk, rs)
{
	if (sk->sk_state == TCP_SYN_SENT)
		gl_pace_as_tcp(sk);
	else
		dcqcn_set_window(sk);
}

/* "Loss does not change the rate." */
static u32 dcqcn_ssthresh(struct sock *sk)
{
	return TCP_INFINITE_SSTHRESH;
}

static u32 dcqcn_undo_cwnd(struct sock *sk)
{
	return tcp_snd_cwnd(tcp_sk(sk));
}

/* A burst is one to the pacing, and goes out at line rate.  TCP asks this when it is
 * about to send; it only asks for the least, but takes care not to exceed what a device
 * can take.
 */
static u32 dcqcn_min_tso_segs(struct sock *sk)
{
	u64 bytes = (u64)READ_ONCE(sk->sk_pacing_rate) * READ_ONCE(dcqcn_net(sk)->burst_us);
	u32 segs = div_u64(div_u64(bytes, USEC_PER_SEC), tcp_sk(sk)->mss_cache);

	gl_gso_default(sk);
	sk->sk_gso_max_segs = clamp(segs, 1U, (u32)sk->sk_gso_max_segs);
	return 1;
}

static struct tcp_congestion_ops dcqcn_reno __read_mostly = GL_RENO("dcqcn-reno");

static void dcqcn_init(struct sock *sk)
{
	struct dcqcn *ca = dcqcn_of(sk);
	struct tcp_sock *tp = tcp_sk(sk);
	struct dcqcn_params p;

	/* As dctcp: before the connection is established ECN has not been negotiated. */
	if ((!gl_tcp_ecn(tp) || !gl_net_stays(sk)) &&
	    !((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE))) {
		WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, &dcqcn_reno);
		INET_ECN_dontxmit(sk);
		return;
	}
	dcqcn_params(sk, &p);
	dcqcn_rate_init(&ca->rate, &p, tcp_clock_us());
	ca->cap = U32_MAX;
	ca->sent = tp->bytes_sent;
	ca->was_cut = 0;
	ca->echoed = 0;
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE))
		return;
	/* TCP's own pacing, if no qdisc does it (fq). */
	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	dcqcn_set_pacing(sk);
	dcqcn_set_window(sk);
}

/* The window was none; who comes next has to find one. */
static void dcqcn_release(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 enough = max_t(u32, tcp_packets_in_flight(tp), TCP_INIT_CWND);

	gl_gso_default(sk);
	/* A socket that goes may have no window at all. */
	if (tcp_snd_cwnd(tp) > enough)
		tcp_snd_cwnd_set(tp, enough);
}

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
	.cwnd_event	= dcqcn_cwnd_event,
#ifdef GL_HAVE_TX_START
	.cwnd_event_tx_start = dcqcn_tx_start,
#endif
	.min_tso_segs	= dcqcn_min_tso_segs,
};

/* --- net.ipv4.dcqcn_* -------------------------------------------------------- */

/* What a u32 of kB/s can hold, and its sums; as xpass_rate's. */
static unsigned int dcqcn_mbit_max = 1600000;
static unsigned int dcqcn_kbit_max = 1600000000;
static unsigned int dcqcn_counter_min = 65536;
static unsigned int dcqcn_counter_max = 1 << 30;
static unsigned int dcqcn_us_max = USEC_PER_SEC;
/* At 2^-10 alpha needs 15,000 steps to decay, which may all be made up for at once. */
static unsigned int dcqcn_g_max = 10;

#define DCQCN_SYSCTL(name, field, least, most)	\
	GL_SYSCTL_UINT("dcqcn_" name, struct dcqcn_net, field, least, most)

static const struct ctl_table dcqcn_sysctl_template[] = {
	DCQCN_SYSCTL("rate", mbit, SYSCTL_ONE, &dcqcn_mbit_max),
	DCQCN_SYSCTL("ai", ai_kbit, SYSCTL_ZERO, &dcqcn_kbit_max),
	DCQCN_SYSCTL("hai", hai_kbit, SYSCTL_ZERO, &dcqcn_kbit_max),
	DCQCN_SYSCTL("counter", counter, &dcqcn_counter_min, &dcqcn_counter_max),
	DCQCN_SYSCTL("timer", timer_us, SYSCTL_ONE, &dcqcn_us_max),
	DCQCN_SYSCTL("alpha_timer", alpha_us, SYSCTL_ONE, &dcqcn_us_max),
	DCQCN_SYSCTL("g", g, SYSCTL_ONE, &dcqcn_g_max),
	DCQCN_SYSCTL("fast", fast, SYSCTL_ONE, SYSCTL_ONE_HUNDRED),
	DCQCN_SYSCTL("cnp", cnp_us, SYSCTL_ZERO, &dcqcn_us_max),
	DCQCN_SYSCTL("burst", burst_us, SYSCTL_ZERO, SYSCTL_ONE_THOUSAND),
};

static int __net_init dcqcn_net_init(struct net *net)
{
	struct dcqcn_net *dn = net_generic(net, dcqcn_net_id);

	/* §6.2 of the paper, Dart §VI-A; but for the rate, which is 10 Gbit/s, and the burst:
	 * four packets there, a quarter of the round trip.
	 */
	dn->mbit = 10000;
	dn->counter = 10 * 1000 * 1000;
	dn->timer_us = 55;
	dn->alpha_us = 55;
	dn->g = 8;
	dn->fast = 5;
	dn->cnp_us = 50;
	dn->burst_us = 5;
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

	/* The end of the private area is a combinator's. */
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
