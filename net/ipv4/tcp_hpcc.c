// SPDX-License-Identifier: GPL-2.0
/* HPCC: a window from the telemetry of switches
 *
 *	Yuliang Li, Rui Miao, Hongqiang Harry Liu, Yan Zhuang, Fei Feng, Lingbo Tang, Zheng Cao,
 *	Ming Zhang, Frank Kelly, Mohammad Alizadeh, Minlan Yu: "HPCC: High Precision Congestion
 *	Control", SIGCOMM 2019
 *
 * A switch port knows its load exactly: the bytes in its queue and the bytes that it has sent.
 * So a sender needs no heuristic: it sets its window to the value with which the busiest port of
 * the path is 95 % full and has no queue, and paces at window / RTT.
 *
 *	sender                  ports                   receiver
 *	data, U = 0  ----->  [ U = max(U, own) ] ----->  stores U
 *	W = Wc eta / U  <------------------------------  ACK, U
 *
 * The ports are sch_color with `int TIME`, which raise the telemetry field of the greenlane option
 * (<net/gl_int.h>).  Each packet of data has the option, so the MSS is 8 bytes smaller (gl_room.c).
 * A pure ACK has the echo in the same field, but no request, so no port changes it:
 *
 *	 data:  | 254 | 8 | "GL" | 12 | 0 |1| U |
 *	 ACK:   | 254 | 8 | "GL" | 13 | 0 |0| U |
 *
 * The receiver sends a pure ACK for each packet of data, as in the paper, so data in the other
 * direction needs no echo.
 *
 * hpcc_window.c has the arithmetic.  If no port of the path has `int`, all samples are 0, and the
 * connection behaves as reno until a sample is not 0.  If the peer does not run hpcc, it is reno
 * for its life.
 *
 * Documentation/hpcc.rst lists the differences from the paper.
 */
#include <linux/module.h>
#include <linux/sysctl.h>
#include <net/gl_int.h>
#include <net/gl_rate.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/tcp.h>

#include <net/gl_compat.h>
#include "hpcc_window.h"

/* At most a quarter of the window is sent as one GSO packet. */
#define HPCC_BURSTS		4

/* After this number of base RTTs without data to send a connection starts again, at line rate.  The
 * paper's flows are messages, and each starts at line rate.  Without this the window would shrink
 * from message to message: each shares the link with longer flows, which take all of it between the
 * messages.
 */
#define HPCC_IDLE		8

/* After this number of round trips without telemetry the connection behaves as reno.  One is not
 * enough: in a recovery an ACK with three SACK blocks has no room for the echo.
 */
#define HPCC_BLIND		3

enum hpcc_counter {
	HPCC_REQUESTSENT = 1,
	HPCC_REQUESTRECEIVED,
	HPCC_ECHORECEIVED,
	HPCC_NOROOM,
	HPCC_BEGUN,
	HPCC_LOST,
	HPCC_COUNTERS,
};

static const char * const hpcc_counter_name[HPCC_COUNTERS] = {
	[HPCC_REQUESTSENT]	= "HpccRequestSent",
	[HPCC_REQUESTRECEIVED]	= "HpccRequestReceived",
	[HPCC_ECHORECEIVED]	= "HpccEchoReceived",
	[HPCC_NOROOM]		= "HpccNoRoom",
	[HPCC_BEGUN]		= "HpccTelemetryBegun",
	[HPCC_LOST]		= "HpccTelemetryLost",
};

enum hpcc_kind {
	HPCC_DATA,
	HPCC_ACK,
	HPCC_CONTROL,
	HPCC_KINDS,
};

static struct gl_protocol hpcc_protocol;

/* Data keeps the application's DS field: switches treat it as that of any other TCP.  The codepoint
 * of HPCC_DATA is not used.
 */
static const struct gl_kind hpcc_kinds[HPCC_KINDS] = {
	[HPCC_DATA] = {
		.protocol	= &hpcc_protocol,
		.codepoint	= GL_CP_DROPPABLE,
		.code		= GL_CODE_HPCC,
		.flags		= GL_KIND_DATA | GL_KIND_TCPS,
		.received	= HPCC_REQUESTRECEIVED,
	},
	[HPCC_ACK] = {
		.protocol	= &hpcc_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= GL_CODE_HPCC_ECHO,
		.flags		= GL_KIND_TCPS,
	},
	[HPCC_CONTROL] = {
		.protocol	= &hpcc_protocol,
		.codepoint	= GL_CP_PROTECTED,
	},
};

