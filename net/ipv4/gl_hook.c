// SPDX-License-Identifier: GPL-2.0
/* What a packet is becomes bits, and bits what a packet is: LOCAL_OUT and
 * LOCAL_IN, IPv4 and IPv6.
 *
 * LOCAL_OUT runs before every other hook, while the TCP code that sends still
 * holds the socket: after an NFQUEUE the packet would come back without it.
 * LOCAL_IN runs after every other hook: a packet that the firewall drops is
 * never answered.
 */
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <net/dsfield.h>
#include <net/ip.h>
#include <net/ipv6.h>
#include <net/mptcp.h>

#include <net/gl_compat.h>
#include <trace/events/greenlane.h>
#include "gl_internal.h"

static u8 gl_dsfield(const struct sk_buff *skb, u8 family)
{
	return family == NFPROTO_IPV4 ? ipv4_get_dsfield(ip_hdr(skb)) :
					ipv6_get_dsfield(ipv6_hdr(skb));
}

/* @keep: bits of the DS field that stay */
static void gl_set_dsfield(struct sk_buff *skb, u8 family, u8 keep, u8 dsfield)
{
	if (family == NFPROTO_IPV4)
		ipv4_change_dsfield(ip_hdr(skb), keep, dsfield);
	else
		ipv6_change_dsfield(ipv6_hdr(skb), keep, dsfield);
}

/* TCP that leaves has its transport header set, and IPv6 extension headers
 * only if the application asked for them.
 */
static bool gl_out_is_tcp(const struct sk_buff *skb, u8 family)
{
	if (family == NFPROTO_IPV4)
		return ip_hdr(skb)->protocol == IPPROTO_TCP;
	if (ipv6_hdr(skb)->nexthdr != IPPROTO_TCP) {
		u8 next = ipv6_hdr(skb)->nexthdr;
		__be16 frag;
		int off;

		/* Behind an authentication header too, which is IPsec's: not TCP's. */
		off = ipv6_skip_exthdr(skb, sizeof(struct ipv6hdr), &next, &frag);
		return next == IPPROTO_TCP && off == skb_transport_offset(skb);
	}
	return true;
}

/* --- sockets that are not ours ------------------------------------------ */

/* The kernel's own packet, which repeats what the remote sent?  That is
 * nobody's attempt, and a healthy network is full of RSTs.
 */
static bool gl_out_is_reply(const struct sock *sk)
{
	return sk && sk_fullsock(sk) && sk->sk_kern_sock;
}

/* An application may not give itself what a switch protects (IP_TOS), nor may
 * a remote make the kernel do it (RST and ICMP replies reflect the TOS).
 */
static unsigned int gl_out_foreign(struct gl_net *gn, struct net *net,
				   const struct sock *sk, struct sk_buff *skb,
				   u8 family)
{
	unsigned int hlen = family == NFPROTO_IPV4 ? sizeof(struct iphdr) :
						     sizeof(struct ipv6hdr);

	if (likely(!gl_kind_protected(gl_kind_of(&gn->cp, gl_dsfield(skb, family)))) ||
	    !READ_ONCE(gn->protect))
		return NF_ACCEPT;
	if (skb_ensure_writable(skb, hlen)) {
		gl_inc_stats(net, GL_MIB_NOMEMORY);
		return NF_DROP;
	}
	gl_set_dsfield(skb, family, INET_ECN_MASK, 0);
	if (!gl_out_is_reply(sk))
		gl_inc_stats(net, GL_MIB_STRIPPED);
	return NF_ACCEPT;
}

/* --- the handshake ------------------------------------------------------ */

/* The transport that a listener's child will run; NULL if it is none of ours.
 * Read without the listener's lock: its operations are alive under RCU.
 */
static const struct gl_transport *gl_child_transport(const struct sock *listener,
						     const struct sk_buff *skb)
{
	const struct dst_entry *dst = skb_dst(skb);
	u32 key = dst ? dst_metric(dst, RTAX_CC_ALGO) : TCP_CA_UNSPEC;
	const struct tcp_congestion_ops *ops;

	if (key != TCP_CA_UNSPEC)
		return gl_transport_of_key(key);
	ops = READ_ONCE(inet_csk(listener)->icsk_ca_ops);
	if (ops->release != gl_release)
		return NULL;
	return container_of(ops, struct gl_transport, ops);
}

