// SPDX-License-Identifier: GPL-2.0
/* The handshake: both ends advertise the transport that they run.
 *
 *	client                                       server
 *	SYN,     our option: "I run TLT"   ----->    would its child run TLT?
 *	                                   <-----    SYN-ACK, our option: "so shall I"
 *	ACK                                ----->    the child begins
 *
 * Only the handshake decides, for the life of the connection.  Netfilter hooks add and read the
 * option, because TCP offers no other place.  The result then has to reach the
 * transport's init() in a field that TCP itself fills from the packet:
 *
 *	SYN			its DS field, stored in the request socket (syn_tos)
 *	third packet		its DS field, stored in the child (rcv_tos); this is all that
 *				init() can see, as the request has been freed by then
 *
 * So LOCAL_IN writes a codepoint that stands for the option (told_as in struct gl_protocol) into
 * the DS field of these two packets, and clears such a codepoint if there is no option.  On the
 * client, rcv_tos is unused until the connection is established; it stores the SYN-ACK's answer
 * until init().
 *
 * A hello in later packets could not replace this.  A SYN-ACK may answer only a SYN that had the
 * option, so the request has to keep it; and a child that learned of its peer with the first data
 * would not acknowledge that data at once, in the round trip in which an incast loses packets.
 *
 * A server that answers with SYN cookies keeps no request, so those connections run their
 * base congestion control.
 */
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <net/dsfield.h>
#include <net/ipv6.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Send at most this many SYNs with the option.  A middlebox may drop packets with an unknown
 * option; the next retransmission, without it, gets through (as MPTCP does:
 * syn_retrans_before_tcp_fallback), and so does its answer: gl_in_repeated().  The server's own
 * timer decides late, as the client accepts the first SYN-ACK that arrives: if the first one was
 * lost, the timers of both ends expire at the same time, and two follow.
 */
#define GL_SYN_TRIES	2

/* A client's rcv_tos from the SYN-ACK to init(): the server's hello, and both ECN bits to
 * distinguish it from a DS field.  TCP itself leaves 0 there.
 */
#define GL_TOS_ANSWERED(hello)	((hello) << 2 | INET_ECN_MASK)

/* The protocol that the SYN of @req has requested, or NULL. */
static const struct gl_protocol *gl_asked(const struct gl_net *gn,
					  const struct request_sock *req)
{
	return gl_protocol_told_as(gl_codepoint_of(&gn->cp, READ_ONCE(tcp_rsk(req)->syn_tos)));
}

/* The child of @req must not find the SYN's hello. */
static void gl_forget_asked(struct request_sock *req)
{
	WRITE_ONCE(tcp_rsk(req)->syn_tos, READ_ONCE(tcp_rsk(req)->syn_tos) & INET_ECN_MASK);
}

/* Is @tos a GL_TOS_ANSWERED()?  Decide by its form alone: the set of registered protocols may
 * change before init().
 */
static bool gl_tos_is_answer(u8 tos)
{
	return (tos & INET_ECN_MASK) == INET_ECN_MASK && tos != INET_ECN_MASK;
}

/* Could a protocol that is registered now or later pass its hello to TCP by this codepoint? */
static bool gl_codepoint_may_tell(enum gl_codepoint cp)
{
	return cp != GL_CP_NONE && cp < GL_CP_SHORT;
}

/* --- out ------------------------------------------------------------------- */

/* Add the option to a SYN or SYN-ACK and mark it.  Return: false, with the packet unchanged, if the
 * option does not fit; the connection will then run its base.
 */
static bool gl_out_handshake(struct gl_net *gn, struct net *net,
			     const struct gl_protocol *protocol, struct sk_buff *skb, u8 family)
{
	/* Behind an ipvlan or a VRF a packet passes LOCAL_OUT twice. */
	if (gl_option_read(tcp_hdr(skb), NULL) == protocol->hello)
		return true;
	if (!gl_option_add_hello(skb, family, protocol->hello))
		return false;
	gl_set_dsfield(skb, family, 0, gl_marked(gn, protocol->control, gl_dsfield(skb, family)));
	gl_inc_stats(net, GL_MIB_HANDSHAKE);
	return true;
}

