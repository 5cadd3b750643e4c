// SPDX-License-Identifier: GPL-2.0
/* KUnit: the ports that messages may be deflected to (net/sched/iofd_ports.c). */
#include <kunit/test.h>
#include <linux/etherdevice.h>
#include <linux/ip.h>
#include <linux/module.h>

#include "net/sched/iofd_ports.c"

#define DEVS	3

/* The device whose packets are deflected, and two that they may be deflected to. */
static struct net_device *devs[DEVS];
static struct sk_buff *msg;
static struct nlattr *list;
static struct netlink_ext_ack extack;
static u32 next_id;

static netdev_tx_t iofd_test_xmit(struct sk_buff *skb, struct net_device *dev)
{
	kfree_skb(skb);
	return NETDEV_TX_OK;
}

static const struct net_device_ops iofd_test_ops = {
	.ndo_start_xmit = iofd_test_xmit,
};

/* Begin a new message with an empty list. */
static void list_begins(void)
{
	skb_trim(msg, 0);
	list = nla_nest_start(msg, TCA_IOFD_PORTS);
}

/* Add a port to the list; NULL or 0 leaves an attribute out. */
static void list_port(const char *dev, __be32 via, const struct in6_addr *via6)
{
	struct nlattr *port = nla_nest_start(msg, TCA_IOFD_PORT);

	if (dev)
		nla_put_string(msg, TCA_IOFD_PORT_DEV, dev);
	if (via)
		nla_put_in_addr(msg, TCA_IOFD_PORT_VIA, via);
	if (via6)
		nla_put_in6_addr(msg, TCA_IOFD_PORT_VIA6, via6);
	nla_nest_end(msg, port);
}

static struct iofd_ports *parse(const struct iofd_ports *old)
{
	nla_nest_end(msg, list);
	return iofd_ports_parse(list, old, devs[0], &next_id, &extack);
}

/* Parse a list of one port. */
static struct iofd_ports *parse_one(const char *dev, __be32 via, const struct in6_addr *via6)
{
	list_begins();
	list_port(dev, via, via6);
	return parse(NULL);
}

/* The error of iofd_ports_parse(), or 0; frees the list. */
static int error_of(struct iofd_ports *ports)
{
	if (IS_ERR(ports))
		return PTR_ERR(ports);
	iofd_ports_free(ports);
	return 0;
}

/* 10.0.0.@n */
static __be32 addr(u32 n)
{
	return htonl(0x0a000000 | n);
}

static struct net_device *iofd_test_dev(struct kunit *test, const char *name)
{
	struct net_device *dev = alloc_netdev(0, name, NET_NAME_UNKNOWN, ether_setup);

	KUNIT_ASSERT_NOT_NULL(test, dev);
	dev->netdev_ops = &iofd_test_ops;
	eth_hw_addr_random(dev);
	KUNIT_ASSERT_EQ(test, register_netdevice(dev), 0);
	return dev;
}

static int iofd_ports_test_init(struct kunit *test)
{
	static const char * const names[DEVS] = { "gl-own", "gl-a", "gl-b" };
	int i;

	memset(&extack, 0, sizeof(extack));
	next_id = 1;
	msg = alloc_skb(4096, GFP_KERNEL);
	KUNIT_ASSERT_NOT_NULL(test, msg);
	rtnl_lock();
	for (i = 0; i < DEVS; i++)
		devs[i] = iofd_test_dev(test, names[i]);
	rtnl_unlock();
	return 0;
}

/* unregister_netdevice() waits for ever if a reference to the device is left. */
static void iofd_ports_test_exit(struct kunit *test)
{
	int i;

	rtnl_lock();
	for (i = 0; i < DEVS; i++)
		unregister_netdevice(devs[i]);
	rtnl_unlock();
	for (i = 0; i < DEVS; i++)
		free_netdev(devs[i]);
	kfree_skb(msg);
}

