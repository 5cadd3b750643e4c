// SPDX-License-Identifier: GPL-2.0
/* greenlane: the tagging layer
 *
 * Decides nothing, marks everything: a transport (tcp_tlt.c) says what a
 * packet is, this module writes it into the DS field of the IP header and
 * reads it back, so that a switch (sch_color.c) sees only bits.
 *
 *	 application
 *	     |
 *	    TCP ---- congestion control = transport (tcp_tlt.c)
 *	     |            ^  on_xmit          ^ on_packet     ^ on_kick
 *	 queue_xmit() ----+               LOCAL_IN            |
 *	 gl_out.c                         gl_hook.c       gl_kick.c
 *	 marks; splits a TSO packet       gl_receive.c    lets TCP send beyond
 *	 where the mark changes           answers         its window
 *	 (gl_split.c)                     (gl_owned.c)    (gl_craft.c)
 *
 * A DSCP tells a switch what may be dropped, and a receiver that data wants its ACK at once.
 * It decides nothing else, because networks change it: what the two ends say to each other
 * is in a TCP option (gl_option.c), and the handshake says whether they do (gl_handshake.c).
 *
 * How a connection of ours is known, and where its state is: TCP sends through
 * icsk_af_ops, of which it has a copy of its own, with our queue_xmit(), in its struct
 * gl_sock (gl_out.c, gl_sock.c).  The state only means something under the socket lock;
 * what comes while a process owns the socket waits there (gl_owned.c).
 */
#include <linux/module.h>
#include <linux/netfilter.h>
#include <net/net_namespace.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

#define CREATE_TRACE_POINTS
#include <trace/events/greenlane.h>

EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_important);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_echo);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_clock);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_lost);
EXPORT_TRACEPOINT_SYMBOL_GPL(greenlane_fallback);

unsigned int gl_net_id __read_mostly;

/* The transports, for routes that name a congestion control.  Written under the
 * mutex, read under RCU; a transport outlives its readers because
 * tcp_unregister_congestion_control() waits for them.
 */
#define GL_TRANSPORTS	16
static DEFINE_MUTEX(gl_transport_mutex);
static struct gl_transport *gl_transports[GL_TRANSPORTS];

/* ip route ... congctl NAME stores the key of NAME.  NULL: not one of ours. */
const struct gl_transport *gl_transport_of_key(u32 key)
{
	int i;

	for (i = 0; i < GL_TRANSPORTS; i++) {
		const struct gl_transport *t = READ_ONCE(gl_transports[i]);

		if (t && t->ops.key == key)
			return t;
	}
	return NULL;
}

/**
 * gl_register_transport() - register a transport with TCP and with us
 * @t: the transport; its ops are complete and ops.release is gl_release()
 *
 * Return: 0; -EINVAL if @t is incomplete; -ENOSPC if there are too many; what
 * tcp_register_congestion_control() says.
 */
int gl_register_transport(struct gl_transport *t)
{
	int i, err;

	if (t->ops.release != gl_release || t->sock_size < sizeof(struct gl_sock) ||
	    !t->on_xmit || !t->on_packet || !t->on_kick || !t->on_switch ||
	    !t->on_info)
		return -EINVAL;

	mutex_lock(&gl_transport_mutex);
	for (i = 0; i < GL_TRANSPORTS; i++)
		if (!gl_transports[i])
			break;
	err = -ENOSPC;
	if (i < GL_TRANSPORTS)
		err = tcp_register_congestion_control(&t->ops);
	if (!err)
		WRITE_ONCE(gl_transports[i], t);
	mutex_unlock(&gl_transport_mutex);
	return err;
}
EXPORT_SYMBOL_GPL(gl_register_transport);

/**
 * gl_unregister_transport() - undo gl_register_transport()
 * @t: the transport; no socket uses it, or its module could not go
 */
void gl_unregister_transport(struct gl_transport *t)
{
	int i;

	mutex_lock(&gl_transport_mutex);
	for (i = 0; i < GL_TRANSPORTS; i++)
		if (gl_transports[i] == t)
			WRITE_ONCE(gl_transports[i], NULL);
	tcp_unregister_congestion_control(&t->ops);
	mutex_unlock(&gl_transport_mutex);
}
EXPORT_SYMBOL_GPL(gl_unregister_transport);

static int __net_init gl_net_init(struct net *net)
{
	int err;

	err = gl_stats_net_init(net);
	if (err)
		return err;
	err = gl_sysctl_net_init(net);
	if (err)
		goto stats;
	err = gl_hook_net_init(net);
	if (err)
		goto sysctl;
	return 0;

sysctl:
	gl_sysctl_net_exit(net);
stats:
	gl_stats_net_exit(net);
	return err;
}

/* Packets pass our hooks until a grace period after this, and read what
 * gl_net_exit() frees: there is one between the two.
 */
static void __net_exit gl_net_pre_exit(struct net *net)
{
	gl_hook_net_exit(net);
}

static void __net_exit gl_net_exit(struct net *net)
{
	gl_sysctl_net_exit(net);
	gl_stats_net_exit(net);
}

/* A subsystem, not a device: a namespace's sockets are gone before it, and so
 * are the kicks, which hold references on sockets.
 */
static struct pernet_operations gl_net_ops = {
	.init		= gl_net_init,
	.pre_exit	= gl_net_pre_exit,
	.exit		= gl_net_exit,
	.id		= &gl_net_id,
	.size		= sizeof(struct gl_net),
};

static int __init gl_init(void)
{
	int err;

	gl_kick_init();
	err = register_pernet_subsys(&gl_net_ops);
	if (err)
		goto kick;
	err = gl_sockopt_init();
	if (err)
		goto net;
	return 0;

net:
	unregister_pernet_subsys(&gl_net_ops);
kick:
	gl_kick_exit();
	return err;
}

static void __exit gl_exit(void)
{
	gl_sockopt_exit();
	/* No packet reaches us after this: nothing new is held or kicked. */
	unregister_pernet_subsys(&gl_net_ops);
	gl_kick_exit();
	gl_sock_exit();
}

module_init(gl_init);
module_exit(gl_exit);

MODULE_DESCRIPTION("greenlane: decide which packet may be lost");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
