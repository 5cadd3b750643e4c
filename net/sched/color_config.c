// SPDX-License-Identifier: GPL-2.0-only
/* The configuration of a port; see color_config.h. */

#include <linux/if_ether.h>
#include <linux/minmax.h>
#include <linux/netlink.h>
#include <net/netlink.h>
#include <net/pkt_sched.h>

#include "color_auto.h"
#include "color_config.h"
#include "color_map.h"

/**
 * color_config_init() - the defaults
 * @cfg: zeroed memory
 * @dev: the port's device
 * @slack: ns by which the port's timer may be late
 */
void color_config_init(struct color_config *cfg, const struct net_device *dev, u32 slack)
{
	int i;

	/* bfifo's default */
	cfg->limit = min_t(u64, TC_COLOR_LIMIT_MAX,
			   (u64)DEFAULT_TX_QUEUE_LEN * psched_mtu(dev));
	for (i = 0; i <= TC_COLOR_MAX; i++)
		cfg->thresh[i] = COLOR_NO_THRESH;
	cfg->alpha = TC_COLOR_ALPHA_ONE;
	cfg->slack = slack;
	cfg->split_gso = COLOR_SPLIT_AUTO;
	color_map_default(cfg->map);
}

static struct netlink_range_validation color_rate_range = {
	.max = TC_COLOR_RATE_MAX,
};

static struct netlink_range_validation color_bytes_range = {
	.max = TC_COLOR_LIMIT_MAX,
};

static struct netlink_range_validation color_size_range = {
	.min = 1,
	.max = TC_COLOR_LIMIT_MAX,
};

static struct netlink_range_validation color_slack_range = {
	.max = TC_COLOR_SLACK_MAX,
};

static struct netlink_range_validation color_catch_up_range = {
	.max = TC_COLOR_CATCH_UP_MAX,
};

static struct netlink_range_validation color_trim_colors_range = {
	.min = 1,
	.max = TC_COLOR_TRIM_COLORS_ALL,
};

static struct netlink_range_validation color_trim_size_range = {
	.max = TC_COLOR_TRIM_SIZE_MAX,
};

static struct netlink_range_validation color_storm_range = {
	.max = TC_COLOR_PAUSE_STORM_MAX,
};

static struct netlink_range_validation color_delay_range = {
	.max = TC_COLOR_PAUSE_DELAY_MAX,
};

static struct netlink_range_validation color_unit_range = {
	.max = TC_COLOR_PAUSE_UNIT_MAX,
};

static struct netlink_range_validation color_int_range = {
	.max = TC_COLOR_INT_RTT_MAX,
};

static struct netlink_range_validation color_alpha_range = {
	.min = 1,
	.max = TC_COLOR_ALPHA_MAX,
};

/* All attributes of the qdisc; color_pool.c, color_band.c, color_trim.c and color_pause.c parse
 * some of them.
 */
