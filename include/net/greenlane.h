/* SPDX-License-Identifier: GPL-2.0 */
/* The interface between the tagging layer (greenlane.ko) and its transports.
 *
 * A transport is a TCP congestion control, usually an extended copy of a base, with the
 * callbacks below.  It decides the kind of each packet.  The tagging layer turns that into
 * codepoints and options on the wire and back, has TCP send beyond its window (the kick), and
 * builds packets.
 */
#ifndef _NET_GREENLANE_H
#define _NET_GREENLANE_H

#include <linux/llist.h>
#include <linux/refcount.h>
#include <net/gl_codepoint.h>
#include <net/tcp.h>
#include <uapi/linux/greenlane.h>

struct ctl_table;
struct ctl_table_header;
struct gl_sock;
struct gl_transport;

/* The most 32-bit words in the greenlane TCP option. */
#define GL_WORDS_MAX	4

/**
 * struct gl_seg - a TCP segment that is sent or was received
 * @seq: first sequence number
 * @end_seq: @seq plus payload bytes (SYN and FIN not counted)
 * @ack: acknowledgment number
 * @segs: packets on the wire; 1 unless GSO
 * @window: the window field, unscaled (inbound only)
 * @sack: the segment has SACK blocks (clock echoes only)
 * @more: more data of the same write follows (outbound only)
 * @words: number of words in the option (inbound only)
 * @word: the option's words, in host byte order
 */
struct gl_seg {
	u32 seq;
	u32 end_seq;
	u32 ack;
	u16 segs;
	u16 window;
	bool sack;
	bool more;
	u8 words;
	u32 word[GL_WORDS_MAX];
};

/* What to do with a received packet. */
enum gl_verdict {
	GL_PASS,	/* give it to TCP */
	GL_CONSUME,	/* free it */
	GL_HELD,	/* nothing: it is held (used by the tagging layer only) */
};

/**
 * struct gl_precredit - what sends before the first credit, on top of a credit transport
 * @begin: data waits, and the first credit is about to be requested: a burst may begin
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
struct gl_precredit {
	void (*begin)(struct sock *sk, struct gl_sock *gs);
	u32 (*allow)(struct sock *sk, struct gl_sock *gs);
	u32 (*waiting)(const struct sock *sk, struct gl_sock *gs);
	void (*credited)(struct sock *sk, struct gl_sock *gs);
	bool (*probe)(struct sock *sk, struct gl_sock *gs, u32 *word);
	void (*lost)(struct sock *sk, struct gl_sock *gs);
	bool (*spend)(struct sock *sk, struct gl_sock *gs);
};

/**
 * struct gl_transport - a congestion control that marks packets
 * @ops: the congestion control; @ops.release must be gl_release(), which identifies a
 *	transport
 * @base: the congestion control that @ops is a copy of, or NULL
 * @rated: it sends at a rate, not by a window
 * @fallback: a credit transport's congestion control without a peer: GL_RENO()
 * @precredit: what sends before the first credit, or NULL
 * @sock_size: size of a connection's state, which begins with a struct gl_sock; bytes
 * @hello: the kind of its SYN and SYN-ACK
 * @control: the kind of its packets without data
 * @line: a credit transport's link speed, Mbit/s
 * @on_xmit: data is sent.  Return: its kind.  GL_IMPORTANT and GL_MESSAGE_END are the kind of
 *	the last packet only; the others are then GL_DATA or GL_MESSAGE.  Socket locked
 * @on_important: such a last packet, which ends at @end_seq, is sent now.  Socket locked
 * @on_ack: a packet with an ACK is sent; may clear ECE in @th.  If @word is not NULL, the packet
 *	has room for a word in the option.  Return: true if @word was set and has to be sent.
 *	Socket locked.  May be NULL
 * @on_packet: a packet for the transport, or the last one of a message, was received; TCP has
 *	not processed it yet, unless a process owned the socket when it arrived.  Softirq or
 *	process context, socket locked and not owned by a process, BH off
 * @on_kick: TCP has finished with what gl_kick() was called for.  Softirq or process context,
 *	socket locked and not owned by a process, BH off
 * @on_switch: marking begins or ends (GREENLANE_TLT, release).  Socket locked
 * @on_info: fill in the transport's part.  Socket locked
 * @set_option: set GREENLANE_AEOLUS or a later option.  Return: an errno.  Socket locked
 * @get_option: Return: the value of such an option, or an errno.  Both or neither are there
 * @set_senders: set GREENLANE_SENDERS or GREENLANE_COSENDERS.  Return: an errno.  Socket
 *	locked, may sleep.  May be NULL
 * @on_free: free what the connection has allocated.  Socket locked or about to be freed.  May be
 *	NULL
 */
