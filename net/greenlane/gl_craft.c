// SPDX-License-Identifier: GPL-2.0
/* Packets that greenlane builds itself.  TCP does not know of them: its queues, timers and
 * counters do not contain them.
 *
 * gl_send_repeat() sends one or more unacked bytes again, so that the peer answers (TLT §5.1,
 * adaptive important ACK-clocking).  gl_send_words() sends words in the option of a pure ACK.
 */
#include <linux/ipv6.h>
#include <linux/netfilter.h>
#include <net/inet_ecn.h>
#include <net/ip.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Copy up to @most bytes from snd_una on, but only to the end of the data that was sent, or to the
 * next packet that the peer has SACKed.  Copy no byte if only a FIN is unacked.
 */
static void gl_repeat_fill(const struct sock *sk, struct sk_buff *repeat, u32 most)
{
	const struct sk_buff *skb = tcp_rtx_queue_head(sk);
	u32 offset, n;

	if (!skb)
		return;
	offset = tcp_sk(sk)->snd_una - TCP_SKB_CB(skb)->seq;
	if (offset >= skb->len)
		return;
	skb_copy_decrypted(repeat, skb);
	do {
		n = min(skb->len - offset, most);
		if (skb_copy_bits(skb, offset, skb_tail_pointer(repeat), n))
			return;
		skb_put(repeat, n);
		most -= n;
		offset = 0;
		skb = skb_rb_next(skb);
	} while (most && skb && !(TCP_SKB_CB(skb)->sacked & TCPCB_SACKED_ACKED) &&
		 !skb_cmp_decrypted(repeat, skb));
}

/* @departs: TCP's clock, ns */
static unsigned int gl_craft_tstamp(const struct sock *sk, __be32 *opt, u64 departs)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	if (!tp->rx_opt.tstamp_ok)
		return 0;
	opt[0] = htonl((TCPOPT_NOP << 24) | (TCPOPT_NOP << 16) |
		       (TCPOPT_TIMESTAMP << 8) | TCPOLEN_TIMESTAMP);
	opt[1] = htonl(gl_tcp_tsval(tp, departs));
	opt[2] = htonl(tp->rx_opt.ts_recent);
	return TCPOLEN_TSTAMP_ALIGNED;
}

static void gl_craft_header(const struct sock *sk, struct tcphdr *th, u32 seq,
			    unsigned int len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct inet_sock *inet = inet_sk(sk);
	/* The last advertised window less the data that arrived since.  TCP's own next packet
	 * may advertise more, but the window must not shrink.
	 */
	u32 window = tcp_receive_window(tp) >> tp->rx_opt.rcv_wscale;

	memset(th, 0, sizeof(*th));
	th->source = inet->inet_sport;
	th->dest = inet->inet_dport;
	th->seq = htonl(seq);
	th->ack_seq = htonl(tp->rcv_nxt);
	th->doff = len / 4;
	th->ack = 1;
	th->window = htons(min_t(u32, window, U16_MAX));
	/* RFC 3168: repeat ECE until the peer sends CWR. */
	if (tp->ecn_flags & TCP_ECN_DEMAND_CWR)
		th->ece = 1;
	gl_tcp_accecn(tp, th);
}

/* An empty skb with room for headers, and for @len bytes behind them. */
static struct sk_buff *gl_craft_alloc(const struct sock *sk, unsigned int len)
{
	struct sk_buff *skb;

	skb = alloc_skb(MAX_TCP_HEADER + len, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return NULL;
	}
	skb_reserve(skb, MAX_TCP_HEADER);
	/* As TCP's own packets: the emergency reserve is for receiving. */
	skb->pfmemalloc = 0;
	return skb;
}

/* Return: as gl_send(). */
static int gl_craft_send(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
			 const struct gl_kind *kind, struct sk_buff *skb, u32 seq,
			 const __be32 *options, unsigned int optlen)
{
	memcpy(skb_push(skb, optlen), options, optlen);
	skb_push(skb, sizeof(struct tcphdr));
	skb_reset_transport_header(skb);
	gl_craft_header(sk, tcp_hdr(skb), seq, sizeof(struct tcphdr) + optlen);

	skb_set_owner_w(skb, sk);
	gl_tcp_check(sk, skb);
	skb_set_hash_from_sk(skb, sk);
	return gl_send(sk, tcp_ops, skb, &inet_sk(sk)->cork.fl, kind);
}

