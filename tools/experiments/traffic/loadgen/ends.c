// SPDX-License-Identifier: GPL-2.0
/*
 * Opens the connections of loadgen/play, one by one; see play.c.
 *
 * With --only, this host's process connects to the other hosts', which may start later, and then
 * accepts their connections, which arrive in any order.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "loadgen.h"
#include "play.h"

#define SERVER_PORT 5001	/* the first; one for each congestion control */
#define PATIENCE 30		/* s, for a connection */
#define RETRY 100000		/* us, until a listener may exist */
#define BACKLOG 65535		/* connections that wait while this host connects: all ports' */

static const struct option_value *options;
static unsigned int n_options;
static int ack_tos;

static unsigned int server_of(const struct connection *c)
{
	return classes[c->class].server;
}

void set_int(int fd, int level, int name, int value)
{
	if (setsockopt(fd, level, name, &value, sizeof(value)))
		die("setsockopt %d:%d:%d", level, name, value);
}

static void set_tos(int fd, int family, int tos)
{
	if (tos && family == AF_INET)
		set_int(fd, IPPROTO_IP, IP_TOS, tos);
	else if (tos)
		set_int(fd, IPPROTO_IPV6, IPV6_TCLASS, tos);
}

static int new_cc_socket(const struct host *h, int family, unsigned int class)
{
	const char *name = classes[class].cc;

	return new_socket(h->ns, family, *name ? name : NULL);
}

static void start_listening(struct host *h, unsigned int server)
{
	struct timeval limit = { .tv_sec = PATIENCE };
	struct sockaddr_storage to;
	socklen_t len = parse_address(&to, h->address, SERVER_PORT + server);
	int fd = new_cc_socket(h, to.ss_family, server);

	set_tos(fd, to.ss_family, ack_tos);
	if (fcntl(fd, F_SETFL, 0) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    bind(fd, (void *)&to, len) || listen(fd, BACKLOG))
		die("listen on %s", h->address);
	h->listeners[server] = fd;
}

static void listen_everywhere(void)
{
	uint32_t i, k;

	for (i = 0; i < n_hosts; i++)
		for (k = 0; k < n_classes; k++)
			if ((only == NONE || only == i) && classes[k].server == k)
				start_listening(&hosts[i], k);
}

/* Begin to connect; returns connect()'s result. */
static int begin_connection(struct connection *c)
{
	struct sockaddr_storage to, from;
	socklen_t len = parse_address(&to, hosts[c->dst].address, SERVER_PORT + server_of(c));
	unsigned int o;

	parse_address(&from, hosts[c->src].address, c->port);
	c->tx = new_cc_socket(&hosts[c->src], to.ss_family, c->class);
	set_tos(c->tx, to.ss_family, classes[c->class].tos);
	/* A message must not wait for the ACK of the previous one. */
	set_int(c->tx, IPPROTO_TCP, TCP_NODELAY, 1);
	for (o = 0; o < n_options; o++)
		set_int(c->tx, options[o].level, options[o].name, options[o].value);
	if (bind(c->tx, (void *)&from, len))
		die("bind to %s port %u", hosts[c->src].address, c->port);
	return connect(c->tx, (void *)&to, len);
}

/* Wait until a connection is established; returns 0, or an error in errno. */
static int finish_connection(struct connection *c)
{
	struct pollfd fd = { .fd = c->tx, .events = POLLOUT };
	socklen_t len = sizeof(errno);

	if (poll(&fd, 1, PATIENCE * 1000) <= 0) {
		errno = ETIMEDOUT;
		return -1;
	}
	if (getsockopt(c->tx, SOL_SOCKET, SO_ERROR, &errno, &len))
		return -1;
	return errno ? -1 : 0;
}

