/* SPDX-License-Identifier: GPL-2.0 */
/* Aeolus over TLT: the first round trip at line rate.  See tlt_burst.c. */
#ifndef _TLT_BURST_H
#define _TLT_BURST_H

#include <linux/types.h>
#include <net/sock.h>

/**
 * struct tlt_burst - a connection's burst of unscheduled packets
 * @bdp: the socket option GREENLANE_BDP, bytes; 0 if not set
 * @sent: unscheduled packets sent on this connection, for struct greenlane_info
 * @window: TCP's own window, packets; 0 if there is no burst
 * @limit: TCP's window during the burst, a bandwidth-delay product, packets
 * @delivered: tp->delivered (packets) when the burst began, low 15 bits
 * @off: switched off by a socket option
 *
 * All fields: socket lock.
 */
struct tlt_burst {
	u32	bdp;
	u32	sent;
	u16	window;
	u16	limit;
	u16	delivered:15,
		off:1;
};

u32 tlt_burst_bytes(const struct sock *sk, const struct tlt_burst *b, u32 mbit);
void tlt_burst_begin(struct sock *sk, struct tlt_burst *b, u32 mbit);
bool tlt_burst_grows(const struct sock *sk, const struct tlt_burst *b);
bool tlt_burst_sends(const struct sock *sk, const struct tlt_burst *b, u32 seq);
void tlt_burst_end(struct sock *sk, struct tlt_burst *b);

#endif /* _TLT_BURST_H */
