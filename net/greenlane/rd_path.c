// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a connection's link.
 *
 * The link time of its packets, the queue of receivers that it is in, and its part of the
 * unscheduled packets that the host may send.  All change when its route changes: rd_follow().
 */

#include <net/gl_compat.h>
#include "rd_internal.h"

/* --- link time -------------------------------------------------------------- */

/**
 * rd_path_of() - the link that a connection's packets leave on
 * @sk: the connection
 * @rs: its state
 *
 * Return: its speed and overhead at present.
 */
struct rd_path rd_path_of(const struct sock *sk, const struct rd_sock *rs)
{
	struct rd_path path;
	struct link_speed *link;

	rcu_read_lock();
	link = link_speed_rcu(sk);
	path.mbit = rd_transport(rs)->policy->mbit(sk) ?: link_speed_mbit(link);
	path.extra = READ_ONCE(link->extra);
	rcu_read_unlock();
	return path;
}

/**
 * rd_mbit() - the speed of a connection's link
 * @sk: the connection
 * @rs: its state
 *
 * Return: Mbit/s.
 */
u32 rd_mbit(const struct sock *sk, const struct rd_sock *rs)
{
	return rd_path_of(sk, rs).mbit;
}
EXPORT_SYMBOL_GPL(rd_mbit);

/* Bytes on the link of a packet with @len bytes of TCP header and data. */
static u32 rd_wire(const struct sock *sk, const struct rd_path *path, u32 len)
{
	return max_t(u32, inet_csk(sk)->icsk_af_ops->net_header_len + len + RD_WIRE + path->extra,
		     RD_WIRE_MIN);
}

/**
 * rd_packet_ns() - link time of a packet
 * @sk: the connection
 * @rs: its state
 * @len: bytes of TCP header and data
 *
 * Return: ns.
 */
u64 rd_packet_ns(const struct sock *sk, const struct rd_sock *rs, u32 len)
{
	struct rd_path path = rd_path_of(sk, rs);

	return link_speed_ns(path.mbit, rd_wire(sk, &path, len));
}

/**
 * rd_full_ns() - link time of a packet that carries an MSS
 * @sk: the connection
 * @rs: its state
 *
 * Return: ns, not 0.
 */
u64 rd_full_ns(const struct sock *sk, const struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return max_t(u64, rd_packet_ns(sk, rs, tp->tcp_header_len + tp->mss_cache), 1);
}

/**
 * rd_credit_ps() - link time of a credit and of the data packet that it permits
 * @sk: the connection
 * @rs: its state
 *
 * The peer's packets are likely to be as large as this end's, which the peer's MSS limits, and as
 * the MSS that this end has announced.  But the peer may announce a smaller MSS than it sends, and
 * the MTU may be smaller in this direction than in the other: a larger packet that arrived counts.
 *
 * Return: ps.
 */
u64 rd_credit_ps(const struct sock *sk, const struct rd_sock *rs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 like_ours = min_t(u32, tp->tcp_header_len + tp->mss_cache,
			      sizeof(struct tcphdr) + tp->advmss);
	u32 len = max_t(u32, like_ours, tp->tcp_header_len + inet_csk(sk)->icsk_ack.rcv_mss);
	struct rd_path path = rd_path_of(sk, rs);

	return link_speed_ps(path.mbit,
			     rd_wire(sk, &path, RD_CREDIT_HLEN) + rd_wire(sk, &path, len));
}
EXPORT_SYMBOL_GPL(rd_credit_ps);

/* --- unscheduled packets ----------------------------------------------------
 *
 * tcp_aeolus.c decides when a burst begins, and repairs its losses.  rd_burst() limits the bursts
 * of all connections of the host together.
 */

/**
 * rd_first_request() - request packets of an unscheduled burst
 * @sk: the connection, locked
 * @gs: its state
 * @want: number of packets to send
 * @most: limit of the host for a round trip, packets
 *
 * Return: number of packets that may be sent; rd_first_done() returns them.
 */
u32 rd_first_request(struct sock *sk, struct gl_sock *gs, u32 want, u32 most)
{
	struct rd_sock *rs = rd_sock(gs);
	u64 one = rd_full_ns(sk, rs);
	u32 may;

	rd_follow(sk, rs);
	may = rd_burst(rs->r.queue, get_jiffies_64(), want, one, most * one, &rs->epoch);
	rs->burst = min_t(u64, rs->burst + may * one, U32_MAX);
	return may;
}
EXPORT_SYMBOL_GPL(rd_first_request);

/**
 * rd_first_done() - the receiver has acknowledged the burst, or a timeout has expired
 * @gs: the state of a connection, locked or about to be freed
 */
void rd_first_done(struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);

	if (!rs->burst)
		return;
	rd_burst_over(rs->r.queue, get_jiffies_64(), rs->burst, rs->epoch);
	rs->burst = 0;
}
EXPORT_SYMBOL_GPL(rd_first_done);

/* --- the queue -------------------------------------------------------------- */

/**
 * rd_leave_link() - leave the queue of a connection's link, and return its unscheduled packets
 * @rs: the state of a connection, locked or about to be freed
 */
void rd_leave_link(struct rd_sock *rs)
{
	if (!rs->r.queue)
		return;
	rd_first_done(&rs->gs);
	rd_alarm_set(rs->r.queue, &rs->alarm, RD_NEVER);
	rd_leave(rs->r.queue, &rs->r);
	link_speed_put(container_of(rs->r.queue, struct link_speed, queue));
	WRITE_ONCE(rs->r.queue, NULL);
}

/**
 * rd_follow() - move to the queue of the link that a connection's packets leave on now
 * @sk: the connection, locked
 * @rs: its state
 */
void rd_follow(struct sock *sk, struct rd_sock *rs)
{
	struct link_speed *link = link_speed_get(sk);

	if (likely(rs->r.queue == &link->queue)) {
		link_speed_put(link);
		return;
	}
	rd_leave_link(rs);
	rs->r.rank = 0;
	WRITE_ONCE(rs->r.queue, &link->queue);
}
