// SPDX-License-Identifier: GPL-2.0
/* Receiver-driven transports: the queue of a link's receivers.  See rd_queue.h.
 *
 * Each call of a transport chooses one of two disciplines:
 *
 * fair		The queue charges each receiver for the link time of its packets, and schedules
 *		the one with the lowest sum.  A receiver that joins begins at the queue's virtual
 *		time, so that it neither waits for the others nor delays them.
 * shortest	The queue schedules the receiver with the least left of its message, which
 *		minimises the mean completion time (SRPT).  Every RD_ROUND-th credit is scheduled
 *		round robin, so that a stream of short messages does not starve long ones.
 *
 * A receiver with a window of data in flight waits until all such windows have less than @limit in
 * flight, and with SRPT for nothing else.  While its window is closed it is in @later, until it
 * gives up.  One whose window is partly open gives up at @stall, if no window's data has arrived
 * until then.
 *
 * The queue is work-conserving: while a receiver has a credit due, and the windows have room, the
 * link does not idle.
 *
 * The timer removes a receiver from the queue under the queue's lock, drops that lock, and then
 * takes the socket's: a packet's handler holds the socket's lock when it takes the queue's.  A
 * receiver that leaves in between is OFF, and rd_issue_socket() finds that in the socket.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include <net/gl_compat.h>
#include <net/rd_queue.h>

/* Credits that the timer schedules before it yields to other softirqs. */
#define RD_BUDGET	64

/* After a stall in which no receiver in @ready has data in flight: look again after this, ns. */
#define RD_LOOK_NS	NSEC_PER_MSEC

static struct rd_receiver *rd_first(const struct rb_root_cached *root)
{
	return rb_entry_safe(rb_first_cached(root), struct rd_receiver, node);
}

static struct rd_receiver *rd_after(const struct rd_receiver *r)
{
	return rb_entry_safe(rb_next(&r->node), struct rd_receiver, node);
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

/* Rank a receiver that is not in @ready.  @cost is the link time that it has used since it was
 * ranked last, ns.  @left is 0 for the fair queue.
 */
static void rd_rank(const struct rd_queue *q, struct rd_receiver *r, u64 cost, u64 left)
{
	u64 had = r->shortest ? 0 : r->rank;

	r->shortest = !!left;
	/* A receiver that joins late must not catch up. */
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

/* Add a receiver that is not on the queue. */
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

/* Remove a receiver that is on the queue, or issues.  The caller sets the state, once: rd_is_off()
 * reads it without the lock, and must not see RD_OFF on the way to another state.
 */
static void rd_del(struct rd_queue *q, struct rd_receiver *r)
{
	if (r->state == RD_LATER) {
		rb_erase_cached(&r->node, &q->later);
	} else if (r->state == RD_READY) {
		if (q->round == r)
			q->round = rd_after(r);
		rb_erase_cached(&r->node, &q->ready);
	}
	if (r->state == RD_READY || r->state == RD_ISSUING)
		q->receivers--;
}

/* A receiver leaves the queue, and its account of windows. */
static void rd_off(struct rd_queue *q, struct rd_receiver *r)
{
	q->out -= r->charged;
	r->charged = 0;
	r->state = RD_OFF;
}

/* Move receivers whose credit is due from @later to @ready.  Return: the first whose window has
 * been closed for too long, or NULL.
 */
static struct rd_receiver *rd_wake(struct rd_queue *q, u64 now)
{
	struct rd_receiver *r;

	while ((r = rd_first(&q->later)) && r->at <= now) {
		if (r->windowed)
			return r;
		rd_del(q, r);
		rd_rank(q, r, 0, r->shortest ? r->rank : 0);
		rd_add(q, r, now);
	}
	return NULL;
}

/* Does the receiver wait for a free link? */
static bool rd_is_paced(const struct rd_receiver *r)
{
	return !r->windowed || !r->shortest;
}

/* Do the windows of the link leave no room for more data of this receiver? */
static bool rd_is_shut(const struct rd_queue *q, const struct rd_receiver *r)
{
	return r->windowed && rd_is_full(q);
}

/* Do receivers of SRPT wait in @ready until the windows of the link have room?  If no data arrives,
 * the sender of one of them may be silent.
 */
static bool rd_may_stall(const struct rd_queue *q)
{
	const struct rd_receiver *r = rd_first(&q->ready);

	return r && r->shortest && rd_is_shut(q, r);
}

/* The receiver of SRPT in @ready whose sender may be silent, after a stall.  Usually the first one
 * has data in flight: it was scheduled because it had the least left.
 */
static struct rd_receiver *rd_stalled(struct rd_queue *q, u64 now)
{
	struct rd_receiver *r;

	if (!rd_may_stall(q) || now < q->stall)
		return NULL;
	for (r = rd_first(&q->ready); r && r->shortest; r = rd_after(r))
		if (r->charged)
			return r;
	q->stall = now + RD_LOOK_NS;
	return NULL;
}

/* The first receiver in @ready of the fair queue. */
static struct rd_receiver *rd_first_fair(const struct rd_queue *q)
{
	struct rb_node *p = q->ready.rb_root.rb_node;
	struct rd_receiver *first = NULL;

	while (p) {
		struct rd_receiver *r = rb_entry(p, struct rd_receiver, node);

		if (!r->shortest)
			first = r;
		p = r->shortest ? p->rb_right : p->rb_left;
	}
	return first;
}

/* The receiver in @ready to schedule next, at @at; or NULL, and RD_NEVER.  While the windows are
 * full, this is the first one of the fair queue.  If it has a window itself, it is scheduled when
 * no data has arrived for too long, and finds out whether its own sender is silent.
 */
static struct rd_receiver *rd_head(const struct rd_queue *q, u64 *at)
{
	struct rd_receiver *r = rd_first(&q->ready);

	if (r && rd_is_shut(q, r))
		r = rd_first_fair(q);
	if (!r)
		*at = RD_NEVER;
	else if (rd_is_shut(q, r))
		*at = max(q->free, q->stall);
	else
		*at = rd_is_paced(r) ? q->free : r->at;
	return r;
}

static void rd_arm(struct rd_queue *q)
{
	const struct rd_receiver *later = rd_first(&q->later);
	const struct rd_alarm *alarm = rd_first_alarm(q);
	const struct rd_receiver *ready;
	u64 at;

	ready = rd_head(q, &at);
	if (later && (!ready || ready->windowed))
		at = min(at, later->windowed ? later->at : max(q->free, later->at));
	if (rd_may_stall(q))
		at = min(at, q->stall);
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
		rd_alarm_expired(a);
	}
}

/* The next receiver, by rank, that this round has not scheduled.  When it has scheduled each, the
 * next round begins.  A receiver whose new rank places it before @round waits for the next one.
 */
static struct rd_receiver *rd_round(struct rd_queue *q)
{
	struct rd_receiver *r = q->round;