static struct gl_protocol hpcc_protocol __read_mostly = {
	.hello		= GL_CODE_HPCC,
	.told_as	= GL_CP_DROPPABLE,
	.kind		= hpcc_kinds,
	.kinds		= HPCC_KINDS,
	.control	= &hpcc_kinds[HPCC_CONTROL],
	.counter	= hpcc_counter_name,
	.counters	= HPCC_COUNTERS,
};

/**
 * struct hpcc_sock - the state of a connection as a receiver
 * @gs: greenlane's part
 * @util: telemetry of the latest packet of data
 * @owed: @util has not been echoed
 *
 * The socket lock protects all fields.
 */
struct hpcc_sock {
	struct gl_sock	gs;
	u16		util;
	u8		owed:1;
};

/**
 * struct hpcc - the state of a connection as a sender
 * @w: the window
 * @update: tp->snd_nxt at the last update of @w: an ACK of later data starts the next round trip
 * @round: the same for @blind, which also ends where no telemetry arrives
 * @blind: round trips without telemetry, at most HPCC_BLIND
 * @sampled: telemetry has arrived in this round trip
 * @governed: telemetry determines the window; if not, the connection behaves as reno
 * @early: the first window is still to be set, because the RTT is not known
 * @idle: all data that the application has written is acknowledged
 * @paces: TCP's own pacing is on because of hpcc
 *
 * The socket lock protects all fields.  All are 0 before init() has attached the connection.
 */
struct hpcc {
	struct hpcc_window	w;
	u32			update;
	u32			round;
	u8			blind;
	u8			sampled:1,
				governed:1,
				early:1,
				idle:1,
				paces:1;
};

/**
 * struct hpcc_net - net.ipv4.hpcc_* of a namespace
 * @mbit: rate of the links, Mbit/s; 0 for the speed that link_speed.c finds for each link
 * @rtt_us: base RTT, us; 0 for the minimum RTT that TCP has measured for a connection
 * @eta: target utilisation, percent
 * @stages: round trips of additive increase before a multiplicative one
 * @flows: expected number of flows on a link, which determines the additive increase
 * @average: the sender averages telemetry over the base RTT
 * @sysctl: registered for the namespace's life
 */
struct hpcc_net {
	unsigned int		mbit;
	unsigned int		rtt_us;
	unsigned int		eta;
	unsigned int		stages;
	unsigned int		flows;
	unsigned int		average;
	struct ctl_table_header	*sysctl;
};

static unsigned int hpcc_net_id __read_mostly;

static struct hpcc_net *hpcc_net(const struct sock *sk)
{
	return net_generic(sock_net(sk), hpcc_net_id);
}

static struct hpcc *hpcc_of(const struct sock *sk)
{
	return inet_csk_ca(sk);
}

static struct hpcc_sock *hpcc_sock(struct gl_sock *gs)
{
	return container_of(gs, struct hpcc_sock, gs);
}

static void hpcc_count(const struct sock *sk, enum hpcc_counter counter, u64 n)
{
	gl_count(sock_net(sk), &hpcc_protocol, counter, n);
}

/* --- the path --------------------------------------------------------------------- */

/**
 * struct hpcc_path - a connection's path
 * @p: parameters
 * @line: rate of the sender's link, bytes/s
 * @packet: bytes of a full packet on the link
 */
struct hpcc_path {
	struct hpcc_params	p;
	u64			line;
	u32			packet;
};

static void hpcc_path(const struct sock *sk, struct hpcc_path *path)
{
	const struct hpcc_net *hn = hpcc_net(sk);
	struct gl_rate_link link = gl_rate_link(sk, READ_ONCE(hn->mbit));

	hpcc_params_set(&path->p, link.mbit, gl_rate_rtt(sk, READ_ONCE(hn->rtt_us)),
			READ_ONCE(hn->eta), READ_ONCE(hn->flows));
	path->p.stages = READ_ONCE(hn->stages);
	path->p.average = READ_ONCE(hn->average);
	path->line = link.mbit * 125000ULL;
	path->packet = gl_rate_packet(sk, link.extra);
}

