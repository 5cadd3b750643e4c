// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a connection's link.
 *
 * The link time of its packets, the queue of receivers that it is in, and its part of the
 * unscheduled packets that the host may send.  All change when its route changes: rd_follow().
 */
#include <linux/slab.h>

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
	len += inet_csk(sk)->icsk_af_ops->net_header_len + LINK_SPEED_FRAME + path->extra;
	return max_t(u32, len, RD_WIRE_MIN);
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

/* Link time of a data packet of the peer, ps; and of a packet with a TCP header of @header bytes,
 * if that is not 0.
 *
 * The peer's packets are likely to be as large as this end's, which the peer's MSS limits, and as
 * the MSS that this end has announced.  But the peer may announce a smaller MSS than it sends, and
 * the MTU may be smaller in this direction than in the other: a larger packet that arrived counts.
 */
static u64 rd_permitted_ps(const struct sock *sk, const struct rd_sock *rs, u32 header)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u32 like_ours = min_t(u32, tp->tcp_header_len + tp->mss_cache,
			      sizeof(struct tcphdr) + tp->advmss);
	u32 len = max_t(u32, like_ours, tp->tcp_header_len + inet_csk(sk)->icsk_ack.rcv_mss);
	struct rd_path path = rd_path_of(sk, rs);

	len = rd_wire(sk, &path, len);
	if (header)
		len += rd_wire(sk, &path, header);
	return link_speed_ps(path.mbit, len);
}

/**
 * rd_credit_ps() - link time of a credit and of the data packet that it permits
 * @sk: the connection
 * @rs: its state
 *
 * Return: ps.
 */
u64 rd_credit_ps(const struct sock *sk, const struct rd_sock *rs)
{
	return rd_permitted_ps(sk, rs, RD_CREDIT_HLEN);
}
EXPORT_SYMBOL_GPL(rd_credit_ps);

/**
 * rd_data_ps() - link time of the data packet that a credit permits
 * @sk: the connection
 * @rs: its state
 *
 * Return: ps.
 */
u64 rd_data_ps(const struct sock *sk, const struct rd_sock *rs)
{
	return rd_permitted_ps(sk, rs, 0);
}
EXPORT_SYMBOL_GPL(rd_data_ps);

/* --- unscheduled packets ----------------------------------------------------
 *
 * rd_first.c decides when a burst begins, and the transport repairs its losses.  rd_burst() limits
 * the bursts of all connections of the host together.
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

/* --- the queue -----------------------------------------------------------------
 *
 * The first connection of a link attaches a queue, and the last one detaches it:
 *
 *	connection --- ref ---> rd_queue --- ref ---> link_speed
 *	                           ^------ @attached -----'
 *
 * So a link without connections has no queue, and when rd_core.ko is unloaded no link has one.
 * link_speed.ko may stay, for a port or for DCQCN.  The connections of a link whose device is
 * removed keep its queue until rd_follow() moves them.
 */

/* For connections whose link's queue found no memory.  They share the time of one link, although
 * they may use several, until rd_follow() finds memory.
 */
static struct rd_queue rd_spare;

static void rd_queue_free(struct rcu_head *rcu)
{
	struct rd_queue *q = container_of(rcu, struct rd_queue, rcu);

	/* The queue is empty, but its timer may still run. */
	rd_queue_exit(q);
	kfree(q);
}

static void rd_queue_put(struct rd_queue *q)
{
	struct link_speed *link = q->link;

	if (!refcount_dec_and_test(&q->refs))
		return;
	/* rd_queue_get() may have attached another one meanwhile. */
	cmpxchg(&link->attached, RCU_INITIALIZER(q), NULL);
	link_speed_put(link);
	call_rcu(&q->rcu, rd_queue_free);
}

/* Attach a queue in place of @old, which has no connections.  Takes the caller's reference on the
 * link.  Return: NULL if another processor was faster, the spare queue if there is no memory.
 */
static struct rd_queue *rd_queue_attach(struct link_speed *link, struct rd_queue *old)
{
	struct rd_queue *q = kzalloc(sizeof(*q), GFP_ATOMIC | __GFP_NOWARN);
	const void *was;

	if (!q) {
		refcount_inc(&rd_spare.refs);
		link_speed_put(link);
		return &rd_spare;
	}
	rd_queue_init(q);
	q->link = link;
	refcount_set(&q->refs, 1);
	was = unrcu_pointer(cmpxchg(&link->attached, RCU_INITIALIZER(old), RCU_INITIALIZER(q)));
	if (was == old)
		return q;
	kfree(q);
	return NULL;
}

/* A reference on the queue of a link.  Takes the caller's reference on the link. */
static struct rd_queue *rd_queue_get(struct link_speed *link)
{
	struct rd_queue *q, *old;

	rcu_read_lock();
	do {
		old = rcu_dereference(link->attached);
		if (old && refcount_inc_not_zero(&old->refs)) {
			link_speed_put(link);
			q = old;
		} else {
			q = rd_queue_attach(link, old);
		}
	} while (!q);
	rcu_read_unlock();
	return q;
}

/* Is the connection on the queue of the link that its packets leave on now? */
static bool rd_is_on_link(const struct sock *sk, const struct rd_sock *rs)
{
	const void *attached;

	rcu_read_lock();
	attached = rcu_access_pointer(link_speed_wire(link_speed_rcu(sk))->attached);
	rcu_read_unlock();
	return attached && attached == rs->r.queue;
}

/**
 * rd_leave_link() - leave the queue of a connection's link, and return its unscheduled packets
 * @rs: the state of a connection, locked or about to be freed
 */
void rd_leave_link(struct rd_sock *rs)
{
	struct rd_queue *q = rs->r.queue;

	if (!q)
		return;
	rd_first_done(&rs->gs);
	rd_alarm_set(q, &rs->alarm, RD_NEVER);
	rd_leave(q, &rs->r);
	/* First: rd_issue_locked() reads it with RCU. */
	WRITE_ONCE(rs->r.queue, NULL);
	rd_queue_put(q);
}

/**
 * rd_follow() - move to the queue of the link that a connection's packets leave on now
 * @sk: the connection, locked
 * @rs: its state
 */
void rd_follow(struct sock *sk, struct rd_sock *rs)
{
	bool moves = rs->r.queue;
	struct rd_queue *q;

	if (likely(rd_is_on_link(sk, rs)))
		return;
	q = rd_queue_get(link_speed_get(sk));
	/* The spare queue again. */
	if (q == rs->r.queue) {
		rd_queue_put(q);
		return;
	}
	rd_leave_link(rs);
	rs->r.rank = 0;
	WRITE_ONCE(rs->r.queue, q);
	/* Its alarm and its place as a receiver stayed behind: the kick renews both. */
	if (moves)
		gl_kick(sk, &rs->gs);
}

/* Before the first connection. */
void rd_path_init(void)
{
	rd_queue_init(&rd_spare);
	refcount_set(&rd_spare.refs, 1);
}

/* After the last connection. */
void rd_path_exit(void)
{
	rd_queue_exit(&rd_spare);
	/* rd_queue_free(), and with it timers that are still in rd_issue_socket() */
	rcu_barrier();
}
