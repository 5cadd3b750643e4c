// SPDX-License-Identifier: GPL-2.0
/* TLT in a crowd: windows of less than a packet.  Beyond the paper.
 *
 * Each connection has an important packet in flight, an MSS, and the port must hold all of them:
 * 1.8 MB hold 1200.  With more, important packets are lost, and connections wait for timers.  So
 * in a crowd a connection waits before it sends its next important packet:
 *
 *	I ----- round trip ----> echo ... wait ... I ----- round trip ----> echo
 *	     base RTT + queue
 *
 * A long queue alone proves no crowd: unimportant packets may fill it, and a path has the queues
 * of several ports.  So connections wait only after an important packet was lost: its echo was
 * late, and the clock that replaced it was answered while nothing else was delivered.  The
 * connections of a host to one destination have the last port in common, and learn of its crowd
 * from each other.
 *
 * They also have one wait, so that their rates are equal.  (If each computes its own from the
 * queues that it sees, Jain's index of 3000 rates is 0.7.)  The queue is the time by which an echo
 * takes longer than the minimum RTT.  N connections send a packet each in the time of the queue
 * and the wait, so at a busy port this sum is the transmission time of N packets: a wait that is
 * longer by a microsecond makes the queue shorter by a microsecond, one such sum later.  So in the
 * time of this sum the wait changes by half of the difference between the queue and its goal, for
 * any N, and however many echoes arrive; at twice the speed the queue would oscillate, because the
 * effect is delayed by the same time:
 *
 *	goal ^               .   half of the target,
 *	     |         .         and the root of a sixteenth of the target and the wait
 *	     |    .
 *	     | .
 *	     |.
 *	     +------------------> wait
 *
 * The hosts at a port know nothing of each other's waits.  They see the same queue, and the goal
 * increases with the wait: so longer waits decrease, and shorter ones increase, until they are
 * equal.  With 3000 connections the difference is a third of itself after 40 such sums, or 40 ms.
 *
 * Unimportant packets of a few connections may arrive, too, as the port's threshold for them
 * permits.  A connection waits for each packet that was delivered, and for the round trips that
 * these packets would take one by one, so that its rate is that of the others.  The wait does not
 * increase with the echoes of such connections: if all are like that, the window decides.  They
 * wait only behind a queue above three quarters of the target, for twelve times its length at most,
 * and for twice the others' waits: the address may have several bottlenecks, and theirs no crowd.
 * While the queue is shorter than half of the target, no connection waits: the port is almost idle.
 *
 * A wait is TCP's own pacing: the next packet leaves at tp->tcp_wstamp_ns, and TCP's pacing timer
 * sends it.  So a connection that is paced anyway (bbr, sch_fq, SO_MAX_PACING_RATE) never waits.
 * Nothing here lowers tp->tcp_wstamp_ns by more than a tick: the time stamps of packets that have
 * left depend on it.
 */
#include <linux/jhash.h>
#include <linux/math.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/random.h>
#include <net/gl_cong.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

#include "tlt_crowd.h"

/* A connection that also gets packets of the port that it may lose waits for this many times the
 * queue that it sees at most: another bottleneck may be at the same address (NAT, a load balancer).
 * With 3000 connections of a crowd, Jain's index of their rates is 0.94 with 8, and 0.98 with 12.
 */
#define TLT_CROWD_OWN		12U
/* Limit of a wait, ns: 33,000 packets at 40 Gbit/s. */
#define TLT_CROWD_WAIT_MAX	(10 * (u32)NSEC_PER_MSEC)
/* A destination has a crowd for so long after the last sign of one, us: ten longest waits. */
#define TLT_CROWD_LIFE		100000U
/* TCP's time stamps may decrease by a tick, 1 ms (TCP_PAWS_WINDOW). */
#define TLT_CROWD_BACK		((s64)NSEC_PER_MSEC)
/* The goal of the queue is half of the target, and the root of this part of the target and the
 * wait.  With 3000 and 6000 connections the goal is about 1.1 and 1.3 times the target.
 */
