// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.greenlane_*: codepoints and their use. */
#include <linux/mutex.h>
#include <linux/sysctl.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Without this lock, two concurrent changes could leave two codepoints with the same DSCP, or count
 * a namespace twice in gl_protect_n.
 */
static DEFINE_MUTEX(gl_sysctl_mutex);

/* ctl->data: the namespace's struct gl_net; ctl->extra1: enum gl_codepoint */
static int gl_sysctl_dscp(gl_ctl_table *ctl, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	enum gl_codepoint cp = (unsigned long)ctl->extra1;
	struct ctl_table tmp = { .maxlen = sizeof(int) };
	int dscp, err;

	mutex_lock(&gl_sysctl_mutex);
	/* An empty write does not change tmp: it must have the old value. */
	dscp = gn->cp.dscp[cp];
	tmp.data = &dscp;
	err = proc_dointvec(&tmp, write, buffer, lenp, ppos);
	if (!err && write && !gl_codepoints_set(&gn->cp, cp, dscp))
		err = -EINVAL;
	mutex_unlock(&gl_sysctl_mutex);
	return err ?: write ? gl_activate(gn->net) : 0;
}

static int gl_proc_bool(u8 *value, int write, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct ctl_table tmp = {
		.data	= value,
		.maxlen	= sizeof(*value),
		.extra1	= SYSCTL_ZERO,
		.extra2	= SYSCTL_ONE,
	};

	return proc_dou8vec_minmax(&tmp, write, buffer, lenp, ppos);
}

/* ctl->data: the namespace's struct gl_net */
static int gl_sysctl_ecn(gl_ctl_table *ctl, int write, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	int err = gl_proc_bool(&gn->ecn, write, buffer, lenp, ppos);

	return err ?: write ? gl_activate(gn->net) : 0;
}

/* ctl->data: the namespace's struct gl_net */
static int gl_sysctl_protect(gl_ctl_table *ctl, int write, void *buffer,
			     size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	u8 protect;
	int err;

	mutex_lock(&gl_sysctl_mutex);
	protect = gn->protect;
	err = gl_proc_bool(&protect, write, buffer, lenp, ppos);
	if (!err && write)
		gl_protect_set(gn, protect);
	mutex_unlock(&gl_sysctl_mutex);
	return err ?: write ? gl_activate(gn->net) : 0;
}

/* ctl->data: the namespace's struct gl_net.  Connections use the hooks, so they stay registered. */
static int gl_sysctl_active(gl_ctl_table *ctl, int write, void *buffer,
			    size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	u8 active = READ_ONCE(gn->active);
	int err = gl_proc_bool(&active, write, buffer, lenp, ppos);

	if (err || !write)
		return err;
	if (active)
		return gl_activate(gn->net);
	return READ_ONCE(gn->active) ? -EBUSY : 0;
}

#define GREENLANE_CODEPOINT(symbol, name, dscp, colour) {		\
	.procname	= "greenlane_dscp_" name,			\
	.mode		= 0644,						\
	.proc_handler	= gl_sysctl_dscp,				\
	.extra1		= (void *)(unsigned long)GL_CP_##symbol,	\
},

static const struct ctl_table gl_sysctl_template[] = {
	GREENLANE_CODEPOINTS
	{
		.procname	= "greenlane_protect",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_protect,
	},
	{
		.procname	= "greenlane_ecn",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_ecn,
	},
	{
		.procname	= "greenlane_active",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_active,
	},
};
#undef GREENLANE_CODEPOINT

int gl_sysctl_net_init(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gl_codepoints_init(&gn->cp);
	gn->sysctl = gl_sysctl_add(net, gl_sysctl_template,
				   ARRAY_SIZE(gl_sysctl_template), gn);
	return gn->sysctl ? 0 : -ENOMEM;
}

void gl_sysctl_net_exit(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gl_sysctl_remove(gn->sysctl);
	/* No writer can change the sysctl any more. */
	gl_protect_set(gn, 0);
}
