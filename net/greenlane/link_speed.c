// SPDX-License-Identifier: GPL-2.0
/* The link that a socket's packets leave on: its speed, and the bytes of a packet on it
 *
 * A transport that divides a link by credits, shares or rates needs the speed of the link, the
 * bytes that a packet takes on it, and the devices that share its time:
 *
 *	socket --- cached route ---> net_device        struct link_speed
 *	                             eth0.10 (VLAN) -> extra 4, speed -+
 *	                               |                               | wire
 *	                             eth0 -----------> speed 25000 <---+  its time is shared
 *	                               ^
 *	                             root qdisc `color rate 10gbit`: overrides the speed of both
 *
 * The device of the socket's cached route selects the link.  Packets leave by that device also if
 * the socket is bound to a VRF.  The VRF's own device carries only packets that stay in the VRF.
 *
 * Speed.  The speed that ethtool reports: VLANs, bonds, bridges, macvlan and ipvlan devices derive
 * it from the devices below.  If a device reports no speed, the speed of the device below applies,
 * if there is only one.  A qdisc that gives the device a rate (sch_color) overrides that: a veth
 * reports 10 Gbit/s in every topology.  The sysctls net.ipv4.xpass_rate and net.ipv4.dcqcn_rate
 * override both, in the transports.  For a device without a speed this module assumes
 * LINK_SPEED_MBIT, and `greenlane status` reports that.  Loopback and a VRF's own device are no
 * wire, and have no speed.
 *
 * Wire.  Two VLANs of a device share its time: the link of the lowest device in the same namespace.
 * A device in another namespace has a time of its own: otherwise a container on a macvlan device
 * could stop the credits of its host.
 *
 * Bytes.  Transports count Ethernet's own bytes.  @extra is the overhead of the device: 4 for each
 * VLAN tag, in hardware or not; and for a tunnel the headroom that its device requests, without
 * the link-layer header of the device below.  If that is more than the headers (wireguard rounds
 * up), the transports use a few percent less than the link, and never more.  needed_headroom of
 * other devices is for their drivers, and does not reach the wire.
 *
 * Context.  Drivers sleep when they read the speed, and notifiers are called with locks that
 * depend on the event: RTNL always, since 6.15 the device's own lock for some.  Since 7.1
 * __ethtool_get_link_ksettings() takes that lock, for the device and for the devices below it.  So
 * a notifier only puts links that may have changed on a list, and a work item with nothing but RTNL
 * reads them.  Packets use the values that it stores (READ_ONCE()).  If a driver's speed changes
 * without an event, the next event reads it.
 *
 * Qdiscs.  sch_color depends on this module, and publishes its rate here.  In the other direction,
 * a host without a port would load the port's module; and a dump of the qdisc would make its
 * netlink attributes an interface inside the kernel.  The qdisc cannot know whether it will be the
 * root, because it is grafted after it was created: the work item, which waits for RTNL, finds
 * that, too.
 *
 * Lifetime.  The namespace's array has a reference on each of its links; NETDEV_UNREGISTER, which
 * also happens when a device moves to another namespace, puts it.  Readers need RCU, or a
 * reference of their own.
 *
 * Attachment.  rd_core.ko keeps the queue of a link's receivers in @attached for as long as a
 * connection uses it, and has a reference on the link meanwhile.  This module neither reads nor
 * frees the queue, so that a port does not need rd_core.ko.
 */
#include <linux/if_arp.h>
#include <linux/ethtool.h>
#include <linux/module.h>
#include <linux/notifier.h>
#include <linux/proc_fs.h>
#include <linux/rtnetlink.h>
#include <linux/seq_file.h>
#include <linux/seq_file_net.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <linux/xarray.h>
#include <net/geneve.h>
#include <net/gre.h>
#include <net/l3mdev.h>
#include <net/net_namespace.h>
#include <net/netns/generic.h>
#include <net/pkt_sched.h>
#include <net/vxlan.h>

#include <net/gl_compat.h>
#include <net/link_speed.h>

/* Limit of stacked devices; the kernel allows 8. */
#define LINK_SPEED_DEPTH		8

/**
 * struct link_speed_net - a network namespace
 * @links: by the device's ifindex.  Written with RTNL, read with RCU
 * @none: for sockets whose device is not known; lives as long as the namespace
 */
struct link_speed_net {
	struct xarray		links;
	struct link_speed	*none;
};

static unsigned int link_speed_net_id __read_mostly;

static LIST_HEAD(link_speed_changed);
static DEFINE_SPINLOCK(link_speed_lock);

