/* SPDX-License-Identifier: GPL-2.0 */
/* The interface between the tagging layer (greenlane.ko) and its transports.
 *
 * A transport is a TCP congestion control, usually an extended copy of a base, with the
 * callbacks below.  It decides the kind of each packet.  The tagging layer encodes the kind as a
 * codepoint and an option on the wire and decodes it, has TCP send beyond its window (the kick),
 * and builds packets.
 *
 * The kinds belong to the transport.  They are rows of a table (struct gl_kind) in its protocol
 * (struct gl_protocol), and the tagging layer knows them by their flags only.  So a new transport
 * needs a file, an entry in Kbuild and codes (enum gl_code); and a codepoint, if switches have to
 * distinguish its packets from all others (greenlane_dscp.h).
 */
#ifndef _NET_GREENLANE_H
#define _NET_GREENLANE_H

#include <linux/llist.h>
#include <linux/refcount.h>
#include <linux/sockptr.h>
#include <net/gl_codepoint.h>
#include <net/gl_cong.h>
#include <net/gl_option.h>
#include <net/tcp.h>
#include <uapi/linux/greenlane.h>

struct gl_held;
struct gl_sock;
struct gl_transport;

/* Delay of gl_kick_soon(), and how long an ACK or a clock may wait for the application's data.
 * Longer than a round trip in a datacenter (20 µs), far shorter than TCP's timers (RTO_min of
 * 4 ms).
 */
#define GL_SOON_NS		(50 * NSEC_PER_USEC)

/* Maximum size of a connection's state, bytes; 10,000 connections are usual.  Two pages hold 19
 * such states.
 */
#define GL_SOCK_SIZE_MAX	424

/* Data of this kind requests an immediate ACK (TLT §5.1: important data; Aeolus §III-C:
 * unscheduled data, so that the sender does not retransmit the packets that arrived; the end of a
 * message).
 */
#define GL_KIND_PROMPT		BIT(0)
/* It ends a message; on_packet() is called.  Also GL_KIND_PROMPT. */
#define GL_KIND_ENDS		BIT(1)
/* It has our option and data.  Others with our option have no data.  Also GL_KIND_ANSWERED or
 * GL_KIND_TCPS.
 */
#define GL_KIND_DATA		BIT(2)
/* It has our option, and the tagging layer sends the protocol's answer, which repeats the packet's
 * number: gl_is_answered().  on_packet() is called only if the row has words.  TCP gets the packet
 * only if it has data that TCP waits for.
 */
#define GL_KIND_ANSWERED	BIT(3)
/* It has our option, and TCP gets it too, unless on_packet() returns GL_CONSUME.  While a process
 * owns the socket, TCP gets it in any case, and on_packet() is called later.
 */
#define GL_KIND_TCPS		BIT(4)
/* on_packet() needs seg->sack: whether the packet has SACK blocks. */
#define GL_KIND_SACK		BIT(5)
/* With net.ipv4.greenlane_ecn its ECN field signals that it had a credit (ECT), or that it had no
 * credit (not ECT; Aeolus §IV-A).
 */
#define GL_KIND_ECT		BIT(6)
#define GL_KIND_NOT_ECT		BIT(7)

/**
 * struct gl_kind - a kind of packet
 * @protocol: the protocol whose counters count it: the protocol of the row, or one of its parts
 * @codepoint: enum gl_codepoint, its class of packets for switches
 * @code: enum gl_code, the code of its option; 0 for a kind without our option
 * @words: minimum number of words in its option
 * @flags: GL_KIND_*
 * @sent: counter of TCP's packets that were sent as this kind
 * @bytes: counter of bytes of data in them
 * @received: counter of packets received, of GL_KIND_PROMPT and of kinds with our option
 * @before: the kind of a GSO packet's other segments, if only the last segment has this kind; or
 *	NULL
 *
 * Counters are numbers of @protocol's counters; 0 stands for no counter.  The tagging layer counts,
 * except for the packets that a transport sends itself, by gl_send_words() and gl_send_repeat().
 *
 * gl_register_protocol() refuses an inconsistent row.
 */
struct gl_kind {
	const struct gl_protocol *protocol;
	u8 codepoint;
	u8 code;
	u8 words;
	u8 flags;
	u8 sent;
	u8 bytes;
	u8 received;
	const struct gl_kind *before;
};