/* With SYN cookies the SYN-ACK belongs to nobody: find its listener. */
static struct sock *gl_cookie_listener(struct net *net, struct sk_buff *skb,
				       const struct tcphdr *th, u8 family)
{
	int dif = skb_dst(skb) ? skb_dst(skb)->dev->ifindex : 0;

	if (family == NFPROTO_IPV4)
		return __inet_lookup_listener(net, GL_HASHINFO(net) NULL, 0,
					      ip_hdr(skb)->daddr, th->dest,
					      ip_hdr(skb)->saddr,
					      ntohs(th->source), dif, 0);
#if IS_ENABLED(CONFIG_IPV6)
	return inet6_lookup_listener(net, GL_HASHINFO(net) NULL, 0,
				     &ipv6_hdr(skb)->daddr, th->dest,
				     &ipv6_hdr(skb)->saddr,
				     ntohs(th->source), dif, 0);
#else
	return NULL;
#endif
}

/* A SYN-ACK is important, never echoed (as the TLT authors' code has it), or
 * scheduled, and tells the client that its peer speaks as it does.  The answer
 * to a SYN that was marked otherwise is not.  A cookie's SYN-ACK has forgotten
 * its SYN: it is marked for everyone, and a client without us does not look.
 *
 * Return: what it is; GL_NONE for one that is nothing to us.
 */
static enum gl_kind gl_synack_kind(struct gl_net *gn, struct net *net,
				   struct sk_buff *skb, u8 family)
{
	const struct tcphdr *th = tcp_hdr(skb);
	const struct gl_transport *t = NULL;
	const struct request_sock *req;
	const struct sock *listener;

	if (skb->sk) {
		req = inet_reqsk(skb->sk);
		if (!inet_rsk(req)->sack_ok || rsk_is_mptcp(req))
			return GL_NONE;
		if (req->rsk_listener)
			t = gl_child_transport(req->rsk_listener, skb);
		if (!t || !gl_speaks(t, gl_kind_of(&gn->cp, tcp_rsk(req)->syn_tos)))
			return GL_NONE;
		return t->hello;
	}
	listener = gl_cookie_listener(net, skb, th, family);
	if (listener && sk_is_tcp(listener))
		t = gl_child_transport(listener, skb);
	return t ? t->hello : GL_NONE;
}

static bool gl_out_is_syn(const struct sk_buff *skb, u8 family)
{
	return gl_out_is_tcp(skb, family) && skb_transport_header_was_set(skb) &&
	       skb_headlen(skb) >= skb_transport_offset(skb) + sizeof(struct tcphdr) &&
	       tcp_hdr(skb)->syn;
}

/* A packet without a socket: is it the SYN-ACK of a SYN cookie? */
static bool gl_is_cookie(const struct sk_buff *skb, u8 family)
{
	return !skb->sk && gl_out_is_syn(skb, family) && tcp_hdr(skb)->ack;
}

static unsigned int gl_out_handshake(struct gl_net *gn, struct net *net,
				     enum gl_kind hello, struct sk_buff *skb,
				     u8 family)
{
	gl_set_dsfield(skb, family, 0, gl_marked(gn, hello, hello, gl_dsfield(skb, family)));
	gl_inc_stats(net, GL_MIB_HANDSHAKE);
	return NF_ACCEPT;
}

/* --- sockets of ours ---------------------------------------------------- */

/* A full socket's packet.  Our SYN leaves with its socket locked; so does the SYN-ACK of a
 * Fast Open child, which is a connection already.  What else a connection of ours sends
 * has its mark (gl_out.c), and may come by more than once, or late: behind an ipvlan, a
 * VRF, IPsec.
 */
