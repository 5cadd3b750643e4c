// SPDX-License-Identifier: GPL-2.0
/* Output: every packet of an established connection gets its codepoint here.
 *
 * TCP passes each packet to icsk_af_ops->queue_xmit() exactly once, with the socket locked and
 * before there is an IP header.  A connection that runs a greenlane transport has a copy of
 * TCP's icsk_af_ops in its struct gl_sock, with queue_xmit() replaced by gl_queue_xmit() (SMC
 * and MPTCP use copies of their own too).  The copy also identifies such a connection and leads
 * to its state: see gl_sock().
 *
 * So routes, tunnels, queues and devices cannot change the decision.  SYNs and SYN-ACKs are
 * sent by another path: gl_handshake.c.
 *
 * A TSO packet is split where the mark changes, into all segments but the last, and the last:
 *
 *	[h|1 2 3 4 5 6 7 8]  ->  [h|1 2 3 4 5 6 7]  [h|8]
 *	     GSO, data                GSO, data    important
 *
 * This happens once a round trip.  skb_gso_segment() would make eight packets instead of two.
 */
#include <linux/hash.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/inet_ecn.h>
#include <net/inet6_connection_sock.h>
#include <net/ip.h>
#include <net/ipv6.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- the kind of a packet -------------------------------------------------- */

/* An answer is owed: does this packet without data become it? */
static bool gl_out_answer(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			  struct gl_seg *seg)
{
	const struct tcphdr *th = tcp_hdr(skb);

	if (!th->ack || th->fin || th->rst || gl_tcp_signed(sk))
		return false;
	seg->field = gl_number(gs, GL_OWED_TO);
	if (!gl_option_add(sk, skb, gs->transport->protocol->answer, seg))
		return false;
	gs->owed = 0;
	gs->echoes_sent++;
	return true;
}

/* The kind of a packet without data, or NULL.  It becomes the answer if one is owed. */
static const struct gl_kind *gl_out_control(struct sock *sk, struct gl_sock *gs,
					    struct sk_buff *skb, struct gl_seg *seg)
{
	const struct gl_protocol *protocol = gs->transport->protocol;

	if (gs->owed && gl_out_answer(sk, gs, skb, seg))
		return protocol->answer;
	if (!gl_marking(gs))
		return NULL;
	gl_inc_stats(sock_net(sk), GL_MIB_CONTROL);
	return protocol->control;
}

/* The kind of a packet with data, or NULL; for a GSO packet, the kind of its last segment. */
static const struct gl_kind *gl_out_data(struct sock *sk, struct gl_sock *gs,
					 const struct gl_seg *seg)
{
	if (!gl_marking(gs))
		return NULL;
	return gs->transport->on_xmit(sk, gs, seg);
}

static void gl_count_sent(struct sock *sk, const struct gl_kind *kind, const struct gl_seg *seg)
{
	gl_count(sock_net(sk), kind->protocol, kind->sent, seg->segs);
	gl_count(sock_net(sk), kind->protocol, kind->bytes, seg->end_seq - seg->seq);
}

/* Does the packet's acknowledgment number, or one of its SACK blocks, cover @end?  TCP has up to
 * four blocks, and a packet with other options room for three or fewer.
 */
static bool gl_out_covers(const struct sk_buff *skb, const struct gl_seg *seg, u32 end)
{
	const u8 *sack = gl_option_next(tcp_hdr(skb), TCPOPT_SACK, NULL);
	int at;

	if (!before(seg->ack, end))
		return true;
	if (!sack)
		return false;
	for (at = TCPOLEN_SACK_BASE; at + TCPOLEN_SACK_PERBLOCK <= sack[1];
	     at += TCPOLEN_SACK_PERBLOCK)
		if (before(get_unaligned_be32(sack + at), end) &&
		    !after(end, get_unaligned_be32(sack + at + 4)))
			return true;
	return false;
}

/* Is this a packet that no switch drops first?  @kind: the kind of its last segment, or NULL. */
static bool gl_out_is_protected(const struct gl_seg *seg, const struct gl_kind *kind)
{
	return seg->end_seq == seg->seq || (kind && gl_codepoint_protected(kind->codepoint));
}

