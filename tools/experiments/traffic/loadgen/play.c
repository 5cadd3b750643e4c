// SPDX-License-Identifier: GPL-2.0
/*
 * Plays a schedule: messages of given sizes, at given times, between many hosts.
 *
 *	class NAME TOS [CC]		TOS byte of its senders' packets; congestion control
 *					of both ends in place of --cc, with its own server port
 *	host NAMESPACE ADDRESS		host 0, then 1, ...
 *	connection SRC DST PORT CLASS	from PORT of host SRC, the client, which sends
 *	reverse CONNECTION CLASS	the other direction of an earlier connection
 *	message NS CONNECTION BYTES	sorted by time; 0 bytes: endless
 *	answer MESSAGE CONNECTION BYTES	after all messages: begins when MESSAGE is complete
 *	switch NAMESPACE		--look samples its ports
 *
 * Hosts, connections and messages are numbered in their order in the file; a reverse is a
 * connection, an answer is a message.  The completion time of an answer begins with its
 * request.  All connections are opened first, one by one.  Time 0 is REST after the last.
 *
 * One process with one thread plays all hosts (see incast.c), with one clock.  A message
 * begins when it is written, and is complete when the receiver can read all of it.  The
 * messages of a connection are sent in order.
 *
 * Reading the clock takes 0.256 us of a guest's virtual time, and send() and recv() read it
 * too, which matters with a message each microsecond.  So SO_RCVLOWAT wakes the receiver for
 * a complete message, not for each packet, one reading serves all messages that are complete
 * (FIONREAD does not read the clock), and two serve all messages that begin together.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/greenlane.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/resource.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "loadgen.h"

#define SERVER_PORT 5001		/* the first; one for each congestion control */
#define REST (50 * 1000 * 1000ull)	/* ns, after connecting */
#define CHUNK (1 << 20)
#define LOWAT (64 << 10)		/* maximum, for longer messages */
#define EVENTS 256
#define MAX_CLASSES 16
#define MAX_OPTIONS 8
#define CC_NAME 16			/* TCP_CA_NAME_MAX, which no UAPI header has */
#define ENDLESS (UINT64_MAX / 4)		/* bytes of an endless message */
#define NONE UINT32_MAX

enum { KIND_TIMER, KIND_TX, KIND_RX, KIND_LOOK };

/**
 * struct message - a message of the schedule
 * @at: time at which it is due, ns
 * @bytes: its size
 * @connection: index of its connection
 * @next: next message of the connection, or NONE
 * @answer: message that begins when this one is complete, or NONE
 * @began: time at which it (an answer: its request) was written, 0 before
 * @done: time at which the receiver had all of it, 0 before
 * @rtt: the sender's smoothed RTT, us, read before the next message or at the end
 * @rttvar: its variation, us
 */
struct message {
	uint64_t at, bytes, began, done;
	uint32_t connection, next, answer;
	uint32_t rtt, rttvar;
};

/**
 * struct connection - one direction of a connection
 * @tx: socket of the sender
 * @rx: socket of the receiver
 * @src: sending host
 * @dst: receiving host
 * @port: the sender's
 * @class: index of its class
 * @reversed: connection whose other direction this is, or NONE
 * @first: oldest incomplete message, or NONE
 * @last: newest message, or NONE
 * @to_send: bytes not yet written
 * @to_read: bytes of @first that have not arrived
 * @unread: bytes that have arrived and are not yet read
 * @blocked: waits for room in the send buffer
 */
struct connection {
	int tx, rx;
	unsigned int src, dst, port, class;
	uint32_t reversed;
	uint32_t first, last;
	uint64_t to_send, to_read;
	int unread;
	bool blocked;
};

