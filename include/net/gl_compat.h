/* SPDX-License-Identifier: GPL-2.0 */
/*
 * What older kernels lack.  The code is written for the newest one; every
 * difference is here, probed by feature where there is something to probe.
 */
#ifndef _NET_GL_COMPAT_H
#define _NET_GL_COMPAT_H

#include <linux/version.h>
#include <net/pkt_sched.h>

#if __has_include(<net/gso.h>)
#include <net/gso.h>		/* skb_gso_segment(), once in netdevice.h */
#endif

/* net/sched: drop reasons of qdiscs */
#if !__has_include(<net/dropreason-qdisc.h>)
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
#if LINUX_VERSION_CODE < KERNEL_VERSION(6, 19, 0)
static inline unsigned int qdisc_pkt_segs(const struct sk_buff *skb)
{
	return skb_is_gso(skb) ? skb_shinfo(skb)->gso_segs : 1;
}

static inline void qdisc_skb_set_pkt(struct sk_buff *skb, unsigned int len,
				     u16 segs)
{
	qdisc_skb_cb(skb)->pkt_len = len;
}
#else
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

#endif /* _NET_GL_COMPAT_H */