static void link_speed_work(struct work_struct *work);
static DECLARE_WORK(link_speed_reader, link_speed_work);

static struct link_speed_net *link_speed_net(const struct net *net)
{
	return net_generic(net, link_speed_net_id);
}

static struct link_speed *link_speed_of_dev(const struct net_device *dev)
{
	return xa_load(&link_speed_net(dev_net(dev))->links, dev->ifindex);
}

/* --- sockets ------------------------------------------------------------------ */

/**
 * link_speed_rcu() - the link that a socket's packets leave on
 * @sk: the socket
 *
 * The socket may have no route now, because the last one has become invalid.  Then the link belongs
 * to the device that the socket is bound to, or on which its last packet arrived.
 *
 * Return: the link, never NULL.  Valid until rcu_read_unlock().
 */
struct link_speed *link_speed_rcu(const struct sock *sk)
{
	const struct dst_entry *dst = rcu_dereference(sk->sk_dst_cache);
	struct link_speed_net *ln = link_speed_net(sock_net(sk));
	struct link_speed *link = NULL;
	int ifindex;

	/* The device of a dead route is blackhole_netdev, which has no index. */
	if (dst)
		link = xa_load(&ln->links, gl_dst_dev_rcu(dst)->ifindex);
	if (likely(link))
		return link;
	ifindex = READ_ONCE(sk->sk_bound_dev_if) ?: READ_ONCE(sk->sk_rx_dst_ifindex);
	if (ifindex > 0)
		link = xa_load(&ln->links, ifindex);
	return link ?: ln->none;
}
EXPORT_SYMBOL_GPL(link_speed_rcu);

/**
 * link_speed_get() - a reference on the link whose time a socket's packets take
 * @sk: the socket
 *
 * Return: the link, for link_speed_put(); never NULL.  Its device may be removed meanwhile.
 */
struct link_speed *link_speed_get(const struct sock *sk)
{
	struct link_speed *link;

	rcu_read_lock();
	link = link_speed_wire(link_speed_rcu(sk));
	if (!refcount_inc_not_zero(&link->refs)) {
		/* Its device was just removed.  The socket's namespace keeps @none. */
		link = link_speed_net(sock_net(sk))->none;
		refcount_inc(&link->refs);
	}
	rcu_read_unlock();
	return link;
}
EXPORT_SYMBOL_GPL(link_speed_get);

/**
 * link_speed_put() - drop the reference of link_speed_get()
 * @link: the link
 *
 * In any context.
 */
void link_speed_put(struct link_speed *link)
{
	if (refcount_dec_and_test(&link->refs))
		kfree_rcu(link, rcu);
}
EXPORT_SYMBOL_GPL(link_speed_put);

static struct link_speed *link_speed_new(struct net_device *dev)
{
	struct link_speed *link = kzalloc(sizeof(*link), GFP_KERNEL);

	if (!link)
		return NULL;
	INIT_LIST_HEAD(&link->ports);
	INIT_LIST_HEAD(&link->changed);
	refcount_set(&link->refs, 1);
	RCU_INIT_POINTER(link->dev, dev);
	link->local = dev && (dev->flags & IFF_LOOPBACK || netif_is_l3_master(dev));
	return link;
}

/* --- stacked devices ----------------------------------------------------------- */

/* The only device below this one, or NULL. */
static struct net_device *link_speed_below(struct net_device *dev)
{
	struct net_device *lower, *only = NULL;
	struct list_head *iter;

	/* A VRF's devices are not below it: packets that leave by them do not pass the VRF's. */
	if (netif_is_l3_master(dev))
		return NULL;
	netdev_for_each_lower_dev(dev, lower, iter) {
		if (only)
			return NULL;
		only = lower;
	}
	return only;
}

static bool link_speed_is_tunnel(const struct net_device *dev)
{
	switch (dev->type) {
	case ARPHRD_TUNNEL:
	case ARPHRD_TUNNEL6:
	case ARPHRD_SIT:
	case ARPHRD_IPGRE:
	case ARPHRD_IP6GRE:
		return true;
	}
	return netif_is_vxlan(dev) || netif_is_geneve(dev) || netif_is_gretap(dev) ||
	       netif_is_ip6gretap(dev) ||
	       (dev->rtnl_link_ops && !strcmp(dev->rtnl_link_ops->kind, "wireguard"));
}

