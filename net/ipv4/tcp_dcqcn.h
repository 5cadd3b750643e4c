/* SPDX-License-Identifier: GPL-2.0 */
/* Exports of tcp_dcqcn.ko to a transport that is built on it (tcp_dart.c). */
#ifndef _TCP_DCQCN_H
#define _TCP_DCQCN_H

#include <net/sock.h>

u32 dcqcn_line(const struct sock *sk);
void dcqcn_set_cap(struct sock *sk, u32 cap);

#endif /* _TCP_DCQCN_H */
