/* SPDX-License-Identifier: GPL-2.0 */
/* The codepoint table: the kind of a packet in the six bits of its DSCP. */
#ifndef _GL_CODEPOINT_H
#define _GL_CODEPOINT_H

#include <linux/types.h>
#include <linux/build_bug.h>
#include <net/gl_deflect.h>

/* DSCP has six bits. */
#define GL_DSCP_MAX	63
#define GL_DSCPS	(GL_DSCP_MAX + 1)

/**
 * enum gl_kind - the kind of a packet (TLT §5.1, Appendix A; Aeolus §III; Dart §III, §IV)
 * @GL_NONE: not marked; keeps the application's DSCP
 * @GL_DATA: unimportant or unscheduled data, which is dropped first
 * @GL_IMPORTANT: TLT's important packet, SYN and SYN-ACK
 * @GL_CLOCK: data sent only to keep the ACK clock alive
 * @GL_CLOCK_ECHO: the answer to GL_CLOCK
 * @GL_CONTROL: TLT's pure ACK, FIN, RST
 * @GL_SCHEDULED: a credit transport's data that had a credit, its SYN and SYN-ACK and its
 *	packets without data
 * @GL_REQUEST: a sender announces how much it has to send
 * @GL_CREDIT: a receiver permits one packet
 * @GL_SHARE: a receiver advertises a share of its link: dart's packets without data, its SYN
 *	and SYN-ACK
 * @GL_MESSAGE: dart's data
 * @GL_MESSAGE_END: the last packet of a message
 * @GL_SPENT: a packet of a short message that may not be deflected again
 * @GL_SPENT_END: the last packet of such a message
 * @GL_SHORT: the first of the kinds of a short message's packets, see gl_deflect.h
 */
enum gl_kind {
	GL_NONE,
	GL_DATA,
	GL_IMPORTANT,
	GL_CLOCK,
	GL_CLOCK_ECHO,
	GL_CONTROL,
	GL_SCHEDULED,
	GL_REQUEST,
	GL_CREDIT,
	GL_SHARE,
	GL_MESSAGE,
	GL_MESSAGE_END,
	GL_SPENT,
	GL_SPENT_END,
	GL_SHORT,
	GL_KINDS = GL_SHORT + (1 << (6 - GL_DEFLECT_SHIFT)),
};

/**
 * struct gl_codepoints - the table of a network namespace, both ways
 * @dscp: the DSCP of each enum gl_kind; GL_NONE's is not used
 * @kind: the enum gl_kind of each DSCP
 *
 * Written under gl_sysctl's mutex, one byte at a time; read without a lock:
 * a reader sees a codepoint before or after a change, never between.
 */
struct gl_codepoints {
	u8 dscp[GL_KINDS];
	u8 kind[GL_DSCPS];
};

/* As the TLT authors' user-space stack: CS1 for unimportant data, AF1x to AF3x for the rest. */
#define GL_DSCP_DATA		8	/* CS1 */
#define GL_DSCP_IMPORTANT	10	/* AF11 */
#define GL_DSCP_CLOCK		18	/* AF21 */
#define GL_DSCP_CLOCK_ECHO	20	/* AF22 */
#define GL_DSCP_CONTROL		26	/* AF31 */

/* The others are from the pool for local use until it is needed (pool 3 of RFC 2474, xxxx01),
 * because applications use the remaining AF classes (AF41 for video conferences).  1 and 45 of
 * that pool have been assigned since (LE, NQB).  Pool 2 is used in gl_deflect.h.
 */
#define GL_DSCP_SCHEDULED	25
#define GL_DSCP_REQUEST		29
#define GL_DSCP_CREDIT		33
#define GL_DSCP_MESSAGE		37
#define GL_DSCP_MESSAGE_END	41
#define GL_DSCP_SHARE		49

/* The kind of a short message's packet has all the bits of its DSCP. */
static inline u8 gl_short_dscp(enum gl_kind kind)
{
	return (kind - GL_SHORT) << GL_DEFLECT_SHIFT | GL_DEFLECT_POOL;
}

