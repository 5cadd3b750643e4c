/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The deflected-flow table (Dart, section IV-A): which messages go where.
 *
 * The paper's is a content-addressable memory of eight entries.  Here it is a
 * hash table with a chain in each bucket and as many buckets as entries:
 *
 *	 hash --> head --> entry --> entry	the bucket's chain
 *	 oldest <--> ... <--> newest		all in use, by their last packet
 *	 free --> entry --> ...			the others
 *
 * A miss, which is what most packets meet, costs the hash and one cache line
 * whether there are eight entries or 4096; to compare eight hashes in a row would
 * be no cheaper, as they have to be computed too.  The bucket's head lives in the
 * entry of the same number, so that the table is one array, a cache line each.
 *
 * An entry is not overwritten while its message may go on ("no DFT entry may be
 * overwritten except by natural deallocation"), with one exception: the paper's
 * fabric loses no packet, ours may lose the one that frees the entry.  So an entry
 * that has been quiet for longer than a packet can be under way may be reused, when
 * one is needed and none is free.  The list by age says which, in O(1).
 *
 * Pure logic; locking is that of the caller.
 */
#ifndef _IOFD_TABLE_H
#define _IOFD_TABLE_H

#include <linux/jhash.h>
#include <linux/kernel.h>
#include <linux/mm.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <linux/types.h>
#include <uapi/linux/in6.h>
#include <uapi/linux/pkt_iofd.h>

#define IOFD_NONE	0xffff	/* no entry of that number */

/**
 * struct iofd_key - whose packet it is, and how often it has been deflected
 * @src: source address; an IPv4 address in its first word
 * @dst: destination address, likewise
 * @ports: source and destination port, as in the packet; 0 if it has none
 * @proto: of the transport
 * @version: of IP
 * @tokens: with which the packet arrives
 * @zero: 0, for the hash
 *
 * All packets of a message arrive with the same number of tokens, unless it
 * comes to the same switch twice: then it is another entry, with its own port.
 * With the first one, the message would go round for ever.
 */
struct iofd_key {
	struct in6_addr	src;
	struct in6_addr	dst;
	__be32		ports;
	u8		proto;
	u8		version;
	u8		tokens;
	u8		zero;
};

#define IOFD_KEY_WORDS	(sizeof(struct iofd_key) / sizeof(u32))

/**
 * struct iofd_entry - a message that is deflected
 * @key: whose packets
 * @seen: when the last of them came, ns
 * @port: where they go: the caller's name for it
 * @hash: of @key
 * @next: in the bucket's chain, or in the list of those that are free
 * @older: in the list by age
 * @newer: likewise
 * @head: not of this entry: first of the chain of the bucket of this number
 */
struct iofd_entry {
	struct iofd_key	key;
	u64		seen;
	u32		port;
	u32		hash;
	u16		next;
	u16		older;
	u16		newer;
	u16		head;
};

/**
 * struct iofd_table - the table
 * @expired: entries that were reused before their message ended
 * @full: how often there was none to be had
 * @seed: of the hash: who sends the packets must not choose the bucket
 * @size: entries
 * @used: of those, in use
 * @peak: the most that @used has been
 * @free: one that is not
 * @oldest: the one whose last packet is longest ago
 * @newest: the one whose last packet is most recent
 * @entry: all of them
 */
struct iofd_table {
	u64			expired;
	u64			full;
	u32			seed;
	u16			size;
	u16			used;
	u16			peak;
	u16			free;
	u16			oldest;
	u16			newest;
	struct iofd_entry	entry[] ____cacheline_aligned;
};

static inline void iofd_table_init(struct iofd_table *t, u16 size, u32 seed)
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
 * iofd_table_alloc() - a new table
 * @size: entries, 1 to %TC_IOFD_ENTRIES_MAX
 * @seed: of the hash
 *
 * Return: the table, for kvfree(), or NULL.
 */
static inline struct iofd_table *iofd_table_alloc(u16 size, u32 seed)
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

static inline u32 iofd_table_hash(const struct iofd_table *t,
				  const struct iofd_key *key)
{
	return jhash2((const u32 *)key, IOFD_KEY_WORDS, t->seed);
}

static inline u16 *iofd_table_head(struct iofd_table *t, u32 hash)
{
	return &t->entry[reciprocal_scale(hash, t->size)].head;
}

/**
 * iofd_table_find() - the entry of a packet
 * @t: the table
 * @key: the packet's
 *
 * Return: the entry, or NULL.
 */
static inline struct iofd_entry *iofd_table_find(struct iofd_table *t,
						 const struct iofd_key *key)
{
	u32 hash = iofd_table_hash(t, key);
	u16 i;

	for (i = *iofd_table_head(t, hash); i != IOFD_NONE; i = t->entry[i].next)
		if (t->entry[i].hash == hash &&
		    !memcmp(&t->entry[i].key, key, sizeof(*key)))
			return &t->entry[i];
	return NULL;
}

/* Out of the list by age. */
static inline void iofd_table_unlink(struct iofd_table *t,
				     const struct iofd_entry *e)
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

/* To its young end. */
static inline void iofd_table_link(struct iofd_table *t, struct iofd_entry *e)
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

/**
 * iofd_table_seen() - a packet of an entry
 * @t: the table
 * @e: the entry
 * @now: ns, never less than before
 */
static inline void iofd_table_seen(struct iofd_table *t, struct iofd_entry *e,
				   u64 now)
{
	e->seen = now;
	iofd_table_unlink(t, e);
	iofd_table_link(t, e);
}

/**
 * iofd_table_free() - a message has ended
 * @t: the table
 * @e: its entry
 */
static inline void iofd_table_free(struct iofd_table *t, struct iofd_entry *e)
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
 * iofd_table_take() - a message is going to be deflected
 * @t: the table
 * @key: its packets', of which there is no entry
 * @port: where it goes
 * @now: ns, never less than before
 * @timeout: ns after which an entry may be reused
 *
 * Return: its entry; or NULL, if all are in use.
 */
static inline struct iofd_entry *
iofd_table_take(struct iofd_table *t, const struct iofd_key *key, u32 port,
		u64 now, u64 timeout)
{
	struct iofd_entry *e;
	u16 *head;

	if (t->free == IOFD_NONE) {
		e = &t->entry[t->oldest];
		if (now - e->seen < timeout) {
			t->full++;
			return NULL;
		}
		t->expired++;
		iofd_table_free(t, e);
	}

	e = &t->entry[t->free];
	t->free = e->next;
	e->key = *key;
	e->hash = iofd_table_hash(t, key);
	e->port = port;
	e->seen = now;
	head = iofd_table_head(t, e->hash);
	e->next = *head;
	*head = e - t->entry;
	iofd_table_link(t, e);
	if (++t->used > t->peak)
		t->peak = t->used;
	return e;
}

/**
 * iofd_table_move() - from one table to another
 * @to: a new one, with room for all that is in use
 * @from: the old one, which is left as it is
 */
static inline void iofd_table_move(struct iofd_table *to,
				   const struct iofd_table *from)
{
	u16 i;

	for (i = from->oldest; i != IOFD_NONE; i = from->entry[i].newer)
		iofd_table_take(to, &from->entry[i].key, from->entry[i].port,
				from->entry[i].seen, U64_MAX);
	to->peak = from->peak;
	to->expired = from->expired;
	to->full = from->full;
}

#endif /* _IOFD_TABLE_H */
