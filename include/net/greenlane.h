/* SPDX-License-Identifier: GPL-2.0 */
/* The tagging layer, as its transports see it.
 *
 * A transport decides what a packet is; the tagging layer (greenlane.ko)
 * turns that into codepoints on the wire and back, lets TCP send beyond its
 * window (the kick) and crafts packets.  A transport is a TCP congestion
 * control, a clone of its base, with the callbacks below.
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

/* 32-bit words in our TCP option */
#define GL_WORDS_MAX	4

/**
 * struct gl_seg - a TCP segment, on its way out or in
 * @seq: first sequence number
 * @end_seq: @seq plus payload bytes (SYN and FIN not counted)
 * @ack: acknowledgment number
 * @segs: packets it is on the wire; 1 unless GSO
 * @window: the window field, unscaled (inbound only)
 * @sack: it carries SACK blocks (clock echoes only)
 * @more: the application is not done with its write (outbound only)
 * @words: how many of @word our TCP option has (inbound only)
 * @word: what it says
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

/* What becomes of a received packet. */
enum gl_verdict {
	GL_PASS,	/* TCP sees it */
	GL_CONSUME,	/* it ends here */
	GL_HELD,	/* it is ours now (the tagging layer's own) */
};

/**
 * struct gl_precredit - what a combinator adds to a credit transport
 * @begin: data waits, and the first credit is asked for: may a burst begin?
 * @allow: packets that may leave without a credit, now
 * @waiting: packets that have left and may need a credit all the same
 * @credited: a credit has come, and will be spent
 * @probe: the burst has ended: the word that the request that follows carries
 *	beside its own, if true; it will be answered
 * @lost: no credit has come for too long: the probe may be lost too
 * @spend: TCP has no use for a credit; true if there was one after all
 *
 * All: socket locked.  @credited and @spend: and at rest, BH off.
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
 * @ops: what TCP calls; @ops.release must be gl_release(), by which a transport
 *	is recognised
 * @base: the congestion control that @ops is a clone of, or NULL
 * @rated: a rate says when its packets leave, and no window
 * @fallback: what a credit transport's connection runs without a peer: GL_RENO()
 * @precredit: a combinator's part, or NULL
 * @sock_size: bytes of its connection's state, which begins with a struct
 *	gl_sock
 * @hello: what its SYN and SYN-ACK are
 * @control: what its packets without data are
 * @line: what a credit transport's line carries, Mbit/s
 * @on_xmit: data leaves: what is it?  If GL_IMPORTANT or GL_MESSAGE_END, then its last
 *	packet only, and the others are GL_DATA or GL_MESSAGE.  Socket locked.
 * @on_important: it has been marked; @end_seq is its end.  Socket locked.
 * @on_ack: a packet that acknowledges leaves; may take ECE out of @th.  A packet without
 *	data, and with room (@word is not NULL), may have a word in our option: true if so.  Socket
 *	locked.  NULL if neither is wanted
 * @on_packet: a packet has come that speaks to the transport only, or the last one of a
 *	message; TCP has not seen it yet, unless a process owned the socket.  Softirq or
 *	process context, socket locked and at rest, BH off.
 * @on_kick: TCP is done with what gl_kick() was called for.  Softirq or
 *	process context, socket locked and not owned by another, BH off.
 * @on_switch: marking begins or ends (GREENLANE_TLT, release).  Socket locked.
 * @on_info: fill in the transport's part.  Socket locked.
 * @set_option: GREENLANE_AEOLUS and what follows; an errno.  Socket locked.
 * @get_option: the same; its value, or an error.  Both or neither are there.
 * @set_senders: GREENLANE_SENDERS and GREENLANE_COSENDERS; an errno.  Socket locked, may
 *	sleep.  Or NULL
 * @on_free: the connection leaves us: free what it has.  Socket locked, or out of
 *	everybody's reach.  Or NULL
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
 * struct gl_sock - what greenlane keeps for a connection
 * @af_ops: TCP's icsk_af_ops, but for queue_xmit(), which is gl_queue_xmit()
 * @tcp_ops: TCP's, which the connection has before and after
 * @backlog_rcv: the same of sk_backlog_rcv, which is gl_backlog_rcv() meanwhile
 * @transport: what it runs
 * @node: in gl_sock.c's table, if IPV6_ADDRFORM can write over @af_ops
 * @sk: the connection; each list that @now and @soon are in holds a reference
 * @now: in gl_kick.c's list for this instant
 * @soon: in gl_kick.c's list for a little later
 * @rcu: freed after grace periods, when it is in no list any more
 * @held: packets for us that came while a process owned the socket, newest first;
 *	under the socket's spinlock
 * @flags: atomic bits, GL_*: see there
 * @refs: the connection's, and one a list
 * @held_end: end of a message that came meanwhile; under the socket's spinlock
 * @echoes_sent: counter, as struct greenlane_info has it
 * @held_n: packets in @held
 * @peer: enum greenlane_peer
 * @off: switched off with GREENLANE_TLT
 * @owed_clock: the peer's clock has come and was not echoed yet
 *
 * All fields without a note: socket lock.  The transport's own state follows.
 * A connection pays for this only while it runs one of our transports.
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
#define GL_QUEUED_NOW	0	/* it is in @now's list */
#define GL_QUEUED_SOON	1	/* it is in @soon's list */
#define GL_NUDGED	2	/* a packet in the backlog will tell when the owner is done */
#define GL_OWED_ACK	3	/* data came that is to be acknowledged at once */
#define GL_OWED_ECHO	4	/* a clock came that is to be answered */
#define GL_ENDED	5	/* a message ends at @held_end */
	refcount_t	refs;
	u32		held_end;
	u32		echoes_sent;
	u8		held_n;
	u8		peer;
	u8		off:1,
			owed_clock:1;
};

