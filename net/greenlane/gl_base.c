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
