// SPDX-License-Identifier: GPL-2.0
/*
 * Options, dump and statistics of the `color` qdisc, for the stock tc.
 *
 * Build it with `make tc` and name its directory in TC_LIB_DIR.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <linux/greenlane_dscp.h>
#include <linux/pkt_color.h>

#include "color_preset.h"
#include "color_request.h"
#include "color_words.h"
#include "tc_answers.h"
#include "tc_exact.h"
#include "tc_plugin.h"

/* IEEE 802.3df, 800 Gbit/s, and P802.3dj's 1.6 Tbit/s */
#define RATE_KNOWN_MBIT	1600000

#define COLOR_OPT_LEN	1024	/* room for our attributes in tc's request */

static const char * const color_names[] = {
	[TC_COLOR_RED]		= "red",
	[TC_COLOR_YELLOW]	= "yellow",
	[TC_COLOR_GREEN]	= "green",
};

static const char * const count_names[] = {
	[TC_COLOR_COUNT_COLOR]	= "color",
	[TC_COLOR_COUNT_QUEUE]	= "queue",
	[TC_COLOR_COUNT_PORT]	= "port",
};

static const char * const classify_names[] = {
	[TC_COLOR_CLASSIFY_DSCP] = "dscp",
	[TC_COLOR_CLASSIFY_ECN]	 = "ecn",
};

static const char * const pause_names[] = {
	[TC_COLOR_PAUSE_NONE]	= "none",
	[TC_COLOR_PAUSE_OBEY]	= "obey",
	[TC_COLOR_PAUSE_ALL]	= "all",
	[TC_COLOR_PAUSE_GREEN]	= "green",
};

static const char * const drop_names[] = {
	[TC_COLOR_DROP_COLOR]	= "color",
	[TC_COLOR_DROP_POOL]	= "pool",
	[TC_COLOR_DROP_LIMIT]	= "limit",
};

static void explain(void)
{
	fprintf(stderr,
		"Usage: ... color [ rate RATE | rate none ] [ overhead BYTES ] [ limit BYTES ]\n"
		"		 [ red BYTES ] [ yellow BYTES ] [ green BYTES ] [ COLOR none ]\n"
		"		 [ red auto [ min BYTES ] ]\n"
		"		 [ count { color | queue | port } ] [ classify { dscp | ecn } ]\n"
		"		 [ map DSCP COLOR ]...\n"
		"		 [ ecn BYTES | ecn MIN MAX PROBABILITY | ecn none ]\n"
		"		 [ pool NAME [ size BYTES ] [ alpha ALPHA ] | pool none ]\n"
		"		 [ bands N ] [ prio DSCP BAND ]... [ band-rate BAND RATE|PPS ]...\n"
		"		 [ band-limit BAND PACKETS ]... [ band-yield BAND PART ]...\n"
		"		 [ band-... BAND none ]...\n"
		"		 [ split-gso | no-split-gso | auto-split-gso ] [ preset PRESET ]\n"
		"		 [ int TIME | int none ]\n"
		"		 [ slack TIME ] [ catch-up TIME | catch-up auto ]\n"
		"		 [ trim DSCP [ trim-colors COLOR[,COLOR]... ]\n"
		"		   [ trim-limit PACKETS ] [ trim-size BYTES ] | trim none ]\n"
		"		 [ pause { all | green | obey | none } ] [ xoff BYTES | xoff auto ]\n"
		"		 [ xon BYTES | xon auto ] [ delay TIME ] [ storm TIME | storm never ]\n"
		"		 [ unit BYTES | unit auto ]\n"
		"		 [ pause-map PRIORITY BAND ]... [ pause-map PRIORITY none ]...\n"
		"where	COLOR := { red | yellow | green }\n"
		"	DSCP := { 0...63 | cs0...cs7 | af11...af43 | ef }\n"
		"	BAND := { 0...15 }, 0 is served first\n"
		"	PRIORITY := { 0...7 }, of IEEE 802.1Qbb\n"
		"	PRESET := { xpass | aeolus | tlt | ndp | homa }\n");
}

/* Mark an attribute as given, which is refused for a second time. */
static int give(struct request *r, int attr, const char *what)
{
	if (r->given[attr])
		return bad("%s is given twice", what);
	r->given[attr] = true;
	return 0;
}

/* Parse the arguments of ecn.  Return: the number of words used, or -1. */
static int parse_ecn(struct request *r, int argc, char **argv)
{
	__u32 *min = &r->u32[TCA_COLOR_ECN_MIN];
	__u32 *max = &r->u32[TCA_COLOR_ECN_MAX];
	__u32 *prob = &r->u32[TCA_COLOR_ECN_PROB];
	double p;

	r->given[TCA_COLOR_ECN_MAX] = true;
	r->given[TCA_COLOR_ECN_PROB] = true;
	if (!strcmp(argv[0], "none"))
		return 1;

	if (get_bytes("ecn", argv[0], 0, TC_COLOR_LIMIT_MAX, min))
		return -1;
	if (argc < 2 || !strchr("0123456789.+-", argv[1][0])) {
		*max = *min;
		*prob = TC_COLOR_PROB_ONE;
		return 1;
	}

	if (get_bytes("ecn", argv[1], 0, TC_COLOR_LIMIT_MAX, max))
		return -1;
	if (argc < 3)
		return bad("ecn MIN MAX needs a probability");
	if (get_number("ecn", argv[2], 0, 1, &p))
		return -1;
	if (p == 0)
		return bad("ecn: a probability of 0 never marks; disable ecn instead");
	if (*min > *max)
		return bad("ecn: MIN is above MAX");
	*prob = fmax(1, round(p * TC_COLOR_PROB_ONE));
	return 3;
}