/* The transport that a child of @listener will run, chosen as tcp_ca_openreq_child() does, or
 * NULL if it is not a greenlane transport.  The listener is not locked; RCU keeps the
 * congestion control alive.
 */
static const struct gl_transport *gl_child_transport(const struct sock *listener,
						     const struct sk_buff *skb)
{
	const struct dst_entry *dst = skb_dst(skb);
	u32 key = dst ? dst_metric(dst, RTAX_CC_ALGO) : TCP_CA_UNSPEC;
	const struct tcp_congestion_ops *ops;

	if (key != TCP_CA_UNSPEC)
		return gl_transport_of_key(key);
	/* Without TCP_CONGESTION, the child gets the namespace's current default. */
	ops = inet_csk(listener)->icsk_ca_setsockopt ?
		READ_ONCE(inet_csk(listener)->icsk_ca_ops) :
		rcu_dereference(sock_net(listener)->ipv4.tcp_congestion_control);
	if (ops->release != gl_release)
		return NULL;
	return container_of(ops, struct gl_transport, ops);
}

/* Does this SYN-ACK begin a subflow?  rsk_is_mptcp() is true for each request of an MPTCP listener,
 * but a client without MPTCP gets a SYN-ACK without its option, and a child that runs plain TCP.
 */
static bool gl_synack_is_mptcp(const struct request_sock *req, const struct sk_buff *skb)
{
	return rsk_is_mptcp(req) && gl_option_next(tcp_hdr(skb), TCPOPT_MPTCP, NULL);
}

/* Will the child of @req run a transport with the protocol that its SYN has requested?  A SYN-ACK
 * that the client has acknowledged (TCP_DEFER_ACCEPT, a full queue) was not lost for its option.
 */
static bool gl_synack_answers(const struct request_sock *req, const struct sk_buff *skb,
			      const struct gl_protocol *asked)
{
	const struct gl_transport *t;

	if (!inet_rsk(req)->sack_ok || gl_synack_is_mptcp(req, skb) || !req->rsk_listener ||
	    (req->num_timeout >= GL_SYN_TRIES && !inet_rsk(req)->acked))
		return false;
	t = gl_child_transport(req->rsk_listener, skb);
	return t && t->protocol == asked;
}

/* Have TCP call init() when the connection is established, as it does unless the congestion control
 * was chosen in SYN_SENT: by setsockopt(), or by BPF at BPF_SOCK_OPS_TCP_CONNECT_CB.  Then TCP has
 * called init() already, which cannot attach yet (gl_attach()), and would not call it again: this
 * end would not run the transport that it has advertised to the peer.  The application may have
 * selected another congestion control since the caller looked.  Socket locked.
 */
static void gl_init_again(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (!icsk->icsk_ca_initialized || !gl_is_ours(sk))
		return;
	gl_release(sk);
	icsk->icsk_ca_initialized = 0;
}

static bool gl_out_synack(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family)
{
	struct request_sock *req = inet_reqsk(skb->sk);
	const struct gl_protocol *asked = gl_asked(gn, req);

	if (!asked)
		return false;
	if (gl_synack_answers(req, skb, asked) && gl_out_handshake(gn, net, asked, skb, family))
		return true;
	/* The SYN-ACK has no answer. */
	gl_forget_asked(req);
	return false;
}

/**
 * gl_out_hello() - mark a SYN or SYN-ACK and add the option, if its socket runs a transport
 * @gn: the namespace's state
 * @net: the namespace
 * @skb: the packet; its socket is a client's socket, a request or a Fast Open child
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 *
 * Return: true if the packet was marked.
 */
