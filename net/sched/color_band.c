// SPDX-License-Identifier: GPL-2.0-only
/* The configuration of bands, from netlink attributes and back; see color_band.h. */

#include <linux/netlink.h>
#include <linux/slab.h>
#include <linux/string.h>
#include <net/netlink.h>

#include "color_band.h"
#include "color_map.h"

/**
 * color_band_config_init() - the defaults: all packets in the last band, no rates or limits
 * @cfg: the configuration
 * @n: bands
 */
void color_band_config_init(struct color_band_config *cfg, u32 n)
{
	memset(cfg, 0, sizeof(*cfg));
	cfg->n = n;
	memset(cfg->prio, n - 1, sizeof(cfg->prio));
}

/**
 * color_bands_alloc() - empty bands
 * @n: number of bands
 *
 * Return: the bands, without their configuration, or NULL.
 */
struct color_bands *color_bands_alloc(u32 n)
{
	struct color_bands *bands;

	u32 i;

	BUILD_BUG_ON(BITS_PER_TYPE(bands->band->bit) < TC_COLOR_BANDS_MAX);

	bands = kzalloc(struct_size(bands, band, n), GFP_KERNEL);
	if (!bands)
		return NULL;
	bands->cfg.n = n;
	for (i = 0; i < n; i++)
		bands->band[i].bit = BIT(i);
	return bands;
}

/**
 * color_bands_reset() - drop all queued packets, keep counters and configuration
 * @bands: the bands
 */
void color_bands_reset(struct color_bands *bands)
{
	struct color_band *band;

	for (band = bands->band; band < bands->band + bands->cfg.n; band++) {
		__qdisc_reset_queue(&band->q);
		band->stats.qlen = 0;
		band->stats.backlog = 0;
		band->clock.next = 0;
		band->clock.frac = 0;
	}
	bands->busy = 0;
	bands->peeked = NULL;
}

/**
 * color_bands_set() - set a new configuration with the same number of bands
 * @bands: the bands
 * @cfg: the configuration
 * @line: the port has a rate
 * @now: the time, ns
 *
 * The caller has RTNL and the port's root lock.
 */
void color_bands_set(struct color_bands *bands, const struct color_band_config *cfg,
		     bool line, u64 now)
{
	bool timed = line;
	int i;

	for (i = 0; i < cfg->n; i++)
		timed |= !!cfg->rate[i];
	bands->timed = timed;
	bands->yielding = 0;
	for (i = 0; i < cfg->n; i++) {
		struct color_band *band = &bands->band[i];
		u64 old = bands->cfg.rate[i], rate = cfg->rate[i];

		band->timed = timed;
		band->limit = cfg->limit[i] ?: U32_MAX;
		if (cfg->yield[i] && rate & ~TC_COLOR_BAND_RATE_PPS)
			bands->yielding |= band->bit;
		if (rate == old)
			continue;
		/* @next is not the rest of a packet at the old rate: the unit has changed, or
		 * yielded time is part of it.  Start the clock at @now.
		 */
		if ((rate ^ old) & TC_COLOR_BAND_RATE_PPS || bands->cfg.yield[i])
			old = 0;
		band->by_packet = rate & TC_COLOR_BAND_RATE_PPS;
		color_clock_set_rate(&band->clock, old & ~TC_COLOR_BAND_RATE_PPS,
				     rate & ~TC_COLOR_BAND_RATE_PPS, now);
	}
	bands->cfg = *cfg;
}

/* Is the length of an array attribute a multiple of the size of its elements? */
static bool color_band_whole(const struct nlattr *attr, size_t size,
			     struct netlink_ext_ack *extack)
{
	if (!attr || !(nla_len(attr) % size))
		return true;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "The length of band-rate, band-limit or band-yield is not a multiple of its element's");
	return false;
}

static int color_band_parse_each(struct color_band_config *cfg,
				 const struct nlattr *rates,
				 const struct nlattr *limits,
				 const struct nlattr *yields,
				 struct netlink_ext_ack *extack)
{
	u64 rate[TC_COLOR_BANDS_MAX];
	u32 limit[TC_COLOR_BANDS_MAX];
	u32 yield[TC_COLOR_BANDS_MAX];
	int i;

	if (!color_band_whole(rates, sizeof(*rate), extack) ||
	    !color_band_whole(limits, sizeof(*limit), extack) ||
	    !color_band_whole(yields, sizeof(*yield), extack))
		return -EINVAL;
	memset(rate, 0xff, sizeof(rate));	/* TC_COLOR_BAND_RATE_KEEP */
	memset(limit, 0xff, sizeof(limit));	/* TC_COLOR_BAND_LIMIT_KEEP */
	memset(yield, 0xff, sizeof(yield));	/* TC_COLOR_BAND_YIELD_KEEP */
	/* nla_memcpy() would clear the elements that the attribute does not have. */
	if (rates)
		memcpy(rate, nla_data(rates), nla_len(rates));
	if (limits)
		memcpy(limit, nla_data(limits), nla_len(limits));
	if (yields)
		memcpy(yield, nla_data(yields), nla_len(yields));

