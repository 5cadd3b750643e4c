/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * `int`: the port writes its utilisation U into passing packets; see <net/gl_int.h>.
 *
 *	U = (queued + sent) / (B T)
 *
 * B is the link rate, T the base RTT of the network.  @sent is the number of bytes that the link
 * has sent in about the last T: each packet adds its bytes, and after a time dt the sum is reduced
 * by dt / T of itself.  At full load it is B T.  So a packet is accounted without a division, and
 * no clock is read: the time of a packet is its start on the link's virtual clock.
 */
#ifndef _COLOR_INT_H
#define _COLOR_INT_H

#include <linux/types.h>

struct color_config;
struct sk_buff;

/**
 * struct color_int - the state of `int`; root lock
 * @sent: bytes that the link has sent in about the last @rtt, see above
 * @last: start of the last packet, ns
 * @bdp: bandwidth-delay product: bytes that the link can send in @rtt, at least 1
 * @rtt: base RTT, ns
 * @inv: 2^32 / @rtt
 * @stamped: packets whose utilisation field the port has raised
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