static void do_iofd_ports_parse__a_list(struct kunit *test)
{
	static const struct in6_addr via6 = { .s6_addr = { 0xfe, 0x80, [15] = 9 } };
	struct iofd_ports *ports;

	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-b", 0, &via6);
	list_port("gl-a", addr(2), NULL);
	ports = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	KUNIT_EXPECT_EQ(test, ports->n, 3);
	KUNIT_EXPECT_PTR_EQ(test, rtnl_dereference(ports->port[0].dev), devs[1]);
	KUNIT_EXPECT_PTR_EQ(test, rtnl_dereference(ports->port[1].dev), devs[2]);
	KUNIT_EXPECT_EQ(test, ports->port[0].table, NEIGH_ARP_TABLE);
	KUNIT_EXPECT_TRUE(test, ports->port[0].via.s6_addr32[0] == addr(1));
	KUNIT_EXPECT_EQ(test, ports->port[1].table, NEIGH_ND_TABLE);
	KUNIT_EXPECT_TRUE(test, ipv6_addr_equal(&ports->port[1].via, &via6));
	KUNIT_EXPECT_EQ(test, ports->port[0].id, 1);
	KUNIT_EXPECT_EQ(test, ports->port[2].id, 3);
	KUNIT_EXPECT_EQ(test, next_id, 4);
	KUNIT_EXPECT_PTR_EQ(test, iofd_port_find(ports, 2), &ports->port[1]);
	KUNIT_EXPECT_NULL(test, iofd_port_find(ports, 0));
	KUNIT_EXPECT_NULL(test, iofd_port_find(ports, 4));
	iofd_ports_free(ports);
}

static void do_iofd_ports_parse__next_hops(struct kunit *test)
{
	static const u32 bad[] = { 0x7f000001, 0xe0000001, 0xffffffff };
	static const struct in6_addr bad6[] = {
		{}, { .s6_addr = { [15] = 1 } }, { .s6_addr = { 0xff, 2, [15] = 1 } } };
	static const struct in6_addr good6 = { .s6_addr = { 0x20, 1, [15] = 1 } };
	struct nlattr *port;
	int i;

	for (i = 0; i < ARRAY_SIZE(bad); i++)
		KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", htonl(bad[i]), NULL)), -EINVAL);
	for (i = 0; i < ARRAY_SIZE(bad6); i++)
		KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", 0, &bad6[i])), -EINVAL);
	/* 0.0.0.0, which list_port() would leave out */
	list_begins();
	port = nla_nest_start(msg, TCA_IOFD_PORT);
	nla_put_string(msg, TCA_IOFD_PORT_DEV, "gl-a");
	nla_put_in_addr(msg, TCA_IOFD_PORT_VIA, 0);
	nla_nest_end(msg, port);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -EINVAL);
	/* neither of the two, both, one */
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", 0, NULL)), -EINVAL);
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", addr(1), &good6)), -EINVAL);
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", 0, &good6)), 0);
}

static void do_iofd_ports_parse__devices(struct kunit *test)
{
	KUNIT_EXPECT_EQ(test, error_of(parse_one(NULL, addr(1), NULL)), -EINVAL);
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-none", addr(1), NULL)), -ENODEV);
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-own", addr(1), NULL)), -EINVAL);
	KUNIT_EXPECT_EQ(test, error_of(parse_one("lo", addr(1), NULL)), -EINVAL);
	devs[1]->mtu = devs[0]->mtu - 1;
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", addr(1), NULL)), -EINVAL);
	devs[1]->mtu = devs[0]->mtu;
	KUNIT_EXPECT_EQ(test, error_of(parse_one("gl-a", addr(1), NULL)), 0);
}

static void do_iofd_ports_parse__the_list_itself(struct kunit *test)
{
	struct iofd_ports *ports;
	int i;

	list_begins();
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -EINVAL);
	/* an attribute that is no port */
	list_begins();
	list_port("gl-a", addr(1), NULL);
	nla_put_u32(msg, TCA_IOFD_SEED, 1);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -EINVAL);
	/* a port without attributes */
	list_begins();
	nla_nest_end(msg, nla_nest_start(msg, TCA_IOFD_PORT));
	list_port("gl-a", addr(1), NULL);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -EINVAL);
	/* A port is a device and a next hop: these are three, and the fourth is there twice. */
	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-a", addr(2), NULL);
	list_port("gl-b", addr(1), NULL);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), 0);
	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-a", addr(2), NULL);
	list_port("gl-b", addr(1), NULL);
	list_port("gl-a", addr(1), NULL);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -EINVAL);
	/* 16 ports, and one too many */
	list_begins();
	for (i = 1; i <= 16; i++)
		list_port("gl-a", addr(i), NULL);
	ports = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	KUNIT_EXPECT_EQ(test, ports->n, 16);
	iofd_ports_free(ports);
	list_begins();
	for (i = 1; i <= 17; i++)
		list_port("gl-a", addr(i), NULL);
	KUNIT_EXPECT_EQ(test, error_of(parse(NULL)), -E2BIG);
}