/* The ACK has advertised less than a packet, before the application could read.  TCP announces the
 * read if it doubles the window; the sender would wait for the timer of window probes, as a delayed
 * ACK would have followed the read.  Have TCP send an ACK when the application has read all.
 */
static void gl_out_update(struct sock *sk)
{
	struct inet_connection_sock *icsk = inet_csk(sk);

	if (tcp_receive_window(tcp_sk(sk)) < icsk->icsk_ack.rcv_mss)
		icsk->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_PUSHED2;
}

/* Data has arrived that needs an immediate ACK, and TCP may not have queued it yet: first it
 * retransmits the data that the packet reports lost (tcp_xmit_recovery()), sends new data
 * (tcp_data_snd_check() runs before tcp_ack_snd_check()), and sends an ACK that it had delayed
 * to compress it (tcp_sack_compress_send_ack()).  Each clears the request for an ACK.  Repeat the
 * request until a packet leaves that covers the data and that no switch drops first: an ACK on
 * droppable data is lost with it, and the sender of the important data would wait for a timer.
 * If TCP drops the data instead, no packet ever covers it: the kick runs when TCP has finished
 * with the data, and ends the request, also if the host's own device has refused the ACK.
 */
static void gl_out_prompt(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg,
			  bool covers, int err)
{
	if (covers && err == NET_XMIT_SUCCESS) {
		gs->prompt = 0;
		gs->patient = 0;
		gl_out_update(sk);
		return;
	}
	/* The rest of the answer may follow.  A retransmission is no answer. */
	if (gs->patient && !covers && !before(seg->seq, tcp_sk(sk)->snd_nxt))
		return;
	/* Else the host's own device has refused the answer. */
	if (gs->patient)
		set_bit(GL_OWED_ACK, &gs->flags);
	gs->patient = 0;
	inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_SCHED | ICSK_ACK_NOW;
	gl_kick(sk, gs);
}

/* Room for the option, in words; negative without any.  A packet has room for one option of
 * greenlane, and an owed answer takes precedence.
 */
static int gl_out_room(struct sock *sk, struct gl_sock *gs, const struct sk_buff *skb,
		       const struct gl_seg *seg)
{
	bool room = seg->end_seq == seg->seq ? !gs->owed : gl_room_has(sk, gs, skb, seg);

	return room ? gl_option_room(skb) : -1;
}

/* Let the transport add its option to a packet with an ACK. */
static void gl_out_ack(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
		       struct gl_seg *seg)
{
	const struct gl_transport *t = gs->transport;
	struct tcphdr *th = tcp_hdr(skb);
	const struct gl_kind *kind;

	/* A signature (TCP MD5 or AO, perhaps set since) covers the header: leave it alone. */
	if (!t->on_ack || !gl_marking(gs) || !th->ack || th->fin || th->rst || gl_tcp_signed(sk))
		return;
	kind = t->on_ack(sk, gs, th, seg, gl_out_room(sk, gs, skb, seg));
	if (kind && !gl_option_add(sk, skb, kind, seg))
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
	seg->field = 0;
}

/* --- from TCP to IP -------------------------------------------------------- */

#if IS_ENABLED(CONFIG_IPV6)
static bool gl_is_sprayed(const struct sock *sk, const struct sk_buff *skb)
{
	const struct gl_sock *gs = gl_sock(sk);

	return gs && gs->transport->sprays && skb->len > tcp_hdrlen(skb);
}

/* The flow label of a sprayed packet.  IP makes an automatic label of the packet's hash, by which
 * queues and tunnels identify the connection; so the packet has another hash here only.
 */
static __be32 gl_spray(struct sock *sk, struct sk_buff *skb, struct flowi6 *fl6)
{
	u32 hash = hash_32(sk->sk_txhash + tcp_sk(sk)->data_segs_out, 32);
	struct net *net = sock_net(sk);
	__be32 label;

	skb_set_hash(skb, hash ?: 1, PKT_HASH_TYPE_L4);
	label = ip6_make_flowlabel(net, skb, fl6->flowlabel, gl_ip6_autoflowlabel(net, sk), fl6);
	skb_set_hash_from_sk(skb, sk);
	return label;
}

