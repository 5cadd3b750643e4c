// SPDX-License-Identifier: GPL-2.0
/* The clock: the first unacked byte once more, only so that an ACK comes back
 * (TLT §5.1, adaptive important ACK-clocking).
 */
#include <net/inet_ecn.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* The byte at snd_una, as it was sent; false if a FIN is all that is left. */
static bool gl_clock_byte(const struct sock *sk, u8 *byte)
{
	const struct sk_buff *skb = tcp_rtx_queue_head(sk);
	u32 offset;

	if (!skb)
		return false;
	offset = tcp_sk(sk)->snd_una - TCP_SKB_CB(skb)->seq;
	return offset < skb->len && !skb_copy_bits(skb, offset, byte, 1);
}

static unsigned int gl_clock_options(const struct tcp_sock *tp, __be32 *opt)
{
	if (!tp->rx_opt.tstamp_ok)
		return 0;
	opt[0] = htonl((TCPOPT_NOP << 24) | (TCPOPT_NOP << 16) |
		       (TCPOPT_TIMESTAMP << 8) | TCPOLEN_TIMESTAMP);
	opt[1] = htonl(gl_tcp_tsval(tp));
	opt[2] = htonl(tp->rx_opt.ts_recent);
	return TCPOLEN_TSTAMP_ALIGNED;
}

static void gl_clock_header(const struct sock *sk, struct tcphdr *th,
			    unsigned int len)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct inet_sock *inet = inet_sk(sk);
	/* What was promised last, less what came since: TCP's own next
	 * packet may promise more, but no less.
	 */
	u32 window = tcp_receive_window(tp) >> tp->rx_opt.rcv_wscale;

	memset(th, 0, sizeof(*th));
	th->source = inet->inet_sport;
	th->dest = inet->inet_dport;
	th->seq = htonl(tp->snd_una);
	th->ack_seq = htonl(tp->rcv_nxt);
	th->doff = len / 4;
	th->ack = 1;
	th->window = htons(min_t(u32, window, U16_MAX));
	/* The peer's mark is repeated until it says that it has slowed down. */
	if (tp->ecn_flags & TCP_ECN_DEMAND_CWR)
		th->ece = 1;
}

/**
 * gl_send_clock() - send the first unacked byte as a clock
 * @sk: the connection, locked and at rest, BH off
 * @gs: its state
 *
 * It tells TCP nothing: not in its queues, its timers or its counters.
 *
 * Return: false if there is nothing unacked but a FIN, the receiver's window
 * forbids even that byte, or memory is short.
 */
bool gl_send_clock(struct sock *sk, struct gl_sock *gs)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	unsigned int hlen = sizeof(struct tcphdr);
	struct sk_buff *skb;
	__be32 options[3];
	int err;
	u8 byte;

	if (!before(tp->snd_una, tcp_wnd_end(tp)) || gl_tcp_signed(sk) ||
	    !gl_clock_byte(sk, &byte))
		return false;

	skb = alloc_skb(MAX_TCP_HEADER + 1, GFP_ATOMIC | __GFP_NOWARN);
	if (!skb) {
		gl_inc_stats(sock_net(sk), GL_MIB_NOMEMORY);
		return false;
	}
	skb_reserve(skb, MAX_TCP_HEADER);
	skb_put_u8(skb, byte);
	hlen += gl_clock_options(tp, options);
	memcpy(skb_push(skb, hlen - sizeof(struct tcphdr)), options,
	       hlen - sizeof(struct tcphdr));
	skb_push(skb, sizeof(struct tcphdr));
	skb_reset_transport_header(skb);
	gl_clock_header(sk, tcp_hdr(skb), hlen);

	skb_set_owner_w(skb, sk);
	gl_tcp_check(sk, skb, skb->len);
	skb_set_hash_from_sk(skb, sk);

	gs->preset = GL_CLOCK;
	err = inet_csk(sk)->icsk_af_ops->queue_xmit(sk, skb, &inet_sk(sk)->cork.fl);
	gs->preset = GL_NONE;
	return err >= 0;
}
EXPORT_SYMBOL_GPL(gl_send_clock);
