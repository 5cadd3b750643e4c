// SPDX-License-Identifier: GPL-2.0
/*
 * The pure logic of the `iofd` qdisc: the deflected-flow table, the FIFO, and the
 * tokens in a packet's DSCP.
 */
#include <kunit/test.h>
#include <linux/bits.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <net/gl_deflect.h>

#include "net/sched/iofd_fifo.c"
#include "net/sched/iofd_table.c"

#define MESSAGES	1000000
#define TIMEOUT		100

static struct iofd_table *new_table(struct kunit *test, u16 size)
{
	struct iofd_table *t = iofd_table_alloc(size, 1);

	KUNIT_ASSERT_NOT_NULL(test, t);
	return t;
}

static struct iofd_key key_of(u32 flow, u8 tokens)
{
	struct iofd_key key = {
		.src.s6_addr32[0] = htonl(1),
		.ports = (__force __be32)flow,
		.version = 4,
		.tokens = tokens,
	};

	return key;
}

static struct iofd_entry *find(struct iofd_table *t, u32 flow)
{
	struct iofd_key key = key_of(flow, 4);

	return iofd_table_find(t, &key);
}

static struct iofd_entry *take(struct iofd_table *t, u32 flow, u64 now)
{
	struct iofd_key key = key_of(flow, 4);

	return iofd_table_take(t, &key, flow * 10, now, TIMEOUT, IOFD_PAID);
}

/* The invariants of a table. */
static void check(struct kunit *test, struct iofd_table *t)
{
	unsigned int n = 0, chained = 0, unused = 0;
	u16 i, last = IOFD_NONE;
	u64 seen = 0;

	for (i = t->oldest; i != IOFD_NONE && n <= t->size; n++) {
		KUNIT_ASSERT_EQ(test, t->entry[i].older, last);
		KUNIT_ASSERT_GE(test, (u64)t->entry[i].seen, seen);
		KUNIT_ASSERT_PTR_EQ(test, iofd_table_find(t, &t->entry[i].key),
				    &t->entry[i]);
		seen = t->entry[i].seen;
		last = i;
		i = t->entry[i].newer;
	}
	KUNIT_ASSERT_EQ(test, t->newest, last);
	KUNIT_ASSERT_EQ(test, n, t->used);
	for (n = 0; n < t->size; n++)
		for (i = t->entry[n].head;
		     i != IOFD_NONE && chained <= t->size;
		     i = t->entry[i].next)
			chained++;
	KUNIT_ASSERT_EQ(test, chained, t->used);
	for (i = t->free; i != IOFD_NONE && unused <= t->size;
	     i = t->entry[i].next)
		unused++;
	KUNIT_ASSERT_EQ(test, unused, t->size - t->used);
	KUNIT_ASSERT_GE(test, t->peak, t->used);
}

static void iofd_table_find__only_its_own(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 8);
	struct iofd_key key = key_of(7, 4), other;
	struct iofd_entry *e;
	int byte;

	KUNIT_EXPECT_NULL(test, iofd_table_find(t, &key));
	e = take(t, 7, 0);
	KUNIT_ASSERT_NOT_NULL(test, e);
	KUNIT_EXPECT_EQ(test, e->port, 70);
	KUNIT_EXPECT_PTR_EQ(test, iofd_table_find(t, &key), e);
	/* Each byte of the key matters. */
	for (byte = 0; byte < (int)sizeof(key); byte++) {
		other = key;
		((u8 *)&other)[byte] ^= 1;
		KUNIT_EXPECT_NULL(test, iofd_table_find(t, &other));
	}
	kvfree(t);
}

