/* SPDX-License-Identifier: GPL-2.0 */
/* Dart: lists of senders that an application announces, and Dart's word in an ACK.
 *
 * dart_lookahead.c describes how a list travels.
 */
#ifndef _DART_LOOKAHEAD_H
#define _DART_LOOKAHEAD_H

#include <linux/bits.h>
#include <linux/types.h>
#include <net/greenlane.h>

/* The word.  Without END and NAMES it advertises a share:
 *
 *	31    30    29    28    27                                    0
 *	END   NAMES KNOWN ALONE the sender's share, kB/s (of 1000 bytes)
 *
 * A share is a rate and not a divisor, because the receiver divides its own line rate, and
 * the sender's link may have another one.  28 bits are 2.1 Tbit/s.  Shares are rounded down, so
 * that their sum is at most the line rate.  0 is not a share.
 */
#define DART_WORD_END		BIT(31)	/* the sender's message has ended */
#define DART_WORD_NAMES		BIT(30)	/* list number, first name, number of names */
#define DART_WORD_KNOWN		BIT(29)	/* the receiver has the whole list */
#define DART_WORD_ALONE		BIT(28)	/* the packet is not for TCP */
#define DART_WORD_SHARE		GENMASK(27, 0)

/* Names in a packet: the words after the first one. */
#define DART_NAMES		(GL_WORDS_MAX - 1)

/**
 * struct dart_group - senders that were announced together
 * @n: number of senders, 0 … GREENLANE_SENDERS_MAX
 * @list: number of the list; a connection's next list has another number
 * @known: every name has arrived; in a list that we send: the peer has confirmed it
 * @may: named with CAP_NET_ADMIN, so they count in the common tenant
 * @have: a bit for each name that has arrived
 * @id: their dart_address_id()
 */
struct dart_group {
	u32	n;
	u8	list;
	bool	known;
	bool	may;
	u64	have;
	u32	id[GREENLANE_SENDERS_MAX];
};

static_assert(GREENLANE_SENDERS_MAX <= 64);

unsigned int dart_names_pack(const struct dart_group *group, u32 first, u32 *word);
bool dart_names_unpack(struct dart_group *group, const u32 *word, unsigned int words);

#endif /* _DART_LOOKAHEAD_H */
