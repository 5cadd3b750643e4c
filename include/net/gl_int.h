/* SPDX-License-Identifier: GPL-2.0 */
/*
 * In-band telemetry: the highest utilisation on a packet's path, in the greenlane TCP option.
 *
 *	 0        8        16                32       40       48           64
 *	|  254   | length | 0x474c, "GL"    |  code  | answer |C| U        | words ...
 *
 * C: the sender requests U from the switches; without C they do not change the packet.  U: maximum
 * of the utilisation of all ports on the path, in units of 2^-10, below 32.
 *
 * The utilisation of a port is defined as in HPCC (SIGCOMM 2019, equation 2): qlen / (B T) +
 * txRate / B, with the line rate B and the base RTT T.  In the paper, switches report each of these
 * values for each port, and the sender computes the maximum.  The values of five hops take 42
 * bytes, for which the TCP options have no room, so here the ports compute it.
 *
 * The host writes C and reads U (tcp_hpcc.c); the switch, sch_color.c, raises U.
 */
#ifndef _GL_INT_H
#define _GL_INT_H

#define GL_INT_OFFSET	6		/* of the field in the option, 16 bits */
#define GL_INT_COLLECT	0x8000
#define GL_INT_MAX	0x7fff
#define GL_INT_SHIFT	10		/* 1 << GL_INT_SHIFT: full load without a queue */

#endif /* _GL_INT_H */
