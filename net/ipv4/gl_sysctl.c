// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.greenlane_*: the codepoints, and how they are used. */
#include <linux/mutex.h>
#include <linux/sysctl.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* Two codepoints that change at once could end up the same. */
static DEFINE_MUTEX(gl_sysctl_mutex);

/* ctl->data: the namespace's table; ctl->extra1: which kind */
static int gl_sysctl_dscp(gl_ctl_table *ctl, int write, void *buffer,
			  size_t *lenp, loff_t *ppos)
{
	struct gl_codepoints *cp = ctl->data;
	enum gl_kind kind = (unsigned long)ctl->extra1;
	struct ctl_table tmp = { .maxlen = sizeof(int) };
	int dscp, err;

	mutex_lock(&gl_sysctl_mutex);
	/* An empty write leaves what is there, so it has to be there still. */
	dscp = cp->dscp[kind];
	tmp.data = &dscp;
	err = proc_dointvec(&tmp, write, buffer, lenp, ppos);
	if (!err && write && !gl_codepoints_set(cp, kind, dscp))
		err = -EINVAL;
	mutex_unlock(&gl_sysctl_mutex);
	return err;
}

#define GL_SYSCTL_DSCP(name, kind) {				\
	.procname	= "greenlane_dscp_" name,		\
	.data		= (void *)offsetof(struct gl_net, cp),	\
	.mode		= 0644,					\
	.proc_handler	= gl_sysctl_dscp,			\
	.extra1		= (void *)(unsigned long)(kind),	\
}

#define GL_SYSCTL_BOOL(name, field) {				\
	.procname	= "greenlane_" name,			\
	.data		= (void *)offsetof(struct gl_net, field),	\
	.maxlen		= sizeof(u8),				\
	.mode		= 0644,					\
	.proc_handler	= proc_dou8vec_minmax,			\
	.extra1		= SYSCTL_ZERO,				\
	.extra2		= SYSCTL_ONE,				\
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
};

/**
 * gl_sysctl_add() - net.ipv4.* of a namespace
 * @net: namespace
 * @template: for all namespaces; .data is an offset in what is at @base
 * @n: entries of it
 * @base: the namespace's own
 *
 * Return: what gl_sysctl_remove() takes, or NULL.
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
 * @header: from there
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
