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
 * @window: TCP's own window while snd_cwnd is larger, packets; 0 while it is snd_cwnd
 * @own: TCP's own window when the burst began, packets; 0 if there is none
 * @delivered: tp->delivered (packets) when the message began, low 16 bits
 * @skip: messages that do not begin a burst, as the path has lost an important packet
 * @off: switched off by a socket option
 * @on: the message may have a burst: no echo has arrived
 * @busy: a message has begun, and not all of it is acknowledged
 *
 * All fields: socket lock.
 */
struct tlt_burst {
	u32	bdp;
	u32	sent;
	u16	window;
	u16	own;
	u16	delivered;
	u8	skip;
	u8	off:1,
		on:1,
		busy:1;
};

u32 tlt_burst_bytes(const struct sock *sk, const struct tlt_burst *b, u32 mbit);
void tlt_burst_lend(struct sock *sk, struct tlt_burst *b, u32 mbit);
void tlt_burst_acked(struct sock *sk, struct tlt_burst *b);
void tlt_burst_return(struct sock *sk, struct tlt_burst *b);
bool tlt_burst_grows(const struct sock *sk, const struct tlt_burst *b);
bool tlt_burst_sends(const struct sock *sk, const struct tlt_burst *b, u32 seq, u32 segs);
void tlt_burst_echoed(struct sock *sk, struct tlt_burst *b, u32 (*ssthresh)(struct sock *sk));
void tlt_burst_end(struct sock *sk, struct tlt_burst *b);
void tlt_burst_lost(struct sock *sk, struct tlt_burst *b);

#endif /* _TLT_BURST_H */
