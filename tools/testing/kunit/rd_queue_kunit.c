// SPDX-License-Identifier: GPL-2.0
/* KUnit: the queue of a link's receivers, and the limit of a host's unscheduled packets
 * (net/greenlane/rd_queue.c).
 */
#include <kunit/test.h>
#include <linux/module.h>
#include <linux/prandom.h>

#include "net/greenlane/rd_queue.c"

#define COST	1000ULL
#define MANY	8

static struct rd_queue queue;
static struct rd_receiver recv[MANY];
static unsigned int turns[MANY];
static u64 left[MANY];		/* with SRPT: link time of the rest of a message, ns */

static int rd_queue_test_init(struct kunit *test)
{
	int i;

	memset(&queue, 0, sizeof(queue));
	rd_queue_init(&queue);
	memset(recv, 0, sizeof(recv));
	for (i = 0; i < MANY; i++)
		recv[i].queue = &queue;
	memset(turns, 0, sizeof(turns));
	memset(left, 0, sizeof(left));
	return 0;
}

static void rd_queue_test_exit(struct kunit *test)
{
	rd_queue_exit(&queue);
}

/* The times of a case begin in an hour, so that the timer does not fire during the case: a million
 * random calls take many seconds on a kernel with KASAN in real time.
 */
static u64 soon(void)
{
	return ktime_get_ns() + 3600ULL * NSEC_PER_SEC;
}

/* Receiver @i was scheduled: it sends a credit that costs up to @cost ns of its message. */
static void issue(int i, u64 now, u64 cost)
{
	bool last = left[i] && left[i] <= cost;

	turns[i]++;
	left[i] -= min(cost, left[i]);
	rd_served(&queue, &recv[i], now, cost, last ? RD_NEVER : now, left[i]);
}

/* Schedule the receivers until @end, each with its own cost; returns the time after it. */
static u64 serve(u64 now, u64 end, const u64 *cost)
{
	while (now < end) {
		struct rd_receiver *r = rd_schedule_next(&queue, now);

		if (r)
			issue(r - recv, now, cost[r - recv]);
		now = max(now + 1, queue.free);
	}
	return now;
}

/* Enqueue receiver @i, which may be scheduled at once. */
static void join(int i, u64 now, u64 cost)
{
	if (rd_want(&queue, &recv[i], now, now, left[i]))
		issue(i, now, cost);
}

static void rd_queue__one_has_the_link(struct kunit *test)
{
	const u64 cost[] = { COST };
	u64 now = soon();

	KUNIT_EXPECT_TRUE(test, rd_want(&queue, &recv[0], now, now, 0));
	rd_served(&queue, &recv[0], now, COST, now, 0);
	KUNIT_EXPECT_EQ(test, queue.free, now + COST);
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + COST - 1));
	serve(now + COST, now + 100 * COST, cost);
	KUNIT_EXPECT_EQ(test, turns[0], 99);
	rd_leave(&queue, &recv[0]);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

static void expect_about(struct kunit *test, unsigned int seen, unsigned int expected,
			 unsigned int off)
{
	KUNIT_EXPECT_GE(test, seen, expected - off);
	KUNIT_EXPECT_LE(test, seen, expected + off);
}

/* Receivers have equal link time, not equal numbers of credits: MTU 9000 beside 1500. */
static void rd_queue__fair_in_time(struct kunit *test)
{
	const u64 cost[] = { COST, 6 * COST };
	u64 now = soon();

	join(0, now, cost[0]);
	join(1, now, cost[1]);
	serve(now, now + 12000 * COST, cost);
	expect_about(test, turns[0], 6000, 6);
	expect_about(test, turns[1], 1000, 1);
	rd_leave(&queue, &recv[0]);
	rd_leave(&queue, &recv[1]);
}

