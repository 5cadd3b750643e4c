// SPDX-License-Identifier: GPL-2.0
/* The hooks' functions, for IPv4 and IPv6: which packets are marked, and which are processed.
 *
 * gl_local_out() marks SYNs and SYN-ACKs; other packets are marked in gl_output.c.
 * gl_local_in() finds the packets that a transport processes.
 */
#include <linux/filter.h>
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/xfrm.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

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

/* --- output ---------------------------------------------------------------- */

static bool gl_out_is_syn(const struct sk_buff *skb, u8 family)
{
	return gl_out_is_tcp(skb, family) && skb_transport_header_was_set(skb) &&
	       skb_headlen(skb) >= skb_transport_offset(skb) + sizeof(struct tcphdr) &&
	       tcp_hdr(skb)->syn;
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
		} else if (gl_sock(sk) || (now == TCP_SYN_SENT && gl_is_ours(sk))) {
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

/* --- input ----------------------------------------------------------------- */

/* Return: the offset of a complete, linear TCP header, or -1.  May reallocate the headers. */
static int gl_in_tcp_offset(struct sk_buff *skb, u8 family)
{
	unsigned int thoff, hlen;
	const struct tcphdr *th;

	if (family == NFPROTO_IPV4) {
		if (ip_hdr(skb)->protocol != IPPROTO_TCP)
			return -1;
		thoff = ip_hdrlen(skb);
	} else {
		u8 next = ipv6_hdr(skb)->nexthdr;
		unsigned int auth = 0;
		__be16 frag;
		int off;

		/* IPsec has not verified the packet yet; verified, it passes here again. */
		if (next != IPPROTO_TCP &&
		    ipv6_find_hdr(skb, &auth, NEXTHDR_AUTH, NULL, NULL) >= 0)
			return -1;
		off = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &next, &frag);
		if (off < 0 || next != IPPROTO_TCP)
			return -1;
		thoff = off;
	}
	if (!pskb_may_pull(skb, thoff + sizeof(*th)))
		return -1;
	th = (const struct tcphdr *)(skb->data + thoff);
	hlen = th->doff * 4;
	if (hlen < sizeof(*th) || !pskb_may_pull(skb, thoff + hlen))
		return -1;
	return thoff;
}

/* Look up the connection of a packet without a socket: early demux may be off. */
static struct sock *gl_in_lookup(struct net *net, struct sk_buff *skb,
				 const struct tcphdr *th, u8 family)
{
	if (family == NFPROTO_IPV4)
		return __inet_lookup_established(net, GL_HASHINFO(net)
						 ip_hdr(skb)->saddr, th->source,
						 ip_hdr(skb)->daddr, ntohs(th->dest),
						 skb->skb_iif, inet_sdif(skb));
#if IS_ENABLED(CONFIG_IPV6)
	return __inet6_lookup_established(net, GL_HASHINFO(net)
					  &ipv6_hdr(skb)->saddr, th->source,
					  &ipv6_hdr(skb)->daddr, ntohs(th->dest),
					  inet6_iif(skb), inet6_sdif(skb));
#else
	return NULL;
#endif
}

static void gl_in_seg(const struct sk_buff *skb, int thoff, struct gl_seg *seg)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);

	seg->seq = ntohl(th->seq);
	seg->end_seq = seg->seq + skb->len - thoff - th->doff * 4;
	seg->ack = ntohl(th->ack_seq);
	seg->segs = 1;
	seg->window = ntohs(th->window);
}

/* A packet that is consumed here would miss TCP's own checks (signature, TTL, policy, checksum,
 * socket filter), so do them first.
 */
static bool gl_in_refused(struct sock *sk, struct sk_buff *skb, int thoff, u8 family)
{
	unsigned int tcp_hlen = ((const struct tcphdr *)(skb->data + thoff))->doff * 4;
	bool refused;

	if (gl_tcp_signed(sk))
		return true;
	if (family == NFPROTO_IPV4) {
		if (ip_hdr(skb)->ttl < READ_ONCE(inet_sk(sk)->min_ttl) ||
		    !xfrm4_policy_check(sk, XFRM_POLICY_IN, skb))
			return true;
	} else {
#if IS_ENABLED(CONFIG_IPV6)
		if (ipv6_hdr(skb)->hop_limit < READ_ONCE(inet6_sk(sk)->min_hopcount) ||
		    !xfrm6_policy_check(sk, XFRM_POLICY_IN, skb))
			return true;
#endif
	}
	if (nf_checksum(skb, NF_INET_LOCAL_IN, thoff, IPPROTO_TCP, family))
		return true;
	/* TCP runs the filter on a packet that begins with the TCP header. */
	__skb_pull(skb, thoff);
	refused = sk_filter_trim_cap(sk, skb, tcp_hlen);
	__skb_push(skb, thoff);
	return refused;
}

