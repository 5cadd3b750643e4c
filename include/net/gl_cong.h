/* SPDX-License-Identifier: GPL-2.0 */
/* Helpers for a congestion control, whether or not it marks packets.  A congestion control that
 * does not (tcp_dcqcn.c) includes only this header, so that loading it does not load the tagging
 * layer.
 */
#ifndef _NET_GL_CONG_H
#define _NET_GL_CONG_H

#include <linux/slab.h>
#include <linux/sysctl.h>
#include <net/dst.h>
#include <net/net_namespace.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

/* reno, the fallback of a connection that cannot run the selected congestion control.  It is not
 * registered and belongs to the module of that one, on which the socket holds a reference (as
 * dctcp_reno).
 */
#define GL_RENO(_name) {				\
	.name		= _name,			\
	.owner		= THIS_MODULE,			\
	.ssthresh	= tcp_reno_ssthresh,		\
	.cong_avoid	= tcp_reno_cong_avoid,		\
	.undo_cwnd	= tcp_reno_undo_cwnd,		\
}

/**
 * gl_fall_back() - continue a connection with another congestion control of the same module
 * @sk: the connection, locked
 * @ops: GL_RENO(), or one that the module has registered
 *
 * When the socket changes its congestion control or ends, TCP drops its reference on the module of
 * the present one.  So after init() of a base, which may have selected a congestion control of the
 * base's module, a transport selects its own fallback.
 */
static inline void gl_fall_back(struct sock *sk, const struct tcp_congestion_ops *ops)
{
	/* listen(), accept() and setsockopt() of other processes read it without the lock. */
	WRITE_ONCE(inet_csk(sk)->icsk_ca_ops, ops);
}

/* Will the socket's namespace exist as long as the socket?  When the kernel closes a socket of
 * its own that holds no reference on its namespace, TCP stops TCP's timers, but neither ours nor
 * the pacing timer.  Such sockets run a base that has no timer.  init_net stays.
 */
static inline bool gl_net_stays(const struct sock *sk)
{
	return sk->sk_net_refcnt || net_eq(sock_net(sk), &init_net);
}

/* Restore the device's limit of GSO segments.  Socket locked. */
static inline void gl_gso_default(struct sock *sk)
{
	const struct dst_entry *dst;

	rcu_read_lock();
	dst = rcu_dereference(sk->sk_dst_cache);
	sk->sk_gso_max_segs = dst ? max_t(u32, READ_ONCE(dst->dev->gso_max_segs), 1) : 1;
	rcu_read_unlock();
}

/* Set the pacing rate, bytes/s, to at most SO_MAX_PACING_RATE.  TCP does not pace at a rate of 0: a
 * limit of 0, which each application may set, must not switch the transport's rate off.
 */
static inline void gl_pace(struct sock *sk, u64 rate)
{
	u64 limit = READ_ONCE(sk->sk_max_pacing_rate) ?: ~0UL;

	WRITE_ONCE(sk->sk_pacing_rate, clamp_t(u64, rate, 1, limit));
}

/* Has the application's limit of 0 replaced the rate?  SO_MAX_PACING_RATE sets both.  For
 * min_tso_segs(), before data leaves.
 */
static inline bool gl_pace_is_lost(const struct sock *sk)
{
	return unlikely(!READ_ONCE(sk->sk_pacing_rate));
}

/**
 * gl_pace_as_tcp() - set the pacing rate as TCP does without cong_control()
 * @sk: the connection, locked
 *
 * TCP leaves the pacing rate to a congestion control with cong_control().  A client's SYN-ACK
 * is acknowledged before init(), which may find that the connection runs reno: call this while
 * the state is TCP_SYN_SENT.  It is tcp_update_pacing_rate(), which is not exported.
 */
static inline void gl_pace_as_tcp(struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	const struct net *net = sock_net(sk);
	u64 rate = (u64)tp->mss_cache * ((USEC_PER_SEC / 100) << 3);

	if (tcp_snd_cwnd(tp) < tp->snd_ssthresh / 2)
		rate *= READ_ONCE(net->ipv4.sysctl_tcp_pacing_ss_ratio);
	else
		rate *= READ_ONCE(net->ipv4.sysctl_tcp_pacing_ca_ratio);
	rate *= max(tcp_snd_cwnd(tp), tp->packets_out);
	if (tp->srtt_us)
		rate = div_u64(rate, tp->srtt_us);
	gl_pace(sk, rate);
}

/* Request TCP's internal pacing, unless fq paces.  Return: gl_pacing_end() is to undo it. */
static inline bool gl_pacing_begin(struct sock *sk)
{
	return cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED) == SK_PACING_NONE;
}

/* Switch TCP's pacing off, unless the application has set SO_MAX_PACING_RATE. */
static inline void gl_pacing_end(struct sock *sk)
{
	if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
}

/**
 * gl_cwnd_left() - the window that the next congestion control can start from
 * @tp: the connection, locked
 *
 * Return: packets.  Of a socket that is being destroyed the number in flight may be negative.
 */
static inline u32 gl_cwnd_left(const struct tcp_sock *tp)
{
	return max_t(s32, tcp_packets_in_flight(tp), TCP_INIT_CWND);
}

/**
 * gl_leave_rate() - leave a window and a pace that the next congestion control can start from
 * @sk: the connection, locked
 * @paces: gl_pacing_begin() has switched the pacing on
 */
static inline void gl_leave_rate(struct sock *sk, bool paces)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u32 enough = gl_cwnd_left(tp);

	gl_gso_default(sk);
	/* The window of a socket that is being destroyed may be 0 already. */
	if (tcp_snd_cwnd(tp) > enough)
		tcp_snd_cwnd_set(tp, enough);
	if (paces)
		gl_pacing_end(sk);
	gl_pace_as_tcp(sk);
}

/* An entry of the template for gl_sysctl_add(): an unsigned int between *@least and *@most. */
#define GL_SYSCTL_UINT(name, type, field, least, most) {	\
	.procname	= name,					\
	.data		= (void *)offsetof(type, field),	\
	.maxlen		= sizeof(unsigned int),			\
	.mode		= 0644,					\
	.proc_handler	= proc_douintvec_minmax,		\
	.extra1		= least,				\
	.extra2		= most,					\
}

/**
 * gl_sysctl_add() - register sysctls below net.ipv4 in a namespace
 * @net: the namespace
 * @template: the entries, with the offset of each variable from @base in .data
 * @n: number of entries
 * @base: the namespace's variables
 *
 * Return: the argument for gl_sysctl_remove(), or NULL if memory is short.
 */
static inline struct ctl_table_header *gl_sysctl_add(struct net *net,
						     const struct ctl_table *template,
						     size_t n, void *base)
{
	struct ctl_table_header *header;
	struct ctl_table *table;
	size_t i;

	/* Before 6.6 a table ends with an empty entry. */
	table = kcalloc(n + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	for (i = 0; i < n; i++) {
		table[i] = template[i];
		table[i].data = base + (uintptr_t)template[i].data;
	}
	header = gl_register_net_sysctl(net, "net/ipv4", table, n);
	if (!header)
		kfree(table);
	return header;
}

/**
 * gl_sysctl_remove() - undo gl_sysctl_add()
 * @header: returned by gl_sysctl_add()
 */
static inline void gl_sysctl_remove(struct ctl_table_header *header)
{
	const struct ctl_table *table = header->ctl_table_arg;

	unregister_net_sysctl_table(header);
	kfree(table);
}

#endif /* _NET_GL_CONG_H */
