// SPDX-License-Identifier: GPL-2.0
/* ExpressPass: the speed of a socket's link, and a namespace's sysctls.  See xpass_line.h. */
#include <linux/sysctl.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>

#include "tcp_xpass.h"
#include "xpass_line.h"

unsigned int xpass_line_net_id __read_mostly;

/**
 * xpass_line_mbit() - the line rate of a socket's link
 * @sk: the socket
 *
 * Return: the rate, in Mbit/s.
 */
u32 xpass_line_mbit(const struct sock *sk)
{
	return xpass_path_of(sk).mbit;
}
EXPORT_SYMBOL_GPL(xpass_line_mbit);

static unsigned int xpass_line_mbit_max = RD_LINK_MBIT_MAX;

static const struct ctl_table xpass_line_sysctl_template[] = {
	GL_SYSCTL_UINT("xpass_rate", struct xpass_line, mbit, SYSCTL_ZERO, &xpass_line_mbit_max),
	GL_SYSCTL_UINT("xpass_initial", struct xpass_line, initial, SYSCTL_ONE,
		       SYSCTL_ONE_THOUSAND),
	GL_SYSCTL_UINT("xpass_pick", struct xpass_line, pick, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init xpass_line_net_init(struct net *net)
{
	struct xpass_line *line = net_generic(net, xpass_line_net_id);

	line->initial = 16;
	line->sysctl = gl_sysctl_add(net, xpass_line_sysctl_template,
				     ARRAY_SIZE(xpass_line_sysctl_template), line);
	return line->sysctl ? 0 : -ENOMEM;
}

static void __net_exit xpass_line_net_exit(struct net *net)
{
	struct xpass_line *line = net_generic(net, xpass_line_net_id);

	gl_sysctl_remove(line->sysctl);
}

static struct pernet_operations xpass_line_net_ops = {
	.init	= xpass_line_net_init,
	.exit	= xpass_line_net_exit,
	.id	= &xpass_line_net_id,
	.size	= sizeof(struct xpass_line),
};

/**
 * xpass_line_init() - give every network namespace its settings
 *
 * Return: 0, or an error.
 */
int __init xpass_line_init(void)
{
	return register_pernet_subsys(&xpass_line_net_ops);
}

/**
 * xpass_line_exit() - undo xpass_line_init()
 */
void xpass_line_exit(void)
{
	unregister_pernet_subsys(&xpass_line_net_ops);
}