static inline enum gl_kind gl_short_kind(u8 dscp)
{
	return GL_SHORT + (dscp >> GL_DEFLECT_SHIFT);
}

static inline void gl_codepoints_init(struct gl_codepoints *cp)
{
	static const u8 dscp[GL_KINDS] = {
		[GL_DATA]	= GL_DSCP_DATA,
		[GL_IMPORTANT]	= GL_DSCP_IMPORTANT,
		[GL_CLOCK]	= GL_DSCP_CLOCK,
		[GL_CLOCK_ECHO]	= GL_DSCP_CLOCK_ECHO,
		[GL_CONTROL]	= GL_DSCP_CONTROL,
		[GL_SCHEDULED]	= GL_DSCP_SCHEDULED,
		[GL_REQUEST]	= GL_DSCP_REQUEST,
		[GL_CREDIT]	= GL_DSCP_CREDIT,
		[GL_SHARE]	= GL_DSCP_SHARE,
		[GL_MESSAGE]	= GL_DSCP_MESSAGE,
		[GL_MESSAGE_END] = GL_DSCP_MESSAGE_END,
		[GL_SPENT]	= GL_DSCP_SPENT,
		[GL_SPENT_END]	= GL_DSCP_SPENT_END,
	};
	int kind;

	for (kind = 0; kind < GL_DSCPS; kind++)
		cp->kind[kind] = GL_NONE;
	cp->dscp[GL_NONE] = 0;
	for (kind = GL_DATA; kind < GL_KINDS; kind++) {
		cp->dscp[kind] = kind < GL_SHORT ? dscp[kind] : gl_short_dscp(kind);
		cp->kind[cp->dscp[kind]] = kind;
	}
}

/**
 * gl_codepoints_set() - change the codepoint of a kind
 * @cp: the table
 * @kind: GL_DATA … GL_SPENT_END
 * @dscp: 1 … 63; hosts without greenlane send 0
 *
 * Return: false, and nothing changed, if @dscp is out of range or belongs to
 * another kind.
 */
static inline bool gl_codepoints_set(struct gl_codepoints *cp,
				     enum gl_kind kind, int dscp)
{
	u8 old = cp->dscp[kind];

	if (dscp < 1 || dscp > GL_DSCP_MAX)
		return false;
	if (dscp == old)
		return true;
	if (cp->kind[dscp] != GL_NONE)
		return false;
	WRITE_ONCE(cp->kind[dscp], kind);
	WRITE_ONCE(cp->dscp[kind], dscp);
	WRITE_ONCE(cp->kind[old], GL_NONE);
	return true;
}

/* The DS field: DSCP above the two ECN bits (RFC 2474, RFC 3168). */
static inline u8 gl_dscp_of(u8 dsfield)
{
	return dsfield >> 2;
}

static inline enum gl_kind gl_kind_of(const struct gl_codepoints *cp, u8 dsfield)
{
	return READ_ONCE(cp->kind[gl_dscp_of(dsfield)]);
}

/* Kinds that a switch protects: those whose codepoint color's default map has as green. */
static inline bool gl_kind_protected(enum gl_kind kind)
{
	return kind >= GL_IMPORTANT && kind <= GL_SHARE;
}

/* The transports that send a kind.  Of all kinds but GL_NONE and GL_DATA. */
enum gl_family {
	GL_OF_TLT,
	GL_OF_CREDITS,
	GL_OF_DART,
};

static inline enum gl_family gl_family(enum gl_kind kind)
{
	if (kind < GL_SCHEDULED)
		return GL_OF_TLT;
	return kind < GL_SHARE ? GL_OF_CREDITS : GL_OF_DART;
}

static inline bool gl_kind_of_credits(enum gl_kind kind)
{
	return gl_family(kind) == GL_OF_CREDITS;
}

/* The last packet of one of dart's messages? */
static inline bool gl_kind_ends(enum gl_kind kind)
{
	if (kind >= GL_SHORT)
		return gl_deflect_end(gl_short_dscp(kind));
	return kind == GL_MESSAGE_END || kind == GL_SPENT_END;
}

#endif /* _GL_CODEPOINT_H */