	while (!r || r->rounds == q->rounds) {
		if (r) {
			r = rd_after(r);
		} else {
			q->rounds++;
			r = rd_first(&q->ready);
		}
	}
	q->round = r;
	return r;
}

/* The receiver to schedule now; NULL while the link is busy, or if no credit is due. */
static struct rd_receiver *rd_next(struct rd_queue *q, u64 now)
{
	struct rd_receiver *first = rd_wake(q, now);
	u64 at;

	if (first)
		return first;
	first = rd_head(q, &at);
	if (!first || at > now)
		return rd_stalled(q, now);
	if (!first->shortest || (q->scheduled + 1) % RD_ROUND)
		return first;
	return rd_round(q);
}

/* Schedule a receiver in @ready. */
static void rd_schedule(struct rd_queue *q, struct rd_receiver *r)
{
	if (q->round == r)
		r->rounds = q->rounds;
	rd_del(q, r);
	r->state = RD_ISSUING;
	q->receivers++;
	q->scheduled++;
	if (!r->shortest)
		q->served = max_t(u64, q->served, r->rank);
}

/* Schedule the next receiver, if the link is free and a credit is due. */
static struct rd_receiver *rd_schedule_next(struct rd_queue *q, u64 now)
{
	struct rd_receiver *r = rd_next(q, now);

	if (r)
		rd_schedule(q, r);
	return r;
}

static enum hrtimer_restart rd_timer(struct hrtimer *timer)
{
	struct rd_queue *q = container_of(timer, struct rd_queue, timer);
	u64 now = ktime_get_ns();
	struct rd_receiver *r;
	int n;