static bool gl_out_hello(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family)
{
	struct sock *sk = skb->sk;
	const struct gl_transport *t;
	const struct gl_sock *gs;

	if (sk->sk_state == TCP_NEW_SYN_RECV)
		return gl_out_synack(gn, net, skb, family);
	gs = gl_sock(sk);
	if (gs)
		return gl_marking(gs) &&
		       gl_out_handshake(gn, net, gs->transport->protocol, skb, family);
	t = gl_ours(sk);
	if (READ_ONCE(sk->sk_state) != TCP_SYN_SENT || !t || sk_is_mptcp(sk) ||
	    gl_tcp_signed(sk) || READ_ONCE(inet_csk(sk)->icsk_retransmits) >= GL_SYN_TRIES)
		return false;
	/* Only the first pass through LOCAL_OUT is under the socket lock. */
	if (gl_option_read(tcp_hdr(skb), NULL) != t->protocol->hello)
		gl_init_again(sk);
	return gl_out_handshake(gn, net, t->protocol, skb, family);
}

/* --- LOCAL_OUT --------------------------------------------------------------
 *
 * It marks SYNs and SYN-ACKs; gl_output.c marks other packets.
 */

/* Is this a TCP packet from a local socket?  Such a packet has its transport header set, and IPv6
 * extension headers only if the application has set them.
 */
static bool gl_out_is_tcp(const struct sk_buff *skb, u8 family)
{
	if (family == NFPROTO_IPV4)
		return ip_hdr(skb)->protocol == IPPROTO_TCP;
	if (ipv6_hdr(skb)->nexthdr != IPPROTO_TCP) {
		u8 next = ipv6_hdr(skb)->nexthdr;
		__be16 frag;
		int off;

		/* IPsec adds its authentication header later, and the packet passes here again. */
		off = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &next, &frag);
		return next == IPPROTO_TCP && off == skb_transport_offset(skb);
	}
	return true;
}

/* Does the packet have a TCP header that can be read, without its options? */
static bool gl_out_has_header(const struct sk_buff *skb, u8 family)
{
	return gl_out_is_tcp(skb, family) && skb_transport_header_was_set(skb) &&
	       skb_headlen(skb) >= skb_transport_offset(skb) + sizeof(struct tcphdr);
}

static bool gl_out_is_syn(const struct sk_buff *skb, u8 family)
{
	return gl_out_has_header(skb, family) && tcp_hdr(skb)->syn;
}

/* Is this a report of gl_trim.c, of a socket that runs no transport?  An application cannot give a
 * TCP socket's packets our option.
 */
static bool gl_out_is_report(const struct sk_buff *skb, u8 family)
{
	return gl_out_has_header(skb, family) &&
	       skb_headlen(skb) == skb_transport_offset(skb) + tcp_hdrlen(skb) &&
	       gl_trim_is_report(tcp_hdr(skb));
}

/* Is this a SYN-ACK of this host?  IPVS sends forwarded packets through LOCAL_OUT, too. */
static bool gl_out_is_synack(const struct sk_buff *skb, u8 family)
{
	return !skb->skb_iif && gl_out_is_syn(skb, family) && tcp_hdr(skb)->ack;
}

/* IPv6 replies have no skb->sk; the hook's caller passes their socket in state->sk.  IPv4 sends SYN
 * cookies without a socket.  If memory is short, send the packet unchanged rather than drop it.
 */
static void gl_out_strip(const struct nf_hook_state *state, struct sk_buff *skb)
{
	u8 old = gl_dsfield(skb, state->pf), new;

	if (!state->sk && !gl_out_is_synack(skb, state->pf))
		return;
	new = gl_strip(state->net, state->sk, old);
	if (new != old)
		gl_change_dsfield(state->net, skb, state->pf, 0, new);
}

/* Packets of an established connection were marked in gl_output.c already, and may pass this hook
 * twice or late (ipvlan, VRF, IPsec), so accept them as they are.  TCP does not send SYNs and
 * SYN-ACKs through gl_output.c: they are marked here, while their socket is locked.
 */
