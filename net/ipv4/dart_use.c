// SPDX-License-Identifier: GPL-2.0
/* Dart: divide the line rate among the hosts that use it.
 *
 * A host with an open message may not send: its peer's window is closed, the application paces it,
 * or other congestion delays it.  Its share of the line rate would be lost.  So the receiver counts
 * the bytes of each host, and compares them with its share at intervals:
 *
 *	host  share  used   from then on
 *	a     1/4    1/50   counts as 1/25: twice as much as it used
 *	b     1/4    0      counts as 0
 *	c, d  1/4    1/4    (1 - 1/25) / 2 each
 *
 * A host that uses less than half of its share is *limited*, and counts as twice as much as it
 * used.  The other hosts divide the rest by their weights, and the next look may find that one of
 * them does not use its part: this is max-min fairness, one step per interval.
 *
 * The receiver still advertises to a limited host the share that it would have if it used it.  So
 * the host sends at that rate from its first packet on, and after DART_BACK bytes more than
 * expected it is no longer limited; the ACK of the next packet of each other host advertises the
 * new share.  Until then the shares together exceed the line rate, as when a message begins.
 *
 * A host's share is divided among its messages that brought data in this interval or in the one
 * before.
 */
#include <linux/math64.h>
#include <linux/minmax.h>

#include "dart_senders.h"

/* The interval: longer than a round trip in a datacenter; long enough for eight frames of each
 * message at the fair share; and four round trips, because a window may arrive as one burst.  The
 * round trips are those of one connection of the tenant, so they have a limit, above each of a
 * datacenter: while it lasts, hosts that send nothing keep their share.
 */
#define DART_LOOK_NS		(1 * NSEC_PER_MSEC)
#define DART_LOOK_FRAMES	8
#define DART_LOOK_RTTS		4
#define DART_LOOK_RTT_US	(5 * USEC_PER_MSEC)

#define DART_FRAME_BYTES	1538
/* A host is no longer limited if it brings this many bytes more than expected in an interval.  A
 * reader that opens its window for two packets at a time brings less.
 */
#define DART_BACK		(4 * DART_FRAME_BYTES)

/* The lock is held: a host has entered the set, or uses its share again. */
void dart_use_begins(struct dart_host *host)
{
	dart_use_ends(host);
	host->bytes = 0;
	host->fresh = true;
}

/* The lock is held: a host leaves the set, or is not limited any more. */
void dart_use_ends(struct dart_host *host)
{
	struct dart_tenant *tenant = host->tenant;

	if (!host->limited)
		return;
	WRITE_ONCE(tenant->used, tenant->used - host->used);
	WRITE_ONCE(tenant->limited, tenant->limited - host->weight);
	WRITE_ONCE(host->used, 0);
	WRITE_ONCE(host->limited, false);
}

static void dart_use_limit(struct dart_host *host, u32 used)
{
	struct dart_tenant *tenant = host->tenant;

	dart_use_ends(host);
	WRITE_ONCE(tenant->used, tenant->used + used);
	WRITE_ONCE(tenant->limited, tenant->limited + host->weight);
	WRITE_ONCE(host->used, used);
	WRITE_ONCE(host->limited, true);
}

/**
 * dart_use_share() - the share that a host has if it uses it
 * @host: a host of the set
 *
 * Return: part of the line rate, in 1/DART_USE_ONE, not 0.  Hosts may enter and leave meanwhile.
 */
u32 dart_use_share(const struct dart_host *host)
{
	const struct dart_tenant *tenant = host->tenant;
	u32 all = max(READ_ONCE(tenant->weight), 1U), weight = max(READ_ONCE(host->weight), 1U);
	u32 limited = READ_ONCE(tenant->limited), used = READ_ONCE(tenant->used);
	u64 fair = div_u64((u64)DART_USE_ONE * weight, all), rest;

	if (!limited)
		return clamp_t(u64, fair, 1, DART_USE_ONE);
	if (READ_ONCE(host->limited)) {
		limited -= min(limited, weight);
		used -= min(used, READ_ONCE(host->used));
	}
	rest = DART_USE_ONE - min(used, DART_USE_ONE);
	rest = div_u64(rest * weight, max(all - min(all, limited), weight));
	/* At least the fair share: hosts that joined since the last look are not in @used. */
	return clamp_t(u64, max(fair, rest), 1, DART_USE_ONE);
}