/**
 * struct class - connections with a common name, congestion control and TOS byte
 * @name: its name in the report
 * @cc: congestion control of both ends; "": the namespace's default
 * @tos: TOS byte of the clients' packets
 * @server: first class with the same congestion control
 * @ends: number of sockets that still have that congestion control at the end
 * @bytes: bytes received in the measured time
 * @retrans: segments that its senders retransmitted
 * @sent: bytes of data that its senders transmitted, retransmissions included
 * @resent: bytes of data that its senders retransmitted
 */
struct class {
	char name[32], cc[CC_NAME];
	unsigned int server;
	int tos;
	uint64_t ends, bytes, retrans, sent, resent;
};

/**
 * struct host - a namespace
 * @address: address to which its peers connect
 * @name: the same address, as GREENLANE_SENDERS takes it
 * @ns: descriptor of the namespace
 * @listeners: by class::server, because an accepted socket inherits the listener's
 *	congestion control
 */
struct host {
	char address[64];
	struct in6_addr name;
	int ns, listeners[MAX_CLASSES];
};

struct option_value {
	int level, name, value;
};

static struct class classes[MAX_CLASSES];
static struct host *hosts;
static struct connection *connections;
static struct message *messages;
static uint32_t n_classes, n_hosts, n_connections, n_messages, n_done, n_endless;
static uint32_t n_timed;		/* messages that are not answers */

/* Answers whose request is complete. */
static uint32_t *ready, n_ready;

static struct option_value options[MAX_OPTIONS];
static unsigned int n_options;
static const char *cc, *schedule;
static uint64_t begin_ns, end_ns, limit_ns = 2 * NSEC, ack_tos, look_ns;

static int epoll_fd, timer_fd, look_fd;
static bool measuring, timer_fired, look_ahead, tcp_info;
static char chunk[CHUNK];

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

static unsigned int server_of(const struct connection *c)
{
	return classes[c->class].server;
}

/* Is it a valid answer: from the receiver of a request that has no other answer? */
static bool answers(const struct message *m, uint32_t number)
{
	const struct message *request = &messages[number];

	return number < n_timed && m->connection < n_connections && m->bytes &&
	       request->answer == NONE &&
	       connections[m->connection].src == connections[request->connection].dst;
}

/* An IPv6 address, or an IPv4-mapped one. */
static struct in6_addr name_of(const char *address)
{
	struct sockaddr_storage ss;
	struct in6_addr name = {};

	parse_address(&ss, address, 0);
	if (ss.ss_family == AF_INET6)
		return ((struct sockaddr_in6 *)&ss)->sin6_addr;
	memset(name.s6_addr + 10, 0xff, 2);
	memcpy(name.s6_addr + 12, &((struct sockaddr_in *)&ss)->sin_addr, 4);
	return name;
}

static bool parse_line(const char *line)
{
	struct class c = {};
	struct connection k = { .first = NONE, .last = NONE, .reversed = NONE };
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
		hosts = grow(hosts, n_hosts, sizeof(*hosts));
		strcpy(hosts[n_hosts].address, address);
		hosts[n_hosts].name = name_of(address);
		hosts[n_hosts++].ns = open_ns(name);
	} else if (sscanf(line, "connection %u %u %u %u", &k.src, &k.dst, &k.port,
			  &k.class) == 4) {
		if (k.src >= n_hosts || k.dst >= n_hosts || k.class >= n_classes)
			return false;
		add_connection(&k);
	} else if (sscanf(line, "reverse %" SCNu32 " %u", &k.reversed, &k.class) == 2) {
		if (k.reversed >= n_connections || k.class >= n_classes ||
		    classes[k.class].server != server_of(&connections[k.reversed]))
			return false;
		k.src = connections[k.reversed].dst;
		k.dst = connections[k.reversed].src;
		add_connection(&k);
	} else if (sscanf(line, "message %" SCNu64 " %" SCNu32 " %" SCNu64, &m.at,
			  &m.connection, &m.bytes) == 3) {
		if (m.connection >= n_connections || n_timed < n_messages ||
		    (n_messages && m.at < messages[n_messages - 1].at))
			return false;
		n_endless += !m.bytes;
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

static void read_schedule(void)
{
	FILE *file = fopen(schedule, "re");
	unsigned int number = 0;
	char line[256];

	if (!file)
		die("%s", schedule);
	while (fgets(line, sizeof(line), file)) {
		number++;
		errno = 0;
		if (!parse_line(line))
			die("%s:%u: not understood", schedule, number);
	}
	fclose(file);
	ready = calloc(n_messages + 1, sizeof(*ready));
	if (!ready)
		die("memory");
}

static void watch(int op, int fd, uint32_t events, int kind, uint32_t index)
{
	struct epoll_event ev = {
		.events = events, .data.u64 = (uint64_t)index << 8 | kind,
	};

	if (epoll_ctl(epoll_fd, op, fd, &ev))
		die("epoll_ctl");
}

static void set_int(int fd, int level, int name, int value)
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
	struct timeval limit = { .tv_sec = 10 };
	struct sockaddr_storage to;
	socklen_t len = parse_address(&to, h->address, SERVER_PORT + server);
	int fd = new_cc_socket(h, to.ss_family, server);

	set_tos(fd, to.ss_family, ack_tos);
	if (fcntl(fd, F_SETFL, 0) ||
	    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)) ||
	    bind(fd, (void *)&to, len) || listen(fd, 64))
		die("listen on %s", h->address);
	h->listeners[server] = fd;
}

