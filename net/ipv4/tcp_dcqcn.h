/* SPDX-License-Identifier: GPL-2.0 */
/* What tcp_dcqcn.ko has for a transport that is built on it (tcp_dart.c). */
#ifndef _TCP_DCQCN_H
#define _TCP_DCQCN_H

#include <net/sock.h>

/* What a packet has on the line beside its IP packet: Ethernet's header, FCS, preamble
 * and gap.
 */
#define DCQCN_FRAME	38

u32 dcqcn_line(const struct sock *sk);
void dcqcn_set_cap(struct sock *sk, u32 cap);

#endif /* _TCP_DCQCN_H */
