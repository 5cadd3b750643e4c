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
 * request.  All connections are opened first (ends.c).  Time 0 is REST after the last.
 *
 * One process with one thread plays all hosts (see incast.c), with one clock.  A message
 * begins when it is written, and is complete when the receiver can read all of it.  The
 * messages of a connection are sent in order.
 *
 * With --only the process plays one host, and other machines the others, each with its own
 * clock: so each message must be a request, and the report has the completion times of the
 * answers to this host.  The process prints a row when its connections are open, and when it
 * has received all its messages; at a byte on stdin it begins, and at the next one it reports.
 *
 * Reading the clock takes 0.256 us of a guest's virtual time, and send() and recv() read it
 * too, which matters with a message each microsecond.  So SO_RCVLOWAT wakes the receiver for
 * a complete message, not for each packet, one reading serves all messages that are complete
 * (FIONREAD does not read the clock), and two serve all messages that begin together.
 */
#define _GNU_SOURCE
#include <errno.h>
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
#include "play.h"

#define REST (50 * 1000 * 1000ull)	/* ns, after connecting */
#define CHUNK (1 << 20)
#define LOWAT (64 << 10)		/* maximum, for longer messages */
#define EVENTS 256
#define MAX_OPTIONS 8

enum { KIND_TIMER, KIND_TX, KIND_RX, KIND_LOOK, KIND_STDIN };

static uint32_t n_done;
static uint32_t min_rtt = UINT32_MAX;	/* us, of all senders */

/* Answers whose request is complete. */
static uint32_t *ready, n_ready;

static struct option_value options[MAX_OPTIONS];
static unsigned int n_options;
static const char *cc, *schedule;
static uint64_t begin_ns, end_ns, limit_ns = 2 * NSEC, ack_tos, look_ns;

static int epoll_fd, timer_fd, look_fd;
static bool measuring, timer_fired, stdin_read, received, look_ahead, tcp_info;
static char chunk[CHUNK];

static void watch(int op, int fd, uint32_t events, int kind, uint32_t index)
{
	struct epoll_event ev = {
		.events = events, .data.u64 = (uint64_t)index << 8 | kind,
	};

	if (epoll_ctl(epoll_fd, op, fd, &ev))
		die("epoll_ctl");
}

static void watch_all(void)
{
	uint32_t i;

	for (i = 0; i < n_connections; i++) {
		if (sends(&connections[i]))
			watch(EPOLL_CTL_ADD, connections[i].tx, 0, KIND_TX, i);
		if (receives(&connections[i]))
			watch(EPOLL_CTL_ADD, connections[i].rx, EPOLLIN, KIND_RX, i);
	}
}

static uint64_t least(uint64_t a, uint64_t b)
{
	if (a > b)
		a = b;
	return a;
}

/* Another machine resets its connections when it has reported. */
static void on_reset(uint32_t i)
{
	struct connection *c = &connections[i];

	if (!received)
		die("connection %u with %s broke", i, hosts[sends(c) ? c->dst : c->src].address);
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, sends(c) ? c->tx : c->rx, NULL);
	c->to_send = 0;
	c->blocked = false;
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
			if (errno != EAGAIN && errno != EINTR) {
				on_reset(i);
				return;
			}
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

/* The receiver's part of a message's start. */
static void await_message(uint32_t i)
{
	struct connection *c = &connections[messages[i].connection];

	if (c->first == NONE) {
		c->first = i;
		c->to_read = messages[i].bytes;
		expect(c);
	} else {
		messages[c->last].next = i;
	}
	c->last = i;
}

/* The sender's part. */
static void start_message(uint32_t i)
{
	struct connection *c = &connections[messages[i].connection];

	if (tcp_info) {
		struct tcp_info info = info_of(c->tx);

		note_estimates(c, &info);
	}
	/* On another machine the receiver awaits it. */
	if (only == NONE)
		await_message(i);
	else
		c->last = i;
	c->to_send += messages[i].bytes;
	send_more(messages[i].connection);
}

/* The receiver does not learn of the start of a message on another machine, but of its order. */
static void await_far_messages(void)
{
	uint32_t i;

	for (i = 0; i < n_messages; i++)
		if (is_received(&messages[i]))
			await_message(i);
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
		/* Later than --limit it is incomplete, although its answer still has to start. */
		m->done = received ? 0 : when;
		n_done++;
		if (m->answer != NONE)
			ready[n_ready++] = m->answer;
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
		on_reset(i);
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
		if (receives(&connections[i]))
			look(i, when);
	start_answers();
}

/* At the end of stdin the program that has started this one has ended. */
static void read_stdin(void)
{
	char byte;

	if (read(STDIN_FILENO, &byte, 1) != 1)
		die("end of stdin");
	stdin_read = true;
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

		if ((ev[i].data.u64 & 0xff) == KIND_STDIN) {
			read_stdin();
			continue;
		}
		errno = 0;
		if (ev[i].events & (EPOLLERR | EPOLLHUP)) {
			on_reset(index);
			continue;
		}
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
	uint32_t i, end = first, n = 0, k = 0;

	for (; end < n_timed && messages[end].at == at; end++)
		n += is_sent(&messages[end]);
	if (look_ahead)
		name_senders(first, end);
	before = now();
	for (i = first; i < end; i++)
		if (is_sent(&messages[i]))
			start_message(i);
	after = now();
	for (i = first; i < end; i++) {
		struct message *m = &messages[i];

		if (!is_sent(m))
			continue;
		m->began = before + (after - before) * k++ / n;
		m->at += start;
		if (m->answer != NONE)
			messages[m->answer].began = m->began;
	}
	return end;
}