/* Maximum number of counters of a protocol (+ 1), and of protocols that are parts of another. */
#define GL_COUNTERS_MAX		24
#define GL_PARTS		2

/**
 * struct gl_protocol - properties that compatible transports share
 * @hello: enum gl_code, the code of the option in their SYNs and SYN-ACKs
 * @told_as: enum gl_codepoint that LOCAL_IN writes into the DS field to pass this hello to TCP
 *	(gl_handshake.c).  Unique among the registered protocols
 * @kind: the rows of its table
 * @kinds: number of them
 * @control: the row of its packets without data, also of SYN and SYN-ACK
 * @answer: the row of the answer to GL_KIND_ANSWERED, or NULL
 * @counter: names of its counters, from 1 on, in /proc/net/greenlane
 * @counters: number of them + 1, at most GL_COUNTERS_MAX
 * @part: protocols whose kinds belong to this one too, or NULL; registered before it
 * @users: number of gl_register_protocol() that are not undone; under gl_protocol_mutex
 * @slot: index of its counters in struct gl_counters; set by gl_register_protocol()
 * @prompt: the row with GL_KIND_PROMPT of each codepoint, or NULL; set by gl_register_protocol()
 */
struct gl_protocol {
	u8 hello;
	u8 told_as;
	const struct gl_kind *kind;
	unsigned int kinds;
	const struct gl_kind *control;
	const struct gl_kind *answer;
	const char * const *counter;
	unsigned int counters;
	const struct gl_protocol *part[GL_PARTS];
	unsigned int users;
	unsigned int slot;
	const struct gl_kind *prompt[GL_CPS];
};

/**
 * struct gl_seg - a TCP segment that is sent or was received
 * @seq: first sequence number
 * @end_seq: @seq plus payload bytes (SYN and FIN not counted)
 * @ack: acknowledgment number
 * @segs: packets on the wire; 1 unless GSO or GRO
 * @window: the window field, unscaled (inbound only)
 * @sack: the segment has SACK blocks (GL_KIND_SACK only)
 * @ce: the packet has a CE mark (inbound, with our option only)
 * @more: more data of the same write follows (outbound only)
 * @words: number of words in the option (inbound only)
 * @field: the option's 16-bit field: telemetry, see <net/gl_int.h>, or the number of a packet that
 *	requests an answer, see gl_is_answered()
 * @word: the option's words, in host byte order
 */
struct gl_seg {
	u32 seq;
	u32 end_seq;
	u32 ack;
	u16 segs;
	u16 window;
	bool sack;
	bool ce;
	bool more;
	u8 words;
	u16 field;
	u32 word[GL_WORDS_MAX];
};

/* The verdict on a received packet. */
enum gl_verdict {
	GL_PASS,	/* give it to TCP */
	GL_CONSUME,	/* free it */
};

/**
 * struct gl_sockopt - a socket option of a transport
 * @option: GREENLANE_*
 * @max: the largest value
 * @set: set it to 0 … @max.  Return: an errno
 * @unit: size of an element, if the option is a list; bytes
 * @set_list: set the list to @n elements, 0 … @max.  Return: an errno
 * @get: Return: the value, or an errno
 *
 * All with the socket locked; they may sleep.  The last of an array is empty.
 */
struct gl_sockopt {
	int option;
	int max;
	int (*set)(struct sock *sk, struct gl_sock *gs, int value);
	size_t unit;
	int (*set_list)(struct sock *sk, struct gl_sock *gs, const void *list, unsigned int n);
	int (*get)(const struct sock *sk, struct gl_sock *gs);
};

