/* SPDX-License-Identifier: GPL-2.0 */
/* What a packet of a short message tells the switches on its way: where the message
 * begins and ends, and how often the packet may still be deflected (Dart §IV-A).
 *
 *	bit of the DSCP    5   4    3  2      1  0
 *	                 +---+---+----------+------+
 *	                 | E | S | tokens-1 | 1  1 |
 *	                 +---+---+----------+------+
 *
 * S: the message's first packet, which may be deflected; all later ones go where it
 * has gone.  E: its last packet.  Both: its only one.  All sixteen together are the
 * DSCPs that RFC 2474 leaves to local use (pool 2, xxxx11), so a switch tests two
 * bits.  A packet that has spent its tokens is not deflected any more, and carries
 * one of two codepoints of its own: a switch may give them a queue of their own,
 * which is the paper's escape lane (§IV-B).
 *
 * The host writes them, tcp_dart.c; the switch reads them, sch_iofd.c.
 */
#ifndef _GL_DEFLECT_H
#define _GL_DEFLECT_H

#include <linux/types.h>
#include <uapi/linux/greenlane_dscp.h>

#define GL_DEFLECT_END		0x20
#define GL_DEFLECT_START	0x10
#define GL_DEFLECT_TOKENS	0x0c
#define GL_DEFLECT_POOL		0x03
#define GL_DEFLECT_SHIFT	2

/* "IOFD's benefits diminish after four misroutes" (§VI-A), and that is what fits. */
#define GL_DEFLECT_TOKENS_MAX	4

/* May it be deflected, or has it been? */
static inline bool gl_deflectable(u8 dscp)
{
	return (dscp & GL_DEFLECT_POOL) == GL_DEFLECT_POOL;
}

/* Those below: of a DSCP that is gl_deflectable(). */
static inline bool gl_deflect_start(u8 dscp)
{
	return dscp & GL_DEFLECT_START;
}

static inline bool gl_deflect_end(u8 dscp)
{
	return dscp & GL_DEFLECT_END;
}

/* 1 … GL_DEFLECT_TOKENS_MAX */
static inline unsigned int gl_deflect_tokens(u8 dscp)
{
	return ((dscp & GL_DEFLECT_TOKENS) >> GL_DEFLECT_SHIFT) + 1;
}

/**
 * gl_deflect_dscp() - the DSCP of a packet that may be deflected
 * @tokens: how often, 1 … GL_DEFLECT_TOKENS_MAX
 * @start: the first of its message
 * @end: the last of its message
 *
 * Return: the DSCP.
 */
static inline u8 gl_deflect_dscp(unsigned int tokens, bool start, bool end)
{
	return (end ? GL_DEFLECT_END : 0) | (start ? GL_DEFLECT_START : 0) |
	       (tokens - 1) << GL_DEFLECT_SHIFT | GL_DEFLECT_POOL;
}

/**
 * gl_deflect_spend() - the DSCP of a packet that is deflected
 * @dscp: what it was, gl_deflectable()
 *
 * Return: the DSCP with a token less.
 */
static inline u8 gl_deflect_spend(u8 dscp)
{
	if (dscp & GL_DEFLECT_TOKENS)
		return dscp - (1 << GL_DEFLECT_SHIFT);
	return gl_deflect_end(dscp) ? GREENLANE_DSCP_SPENT_END : GREENLANE_DSCP_SPENT;
}

#endif /* _GL_DEFLECT_H */