/**
 * gl_send_repeat() - send the first unacked bytes again, beside TCP
 * @sk: the connection, locked and not owned by a process, BH off
 * @gs: its state
 * @kind: a kind with GL_KIND_DATA and GL_KIND_ANSWERED
 * @most: maximum number of bytes to send, up to an MSS
 *
 * Return: the number of bytes sent; 0 if only a FIN is unacked or the receiver's window does not
 * allow a byte; -ENOBUFS if memory is short, or if the device has refused or dropped the packet.
 * gs->asked increases if the peer may answer.
 */
int gl_send_repeat(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind, u32 most)
{
	__be32 options[3 + GL_OPT_LEN(0) / 4];
	const struct tcp_sock *tp = tcp_sk(sk);
	struct sk_buff *skb;
	unsigned int len;
	u64 departs;
	u32 sent;
	int err;

	if (!before(tp->snd_una, tcp_wnd_end(tp)) || gl_tcp_signed(sk))
		return 0;
	/* Leave room for the option in a full packet. */
	most = min(most, tp->mss_cache - GL_OPT_LEN(0));
	most = min(most, tcp_wnd_end(tp) - tp->snd_una);
	skb = gl_craft_alloc(sk, most);
	if (!skb)
		return -ENOBUFS;
	gl_repeat_fill(sk, skb, most);
	sent = skb->len;
	if (!sent) {
		kfree_skb(skb);
		return 0;
	}
	/* fq sends it after the data that it holds. */
	departs = gl_departure_ns(sk);
	skb_set_delivery_time(skb, departs, GL_CLOCK_MONOTONIC);
	len = gl_craft_tstamp(sk, options, departs);
	gl_option_write(options + len / 4, kind->code, (u8)(gs->asked + 1), NULL, 0);
	err = gl_craft_send(sk, gs->tcp_ops, kind, skb, tp->snd_una, options, len + GL_OPT_LEN(0));
	if (gl_was_sent(err))
		gs->asked++;
	return err == NET_XMIT_SUCCESS ? sent : -ENOBUFS;
}
EXPORT_SYMBOL_GPL(gl_send_repeat);

/**
 * gl_craft_words() - as gl_send_words(), for any TCP connection
 * @sk: the connection, locked
 * @tcp_ops: TCP's icsk_af_ops of the connection
 * @kind: a kind with a code
 * @field: the option's field
 * @word: the option's words
 * @words: number of them, at most GL_WORDS_MAX
 *
 * Return: false if memory is short or the packet did not leave.
 */
bool gl_craft_words(struct sock *sk, const struct inet_connection_sock_af_ops *tcp_ops,
		    const struct gl_kind *kind, u16 field, const u32 *word, unsigned int words)
{
	__be32 options[GL_OPT_LEN(GL_WORDS_MAX) / 4];
	struct sk_buff *skb;

	if (gl_tcp_signed(sk))
		return false;
	skb = gl_craft_alloc(sk, 0);
	if (!skb)
		return false;
	gl_option_write(options, kind->code, field, word, words);
	return gl_was_sent(gl_craft_send(sk, tcp_ops, kind, skb, tcp_sk(sk)->snd_nxt, options,
					 GL_OPT_LEN(words)));
}

/**
 * gl_send_words() - send a pure ACK with our option
 * @sk: the connection, locked
 * @gs: its state
 * @kind: a kind with a code
 * @word: the option's words
 * @words: number of them, at most GL_WORDS_MAX
 *
 * It has no time stamp option, to be small; the peer's TCP never sees the packet.  gs->asked
 * increases with each packet of GL_KIND_ANSWERED, sent or not.
 *
 * Return: false if memory is short or the packet did not leave.
 */
bool gl_send_words(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
		   const u32 *word, unsigned int words)
{
	u16 field = kind->flags & GL_KIND_ANSWERED ? ++gs->asked : 0;

	return gl_craft_words(sk, gs->tcp_ops, kind, field, word, words);
}
EXPORT_SYMBOL_GPL(gl_send_words);
