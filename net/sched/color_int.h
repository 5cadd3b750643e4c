/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `int`: the port tells passing packets how much it is used; see <net/gl_int.h>.
 *
 *	U = (queued + sent) / (B T)
 *
 * @sent is what the line has sent in about the last T: each packet adds its bytes, and the sum
 * loses dt / T of itself in a time of dt.  A line that is full has sent B T.  So a packet costs a
 * multiplication, and no clock is read: a packet's time is that of the line's virtual clock.
 */
#ifndef _COLOR_INT_H
#define _COLOR_INT_H

#include <linux/types.h>

struct color_config;
struct sk_buff;

/**
 * struct color_int - the state of `int`; root lock
 * @sent: bytes of the line in the last round-trip time, see above
 * @last: when the last packet began, ns
 * @bdp: bytes that the line sends in a round-trip time, at least 1
 * @rtt: the round-trip time, ns
 * @inv: 2^32 / @rtt
 * @stamped: packets whose field the port has raised
 */
struct color_int {
	u64	sent;
	u64	last;
	u64	bdp;
	u32	rtt;
	u32	inv;
	u64	stamped;
};

void color_int_set(struct color_int *t, const struct color_config *cfg);
void color_int_sent(struct color_int *t, u64 now, u64 len);
u32 color_int_utilisation(const struct color_int *t, u64 queued);
bool color_int_stamp(const struct color_int *t, struct sk_buff *skb, const void *h, u64 queued);

#endif /* _COLOR_INT_H */
