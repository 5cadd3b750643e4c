/* SPDX-License-Identifier: GPL-2.0 */
/* Receiver-driven transports: what they have in common.
 *
 * The receiver decides who sends, as its link is where most congestion is:
 *
 *	sender                                                 receiver
 *	has data  --- request (n packets) -------------------->
 *	          <-- c . c . c . c . c . c . c . c . c . c ---  credits, as the link has time
 *	one packet a credit  --- d . d . d . d ----->
 *	          --- report, once a round trip -------------->  counts lost credits
 *	has no data left  --- stop (0 packets) --------------->
 *
 * The core (rd_core.ko) has both ends of this, and the connections of a link take turns
 * (rd_queue.h).  A transport has a table of its kinds of packets, and a policy: who is next, what
 * a turn costs, how fast a single connection may go, and what to learn from lost credits.  What
 * leaves before the first credit is a matter of its own (struct rd_first_rtt).
 *
 * tcp_xpass.c is a transport, tcp_aeolus.c adds a first round trip to it.  The smallest one is
 * tools/testing/modules/tcp_turns.c.
 */
#ifndef _NET_RD_CORE_H
#define _NET_RD_CORE_H

#include <net/greenlane.h>
#include <net/rd_link.h>
#include <net/rd_queue.h>

struct rd_sock;

/* The TCP header of a credit, with an option of one word. */
#define RD_CREDIT_HLEN		(sizeof(struct tcphdr) + GL_OPT_LEN(1))

/* The kinds of packets of a receiver-driven transport.  The table of its protocol begins with
 * these, in this order.
 */
enum rd_kind {
	RD_SCHEDULED,	/* data that had a credit */
	RD_UNSCHEDULED,	/* data that had none */
	RD_CONTROL,	/* packets without data, also SYN and SYN-ACK */
	RD_REQUEST,	/* a sender says how much it has to send */
	RD_CREDIT,	/* a receiver permits one packet */
	RD_PROBE,	/* a request behind the last unscheduled packet */
	RD_PROBE_ACK,	/* the answer to it */
	RD_KINDS,
};

/* What the core counts.  The counters of its protocol begin with these, in this order. */
enum rd_counter {
	RD_SCHEDULEDSENT = 1,
	RD_UNSCHEDULEDSENT,
	RD_UNCREDITED,
	RD_REQUESTSENT,
	RD_REQUESTRETRIED,
	RD_REQUESTRECEIVED,
	RD_CREDITSENT,
	RD_CREDITWAITED,
	RD_CREDITRECEIVED,
	RD_CREDITWASTED,
	RD_CREDITLOST,
	RD_PROBESENT,
	RD_PROBERECEIVED,
	RD_PROBEACKSENT,
	RD_PROBEACKRECEIVED,
	RD_COUNTERS,
};

/* Their names in /proc/net/greenlane, each with the transport's prefix. */
#define RD_COUNTER_NAMES(prefix)					\
	[RD_SCHEDULEDSENT] = prefix "ScheduledSent",			\
	[RD_UNSCHEDULEDSENT] = prefix "UnscheduledSent",		\
	[RD_UNCREDITED] = prefix "Uncredited",				\
	[RD_REQUESTSENT] = prefix "RequestSent",			\
	[RD_REQUESTRETRIED] = prefix "RequestRetried",			\
	[RD_REQUESTRECEIVED] = prefix "RequestReceived",		\
	[RD_CREDITSENT] = prefix "CreditSent",				\
	[RD_CREDITWAITED] = prefix "CreditWaited",			\
	[RD_CREDITRECEIVED] = prefix "CreditReceived",			\
	[RD_CREDITWASTED] = prefix "CreditWasted",			\
	[RD_CREDITLOST] = prefix "CreditLost",				\
	[RD_PROBESENT] = prefix "ProbeSent",				\
	[RD_PROBERECEIVED] = prefix "ProbeReceived",			\
	[RD_PROBEACKSENT] = prefix "ProbeAckSent",			\
	[RD_PROBEACKRECEIVED] = prefix "ProbeAckReceived"

/* Which of the link's receivers has the next turn. */
enum rd_pick {
	RD_PICK_FAIR,		/* the one that has had least of the link's time */
	RD_PICK_SHORTEST,	/* the one with the least left of its message */
};

