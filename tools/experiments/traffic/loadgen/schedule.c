// SPDX-License-Identifier: GPL-2.0
/* Reads the schedule of loadgen/play; see play.c. */
#define _GNU_SOURCE
#include <errno.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"
#include "play.h"

#define ENDLESS (UINT64_MAX / 4)	/* bytes of an endless message */

struct class classes[MAX_CLASSES];
struct host *hosts;
struct connection *connections;
struct message *messages;
uint32_t n_classes, n_hosts, n_connections, n_messages;
uint32_t n_timed, only = NONE;

/* Make room for one more entry at the end of an array, whose size doubles. */
static void *grow(void *array, uint32_t n, size_t size)
{
	if (n & (n - 1))
		return array;
	array = realloc(array, (n ? 2ull * n : 1) * size);
	if (!array)
		die("memory");
	return array;
}

static void add_connection(const struct connection *c)
{
	connections = grow(connections, n_connections, sizeof(*c));
	connections[n_connections++] = *c;
}

static void add_message(const struct message *m)
{
	messages = grow(messages, n_messages, sizeof(*m));
	messages[n_messages++] = *m;
}

/* Is it a valid answer: from the receiver of a request that has no other answer? */
static bool answers(const struct message *m, uint32_t number)
{
	const struct message *request = &messages[number];

	return number < n_timed && m->connection < n_connections && m->bytes &&
	       request->answer == NONE &&
	       connections[m->connection].src == connections[request->connection].dst;
}

struct in6_addr name_of(const struct sockaddr_storage *ss)
{
	struct in6_addr name = {};

	if (ss->ss_family == AF_INET6)
		return ((const struct sockaddr_in6 *)ss)->sin6_addr;
	memset(name.s6_addr + 10, 0xff, 2);
	memcpy(name.s6_addr + 12, &((const struct sockaddr_in *)ss)->sin_addr, 4);
	return name;
}

static void add_host(const char *ns, const char *address)
{
	struct host h = { .ns = only == NONE ? open_ns(ns) : -1 };
	struct sockaddr_storage ss;

	parse_address(&ss, address, 0);
	strcpy(h.address, address);
	h.name = name_of(&ss);
	hosts = grow(hosts, n_hosts, sizeof(h));
	hosts[n_hosts++] = h;
}

static bool parse_line(const char *line, const char *cc)
{
	struct class c = {};
	struct connection k = { .tx = -1, .rx = -1, .first = NONE, .last = NONE, .reversed = NONE };
	struct message m = { .next = NONE, .answer = NONE };
	char name[64], address[64];
	uint32_t request;

	snprintf(c.cc, sizeof(c.cc), "%s", cc ?: "");
	if (sscanf(line, "class %31s %i %15s", c.name, &c.tos, c.cc) >= 2) {
		if (n_classes == MAX_CLASSES)
			return false;
		for (c.server = 0; c.server < n_classes; c.server++)
			if (!strcmp(classes[c.server].cc, c.cc))
				break;
		classes[n_classes++] = c;
	} else if (sscanf(line, "host %63s %63s", name, address) == 2) {
		add_host(name, address);
	} else if (sscanf(line, "connection %u %u %u %u", &k.src, &k.dst, &k.port,
			  &k.class) == 4) {
		if (k.src >= n_hosts || k.dst >= n_hosts || k.class >= n_classes)
			return false;
		add_connection(&k);
	} else if (sscanf(line, "reverse %" SCNu32 " %u", &k.reversed, &k.class) == 2) {
		if (k.reversed >= n_connections || k.class >= n_classes ||
		    classes[k.class].server != classes[connections[k.reversed].class].server)
			return false;
		k.src = connections[k.reversed].dst;
		k.dst = connections[k.reversed].src;
		add_connection(&k);
	} else if (sscanf(line, "message %" SCNu64 " %" SCNu32 " %" SCNu64, &m.at,
			  &m.connection, &m.bytes) == 3) {
		if (m.connection >= n_connections || n_timed < n_messages ||
		    (n_messages && m.at < messages[n_messages - 1].at))
			return false;
		m.bytes = m.bytes ?: ENDLESS;
		add_message(&m);
		n_timed++;
	} else if (sscanf(line, "answer %" SCNu32 " %" SCNu32 " %" SCNu64, &request,
			  &m.connection, &m.bytes) == 3) {
		if (!answers(&m, request))
			return false;
		messages[request].answer = n_messages;
		add_message(&m);
	} else if (sscanf(line, "switch %63s", name) == 1) {
		queues_add(name);
	} else {
		return false;
	}
	return true;
}

void read_schedule(const char *path, const char *cc)
{
	FILE *file = fopen(path, "re");
	unsigned int number = 0;
	char line[256];

	if (!file)
		die("%s", path);
	while (fgets(line, sizeof(line), file)) {
		number++;
		errno = 0;
		if (!parse_line(line, cc))
			die("%s:%u: not understood", path, number);
	}
	fclose(file);
	errno = 0;
	if (only == NONE)
		return;
	if (only >= n_hosts)
		die("%s: no host %" PRIu32, path, only);
	/* No host has both the start and the end of a message without an answer. */
	for (number = 0; number < n_timed; number++)
		if (messages[number].answer == NONE)
			die("%s: message %u has no answer", path, number);
}

bool sends(const struct connection *c)
{
	return only == NONE || c->src == only;
}

bool receives(const struct connection *c)
{
	return only == NONE || c->dst == only;
}

bool is_endless(const struct message *m)
{
	return m->bytes == ENDLESS;
}

bool is_sent(const struct message *m)
{
	return sends(&connections[m->connection]);
}

bool is_received(const struct message *m)
{
	return receives(&connections[m->connection]);
}
