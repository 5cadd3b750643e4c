/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parsers of words of color's command line.  They report a bad word in one line on stderr.
 */
#ifndef _COLOR_WORDS_H
#define _COLOR_WORDS_H

#include <string.h>
#include <strings.h>
#include <linux/pkt_color.h>

#include "color_request.h"
#include "tc_plugin.h"
#include "tc_words.h"

static int get_dscp(const char *what, const char *arg, __u32 *val)
{
	if (!strcasecmp(arg, "ef")) {
		*val = 46;
		return 0;
	}
	if (!strncasecmp(arg, "cs", 2) && arg[2] >= '0' && arg[2] <= '7' &&
	    !arg[3]) {
		*val = (arg[2] - '0') * 8;
		return 0;
	}
	if (!strncasecmp(arg, "af", 2) && arg[2] >= '1' && arg[2] <= '4' &&
	    arg[3] >= '1' && arg[3] <= '3' && !arg[4]) {
		*val = (arg[2] - '0') * 8 + (arg[3] - '0') * 2;
		return 0;
	}
	if (get_u32(val, arg, 0))
		return bad("%s: \"%s\" is not a DSCP", what, arg);
	if (*val >= TC_COLOR_DSCPS)
		return bad("%s: DSCP %s is above 63", what, arg);
	return 0;
}

static int parse_rate(const char *what, const char *arg, __u64 *rate)
{
	size_t len;

	*rate = 0;
	if (!strcmp(arg, "none"))
		return 0;
	if (arg[0] == '-' || get_rate64(rate, arg))
		return bad("%s: \"%s\" is not a rate", what, arg);
	if (!*rate || *rate > TC_COLOR_RATE_MAX)
		return bad("%s: %s is not within 8bit ... 100tbit", what, arg);
	len = strlen(arg);
	if (len > 3 && !strcasecmp(arg + len - 3, "bps"))
		fprintf(stderr, TC_KIND ": warning: %s: the bps of %s are bytes: %llu bit/s\n",
			what, arg, (unsigned long long)*rate * 8);
	return 0;
}

#endif /* _COLOR_WORDS_H */
