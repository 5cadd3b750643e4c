// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the queue of a link's receivers.  See rd_queue.h.
 *
 * There are two ways to choose who is next, and each call of a transport says which it wants:
 *
 * fair		Each receiver counts how much of the link's time has been spent on its packets,
 *		and the one with the least is next.  A receiver that joins begins with as much as
 *		the others have had, so that it neither waits for them nor makes them wait.
 * shortest	The receiver with the least left of its message is next, since that makes the mean
 *		completion time the least (SRPT).  One turn in RD_ROUND goes round, so that long
 *		messages do not starve behind a stream of short ones.
 *
 * The queue never leaves the link idle while a receiver may issue.
 *
 * The timer takes a receiver off the queue under the queue's lock, drops that lock, and then takes
 * the socket's: a packet comes with the socket's lock, and takes the queue's inside.  A receiver
 * that leaves meanwhile is OFF, and its turn, which has begun, learns that from the socket.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include <net/gl_compat.h>
#include <net/rd_queue.h>

/* Turns that the timer gives before other softirqs have theirs. */
#define RD_BUDGET	64

/* rd_core.ko's, whose receivers are on the queues. */
static const struct rd_ops *rd_ops __read_mostly;

static struct rd_receiver *rd_first(const struct rb_root_cached *root)
{
	return rb_entry_safe(rb_first_cached(root), struct rd_receiver, node);
}

static const struct rd_receiver *rd_of(const struct rb_node *node)
{
	return rb_entry(node, struct rd_receiver, node);
}

static bool rd_is_before(struct rb_node *a, const struct rb_node *b)
{
	const struct rd_receiver *r = rd_of(a), *other = rd_of(b);

	if (r->shortest != other->shortest)
		return r->shortest;
	return r->rank < other->rank;
}

/* Rank a receiver that is not in @ready.  It has had @cost since it was ranked last.  @left is 0 if
 * turns are fair.
 */
static void rd_rank(const struct rd_queue *q, struct rd_receiver *r, u64 cost, u64 left)
{
	u64 had = r->shortest ? 0 : r->rank;

	r->shortest = !!left;
	/* One that was not ranked by what it has had would make up for that. */
	r->rank = left ?: max(had + cost, q->served);
}

static struct rd_alarm *rd_first_alarm(const struct rd_queue *q)
{
	return rb_entry_safe(rb_first_cached(&q->alarms), struct rd_alarm, node);
}

static bool rd_alarm_is_earlier(struct rb_node *a, const struct rb_node *b)
{
	return rb_entry(a, struct rd_alarm, node)->at < rb_entry(b, struct rd_alarm, node)->at;
}

static bool rd_is_earlier(struct rb_node *a, const struct rb_node *b)
{
	return rd_of(a)->at < rd_of(b)->at;
}

/* Put a receiver on the queue that is not on it. */
static void rd_add(struct rd_queue *q, struct rd_receiver *r, u64 now)
{
	if (r->at > now) {
		r->state = RD_LATER;
		rb_add_cached(&r->node, &q->later, rd_is_earlier);
	} else {
		r->state = RD_READY;
		rb_add_cached(&r->node, &q->ready, rd_is_before);
		q->receivers++;
	}
}

/* Take it off the queue, or end its turn.  The caller sets the state: RD_OFF is final, since
 * rd_is_off() reads it without the lock.
 */
static void rd_del(struct rd_queue *q, struct rd_receiver *r)
{
	if (r->state == RD_LATER) {
		rb_erase_cached(&r->node, &q->later);
	} else if (r->state == RD_READY) {
		if (q->round == r)
			q->round = rb_entry_safe(rb_next(&r->node), struct rd_receiver, node);
		rb_erase_cached(&r->node, &q->ready);
	}
	if (r->state == RD_READY || r->state == RD_TURN)
		q->receivers--;
}

/* Those whose time has come wait for the link from now on. */
static void rd_wake(struct rd_queue *q, u64 now)
{
	struct rd_receiver *r;

	while ((r = rd_first(&q->later)) && r->at <= now) {
		rd_del(q, r);
		rd_rank(q, r, 0, r->shortest ? r->rank : 0);
		rd_add(q, r, now);
	}
}