/* As inet6_csk_xmit(), with the DS field as an argument.  The socket has a route. */
static int gl_ipv6_xmit(struct sock *sk, struct sk_buff *skb, u8 dsfield)
{
	const struct inet_sock *inet = inet_sk(sk);
	const struct ipv6_pinfo *np = inet6_sk(sk);
	struct flowi6 fl6 = {
		.flowi6_proto	= IPPROTO_TCP,
		.flowi6_oif	= sk->sk_bound_dev_if,
		.flowi6_mark	= READ_ONCE(sk->sk_mark),
		.daddr		= sk->sk_v6_daddr,
		.saddr		= np->saddr,
		.flowlabel	= np->flow_label,
		.fl6_sport	= inet->inet_sport,
		.fl6_dport	= inet->inet_dport,
		.flowi6_uid	= gl_sk_uid(sk),
	};
	int err;

	if (gl_is_sprayed(sk, skb))
		fl6.flowlabel = gl_spray(sk, skb, &fl6);
	rcu_read_lock();
	skb_dst_set_noref(skb, __sk_dst_get(sk));
	err = ip6_xmit(sk, skb, &fl6, fl6.flowi6_mark, rcu_dereference(np->opt), dsfield,
		       READ_ONCE(sk->sk_priority));
	rcu_read_unlock();
	return err;
}
#else
static int gl_ipv6_xmit(struct sock *sk, struct sk_buff *skb, u8 dsfield)
{
	return -EAFNOSUPPORT;
}
#endif

/* Find a route if the socket has no route.  IP would find one too, but by the DS field of the
 * packet; policy routing must use the application's DS field.
 */
static bool gl_has_route(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
			 bool ipv6)
{
	u32 cookie = 0;

#if IS_ENABLED(CONFIG_IPV6)
	if (ipv6)
		cookie = inet6_sk(sk)->dst_cookie;
#endif
	return __sk_dst_check(sk, cookie) ||
	       (!tcp_ops->rebuild_header(sk) && __sk_dst_get(sk));
}

/* The DS field that the application set, with TCP's ECN bits. */
static u8 gl_app_dsfield(const struct sock *sk, bool ipv6)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (ipv6)
		return inet6_sk(sk)->tclass;
#endif
	return inet_sk(sk)->tos;
}

/**
 * gl_send() - hand a packet to IP
 * @sk: its connection, locked
 * @tcp_ops: TCP's icsk_af_ops of the connection
 * @skb: the packet, with the TCP header in front
 * @fl: the connection's flow, the argument of queue_xmit()
 * @kind: the packet's kind; NULL to keep the application's DS field
 *
 * Return: the return value of queue_xmit().
 */
int gl_send(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
	    struct sk_buff *skb, struct flowi *fl, const struct gl_kind *kind)
{
	const struct gl_net *gn = gl_net(sock_net(sk));
	bool ipv6 = tcp_ops->queue_xmit != ip_queue_xmit;
	u8 dsfield;

	if (!gl_has_route(sk, tcp_ops, ipv6))
		return tcp_ops->queue_xmit(sk, skb, fl);
	dsfield = gl_app_dsfield(sk, ipv6);
	if (kind)
		dsfield = gl_marked(gn, kind, dsfield);
	else if (READ_ONCE(gn->protect))	/* LOCAL_OUT takes this packet for a marked one */
		dsfield = gl_strip(sock_net(sk), sk, dsfield);
	return ipv6 ? gl_ipv6_xmit(sk, skb, dsfield) : __ip_queue_xmit(sk, skb, fl, dsfield);
}

static void gl_out_refused(struct sock *sk, struct gl_sock *gs)
{
	if (gs->transport->on_refused)
		gs->transport->on_refused(sk, gs);
	else
		gl_kick_soon(sk, gs);
}

/* Send a packet as it is.  The transport waits only for a packet that has left (on_last()). */
static int gl_out_whole(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			struct flowi *fl, const struct gl_kind *kind, const struct gl_seg *seg)
{
	int err = gl_send(sk, gs->tcp_ops, skb, fl, kind);

	if (!kind)
		return err;
	if (gl_was_sent(err))
		gl_count_sent(sk, kind, seg);
	if (!kind->before || !gs->transport->on_last)
		return err;
	if (err == NET_XMIT_SUCCESS)
		gs->transport->on_last(sk, gs, kind, seg->end_seq);
	else
		gl_out_refused(sk, gs);
	return err;
}

