// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: a connection's part of the host's unscheduled packets.
 *
 * tcp_aeolus.c decides when a burst begins, and repairs its losses.  rd_burst() limits the bursts
 * of all connections of the host together.
 */
#include "rd_internal.h"

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

/**
 * rd_first_counted() - the receiver has counted the packets of the burst that arrived
 * @gs: the state of a connection, locked
 *
* It sends no credits for these packets, so the sender no longer expects the requested credits.
 */
void rd_first_counted(struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);

	rs->credit_end = rs->seq;
}
EXPORT_SYMBOL_GPL(rd_first_counted);
