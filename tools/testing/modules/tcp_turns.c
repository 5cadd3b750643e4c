// SPDX-License-Identifier: GPL-2.0
/* The smallest receiver-driven transport (include/net/rd_core.h), for tests: a table of packets,
 * and a policy that differs from ExpressPass's in every decision.
 *
 * It assumes 1 Gbit/s for each link.  A credit costs twice the transmission time of its packets.
 * The shortest message is scheduled first.  A connection has no rate, and ignores lost credits.
 *
 * For selftests/transport_turns.py.
 */
#include <linux/module.h>
#include <net/rd_core.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

#define TURNS_CODE_HELLO	51
#define TURNS_CODE_REQUEST	52
#define TURNS_CODE_CREDIT	53
#define TURNS_CODE_PROBE	54
#define TURNS_CODE_PROBE_ACK	55

/* The missing part, for which registration is refused. */
enum turns_without {
	TURNS_COMPLETE,
	TURNS_WITHOUT_POLICY,
	TURNS_WITHOUT_COST,
	TURNS_WITHOUT_CODE,
	TURNS_WITHOUT_WORD,
	TURNS_WITHOUT_FIRST,
	TURNS_WITHOUT_FALLBACK,
};

static int without;
module_param(without, int, 0);
MODULE_PARM_DESC(without, "register without a required part, enum turns_without");

static const char * const turns_counter_name[RD_COUNTERS] = {
	RD_COUNTER_NAMES("Turns"),
};

static struct gl_protocol turns_protocol;

static struct gl_kind turns_kind[RD_KINDS] = {
	[RD_SCHEDULED] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_MESSAGE,
		.sent		= RD_SCHEDULEDSENT,
	},
	[RD_UNSCHEDULED] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
		.sent		= RD_UNSCHEDULEDSENT,
	},
	[RD_CONTROL] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_PROTECTED,
	},
	[RD_REQUEST] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= TURNS_CODE_REQUEST,
	},
	[RD_CREDIT] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_CREDIT,
		.code		= TURNS_CODE_CREDIT,
	},
	[RD_PROBE] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= TURNS_CODE_PROBE,
		.words		= 1,
		.flags		= GL_KIND_ANSWERED,
		.received	= RD_PROBERECEIVED,
	},
	[RD_PROBE_ACK] = {
		.protocol	= &turns_protocol,
		.codepoint	= GL_CP_PROTECTED,
		.code		= TURNS_CODE_PROBE_ACK,
		.flags		= GL_KIND_TCPS,
		.sent		= RD_PROBEACKSENT,
		.received	= RD_PROBEACKRECEIVED,
	},
};

static struct gl_protocol turns_protocol __read_mostly = {
	.hello		= TURNS_CODE_HELLO,
	.told_as	= GL_CP_SPENT_END,
	.kind		= turns_kind,
	.kinds		= RD_KINDS,
	.control	= &turns_kind[RD_CONTROL],
	.answer		= &turns_kind[RD_PROBE_ACK],
	.counter	= turns_counter_name,
	.counters	= RD_COUNTERS,
};

static u32 turns_mbit(const struct sock *sk)
{
	return 1000;
}

static enum rd_pick turns_pick(const struct sock *sk)
{
	return RD_PICK_SHORTEST;
}

static u64 turns_cost(const struct sock *sk, const struct rd_sock *rs)
{
	return 2 * rd_credit_ps(sk, rs);
}

static struct rd_policy turns_policy __read_mostly = {
	.mbit	= turns_mbit,
	.pick	= turns_pick,
	.cost	= turns_cost,
};

static struct tcp_congestion_ops turns_reno __read_mostly = GL_RENO("turns-reno");

static struct rd_transport turns __read_mostly = {
	.t = {
		.ops = {
			.name	= "turns",
			.owner	= THIS_MODULE,
		},
		.complete	= rd_complete,
		.protocol	= &turns_protocol,
		.sock_size	= sizeof(struct rd_sock),
	},
	.fallback	= &turns_reno,
	.policy		= &turns_policy,
};

static const struct rd_first_rtt turns_no_first;

static void turns_leave_out(void)
{
	switch (without) {
	case TURNS_WITHOUT_POLICY:
		turns.policy = NULL;
		break;
	case TURNS_WITHOUT_COST:
		turns_policy.cost = NULL;
		break;
	case TURNS_WITHOUT_CODE:
		turns_kind[RD_CREDIT].code = 0;
		break;
	case TURNS_WITHOUT_WORD:
		turns_kind[RD_PROBE].words = 0;
		break;
	case TURNS_WITHOUT_FIRST:
		turns.first = &turns_no_first;
		break;
	case TURNS_WITHOUT_FALLBACK:
		turns.fallback = NULL;
		break;
	}
}

static int __init turns_module_init(void)
{
	turns_leave_out();
	return gl_register_transport(&turns.t);
}

static void __exit turns_module_exit(void)
{
	gl_unregister_transport(&turns.t);
}

module_init(turns_module_init);
module_exit(turns_module_exit);

MODULE_DESCRIPTION("A receiver-driven transport of greenlane's tests");
MODULE_LICENSE("GPL");
