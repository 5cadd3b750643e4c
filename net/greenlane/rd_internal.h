/* SPDX-License-Identifier: GPL-2.0 */
/* Receiver-driven transports: declarations that the files of rd_core.ko share. */
#ifndef _RD_INTERNAL_H
#define _RD_INTERNAL_H

#include <net/rd_core.h>

/* Ethernet's smallest frame with preamble and gap, bytes. */
#define RD_WIRE_MIN		84

/* The second word of a credit: ns until the next one at the present load.  A credit leaves it out
 * if it is shorter than a sender waits anyway.
 */
#define RD_WAIT_MIN		(RD_RETRY_NS / 2)
/* A sender accepts this wait at most, or a forged word would stop it for long. */
#define RD_WAIT_MAX		(100 * NSEC_PER_MSEC)
/* Credits are rare because the link has many receivers, not because credits were lost. */
#define RD_BUSY			0x40000000
/* With RD_ACCEPTED: this end sends no more credits.  The application has chosen another congestion
 * control, or the connection has fallen back.
 */
#define RD_CLOSED		0x20000000

/* The third word of a request: the number of packets; if the policy has windows, the sender's
 * minimum RTT, us, if it is less than a millisecond, else 0; and a flag: the sender expects none of
 * the credits sent so far any more.
 */
#define RD_WANT			GENMASK(20, 0)
#define RD_RTT			GENMASK(30, 21)
#define RD_AGAIN		BIT(31)

/* The sender drops a credit whose number is further ahead: it is forged. */
#define RD_SEQ_AHEAD		65536
/* Credits may be reordered by this many numbers. */
#define RD_WINDOW		32

/* The fourth word of a request, if the policy is rd_is_exact(): the number of the last report that
 * has arrived (struct rd_trims), and rd_beyond(), signed.
 */
#define RD_NAMED		GENMASK(15, 0)
#define RD_BEYOND		GENMASK(31, 16)

/* A sender repeats its request if no credit arrives for the longest of this time, four round
 * trips, and RD_RETRY_WAITS of the wait that the receiver has advertised.  On a busy link it
 * allows for more, because receivers may join meanwhile.
 */
#define RD_RETRY_NS		(50 * NSEC_PER_USEC)
#define RD_RETRY_WAITS		2
#define RD_RETRY_WAITS_BUSY	4
/* A sender on a busy link reports with every fourth credit. */
#define RD_REPORT		4

/* Limit of the credits that a sender keeps for data that its pace holds back: 1 Tbit/s for 50 us.
 * @tokens of struct rd_sock has room for them.
 */
#define RD_TOKENS_MAX		4096

/* Packets of a window beyond a round trip: one that is on the link, and one for late timers. */
#define RD_WINDOW_MORE		2
/* Ranges of data behind a gap that a receiver looks at. */
#define RD_GAPS			512

/* Limit, in packets, of the link time that rd_yield() reserves for ACKs and bursts. */
#define RD_YIELDED		256

/**
 * struct rd_path - the link that a connection's packets leave on, at present
 * @mbit: its speed, in Mbit/s
 * @extra: bytes that the device adds to each packet, beyond Ethernet's
 */
struct rd_path {
	u32	mbit;
	u32	extra;
};

/* Does the receiver find out which packets of a burst are lost, by trimmed headers or the probe?
 * Then no credits are requested for them, and the receiver permits the repair of each lost one,
 * perhaps before the sender knows of it.
 */
static inline bool rd_is_exact(const struct rd_policy *policy)
{
	return policy->grants || policy->trims;
}

static inline void rd_count(const struct rd_sock *rs, enum rd_counter counter, u64 n)
{
	gl_count(sock_net(rs->gs.sk), rs->gs.transport->protocol, counter, n);
}

/* The round trip without queueing, which is the period of reports, ns.  TCP has no sample if the
 * SYN was retransmitted, or the SYN-ACK was a SYN cookie; then it is rd_srtt_ns()'s default.
 */
static inline u64 rd_rtt_ns(const struct sock *sk)
{
	u32 us = tcp_min_rtt(tcp_sk(sk));

	if (us == U32_MAX)
		return rd_srtt_ns(sk);
	return (u64)clamp(us, 1U, (u32)USEC_PER_SEC) * NSEC_PER_USEC;
}

/* rd_path.c */
struct rd_path rd_path_of(const struct sock *sk, const struct rd_sock *rs);
u64 rd_packet_ns(const struct sock *sk, const struct rd_sock *rs, u32 len);
u64 rd_full_ns(const struct sock *sk, const struct rd_sock *rs);
u32 rd_first_request(struct sock *sk, struct gl_sock *gs, u32 want, u32 most);
void rd_first_done(struct gl_sock *gs);
void rd_leave_link(struct rd_sock *rs);
void rd_follow(struct sock *sk, struct rd_sock *rs);
void rd_path_init(void);
void rd_path_exit(void);

/* rd_sender.c */
void rd_keep(struct sock *sk);
u32 rd_min_tso_segs(struct sock *sk);
void rd_credited(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg);
void rd_postpone_rto(struct sock *sk, struct rd_sock *rs);
void rd_sender_kicked(struct sock *sk, struct rd_sock *rs, u64 now);
void rd_named(struct sock *sk, struct gl_sock *gs, u16 number);
void rd_fall_back(struct sock *sk, struct rd_sock *rs);

/* rd_use.c */
bool rd_use_report(struct rd_use *u, u32 granted, u32 arrived);
u64 rd_use_gap(const struct rd_use *u, u64 gap, u64 cost);

/* rd_receiver.c */
void rd_requested(struct sock *sk, struct rd_sock *rs, const struct gl_seg *seg, bool probe);
void rd_receiver_kicked(struct sock *sk, struct rd_sock *rs, u64 now);
void rd_on_data(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg);
u16 rd_trimmed(struct sock *sk, struct gl_sock *gs);
void rd_send_closed(struct sock *sk, struct rd_sock *rs);

#endif /* _RD_INTERNAL_H */