struct gl_transport {
	struct tcp_congestion_ops ops;
	const struct tcp_congestion_ops *base;
	bool rated;
	const struct tcp_congestion_ops *fallback;
	const struct gl_precredit *precredit;
	size_t sock_size;
	enum gl_kind hello;
	enum gl_kind control;
	u32 (*line)(const struct sock *sk);
	enum gl_kind (*on_xmit)(struct sock *sk, struct gl_sock *gs,
				const struct gl_seg *seg);
	void (*on_important)(struct sock *sk, struct gl_sock *gs, u32 end_seq);
	bool (*on_ack)(struct sock *sk, struct gl_sock *gs, struct tcphdr *th, u32 *word);
	enum gl_verdict (*on_packet)(struct sock *sk, struct gl_sock *gs,
				     enum gl_kind kind,
				     const struct gl_seg *seg);
	void (*on_kick)(struct sock *sk, struct gl_sock *gs);
	void (*on_switch)(struct sock *sk, struct gl_sock *gs, bool on);
	void (*on_info)(const struct gl_sock *gs, struct greenlane_info *info);
	int (*set_option)(struct sock *sk, struct gl_sock *gs, int option, int value);
	int (*get_option)(const struct sock *sk, struct gl_sock *gs, int option);
	int (*set_senders)(struct sock *sk, struct gl_sock *gs, int option,
			   const struct in6_addr *senders, unsigned int n);
	void (*on_free)(struct gl_sock *gs);
};

/**
 * struct gl_sock - the state of a connection that runs a transport
 * @af_ops: a copy of TCP's icsk_af_ops in which queue_xmit() is gl_queue_xmit()
 * @tcp_ops: TCP's icsk_af_ops, to restore
 * @backlog_rcv: TCP's sk_backlog_rcv, to restore; it is gl_backlog_rcv() meanwhile
 * @transport: the transport
 * @node: in gl_sock.c's table, if IPV6_ADDRFORM can overwrite @af_ops
 * @sk: the connection; each list with @now or @soon holds a reference on it
 * @now: on gl_kick.c's list for the end of this softirq
 * @soon: on gl_kick.c's list for GL_SOON_NS later
 * @rcu: to free it after grace periods; it is on no list any more
 * @held: packets with our option that arrived while a process owned the socket, newest first;
 *	under the socket's spinlock
 * @flags: atomic bits, GL_* below
 * @refs: one for the connection, and one for each list
 * @held_end: end of a message that arrived meanwhile; under the socket's spinlock
 * @echoes_sent: counter, as struct greenlane_info has it
 * @reordering: tp->reordering before gl_dupthresh_one(); 0 if it was not changed
 * @held_n: packets in @held; under the socket's spinlock
 * @peer: enum greenlane_peer; does not change
 * @off: switched off with GREENLANE_TLT
 * @owed_clock: a clock of the peer has not been answered yet
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
	struct sk_buff	*held;
	unsigned long	flags;
#define GL_QUEUED_NOW	0	/* @now is on its list */
#define GL_QUEUED_SOON	1	/* @soon is on its list */
#define GL_NUDGED	2	/* a nudge is on the backlog: gl_owned.c */
#define GL_OWED_ACK	3	/* data arrived that wants an immediate ACK */
#define GL_OWED_ECHO	4	/* a clock arrived that wants an answer */
#define GL_ENDED	5	/* a message ends at @held_end */
	refcount_t	refs;
	u32		held_end;
	u32		echoes_sent;
	u16		reordering;
	u8		held_n;
	u8		peer;
	u8		off:1,
			owed_clock:1;
};

/* reno, for a credit transport's connection without a peer.  It is not registered and belongs to
 * the transport's module, on which the socket holds a reference (as dctcp_reno).
 */
#define GL_RENO(_name) {				\
	.name		= _name,			\
	.owner		= THIS_MODULE,			\
	.ssthresh	= tcp_reno_ssthresh,		\
	.cong_avoid	= tcp_reno_cong_avoid,		\
	.undo_cwnd	= tcp_reno_undo_cwnd,		\
}

int gl_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);

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

/* The transport of a socket, in callbacks of its congestion control. */
static inline struct gl_transport *gl_transport(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct gl_transport, ops);
}

void gl_release(struct sock *sk);

/* Is the congestion control a transport?  For any TCP socket that is not closed; socket locked
 * or under RCU.
 */
static inline bool gl_is_ours(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_ca_ops)->release == gl_release;
}

/* Will the socket's namespace be there as long as the socket?  When the kernel closes a socket of
 * its own that holds no reference on its namespace, TCP stops TCP's timers, but neither ours nor
 * that of its own pacing.  Such sockets run a base that has no timer.  init_net stays.
 */
static inline bool gl_net_stays(const struct sock *sk)
{
	return sk->sk_net_refcnt || net_eq(sock_net(sk), &init_net);
}

/* Would TCP hold back less than an MSS now, by Nagle's algorithm (Minshall's variant) or CORK? */
static inline bool gl_nagle_holds(const struct tcp_sock *tp)
{
	return (tp->nonagle & TCP_NAGLE_CORK) ||
	       (!tp->nonagle && after(tp->snd_sml, tp->snd_una) &&
		!after(tp->snd_sml, tp->snd_nxt));
}

