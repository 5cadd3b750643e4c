// SPDX-License-Identifier: GPL-2.0
/* TLT in a crowd: windows of less than a packet.  Beyond the paper.
 *
 * Each connection has an important packet in flight, an MSS, and the port must hold all of them:
 * 1.8 MB hold 1200.  With more, important packets are lost, and connections wait for timers.  So in
 * a crowd a connection waits before it sends its next important packet:
 *
 *	I ----- round trip ----> echo ....... wait ......... I ----- round trip ----> echo
 *	     base RTT + queue           queue (1 - share) / share
 *
 * A long queue alone proves no crowd: unimportant packets may fill it, and a path has the queues of
 * several ports.  So connections wait only after an important packet was lost: its echo was late,
 * and the clock that replaced it was answered while nothing else was delivered.  The connections of
 * a host to one destination have the last port in common, and learn of its crowd from each other.
 *
 * The queue is the time by which an echo takes longer than the minimum RTT.  A wait is a multiple
 * of the queue and not of the round trip, of which the base may be the larger part.  All
 * connections of a port see about the same queue, and it alone determines the goal of their shares:
 *
 *	share ^
 *	    1 |--------.
 *	  1/2 |         \ .
 *	  1/4 |            `-.__
 *	      +--------+---+---+----> queue
 *	             target  a fifth of it
 *
 * and each echo moves the share towards it.  Additive increase and multiplicative decrease (Swift's
 * windows below one) would take hundreds of round trips.  Slower steps oscillate: a connection
 * learns the effect of its share only after the next wait.  The queue varies, and connections see
 * it at different times, so shares are not equal: results.rst has Jain's index.
 *
 * The share decreases only if the port drops all but the important packet.  If unimportant packets
 * arrive, the queue is below their threshold: the share doubles, and the window decides.
 *
 * A wait is TCP's own pacing: the next packet leaves at tp->tcp_wstamp_ns, and TCP's pacing timer
 * sends it.  So a connection that is paced anyway (bbr, sch_fq, SO_MAX_PACING_RATE) never waits.
 * Nothing here lowers tp->tcp_wstamp_ns by more than a tick: the time stamps of packets that have
 * left depend on it.
 */
#include <linux/hash.h>
#include <linux/math.h>
#include <linux/minmax.h>
#include <net/ipv6.h>
#include <net/tcp.h>

#include <net/gl_compat.h>

#include "tlt_crowd.h"

/* The least share: 38,000 connections at a port of 1.8 MB. */
#define TLT_CROWD_LEAST		(TLT_CROWD_WHOLE / 32)
/* Limit of a wait, us: 33,000 packets at 40 Gbit/s. */
#define TLT_CROWD_WAIT_MAX	10000U
/* A destination has a crowd for so long after the last sign of one, us: ten longest waits. */
#define TLT_CROWD_LIFE		(10 * TLT_CROWD_WAIT_MAX)
/* TCP's time stamps may decrease by a tick, 1 ms (TCP_PAWS_WINDOW). */
#define TLT_CROWD_BACK		((s64)NSEC_PER_MSEC)
/* The goal of the share is halved with each such part of the target that the queue is above it.
 * With 3000 and 6000 connections the queue is about 1.4 and 1.6 times the target.
 */
#define TLT_CROWD_STEPS		5

/* The share that all connections should have at this queue.  Both times in us. */
static u32 tlt_crowd_goal(u32 queue, u32 target)
{
	u32 step = max(target / TLT_CROWD_STEPS, 1U), over, goal;

	if (queue <= target)
		return TLT_CROWD_WHOLE;
	over = queue - target;
	goal = TLT_CROWD_WHOLE >> min(over / step, 31U);
	goal -= goal * (over % step) / step / 2;
	return max(goal, TLT_CROWD_LEAST);
}

/**
 * tlt_crowd_share() - the share after an echo
 * @share: before, TLT_CROWD_LEAST ... TLT_CROWD_WHOLE
 * @queue: by how much the echo took longer than the minimum RTT, us
 * @target: the queue up to which no connection waits, us
 *
 * The share moves by half of the difference from the goal, an increase by at most an eighth,
 * because all connections of a port increase at the same time.  If the queue is almost empty, it
 * doubles.
 *
 * Return: the share, in 1/TLT_CROWD_WHOLE.
 */
u32 tlt_crowd_share(u32 share, u32 queue, u32 target)
{
	u32 goal = tlt_crowd_goal(queue, target), most;

	if (goal < share)
		return share - (share - goal) / 2;
	most = queue < target / 4 ? share : share / 8 + 1;
	return share + min(DIV_ROUND_UP(goal - share, 2), most);
}

/**
 * tlt_crowd_wait() - time between an echo and the next packet
 * @share: in 1/TLT_CROWD_WHOLE
 * @queue: by how much the echo took longer than the minimum RTT, us
 *
 * Return: us, at most TLT_CROWD_WAIT_MAX.
 */
u32 tlt_crowd_wait(u32 share, u32 queue)
{
	return min_t(u64, (u64)queue * (TLT_CROWD_WHOLE - share) / share, TLT_CROWD_WAIT_MAX);
}

/* The jiffies of the last sign of a crowd at the destination of @sk.  Other destinations may have
 * the same entry: a connection that is alone behind a long queue then waits without need.
 */