static void gl_seg_of(const struct sk_buff *skb, struct gl_seg *seg)
{
	const struct tcphdr *th = tcp_hdr(skb);

	seg->seq = ntohl(th->seq);
	seg->end_seq = seg->seq + skb->len - tcp_hdrlen(skb);
	seg->ack = ntohl(th->ack_seq);
	seg->segs = max_t(u16, skb_shinfo(skb)->gso_segs, 1);
	/* TCP sets PSH where a write ends, and on each GSO packet. */
	seg->more = !th->psh && !th->fin;
}

/* --- a TSO packet ---------------------------------------------------------- */

static void gl_split_gso(struct sk_buff *skb, const struct sk_buff *whole,
			 unsigned int segs)
{
	struct skb_shared_info *shinfo = skb_shinfo(skb);

	shinfo->gso_segs = segs;
	shinfo->gso_type = segs > 1 ? skb_shinfo(whole)->gso_type : 0;
	shinfo->gso_size = segs > 1 ? skb_shinfo(whole)->gso_size : 0;
}

/* A requested time stamp stays with the part that has the requested byte. */
static void gl_split_tstamp(struct sk_buff *head, struct sk_buff *tail,
			    const struct sk_buff *whole, u32 tail_seq)
{
	const struct skb_shared_info *from = skb_shinfo(whole);
	struct sk_buff *skb = before(from->tskey, tail_seq) ? head : tail;

	if (!(from->tx_flags & SKBTX_ANY_TSTAMP))
		return;
	skb_shinfo(skb)->tx_flags |= from->tx_flags & SKBTX_ANY_TSTAMP;
	skb_shinfo(skb)->tskey = from->tskey;
}

/* Charge each part to the socket's send memory, as tcp_gso_segment() does, so that TCP small
 * queues count the packet until both parts are freed.
 */
static void gl_split_own(struct sk_buff *skb, const struct sk_buff *whole)
{
	skb->sk = whole->sk;
	skb->destructor = whole->destructor;
	refcount_add(skb->truesize, &skb->sk->sk_wmem_alloc);
}

/* Cut the last segment off @head, which keeps @len bytes of data.  Both parts get headers. */
static struct sk_buff *gl_split_tail(struct sk_buff *head, unsigned int hlen,
				     unsigned int len)
{
	unsigned int headroom = skb_headroom(head);
	struct sk_buff *tail;

	/* The linear part may have data behind the headers. */
	tail = alloc_skb(headroom + skb_headlen(head), GFP_ATOMIC | __GFP_NOWARN);
	if (!tail)
		return NULL;
	skb_reserve(tail, headroom + hlen);
	skb_copy_header(tail, head);
	skb_split(head, tail, hlen + len);

	/* skb_copy_header() copied the header offsets, so lay out the head in the same way. */
	__skb_push(tail, hlen);
	memcpy(tail->data, head->data, hlen);
	tail->truesize += tail->data_len;
	head->truesize -= tail->data_len;
	return tail;
}

/**
 * gl_split() - split a TSO packet before its last segment
 * @sk: its socket, locked
 * @skb: a packet from TCP without an IP header yet; a clone that TCP has just made
 * @head: all but the last segment
 * @tail: the last segment
 *
 * Return: true if @skb was split and freed; false, with @skb unchanged, if it cannot be split.
 */
static bool gl_split(struct sock *sk, struct sk_buff *skb, struct sk_buff **head,
		     struct sk_buff **tail)
{
	unsigned int hlen = tcp_hdrlen(skb);
	unsigned int mss = skb_shinfo(skb)->gso_size;
	unsigned int payload = skb->len - hlen;
	unsigned int segs;
	struct tcphdr *th;
	u32 tail_seq;

	if (!mss || payload <= mss || skb_headlen(skb) < hlen || gl_tcp_signed(sk) ||
	    skb->ip_summed != CHECKSUM_PARTIAL)
		goto whole;
	segs = DIV_ROUND_UP(payload, mss);

	*head = pskb_copy(skb, GFP_ATOMIC | __GFP_NOWARN);
	if (!*head)
		goto whole;
	*tail = gl_split_tail(*head, hlen, (segs - 1) * mss);
	if (!*tail) {
		consume_skb(*head);
		goto whole;
	}
	tail_seq = ntohl(tcp_hdr(skb)->seq) + (segs - 1) * mss;