static void listen_everywhere(void)
{
	uint32_t i, k;

	for (i = 0; i < n_hosts; i++)
		for (k = 0; k < n_classes; k++)
			if (classes[k].server == k)
				start_listening(&hosts[i], k);
}

static void watch_both(uint32_t i)
{
	watch(EPOLL_CTL_ADD, connections[i].tx, 0, KIND_TX, i);
	watch(EPOLL_CTL_ADD, connections[i].rx, EPOLLIN, KIND_RX, i);
}

/* The same two sockets; the duplicates are separate entries of epoll. */
static void open_reverse(uint32_t i)
{
	struct connection *c = &connections[i], *other = &connections[c->reversed];

	c->tx = fcntl(other->rx, F_DUPFD_CLOEXEC, 0);
	c->rx = fcntl(other->tx, F_DUPFD_CLOEXEC, 0);
	if (c->tx < 0 || c->rx < 0)
		die("dup");
	set_int(c->tx, IPPROTO_TCP, TCP_NODELAY, 1);
	watch_both(i);
}

/* Connections are opened one by one, so the listener accepts this one. */
static void open_connection(uint32_t i)
{
	struct connection *c = &connections[i];
	struct host *dst = &hosts[c->dst];
	struct sockaddr_storage to, from;
	unsigned int o, server = server_of(c);
	socklen_t len = parse_address(&to, dst->address, SERVER_PORT + server);

	parse_address(&from, hosts[c->src].address, c->port);
	c->tx = new_cc_socket(&hosts[c->src], to.ss_family, c->class);
	set_tos(c->tx, to.ss_family, classes[c->class].tos);
	/* A message must not wait for the ACK of the previous one. */
	set_int(c->tx, IPPROTO_TCP, TCP_NODELAY, 1);
	for (o = 0; o < n_options; o++)
		set_int(c->tx, options[o].level, options[o].name, options[o].value);
	if (bind(c->tx, (void *)&from, len))
		die("bind to %s port %u", hosts[c->src].address, c->port);
	if (connect(c->tx, (void *)&to, len) && errno != EINPROGRESS)
		die("connect to %s", dst->address);
	c->rx = accept4(dst->listeners[server], NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	if (c->rx < 0)
		die("accept from %s at %s", hosts[c->src].address, dst->address);
	set_tos(c->rx, to.ss_family, ack_tos);
	watch_both(i);
}

static uint64_t least(uint64_t a, uint64_t b)
{
	if (a > b)
		a = b;
	return a;
}

/* Write until the send buffer is full; wait for room only then. */
static void send_more(uint32_t i)
{
	struct connection *c = &connections[i];
	bool wait = false;

	while (c->to_send) {
		size_t n = least(c->to_send, CHUNK);
		ssize_t done = send(c->tx, chunk, n, MSG_NOSIGNAL);

		if (done < 0) {
			if (errno != EAGAIN && errno != EINTR)
				die("send, connection %u", i);
			wait = true;
			break;
		}
		c->to_send -= done;
	}
	if (wait != c->blocked)
		watch(EPOLL_CTL_MOD, c->tx, wait ? EPOLLOUT : 0, KIND_TX, i);
	c->blocked = wait;
}

/* Wake the receiver when the message is complete, or LOWAT bytes have arrived. */
static void expect(struct connection *c)
{
	uint64_t missing = c->unread + c->to_read;

	set_int(c->rx, SOL_SOCKET, SO_RCVLOWAT, least(missing, LOWAT));
}

/* Does not read the clock, so takes no virtual time. */
static struct tcp_info info_of(int fd)
{
	struct tcp_info info = {};
	socklen_t len = sizeof(info);

	if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len))
		die("getsockopt TCP_INFO");
	return info;
}