static void rd_arm(struct rd_queue *q)
{
	const struct rd_receiver *later = rd_first(&q->later);
	const struct rd_alarm *alarm = rd_first_alarm(q);
	u64 at = RD_NEVER;

	if (rd_first(&q->ready))
		at = q->free;
	else if (later)
		at = max(q->free, later->at);
	if (alarm)
		at = min(at, alarm->at);
	if (at == RD_NEVER)
		hrtimer_try_to_cancel(&q->timer);
	else if (!hrtimer_is_queued(&q->timer) ||
		 ktime_to_ns(hrtimer_get_expires(&q->timer)) != at)
		hrtimer_start(&q->timer, ns_to_ktime(at), HRTIMER_MODE_ABS_SOFT);
}

static void rd_alarm_off(struct rd_queue *q, struct rd_alarm *a)
{
	rb_erase_cached(&a->node, &q->alarms);
	WRITE_ONCE(a->at, RD_NEVER);
}

static void rd_ring(struct rd_queue *q, u64 now)
{
	struct rd_alarm *a;

	while ((a = rd_first_alarm(q)) && a->at <= now) {
		rd_alarm_off(q, a);
		READ_ONCE(rd_ops)->alarm(a);
	}
}

/* The next receiver, by rank, that has had no turn since the turns began to go round.  When each
 * has had one they begin anew.  A receiver that is ranked anew may come to lie before @round
 * without a turn; then it has one the next time.
 */
static struct rd_receiver *rd_round(struct rd_queue *q)
{
	struct rd_receiver *r = q->round;

	while (!r || r->rounds == q->rounds) {
		if (r) {
			r = rb_entry_safe(rb_next(&r->node), struct rd_receiver, node);
		} else {
			q->rounds++;
			r = rd_first(&q->ready);
		}
	}
	q->round = r;
	return r;
}

/* Whose turn is it?  NULL while the link is busy, or if no receiver wants one yet. */
static struct rd_receiver *rd_next(struct rd_queue *q, u64 now)
{
	struct rd_receiver *first;

	rd_wake(q, now);
	first = rd_first(&q->ready);
	if (!first || q->free > now)
		return NULL;
	if (!first->shortest || (q->turns + 1) % RD_ROUND)
		return first;
	return rd_round(q);
}

/* A receiver in @ready has its turn. */
static void rd_begin(struct rd_queue *q, struct rd_receiver *r)
{
	if (q->round == r)
		r->rounds = q->rounds;
	rd_del(q, r);
	r->state = RD_TURN;
	q->receivers++;
	q->turns++;
	if (!r->shortest)
		q->served = max_t(u64, q->served, r->rank);
}

/* Begin the next turn, if the link is free and a receiver wants it. */
static struct rd_receiver *rd_take(struct rd_queue *q, u64 now)
{
	struct rd_receiver *r = rd_next(q, now);

	if (r)
		rd_begin(q, r);
	return r;
}

static enum hrtimer_restart rd_timer(struct hrtimer *timer)
{
	struct rd_queue *q = container_of(timer, struct rd_queue, timer);
	u64 now = ktime_get_ns();
	const struct rd_ops *ops;
	struct rd_receiver *r;
	int n;

	spin_lock(&q->lock);
	rd_ring(q, now);
	for (n = 0; n < RD_BUDGET && (r = rd_take(q, now)); n++) {
		/* During the turn the last socket may go, and the transport with it. */
		ops = READ_ONCE(rd_ops);
		ops->hold(r);
		spin_unlock(&q->lock);
		ops->turn(r, now);
		spin_lock(&q->lock);
	}
	rd_arm(q);
	spin_unlock(&q->lock);
	return HRTIMER_NORESTART;
}

/**
 * rd_want() - a receiver has something to issue
 * @q: its link's queue
 * @r: the receiver, its socket locked
 * @now: ns
 * @at: it wants no turn before, ns.  If it is on the queue already, that does not change
 * @left: what is left of its message, ns of the link's time, if the shortest goes first; 0 if turns
 *	are fair
 *
 * Return: true if it has its turn at once: the caller issues, and calls rd_served().
 */
bool rd_want(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 at, u64 left)
{
	bool turn;

	spin_lock_bh(&q->lock);
	if (r->state == RD_OFF) {
		/* An idle link has no time to make up for. */
		if (!q->receivers)
			q->free = max(q->free, now);
		r->at = at;
		r->rounds = q->rounds;
		rd_rank(q, r, 0, left);
		rd_add(q, r, now);
	} else if (r->state != RD_TURN && (left || r->shortest)) {
		/* The message has grown, or part of it has come. */
		rd_del(q, r);
		rd_rank(q, r, 0, left);
		rd_add(q, r, now);
	}
	/* The timer may be late. */
	turn = rd_next(q, now) == r;
	if (turn)
		rd_begin(q, r);
	else
		rd_arm(q);
	spin_unlock_bh(&q->lock);
	return turn;
}
EXPORT_SYMBOL_GPL(rd_want);