/* --- the window ------------------------------------------------------------------- */

/* TCP paces by payload, the link's rate includes all headers: convert. */
static void hpcc_set_pacing(struct sock *sk, const struct hpcc_path *path)
{
	u64 rate = min(hpcc_window_rate(&hpcc_of(sk)->w, &path->p), path->line);

	gl_pace(sk, mul_u64_u32_div(rate, tcp_sk(sk)->mss_cache, path->packet));
}

/* A server with Fast Open sends before it has an RTT: begin as TCP does, and again with the RTT. */
static bool hpcc_is_early(struct sock *sk, const struct hpcc_path *path)
{
	struct hpcc *ca = hpcc_of(sk);

	if (!ca->early)
		return false;
	ca->early = !READ_ONCE(hpcc_net(sk)->rtt_us) && !tcp_sk(sk)->srtt_us;
	if (ca->early) {
		tcp_snd_cwnd_set(tcp_sk(sk), TCP_INIT_CWND);
		gl_pace_as_tcp(sk);
	} else {
		hpcc_window_init(&ca->w, &path->p);
	}
	return ca->early;
}

static void hpcc_apply(struct sock *sk, const struct hpcc_path *path)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hpcc *ca = hpcc_of(sk);
	u32 packets;

	if (hpcc_is_early(sk, path))
		return;
	hpcc_window_fit(&ca->w, &path->p);
	packets = hpcc_window_packets(&ca->w, path->packet);
	tcp_snd_cwnd_set(tp, min(packets, tp->snd_cwnd_clamp));
	hpcc_set_pacing(sk, path);
}

/* Telemetry has arrived. */
static void hpcc_sample(struct sock *sk, u32 ack, u32 util)
{
	struct hpcc *ca = hpcc_of(sk);
	struct hpcc_path path;
	bool update;

	hpcc_count(sk, HPCC_ECHORECEIVED, 1);
	/* No port has written: they have no `int`, or this packet met idle ones.  An ACK that was
	 * delayed or repeated has old telemetry.
	 */
	if (!util || before(ack, tcp_sk(sk)->snd_una))
		return;
	hpcc_path(sk, &path);
	if (!ca->governed) {
		/* The sample is of reno's window. */
		hpcc_window_set(&ca->w, &path.p, tcp_snd_cwnd(tcp_sk(sk)), path.packet);
		hpcc_count(sk, HPCC_BEGUN, 1);
		ca->governed = 1;
	}
	ca->sampled = 1;
	ca->blind = 0;
	/* The first ACK reports the begin of the first round trip, so it only starts that, as in
	 * the authors' code.
	 */
	update = after(ack, ca->update) && ca->w.begun;
	if (update || !ca->w.begun)
		ca->update = tcp_sk(sk)->snd_nxt;
	hpcc_window_sample(&ca->w, &path.p, util, tcp_clock_ns(), update);
	hpcc_apply(sk, &path);
}

/* --- without telemetry: reno -------------------------------------------------------- */

/* At the end of a round trip: has telemetry arrived in it? */
static void hpcc_round(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct hpcc *ca = hpcc_of(sk);

	if (!after(tp->snd_una, ca->round))
		return;
	ca->round = tp->snd_nxt;
	if (!ca->sampled && ca->blind < HPCC_BLIND && ++ca->blind == HPCC_BLIND && ca->governed) {
		ca->governed = 0;
		hpcc_count(sk, HPCC_LOST, 1);
		/* reno continues in congestion avoidance. */
		tp->snd_ssthresh = max(tcp_snd_cwnd(tp), 2U);
	}
	ca->sampled = 0;
}

/* Proportional rate reduction to ssthresh (RFC 6937).  TCP has reset prior_cwnd and prr_* of struct
 * tcp_sock, and counts prr_out.
 */
