// SPDX-License-Identifier: GPL-2.0
/* Dart: the look-ahead, which announces the senders of an incast (§III-D).
 *
 * An application that knows the senders of its incast announces them once.  At the
 * receiver it names them on its own sockets (GREENLANE_SENDERS).  At a sender it names
 * its fellow senders (GREENLANE_COSENDERS), and the list travels to the receiver in front
 * of the next messages, three names per packet, until the receiver confirms that it has the
 * whole list:
 *
 *	sender                                   receiver
 *	NAMES 1: 0 of 5, a b c  ------------->
 *	NAMES 1: 3 of 5, d e    ------------->   has all five
 *	d d d d d               ------------->   a message begins: a, b, c, d and e count
 *	                        <-------------   ACK, n = 5, KNOWN
 */
#include <linux/minmax.h>
#include <linux/string.h>

#include "dart_lookahead.h"

/**
 * dart_names_pack() - write a packet's words
 * @group: the list
 * @first: index of the first name to write; less than @group->n, or 0 for an empty list
 * @word: space for GL_WORDS_MAX words
 *
 * Return: the number of words.
 */
unsigned int dart_names_pack(const struct dart_group *group, u32 first, u32 *word)
{
	u32 n = min(group->n - first, DART_NAMES);

	word[0] = DART_WORD_NAMES | DART_WORD_ALONE | group->list << 16 | first << 8 | group->n;
	memcpy(word + 1, group->id + first, n * sizeof(*word));
	return 1 + n;
}

/**
 * dart_names_unpack() - read a packet's words
 * @group: the peer's list; a packet of another list than before starts it anew
 * @word: the words
 * @words: number of words, at most GL_WORDS_MAX
 *
 * Return: false, with @group unchanged, if the words are not part of a list.
 */
bool dart_names_unpack(struct dart_group *group, const u32 *word, unsigned int words)
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
