/* SPDX-License-Identifier: GPL-2.0 */
/* Map the bits in an IP header to a colour or to another number.  See color_map.c. */
#ifndef _COLOR_MAP_H
#define _COLOR_MAP_H

#include <linux/types.h>
#include <uapi/linux/pkt_color.h>

void color_map_default(u8 *map);
bool color_map_merge(u8 *map, const u8 *change, u8 max);
void color_map_spread(u8 of[256], const u8 *map, bool by_ecn);

#endif /* _COLOR_MAP_H */