static void hpcc_reduce(struct tcp_sock *tp, u32 acked)
{
	u32 flight = tcp_packets_in_flight(tp);
	s32 n;

	if (!acked || !tp->prior_cwnd)
		return;
	tp->prr_delivered += acked;
	if (flight > tp->snd_ssthresh) {
		u64 share = (u64)tp->snd_ssthresh * tp->prr_delivered + tp->prior_cwnd - 1;

		n = div_u64(share, tp->prior_cwnd) - tp->prr_out;
	} else {
		n = max_t(s32, tp->prr_delivered - tp->prr_out, acked);
		n = min_t(s32, tp->snd_ssthresh - flight, n);
	}
	/* The first retransmission leaves at once. */
	tcp_snd_cwnd_set(tp, max(flight + max_t(s32, n, !tp->prr_out), 1U));
}

/* TCP leaves all of this to a congestion control with cong_control(). */
static void hpcc_reno(struct sock *sk, u32 acked)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if ((1 << inet_csk(sk)->icsk_ca_state) & (TCPF_CA_CWR | TCPF_CA_Recovery))
		hpcc_reduce(tp, acked);
	else
		tcp_reno_cong_avoid(sk, tp->snd_una, acked);
	gl_pace_as_tcp(sk);
}

/* --- struct tcp_congestion_ops ------------------------------------------------------ */

/* The application has written data.  A connection that only waits for its pace is not idle. */
static void hpcc_resume(struct sock *sk)
{
	struct hpcc *ca = hpcc_of(sk);
	struct hpcc_path path;

	ca->idle = 0;
	hpcc_path(sk, &path);
	if (tcp_clock_ns() - ca->w.at <= (u64)HPCC_IDLE * path.p.rtt)
		return;
	hpcc_window_init(&ca->w, &path.p);
	hpcc_apply(sk, &path);
}

static GL_CONG_CONTROL(hpcc_cong_control, sk, rs)
{
	struct hpcc *ca = hpcc_of(sk);

	/* TCP calls this for the ACK of the SYN before init(). */
	if (sk->sk_state == TCP_SYN_SENT) {
		gl_pace_as_tcp(sk);
		return;
	}
	hpcc_round(sk);
	ca->idle = !tcp_sk(sk)->packets_out && !tcp_send_head(sk);
	if (ca->governed) {
		struct hpcc_path path;

		hpcc_path(sk, &path);
		hpcc_apply(sk, &path);
	} else {
		hpcc_reno(sk, rs->acked_sacked);
	}
}

/* A loss does not change a window that telemetry governs. */
static u32 hpcc_ssthresh(struct sock *sk)
{
	return hpcc_of(sk)->governed ? TCP_INFINITE_SSTHRESH : tcp_reno_ssthresh(sk);
}

static u32 hpcc_undo_cwnd(struct sock *sk)
{
	return hpcc_of(sk)->governed ? tcp_snd_cwnd(tcp_sk(sk)) : tcp_reno_undo_cwnd(sk);
}

/* Does a reduction of reno's end now, which TCP has not undone?  Then its window is ssthresh, as
 * tcp_end_cwnd_reduction() sets it without cong_control().
 */
static bool hpcc_has_reduced(const struct sock *sk, u8 state)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u8 before = inet_csk(sk)->icsk_ca_state;

	return state == TCP_CA_Open && tp->snd_ssthresh < TCP_INFINITE_SSTHRESH &&
	       (before == TCP_CA_CWR || (before == TCP_CA_Recovery && tp->undo_marker));
}

/* Recovery ends, or a retransmission timeout begins. */
static void hpcc_set_state(struct sock *sk, u8 state)
{
	struct hpcc *ca = hpcc_of(sk);
	struct hpcc_path path;

	if (!ca->governed && hpcc_has_reduced(sk, state))
		tcp_snd_cwnd_set(tcp_sk(sk), tcp_sk(sk)->snd_ssthresh);
	if (state != TCP_CA_Loss || !ca->governed)
		return;
	hpcc_path(sk, &path);
	hpcc_window_timeout(&ca->w, &path.p, path.packet);
	hpcc_set_pacing(sk, &path);
}

/* Pacing handles a GSO packet as one unit, which leaves the host at line rate: limit its size to a
 * part of the window.  TCP calls this when it is about to send.
 */
