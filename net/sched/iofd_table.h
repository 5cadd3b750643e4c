/* SPDX-License-Identifier: GPL-2.0-only */
/* The deflected-flow table of Dart.  See iofd_table.c. */
#ifndef _IOFD_TABLE_H
#define _IOFD_TABLE_H

#include <linux/cache.h>
#include <linux/types.h>
#include <uapi/linux/in6.h>

/**
 * struct iofd_key - the flow of a packet, and the tokens that it has left
 * @src: source address; an IPv4 address is in its first word
 * @dst: destination address, likewise
 * @ports: source and destination port, as in the packet; 0 if it has none
 * @proto: transport protocol
 * @version: version of IP
 * @tokens: tokens of the packet when it arrives
 * @zero: padding for the hash, 0
 *
 * All packets of a message arrive with the same number of tokens.  A message that
 * reaches the same switch twice arrives with fewer tokens the second time, and gets
 * a second entry with a port of its own.  With the first entry it would circulate.
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
 * @key: the key of its packets
 * @seen: when the last packet was sent to the port, ns; wraps after two years
 * @lease: part of the timeout that this packet holds the entry for, of IOFD_LEASE_MAX
 * @port: the caller's number for the port
 * @hash: hash of @key
 * @next: next entry in the bucket's chain, or in the list of free entries
 * @older: next older entry in the list by age
 * @newer: next newer entry in the list by age
 * @head: first entry in the chain of the bucket with this entry's number; does not
 *	belong to the message
 */
struct iofd_entry {
	struct iofd_key	key;
	u64		seen:56,
			lease:8;
	u32		port;
	u32		hash;
	u16		next;
	u16		older;
	u16		newer;
	u16		head;
};

/**
 * struct iofd_table - the table
 * @expired: entries that were freed because they were stale
 * @full: attempts to take an entry when all were in use
 * @seed: seed of the hash, so that a sender cannot choose the bucket
 * @size: number of entries
 * @used: entries in use, stale ones too
 * @peak: the highest value of @used so far
 * @free: first free entry
 * @oldest: the entry whose last packet is the longest ago
 * @newest: the entry whose last packet is the most recent
 * @entry: the entries
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

struct iofd_table *iofd_table_alloc(u16 size, u32 seed);
struct iofd_entry *iofd_table_find(struct iofd_table *t, const struct iofd_key *key);
void iofd_table_seen(struct iofd_table *t, struct iofd_entry *e, u64 now, u32 len);
void iofd_table_free(struct iofd_table *t, struct iofd_entry *e);
bool iofd_table_expire(struct iofd_table *t, struct iofd_entry *e, u64 now, u64 timeout);
void iofd_table_expire_all(struct iofd_table *t, u64 now, u64 timeout);
struct iofd_entry *iofd_table_take(struct iofd_table *t, const struct iofd_key *key, u32 port,
				   u64 now, u64 timeout, u32 len);
void iofd_table_move(struct iofd_table *to, const struct iofd_table *from);

#endif /* _IOFD_TABLE_H */
