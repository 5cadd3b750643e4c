/* SPDX-License-Identifier: GPL-2.0-only */
/*
 * The ports that messages may be deflected to: a device, and a next hop on it.
 *
 * The list is replaced as a whole.  A port has a number, which is never given
 * to another port.  A deflected packet and an entry of the table refer to their
 * port by its number: they may outlive the port, and must not use the port that
 * replaces it.
 *
 * The list is written with RTNL held and read under RCU; the work item that sends
 * packets holds no other lock.  A device that is unregistered is taken out of its
 * port (iofd_ports_gone()); the port stays in the list, without a device, until the
 * user changes the list.
 */
#ifndef _IOFD_PORTS_H
#define _IOFD_PORTS_H

#include <linux/netdevice.h>
#include <linux/rcupdate.h>
#include <uapi/linux/in6.h>
#include <uapi/linux/pkt_iofd.h>

struct netlink_ext_ack;
struct nlattr;
struct sk_buff;

/**
 * struct iofd_port_stats - counters of the packets sent to a port
 * @packets: packets, a GSO packet as its segments
 * @bytes: bytes, as the qdisc layer counts them
 */
struct iofd_port_stats {
	u64	packets;
	u64	bytes;
};

/**
 * struct iofd_port - a port
 * @dev: the device, with a reference, or NULL if it was unregistered; written under RTNL
 * @tracker: tracker of that reference
 * @id: the port's number
 * @table: the neighbour table for @via: NEIGH_ARP_TABLE or NEIGH_ND_TABLE
 * @via: the next hop; an IPv4 address is in its first word
 * @name: the device's name when it was unregistered
 * @stats: counters; root lock
 */
struct iofd_port {
	struct net_device __rcu		*dev;
	netdevice_tracker		tracker;
	u32				id;
	int				table;
	struct in6_addr			via;
	char				name[IFNAMSIZ];
	struct iofd_port_stats		stats;
};

/**
 * struct iofd_ports - the list of ports
 * @rcu: for kfree_rcu()
 * @n: number of ports
 * @port: the ports
 */
struct iofd_ports {
	struct rcu_head		rcu;
	int			n;
	struct iofd_port	port[];
};

/**
 * enum iofd_sent - the result of iofd_port_xmit() for a packet
 * @IOFD_SENT: it was sent
 * @IOFD_PORT_DOWN: it was dropped, as its port is down or was removed
 * @IOFD_NO_MEMORY: it was dropped, as there was no memory for its header
 * @IOFD_REFUSED: it was dropped by the neighbour layer, or by the queue or the driver
 *	of the port's device
 */
enum iofd_sent {
	IOFD_SENT,
	IOFD_PORT_DOWN,
	IOFD_NO_MEMORY,
	IOFD_REFUSED,
	/* private: */
	IOFD_SENT_MAX,
};

struct iofd_ports *iofd_ports_parse(const struct nlattr *attr,
				    const struct iofd_ports *old,
				    const struct net_device *own, u32 *next_id,
				    struct netlink_ext_ack *extack);
void iofd_ports_free(struct iofd_ports *ports);
void iofd_ports_gone(struct iofd_ports *ports, const struct net_device *dev);
void iofd_ports_take_over(struct iofd_ports *ports, struct iofd_ports *old);
int iofd_ports_dump(const struct iofd_ports *ports, struct sk_buff *skb);
int iofd_ports_dump_stats(const struct iofd_ports *ports, struct sk_buff *skb);
enum iofd_sent iofd_port_xmit(const struct iofd_port *port, struct sk_buff *skb);

/**
 * iofd_port_find() - find a port by its number
 * @ports: the list; under RCU
 * @id: the number
 *
 * Return: the port, or NULL if it is not in the list any more.
 */
static inline struct iofd_port *iofd_port_find(struct iofd_ports *ports, u32 id)
{
	int i;

	for (i = 0; i < ports->n; i++)
		if (ports->port[i].id == id)
			return &ports->port[i];
	return NULL;
}

/**
 * iofd_port_live() - the device that a packet for a port leaves on
 * @port: the port, or NULL; under RCU
 *
 * A device whose carrier is up again cannot send at once: its qdisc drops every
 * packet until the core has seen the carrier too.
 *
 * Return: the device, or NULL if it cannot send now.
 */
static inline struct net_device *iofd_port_live(const struct iofd_port *port)
{
	struct net_device *dev = port ? rcu_dereference(port->dev) : NULL;

	return dev && netif_running(dev) && netif_carrier_ok(dev) &&
	       netif_oper_up(dev) ? dev : NULL;
}

#endif /* _IOFD_PORTS_H */
