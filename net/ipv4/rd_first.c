// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: what a sender may send before the first credit.
 *
 * When that is, and what becomes of what is lost, is up to who wraps a transport (tcp_aeolus.c).
 * How much it is, all connections of a host decide together: see rd_burst().
 */
#include "rd_internal.h"

/**
 * rd_first_want() - send before any credit has come
 * @sk: the connection, locked
 * @gs: its state
 * @want: how much there is, packets
 * @most: what the host may send so in a round trip, packets
 *
 * Return: how many packets may be sent; rd_first_over() gives them back.
 */
u32 rd_first_want(struct sock *sk, struct gl_sock *gs, u32 want, u32 most)
{
	struct rd_sock *rs = rd_sock(gs);
	u64 one = rd_full_ns(sk, rs);
	u32 may;

	rd_follow(sk, rs);
	may = rd_burst(rs->r.queue, get_jiffies_64(), want, one, most * one, &rs->epoch);
	rs->burst = min_t(u64, rs->burst + may * one, U32_MAX);
	return may;
}
EXPORT_SYMBOL_GPL(rd_first_want);

/**
 * rd_first_over() - an answer has come, or none for too long
 * @gs: the state of a connection, locked or about to be freed
 */
void rd_first_over(struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);

	if (!rs->burst)
		return;
	rd_burst_over(rs->r.queue, get_jiffies_64(), rs->burst, rs->epoch);
	rs->burst = 0;
}
EXPORT_SYMBOL_GPL(rd_first_over);

/**
 * rd_first_came() - the receiver has counted what came of a burst, and sends no credits for it
 * @gs: the state of a connection, locked
 */
void rd_first_came(struct gl_sock *gs)
{
	struct rd_sock *rs = rd_sock(gs);

	rs->told_end = rs->seq;
}
EXPORT_SYMBOL_GPL(rd_first_came);