/* Entries with the same hash are in one chain. */
static void iofd_table_find__same_hash(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 8);
	struct iofd_entry *e[3];
	int i;

	for (i = 0; i < 3; i++) {
		e[i] = take(t, i, i);
		iofd_table_free(t, e[i]);
	}
	/* Move them into one chain of three. */
	for (i = 0; i < 3; i++) {
		e[i] = take(t, i, i);
		*iofd_table_head(t, e[i]->hash) = e[i]->next;
		e[i]->hash = 0;
		e[i]->next = *iofd_table_head(t, 0);
		*iofd_table_head(t, 0) = e[i] - t->entry;
	}
	iofd_table_free(t, e[1]);
	KUNIT_EXPECT_EQ(test, *iofd_table_head(t, 0), e[2] - t->entry);
	KUNIT_EXPECT_EQ(test, e[2]->next, e[0] - t->entry);
	KUNIT_EXPECT_EQ(test, e[0]->next, IOFD_NONE);
	iofd_table_free(t, e[0]);
	KUNIT_EXPECT_EQ(test, e[2]->next, IOFD_NONE);
	iofd_table_free(t, e[2]);
	KUNIT_EXPECT_EQ(test, *iofd_table_head(t, 0), IOFD_NONE);
	check(test, t);
	kvfree(t);
}

/* A message that returns with fewer tokens has an entry for each number of tokens. */
static void iofd_table_find__tokens_are_part_of_it(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 8);
	struct iofd_entry *e[5];
	u8 tokens;

	for (tokens = 1; tokens <= GL_DEFLECT_TOKENS_MAX; tokens++) {
		struct iofd_key key = key_of(1, tokens);

		KUNIT_EXPECT_NULL(test, iofd_table_find(t, &key));
		e[tokens] = iofd_table_take(t, &key, tokens, 0, TIMEOUT, IOFD_PAID);
	}
	KUNIT_EXPECT_EQ(test, t->used, 4);
	for (tokens = 1; tokens <= GL_DEFLECT_TOKENS_MAX; tokens++) {
		struct iofd_key key = key_of(1, tokens);

		KUNIT_EXPECT_PTR_EQ(test, iofd_table_find(t, &key), e[tokens]);
	}
	check(test, t);
	kvfree(t);
}

static void iofd_table_take__full(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 2);
	struct iofd_entry *a = take(t, 1, 0), *b = take(t, 2, 0);

	KUNIT_EXPECT_NOT_NULL(test, a);
	KUNIT_EXPECT_NOT_NULL(test, b);
	KUNIT_EXPECT_NULL(test, take(t, 3, 0));
	KUNIT_EXPECT_NULL(test, take(t, 3, 0));
	KUNIT_EXPECT_EQ(test, t->full, 2);
	/* The entries in use are still there. */
	KUNIT_EXPECT_PTR_EQ(test, find(t, 1), a);
	KUNIT_EXPECT_PTR_EQ(test, find(t, 2), b);
	iofd_table_free(t, a);
	KUNIT_EXPECT_NULL(test, find(t, 1));
	KUNIT_EXPECT_NOT_NULL(test, take(t, 3, 0));
	KUNIT_EXPECT_EQ(test, t->used, 2);
	KUNIT_EXPECT_EQ(test, t->peak, 2);
	KUNIT_EXPECT_EQ(test, t->expired, 0);
	check(test, t);
	kvfree(t);
}

static void iofd_table_take__one_entry(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 1);
	struct iofd_entry *e;
	u32 flow;

	for (flow = 1; flow < 100; flow++) {
		e = take(t, flow, flow);
		KUNIT_ASSERT_NOT_NULL(test, e);
		KUNIT_ASSERT_NULL(test, take(t, flow + 1, flow));
		check(test, t);
		iofd_table_free(t, e);
		check(test, t);
	}
	kvfree(t);
}