/* Restore the device's limit of GSO segments.  Socket locked. */
static inline void gl_gso_default(struct sock *sk)
{
	const struct dst_entry *dst;

	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	sk->sk_gso_max_segs = dst ? max_t(u32, READ_ONCE(dst->dev->gso_max_segs), 1) : 1;
	rcu_read_unlock();
}

/* A duplicate threshold of one, as the papers have it, while data is in flight.  Call it for
 * data that leaves.  Once TCP has seen packets out of order, TCP's own threshold stays.
 * Socket locked.
 */
static inline void gl_dupthresh_one(struct sock *sk, struct gl_sock *gs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	if (tp->reordering == 1 || tp->reord_seen)
		return;
	gs->reordering = tp->reordering;
	tp->reordering = 1;
}

/* TCP's own threshold again, before TCP can save ours in the metrics of the destination, which
 * it does when a connection closes with nothing in flight.  Socket locked.
 */
static inline void gl_dupthresh_restore(struct sock *sk, struct gl_sock *gs)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->reordering = max_t(u32, tp->reordering, gs->reordering);
	gs->reordering = 0;
}

/* The same in in_ack_event(), where an ACK may have emptied the network. */
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

/* Counters of a network namespace, in /proc/net/greenlane. */
enum gl_mib {
	GL_MIB_DATA,
	GL_MIB_DATABYTES,
	GL_MIB_IMPORTANT,
	GL_MIB_IMPORTANTBYTES,
	GL_MIB_ECHOSENT,
	GL_MIB_ECHORECEIVED,
	GL_MIB_CLOCKBYTE,
	GL_MIB_CLOCKMSS,
	GL_MIB_CLOCKBYTES,
	GL_MIB_CLOCKRECEIVED,
	GL_MIB_CLOCKECHOSENT,
	GL_MIB_CLOCKECHORECEIVED,
	GL_MIB_CLOCKECHOCONSUMED,
	GL_MIB_CONTROL,
	GL_MIB_HANDSHAKE,
	GL_MIB_LOSSBYECHO,
	GL_MIB_REARMEDBYRTO,
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
	GL_MIB_SCHEDULED,
	GL_MIB_UNCREDITED,
	GL_MIB_REQUESTSENT,
	GL_MIB_REQUESTRETRIED,
	GL_MIB_REQUESTRECEIVED,
	GL_MIB_CREDITSENT,
	GL_MIB_CREDITTHROTTLED,
	GL_MIB_CREDITRECEIVED,
	GL_MIB_CREDITWASTED,
	GL_MIB_CREDITLOST,
	GL_MIB_MESSAGE,
	GL_MIB_SHORT,
	GL_MIB_MESSAGEBEGUN,
	GL_MIB_MESSAGEENDED,
	GL_MIB_SENDERDEAD,
	GL_MIB_SENDERSNAMED,
	GL_MIB_NAMINGLIMITED,
	GL_MIB_SHARESENT,
	GL_MIB_SHARERECEIVED,
	GL_MIB_MARKSUPPRESSED,
	GL_MIB_MARKPASSED,
	GL_MIBS,
};

void gl_add_stats(const struct net *net, enum gl_mib mib, u64 n);

static inline void gl_inc_stats(const struct net *net, enum gl_mib mib)
{
	gl_add_stats(net, mib, 1);
}

const struct tcp_congestion_ops *gl_base_get(const char *name);
void gl_base_put(const struct tcp_congestion_ops *base);
void gl_pace_as_tcp(struct sock *sk);
void gl_base_clone(struct tcp_congestion_ops *ops,
		   const struct tcp_congestion_ops *base, struct module *owner);
/* An entry of the template for gl_sysctl_add(): an unsigned int between *@least and *@most. */
#define GL_SYSCTL_UINT(name, type, field, least, most) {	\
	.procname	= name,					\
	.data		= (void *)offsetof(type, field),	\
	.maxlen		= sizeof(unsigned int),			\
	.mode		= 0644,					\
	.proc_handler	= proc_douintvec_minmax,		\
	.extra1		= least,				\
	.extra2		= most,					\
}

struct ctl_table_header *gl_sysctl_add(struct net *net,
				       const struct ctl_table *template,
				       size_t n, void *base);
void gl_sysctl_remove(struct ctl_table_header *header);
int gl_register_transport(struct gl_transport *t);
void gl_unregister_transport(struct gl_transport *t);
struct gl_sock *gl_attach(struct sock *sk);
void gl_detach(struct sock *sk);
void gl_kick(struct sock *sk, struct gl_sock *gs);
void gl_kick_soon(struct sock *sk, struct gl_sock *gs);
void gl_xmit_later(struct sock *sk);
void gl_xmit(struct sock *sk);
void gl_xmit_one(struct sock *sk);
bool gl_lose_before(struct sock *sk, u64 us, u32 end_seq);
void gl_lose_settle(struct sock *sk);
void gl_lose(struct sock *sk, struct sk_buff *skb);
u32 gl_send_clock(struct sock *sk, struct gl_sock *gs, u32 most);
bool gl_send_words(struct sock *sk, struct gl_sock *gs, enum gl_kind kind,
		   const u32 *word, unsigned int words);

#endif /* _NET_GREENLANE_H */
