// SPDX-License-Identifier: GPL-2.0
/* A transport of the tests, unknown to the tagging layer: this file has its kinds, counters, sysctl
 * and socket option, with codes that are reserved for tests.
 *
 *	sender                                receiver
 *	d d d L             ------------->    L: acknowledged at once
 *	word: how many L    ------------->    counted, answered
 *	                    <-------------    answer
 *
 * For selftests/transport_toy.py.
 */
#include <linux/module.h>
#include <net/greenlane.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>

#define TOY_CODE_HELLO	48
#define TOY_CODE_WORD	49
#define TOY_CODE_ANSWER	50

#define TOY_SHOUT	GREENLANE_AEOLUS	/* another transport's option */
#define TOY_SHOUT_MAX	7

enum toy_counter {
	TOY_DATASENT = 1,
	TOY_LASTSENT,
	TOY_LASTRECEIVED,
	TOY_WORDRECEIVED,
	TOY_ANSWERSENT,
	TOY_ANSWERRECEIVED,
	TOY_SUM,
	TOY_COUNTERS,
};

static const char * const toy_counter_name[TOY_COUNTERS] = {
	[TOY_DATASENT]		= "ToyDataSent",
	[TOY_LASTSENT]		= "ToyLastSent",
	[TOY_LASTRECEIVED]	= "ToyLastReceived",
	[TOY_WORDRECEIVED]	= "ToyWordReceived",
	[TOY_ANSWERSENT]	= "ToyAnswerSent",
	[TOY_ANSWERRECEIVED]	= "ToyAnswerReceived",
	[TOY_SUM]		= "ToySum",
};

enum toy_kind {
	TOY_DATA,
	TOY_LAST,
	TOY_WORD,
	TOY_ANSWER,
	TOY_CONTROL,
	TOY_KINDS,
};

static struct gl_protocol toy_protocol;

static const struct gl_kind toy_kind[TOY_KINDS] = {
	[TOY_DATA] = {
		.protocol	= &toy_protocol,
		.codepoint	= GL_CP_MESSAGE,
		.sent		= TOY_DATASENT,
	},
	[TOY_LAST] = {
		.protocol	= &toy_protocol,
		.codepoint	= GL_CP_SPENT,
		.flags		= GL_KIND_PROMPT,
		.before		= &toy_kind[TOY_DATA],
		.sent		= TOY_LASTSENT,
		.received	= TOY_LASTRECEIVED,
	},
	[TOY_WORD] = {
		.protocol	= &toy_protocol,
		.codepoint	= GL_CP_CREDIT,
		.code		= TOY_CODE_WORD,
		.words		= 1,
		.flags		= GL_KIND_ANSWERED,
		.received	= TOY_WORDRECEIVED,
	},
	[TOY_ANSWER] = {
		.protocol	= &toy_protocol,
		.codepoint	= GL_CP_SCHEDULED,
		.code		= TOY_CODE_ANSWER,
		.flags		= GL_KIND_TCPS,
		.sent		= TOY_ANSWERSENT,
		.received	= TOY_ANSWERRECEIVED,
	},
	[TOY_CONTROL] = {
		.protocol	= &toy_protocol,
		.codepoint	= GL_CP_UNSCHEDULED,
	},
};

static struct gl_protocol toy_protocol __read_mostly = {
	.hello		= TOY_CODE_HELLO,
	.told_as	= GL_CP_SPENT,
	.kind		= toy_kind,
	.kinds		= TOY_KINDS,
	.control	= &toy_kind[TOY_CONTROL],
	.answer		= &toy_kind[TOY_ANSWER],
	.counter	= toy_counter_name,
	.counters	= TOY_COUNTERS,
};

/**
 * struct toy - a connection; socket lock
 * @gs: greenlane's part
 * @lasts: packets of kind TOY_LAST that were sent
 * @reported: number of these packets in the last word to the peer
 * @shout: factor of a word, less 1
 */
struct toy {
	struct gl_sock	gs;
	u32		lasts;
	u32		reported;
	u32		shout;
};

/* struct toy_net - a namespace's part: net.ipv4.toy_words, 0 for no words */
struct toy_net {
	unsigned int		words;
	struct ctl_table_header	*sysctl;
};

static unsigned int toy_net_id __read_mostly;