const struct nla_policy color_config_policy[TCA_COLOR_MAX + 1] = {
	[TCA_COLOR_RATE64]	= NLA_POLICY_FULL_RANGE(NLA_U64, &color_rate_range),
	[TCA_COLOR_OVERHEAD]	= NLA_POLICY_MAX(NLA_U32, TC_COLOR_OVERHEAD_MAX),
	[TCA_COLOR_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_size_range),
	[TCA_COLOR_RED]		= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_YELLOW]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_GREEN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_COUNT]	= NLA_POLICY_MAX(NLA_U32, __TC_COLOR_COUNT_MAX - 1),
	[TCA_COLOR_CLASSIFY]	= NLA_POLICY_MAX(NLA_U32, __TC_COLOR_CLASSIFY_MAX - 1),
	[TCA_COLOR_MAP]		= NLA_POLICY_EXACT_LEN(TC_COLOR_DSCPS),
	[TCA_COLOR_ECN_MIN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_ECN_MAX]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_ECN_PROB]	= { .type = NLA_U32 },
	[TCA_COLOR_POOL]	= { .type = NLA_NUL_STRING,
				    .len = TC_COLOR_POOL_NAMSIZ - 1 },
	[TCA_COLOR_POOL_SIZE]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_size_range),
	[TCA_COLOR_POOL_ALPHA]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_alpha_range),
	[TCA_COLOR_SPLIT_GSO]	= NLA_POLICY_MAX(NLA_U32, COLOR_SPLIT_AUTO),
	[TCA_COLOR_BANDS]	= NLA_POLICY_RANGE(NLA_U32, 1, TC_COLOR_BANDS_MAX),
	[TCA_COLOR_PRIO]	= NLA_POLICY_EXACT_LEN(TC_COLOR_DSCPS),
	/* shorter arrays are for the first bands, from a program that knows fewer bands */
	[TCA_COLOR_BAND_RATE64]	= { .type = NLA_BINARY,
				    .len = TC_COLOR_BANDS_MAX * sizeof(u64) },
	[TCA_COLOR_BAND_LIMIT]	= { .type = NLA_BINARY,
				    .len = TC_COLOR_BANDS_MAX * sizeof(u32) },
	[TCA_COLOR_BAND_YIELD]	= { .type = NLA_BINARY,
				    .len = TC_COLOR_BANDS_MAX * sizeof(u32) },
	[TCA_COLOR_SLACK]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_slack_range),
	[TCA_COLOR_CATCH_UP]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_catch_up_range),
	[TCA_COLOR_TRIM_DSCP]	= NLA_POLICY_MAX(NLA_U32, TC_COLOR_DSCPS),
	[TCA_COLOR_TRIM_COLORS]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_trim_colors_range),
	[TCA_COLOR_TRIM_LIMIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_size_range),
	[TCA_COLOR_TRIM_SIZE]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_trim_size_range),
	[TCA_COLOR_PAUSE]	= NLA_POLICY_MAX(NLA_U32, __TC_COLOR_PAUSE_MAX - 1),
	[TCA_COLOR_PAUSE_XOFF]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_PAUSE_XON]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
	[TCA_COLOR_PAUSE_DELAY]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_delay_range),
	[TCA_COLOR_PAUSE_STORM]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_storm_range),
	[TCA_COLOR_PAUSE_MAP]	= NLA_POLICY_EXACT_LEN(TC_COLOR_PAUSE_PRIOS),
	[TCA_COLOR_PAUSE_UNIT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_unit_range),
	[TCA_COLOR_RED_AUTO]	= NLA_POLICY_MAX(NLA_U32, 1),
	[TCA_COLOR_INT_RTT]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_int_range),
	[TCA_COLOR_RED_MIN]	= NLA_POLICY_FULL_RANGE(NLA_U32, &color_bytes_range),
};

static int color_parse_int(struct color_config *cfg, struct nlattr **tb,
			   struct netlink_ext_ack *extack)
{
	struct nlattr *attr = tb[TCA_COLOR_INT_RTT];

	if (attr)
		cfg->int_rtt = nla_get_u32(attr);
	if (!cfg->int_rtt)
		return 0;
	if (attr && cfg->int_rtt < TC_COLOR_INT_RTT_MIN) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "The round-trip time of int is at least 1 us");
		return -ERANGE;
	}
	if (!cfg->rate) {
		NL_SET_ERR_MSG_ATTR(extack, attr ?: tb[TCA_COLOR_RATE64],
				    "int needs the rate of the port");
		return -EINVAL;
	}
	return 0;
}

/* The size that an attribute replaces; 0 if it is not known. */
static u32 color_size_before(const struct color_config *cfg, int attr)
{
	if (attr == TCA_COLOR_LIMIT)
		return cfg->limit;
	return attr == TCA_COLOR_POOL_SIZE ? 0 : cfg->thresh[attr - TCA_COLOR_RED];
}

/* Refuse sizes below one packet: the user means kilobytes, or packets.  But a threshold below
 * Ethernet's smallest frame is allowed, to refuse all packets of a colour.  And so is the present
 * size, which a greater MTU may have made too small.
 */
static int color_parse_sizes(const struct color_config *cfg, u32 packet, struct nlattr **tb,
			     struct netlink_ext_ack *extack)
{
	static const struct {
		int		attr;
		bool		color;
		const char	*msg;
	} sizes[] = {
		{ TCA_COLOR_LIMIT, false,
		  "limit: bytes, and less than one packet of the device's MTU" },
		{ TCA_COLOR_RED, true,
		  "red: bytes, and less than one packet of the device's MTU" },
		{ TCA_COLOR_YELLOW, true,
		  "yellow: bytes, and less than one packet of the device's MTU" },
		{ TCA_COLOR_GREEN, true,
		  "green: bytes, and less than one packet of the device's MTU" },
		{ TCA_COLOR_POOL_SIZE, false,
		  "size: bytes, and less than one packet of the device's MTU" },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		struct nlattr *attr = tb[sizes[i].attr];

		if (!attr || nla_get_u32(attr) >= packet)
			continue;
		if (sizes[i].color && nla_get_u32(attr) < ETH_ZLEN)
			continue;
		if (nla_get_u32(attr) == color_size_before(cfg, sizes[i].attr))
			continue;
		NL_SET_BAD_ATTR(extack, attr);
		if (extack)
			extack->_msg = sizes[i].msg;
		return -ERANGE;
	}
	return 0;
}