/* Bytes that a device adds before @below, which may be NULL. */
static u32 link_speed_adds(const struct net_device *dev, const struct net_device *below)
{
	u32 headroom;

	if (is_vlan_dev(dev))
		return VLAN_HLEN;
	if (!link_speed_is_tunnel(dev))
		return 0;
	/* A tunnel for Ethernet carries that header too.  vxlan has counted it already. */
	headroom = dev->needed_headroom + (netif_is_vxlan(dev) ? 0 : dev->hard_header_len);
	return link_speed_headers(headroom, below ? below->hard_header_len : ETH_HLEN);
}

/* Mbit/s, 0 if the device reports no speed. */
static u32 link_speed_ethtool(struct net_device *dev)
{
	struct ethtool_link_ksettings settings;

	if (__ethtool_get_link_ksettings(dev, &settings) ||
	    settings.base.speed == (u32)SPEED_UNKNOWN)
		return 0;
	return min_t(u32, settings.base.speed, LINK_SPEED_MBIT_MAX);
}

static int link_speed_count_class(struct Qdisc *sch, unsigned long class,
				  struct qdisc_walker *walker)
{
	return 0;
}

/* Do all packets of this qdisc pass its child, or one of its children?  They do if it has one class
 * (netem, iofd, and tbf and red, which may be slower), and if its classes are the device's queues,
 * of which each flow may use any (mq, not mqprio).  Packets may bypass classes that are created one
 * by one (htb).
 */
static bool link_speed_passes_on(struct Qdisc *sch)
{
	const struct Qdisc_class_ops *ops = sch->ops->cl_ops;
	struct qdisc_walker walker = { .fn = link_speed_count_class };

	if (!ops || ops->change)
		return false;
	if (sch->flags & TCQ_F_MQROOT)
		return netdev_get_num_tc(qdisc_dev(sch)) <= 1;
	ops->walk(sch, &walker);
	return walker.count == 1;
}

/* A qdisc of the device, by its handle. */
static struct Qdisc *link_speed_qdisc(const struct net_device *dev, u32 handle)
{
	struct Qdisc *root = rtnl_dereference(dev->qdisc), *sch;

	if (root->handle == handle)
		return root;
	hash_for_each_possible(dev->qdisc_hash, sch, hash, handle) {
		if (sch->handle == handle)
			return sch;
	}
	return NULL;
}

/* Number of qdiscs like this one that together pass all packets of the device; 0 if unknown. */
static unsigned int link_speed_port_of(const struct net_device *dev, const struct Qdisc *sch)
{
	unsigned int queues = 1, depth;

	for (depth = 0; depth < LINK_SPEED_DEPTH; depth++) {
		struct Qdisc *parent;

		if (sch->parent == TC_H_ROOT)
			return sch == rtnl_dereference(dev->qdisc) ? queues : 0;
		parent = link_speed_qdisc(dev, TC_H_MAJ(sch->parent));
		if (!parent || !link_speed_passes_on(parent))
			return 0;
		if (parent->flags & TCQ_F_MQROOT)
			queues = dev->real_num_tx_queues;
		sch = parent;
	}
	return 0;
}

/* The rate that its qdiscs give the device, Mbit/s, 0 for none.  With mq it is the sum, if each
 * queue has a rate.
 */
static u32 link_speed_port_mbit(const struct net_device *dev)
{
	const struct link_speed *link = link_speed_of_dev(dev);
	const struct link_speed_port *port;
	unsigned int n = 0, of = 0;
	u64 rate = 0;

	if (!link)
		return 0;
	list_for_each_entry(port, &link->ports, entry) {
		unsigned int queues = link_speed_port_of(dev, port->sch);

		if (!queues)
			continue;
		of = queues;
		rate += port->rate;
		n++;
	}
	return n == of ? link_speed_mbit_of(rate) : 0;
}

/* --- reading ------------------------------------------------------------------- */

static void link_speed_set_wire(struct link_speed *link, struct link_speed *wire)
{
	struct link_speed *old = rtnl_dereference(link->wire);

	if (wire == link)
		wire = NULL;
	if (wire == old)
		return;
	if (wire)
		refcount_inc(&wire->refs);
	rcu_assign_pointer(link->wire, wire);
	if (old)
		link_speed_put(old);
}

