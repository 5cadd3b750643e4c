// SPDX-License-Identifier: GPL-2.0
/* The congestion controls that ours are built around. */
#include <linux/module.h>
#include <linux/net.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/**
 * gl_base_get() - find a congestion control, and keep its module
 * @name: its name; its module is loaded if it is not there
 *
 * tcp_ca_find() is not exported, but a socket can be asked for a congestion
 * control: borrow its.
 *
 * Return: what gl_base_put() takes; what setsockopt(TCP_CONGESTION) says.
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
	if (!err && !try_module_get(base->owner))
		err = -ENOENT;
	sock_release(sock);
	return err ? ERR_PTR(err) : base;
}
EXPORT_SYMBOL_GPL(gl_base_get);

/**
 * gl_base_put() - let a base go
 * @base: from gl_base_get()
 */
void gl_base_put(const struct tcp_congestion_ops *base)
{
	module_put(base->owner);
}
EXPORT_SYMBOL_GPL(gl_base_put);

/**
 * gl_base_clone() - make a clone of a base, all but what registering has written
 * @ops: the clone; keeps its name
 * @base: the base
 * @owner: the clone's module
 *
 * The clone has the base's flags: an application that may not have the base
 * (tcp_allowed_congestion_control) may not have the clone.
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
