// SPDX-License-Identifier: GPL-2.0
/* KUnit: which protocols and transports can be registered (net/greenlane/gl_transport.c).  Needs
 * greenlane.ko.
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <net/greenlane.h>

/* Codes that are free for tests. */
#define CODE_HELLO	60
#define CODE_ASK	61
#define CODE_ANSWER	62

enum { DATA, LAST, ASK, ANSWER, CONTROL, KINDS };
enum { SENT = 1, COUNTERS };

static struct gl_protocol protocol, other;

static const struct gl_kind sound[KINDS] = {
	[DATA]		= { .codepoint = GL_CP_MESSAGE, .sent = SENT },
	[LAST]		= { .codepoint = GL_CP_SPENT, .flags = GL_KIND_PROMPT | GL_KIND_ENDS },
	[ASK]		= { .codepoint = GL_CP_CREDIT, .code = CODE_ASK, .words = 1,
			    .flags = GL_KIND_DATA | GL_KIND_ANSWERED },
	[ANSWER]	= { .codepoint = GL_CP_PROTECTED, .code = CODE_ANSWER,
			    .flags = GL_KIND_TCPS | GL_KIND_SACK },
	[CONTROL]	= { .codepoint = GL_CP_PROTECTED },
};

static struct gl_kind row[KINDS], others[1];

static const char * const name[COUNTERS] = { [SENT] = "KunitSent" };

static void begin(void)
{
	int i;

	memcpy(row, sound, sizeof(row));
	for (i = 0; i < KINDS; i++)
		row[i].protocol = &protocol;
	row[LAST].before = &row[DATA];
	protocol = (struct gl_protocol){
		.hello		= CODE_HELLO,
		.told_as	= GL_CP_SPENT,
		.kind		= row,
		.kinds		= KINDS,
		.control	= &row[CONTROL],
		.answer		= &row[ANSWER],
		.counter	= name,
		.counters	= COUNTERS,
	};
	others[0] = (struct gl_kind){ .protocol = &other, .codepoint = GL_CP_SPENT,
				      .flags = GL_KIND_PROMPT };
	other = (struct gl_protocol){
		.hello		= CODE_HELLO + 3,
		.told_as	= GL_CP_SPENT_END,
		.kind		= others,
		.kinds		= 1,
		.control	= &others[0],
		.counters	= COUNTERS,
	};
}

static int protocol_test_init(struct kunit *test)
{
	begin();
	return 0;
}

/* A failed assertion leaves protocols registered. */
static void protocol_test_exit(struct kunit *test)
{
	while (protocol.users)
		gl_unregister_protocol(&protocol);
	while (other.users)
		gl_unregister_protocol(&other);
}

/* Expect that the changed protocol is rejected, and undo the change. */
static void refused(struct kunit *test, const char *what)
{
	int err = gl_register_protocol(&protocol);

	KUNIT_EXPECT_EQ_MSG(test, err, -EINVAL, "%s", what);
	if (!err)
		gl_unregister_protocol(&protocol);
	begin();
}

static void gl_register_protocol__sound(struct kunit *test)
{
	int i;

	KUNIT_ASSERT_EQ(test, gl_register_protocol(&protocol), 0);
	for (i = 0; i < GL_CPS; i++)
		KUNIT_EXPECT_PTR_EQ(test, protocol.prompt[i],
				    (const struct gl_kind *)(i == GL_CP_SPENT ? &row[LAST] : NULL));
	gl_unregister_protocol(&protocol);
}

/* A second protocol with the same hello or the same @told_as is rejected, and not changed. */
static void gl_register_protocol__exists(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, gl_register_protocol(&protocol), 0);
	other.hello = protocol.hello;
	KUNIT_EXPECT_EQ(test, gl_register_protocol(&other), -EEXIST);
	other.hello = CODE_HELLO + 3;
	other.told_as = protocol.told_as;
	KUNIT_EXPECT_EQ(test, gl_register_protocol(&other), -EEXIST);
	KUNIT_EXPECT_PTR_EQ(test, other.prompt[GL_CP_SPENT], (const struct gl_kind *)NULL);
	KUNIT_EXPECT_PTR_EQ(test, protocol.prompt[GL_CP_SPENT],
			    (const struct gl_kind *)&row[LAST]);
	gl_unregister_protocol(&protocol);
}

/* A protocol is registered until its last user has unregistered it. */
static void gl_register_protocol__users(struct kunit *test)
{
	KUNIT_ASSERT_EQ(test, gl_register_protocol(&protocol), 0);
	KUNIT_ASSERT_EQ(test, gl_register_protocol(&protocol), 0);
	gl_unregister_protocol(&protocol);
	other.hello = protocol.hello;
	KUNIT_EXPECT_EQ(test, gl_register_protocol(&other), -EEXIST);
	gl_unregister_protocol(&protocol);
	KUNIT_ASSERT_EQ(test, gl_register_protocol(&other), 0);
	gl_unregister_protocol(&other);
}