/* Start the messages from number @i on that are due before @end; returns the next one. */
static uint32_t start_until(uint32_t i, uint64_t start, uint64_t end)
{
	while (i < n_timed && messages[i].at < end) {
		if (!is_sent(&messages[i])) {
			i++;
			continue;
		}
		play_until(start + messages[i].at, NONE);
		i = start_messages(i, start);
	}
	return i;
}

/* The number of messages to this process's hosts: the started ones that end, and their answers. */
static uint32_t expected(uint32_t begun)
{
	uint32_t i, n = 0;

	for (i = 0; i < begun; i++) {
		const struct message *m = &messages[i];

		n += is_received(m) && !is_endless(m);
		n += m->answer != NONE && is_received(&messages[m->answer]);
	}
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
	uint32_t i = start_until(0, start, begin_ns);

	play_until(start + begin_ns, NONE);
	look_at_all();
	measuring = true;
	if (look_ns)
		look_now_and_then();
	i = start_until(i, start, end_ns);
	play_until(start + end_ns, NONE);
	look_at_all();
	measuring = false;
	if (look_ns)
		watch(EPOLL_CTL_DEL, look_fd, 0, KIND_LOOK, 0);
	play_until(start + end_ns + limit_ns, expected(i));
}

/* Print that this machine has reached a state, and wait for a byte on stdin. */
static void meet(const char *state)
{
	printf("{\"%s\": true}\n", state);
	fflush(stdout);
	for (stdin_read = false; !stdin_read;)
		handle_events();
}

static void play_only(void)
{
	watch(EPOLL_CTL_ADD, STDIN_FILENO, EPOLLIN, KIND_STDIN, 0);
	await_far_messages();
	meet("open");
	play();
	received = true;
	meet("received");
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
	min_rtt = least(min_rtt, info->tcpi_min_rtt);
	c->retrans += info->tcpi_total_retrans;
	c->sent += info->tcpi_bytes_sent;
	c->resent += info->tcpi_bytes_retrans;
}

static void look_at_sockets(void)
{
	uint32_t i;

	for (i = 0; i < n_connections; i++) {
		struct connection *c = &connections[i];
		struct class *class = &classes[c->class];

		if (receives(c))
			count_end(class, c->rx);
		if (sends(c)) {
			struct tcp_info info = info_of(c->tx);

			count_end(class, c->tx);
			count_sent(class, &info);
			note_estimates(c, &info);
		}
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
	uint64_t late = 0, latest = 0, begun = 0;
	uint32_t i;

	printf("{\"fct_ns\": [");
	for (i = 0; i < n_messages; i++) {
		struct message *m = &messages[i];
		bool timed = i < n_timed && m->began;
		uint64_t lag = timed ? m->began - m->at : 0;

		/* The sender of a request has its start, the receiver its end. */
		printf("%s%" PRIu64, i ? ", " : "", m->done && m->began ? m->done - m->began : 0);
		begun += timed;
		late += lag;
		if (lag > latest)
			latest = lag;
	}
	printf("], \"late_ns\": {\"mean\": %" PRIu64 ", \"max\": %" PRIu64 "}",
	       begun ? late / begun : 0, latest);
	print_classes("bytes", offsetof(struct class, bytes));
	print_classes("retrans", offsetof(struct class, retrans));
	print_classes("sent", offsetof(struct class, sent));
	print_classes("resent", offsetof(struct class, resent));
	print_classes("ends", offsetof(struct class, ends));
	printf(", \"tcp_info\": {\"min_rtt_us\": %" PRIu32 "}", min_rtt);
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
	      "	[--tcp-info] [--only HOST]\n"
	      "--begin, --end  measured time: counts the bytes received in it\n"
	      "--limit         maximum wait for incomplete messages after --end\n"
	      "--look          interval of samples of the switches' queues\n"
	      "--look-ahead    receivers name the senders of an incast (GREENLANE_SENDERS)\n"
	      "--tcp-info      report the senders' RTT estimates after each message\n"
	      "--only          the ends of one host only, a number; every message is a request\n"
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
		{ "tcp-info", 0, NULL, 'i' }, { "only", 1, NULL, 'n' }, {},
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
		case 'n':
			only = number(optarg);
			break;
		default:
			usage();
		}
	}
	if (optind != argc || !schedule || begin_ns >= end_ns ||
	    (only != NONE && (look_ahead || look_ns)))
		usage();
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 18, 1 << 18 };

	parse_options(argc, argv);
	setrlimit(RLIMIT_NOFILE, &files);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	look_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (epoll_fd < 0 || timer_fd < 0 || look_fd < 0)
		die("epoll");
	watch(EPOLL_CTL_ADD, timer_fd, EPOLLIN, KIND_TIMER, 0);
	read_schedule(schedule, cc);
	ready = calloc(n_messages + 1, sizeof(*ready));
	if (!ready)
		die("memory");
	open_connections(options, n_options, ack_tos);
	watch_all();
	if (only == NONE)
		play();
	else
		play_only();
	look_at_sockets();
	print_report();
	return 0;
}
