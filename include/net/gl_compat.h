/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Replacements for functions that older kernels lack.  The code is written for
 * the newest kernel; every difference is here.  gl_probe.mk sets GL_HAVE_* from
 * the kernel's headers; the versions in the comments are mainline versions.
 */
#ifndef _NET_GL_COMPAT_H
#define _NET_GL_COMPAT_H

#include <linux/tcp.h>
#include <linux/udp.h>
#include <net/pkt_sched.h>

#ifndef SKB_GSO_CB
#include <net/gso.h>		/* skb_gso_segment(), once in netdevice.h */
#endif

/* skb_set_delivery_time(): SKB_CLOCK_MONOTONIC since 6.11, before that true for TCP's clock */
#define GL_CLOCK_MONOTONIC	1

/* net/sched: drop reasons of qdiscs */
#ifndef DEFINE_QDISC_DROP_REASON
enum qdisc_drop_reason {
	QDISC_DROP_GENERIC,
	QDISC_DROP_OVERLIMIT,
	QDISC_DROP_CONGESTED,
	QDISC_DROP_BAND_LIMIT,
};

#define qdisc_drop_reason(skb, sch, to_free, reason) \
	((void)(reason), qdisc_drop(skb, sch, to_free))
#endif

/* net/sched: 6.19 keeps the number of segments beside the length */
#ifndef GL_HAVE_PKT_SEGS
static inline unsigned int qdisc_pkt_segs(const struct sk_buff *skb)
{
	const struct skb_shared_info *shinfo = skb_shinfo(skb);
	unsigned int hlen;
	struct tcphdr th;
	const void *h;

	if (likely(!shinfo->gso_size))
		return 1;
	if (likely(shinfo->gso_segs))
		return shinfo->gso_segs;

	/* a packet from a virtual machine has no number of segments */
	hlen = skb_transport_offset(skb);
	h = skb_header_pointer(skb, hlen, sizeof(th), &th);
	if (!(shinfo->gso_type & (SKB_GSO_TCPV4 | SKB_GSO_TCPV6)))
		hlen += sizeof(struct udphdr);
	else if (h)
		hlen += __tcp_hdrlen(h);
	return hlen < skb->len ? DIV_ROUND_UP(skb->len - hlen, shinfo->gso_size)
			       : 1;
}

/* Is it known without the packet's headers that it is one segment? */
static inline bool gl_qdisc_one_segment(const struct sk_buff *skb)
{
	return !skb_is_gso(skb);
}

static inline void qdisc_skb_set_pkt(struct sk_buff *skb, unsigned int len,
				     u16 segs)
{
	qdisc_skb_cb(skb)->pkt_len = len;
}
#else
static inline bool gl_qdisc_one_segment(const struct sk_buff *skb)
{
	return qdisc_pkt_segs(skb) <= 1;
}

static inline void qdisc_skb_set_pkt(struct sk_buff *skb, unsigned int len,
				     u16 segs)
{
	qdisc_skb_cb(skb)->pkt_len = len;
	qdisc_skb_cb(skb)->pkt_segs = segs;
}
#endif

/* net/sched: older kernels load sch_<id>.ko by its own name */
#ifndef MODULE_ALIAS_NET_SCH
#define MODULE_ALIAS_NET_SCH(id)	MODULE_ALIAS("sch_" id)
#endif

/* net/sched: in 7.1 a device has a lock of its own, which tc holds already */
#include <linux/ethtool.h>
static inline int gl_get_link_ksettings(struct net_device *dev,
					struct ethtool_link_ksettings *settings)
{
#ifdef GL_HAVE_NETIF_KSETTINGS
	return netif_get_link_ksettings(dev, settings);
#else
	return __ethtool_get_link_ksettings(dev, settings);
#endif
}

/* net/ipv4 */

#include <linux/hrtimer.h>
#include <linux/sysctl.h>
#include <net/inet_hashtables.h>
#include <net/inet6_hashtables.h>
#include <net/tcp.h>

/* 6.18: the device of a route changes when the route dies */
#include <net/dst.h>
static inline struct net_device *gl_dst_dev_rcu(const struct dst_entry *dst)
{
#ifdef GL_HAVE_DST_DEV_RCU
	return dst_dev_rcu(dst);
#else
	return READ_ONCE(dst->dev);
#endif
}

/* 6.11: a sysctl handler gets a const table */
#ifdef GL_HAVE_CONST_CTL
typedef const struct ctl_table gl_ctl_table;
#else
typedef struct ctl_table gl_ctl_table;
#endif

/* 6.6: the caller passes the size; before, the table ended with an empty entry */
#ifdef register_net_sysctl
#define gl_register_net_sysctl	register_net_sysctl_sz
#else
#define gl_register_net_sysctl(net, path, table, size) \
	((void)(size), register_net_sysctl(net, path, table))
#endif