/* What a credit transport's connection runs without a peer: not registered, but of
 * the same module, as dctcp has it, because that is what the socket holds.
 */
#define GL_RENO(_name) {				\
	.name		= _name,			\
	.owner		= THIS_MODULE,			\
	.ssthresh	= tcp_reno_ssthresh,		\
	.cong_avoid	= tcp_reno_cong_avoid,		\
	.undo_cwnd	= tcp_reno_undo_cwnd,		\
}

int gl_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl);

/* The state of a connection of ours; NULL of any other TCP socket, of a listener, and of
 * one that can only behave as its base.  Socket locked, or under RCU if only @af_ops,
 * @tcp_ops, @transport and @sk are read.
 *
 * No pointer into a congestion control is followed: a socket that has been destroyed keeps
 * one, and its module may be gone.
 */
static inline struct gl_sock *gl_sock(const struct sock *sk)
{
	const struct inet_connection_sock_af_ops *ops = READ_ONCE(inet_csk(sk)->icsk_af_ops);

	if (ops->queue_xmit != gl_queue_xmit)
		return NULL;
	return container_of((struct inet_connection_sock_af_ops *)ops, struct gl_sock, af_ops);
}

struct gl_sock *gl_sock_again(struct sock *sk);

/* The same in a transport's callbacks, with the socket locked: finds it again after
 * IPV6_ADDRFORM, which leaves an IPv4 socket with the memory of an IPv6 one.
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

/* Of a socket whose congestion control is one of ours: in its callbacks. */
static inline struct gl_transport *gl_transport(const struct sock *sk)
{
	return container_of(inet_csk(sk)->icsk_ca_ops, struct gl_transport, ops);
}

void gl_release(struct sock *sk);

/* Has it chosen one of our congestion controls?  Of any TCP socket that is not closed;
 * socket locked, or under RCU.
 */
static inline bool gl_is_ours(const struct sock *sk)
{
	return READ_ONCE(inet_csk(sk)->icsk_ca_ops)->release == gl_release;
}

/* Would Nagle's algorithm hold back less than an MSS, as TCP does it: while a
 * small packet is unacked?
 */
static inline bool gl_nagle_holds(const struct tcp_sock *tp)
{
	return (tp->nonagle & TCP_NAGLE_CORK) ||
	       (!tp->nonagle && after(tp->snd_sml, tp->snd_una) &&
		!after(tp->snd_sml, tp->snd_nxt));
}

/* As long bursts as the device takes, again.  Socket locked. */
static inline void gl_gso_default(struct sock *sk)
{
	const struct dst_entry *dst;

	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	sk->sk_gso_max_segs = dst ? max_t(u32, READ_ONCE(dst->dev->gso_max_segs), 1) : 1;
	rcu_read_unlock();
}

/* Packets of this connection carry our codepoints. */
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
void gl_base_clone(struct tcp_congestion_ops *ops,
		   const struct tcp_congestion_ops *base, struct module *owner);
/* An entry of gl_sysctl_add()'s template: an unsigned int, from *@least to *@most. */
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
