/* SPDX-License-Identifier: GPL-2.0 */
/* What the files of greenlane.ko share. */
#ifndef _GL_INTERNAL_H
#define _GL_INTERNAL_H

#include <linux/percpu.h>
#include <net/greenlane.h>
#include <net/inet_ecn.h>
#include <net/netns/generic.h>

/* Our TCP option: kind, length, and the number of the experiment, "GL" (RFC 6994,
 * not registered), then words.
 */
#define GL_OPT_EXID		0x474c
#define GL_OPT_LEN(words)	(4 + 4 * (words))

/* Is @kind from a peer that runs a transport like @t? */
static inline bool gl_speaks(const struct gl_transport *t, enum gl_kind kind)
{
	return gl_kind_protected(kind) && gl_family(kind) == gl_family(t->hello);
}

/* Kinds that are the last packet's only, and what the others of a GSO packet are then. */
static inline bool gl_is_last(enum gl_kind kind)
{
	return kind == GL_IMPORTANT || kind == GL_MESSAGE_END;
}

static inline enum gl_kind gl_before_last(enum gl_kind last)
{
	return last == GL_IMPORTANT ? GL_DATA : GL_MESSAGE;
}

/* In inet->rcv_tos while our marked SYN waits for its SYN-ACK: DSCP 0, so not
 * a codepoint of ours, and no SYN-ACK is ECT(1).
 */
#define GL_TOS_ASKED	0x01

/* struct gl_counters - one CPU's share of a namespace's counters */
struct gl_counters {
	u64 n[GL_MIBS];
};

/**
 * struct gl_net - a network namespace's part
 * @cp: codepoint table; see there
 * @protect: strip protected codepoints from sockets that are not ours
 * @ecn: tell what has a credit by the ECN field too
 * @counters: each CPU's own, BH off
 * @sysctl: registered for the namespace's life
 */
struct gl_net {
	struct gl_codepoints cp;
	u8 protect;
	u8 ecn;
	struct gl_counters __percpu *counters;
	struct ctl_table_header *sysctl;
};

extern unsigned int gl_net_id;

static inline struct gl_net *gl_net(const struct net *net)
{
	return net_generic(net, gl_net_id);
}

/* The DS field of a packet that a transport with this @hello sends as a @kind.
 *
 * The ECN bits stay: they belong to TCP.  But a switch that has RED with ECN and no more
 * can tell what has a credit, which it marks, from what has none, which it drops (Aeolus
 * §IV-A).  What comes is not asked.
 */
static inline u8 gl_marked(const struct gl_net *gn, enum gl_kind hello, enum gl_kind kind,
			   u8 dsfield)
{
	u8 ecn = dsfield & INET_ECN_MASK;

	if (gl_kind_of_credits(hello) && READ_ONCE(gn->ecn))
		ecn = kind == GL_DATA ? INET_ECN_NOT_ECT : INET_ECN_ECT_0;
	return READ_ONCE(gn->cp.dscp[kind]) << 2 | ecn;
}

/* gl_main.c */
const struct gl_transport *gl_transport_of_key(u32 key);

/* gl_hook.c */
int gl_hook_net_init(struct net *net);
void gl_hook_net_exit(struct net *net);

/* gl_out.c */
bool gl_can_take(const struct inet_connection_sock_af_ops *ops);
int gl_send(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb, struct flowi *fl,
	    enum gl_kind kind);

/* gl_receive.c */
bool gl_plausible(const struct sock *sk, const struct gl_seg *seg);
enum gl_verdict gl_receive(struct sock *sk, enum gl_kind kind,
			   const struct gl_seg *seg, bool late);
void gl_receive_unscheduled(struct sock *sk);
int gl_note_init(void);
void gl_note_exit(void);
bool gl_note(struct sock *sk, enum gl_kind kind, const struct gl_seg *seg);
u32 gl_noted_end(struct sock *sk);

/* gl_sock.c */
void gl_sock_put(struct gl_sock *gs);
void gl_sock_exit(void);

/* gl_split.c */
void gl_tcp_check(const struct sock *sk, struct sk_buff *skb);
bool gl_split(struct sock *sk, struct sk_buff *skb, struct sk_buff **head,
	      struct sk_buff **tail);

/* gl_craft.c */
/* TCP's length has four bits, of words: three SACK blocks and a time stamp leave none. */
static inline bool gl_has_room(const struct sk_buff *skb)
{
	return tcp_hdrlen(skb) + GL_OPT_LEN(1) <= 15 * 4;
}

bool gl_add_word(struct sock *sk, struct sk_buff *skb, u32 word);

/* gl_kick.c */
void gl_kick_init(void);
void gl_kick_exit(void);
void gl_kicked(struct sock *sk, struct gl_sock *gs);

/* gl_stats.c */
int gl_stats_net_init(struct net *net);
void gl_stats_net_exit(struct net *net);

/* gl_sysctl.c */
int gl_sysctl_net_init(struct net *net);
void gl_sysctl_net_exit(struct net *net);

/* gl_sockopt.c */
int gl_sockopt_init(void);
void gl_sockopt_exit(void);

#endif /* _GL_INTERNAL_H */