/* Connect to another machine, whose process may listen later. */
static void connect_far(struct connection *c)
{
	uint64_t end = now() + PATIENCE * NSEC;

	while ((begin_connection(c) && errno != EINPROGRESS) || finish_connection(c)) {
		if (errno != ECONNREFUSED || now() > end)
			die("connect to %s", hosts[c->dst].address);
		close(c->tx);
		usleep(RETRY);
	}
}

static int accept_at(unsigned int server, unsigned int host, struct sockaddr_storage *from)
{
	socklen_t len = sizeof(*from);
	int fd = accept4(hosts[host].listeners[server], (void *)from, &len,
			 SOCK_NONBLOCK | SOCK_CLOEXEC);

	if (fd >= 0)
		set_tos(fd, from->ss_family, ack_tos);
	return fd;
}

/* Connections are opened one by one, so the listener accepts this one. */
static void open_near(struct connection *c)
{
	struct sockaddr_storage from;

	if (begin_connection(c) && errno != EINPROGRESS)
		die("connect to %s", hosts[c->dst].address);
	c->rx = accept_at(server_of(c), c->dst, &from);
	if (c->rx < 0)
		die("accept from %s at %s", hosts[c->src].address, hosts[c->dst].address);
}

/* The connection of another machine that this host has just accepted, or NULL. */
static struct connection *connection_from(const struct sockaddr_storage *from, unsigned int server)
{
	struct in6_addr name = name_of(from);
	/* The port is at the same place in both families. */
	unsigned int port = ntohs(((const struct sockaddr_in *)from)->sin_port);
	struct connection *c;

	for (c = connections; c < connections + n_connections; c++)
		if (c->reversed == NONE && receives(c) && c->rx < 0 && c->port == port &&
		    server_of(c) == server && !memcmp(&hosts[c->src].name, &name, sizeof(name)))
			return c;
	return NULL;
}

/* The first connection, from @c on, that a listener of this host still has to accept, or NULL. */
static struct connection *missing(struct connection *c, unsigned int server)
{
	for (; c < connections + n_connections; c++)
		if (c->reversed == NONE && receives(c) && c->rx < 0 && server_of(c) == server)
			return c;
	return NULL;
}

/* Accept the other machines' connections to one of this host's listeners.  Those of other programs
 * do not extend the time to wait.
 */
static void accept_far(unsigned int server)
{
	uint64_t end = now() + PATIENCE * NSEC;
	struct connection *next = connections;
	struct sockaddr_storage from;

	while ((next = missing(next, server))) {
		int fd = accept_at(server, only, &from);
		struct connection *c = fd < 0 ? NULL : connection_from(&from, server);

		if (c) {
			c->rx = fd;
			end = now() + PATIENCE * NSEC;
			continue;
		}
		if (fd < 0 || now() > end)
			die("no connection from %s", hosts[next->src].address);
		close(fd);
	}
}

/* The same socket: a duplicate is a separate entry of epoll. */
static int duplicate(int fd)
{
	fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	if (fd < 0)
		die("dup");
	return fd;
}

static void open_reverse(struct connection *c)
{
	const struct connection *other = &connections[c->reversed];

	if (sends(c)) {
		c->tx = duplicate(other->rx);
		set_int(c->tx, IPPROTO_TCP, TCP_NODELAY, 1);
	}
	if (receives(c))
		c->rx = duplicate(other->tx);
}

void open_connections(const struct option_value *values, unsigned int n_values, int tos)
{
	struct connection *c;
	uint32_t k;

	options = values;
	n_options = n_values;
	ack_tos = tos;
	listen_everywhere();
	for (c = connections; c < connections + n_connections; c++) {
		if (c->reversed != NONE)
			continue;
		if (only == NONE)
			open_near(c);
		else if (sends(c))
			connect_far(c);
	}
	for (k = 0; k < n_classes && only != NONE; k++)
		if (classes[k].server == k)
			accept_far(k);
	for (c = connections; c < connections + n_connections; c++)
		if (c->reversed != NONE)
			open_reverse(c);
}