/**
 * struct gl_transport - a congestion control that marks packets
 * @ops: the congestion control; @ops.release must be gl_release(), which identifies a
 *	transport
 * @extends: name of the congestion control that it extends, or NULL
 * @complete: gl_register_transport() has set @base: fill in what depends on it.  Return: 0, or a
 *	negative errno.  May be NULL
 * @base: the congestion control of that name, or NULL; from before @complete() until
 *	gl_unregister_transport()
 * @inner: the transport that this one is built around, whose congestion control is @base, or NULL
 * @protocol: the protocol that it shares with compatible transports at the other end
 * @rated: it sends at a rate, not by a window
 * @always: it cannot send without its marks, so GREENLANE_TLT does not switch them off
 * @sprays: over IPv6 each packet of data has a flow label of its own, by which switches select its
 *	path; not if the socket has a label, or Linux sets none (net.ipv6.auto_flowlabels)
 * @room: bytes in each packet of data that its option needs: gl_room.c reduces TCP's MSS by them
 * @part: offset of its own part in a connection's state, if it can be built around other
 *	transports; bytes.  gl_nest() sets it
 * @sock_size: size of a connection's state, which begins with a struct gl_sock; bytes
 * @sockopt: its socket options, or NULL
 * @on_xmit: data is about to be sent.  Return: its kind; NULL keeps the application's DS field.
 *	Socket locked
 * @on_last: a packet of a @kind that has a @before, which ends at @end_seq, has left.  Socket
 *	locked.  May be NULL
 * @on_refused: such a packet has not left: the host has no route, or its device has refused it.
 *	Socket locked.  NULL: gl_kick_soon()
 * @on_ack: a packet with an ACK is about to be sent; may clear ECE in @th.  Number of words for
 *	which the packet has room in the option: @room; negative if there is no room for the option.
 *	Data has room only if @room of struct gl_transport is not 0.  Return: the kind whose option
 *	is sent with @seg's field and its first words, or NULL to send no option.  The packet
 *	remains one of @protocol's control kind, or of on_xmit()'s.  Socket locked.  May be NULL
 * @on_packet: a packet with our option (of GL_KIND_ANSWERED only if the row has words), or one of
 *	GL_KIND_ENDS, was received; TCP has not processed it yet, unless a process owned the
 *	socket when it arrived.  Softirq or process context, socket locked and not owned by a
 *	process, BH off
 * @on_data: a packet of data has arrived that the peer could have sent; TCP has not processed it
 *	yet.  Softirq or process context, under the socket's spinlock, BH off; a process may own the
 *	socket.  NULL: never
 * @on_kick: TCP has finished with the packet for which gl_kick() was called, or GL_SOON_NS have
 *	passed since gl_kick_soon().  Softirq or process context, socket locked and not owned by a
 *	process, BH off
 * @on_trimmed: receiver: a packet of data was trimmed, and a report follows (gl_trim.c).  Return:
 *	the number of the report.  The transport paces repairs.  NULL: gl_trim.c paces reports.
 *	Softirq or process context, socket locked and not owned by a process, BH off
 * @on_named: sender: such a report has arrived, with this number, and the packet is marked as lost.
 *	Likewise
 * @on_switch: marking begins or ends (GREENLANE_TLT, release).  Socket locked
 * @is_alive: is a packet in flight that no switch drops first, or is a timer armed?  See
 *	gl_assert_alive().  Socket locked.  May be NULL
 * @on_info: fill in the transport's fields of @info.  Socket locked
 * @on_free: free the transport's allocations for the connection.  Socket locked or about to be
 *	freed.  May be NULL
 */
struct gl_transport {
	struct tcp_congestion_ops ops;
	const char *extends;
	int (*complete)(struct gl_transport *t);
	const struct tcp_congestion_ops *base;
	const struct gl_transport *inner;
	struct gl_protocol *protocol;
	bool rated;
	bool always;
	bool sprays;
	u8 room;
	size_t part;
	size_t sock_size;
	const struct gl_sockopt *sockopt;
	const struct gl_kind *(*on_xmit)(struct sock *sk, struct gl_sock *gs,
					 const struct gl_seg *seg);
	void (*on_last)(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			u32 end_seq);
	void (*on_refused)(struct sock *sk, struct gl_sock *gs);
	const struct gl_kind *(*on_ack)(struct sock *sk, struct gl_sock *gs, struct tcphdr *th,
					struct gl_seg *seg, int room);
	enum gl_verdict (*on_packet)(struct sock *sk, struct gl_sock *gs,
				     const struct gl_kind *kind,
				     const struct gl_seg *seg);
	void (*on_data)(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg);
	void (*on_kick)(struct sock *sk, struct gl_sock *gs);
	u16 (*on_trimmed)(struct sock *sk, struct gl_sock *gs);
	void (*on_named)(struct sock *sk, struct gl_sock *gs, u16 number);
	void (*on_switch)(struct sock *sk, struct gl_sock *gs, bool on);
	bool (*is_alive)(const struct sock *sk, const struct gl_sock *gs);
	void (*on_info)(const struct gl_sock *gs, struct greenlane_info *info);
	void (*on_free)(struct gl_sock *gs);
};