/* Parse the arguments of red.  Return: the number of words used, or -1. */
static int parse_red(struct request *r, int argc, char **argv)
{
	if (!strcmp(argv[0], "none"))
		return 1;
	if (strcmp(argv[0], "auto"))
		return get_bytes("red", argv[0], 1, TC_COLOR_LIMIT_MAX, &r->u32[TCA_COLOR_RED]) ?
		       -1 : 1;

	r->given[TCA_COLOR_RED_AUTO] = true;
	r->given[TCA_COLOR_RED_MIN] = true;
	r->u32[TCA_COLOR_RED_AUTO] = 1;
	if (argc < 2 || strcmp(argv[1], "min"))
		return 1;
	if (argc < 3)
		return bad("min needs an argument");
	return get_bytes("min", argv[2], 1, TC_COLOR_LIMIT_MAX, &r->u32[TCA_COLOR_RED_MIN]) ?
	       -1 : 3;
}

static int parse_map(struct request *r, char **argv)
{
	__u32 dscp, color;

	if (get_dscp("map", argv[0], &dscp) ||
	    get_name("map", argv[1], color_names, N(color_names), &color))
		return -1;
	if (r->map[dscp] != TC_COLOR_MAP_KEEP)
		return bad("DSCP %u is mapped twice", dscp);
	r->map[dscp] = color;
	r->given[TCA_COLOR_MAP] = true;
	return 0;
}

static int get_band(const char *what, const char *arg, __u32 *band)
{
	return get_integer(what, arg, 0, TC_COLOR_BANDS_MAX - 1, band);
}

static int parse_prio(struct request *r, char **argv)
{
	__u32 dscp, band;

	if (get_dscp("prio", argv[0], &dscp) ||
	    get_band("prio", argv[1], &band))
		return -1;
	if (r->prio[dscp] != TC_COLOR_MAP_KEEP)
		return bad("DSCP %u has two bands", dscp);
	r->prio[dscp] = band;
	r->given[TCA_COLOR_PRIO] = true;
	return 0;
}

/* Packets a second: a number, and "pps". */
static bool parse_pps(const char *arg, __u64 *rate)
{
	char *end;

	if (arg[0] < '0' || arg[0] > '9')
		return false;
	*rate = strtoull(arg, &end, 10);
	if (strcmp(end, "pps") || !*rate || *rate > TC_COLOR_RATE_MAX)
		return false;
	*rate |= TC_COLOR_BAND_RATE_PPS;
	return true;
}

static int parse_band_rate(struct request *r, char **argv)
{
	__u32 band;
	__u64 rate;

	if (get_band("band-rate", argv[0], &band) ||
	    (!parse_pps(argv[1], &rate) &&
	     parse_rate("band-rate", argv[1], &rate)))
		return -1;
	if (r->band_rate[band] != TC_COLOR_BAND_RATE_KEEP)
		return bad("band %u has two rates", band);
	r->band_rate[band] = rate;
	r->given[TCA_COLOR_BAND_RATE64] = true;
	return 0;
}

static int parse_band_limit(struct request *r, char **argv)
{
	__u32 band, limit = 0;

	if (get_band("band-limit", argv[0], &band) ||
	    (strcmp(argv[1], "none") &&
	     get_integer("band-limit", argv[1], 1, TC_COLOR_BAND_LIMIT_MAX,
			 &limit)))
		return -1;
	if (r->band_limit[band] != TC_COLOR_BAND_LIMIT_KEEP)
		return bad("band %u has two limits", band);
	r->band_limit[band] = limit;
	r->given[TCA_COLOR_BAND_LIMIT] = true;
	return 0;
}

static int parse_band_yield(struct request *r, char **argv)
{
	double part = 0;
	__u32 band;

	if (get_band("band-yield", argv[0], &band) ||
	    (strcmp(argv[1], "none") &&
	     get_number("band-yield", argv[1], 1. / TC_COLOR_BAND_YIELD_ONE, 1,
			&part)))
		return -1;
	if (r->band_yield[band] != TC_COLOR_BAND_YIELD_KEEP)
		return bad("band %u yields twice", band);
	r->band_yield[band] = round(part * TC_COLOR_BAND_YIELD_ONE);
	r->given[TCA_COLOR_BAND_YIELD] = true;
	return 0;
}

static int parse_pause_map(struct request *r, char **argv)
{
	__u32 prio, band = TC_COLOR_PAUSE_NO_BAND;

	if (get_integer("pause-map", argv[0], 0, TC_COLOR_PAUSE_PRIOS - 1, &prio) ||
	    (strcmp(argv[1], "none") && get_band("pause-map", argv[1], &band)))
		return -1;
	if (r->pause_map[prio] != TC_COLOR_MAP_KEEP)
		return bad("priority %u has two bands", prio);
	r->pause_map[prio] = band;
	r->given[TCA_COLOR_PAUSE_MAP] = true;
	return 0;
}

static int parse_pool(struct request *r, const char *arg)
{
	if (!strcmp(arg, "none"))
		return 0;
	if (!*arg || strlen(arg) >= sizeof(r->pool))
		return bad("pool: a name has 1 ... %zu characters",
			   sizeof(r->pool) - 1);
	strcpy(r->pool, arg);
	return 0;
}

static int parse_time(const char *what, const char *arg, __u32 min, __u32 max, __u32 *val)
{
	__u64 ns;

	if (get_exact_time(what, arg, min, max, &ns))
		return -1;
	*val = ns;
	return 0;
}

static int parse_alpha(struct request *r, const char *arg)
{
	double alpha;

	if (get_number("alpha", arg, 1. / TC_COLOR_ALPHA_ONE,
		       TC_COLOR_ALPHA_MAX / TC_COLOR_ALPHA_ONE, &alpha))
		return -1;
	r->u32[TCA_COLOR_POOL_ALPHA] = round(alpha * TC_COLOR_ALPHA_ONE);
	return 0;
}

/* Parse the DSCP of trimmed packets; TC_COLOR_DSCPS disables trimming. */
static int parse_trim(const char *arg, __u32 *dscp)
{
	*dscp = TC_COLOR_DSCPS;
	return strcmp(arg, "none") ? get_dscp("trim", arg, dscp) : 0;
}

