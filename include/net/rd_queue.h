/* SPDX-License-Identifier: GPL-2.0 */
/* Receiver-driven transports: a queue schedules the receivers that share a link.
 *
 * A receiver permits its peer one packet at a time, by a credit for instance.  That packet
 * occupies the host's link, so the link's queue schedules its receivers one after the other:
 *
 *	requests --> receiver, OFF --+--> LATER, by time --> READY, by rank
 *	                             |                         |
 *	                             +-------------------------+ one at a time, when the link
 *	                                                       v is free
 *	                OFF <-- all permitted ----------- ISSUING: sends a credit
 *
 * The rank is the link time that the receiver has used (fair queueing), or the rest of its message
 * (SRPT); the transport chooses.  A receiver may have a window of data in flight: the arrival of
 * data permits more, and all windows together have a limit.  With SRPT it needs no free link then.
 *
 * One timer serves all receivers of a link.  It runs only while one of them has a credit to send,
 * and it serves the senders' alarms, too.  See rd_queue.c.
 */
#ifndef _NET_RD_QUEUE_H
#define _NET_RD_QUEUE_H

#include <linux/hrtimer.h>
#include <linux/jiffies.h>
#include <linux/minmax.h>
#include <linux/rbtree.h>
#include <linux/rcupdate.h>
#include <linux/refcount.h>
#include <linux/spinlock.h>
#include <linux/time64.h>
#include <linux/types.h>

struct link_speed;
struct rd_alarm;
struct rd_receiver;

/* No time. */
#define RD_NEVER	U64_MAX

/* A late timer may catch up with this much link time: timers and softirqs are late by less.  With
 * a limit of 8 packets, 0.26 us at 400 Gbit/s, two flows had 0.36 of that link.  On a slow link
 * the limit is 8 packets, because a switch port queues 8 credits (ExpressPass, §3.2).
 */
#define RD_CATCH_UP_NS	(10 * NSEC_PER_USEC)
#define RD_CATCH_UP	8

/* With SRPT, every RD_ROUND-th credit is scheduled round robin among the waiting receivers.  So no
 * receiver starves, and its next credit is at most RD_ROUND credits for each receiver away, which
 * is the wait that it advertises to its peer.  Round robin takes at most 3 % of the link from the
 * shortest messages; Homa's module for Linux gives 5 % to the oldest one.
 */
#define RD_ROUND	32

/* An unscheduled burst that is not acknowledged expires after one or two epochs, jiffies: longer
 * than any round trip in a datacenter, and than a sender waits before it repeats its request.
 */
#define RD_EPOCH	(HZ / 10 ?: 1)

/* A full window, in the account of windows.  Near and far connections count alike: each of them may
 * have one in flight.
 */
#define RD_WINDOW_FULL	65536U

/* Levels of the data of receivers with a window: switches serve the highest first. */
#define RD_LEVELS	4U

/**
 * struct rd_level - the last receiver at a level
 * @r: the receiver; only its address is used, so it may have been freed
 * @left: link time of the rest of its message, ns
 * @at: when it was scheduled, ns
 */
struct rd_level {
	const struct rd_receiver *r;
	u64 left;
	u64 at;
};

/**
 * struct rd_queue - the receivers that share a link
 * @lock: protects the fields up to @timer, and the receivers on the queue.  It nests inside a
 *	socket's lock, never around one
 * @ready: receivers that wait for the link, by rank
 * @later: receivers whose next credit is not due yet, the earliest first
 * @alarms: of senders, the earliest first
 * @served: virtual time of the fair queue: rank of the receiver scheduled last, ns
 * @free: the link will have carried all packets that were permitted, ns
 * @burst: link time of unscheduled packets that no receiver has acknowledged yet, ns: of the even
 *	and of the odd epoch
 * @epoch: number of the current RD_EPOCH
 * @receivers: number of receivers in @ready, or issuing
 * @scheduled: number of credits scheduled
 * @round: position of the round robin in @ready; NULL is its end
 * @rounds: number of completed rounds, the low bits
 * @out: data in flight to receivers with a window: sum of their @charged; also read without the
 *	lock
 * @limit: of @out
 * @moved: when such data arrived last, or was found lost, ns, low half; without the lock
 * @stall: if no such data arrives until then while @out is at its limit, its senders are silent, ns
 * @level: the receiver with a window that was scheduled last at each level
 * @timer: fires when the link is free, or for the first of @later or @alarms
 * @link: the link, whose @attached this is; NULL for the spare queue of rd_path.c.  Holds a
 *	reference.  Written before the queue is attached
 * @refs: one for each connection that uses the queue, atomic: the last one detaches the queue
 * @rcu: the timer and rd_path.c may still read the queue when the last reference is put
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
	unsigned int		scheduled;
	struct rd_receiver	*round;
	unsigned int		rounds:2;
	u64			out;
	u32			limit;
	u32			moved;
	u64			stall;
	struct rd_level		level[RD_LEVELS];
	struct hrtimer		timer;
	struct link_speed	*link;
	refcount_t		refs;
	struct rcu_head		rcu;
};

/**
 * rd_is_full() - do the windows of the link leave no room for more data?
 * @q: its queue; without the lock the account may change at once
 *
 * Return: true if they have @limit in flight.
 */