/**
 * struct gl_sock - the state of a connection that runs a transport
 * @af_ops: a copy of TCP's icsk_af_ops with gl_queue_xmit() and gl_mtu_reduced()
 * @tcp_ops: TCP's icsk_af_ops, to restore
 * @backlog_rcv: TCP's sk_backlog_rcv, to restore; it is gl_backlog_rcv() meanwhile
 * @transport: the transport
 * @node: in gl_sock.c's table, if IPV6_ADDRFORM can overwrite @af_ops
 * @sk: the connection; each list with @now or @soon holds a reference on it
 * @now: on gl_defer.c's list for the end of this softirq
 * @soon: on gl_defer.c's list for GL_SOON_NS later
 * @rcu: to free it after grace periods; it is on no list any more
 * @held: segments with our option that arrived while a process owned the socket, newest first;
 *	under the socket's spinlock
 * @flags: atomic bits and numbers, GL_* below
 * @refs: one for the connection, and one for each list
 * @held_end: end of a message that arrived while a process owned the socket; under the socket's
 *	spinlock
 * @prompt_end: end of the last data that requested an immediate ACK, sequence number
 * @echoes_sent: counter that struct greenlane_info reports
 * @reordering: tp->reordering before gl_dupthresh_one(); 0 if it was not changed
 * @held_n: packets in @held; under the socket's spinlock
 * @held_last: the codepoint of the packet that ended a message at @held_end, or 0; likewise
 * @peer: enum greenlane_peer; does not change
 * @off: switched off with GREENLANE_TLT
 * @asked: number of the last packet that was sent and requests an answer
 * @owed: the protocol's answer is owed to the peer
 * @prompt: the data before @prompt_end needs an ACK soon, which has not left yet
 * @kicked: a kick has begun, and on_kick() has not been called yet
 * @patient: @prompt is set, and that ACK may wait for data of the application, until the next kick
 *	by gl_kick_soon()
 * @young: that kick follows in less than GL_SOON_NS, so the ACK waits until the one after it
 *
 * All fields without a note: socket lock.  The transport's own state follows.
 */
struct gl_sock {
	struct inet_connection_sock_af_ops af_ops;
	const struct inet_connection_sock_af_ops *tcp_ops;
	int (*backlog_rcv)(struct sock *sk, struct sk_buff *skb);
	const struct gl_transport *transport;
	struct hlist_node node;
	struct sock	*sk;
	union {
		struct {
			struct llist_node now;
			struct llist_node soon;
		};
		struct rcu_head	rcu;
	};
	struct gl_held	*held;
	unsigned long	flags;
#define GL_QUEUED_NOW	0	/* @now is on its list */
#define GL_QUEUED_SOON	1	/* @soon is on its list */
#define GL_AT_RELEASE	2	/* a kick follows when the process releases the socket */
#define GL_OWED_ACK	3	/* data arrived that requests an immediate ACK */
#define GL_OWED_ANSWER	4	/* a packet arrived that requests an answer */
#define GL_OWED_CE	5	/* this packet had a CE mark */
#define GL_SOON_PASSED	6	/* GL_SOON_NS passed while a process owned the socket */
#define GL_HELD_TO	8	/* 8 bits: number of the packet of GL_OWED_ANSWER; see @held_n */
#define GL_OWED_TO	16	/* 8 bits: number of the packet to which an answer is owed */
	refcount_t	refs;
	u32		held_end;
	u32		prompt_end;
	u32		echoes_sent;
	u16		reordering;
	u16		held_n;
	u8		held_last;
	u8		asked;
	u8		peer;
	u8		off:1,
			owed:1,
			prompt:1,
			patient:1,
			young:1,
			kicked:1;
};

int gl_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);

/* Does an answer belong to one of the last @count packets that requested one?  Socket locked. */
static inline bool gl_is_answered(const struct gl_sock *gs, const struct gl_seg *seg, u8 count)
{
	return (u8)(gs->asked - seg->field) < count;
}

