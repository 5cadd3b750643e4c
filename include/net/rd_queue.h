/* SPDX-License-Identifier: GPL-2.0 */
/* Receiver-driven transports: the receivers that share a link, and whose turn it is.
 *
 * A receiver lets its peer send a packet at a time, by a credit, say.  What it lets come
 * occupies the host's link, so the link takes turns among its receivers:
 *
 *	requests --> receiver, OFF --+--> LATER, by time --> READY, by rank
 *	                             |                         |
 *	                             +-------------------------+ one at a time, as the link
 *	                                                       v is free
 *	                       OFF <-- nothing left -------- TURN: issues a credit
 *
 * The rank is what each has had (turns are fair), or what is left of its message (the shortest
 * goes first); the transport chooses.
 *
 * There is one timer for any number of receivers, and it runs only while one of them has
 * something to issue.  It serves the senders' alarms as well.  See rd_queue.c.
 */
#ifndef _NET_RD_QUEUE_H
#define _NET_RD_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/types.h>

struct rd_alarm;
struct rd_ops;
struct rd_receiver;

/* No time. */
#define RD_NEVER	U64_MAX

/* A late timer makes up for this much time: longer than timers and softirqs are late.  With 8
 * packets, 0.26 us at 400 Gbit/s, two flows had 0.36 of that link.  On a slow link it makes up for
 * 8 packets, because a switch port queues as many credits (ExpressPass, §3.2).
 */
#define RD_CATCH_UP_NS	(10 * NSEC_PER_USEC)
#define RD_CATCH_UP	8

/* Where the shortest goes first, one turn in so many goes round: the receivers that wait have it
 * one after the other.  So none starves, and the time until a receiver's next turn has a limit that
 * its peer can be told: RD_ROUND turns for each receiver.  This takes at most 3 % of the link from
 * the shortest; Homa's module for Linux gives 5 % to the oldest message.
 */
#define RD_ROUND	32

/* A burst without an answer is forgotten after one or two times this, longer than any round
 * trip in a datacenter, and longer than a sender waits before it asks again.
 */
#define RD_EPOCH	(HZ / 10 ?: 1)

/**
 * struct rd_queue - the receivers that share a link
 * @lock: protects all fields, and those of the receivers on the queue; taken inside of the
 *	lock of a socket, never around it
 * @ready: receivers that wait for the link, by rank
 * @later: receivers that want no turn before a time of their own, the earliest first
 * @alarms: of senders, the earliest first
 * @served: what the last receiver with a fair turn was given before, ns of the link's time
 * @free: the link will be through with all that was issued, ns
 * @burst: what was sent, or is about to be, before any answer came, ns of the link's time: in the
 *	even and in the odd epoch
 * @epoch: RD_EPOCH, counted
 * @receivers: how many are ready, or have their turn
 * @turns: how many turns there were
 * @round: where in @ready the turns that go round have come to; NULL for its end
 * @rounds: how often they have gone round, the low bits
 * @timer: wakes the queue when the link is free, or for the first of @later or @alarms
 */
struct rd_queue {
	spinlock_t		lock;	/* see above */
	struct rb_root_cached	ready;
	struct rb_root_cached	later;
	struct rb_root_cached	alarms;
	u64			served;
	u64			free;
	u64			burst[2];
	u64			epoch;
	unsigned int		receivers;
	unsigned int		turns;
	struct rd_receiver	*round;
	unsigned int		rounds:2;
	struct hrtimer		timer;
};

/**
 * rd_catch_up() - how much a late timer makes up for
 * @now: ns
 * @gap: time between two packets, ns
 *
 * Return: the earliest time that still counts, ns.
 */
static inline u64 rd_catch_up(u64 now, u64 gap)
{
	return now - min(now, max_t(u64, RD_CATCH_UP * gap, RD_CATCH_UP_NS));
}

/**
 * struct rd_ops - what rd_core.ko does for its connections
 * @hold: take the references that @turn drops; under the queue's lock
 * @turn: it is the receiver's turn: lock its socket, issue, and call rd_served() with the socket
 *	still locked.  It is @now, ns.  If a process owns the socket, call rd_served() with RD_NEVER
 *	or a time soon, and rd_want() when the process has released it.  Softirq
 * @alarm: a time that rd_alarm_set() has set has come.  Under the queue's lock, softirq
 */
struct rd_ops {
	void (*hold)(struct rd_receiver *r);
	void (*turn)(struct rd_receiver *r, u64 now);
	void (*alarm)(struct rd_alarm *a);
};

enum rd_state {
	RD_OFF,
	RD_LATER,
	RD_READY,
	RD_TURN,
};

/**
 * struct rd_receiver - one connection that receives
 * @node: in @ready or @later of its queue
 * @at: it wants no turn before, ns
 * @rank: its place in @ready, the least first.  With @shortest: what is left of its message, ns of
 *	the link's time.  Else what it has had of that, or would have had if it had been on the
 *	queue all the time
 * @shortest: what @rank is.  Those with it go before those without
 * @state: enum rd_state
 * @rounds: the queue's @rounds when it had such a turn last, or joined
 * @queue: its link's queue; the socket's lock
 *
 * The queue's lock protects all other fields.  With the socket's lock alone, @at can be read, and
 * whether @state is RD_OFF.
 */
struct rd_receiver {
	struct rb_node		node;
	u64			at;
	u64			rank:59,
				shortest:1,
				state:2,
				rounds:2;
	struct rd_queue		*queue;
};

/**
 * struct rd_alarm - when a sender wants to be called, if nothing comes
 * @node: in @alarms of its queue
 * @at: ns; RD_NEVER if it is not there
 *
 * The queue's lock protects the fields.
 */
struct rd_alarm {
	struct rb_node		node;
	u64			at;
};

/* Is the receiver neither on a queue nor at its turn?  The socket's lock suffices: others change
 * @state as well, but not from or to RD_OFF.
 */
static inline bool rd_is_off(const struct rd_receiver *r)
{
	/* It shares a word with @rank. */
	return data_race(r->state == RD_OFF);
}

void rd_ops_set(const struct rd_ops *ops);
void rd_queue_init(struct rd_queue *q);
void rd_queue_exit(struct rd_queue *q);
bool rd_want(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 at, u64 left);
void rd_served(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 cost, u64 at, u64 left);
void rd_leave(struct rd_queue *q, struct rd_receiver *r);
void rd_alarm_set(struct rd_queue *q, struct rd_alarm *a, u64 at);
void rd_yield(struct rd_queue *q, u64 now, u64 cost, u64 most);

u32 rd_burst(struct rd_queue *q, u64 now, u32 want, u64 cost, u64 most, u8 *epoch);
void rd_burst_over(struct rd_queue *q, u64 now, u64 cost, u8 epoch);

#endif /* _NET_RD_QUEUE_H */