/* A receiver that joins later gets its share from then on, and does not catch up. */
static void rd_queue__join(struct kunit *test)
{
	const u64 cost[] = { COST, COST, COST };
	u64 now = soon();

	join(0, now, COST);
	join(1, now, COST);
	now = serve(now, now + 10000 * COST, cost);
	memset(turns, 0, sizeof(turns));
	join(2, now, COST);
	now = serve(now, now + 300 * COST, cost);
	expect_about(test, turns[2], 100, 1);
	/* It does not catch up after a pause, either. */
	rd_leave(&queue, &recv[2]);
	now = serve(now, now + 300 * COST, cost);
	memset(turns, 0, sizeof(turns));
	join(2, now, COST);
	serve(now, now + 30 * COST, cost);
	expect_about(test, turns[2], 10, 1);
	rd_leave(&queue, &recv[0]);
	rd_leave(&queue, &recv[1]);
	rd_leave(&queue, &recv[2]);
}

/* Each receiver has the link until its message is complete, in this order.  All credits are by
 * SRPT: there are fewer than RD_ROUND.
 */
static void expect_order(struct kunit *test, u64 now, const int *order, int n)
{
	int i;

	for (i = 0; i < n; i++) {
		while (left[order[i]]) {
			struct rd_receiver *r = rd_schedule_next(&queue, now);

			KUNIT_ASSERT_PTR_EQ(test, r, &recv[order[i]]);
			issue(order[i], now, COST);
			now = queue.free;
		}
	}
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* The shortest rest of a message has the link until it is complete. */
static void rd_queue__least_first(struct kunit *test)
{
	const int order[] = { 1, 2, 0 };
	u64 now = soon();

	left[0] = 9 * COST;
	left[1] = 3 * COST;
	left[2] = 6 * COST;
	join(0, now, COST);
	join(1, now, COST);
	join(2, now, COST);
	expect_order(test, now + COST, order, 3);
}

/* The rank follows if a message begins later, or is shorter or longer than before. */
static void rd_queue__rank_follows(struct kunit *test)
{
	const int order[] = { 2, 1, 0 };
	u64 now = soon();

	left[0] = 5 * COST;
	left[1] = 8 * COST;
	join(0, now, COST);
	join(1, now, COST);
	issue(rd_schedule_next(&queue, now + COST) - recv, now + COST, COST);
	KUNIT_EXPECT_EQ(test, left[0], 3 * COST);
	left[2] = 2 * COST;
	join(2, now + COST, COST);
	left[0] = 10 * COST;
	join(0, now + COST, COST);
	left[1] = 4 * COST;
	join(1, now + COST, COST);
	expect_order(test, now + 2 * COST, order, 3);
}

/* Behind a stream of short messages, long ones share every RD_ROUND-th credit with it. */
static void rd_queue__least_then_round(struct kunit *test)
{
	const unsigned int n = 100 * RD_ROUND;
	u64 now = soon();
	unsigned int i;

	for (i = 1; i < 5; i++) {
		left[i] = i * 10000 * COST;
		join(i, now, COST);
	}
	memset(turns, 0, sizeof(turns));
	for (i = 0; i < n; i++) {
		struct rd_receiver *r;

		now = queue.free;
		if (!left[0]) {
			left[0] = 10 * COST;
			KUNIT_ASSERT_TRUE(test, rd_is_off(&recv[0]));
			rd_want(&queue, &recv[0], now - 1, now - 1, left[0]);
		}
		r = rd_schedule_next(&queue, now);
		KUNIT_ASSERT_NOT_NULL(test, r);
		issue(r - recv, now, COST);
	}
	for (i = 1; i < 5; i++)
		expect_about(test, turns[i], n / RD_ROUND / 5, 1);
	expect_about(test, turns[0], n - 4 * (n / RD_ROUND / 5), 4);
	for (i = 0; i < 5; i++)
		rd_leave(&queue, &recv[i]);
	KUNIT_EXPECT_NULL(test, queue.round);
}

/* The same behind messages that never end, whose senders report and request more. */
static void rd_queue__streams_then_round(struct kunit *test)
{
	const unsigned int n = 100 * RD_ROUND, streams = 4;
	unsigned int i, last = 0, longest = 0;
	u64 now = soon();

	left[streams] = 10000 * COST;
	join(streams, now, COST);
	for (i = 0; i < streams; i++) {
		left[i] = (100 + i) * COST;
		join(i, now, COST);
	}
	memset(turns, 0, sizeof(turns));
	for (i = 0; i < n; i++) {
		struct rd_receiver *r;
		unsigned int who, other = i % (streams + 1);

		now = queue.free;
		r = rd_schedule_next(&queue, now);
		KUNIT_ASSERT_NOT_NULL(test, r);
		who = r - recv;
		if (who < streams)
			left[who] = 110 * COST;
		issue(who, now, COST);
		/* A report of this receiver's sender, and one of another's. */
		rd_want(&queue, &recv[who], now, now, left[who]);
		rd_want(&queue, &recv[other], now, now, left[other]);
		if (who == streams) {
			longest = max(longest, i - last);
			last = i;
		}
	}
	KUNIT_EXPECT_GE(test, turns[streams], n / RD_ROUND / (streams + 1) - 2);
	KUNIT_EXPECT_LE(test, turns[streams], n / RD_ROUND);
	KUNIT_EXPECT_LE(test, longest, 2 * RD_ROUND * (streams + 1));
	for (i = 0; i <= streams; i++)
		rd_leave(&queue, &recv[i]);
	KUNIT_EXPECT_NULL(test, queue.round);
}

/* The discipline changes while receivers wait: soon all are ranked by the new one, and no
 * receiver pays for link time that it had before.
 */
static void rd_queue__choice_changes(struct kunit *test)
{
	const u64 cost[] = { COST, COST };
	u64 now = soon();

	join(0, now, COST);
	join(1, now, COST);
	now = serve(now, now + 10000 * COST, cost);
	left[0] = 20000 * COST;
	left[1] = 10000 * COST;
	memset(turns, 0, sizeof(turns));
	now = serve(now, now + 2000 * COST, cost);
	/* Receiver 1 waits for the first or second round-robin credit, which ranks it anew. */
	expect_about(test, turns[1], 2000 - 3 * RD_ROUND / 2 - 1952 / RD_ROUND / 2,
		     RD_ROUND / 2 + 3);
	left[0] = 0;
	left[1] = 0;
	now = serve(now, now + 10 * COST, cost);
	memset(turns, 0, sizeof(turns));
	serve(now, now + 1000 * COST, cost);
	expect_about(test, turns[0], 500, 2);
	rd_leave(&queue, &recv[0]);
	rd_leave(&queue, &recv[1]);
}

/* A receiver whose credit is not due yet does not keep the link from the others. */
static void rd_queue__later(struct kunit *test)
{
	const u64 cost[] = { COST, COST };
	u64 now = soon();

	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[1], now, now + 10 * COST, 0));
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 10 * COST - 1));
	join(0, now, COST);
	serve(now, now + 10 * COST, cost);
	KUNIT_EXPECT_EQ(test, turns[0], 10);
	KUNIT_EXPECT_EQ(test, turns[1], 0);
	serve(now + 10 * COST, now + 12 * COST, cost);
	KUNIT_EXPECT_EQ(test, turns[1], 1);
	rd_leave(&queue, &recv[0]);
	rd_leave(&queue, &recv[1]);
}