#define TLT_CROWD_ROOT		16
/* A connection waits for this many packets at most: those of TCP's first window. */
#define TLT_CROWD_PACKETS	10U

/* The queue, us, below which no connection waits. */
static u32 tlt_crowd_least(u32 target)
{
	return target / 2;
}

/* The queue, ns, at which this wait, ns, is right.  @target: us. */
static s64 tlt_crowd_goal(u32 wait, u32 target)
{
	u64 product = (u64)wait * target * NSEC_PER_USEC;

	return tlt_crowd_least(target) * (s64)NSEC_PER_USEC + int_sqrt64(product / TLT_CROWD_ROOT);
}

/**
 * tlt_crowd_wait() - the wait of a destination's connections after an echo
 * @wait: before, ns, at most TLT_CROWD_WAIT_MAX
 * @queue: by how much the echo took longer than the minimum RTT, us
 * @us: since the wait changed before
 * @target: net.ipv4.tlt_crowd, us
 *
 * Return: ns, at most TLT_CROWD_WAIT_MAX.
 */
u32 tlt_crowd_wait(u32 wait, u32 queue, u32 us, u32 target)
{
	u32 cycle;
	s64 over;

	queue = min(queue, (u32)(2 * TLT_CROWD_WAIT_MAX / NSEC_PER_USEC));
	cycle = max(queue + wait / (u32)NSEC_PER_USEC, 1U);
	over = queue * (s64)NSEC_PER_USEC - tlt_crowd_goal(wait, target);
	return clamp_t(s64, wait + div_s64(over * min(us, cycle), 2 * cycle), 0,
		       TLT_CROWD_WAIT_MAX);
}

/* A hash of the destination of @sk.  One of 2^32 other destinations has the same. */
static u32 tlt_crowd_key(const struct sock *sk, const struct tlt_crowds *crowds)
{
#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		return __ipv6_addr_jhash(&sk->sk_v6_daddr, crowds->seed);
#endif
	return jhash_1word((__force u32)sk->sk_daddr, crowds->seed);
}

static struct tlt_crowd_dest *tlt_crowd_dest(struct tlt_crowds *crowds, u32 key)
{
	return &crowds->dest[key % ARRAY_SIZE(crowds->dest)];
}

/* Jiffies wrap after weeks; an entry as old as that is valid again for a moment. */
static bool tlt_crowd_is_recent(const struct tlt_crowd_dest *dest)
{
	/* Another processor may write the present jiffies: read them afterwards. */
	u32 sign = READ_ONCE(dest->sign);

	return tcp_jiffies32 - sign <= usecs_to_jiffies(TLT_CROWD_LIFE);
}

static void tlt_crowd_renew(struct tlt_crowd_dest *dest)
{
	u32 now = tcp_jiffies32;

	/* Other processors read the entry with each echo. */
	if (READ_ONCE(dest->sign) != now)
		WRITE_ONCE(dest->sign, now);
}

/* The destination of @sk has a crowd.  A new crowd begins without a wait.  If another destination
 * with a crowd has the entry, there is no room for this one.
 */
void tlt_crowd_report(const struct sock *sk, struct tlt_crowds *crowds)
{
	u32 key = tlt_crowd_key(sk, crowds);
	struct tlt_crowd_dest *dest = tlt_crowd_dest(crowds, key);

	if (!tlt_crowd_is_recent(dest)) {
		WRITE_ONCE(dest->wait, 0);
		WRITE_ONCE(dest->key, key);
	}
	if (READ_ONCE(dest->key) == key)
		tlt_crowd_renew(dest);
}

/**
 * tlt_crowd_find() - find the crowd at the destination of a connection
 * @sk: the connection
 * @crowds: the crowds of its namespace
 *
 * Return: the entry, or NULL without a crowd.
 */
struct tlt_crowd_dest *tlt_crowd_find(const struct sock *sk, struct tlt_crowds *crowds)
{
	u32 key = tlt_crowd_key(sk, crowds);
	struct tlt_crowd_dest *dest = tlt_crowd_dest(crowds, key);

