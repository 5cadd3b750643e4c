/* SPDX-License-Identifier: GPL-2.0 */
/* The codepoint table: what a packet is, in six bits of the IP header. */
#ifndef _GL_CODEPOINT_H
#define _GL_CODEPOINT_H

#include <linux/types.h>
#include <linux/build_bug.h>

/* DSCP has six bits. */
#define GL_DSCP_MAX	63
#define GL_DSCPS	(GL_DSCP_MAX + 1)

/**
 * enum gl_kind - what a packet is (TLT §5.1, Appendix A; Aeolus §III)
 * @GL_NONE: none of ours; carries whatever the application asked for
 * @GL_DATA: unimportant or unscheduled data, the first to be dropped
 * @GL_IMPORTANT: the important packet; also SYN and SYN-ACK
 * @GL_ECHO: the ACK of an important packet
 * @GL_CLOCK: data sent only to keep the ACK clock alive
 * @GL_CLOCK_ECHO: the answer to GL_CLOCK
 * @GL_CONTROL: pure ACK, FIN, RST
 * @GL_SCHEDULED: a credit transport's data that had a credit, its handshake
 *	and its packets without data
 * @GL_REQUEST: a sender tells how much it has to send
 * @GL_CREDIT: a receiver lets a sender send one packet
 */
enum gl_kind {
	GL_NONE,
	GL_DATA,
	GL_IMPORTANT,
	GL_ECHO,
	GL_CLOCK,
	GL_CLOCK_ECHO,
	GL_CONTROL,
	GL_SCHEDULED,
	GL_REQUEST,
	GL_CREDIT,
	GL_KINDS,
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
#define GL_DSCP_ECHO		12	/* AF12 */
#define GL_DSCP_CLOCK		18	/* AF21 */
#define GL_DSCP_CLOCK_ECHO	20	/* AF22 */
#define GL_DSCP_CONTROL		26	/* AF31 */

/* Ours: of the pool for experiments and local use (RFC 2474, xxxx11), because
 * applications use what is left of the classes (AF41 is video conferences').
 */
#define GL_DSCP_SCHEDULED	27
#define GL_DSCP_REQUEST		31
#define GL_DSCP_CREDIT		35

static inline void gl_codepoints_init(struct gl_codepoints *cp)
{
	static const u8 dscp[GL_KINDS] = {
		[GL_DATA]	= GL_DSCP_DATA,
		[GL_IMPORTANT]	= GL_DSCP_IMPORTANT,
		[GL_ECHO]	= GL_DSCP_ECHO,
		[GL_CLOCK]	= GL_DSCP_CLOCK,
		[GL_CLOCK_ECHO]	= GL_DSCP_CLOCK_ECHO,
		[GL_CONTROL]	= GL_DSCP_CONTROL,
		[GL_SCHEDULED]	= GL_DSCP_SCHEDULED,
		[GL_REQUEST]	= GL_DSCP_REQUEST,
		[GL_CREDIT]	= GL_DSCP_CREDIT,
	};
	int kind;

	for (kind = 0; kind < GL_DSCPS; kind++)
		cp->kind[kind] = GL_NONE;
	cp->dscp[GL_NONE] = 0;
	for (kind = GL_DATA; kind < GL_KINDS; kind++) {
		cp->dscp[kind] = dscp[kind];
		cp->kind[dscp[kind]] = kind;
	}
}

/**
 * gl_codepoints_set() - give one kind another codepoint
 * @cp: the table
 * @kind: GL_DATA … GL_CREDIT
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

/* Kinds that a switch protects; an application may not send them itself. */
static inline bool gl_kind_protected(enum gl_kind kind)
{
	return kind >= GL_IMPORTANT;
}

/* Kinds of the credit transports; those of TLT are the other protected ones. */
static inline bool gl_kind_of_credits(enum gl_kind kind)
{
	return kind >= GL_SCHEDULED;
}

#endif /* _GL_CODEPOINT_H */
