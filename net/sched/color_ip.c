// SPDX-License-Identifier: GPL-2.0-only
/* The IP header of packets in any form; see color_ip.h. */

#include <linux/if_vlan.h>
#include <net/inet_ecn.h>
#include <net/ip.h>

#include "color_ip.h"

#define COLOR_MAX_VLANS	8	/* tags in a payload, VLAN_MAX_DEPTH */

/**
 * color_ip_hdr() - the IP header of a packet, pulled
 * @skb: the packet
 *
 * The network header of a packet with VLAN tags in its payload is at the first tag or behind the
 * last, depending on the packet's path through this host, so walk the tags.
 *
 * Return: the header, whose version agrees with the protocol; NULL if it is not an IP packet.
 */
void *color_ip_hdr(struct sk_buff *skb)
{
	int depth, off = skb_network_offset(skb);
	__be16 proto = skb->protocol;
	struct ipv6hdr *ip6h;
	struct iphdr *iph;

	if (eth_type_vlan(proto))
		off = ETH_HLEN;
	for (depth = 0; eth_type_vlan(proto); depth++) {
		const struct vlan_hdr *vh;
		struct vlan_hdr _vh;

		vh = skb_header_pointer(skb, off, sizeof(_vh), &_vh);
		if (!vh || depth == COLOR_MAX_VLANS)
			return NULL;
		proto = vh->h_vlan_encapsulated_proto;
		off += VLAN_HLEN;
	}
	if (off < 0)
		return NULL;

	switch (proto) {
	case htons(ETH_P_IP):
		if (!pskb_may_pull(skb, off + sizeof(*iph)))
			return NULL;
		iph = (struct iphdr *)(skb->data + off);
		return iph->version == 4 ? iph : NULL;
	case htons(ETH_P_IPV6):
		if (!pskb_may_pull(skb, off + sizeof(*ip6h)))
			return NULL;
		ip6h = (struct ipv6hdr *)(skb->data + off);
		return ip6h->version == 6 ? ip6h : NULL;
	}
	return NULL;
}

/**
 * color_ip_tcp() - where the TCP header of an IP packet begins
 * @h: its IP header, pulled
 *
 * Return: bytes from @h on; 0 if it is a fragment, has IPv6 extension headers, or is not TCP.
 */
unsigned int color_ip_tcp(const void *h)
{
	const struct ipv6hdr *ip6h = h;
	const struct iphdr *iph = h;

	if (iph->version == 6)
		return ip6h->nexthdr == IPPROTO_TCP ? sizeof(*ip6h) : 0;
	if (iph->protocol != IPPROTO_TCP || ip_is_fragment(iph) || iph->ihl < 5)
		return 0;
	return iph->ihl * 4;
}

/**
 * color_dsfield() - TOS byte or traffic class of any packet
 * @skb: the packet; the header may be behind VLAN tags, or not in the linear part yet
 *
 * Return: the byte, or -1 if it is not an IP packet.
 */
int color_dsfield(struct sk_buff *skb)
{
	int ds = color_dsfield_straight(skb);
	void *h;

	if (ds >= 0)
		return ds;
	h = color_ip_hdr(skb);
	if (!h)
		return -1;
	return ((struct iphdr *)h)->version == 4 ? ipv4_get_dsfield(h) :
						   ipv6_get_dsfield(h);
}

/**
 * color_set_ce() - mark a packet
 * @skb: the packet; other ports may have clones of it, which stay unmarked
 *
 * Return: true if it is ECN-capable and had no CE yet.
 */
bool color_set_ce(struct sk_buff *skb)
{
	u8 *h = color_ip_hdr(skb);
	unsigned int at, size;
	bool four;
	u8 ds;

	if (!h)
		return false;
	four = ((struct iphdr *)h)->version == 4;
	ds = four ? ipv4_get_dsfield((struct iphdr *)h) : ipv6_get_dsfield((struct ipv6hdr *)h);
	if (INET_ECN_is_not_ect(ds) || INET_ECN_is_ce(ds))
		return false;
	at = h - skb->data;
	size = four ? sizeof(struct iphdr) : sizeof(struct ipv6hdr);
	if (skb_ensure_writable(skb, at + size))
		return false;
	h = skb->data + at;
	return four ? IP_ECN_set_ce((struct iphdr *)h) : IP6_ECN_set_ce(skb, (struct ipv6hdr *)h);
}