/**
 * struct rd_policy - what a transport decides
 * @mbit: Return: the speed that an administrator has set for the links of the socket's namespace,
 *	Mbit/s; 0 for what they say themselves.  Also RCU
 * @pick: receiver: who is next.  Return: enum rd_pick.  All transports of a link had better agree:
 *	the shortest go before those that are fair, which then have one turn in RD_ROUND
 * @cost: receiver: Return: how long a turn occupies the link, ps: what is sent at it, and what that
 *	lets come.  rd_credit_ps() is a credit and the packet that it permits.  Less than 1000 is
 *	taken for that
 * @gap: receiver: Return: time between two turns if the connection had the link for itself, ns.
 *	Less than @cost is taken for that
 * @issue: receiver: it is the connection's turn, and the credit has a number: send it, by
 *	rd_send_credit(), with @wait.  It is @now, ns.  Return: time until the connection wants
 *	another turn, ns, 1 s at most; 0 if the link alone decides
 * @learn: receiver: a request has come.  The fate of all credits up to number @last is known, and
 *	of those beyond rs->seen, which were not reported before, @came have arrived.  @cost is what
 *	a turn costs now, ps.  The numbers go on from a higher one if the peer has taken a forged
 *	credit for ours.  May be NULL
 * @begins: receiver: a request has come, and the connection is about to take turns.  The last
 *	request was @idle ns ago; at the first one that has no meaning.  May be NULL
 *
 * All with the socket locked; they must not sleep.
 */
struct rd_policy {
	u32 (*mbit)(const struct sock *sk);
	enum rd_pick (*pick)(const struct sock *sk);
	u64 (*cost)(const struct sock *sk, const struct rd_sock *rs);
	u64 (*gap)(const struct rd_sock *rs);
	u64 (*issue)(struct sock *sk, struct rd_sock *rs, u64 now, u32 wait);
	void (*learn)(struct sock *sk, struct rd_sock *rs, u32 last, u32 came, u64 cost);
	void (*begins)(struct sock *sk, struct rd_sock *rs, u64 idle);
};

/**
 * struct rd_first_rtt - what a sender does before the first credit
 * @begin: data waits: a burst may begin, if credits were not requested yet (@asked), or go on
 * @allow: Return: packets that may be sent without a credit now
 * @waiting: Return: packets that were sent so and may still need a credit; at least @most stands
 *	for more
 * @credited: a credit arrived and will be used
 * @probe: the burst has ended.  Fills the word that the next request carries as a probe, which
 *	the peer answers.  Return: false if no probe is needed.  If the word is NULL, it is a
 *	question only, and changes nothing
 * @lost: no credit has arrived for too long, so the probe may be lost
 * @spend: TCP has no data for a credit.  Return: true if the credit was used otherwise
 *
 * All with the socket locked; @credited and @spend also with no process owning it, BH off.
 */
struct rd_first_rtt {
	void (*begin)(struct sock *sk, struct gl_sock *gs, bool asked);
	u32 (*allow)(struct sock *sk, struct gl_sock *gs);
	u32 (*waiting)(const struct sock *sk, struct gl_sock *gs, u32 most);
	void (*credited)(struct sock *sk, struct gl_sock *gs);
	bool (*probe)(struct sock *sk, struct gl_sock *gs, u32 *word);
	void (*lost)(struct sock *sk, struct gl_sock *gs);
	bool (*spend)(struct sock *sk, struct gl_sock *gs);
};

/**
 * struct rd_transport - a receiver-driven transport
 * @t: the transport.  rd_register_transport() sets the callbacks that are NULL
 * @fallback: its congestion control without a peer: GL_RENO()
 * @policy: what it decides
 * @first: what it sends before the first credit, or NULL
 */
struct rd_transport {
	struct gl_transport t;
	const struct tcp_congestion_ops *fallback;
	const struct rd_policy *policy;
	const struct rd_first_rtt *first;
};

/**
 * struct rd_use - a receiver's account of one sender: credits granted, and data that arrived
 * @segs: TCP's data_segs_in at the sender's last report
 * @granted: credits that arrived at the sender since its use was last judged
 * @arrived: packets of data that arrived since then, at most @granted
 * @low: the share is reduced to 2^-@low; see rd_use.c
 *
 * The socket lock protects all fields.
 */
struct rd_use {
	u32	segs;
	u8	granted;
	u8	arrived;
	u8	low;
};

