/* SPDX-License-Identifier: GPL-2.0 */
/* Declarations that the files of greenlane.ko share. */
#ifndef _GL_INTERNAL_H
#define _GL_INTERNAL_H

#include <linux/hrtimer.h>
#include <linux/netfilter.h>
#include <linux/percpu.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <net/greenlane.h>
#include <net/inet_ecn.h>
#include <net/netns/generic.h>

/* States in which data can be sent or received. */
#define GL_STATES	(TCPF_ESTABLISHED | TCPF_SYN_RECV | TCPF_FIN_WAIT1 |	\
			 TCPF_FIN_WAIT2 | TCPF_CLOSE_WAIT | TCPF_CLOSING |	\
			 TCPF_LAST_ACK)

/* Maximum number of registered protocols: greenlane's own eight, and others'. */
#define GL_PROTOCOLS		10

/* struct gl_counters - one CPU's share of a namespace's counters, the layer's and the protocols' */
struct gl_counters {
	u64 n[GL_MIBS];
	u64 protocol[GL_PROTOCOLS][GL_COUNTERS_MAX];
};

/**
 * struct gl_trims - repairs that wait: see gl_trim.c
 * @lock: protects @tree, @segments and @n
 * @tree: struct gl_repair, by time
 * @segments: those of receivers, by connection and first byte
 * @n: number of them
 * @timer: expires at the time of the first one
 */
struct gl_trims {
	spinlock_t		lock;	/* see above */
	struct rb_root_cached	tree;
	struct rb_root		segments;
	unsigned int		n;
	struct hrtimer		timer;
};

/**
 * struct gl_net - greenlane's state of a network namespace
 * @cp: codepoint table; see struct gl_codepoints
 * @protect: strip protected codepoints that unprivileged applications set: gl_protect.c; written
 *	under gl_sysctl_mutex
 * @ecn: the ECN field signals which packets had a credit; see gl_marked()
 * @trim: trimmed packets are reported to their senders, and reports are used
 * @active: the hooks are registered; written under gl_active_mutex, read without it
 * @leaving: the namespace is being removed; under gl_active_mutex
 * @net: the namespace, for @activate
 * @activate: work that registers the hooks
 * @counters: counters of each CPU, BH off
 * @trims: repairs of trimmed packets
 * @sysctl: registered for the namespace's life
 */
struct gl_net {
	struct gl_codepoints cp;
	u8 protect;
	u8 ecn;
	u8 trim;
	bool active;
	bool leaving;
	struct net *net;
	struct work_struct activate;
	struct gl_counters __percpu *counters;
	struct gl_trims trims;
	struct ctl_table_header *sysctl;
};

/**
 * struct gl_held - a segment with our option
 * @next: the next older segment in gl_sock.held
 * @kind: its kind
 * @seg: the segment
 */
struct gl_held {
	struct gl_held *next;
	const struct gl_kind *kind;
	struct gl_seg seg;
};

/* A number in gl_sock.flags.  @at: GL_HELD_TO or GL_OWED_TO. */
static inline u8 gl_number(const struct gl_sock *gs, unsigned int at)
{
	return READ_ONCE(gs->flags) >> at;
}

/* The bits beside it may change meanwhile. */
static inline void gl_set_number(struct gl_sock *gs, unsigned int at, u8 number)
{
	set_mask_bits(&gs->flags, (unsigned long)U8_MAX << at, (unsigned long)number << at);
}

extern unsigned int gl_net_id;

static inline struct gl_net *gl_net(const struct net *net)
{
	return net_generic(net, gl_net_id);
}

/* The DS field of a packet of a @kind.
 *
 * The ECN bits belong to TCP and stay.  With greenlane_ecn they signal instead whether the packet
 * had a credit, for switches that only have RED with ECN: such a switch marks ECT packets and drops
 * the others (Aeolus §IV-A).  The receiver ignores them.
 */
static inline u8 gl_marked(const struct gl_net *gn, const struct gl_kind *kind, u8 dsfield)
{
	u8 ecn = dsfield & INET_ECN_MASK;

	if (kind->flags & (GL_KIND_ECT | GL_KIND_NOT_ECT) && READ_ONCE(gn->ecn))
		ecn = kind->flags & GL_KIND_ECT ? INET_ECN_ECT_0 : INET_ECN_NOT_ECT;
	return READ_ONCE(gn->cp.dscp[kind->codepoint]) << 2 | ecn;
}

/* The codepoint of a DS field, in this namespace. */
static inline enum gl_codepoint gl_codepoint(const struct net *net, u8 dsfield)
{
	return gl_codepoint_of(&gl_net(net)->cp, dsfield);
}

/* gl_transport.c */
const struct gl_protocol *gl_protocol_of_hello(u8 code);
const struct gl_protocol *gl_protocol_told_as(enum gl_codepoint cp);
const struct gl_protocol *gl_protocol_at(unsigned int slot);
const struct gl_kind *gl_kind_of_data(const struct gl_sock *gs, u8 dsfield);
const struct gl_kind *gl_kind_of_code(const struct gl_sock *gs, u8 code);
const struct gl_transport *gl_transport_of_key(u32 key);

