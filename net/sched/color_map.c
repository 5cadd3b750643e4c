// SPDX-License-Identifier: GPL-2.0
/* Map the bits in an IP header to a colour, or to another number of up to 8 bits. */
#include <linux/string.h>
#include <uapi/linux/greenlane_dscp.h>
#include <net/inet_ecn.h>

#include "color_map.h"

/* greenlane's codepoints have the colours of its table, all others are yellow. */
void color_map_default(u8 *map)
{
	memset(map, TC_COLOR_YELLOW, TC_COLOR_DSCPS);
#define GREENLANE_CODEPOINT(symbol, name, dscp, colour)	map[dscp] = TC_COLOR_##colour;
	GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
}

/**
 * color_map_merge() - change entries of a map
 * @map: the map, untouched if an entry is bad
 * @change: 64 new entries, or %TC_COLOR_MAP_KEEP
 * @max: the largest good entry
 *
 * Return: false if an entry of @change is neither good nor %TC_COLOR_MAP_KEEP.
 */
bool color_map_merge(u8 *map, const u8 *change, u8 max)
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
 * color_map_spread() - compute the colour of each DS field, so that a packet needs one lookup
 * @of: colour by TOS byte or traffic class
 * @map: colour of each DSCP
 * @by_ecn: the ECN field is the colour, not the DSCP
 */
void color_map_spread(u8 of[256], const u8 *map, bool by_ecn)
{
	int ds;

	for (ds = 0; ds < 256; ds++) {
		if (!by_ecn)
			of[ds] = map[ds >> 2];
		else
			of[ds] = INET_ECN_is_not_ect(ds) ? TC_COLOR_RED : TC_COLOR_GREEN;
	}
}
