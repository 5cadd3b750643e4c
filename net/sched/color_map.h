/* SPDX-License-Identifier: GPL-2.0 */
/*
 * From the bits in an IP header to a colour, or another number of up to 8 bits.
 */
#ifndef _COLOR_MAP_H
#define _COLOR_MAP_H

#include <uapi/linux/pkt_color.h>
#include <linux/string.h>
#include <linux/types.h>
#include <net/inet_ecn.h>

/* The codepoints that the TLT authors' user-space stack sends, those of the credit
 * transports, and the ACKs of dart (include/net/gl_codepoint.h).  A codepoint that nobody told us
 * about is neither sacrificed nor protected.
 */
static inline void color_map_default(u8 *map)
{
	memset(map, TC_COLOR_YELLOW, TC_COLOR_DSCPS);
	map[8] = TC_COLOR_RED;		/* CS1:  unimportant data */
	map[10] = TC_COLOR_GREEN;	/* AF11: important data */
	map[18] = TC_COLOR_GREEN;	/* AF21: clock data */
	map[20] = TC_COLOR_GREEN;	/* AF22: clock echo */
	map[25] = TC_COLOR_GREEN;	/* scheduled data */
	map[26] = TC_COLOR_GREEN;	/* AF31: control */
	map[29] = TC_COLOR_GREEN;	/* credit request */
	map[33] = TC_COLOR_GREEN;	/* credit */
	map[49] = TC_COLOR_GREEN;	/* ACK with a share */
}

/**
 * color_map_merge() - change entries of a map
 * @map: the map, untouched if an entry is bad
 * @change: 64 new entries, or %TC_COLOR_MAP_KEEP
 * @max: the largest good entry
 *
 * Return: false if an entry of @change is neither.
 */
static inline bool color_map_merge(u8 *map, const u8 *change, u8 max)
{
	int i;

	for (i = 0; i < TC_COLOR_DSCPS; i++)
		if (change[i] > max && change[i] != TC_COLOR_MAP_KEEP)
			return false;

	for (i = 0; i < TC_COLOR_DSCPS; i++)
		if (change[i] != TC_COLOR_MAP_KEEP)
			map[i] = change[i];
	return true;
}

/**
 * color_of_dsfield() - the colour of an IP packet
 * @map: colour of each DSCP
 * @by_ecn: look at the ECN field and not at the DSCP
 * @dsfield: TOS byte or traffic class
 *
 * Return: the colour.
 */
static inline enum tc_color color_of_dsfield(const u8 *map, bool by_ecn,
					     u8 dsfield)
{
	if (by_ecn)
		return INET_ECN_is_not_ect(dsfield) ? TC_COLOR_RED :
						      TC_COLOR_GREEN;
	return map[dsfield >> 2];
}

#endif /* _COLOR_MAP_H */
