// SPDX-License-Identifier: GPL-2.0
/*
 * Options, dump and statistics of the `iofd` qdisc, for the stock tc.
 *
 * Build it with `make tc` and name its directory in TC_LIB_DIR.
 */
#include <arpa/inet.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <linux/if.h>
#include <linux/pkt_iofd.h>

#define TC_KIND "iofd"

#include "tc_answers.h"
#include "tc_exact.h"
#include "tc_plugin.h"
#include "tc_words.h"

/* Room for the options in tc's request: 16 ports with names of the maximum length. */
#define IOFD_OPT_LEN	4096

#define NAME_LEN	128	/* ALTIFNAMSIZ: the longest name of a device, and its 0 byte */

struct port {
	char	dev[NAME_LEN];
	int	family;
	__u8	via[16];
};

/* The options of a command line; @given and @u32 by attribute. */
struct request {
	bool		given[TCA_IOFD_MAX + 1];
	__u32		u32[TCA_IOFD_MAX + 1];
	__u64		timeout;
	size_t		n;
	struct port	port[TC_IOFD_PORTS_MAX];
};

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... iofd [ threshold BYTES ] [ entries N ] [ timeout TIME ] [ seed N ]\n"
		"		[ deflect dev DEV via ADDRESS ]...\n"
		"where	TIME := number and { s | ms | us | ns }\n"
		"	ADDRESS := { IPv4 | IPv6 } of the next hop on DEV\n");
}

static int parse_deflect(struct request *r, int argc, char **argv)
{
	struct port *port = &r->port[r->n];

	if (argc < 4 || strcmp(argv[0], "dev") || strcmp(argv[2], "via"))
		return bad("deflect needs \"dev DEV via ADDRESS\"");
	if (r->n == TC_IOFD_PORTS_MAX)
		return bad("more than %d deflect ports", TC_IOFD_PORTS_MAX);
	if (!*argv[1] || strlen(argv[1]) >= sizeof(port->dev))
		return bad("deflect: \"%s\" is not the name of a device",
			   argv[1]);
	strcpy(port->dev, argv[1]);
	port->family = strchr(argv[3], ':') ? AF_INET6 : AF_INET;
	if (inet_pton(port->family, argv[3], port->via) != 1)
		return bad("deflect: \"%s\" is not an address", argv[3]);
	r->n++;
	return 4;
}

/* Parse an option and its arguments.  Return: the number of words used, or -1. */
static int parse_option(struct request *r, int argc, char **argv)
{
	static const struct {
		const char	*name;
		int		attr;
	} options[] = {
		{ "threshold",	TCA_IOFD_THRESHOLD },
		{ "entries",	TCA_IOFD_ENTRIES },
		{ "timeout",	TCA_IOFD_TIMEOUT },
		{ "seed",	TCA_IOFD_SEED },
		{ "deflect",	TCA_IOFD_PORTS },
	};
	const char *name = argv[0];
	int attr, used, err;
	__u32 *val;
	size_t i;

	for (i = 0; i < N(options); i++)
		if (!strcmp(name, options[i].name))
			break;
	if (i == N(options))
		return bad("unknown option \"%s\", try \"iofd help\"", name);
	if (argc < 2)
		return bad("%s needs an argument", name);
	attr = options[i].attr;
	if (r->given[attr] && attr != TCA_IOFD_PORTS)
		return bad("%s is given twice", name);
	r->given[attr] = true;

	val = &r->u32[attr];
	switch (attr) {
	case TCA_IOFD_THRESHOLD:
		err = get_bytes(name, argv[1], 1, TC_IOFD_THRESHOLD_MAX, val);
		break;
	case TCA_IOFD_ENTRIES:
		err = get_integer(name, argv[1], 1, TC_IOFD_ENTRIES_MAX, val);
		break;
	case TCA_IOFD_TIMEOUT:
		err = get_exact_time(name, argv[1], TC_IOFD_TIMEOUT_MIN,
				     TC_IOFD_TIMEOUT_MAX, &r->timeout);
		break;
	case TCA_IOFD_SEED:
		err = get_integer(name, argv[1], 0, UINT32_MAX, val);
		break;
	default:
		used = parse_deflect(r, argc - 1, argv + 1);
		return used < 0 ? -1 : used + 1;
	}
	return err ? -1 : 2;
}

