// SPDX-License-Identifier: GPL-2.0
/* Aeolus over TLT: the first round trip at line rate.
 *
 * A window transport begins with ten packets, and needs several round trips to find the bandwidth
 * that is free.  Aeolus sends a bandwidth-delay product at once, as *unscheduled* packets that
 * switches drop first (ToN 2021, §III-A).  Its paper has that for credit transports.  TCP "does
 * not send scheduled packets whose deliveries are guaranteed" (§VI), which would report the losses.
 * TLT's important packet is such a packet.
 *
 *	sender                        switch                  receiver
 *	d d d d u u u u u u I  ----->  . . . . x x . x x . I   d d d d u u I
 *	                      <-----------------------------   echo
 *	all u before I not acked: lost; the window is what has arrived
 *
 * TCP sends its own window as ever; the packets beyond it are unscheduled, up to a bandwidth-delay
 * product.  So the burst takes free bandwidth only, and a connection that finds none is where it
 * would be without the burst.  The echo of the burst's last packet ends it.  The packets that have
 * arrived by then did so within a round trip: they are the next window.
 *
 * Documentation/tlt.rst has the measurements.
 */
#include <net/gl_rate.h>
#include <net/greenlane.h>

#include "tlt_burst.h"

/* Largest burst in packets, for all settings: 50 us at 1 Tbit/s. */
#define TLT_BURST_MAX		4096
/* Bits of tp->delivered that a burst keeps. */
#define TLT_BURST_DELIVERED	GENMASK(14, 0)

/**
 * tlt_burst_bytes() - size of a burst
 * @sk: the connection, locked
 * @b: its burst
 * @mbit: the speed of the link, Mbit/s, or 0 for the one that link_speed.c finds
 *
 * Return: bytes; 0 before TCP has measured an RTT, unless the socket option sets it.
 */
u32 tlt_burst_bytes(const struct sock *sk, const struct tlt_burst *b, u32 mbit)
{
	u64 bytes = b->bdp;

	if (!bytes)
		bytes = (u64)gl_rate_link(sk, mbit).mbit *
			min_t(u32, gl_rate_rtt(sk, 0), USEC_PER_SEC) / BITS_PER_BYTE;
	return min_t(u64, bytes, (u64)TLT_BURST_MAX * tcp_sk(sk)->mss_cache);
}

/* TCP's own window grows beyond the burst while ACKs of the first packets arrive. */
static void tlt_burst_hold(struct tcp_sock *tp, const struct tlt_burst *b)
{
	if (tcp_snd_cwnd(tp) > b->limit)
		tcp_snd_cwnd_set(tp, b->limit);
}

/**
 * tlt_burst_begin() - TCP is about to send: a burst may begin
 * @sk: the connection, locked
 * @b: its burst
 * @mbit: as in tlt_burst_bytes()
 *
 * It begins if data waits, no packet is in flight, and TCP's window is less than a bandwidth-delay
 * product.  TCP sends whole GSO packets of one kind, so they are not larger than its own window.
 */
void tlt_burst_begin(struct sock *sk, struct tlt_burst *b, u32 mbit)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 limit;

	if (b->window) {
		tlt_burst_hold(tp, b);
		return;
	}
	if (tp->packets_out || b->off || !tcp_send_head(sk))
		return;
	limit = min(tlt_burst_bytes(sk, b, mbit) / tp->mss_cache, tp->snd_cwnd_clamp);
	if (limit <= tcp_snd_cwnd(tp))
		return;
	b->window = tcp_snd_cwnd(tp);
	b->limit = limit;
	b->delivered = tp->delivered & TLT_BURST_DELIVERED;
	tcp_snd_cwnd_set(tp, limit);
	gl_pace_as_tcp(sk);
	sk->sk_gso_max_segs = min_t(u32, sk->sk_gso_max_segs, b->window);
}

/* Packets that have arrived since the burst began. */
static u32 tlt_burst_arrived(const struct tcp_sock *tp, const struct tlt_burst *b)
{
	return (tp->delivered - b->delivered) & TLT_BURST_DELIVERED;
}

/**
 * tlt_burst_grows() - is the burst in its first round trip?
 * @sk: the connection, locked
 * @b: its burst
 *
 * Its last packet is important, and it may have several last ones: TCP sends a long write in parts.
 */
bool tlt_burst_grows(const struct sock *sk, const struct tlt_burst *b)
{
	return b->window && !tlt_burst_arrived(tcp_sk(sk), b);
}

/**
 * tlt_burst_sends() - data leaves: is it unscheduled?
 * @sk: the connection, locked
 * @b: its burst
 * @seq: first sequence number
 */
bool tlt_burst_sends(const struct sock *sk, const struct tlt_burst *b, u32 seq)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return b->window && !before(seq, tp->snd_nxt) && tcp_packets_in_flight(tp) >= b->window;
}

/**
 * tlt_burst_end() - the echo has arrived, or will not arrive any more
 * @sk: the connection, locked
 * @b: its burst
 *
 * The window becomes the number of packets that have arrived, and with losses at least half of the
 * window before the burst: reno's reaction to a loss in it.  Without losses it is at least that
 * window, which the application may not have filled.  If TCP reduces its window already, by a loss
 * or a mark, that number is its goal at most.  After a full bandwidth-delay product there is no
 * more to find, and slow start ends.
 */
void tlt_burst_end(struct sock *sk, struct tlt_burst *b)
{
	bool reduced = inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 n, least = b->window;

	if (!b->window)
		return;
	if (reduced || tp->lost_out)
		least = max(least / 2, 2U);
	n = clamp_t(u32, tlt_burst_arrived(tp, b), least, b->limit);
	if (reduced || n == b->limit) {
		tp->snd_ssthresh = min(tp->snd_ssthresh, n);
		tp->prior_cwnd = min(tp->prior_cwnd, n);
	}
	b->window = 0;
	tcp_snd_cwnd_set(tp, min(tcp_snd_cwnd(tp), n));
	gl_pace_as_tcp(sk);
	gl_gso_default(sk);
}