/* A port that is in both lists keeps its number and its counters; no number is given
 * twice.
 */
static void do_iofd_ports_take_over__numbers_and_counters(struct kunit *test)
{
	struct iofd_ports *old, *new, *newest;

	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-b", addr(2), NULL);
	old = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(old));
	old->port[0].stats.packets = 10;
	old->port[1].stats.packets = 20;
	list_begins();
	list_port("gl-b", addr(3), NULL);
	list_port("gl-b", addr(2), NULL);
	new = parse(old);
	KUNIT_ASSERT_FALSE(test, IS_ERR(new));
	iofd_ports_take_over(new, old);
	KUNIT_EXPECT_EQ(test, new->port[0].id, 3);
	KUNIT_EXPECT_EQ(test, new->port[0].stats.packets, 0);
	KUNIT_EXPECT_EQ(test, new->port[1].id, 2);
	KUNIT_EXPECT_EQ(test, new->port[1].stats.packets, 20);
	KUNIT_EXPECT_NULL(test, iofd_port_find(new, 1));
	/* The first port returns with a new number. */
	list_begins();
	list_port("gl-a", addr(1), NULL);
	newest = parse(new);
	KUNIT_ASSERT_FALSE(test, IS_ERR(newest));
	iofd_ports_take_over(newest, new);
	KUNIT_EXPECT_EQ(test, newest->port[0].id, 4);
	KUNIT_EXPECT_EQ(test, newest->port[0].stats.packets, 0);
	iofd_ports_free(old);
	iofd_ports_free(new);
	iofd_ports_free(newest);
	iofd_ports_free(NULL);
}

static void do_iofd_port_live__up_and_with_a_carrier(struct kunit *test)
{
	struct iofd_ports *ports = parse_one("gl-a", addr(1), NULL);
	struct iofd_port *port;

	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	port = &ports->port[0];
	rcu_read_lock();
	KUNIT_EXPECT_NULL(test, iofd_port_live(NULL));
	KUNIT_EXPECT_NULL(test, iofd_port_live(port));
	set_bit(__LINK_STATE_START, &devs[1]->state);
	devs[1]->operstate = IF_OPER_UP;
	KUNIT_EXPECT_PTR_EQ(test, iofd_port_live(port), devs[1]);
	devs[1]->operstate = IF_OPER_DOWN;
	KUNIT_EXPECT_NULL(test, iofd_port_live(port));
	devs[1]->operstate = IF_OPER_UP;
	set_bit(__LINK_STATE_NOCARRIER, &devs[1]->state);
	KUNIT_EXPECT_NULL(test, iofd_port_live(port));
	clear_bit(__LINK_STATE_NOCARRIER, &devs[1]->state);
	clear_bit(__LINK_STATE_START, &devs[1]->state);
	rcu_read_unlock();
	iofd_ports_free(ports);
}

/* The dump of a list can be parsed again. */
static void do_iofd_ports_dump__round_trip(struct kunit *test)
{
	static const struct in6_addr via6 = { .s6_addr = { 0xfe, 0x80, [15] = 9 } };
	struct iofd_ports *ports, *again;

	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-b", 0, &via6);
	ports = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	skb_trim(msg, 0);
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, iofd_ports_dump(ports, msg), 0);
	rcu_read_unlock();
	again = iofd_ports_parse((struct nlattr *)msg->data, ports, devs[0], &next_id, &extack);
	KUNIT_ASSERT_FALSE(test, IS_ERR(again));
	KUNIT_EXPECT_EQ(test, again->n, 2);
	KUNIT_EXPECT_EQ(test, again->port[0].id, 1);
	KUNIT_EXPECT_EQ(test, again->port[1].id, 2);
	/* no room left */
	skb_put(msg, skb_tailroom(msg));
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, iofd_ports_dump(ports, msg), -EMSGSIZE);
	rcu_read_unlock();
	iofd_ports_free(again);
	iofd_ports_free(ports);
}

