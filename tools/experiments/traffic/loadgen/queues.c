// SPDX-License-Identifier: GPL-2.0
/*
 * Samples of the backlogs at the ports of some switches.
 *
 * Every qdisc of kind color in a switch's namespace is a port.  A sample of all ports takes
 * no virtual time in a guest, because no code in it reads the clock.
 */
#include <errno.h>
#include <inttypes.h>
#include <libmnl/libmnl.h>
#include <linux/gen_stats.h>
#include <linux/rtnetlink.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "loadgen.h"

#define STEP 1000		/* bytes of a step of the histogram */
#define STEPS 65536		/* the last one includes all longer backlogs */
#define ROOM (32 << 10)		/* maximum size of a part of a netlink dump */

static struct mnl_socket **switches;
static unsigned int n_switches;
static uint64_t seen[STEPS];

void queues_add(const char *ns)
{
	enter_ns(open_ns(ns));
	switches = realloc(switches, (n_switches + 1) * sizeof(*switches));
	if (!switches)
		die("memory");
	switches[n_switches] = mnl_socket_open2(NETLINK_ROUTE, SOCK_CLOEXEC);
	if (!switches[n_switches] || mnl_socket_bind(switches[n_switches], 0, MNL_SOCKET_AUTOPID))
		die("netlink in %s", ns);
	n_switches++;
}

static int count(const struct nlmsghdr *message, void *times)
{
	const struct gnet_stats_queue *queue = NULL;
	const struct nlattr *attr, *stats;
	uint64_t step;
	bool port = false;

	mnl_attr_for_each(attr, message, sizeof(struct tcmsg)) {
		if (mnl_attr_get_type(attr) == TCA_KIND)
			port = !strcmp(mnl_attr_get_str(attr), "color");
		if (mnl_attr_get_type(attr) != TCA_STATS2)
			continue;
		mnl_attr_for_each_nested(stats, attr)
			if (mnl_attr_get_type(stats) == TCA_STATS_QUEUE)
				queue = mnl_attr_get_payload(stats);
	}
	if (port && queue) {
		step = queue->backlog / STEP;
		seen[step < STEPS ? step : STEPS - 1] += *(uint64_t *)times;
	}
	return MNL_CB_OK;
}

static void look_at(struct mnl_socket *nl, uint64_t times)
{
	static unsigned int number;
	static char room[ROOM];
	struct nlmsghdr *message = mnl_nlmsg_put_header(room);
	int n;

	message->nlmsg_type = RTM_GETQDISC;
	message->nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
	message->nlmsg_seq = ++number;
	mnl_nlmsg_put_extra_header(message, sizeof(struct tcmsg));
	if (mnl_socket_sendto(nl, message, message->nlmsg_len) < 0)
		die("netlink");
	do {
		n = mnl_socket_recvfrom(nl, room, sizeof(room));
		if (n > 0)
			n = mnl_cb_run(room, n, number, mnl_socket_get_portid(nl), count,
				       &times);
		if (n < 0)
			die("netlink");
	} while (n > MNL_CB_STOP);
}

void queues_look(uint64_t times)
{
	unsigned int i;

	for (i = 0; i < n_switches; i++)
		look_at(switches[i], times);
}

void queues_print(void)
{
	const char *comma = "";
	uint64_t i;

	printf(", \"queues\": {");
	for (i = 0; i < STEPS; i++) {
		if (!seen[i])
			continue;
		printf("%s\"%" PRIu64 "\": %" PRIu64, comma, i * STEP, seen[i]);
		comma = ", ";
	}
	printf("}");
}
