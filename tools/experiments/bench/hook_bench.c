// SPDX-License-Identifier: GPL-2.0
/*
 * Measures the cost of the netfilter hooks to a connection that does not use greenlane.
 * Passes packets of some sockets to the hooks of their namespaces, interleaved, so that
 * other load on the machine affects all of them alike:
 *
 *	insmod hook_bench.ko fds=3,4,5 empty=4
 *
 * fds are TCP sockets of the process that runs insmod.  The namespace of the socket
 * @empty gets a hook that only accepts, for comparison.  The kernel's log gets, for
 * each socket and direction, the processor cycles of one packet in the fastest
 * and in the median repetition.
 */
#include <linux/file.h>
#include <linux/ip.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/netfilter.h>
#include <linux/netfilter_ipv4.h>
#include <linux/skbuff.h>
#include <linux/tcp.h>
#include <net/inet_sock.h>
#include <net/sock.h>

#include "turns.h"

#define MAX_FDS		8
#define PACKETS		20000	/* of a repetition */
#define PACKET		1500	/* bytes */

static int fds[MAX_FDS];
static int n_fds;
module_param_array(fds, int, &n_fds, 0444);
MODULE_PARM_DESC(fds, "sockets whose packets are measured");

static int empty = -1;
module_param(empty, int, 0444);
MODULE_PARM_DESC(empty, "one of them: its namespace gets an empty hook");

static int dscp;
module_param(dscp, int, 0444);
MODULE_PARM_DESC(dscp, "of all packets");

static const enum nf_inet_hooks points[] = { NF_INET_LOCAL_OUT, NF_INET_LOCAL_IN };
static const char * const direction[] = { "out", "in" };

static struct socket *socks[MAX_FDS];
static u64 cycles[ARRAY_SIZE(points)][MAX_FDS][TURNS];

static unsigned int accept_all(void *priv, struct sk_buff *skb,
			       const struct nf_hook_state *state)
{
	return NF_ACCEPT;
}

static const struct nf_hook_ops empty_hooks[] = {
	{ .hook = accept_all, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_OUT },
	{ .hook = accept_all, .pf = NFPROTO_IPV4, .hooknum = NF_INET_LOCAL_IN },
};

static int never(struct net *net, struct sock *sk, struct sk_buff *skb)
{
	return 0;
}

/* Data of the connection, with its socket: as sent, or as received after early demux. */
static struct sk_buff *make_packet(struct sock *sk)
{
	struct sk_buff *skb = alloc_skb(PACKET + 64, GFP_KERNEL);
	struct iphdr *iph;
	struct tcphdr *th;

	if (!skb)
		return NULL;
	skb_reserve(skb, 64);
	skb_reset_network_header(skb);
	skb_set_transport_header(skb, sizeof(*iph));
	iph = skb_put_zero(skb, PACKET);
	iph->version = 4;
	iph->ihl = 5;
	iph->tos = dscp << 2;
	iph->ttl = 64;
	iph->protocol = IPPROTO_TCP;
	iph->tot_len = htons(PACKET);
	th = tcp_hdr(skb);
	th->source = inet_sk(sk)->inet_sport;
	th->dest = inet_sk(sk)->inet_dport;
	th->doff = sizeof(*th) / 4;
	th->ack = 1;
	skb->protocol = htons(ETH_P_IP);
	skb->sk = sk;	/* no destructor: insmod holds the socket */
	return skb;
}

static int turn(struct sock *sk, enum nf_inet_hooks point, struct sk_buff *skb, u64 *spent)
{
	struct net *net = sock_net(sk);
	struct net_device *lo = net->loopback_dev;
	int i, passed = 0;
	u64 before;

	local_bh_disable();
	before = tsc();
	for (i = 0; i < PACKETS; i++)
		passed += nf_hook(NFPROTO_IPV4, point, net, sk, skb, lo, lo, never) == 1;
	*spent = tsc() - before;
	local_bh_enable();
	return passed == PACKETS ? 0 : -EIO;
}

static int measure(struct sk_buff *skb[])
{
	int i, p, t, err = 0;

	for (t = 0; t < TURNS; t++)
		for (p = 0; p < ARRAY_SIZE(points); p++)
			for (i = 0; i < n_fds && !err; i++)
				err = turn(socks[i]->sk, points[p], skb[i], &cycles[p][i][t]);
	for (p = 0; p < ARRAY_SIZE(points) && !err; p++)
		for (i = 0; i < n_fds; i++) {
			char what[16];

			snprintf(what, sizeof(what), "%s-%d", direction[p], i);
			report("hook_bench", what, cycles[p][i], PACKETS);
		}
	return err;
}

static int measure_with_hook(struct sk_buff *skb[])
{
	struct net *net = NULL;
	int i, err = 0;

	for (i = 0; i < n_fds; i++)
		if (fds[i] == empty)
			net = sock_net(socks[i]->sk);
	if (net)
		err = nf_register_net_hooks(net, empty_hooks, ARRAY_SIZE(empty_hooks));
	if (err)
		return err;
	err = measure(skb);
	if (net)
		nf_unregister_net_hooks(net, empty_hooks, ARRAY_SIZE(empty_hooks));
	return err;
}

static int __init hook_bench_init(void)
{
	struct sk_buff *skb[MAX_FDS] = {};
	int i, err = 0;

	for (i = 0; i < n_fds && !err; i++) {
		socks[i] = sockfd_lookup(fds[i], &err);
		if (!socks[i])
			break;
		skb[i] = make_packet(socks[i]->sk);
		if (!skb[i])
			err = -ENOMEM;
	}
	if (!err)
		err = measure_with_hook(skb);
	for (i = 0; i < n_fds; i++) {
		if (skb[i])
			skb[i]->sk = NULL;
		kfree_skb(skb[i]);
		if (socks[i])
			sockfd_put(socks[i]);
	}
	return err;
}

static void __exit hook_bench_exit(void)
{
}

module_init(hook_bench_init);
module_exit(hook_bench_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Benchmark of netfilter hooks: cycles of a packet");