	return READ_ONCE(dest->key) == key && tlt_crowd_is_recent(dest) ? dest : NULL;
}

/* No destination has a crowd. */
void tlt_crowds_init(struct tlt_crowds *crowds)
{
	u32 past = tcp_jiffies32 - usecs_to_jiffies(TLT_CROWD_LIFE) - 1;
	int i;

	memset(crowds, 0, sizeof(*crowds));
	crowds->seed = get_random_u32();
	for (i = 0; i < ARRAY_SIZE(crowds->dest); i++)
		crowds->dest[i].sign = past;
}

/* Is the important packet all that the port admits?  @packets: delivered since the last echo.  A
 * window of two may have lost its other packet before; without data, no packet could be lost.
 */
static bool tlt_crowd_is_alone(const struct sock *sk, u16 packets, bool lost)
{
	const struct tcp_sock *tp = tcp_sk(sk);

	return packets <= 1 && (lost || tp->lost_out || tp->sacked_out ||
				(tcp_snd_cwnd(tp) <= 2 && tcp_send_head(sk)));
}

/* Does no one else pace the connection? */
bool tlt_crowd_is_free(const struct sock *sk, const struct tlt_crowd *crowd)
{
	u32 status = READ_ONCE(sk->sk_pacing_status);

	return READ_ONCE(sk->sk_max_pacing_rate) == ~0UL &&
	       (status == SK_PACING_NONE || (crowd->paced && status == SK_PACING_NEEDED));
}

/* TCP sends no packet before @ns of its clock. */
static void tlt_crowd_hold(struct sock *sk, struct tlt_crowd *crowd, u64 ns)
{
	struct tcp_sock *tp = tcp_sk(sk);

	gl_pacing_begin(sk);
	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns, ns);
	crowd->paced = 1;
	crowd->waits = 1;
	crowd->watched = 1;
	tlt_crowd_wake(sk, tp->tcp_wstamp_ns);
}

/* The time for which a connection waits, ns.  @wait: for each packet; @rtt, @queue: us.  If the
 * wait is short beside the round trip, the crowd is small, and round trips count as a wait.
 */
static u64 tlt_crowd_own(u64 wait, u32 rtt, u32 queue, u16 packets, bool alone)
{
	packets = clamp_t(u32, packets, 1, TLT_CROWD_PACKETS);
	wait = wait * packets + (packets - 1) * min(wait, (u64)rtt * NSEC_PER_USEC);
	if (!alone)
		wait = min(wait, queue * (u64)TLT_CROWD_OWN * NSEC_PER_USEC);
	return min_t(u64, wait, TLT_CROWD_WAIT_MAX);
}

/* The wait that an echo leaves to the destination's connections, ns. */
static u32 tlt_crowd_learn(struct tlt_crowd_dest *dest, u32 now, u32 queue, u32 target)
{
	/* Negative if another processor has processed a later echo. */
	s32 us = max((s32)(now - READ_ONCE(dest->us)), 0);
	u32 wait = tlt_crowd_wait(READ_ONCE(dest->wait), queue, us, target);

	WRITE_ONCE(dest->us, now);
	WRITE_ONCE(dest->wait, wait);
	return wait;
}

/**
 * tlt_crowd_echo() - an echo has arrived: how long does TCP wait before its next packet?
 * @sk: the connection, locked; TCP has not sent a packet for this ACK yet
 * @crowd: its state
 * @dest: the crowd at its destination, whose sign is renewed if it goes on; or NULL
 * @now: TCP's clock, us
 * @rtt: since the important packet left, us
 * @target: net.ipv4.tlt_crowd, us
 * @lost: the echo has found packets lost, and TCP has not marked them yet
 *
 * Return: true if TCP waits.
 */
