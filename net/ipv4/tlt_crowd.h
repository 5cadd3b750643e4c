/* SPDX-License-Identifier: GPL-2.0 */
/* TLT in a crowd: windows of less than a packet.  See tlt_crowd.c. */
#ifndef _TLT_CROWD_H
#define _TLT_CROWD_H

#include <linux/types.h>
#include <net/sock.h>

/**
 * struct tlt_crowd - a connection in a crowd
 * @waits: TCP waits, or has waited, before it sends the next packet
 * @paced: this waiting has switched TCP's pacing on
 * @watched: TCP's timer is pending: if the echo of the important packet is late, a clock replaces
 *	the packet
 * @late: it was late: a clock replaces it, and its answer has not arrived yet
 * @missing: @late, and the important packet was data, not a clock
 * @suspect: a clock's answer has found the important packet lost, unless it also acknowledges data
 * @delivered: tp->delivered (packets) when the last echo arrived, low 16 bits
 *
 * All fields: socket lock.
 */
struct tlt_crowd {
	u16	waits:1,
		paced:1,
		watched:1,
		late:1,
		missing:1,
		suspect:1;
	u16	delivered;
};

/* 256 destinations. */
#define TLT_CROWD_BITS		8

/**
 * struct tlt_crowd_dest - the crowd at the last port to a destination
 * @key: hash of the destination's address
 * @sign: jiffies of the last sign of a crowd
 * @wait: time between an echo and the next packet of a connection, ns
 * @us: TCP's clock when @wait changed, us, low 32 bits
 *
 * All connections of the namespace to the destination read and write it with each echo, without a
 * lock.  Each value that is written is valid beside any values of the other fields: @wait is within
 * its limits, and tlt_crowd_wait() limits the time since @us.  Two echoes at the same time count as
 * one.
 */
struct tlt_crowd_dest {
	u32	key;
	u32	sign;
	u32	wait;
	u32	us;
};

/**
 * struct tlt_crowds - the crowds of a namespace
 * @seed: of the hash, so that a peer cannot choose its entry; does not change
 * @dest: by a hash of the destination's address
 */
struct tlt_crowds {
	u32			seed;
	struct tlt_crowd_dest	dest[1 << TLT_CROWD_BITS];
};

void tlt_crowds_init(struct tlt_crowds *crowds);
struct tlt_crowd_dest *tlt_crowd_find(const struct sock *sk, struct tlt_crowds *crowds);
void tlt_crowd_report(const struct sock *sk, struct tlt_crowds *crowds);

u32 tlt_crowd_wait(u32 wait, u32 queue, u32 us, u32 target);

bool tlt_crowd_echo(struct sock *sk, struct tlt_crowd *crowd, struct tlt_crowd_dest *dest, u64 now,
		    u32 rtt, u32 target, bool lost);
bool tlt_crowd_is_free(const struct sock *sk, const struct tlt_crowd *crowd);
bool tlt_crowd_is_waiting(const struct sock *sk, const struct tlt_crowd *crowd);
bool tlt_crowd_has_waited(const struct sock *sk, const struct tlt_crowd *crowd);
void tlt_crowd_end(struct sock *sk, struct tlt_crowd *crowd);
void tlt_crowd_leave(struct sock *sk, struct tlt_crowd *crowd);
void tlt_crowd_wake(struct sock *sk, u64 ns);

#endif /* _TLT_CROWD_H */