/* Computed by hand; the timeout is 100. */
static void iofd_table_take__the_quiet_one_after_its_timeout(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 3);

	take(t, 1, 1000);
	take(t, 2, 1010);
	take(t, 3, 1020);
	/* 1 is the first, but is refreshed */
	iofd_table_seen(t, find(t, 1), 1050, IOFD_PAID);
	KUNIT_EXPECT_NULL(test, take(t, 4, 1109));
	KUNIT_EXPECT_EQ(test, t->full, 1);
	/* 2 has been quiet for 100 */
	KUNIT_EXPECT_NOT_NULL(test, take(t, 4, 1110));
	KUNIT_EXPECT_EQ(test, t->expired, 1);
	KUNIT_EXPECT_NULL(test, find(t, 2));
	KUNIT_EXPECT_NOT_NULL(test, find(t, 1));
	KUNIT_EXPECT_NOT_NULL(test, find(t, 3));
	/* 3 is next, then 1, each after its own 100 */
	KUNIT_EXPECT_NULL(test, take(t, 5, 1119));
	KUNIT_EXPECT_NOT_NULL(test, take(t, 5, 1120));
	KUNIT_EXPECT_NULL(test, find(t, 3));
	KUNIT_EXPECT_NULL(test, take(t, 6, 1149));
	KUNIT_EXPECT_NOT_NULL(test, take(t, 6, 1150));
	KUNIT_EXPECT_NULL(test, find(t, 1));
	KUNIT_EXPECT_EQ(test, t->expired, 3);
	KUNIT_EXPECT_EQ(test, t->full, 3);
	KUNIT_EXPECT_EQ(test, t->used, 3);
	check(test, t);
	kvfree(t);
}

/* iofd_table_take() frees a stale entry only if it needs one. */
static void iofd_table_take__lazily(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 2);
	struct iofd_entry *e = take(t, 1, 0);

	KUNIT_EXPECT_NOT_NULL(test, take(t, 2, 1000000));
	KUNIT_EXPECT_PTR_EQ(test, find(t, 1), e);
	KUNIT_EXPECT_EQ(test, t->expired, 0);
	kvfree(t);
}

static void iofd_table_take__from_who_does_not_pay(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 2);

	KUNIT_ASSERT_NOT_NULL(test, take(t, 1, 1000));
	KUNIT_ASSERT_NOT_NULL(test, take(t, 2, 1000));
	/* 20000 bytes keep an entry for 77/255 of 100, 60 bytes for 0 */
	iofd_table_seen(t, find(t, 1), 1010, 20000);
	KUNIT_EXPECT_NULL(test, take(t, 3, 1039));
	iofd_table_seen(t, find(t, 2), 1010, 60);
	KUNIT_EXPECT_NOT_NULL(test, take(t, 3, 1039));
	KUNIT_EXPECT_NULL(test, find(t, 2));
	KUNIT_EXPECT_EQ(test, t->expired, 1);
	/* a stale entry stays while another one is free */
	iofd_table_free(t, find(t, 3));
	KUNIT_EXPECT_NOT_NULL(test, take(t, 4, 1045));
	KUNIT_EXPECT_NOT_NULL(test, find(t, 1));
	KUNIT_EXPECT_NOT_NULL(test, take(t, 5, 1045));
	KUNIT_EXPECT_NULL(test, find(t, 1));
	check(test, t);
	kvfree(t);
}

/* An entry is stale at the timeout, not a nanosecond before. */
static void iofd_table_expire__at_the_timeout(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 3);

	take(t, 1, 1000);
	take(t, 2, 1000);
	iofd_table_seen(t, find(t, 1), 1050, IOFD_PAID);
	KUNIT_EXPECT_FALSE(test, iofd_table_expire(t, find(t, 2), 1099, TIMEOUT));
	KUNIT_EXPECT_TRUE(test, iofd_table_expire(t, find(t, 2), 1100, TIMEOUT));
	KUNIT_EXPECT_NULL(test, find(t, 2));
	KUNIT_EXPECT_FALSE(test, iofd_table_expire(t, find(t, 1), 1149, TIMEOUT));
	KUNIT_EXPECT_EQ(test, t->used, 1);
	KUNIT_EXPECT_EQ(test, t->expired, 1);
	KUNIT_EXPECT_EQ(test, t->full, 0);
	check(test, t);
	kvfree(t);
}