/* gl_netfilter.c */
int gl_activate(struct net *net);
void gl_activate_soon(struct net *net);
int gl_active_net_init(struct net *net);
void gl_active_net_exit(struct net *net);

/* gl_handshake.c */
unsigned int gl_local_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
void gl_in_handshake(struct net *net, struct sk_buff *skb, struct sock *sk, int thoff,
		     u8 family);
enum greenlane_peer gl_first_peer(struct sock *sk);

/* gl_output.c */
int gl_send(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
	    struct sk_buff *skb, struct flowi *fl, const struct gl_kind *kind);

/* Has a packet left?  With NET_XMIT_CN a device has accepted it and dropped one. */
static inline bool gl_was_sent(int err)
{
	return err == NET_XMIT_SUCCESS || err == NET_XMIT_CN;
}

/* gl_room.c */
void gl_room_take(struct sock *sk, struct gl_sock *gs);
bool gl_room_has(struct sock *sk, struct gl_sock *gs, const struct sk_buff *skb,
		 const struct gl_seg *seg);
void gl_room_give(struct sock *sk, struct gl_sock *gs);

/* gl_protect.c */
extern atomic_t gl_protect_n;

/* Does a namespace have greenlane_protect? */
static inline bool gl_protecting(void)
{
	return atomic_read(&gl_protect_n);
}

void gl_protect_set(struct gl_net *gn, u8 protect);
u8 gl_strip(const struct net *net, struct sock *sk, u8 dsfield);

/* gl_wire.c */
u8 gl_dsfield(const struct sk_buff *skb, u8 family);
void gl_set_dsfield(struct sk_buff *skb, u8 family, u8 keep, u8 dsfield);
bool gl_change_dsfield(const struct net *net, struct sk_buff *skb, u8 family, u8 keep,
		       u8 dsfield);
void gl_tcp_check(const struct sock *sk, struct sk_buff *skb);
u8 gl_option_read(const struct tcphdr *th, struct gl_seg *seg);
int gl_option_room(const struct sk_buff *skb);
bool gl_option_add(struct sock *sk, struct sk_buff *skb, const struct gl_kind *kind,
		   const struct gl_seg *seg);
bool gl_option_add_hello(struct sk_buff *skb, u8 family, u8 hello);

/* gl_input.c */
unsigned int gl_local_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state);
enum gl_verdict gl_receive(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			   const struct gl_kind *kind, const struct gl_seg *seg);
bool gl_plausible(const struct sock *sk, const struct gl_seg *seg);
bool gl_heeds(struct sock *sk, const struct gl_seg *seg, bool held);
bool gl_in_refused(struct sock *sk, struct sk_buff *skb, int thoff, u8 family);
bool gl_is_sound(const struct gl_kind *kind, const struct gl_seg *seg);
void gl_heed_ce(struct sock *sk);
void gl_count_received(struct sock *sk, const struct gl_kind *kind);
void gl_acknowledge(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		    const struct gl_seg *seg);

/* gl_craft.c */
bool gl_craft_words(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
		    const struct gl_kind *kind, u16 field, const u32 *word, unsigned int words);

/* gl_cut.c */
struct sk_buff *gl_cut(struct sock *sk, struct sk_buff *skb, u32 len);

/* gl_loss.c */
bool gl_lose_range(struct sock *sk, u32 seq, u32 end);

/* gl_trim.c */
bool gl_trim_in(struct sock *sk, struct sk_buff *skb, int thoff, u8 family);
bool gl_trim_is_report(const struct tcphdr *th);
void gl_trim_net_init(struct gl_net *gn);
void gl_trim_net_exit(struct gl_net *gn);

/* gl_defer.c */
int gl_backlog_rcv(struct sock *sk, struct sk_buff *skb);
enum gl_verdict gl_hold(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			const struct gl_seg *seg);
void gl_hold_data(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		  const struct gl_seg *seg);
void gl_release_held(struct sock *sk, struct gl_sock *gs);
void gl_mtu_reduced(struct sock *sk);
void gl_kick_init(void);
void gl_kick_exit(void);

/* gl_sock.c */
/* Has IPV6_ADDRFORM hidden the state of a socket from gl_sock()? */
static inline bool gl_is_hidden(const struct sock *sk)
{
	return READ_ONCE(sk->sk_backlog_rcv) == gl_backlog_rcv;
}

bool gl_can_take(const struct inet_connection_sock_af_ops *ops);
void gl_take(struct sock *sk, struct gl_sock *gs);
void gl_give_back(struct sock *sk, struct gl_sock *gs);
struct gl_sock *gl_sock_received(struct sock *sk);
struct gl_sock *gl_mapped_find(const struct sock *sk);
struct gl_sock *gl_sock_alloc(size_t size);
void gl_sock_put(struct gl_sock *gs);
int gl_sock_init(void);
void gl_sock_exit(void);

/* gl_proc.c */
int gl_proc_net_init(struct net *net);
void gl_proc_net_exit(struct net *net);

/* gl_sockopt.c */
int gl_sockopt_init(void);
void gl_sockopt_exit(void);

#endif /* _GL_INTERNAL_H */
