// SPDX-License-Identifier: GPL-2.0
/* The handshake: who speaks our language.
 *
 *	client                                       server
 *	SYN,     our option: "I run TLT"   ----->    would its child run TLT?
 *	                                   <-----    SYN-ACK, our option: "so shall I"
 *	ACK                                ----->    the child begins
 *
 * This alone decides, for as long as the connection lasts.  The option is added and read
 * in netfilter's hooks, because TCP has no place for it; TCP is then told by what it keeps
 * of a packet anyway:
 *
 *	of a SYN		its DS field, in the request socket (syn_tos)
 *	of the third packet	its DS field, in the child (rcv_tos), which is all that the
 *				transport's init() sees: the request is gone by then
 *
 * So where a host takes these two packets in, it writes into their DS field what the
 * option said, and clears it of a codepoint that means this by chance.  A client's socket
 * has no use for rcv_tos before it is connected: what the SYN-ACK said waits there.
 *
 * A server that answers with SYN cookies forgets its SYNs: those connections are their
 * base's.
 */
#include <linux/ipv6.h>
#include <net/dsfield.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* A SYN or SYN-ACK with our option is tried so often.  If something on the way drops what it
 * does not know, the next one gets through (as MPTCP has it:
 * syn_retrans_before_tcp_fallback).
 */
#define GL_SYN_TRIES	2

/* rcv_tos of a client, from its SYN-ACK to init(): which transport the server runs, and
 * both ECN bits, which no SYN-ACK has.  TCP has 0 there.
 */
#define GL_TOS_ANSWERED(kind)	((kind) << 2 | INET_ECN_MASK)

/* What a SYN or SYN-ACK can be. */
static const enum gl_kind gl_hellos[] = { GL_IMPORTANT, GL_SCHEDULED, GL_SHARE };

static bool gl_is_hello(enum gl_kind kind)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(gl_hellos); i++)
		if (gl_hellos[i] == kind)
			return true;
	return false;
}

/* What a request's SYN asked for, or GL_NONE. */
static enum gl_kind gl_asked(const struct gl_net *gn, const struct request_sock *req)
{
	enum gl_kind kind = gl_kind_of(&gn->cp, tcp_rsk(req)->syn_tos);

	return gl_is_hello(kind) ? kind : GL_NONE;
}

static bool gl_tos_is_answer(u8 tos)
{
	return (tos & INET_ECN_MASK) == INET_ECN_MASK && gl_is_hello(tos >> 2);
}

/* --- out ------------------------------------------------------------------- */

/* A SYN or SYN-ACK names the transport that sends it.  False, and nothing has changed, if the
 * option does not fit: the connection will be its base's.
 */
static bool gl_out_handshake(struct gl_net *gn, struct net *net, enum gl_kind hello,
			     struct sk_buff *skb, u8 family)
{
	/* An ipvlan or a VRF has it pass by twice. */
	if (gl_option_read(tcp_hdr(skb), NULL) == hello)
		return true;
	if (!gl_option_add_hello(skb, family, hello))
		return false;
	gl_set_dsfield(skb, family, 0, gl_marked(gn, hello, hello, gl_dsfield(skb, family)));
	gl_inc_stats(net, GL_MIB_HANDSHAKE);
	return true;
}

/* The transport that a listener's child will run, as tcp_ca_openreq_child() has it; NULL
 * if it is none of ours.  Read without the listener's lock: under RCU what it points to is
 * alive.
 */
static const struct gl_transport *gl_child_transport(const struct sock *listener,
						     const struct sk_buff *skb)
{
	const struct dst_entry *dst = skb_dst(skb);
	u32 key = dst ? dst_metric(dst, RTAX_CC_ALGO) : TCP_CA_UNSPEC;
	const struct tcp_congestion_ops *ops;

	if (key != TCP_CA_UNSPEC)
		return gl_transport_of_key(key);
	/* A listener has the default of when it was made, its child that of now. */
	ops = inet_csk(listener)->icsk_ca_setsockopt ?
		READ_ONCE(inet_csk(listener)->icsk_ca_ops) :
		rcu_dereference(sock_net(listener)->ipv4.tcp_congestion_control);
	if (ops->release != gl_release)
		return NULL;
	return container_of(ops, struct gl_transport, ops);
}

