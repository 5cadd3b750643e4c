// SPDX-License-Identifier: GPL-2.0
/* Counters: /proc/net/greenlane, a line each, per network namespace. */
#include <linux/proc_fs.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>

#include "gl_internal.h"

static const char * const gl_mib_name[GL_MIBS] = {
	[GL_MIB_DATA]			= "DataSent",
	[GL_MIB_DATABYTES]		= "DataSentBytes",
	[GL_MIB_IMPORTANT]		= "ImportantSent",
	[GL_MIB_IMPORTANTBYTES]		= "ImportantSentBytes",
	[GL_MIB_ECHOSENT]		= "EchoSent",
	[GL_MIB_ECHORECEIVED]		= "EchoReceived",
	[GL_MIB_CLOCKBYTE]		= "ClockByteSent",
	[GL_MIB_CLOCKMSS]		= "ClockMssSent",
	[GL_MIB_CLOCKBYTES]		= "ClockSentBytes",
	[GL_MIB_CLOCKRECEIVED]		= "ClockReceived",
	[GL_MIB_CLOCKECHOSENT]		= "ClockEchoSent",
	[GL_MIB_CLOCKECHORECEIVED]	= "ClockEchoReceived",
	[GL_MIB_CLOCKECHOCONSUMED]	= "ClockEchoConsumed",
	[GL_MIB_CONTROL]		= "ControlSent",
	[GL_MIB_HANDSHAKE]		= "HandshakeMarked",
	[GL_MIB_LOSSBYECHO]		= "LossByEcho",
	[GL_MIB_REARMEDBYRTO]		= "RearmedByRto",
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
	[GL_MIB_SCHEDULED]		= "ScheduledSent",
	[GL_MIB_UNCREDITED]		= "Uncredited",
	[GL_MIB_REQUESTSENT]		= "RequestSent",
	[GL_MIB_REQUESTRETRIED]		= "RequestRetried",
	[GL_MIB_REQUESTRECEIVED]	= "RequestReceived",
	[GL_MIB_CREDITSENT]		= "CreditSent",
	[GL_MIB_CREDITTHROTTLED]	= "CreditThrottled",
	[GL_MIB_CREDITRECEIVED]		= "CreditReceived",
	[GL_MIB_CREDITWASTED]		= "CreditWasted",
	[GL_MIB_CREDITLOST]		= "CreditLost",
	[GL_MIB_MESSAGE]		= "MessageSent",
	[GL_MIB_SHORT]			= "ShortSent",
	[GL_MIB_MESSAGEBEGUN]		= "MessageBegun",
	[GL_MIB_MESSAGEENDED]		= "MessageEnded",
	[GL_MIB_SENDERDEAD]		= "SenderDead",
	[GL_MIB_SENDERSNAMED]		= "SendersNamed",
	[GL_MIB_NAMINGLIMITED]		= "NamingLimited",
	[GL_MIB_SHARESENT]		= "ShareSent",
	[GL_MIB_SHARERECEIVED]		= "ShareReceived",
	[GL_MIB_MARKSUPPRESSED]		= "MarkSuppressed",
	[GL_MIB_MARKPASSED]		= "MarkPassed",
};

/**
 * gl_add_stats() - add to a counter of a namespace
 * @net: the namespace
 * @mib: the counter
 * @n: what to add
 *
 * In any context but a hard interrupt.
 */
void gl_add_stats(const struct net *net, enum gl_mib mib, u64 n)
{
	/* On 32-bit machines a reader may see half of an update, which is harmless here. */
	this_cpu_add(gl_net(net)->counters->n[mib], n);
}
EXPORT_SYMBOL_GPL(gl_add_stats);

static int gl_stats_show(struct seq_file *seq, void *v)
{
	const struct gl_net *gn = gl_net(seq_file_single_net(seq));
	int mib, cpu;

	for (mib = 0; mib < GL_MIBS; mib++) {
		u64 sum = 0;

		for_each_possible_cpu(cpu)
			sum += READ_ONCE(per_cpu_ptr(gn->counters, cpu)->n[mib]);
		seq_printf(seq, "%-20s %llu\n", gl_mib_name[mib], sum);
	}
	return 0;
}

int gl_stats_net_init(struct net *net)
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

void gl_stats_net_exit(struct net *net)
{
	remove_proc_entry("greenlane", net->proc_net);
	free_percpu(gl_net(net)->counters);
}