static noinline unsigned int gl_out_slow(const struct nf_hook_state *state, struct sk_buff *skb)
{
	struct gl_net *gn = gl_net(state->net);
	struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk) && sk_is_tcp(sk)) {
		int now = READ_ONCE(sk->sk_state);

		if ((now == TCP_SYN_SENT || now == TCP_SYN_RECV) && gl_out_is_syn(skb, state->pf)) {
			if (gl_out_hello(gn, state->net, skb, state->pf))
				return NF_ACCEPT;
		} else if (gl_sock(sk) || (now == TCP_SYN_SENT && gl_is_ours(sk)) ||
			   gl_out_is_report(skb, state->pf)) {
			/* Also a SYN of the socket in a tunnel or in IPsec stays unchanged. */
			return NF_ACCEPT;
		}
	} else if (sk && sk->sk_state == TCP_NEW_SYN_RECV) {
		if (!gl_out_is_syn(skb, state->pf) ||
		    gl_out_hello(gn, state->net, skb, state->pf))
			return NF_ACCEPT;
	}
	if (READ_ONCE(gn->protect))
		gl_out_strip(state, skb);
	return NF_ACCEPT;
}

#define GL_HANDSHAKE	(TCPF_SYN_SENT | TCPF_SYN_RECV | TCPF_NEW_SYN_RECV)

/* Every packet of an active namespace passes this hook, and most packets need no change: accept
 * them without a stack frame, and jump to gl_out_slow() for the rest.
 */
unsigned int gl_local_out(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;

	if (likely(!gl_protecting()) && !(sk && (1 << READ_ONCE(sk->sk_state)) & GL_HANDSHAKE))
		return NF_ACCEPT;
	return gl_out_slow(state, skb);
}

/* --- in -------------------------------------------------------------------- */

/* Write the hello of @protocol into the DS field of a packet that TCP will receive.  If @protocol
 * is NULL, clear a DS field that init() could take for a hello, also of a protocol that is
 * registered later: one of our codepoints, or the form of a client's rcv_tos.
 */
static void gl_in_tell(struct gl_net *gn, struct net *net, struct sk_buff *skb, u8 family,
		       const struct gl_protocol *protocol)
{
	u8 dsfield = gl_dsfield(skb, family);
	enum gl_codepoint cp = gl_codepoint_of(&gn->cp, dsfield);

	if (protocol ? cp == protocol->told_as :
		       !gl_codepoint_may_tell(cp) && !gl_tos_is_answer(dsfield))
		return;
	gl_change_dsfield(net, skb, family, INET_ECN_MASK,
			  protocol ? READ_ONCE(gn->cp.dscp[protocol->told_as]) << 2 : 0);
}

/* The protocol of the hello in a SYN or SYN-ACK, or NULL.  Count a hello whose DSCP has changed. */
static const struct gl_protocol *gl_in_hello(struct gl_net *gn, struct net *net,
					     const struct sk_buff *skb, int thoff, u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	const struct gl_protocol *protocol = gl_protocol_of_hello(gl_option_read(th, NULL));

	if (protocol && gl_codepoint_of(&gn->cp, gl_dsfield(skb, family)) !=
			protocol->control->codepoint)
		gl_inc_stats(net, GL_MIB_REMARKED);
	return protocol;
}

/* The application may have selected the transport after the SYN that this SYN-ACK answers, in place
 * of another transport with the same hello.
 */
static void gl_in_init_again(struct sock *sk)
{
	local_bh_disable();
	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk) && sk->sk_state == TCP_SYN_SENT)
		gl_init_again(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
}

/* Store the SYN-ACK's answer in rcv_tos.  A SYN-ACK that does not acknowledge our SYN is ignored,
 * as TCP will refuse it.  connect() may still own the socket if the path is short; a single byte
 * that only greenlane reads needs no lock.
 */
static void gl_in_synack(struct sock *sk, u32 ack, const struct gl_protocol *protocol)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!gl_is_ours(sk) || !after(ack, READ_ONCE(tp->snd_una)) ||
	    after(ack, READ_ONCE(tp->write_seq)))
		return;
	WRITE_ONCE(inet_sk(sk)->rcv_tos, protocol ? GL_TOS_ANSWERED(protocol->hello) : 0);
	/* Also if the peer has refused: a base may have taken the ECN that the SYN requested for
	 * granted.
	 */
	gl_in_init_again(sk);
}

/* The client repeats its SYN without the option: so shall the answer be. */
static void gl_in_repeated(struct request_sock *req, u32 seq)
{
	if (seq == tcp_rsk(req)->rcv_isn)
		gl_forget_asked(req);
}

