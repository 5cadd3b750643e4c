/* SPDX-License-Identifier: GPL-2.0 */
/* Who else will send: the look-ahead (Dart §III-D).
 *
 * An application that knows its incast names the senders once.  If the receiver knows
 * them, it names them on its own sockets (GREENLANE_SENDERS).  If a sender does
 * (GREENLANE_COSENDERS), its names travel to the receiver in front of its next messages,
 * three a packet, until the receiver says that it has them all:
 *
 *	sender                                   receiver
 *	NAMES 1: 0 of 5, a b c  ------------->
 *	NAMES 1: 3 of 5, d e    ------------->   has all five
 *	d d d d d               ------------->   a message begins: a, b, c, d and e
 *	                        <-------------   ACK, n = 5, KNOWN
 */
#ifndef _DART_LOOKAHEAD_H
#define _DART_LOOKAHEAD_H

#include <linux/bits.h>
#include <linux/minmax.h>
#include <net/greenlane.h>

/* The word on an ACK: a divisor of the line in 1/256, and above it flags. */
#define DART_WORD_END		BIT(31)	/* my message has ended */
#define DART_WORD_NAMES		BIT(30)	/* which list, at which name, of how many */
#define DART_WORD_KNOWN		BIT(29)	/* I have all your names */
#define DART_WORD_ALONE		BIT(28)	/* this packet is for us only, and not for TCP */

/* Names in a packet: the words beside the first one. */
#define DART_NAMES		(GL_WORDS_MAX - 1)

/**
 * struct dart_group - senders that were named together
 * @n: how many
 * @list: which list it is: the next one of the same connection has another number
 * @have: a bit for each name that has come
 * @known: all of them have; or, of our own, the peer has said so
 * @id: their addresses, or hashes of them
 */
struct dart_group {
	u32	n;
	u8	list;
	bool	known;
	u64	have;
	u32	id[GREENLANE_SENDERS_MAX];
};

static_assert(GREENLANE_SENDERS_MAX <= 64);

/* @word: for the names from @first on; returns how many words */
static unsigned int dart_names_pack(const struct dart_group *group, u32 first, u32 *word)
{
	u32 n = min(group->n - first, DART_NAMES);

	word[0] = DART_WORD_NAMES | DART_WORD_ALONE | group->list << 16 | first << 8 | group->n;
	memcpy(word + 1, group->id + first, n * sizeof(*word));
	return 1 + n;
}

/* Names have come: false if they are none. */
static bool dart_names_unpack(struct dart_group *group, const u32 *word, unsigned int words)
{
	u32 n = word[0] & 0xff, first = (word[0] >> 8) & 0xff, i;
	u8 list = word[0] >> 16;

	if (!words || n > GREENLANE_SENDERS_MAX || first + words - 1 > n)
		return false;
	if (group->list != list || group->n != n) {
		group->list = list;
		group->n = n;
		group->have = 0;
	}
	for (i = 0; i < words - 1; i++) {
		group->id[first + i] = word[1 + i];
		group->have |= BIT_ULL(first + i);
	}
	group->known = group->have == (n ? GENMASK_ULL(n - 1, 0) : 0);
	return true;
}

#endif /* _DART_LOOKAHEAD_H */
