// SPDX-License-Identifier: GPL-2.0
/*
 * Generates an incast: many connections from several network namespaces send a
 * block to one receiver at the same time.  Reports their completion times.
 *
 *	sender s0: flow 0, 8, 16, ... --\
 *	sender s1: flow 1, 9, 17, ... ---+--> receiver
 *	...                             --/
 *
 * One process with one thread has all sockets.  A socket belongs to the
 * network namespace in which it was created, so setns() before socket() is
 * enough, and all senders start at once: in a guest with virtual time, no time
 * passes between the first write() and the last.
 *
 * A repetition (--rounds) starts when the kernel has the bytes of all flows, and
 * a flow is complete when the receiver has read its last byte.  The receiver
 * discards the data at once (MSG_TRUNC, which saves copying).  Connections
 * persist; with --fresh each repetition begins with connect().
 *
 * With --starts each flow starts at its own time after the start of the
 * repetition, and its completion time is counted from there.
 *
 * With --request the receiver starts a flow: it sends one byte, and the sender
 * answers with the block.  The completion time is counted from the request.
 *
 * With --only the process has the sockets of one host, and no namespaces: the other
 * hosts run other processes, on other machines.  Only the receiver measures time, so
 * clocks need not agree.  The port of a flow's sender is the flow's number, as seen
 * by all hosts.
 *
 * The process never spins: virtual time would stop.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "loadgen.h"

#define MAX_SENDERS 64
#define FIRST_PORT 10000	/* of the senders: each flow has its own */
#define MAX_FLOWS (65536 - FIRST_PORT)
#define CHUNK (256 << 10)
#define MAX_ROOM (1 << 29)	/* the kernel doubles it */

enum { KIND_LISTEN, KIND_TIMER, KIND_TX, KIND_RX };

/**
 * struct flow - one connection, both of its ends
 * @tx: sender's socket
 * @rx: receiver's socket, -1 until accepted
 * @to_send: bytes not yet written in this repetition
 * @to_read: bytes not yet read in this repetition
 * @began: time of the first write in this repetition, ns
 * @fct: flow completion times, ns; 0 is unfinished
 * @late: time from the common start to @began, ns, with --starts
 * @bulk: endless, and no part of the repetitions
 * @blocked: waits for room in the send buffer (or for the connection)
 */
struct flow {
	int tx, rx;
	uint64_t to_send, to_read;
	uint64_t began, *fct, *late;
	bool bulk, blocked;
};

/* The command line. */
static struct {
	const char *senders[MAX_SENDERS], *receiver, *address, *cc, *starts;
	unsigned int n_senders;
	uint64_t flows, bulk, rounds, port, bytes;
	uint64_t gap_us, lead_us, duration_us, limit_s;
	uint64_t of;			/* number of senders, with --only */
	const char *only;		/* "receiver", or the number of a sender */
	bool fresh, request;
} opt = {
	.bytes = 32 << 10, .rounds = 1, .port = 5001, .gap_us = 10000,
	.lead_us = 20000, .limit_s = 60,
};

static int sender_ns[MAX_SENDERS], receiver_ns = -1;
static unsigned int only_sender;	/* with --only, a sender's number */
static bool is_receiver = true, is_sender = true;
static int epoll_fd, timer_fd, listen_fd;
static struct flow *flows;
static unsigned int n_flows;		/* opt.flows, then opt.bulk */
static unsigned int round_nr, unfinished, opened;
static unsigned int flow_of_port[65536];	/* of the sender */
static uint64_t *starts;		/* ns after the common start, by round and flow */
static uint64_t round_start, bulk_bytes, broken, read_bytes;
static bool timer_fired;
static char chunk[CHUNK];

static void watch(int op, int fd, uint32_t events, int kind, unsigned int index)
{
	struct epoll_event ev = {
		.events = events, .data.u64 = (uint64_t)index << 8 | kind,
	};

	if (epoll_ctl(epoll_fd, op, fd, &ev))
		die("epoll_ctl");
}

static void set_timer(uint64_t ns)
{
	struct itimerspec t = {
		.it_value = { .tv_sec = ns / NSEC, .tv_nsec = ns % NSEC },
	};

	timer_fired = false;
	if (timerfd_settime(timer_fd, 0, &t, NULL))
		die("timerfd_settime");
}

static void start_listening(void)
{
	struct sockaddr_storage to;
	socklen_t len = parse_address(&to, opt.address, opt.port);

	listen_fd = new_socket(receiver_ns, to.ss_family, opt.cc);
	if (bind(listen_fd, (void *)&to, len) || listen(listen_fd, 65535))
		die("listen on %s", opt.address);
	watch(EPOLL_CTL_ADD, listen_fd, EPOLLIN, KIND_LISTEN, 0);
}

