// SPDX-License-Identifier: GPL-2.0-only
/*
 * The deflected-flow table (Dart, section IV-A): the messages that are deflected,
 * and the port of each.
 *
 * The paper has a content-addressable memory of eight entries.  Here it is a hash
 * table with a chain in each bucket and as many buckets as entries:
 *
 *	 hash --> head --> entry --> entry	the bucket's chain
 *	 oldest <--> ... <--> newest		all in use, by their last packet
 *	 free --> entry --> ...			the others
 *
 * Most packets miss.  A miss costs the hash and one cache line, with eight entries
 * or with 4096.  Comparing eight hashes in a row would be no cheaper, as the hash of
 * the packet is needed there too.  The head of a bucket is in the entry of the same
 * number, so the table is one array of one cache line for each entry.
 *
 * An entry is not overwritten while its message may continue ("no DFT entry may be
 * overwritten except by natural deallocation"), with one exception.  The paper's
 * fabric loses no packets, ours may lose the one that frees the entry.  So an entry
 * is stale when its last packet is longer ago than a packet can stay in the network
 * (the timeout).  A stale entry is a miss for a packet of its flow, and a new message
 * may take it if no entry is free.  The list by age finds it in O(1).
 *
 * A message without an end would hold its entry for ever with one small packet a timeout, and eight
 * such messages would hold the table.  So while no entry is free a packet holds its entry only for
 * a part of the timeout that is proportional to its bytes: IOFD_PAID bytes for all of it, a
 * full-sized packet for 2 ms of 100.
 *
 * Pure logic; the caller does the locking.
 */
#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <uapi/linux/pkt_iofd.h>

#include "iofd_table.h"

#define IOFD_NONE	0xffff	/* no entry has this number */
/* Bytes that hold an entry for the timeout: the longest IP packet. */
#define IOFD_PAID	65535u
#define IOFD_LEASE_MAX	255u
/* Entries of a full table that are tested, the oldest ones: the paper's table has no more. */
#define IOFD_LOOK	8

static void iofd_table_init(struct iofd_table *t, u16 size, u32 seed)
{
	int i;

	t->seed = seed;
	t->size = size;
	t->oldest = IOFD_NONE;
	t->newest = IOFD_NONE;
	for (i = 0; i < size; i++) {
		t->entry[i].head = IOFD_NONE;
		t->entry[i].next = i + 1 < size ? i + 1 : IOFD_NONE;
	}
}

/**
 * iofd_table_alloc() - allocate an empty table
 * @size: number of entries, 1 to %TC_IOFD_ENTRIES_MAX
 * @seed: seed of the hash
 *
 * Return: the table, for kvfree(), or NULL.
 */
struct iofd_table *iofd_table_alloc(u16 size, u32 seed)
{
	struct iofd_table *t;

	BUILD_BUG_ON(sizeof(struct iofd_entry) != 64);
	BUILD_BUG_ON(sizeof(struct iofd_key) != 40);
	BUILD_BUG_ON(TC_IOFD_ENTRIES_MAX >= IOFD_NONE);

	t = kvzalloc(struct_size(t, entry, size), GFP_KERNEL);
	if (t)
		iofd_table_init(t, size, seed);
	return t;
}

static u32 iofd_table_hash(const struct iofd_table *t, const struct iofd_key *key)
{
	return jhash2((const u32 *)key, IOFD_KEY_WORDS, t->seed);
}

static u16 *iofd_table_head(struct iofd_table *t, u32 hash)
{
	return &t->entry[reciprocal_scale(hash, t->size)].head;
}

/**
 * iofd_table_find() - find the entry of a packet
 * @t: the table
 * @key: the key of the packet
 *
 * Return: the entry, which may be stale (see iofd_table_expire()), or NULL.
 */
struct iofd_entry *iofd_table_find(struct iofd_table *t, const struct iofd_key *key)
{
	u32 hash = iofd_table_hash(t, key);
	u16 i;

	for (i = *iofd_table_head(t, hash); i != IOFD_NONE; i = t->entry[i].next)
		if (t->entry[i].hash == hash &&
		    !memcmp(&t->entry[i].key, key, sizeof(*key)))
			return &t->entry[i];
	return NULL;
}

/* Remove an entry from the list by age. */
static void iofd_table_unlink(struct iofd_table *t, const struct iofd_entry *e)
{
	if (e->older == IOFD_NONE)
		t->oldest = e->newer;
	else
		t->entry[e->older].newer = e->newer;
	if (e->newer == IOFD_NONE)
		t->newest = e->older;
	else
		t->entry[e->newer].older = e->older;
}

/* Add an entry to the list by age, as the newest. */
static void iofd_table_link(struct iofd_table *t, struct iofd_entry *e)
{
	u16 i = e - t->entry;

	e->older = t->newest;
	e->newer = IOFD_NONE;
	if (t->newest == IOFD_NONE)
		t->oldest = i;
	else
		t->entry[t->newest].newer = i;
	t->newest = i;
}

