// SPDX-License-Identifier: GPL-2.0
/* The base congestion controls that transports extend. */
#include <linux/module.h>
#include <linux/net.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/**
 * gl_base_get() - find a congestion control and take a reference on its module
 * @name: its name; the module is loaded if necessary
 *
 * tcp_ca_find() is not exported, so set the congestion control of a temporary socket and read
 * the pointer from there.
 *
 * Return: the congestion control; release it with gl_base_put().  On error an ERR_PTR():
 * -EOPNOTSUPP for one written in BPF, as its lifetime is not a module's, or the error of
 * setsockopt(TCP_CONGESTION).
 */
const struct tcp_congestion_ops *gl_base_get(const char *name)
{
	const struct tcp_congestion_ops *base;
	struct socket *sock;
	int err;

	err = sock_create_kern(&init_net, PF_INET, SOCK_STREAM, IPPROTO_TCP, &sock);
	if (err)
		return ERR_PTR(err);
	err = sock->ops->setsockopt(sock, SOL_TCP, TCP_CONGESTION,
				    KERNEL_SOCKPTR((void *)name), strlen(name));
	base = inet_csk(sock->sk)->icsk_ca_ops;
	if (!err && gl_is_bpf(base->owner))
		err = -EOPNOTSUPP;
	else if (!err && !try_module_get(base->owner))
		err = -ENOENT;
	sock_release(sock);
	return err ? ERR_PTR(err) : base;
}
EXPORT_SYMBOL_GPL(gl_base_get);

/**
 * gl_base_put() - release a base
 * @base: from gl_base_get()
 */
void gl_base_put(const struct tcp_congestion_ops *base)
{
	module_put(base->owner);
}
EXPORT_SYMBOL_GPL(gl_base_put);

/**
 * gl_pace_as_tcp() - set the pacing rate as TCP does without cong_control()
 * @sk: the connection, locked
 *
 * TCP leaves the pacing rate to a congestion control with cong_control().  A client's SYN-ACK
 * is acknowledged before init(), which may find that the connection runs reno: call this while
 * the state is TCP_SYN_SENT.  It is tcp_update_pacing_rate(), which is not exported.
 */
void gl_pace_as_tcp(struct sock *sk)
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
	WRITE_ONCE(sk->sk_pacing_rate, min_t(u64, rate, READ_ONCE(sk->sk_max_pacing_rate)));
}
EXPORT_SYMBOL_GPL(gl_pace_as_tcp);

/**
 * gl_base_clone() - copy a base, without its registration
 * @ops: the copy; keeps its name
 * @base: the base
 * @owner: the copy's module
 *
 * The copy has the base's flags too, so an application that may not select the base
 * (tcp_allowed_congestion_control) may not select the copy.
 */
void gl_base_clone(struct tcp_congestion_ops *ops,
		   const struct tcp_congestion_ops *base, struct module *owner)
{
	char name[TCP_CA_NAME_MAX];

	strscpy(name, ops->name, sizeof(name));
	*ops = *base;
	strscpy(ops->name, name, sizeof(ops->name));
	INIT_LIST_HEAD(&ops->list);
	ops->key = 0;
	ops->owner = owner;
}
EXPORT_SYMBOL_GPL(gl_base_clone);