/* The number of packets of @cost that a very late timer permits at once. */
static int late_packets(u64 now, u64 cost)
{
	u64 late = now + 1000 * cost;
	int n = 0;

	join(0, now, cost);
	while (rd_schedule_next(&queue, late)) {
		rd_served(&queue, &recv[0], late, cost, late, 0);
		n++;
	}
	return n;
}

/* After a late timer the link catches up with 10 us, or with 8 packets of a slow link, besides the
 * packet that is due; it does not catch up with idle time.
 */
static void rd_queue__catch_up(struct kunit *test)
{
	u64 now = soon(), late = now + 1000 * COST;

	KUNIT_EXPECT_EQ(test, late_packets(now, 100), RD_CATCH_UP_NS / 100 + 1);
	rd_leave(&queue, &recv[0]);
	now += 1000 * COST;
	KUNIT_EXPECT_EQ(test, late_packets(now, 10 * COST), RD_CATCH_UP + 1);
	rd_leave(&queue, &recv[0]);
	now += 10000 * COST;
	late = now + 1000 * COST;
	KUNIT_EXPECT_EQ(test, late_packets(now, COST), RD_CATCH_UP_NS / COST + 1);
	rd_leave(&queue, &recv[0]);
	late += 1000 * COST;
	KUNIT_EXPECT_TRUE(test, rd_want(&queue, &recv[0], late, late, 0));
	rd_served(&queue, &recv[0], late, COST, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.free, late + COST);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* Link time reserved for other packets delays credits, within a limit. */
static void rd_queue__yield(struct kunit *test)
{
	u64 now = soon();
	int i;

	join(0, now, COST);
	rd_yield(&queue, now, COST / 2, 256 * COST);
	KUNIT_EXPECT_EQ(test, queue.free, now + COST + COST / 2);
	for (i = 0; i < 1000; i++)
		rd_yield(&queue, now, COST, 256 * COST);
	KUNIT_EXPECT_EQ(test, queue.free, now + 256 * COST);
	/* The limit also holds for one large reservation. */
	rd_yield(&queue, now, 1000000 * COST, 256 * COST);
	KUNIT_EXPECT_EQ(test, queue.free, now + 256 * COST);
	rd_leave(&queue, &recv[0]);
}

/* Bursts together are limited to a round trip; the answer, or time, returns their packets. */
static void rd_queue__burst(struct kunit *test)
{
	const u64 rtt = 20 * COST;
	u64 now = 1000 * RD_EPOCH;
	u8 epoch, later;

	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 5, COST, rtt, &epoch), 5);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 15);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 1, COST, rtt, &later), 0);
	/* With a longer round trip the limit is higher. */
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 1, COST, 2 * rtt, &later), 1);
	rd_burst_over(&queue, now, 5 * COST, epoch);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 4);
	/* The time of another CPU, which has read it before it had the lock, returns none. */
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now - 1, 1, COST, rtt, &later), 0);
	/* In the next epoch the grants still count, in the second one they do not. */
	now += RD_EPOCH;
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 1, COST, rtt, &later), 0);
	rd_burst_over(&queue, now, COST, epoch);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 1);
	now += RD_EPOCH;
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 19);
	/* An answer that is two epochs late returns no packets, */
	rd_burst_over(&queue, now, 100 * COST, epoch);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 1, COST, rtt, &later), 0);
	/* and it returns at most the granted packets. */
	rd_burst_over(&queue, now, 1000 * COST, later);
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 19);
	now += 7 * RD_EPOCH;
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, rtt, &later), 20);
	/* At least one packet, if a round trip is shorter than its link time. */
	now += 7 * RD_EPOCH;
	KUNIT_EXPECT_EQ(test, rd_burst(&queue, now, 100, COST, COST / 10, &later), 1);
}