static int color_parse_thresh(struct color_config *cfg, struct nlattr **tb,
			      struct netlink_ext_ack *extack)
{
	int i;

	for (i = 0; i <= TC_COLOR_MAX; i++) {
		struct nlattr *attr = tb[TCA_COLOR_RED + i];

		if (attr)
			cfg->thresh[i] = nla_get_u32(attr) ?: COLOR_NO_THRESH;
		if (cfg->thresh[i] == COLOR_NO_THRESH ||
		    cfg->thresh[i] <= cfg->limit)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, attr ?: tb[TCA_COLOR_LIMIT],
				    "A colour's threshold above the limit never acts");
		return -EINVAL;
	}
	return 0;
}

/* Of `red auto` and `red BYTES` the later one counts. */
static int color_parse_auto(struct color_config *cfg, struct nlattr **tb,
			    struct netlink_ext_ack *extack)
{
	struct nlattr *on = tb[TCA_COLOR_RED_AUTO], *min = tb[TCA_COLOR_RED_MIN];

	if (on)
		cfg->red_auto = nla_get_u32(on);
	else if (tb[TCA_COLOR_RED])
		cfg->red_auto = false;
	if (min)
		cfg->red_min = nla_get_u32(min);

	if (!cfg->red_auto) {
		if (min && cfg->red_min) {
			NL_SET_ERR_MSG_ATTR(extack, min, "A minimum needs \"red auto\"");
			return -EINVAL;
		}
		cfg->red_min = 0;
		return 0;
	}
	if (tb[TCA_COLOR_RED]) {
		NL_SET_ERR_MSG_ATTR(extack, on, "A threshold of red excludes red auto");
		return -EINVAL;
	}
	if (cfg->count != TC_COLOR_COUNT_COLOR) {
		NL_SET_ERR_MSG_ATTR(extack, on ?: tb[TCA_COLOR_COUNT],
				    "\"red auto\" needs \"count color\"");
		return -EINVAL;
	}
	if (cfg->red_min > cfg->limit) {
		NL_SET_ERR_MSG_ATTR(extack, min ?: tb[TCA_COLOR_LIMIT],
				    "Red's minimum is above the limit");
		return -EINVAL;
	}
	cfg->thresh[TC_COLOR_RED] = COLOR_NO_THRESH;
	return 0;
}

static int color_parse_ecn(struct color_config *cfg, struct nlattr **tb,
			   struct netlink_ext_ack *extack)
{
	struct color_ecn *e = &cfg->ecn;

	if (tb[TCA_COLOR_ECN_MIN])
		e->min = nla_get_u32(tb[TCA_COLOR_ECN_MIN]);
	if (tb[TCA_COLOR_ECN_MAX])
		e->max = nla_get_u32(tb[TCA_COLOR_ECN_MAX]);
	if (tb[TCA_COLOR_ECN_PROB])
		e->prob = nla_get_u32(tb[TCA_COLOR_ECN_PROB]);

	if (!e->prob) {
		if (!e->min && !e->max)
			return 0;
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_ECN_PROB] ?: tb[TCA_COLOR_ECN_MAX] ?:
					    tb[TCA_COLOR_ECN_MIN],
				    "ecn: thresholds need a probability above 0");
		return -EINVAL;
	}
	if (e->min > e->max) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_ECN_MIN] ?: tb[TCA_COLOR_ECN_MAX],
				    "ecn: the minimum is above the maximum");
		return -EINVAL;
	}
	if (e->max > cfg->limit) {
		NL_SET_ERR_MSG_ATTR(extack,
				    tb[TCA_COLOR_ECN_MAX] ?: tb[TCA_COLOR_LIMIT],
				    "An ECN threshold above the limit is never reached");
		return -EINVAL;
	}
	return 0;
}

/**
 * color_config_parse() - read the user's attributes
 * @cfg: the configuration so far; options without an attribute do not change.  Undefined
 *	after an error
 * @packet: bytes of the device's longest packet
 * @tb: the attributes, valid by color_config_policy
 * @extack: for the error message
 *
 * Return: 0, or an error.
 */
int color_config_parse(struct color_config *cfg, u32 packet, struct nlattr **tb,
		       struct netlink_ext_ack *extack)
{
	int err = color_parse_sizes(cfg, packet, tb, extack);