/* 6.18: the table of established sockets is no longer an argument of the lookup */
#ifdef GL_HAVE_HASHINFO
#define GL_HASHINFO(net)	(net)->ipv4.tcp_death_row.hashinfo,
#else
#define GL_HASHINFO(net)
#endif

/* 6.13: hrtimer_setup() */
#ifndef GL_HAVE_HRTIMER_SETUP
static inline void hrtimer_setup(struct hrtimer *timer,
				 enum hrtimer_restart (*function)(struct hrtimer *),
				 clockid_t clock, enum hrtimer_mode mode)
{
	hrtimer_init(timer, clock, mode);
	timer->function = function;
}
#endif

/* Send an ACK outside of TCP's own handlers.  They begin with tcp_mstamp_refresh(), which is not
 * exported: without it the ACK's TSval is that of TCP's last event.  TCP at the other end discards
 * such an ACK if a packet that greenlane built, with the TSval of now, was faster (RFC 7323, PAWS).
 *
 * 6.12: an ACK may be sent with more flags
 */
static inline void gl_send_ack(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);

	tp->tcp_clock_cache = tcp_clock_ns();
	tp->tcp_mstamp = div_u64(tp->tcp_clock_cache, NSEC_PER_USEC);
#ifdef GL_HAVE_ACK_FLAGS
	__tcp_send_ack(sk, tp->rcv_nxt, 0);
#else
	__tcp_send_ack(sk, tp->rcv_nxt);
#endif
}

/* 6.18: AccECN, whose GSO packets keep CWR */
#ifdef GL_HAVE_GSO_ACCECN
#define GL_GSO_TCP_ACCECN	SKB_GSO_TCP_ACCECN
#else
#define GL_GSO_TCP_ACCECN	0
#endif

/* 6.7: timestamps may count microseconds.  @ns: TCP's clock. */
#ifdef GL_HAVE_CLOCK_TS
static inline u32 gl_tcp_tsval(const struct tcp_sock *tp, u64 ns)
{
	return div_u64(ns, tp->tcp_usec_ts ? NSEC_PER_USEC : NSEC_PER_MSEC) + tp->tsoffset;
}
#else
static inline u32 gl_tcp_tsval(const struct tcp_sock *tp, u64 ns)
{
	return div_u64(ns, NSEC_PER_MSEC) + tp->tsoffset;
}
#endif

/* 6.18: AccECN beside RFC 3168 */
static inline bool gl_tcp_ecn(const struct tcp_sock *tp)
{
#ifdef TCP_ECN_MODE_ANY
	return tcp_ecn_mode_any(tp);
#else
	return tp->ecn_flags & TCP_ECN_OK;
#endif
}

static inline bool gl_tcp_ecn_rfc3168(const struct tcp_sock *tp)
{
#ifdef TCP_ECN_MODE_ANY
	return tcp_ecn_mode_rfc3168(tp);
#else
	return tp->ecn_flags & TCP_ECN_OK;
#endif
}

/* With AccECN the three bits count CE marks, so they must be right in each packet. */
static inline void gl_tcp_accecn(const struct tcp_sock *tp, struct tcphdr *th)
{
#ifdef TCP_ACCECN_CEP_INIT_OFFSET
	u32 ace = tp->received_ce + TCP_ACCECN_CEP_INIT_OFFSET;

	if (!tcp_ecn_mode_accecn(tp))
		return;
	th->ece = ace;
	th->cwr = ace >> 1;
	th->ae = ace >> 2;
#endif
}

/* With AccECN, count a CE mark that TCP does not see, as tcp_ecn_received_counters() does for a
 * packet that TCP receives.  The byte counters do not change: they count data received by TCP.
 */
static inline void gl_tcp_accecn_heed(struct tcp_sock *tp)
{
#ifdef TCP_ACCECN_CEP_INIT_OFFSET
	if (!tcp_ecn_mode_accecn(tp))
		return;
	tp->received_ce++;
	tp->received_ce_pending = min(tp->received_ce_pending + 1, 0xfU);
#endif
}

/* 6.16: RACK cannot be switched off any more (net.ipv4.tcp_recovery) */
static inline bool gl_tcp_rack(const struct sock *sk)
{
#ifdef GL_HAVE_LOST_SKB_HINT
	return READ_ONCE(sock_net(sk)->ipv4.sysctl_tcp_recovery) & TCP_RACK_LOSS_DETECTION;
#else
	return true;
#endif
}

/* The part of the receive window that TCP has offered and not yet got.  6.5: TCP retracts it when
 * memory lacks for data, behind which the peer continues to send; 7.1: TCP remembers it.  Before,
 * the limit of the window is at least the window, unless SO_RCVBUF has reduced both.
 */
static inline u32 gl_max_receive_window(const struct tcp_sock *tp)
{
#ifdef GL_HAVE_MAX_RECEIVE_WINDOW
	return tcp_max_receive_window(tp);
#else
	return max(tcp_receive_window(tp), tp->window_clamp);
#endif
}

