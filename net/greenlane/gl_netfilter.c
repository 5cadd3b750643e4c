// SPDX-License-Identifier: GPL-2.0
/* Netfilter hooks, LOCAL_OUT and LOCAL_IN, only in the namespaces that use greenlane.
 *
 * LOCAL_OUT runs before every other hook, while the caller in TCP still holds the socket: when
 * NFQUEUE reinjects a packet, no caller does.  LOCAL_IN runs after every other hook, so a packet
 * that the firewall drops is never answered.
 *
 * Even an empty hook costs each packet of a namespace some cycles.  So a namespace becomes
 * active, and gets the hooks, when it first uses a transport:
 *
 *	it is created and inherits a transport as its default congestion control
 *	net.ipv4.greenlane_* is written
 *	a connection in it runs the init() of a transport
 *
 * In the last case a work item registers the hooks, because init() may not sleep.  The
 * handshakes before have passed without the hooks, so their connections run their base.  An
 * active namespace stays active until it is removed.
 */
#include <linux/mutex.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/netfilter_ipv6.h>
#include <linux/workqueue.h>

#include "gl_internal.h"

#define GL_HOOK(function, family, point, order) {	\
	.hook		= function,			\
	.pf		= family,			\
	.hooknum	= point,			\
	.priority	= order,			\
}

static const struct nf_hook_ops gl_hooks[] = {
	GL_HOOK(gl_local_out, NFPROTO_IPV4, NF_INET_LOCAL_OUT, NF_IP_PRI_FIRST),
	GL_HOOK(gl_local_in, NFPROTO_IPV4, NF_INET_LOCAL_IN, NF_IP_PRI_LAST),
#if IS_ENABLED(CONFIG_IPV6)
	GL_HOOK(gl_local_out, NFPROTO_IPV6, NF_INET_LOCAL_OUT, NF_IP6_PRI_FIRST),
	GL_HOOK(gl_local_in, NFPROTO_IPV6, NF_INET_LOCAL_IN, NF_IP6_PRI_LAST),
#endif
};

/* Protects gl_net.active and gl_net.leaving of all namespaces. */
static DEFINE_MUTEX(gl_active_mutex);

/**
 * gl_activate() - register the hooks of a namespace, unless they are registered
 * @net: the namespace
 *
 * May sleep.
 *
 * Return: 0, or the error of nf_register_net_hooks().
 */
int gl_activate(struct net *net)
{
	struct gl_net *gn = gl_net(net);
	int err = 0;

	if (READ_ONCE(gn->active))
		return 0;
	mutex_lock(&gl_active_mutex);
	if (!gn->active && !gn->leaving) {
		err = nf_register_net_hooks(net, gl_hooks, ARRAY_SIZE(gl_hooks));
		if (!err)
			WRITE_ONCE(gn->active, true);
	}
	mutex_unlock(&gl_active_mutex);
	return err;
}

static void gl_active_work(struct work_struct *work)
{
	gl_activate(container_of(work, struct gl_net, activate)->net);
}

/**
 * gl_activate_soon() - as gl_activate(), from any context
 * @net: a namespace that holds a connection, so it stays
 *
 * If memory is short, the next connection tries again.
 */
void gl_activate_soon(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	if (unlikely(!READ_ONCE(gn->active)))
		schedule_work(&gn->activate);
}

static bool gl_is_default(struct net *net)
{
	const struct tcp_congestion_ops *ops;
	bool is;

	rcu_read_lock();
	ops = rcu_dereference(net->ipv4.tcp_congestion_control);
	is = ops && ops->release == gl_release;
	rcu_read_unlock();
	return is;
}

int gl_active_net_init(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gn->net = net;
	INIT_WORK(&gn->activate, gl_active_work);
	return gl_is_default(net) ? gl_activate(net) : 0;
}

/* The namespace has no connection that could call gl_activate_soon(), but a process may still write
 * a sysctl.
 */
void gl_active_net_exit(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	mutex_lock(&gl_active_mutex);
	gn->leaving = true;
	mutex_unlock(&gl_active_mutex);
	cancel_work_sync(&gn->activate);
	if (gn->active)
		nf_unregister_net_hooks(net, gl_hooks, ARRAY_SIZE(gl_hooks));
}