/* Parse a list of colours: COLOR[,COLOR]... */
static int parse_trim_colors(const char *arg, __u32 *colors)
{
	char name[8];
	__u32 color;
	size_t len;

	do {
		len = strcspn(arg, ",");
		snprintf(name, sizeof(name), "%.*s", (int)len, arg);
		if (get_name("trim-colors", name, color_names, N(color_names), &color))
			return -1;
		if (*colors & 1u << color)
			return bad("trim-colors: %s is given twice", name);
		*colors |= 1u << color;
		arg += len;
	} while (*arg++);
	return 0;
}

/* Parse an option and its arguments.  Return: the number of words used, or -1. */
static int parse_option(struct request *r, int argc, char **argv)
{
	static const struct {
		const char	*name;
		int		attr;
		int		args;	/* with 2, the option may be given repeatedly */
	} options[] = {
		{ "rate",	TCA_COLOR_RATE64,	1 },
		{ "overhead",	TCA_COLOR_OVERHEAD,	1 },
		{ "limit",	TCA_COLOR_LIMIT,	1 },
		{ "red",	TCA_COLOR_RED,		1 },
		{ "yellow",	TCA_COLOR_YELLOW,	1 },
		{ "green",	TCA_COLOR_GREEN,	1 },
		{ "count",	TCA_COLOR_COUNT,	1 },
		{ "classify",	TCA_COLOR_CLASSIFY,	1 },
		{ "map",	TCA_COLOR_MAP,		2 },
		{ "ecn",	TCA_COLOR_ECN_MIN,	1 },
		{ "pool",	TCA_COLOR_POOL,		1 },
		{ "size",	TCA_COLOR_POOL_SIZE,	1 },
		{ "alpha",	TCA_COLOR_POOL_ALPHA,	1 },
		{ "bands",	TCA_COLOR_BANDS,	1 },
		{ "prio",	TCA_COLOR_PRIO,		2 },
		{ "band-rate",	TCA_COLOR_BAND_RATE64,	2 },
		{ "band-limit",	TCA_COLOR_BAND_LIMIT,	2 },
		{ "band-yield",	TCA_COLOR_BAND_YIELD,	2 },
		{ "slack",	TCA_COLOR_SLACK,	1 },
		{ "catch-up",	TCA_COLOR_CATCH_UP,	1 },
		{ "trim",	TCA_COLOR_TRIM_DSCP,	1 },
		{ "trim-colors", TCA_COLOR_TRIM_COLORS,	1 },
		{ "trim-limit",	TCA_COLOR_TRIM_LIMIT,	1 },
		{ "trim-size",	TCA_COLOR_TRIM_SIZE,	1 },
		{ "pause",	TCA_COLOR_PAUSE,	1 },
		{ "xoff",	TCA_COLOR_PAUSE_XOFF,	1 },
		{ "xon",	TCA_COLOR_PAUSE_XON,	1 },
		{ "delay",	TCA_COLOR_PAUSE_DELAY,	1 },
		{ "storm",	TCA_COLOR_PAUSE_STORM,	1 },
		{ "pause-map",	TCA_COLOR_PAUSE_MAP,	2 },
		{ "unit",	TCA_COLOR_PAUSE_UNIT,	1 },
		{ "int",	TCA_COLOR_INT_RTT,	1 },
		{ "preset",	REQUEST_PRESET,		1 },
		{ "split-gso",	TCA_COLOR_SPLIT_GSO,	0 },
		{ "no-split-gso", TCA_COLOR_SPLIT_GSO,	0 },
		{ "auto-split-gso", TCA_COLOR_SPLIT_GSO, 0 },
	};
	const char *name = argv[0];
	int attr, used, err;
	__u32 *val;
	size_t i;

	for (i = 0; i < N(options); i++)
		if (!strcmp(name, options[i].name))
			break;
	if (i == N(options))
		return bad("unknown option \"%s\", try \"color help\"", name);
	if (argc <= options[i].args)
		return bad("%s needs an argument", name);
	attr = options[i].attr;
	if (options[i].args < 2 && give(r, attr, name))
		return -1;

	val = &r->u32[attr];
	used = 1 + options[i].args;
	switch (attr) {
	case TCA_COLOR_RATE64:
		err = parse_rate(name, argv[1], &r->rate);
		break;
	case TCA_COLOR_OVERHEAD:
		err = get_bytes(name, argv[1], 0, TC_COLOR_OVERHEAD_MAX, val);
		break;
	case TCA_COLOR_LIMIT:
	case TCA_COLOR_POOL_SIZE:
		err = get_bytes(name, argv[1], 1, TC_COLOR_LIMIT_MAX, val);
		break;
	case TCA_COLOR_RED:
		used = parse_red(r, argc - 1, argv + 1);
		err = used < 0;
		used++;
		break;
	case TCA_COLOR_YELLOW:
	case TCA_COLOR_GREEN:
		err = strcmp(argv[1], "none") ?
		      get_bytes(name, argv[1], 1, TC_COLOR_LIMIT_MAX, val) : 0;
		break;
	case TCA_COLOR_COUNT:
		err = get_name(name, argv[1], count_names, N(count_names), val);
		break;
	case TCA_COLOR_CLASSIFY:
		err = get_name(name, argv[1], classify_names, N(classify_names),
			       val);
		break;
	case TCA_COLOR_MAP:
		err = parse_map(r, argv + 1);
		break;
	case TCA_COLOR_BANDS:
		err = get_integer(name, argv[1], 1, TC_COLOR_BANDS_MAX, val);
		break;
	case TCA_COLOR_PRIO:
		err = parse_prio(r, argv + 1);
		break;
	case TCA_COLOR_BAND_RATE64:
		err = parse_band_rate(r, argv + 1);
		break;
	case TCA_COLOR_BAND_LIMIT:
		err = parse_band_limit(r, argv + 1);
		break;
	case TCA_COLOR_BAND_YIELD:
		err = parse_band_yield(r, argv + 1);
		break;
	case REQUEST_PRESET:
		err = get_name(name, argv[1], preset_names, N(preset_names),
			       val);
		break;
	case TCA_COLOR_ECN_MIN:
		used = parse_ecn(r, argc - 1, argv + 1);
		err = used < 0;
		used++;
		break;
	case TCA_COLOR_POOL:
		err = parse_pool(r, argv[1]);
		break;
	case TCA_COLOR_SLACK:
		err = parse_time(name, argv[1], 0, TC_COLOR_SLACK_MAX, val);
		break;
	case TCA_COLOR_INT_RTT:
		err = strcmp(argv[1], "none") &&
		      parse_time(name, argv[1], TC_COLOR_INT_RTT_MIN,
				 TC_COLOR_INT_RTT_MAX, val);
		break;
	case TCA_COLOR_CATCH_UP:
		err = strcmp(argv[1], "auto") ?
		      parse_time(name, argv[1], 1, TC_COLOR_CATCH_UP_MAX, val) : 0;
		break;
	case TCA_COLOR_POOL_ALPHA:
		err = parse_alpha(r, argv[1]);
		break;
	case TCA_COLOR_TRIM_DSCP:
		err = parse_trim(argv[1], val);
		break;
	case TCA_COLOR_TRIM_COLORS:
		err = parse_trim_colors(argv[1], val);
		break;
	case TCA_COLOR_TRIM_LIMIT:
		err = get_integer(name, argv[1], 1, TC_COLOR_LIMIT_MAX, val);
		break;
	case TCA_COLOR_TRIM_SIZE:
		err = get_bytes(name, argv[1], 0, TC_COLOR_TRIM_SIZE_MAX, val);
		break;
	case TCA_COLOR_PAUSE:
		err = get_name(name, argv[1], pause_names, N(pause_names), val);
		break;
	case TCA_COLOR_PAUSE_XOFF:
	case TCA_COLOR_PAUSE_XON:
		err = strcmp(argv[1], "auto") ?
		      get_bytes(name, argv[1], 1, TC_COLOR_LIMIT_MAX, val) : 0;
		break;
	case TCA_COLOR_PAUSE_DELAY:
		err = parse_time(name, argv[1], 0, TC_COLOR_PAUSE_DELAY_MAX, val);
		break;
	case TCA_COLOR_PAUSE_STORM:
		err = strcmp(argv[1], "never") ?
		      parse_time(name, argv[1], 1, TC_COLOR_PAUSE_STORM_MAX, val) : 0;
		break;
	case TCA_COLOR_PAUSE_UNIT:
		err = strcmp(argv[1], "auto") ?
		      get_bytes(name, argv[1], TC_COLOR_PAUSE_UNIT_MIN, TC_COLOR_PAUSE_UNIT_MAX,
				val) : 0;
		break;
	case TCA_COLOR_PAUSE_MAP:
		err = parse_pause_map(r, argv + 1);
		break;
	default: /* split-gso, no-split-gso or auto-split-gso */
		*val = name[0] == 's' ? 1 : name[0] == 'n' ? 0 : 2;
		err = 0;
	}
	return err ? -1 : used;
}

