/* SPDX-License-Identifier: GPL-2.0 */
/* What tcp_xpass.ko has for a transport that is built around it (tcp_aeolus.c). */
#ifndef _TCP_XPASS_H
#define _TCP_XPASS_H

#include <net/greenlane.h>

/* The kinds of packets of a transport that sends by credits; their rows are in tcp_xpass.c.  The
 * probe, and data that leaves in a first RTT, are Aeolus's (§III), but the receiver is the same.
 */
enum xpass_kind {
	XPASS_SCHEDULED,	/* data that had a credit */
	XPASS_UNSCHEDULED,	/* data that had none */
	XPASS_CONTROL,		/* packets without data, also SYN and SYN-ACK */
	XPASS_REQUEST,		/* a sender says how much it has to send */
	XPASS_CREDIT,		/* a receiver permits one packet */
	XPASS_PROBE,		/* a request behind the last unscheduled packet */
	XPASS_PROBE_ACK,	/* the answer to it */
	XPASS_KINDS,
};

/**
 * struct xpass_precredit - what sends before the first credit, on top of a credit transport
 * @begin: data waits: a burst may begin, if credits were not requested yet (@asked), or go on
 * @allow: Return: packets that may be sent without a credit now
 * @waiting: Return: packets that were sent so and may still need a credit
 * @credited: a credit arrived and will be used
 * @probe: the burst has ended.  Fills the word that the next request carries as a probe, which
 *	the peer answers.  Return: false if no probe is needed
 * @lost: no credit has arrived for too long, so the probe may be lost
 * @spend: TCP has no data for a credit.  Return: true if the credit was used otherwise
 *
 * All with the socket locked; @credited and @spend also with no process owning it, BH off.
 */
struct xpass_precredit {
	void (*begin)(struct sock *sk, struct gl_sock *gs, bool asked);
	u32 (*allow)(struct sock *sk, struct gl_sock *gs);
	u32 (*waiting)(const struct sock *sk, struct gl_sock *gs);
	void (*credited)(struct sock *sk, struct gl_sock *gs);
	bool (*probe)(struct sock *sk, struct gl_sock *gs, u32 *word);
	void (*lost)(struct sock *sk, struct gl_sock *gs);
	bool (*spend)(struct sock *sk, struct gl_sock *gs);
};

/**
 * struct xpass_transport - a transport that sends by credits
 * @t: the transport
 * @fallback: its congestion control without a peer: GL_RENO()
 * @precredit: what sends before the first credit, or NULL
 */
struct xpass_transport {
	struct gl_transport t;
	const struct tcp_congestion_ops *fallback;
	const struct xpass_precredit *precredit;
};

extern const struct gl_kind xpass_kind[XPASS_KINDS];
u32 xpass_line_mbit(const struct sock *sk);
u32 xpass_burst(struct sock *sk, struct gl_sock *gs, u32 want, u32 most);
void xpass_burst_over(struct gl_sock *gs);
void xpass_burst_came(struct gl_sock *gs);

#endif /* _TCP_XPASS_H */