static unsigned int gl_out_full(struct gl_net *gn, struct net *net, struct sock *sk,
				struct sk_buff *skb, u8 family)
{
	const struct gl_sock *gs = gl_sock(sk);
	int state = READ_ONCE(sk->sk_state);

	if (gs && !(state == TCP_SYN_RECV && gl_out_is_syn(skb, family)))
		return NF_ACCEPT;
	if (gs && gl_marking(gs))
		return gl_out_handshake(gn, net, gs->transport->hello, skb, family);
	if (gs)
		return gl_out_foreign(gn, net, sk, skb, family);
	if (state != TCP_SYN_SENT || !gl_is_ours(sk) || sk_is_mptcp(sk) || gl_tcp_signed(sk))
		return gl_out_foreign(gn, net, sk, skb, family);
	/* A tunnel around it, or IPsec. */
	if (!gl_out_is_syn(skb, family))
		return NF_ACCEPT;
	WRITE_ONCE(inet_sk(sk)->rcv_tos, GL_TOS_ASKED);
	return gl_out_handshake(gn, net, gl_transport(sk)->hello, skb, family);
}

static unsigned int gl_out(void *priv, struct sk_buff *skb,
			   const struct nf_hook_state *state)
{
	struct gl_net *gn = gl_net(state->net);
	struct sock *sk = skb->sk;

	if (sk && sk_fullsock(sk)) {
		if (sk_is_tcp(sk))
			return gl_out_full(gn, state->net, sk, skb, state->pf);
	} else if ((sk && sk->sk_state == TCP_NEW_SYN_RECV) ||
		   gl_is_cookie(skb, state->pf)) {
		enum gl_kind hello;

		if (!gl_out_is_syn(skb, state->pf))
			return NF_ACCEPT;
		hello = gl_synack_kind(gn, state->net, skb, state->pf);
		if (hello != GL_NONE)
			return gl_out_handshake(gn, state->net, hello, skb, state->pf);
	}
	/* IPv6's replies do not name their socket, but the hook's caller does. */
	return gl_out_foreign(gn, state->net, state->sk, skb, state->pf);
}

/* --- what comes --------------------------------------------------------- */

/* The offset of a complete TCP header, or -1.  May move the header. */
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
		__be16 frag;
		int off;

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

/* A TCP option, from its kind on; NULL if there is none. */
static const u8 *gl_option(const struct tcphdr *th, u8 kind)
{
	const u8 *opt = (const u8 *)(th + 1);
	int left = th->doff * 4 - sizeof(*th);

	while (left > 0) {
		if (*opt == TCPOPT_EOL)
			return NULL;
		if (*opt == TCPOPT_NOP) {
			opt++;
			left--;
			continue;
		}
		if (left < 2 || opt[1] < 2 || opt[1] > left)
			return NULL;
		if (*opt == kind)
			return opt;
		left -= opt[1];
		opt += opt[1];
	}
	return NULL;
}

/* Our option: words of 32 bits behind an experiment's number (RFC 6994). */
static void gl_in_words(const struct tcphdr *th, struct gl_seg *seg)
{
	const u8 *opt = gl_option(th, TCPOPT_EXP);
	int i;

	if (!opt || opt[1] < GL_OPT_LEN(0) || get_unaligned_be16(opt + 2) != GL_OPT_EXID)
		return;
	seg->words = min((opt[1] - GL_OPT_LEN(0)) / 4, GL_WORDS_MAX);
	for (i = 0; i < seg->words; i++)
		seg->word[i] = get_unaligned_be32(opt + GL_OPT_LEN(i));
}

/* Does it ask anything of us?  Data that may be lost and pure ACKs do not. */
static bool gl_in_asks(enum gl_kind kind)
{
	if (kind < GL_IMPORTANT || kind == GL_CONTROL)
		return false;
	return gl_family(kind) != GL_OF_DART || kind == GL_SHARE || gl_kind_ends(kind);
}

/* Acts, or ends here, without TCP to check it for us. */
static bool gl_in_for_us(enum gl_kind kind)
{
	return kind == GL_CLOCK || kind == GL_CLOCK_ECHO || kind == GL_REQUEST ||
	       kind == GL_CREDIT || kind == GL_SHARE;
}