/* Read the speed and overhead of the device, and of the devices below it. */
static void link_speed_read(struct link_speed *link)
{
	struct net_device *dev = rtnl_dereference(link->dev), *low, *below;
	u32 rate = 0, speed = 0, extra = 0;
	struct link_speed *wire = link;
	bool shares = true;
	int depth;

	if (!dev)
		return;
	if (link->local)
		return;
	for (low = dev, depth = 0; low && depth < LINK_SPEED_DEPTH; low = below, depth++) {
		below = link_speed_below(low);
		extra += link_speed_adds(low, below);
		speed = speed ?: link_speed_ethtool(low);
		/* A device with a rate of its own uses that share of the devices below it. */
		shares = shares && !rate && net_eq(dev_net(low), dev_net(dev));
		if (shares)
			wire = link_speed_of_dev(low) ?: wire;
		rate = rate ?: link_speed_port_mbit(low);
	}
	/* While the link is down, its speed is unknown: keep the last one. */
	if (speed || netif_carrier_ok(dev))
		link->speed = speed;
	WRITE_ONCE(link->extra, extra);
	WRITE_ONCE(link->by_port, !!rate);
	WRITE_ONCE(link->mbit, rate ?: link->speed);
	link_speed_set_wire(link, wire);
}

static struct link_speed *link_speed_next(void)
{
	struct link_speed *link;

	spin_lock(&link_speed_lock);
	link = list_first_entry_or_null(&link_speed_changed, struct link_speed, changed);
	if (link)
		list_del_init(&link->changed);
	spin_unlock(&link_speed_lock);
	return link;
}

static void link_speed_work(struct work_struct *work)
{
	struct link_speed *link;

	while ((link = link_speed_next())) {
		rtnl_lock();
		link_speed_read(link);
		rtnl_unlock();
		link_speed_put(link);
	}
}

/* Schedule the reading of a link. */
static void link_speed_touch(struct link_speed *link)
{
	if (!link)
		return;
	spin_lock(&link_speed_lock);
	if (list_empty(&link->changed)) {
		refcount_inc(&link->refs);
		list_add_tail(&link->changed, &link_speed_changed);
	}
	spin_unlock(&link_speed_lock);
	schedule_work(&link_speed_reader);
}

static int link_speed_touch_upper(struct net_device *upper, struct netdev_nested_priv *priv)
{
	link_speed_touch(link_speed_of_dev(upper));
	return 0;
}

/* Schedule the reading of the links of a device and of the devices above it. */
static void link_speed_touch_dev(struct net_device *dev)
{
	struct netdev_nested_priv priv = {};

	ASSERT_RTNL();
	link_speed_touch(link_speed_of_dev(dev));
	rcu_read_lock();
	netdev_walk_all_upper_dev_rcu(dev, link_speed_touch_upper, &priv);
	rcu_read_unlock();
}

/* --- events of devices ----------------------------------------------------------- */

/* Without memory, sockets use the namespace's @none instead. */
static void link_speed_add(struct net_device *dev)
{
	struct link_speed *link = link_speed_new(dev);
	struct link_speed_net *ln = link_speed_net(dev_net(dev));

	if (link && xa_err(xa_store(&ln->links, dev->ifindex, link, GFP_KERNEL)))
		link_speed_put(link);
}

static void link_speed_remove(struct net_device *dev)
{
	struct link_speed *link = xa_erase(&link_speed_net(dev_net(dev))->links, dev->ifindex);

	if (!link)
		return;
	RCU_INIT_POINTER(link->dev, NULL);
	link_speed_set_wire(link, NULL);
	link_speed_put(link);
}

static int link_speed_event(struct notifier_block *nb, unsigned long event, void *ptr)
{
	struct net_device *dev = netdev_notifier_info_to_dev(ptr);

	switch (event) {
	case NETDEV_REGISTER:
		link_speed_add(dev);
		link_speed_touch_dev(dev);
		break;
	case NETDEV_UNREGISTER:
		link_speed_remove(dev);
		break;
	case NETDEV_CHANGEUPPER: {
		const struct netdev_notifier_changeupper_info *info = ptr;

		/* After a removal it is no longer above the device. */
		link_speed_touch_dev(info->upper_dev);
		link_speed_touch_dev(dev);
		break;
	}
	case NETDEV_UP:
	case NETDEV_CHANGE:
	case NETDEV_CHANGELOWERSTATE:
	case NETDEV_BONDING_FAILOVER:
		link_speed_touch_dev(dev);
		break;
	}
	return NOTIFY_DONE;
}

static struct notifier_block link_speed_notifier = {
	.notifier_call	= link_speed_event,
};

/* --- qdiscs ----------------------------------------------------------------------- */

/**
 * link_speed_port_set() - a qdisc limits its rate
 * @port: the qdisc's, zeroed before the first call
 * @sch: the qdisc
 * @rate: bytes/s; 0 for no limit
 *
 * If all packets of the device pass the qdisc, this becomes the link's speed.  RTNL.
 */