/* Save the sender's estimates with the newest message.  All its ACKs have arrived, unless the next
 * message begins before.
 */
static void note_estimates(const struct connection *c, const struct tcp_info *info)
{
	if (c->last == NONE)
		return;
	messages[c->last].rtt = info->tcpi_rtt;
	messages[c->last].rttvar = info->tcpi_rttvar;
}

static void start_message(uint32_t i)
{
	struct message *m = &messages[i];
	struct connection *c = &connections[m->connection];

	if (tcp_info) {
		struct tcp_info info = info_of(c->tx);

		note_estimates(c, &info);
	}
	if (c->first == NONE) {
		c->first = i;
		c->to_read = m->bytes;
		expect(c);
	} else {
		messages[c->last].next = i;
	}
	c->last = i;
	c->to_send += m->bytes;
	send_more(m->connection);
}

/* Account for the bytes that have arrived; takes no virtual time. */
static void look(uint32_t i, uint64_t when)
{
	struct connection *c = &connections[i];
	struct message *m;
	int unread;
	uint64_t n;

	if (ioctl(c->rx, FIONREAD, &unread))
		die("FIONREAD");
	n = unread - c->unread;
	c->unread = unread;
	if (measuring)
		classes[c->class].bytes += n;
	while (c->first != NONE && n >= c->to_read) {
		n -= c->to_read;
		m = &messages[c->first];
		m->done = when;
		n_done++;
		if (m->answer != NONE) {
			messages[m->answer].began = m->began;
			ready[n_ready++] = m->answer;
		}
		c->first = m->next;
		c->to_read = c->first == NONE ? 0 : messages[c->first].bytes;
	}
	errno = 0;
	if (n > c->to_read)
		die("connection %u: more bytes than were sent", i);
	c->to_read -= n;
}

/* Read the bytes that look() has accounted for, so that TCP acknowledges them. */
static void drain(uint32_t i)
{
	struct connection *c = &connections[i];

	if (c->unread && recv(c->rx, NULL, c->unread, MSG_TRUNC) != c->unread)
		die("connection %u broke", i);
	c->unread = 0;
	if (c->first != NONE)
		expect(c);
}

static void start_answers(void)
{
	uint32_t i;

	for (i = 0; i < n_ready; i++)
		start_message(ready[i]);
	n_ready = 0;
}

/* Account for all arrived bytes, at the begin and the end of the measured time. */
static void look_at_all(void)
{
	uint64_t when = now();
	uint32_t i;

	for (i = 0; i < n_connections; i++)
		look(i, when);
	start_answers();
}

