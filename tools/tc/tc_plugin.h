/* SPDX-License-Identifier: GPL-2.0 */
/*
 * Declarations for plugins of iproute2's tc, which installs no headers.
 *
 * For an unknown qdisc tc loads $TC_LIB_DIR/q_<kind>.so and uses its symbol
 * <kind>_qdisc_util; the plugin uses symbols that tc exports.  This file declares the symbols
 * of iproute2 6.1 (`nm -D $(which tc)`).  Later releases made the first argument of
 * the functions in struct qdisc_util a pointer to const, which does not change the binary
 * interface.
 */
#ifndef _TC_PLUGIN_H
#define _TC_PLUGIN_H

#include <stdbool.h>
#include <stdio.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/types.h>

/* tc/tc_util.h */
struct qdisc_util {
	struct qdisc_util *next;
	const char *id;
	int (*parse_qopt)(struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_qopt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*print_xstats)(struct qdisc_util *qu, FILE *f,
			    struct rtattr *xstats);
	int (*parse_copt)(struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev);
	int (*print_copt)(struct qdisc_util *qu, FILE *f, struct rtattr *opt);
	int (*has_block)(struct qdisc_util *qu, struct rtattr *opt,
			 __u32 block_idx, bool *p_has);
};

int get_rate64(__u64 *rate, const char *str);

/* include/json_print.h */
enum output_type {
	PRINT_FP = 1,
	PRINT_JSON = 2,
	PRINT_ANY = 4,
};

enum color_attr {
	COLOR_NONE = 6,
};

int print_color_u64(enum output_type t, enum color_attr color, const char *key,
		    const char *fmt, uint64_t value);
int print_color_uint(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, unsigned int value);
int print_color_string(enum output_type t, enum color_attr color,
		       const char *key, const char *fmt, const char *value);
int print_color_float(enum output_type t, enum color_attr color,
		      const char *key, const char *fmt, double value);
int print_color_bool(enum output_type t, enum color_attr color,
		     const char *key, const char *fmt, bool value);
void print_nl(void);
void open_json_object(const char *str);
void close_json_object(void);
void open_json_array(enum output_type type, const char *str);
void close_json_array(enum output_type type, const char *delim);
bool is_json_context(void);

/* include/utils.h, include/libnetlink.h */
extern int show_details;

int get_u32(__u32 *val, const char *arg, int base);
int addattr32(struct nlmsghdr *n, int maxlen, int type, __u32 data);
int addattr64(struct nlmsghdr *n, int maxlen, int type, __u64 data);
int addattr_l(struct nlmsghdr *n, int maxlen, int type, const void *data,
	      int alen);
struct rtattr *addattr_nest(struct nlmsghdr *n, int maxlen, int type);
int addattr_nest_end(struct nlmsghdr *n, struct rtattr *nest);
int parse_rtattr_flags(struct rtattr *tb[], int max, struct rtattr *rta,
		       int len, unsigned short flags);

#endif /* _TC_PLUGIN_H */