/* The event of a request at the sender's socket. */
static uint32_t requests(void)
{
	return opt.request ? EPOLLIN : 0;
}

static void open_flow(unsigned int i)
{
	struct flow *f = &flows[i];
	struct sockaddr_storage to, from;
	socklen_t len = parse_address(&to, opt.address, opt.port);
	int room = opt.bytes < MAX_ROOM / 2 ? 2 * opt.bytes + CHUNK : MAX_ROOM;
	unsigned int port = FIRST_PORT + (opt.fresh ? opened++ % MAX_FLOWS : i);

	from = (struct sockaddr_storage){ .ss_family = to.ss_family };
	((struct sockaddr_in *)&from)->sin_port = htons(port);
	f->tx = new_socket(opt.only ? -1 : sender_ns[i % opt.n_senders], to.ss_family, opt.cc);
	f->rx = -1;
	f->bulk = i >= opt.flows;
	/* The send buffer must not limit a flow. */
	if (!f->bulk && setsockopt(f->tx, SOL_SOCKET, SO_SNDBUFFORCE, &room,
				   sizeof(room)))
		die("SO_SNDBUFFORCE");
	if (bind(f->tx, (void *)&from, len))
		die("bind to port %u", port);
	if (connect(f->tx, (void *)&to, len) && errno != EINPROGRESS)
		die("connect to %s", opt.address);
	f->blocked = true;
	flow_of_port[port] = i;
	watch(EPOLL_CTL_ADD, f->tx, EPOLLOUT | requests(), KIND_TX, i);
}

static void close_flow(unsigned int i)
{
	close(flows[i].tx);
	if (flows[i].rx >= 0)
		close(flows[i].rx);
	flows[i].tx = -1;
	flows[i].rx = -1;
}

/* Write until the send buffer is full; wait for room only then. */
static void send_more(unsigned int i)
{
	struct flow *f = &flows[i];
	bool wait = false;

	while (f->bulk || f->to_send) {
		size_t n = f->bulk || f->to_send > CHUNK ? CHUNK : f->to_send;
		ssize_t done = send(f->tx, chunk, n, MSG_NOSIGNAL);

		if (done < 0) {
			if (errno != EAGAIN && errno != EINTR)
				die("send, flow %u", i);
			wait = true;
			break;
		}
		f->to_send -= f->bulk ? 0 : done;
	}
	if (wait != f->blocked)
		watch(EPOLL_CTL_MOD, f->tx, (wait ? EPOLLOUT : 0) | requests(), KIND_TX, i);
	f->blocked = wait;
}

/* The receiver has closed the connection, or the connection failed. */
static void on_closed(unsigned int i)
{
	socklen_t len = sizeof(errno);

	getsockopt(flows[i].tx, SOL_SOCKET, SO_ERROR, &errno, &len);
	/* The receiver resets its connections when it ends. */
	if (is_receiver || (errno && errno != ECONNRESET))
		die("flow %u", i);
	epoll_ctl(epoll_fd, EPOLL_CTL_DEL, flows[i].tx, NULL);
	unfinished--;
}

/* The sender's socket is connected, has room again, or has a request. */
static void on_sender(unsigned int i, uint32_t events)
{
	char bytes[16];
	ssize_t n = 0;

	if (events & EPOLLIN)
		n = recv(flows[i].tx, bytes, sizeof(bytes), 0);
	if (events & (EPOLLERR | EPOLLHUP) || (events & EPOLLIN && n <= 0)) {
		on_closed(i);
		return;
	}
	flows[i].to_send += n * opt.bytes;
	send_more(i);
}