static void handle_events(void)
{
	struct epoll_event ev[EVENTS];
	int i, n = epoll_wait(epoll_fd, ev, EVENTS, -1);
	uint64_t when = n > 0 ? now() : 0;
	uint64_t expired;

	for (i = 0; i < n; i++)
		if ((ev[i].data.u64 & 0xff) == KIND_RX)
			look(ev[i].data.u64 >> 8, when);
	/* The calls below take virtual time. */
	for (i = 0; i < n; i++) {
		uint32_t index = ev[i].data.u64 >> 8;

		errno = 0;
		if (ev[i].events & (EPOLLERR | EPOLLHUP))
			die("connection %u broke", index);
		switch (ev[i].data.u64 & 0xff) {
		case KIND_TIMER:
			timer_fired = read(timer_fd, &expired, sizeof(expired)) > 0;
			break;
		case KIND_TX:
			send_more(index);
			break;
		case KIND_RX:
			drain(index);
			break;
		case KIND_LOOK:
			/* More than one, if starting messages took longer than the interval. */
			if (read(look_fd, &expired, sizeof(expired)) > 0)
				queues_look(expired);
			break;
		}
	}
	start_answers();
}

/* Handle events until the time @when, or until @enough messages are complete. */
static void play_until(uint64_t when, uint32_t enough)
{
	struct itimerspec t = {
		.it_value = { .tv_sec = when / NSEC, .tv_nsec = when % NSEC },
	};

	timer_fired = false;
	if (timerfd_settime(timer_fd, TFD_TIMER_ABSTIME, &t, NULL))
		die("timerfd_settime");
	while (!timer_fired && n_done < enough)
		handle_events();
}

static void add_name(struct in6_addr *names, unsigned int *n, const struct in6_addr *name)
{
	unsigned int i;

	for (i = 0; i < *n; i++)
		if (!memcmp(&names[i], name, sizeof(*name)))
			return;
	if (*n < GREENLANE_SENDERS_MAX)
		names[(*n)++] = *name;
}

/* A receiver that requests several messages knows their senders.  Pass the names of all senders of
 * messages that begin together to each of the receiver's sockets.  Congestion controls without
 * GREENLANE_SENDERS are skipped.
 */
static void name_senders(uint32_t first, uint32_t end)
{
	struct in6_addr names[GREENLANE_SENDERS_MAX];
	uint32_t i, k;

	for (i = first; i < end; i++) {
		const struct connection *c = &connections[messages[i].connection];
		bool v4 = IN6_IS_ADDR_V4MAPPED(&hosts[c->dst].name);
		unsigned int n = 0;

		for (k = first; k < end; k++) {
			const struct connection *other = &connections[messages[k].connection];

			if (other->dst == c->dst)
				add_name(names, &n, &hosts[other->src].name);
		}
		if (n > 1 && setsockopt(c->rx, v4 ? IPPROTO_IP : IPPROTO_IPV6, GREENLANE_SENDERS,
					names, n * sizeof(*names)) && errno != ENOPROTOOPT &&
		    errno != EOPNOTSUPP)
			die("setsockopt GREENLANE_SENDERS");
	}
}

/* Start all messages that are due at the same time; returns the next one. */
static uint32_t start_messages(uint32_t first, uint64_t start)
{
	uint64_t at = messages[first].at, before, after;
	uint32_t i, end = first;

	while (end < n_timed && messages[end].at == at)
		end++;
	if (look_ahead)
		name_senders(first, end);
	before = now();
	for (i = first; i < end; i++)
		start_message(i);
	after = now();
	for (i = first; i < end; i++) {
		messages[i].began = before + (after - before) * (i - first) / (end - first);
		messages[i].at += start;
	}
	return end;
}

/* The number of messages to wait for: the started ones that end, and their answers. */
static uint32_t expected(uint32_t begun)
{
	uint32_t i, n = begun - n_endless;

	for (i = 0; i < begun; i++)
		n += messages[i].answer != NONE;
	return n;
}

