// SPDX-License-Identifier: GPL-2.0
/* Aeolus over TLT: the first round trip at line rate.
 *
 * A window transport begins with ten packets, and needs several round trips to find the bandwidth
 * that is free.  Aeolus sends a bandwidth-delay product at once, as *unscheduled* packets, which
 * switches drop first (ToN 2021, §III-A).  Its paper has that for credit transports: TCP "does not
 * send scheduled packets whose deliveries are guaranteed" (§VI).  Their ACKs report the losses.
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
 * arrived by then did so within a round trip: their number is a window that the path has carried.
 *
 * snd_cwnd is larger only while TCP sends: the next ACK, or a timeout, finds TCP's own window, so
 * TCP computes all its reductions from that.
 *
 * Documentation/tlt.rst has the rules and their tests.
 */
#include <net/gl_rate.h>
#include <net/greenlane.h>

#include "tlt_burst.h"

/* Largest burst in packets, for all settings: 50 us at 1 Tbit/s. */
#define TLT_BURST_MAX		4096
/* A path that has lost an important packet has ports without colours, or a full one.  Without
 * colours a burst loses the packets that TCP would have sent later, so one message in 33 tries.
 */
#define TLT_BURST_SKIP		32

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

/* Packets that TCP could send if only the window limited it. */
static u32 tlt_burst_waiting(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 end = gl_data_end(sk);

	if (after(end, tcp_wnd_end(tp)))
		end = tcp_wnd_end(tp);
	return after(end, tp->snd_nxt) ? DIV_ROUND_UP(end - tp->snd_nxt, tp->mss_cache) : 0;
}

/* The first packet beyond TCP's window is about to leave.  TCP sends whole GSO packets of one kind.
 */
static void tlt_burst_begin(struct sock *sk, struct tlt_burst *b)
{
	b->own = b->window;
	gl_pace_as_tcp(sk);
	sk->sk_gso_max_segs = min_t(u32, sk->sk_gso_max_segs, b->own);
}

/**
 * tlt_burst_lend() - TCP is about to send: a burst may begin, or continue
 * @sk: the connection, locked
 * @b: its burst
 * @mbit: as in tlt_burst_bytes()
 *
 * A message begins after TCP has sent all data, and all is acknowledged.  If it has more data than
 * TCP's window permits, and that is less than a bandwidth-delay product, the rest is a burst.  It
 * continues as ACKs arrive, until its echo does, or TCP repairs a loss or reduces its window.
 */
void tlt_burst_lend(struct sock *sk, struct tlt_burst *b, u32 mbit)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 packets;

	tlt_burst_return(sk, b);
	if (!b->busy && tcp_send_head(sk)) {
		b->busy = 1;
		b->on = !b->off;
		b->delivered = tp->delivered;
	}
	/* TCP may be in CWR since the last message. */
	if (!b->on || (tp->packets_out && inet_csk(sk)->icsk_ca_state > TCP_CA_Disorder))
		return;
	packets = tcp_packets_in_flight(tp) + tlt_burst_waiting(sk);
	if (packets <= tcp_snd_cwnd(tp))
		return;
	packets = min3(packets, tlt_burst_bytes(sk, b, mbit) / tp->mss_cache, tp->snd_cwnd_clamp);
	if (packets <= tcp_snd_cwnd(tp))
		return;
	if (!b->own && b->skip) {
		b->skip--;
		b->on = 0;
		return;
	}
	b->window = tcp_snd_cwnd(tp);
	tcp_snd_cwnd_set(tp, packets);
	if (!b->own)
		tlt_burst_begin(sk, b);
}

/**
 * tlt_burst_acked() - an ACK has arrived, and TCP has not changed its window yet
 * @sk: the connection, locked
 * @b: its burst
 */
void tlt_burst_acked(struct sock *sk, struct tlt_burst *b)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	tlt_burst_return(sk, b);
	b->busy = tp->snd_una != tp->snd_nxt || tcp_send_head(sk);
}

/**
 * tlt_burst_return() - TCP is about to read or change its window
 * @sk: the connection, locked
 * @b: its burst
 */
void tlt_burst_return(struct sock *sk, struct tlt_burst *b)
{
	if (b->window)
		tcp_snd_cwnd_set(tcp_sk(sk), b->window);
	b->window = 0;
}

/* Packets that have arrived since the burst began. */
static u32 tlt_burst_arrived(const struct tcp_sock *tp, const struct tlt_burst *b)
{
	return (u16)(tp->delivered - b->delivered);
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
	return b->own && !tlt_burst_arrived(tcp_sk(sk), b);
}

/**
 * tlt_burst_sends() - data leaves: is it unscheduled?
 * @sk: the connection, locked
 * @b: its burst
 * @seq: first sequence number
 * @segs: packets
 */
bool tlt_burst_sends(const struct sock *sk, const struct tlt_burst *b, u32 seq, u32 segs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return b->window && !before(seq, tp->snd_nxt) &&
	       tcp_packets_in_flight(tp) + segs > b->window;
}

/**
 * tlt_burst_echoed() - the echo of an important packet has arrived
 * @sk: the connection, locked
 * @b: its burst
 * @ssthresh: the base's ssthresh()
 *
 * The path has carried the packets that arrived in a round trip.  Without losses their number is at
 * least the next window, in place of what slow start has made of it beyond twice the old one.  If
 * TCP reduces a smaller window because of a mark, it reduces that number instead.  With losses the
 * number is the connection's share of the port, and the window after the recovery: at least half of
 * the old one, reno's reaction to a loss.
 */
void tlt_burst_echoed(struct sock *sk, struct tlt_burst *b, u32 (*ssthresh)(struct sock *sk))
{
	u8 state = inet_csk(sk)->icsk_ca_state;
	struct tcp_sock *tp = tcp_sk(sk);
	u32 n, window, own = b->own;

	tlt_burst_end(sk, b);
	if (!own)
		return;
	n = min_t(u32, tlt_burst_arrived(tp, b), TLT_BURST_MAX);
	window = tcp_snd_cwnd(tp);
	if (state == TCP_CA_Recovery) {
		tp->snd_ssthresh = max3(n, own / 2, 2U);
		window = min(window, tp->snd_ssthresh);
	} else if (state == TCP_CA_CWR && n > tp->prior_cwnd) {
		tcp_snd_cwnd_set(tp, n);
		tp->prior_cwnd = n;
		tp->snd_ssthresh = ssthresh(sk);
		window = min(window, tp->snd_ssthresh);
	} else if (state < TCP_CA_CWR && tp->lost_out) {
		window = max3(n, own / 2, 2U);
	} else if (state < TCP_CA_CWR) {
		window = max(n, min(window, 2 * own));
	}
	tcp_snd_cwnd_set(tp, window);
}

/**
 * tlt_burst_end() - the burst ends
 * @sk: the connection, locked
 * @b: its burst
 */
void tlt_burst_end(struct sock *sk, struct tlt_burst *b)
{
	tlt_burst_return(sk, b);
	if (b->own)
		gl_gso_default(sk);
	b->own = 0;
	b->on = 0;
}

/**
 * tlt_burst_lost() - an important packet is lost
 * @sk: the connection, locked
 * @b: its burst
 */
void tlt_burst_lost(struct sock *sk, struct tlt_burst *b)
{
	if (b->own)
		b->skip = TLT_BURST_SKIP;
	tlt_burst_end(sk, b);
}