static void add_attr(struct nlmsghdr *n, const struct request *r, int attr)
{
	switch (attr) {
	case TCA_COLOR_RATE64:
		addattr64(n, COLOR_OPT_LEN, attr, r->rate);
		break;
	case TCA_COLOR_MAP:
		addattr_l(n, COLOR_OPT_LEN, attr, r->map, sizeof(r->map));
		break;
	case TCA_COLOR_POOL:
		addattr_l(n, COLOR_OPT_LEN, attr, r->pool, strlen(r->pool) + 1);
		break;
	case TCA_COLOR_PRIO:
		addattr_l(n, COLOR_OPT_LEN, attr, r->prio, sizeof(r->prio));
		break;
	case TCA_COLOR_BAND_RATE64:
		addattr_l(n, COLOR_OPT_LEN, attr, r->band_rate,
			  sizeof(r->band_rate));
		break;
	case TCA_COLOR_BAND_LIMIT:
		addattr_l(n, COLOR_OPT_LEN, attr, r->band_limit,
			  sizeof(r->band_limit));
		break;
	case TCA_COLOR_BAND_YIELD:
		addattr_l(n, COLOR_OPT_LEN, attr, r->band_yield,
			  sizeof(r->band_yield));
		break;
	case TCA_COLOR_PAUSE_MAP:
		addattr_l(n, COLOR_OPT_LEN, attr, r->pause_map, sizeof(r->pause_map));
		break;
	default:
		addattr32(n, COLOR_OPT_LEN, attr, r->u32[attr]);
	}
}

/* The speed of a network card, Mbit/s; 0 for another device, or an unknown speed. */
static unsigned long card_speed(const char *dev)
{
	char path[128];
	long mbit = 0;
	FILE *f;

	snprintf(path, sizeof(path), "/sys/class/net/%s/device", dev);
	if (access(path, F_OK))
		return 0;
	snprintf(path, sizeof(path), "/sys/class/net/%s/speed", dev);
	f = fopen(path, "r");
	if (!f)
		return 0;
	if (fscanf(f, "%ld", &mbit) != 1 || mbit < 0)
		mbit = 0;
	fclose(f);
	return mbit;
}

/* Warn of a rate that no link has. */
static void warn_of_rate(const char *dev, __u64 rate)
{
	unsigned long mbit = card_speed(dev) ?: RATE_KNOWN_MBIT;

	if (rate / (1000000 / 8) > mbit)
		fprintf(stderr, TC_KIND
			": warning: rate: %llu Mbit/s is more than the %lu of %s\n",
			(unsigned long long)rate / (1000000 / 8), mbit,
			mbit == RATE_KNOWN_MBIT ? "any Ethernet" : dev);
}