static struct rd_alarm *rang[3];
static unsigned int n_rang;

/* No receiver of these cases has a socket. */
void rd_issue_hold(struct rd_receiver *r)
{
}

void rd_issue_socket(struct rd_receiver *r, u64 now)
{
}

void rd_alarm_expired(struct rd_alarm *a)
{
	if (n_rang < ARRAY_SIZE(rang))
		rang[n_rang] = a;
	n_rang++;
}

/* Alarms expire in the order of their times, once; an earlier time stays, RD_NEVER cancels. */
static void rd_queue__alarm(struct kunit *test)
{
	struct rd_alarm alarm[3] = { { .at = RD_NEVER }, { .at = RD_NEVER }, { .at = RD_NEVER } };
	u64 now = soon();

	n_rang = 0;
	rd_alarm_set(&queue, &alarm[0], now + 3 * COST);
	rd_alarm_set(&queue, &alarm[1], now + 2 * COST);
	rd_alarm_set(&queue, &alarm[2], now + COST);
	rd_alarm_set(&queue, &alarm[0], now + COST / 2);
	rd_alarm_set(&queue, &alarm[1], now + 9 * COST);
	rd_alarm_set(&queue, &alarm[2], RD_NEVER);
	KUNIT_EXPECT_EQ(test, ktime_to_ns(hrtimer_get_expires(&queue.timer)), now + COST / 2);
	rd_ring(&queue, now + COST / 2 - 1);
	KUNIT_EXPECT_EQ(test, n_rang, 0);
	rd_ring(&queue, now + 2 * COST);
	KUNIT_EXPECT_EQ(test, n_rang, 2);
	rd_ring(&queue, now + 99 * COST);
	KUNIT_EXPECT_EQ(test, n_rang, 2);
	KUNIT_EXPECT_PTR_EQ(test, rang[0], &alarm[0]);
	KUNIT_EXPECT_PTR_EQ(test, rang[1], &alarm[1]);
	KUNIT_EXPECT_TRUE(test, RB_EMPTY_ROOT(&queue.alarms.rb_root));
	hrtimer_cancel(&queue.timer);
}