/**
 * gl_in_handshake() - process a received packet that may belong to a handshake
 * @net: the namespace
 * @skb: the packet, at LOCAL_IN; its DS field may change
 * @sk: its socket or request, or NULL if the lookup found neither
 * @thoff: offset of the TCP header, which is complete and linear
 * @family: NFPROTO_IPV4 or NFPROTO_IPV6
 */
void gl_in_handshake(struct net *net, struct sk_buff *skb, struct sock *sk, int thoff,
		     u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	struct gl_net *gn = gl_net(net);
	const struct gl_protocol *protocol = NULL;

	/* The lookup of a new SYN may find the TIME_WAIT socket of the last connection. */
	if (th->rst || (!th->syn && sk && sk->sk_state == TCP_TIME_WAIT))
		return;
	if (th->syn)
		protocol = gl_in_hello(gn, net, skb, thoff, family);
	if (th->syn && th->ack) {
		if (sk && READ_ONCE(sk->sk_state) == TCP_SYN_SENT && sk_is_tcp(sk))
			gl_in_synack(sk, ntohl(th->ack_seq), protocol);
		return;
	}
	/* The request still has the SYN's hello if the SYN-ACK answered it.  A request that BPF has
	 * made from a SYN cookie has no hello.
	 */
	if (sk && sk->sk_state == TCP_NEW_SYN_RECV && !inet_reqsk(sk)->syncookie) {
		if (!th->syn)
			protocol = gl_asked(gn, inet_reqsk(sk));
		else if (!protocol)
			gl_in_repeated(inet_reqsk(sk), ntohl(th->seq));
	}
	gl_in_tell(gn, net, skb, family, protocol);
}

/* --- a connection begins --------------------------------------------------- */

/* The DS field of the packet that created a child: the third packet, or a SYN with data. */
static u8 gl_child_dsfield(const struct sock *sk)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 &&
	    inet_csk(sk)->icsk_af_ops->net_header_len == sizeof(struct ipv6hdr))
		return ip6_tclass(inet6_sk(sk)->rcv_flowinfo);
#endif
	return inet_sk(sk)->rcv_tos;
}

/* With net.ipv4.tcp_reflect_tos a child sends with the DSCP of the SYN.  This DSCP is the hello,
 * not one that the client's application has set, so clear it.
 */
static void gl_unreflect(struct sock *sk, const struct gl_net *gn, enum gl_codepoint hello)
{
	if (!READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_reflect_tos))
		return;
	if (gl_codepoint_of(&gn->cp, inet_sk(sk)->tos) == hello)
		inet_sk(sk)->tos &= INET_ECN_MASK;
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && gl_codepoint_of(&gn->cp, inet6_sk(sk)->tclass) == hello)
		inet6_sk(sk)->tclass &= INET_ECN_MASK;
#endif
}

/**
 * gl_first_peer() - read the result of the handshake
 * @sk: a connection whose greenlane transport is in init(); locked
 *
 * Return: GREENLANE_PEER_YES if the peer runs a transport with the same protocol, else
 * GREENLANE_PEER_NO.  A connection that selected the transport after it was established has not
 * advertised it, so it gets NO.
 */
enum greenlane_peer gl_first_peer(struct sock *sk)
{
	const struct gl_net *gn = gl_net(sock_net(sk));
	const struct gl_protocol *protocol = gl_transport(sk)->protocol;
	u8 tos = READ_ONCE(inet_sk(sk)->rcv_tos);

	if (sk->sk_state == TCP_SYN_RECV) {
		if (gl_codepoint_of(&gn->cp, gl_child_dsfield(sk)) != protocol->told_as)
			return GREENLANE_PEER_NO;
		gl_unreflect(sk, gn, protocol->told_as);
		return GREENLANE_PEER_YES;
	}
	/* A server's rcv_tos never has this form: see gl_in_tell(). */
	if (!gl_tos_is_answer(tos))
		return GREENLANE_PEER_NO;
	WRITE_ONCE(inet_sk(sk)->rcv_tos, 0);
	return tos == GL_TOS_ANSWERED(protocol->hello) ? GREENLANE_PEER_YES : GREENLANE_PEER_NO;
}