/* ns since the last packet */
static u64 iofd_entry_idle(const struct iofd_entry *e, u64 now)
{
	return (now - e->seen) & GENMASK_ULL(55, 0);
}

static void iofd_entry_set(struct iofd_entry *e, u64 now, u32 len)
{
	e->seen = now;
	/* rounded down: a packet of 60 bytes holds the entry for no time */
	e->lease = min(len / (IOFD_PAID / IOFD_LEASE_MAX), IOFD_LEASE_MAX);
}

/**
 * iofd_table_seen() - refresh an entry
 * @t: the table
 * @e: the entry, of which a packet was sent
 * @now: ns, never less than before
 * @len: bytes of the packet
 */
void iofd_table_seen(struct iofd_table *t, struct iofd_entry *e, u64 now, u32 len)
{
	iofd_entry_set(e, now, len);
	iofd_table_unlink(t, e);
	iofd_table_link(t, e);
}

/**
 * iofd_table_free() - free an entry
 * @t: the table
 * @e: the entry, whose message has ended
 */
void iofd_table_free(struct iofd_table *t, struct iofd_entry *e)
{
	u16 i = e - t->entry, *p = iofd_table_head(t, e->hash);

	while (*p != i)
		p = &t->entry[*p].next;
	*p = e->next;
	iofd_table_unlink(t, e);
	e->next = t->free;
	t->free = i;
	t->used--;
}

/**
 * iofd_table_expire() - free an entry if it is stale
 * @t: the table
 * @e: the entry
 * @now: ns, never less than before
 * @timeout: ns without a packet after which an entry is stale
 *
 * Return: true if the entry was stale and is free now.
 */
bool iofd_table_expire(struct iofd_table *t, struct iofd_entry *e, u64 now, u64 timeout)
{
	if (iofd_entry_idle(e, now) < timeout)
		return false;
	t->expired++;
	iofd_table_free(t, e);
	return true;
}

/* Free one of the oldest entries, if its last packet does not hold it any more. */
static bool iofd_table_reclaim(struct iofd_table *t, u64 now, u64 timeout)
{
	u16 i = t->oldest;
	int n;

	for (n = 0; n < IOFD_LOOK && i != IOFD_NONE; n++) {
		struct iofd_entry *e = &t->entry[i];

		i = e->newer;
		if (iofd_table_expire(t, e, now, mul_u64_u32_div(timeout, e->lease,
								 IOFD_LEASE_MAX)))
			return true;
	}
	return false;
}

/**
 * iofd_table_expire_all() - free all stale entries
 * @t: the table
 * @now: ns, never less than before
 * @timeout: ns without a packet after which an entry is stale
 */
void iofd_table_expire_all(struct iofd_table *t, u64 now, u64 timeout)
{
	while (t->oldest != IOFD_NONE &&
	       iofd_table_expire(t, &t->entry[t->oldest], now, timeout))
		;
}

/**
 * iofd_table_take() - take an entry for a message
 * @t: the table
 * @key: the key of its packets, which no entry has
 * @port: the caller's number for the port
 * @now: ns, never less than before
 * @timeout: ns without a packet after which an entry is stale
 * @len: bytes of the message's first packet
 *
 * Return: the entry, or NULL if all are in use and their last packets hold the oldest ones.
 */
struct iofd_entry *iofd_table_take(struct iofd_table *t, const struct iofd_key *key, u32 port,
				   u64 now, u64 timeout, u32 len)
{
	struct iofd_entry *e;
	u16 *head;

	if (t->free == IOFD_NONE && !iofd_table_reclaim(t, now, timeout)) {
		t->full++;
		return NULL;
	}

	e = &t->entry[t->free];
	t->free = e->next;
	e->key = *key;
	e->hash = iofd_table_hash(t, key);
	e->port = port;
	iofd_entry_set(e, now, len);
	head = iofd_table_head(t, e->hash);
	e->next = *head;
	*head = e - t->entry;
	iofd_table_link(t, e);
	if (++t->used > t->peak)
		t->peak = t->used;
	return e;
}

/**
 * iofd_table_move() - copy all entries in use to another table
 * @to: an empty table, with room for all of them
 * @from: the table so far, which does not change
 */
void iofd_table_move(struct iofd_table *to, const struct iofd_table *from)
{
	u16 i;

	for (i = from->oldest; i != IOFD_NONE; i = from->entry[i].newer)
		iofd_table_take(to, &from->entry[i].key, from->entry[i].port,
				from->entry[i].seen, U64_MAX,
				from->entry[i].lease * (IOFD_PAID / IOFD_LEASE_MAX));
	to->peak = from->peak;
	to->expired = from->expired;
	to->full = from->full;
}
