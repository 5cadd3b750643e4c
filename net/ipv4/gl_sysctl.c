// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.greenlane_*: codepoints and their use. */
#include <linux/mutex.h>
#include <linux/sysctl.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Without it, two concurrent changes could leave two kinds with the same codepoint. */
static DEFINE_MUTEX(gl_sysctl_mutex);

/* ctl->data: the namespace's part; ctl->extra1: which kind */
static int gl_sysctl_dscp(gl_ctl_table *ctl, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	struct gl_codepoints *cp = &gn->cp;
	enum gl_kind kind = (unsigned long)ctl->extra1;
	struct ctl_table tmp = { .maxlen = sizeof(int) };
	int dscp, err;

	mutex_lock(&gl_sysctl_mutex);
	/* An empty write does not change tmp: it must have the old value. */
	dscp = cp->dscp[kind];
	tmp.data = &dscp;
	err = proc_dointvec(&tmp, write, buffer, lenp, ppos);
	if (!err && write && !gl_codepoints_set(cp, kind, dscp))
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

/* ctl->data: the namespace's part; ctl->extra1: the offset of a u8, 0 or 1 */
static int gl_sysctl_bool(gl_ctl_table *ctl, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	u8 *value = (void *)gn + (uintptr_t)ctl->extra1;
	int err = gl_proc_bool(value, write, buffer, lenp, ppos);

	return err ?: write ? gl_activate(gn->net) : 0;
}

/* ctl->data: the namespace's part.  What connections use cannot be taken away again. */
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

#define GL_SYSCTL_DSCP(name, kind) {				\
	.procname	= "greenlane_dscp_" name,		\
	.mode		= 0644,					\
	.proc_handler	= gl_sysctl_dscp,			\
	.extra1		= (void *)(unsigned long)(kind),	\
}

#define GL_SYSCTL_BOOL(name, field) {				\
	.procname	= "greenlane_" name,			\
	.mode		= 0644,					\
	.proc_handler	= gl_sysctl_bool,			\
	.extra1		= (void *)offsetof(struct gl_net, field),	\
}

static const struct ctl_table gl_sysctl_template[] = {
	GL_SYSCTL_DSCP("data", GL_DATA),
	GL_SYSCTL_DSCP("important", GL_IMPORTANT),
	GL_SYSCTL_DSCP("clock", GL_CLOCK),
	GL_SYSCTL_DSCP("clock_echo", GL_CLOCK_ECHO),
	GL_SYSCTL_DSCP("control", GL_CONTROL),
	GL_SYSCTL_DSCP("scheduled", GL_SCHEDULED),
	GL_SYSCTL_DSCP("request", GL_REQUEST),
	GL_SYSCTL_DSCP("credit", GL_CREDIT),
	GL_SYSCTL_DSCP("share", GL_SHARE),
	GL_SYSCTL_DSCP("message", GL_MESSAGE),
	GL_SYSCTL_DSCP("message_end", GL_MESSAGE_END),
	GL_SYSCTL_DSCP("spent", GL_SPENT),
	GL_SYSCTL_DSCP("spent_end", GL_SPENT_END),
	GL_SYSCTL_BOOL("protect", protect),
	GL_SYSCTL_BOOL("ecn", ecn),
	{
		.procname	= "greenlane_active",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_active,
	},
};

/**
 * gl_sysctl_add() - register sysctls below net.ipv4 in a namespace
 * @net: the namespace
 * @template: the entries, with the offset of each variable from @base in .data
 * @n: number of entries
 * @base: the namespace's variables
 *
 * Return: what gl_sysctl_remove() takes, or NULL if memory is short.
 */
struct ctl_table_header *gl_sysctl_add(struct net *net,
				       const struct ctl_table *template,
				       size_t n, void *base)
{
	struct ctl_table_header *header;
	struct ctl_table *table;
	size_t i;

	/* Before 6.6 a table ends with an empty entry. */
	table = kcalloc(n + 1, sizeof(*table), GFP_KERNEL);
	if (!table)
		return NULL;
	for (i = 0; i < n; i++) {
		table[i] = template[i];
		table[i].data = base + (uintptr_t)template[i].data;
	}
	header = gl_register_net_sysctl(net, "net/ipv4", table, n);
	if (!header)
		kfree(table);
	return header;
}
EXPORT_SYMBOL_GPL(gl_sysctl_add);

/**
 * gl_sysctl_remove() - undo gl_sysctl_add()
 * @header: returned by gl_sysctl_add()
 */
void gl_sysctl_remove(struct ctl_table_header *header)
{
	const struct ctl_table *table = header->ctl_table_arg;

	unregister_net_sysctl_table(header);
	kfree(table);
}
EXPORT_SYMBOL_GPL(gl_sysctl_remove);

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
	gl_sysctl_remove(gl_net(net)->sysctl);
}