static unsigned int size_of(const struct rb_root_cached *root)
{
	struct rb_node *node;
	unsigned int n = 0;

	for (node = rb_first_cached(root); node; node = rb_next(node))
		n++;
	return n;
}

/* After any calls, in any order, @receivers is the number of receivers on the queue. */
static void rd_queue__random(struct kunit *test)
{
	unsigned int on_turn = 0, bad = 0;
	struct rnd_state rnd;
	u64 now = soon();
	int n;

	prandom_seed_state(&rnd, 1);
	for (n = 0; n < 1000000; n++) {
		u32 any = prandom_u32_state(&rnd);
		struct rd_receiver *r = &recv[any % MANY];
		struct rd_receiver *next;

		now += any >> 24;
		switch (any >> 8 & 3) {
		case 0:
			rd_want(&queue, r, now, now + (any >> 10 & 255),
				any & BIT(18) ? any >> 19 : 0);
			break;
		case 1:
			rd_leave(&queue, r);
			break;
		case 2:
			next = rd_schedule_next(&queue, now);
			bad += next && next->at > now;
			break;
		case 3:
			/* also if it is not scheduled, as after rd_leave() while it issues */
			rd_served(&queue, r, now, any >> 10 & 127,
				  any & BIT(20) ? now + (any >> 21) : RD_NEVER,
				  any & BIT(19) ? any >> 20 : 0);
			break;
		}
		for (on_turn = 0, r = recv; r < recv + MANY; r++)
			on_turn += r->state == RD_ISSUING;
		if (!(n % 64))
			bad += queue.receivers != size_of(&queue.ready) + on_turn;
		bad += queue.round && queue.round->state != RD_READY;
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
	for (n = 0; n < MANY; n++)
		rd_leave(&queue, &recv[n]);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* Receiver @i has a window, and @part of it in flight. */
static void fly(int i, u32 part)
{
	rd_window(&queue, &recv[i], part, 2, recv[i].at, RD_NEVER);
}

/* The windows of all receivers together have a limit, and the shortest message is the next one. */
static void rd_queue__windows(struct kunit *test)
{
	const u32 full = RD_WINDOW_FULL;
	u64 now = soon();
	int i;

	for (i = 0; i < 4; i++) {
		left[i] = (4 - i) * COST;
		fly(i, i < 2 ? full : 0);
		/* The first two have closed windows. */
		KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[i], now, now + (i < 2) * COST,
						 left[i]));
	}
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now));
	/* The link is busy, which does not matter. */
	queue.free = now + 100 * COST;
	fly(0, full - 1);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now), &recv[3]);
	fly(3, 1);
	rd_served(&queue, &recv[3], now, COST, now + COST, 0);
	KUNIT_EXPECT_LE(test, queue.free, now + RD_CATCH_UP_NS);
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now));
	/* One that leaves takes its part along. */
	rd_leave(&queue, &recv[1]);
	KUNIT_EXPECT_EQ(test, queue.out, full);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now), &recv[2]);
	fly(2, full);
	rd_served(&queue, &recv[2], now, 0, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.out, full);
	rd_leave(&queue, &recv[0]);
	rd_leave(&queue, &recv[3]);
	KUNIT_EXPECT_EQ(test, queue.out, 0);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* A closed window gives up at its time, also while all windows together are full. */