	if (err)
		return err;
	if (tb[TCA_COLOR_RATE64])
		cfg->rate = nla_get_u64(tb[TCA_COLOR_RATE64]);
	if (tb[TCA_COLOR_OVERHEAD])
		cfg->overhead = nla_get_u32(tb[TCA_COLOR_OVERHEAD]);
	if (tb[TCA_COLOR_LIMIT])
		cfg->limit = nla_get_u32(tb[TCA_COLOR_LIMIT]);
	if (tb[TCA_COLOR_COUNT])
		cfg->count = nla_get_u32(tb[TCA_COLOR_COUNT]);
	if (tb[TCA_COLOR_CLASSIFY])
		cfg->by_ecn = nla_get_u32(tb[TCA_COLOR_CLASSIFY]) ==
			      TC_COLOR_CLASSIFY_ECN;
	if (tb[TCA_COLOR_SPLIT_GSO])
		cfg->split_gso = nla_get_u32(tb[TCA_COLOR_SPLIT_GSO]);
	if (tb[TCA_COLOR_SLACK])
		cfg->slack = nla_get_u32(tb[TCA_COLOR_SLACK]);
	if (tb[TCA_COLOR_CATCH_UP])
		cfg->catch_up = nla_get_u32(tb[TCA_COLOR_CATCH_UP]);
	if (tb[TCA_COLOR_POOL_ALPHA])
		cfg->alpha = nla_get_u32(tb[TCA_COLOR_POOL_ALPHA]);

	if (cfg->catch_up && cfg->catch_up < cfg->slack) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_CATCH_UP] ?: tb[TCA_COLOR_SLACK],
				    "The catch-up time is below the slack: the port would not reach its rate");
		return -EINVAL;
	}
	err = color_parse_auto(cfg, tb, extack);
	if (err)
		return err;
	err = color_parse_int(cfg, tb, extack);
	if (err)
		return err;
	err = color_parse_thresh(cfg, tb, extack);
	if (err)
		return err;
	err = color_parse_ecn(cfg, tb, extack);
	if (err)
		return err;

	if (tb[TCA_COLOR_MAP] &&
	    !color_map_merge(cfg->map, nla_data(tb[TCA_COLOR_MAP]),
			     TC_COLOR_MAX)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_MAP],
				    "A DSCP is mapped to a colour that does not exist");
		return -EINVAL;
	}
	return 0;
}

/**
 * color_config_others() - the maximum of red and yellow packets in a port
 * @cfg: its configuration
 * @bands: number of its bands
 *
 * Yellow packets without a threshold are not included: packets that are not classified are assumed
 * to be few, or to have a threshold.
 *
 * Return: bytes; 0 if red packets have no threshold.
 */
u64 color_config_others(const struct color_config *cfg, u32 bands)
{
	u64 red = cfg->thresh[TC_COLOR_RED], yellow = cfg->thresh[TC_COLOR_YELLOW];

	if (cfg->red_auto)
		red = cfg->limit - cfg->limit / COLOR_AUTO_RESERVE;
	if (red == COLOR_NO_THRESH)
		return 0;
	if (yellow == COLOR_NO_THRESH)
		yellow = 0;
	/* If it is compared with all bytes of a band or port, a threshold bounds both colours. */
	switch (cfg->count) {
	case TC_COLOR_COUNT_QUEUE:
		return max(red, yellow) * bands;
	case TC_COLOR_COUNT_PORT:
		return max(red, yellow);
	default:
		return red + yellow;
	}
}

/**
 * color_config_dump_thresh() - write the thresholds that are set
 * @cfg: the configuration
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_config_dump_thresh(const struct color_config *cfg,
			     struct sk_buff *skb)
{
	int i;

	for (i = 0; i <= TC_COLOR_MAX; i++)
		if (cfg->thresh[i] != COLOR_NO_THRESH &&
		    nla_put_u32(skb, TCA_COLOR_RED + i, cfg->thresh[i]))
			return -EMSGSIZE;
	return 0;
}

/**
 * color_config_dump_auto() - write the configuration of `red auto`, if it is set
 * @cfg: the configuration
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_config_dump_auto(const struct color_config *cfg, struct sk_buff *skb)
{
	if (cfg->red_auto &&
	    (nla_put_u32(skb, TCA_COLOR_RED_AUTO, 1) ||
	     (cfg->red_min && nla_put_u32(skb, TCA_COLOR_RED_MIN, cfg->red_min))))
		return -EMSGSIZE;
	return 0;
}

/**
 * color_config_dump_ecn() - write the configuration of CE marks, if they are enabled
 * @e: the configuration
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_config_dump_ecn(const struct color_ecn *e, struct sk_buff *skb)
{
	if (e->prob &&
	    (nla_put_u32(skb, TCA_COLOR_ECN_MIN, e->min) ||
	     nla_put_u32(skb, TCA_COLOR_ECN_MAX, e->max) ||
	     nla_put_u32(skb, TCA_COLOR_ECN_PROB, e->prob)))
		return -EMSGSIZE;
	return 0;
}