/* Early demultiplexing has usually found it. */
static struct sock *gl_in_lookup(struct net *net, struct sk_buff *skb,
				 const struct tcphdr *th, u8 family, bool *ref)
{
	*ref = false;
	if (skb->sk)
		return skb->sk;
	*ref = true;
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

/* The answer to our SYN: what it says of the peer is read when TCP has decided
 * that the connection stands, in gl_attach().  Over a short wire connect() may
 * still own the socket: one byte that only we read needs no lock.  What TCP
 * will refuse, because it does not acknowledge the SYN, tells nothing.
 */
static void gl_in_synack(struct sock *sk, const struct sk_buff *skb,
			 const struct gl_seg *seg, u8 family)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (READ_ONCE(sk->sk_state) == TCP_SYN_SENT && gl_is_ours(sk) &&
	    after(seg->ack, READ_ONCE(tp->snd_una)) &&
	    !after(seg->ack, READ_ONCE(tp->write_seq)))
		WRITE_ONCE(inet_sk(sk)->rcv_tos, gl_dsfield(skb, family));
}

/* Without the lock: is it for one of us, and could the peer have sent it? */
static bool gl_in_heeded(const struct sock *sk, const struct gl_seg *seg)
{
	if (!gl_sock(sk))
		return false;
	if (gl_plausible(sk, seg))
		return true;
	gl_inc_stats(sock_net(sk), GL_MIB_INVALID);
	return false;
}

/* An echo is told without the lock: the transport asks when TCP sees the ACK. */
static void gl_in_echo(struct sock *sk, const struct gl_seg *seg)
{
	if (!gl_in_heeded(sk, seg))
		return;
	set_bit(GL_TSQ_ECHO, &sk->sk_tsq_flags);
	gl_inc_stats(sock_net(sk), GL_MIB_ECHORECEIVED);
}

/* A process owns the socket.  TCP takes data from the backlog, and its ACK will
 * be the echo, or else the worker's.  What TCP is not to see waits for the worker
 * alone.
 */
static enum gl_verdict gl_in_owned(struct sock *sk, enum gl_kind kind,
				   const struct gl_seg *seg)
{
	bool noted;

	if (!gl_in_heeded(sk, seg))
		return GL_PASS;
	noted = gl_note(sk, kind, seg);
	if (kind == GL_IMPORTANT) {
		/* Who sees the bit finds the note. */
		smp_mb__before_atomic();
		set_bit(GL_TSQ_IMPORTANT, &sk->sk_tsq_flags);
	}
	/* What TCP is to see as well, it sees.  Of dart's that is what does no harm. */
	if (!noted || kind == GL_IMPORTANT || kind == GL_CLOCK_ECHO ||
	    gl_family(kind) == GL_OF_DART)
		return GL_PASS;
	return GL_CONSUME;
}

/* Unscheduled data, for one who gives credits?  TLT's unimportant data is nothing to
 * us, so this may cost no lookup: early demultiplexing has found the socket.
 */
static bool gl_in_is_unscheduled(const struct sk_buff *skb)
{
	const struct sock *sk = skb->sk;
	const struct gl_sock *gs;

	if (!sk || !sk_fullsock(sk) || !sk_is_tcp(sk))
		return false;
	gs = gl_sock(sk);
	return gs && gl_kind_of_credits(gs->transport->hello);
}

/* If a process owns the socket TCP's own ACKs will do, and the probe's. */
static void gl_in_unscheduled(struct sock *sk)
{
	local_bh_disable();
	bh_lock_sock_nested(sk);
	if (!sock_owned_by_user(sk))
		gl_receive_unscheduled(sk);
	bh_unlock_sock(sk);
	local_bh_enable();
}

