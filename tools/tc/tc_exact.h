/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Numbers with units, exact to the bit: tc's own helpers round, and the output of `tc qdisc show`
 * has to make the same qdisc again.  JSON has the plain number; a fraction has the six digits of
 * tc's own JSON writer.
 */
#ifndef _TC_EXACT_H
#define _TC_EXACT_H

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/types.h>

#include "tc_plugin.h"
#include "tc_words.h"

/* The number with the largest of the units, each @step times the one before, that divides it. */
static inline void print_with_unit(const char *key, const char *word, __u64 json, __u64 value,
				   __u32 step, const char * const *units, size_t n)
{
	size_t i;

	for (i = 0; value && value % step == 0 && i < n - 1; i++)
		value /= step;
	print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL, json);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, *word ? "%s " : "%s", word);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, "%llu", value);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", units[i]);
}

static inline void print_exact_bytes(const char *key, const char *word, __u32 bytes)
{
	static const char * const units[] = { "b", "Kb", "Mb", "Gb" };

	print_with_unit(key, word, bytes, bytes, 1024, units, N(units));
}

/* @rate is in bytes/s. */
static inline void print_exact_rate(const char *key, const char *word, __u64 rate)
{
	static const char * const units[] = { "bit", "Kbit", "Mbit", "Gbit", "Tbit" };

	print_with_unit(key, word, rate, rate * 8, 1000, units, N(units));
}

static inline void print_exact_time(const char *key, const char *word, __u64 ns)
{
	static const char * const units[] = { "ns", "us", "ms", "s" };

	print_with_unit(key, word, ns, ns, 1000, units, N(units));
}

/* @n / @one with the fewest digits from which @n can be read again. */
static inline void print_exact_fraction(const char *key, const char *fmt, __u32 n, double one)
{
	char text[32];
	int digits;

	print_color_float(PRINT_JSON, COLOR_NONE, key, NULL, n / one);
	for (digits = 1; digits < 17; digits++) {
		snprintf(text, sizeof(text), "%.*g", digits, n / one);
		if (round(strtod(text, NULL) * one) == n)
			break;
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, fmt, text);
}

/* A time as a word: a number, and a unit of tc's: ns, us, ms or s, or in its longer form. */
static inline int get_exact_time(const char *what, const char *arg, __u64 min, __u64 max,
				 __u64 *val)
{
	static const struct {
		const char	*suffix;
		double		ns;
	} units[] = {
		{ "ns", 1 }, { "nsec", 1 }, { "nsecs", 1 },
		{ "us", 1e3 }, { "usec", 1e3 }, { "usecs", 1e3 },
		{ "ms", 1e6 }, { "msec", 1e6 }, { "msecs", 1e6 },
		{ "s", 1e9 }, { "sec", 1e9 }, { "secs", 1e9 },
	};
	double time;
	char *end;
	size_t i;

	time = strtod(arg, &end);
	for (i = 0; i < N(units); i++)
		if (!strcasecmp(end, units[i].suffix))
			break;
	if (end == arg || i == N(units) || !isfinite(time))
		return bad("%s: \"%s\" is not a time", what, arg);
	time = round(time * units[i].ns);
	if (time < min || time > max)
		return bad("%s: %s is not within %gus ... %gs", what, arg, min / 1e3,
			   max / 1e9);
	*val = time;
	return 0;
}

#endif /* _TC_EXACT_H */