static void look_now_and_then(void)
{
	struct itimerspec t = {
		.it_value = { .tv_nsec = 1 },
		.it_interval = { .tv_sec = look_ns / NSEC, .tv_nsec = look_ns % NSEC },
	};

	watch(EPOLL_CTL_ADD, look_fd, EPOLLIN, KIND_LOOK, 0);
	if (timerfd_settime(look_fd, 0, &t, NULL))
		die("timerfd_settime");
}

static void play(void)
{
	uint64_t start = now() + REST;
	uint32_t i = 0;

	while (i < n_timed && messages[i].at < begin_ns) {
		play_until(start + messages[i].at, NONE);
		i = start_messages(i, start);
	}
	play_until(start + begin_ns, NONE);
	look_at_all();
	measuring = true;
	if (look_ns)
		look_now_and_then();
	while (i < n_timed && messages[i].at < end_ns) {
		play_until(start + messages[i].at, NONE);
		i = start_messages(i, start);
	}
	play_until(start + end_ns, NONE);
	look_at_all();
	measuring = false;
	if (look_ns)
		watch(EPOLL_CTL_DEL, look_fd, 0, KIND_LOOK, 0);
	play_until(start + end_ns + limit_ns, expected(i));
}

/* A value of /proc/meminfo, in bytes. */
static uint64_t meminfo(const char *name)
{
	FILE *file = fopen("/proc/meminfo", "re");
	size_t len = strlen(name);
	uint64_t kb = 0;
	char line[128];

	while (file && fgets(line, sizeof(line), file))
		if (!strncmp(line, name, len))
			kb = strtoull(line + len, NULL, 10);
	if (file)
		fclose(file);
	return kb << 10;
}

/* Count a socket that has not fallen back to another congestion control. */
static void count_end(struct class *c, int fd)
{
	char name[CC_NAME] = "";
	socklen_t len = sizeof(name);

	if (getsockopt(fd, IPPROTO_TCP, TCP_CONGESTION, name, &len))
		die("getsockopt TCP_CONGESTION");
	c->ends += !strncmp(name, c->cc, sizeof(name));
}

static void count_sent(struct class *c, const struct tcp_info *info)
{
	c->retrans += info->tcpi_total_retrans;
	c->sent += info->tcpi_bytes_sent;
	c->resent += info->tcpi_bytes_retrans;
}

static void look_at_sockets(void)
{
	uint32_t i;

	for (i = 0; i < n_connections; i++) {
		struct connection *c = &connections[i];
		struct tcp_info info = info_of(c->tx);

		count_end(&classes[c->class], c->tx);
		count_end(&classes[c->class], c->rx);
		count_sent(&classes[c->class], &info);
		note_estimates(c, &info);
	}
}

/* Print the counter at this offset of struct class, by class. */
static void print_classes(const char *what, size_t offset)
{
	uint32_t i;

	printf(", \"%s\": {", what);
	for (i = 0; i < n_classes; i++)
		printf("%s\"%s\": %" PRIu64, i ? ", " : "", classes[i].name,
		       *(uint64_t *)((char *)&classes[i] + offset));
	printf("}");
}

/* Print the field at this offset of struct message, for all messages. */
static void print_messages(const char *what, size_t offset)
{
	uint32_t i;

	printf(", \"%s\": [", what);
	for (i = 0; i < n_messages; i++)
		printf("%s%" PRIu32, i ? ", " : "",
		       *(uint32_t *)((char *)&messages[i] + offset));
	printf("]");
}