void link_speed_port_set(struct link_speed_port *port, const struct Qdisc *sch, u64 rate)
{
	struct net_device *dev = qdisc_dev(sch);

	ASSERT_RTNL();
	if (!rate) {
		link_speed_port_clear(port);
		return;
	}
	if (!port->link) {
		port->link = link_speed_of_dev(dev);
		if (!port->link)
			return;
		refcount_inc(&port->link->refs);
		list_add_tail(&port->entry, &port->link->ports);
	}
	port->sch = sch;
	port->rate = rate;
	link_speed_touch_dev(dev);
}
EXPORT_SYMBOL_GPL(link_speed_port_set);

/**
 * link_speed_port_clear() - withdraw the rate of link_speed_port_set()
 * @port: the qdisc's
 *
 * RTNL.
 */
void link_speed_port_clear(struct link_speed_port *port)
{
	ASSERT_RTNL();
	if (!port->link)
		return;
	list_del(&port->entry);
	link_speed_touch_dev(qdisc_dev(port->sch));
	link_speed_put(port->link);
	port->link = NULL;
}
EXPORT_SYMBOL_GPL(link_speed_port_clear);

/* --- /proc/net/link_speed ----------------------------------------------------------- */

static const char *link_speed_source(const struct link_speed *link)
{
	if (link->local)
		return "local";
	if (!READ_ONCE(link->mbit))
		return "unknown";
	return READ_ONCE(link->by_port) ? "port" : "device";
}

/* One row for each device: ifindex, speed in Mbit/s, source of the speed, overhead in bytes,
 * ifindex of the device whose time its packets take, number of times that the speed was needed and
 * not known, name.
 */
static int link_speed_show(struct seq_file *seq, void *v)
{
	struct link_speed_net *ln = link_speed_net(seq_file_single_net(seq));
	struct link_speed *link;
	unsigned long index;

	rcu_read_lock();
	xa_for_each(&ln->links, index, link) {
		const struct net_device *dev = rcu_dereference(link->dev);
		const struct net_device *wire = rcu_dereference(link_speed_wire(link)->dev);

		if (dev)
			seq_printf(seq, "%lu %u %s %u %d %d %s\n", index,
				   READ_ONCE(link->mbit) ?: LINK_SPEED_MBIT,
				   link_speed_source(link), READ_ONCE(link->extra),
				   wire ? wire->ifindex : 0, atomic_read(&link->guesses),
				   dev->name);
	}
	rcu_read_unlock();
	return 0;
}

static int __net_init link_speed_net_init(struct net *net)
{
	struct link_speed_net *ln = link_speed_net(net);

	xa_init(&ln->links);
	ln->none = link_speed_new(NULL);
	if (!ln->none)
		return -ENOMEM;
	if (!proc_create_net_single("link_speed", 0444, net->proc_net, link_speed_show, NULL)) {
		link_speed_put(ln->none);
		return -ENOMEM;
	}
	return 0;
}

/* The namespace has no devices any more. */
static void __net_exit link_speed_net_exit(struct net *net)
{
	struct link_speed_net *ln = link_speed_net(net);

	remove_proc_entry("link_speed", net->proc_net);
	link_speed_put(ln->none);
	xa_destroy(&ln->links);
}

static struct pernet_operations link_speed_net_ops = {
	.init	= link_speed_net_init,
	.exit	= link_speed_net_exit,
	.id	= &link_speed_net_id,
	.size	= sizeof(struct link_speed_net),
};

static int __init link_speed_module_init(void)
{
	int err;

	err = register_pernet_subsys(&link_speed_net_ops);
	if (err)
		return err;
	/* The notifier is called for each device that is registered. */
	err = register_netdevice_notifier(&link_speed_notifier);
	if (err) {
		unregister_pernet_subsys(&link_speed_net_ops);
		return err;
	}
	/* A transport that loads this module must find the speeds. */
	flush_work(&link_speed_reader);
	return 0;
}

static void __exit link_speed_module_exit(void)
{
	struct link_speed *link;

	/* The notifier is called for each device, as if it were unregistered. */
	unregister_netdevice_notifier(&link_speed_notifier);
	cancel_work_sync(&link_speed_reader);
	while ((link = link_speed_next()))
		link_speed_put(link);
	unregister_pernet_subsys(&link_speed_net_ops);
}

module_init(link_speed_module_init);
module_exit(link_speed_module_exit);

MODULE_DESCRIPTION("Speed and overhead of a socket's link");
MODULE_LICENSE("GPL");
MODULE_VERSION(GL_VERSION);