static void add_ports(struct nlmsghdr *n, const struct request *r)
{
	struct rtattr *list, *nest;
	size_t i;

	list = addattr_nest(n, IOFD_OPT_LEN, TCA_IOFD_PORTS | NLA_F_NESTED);
	for (i = 0; i < r->n; i++) {
		const struct port *port = &r->port[i];
		bool four = port->family == AF_INET;

		nest = addattr_nest(n, IOFD_OPT_LEN,
				    TCA_IOFD_PORT | NLA_F_NESTED);
		addattr_l(n, IOFD_OPT_LEN, TCA_IOFD_PORT_DEV, port->dev,
			  strlen(port->dev) + 1);
		addattr_l(n, IOFD_OPT_LEN,
			  four ? TCA_IOFD_PORT_VIA : TCA_IOFD_PORT_VIA6,
			  port->via, four ? 4 : 16);
		addattr_nest_end(n, nest);
	}
	addattr_nest_end(n, list);
}

static int iofd_parse_opt(struct qdisc_util *qu, int argc, char **argv,
			  struct nlmsghdr *n, const char *dev)
{
	struct request r = {};
	struct rtattr *nest;
	int attr, used;

	(void)qu;
	(void)dev;
	for (; argc > 0; argc -= used, argv += used) {
		if (!strcmp(argv[0], "help")) {
			explain();
			return -1;
		}
		used = parse_option(&r, argc, argv);
		if (used < 0)
			return -1;
	}

	nest = addattr_nest(n, IOFD_OPT_LEN, TCA_OPTIONS | NLA_F_NESTED);
	for (attr = 1; attr <= TCA_IOFD_MAX; attr++) {
		if (!r.given[attr])
			continue;
		if (attr == TCA_IOFD_PORTS)
			add_ports(n, &r);
		else if (attr == TCA_IOFD_TIMEOUT)
			addattr64(n, IOFD_OPT_LEN, attr, r.timeout);
		else
			addattr32(n, IOFD_OPT_LEN, attr, r.u32[attr]);
	}
	addattr_nest_end(n, nest);
	return 0;
}

static void print_port(struct rtattr *attr)
{
	struct rtattr *tb[TCA_IOFD_PORT_MAX + 1];
	char text[INET6_ADDRSTRLEN] = "";
	struct rtattr *via;
	__u8 addr[16] = {};
	bool four;

	parse_nest(tb, TCA_IOFD_PORT_MAX, attr);
	four = tb[TCA_IOFD_PORT_VIA];
	via = four ? tb[TCA_IOFD_PORT_VIA] : tb[TCA_IOFD_PORT_VIA6];
	attr_copy(addr, four ? 4 : 16, via);
	inet_ntop(four ? AF_INET : AF_INET6, addr, text, sizeof(text));

	open_json_object(NULL);
	print_color_string(PRINT_ANY, COLOR_NONE, "dev", "deflect dev %s ",
			   attr_name(tb[TCA_IOFD_PORT_DEV], NAME_LEN));
	print_color_string(PRINT_ANY, COLOR_NONE, "via", "via %s ", text);
	if (tb[TCA_IOFD_PORT_GONE]) {
		print_color_bool(PRINT_JSON, COLOR_NONE, "gone", NULL, true);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", "(gone)");
	}
	close_json_object();
}

static void print_ports(const struct rtattr *list)
{
	struct rtattr *attr;
	int len;

	if (!list)
		return;
	open_json_array(PRINT_JSON, "deflect");
	for (attr = nest_first(list, &len); attr; attr = nest_next(attr, &len))
		if ((attr->rta_type & ~NLA_F_NESTED) == TCA_IOFD_PORT)
			print_port(attr);
	close_json_array(PRINT_JSON, NULL);
}

static int iofd_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_IOFD_MAX + 1];

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_nest(tb, TCA_IOFD_MAX, opt);

	print_exact_bytes("threshold", "threshold", attr_u32(tb[TCA_IOFD_THRESHOLD]));
	print_color_uint(PRINT_ANY, COLOR_NONE, "entries", "entries %u ",
			 attr_u32(tb[TCA_IOFD_ENTRIES]));
	print_exact_time("timeout", "timeout", attr_u64(tb[TCA_IOFD_TIMEOUT]));
	if (tb[TCA_IOFD_SEED])
		print_color_uint(PRINT_ANY, COLOR_NONE, "seed", "seed %u ",
				 attr_u32(tb[TCA_IOFD_SEED]));
	print_ports(tb[TCA_IOFD_PORTS]);
	return 0;
}

