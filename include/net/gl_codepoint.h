/* SPDX-License-Identifier: GPL-2.0 */
/* The codepoint table: what a packet is, in six bits of the IP header. */
#ifndef _GL_CODEPOINT_H
#define _GL_CODEPOINT_H

#include <linux/types.h>
#include <linux/build_bug.h>
#include <net/gl_deflect.h>

/* DSCP has six bits. */
#define GL_DSCP_MAX	63
#define GL_DSCPS	(GL_DSCP_MAX + 1)

/**
 * enum gl_kind - what a packet is (TLT §5.1, Appendix A; Aeolus §III; Dart §III, §IV)
 * @GL_NONE: none of ours; carries whatever the application asked for
 * @GL_DATA: unimportant or unscheduled data, the first to be dropped
 * @GL_IMPORTANT: the important packet; also SYN and SYN-ACK
 * @GL_CLOCK: data sent only to keep the ACK clock alive
 * @GL_CLOCK_ECHO: the answer to GL_CLOCK
 * @GL_CONTROL: pure ACK (that of an important packet too), FIN, RST
 * @GL_SCHEDULED: a credit transport's data that had a credit, its handshake
 *	and its packets without data
 * @GL_REQUEST: a sender tells how much it has to send
 * @GL_CREDIT: a receiver lets a sender send one packet
 * @GL_SHARE: a receiver tells a sender its share of the line: dart's packets without
 *	data, and its handshake
 * @GL_MESSAGE: dart's data
 * @GL_MESSAGE_END: the last packet of a message
 * @GL_SPENT: of a short message that was deflected as often as it may be
 * @GL_SPENT_END: the last packet of such a one
 * @GL_SHORT: and those after it: of a short message, see gl_deflect.h
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
 * @dscp: the DSCP of each enum gl_kind; that of GL_NONE is not used
 * @kind: the enum gl_kind of each DSCP
 *
 * Written under gl_sysctl's mutex, one byte at a time; read without a lock:
 * a reader sees a codepoint before or after a change, never between.
 */
struct gl_codepoints {
	u8 dscp[GL_KINDS];
	u8 kind[GL_DSCPS];
};

/* What the TLT authors' user-space stack sends: CS1 for unimportant data,
 * classes AF1x to AF3x for the rest.
 */
#define GL_DSCP_DATA		8	/* CS1 */
#define GL_DSCP_IMPORTANT	10	/* AF11 */
#define GL_DSCP_CLOCK		18	/* AF21 */
#define GL_DSCP_CLOCK_ECHO	20	/* AF22 */
#define GL_DSCP_CONTROL		26	/* AF31 */

/* Ours: of the pool that is for local use until it is needed (pool 3 of RFC 2474,
 * xxxx01), because applications use what is left of the classes (AF41 is video
 * conferences').  Of that pool 1 and 45 have been needed (LE and NQB).  Pool 2 is
 * gl_deflect.h's.
 */
#define GL_DSCP_SCHEDULED	25
#define GL_DSCP_REQUEST		29
#define GL_DSCP_CREDIT		33
#define GL_DSCP_MESSAGE		37
#define GL_DSCP_MESSAGE_END	41
#define GL_DSCP_SHARE		49

/* A packet of a short message is what its DSCP says. */
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
 * gl_codepoints_set() - give one kind another codepoint
 * @cp: the table
 * @kind: GL_DATA … GL_SPENT_END
 * @dscp: 1 … 63; 0 is what a host without greenlane sends
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
