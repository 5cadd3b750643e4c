// SPDX-License-Identifier: GPL-2.0
/* A namespace's counters and sysctls.
 *
 * /proc/net/greenlane has one line per counter: first the counters of the tagging layer, then those
 * of each protocol.  net.ipv4.greenlane_* are the codepoints, and whether they are protected.
 */
#include <linux/mutex.h>
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/sysctl.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

/* --- counters ---------------------------------------------------------------- */

static const char * const gl_mib_name[GL_MIBS] = {
	[GL_MIB_CONTROL]		= "ControlSent",
	[GL_MIB_HANDSHAKE]		= "HandshakeMarked",
	[GL_MIB_FALLBACK]		= "Fallback",
	[GL_MIB_PEERWITHOUT]		= "PeerWithout",
	[GL_MIB_REMARKED]		= "HandshakeRemarked",
	[GL_MIB_UNSUPPORTED]		= "Unsupported",
	[GL_MIB_STRIPPED]		= "Stripped",
	[GL_MIB_SPLIT]			= "Split",
	[GL_MIB_SPLITFAILED]		= "SplitFailed",
	[GL_MIB_KICKS]			= "Kicks",
	[GL_MIB_KICKSOWNED]		= "KicksOwned",
	[GL_MIB_NOMEMORY]		= "NoMemory",
	[GL_MIB_INVALID]		= "Invalid",
	[GL_MIB_TRIMMED]		= "TrimmedReceived",
	[GL_MIB_REPORTSENT]		= "TrimReportSent",
	[GL_MIB_REPORTRECEIVED]		= "TrimReportReceived",
};

/**
 * gl_add_stats() - add to a counter of the tagging layer, in a namespace
 * @net: the namespace
 * @mib: the counter
 * @n: number to add
 *
 * In any context but a hard interrupt.
 */
void gl_add_stats(const struct net *net, enum gl_mib mib, u64 n)
{
	/* On 32-bit machines a reader may see half of an update, which is harmless here. */
	this_cpu_add(gl_net(net)->counters->n[mib], n);
}
EXPORT_SYMBOL_GPL(gl_add_stats);

/* @counter: the counter's offset in struct gl_counters */
static void gl_stats_print(struct seq_file *seq, const char *name, size_t counter)
{
	const struct gl_net *gn = gl_net(seq_file_single_net(seq));
	u64 sum = 0;
	int cpu;

	for_each_possible_cpu(cpu)
		sum += READ_ONCE(*(u64 *)((void *)per_cpu_ptr(gn->counters, cpu) + counter));
	seq_printf(seq, "%-20s %llu\n", name, sum);
}

/* Print the layer's counters, and the counters of each protocol whose module is loaded. */
static int gl_stats_show(struct seq_file *seq, void *v)
{
	unsigned int slot, i;

	for (i = 0; i < GL_MIBS; i++)
		gl_stats_print(seq, gl_mib_name[i], offsetof(struct gl_counters, n[i]));
	rcu_read_lock();
	for (slot = 0; slot < GL_PROTOCOLS; slot++) {
		const struct gl_protocol *protocol = gl_protocol_at(slot);

		for (i = 1; protocol && i < protocol->counters; i++)
			gl_stats_print(seq, protocol->counter[i],
				       offsetof(struct gl_counters, protocol[slot][i]));
	}
	rcu_read_unlock();
	return 0;
}

static int gl_stats_net_init(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gn->counters = alloc_percpu(struct gl_counters);
	if (!gn->counters)
		return -ENOMEM;
	if (!proc_create_net_single("greenlane", 0444, net->proc_net,
				    gl_stats_show, NULL)) {
		free_percpu(gn->counters);
		return -ENOMEM;
	}
	return 0;
}

static void gl_stats_net_exit(struct net *net)
{
	remove_proc_entry("greenlane", net->proc_net);
	free_percpu(gl_net(net)->counters);
}

/* --- sysctls ----------------------------------------------------------------- */

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

/* ctl->data: the namespace's struct gl_net; ctl->extra1: the offset of a u8 in it */
static int gl_sysctl_switch(gl_ctl_table *ctl, int write, void *buffer, size_t *lenp, loff_t *ppos)
{
	struct gl_net *gn = ctl->data;
	int err = gl_proc_bool((u8 *)gn + (unsigned long)ctl->extra1, write, buffer, lenp, ppos);

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
		.proc_handler	= gl_sysctl_switch,
		.extra1		= (void *)offsetof(struct gl_net, ecn),
	},
	{
		.procname	= "greenlane_active",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_active,
	},
	{
		.procname	= "greenlane_trim",
		.mode		= 0644,
		.proc_handler	= gl_sysctl_switch,
		.extra1		= (void *)offsetof(struct gl_net, trim),
	},
};
#undef GREENLANE_CODEPOINT

static int gl_sysctl_net_init(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gl_codepoints_init(&gn->cp);
	gn->sysctl = gl_sysctl_add(net, gl_sysctl_template,
				   ARRAY_SIZE(gl_sysctl_template), gn);
	return gn->sysctl ? 0 : -ENOMEM;
}

static void gl_sysctl_net_exit(struct net *net)
{
	struct gl_net *gn = gl_net(net);

	gl_sysctl_remove(gn->sysctl);
	/* No writer can change the sysctl any more. */
	gl_protect_set(gn, 0);
}

/* --- a namespace ------------------------------------------------------------- */

int gl_proc_net_init(struct net *net)
{
	int err = gl_stats_net_init(net);

	if (err)
		return err;
	gl_trim_net_init(gl_net(net));
	err = gl_sysctl_net_init(net);
	if (err)
		gl_stats_net_exit(net);
	return err;
}

void gl_proc_net_exit(struct net *net)
{
	gl_sysctl_net_exit(net);
	gl_trim_net_exit(gl_net(net));
	gl_stats_net_exit(net);
}
