/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Parsers of words of a command line.  They report a bad word in one line on stderr, which
 * begins with TC_KIND, the qdisc's name; the including file defines it.
 */
#ifndef _TC_WORDS_H
#define _TC_WORDS_H

#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <linux/types.h>

#include "tc_plugin.h"

#define N(array) (sizeof(array) / sizeof((array)[0]))

/* One line on stderr for each mistake. */
#define bad(fmt, ...) (fprintf(stderr, TC_KIND ": " fmt "\n", ##__VA_ARGS__), -1)

/* tc's own get_size() silently wraps at 4 GiB. */
static inline int get_bytes(const char *what, const char *arg, __u32 min,
			    __u32 max, __u32 *val)
{
	static const struct {
		const char	*suffix;
		double		unit;
	} units[] = {
		{ "", 1 }, { "b", 1 },
		{ "k", 1024. }, { "kb", 1024. }, { "kbit", 1024. / 8 },
		{ "m", 1048576. }, { "mb", 1048576. }, { "mbit", 1048576. / 8 },
		{ "g", 1073741824. }, { "gb", 1073741824. },
		{ "gbit", 1073741824. / 8 },
	};
	double size;
	char *end;
	size_t i;

	size = strtod(arg, &end);
	for (i = 0; i < N(units); i++)
		if (!strcasecmp(end, units[i].suffix))
			break;
	if (end == arg || i == N(units) || !isfinite(size))
		return bad("%s: \"%s\" is not a number of bytes", what, arg);
	size *= units[i].unit;
	if (size < min || size > max)
		return bad("%s: %s is not within %u ... %u bytes", what, arg,
			   min, max);
	if (size != floor(size))
		return bad("%s: %s is not a whole number of bytes", what, arg);
	*val = size;
	return 0;
}

static inline int get_number(const char *what, const char *arg, double min,
			     double max, double *val)
{
	char *end;

	*val = strtod(arg, &end);
	if (end == arg || *end || !isfinite(*val))
		return bad("%s: \"%s\" is not a number", what, arg);
	if (*val < min || *val > max)
		return bad("%s: %s is not within %g ... %g", what, arg, min,
			   max);
	return 0;
}

static inline int get_name(const char *what, const char *arg,
			   const char * const *names, size_t n, __u32 *val)
{
	size_t i;

	for (i = 0; i < n; i++) {
		if (!strcmp(arg, names[i])) {
			*val = i;
			return 0;
		}
	}
	fprintf(stderr, TC_KIND ": %s: \"%s\" is not one of", what, arg);
	for (i = 0; i < n; i++)
		fprintf(stderr, " %s", names[i]);
	fputc('\n', stderr);
	return -1;
}

static inline int get_integer(const char *what, const char *arg, __u32 min,
			      __u32 max, __u32 *val)
{
	if (get_u32(val, arg, 0))
		return bad("%s: \"%s\" is not a number", what, arg);
	if (*val < min || *val > max)
		return bad("%s: %s is not within %u ... %u", what, arg, min,
			   max);
	return 0;
}

#endif /* _TC_WORDS_H */