/* When TCP's retransmission timer expires, in jiffies.  6.19: the timer's own field has the time;
 * 7.1: the timer is in struct sock
 */
static inline unsigned long gl_tcp_timeout(const struct sock *sk)
{
#if defined(GL_HAVE_TIMEOUT)
	return inet_csk(sk)->icsk_timeout;
#elif defined(GL_HAVE_TIMEOUT_EXPIRES)
	return tcp_timeout_expires(sk);
#else
	return icsk_timeout(inet_csk(sk));
#endif
}

/* Is this the owner of a congestion control that is written in BPF? */
#include <linux/bpf.h>
static inline bool gl_is_bpf(const struct module *owner)
{
#ifdef BPF_MODULE_OWNER
	return owner == BPF_MODULE_OWNER;
#else
	return false;
#endif
}

/* 6.10: cong_control() has two more arguments, which are not needed here */
#ifdef GL_HAVE_CONG_CONTROL_ACK
#define GL_CONG_CONTROL(name, sk, rs) \
	void name(struct sock *sk, u32 ack, int flag, const struct rate_sample *rs)
#else
#define GL_CONG_CONTROL(name, sk, rs) \
	void name(struct sock *sk, const struct rate_sample *rs)
#endif

/* 6.17: a per-CPU workqueue needs a flag; before, it was the default */
#include <linux/workqueue.h>
#ifndef GL_HAVE_WQ_PERCPU
#define WQ_PERCPU	0
#endif

#if IS_ENABLED(CONFIG_IPV6)
/* As ip6_autoflowlabel(), which modules cannot call.  6.6: these options are flags of a socket */
static inline bool gl_ip6_autoflowlabel(struct net *net, const struct sock *sk)
{
#ifdef inet6_test_bit
	if (inet6_test_bit(AUTOFLOWLABEL_SET, sk))
		return inet6_test_bit(AUTOFLOWLABEL, sk);
#else
	if (inet6_sk(sk)->autoflowlabel_set)
		return inet6_sk(sk)->autoflowlabel;
#endif
	return ip6_default_np_autolabel(net);
}
#endif

/* 6.17: a socket's owner may change while it is read */
static inline kuid_t gl_sk_uid(const struct sock *sk)
{
#ifdef GL_HAVE_SK_UID
	return sk_uid(sk);
#else
	return sk->sk_uid;
#endif
}

/* Where no task is preempted in the kernel, RCU's grace period is also that of RCU tasks. */
#include <linux/rcupdate.h>
#if defined(CONFIG_PREEMPTION) && !defined(CONFIG_TASKS_RCU)
#error greenlane needs CONFIG_TASKS_RCU, which BPF_SYSCALL, FUNCTION_TRACER or KPROBES select
#endif
static inline void gl_rcu_barrier_tasks(void)
{
#ifdef CONFIG_TASKS_RCU
	rcu_barrier_tasks();
#endif
}

/* Segments signed with a key (TCP-MD5, and since 6.7 TCP-AO), or encrypted (6.18, PSP) */
static inline bool gl_tcp_signed(const struct sock *sk)
{
#ifdef CONFIG_TCP_MD5SIG
	if (rcu_access_pointer(tcp_sk(sk)->md5sig_info))
		return true;
#endif
#ifdef CONFIG_TCP_AO
	if (rcu_access_pointer(tcp_sk(sk)->ao_info))
		return true;
#endif
#if IS_ENABLED(CONFIG_INET_PSP)
	if (rcu_access_pointer(sk->psp_assoc))
		return true;
#endif
	return false;
}

/* 6.9: work items in softirq context, in the place of tasklets.  Neither runs on two CPUs at a
 * time, and both may be queued again by their own function.
 */
#ifdef GL_HAVE_WQ_BH
#define gl_bh_work			work_struct
#define gl_bh_init(work, function)	INIT_WORK(work, function)
#define gl_bh_queue(work)		queue_work(system_bh_wq, work)
#define gl_bh_cancel_sync(work)		cancel_work_sync(work)
#else
#include <linux/interrupt.h>
#define gl_bh_work			tasklet_struct
#define gl_bh_init(work, function)	tasklet_setup(work, function)
#define gl_bh_queue(work)		tasklet_schedule(work)
#define gl_bh_cancel_sync(work)		tasklet_kill(work)
#endif

/* 6.8: a packet that a qdisc drops carries the reason to where the root lock is released and the
 * packet is freed.
 */
static inline int gl_qdisc_drop(struct sk_buff *skb, struct Qdisc *sch,
				struct sk_buff **to_free, enum skb_drop_reason reason)
{
#ifdef GL_HAVE_TCF_DROP_REASON
	tcf_set_drop_reason(skb, reason);
#endif
	return qdisc_drop(skb, sch, to_free);
}

#endif /* _NET_GL_COMPAT_H */