static int color_parse_opt(struct qdisc_util *qu, int argc, char **argv,
			   struct nlmsghdr *n, const char *dev)
{
	struct request r = REQUEST_INIT;
	struct rtattr *nest;
	int attr, used;

	(void)qu;
	for (; argc > 0; argc -= used, argv += used) {
		if (!strcmp(argv[0], "help")) {
			explain();
			return -1;
		}
		used = parse_option(&r, argc, argv);
		if (used < 0)
			return -1;
	}
	if (r.given[REQUEST_PRESET] && preset_apply(&r))
		return -1;
	/* @given was set for the preset, and for the check for duplicates. */
	if (r.given[TCA_COLOR_RED_AUTO])
		r.given[TCA_COLOR_RED] = false;

	warn_of_rate(dev, r.rate);
	nest = addattr_nest(n, COLOR_OPT_LEN, TCA_OPTIONS | NLA_F_NESTED);
	for (attr = 1; attr <= TCA_COLOR_MAX; attr++)
		if (r.given[attr])
			add_attr(n, &r, attr);
	addattr_nest_end(n, nest);
	return 0;
}

static const char *name_of(const char * const *names, size_t n, __u32 i)
{
	return i < n ? names[i] : "unknown";
}

static void print_name(const char *key, const char *fmt, const char *name)
{
	print_color_string(PRINT_ANY, COLOR_NONE, key, fmt, name);
}

/* The colours of a port whose map has not been changed. */
static void default_map(__u8 *map)
{
	memset(map, TC_COLOR_YELLOW, TC_COLOR_DSCPS);
#define GREENLANE_CODEPOINT(symbol, name, dscp, colour)	map[dscp] = TC_COLOR_##colour;
	GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
}

/* Print the difference from the default map.  JSON has all that are not yellow; -d has both. */
static void print_map(const struct rtattr *attr)
{
	bool all = show_details || is_json_context();
	__u8 normal[TC_COLOR_DSCPS];
	const __u8 *map;
	char key[4];
	int i;

	if (!attr || RTA_PAYLOAD(attr) < TC_COLOR_DSCPS)
		return;
	map = RTA_DATA(attr);
	default_map(normal);
	open_json_object("map");
	for (i = 0; i < TC_COLOR_DSCPS; i++) {
		if (map[i] == normal[i] ? !all || map[i] == TC_COLOR_YELLOW :
		    is_json_context() && map[i] == TC_COLOR_YELLOW)
			continue;
		snprintf(key, sizeof(key), "%d", i);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "map %s ", key);
		print_name(key, "%s ", name_of(color_names, N(color_names),
					       map[i]));
	}
	close_json_object();
}

/* DSCPs without an entry use the last band. */
static void print_prio(const struct rtattr *attr, __u32 bands)
{
	const __u8 *prio;
	char key[4];
	int i;

	if (!attr || RTA_PAYLOAD(attr) < TC_COLOR_DSCPS)
		return;
	prio = RTA_DATA(attr);
	open_json_object("prio");
	for (i = 0; i < TC_COLOR_DSCPS; i++) {
		if (prio[i] == bands - 1)
			continue;
		snprintf(key, sizeof(key), "%d", i);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "prio %s ", key);
		print_color_uint(PRINT_ANY, COLOR_NONE, key, "%u ", prio[i]);
	}
	close_json_object();
}

/* @word and the band are printed, @key is the band's number. */
static void print_band_rate(const char *key, const char *word, __u64 rate)
{
	if (!(rate & TC_COLOR_BAND_RATE_PPS)) {
		print_exact_rate(key, word, rate);
		return;
	}
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s ", word);
	print_color_u64(PRINT_FP, COLOR_NONE, NULL, "%llupps ",
			rate & ~TC_COLOR_BAND_RATE_PPS);
}

/* Print the option and its band, whose number is the key of the next value. */
static void print_band(const char *fmt, __u32 band, char key[4])
{
	snprintf(key, 4, "%u", band);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, fmt, key);
}

static void print_bands(struct rtattr *tb[])
{
	__u64 rate[TC_COLOR_BANDS_MAX] = {};
	__u32 limit[TC_COLOR_BANDS_MAX] = {};
	__u32 yield[TC_COLOR_BANDS_MAX] = {};
	__u32 i, bands = attr_u32(tb[TCA_COLOR_BANDS]);
	char key[4], word[16];

	if (bands < 2 || bands > TC_COLOR_BANDS_MAX)
		return;
	attr_copy(rate, bands * sizeof(*rate), tb[TCA_COLOR_BAND_RATE64]);
	attr_copy(limit, bands * sizeof(*limit), tb[TCA_COLOR_BAND_LIMIT]);
	attr_copy(yield, bands * sizeof(*yield), tb[TCA_COLOR_BAND_YIELD]);
	print_color_uint(PRINT_ANY, COLOR_NONE, "bands", "bands %u ", bands);
	print_prio(tb[TCA_COLOR_PRIO], bands);
	open_json_object("band_rate");
	for (i = 0; i < bands; i++) {
		if (!rate[i])
			continue;
		snprintf(key, sizeof(key), "%u", i);
		snprintf(word, sizeof(word), "band-rate %u", i);
		print_band_rate(key, word, rate[i]);
	}
	close_json_object();
	open_json_object("band_pps");
	for (i = 0; i < bands; i++) {
		if (!(rate[i] & TC_COLOR_BAND_RATE_PPS))
			continue;
		snprintf(key, sizeof(key), "%u", i);
		print_color_u64(PRINT_JSON, COLOR_NONE, key, NULL,
				rate[i] & ~TC_COLOR_BAND_RATE_PPS);
	}
	close_json_object();
	open_json_object("band_limit");
	for (i = 0; i < bands; i++) {
		if (!limit[i])
			continue;
		print_band("band-limit %s ", i, key);
		print_color_uint(PRINT_ANY, COLOR_NONE, key, "%u ", limit[i]);
	}
	close_json_object();
	open_json_object("band_yield");
	for (i = 0; i < bands; i++) {
		if (!yield[i])
			continue;
		print_band("band-yield %s ", i, key);
		print_exact_fraction(key, "%s ", yield[i], TC_COLOR_BAND_YIELD_ONE);
	}
	close_json_object();
}

