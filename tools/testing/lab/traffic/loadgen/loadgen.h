/* SPDX-License-Identifier: GPL-2.0 */
/* What load generators share: time, and sockets in other network namespaces. */
#ifndef _LOADGEN_H
#define _LOADGEN_H

#include <stdint.h>
#include <sys/socket.h>

#define NSEC 1000000000ull
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Says what is wrong, with errno's words unless it is 0, and exits with 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t now(void);

/* A namespace of `ip netns`, for setns(). */
int open_ns(const char *name);

/* This process's sockets are of that namespace from now on. */
void enter_ns(int ns);

/* An address and a port; the text's family decides. */
socklen_t parse_address(struct sockaddr_storage *ss, const char *text,
			unsigned int port);

/* A TCP socket that is in a namespace, does not block, and resets when closed, so that
 * no TIME_WAIT is left for the next run's ports.
 */
int new_socket(int ns, int family, const char *cc);

/* queues.c: the queues at the ports of a namespace's switch are looked at, too. */
void queues_add(const char *ns);
/* Look at all of them; counts as so many looks. */
void queues_look(uint64_t times);
/* As JSON: how often a port was seen with so many bytes, in steps of 1000. */
void queues_print(void);

#endif /* _LOADGEN_H */