static void print_report(void)
{
	uint64_t late = 0, latest = 0;
	uint32_t i;

	printf("{\"fct_ns\": [");
	for (i = 0; i < n_messages; i++) {
		struct message *m = &messages[i];
		uint64_t lag = i < n_timed && m->began ? m->began - m->at : 0;

		printf("%s%" PRIu64, i ? ", " : "", m->done ? m->done - m->began : 0);
		late += lag;
		if (lag > latest)
			latest = lag;
	}
	printf("], \"late_ns\": {\"mean\": %" PRIu64 ", \"max\": %" PRIu64 "}",
	       n_timed ? late / n_timed : 0, latest);
	print_classes("bytes", offsetof(struct class, bytes));
	print_classes("retrans", offsetof(struct class, retrans));
	print_classes("sent", offsetof(struct class, sent));
	print_classes("resent", offsetof(struct class, resent));
	print_classes("ends", offsetof(struct class, ends));
	printf(", \"connections\": %" PRIu32 ", \"memory\": %" PRIu64, n_connections,
	       /* All connections are still open. */
	       meminfo("MemTotal:") - meminfo("MemAvailable:"));
	if (tcp_info) {
		print_messages("rtt_us", offsetof(struct message, rtt));
		print_messages("rttvar_us", offsetof(struct message, rttvar));
	}
	if (look_ns)
		queues_print();
	puts("}");
}

static void usage(void)
{
	fputs("usage: play --schedule FILE --begin NS --end NS [--cc NAME] [--ack-tos N]\n"
	      "	[--option LEVEL:NAME:VALUE]... [--limit NS] [--look NS] [--look-ahead]\n"
	      "	[--tcp-info]\n"
	      "--begin, --end  measured time: counts the bytes received in it\n"
	      "--limit         maximum wait for incomplete messages after --end\n"
	      "--look          interval of samples of the switches' queues\n"
	      "--look-ahead    receivers name the senders of an incast (GREENLANE_SENDERS)\n"
	      "--tcp-info      report the senders' RTT estimates after each message\n"
	      "--option        setsockopt() on each sender's socket\n"
	      "--ack-tos N     TOS byte of the receivers' packets\n", stderr);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 0);

	if (*end || end == text)
		usage();
	return n;
}

static void add_option(const char *text)
{
	struct option_value *o = &options[n_options];
	char rest;

	if (n_options == MAX_OPTIONS ||
	    sscanf(text, "%i:%i:%i%c", &o->level, &o->name, &o->value, &rest) != 3)
		usage();
	n_options++;
}

static void parse_options(int argc, char **argv)
{
	static const struct option names[] = {
		{ "schedule", 1, NULL, 's' }, { "begin", 1, NULL, 'b' },
		{ "end", 1, NULL, 'e' },
		{ "cc", 1, NULL, 'c' }, { "ack-tos", 1, NULL, 't' },
		{ "option", 1, NULL, 'o' }, { "limit", 1, NULL, 'l' },
		{ "look", 1, NULL, 'q' }, { "look-ahead", 0, NULL, 'a' },
		{ "tcp-info", 0, NULL, 'i' }, {},
	};
	int c;

	while ((c = getopt_long(argc, argv, "", names, NULL)) != -1) {
		switch (c) {
		case 's':
			schedule = optarg;
			break;
		case 'b':
			begin_ns = number(optarg);
			break;
		case 'e':
			end_ns = number(optarg);
			break;
		case 'c':
			cc = optarg;
			break;
		case 't':
			ack_tos = number(optarg);
			break;
		case 'o':
			add_option(optarg);
			break;
		case 'l':
			limit_ns = number(optarg);
			break;
		case 'q':
			look_ns = number(optarg);
			break;
		case 'a':
			look_ahead = true;
			break;
		case 'i':
			tcp_info = true;
			break;
		default:
			usage();
		}
	}
	if (optind != argc || !schedule || begin_ns >= end_ns)
		usage();
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 18, 1 << 18 };
	uint32_t i;

	parse_options(argc, argv);
	setrlimit(RLIMIT_NOFILE, &files);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	look_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (epoll_fd < 0 || timer_fd < 0 || look_fd < 0)
		die("epoll");
	watch(EPOLL_CTL_ADD, timer_fd, EPOLLIN, KIND_TIMER, 0);
	read_schedule();
	listen_everywhere();
	for (i = 0; i < n_connections; i++)
		if (connections[i].reversed == NONE)
			open_connection(i);
		else
			open_reverse(i);
	play();
	look_at_sockets();
	print_report();
	return 0;
}
