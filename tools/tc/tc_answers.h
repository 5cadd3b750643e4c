/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Attributes of the kernel's answers as values, and their counters in tc's output.
 */
#ifndef _TC_ANSWERS_H
#define _TC_ANSWERS_H

#include <stdio.h>
#include <string.h>
#include <linux/types.h>

#include "tc_plugin.h"

/* Leaves the value as it is if the attribute is missing or too short. */
static inline void attr_copy(void *val, size_t size, const struct rtattr *attr)
{
	if (attr && RTA_PAYLOAD(attr) >= size)
		memcpy(val, RTA_DATA(attr), size);
}

static inline __u32 attr_u32(const struct rtattr *attr)
{
	__u32 val = 0;

	attr_copy(&val, sizeof(val), attr);
	return val;
}

static inline __u64 attr_u64(const struct rtattr *attr)
{
	__u64 val = 0;

	attr_copy(&val, sizeof(val), attr);
	return val;
}

/* The attributes in a nest, by type.  An older kernel gives less, a newer one more. */
static inline void parse_nest(struct rtattr *tb[], int max, const struct rtattr *nest)
{
	parse_rtattr_flags(tb, max, RTA_DATA(nest), RTA_PAYLOAD(nest), NLA_F_NESTED);
}

/* The attributes in a nest, one after the other, and NULL; @left is for the next one. */
static inline struct rtattr *nest_next(struct rtattr *attr, int *left)
{
	attr = RTA_NEXT(attr, *left);
	return RTA_OK(attr, *left) ? attr : NULL;
}

static inline struct rtattr *nest_first(const struct rtattr *nest, int *left)
{
	struct rtattr *attr;

	if (!nest)
		return NULL;
	*left = RTA_PAYLOAD(nest);
	attr = RTA_DATA(nest);
	return RTA_OK(attr, *left) ? attr : NULL;
}

/* A name of at most @max bytes, or "".  Users of other namespaces choose names, too, so characters
 * that a terminal might interpret become \xNN, and so does a backslash.  Valid until the next call.
 */
static inline const char *attr_name(const struct rtattr *attr, size_t max)
{
	static char text[4 * 256 + 1];
	const unsigned char *raw;
	size_t i, n = 0;

	text[0] = '\0';
	if (!attr)
		return text;
	raw = RTA_DATA(attr);
	if (max > RTA_PAYLOAD(attr))
		max = RTA_PAYLOAD(attr);
	for (i = 0; i < max && raw[i] && n + 4 < sizeof(text); i++)
		n += sprintf(text + n, raw[i] >= ' ' && raw[i] < 0x7f && raw[i] != '\\' ?
			     "%c" : "\\x%02x", raw[i]);
	return text;
}

static inline void print_count(const char *key, const char *fmt, __u64 count)
{
	print_color_u64(PRINT_ANY, COLOR_NONE, key, fmt, count);
}

#endif /* _TC_ANSWERS_H */
