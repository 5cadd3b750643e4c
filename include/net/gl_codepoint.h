/* SPDX-License-Identifier: GPL-2.0 */
/* Codepoints and the DSCPs that stand for them in a network namespace. */
#ifndef _GL_CODEPOINT_H
#define _GL_CODEPOINT_H

#include <linux/types.h>
#include <net/gl_deflect.h>
#include <uapi/linux/greenlane_dscp.h>
#include <uapi/linux/pkt_color.h>

/* DSCP has six bits. */
#define GL_DSCP_MAX	63
#define GL_DSCPS	(GL_DSCP_MAX + 1)

/**
 * enum gl_codepoint - a class of packets that a switch distinguishes
 * @GL_CP_NONE: not marked; keeps the application's DSCP
 * @GL_CP_SHORT: the first codepoint of packets that may be deflected, see gl_deflect.h
 * @GL_CPS: number of codepoints
 *
 * The others are listed in greenlane_dscp.h.
 */
enum gl_codepoint {
	GL_CP_NONE,
#define GREENLANE_CODEPOINT(symbol, name, dscp, colour)	GL_CP_##symbol,
	GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
	GL_CP_SHORT,
	GL_CPS = GL_CP_SHORT + (1 << (6 - GL_DEFLECT_SHIFT)),
};

/**
 * struct gl_codepoints - map of codepoints to DSCPs, and of DSCPs to codepoints, in a namespace
 * @dscp: the DSCP of each enum gl_codepoint; GL_CP_NONE's is not used
 * @of: the enum gl_codepoint of each DSCP
 *
 * Written under gl_sysctl's mutex, one byte at a time; read without a lock:
 * a reader sees a codepoint before or after a change, never between.
 */
struct gl_codepoints {
	u8 dscp[GL_CPS];
	u8 of[GL_DSCPS];
};

/* The codepoint of a packet that may be deflected contains all variable bits of its DSCP. */
static inline u8 gl_short_dscp(enum gl_codepoint cp)
{
	return (cp - GL_CP_SHORT) << GL_DEFLECT_SHIFT | GL_DEFLECT_POOL;
}

static inline enum gl_codepoint gl_short_codepoint(u8 dscp)
{
	return GL_CP_SHORT + (dscp >> GL_DEFLECT_SHIFT);
}

static inline void gl_codepoints_init(struct gl_codepoints *cps)
{
	static const u8 dscp[GL_CP_SHORT] = {
#define GREENLANE_CODEPOINT(symbol, name, value, colour)	[GL_CP_##symbol] = (value),
		GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
	};
	int i;

	for (i = 0; i < GL_DSCPS; i++)
		cps->of[i] = GL_CP_NONE;
	cps->dscp[GL_CP_NONE] = 0;
	for (i = GL_CP_NONE + 1; i < GL_CPS; i++) {
		cps->dscp[i] = i < GL_CP_SHORT ? dscp[i] : gl_short_dscp(i);
		cps->of[cps->dscp[i]] = i;
	}
}

/**
 * gl_codepoints_set() - change the DSCP of a codepoint
 * @cps: the namespace's map
 * @cp: a codepoint of greenlane_dscp.h
 * @dscp: 1 … 63; hosts without greenlane send 0
 *
 * Return: false, with @cps unchanged, if @dscp is out of range or belongs to
 * another codepoint.
 */
static inline bool gl_codepoints_set(struct gl_codepoints *cps, enum gl_codepoint cp, int dscp)
{
	u8 old = cps->dscp[cp];

	if (dscp < 1 || dscp > GL_DSCP_MAX)
		return false;
	if (dscp == old)
		return true;
	if (cps->of[dscp] != GL_CP_NONE)
		return false;
	WRITE_ONCE(cps->of[dscp], cp);
	WRITE_ONCE(cps->dscp[cp], dscp);
	WRITE_ONCE(cps->of[old], GL_CP_NONE);
	return true;
}

/* The DS field: DSCP above the two ECN bits (RFC 2474, RFC 3168). */
static inline enum gl_codepoint gl_codepoint_of(const struct gl_codepoints *cps, u8 dsfield)
{
	return READ_ONCE(cps->of[dsfield >> 2]);
}

/* Does a switch with sch_color's default map protect a packet with this codepoint? */
static inline bool gl_codepoint_protected(enum gl_codepoint cp)
{
	static const u8 colour[GL_CPS] = {
#define GREENLANE_CODEPOINT(symbol, name, dscp, value)	[GL_CP_##symbol] = TC_COLOR_##value,
		GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
	};

	return cp != GL_CP_NONE && cp < GL_CP_SHORT && colour[cp] == TC_COLOR_GREEN;
}

#endif /* _GL_CODEPOINT_H */