/* The list has room for the ports that it has, and no more. */
static void do_iofd_ports_parse__room_for_its_ports(struct kunit *test)
{
	struct iofd_ports *ports = parse_one("gl-a", addr(1), NULL);

	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	KUNIT_EXPECT_LE(test, ksize(ports), roundup_pow_of_two(struct_size(ports, port, 1)));
	iofd_ports_free(ports);
}

static void do_iofd_ports_dump_stats__by_port(struct kunit *test)
{
	struct nlattr *attr, *tb[TCA_IOFD_PORT_STATS_MAX + 1];
	struct iofd_ports *ports;
	int rem, n = 0;

	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-b", addr(2), NULL);
	ports = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	ports->port[0].stats.packets = 1;
	ports->port[0].stats.bytes = U64_MAX;
	ports->port[1].stats.packets = 2;
	ports->port[1].stats.bytes = U64_MAX - 1;
	skb_trim(msg, 0);
	KUNIT_EXPECT_EQ(test, iofd_ports_dump_stats(ports, msg), 0);
	nla_for_each_nested(attr, (struct nlattr *)msg->data, rem) {
		KUNIT_EXPECT_EQ(test, nla_type(attr), TCA_IOFD_STATS_PORT);
		KUNIT_ASSERT_EQ(test, nla_parse_nested(tb, TCA_IOFD_PORT_STATS_MAX, attr, NULL,
						       NULL), 0);
		KUNIT_EXPECT_EQ(test, nla_get_u64(tb[TCA_IOFD_PORT_STATS_PACKETS]), n + 1);
		KUNIT_EXPECT_EQ(test, nla_get_u64(tb[TCA_IOFD_PORT_STATS_BYTES]), U64_MAX - n);
		n++;
	}
	KUNIT_EXPECT_EQ(test, n, 2);
	/* no room left */
	skb_put(msg, skb_tailroom(msg));
	KUNIT_EXPECT_EQ(test, iofd_ports_dump_stats(ports, msg), -EMSGSIZE);
	iofd_ports_free(ports);
}

static int freed;

static void count_freed(struct sk_buff *skb)
{
	freed++;
}

/* A packet of @size bytes, headroom included; count_freed() counts when it is freed. */
static struct sk_buff *packet(struct kunit *test, unsigned int size)
{
	struct sk_buff *skb = alloc_skb(size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, skb);
	skb->protocol = htons(ETH_P_IP);
	skb->destructor = count_freed;
	skb_reset_network_header(skb);
	skb_put_zero(skb, sizeof(struct iphdr));
	freed = 0;
	return skb;
}

static void do_iofd_port_xmit__drops(struct kunit *test)
{
	struct iofd_ports *ports = parse_one("gl-a", addr(1), NULL);
	struct iofd_port *port;
	struct sk_buff *skb;

	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	port = &ports->port[0];
	/* the port is not in the list any more, or down */
	skb = packet(test, 256);
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, iofd_port_xmit(NULL, skb), IOFD_PORT_DOWN);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, freed, 1);
	skb = packet(test, 256);
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, iofd_port_xmit(port, skb), IOFD_PORT_DOWN);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, freed, 1);
	/* The buffer is as large as a buffer can be, so it cannot get headroom. */
	set_bit(__LINK_STATE_START, &devs[1]->state);
	devs[1]->operstate = IF_OPER_UP;
	skb = packet(test, SKB_WITH_OVERHEAD(KMALLOC_MAX_SIZE));
	rcu_read_lock();
	KUNIT_EXPECT_EQ(test, iofd_port_xmit(port, skb), IOFD_NO_MEMORY);
	rcu_read_unlock();
	KUNIT_EXPECT_EQ(test, freed, 1);
	clear_bit(__LINK_STATE_START, &devs[1]->state);
	iofd_ports_free(ports);
}