static void on_accept(void)
{
	struct sockaddr_storage from;
	socklen_t len = sizeof(from);
	int fd;

	while ((fd = accept4(listen_fd, (void *)&from, &len,
			     SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
		/* The port is at the same place in both families. */
		unsigned int port = ntohs(((struct sockaddr_in *)&from)->sin_port);
		unsigned int i = is_sender ? flow_of_port[port] : port - FIRST_PORT;

		if (i >= n_flows) {	/* another program, on another machine */
			close(fd);
			continue;
		}
		flows[i].rx = fd;
		watch(EPOLL_CTL_ADD, fd, EPOLLIN, KIND_RX, i);
		len = sizeof(from);
	}
	if (errno != EAGAIN)
		die("accept");
}

/* Read everything with one call.  A second one would return EAGAIN, which takes a microsecond of a
 * guest's virtual time, the transmission time of three packets at 40 Gbit/s.  epoll reports the
 * socket again if more data arrives.
 */
static void on_readable(unsigned int i)
{
	struct flow *f = &flows[i];
	ssize_t n = recv(f->rx, NULL, 64 << 20, MSG_TRUNC);

	if (n < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (n <= 0) {
		broken++;
		epoll_ctl(epoll_fd, EPOLL_CTL_DEL, f->rx, NULL);
		return;
	}
	read_bytes += n;
	if (f->bulk) {
		bulk_bytes += n;
		return;
	}
	errno = 0;
	if ((uint64_t)n > f->to_read)
		die("flow %u: more bytes than were sent", i);
	f->to_read -= n;
	if (!f->to_read) {
		f->fct[round_nr] = now() - f->began;
		unfinished--;
	}
}

static void handle_events(void)
{
	struct epoll_event ev[256];
	int i, n = epoll_wait(epoll_fd, ev, 256, -1);

	for (i = 0; i < n; i++) {
		unsigned int index = ev[i].data.u64 >> 8;
		uint64_t expired;

		switch (ev[i].data.u64 & 0xff) {
		case KIND_LISTEN:
			on_accept();
			break;
		case KIND_TIMER:
			timer_fired = read(timer_fd, &expired, sizeof(expired)) > 0;
			break;
		case KIND_TX:
			on_sender(index, ev[i].events);
			break;
		case KIND_RX:
			on_readable(index);
			break;
		}
	}
}

static void wait_for(uint64_t us)
{
	if (!us)
		return;
	set_timer(us * 1000);
	while (!timer_fired)
		handle_events();
}

static bool all_accepted(void)
{
	unsigned int i;

	for (i = 0; i < n_flows; i++)
		if (flows[i].rx < 0)
			return false;
	return true;
}

static void open_all(void)
{
	unsigned int i;

	set_timer(opt.limit_s * NSEC);
	for (i = 0; i < n_flows && is_sender; i++)
		open_flow(i);
	while (!all_accepted()) {
		handle_events();
		if (timer_fired) {
			errno = 0;
			die("not all flows connected in %" PRIu64 " s", opt.limit_s);
		}
	}
}

static void begin_flow(unsigned int i, uint64_t when)
{
	flows[i].began = when;
	flows[i].to_send = opt.request ? 0 : opt.bytes;
	flows[i].to_read = opt.bytes;
	if (opt.request && send(flows[i].rx, chunk, 1, MSG_NOSIGNAL) != 1)
		die("request, flow %u", i);
	else if (opt.request)
		return;
	if (opt.fresh)
		open_flow(i);
	else
		send_more(i);
}

static uint64_t start_of(unsigned int i)
{
	return starts[round_nr * opt.flows + i];
}

static int by_start(const void *a, const void *b)
{
	uint64_t x = start_of(*(const unsigned int *)a), y = start_of(*(const unsigned int *)b);

	return (x > y) - (x < y);
}

/* Start each flow at its own time, and serve the earlier ones while waiting. */
static void begin_apart(void)
{
	unsigned int i, order[opt.flows];
	uint64_t when;

	for (i = 0; i < opt.flows; i++)
		order[i] = i;
	qsort(order, opt.flows, sizeof(*order), by_start);
	for (i = 0; i < opt.flows; i++) {
		unsigned int flow = order[i];

		for (when = now(); when < round_start + start_of(flow); when = now()) {
			set_timer(round_start + start_of(flow) - when);
			while (!timer_fired)
				handle_events();
		}
		flows[flow].late[round_nr] = when - round_start;
		begin_flow(flow, when);
	}
}

static void run_round(void)
{
	unsigned int i;

	unfinished = opt.flows;
	round_start = now();
	if (starts)
		begin_apart();
	else
		for (i = 0; i < opt.flows; i++)
			begin_flow(i, round_start);
	set_timer(opt.limit_s * NSEC);
	while (unfinished && !timer_fired)
		handle_events();
	if (opt.fresh)
		for (i = 0; i < opt.flows; i++)
			close_flow(i);
}

/* Print the sums of TCP_INFO over the senders' sockets, and their minimum RTT (0: unknown). */
static void print_tcp_info(void)
{
	uint64_t min_rtt = UINT32_MAX, bytes = 0, again = 0, segs = 0, retrans = 0, ce = 0;
	struct tcp_info info;
	unsigned int i;

	for (i = 0; i < n_flows; i++) {
		socklen_t len = sizeof(info);

		memset(&info, 0, sizeof(info));
		if (getsockopt(flows[i].tx, IPPROTO_TCP, TCP_INFO, &info, &len))
			continue;
		bytes += info.tcpi_bytes_sent;
		again += info.tcpi_bytes_retrans;
		segs += info.tcpi_data_segs_out;
		retrans += info.tcpi_total_retrans;
		ce += info.tcpi_delivered_ce;
		if (info.tcpi_min_rtt < min_rtt)
			min_rtt = info.tcpi_min_rtt;
	}
	printf("\"tcp_info\": {\"bytes_sent\": %" PRIu64
	       ", \"bytes_retrans\": %" PRIu64 ", \"data_segs_out\": %" PRIu64
	       ", \"total_retrans\": %" PRIu64 ", \"delivered_ce\": %" PRIu64
	       ", \"min_rtt_us\": %" PRIu64 "}",
	       bytes, again, segs, retrans, ce, min_rtt < UINT32_MAX ? min_rtt : 0);
}

/* Print an array of struct flow: a list for each repetition, with a value for each flow. */
static void print_rounds(const char *what, size_t offset)
{
	uint64_t i, r;

	printf("\"%s\": [", what);
	for (r = 0; r < opt.rounds; r++) {
		printf("%s[", r ? ", " : "");
		for (i = 0; i < opt.flows; i++) {
			uint64_t *of_flow = *(uint64_t **)((char *)&flows[i] + offset);

			printf("%s%" PRIu64, i ? ", " : "", of_flow[r]);
		}
		printf("]");
	}
	printf("], ");
}

static void print_report(uint64_t elapsed)
{
	uint64_t i, r, done = 0;

	for (r = 0; r < opt.rounds; r++)
		for (i = 0; i < opt.flows; i++)
			done += flows[i].fct[r] > 0;
	printf("{\"flows\": %" PRIu64 ", \"bytes\": %" PRIu64 ", ", opt.flows, opt.bytes);
	print_rounds("fct_ns", offsetof(struct flow, fct));
	if (starts)
		print_rounds("began_ns", offsetof(struct flow, late));
	printf("\"unfinished\": %" PRIu64 ", \"broken\": %" PRIu64
	       ", \"bulk_flows\": %" PRIu64 ", \"bulk_bytes\": %" PRIu64
	       ", \"read_bytes\": %" PRIu64 ", \"elapsed_ns\": %" PRIu64 ", ",
	       opt.flows * opt.rounds - done, broken, opt.bulk, bulk_bytes,
	       read_bytes, elapsed);
	print_tcp_info();
	printf("}\n");
}

static void usage(void)
{
	fputs("usage: incast --receiver NS --address A --sender NS... --flows N\n"
	      "	[--bytes N] [--rounds N] [--gap US] [--cc NAME] [--port N]\n"
	      "	[--fresh] [--bulk N] [--lead US] [--duration US] [--limit S]\n"
	      "	[--starts FILE] [--request]\n"
	      "or: incast --only receiver|N --of N --address A --flows N ...\n"
	      "--bulk N      endless flows, started --lead US before the incasts\n"
	      "--duration US minimum measured time\n"
	      "--limit S     abort a repetition, or connecting, after S seconds\n"
	      "--starts FILE start of each flow, ns after the common start\n"
	      "--request     the receiver requests each block\n"
	      "--only        the ends of one host only: the receiver, or a sender of --of N\n",
	      stderr);
	exit(2);
}

static uint64_t number(const char *text)
{
	char *end;
	uint64_t n = strtoull(text, &end, 10);

	if (*end || end == text)
		usage();
	return n;
}

/* Every option but --sender, which may be repeated, --fresh and --request. */
static const struct {
	const char *name;
	const char **text;
	uint64_t *number;
} settings[] = {
	{ "receiver", .text = &opt.receiver },
	{ "address", .text = &opt.address },
	{ "cc", .text = &opt.cc },
	{ "starts", .text = &opt.starts },
	{ "only", .text = &opt.only },
	{ "of", .number = &opt.of },
	{ "flows", .number = &opt.flows },
	{ "bytes", .number = &opt.bytes },
	{ "rounds", .number = &opt.rounds },
	{ "gap", .number = &opt.gap_us },
	{ "port", .number = &opt.port },
	{ "bulk", .number = &opt.bulk },
	{ "lead", .number = &opt.lead_us },
	{ "duration", .number = &opt.duration_us },
	{ "limit", .number = &opt.limit_s },
};

#define N_SETTINGS ARRAY_SIZE(settings)

static void parse_only(void)
{
	opt.request = true;
	is_receiver = !strcmp(opt.only, "receiver");
	is_sender = !is_receiver;
	if (is_sender)
		only_sender = number(opt.only);
	if (only_sender >= opt.of)
		usage();
}

static void parse_options(int argc, char **argv)
{
	struct option options[N_SETTINGS + 4] = {
		[N_SETTINGS] = { "sender", 1, NULL, 's' },
		[N_SETTINGS + 1] = { "fresh", 0, NULL, 'F' },
		[N_SETTINGS + 2] = { "request", 0, NULL, 'R' },
	};
	int c, index;
	size_t i;

	for (i = 0; i < N_SETTINGS; i++)
		options[i] = (struct option){ settings[i].name, 1, NULL, 'v' };
	while ((c = getopt_long(argc, argv, "", options, &index)) != -1) {
		if (c == 'v' && settings[index].text)
			*settings[index].text = optarg;
		else if (c == 'v')
			*settings[index].number = number(optarg);
		else if (c == 's' && opt.n_senders < MAX_SENDERS)
			opt.senders[opt.n_senders++] = optarg;
		else if (c == 'F')
			opt.fresh = true;
		else if (c == 'R')
			opt.request = true;
		else
			usage();
	}
	if (optind != argc || !opt.address || !opt.bytes ||
	    (opt.fresh && (opt.bulk || !opt.flows || opt.request)) ||
	    (!opt.only && (!opt.n_senders || !opt.receiver)) ||
	    (opt.only && (!opt.of || opt.n_senders || opt.receiver)) ||
	    (opt.only && (opt.bulk || opt.fresh || opt.starts)))
		usage();
	if (opt.only)
		parse_only();
	/* Each flow has its own port. */
	if (opt.flows > MAX_FLOWS || opt.bulk > MAX_FLOWS ||
	    !(opt.flows + opt.bulk) || opt.flows + opt.bulk > MAX_FLOWS)
		usage();
}

static void read_starts(void)
{
	FILE *file = fopen(opt.starts, "re");
	uint64_t i;

	starts = calloc(opt.flows * opt.rounds, sizeof(*starts));
	if (!file || !starts)
		die("%s", opt.starts);
	errno = 0;
	for (i = 0; i < opt.flows * opt.rounds; i++)
		if (fscanf(file, "%" SCNu64, &starts[i]) != 1)
			die("%s: no start for flow %" PRIu64, opt.starts, i);
	fclose(file);
}

/* Open the flows of one sender, and answer requests until the receiver has closed them. */
static void serve(void)
{
	unsigned int i;

	for (i = only_sender; i < n_flows; i += opt.of) {
		open_flow(i);
		unfinished++;
	}
	while (unfinished)
		handle_events();
	printf("{");
	print_tcp_info();
	printf("}\n");
}

int main(int argc, char **argv)
{
	struct rlimit files = { 1 << 18, 1 << 18 };
	uint64_t start;
	unsigned int i;

	parse_options(argc, argv);
	setrlimit(RLIMIT_NOFILE, &files);
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	timer_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
	if (epoll_fd < 0 || timer_fd < 0)
		die("epoll");
	watch(EPOLL_CTL_ADD, timer_fd, EPOLLIN, KIND_TIMER, 0);
	if (opt.receiver)
		receiver_ns = open_ns(opt.receiver);
	for (i = 0; i < opt.n_senders; i++)
		sender_ns[i] = open_ns(opt.senders[i]);
	n_flows = opt.flows + opt.bulk;
	flows = calloc(n_flows, sizeof(*flows));
	for (i = 0; i < n_flows; i++) {
		flows[i].tx = -1;
		flows[i].rx = -1;
		flows[i].fct = calloc(opt.rounds, sizeof(uint64_t));
		flows[i].late = calloc(opt.rounds, sizeof(uint64_t));
	}
	if (opt.starts)
		read_starts();

	if (!is_receiver) {
		serve();
		return 0;
	}
	start_listening();
	if (opt.only) {
		printf("{\"listening\": true}\n");
		fflush(stdout);
	}
	if (!opt.fresh)
		open_all();
	wait_for(opt.bulk ? opt.lead_us : opt.gap_us);
	bulk_bytes = 0;
	start = now();
	for (round_nr = 0; opt.flows && round_nr < opt.rounds; round_nr++) {
		if (round_nr)
			wait_for(opt.gap_us);
		run_round();
		if (unfinished)
			break;
	}
	if (opt.duration_us * 1000 > now() - start)
		wait_for(opt.duration_us - (now() - start) / 1000);
	print_report(now() - start);
	return unfinished || broken;
}