static void print_ecn(struct rtattr *tb[])
{
	__u32 min = attr_u32(tb[TCA_COLOR_ECN_MIN]);
	__u32 max = attr_u32(tb[TCA_COLOR_ECN_MAX]);
	__u32 prob = attr_u32(tb[TCA_COLOR_ECN_PROB]);
	bool step = min == max;

	if (!prob)
		return;
	open_json_object("ecn");
	print_exact_bytes("min", "ecn", min);
	if (step && prob == TC_COLOR_PROB_ONE) {
		print_color_u64(PRINT_JSON, COLOR_NONE, "max", NULL, max);
		print_color_float(PRINT_JSON, COLOR_NONE, "probability", NULL, 1);
	} else {
		print_exact_bytes("max", "", max);
		print_exact_fraction("probability", "%s ", prob, TC_COLOR_PROB_ONE);
	}
	close_json_object();
}

static void print_pool(struct rtattr *tb[])
{
	char name[TC_COLOR_POOL_NAMSIZ] = "";
	size_t len;

	if (!tb[TCA_COLOR_POOL])
		return;
	len = RTA_PAYLOAD(tb[TCA_COLOR_POOL]);
	memcpy(name, RTA_DATA(tb[TCA_COLOR_POOL]),
	       len < sizeof(name) ? len : sizeof(name) - 1);
	open_json_object("pool");
	print_name("name", "pool %s ", name);
	print_exact_bytes("size", "size", attr_u32(tb[TCA_COLOR_POOL_SIZE]));
	print_exact_fraction("alpha", "alpha %s ", attr_u32(tb[TCA_COLOR_POOL_ALPHA]),
			     TC_COLOR_ALPHA_ONE);
	close_json_object();
}

static void print_trim(struct rtattr *tb[])
{
	__u32 colors = attr_u32(tb[TCA_COLOR_TRIM_COLORS]), size;
	const char *sep = "trim-colors ";
	size_t i;

	if (!tb[TCA_COLOR_TRIM_DSCP])
		return;
	size = attr_u32(tb[TCA_COLOR_TRIM_SIZE]);
	open_json_object("trim");
	print_color_uint(PRINT_ANY, COLOR_NONE, "dscp", "trim %u ",
			 attr_u32(tb[TCA_COLOR_TRIM_DSCP]));
	open_json_array(PRINT_JSON, "colors");
	for (i = 0; i < N(color_names); i++) {
		if (!(colors & 1u << i))
			continue;
		if (is_json_context()) {
			print_color_string(PRINT_JSON, COLOR_NONE, NULL, NULL, color_names[i]);
		} else if (colors != TC_COLOR_TRIM_COLORS_ALL) {
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", sep);
			print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", color_names[i]);
			sep = ",";
		}
	}
	close_json_array(PRINT_JSON, NULL);
	if (sep[0] == ',')
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", " ");
	print_color_uint(PRINT_ANY, COLOR_NONE, "limit", "trim-limit %u ",
			 attr_u32(tb[TCA_COLOR_TRIM_LIMIT]));
	if (size)
		print_exact_bytes("size", "trim-size", size);
	close_json_object();
}

/* Print the difference from the default, which depends on the number of bands. */
static void print_pause_map(const struct rtattr *attr, __u32 bands)
{
	__u8 map[TC_COLOR_PAUSE_PRIOS];
	__u32 i, normal;
	char key[4];

	if (!attr || RTA_PAYLOAD(attr) < sizeof(map))
		return;
	memcpy(map, RTA_DATA(attr), sizeof(map));
	open_json_object("map");
	for (i = 0; i < TC_COLOR_PAUSE_PRIOS; i++) {
		normal = TC_COLOR_PAUSE_PRIOS - 1 - i;
		if (map[i] == (normal < bands ? normal : bands - 1))
			continue;
		print_band("pause-map %s ", i, key);
		if (map[i] == TC_COLOR_PAUSE_NO_BAND)
			print_name(key, "%s ", "none");
		else
			print_color_uint(PRINT_ANY, COLOR_NONE, key, "%u ", map[i]);
	}
	close_json_object();
}

static void print_pause(struct rtattr *tb[])
{
	__u32 storm = attr_u32(tb[TCA_COLOR_PAUSE_STORM]);

	if (!tb[TCA_COLOR_PAUSE])
		return;
	open_json_object("pause");
	print_name("mode", "pause %s ", name_of(pause_names, N(pause_names),
						attr_u32(tb[TCA_COLOR_PAUSE])));
	if (tb[TCA_COLOR_PAUSE_XOFF])
		print_exact_bytes("xoff", "xoff", attr_u32(tb[TCA_COLOR_PAUSE_XOFF]));
	if (tb[TCA_COLOR_PAUSE_XON])
		print_exact_bytes("xon", "xon", attr_u32(tb[TCA_COLOR_PAUSE_XON]));
	if (tb[TCA_COLOR_PAUSE_UNIT])
		print_exact_bytes("unit", "unit", attr_u32(tb[TCA_COLOR_PAUSE_UNIT]));
	print_exact_time("delay", "delay", attr_u32(tb[TCA_COLOR_PAUSE_DELAY]));
	if (storm)
		print_exact_time("storm", "storm", storm);
	else
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s", "storm never ");
	print_pause_map(tb[TCA_COLOR_PAUSE_MAP], attr_u32(tb[TCA_COLOR_BANDS]));
	close_json_object();
}

