// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a burst of unscheduled packets.
 *
 * A sender waits a round trip for its first credit.  It uses that time, and sends a
 * bandwidth-delay product at once (Aeolus, §III-A; NDP, SIGCOMM 2017, §3.2).  The transport
 * repairs the losses.  All bursts of a host together are at most a bandwidth-delay product of its
 * link: rd_first_request().
 */
#include <net/dst.h>
#include <net/tcp.h>

#include "rd_internal.h"

/* Largest burst in packets, for all settings: 50 us at 1 Tbit/s. */
#define RD_FIRST_MAX	4096

/**
 * rd_first_bytes() - size of a burst
 * @sk: the connection, locked
 * @gs: its state
 *
 * The socket option sets it, or the route's initcwnd.  Otherwise it is a bandwidth-delay product:
 * the link's speed times the minimum RTT.  It is TCP's first window if TCP does not know the
 * minimum RTT, because the SYN was retransmitted.
 *
 * Return: bytes, at least an MSS.
 */
u32 rd_first_bytes(struct sock *sk, const struct gl_sock *gs)
{
	const struct rd_sock *rs = container_of(gs, struct rd_sock, gs);
	const struct dst_entry *dst = __sk_dst_get(sk);
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 packets = dst ? dst_metric(dst, RTAX_INITCWND) : 0;
	u64 bytes = rs->first.bdp;

	if (!packets && tcp_min_rtt(tp) == U32_MAX)
		packets = TCP_INIT_CWND;
	if (!bytes)
		bytes = (u64)packets * tp->mss_cache;
	if (!bytes)
		bytes = (u64)rd_mbit(sk, rs) * clamp(tcp_min_rtt(tp), 1U, (u32)USEC_PER_SEC) /
			BITS_PER_BYTE;
	return clamp_t(u64, bytes, tp->mss_cache, (u64)RD_FIRST_MAX * tp->mss_cache);
}
EXPORT_SYMBOL_GPL(rd_first_bytes);

/**
 * rd_first_over() - the peer has answered, or has not answered for too long
 * @sk: the connection, locked
 * @gs: its state
 */
void rd_first_over(struct sock *sk, struct gl_sock *gs)
{
	struct rd_first_burst *b = &rd_sock(gs)->first;

	rd_first_done(gs);
	b->grows = 0;
	b->allow = 0;
}
EXPORT_SYMBOL_GPL(rd_first_over);

/* Request a share of the host's bursts for the data at hand only, as other connections may have
 * data, too.  Packets that are refused wait for credits.
 */
static void rd_first_grant(struct sock *sk, struct gl_sock *gs)
{
	struct rd_first_burst *b = &rd_sock(gs)->first;
	u32 mss = tcp_sk(sk)->mss_cache;
	u32 most = rd_first_bytes(sk, gs);
	u32 end = b->begin + min(gl_data_end(sk) - b->begin, most);
	u32 want, may;

	if (!after(end, b->asked))
		return;
	want = DIV_ROUND_UP(end - b->asked, mss);
	may = rd_first_request(sk, gs, want, most / mss);
	b->asked = end;
	b->allow += may;
	b->grows = may == want;
}

/**
 * rd_first_begin() - data waits: begin a burst if the connection was idle, or continue it
 * @sk: the connection, locked
 * @gs: its state
 * @requested: credits were requested, so it is too late for a new burst
 * @idle_ms: a connection is idle if it has sent nothing for this time, and all its data is
 *	acknowledged
 *
 * Return: true if a burst begins.
 */
bool rd_first_begin(struct sock *sk, struct gl_sock *gs, bool requested, unsigned int idle_ms)
{
	struct rd_sock *rs = rd_sock(gs);
	struct rd_first_burst *b = &rs->first;
	const struct tcp_sock *tp = tcp_sk(sk);

	if (requested || (b->grows && tp->packets_out)) {
		/* The application may have written more before the answer to the burst. */
		if (b->grows && !tp->lost_out)
			rd_first_grant(sk, gs);
		return false;
	}
	if (b->off || tp->packets_out ||
	    (b->begun && tcp_jiffies32 - tp->lsndtime < msecs_to_jiffies(idle_ms)))
		return false;
	b->begun = 1;
	b->probed = 0;
	rs->retries = 0;
	rs->alive = 0;
	b->begin = tp->snd_nxt;
	b->end = tp->snd_nxt;
	b->asked = tp->snd_nxt;
	rd_first_over(sk, gs);
	rd_first_grant(sk, gs);
	return true;
}
EXPORT_SYMBOL_GPL(rd_first_begin);

/**
 * rd_first_left() - packets that a burst may still send
 * @sk: the connection, locked
 * @gs: its state
 *
 * Return: their number.  If a packet is lost, the peer has answered, and retransmissions wait for
 * credits: 0.
 */
u32 rd_first_left(const struct sock *sk, struct gl_sock *gs)
{
	return tcp_sk(sk)->lost_out ? 0 : rd_sock(gs)->first.allow;
}
EXPORT_SYMBOL_GPL(rd_first_left);

/**
 * rd_first_sends() - data leaves: is it a packet of the burst?
 * @sk: the connection, locked
 * @gs: its state, whose burst counts the packet
 * @seg: the packet
 *
 * Return: false for a retransmission, and for data after the burst.
 */
bool rd_first_sends(const struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	struct rd_first_burst *b = &rd_sock(gs)->first;

	if (!b->allow || before(seg->seq, tcp_sk(sk)->snd_nxt))
		return false;
	b->allow -= min(b->allow, seg->segs);
	b->unscheduled += seg->segs;
	b->end = seg->end_seq;
	return true;
}
EXPORT_SYMBOL_GPL(rd_first_sends);

/**
 * rd_first_in_ack_event() - tcp_congestion_ops' in_ack_event() if an ACK of all data ends a burst
 * @sk: the connection
 * @flags: CA_ACK_* of the ACK
 */
void rd_first_in_ack_event(struct sock *sk, u32 flags)
{
	struct gl_sock *gs = gl_sock_locked(sk);

	rd_in_ack_event(sk, flags);
	if (gs && !before(tcp_sk(sk)->snd_una, rd_sock(gs)->first.end))
		rd_first_over(sk, gs);
}
EXPORT_SYMBOL_GPL(rd_first_in_ack_event);

/**
 * rd_first_set_bdp() - set the size of a burst
 * @sk: the connection, locked
 * @gs: its state
 * @bytes: 0 for the route's, or the measured one
 *
 * Return: 0.
 */
int rd_first_set_bdp(struct sock *sk, struct gl_sock *gs, int bytes)
{
	rd_sock(gs)->first.bdp = bytes;
	return 0;
}
EXPORT_SYMBOL_GPL(rd_first_set_bdp);

/**
 * rd_first_get_bdp() - the size of a burst that rd_first_set_bdp() has set
 * @sk: the connection, locked
 * @gs: its state
 *
 * Return: bytes; 0 if not set.
 */
int rd_first_get_bdp(const struct sock *sk, struct gl_sock *gs)
{
	return rd_sock(gs)->first.bdp;
}
EXPORT_SYMBOL_GPL(rd_first_get_bdp);