/**
 * struct rd_sock - the state of a connection, both as a sender and as a receiver
 * @gs: greenlane's part
 * @alarm: sender: kicks the socket at @retry, or too early
 * @told: sender: when the last request or report left, ns, low half
 * @told_end: sender: the last credit that the receiver will send, as far as we know
 * @retry: sender: when to repeat the request, if @asking, ns, low half
 * @wait: sender: time until the next credit, as the receiver has advertised it, ns
 * @una: sender: TCP's snd_una at the last repeated request
 * @seq: sender: the highest credit number received
 * @seen_seq: sender: bitmap of the 32 credits up to @seq that have arrived; bit 0
 *	is @seq itself
 * @received: sender: credits received on this connection
 * @r: receiver: its place among the receivers of the link
 * @use: receiver: whether the sender uses its credits
 * @heard_at: receiver: when the last request arrived, in units of 1024 ns, low half
 * @came: receiver: TCP's data_segs_in less @credit when the sender began to ask, or sent a probe
 * @next: receiver: when the next credit is due, ns, low half
 * @credit: receiver: the last credit sent
 * @end: receiver: the last credit to send
 * @seen: receiver: the highest credit that the sender has reported
 * @heard: receiver: how many credits the sender had received by then
 * @burst: sender: what its burst has of the host's bursts, ns of the link's time
 * @asking: sender: the receiver knows that we have data to send
 * @busy: sender: @wait is that long because the link has many receivers
 * @asked: sender: a request was sent on this connection
 * @gone: sender: the peer sends no more credits
 * @alive: sender: how often uncredited data was acknowledged while requests brought
 *	no credit
 * @spending: sender: a credit is being spent
 * @tokens: sender: credits received and not used yet; more than the one that is being spent while
 *	the application's pace holds back data
 * @epoch: sender: when @burst was granted, see rd_burst()
 * @retries: sender: requests in a row that brought no credit
 * @skipped: receiver: turns in a row at which a process owned the socket; its spinlock
 * @ps: receiver: link time that its credits have not been charged for, less than 1000 ps
 * @shut: sender: requests left that count with no more than the peer's window
 *
 * Times are ktime_get_ns(); RD_NEVER stands for no time.  A field that is only compared with recent
 * times keeps the low 32 bits, as the size of a connection is limited (GL_SOCK_SIZE_MAX).  The
 * socket lock protects all fields but @r.
 */
struct rd_sock {
	struct gl_sock		gs;
	struct rd_alarm		alarm;
	u32			retry;
	u32			told;
	u32			told_end;
	u32			wait;
	u32			una;
	u32			seq;
	u32			seen_seq;
	u32			received;
	struct rd_receiver	r;
	struct rd_use		use;
	u32			heard_at;
	u32			came;
	u32			next;
	u32			credit;
	u32			end;
	u32			seen;
	u32			heard;
	u32			burst;
	u8			asking:1,
				busy:1,
				asked:1,
				gone:1,
				alive:2,
				spending:1;
	u8			epoch;
	u8			retries;
	u8			skipped;
	u32			tokens:14,
				ps:10,
				shut:8;
};

static inline struct rd_sock *rd_sock(struct gl_sock *gs)
{
	return container_of(gs, struct rd_sock, gs);
}

static inline const struct rd_transport *rd_transport(const struct rd_sock *rs)
{
	return container_of(rs->gs.transport, struct rd_transport, t);
}

/* A row of the connection's kinds. */
static inline const struct gl_kind *rd_kind(const struct gl_sock *gs, enum rd_kind kind)
{
	return &gs->transport->protocol->kind[kind];
}

/* TCP's smoothed round trip, ns; a guess if there is no sample. */
static inline u64 rd_srtt_ns(const struct sock *sk)
{
	u64 us = tcp_sk(sk)->srtt_us >> 3;

	return us ? us * NSEC_PER_USEC : NSEC_PER_MSEC;
}

/* rd_core.c */
int rd_register_transport(struct rd_transport *rt);
void rd_on_info(const struct gl_sock *gs, struct greenlane_info *info);
enum gl_verdict rd_on_packet(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			     const struct gl_seg *seg);
void rd_on_kick(struct sock *sk, struct gl_sock *gs);
void rd_in_ack_event(struct sock *sk, u32 flags);
u32 rd_mbit(const struct sock *sk, const struct rd_sock *rs);
u64 rd_credit_ps(const struct sock *sk, const struct rd_sock *rs);

/* rd_sender.c */
const struct gl_kind *rd_on_xmit(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg);
u32 rd_first_want(struct sock *sk, struct gl_sock *gs, u32 want, u32 most);
void rd_first_over(struct gl_sock *gs);
void rd_first_came(struct gl_sock *gs);

/* rd_receiver.c */
void rd_send_credit(struct sock *sk, struct rd_sock *rs, u32 wait);

#endif /* _NET_RD_CORE_H */
