# SPDX-License-Identifier: GPL-2.0
# What the kernel's headers have, as -DGL_HAVE_*; for include/net/gl_compat.h.
#
# Stable kernels take changes back, and distributions more of them, so a version
# says little.  Headers do not lie.

# $(call gl_have,NAME,FILE,PATTERN)
gl_have = $(shell grep -qs '$(3)' $(srctree)/include/$(2) && echo -DGL_HAVE_$(1))

ccflags-y += $(call gl_have,ACK_FLAGS,net/tcp.h,__tcp_send_ack.*u16 flags)
ccflags-y += $(call gl_have,CLOCK_TS,net/tcp.h,tcp_clock_ts)
ccflags-y += $(call gl_have,CONG_CONTROL_ACK,net/tcp.h,cong_control.*u32 ack)
ccflags-y += $(call gl_have,CONST_CTL,linux/sysctl.h,proc_handler.const struct)
ccflags-y += $(call gl_have,DST_DEV_RCU,net/dst.h,net_device \*dst_dev_rcu)
ccflags-y += $(call gl_have,GSO_ACCECN,linux/skbuff.h,SKB_GSO_TCP_ACCECN)
ccflags-y += $(call gl_have,HRTIMER_SETUP,linux/hrtimer.h,void hrtimer_setup)
ccflags-y += $(call gl_have,LOST_SKB_HINT,linux/tcp.h,lost_skb_hint)
ccflags-y += $(call gl_have,MAX_RECEIVE_WINDOW,net/tcp.h,tcp_max_receive_window)
ccflags-y += $(call gl_have,NETIF_KSETTINGS,linux/ethtool.h,int netif_get_link_ksettings)
ccflags-y += $(call gl_have,PKT_SEGS,net/sch_generic.h,qdisc_pkt_segs)
ccflags-y += $(call gl_have,SK_UID,net/sock.h,kuid_t sk_uid.const)
ccflags-y += $(call gl_have,TCF_DROP_REASON,net/sch_generic.h,void tcf_set_drop_reason.const)
ccflags-y += $(call gl_have,TIMEOUT,net/inet_connection_sock.h,unsigned long.*icsk_timeout;)
ccflags-y += $(call gl_have,TIMEOUT_EXPIRES,net/inet_connection_sock.h,tcp_timeout_expires)
ccflags-y += $(call gl_have,TX_START,net/tcp.h,cwnd_event_tx_start)
ccflags-y += $(call gl_have,WQ_BH,linux/workqueue.h,system_bh_wq)
ccflags-y += $(call gl_have,WQ_PERCPU,linux/workqueue.h,WQ_PERCPU)
# The argument is on the line after.
ccflags-y += $(shell grep -A1 '^struct sock \*__inet_lookup_established' \
	$(srctree)/include/net/inet_hashtables.h | grep -q inet_hashinfo && \
	echo -DGL_HAVE_HASHINFO)