static void print_port_stats(struct rtattr *attr, unsigned int number)
{
	struct rtattr *tb[TCA_IOFD_PORT_STATS_MAX + 1];

	parse_nest(tb, TCA_IOFD_PORT_STATS_MAX, attr);
	print_nl();
	open_json_object(NULL);
	print_color_uint(PRINT_FP, COLOR_NONE, NULL, "  port %-4u ", number);
	print_count("packets", "%llu pkt",
		    attr_u64(tb[TCA_IOFD_PORT_STATS_PACKETS]));
	print_count("bytes", " %llu bytes",
		    attr_u64(tb[TCA_IOFD_PORT_STATS_BYTES]));
	close_json_object();
}

static void print_ports_stats(const struct rtattr *list)
{
	unsigned int number = 0;
	struct rtattr *attr;
	int len;

	open_json_array(PRINT_JSON, "ports");
	for (attr = nest_first(list, &len); attr; attr = nest_next(attr, &len))
		if ((attr->rta_type & ~NLA_F_NESTED) == TCA_IOFD_STATS_PORT)
			print_port_stats(attr, ++number);
	close_json_array(PRINT_JSON, NULL);
}

/* A text line of the statistics is a JSON object.  A counter that the kernel does not send is
 * printed as 0.
 */
static int iofd_print_xstats(struct qdisc_util *qu, FILE *f,
			     struct rtattr *xstats)
{
	static const struct {
		const char	*object;	/* begins an object, or NULL */
		const char	*key;
		const char	*fmt;
		int		attr;
	} counts[] = {
		{ "deflected", "messages", "  deflected %llu messages", TCA_IOFD_STATS_MESSAGES },
		{ NULL, "starts", ", %llu starts", TCA_IOFD_STATS_STARTS },
		{ NULL, "followers", " %llu followers", TCA_IOFD_STATS_FOLLOWERS },
		{ NULL, "bytes", " %llu bytes", TCA_IOFD_STATS_BYTES },
		{ "table", "entries", "  table     in use %llu", TCA_IOFD_STATS_ENTRIES },
		{ NULL, "peak", " peak %llu", TCA_IOFD_STATS_PEAK },
		{ NULL, "expired", ", expired %llu", TCA_IOFD_STATS_EXPIRED },
		{ "passed", "full", "  passed    table full %llu", TCA_IOFD_STATS_FULL },
		{ NULL, "no_port", ", no port up %llu", TCA_IOFD_STATS_NO_PORT },
		{ NULL, "spent", ", tokens spent %llu", TCA_IOFD_STATS_SPENT },
		{ "dropped", "port", "  dropped   port down or gone %llu",
		  TCA_IOFD_STATS_DROPS_PORT },
		{ NULL, "fifo", ", FIFO full %llu", TCA_IOFD_STATS_DROPS_FIFO },
		{ NULL, "memory", ", no memory %llu", TCA_IOFD_STATS_DROPS_MEMORY },
		{ NULL, "reset", ", reset %llu", TCA_IOFD_STATS_DROPS_RESET },
		{ NULL, "refused", ", refused %llu", TCA_IOFD_STATS_DROPS_REFUSED },
		{ "waiting", "packets", "  waiting   %llu pkt", TCA_IOFD_STATS_WAIT_PACKETS },
		{ NULL, "bytes", " %llu bytes", TCA_IOFD_STATS_WAIT_BYTES },
		{ NULL, "peak", ", peak %llu", TCA_IOFD_STATS_WAIT_PEAK },
	};
	struct rtattr *tb[TCA_IOFD_STATS_MAX + 1];
	size_t i;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	parse_nest(tb, TCA_IOFD_STATS_MAX, xstats);

	for (i = 0; i < N(counts); i++) {
		if (counts[i].object && i) {
			close_json_object();
			print_nl();
		}
		if (counts[i].object)
			open_json_object(counts[i].object);
		print_count(counts[i].key, counts[i].fmt, attr_u64(tb[counts[i].attr]));
	}
	close_json_object();
	print_ports_stats(tb[TCA_IOFD_STATS_PORTS]);
	return 0;
}

__attribute__((visibility("default")))
struct qdisc_util iofd_qdisc_util = {
	.id		= "iofd",
	.parse_qopt	= iofd_parse_opt,
	.print_qopt	= iofd_print_opt,
	.print_xstats	= iofd_print_xstats,
};