/* Will a request's child run what its SYN asked for? */
static bool gl_synack_answers(const struct request_sock *req, const struct sk_buff *skb,
			      enum gl_kind asked)
{
	const struct gl_transport *t;

	if (!inet_rsk(req)->sack_ok || rsk_is_mptcp(req) || !req->rsk_listener ||
	    req->num_retrans >= GL_SYN_TRIES - 1)
		return false;
	t = gl_child_transport(req->rsk_listener, skb);
	return t && t->hello == asked;
}

static bool gl_out_synack(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family)
{
	struct request_sock *req = inet_reqsk(skb->sk);
	enum gl_kind asked = gl_asked(gn, req);

	if (asked == GL_NONE)
		return false;
	/* It is important (as in the TLT authors' code), or scheduled. */
	if (gl_synack_answers(req, skb, asked) && gl_out_handshake(gn, net, asked, skb, family))
		return true;
	/* The child shall not think that we have answered. */
	tcp_rsk(req)->syn_tos &= INET_ECN_MASK;
	return false;
}

/**
 * gl_out_hello() - a SYN or SYN-ACK leaves: is it one of ours?
 * @gn: the namespace's part
 * @net: the namespace
 * @skb: the packet; its socket is that of a client, a request or a Fast Open child
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 *
 * Return: true if so, and it has been marked.
 */
bool gl_out_hello(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family)
{
	struct sock *sk = skb->sk;
	const struct gl_sock *gs;

	if (sk->sk_state == TCP_NEW_SYN_RECV)
		return gl_out_synack(gn, net, skb, family);
	gs = gl_sock(sk);
	if (gs)
		return gl_marking(gs) &&
		       gl_out_handshake(gn, net, gs->transport->hello, skb, family);
	if (READ_ONCE(sk->sk_state) != TCP_SYN_SENT || !gl_is_ours(sk) || sk_is_mptcp(sk) ||
	    gl_tcp_signed(sk) || READ_ONCE(inet_csk(sk)->icsk_retransmits) >= GL_SYN_TRIES)
		return false;
	return gl_out_handshake(gn, net, gl_transport(sk)->hello, skb, family);
}

/* --- in -------------------------------------------------------------------- */

/* Let the DS field of a packet that TCP will look at be that of a @hello, or of none; nor
 * may a server's rcv_tos look like a client's.
 */
static void gl_in_tell(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family,
		       enum gl_kind hello)
{
	u8 dsfield = gl_dsfield(skb, family);
	enum gl_kind kind = gl_kind_of(&gn->cp, dsfield);

	if (hello == GL_NONE ? !gl_is_hello(kind) && !gl_tos_is_answer(dsfield) : kind == hello)
		return;
	gl_change_dsfield(net, skb, family, INET_ECN_MASK,
			  hello == GL_NONE ? 0 : READ_ONCE(gn->cp.dscp[hello]) << 2);
}

/* What a SYN or SYN-ACK says; counted if the DSCP that it left with has got lost. */
static enum gl_kind gl_in_hello(struct gl_net *gn, struct net *net, const struct sk_buff *skb,
				int thoff, u8 family)
{
	enum gl_kind kind = gl_option_read((struct tcphdr *)(skb->data + thoff), NULL);

	if (!gl_is_hello(kind))
		return GL_NONE;
	if (gl_kind_of(&gn->cp, gl_dsfield(skb, family)) != kind)
		gl_inc_stats(net, GL_MIB_REMARKED);
	return kind;
}