/**
 * dart_use_messages() - the number of messages that a host's share is divided among
 * @host: the host
 *
 * Return: not 0.
 */
u32 dart_use_messages(const struct dart_host *host)
{
	u32 busy = max(READ_ONCE(host->busy), READ_ONCE(host->busy_now));

	return clamp(busy, 1U, max(READ_ONCE(host->messages), 1U));
}

/* Twice the part of the line rate, in 1/DART_USE_ONE, that a host used with @bytes.  @line: bytes
 * that the line rate permits in the same time
 */
static u32 dart_use_of(u32 bytes, u64 line)
{
	return min_t(u64, div64_u64((u64)bytes * 2 * DART_USE_ONE, max_t(u64, line, 1)),
		     DART_USE_ONE);
}

static u64 dart_use_interval(const struct dart_tenant *tenant, u32 line, u32 rtt_us)
{
	u64 frame = div_u64((u64)DART_FRAME_BYTES * NSEC_PER_MSEC, line);

	return max3((u64)DART_LOOK_NS, DART_LOOK_FRAMES * frame * READ_ONCE(tenant->messages),
		    DART_LOOK_RTTS * min_t(u64, rtt_us, DART_LOOK_RTT_US) * NSEC_PER_USEC);
}

/* Did marks since the last look reserve part of the line rate (dart_tenant_drains())?  Then a host
 * that used its whole reduced share may have used only half of its share.
 */
static bool dart_use_drained(const struct dart_tenant *tenant)
{
	return READ_ONCE(tenant->marked) >= tenant->looked;
}

static void dart_use_judge(struct dart_host *host, u64 line, bool drained)
{
	u32 used = dart_use_of(host->bytes, line), share = dart_use_share(host);

	WRITE_ONCE(host->busy, host->busy_now);
	WRITE_ONCE(host->busy_now, 0);
	/* Do not limit a host that entered the set or exceeded @allow during the interval, or that
	 * was announced and has not sent yet.
	 */
	if (!host->fresh && !host->expected && used < (drained ? share / 2 : share))
		dart_use_limit(host, used);
	else
		dart_use_ends(host);
	host->fresh = false;
	host->allow = host->bytes * 2 + DART_BACK;
	host->bytes = 0;
}

/**
 * dart_use_look() - find the hosts that have not used their shares
 * @s: the namespace's senders
 * @tenant: the hosts' tenant
 * @now: ns
 * @line: the line rate, kB/s
 * @rtt_us: a connection's round trip, us
 *
 * Returns at once if another CPU has just looked.
 */
void dart_use_look(struct dart_senders *s, struct dart_tenant *tenant, u64 now, u32 line,
		   u32 rtt_us)
{
	struct dart_host *host;
	bool drained;
	u64 bytes;
	int i;

	spin_lock_bh(&s->lock);
	if (now < tenant->look_at)
		goto out;
	drained = dart_use_drained(tenant);
	bytes = mul_u64_u64_div_u64(now - tenant->looked, line, NSEC_PER_MSEC);
	hash_for_each(tenant->hosts, i, host, node) {
		if (host->alive)
			dart_use_judge(host, bytes, drained);
	}
	tenant->looked = now;
	WRITE_ONCE(tenant->look, tenant->look + 1);
	WRITE_ONCE(tenant->look_at, now + dart_use_interval(tenant, line, rtt_us));
out:
	spin_unlock_bh(&s->lock);
}

/**
 * dart_use_add() - a message has brought data
 * @s: the namespace's senders
 * @msg: the message; it has a sender
 * @bytes: number of bytes, of whole frames
 */
void dart_use_add(struct dart_senders *s, struct dart_message *msg, u32 bytes)
{
	struct dart_host *host = msg->host;

	spin_lock_bh(&s->lock);
	host->bytes = min_t(u64, (u64)host->bytes + bytes, U32_MAX / 4);
	if (msg->look != host->tenant->look) {
		msg->look = host->tenant->look;
		WRITE_ONCE(host->busy_now, host->busy_now + 1);
	}
	if (host->limited && host->bytes > host->allow)
		dart_use_begins(host);
	spin_unlock_bh(&s->lock);
}
