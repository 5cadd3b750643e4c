/* SPDX-License-Identifier: GPL-2.0 */
/* TLT in a crowd: windows of less than a packet.  See tlt_crowd.c. */
#ifndef _TLT_CROWD_H
#define _TLT_CROWD_H

#include <linux/types.h>
#include <net/sock.h>

/* A share of one: the connection never waits. */
#define TLT_CROWD_WHOLE		1024U

/**
 * struct tlt_crowd - how a connection divides a port with a crowd
 * @withheld: TLT_CROWD_WHOLE less the connection's share; 0 outside a crowd
 * @waits: TCP waits, or has waited, before it sends the next packet
 * @paced: this waiting has switched TCP's pacing on
 * @watched: TCP's timer is pending: if the echo of the important packet is late, a clock replaces
 *	the packet
 * @late: it was late: a clock replaces the packet, and its answer has not arrived yet
 * @unclear: the answer of a clock would prove no loss: it may be an earlier clock's
 * @suspect: a clock's answer has found the important packet lost, unless it also acknowledges data
 * @delivered: tp->delivered (packets) when the last echo arrived, low 16 bits
 *
 * All fields: socket lock.
 */
struct tlt_crowd {
	u16	withheld:10,
		waits:1,
		paced:1,
		watched:1,
		late:1,
		unclear:1,
		suspect:1;
	u16	delivered;
};

/* 256 destinations. */
#define TLT_CROWD_BITS		8

/**
 * struct tlt_crowds - where a namespace's connections have met crowds
 * @sign: jiffies of the last sign of a crowd, by a hash of the destination's address
 *
 * All connections of the namespace read and write it, without a lock.
 */
struct tlt_crowds {
	u32	sign[1 << TLT_CROWD_BITS];
};

void tlt_crowds_init(struct tlt_crowds *crowds);
void tlt_crowd_report(const struct sock *sk, struct tlt_crowds *crowds);
bool tlt_crowd_is_reported(const struct sock *sk, struct tlt_crowds *crowds);

u32 tlt_crowd_share(u32 share, u32 queue, u32 target);
u32 tlt_crowd_wait(u32 share, u32 queue);

bool tlt_crowd_echo(struct sock *sk, struct tlt_crowd *crowd, u32 rtt, u32 target, bool lost,
		    struct tlt_crowds *crowds);
bool tlt_crowd_is_free(const struct sock *sk, const struct tlt_crowd *crowd);
bool tlt_crowd_is_waiting(const struct sock *sk, const struct tlt_crowd *crowd);
bool tlt_crowd_has_waited(const struct sock *sk, const struct tlt_crowd *crowd);
void tlt_crowd_end(struct sock *sk, struct tlt_crowd *crowd);
void tlt_crowd_wake(struct sock *sk, u64 ns);

#endif /* _TLT_CROWD_H */