/* @identified: the packet has our option.  Called under the socket's spinlock, BH off. */
static enum gl_verdict gl_in_locked(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
				    const struct gl_kind *kind, bool identified,
				    const struct gl_seg *seg)
{
	bool owned = sock_owned_by_user(sk);

	/* Packets that were held while a process owned the socket are older: process them first. */
	if (!owned && gs->held && gl_sock(sk) == gs)
		gl_release_held(sk, gs);
	/* The connection may have changed its congestion control meanwhile. */
	if (gl_sock(sk) != gs)
		return GL_PASS;
	if (identified)
		return owned ? gl_hold(sk, gs, kind, seg) :
			       gl_receive(sk, gs, skb, kind, seg);
	if (owned)
		gl_hold_data(sk, gs, kind, seg);
	else
		gl_receive_data(sk, gs, kind, seg);
	return GL_PASS;
}

/* A packet for a connection that runs a greenlane transport.  Only a packet with our option may
 * be consumed.  The DSCP of data can only request an immediate ACK or signal the end of a message,
 * and TCP always gets the data.
 */
static enum gl_verdict gl_in_ours(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
				  int thoff, u8 family)
{
	const struct tcphdr *th = (const struct tcphdr *)(skb->data + thoff);
	enum gl_verdict verdict;
	struct gl_seg seg = {};
	const struct gl_kind *kind;
	bool identified;

	/* Only the handshake decides whether the peer runs a greenlane transport. */
	if (th->rst || th->syn || gs->peer != GREENLANE_PEER_YES)
		return GL_PASS;
	kind = gl_kind_of_code(gs, gl_option_read(th, &seg));
	identified = kind;
	gl_in_seg(skb, thoff, &seg);
	if (!identified && seg.end_seq != seg.seq)
		kind = gl_kind_of_data(gs, gl_dsfield(skb, family));
	if (!kind)
		return GL_PASS;
	if (kind->flags & GL_KIND_SACK)
		seg.sack = gl_option_next(th, TCPOPT_SACK, NULL);
	seg.ce = identified && INET_ECN_is_ce(gl_dsfield(skb, family));
	if (identified && gl_in_refused(sk, skb, thoff, family)) {
		gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
		return GL_PASS;
	}

	local_bh_disable();	/* NFQUEUE reinjects packets in process context */
	bh_lock_sock_nested(sk);
	verdict = gl_in_locked(sk, gs, skb, kind, identified, &seg);
	bh_unlock_sock(sk);
	local_bh_enable();
	return verdict;
}

/* Early demux has found the socket of nearly every packet of a connection, and gl_sock() finds out
 * whether it runs a greenlane transport.  Of other packets only handshake packets matter.
 */
static noinline unsigned int gl_in_slow(const struct nf_hook_state *state, struct sk_buff *skb)
{
	enum gl_verdict verdict = GL_PASS;
	struct sock *sk = skb->sk;
	struct gl_sock *gs = NULL;
	bool ref = false;
	int thoff;

	if (sk && sk_fullsock(sk)) {
		gs = gl_sock_received(sk);
		if (!gs && (1 << READ_ONCE(sk->sk_state)) & ~(TCPF_LISTEN | TCPF_SYN_SENT))
			return NF_ACCEPT;
	}
	thoff = gl_in_tcp_offset(skb, state->pf);
	if (thoff < 0)
		return NF_ACCEPT;
	if (!sk) {
		sk = gl_in_lookup(state->net, skb, (struct tcphdr *)(skb->data + thoff), state->pf);
		ref = sk;
		if (sk && sk_fullsock(sk))
			gs = gl_sock_received(sk);
	}
	if (gs)
		verdict = gl_in_ours(sk, gs, skb, thoff, state->pf);
	else
		gl_in_handshake(state->net, skb, sk, thoff, state->pf);
	if (ref)
		sock_gen_put(sk);

	if (verdict == GL_PASS)
		return NF_ACCEPT;
	consume_skb(skb);
	return NF_STOLEN;
}

/* Does TCP process the packets of this socket without us?  A listener and a client that waits for
 * a SYN-ACK are part of a handshake.
 */
static bool gl_in_is_foreign(const struct sock *sk)
{
	return !gl_sock(sk) && !gl_is_hidden(sk) &&
	       !((1 << READ_ONCE(sk->sk_state)) & (TCPF_LISTEN | TCPF_SYN_SENT));
}

/* As gl_local_out(): no stack frame for packets that need no processing. */
unsigned int gl_local_in(void *priv, struct sk_buff *skb, const struct nf_hook_state *state)
{
	const struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk) && (!sk_is_tcp(sk) || gl_in_is_foreign(sk)))
		return NF_ACCEPT;
	return gl_in_slow(state, skb);
}