static void iofd_table_expire_all__the_stale_ones(struct kunit *test)
{
	struct iofd_table *t = new_table(test, 8);
	u32 flow;

	iofd_table_expire_all(t, 1000, TIMEOUT);
	KUNIT_EXPECT_EQ(test, t->expired, 0);
	for (flow = 1; flow <= 5; flow++)
		take(t, flow, 1000 + flow);
	iofd_table_seen(t, find(t, 1), 1010, IOFD_PAID);
	iofd_table_expire_all(t, 1103, TIMEOUT);
	KUNIT_EXPECT_NOT_NULL(test, find(t, 1));
	KUNIT_EXPECT_NULL(test, find(t, 2));
	KUNIT_EXPECT_NULL(test, find(t, 3));
	KUNIT_EXPECT_NOT_NULL(test, find(t, 4));
	KUNIT_EXPECT_EQ(test, t->expired, 2);
	check(test, t);
	iofd_table_expire_all(t, U64_MAX, TIMEOUT);
	KUNIT_EXPECT_EQ(test, t->used, 0);
	KUNIT_EXPECT_EQ(test, t->expired, 5);
	check(test, t);
	kvfree(t);
}

static void iofd_table_move__all_and_their_age(struct kunit *test)
{
	struct iofd_table *from = new_table(test, 8);
	struct iofd_table *to = new_table(test, 3);
	u32 flow;

	for (flow = 1; flow <= 5; flow++)
		take(from, flow, 1000 + flow);
	iofd_table_free(from, find(from, 1));
	iofd_table_free(from, find(from, 4));
	iofd_table_seen(from, find(from, 2), 1010, IOFD_PAID);
	from->full = 11;
	from->expired = 12;

	iofd_table_move(to, from);
	check(test, to);
	KUNIT_EXPECT_EQ(test, to->used, 3);
	KUNIT_EXPECT_EQ(test, to->peak, 5);
	KUNIT_EXPECT_EQ(test, to->full, 11);
	KUNIT_EXPECT_EQ(test, to->expired, 12);
	KUNIT_EXPECT_EQ(test, (u64)find(to, 2)->seen, 1010);
	KUNIT_EXPECT_EQ(test, find(to, 2)->port, 20);
	KUNIT_EXPECT_EQ(test, to->entry[to->oldest].port, 30);
	KUNIT_EXPECT_EQ(test, to->entry[to->newest].port, 20);
	kvfree(from);
	kvfree(to);
}

struct wrap_case {
	const char	*name;
	u16		size;
	u32		lost;	/* one of @lost ends is lost; 0 for none */
};

static const struct wrap_case wrap_cases[] = {
	{ "8 entries", 8, 0 },
	{ "8 entries, ends get lost", 8, 50 },
	{ "4096 entries", 4096, 0 },
	{ "4096 entries, ends get lost", 4096, 50 },
};

static void wrap_case_name(const struct wrap_case *c, char *desc)
{
	strscpy(desc, c->name, KUNIT_PARAM_DESC_SIZE);
}

KUNIT_ARRAY_PARAM(wrap, wrap_cases, wrap_case_name);

/* A million messages begin and end in random order, a table full at a time. */
static void iofd_table__wrap(struct kunit *test)
{
	const struct wrap_case *p = test->param_value;
	struct iofd_table *t = new_table(test, p->size);
	u32 flow, lost = 0, refused = 0, head = 0, *live;
	struct rnd_state rnd;
	u64 now = 0;

	live = kunit_kcalloc(test, p->size, sizeof(*live), GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, live);
	prandom_seed_state(&rnd, 1);
	for (flow = 1; flow <= MESSAGES; flow++) {
		struct iofd_entry *e;
		u32 at;

		/* A table full of messages takes less than the timeout. */
		now += flow % p->size == 0;
		if (head == p->size) {
			at = reciprocal_scale(prandom_u32_state(&rnd), head);
			e = find(t, live[at]);
			if (e && p->lost && live[at] % p->lost == 0)
				lost++;		/* the entry stays */
			else if (e)
				iofd_table_free(t, e);
			live[at] = live[--head];
		}
		e = take(t, flow, now);
		if (e) {
			KUNIT_ASSERT_EQ(test, e->port, flow * 10);
			live[head++] = flow;
		} else {
			refused++;
		}
		if (flow % 9973 == 0)
			check(test, t);
	}
	check(test, t);
	KUNIT_EXPECT_EQ(test, t->peak, p->size);
	KUNIT_EXPECT_EQ(test, t->full, refused);
	if (!p->lost) {
		KUNIT_EXPECT_EQ(test, refused, 0);
		KUNIT_EXPECT_EQ(test, t->expired, 0);
	} else {
		/* Lost entries expire, but for at most a table full. */
		KUNIT_EXPECT_GT(test, t->expired, 0);
		KUNIT_EXPECT_LE(test, lost - min_t(u32, lost, t->expired),
				p->size);
	}
	kvfree(t);
}