static void rd_queue__closed_window(struct kunit *test)
{
	u64 now = soon();

	left[0] = COST;
	fly(0, 2 * RD_WINDOW_FULL);
	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[0], now, now + 10, left[0]));
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 9));
	/* Some of its data arrives, which extends the time. */
	rd_window(&queue, &recv[0], 2 * RD_WINDOW_FULL, 2, now + 20, RD_NEVER);
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 19));
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 20), &recv[0]);
	rd_served(&queue, &recv[0], now + 20, 0, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.out, 0);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* Windows of SRPT are partly open and leave no room: @stall ends the wait of one with data in
 * flight, and the others follow when it gives up.
 */
static void rd_queue__stalled_shortest(struct kunit *test)
{
	u64 now = soon();
	int i;

	for (i = 1; i < 3; i++)
		rd_window(&queue, &recv[i], RD_WINDOW_FULL, 2, 0, now + 100);
	for (i = 0; i < 3; i++) {
		left[i] = (i + 1) * COST;
		rd_window(&queue, &recv[i], i ? RD_WINDOW_FULL : 0, 2, 0, now + 100);
		KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[i], now, now, left[i]));
	}
	KUNIT_EXPECT_EQ(test, ktime_to_ns(hrtimer_get_expires(&queue.timer)), now + 100);
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 99));
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 100), &recv[1]);
	/* It waits for more of its data: the next one. */
	rd_served(&queue, &recv[1], now + 100, 0, now + 200, 0);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 100), &recv[2]);
	rd_served(&queue, &recv[2], now + 100, 0, now + 200, 0);
	/* None is left that could be silent: no timer expires again and again. */
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 100));
	KUNIT_EXPECT_GT(test, queue.stall, now + 100);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 200), &recv[1]);
	rd_served(&queue, &recv[1], now + 200, 0, RD_NEVER, 0);
	/* Its part is free. */
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 200), &recv[2]);
	rd_served(&queue, &recv[2], now + 200, 0, RD_NEVER, 0);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 200), &recv[0]);
	rd_served(&queue, &recv[0], now + 200, 0, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.out, 0);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* In the fair queue a receiver with a window also waits for the link. */
static void rd_queue__paced_windows(struct kunit *test)
{
	const u32 full = RD_WINDOW_FULL;
	u64 now = soon();
	int i;

	for (i = 0; i < 3; i++) {
		left[i] = 0;
		fly(i, 0);
	}
	queue.free = now + COST;
	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[0], now, now, 0));
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + COST - 1));
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + COST), &recv[0]);
	now += COST;
	fly(0, full);
	rd_served(&queue, &recv[0], now, COST, now + 100 * COST, 0);
	KUNIT_EXPECT_EQ(test, queue.free, now + COST);
	/* Its window is closed, and opens when data arrives, without an advantage over others. */
	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[1], now, now, 0));
	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[2], now, now, 0));
	fly(0, full - 1);
	KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[0], now, now, 0));
	for (i = 1; i < 3; i++) {
		now += COST;
		KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now), &recv[i]);
		fly(i, 1);
		rd_served(&queue, &recv[i], now, COST, now, 0);
	}
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + COST), &recv[0]);
	rd_served(&queue, &recv[0], now, 0, RD_NEVER, 0);
	rd_leave(&queue, &recv[1]);
	rd_leave(&queue, &recv[2]);
	KUNIT_EXPECT_EQ(test, queue.out, 0);
	KUNIT_EXPECT_EQ(test, queue.receivers, 0);
}