/* The answer to our SYN.  What TCP will refuse, because it does not acknowledge the SYN,
 * tells nothing.  Over a short wire connect() may still own the socket: one byte that only
 * we read needs no lock.
 */
static void gl_in_synack(struct sock *sk, u32 ack, enum gl_kind hello)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (gl_is_ours(sk) && after(ack, READ_ONCE(tp->snd_una)) &&
	    !after(ack, READ_ONCE(tp->write_seq)))
		WRITE_ONCE(inet_sk(sk)->rcv_tos, hello == GL_NONE ? 0 : GL_TOS_ANSWERED(hello));
}

/**
 * gl_in_handshake() - a packet has come that may belong to a handshake
 * @net: the namespace
 * @skb: the packet, at LOCAL_IN; its DS field may change
 * @sk: what it is for: a socket, a request, or NULL if that is not known
 * @thoff: where its TCP header is, which is complete
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 */
void gl_in_handshake(struct net *net, struct sk_buff *skb, struct sock *sk, int thoff,
		     u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	struct gl_net *gn = gl_net(net);
	enum gl_kind hello = GL_NONE;

	if (th->rst)
		return;
	if (th->syn)
		hello = gl_in_hello(gn, net, skb, thoff, family);
	if (th->syn && th->ack) {
		if (sk && READ_ONCE(sk->sk_state) == TCP_SYN_SENT && sk_is_tcp(sk))
			gl_in_synack(sk, ntohl(th->ack_seq), hello);
		return;
	}
	/* What a SYN asked for stands in its request, if we have answered. */
	if (!th->syn && sk && sk->sk_state == TCP_NEW_SYN_RECV)
		hello = gl_asked(gn, inet_reqsk(sk));
	gl_in_tell(gn, net, skb, family, hello);
}

/* --- a connection begins --------------------------------------------------- */

/* The DS field of the packet that made a child, a third one or a SYN with data. */
static u8 gl_child_dsfield(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 &&
	    inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct ipv6hdr))
		return ip6_tclass(inet6_sk(sk)->rcv_flowinfo);
#endif
	return inet_sk(sk)->rcv_tos;
}

/* With net.ipv4.tcp_reflect_tos a child's packets have its SYN's DSCP: ours, not one that
 * the client's application has asked for.
 */
static void gl_unreflect(struct sock *sk, const struct gl_net *gn, enum gl_kind hello)
{
	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reflect_tos))
		return;
	if (gl_kind_of(&gn->cp, inet_sk(sk)->tos) == hello)
		inet_sk(sk)->tos &= INET_ECN_MASK;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && gl_kind_of(&gn->cp, inet6_sk(sk)->tclass) == hello)
		inet6_sk(sk)->tclass &= INET_ECN_MASK;
#endif
}

/**
 * gl_first_peer() - what did the handshake say of the peer?
 * @sk: a connection that begins, with one of our transports; locked
 *
 * Return: GREENLANE_PEER_YES if it runs a transport like ours; also NO of one that has
 * begun long ago, because nobody asked then.
 */
enum greenlane_peer gl_first_peer(struct sock *sk)
{
	const struct gl_net *gn = gl_net(sock_net(sk));
	enum gl_kind hello = gl_transport(sk)->hello;
	u8 tos = READ_ONCE(inet_sk(sk)->rcv_tos);

	if (sk->sk_state == TCP_SYN_RECV) {
		if (gl_kind_of(&gn->cp, gl_child_dsfield(sk)) != hello)
			return GREENLANE_PEER_NO;
		gl_unreflect(sk, gn, hello);
		return GREENLANE_PEER_YES;
	}
	/* A server's socket cannot have this: see gl_in_tell(). */
	if (!gl_tos_is_answer(tos))
		return GREENLANE_PEER_NO;
	WRITE_ONCE(inet_sk(sk)->rcv_tos, 0);
	return tos == GL_TOS_ANSWERED(hello) ? GREENLANE_PEER_YES : GREENLANE_PEER_NO;
}