static struct toy *toy_of(struct gl_sock *gs)
{
	return container_of(gs, struct toy, gs);
}

static const struct gl_kind *toy_on_xmit(struct sock *sk, struct gl_sock *gs,
					 const struct gl_seg *seg)
{
	return &toy_kind[seg->end_seq == tcp_sk(sk)->write_seq ? TOY_LAST : TOY_DATA];
}

static void toy_on_last(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
			u32 end_seq)
{
	toy_of(gs)->lasts++;
	gl_kick_soon(sk, gs);
}

static void toy_on_kick(struct sock *sk, struct gl_sock *gs)
{
	const struct toy_net *tn = net_generic(sock_net(sk), toy_net_id);
	struct toy *toy = toy_of(gs);
	u32 word = toy->lasts * (toy->shout + 1);

	if (!gl_marking(gs) || toy->reported == toy->lasts || !READ_ONCE(tn->words))
		return;
	toy->reported = toy->lasts;
	gl_send_words(sk, gs, &toy_kind[TOY_WORD], &word, 1);
}

static enum gl_verdict toy_on_packet(struct sock *sk, struct gl_sock *gs,
				     const struct gl_kind *kind, const struct gl_seg *seg)
{
	if (kind == &toy_kind[TOY_WORD])
		gl_count(sock_net(sk), &toy_protocol, TOY_SUM, seg->word[0]);
	return GL_PASS;
}

static void toy_on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
	toy_of(gs)->reported = toy_of(gs)->lasts;
}

static void toy_on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
}

static int toy_set_shout(struct sock *sk, struct gl_sock *gs, int shout)
{
	toy_of(gs)->shout = shout;
	return 0;
}

static int toy_get_shout(const struct sock *sk, struct gl_sock *gs)
{
	return toy_of(gs)->shout;
}

static const struct gl_sockopt toy_sockopt[] = {
	{ TOY_SHOUT, TOY_SHOUT_MAX, .set = toy_set_shout, .get = toy_get_shout },
	{}
};

static void toy_init(struct sock *sk)
{
	gl_attach(sk);
}

static int toy_complete(struct gl_transport *t)
{
	gl_base_clone(&t->ops, t->base, THIS_MODULE);
	t->ops.init = toy_init;
	t->ops.release = gl_release;
	return 0;
}

static struct gl_transport toy_transport __read_mostly = {
	.ops = { .name = "toy" },
	.extends	= "reno",
	.complete	= toy_complete,
	.protocol	= &toy_protocol,
	.sock_size	= sizeof(struct toy),
	.sockopt	= toy_sockopt,
	.on_xmit	= toy_on_xmit,
	.on_last	= toy_on_last,
	.on_packet	= toy_on_packet,
	.on_kick	= toy_on_kick,
	.on_switch	= toy_on_switch,
	.on_info	= toy_on_info,
};

static const struct ctl_table toy_sysctl_template[] = {
	GL_SYSCTL_UINT("toy_words", struct toy_net, words, SYSCTL_ZERO, SYSCTL_ONE),
};

static int __net_init toy_net_init(struct net *net)
{
	struct toy_net *tn = net_generic(net, toy_net_id);

	tn->words = 1;
	tn->sysctl = gl_sysctl_add(net, toy_sysctl_template, ARRAY_SIZE(toy_sysctl_template), tn);
	return tn->sysctl ? 0 : -ENOMEM;
}

static void __net_exit toy_net_exit(struct net *net)
{
	struct toy_net *tn = net_generic(net, toy_net_id);

	gl_sysctl_remove(tn->sysctl);
}

static struct pernet_operations toy_net_ops = {
	.init	= toy_net_init,
	.exit	= toy_net_exit,
	.id	= &toy_net_id,
	.size	= sizeof(struct toy_net),
};

static int __init toy_module_init(void)
{
	int err = register_pernet_subsys(&toy_net_ops);

	if (err)
		return err;
	err = gl_register_transport(&toy_transport);
	if (err)
		unregister_pernet_subsys(&toy_net_ops);
	return err;
}

static void __exit toy_module_exit(void)
{
	gl_unregister_transport(&toy_transport);
	unregister_pernet_subsys(&toy_net_ops);
}

module_init(toy_module_init);
module_exit(toy_module_exit);

MODULE_DESCRIPTION("A transport of greenlane's tests");
MODULE_LICENSE("GPL");