	th = tcp_hdr(*head);
	th->fin = 0;
	th->psh = 0;
	th = tcp_hdr(*tail);
	th->seq = htonl(tail_seq);
	/* RFC 3168 sends CWR once; with AccECN the three bits are a counter. */
	if (!(skb_shinfo(skb)->gso_type & GL_GSO_TCP_ACCECN))
		th->cwr = 0;

	gl_split_gso(*head, skb, segs - 1);
	gl_split_gso(*tail, skb, 1);
	gl_tcp_check(sk, *head);
	gl_tcp_check(sk, *tail);
	gl_split_tstamp(*head, *tail, skb, tail_seq);
	(*tail)->ooo_okay = 0;
	gl_split_own(*head, skb);
	gl_split_own(*tail, skb);
	consume_skb(skb);
	gl_inc_stats(sock_net(sk), GL_MIB_SPLIT);
	return true;

whole:
	gl_inc_stats(sock_net(sk), GL_MIB_SPLITFAILED);
	return false;
}

/* The result for TCP, to which both parts are one packet.  It must not be an error if one of them
 * was sent: TCP would not advance snd_nxt, and would ignore the peer's ACKs of the part that it
 * received, forever.  The other part is lost then, which TCP detects as usual.
 */
static int gl_out_result(int head, int tail)
{
	if (!gl_was_sent(head) && !gl_was_sent(tail))
		return head;
	return head == tail ? head : NET_XMIT_CN;
}

/* Split a GSO packet whose last segment has another kind than the rest, and send both parts. */
static int gl_out_split(struct sock *sk, struct gl_sock *gs, struct sk_buff *skb,
			struct flowi *fl, const struct gl_kind *last)
{
	struct sk_buff *head, *tail;
	struct gl_seg seg = {};
	int err, tail_err;

	if (!gl_split(sk, skb, &head, &tail)) {
		/* The packet leaves without its last mark; the transport's kick detects that
		 * on_last() was not called.
		 */
		gl_kick_soon(sk, gs);
		gl_seg_of(skb, &seg);
		return gl_out_whole(sk, gs, skb, fl, last->before, &seg);
	}
	gl_seg_of(head, &seg);
	err = gl_out_whole(sk, gs, head, fl, last->before, &seg);
	gl_seg_of(tail, &seg);
	tail_err = gl_out_whole(sk, gs, tail, fl, last, &seg);
	return gl_out_result(err, tail_err);
}

/**
 * gl_queue_xmit() - icsk_af_ops->queue_xmit() of a connection with a greenlane transport
 * @sk: the connection, locked
 * @skb: a packet from TCP that begins with the TCP header; a clone, unless a pure ACK
 * @fl: the connection's flow
 *
 * Return: 0 or NET_XMIT_CN if any of it was sent; else NET_XMIT_DROP or an errno.
 */
int gl_queue_xmit(struct sock *sk, struct sk_buff *skb, struct flowi *fl)
{
	struct gl_sock *gs = gl_sock(sk);
	struct gl_seg seg = {};
	const struct gl_kind *kind;
	bool covers;
	int err;

	gl_seg_of(skb, &seg);
	gl_out_ack(sk, gs, skb, &seg);
	if (seg.end_seq == seg.seq)
		kind = gl_out_control(sk, gs, skb, &seg);
	else
		kind = gl_out_data(sk, gs, &seg);
	covers = unlikely(gs->prompt) && gl_out_is_protected(&seg, kind) &&
		 gl_out_covers(skb, &seg, gs->prompt_end);
	if (kind && kind->before && seg.segs > 1)
		err = gl_out_split(sk, gs, skb, fl, kind);
	else
		err = gl_out_whole(sk, gs, skb, fl, kind, &seg);
	if (unlikely(gs->prompt))
		gl_out_prompt(sk, gs, &seg, covers, err);
	/* Without a route no packet leaves, and only TCP's timers can make progress. */
	if (gl_was_sent(err))
		gl_assert_alive(sk, gs);
	return err;
}
EXPORT_SYMBOL_GPL(gl_queue_xmit);