/* The windows of the link are full, and no data arrives: receivers are scheduled at @stall. */
static void rd_queue__stall(struct kunit *test)
{
	u64 now = soon();
	int i;

	for (i = 0; i < 2; i++) {
		left[i] = 0;
		rd_window(&queue, &recv[i], 0, 2, 0, now + 100);
		/* The link is busy. */
		queue.free = now + COST;
		KUNIT_EXPECT_FALSE(test, rd_want(&queue, &recv[i], now, now, 0));
	}
	rd_window(&queue, &recv[0], RD_WINDOW_FULL, 2, 0, now + 100);
	/* Each one within the limit extends the time, and data that arrives. */
	rd_window(&queue, &recv[1], RD_WINDOW_FULL, 2, 0, now + 110);
	KUNIT_EXPECT_EQ(test, queue.stall, now + 110);
	rd_window(&queue, &recv[1], RD_WINDOW_FULL + 2, 2, 0, now + 300);
	KUNIT_EXPECT_EQ(test, queue.stall, now + 110);
	rd_window(&queue, &recv[1], RD_WINDOW_FULL, 2, 0, now + 150);
	queue.free = now;
	KUNIT_EXPECT_NULL(test, rd_schedule_next(&queue, now + 149));
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 150), &recv[0]);
	rd_served(&queue, &recv[0], now + 150, 0, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.out, RD_WINDOW_FULL);
	KUNIT_EXPECT_PTR_EQ(test, rd_schedule_next(&queue, now + 150), &recv[1]);
	rd_served(&queue, &recv[1], now + 150, 0, RD_NEVER, 0);
	KUNIT_EXPECT_EQ(test, queue.out, 0);
}

/* The level is above those of longer messages with data in flight. */
static void rd_queue__levels(struct kunit *test)
{
	u64 now = soon();
	const u64 age = 100;

	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[0], now, 1000, age), 0);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[0], now, 900, age), 0);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[1], now, 100, age), 1);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[0], now, 800, age), 0);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[2], now, 50, age), 2);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[3], now, 10, age), 3);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[4], now, 1, age), 3);
	/* A longer one shares the lowest level, and the next one rises above it. */
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[5], now, 2000, age), 0);
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[0], now, 700, age), 1);
	/* Their data has arrived. */
	KUNIT_EXPECT_EQ(test, rd_level(&queue, &recv[1], now + age, 50, age), 0);
}

static struct kunit_case rd_queue_cases[] = {
	KUNIT_CASE(rd_queue__one_has_the_link),
	KUNIT_CASE(rd_queue__fair_in_time),
	KUNIT_CASE(rd_queue__join),
	KUNIT_CASE(rd_queue__least_first),
	KUNIT_CASE(rd_queue__rank_follows),
	KUNIT_CASE(rd_queue__least_then_round),
	KUNIT_CASE(rd_queue__streams_then_round),
	KUNIT_CASE(rd_queue__choice_changes),
	KUNIT_CASE(rd_queue__later),
	KUNIT_CASE(rd_queue__catch_up),
	KUNIT_CASE(rd_queue__yield),
	KUNIT_CASE(rd_queue__burst),
	KUNIT_CASE(rd_queue__alarm),
	KUNIT_CASE(rd_queue__random),
	KUNIT_CASE(rd_queue__windows),
	KUNIT_CASE(rd_queue__closed_window),
	KUNIT_CASE(rd_queue__stalled_shortest),
	KUNIT_CASE(rd_queue__paced_windows),
	KUNIT_CASE(rd_queue__stall),
	KUNIT_CASE(rd_queue__levels),
	{}
};

static struct kunit_suite rd_queue_suite = {
	.name		= "rd_queue",
	.init		= rd_queue_test_init,
	.exit		= rd_queue_test_exit,
	.test_cases	= rd_queue_cases,
};

kunit_test_suite(rd_queue_suite);

MODULE_DESCRIPTION("KUnit tests of the queue of a link's receivers");
MODULE_LICENSE("GPL");
