// SPDX-License-Identifier: GPL-2.0-only
/* The ports that messages may be deflected to; see iofd_ports.h. */

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <net/ipv6.h>
#include <net/neighbour.h>
#include <net/netlink.h>

#include "iofd_ports.h"

/**
 * iofd_ports_free() - free a list
 * @ports: the list, which is not reachable for new readers; or NULL
 */
void iofd_ports_free(struct iofd_ports *ports)
{
	int i;

	if (!ports)
		return;
	for (i = 0; i < ports->n; i++) {
		struct iofd_port *port = &ports->port[i];

		/* Packets that a reader of this list has taken are still sent by the device: its
		 * unregistration waits for them.
		 */
		netdev_put(rtnl_dereference(port->dev), &port->tracker);
	}
	kfree_rcu(ports, rcu);
}

/**
 * iofd_ports_gone() - a device is being unregistered or leaves the namespace
 * @ports: a list
 * @dev: the device; ports with it release it, and keep its name
 */
void iofd_ports_gone(struct iofd_ports *ports, const struct net_device *dev)
{
	int i;

	for (i = 0; i < ports->n; i++) {
		struct iofd_port *port = &ports->port[i];
		struct net_device *held = rtnl_dereference(port->dev);

		if (held != dev)
			continue;
		strscpy(port->name, dev->name, sizeof(port->name));
		RCU_INIT_POINTER(port->dev, NULL);
		netdev_put(held, &port->tracker);
	}
}

static bool iofd_port_same(const struct iofd_port *a, const struct iofd_port *b)
{
	return rcu_access_pointer(a->dev) == rcu_access_pointer(b->dev) &&
	       a->table == b->table && ipv6_addr_equal(&a->via, &b->via);
}

static const struct nla_policy iofd_port_policy[TCA_IOFD_PORT_MAX + 1] = {
	[TCA_IOFD_PORT_DEV]	= { .type = NLA_NUL_STRING,
				    .len = ALTIFNAMSIZ - 1 },
	[TCA_IOFD_PORT_VIA]	= NLA_POLICY_EXACT_LEN(sizeof(struct in_addr)),
	[TCA_IOFD_PORT_VIA6]	= NLA_POLICY_EXACT_LEN(sizeof(struct in6_addr)),
	[TCA_IOFD_PORT_GONE]	= { .type = NLA_REJECT },
};

static int iofd_port_parse_via(struct iofd_port *port, struct nlattr **tb,
			       const struct nlattr *attr,
			       struct netlink_ext_ack *extack)
{
	bool ok;

	if (!tb[TCA_IOFD_PORT_VIA] == !tb[TCA_IOFD_PORT_VIA6]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "A deflect port needs one next hop");
		return -EINVAL;
	}
	if (tb[TCA_IOFD_PORT_VIA]) {
		__be32 via = nla_get_in_addr(tb[TCA_IOFD_PORT_VIA]);

		port->table = NEIGH_ARP_TABLE;
		port->via.s6_addr32[0] = via;
		ok = !ipv4_is_zeronet(via) && !ipv4_is_loopback(via) &&
		     !ipv4_is_multicast(via) && !ipv4_is_lbcast(via);
	} else {
		port->table = NEIGH_ND_TABLE;
		port->via = nla_get_in6_addr(tb[TCA_IOFD_PORT_VIA6]);
		ok = !ipv6_addr_any(&port->via) &&
		     !ipv6_addr_loopback(&port->via) &&
		     !ipv6_addr_is_multicast(&port->via);
	}
	if (ok)
		return 0;
	NL_SET_ERR_MSG_ATTR(extack, attr,
			    "The next hop of a deflect port is not the address of a host");
	return -EINVAL;
}

static int iofd_port_parse_dev(struct iofd_port *port, struct nlattr **tb,
			       const struct nlattr *attr,
			       const struct net_device *own,
			       struct netlink_ext_ack *extack)
{
	struct net_device *dev;