/* A device that is unregistered leaves its name in the list; other ports do not change. */
static void do_iofd_ports_gone__leaves_its_name(struct kunit *test)
{
	struct nlattr *attr, *tb[TCA_IOFD_PORT_MAX + 1];
	struct iofd_ports *ports;
	struct iofd_port *port;

	list_begins();
	list_port("gl-a", addr(1), NULL);
	list_port("gl-b", addr(2), NULL);
	list_port("gl-a", addr(3), NULL);
	ports = parse(NULL);
	KUNIT_ASSERT_FALSE(test, IS_ERR(ports));
	iofd_ports_gone(ports, devs[1]);
	KUNIT_EXPECT_NULL(test, rtnl_dereference(ports->port[0].dev));
	KUNIT_EXPECT_PTR_EQ(test, rtnl_dereference(ports->port[1].dev), devs[2]);
	KUNIT_EXPECT_NULL(test, rtnl_dereference(ports->port[2].dev));
	KUNIT_EXPECT_STREQ(test, ports->port[2].name, "gl-a");
	rcu_read_lock();
	port = iofd_port_find(ports, 1);
	KUNIT_EXPECT_PTR_EQ(test, port, &ports->port[0]);
	KUNIT_EXPECT_NULL(test, iofd_port_live(port));
	skb_trim(msg, 0);
	KUNIT_EXPECT_EQ(test, iofd_ports_dump(ports, msg), 0);
	rcu_read_unlock();
	attr = nla_data((struct nlattr *)msg->data);
	KUNIT_ASSERT_EQ(test, nla_parse_nested(tb, TCA_IOFD_PORT_MAX, attr, NULL, NULL), 0);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[TCA_IOFD_PORT_DEV]), "gl-a");
	KUNIT_EXPECT_NOT_NULL(test, tb[TCA_IOFD_PORT_GONE]);
	attr = nla_data((struct nlattr *)msg->data) + NLA_ALIGN(attr->nla_len);
	KUNIT_ASSERT_EQ(test, nla_parse_nested(tb, TCA_IOFD_PORT_MAX, attr, NULL, NULL), 0);
	KUNIT_EXPECT_STREQ(test, nla_data(tb[TCA_IOFD_PORT_DEV]), "gl-b");
	KUNIT_EXPECT_NULL(test, tb[TCA_IOFD_PORT_GONE]);
	/* The user cannot request a port whose device was removed. */
	KUNIT_EXPECT_EQ(test, error_of(iofd_ports_parse((struct nlattr *)msg->data, ports, devs[0],
							&next_id, &extack)), -EINVAL);
	iofd_ports_free(ports);
}

/* All cases need RTNL.  It cannot be held from init() to exit(), which KUnit runs in two threads
 * since 6.6.
 */
#define IOFD_CASE(name)				\
static void name(struct kunit *test)		\
{						\
	rtnl_lock();				\
	do_##name(test);			\
	rtnl_unlock();				\
}

IOFD_CASE(iofd_ports_parse__a_list)
IOFD_CASE(iofd_ports_parse__next_hops)
IOFD_CASE(iofd_ports_parse__devices)
IOFD_CASE(iofd_ports_parse__the_list_itself)
IOFD_CASE(iofd_ports_take_over__numbers_and_counters)
IOFD_CASE(iofd_port_live__up_and_with_a_carrier)
IOFD_CASE(iofd_ports_dump__round_trip)
IOFD_CASE(iofd_ports_gone__leaves_its_name)
IOFD_CASE(iofd_ports_parse__room_for_its_ports)
IOFD_CASE(iofd_ports_dump_stats__by_port)
IOFD_CASE(iofd_port_xmit__drops)

static struct kunit_case iofd_ports_cases[] = {
	KUNIT_CASE(iofd_ports_parse__a_list),
	KUNIT_CASE(iofd_ports_parse__next_hops),
	KUNIT_CASE(iofd_ports_parse__devices),
	KUNIT_CASE(iofd_ports_parse__the_list_itself),
	KUNIT_CASE(iofd_ports_take_over__numbers_and_counters),
	KUNIT_CASE(iofd_port_live__up_and_with_a_carrier),
	KUNIT_CASE(iofd_ports_dump__round_trip),
	KUNIT_CASE(iofd_ports_gone__leaves_its_name),
	KUNIT_CASE(iofd_ports_parse__room_for_its_ports),
	KUNIT_CASE(iofd_ports_dump_stats__by_port),
	KUNIT_CASE(iofd_port_xmit__drops),
	{}
};

static struct kunit_suite iofd_ports_suite = {
	.name		= "iofd_ports",
	.init		= iofd_ports_test_init,
	.exit		= iofd_ports_test_exit,
	.test_cases	= iofd_ports_cases,
};

kunit_test_suite(iofd_ports_suite);

MODULE_DESCRIPTION("KUnit tests of the iofd qdisc's ports");
MODULE_LICENSE("GPL");
