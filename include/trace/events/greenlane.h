/* SPDX-License-Identifier: GPL-2.0 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM greenlane

#if !defined(_TRACE_GREENLANE_H) || defined(TRACE_HEADER_MULTI_READ)
#define _TRACE_GREENLANE_H

#include <linux/tracepoint.h>
#include <net/inet_sock.h>

/* Ports, and the low half of the remote IPv6 address or the IPv4 one, name a
 * connection well enough to follow it through a trace.
 */
DECLARE_EVENT_CLASS(greenlane_sock,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value),
	TP_STRUCT__entry(
		__field(const void *, skaddr)
		__field(__u16, sport)
		__field(__u16, dport)
		__field(__u16, family)
		__field(__u32, seq)
		__field(__u32, value)
	),
	TP_fast_assign(
		__entry->skaddr = sk;
		__entry->sport = ntohs(inet_sk(sk)->inet_sport);
		__entry->dport = ntohs(inet_sk(sk)->inet_dport);
		__entry->family = sk->sk_family;
		__entry->seq = seq;
		__entry->value = value;
	),
	TP_printk("sk=%p family=%u sport=%u dport=%u seq=%u value=%u",
		  __entry->skaddr, __entry->family, __entry->sport,
		  __entry->dport, __entry->seq, __entry->value)
);

/* an important packet leaves; seq: its end, value: packets in flight */
DEFINE_EVENT(greenlane_sock, greenlane_important,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* the echo of an important packet or clock has arrived; seq: its end, value: microseconds since it
 * left
 */
DEFINE_EVENT(greenlane_sock, greenlane_echo,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* a clock leaves; seq: snd_una, value: its bytes, 1 or an MSS */
DEFINE_EVENT(greenlane_sock, greenlane_clock,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* an echo has found losses; seq: snd_una, value: packets */
DEFINE_EVENT(greenlane_sock, greenlane_lost,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* the connection behaves as its base from here on; seq: snd_una,
 * value: 0 the peer does not run the transport, 1 it has stopped sending credits
 */
DEFINE_EVENT(greenlane_sock, greenlane_fallback,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* credits are wasted; seq: snd_nxt, value: credits */
DEFINE_EVENT(greenlane_sock, greenlane_waste,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* a receiver permits packets by a credit, pull or grant; seq: its number, value: packets */
DEFINE_EVENT(greenlane_sock, greenlane_credit,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* a credit, pull or grant has arrived; seq: its number, value: packets */
DEFINE_EVENT(greenlane_sock, greenlane_credited,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* a request has arrived; seq: number of the last credit that its sender has, value: packets that
 * wait
 */
DEFINE_EVENT(greenlane_sock, greenlane_request,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* a trimmed packet has arrived; seq: its data's, value: bytes that a switch has cut off */
DEFINE_EVENT(greenlane_sock, greenlane_trimmed,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

/* the report of a trimmed packet has arrived; seq, value: as greenlane_trimmed */
DEFINE_EVENT(greenlane_sock, greenlane_reported,
	TP_PROTO(const struct sock *sk, u32 seq, u32 value),
	TP_ARGS(sk, seq, value));

#endif /* _TRACE_GREENLANE_H */

#include <trace/define_trace.h>
