/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for a congestion control whose rate is that of packets on the link, with all headers
 * (tcp_dcqcn.c, tcp_timely.c, tcp_hpcc.c).  TCP's own pacing enforces it.
 */
#ifndef _NET_GL_RATE_H
#define _NET_GL_RATE_H

#include <linux/math64.h>
#include <net/gl_cong.h>
#include <net/link_speed.h>
#include <net/tcp.h>

/* The window in BDPs: the link's rate times the smoothed RTT.  It is only meant to stop a sender
 * that no longer gets ACKs, and must not limit other senders.  Two BDPs did limit them: a queue of
 * 300 kB at 40 Gbit/s grows faster than the smoothed RTT.
 */
#define GL_RATE_WINDOWS		8
/* The minimum window in packets, because the first RTT may be that of an idle network. */
#define GL_RATE_WINDOW_MIN	64

/**
 * struct gl_rate_link - properties of a socket's link
 * @mbit: its rate, Mbit/s
 * @extra: bytes that it adds to a packet, beyond Ethernet's
 */
struct gl_rate_link {
	u32	mbit;
	u32	extra;
};

/**
 * gl_rate_link() - the link by which a socket's packets leave
 * @sk: the socket
 * @mbit: the configured rate, or 0 for the one that link_speed.c finds
 *
 * Return: its properties.
 */
static inline struct gl_rate_link gl_rate_link(const struct sock *sk, u32 mbit)
{
	struct gl_rate_link found = { .mbit = mbit };
	struct link_speed *link;

	rcu_read_lock();
	link = link_speed_rcu(sk);
	if (!found.mbit)
		found.mbit = link_speed_mbit(link);
	found.extra = READ_ONCE(link->extra);
	rcu_read_unlock();
	return found;
}

/**
 * gl_rate_rtt() - the base RTT of a connection
 * @sk: the connection, locked
 * @fixed: the configured one, us, or 0
 *
 * The minimum that TCP has measured (net.ipv4.tcp_min_rtt_wlen) includes a queue that stood all the
 * time, but needs no configuration, and differs from path to path.
 *
 * Return: us; 0 before the first measurement.
 */
static inline u32 gl_rate_rtt(const struct sock *sk, u32 fixed)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 rtt = fixed ?: tcp_min_rtt(tp);

	return rtt == ~0U ? tp->srtt_us >> 3 : rtt;
}

/**
 * gl_rate_packet() - bytes of a full packet on the link
 * @sk: the connection, locked
 * @extra: see struct gl_rate_link
 *
 * Return: bytes, with all headers.
 */
static inline u32 gl_rate_packet(const struct sock *sk, u32 extra)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return tp->mss_cache + tp->tcp_header_len + inet_csk(sk)->icsk_ext_hdr_len +
	       inet_csk(sk)->icsk_af_ops->net_header_len + LINK_SPEED_FRAME + extra;
}

/**
 * gl_rate_pace() - set the pacing rate
 * @sk: the connection, locked
 * @rate: on the link, kB/s (of 1000 bytes)
 * @extra: see struct gl_rate_link
 *
 * TCP paces by payload, the link's rate includes all headers: convert.
 */
static inline void gl_rate_pace(struct sock *sk, u32 rate, u32 extra)
{
	gl_pace(sk, div_u64(rate * 1000ULL * tcp_sk(sk)->mss_cache, gl_rate_packet(sk, extra)));
}

/* TCP warns about a window of 2^31 packets, which a peer can cause by late ACKs. */
static inline void gl_rate_set_cwnd(struct sock *sk, u64 packets)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tcp_snd_cwnd_set(tp, min3(packets, (u64)tp->snd_cwnd_clamp, (u64)INT_MAX));
}

/**
 * gl_rate_window() - a window so large that the rate limits the flow, not the window
 * @sk: the connection, locked
 * @line: the link's rate, kB/s
 */
static inline void gl_rate_window(struct sock *sk, u32 line)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 window = (u64)line * (tp->srtt_us >> 3) * GL_RATE_WINDOWS;

	window = div_u64(window, USEC_PER_MSEC);
	gl_rate_set_cwnd(sk, max_t(u64, div_u64(window, tp->mss_cache), GL_RATE_WINDOW_MIN));
}

/**
 * gl_rate_burst() - limit the size of GSO packets, for min_tso_segs()
 * @sk: the connection, locked
 * @us: the longest burst, as time at the flow's rate
 *
 * Pacing handles a GSO packet as one unit, which leaves the host at line rate.  TCP calls
 * min_tso_segs() when it is about to send.  The return value is a minimum, but TCP also respects
 * the device's maximum, sk_gso_max_segs, which is set here.  Restore it by gl_gso_default() when an
 * ACK arrives: the limit must not apply to data that the application writes before TCP sends.
 *
 * Return: the return value of min_tso_segs().
 */
static inline u32 gl_rate_burst(struct sock *sk, u32 us)
{
	u64 bytes = (u64)READ_ONCE(sk->sk_pacing_rate) * us;
	u32 segs = div_u64(div_u64(bytes, USEC_PER_SEC), tcp_sk(sk)->mss_cache);

	gl_gso_default(sk);
	sk->sk_gso_max_segs = clamp(segs, 1U, (u32)sk->sk_gso_max_segs);
	return 1;
}

#endif /* _NET_GL_RATE_H */