	for (i = 0; i < TC_COLOR_BANDS_MAX; i++) {
		bool new_rate = rate[i] != TC_COLOR_BAND_RATE_KEEP;
		bool new_limit = limit[i] != TC_COLOR_BAND_LIMIT_KEEP;
		bool new_yield = yield[i] != TC_COLOR_BAND_YIELD_KEEP;
		const struct nlattr *attr = new_rate ? rates : new_limit ? limits : yields;

		if (!new_rate && !new_limit && !new_yield)
			continue;
		if (i >= cfg->n) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "A rate, a limit or a yield of a band that does not exist");
			return -EINVAL;
		}
		if (cfg->n == 1) {
			NL_SET_ERR_MSG_ATTR(extack, attr,
					    "A single band has the rate and the limit of its port, and yields to none");
			return -EINVAL;
		}
		if (rate[i] == TC_COLOR_BAND_RATE_PPS)
			rate[i] = 0;
		if (new_rate && (rate[i] & ~TC_COLOR_BAND_RATE_PPS) > TC_COLOR_RATE_MAX) {
			NL_SET_ERR_MSG_ATTR(extack, rates, "band-rate: out of range");
			return -ERANGE;
		}
		if (new_limit && limit[i] > TC_COLOR_BAND_LIMIT_MAX) {
			NL_SET_ERR_MSG_ATTR(extack, limits, "band-limit: out of range");
			return -ERANGE;
		}
		if (new_yield && yield[i] > TC_COLOR_BAND_YIELD_ONE) {
			NL_SET_ERR_MSG_ATTR(extack, yields, "band-yield: out of range");
			return -ERANGE;
		}
		if (new_rate)
			cfg->rate[i] = rate[i];
		if (new_limit)
			cfg->limit[i] = limit[i];
		if (new_yield)
			cfg->yield[i] = yield[i];
	}
	return 0;
}

/**
 * color_band_parse() - read the attributes of bands
 * @cfg: the configuration so far; undefined after an error
 * @line: new rate of the port, bytes/s; 0 for no shaping
 * @tb: attributes, whose lengths have been checked
 * @extack: for the error message
 *
 * Return: 0; -EINVAL or -ERANGE if an attribute is not valid, with a message in @extack.
 */
int color_band_parse(struct color_band_config *cfg, u64 line, struct nlattr **tb,
		     struct netlink_ext_ack *extack)
{
	int i, err;

	if (tb[TCA_COLOR_BANDS] && nla_get_u32(tb[TCA_COLOR_BANDS]) != cfg->n)
		color_band_config_init(cfg, nla_get_u32(tb[TCA_COLOR_BANDS]));
	if (tb[TCA_COLOR_PRIO] &&
	    !color_map_merge(cfg->prio, nla_data(tb[TCA_COLOR_PRIO]),
			     cfg->n - 1)) {
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_PRIO],
				    "A DSCP is mapped to a band that does not exist");
		return -EINVAL;
	}
	err = color_band_parse_each(cfg, tb[TCA_COLOR_BAND_RATE64],
				    tb[TCA_COLOR_BAND_LIMIT],
				    tb[TCA_COLOR_BAND_YIELD], extack);
	if (err)
		return err;

	for (i = 0; line && i < cfg->n; i++) {
		if (cfg->rate[i] & TC_COLOR_BAND_RATE_PPS || cfg->rate[i] <= line)
			continue;
		NL_SET_ERR_MSG_ATTR(extack, tb[TCA_COLOR_BAND_RATE64] ?:
					    tb[TCA_COLOR_RATE64],
				    "A band's rate above the line's never acts");
		return -EINVAL;
	}
	return 0;
}

/**
 * color_bands_dump() - write the configuration of bands
 * @bands: the bands, or NULL
 * @skb: the netlink message
 *
 * Return: 0, or -EMSGSIZE.
 */
int color_bands_dump(const struct color_bands *bands, struct sk_buff *skb)
{
	const struct color_band_config *cfg;
	u32 n;

	if (!bands)
		return nla_put_u32(skb, TCA_COLOR_BANDS, 1);

	cfg = &bands->cfg;
	n = cfg->n;
	if (nla_put_u32(skb, TCA_COLOR_BANDS, cfg->n) ||
	    nla_put(skb, TCA_COLOR_PRIO, sizeof(cfg->prio), cfg->prio) ||
	    nla_put(skb, TCA_COLOR_BAND_RATE64, n * sizeof(*cfg->rate), cfg->rate) ||
	    nla_put(skb, TCA_COLOR_BAND_LIMIT, n * sizeof(*cfg->limit), cfg->limit) ||
	    nla_put(skb, TCA_COLOR_BAND_YIELD, n * sizeof(*cfg->yield), cfg->yield))
		return -EMSGSIZE;
	return 0;
}