static enum gl_verdict gl_in_sock(struct sock *sk, struct sk_buff *skb,
				  enum gl_kind kind, const struct tcphdr *th,
				  const struct gl_seg *seg, u8 family)
{
	enum gl_verdict verdict;

	if (th->syn) {
		gl_in_synack(sk, skb, seg, family);
		return GL_PASS;
	}
	if (kind == GL_ECHO) {
		gl_in_echo(sk, seg);
		return GL_PASS;
	}
	bh_lock_sock_nested(sk);
	if (sock_owned_by_user(sk))
		verdict = gl_in_owned(sk, kind, seg);
	else
		verdict = gl_receive(sk, kind, seg, false);
	bh_unlock_sock(sk);
	return verdict;
}

static unsigned int gl_in(void *priv, struct sk_buff *skb,
			  const struct nf_hook_state *state)
{
	struct net *net = state->net;
	const struct gl_codepoints *cp = &gl_net(net)->cp;
	enum gl_verdict verdict = GL_PASS;
	const struct tcphdr *th;
	struct gl_seg seg = {};
	enum gl_kind kind;
	struct sock *sk;
	int thoff;
	bool ref;

	kind = gl_kind_of(cp, gl_dsfield(skb, state->pf));
	if (kind == GL_DATA && gl_in_is_unscheduled(skb))
		gl_in_unscheduled(skb->sk);
	if (!gl_in_asks(kind))
		return NF_ACCEPT;
	thoff = gl_in_tcp_offset(skb, state->pf);
	if (thoff < 0)
		return NF_ACCEPT;
	th = (const struct tcphdr *)(skb->data + thoff);
	if (th->rst || (th->syn && !th->ack) || (kind == GL_SCHEDULED && !th->syn))
		return NF_ACCEPT;

	/* Only of these does anyone ask. */
	if (kind == GL_CLOCK_ECHO)
		seg.sack = gl_option(th, TCPOPT_SACK);
	else if (gl_in_for_us(kind))
		gl_in_words(th, &seg);
	if (kind == GL_SHARE && !th->syn && !seg.words)
		return NF_ACCEPT;
	if (gl_in_for_us(kind) &&
	    nf_checksum(skb, NF_INET_LOCAL_IN, thoff, IPPROTO_TCP, state->pf)) {
		gl_inc_stats(net, GL_MIB_INVALID);
		return NF_ACCEPT;
	}

	seg.seq = ntohl(th->seq);
	seg.end_seq = seg.seq + skb->len - thoff - th->doff * 4;
	seg.ack = ntohl(th->ack_seq);
	seg.segs = 1;
	seg.window = ntohs(th->window);

	local_bh_disable();	/* a packet from NFQUEUE comes in process context */
	sk = gl_in_lookup(net, skb, th, state->pf, &ref);
	if (sk && sk_fullsock(sk) && sk_is_tcp(sk))
		verdict = gl_in_sock(sk, skb, kind, th, &seg, state->pf);
	if (sk && ref)
		sock_gen_put(sk);
	local_bh_enable();

	if (verdict == GL_PASS)
		return NF_ACCEPT;
	consume_skb(skb);
	return NF_STOLEN;
}

#define GL_HOOK(function, family, point, order) {	\
	.hook		= function,			\
	.pf		= family,			\
	.hooknum	= point,			\
	.priority	= order,			\
}

static const struct nf_hook_ops gl_hooks[] = {
	GL_HOOK(gl_out, NFPROTO_IPV4, NF_INET_LOCAL_OUT, NF_IP_PRI_FIRST),
	GL_HOOK(gl_in, NFPROTO_IPV4, NF_INET_LOCAL_IN, NF_IP_PRI_LAST),
#if IS_ENABLED(CONFIG_IPV6)
	GL_HOOK(gl_out, NFPROTO_IPV6, NF_INET_LOCAL_OUT, NF_IP6_PRI_FIRST),
	GL_HOOK(gl_in, NFPROTO_IPV6, NF_INET_LOCAL_IN, NF_IP6_PRI_LAST),
#endif
};

int gl_hook_net_init(struct net *net)
{
	return nf_register_net_hooks(net, gl_hooks, ARRAY_SIZE(gl_hooks));
}

void gl_hook_net_exit(struct net *net)
{
	nf_unregister_net_hooks(net, gl_hooks, ARRAY_SIZE(gl_hooks));
}