	if (!tb[TCA_IOFD_PORT_DEV]) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "A deflect port needs a device");
		return -EINVAL;
	}
	dev = __dev_get_by_name(dev_net(own), nla_data(tb[TCA_IOFD_PORT_DEV]));
	if (!dev) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "The deflect device does not exist");
		return -ENODEV;
	}
	if (dev == own) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "A port cannot deflect to itself");
		return -EINVAL;
	}
	if (dev->flags & IFF_LOOPBACK) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "The loopback device cannot be a deflect device");
		return -EINVAL;
	}
	/* A deflected packet is not fragmented. */
	if (READ_ONCE(dev->mtu) < READ_ONCE(own->mtu)) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "The MTU of a deflect device is too small");
		return -EINVAL;
	}
	rcu_assign_pointer(port->dev, dev);
	return 0;
}

static int iofd_port_parse(struct iofd_ports *ports, const struct nlattr *attr,
			   const struct net_device *own,
			   struct netlink_ext_ack *extack)
{
	struct iofd_port *port = &ports->port[ports->n];
	struct nlattr *tb[TCA_IOFD_PORT_MAX + 1];
	struct net_device *dev;
	int i, err;

	if (nla_type(attr) != TCA_IOFD_PORT) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "Not a deflect port");
		return -EINVAL;
	}
	err = nla_parse_nested(tb, TCA_IOFD_PORT_MAX, attr, iofd_port_policy,
			       extack);
	if (err < 0)
		return err;
	err = iofd_port_parse_via(port, tb, attr, extack);
	if (err)
		return err;
	err = iofd_port_parse_dev(port, tb, attr, own, extack);
	if (err)
		return err;

	for (i = 0; i < ports->n; i++) {
		if (!iofd_port_same(&ports->port[i], port))
			continue;
		NL_SET_ERR_MSG_ATTR(extack, attr, "A deflect port is given twice");
		RCU_INIT_POINTER(port->dev, NULL);
		return -EINVAL;
	}
	dev = rtnl_dereference(port->dev);
	netdev_hold(dev, &port->tracker, GFP_KERNEL);
	ports->n++;
	return 0;
}

/**
 * iofd_ports_parse() - read a list from its attribute
 * @attr: TCA_IOFD_PORTS
 * @old: the list so far, or NULL; a port that is in both keeps its number
 * @own: the device whose packets are deflected
 * @next_id: the number for the next new port
 * @extack: for the reason of an error
 *
 * Return: the list, for iofd_ports_free(), or an error.
 */
struct iofd_ports *iofd_ports_parse(const struct nlattr *attr,
				    const struct iofd_ports *old,
				    const struct net_device *own, u32 *next_id,
				    struct netlink_ext_ack *extack)
{
	struct iofd_ports *ports;
	const struct nlattr *nla;
	int i, j, rem, n = 0, err = 0;

	nla_for_each_nested(nla, attr, rem)
		n++;
	if (n > TC_IOFD_PORTS_MAX) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "More than 16 deflect ports");
		return ERR_PTR(-E2BIG);
	}
	ports = kzalloc(struct_size(ports, port, n), GFP_KERNEL);
	if (!ports)
		return ERR_PTR(-ENOMEM);
	nla_for_each_nested(nla, attr, rem) {
		err = iofd_port_parse(ports, nla, own, extack);
		if (err)
			break;
	}
	/* The loop ends at an attribute whose length is wrong. */
	if (!err && rem > 0) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "The list of deflect ports ends within a port");
		err = -EINVAL;
	}
	if (!err && !ports->n) {
		NL_SET_ERR_MSG_ATTR(extack, attr, "A deflect port is needed");
		err = -EINVAL;
	}
	if (err) {
		iofd_ports_free(ports);
		return ERR_PTR(err);
	}

	for (i = 0; i < ports->n; i++) {
		for (j = 0; old && j < old->n; j++)
			if (iofd_port_same(&ports->port[i], &old->port[j]))
				break;
		ports->port[i].id = old && j < old->n ? old->port[j].id :
							(*next_id)++;
	}
	return ports;
}