	spin_lock(&q->lock);
	rd_ring(q, now);
	for (n = 0; n < RD_BUDGET && (r = rd_schedule_next(q, now)); n++) {
		rd_issue_hold(r);
		spin_unlock(&q->lock);
		rd_issue_socket(r, now);
		spin_lock(&q->lock);
	}
	rd_arm(q);
	spin_unlock(&q->lock);
	return HRTIMER_NORESTART;
}

/**
 * rd_want() - enqueue a receiver that has a credit to send
 * @q: its link's queue
 * @r: the receiver, its socket locked
 * @now: ns
 * @at: the credit is due, ns.  Ignored if the receiver is on the queue, unless it has a window
 * @left: with SRPT: link time of the rest of its message, ns; 0 for the fair queue
 *
 * Return: true if it is scheduled at once: the caller sends the credit, and calls rd_served().
 */
bool rd_want(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 at, u64 left)
{
	bool scheduled;

	spin_lock_bh(&q->lock);
	if (r->state == RD_OFF) {
		/* Time that passed on an idle link is not caught up with. */
		if (!q->receivers)
			q->free = max(q->free, now);
		r->at = at;
		r->rounds = q->rounds;
		rd_rank(q, r, 0, left);
		rd_add(q, r, now);
	} else if (r->state != RD_ISSUING &&
		   (left || r->shortest || (r->windowed && r->state == RD_LATER))) {
		/* The message has grown, or part of it has arrived, which opens a window. */
		rd_del(q, r);
		if (r->windowed)
			r->at = at;
		rd_rank(q, r, 0, left);
		rd_add(q, r, now);
	}
	/* The timer may be late. */
	scheduled = rd_next(q, now) == r;
	if (scheduled)
		rd_schedule(q, r);
	else
		rd_arm(q);
	spin_unlock_bh(&q->lock);
	return scheduled;
}

/**
 * rd_served() - a scheduled receiver has sent its credit, or has sent none
 * @q: its link's queue
 * @r: the receiver, its socket locked
 * @now: ns
 * @cost: link time of the credit and of the data packet that it permits, ns; 0 if it sent none
 * @at: its next credit is due, ns; RD_NEVER if it has no other to send
 * @left: as in rd_want(); ignored if @cost is 0
 */
void rd_served(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 cost, u64 at, u64 left)
{
	spin_lock_bh(&q->lock);
	if (cost)
		q->free = max(q->free, rd_catch_up(now, cost)) + cost;
	/* Windows may permit more than the link carries meanwhile; the others do not wait. */
	if (!rd_is_paced(r))
		q->free = min(q->free, now + RD_CATCH_UP_NS);
	/* A process that owns the socket may have moved it to another link meanwhile. */
	if (r->state == RD_ISSUING && READ_ONCE(r->queue) == q) {
		rd_del(q, r);
		if (cost)
			rd_rank(q, r, cost, left);
		r->at = at;
		if (at == RD_NEVER)
			rd_off(q, r);
		else
			rd_add(q, r, now);
		rd_arm(q);
	}
	spin_unlock_bh(&q->lock);
}

/**
 * rd_leave() - remove a receiver that has no credit to send
 * @q: its link's queue
 * @r: the receiver, its socket locked or about to be freed
 *
 * If the timer has scheduled it just now, rd_issue_socket() finds in the socket that it has left.
 */
void rd_leave(struct rd_queue *q, struct rd_receiver *r)
{
	spin_lock_bh(&q->lock);
	rd_del(q, r);
	rd_off(q, r);
	/* Another window may open. */
	if (r->windowed)
		rd_arm(q);
	spin_unlock_bh(&q->lock);
}

/**
 * rd_window() - a receiver's data in flight has changed, or a receiver is about to join the queue
 * @q: its link's queue
 * @r: the receiver, its socket locked
 * @part: data in flight, as a part of its window, RD_WINDOW_FULL at most
 * @slots: number of full windows of the link; 0: the link limits this receiver, and not a window
 * @at: if its window is closed: it gives up, ns
 * @stall: if no data arrives for the link until then, some senders are silent, ns
 */
void rd_window(struct rd_queue *q, struct rd_receiver *r, u32 part, u32 slots, u64 at,
	       u64 stall)
{
	spin_lock_bh(&q->lock);
	if (slots && (part < r->charged || q->out < q->limit))
		q->stall = stall;
	q->out += (s64)part - r->charged;
	r->charged = part;
	if (slots)
		q->limit = slots * RD_WINDOW_FULL;
	if (r->state == RD_OFF) {
		r->windowed = !!slots;
	} else if (r->state == RD_LATER && r->windowed) {
		rb_erase_cached(&r->node, &q->later);
		r->at = at;
		rb_add_cached(&r->node, &q->later, rd_is_earlier);
	}
	rd_arm(q);
	spin_unlock_bh(&q->lock);
}

/**
 * rd_level() - the level of the data of a receiver that is scheduled, and has a window
 * @q: the link's queue
 * @r: the receiver, its socket locked
 * @now: ns
 * @left: link time of the rest of its message, ns
 * @age: a receiver that was not scheduled for this time has no data in flight, ns
 *
 * Return: the lowest level above longer messages with data in flight, RD_LEVELS - 1 at most.
 */
unsigned int rd_level(struct rd_queue *q, const struct rd_receiver *r, u64 now, u64 left, u64 age)
{
	unsigned int i, level = 0;

	spin_lock_bh(&q->lock);
	for (i = 0; i < RD_LEVELS; i++) {
		struct rd_level *l = &q->level[i];

		if (l->r == r)
			l->r = NULL;
		else if (l->r && l->left > left && now < l->at + age)
			level = min(i + 1, RD_LEVELS - 1);
	}
	q->level[level] = (struct rd_level) { .r = r, .left = left, .at = now };
	spin_unlock_bh(&q->lock);
	return level;
}

/**
 * rd_alarm_set() - schedule a call of rd_alarm_expired()
 * @q: the link's queue
 * @a: the alarm, its socket locked or about to be freed; its @at is RD_NEVER at first
 * @at: expiry, ns; RD_NEVER cancels it
 *
 * An earlier alarm stays, because most changes only postpone it: a sender whose alarm expires too
 * early sets it again.
 */
void rd_alarm_set(struct rd_queue *q, struct rd_alarm *a, u64 at)
{
	/* Only the timer changes @at without the socket's lock, to RD_NEVER.  A 32-bit processor
	 * does that in two stores, and half of it would look like another time.
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

/**
 * rd_yield() - reserve link time for packets that need no credit
 * @q: the link's queue
 * @now: ns
 * @cost: their link time, ns
 * @most: limit of all such reservations ahead of @now, ns
 *
 * An idle link needs no reservation.
 */
void rd_yield(struct rd_queue *q, u64 now, u64 cost, u64 most)
{
	spin_lock_bh(&q->lock);
	q->free = max(q->free, min(q->free + cost, now + most));
	spin_unlock_bh(&q->lock);
}

/* --- unscheduled bursts --------------------------------------------------------
 *
 * An unscheduled burst fills the link for the round trip until the receiver's credits.  All
 * connections of a host share one bandwidth-delay product: more packets would only wait in the
 * host's own queue, in front of scheduled ones, and under incast the switch would drop most of
 * them.
 *
 * Granted packets count until the receiver acknowledges the burst, or else for one or two epochs.
 */

static u64 rd_burst_age(struct rd_queue *q, u64 now)
{
	u64 epoch = div_u64(now, RD_EPOCH);

	/* The caller has read @now before another CPU had the lock. */
	if (epoch <= q->epoch)
		return q->epoch;
	q->burst[epoch & 1] = 0;
	if (epoch != q->epoch + 1)
		q->burst[~epoch & 1] = 0;
	q->epoch = epoch;
	return epoch;
}

/**
 * rd_burst() - grant packets of an unscheduled burst
 * @q: the link's queue
 * @now: jiffies
 * @want: number of packets to send
 * @cost: link time of a packet, ns
 * @most: limit of the host: link time of a round trip, ns
 * @epoch: set to the epoch of the grant, for rd_burst_over()
 *
 * Return: number of packets granted.  rd_burst_over() returns them, or the second epoch does.
 */
u32 rd_burst(struct rd_queue *q, u64 now, u32 want, u64 cost, u64 most, u8 *epoch)
{
	u64 used, at;
	u32 may = 0;

	spin_lock_bh(&q->lock);
	at = rd_burst_age(q, now);
	used = q->burst[0] + q->burst[1];
	if (used < most)
		may = min_t(u64, want, div64_u64(most - used + cost - 1, cost));
	q->burst[at & 1] += may * cost;
	*epoch = at;
	spin_unlock_bh(&q->lock);
	return may;
}

/**
 * rd_burst_over() - return the packets of a burst that was acknowledged, or timed out
 * @q: the link's queue
 * @now: jiffies
 * @cost: link time of the granted packets, ns
 * @epoch: epoch of the grant
 */
void rd_burst_over(struct rd_queue *q, u64 now, u64 cost, u8 epoch)
{
	u8 ago;

	spin_lock_bh(&q->lock);
	ago = rd_burst_age(q, now) - epoch;
	if (ago < 2)
		q->burst[epoch & 1] -= min(cost, q->burst[epoch & 1]);
	spin_unlock_bh(&q->lock);
}

/* --- a queue's life ------------------------------------------------------------- */

/**
 * rd_queue_init() - initialise an empty queue
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
 * rd_queue_exit() - stop the timer
 * @q: the queue, which no receiver is on or joins
 */
void rd_queue_exit(struct rd_queue *q)
{
	hrtimer_cancel(&q->timer);
}

