/* SPDX-License-Identifier: GPL-2.0 */
/* Common functions of the load generators: time, and sockets in other network namespaces. */
#ifndef _LOADGEN_H
#define _LOADGEN_H

#include <stdint.h>
#include <sys/socket.h>

#define NSEC 1000000000ull
#define ARRAY_SIZE(a) (sizeof(a) / sizeof((a)[0]))

/* Print an error, with errno's description unless it is 0, and exit with status 1. */
void die(const char *fmt, ...) __attribute__((format(printf, 1, 2), noreturn));

/* Nanoseconds of CLOCK_MONOTONIC. */
uint64_t now(void);

/* Open a namespace of `ip netns`, for setns(). */
int open_ns(const char *name);

/* Create this process's sockets in that namespace from now on; -1 is the current one. */
void enter_ns(int ns);

/* Fill in an address, IPv4 or IPv6, and a port; returns the length. */
socklen_t parse_address(struct sockaddr_storage *ss, const char *text,
			unsigned int port);

/* A non-blocking TCP socket in a namespace.  It sends RST when closed, so that no TIME_WAIT
 * socket occupies a port of the next run.
 */
int new_socket(int ns, int family, const char *cc);

/* queues.c: sample the ports of this namespace's switch too. */
void queues_add(const char *ns);
/* Sample all ports; the sample counts `times` times. */
void queues_look(uint64_t times);
/* Print JSON: the number of samples of each backlog, in bytes, in steps of 1000. */
void queues_print(void);

#endif /* _LOADGEN_H */
