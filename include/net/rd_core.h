/* SPDX-License-Identifier: GPL-2.0 */
/* Receiver-driven transports: their common core.
 *
 * The receiver schedules its senders, because most congestion is on its own link:
 *
 *	sender                                                 receiver
 *	has data  --- request (n packets) -------------------->
 *	          <-- c . c . c . c . c . c . c . c . c . c ---  credits, at the link's rate
 *	one packet a credit  --- d . d . d . d ----->
 *	          --- report, once a round trip -------------->  counts lost credits
 *	has no data left  --- stop (0 packets) --------------->
 *
 * The core (rd_core.ko) implements both ends, and a queue schedules the receivers of a link
 * (rd_queue.h).  A transport has a table of its kinds of packets, and a policy: the discipline of
 * the queue, the link time of a credit and its packet, the rate of a single connection, and the
 * reaction to lost credits.  struct rd_first_rtt is for packets that leave before the first
 * credit.
 *
 * tcp_xpass.c is a transport, tcp_aeolus.c adds unscheduled packets to it.  The smallest one is
 * tools/testing/modules/tcp_turns.c.
 */
#ifndef _NET_RD_CORE_H
#define _NET_RD_CORE_H

#include <linux/bitfield.h>
#include <net/greenlane.h>
#include <net/link_speed.h>
#include <net/rd_queue.h>

struct rd_sock;

/* The TCP header of a credit, with an option of one word. */
#define RD_CREDIT_HLEN		(sizeof(struct tcphdr) + GL_OPT_LEN(1))

/* Bits of a credit's second word.  Request accepted: no credit, the first word is the last credit
 * sent.  The receiver has many senders, so that the credit is far away.
 */
#define RD_ACCEPTED		0x80000000
/* If it is a grant: the level of the data that it permits, rd_level(). 0 is the least urgent. */
#define RD_LEVEL		GENMASK(28, 27)

/* The kinds of packets of a receiver-driven transport.  The table of its protocol begins with
 * these, in this order.
 */
enum rd_kind {
	RD_SCHEDULED,	/* data sent by a credit */
	RD_UNSCHEDULED,	/* data sent without one */
	RD_CONTROL,	/* packets without data, also SYN and SYN-ACK */
	RD_REQUEST,	/* a sender's backlog, in packets, and the credits that arrived */
	RD_CREDIT,	/* a receiver permits one packet */
	RD_PROBE,	/* a request behind the last unscheduled packet */
	RD_PROBE_ACK,	/* the answer to a probe */
	RD_KINDS,
};

/* The rows of packets without data; @cp is the codepoint of all but credits, probes and answers.  A
 * probe must share the queue of the unscheduled data in front of it: if it overtook the data, its
 * answer would report that data as lost.
 */
#define RD_SIGNALS(of, cp)						\
	[RD_CONTROL] = {						\
		.protocol	= (of),					\
		.codepoint	= (cp),					\
		.flags		= GL_KIND_ECT,				\
	},								\
	[RD_REQUEST] = {						\
		.protocol	= (of),					\
		.codepoint	= (cp),					\
		.code		= GL_CODE_REQUEST,			\
		.flags		= GL_KIND_ECT,				\
	},								\
	[RD_CREDIT] = {							\
		.protocol	= (of),					\
		.codepoint	= GL_CP_CREDIT,				\
		.code		= GL_CODE_CREDIT,			\
		.flags		= GL_KIND_ECT,				\
	},								\
	[RD_PROBE] = {							\
		.protocol	= (of),					\
		.codepoint	= GL_CP_PROTECTED,			\
		.code		= GL_CODE_PROBE,			\
		.words		= 1,					\
		.flags		= GL_KIND_ECT | GL_KIND_ANSWERED,	\
		.received	= RD_PROBERECEIVED,			\
	},								\
	[RD_PROBE_ACK] = {						\
		.protocol	= (of),					\
		.codepoint	= GL_CP_PROTECTED,			\
		.code		= GL_CODE_PROBE_ACK,			\
		.flags		= GL_KIND_ECT | GL_KIND_TCPS,		\
		.sent		= RD_PROBEACKSENT,			\
		.received	= RD_PROBEACKRECEIVED,			\
	}

/* The core's counters.  A transport's protocol begins its counters with these, in this order. */
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