/* The state of a connection that runs a transport.  NULL for any other TCP socket, for a
 * listener, and for a connection that can only run its base.  Socket locked, or under RCU if
 * only @af_ops, @tcp_ops, @transport and @sk are read.
 *
 * It follows no pointer into a congestion control: a destroyed socket keeps that pointer, and
 * the module may have been unloaded.
 */
static inline struct gl_sock *gl_sock(const struct sock *sk)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);

	if (ops->queue_xmit != gl_queue_xmit)
		return NULL;
	return container_of((struct inet_connection_sock_af_ops *)ops, struct gl_sock, af_ops);
}

struct gl_sock *gl_sock_again(struct sock *sk);

/* As gl_sock(), in callbacks that have the socket locked.  Also finds the state after
 * IPV6_ADDRFORM, which leaves an IPv4 socket that still has a pinet6.
 */
static inline struct gl_sock *gl_sock_locked(struct sock *sk)
{
	struct gl_sock *gs = gl_sock(sk);

#if IS_ENABLED(CONFIG_IPV6)
	if (unlikely(!gs && sk->sk_family == AF_INET && inet_sk(sk)->pinet6))
		gs = gl_sock_again(sk);
#endif
	return gs;
}

/* Has the application closed its side?  Socket locked. */
static inline bool gl_fin_written(const struct sock *sk)
{
	return (1 << sk->sk_state) &
	       (TCPF_FIN_WAIT1 | TCPF_FIN_WAIT2 | TCPF_CLOSING | TCPF_LAST_ACK);
}

/* The sequence number behind the last byte that the application has written: TCP's write_seq also
 * counts a FIN.  Socket locked.
 */
static inline u32 gl_data_end(const struct sock *sk)
{
	return tcp_sk(sk)->write_seq - gl_fin_written(sk);
}

/* The transport of a socket, in callbacks of its congestion control. */
static inline struct gl_transport *gl_transport(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct gl_transport, ops);
}

void gl_nest(struct gl_transport *t, const struct gl_transport *inner, size_t size);
void gl_release(struct sock *sk);

/* The transport of a TCP socket that is not closed, or NULL.  Without the lock, under RCU:
 * setsockopt() may replace it meanwhile, and its module stays.
 */
static inline struct gl_transport *gl_ours(const struct sock *sk)
{
	const struct tcp_congestion_ops *ops = READ_ONCE(inet_csk(sk)->icsk_ca_ops);

	return ops->release == gl_release ?
	       container_of(ops, struct gl_transport, ops) : NULL;
}

/* Is the congestion control a transport?  For any TCP socket that is not closed; socket locked
 * or under RCU.
 */
static inline bool gl_is_ours(const struct sock *sk)
{
	return gl_ours(sk);
}

/* Would TCP hold back less than an MSS now, by Nagle's algorithm (Minshall's variant) or CORK? */
static inline bool gl_nagle_holds(const struct tcp_sock *tp)
{
	return (tp->nonagle & TCP_NAGLE_CORK) ||
	       (!tp->nonagle && after(tp->snd_sml, tp->snd_una) &&
		!after(tp->snd_sml, tp->snd_nxt));
}

/* The departure of a packet that a transport makes itself, TCP's clock, ns: not before that of data
 * that has left TCP.  Without pacing tcp_wstamp_ns is the departure of its last packet, which
 * tlt_order() may have put ahead of the clock.  With pacing it is that of the next packet; fq holds
 * the last one until its own departure.  Socket locked.
 */
static inline u64 gl_departure_ns(const struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 now = tcp_clock_ns();

	switch (READ_ONCE(sk->sk_pacing_status)) {
	case SK_PACING_NONE:
		return max(now, tp->tcp_wstamp_ns);
	case SK_PACING_FQ:
		if (list_empty(&tp->tsorted_sent_queue))
			return now;
		return max(now, list_last_entry(&tp->tsorted_sent_queue, struct sk_buff,
						tcp_tsorted_anchor)->skb_mstamp_ns);
	default:
		return now;
	}
}

/* Set a duplicate threshold of one, as in the papers, while data is in flight.  Call this for
 * data that leaves.  Once TCP has detected reordering, keep TCP's own threshold.  Socket locked.
 */
static inline void gl_dupthresh_one(struct sock *sk, struct gl_sock *gs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->reordering == 1 || tp->reord_seen)
		return;
	gs->reordering = tp->reordering;
	tp->reordering = 1;
}