static u32 hpcc_min_tso_segs(struct sock *sk)
{
	const struct hpcc *ca = hpcc_of(sk);
	struct hpcc_path path;
	u32 segs;

	if (ca->idle && ca->governed && tcp_send_head(sk))
		hpcc_resume(sk);
	gl_gso_default(sk);
	if (ca->governed) {
		if (gl_pace_is_lost(sk)) {
			hpcc_path(sk, &path);
			hpcc_set_pacing(sk, &path);
		}
		segs = div_u64(hpcc_window_bytes(&ca->w), HPCC_BURSTS * tcp_sk(sk)->mss_cache);
		sk->sk_gso_max_segs = clamp(segs, 1U, (u32)sk->sk_gso_max_segs);
	}
	return 1;
}

/* --- the option --------------------------------------------------------------------- */

/* Request telemetry with each packet of data, and echo it with each pure ACK.  An ACK without room,
 * which has three SACK blocks and a time stamp, leaves the echo to the next one.
 */
static const struct gl_kind *hpcc_on_ack(struct sock *sk, struct gl_sock *gs, struct tcphdr *th,
					 struct gl_seg *seg, int room)
{
	struct hpcc_sock *hs = hpcc_sock(gs);
	bool data = seg->end_seq != seg->seq;

	if (!data && !hs->owed)
		return NULL;
	if (room < 0) {
		hpcc_count(sk, HPCC_NOROOM, 1);
		return NULL;
	}
	if (data) {
		seg->field = GL_INT_COLLECT;
		hpcc_count(sk, HPCC_REQUESTSENT, seg->segs);
		return &hpcc_kinds[HPCC_DATA];
	}
	seg->field = hs->util;
	hs->owed = 0;
	return &hpcc_kinds[HPCC_ACK];
}

static const struct gl_kind *hpcc_on_xmit(struct sock *sk, struct gl_sock *gs,
					  const struct gl_seg *seg)
{
	/* TCP has chosen the size of this packet.  Undo the limit of hpcc_min_tso_segs(), so that
	 * later writes use large GSO packets again.
	 */
	gl_gso_default(sk);
	return NULL;
}

/* Data with telemetry has arrived.  Each packet gets an ACK, as in the paper: the sender may wait
 * for it with a window of a single packet.
 */
static void hpcc_data(struct sock *sk, struct hpcc_sock *hs, const struct gl_seg *seg)
{
	hs->util = seg->field & GL_INT_MAX;
	hs->owed = 1;
	/* If a process owned the socket, TCP has processed the packet already. */
	if (after(seg->end_seq, tcp_sk(sk)->rcv_nxt))
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
}

static enum gl_verdict hpcc_on_packet(struct sock *sk, struct gl_sock *gs,
				      const struct gl_kind *kind, const struct gl_seg *seg)
{
	if (!gl_marking(gs))
		return GL_PASS;
	if (kind == &hpcc_kinds[HPCC_DATA])
		hpcc_data(sk, hpcc_sock(gs), seg);
	else if (kind == &hpcc_kinds[HPCC_ACK])
		hpcc_sample(sk, seg->ack, seg->field & GL_INT_MAX);
	return GL_PASS;
}

/* A process has released the socket, and TCP has delayed the ACK of data that arrived meanwhile. */
static void hpcc_on_kick(struct sock *sk, struct gl_sock *gs)
{
	if (gl_marking(gs) && hpcc_sock(gs)->owed && inet_csk_ack_scheduled(sk))
		gl_send_ack(sk);
}

static void hpcc_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	if (!on)
		gl_leave_rate(sk, hpcc_of(sk)->paces);
}

static void hpcc_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
}

static struct tcp_congestion_ops hpcc_reno_ops __read_mostly = GL_RENO("hpcc-reno");

/* "The sender starts at line rate" (§3.2). */
static void hpcc_begin(struct sock *sk)
{
	struct hpcc *ca = hpcc_of(sk);
	struct hpcc_path path;

	hpcc_path(sk, &path);
	hpcc_window_init(&ca->w, &path.p);
	ca->update = tcp_sk(sk)->snd_nxt;
	ca->round = tcp_sk(sk)->snd_nxt;
	ca->governed = 1;
	ca->early = 1;
	ca->paces = gl_pacing_begin(sk);
	hpcc_apply(sk, &path);
}