static int color_print_opt(struct qdisc_util *qu, FILE *f, struct rtattr *opt)
{
	struct rtattr *tb[TCA_COLOR_MAX + 1];
	__u32 catch_up;
	bool split;
	__u64 rate;
	int i;

	(void)qu;
	(void)f;
	if (!opt)
		return 0;
	parse_rtattr_flags(tb, TCA_COLOR_MAX, RTA_DATA(opt), RTA_PAYLOAD(opt),
			   NLA_F_NESTED);

	rate = attr_u64(tb[TCA_COLOR_RATE64]);
	if (rate)
		print_exact_rate("rate", "rate", rate);
	if (attr_u32(tb[TCA_COLOR_OVERHEAD]))
		print_color_uint(PRINT_ANY, COLOR_NONE, "overhead",
				 "overhead %u ",
				 attr_u32(tb[TCA_COLOR_OVERHEAD]));
	print_exact_bytes("limit", "limit", attr_u32(tb[TCA_COLOR_LIMIT]));
	for (i = 0; i <= TC_COLOR_MAX; i++) {
		if (!tb[TCA_COLOR_RED + i])
			continue;
		print_exact_bytes(color_names[i], color_names[i],
				  attr_u32(tb[TCA_COLOR_RED + i]));
	}
	if (attr_u32(tb[TCA_COLOR_RED_AUTO])) {
		print_color_bool(PRINT_JSON, COLOR_NONE, "red_auto", NULL, true);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "red %s ", "auto");
		if (attr_u32(tb[TCA_COLOR_RED_MIN]))
			print_exact_bytes("red_min", "min", attr_u32(tb[TCA_COLOR_RED_MIN]));
	}
	print_name("count", "count %s ",
		   name_of(count_names, N(count_names),
			   attr_u32(tb[TCA_COLOR_COUNT])));
	print_name("classify", "classify %s ",
		   name_of(classify_names, N(classify_names),
			   attr_u32(tb[TCA_COLOR_CLASSIFY])));
	print_map(tb[TCA_COLOR_MAP]);
	print_ecn(tb);
	print_pool(tb);
	print_bands(tb);
	print_trim(tb);
	if (attr_u32(tb[TCA_COLOR_INT_RTT]))
		print_exact_time("int", "int", attr_u32(tb[TCA_COLOR_INT_RTT]));
	print_exact_time("slack", "slack", attr_u32(tb[TCA_COLOR_SLACK]));
	catch_up = attr_u32(tb[TCA_COLOR_CATCH_UP]);
	if (catch_up)
		print_exact_time("catch_up", "catch-up", catch_up);
	print_pause(tb);
	split = tb[TCA_COLOR_SPLIT_GSO] ? attr_u32(tb[TCA_COLOR_SPLIT_GSO]) : rate;
	print_color_bool(PRINT_JSON, COLOR_NONE, "split_gso", NULL, split);
	if (tb[TCA_COLOR_SPLIT_GSO])
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "%s",
				   split ? "split-gso" : "no-split-gso");
	return 0;
}

static void print_stat(const char *key, const char *fmt, const struct rtattr *attr)
{
	print_count(key, fmt, attr_u64(attr));
}

/* A counter of an array; 0 if the array ends before it. */
static void print_element(const char *key, const char *fmt, const struct rtattr *array, size_t i)
{
	__u64 val = 0;

	if (RTA_PAYLOAD(array) >= (i + 1) * sizeof(val))
		memcpy(&val, (const char *)RTA_DATA(array) + i * sizeof(val), sizeof(val));
	print_count(key, fmt, val);
}

static void print_color_stats(const char *name, const struct rtattr *st)
{
	size_t i;

	print_nl();
	open_json_object(name);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "  %-7s", name);
	print_element("packets", "queued %llu pkt ", st, TC_COLOR_STAT_PACKETS);
	print_element("bytes", "%llu bytes", st, TC_COLOR_STAT_BYTES);
	print_element("marks", ", marked %llu", st, TC_COLOR_STAT_MARKS);
	print_element("backlog", ", backlog %llu", st, TC_COLOR_STAT_BACKLOG);
	print_element("peak_backlog", " peak %llu bytes", st, TC_COLOR_STAT_PEAK_BACKLOG);
	print_nl();
	open_json_object("drops");
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "  %-7sdropped", "");
	for (i = 0; i < N(drop_names); i++) {
		print_color_string(PRINT_FP, COLOR_NONE, NULL, " %s ",
				   drop_names[i]);
		print_element(drop_names[i], "%llu", st, TC_COLOR_STAT_DROPS_COLOR + i);
	}
	close_json_object();
	print_element("trims", ", trimmed %llu", st, TC_COLOR_STAT_TRIMS);
	close_json_object();
}

static void print_band_stats(int band, const struct rtattr *st)
{
	char key[4];

	print_nl();
	snprintf(key, sizeof(key), "%d", band);
	open_json_object(key);
	print_color_string(PRINT_FP, COLOR_NONE, NULL, "  band %s ", key);
	print_element("packets", "queued %llu pkt ", st, TC_COLOR_BAND_STAT_PACKETS);
	print_element("bytes", "%llu bytes", st, TC_COLOR_BAND_STAT_BYTES);
	print_element("drops", ", dropped %llu", st, TC_COLOR_BAND_STAT_DROPS);
	print_element("backlog", ", backlog %llu", st, TC_COLOR_BAND_STAT_BACKLOG);
	print_element("peak_backlog", " peak %llu bytes", st, TC_COLOR_BAND_STAT_PEAK_BACKLOG);
	print_element("qlen", " %llu pkt", st, TC_COLOR_BAND_STAT_QLEN);
	close_json_object();
}

static void print_trim_stats(const struct rtattr *st)
{
	if (!st)
		return;
	print_nl();
	open_json_object("trim");
	print_element("qlen", "  trimmed %llu pkt queued", st, TC_COLOR_TRIM_STAT_QLEN);
	print_element("limit_drops", ", dropped limit %llu", st, TC_COLOR_TRIM_STAT_LIMITED);
	print_element("unfit_drops", " unfit %llu", st, TC_COLOR_TRIM_STAT_UNFIT);
	close_json_object();
}