bool tlt_crowd_echo(struct sock *sk, struct tlt_crowd *crowd, struct tlt_crowd_dest *dest, u64 now,
		    u32 rtt, u32 target, bool lost)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u16 packets = tp->delivered - crowd->delivered;
	u32 queue = rtt - min(rtt, tcp_min_rtt(tp));
	u32 least = tlt_crowd_least(target), wait = 0;
	bool alone;

	crowd->delivered = tp->delivered;
	alone = dest && tlt_crowd_is_alone(sk, packets, lost);
	if (dest)
		wait = tlt_crowd_learn(dest, now, alone ? queue : min(queue, least), target);
	if (alone && tlt_crowd_goal(wait, target) < 2 * (s64)queue * NSEC_PER_USEC)
		tlt_crowd_renew(dest);
	if (!wait || queue < (alone ? least : least + least / 2)) {
		tlt_crowd_end(sk, crowd);
		return false;
	}
	tlt_crowd_hold(sk, crowd, now * NSEC_PER_USEC +
		       tlt_crowd_own(wait, rtt, queue, packets, alone));
	return true;
}

/* Does the next packet wait? */
bool tlt_crowd_is_waiting(const struct sock *sk, const struct tlt_crowd *crowd)
{
	return crowd->waits && tcp_sk(sk)->tcp_wstamp_ns > tcp_clock_ns();
}

/* Has the next packet waited, less than a round trip ago?  Then it continues the crowd,
 * also if no packet is in flight.
 */
bool tlt_crowd_has_waited(const struct sock *sk, const struct tlt_crowd *crowd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rtt = (u64)(tp->srtt_us >> 3) * NSEC_PER_USEC;

	return crowd->waits && tcp_clock_ns() < tp->tcp_wstamp_ns + rtt;
}

/* Switch off the pacing, unless the application has requested a rate meanwhile. */
static void tlt_crowd_unpace(struct sock *sk, struct tlt_crowd *crowd)
{
	if (crowd->paced)
		gl_pacing_end(sk);
	crowd->paced = 0;
}

/**
 * tlt_crowd_end() - the connection is in no crowd
 * @sk: the connection, locked
 * @crowd: its state
 *
 * The packets delivered so far do not count for the next echo.  A long wait that is left still
 * applies to the next packet; a later call switches the pacing off.
 */
void tlt_crowd_end(struct sock *sk, struct tlt_crowd *crowd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 left;

	crowd->delivered = tp->delivered;
	crowd->waits = 0;
	if (!crowd->paced)
		return;
	left = tp->tcp_wstamp_ns - tcp_clock_ns();
	if (left > TLT_CROWD_BACK)
		return;
	tp->tcp_wstamp_ns -= max(left, 0);
	tlt_crowd_unpace(sk, crowd);
}

/**
 * tlt_crowd_leave() - the connection leaves TLT
 * @sk: the connection, locked
 * @crowd: its state
 *
 * No later call can switch the pacing off.  Without it TCP does not wait for tp->tcp_wstamp_ns.
 */
void tlt_crowd_leave(struct sock *sk, struct tlt_crowd *crowd)
{
	tlt_crowd_end(sk, crowd);
	tlt_crowd_unpace(sk, crowd);
}

/**
 * tlt_crowd_wake() - have TCP try to send at a time
 * @sk: the connection, locked
 * @ns: TCP's clock
 *
 * By the timer of TCP's pacing, which has a reference on the socket while it is pending.  TCP sends
 * in that timer's function, too: if the timer has been started again there, it cannot be cancelled,
 * and stays.
 */
void tlt_crowd_wake(struct sock *sk, u64 ns)
{
	struct hrtimer *timer = &tcp_sk(sk)->pacing_timer;
	int cancelled;

	if (hrtimer_is_queued(timer) && ktime_to_ns(hrtimer_get_expires(timer)) <= ns)
		return;
	cancelled = hrtimer_try_to_cancel(timer);
	if (cancelled < 0 && hrtimer_is_queued(timer))
		return;
	if (cancelled != 1)
		sock_hold(sk);
	hrtimer_start(timer, ns_to_ktime(ns), HRTIMER_MODE_ABS_PINNED_SOFT);
}
