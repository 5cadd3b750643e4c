/* SPDX-License-Identifier: GPL-2.0 */
/* The DSCP of a packet of a short message.  Switches on its path read from it where the
 * message begins and ends, and how often the packet may still be deflected (Dart §IV-A).
 *
 *	bit of the DSCP    5   4    3  2      1  0
 *	                 +---+---+----------+------+
 *	                 | E | S | tokens-1 | 1  1 |
 *	                 +---+---+----------+------+
 *
 * S: the message's first packet, which may be deflected; a switch forwards all later
 * packets to the port of the first.  E: its last packet.  Both: its only packet.  The
 * sixteen DSCPs are the ones that RFC 2474 leaves to local use (pool 2, xxxx11), so a
 * switch tests two bits.  A packet that has spent its tokens is not deflected any more,
 * and carries one of two other codepoints: a switch may give them a queue of their own,
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

/* "IOFD's benefits diminish after four misroutes" (§VI-A), and two bits hold no more. */
#define GL_DEFLECT_TOKENS_MAX	4

/* Is it the DSCP of a packet of a short message that has tokens left? */
static inline bool gl_deflectable(u8 dscp)
{
	return (dscp & GL_DEFLECT_POOL) == GL_DEFLECT_POOL;
}

/* The functions below need a DSCP that is gl_deflectable(). */
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
 * @tokens: how often it may be deflected, 1 … GL_DEFLECT_TOKENS_MAX
 * @start: it is the first packet of its message
 * @end: it is the last packet of its message
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
 * @dscp: its DSCP before, gl_deflectable()
 *
 * Return: the DSCP with one token less.
 */
static inline u8 gl_deflect_spend(u8 dscp)
{
	if (dscp & GL_DEFLECT_TOKENS)
		return dscp - (1 << GL_DEFLECT_SHIFT);
	return gl_deflect_end(dscp) ? GREENLANE_DSCP_SPENT_END : GREENLANE_DSCP_SPENT;
}

#endif /* _GL_DEFLECT_H */