static void gl_register_protocol__numbers(struct kunit *test)
{
	protocol.hello = GL_CODE_NONE;
	refused(test, "no hello");
	protocol.hello = GL_CODE_MAX + 1;
	refused(test, "a hello beyond the last code");
	protocol.told_as = GL_CP_NONE;
	refused(test, "no codepoint that announces it");
	protocol.told_as = GL_CP_SHORT;
	refused(test, "announced by a codepoint without a sysctl");
	protocol.counters = 0;
	refused(test, "not even counter 0");
	protocol.counters = GL_COUNTERS_MAX + 1;
	refused(test, "too many counters");
	row[DATA].sent = COUNTERS;
	refused(test, "sent: no counter");
	row[DATA].bytes = COUNTERS;
	refused(test, "bytes: no counter");
	row[ANSWER].received = COUNTERS;
	refused(test, "received: no counter");
	row[DATA].codepoint = GL_CP_NONE;
	refused(test, "a row without a codepoint");
	row[DATA].codepoint = GL_CPS;
	refused(test, "a row beyond the last codepoint");
	row[ASK].code = GL_CODE_MAX + 1;
	refused(test, "a row beyond the last code");
	row[ASK].words = GL_WORDS_MAX + 1;
	refused(test, "too many words");
	row[DATA].words = 1;
	refused(test, "words without a code");
}

static void gl_register_protocol__flags(struct kunit *test)
{
	static const u8 of_code[] = { GL_KIND_DATA, GL_KIND_ANSWERED, GL_KIND_TCPS, GL_KIND_SACK };
	static const u8 of_data[] = { GL_KIND_PROMPT, GL_KIND_PROMPT | GL_KIND_ENDS };
	int i;

	for (i = 0; i < ARRAY_SIZE(of_code); i++) {
		row[DATA].flags = of_code[i];
		refused(test, "a flag of packets with the option, without a code");
	}
	for (i = 0; i < ARRAY_SIZE(of_data); i++) {
		row[ANSWER].flags |= of_data[i];
		refused(test, "a flag of data without the option, with a code");
	}
	row[LAST].flags = GL_KIND_ENDS;
	refused(test, "the end of a message that is not acknowledged at once");
	row[ASK].flags = GL_KIND_DATA;
	refused(test, "data that does not reach TCP");
	row[ASK].flags |= GL_KIND_TCPS;
	refused(test, "answered, and TCP's");
	row[DATA].flags = GL_KIND_ECT | GL_KIND_NOT_ECT;
	refused(test, "ECT, and not ECT");
}

static void gl_register_protocol__rows(struct kunit *test)
{
	row[DATA].protocol = &other;
	refused(test, "another protocol's row");
	protocol.control = NULL;
	refused(test, "no row for packets without data");
	protocol.control = &others[0];
	refused(test, "control: another protocol's row");
	protocol.control = &row[ANSWER];
	refused(test, "control: a row with a code");
	protocol.answer = NULL;
	refused(test, "an answered kind without an answer");
	protocol.answer = &others[0];
	refused(test, "answer: another protocol's row");
	protocol.answer = &row[CONTROL];
	refused(test, "answer: a row without a code");
	row[ANSWER].words = 1;
	refused(test, "answer: a row with words");
	row[LAST].before = &others[0];
	refused(test, "before: another protocol's row");
	row[LAST].before = &row[LAST];
	refused(test, "before: itself");
	row[ANSWER].before = &row[DATA];
	refused(test, "before: of a row with a code");
	row[ANSWER].code = CODE_ASK;
	refused(test, "two rows with one code");
	row[DATA].codepoint = GL_CP_SPENT;
	row[DATA].flags = GL_KIND_PROMPT;
	row[LAST].before = NULL;
	refused(test, "two rows with one codepoint");
}

/* Rows of a part belong to the protocol; for a codepoint, its own row precedes a part's. */
static void gl_register_protocol__parts(struct kunit *test)
{
	protocol.part[0] = &other;
	KUNIT_EXPECT_EQ(test, gl_register_protocol(&protocol), 0);
	KUNIT_EXPECT_PTR_EQ(test, protocol.prompt[GL_CP_SPENT],
			    (const struct gl_kind *)&row[LAST]);
	gl_unregister_protocol(&protocol);

	row[LAST].flags = 0;
	protocol.control = &others[0];
	KUNIT_EXPECT_EQ(test, gl_register_protocol(&protocol), 0);
	KUNIT_EXPECT_PTR_EQ(test, protocol.prompt[GL_CP_SPENT],
			    (const struct gl_kind *)&others[0]);
	gl_unregister_protocol(&protocol);

	begin();
	protocol.part[0] = &other;
	others[0].code = CODE_ASK;
	others[0].flags = 0;
	refused(test, "a part's row with the same code");
}

/* --- transports ------------------------------------------------------------- */

static struct gl_transport transport[2];
static int completed;