/**
 * rd_served() - a receiver has had its turn
 * @q: its link's queue
 * @r: the receiver, its socket locked
 * @now: ns
 * @cost: time on the link of what it has issued, and of what that lets come, ns; 0 if it has
 *	issued nothing
 * @at: it wants no other turn before, ns; RD_NEVER if it has nothing left
 * @left: as rd_want() takes it; not looked at if @cost is 0
 */
void rd_served(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 cost, u64 at, u64 left)
{
	spin_lock_bh(&q->lock);
	if (cost)
		q->free = max(q->free, rd_catch_up(now, cost)) + cost;
	/* Not if a process that owns the socket has moved it to another link meanwhile. */
	if (r->state == RD_TURN && READ_ONCE(r->queue) == q) {
		rd_del(q, r);
		if (cost)
			rd_rank(q, r, cost, left);
		r->at = at;
		if (at == RD_NEVER)
			r->state = RD_OFF;
		else
			rd_add(q, r, now);
		rd_arm(q);
	}
	spin_unlock_bh(&q->lock);
}
EXPORT_SYMBOL_GPL(rd_served);

/**
 * rd_leave() - a receiver has nothing to issue any more
 * @q: its link's queue
 * @r: the receiver, its socket locked or about to be freed
 *
 * It may have its turn at this moment; the socket then says that it has left.
 */
void rd_leave(struct rd_queue *q, struct rd_receiver *r)
{
	spin_lock_bh(&q->lock);
	rd_del(q, r);
	r->state = RD_OFF;
	spin_unlock_bh(&q->lock);
}
EXPORT_SYMBOL_GPL(rd_leave);

/**
 * rd_alarm_set() - have the transport's alarm() called
 * @q: the link's queue
 * @a: the alarm, its socket locked or about to be freed; its @at is RD_NEVER at first
 * @at: ns; RD_NEVER for not at all
 *
 * An earlier alarm stays, since most are only put off: who gets it too early sets it again.
 */
void rd_alarm_set(struct rd_queue *q, struct rd_alarm *a, u64 at)
{
	/* Only the timer changes it without the socket's lock, to RD_NEVER.  Where that takes two
	 * stores, half of it would look like another time.
	 */
	if (IS_ENABLED(CONFIG_64BIT) && at != RD_NEVER && READ_ONCE(a->at) <= at)
		return;
	spin_lock_bh(&q->lock);
	if (at == RD_NEVER || at < a->at) {
		if (a->at != RD_NEVER)
			rd_alarm_off(q, a);
		if (at != RD_NEVER) {
			WRITE_ONCE(a->at, at);
			rb_add_cached(&a->node, &q->alarms, rd_alarm_is_earlier);
		}
		rd_arm(q);
	}
	spin_unlock_bh(&q->lock);
}
EXPORT_SYMBOL_GPL(rd_alarm_set);

/**
 * rd_yield() - leave room on the link for what comes without a turn
 * @q: the link's queue
 * @now: ns
 * @cost: its time on the link, ns
 * @most: at most this far ahead, ns
 *
 * An idle link has room anyway.
 */
void rd_yield(struct rd_queue *q, u64 now, u64 cost, u64 most)
{
	spin_lock_bh(&q->lock);
	q->free = max(q->free, min(q->free + cost, now + most));
	spin_unlock_bh(&q->lock);
}
EXPORT_SYMBOL_GPL(rd_yield);

/**
 * rd_ops_set() - whose receivers are on the queues
 * @ops: what to call; NULL when no receiver is on a queue any more, and then synchronize_net()
 *	waits for the last turn
 */
void rd_ops_set(const struct rd_ops *ops)
{
	WRITE_ONCE(rd_ops, ops);
}
EXPORT_SYMBOL_GPL(rd_ops_set);

/**
 * rd_queue_init() - an empty queue
 * @q: the queue, zeroed
 */
void rd_queue_init(struct rd_queue *q)
{
	spin_lock_init(&q->lock);
	q->ready = RB_ROOT_CACHED;
	q->later = RB_ROOT_CACHED;
	q->alarms = RB_ROOT_CACHED;
	hrtimer_setup(&q->timer, rd_timer, CLOCK_MONOTONIC, HRTIMER_MODE_ABS_SOFT);
}

/**
 * rd_queue_exit() - no receiver is or comes on the queue
 * @q: the queue
 */
void rd_queue_exit(struct rd_queue *q)
{
	hrtimer_cancel(&q->timer);
}

