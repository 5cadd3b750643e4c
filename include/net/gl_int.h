/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-band telemetry: the highest utilisation of a packet's way, in the greenlane TCP option.
 *
 *	 0        8        16                32       40       48           64
 *	|  254   | length | 0x474c, "GL"    |  code  | answer |C| U        | words ...
 *
 * C: the sender asks the switches for U; without C they leave the packet as it is.  U: the
 * utilisation, in units of 2^-10, up to 32, of that port of the way that is used most.
 *
 * The utilisation of a port is that of HPCC (SIGCOMM 2019, equation 2), qlen / (B T) + txRate / B,
 * with the line rate B and the base round-trip time T.  The paper's switches tell each number of
 * each port (42 bytes for five hops), for which TCP's options have no room, and the sender takes
 * the maximum.  Here the ports do.
 *
 * The host writes C and reads U; the switch, sch_color.c, raises U.
 */
#ifndef _GL_INT_H
#define _GL_INT_H

#define GL_INT_OFFSET	6		/* of the field in the option, 16 bits */
#define GL_INT_COLLECT	0x8000
#define GL_INT_MAX	0x7fff
#define GL_INT_SHIFT	10		/* 1 << that is a full line without a queue */

#endif /* _GL_INT_H */