static int clone_base(struct gl_transport *t)
{
	if (completed)
		return completed;
	gl_base_clone(&t->ops, t->base, THIS_MODULE);
	t->ops.release = gl_release;
	return 0;
}

static const struct gl_kind *on_xmit(struct sock *sk, struct gl_sock *gs, const struct gl_seg *seg)
{
	return &row[DATA];
}

static enum gl_verdict on_packet(struct sock *sk, struct gl_sock *gs, const struct gl_kind *kind,
				 const struct gl_seg *seg)
{
	return GL_PASS;
}

static void on_kick(struct sock *sk, struct gl_sock *gs)
{
}

static void on_switch(struct sock *sk, struct gl_sock *gs, bool on)
{
}

static void on_info(const struct gl_sock *gs, struct greenlane_info *info)
{
}

static int transport_test_init(struct kunit *test)
{
	int i;

	begin();
	completed = 0;
	for (i = 0; i < ARRAY_SIZE(transport); i++) {
		transport[i] = (struct gl_transport){
			.extends	= "reno",
			.complete	= clone_base,
			.protocol	= &protocol,
			.sock_size	= sizeof(struct gl_sock),
			.on_xmit	= on_xmit,
			.on_packet	= on_packet,
			.on_kick	= on_kick,
			.on_switch	= on_switch,
			.on_info	= on_info,
		};
		snprintf(transport[i].ops.name, TCP_CA_NAME_MAX, "kunit%d", i);
	}
	return 0;
}

/* Expect this error, and that nothing is left of the transport. */
static void fails(struct kunit *test, int err)
{
	KUNIT_EXPECT_EQ(test, gl_register_transport(&transport[0]), err);
	KUNIT_EXPECT_PTR_EQ(test, transport[0].base, (const struct tcp_congestion_ops *)NULL);
	KUNIT_EXPECT_EQ(test, protocol.users, 0);
}

static void gl_register_transport__no_base(struct kunit *test)
{
	transport[0].extends = "no_such_base";
	fails(test, -ENOENT);
}

static void gl_register_transport__incomplete(struct kunit *test)
{
	completed = -ENOMEM;
	fails(test, -ENOMEM);
	transport_test_init(test);
	transport[0].on_kick = NULL;
	fails(test, -EINVAL);
	transport_test_init(test);
	row[DATA].codepoint = GL_CPS;
	fails(test, -EINVAL);
}

static void gl_register_transport__same_name(struct kunit *test)
{
	strscpy(transport[0].ops.name, "reno", TCP_CA_NAME_MAX);
	fails(test, -EEXIST);
}

/* Two transports share a protocol, which is registered until both are unregistered. */
static void gl_register_transport__shared(struct kunit *test)
{
	int first;

	for (first = 0; first < 2; first++) {
		transport_test_init(test);
		KUNIT_ASSERT_EQ(test, gl_register_transport(&transport[0]), 0);
		KUNIT_ASSERT_EQ(test, gl_register_transport(&transport[1]), 0);
		KUNIT_EXPECT_EQ(test, protocol.users, 2);
		KUNIT_EXPECT_STREQ(test, transport[0].base->name, "reno");
		gl_unregister_transport(&transport[first]);
		other.hello = protocol.hello;
		KUNIT_EXPECT_EQ(test, gl_register_protocol(&other), -EEXIST);
		gl_unregister_transport(&transport[!first]);
		KUNIT_EXPECT_EQ(test, protocol.users, 0);
		KUNIT_EXPECT_EQ(test, gl_register_protocol(&other), 0);
		gl_unregister_protocol(&other);
	}
}

static struct kunit_case protocol_cases[] = {
	KUNIT_CASE(gl_register_protocol__sound),
	KUNIT_CASE(gl_register_protocol__exists),
	KUNIT_CASE(gl_register_protocol__users),
	KUNIT_CASE(gl_register_protocol__numbers),
	KUNIT_CASE(gl_register_protocol__flags),
	KUNIT_CASE(gl_register_protocol__rows),
	KUNIT_CASE(gl_register_protocol__parts),
	{}
};

static struct kunit_suite protocol_suite = {
	.name = "gl_protocol",
	.init = protocol_test_init,
	.exit = protocol_test_exit,
	.test_cases = protocol_cases,
};

static struct kunit_case transport_cases[] = {
	KUNIT_CASE(gl_register_transport__no_base),
	KUNIT_CASE(gl_register_transport__incomplete),
	KUNIT_CASE(gl_register_transport__same_name),
	KUNIT_CASE(gl_register_transport__shared),
	{}
};

static struct kunit_suite transport_suite = {
	.name = "gl_transport",
	.init = transport_test_init,
	.exit = protocol_test_exit,
	.test_cases = transport_cases,
};

kunit_test_suites(&protocol_suite, &transport_suite);

MODULE_DESCRIPTION("KUnit: registration of greenlane's protocols");
MODULE_LICENSE("GPL");