/* The discipline of the link's queue: it schedules the receiver ... */
enum rd_pick {
	RD_PICK_FAIR,		/* ... that has used the least link time */
	RD_PICK_SHORTEST,	/* ... with the least left of its message */
};

/**
 * struct rd_policy - a transport's policy
 * @mbit: Return: the speed that an administrator has set for the links of the socket's namespace,
 *	Mbit/s; 0 for the speed that the device reports.  Also called with RCU alone
 * @pick: receiver: the discipline.  Return: enum rd_pick.  All transports of a link should agree:
 *	SRPT precedes the fair queue, which then has one credit in RD_ROUND
 * @cost: receiver: Return: link time of a scheduled packet and of the data that it permits, ps;
 *	rd_credit_ps() is that of a credit and its packet.  The core uses at least 1000
 * @gap: receiver: Return: time between two credits of a connection that has the link alone, ns.
 *	The core uses at least @cost.  NULL: the link alone limits it
 * @issue: receiver: the queue has scheduled the connection, at @now, ns, and the credit has a
 *	number: send it by rd_send_credit(), with @wait.  Return: time until the connection's next
 *	credit, ns, 1 s at most; 0 if the link alone limits it.  NULL: rd_send_credit(), and 0
 * @learn: receiver: a request has arrived.  The fate of all credits up to number @last is known.
 *	Of those beyond rs->seen, which no earlier request reported, @came have arrived.  @cost is
 *	that of @cost() now, ps.  The numbers continue at a higher one if the peer has accepted a
 *	forged credit.  May be NULL
 * @begins: receiver: a request has arrived, and the connection is about to join the queue.  The
 *	last request arrived @idle ns ago; at the first one @idle has no meaning.  May be NULL
 * @cumulative: sender: a credit stands also for those before it that have not arrived, so no credit
 *	is lost unless the last one is
 * @grants: receiver: the arrival of data permits more, up to a bandwidth-delay product in flight.
 *	With RD_PICK_SHORTEST a credit stands for several packets (Homa), else the link paces
 *	credits (NDP).  Return: the connection's account.  NULL: the link alone limits it.  Only
 *	with @cumulative and @slots
 * @slots: receiver: Return: number of full windows that all connections of the link may have in
 *	flight
 * @trims: reports of trimmed packets (gl_trim.c) are requests, too: the receiver permits the
 *	repair at once, and the sender's requests have the number of the last report.  Return: the
 *	connection's account of the reports.  NULL: gl_trim.c paces reports
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
	bool cumulative;
	struct rd_grants *(*grants)(struct rd_sock *rs);
	unsigned int (*slots)(const struct sock *sk);
	struct rd_trims *(*trims)(struct rd_sock *rs);
};

/**
 * struct rd_first_rtt - unscheduled packets: a sender's policy before the first credit
 * @begin: data waits: a burst may begin, if no credits were requested yet (@asked), or continue
 * @allow: Return: number of packets that may be sent without a credit now
 * @waiting: Return: number of unscheduled packets that may still need a credit; @most stands for
 *	@most or more.  NULL if the policy has @grants or @trims: the receiver finds out which
 *	are lost, by trimmed headers or the probe, and permits their repair without a request
 * @credited: a credit arrived and will be used
 * @probe: the burst has ended.  Fills the word that the next request carries as a probe, which the
 *	peer answers.  Return: false if no probe is needed.  With a NULL word it changes nothing.
 *	NULL: never
 * @lost: no credit has arrived for too long, so the probe may be lost
 * @spend: TCP has no data for a credit.  Return: true if the credit was used otherwise.  NULL:
 *	never
 *
 * All with the socket locked; @credited and @spend also with no process owning it, BH off.
 */
struct rd_first_rtt {
	void (*begin)(struct sock *sk, struct gl_sock *gs, bool asked);
	u32 (*allow)(const struct sock *sk, struct gl_sock *gs);
	u32 (*waiting)(const struct sock *sk, struct gl_sock *gs, u32 most);
	void (*credited)(struct sock *sk, struct gl_sock *gs);
	bool (*probe)(struct sock *sk, struct gl_sock *gs, u32 *word);
	void (*lost)(struct sock *sk, struct gl_sock *gs);
	bool (*spend)(struct sock *sk, struct gl_sock *gs);
};