/* Restore TCP's own threshold, before TCP can save ours in the metrics of the destination, which
 * it does when a connection closes with no data in flight.  Socket locked.
 */
static inline void gl_dupthresh_restore(struct sock *sk, struct gl_sock *gs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->reordering = max_t(u32, tp->reordering, gs->reordering);
	gs->reordering = 0;
}

/* As gl_dupthresh_restore(), in in_ack_event(), if no data is in flight after the ACK. */
static inline void gl_dupthresh_acked(struct sock *sk, struct gl_sock *gs)
{
	if (gs->reordering && tcp_sk(sk)->snd_una == tcp_sk(sk)->snd_nxt)
		gl_dupthresh_restore(sk, gs);
}

/* Does this connection mark its packets? */
static inline bool gl_marking(const struct gl_sock *gs)
{
	return gs->peer == GREENLANE_PEER_YES && !gs->off;
}

/* Will on_kick() be called?  Socket locked. */
static inline bool gl_kick_is_queued(const struct gl_sock *gs)
{
	return gs->kicked || test_bit(GL_QUEUED_NOW, &gs->flags) ||
	       test_bit(GL_QUEUED_SOON, &gs->flags) || test_bit(GL_AT_RELEASE, &gs->flags);
}

#ifdef GL_DEBUG
void gl_assert_alive(const struct sock *sk, const struct gl_sock *gs);
#else
static inline void gl_assert_alive(const struct sock *sk, const struct gl_sock *gs)
{
}
#endif

/* The tagging layer's own counters of a network namespace, in /proc/net/greenlane. */
enum gl_mib {
	GL_MIB_CONTROL,
	GL_MIB_HANDSHAKE,
	GL_MIB_FALLBACK,
	GL_MIB_PEERWITHOUT,
	GL_MIB_REMARKED,
	GL_MIB_UNSUPPORTED,
	GL_MIB_STRIPPED,
	GL_MIB_SPLIT,
	GL_MIB_SPLITFAILED,
	GL_MIB_KICKS,
	GL_MIB_KICKSOWNED,
	GL_MIB_NOMEMORY,
	GL_MIB_INVALID,
	GL_MIB_TRIMMED,
	GL_MIB_REPORTSENT,
	GL_MIB_REPORTRECEIVED,
	GL_MIBS,
};

/* gl_proc.c */
void gl_add_stats(const struct net *net, enum gl_mib mib, u64 n);

static inline void gl_inc_stats(const struct net *net, enum gl_mib mib)
{
	gl_add_stats(net, mib, 1);
}

/* gl_transport.c */
void gl_count(const struct net *net, const struct gl_protocol *protocol, unsigned int counter,
	      u64 n);
void gl_base_clone(struct tcp_congestion_ops *ops,
		   const struct tcp_congestion_ops *base, struct module *owner);
int gl_register_protocol(struct gl_protocol *protocol);
void gl_unregister_protocol(struct gl_protocol *protocol);
int gl_register_transport(struct gl_transport *t);
void gl_unregister_transport(struct gl_transport *t);

/* gl_main.c */
struct gl_sock *gl_attach(struct sock *sk);
void gl_detach(struct sock *sk);

/* gl_defer.c */
void gl_call_hold(struct gl_sock *gs);
void gl_call(struct gl_sock *gs, u64 now,
	     void (*call)(struct sock *sk, struct gl_sock *gs, u64 now, bool may));
void gl_kick(struct sock *sk, struct gl_sock *gs);
bool gl_kick_soon(struct sock *sk, struct gl_sock *gs);
void gl_xmit_at_release(struct sock *sk);
void gl_xmit(struct sock *sk);
void gl_xmit_one(struct sock *sk);

/* gl_loss.c */
void gl_rack_wait(struct sock *sk);
bool gl_lose_before(struct sock *sk, u64 us, u32 end_seq);
bool gl_suspect_before(struct sock *sk, u64 us, u32 end_seq);
void gl_reorder_seen(struct sock *sk, struct gl_sock *gs);
void gl_lose_settle(struct sock *sk);
void gl_lose(struct sock *sk, struct sk_buff *skb);

/* gl_craft.c */
int gl_send_repeat(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind, u32 most);
bool gl_send_words(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		   const u32 *word, unsigned int words);

#endif /* _NET_GREENLANE_H */