static u32 *tlt_crowd_sign(const struct sock *sk, struct tlt_crowds *crowds)
{
	u32 daddr = (__force u32)sk->sk_daddr;

#if IS_ENABLED(CONFIG_IPV6)
	if (sk->sk_family == AF_INET6 && !ipv6_addr_v4mapped(&sk->sk_v6_daddr))
		daddr = __ipv6_addr_jhash(&sk->sk_v6_daddr, 0);
#endif
	return &crowds->sign[hash_32(daddr, TLT_CROWD_BITS)];
}

/* The destination of @sk has a crowd. */
void tlt_crowd_report(const struct sock *sk, struct tlt_crowds *crowds)
{
	u32 *sign = tlt_crowd_sign(sk, crowds), now = tcp_jiffies32;

	/* Other processors read the entry with each echo. */
	if (READ_ONCE(*sign) != now)
		WRITE_ONCE(*sign, now);
}

/* Has the destination of @sk a crowd?  Jiffies wrap after weeks; an entry as old as that is valid
 * again for a moment.
 */
bool tlt_crowd_is_reported(const struct sock *sk, struct tlt_crowds *crowds)
{
	/* Another processor may write the present jiffies: read them afterwards. */
	u32 sign = READ_ONCE(*tlt_crowd_sign(sk, crowds));

	return tcp_jiffies32 - sign <= usecs_to_jiffies(TLT_CROWD_LIFE);
}

/* No destination has a crowd. */
void tlt_crowds_init(struct tlt_crowds *crowds)
{
	u32 past = tcp_jiffies32 - usecs_to_jiffies(TLT_CROWD_LIFE) - 1;

	memset32(crowds->sign, past, ARRAY_SIZE(crowds->sign));
}

/* Is the important packet all that the port admits?  @packets: delivered since the last echo.  A
 * window of two may have lost its other packet before; a connection without data has no share.
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

static void tlt_crowd_hold(struct sock *sk, struct tlt_crowd *crowd, u32 us)
{
	struct tcp_sock *tp = tcp_sk(sk);
	u64 ns = tcp_clock_ns() + us * (u64)NSEC_PER_USEC;

	cmpxchg(&sk->sk_pacing_status, SK_PACING_NONE, SK_PACING_NEEDED);
	tp->tcp_wstamp_ns = max(tp->tcp_wstamp_ns, ns);
	crowd->paced = 1;
	crowd->waits = 1;
	crowd->watched = 1;
	tlt_crowd_wake(sk, tp->tcp_wstamp_ns);
}

/**
 * tlt_crowd_echo() - an echo has arrived: how long does TCP wait before its next packet?
 * @sk: the connection, locked; TCP has not sent a packet for this ACK yet
 * @crowd: its state
 * @rtt: since the important packet left, us
 * @target: the queue up to which no connection waits, us
 * @lost: the echo has found packets lost, and TCP has not marked them yet
 * @crowds: the crowds of the namespace; one that goes on is reported
 *
 * Return: true if TCP waits.
 */
bool tlt_crowd_echo(struct sock *sk, struct tlt_crowd *crowd, u32 rtt, u32 target, bool lost,
		    struct tlt_crowds *crowds)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u16 packets = tp->delivered - crowd->delivered;
	u32 queue = rtt - min(rtt, tcp_min_rtt(tp)), share, us;

	crowd->delivered = tp->delivered;
	/* Without a crowd, or if other packets arrive too, the queue counts as empty. */
	if (!tlt_crowd_is_reported(sk, crowds) || !tlt_crowd_is_alone(sk, packets, lost))
		target = U32_MAX;
	if (queue > target)
		tlt_crowd_report(sk, crowds);
	share = tlt_crowd_share(TLT_CROWD_WHOLE - crowd->withheld, queue, target);
	us = tlt_crowd_wait(share, queue);
	if (!us || !tlt_crowd_is_free(sk, crowd)) {
		tlt_crowd_end(sk, crowd);
		return false;
	}
	crowd->withheld = TLT_CROWD_WHOLE - share;
	tlt_crowd_hold(sk, crowd, us);
	return true;
}

/* Does the next packet wait? */
bool tlt_crowd_is_waiting(const struct sock *sk, const struct tlt_crowd *crowd)
{
	return crowd->waits && tcp_sk(sk)->tcp_wstamp_ns > tcp_clock_ns();
}

/* Has the next packet waited, less than a round trip ago?  Then it continues the connection's
 * share, also if no packet is in flight.
 */
bool tlt_crowd_has_waited(const struct sock *sk, const struct tlt_crowd *crowd)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	u64 rtt = (u64)(tp->srtt_us >> 3) * NSEC_PER_USEC;

	return crowd->waits && tcp_clock_ns() < tp->tcp_wstamp_ns + rtt;
}

/**
 * tlt_crowd_end() - the connection is in no crowd
 * @sk: the connection, locked
 * @crowd: its state
 *
 * The packets delivered so far do not count for the next echo.  A long wait that is left still
 * applies to the next packet; a later call switches the pacing off, unless the application has
 * requested a rate meanwhile.
 */
void tlt_crowd_end(struct sock *sk, struct tlt_crowd *crowd)
{
	struct tcp_sock *tp = tcp_sk(sk);
	s64 left;

	crowd->delivered = tp->delivered;
	crowd->withheld = 0;
	crowd->waits = 0;
	if (!crowd->paced)
		return;
	left = tp->tcp_wstamp_ns - tcp_clock_ns();
	if (left > TLT_CROWD_BACK)
		return;
	tp->tcp_wstamp_ns -= max(left, 0);
	if (READ_ONCE(sk->sk_max_pacing_rate) == ~0UL)
		cmpxchg(&sk->sk_pacing_status, SK_PACING_NEEDED, SK_PACING_NONE);
	crowd->paced = 0;
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