/**
 * struct rd_first_burst - a burst of unscheduled packets (rd_first.c)
 * @begin: first sequence number
 * @end: sequence number behind the last byte
 * @bdp: the socket option GREENLANE_BDP, bytes; 0 if not set
 * @unscheduled: unscheduled packets sent on this connection, for struct greenlane_info
 * @asked: end of the data for which the burst has requested its share of the host's bursts,
 *	granted or refused; sequence number
 * @allow: packets that the burst may still send
 * @off: switched off by a socket option
 * @begun: the connection has sent a burst, or is sending one
 * @grows: data that the application writes now belongs to the burst
 * @probed: a probe has ended the burst, of which not all is acknowledged: number of answers for
 *	which the probe is repeated
 *
 * The socket lock protects all fields.
 */
struct rd_first_burst {
	u32	begin;
	u32	end;
	u32	bdp;
	u32	unscheduled;
	u32	asked;
	u16	allow;
	u8	off:1,
		begun:1,
		grows:1,
		probed:2;
};

/**
 * struct rd_transport - a receiver-driven transport
 * @t: the transport.  rd_complete() sets the callbacks that are NULL
 * @fallback: its congestion control without a peer: GL_RENO()
 * @policy: its policy as a receiver
 * @first: its policy for unscheduled packets, or NULL
 */
struct rd_transport {
	struct gl_transport t;
	const struct tcp_congestion_ops *fallback;
	const struct rd_policy *policy;
	const struct rd_first_rtt *first;
};

/**
 * struct rd_use - a receiver's account of one sender: credits granted, and data that arrived
 * @segs: the low half of @arrived of struct rd_sock at the sender's last report
 * @granted: credits that arrived at the sender since its use was last judged, less than RD_USE_MIN
 * @arrived: packets of data that arrived since then, at most @granted
 * @low: the share is reduced to 2^-@low; see rd_use.c
 *
 * The socket lock protects all fields.
 */
struct rd_use {
	u16	segs;
	u8	granted:4,
		arrived:4;
	u8	low;
};

/**
 * struct rd_grants - a receiver's account of one sender's data in flight
 * @segs: the low half of @arrived of struct rd_sock when @out was right, less packets of which only
 *	headers have arrived since
 * @out: packets that were permitted or sent without a permit, and have not arrived, neither they
 *	nor, if a port trimmed them, their headers
 * @granted: those that were permitted; the others are counted as the first to arrive
 * @rtt: the sender's minimum RTT, us, as its last request has reported it (RD_RTT); 0 if it has not
 * @unseen: packets that have arrived while TCP's data_segs_in was @data_segs of struct rd_sock: TCP
 *	has not seen them; its spinlock
 *
 * The socket lock protects all fields.
 */
struct rd_grants {
	u16	segs;
	u16	out;
	u16	granted;
	u16	rtt;
	u16	unseen;
};

/**
 * struct rd_trims - the account of trimmed packets, of both ends
 * @end: receiver: the last credit to send, after the last report
 * @sent: receiver: reports sent
 * @named: sender: number of the last report that has arrived
 *
 * The socket lock protects all fields.
 */
struct rd_trims {
	u32	end;
	u16	sent;
	u16	named;
};