static void hpcc_init(struct sock *sk)
{
	struct gl_sock *gs;

	memset(hpcc_of(sk), 0, sizeof(struct hpcc));
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return;
	gs = gl_attach(sk);
	if (gs && gs->peer == GREENLANE_PEER_YES) {
		hpcc_begin(sk);
		return;
	}
	gl_detach(sk);
	gl_fall_back(sk, &hpcc_reno_ops);
}

static struct gl_transport hpcc_transport __read_mostly = {
	.ops = {
		.name		= "hpcc",
		.owner		= THIS_MODULE,
		.init		= hpcc_init,
		.release	= gl_release,
		.ssthresh	= hpcc_ssthresh,
		.undo_cwnd	= hpcc_undo_cwnd,
		.set_state	= hpcc_set_state,
		.cong_control	= hpcc_cong_control,
		.min_tso_segs	= hpcc_min_tso_segs,
	},
	.protocol	= &hpcc_protocol,
	.always		= true,
	.room		= GL_OPT_LEN(0),
	.sock_size	= sizeof(struct hpcc_sock),
	.on_xmit	= hpcc_on_xmit,
	.on_ack		= hpcc_on_ack,
	.on_packet	= hpcc_on_packet,
	.on_kick	= hpcc_on_kick,
	.on_switch	= hpcc_on_switch,
	.on_info	= hpcc_on_info,
};

/* --- net.ipv4.hpcc_* ---------------------------------------------------------------- */

static unsigned int hpcc_mbit_max = LINK_SPEED_MBIT_MAX;
static unsigned int hpcc_us_max = USEC_PER_SEC;
static unsigned int hpcc_eta_min = 10;
static unsigned int hpcc_flows_max = 100000;

#define HPCC_SYSCTL(name, field, least, most)	\
	GL_SYSCTL_UINT("hpcc_" name, struct hpcc_net, field, least, most)

static const struct ctl_table hpcc_sysctl_template[] = {
	HPCC_SYSCTL("rate", mbit, SYSCTL_ZERO, &hpcc_mbit_max),
	HPCC_SYSCTL("rtt", rtt_us, SYSCTL_ZERO, &hpcc_us_max),
	HPCC_SYSCTL("eta", eta, &hpcc_eta_min, SYSCTL_ONE_HUNDRED),
	HPCC_SYSCTL("stages", stages, SYSCTL_ZERO, SYSCTL_ONE_THOUSAND),
	HPCC_SYSCTL("flows", flows, SYSCTL_ONE, &hpcc_flows_max),
	HPCC_SYSCTL("average", average, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init hpcc_net_init(struct net *net)
{
	struct hpcc_net *hn = net_generic(net, hpcc_net_id);

	/* From §5.1 of the paper, where W_AI = 80 bytes at 100 Gbit/s and 13 us: 5 % of 162.5 kB,
	 * divided by 100 flows.
	 */
	hn->eta = 95;
	hn->stages = 5;
	hn->flows = 100;
	hn->average = 1;
	hn->sysctl = gl_sysctl_add(net, hpcc_sysctl_template, ARRAY_SIZE(hpcc_sysctl_template),
				   hn);
	return hn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit hpcc_net_exit(struct net *net)
{
	struct hpcc_net *hn = net_generic(net, hpcc_net_id);

	gl_sysctl_remove(hn->sysctl);
}

static struct pernet_operations hpcc_net_ops = {
	.init	= hpcc_net_init,
	.exit	= hpcc_net_exit,
	.id	= &hpcc_net_id,
	.size	= sizeof(struct hpcc_net),
};

static int __init hpcc_module_init(void)
{
	int err;

	BUILD_BUG_ON(sizeof(struct hpcc) > ICSK_CA_PRIV_SIZE);

	err = register_pernet_subsys(&hpcc_net_ops);
	if (err)
		return err;
	err = gl_register_transport(&hpcc_transport);
	if (err)
		unregister_pernet_subsys(&hpcc_net_ops);
	return err;
}

static void __exit hpcc_module_exit(void)
{
	gl_unregister_transport(&hpcc_transport);
	unregister_pernet_subsys(&hpcc_net_ops);
}

module_init(hpcc_module_init);
module_exit(hpcc_module_exit);

MODULE_DESCRIPTION("HPCC: a window from the telemetry of switches");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