static void print_pool_stats(struct rtattr *tb[])
{
	if (!tb[TCA_COLOR_STATS_POOL_SIZE])
		return;
	print_nl();
	open_json_object("pool");
	print_stat("used", "  pool   used %llu", tb[TCA_COLOR_STATS_POOL_USED]);
	print_stat("peak", " peak %llu", tb[TCA_COLOR_STATS_POOL_PEAK]);
	print_stat("size", " of %llu bytes", tb[TCA_COLOR_STATS_POOL_SIZE]);
	print_stat("ports", ", %llu ports", tb[TCA_COLOR_STATS_POOL_PORTS]);
	print_stat("held", ", %llu held here", tb[TCA_COLOR_STATS_POOL_HELD]);
	close_json_object();
}

static void print_pause_stats(const struct rtattr *st, const struct rtattr *paused)
{
	__u64 ns[TC_COLOR_PAUSE_PRIOS] = {};
	char key[4];
	int i;

	if (!st)
		return;
	if (paused)
		attr_copy(ns, RTA_PAYLOAD(paused) < sizeof(ns) ? RTA_PAYLOAD(paused) : sizeof(ns),
			  paused);
	print_nl();
	open_json_object("pause");
	print_element("off", "  pause  sent off %llu", st, TC_COLOR_PAUSE_STAT_OFF);
	print_element("on", " on %llu", st, TC_COLOR_PAUSE_STAT_ON);
	print_element("unsent", ", unsent %llu", st, TC_COLOR_PAUSE_STAT_UNSENT);
	print_element("heard", ", heard %llu", st, TC_COLOR_PAUSE_STAT_HEARD);
	print_element("storms", ", storms %llu", st, TC_COLOR_PAUSE_STAT_STORMS);
	print_nl();
	print_element("backlog", "         backlog %llu", st, TC_COLOR_PAUSE_STAT_BACKLOG);
	print_element("peak", " peak %llu bytes", st, TC_COLOR_PAUSE_STAT_PEAK);
	print_element("xoff", ", xoff %llu", st, TC_COLOR_PAUSE_STAT_XOFF);
	print_element("xon", " xon %llu", st, TC_COLOR_PAUSE_STAT_XON);
	open_json_object("paused");
	for (i = 0; i < TC_COLOR_PAUSE_PRIOS; i++) {
		if (!ns[i])
			continue;
		if (!is_json_context())
			print_nl();
		snprintf(key, sizeof(key), "%d", i);
		print_color_string(PRINT_FP, COLOR_NONE, NULL, "         priority %s ", key);
		print_count(key, "paused for %llu ns", ns[i]);
	}
	close_json_object();
	close_json_object();
}

static void print_auto_stats(struct rtattr *tb[])
{
	if (!tb[TCA_COLOR_STATS_RED_THRESH])
		return;
	print_nl();
	open_json_object("red_auto");
	print_stat("threshold", "  auto   red %llu", tb[TCA_COLOR_STATS_RED_THRESH]);
	print_stat("kept", " kept %llu bytes", tb[TCA_COLOR_STATS_RED_NEED]);
	close_json_object();
}

static void print_int_stats(struct rtattr *tb[])
{
	if (!tb[TCA_COLOR_STATS_INT_STAMPED])
		return;
	print_nl();
	open_json_object("int");
	print_stat("stamped", "  int    stamped %llu pkt", tb[TCA_COLOR_STATS_INT_STAMPED]);
	print_color_float(PRINT_ANY, COLOR_NONE, "utilisation", ", utilisation %g",
			  attr_u64(tb[TCA_COLOR_STATS_INT_UTIL]) / 1024.);
	close_json_object();
}

static int color_print_xstats(struct qdisc_util *qu, FILE *f,
			      struct rtattr *xstats)
{
	struct rtattr *tb[TCA_COLOR_STATS_MAX + 1], *nest;
	size_t i;
	int left;

	(void)qu;
	(void)f;
	if (!xstats)
		return 0;
	parse_nest(tb, TCA_COLOR_STATS_MAX, xstats);

	open_json_object("queue");
	print_stat("backlog", "  queue  backlog %llu", tb[TCA_COLOR_STATS_BACKLOG]);
	print_stat("peak_backlog", " peak %llu bytes", tb[TCA_COLOR_STATS_PEAK_BACKLOG]);
	print_stat("gso_drops", ", unsplittable %llu", tb[TCA_COLOR_STATS_GSO_DROPS]);
	if (tb[TCA_COLOR_STATS_CONTROL_DROPS])
		print_stat("control_drops", ", pause frames of other links %llu",
			   tb[TCA_COLOR_STATS_CONTROL_DROPS]);
	close_json_object();
	print_pool_stats(tb);
	print_trim_stats(tb[TCA_COLOR_STATS_TRIM]);
	print_pause_stats(tb[TCA_COLOR_STATS_PAUSE], tb[TCA_COLOR_STATS_PAUSED]);
	print_auto_stats(tb);
	print_int_stats(tb);
	open_json_object("colors");
	i = 0;
	for (nest = nest_first(tb[TCA_COLOR_STATS_COLORS], &left); nest;
	     nest = nest_next(nest, &left))
		if (i < N(color_names))
			print_color_stats(color_names[i++], nest);
	close_json_object();
	if (!tb[TCA_COLOR_STATS_BANDS])
		return 0;
	open_json_object("bands");
	i = 0;
	for (nest = nest_first(tb[TCA_COLOR_STATS_BANDS], &left); nest;
	     nest = nest_next(nest, &left))
		print_band_stats(i++, nest);
	close_json_object();
	return 0;
}

__attribute__((visibility("default")))
struct qdisc_util color_qdisc_util = {
	.id		= "color",
	.parse_qopt	= color_parse_opt,
	.print_qopt	= color_print_opt,
	.print_xstats	= color_print_xstats,
};