/**
 * struct rd_sock - the state of a connection, both as a sender and as a receiver
 * @gs: greenlane's part
 * @alarm: sender: kicks the socket at @retry, or earlier
 * @reported_at: sender: the last request or report left, ns, low half
 * @credit_end: sender: number of the last credit that it expects from the receiver
 * @retry: sender: time to repeat the request, if @requesting, or the probe, ns, low half
 * @wait: sender: time until the next credit, as the receiver has advertised it, ns
 * @una: sender: TCP's snd_una at the last repeated request
 * @seq: sender: the highest credit number received
 * @seen_seq: sender: bitmap of the 32 credits up to @seq that have arrived; bit 0
 *	is @seq itself
 * @received: sender: credits received on this connection
 * @r: receiver: its entry in the queue of the link
 * @first: sender: the burst
 * @use: receiver: whether the sender uses its credits
 * @requested_at: receiver: the last request arrived, in units of 1024 ns, low half
 * @arrived: receiver: packets of data that have arrived and that the peer could have sent; its
 *	spinlock
 * @base_segs: receiver: @arrived less @credit when the sender began to request, or sent a probe;
 *	not used if rd_is_exact()
 * @data_segs: receiver: see struct rd_grants; likewise its spinlock
 * @next: receiver: the next credit is due, ns, low half.  With a window: when it granted data, or
 *	data arrived
 * @credit: receiver: the last credit sent
 * @end: receiver: the last credit to send
 * @seen: receiver: the highest credit that the sender has reported
 * @reported: receiver: number of credits that the sender had received by then
 * @burst: sender: its part of the host's unscheduled packets, ns of link time
 * @requesting: sender: the receiver knows that this end has data to send
 * @busy: sender: @wait is that long because the link has many receivers
 * @requested: sender: a request was sent on this connection
 * @closed: sender: the peer sends no more credits
 * @alive: sender: number of times that uncredited data was acknowledged while requests brought
 *	no credit
 * @spending: sender: a credit is being spent
 * @tokens: sender: credits received and not used yet; more than the one that is being spent while
 *	the application's pace holds back data
 * @epoch: sender: the epoch of @burst, see rd_burst()
 * @retries: sender: requests in a row that brought no credit
 * @skipped: receiver: times in a row that it was scheduled while a process owned the socket; its
 *	spinlock
 * @ps: receiver: link time that its credits have not been charged for, less than 1000 ps
 * @shut: sender: number of requests still to be limited to the peer's window
 *
 * Times are ktime_get_ns(); RD_NEVER stands for no time.  A field that is only compared with
 * recent times keeps the low 32 bits, as the size of a connection is limited (GL_SOCK_SIZE_MAX).
 * The socket lock protects all fields but @r.
 */
struct rd_sock {
	struct gl_sock		gs;
	struct rd_alarm		alarm;
	u32			retry;
	u32			reported_at;
	u32			credit_end;
	u32			wait;
	u32			una;
	u32			seq;
	u32			seen_seq;
	u32			received;
	struct rd_first_burst	first;
	struct rd_receiver	r;
	struct rd_use		use;
	u32			requested_at;
	u32			arrived;
	union {
		u32		base_segs;
		u32		data_segs;
	};
	u32			next;
	u32			credit;
	u32			end;
	u32			seen;
	u32			reported;
	u32			burst;
	u8			requesting:1,
				busy:1,
				requested:1,
				closed:1,
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

/* TCP's smoothed round trip, ns; 1 ms if there is no sample. */
static inline u64 rd_srtt_ns(const struct sock *sk)
{
	u64 us = tcp_sk(sk)->srtt_us >> 3;

	return us ? us * NSEC_PER_USEC : NSEC_PER_MSEC;
}

/* rd_core.c */
int rd_complete(struct gl_transport *t);
void rd_on_info(const struct gl_sock *gs, struct greenlane_info *info);
enum gl_verdict rd_on_packet(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			     const struct gl_seg *seg);
void rd_on_kick(struct sock *sk, struct gl_sock *gs);
void rd_in_ack_event(struct sock *sk, u32 flags);

/* rd_first.c */
u32 rd_first_bytes(struct sock *sk, const struct gl_sock *gs);
bool rd_first_begin(struct sock *sk, struct gl_sock *gs, bool requested, unsigned int idle_ms);
u32 rd_first_left(const struct sock *sk, struct gl_sock *gs);
bool rd_first_sends(const struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg);
void rd_first_over(struct sock *sk, struct gl_sock *gs);
void rd_first_in_ack_event(struct sock *sk, u32 flags);
int rd_first_set_bdp(struct sock *sk, struct gl_sock *gs, int bytes);
int rd_first_get_bdp(const struct sock *sk, struct gl_sock *gs);

/* The socket option of the size of a burst. */
#define RD_FIRST_BDP							\
	{ GREENLANE_BDP, INT_MAX, .set = rd_first_set_bdp, .get = rd_first_get_bdp }

/* rd_path.c */
u32 rd_mbit(const struct sock *sk, const struct rd_sock *rs);
u64 rd_credit_ps(const struct sock *sk, const struct rd_sock *rs);
u64 rd_data_ps(const struct sock *sk, const struct rd_sock *rs);

/* rd_sender.c */
const struct gl_kind *rd_on_xmit(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg);
void rd_first_counted(struct gl_sock *gs);

/* rd_receiver.c */
void rd_send_credit(struct sock *sk, struct rd_sock *rs, u32 wait);

#endif /* _NET_RD_CORE_H */