static inline bool rd_is_full(const struct rd_queue *q)
{
	/* The lock protects both, and a reader without it does not need them to agree. */
	return data_race(q->out >= q->limit);
}

/**
 * rd_catch_up() - limit by which a late timer catches up
 * @now: ns
 * @gap: time between two packets, ns
 *
 * Return: the earliest time that a packet may still be due at, ns.
 */
static inline u64 rd_catch_up(u64 now, u64 gap)
{
	return now - min(now, max_t(u64, RD_CATCH_UP * gap, RD_CATCH_UP_NS));
}

enum rd_state {
	RD_OFF,
	RD_LATER,
	RD_READY,
	RD_ISSUING,
};

/**
 * struct rd_receiver - a receiving connection
 * @node: in @ready or @later of its queue
 * @at: its next credit is due, ns.  With @windowed: its window is closed until then at the latest
 * @rank: its place in @ready, the lowest first.  With @shortest: link time of the rest of its
 *	message, ns.  Else the link time that it has used, ns, or would have used if it had been on
 *	the queue all the time
 * @shortest: @rank is that of SRPT; such receivers precede those of the fair queue
 * @windowed: it has a window, and with @shortest the link does not limit its credits
 * @state: enum rd_state
 * @charged: data in flight, as a part of its window: RD_WINDOW_FULL stands for all of it.  0 if
 *	@state is RD_OFF
 * @rounds: the queue's @rounds when the round robin scheduled it last, or when it joined
 * @queue: its link's queue; the socket's lock
 *
 * The queue's lock protects all other fields.  The socket's lock alone suffices to read @at,
 * @charged, and whether @state is RD_OFF.
 */
struct rd_receiver {
	struct rb_node		node;
	u64			at;
	u64			rank:58,
				shortest:1,
				windowed:1,
				state:2,
				rounds:2;
	u32			charged;
	struct rd_queue		*queue;
};

/**
 * struct rd_alarm - a sender's timeout
 * @node: in @alarms of its queue
 * @at: expiry, ns; RD_NEVER if it is not pending
 *
 * The queue's lock protects the fields.
 */
struct rd_alarm {
	struct rb_node		node;
	u64			at;
};

/* Is the receiver neither on a queue nor issuing?  The socket's lock suffices: the timer changes
 * @state, too, but not from or to RD_OFF.
 */
static inline bool rd_is_off(const struct rd_receiver *r)
{
	/* It shares a word with @rank. */
	return data_race(r->state == RD_OFF);
}

/* rd_receiver.c */
void rd_issue_hold(struct rd_receiver *r);
void rd_issue_socket(struct rd_receiver *r, u64 now);
void rd_alarm_expired(struct rd_alarm *a);

/* rd_queue.c */
void rd_queue_init(struct rd_queue *q);
void rd_queue_exit(struct rd_queue *q);
bool rd_want(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 at, u64 left);
void rd_served(struct rd_queue *q, struct rd_receiver *r, u64 now, u64 cost, u64 at, u64 left);
void rd_leave(struct rd_queue *q, struct rd_receiver *r);
void rd_window(struct rd_queue *q, struct rd_receiver *r, u32 part, u32 slots, u64 at,
	       u64 stall);
unsigned int rd_level(struct rd_queue *q, const struct rd_receiver *r, u64 now, u64 left, u64 age);
void rd_alarm_set(struct rd_queue *q, struct rd_alarm *a, u64 at);
void rd_yield(struct rd_queue *q, u64 now, u64 cost, u64 most);

u32 rd_burst(struct rd_queue *q, u64 now, u32 want, u64 cost, u64 most, u8 *epoch);
void rd_burst_over(struct rd_queue *q, u64 now, u64 cost, u8 epoch);

#endif /* _NET_RD_QUEUE_H */