/**
 * iofd_ports_take_over() - keep the counters of ports that are in both lists
 * @ports: the new list
 * @old: the list so far; root lock
 */
void iofd_ports_take_over(struct iofd_ports *ports, struct iofd_ports *old)
{
	int i;

	for (i = 0; i < ports->n; i++) {
		struct iofd_port *was = iofd_port_find(old, ports->port[i].id);

		if (was)
			ports->port[i].stats = was->stats;
	}
}

/* Under RCU. */
static int iofd_port_dump(const struct iofd_port *port, struct sk_buff *skb)
{
	const struct net_device *dev = rcu_dereference(port->dev);
	struct nlattr *nest = nla_nest_start(skb, TCA_IOFD_PORT);

	if (!nest ||
	    nla_put_string(skb, TCA_IOFD_PORT_DEV, dev ? dev->name : port->name) ||
	    (port->table == NEIGH_ARP_TABLE ?
	     nla_put_in_addr(skb, TCA_IOFD_PORT_VIA, port->via.s6_addr32[0]) :
	     nla_put_in6_addr(skb, TCA_IOFD_PORT_VIA6, &port->via)) ||
	    (!dev && nla_put_flag(skb, TCA_IOFD_PORT_GONE)))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * iofd_ports_dump() - write a list to a netlink message
 * @ports: the list; under RCU
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int iofd_ports_dump(const struct iofd_ports *ports, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_IOFD_PORTS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ports->n; i++)
		if (iofd_port_dump(&ports->port[i], skb))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

static int iofd_port_dump_stats(const struct iofd_port *port,
				struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_IOFD_STATS_PORT);

	if (!nest ||
	    nla_put_u64_64bit(skb, TCA_IOFD_PORT_STATS_PACKETS,
			      port->stats.packets, TCA_IOFD_PORT_STATS_PAD) ||
	    nla_put_u64_64bit(skb, TCA_IOFD_PORT_STATS_BYTES,
			      port->stats.bytes, TCA_IOFD_PORT_STATS_PAD))
		return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * iofd_ports_dump_stats() - write the counters of a list to a netlink message
 * @ports: the list; under RCU and the root lock
 * @skb: the message
 *
 * Return: 0, or -EMSGSIZE.
 */
int iofd_ports_dump_stats(const struct iofd_ports *ports, struct sk_buff *skb)
{
	struct nlattr *nest = nla_nest_start(skb, TCA_IOFD_STATS_PORTS);
	int i;

	if (!nest)
		return -EMSGSIZE;
	for (i = 0; i < ports->n; i++)
		if (iofd_port_dump_stats(&ports->port[i], skb))
			return -EMSGSIZE;
	nla_nest_end(skb, nest);
	return 0;
}

/**
 * iofd_port_xmit() - send a packet to the next hop of a port
 * @port: the port, or NULL if it is not in the list any more; under RCU
 * @skb: the packet, which is sent or freed
 *
 * The route of the packet leads to another device.  With that route the neighbour
 * layer would resolve the route's next hop instead of the port's, so it is dropped.
 *
 * Return: &enum iofd_sent.
 */
enum iofd_sent iofd_port_xmit(const struct iofd_port *port, struct sk_buff *skb)
{
	struct net_device *dev = iofd_port_live(port);
	int err;

	if (!dev) {
		kfree_skb_reason(skb, SKB_DROP_REASON_DEV_READY);
		return IOFD_PORT_DOWN;
	}
	skb->dev = dev;
	skb_dst_drop(skb);
	skb_pull(skb, skb_network_offset(skb));
	if (skb_cow_head(skb, LL_RESERVED_SPACE(dev))) {
		kfree_skb_reason(skb, SKB_DROP_REASON_NOMEM);
		return IOFD_NO_MEMORY;
	}
	err = neigh_xmit(port->table, dev, &port->via, skb);
	/* color, and noop while a port's qdisc is replaced, drop with NET_XMIT_CN. */
	return err ? IOFD_REFUSED : IOFD_SENT;
}