/* --- iofd_fifo.c --- */

/* A packet of @len bytes, as the qdisc layer counts them. */
static struct sk_buff *packet(struct kunit *test, u32 len)
{
	struct sk_buff *skb = alloc_skb(64, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	qdisc_skb_cb(skb)->pkt_len = len;
	return skb;
}

/* Packets leave in order, at most the budget at a time, and the sums agree with them. */
static void iofd_fifo__counts_and_budget(struct kunit *test)
{
	struct sk_buff_head list;
	struct iofd_fifo fifo;
	struct sk_buff *skb;
	u32 i, n = 0;

	iofd_fifo_init(&fifo);
	__skb_queue_head_init(&list);
	local_bh_disable();
	KUNIT_EXPECT_FALSE(test, iofd_fifo_take(&fifo, &list, IOFD_BUDGET));
	KUNIT_EXPECT_EQ(test, skb_queue_len(&list), 0);
	local_bh_enable();
	/* 150 packets of 1, 2 and 3 segments */
	for (i = 0; i < 150; i++) {
		skb = packet(test, 1000 * (i % 3 + 1));
		local_bh_disable();
		iofd_fifo_add(&fifo, skb, i, i % 3 + 1);
		local_bh_enable();
	}
	KUNIT_EXPECT_EQ(test, fifo.segs, 300);
	KUNIT_EXPECT_EQ(test, fifo.bytes, 300000);
	for (i = 0; i < 3; i++) {
		bool more;

		local_bh_disable();
		more = iofd_fifo_take(&fifo, &list, IOFD_BUDGET);
		local_bh_enable();
		KUNIT_EXPECT_EQ(test, more, i < 2);
		KUNIT_EXPECT_EQ(test, skb_queue_len(&list), i < 2 ? 64 : 22);
		while ((skb = __skb_dequeue(&list))) {
			KUNIT_EXPECT_EQ(test, iofd_skb_cb(skb)->port, n);
			KUNIT_EXPECT_EQ(test, iofd_skb_cb(skb)->segs, n % 3 + 1);
			kfree_skb(skb);
			n++;
		}
		/* 64 packets are 21 times 6 segments, and the segments of the 64th */
		KUNIT_EXPECT_EQ(test, fifo.segs, i == 0 ? 173 : i == 1 ? 45 : 0);
		KUNIT_EXPECT_EQ(test, fifo.bytes, 1000 * fifo.segs);
	}
	KUNIT_EXPECT_EQ(test, n, 150);
	KUNIT_EXPECT_EQ(test, fifo.peak, 300);
}

static void iofd_fifo_full__at_its_limit(struct kunit *test)
{
	struct iofd_fifo fifo;
	struct sk_buff *skb;
	int i;

	iofd_fifo_init(&fifo);
	for (i = 0; i < IOFD_FIFO_LIMIT; i++) {
		KUNIT_ASSERT_FALSE(test, iofd_fifo_full(&fifo));
		skb = packet(test, 100);
		local_bh_disable();
		iofd_fifo_add(&fifo, skb, 1, 2);
		local_bh_enable();
	}
	KUNIT_EXPECT_TRUE(test, iofd_fifo_full(&fifo));
	KUNIT_EXPECT_EQ(test, iofd_fifo_purge(&fifo), 2 * IOFD_FIFO_LIMIT);
	KUNIT_EXPECT_FALSE(test, iofd_fifo_full(&fifo));
	KUNIT_EXPECT_EQ(test, fifo.segs, 0);
	KUNIT_EXPECT_EQ(test, fifo.bytes, 0);
	KUNIT_EXPECT_EQ(test, fifo.peak, 2 * IOFD_FIFO_LIMIT);
	KUNIT_EXPECT_EQ(test, iofd_fifo_purge(&fifo), 0);
}

/* --- gl_deflect.h --- */

/* Each of the 64 DSCPs, as in the diagram of gl_deflect.h. */
static void gl_deflect__every_dscp(struct kunit *test)
{
	int dscp;

	for (dscp = 0; dscp < 64; dscp++) {
		unsigned int tokens = (dscp >> 2 & 3) + 1;
		bool start = dscp & BIT(4), end = dscp & BIT(5);
		u8 spent = gl_deflect_spend(dscp);

		KUNIT_EXPECT_EQ(test, gl_deflectable(dscp), dscp % 4 == 3);
		if (dscp % 4 != 3)
			continue;
		KUNIT_EXPECT_EQ(test, gl_deflect_tokens(dscp), tokens);
		KUNIT_EXPECT_EQ(test, gl_deflect_start(dscp), start);
		KUNIT_EXPECT_EQ(test, gl_deflect_end(dscp), end);
		KUNIT_EXPECT_EQ(test, gl_deflect_dscp(tokens, start, end), dscp);
		if (tokens > 1) {
			KUNIT_EXPECT_EQ(test, spent,
					gl_deflect_dscp(tokens - 1, start, end));
		} else {
			KUNIT_EXPECT_EQ(test, spent, end ? 57 : 53);
			KUNIT_EXPECT_FALSE(test, gl_deflectable(spent));
		}
	}
}

/* Each DSCP has one step for each token, and keeps its end bit. */
static void gl_deflect_spend__ends(struct kunit *test)
{
	int dscp, n;
	u8 d;

	for (dscp = 3; dscp < 64; dscp += 4) {
		for (n = 0, d = dscp; gl_deflectable(d); n++)
			d = gl_deflect_spend(d);
		KUNIT_EXPECT_EQ(test, n, (int)gl_deflect_tokens(dscp));
		KUNIT_EXPECT_LE(test, n, GL_DEFLECT_TOKENS_MAX);
		KUNIT_EXPECT_EQ(test, d == GREENLANE_DSCP_SPENT_END, gl_deflect_end(dscp));
	}
}

static struct kunit_case iofd_test_cases[] = {
	KUNIT_CASE(iofd_table_find__only_its_own),
	KUNIT_CASE(iofd_table_find__same_hash),
	KUNIT_CASE(iofd_table_find__tokens_are_part_of_it),
	KUNIT_CASE(iofd_table_take__full),
	KUNIT_CASE(iofd_table_take__one_entry),
	KUNIT_CASE(iofd_table_take__the_quiet_one_after_its_timeout),
	KUNIT_CASE(iofd_table_take__lazily),
	KUNIT_CASE(iofd_table_take__from_who_does_not_pay),
	KUNIT_CASE(iofd_table_expire__at_the_timeout),
	KUNIT_CASE(iofd_table_expire_all__the_stale_ones),
	KUNIT_CASE(iofd_fifo__counts_and_budget),
	KUNIT_CASE(iofd_fifo_full__at_its_limit),
	KUNIT_CASE(iofd_table_move__all_and_their_age),
	KUNIT_CASE_PARAM(iofd_table__wrap, wrap_gen_params),
	KUNIT_CASE(gl_deflect__every_dscp),
	KUNIT_CASE(gl_deflect_spend__ends),
	{}
};

static struct kunit_suite iofd_test_suite = {
	.name = "iofd",
	.test_cases = iofd_test_cases,
};

kunit_test_suite(iofd_test_suite);

MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("KUnit tests of the iofd qdisc");
