/* SPDX-License-Identifier: GPL-2.0-only */
/* The IP header of a packet in a port: where it is, and the bits of it that a switch looks at. */
#ifndef _COLOR_IP_H
#define _COLOR_IP_H

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/skbuff.h>
#include <net/dsfield.h>

void *color_ip_hdr(struct sk_buff *skb);
unsigned int color_ip_tcp(const void *h);
int color_dsfield(struct sk_buff *skb);
bool color_set_ce(struct sk_buff *skb);

/**
 * color_dsfield_straight() - TOS byte or traffic class of a packet in the usual form
 * @skb: the packet
 *
 * The common case needs no more of the skb than the cache line that knows the headers.  A header
 * is taken for IP if its version and the protocol agree.
 *
 * Return: the byte, or -1 if the IP header is not where it should be.
 */
static __always_inline int color_dsfield_straight(const struct sk_buff *skb)
{
	void *h = skb_network_header(skb);
	u8 *end = skb_tail_pointer(skb);

	if (likely(skb->protocol == htons(ETH_P_IP) &&
		   h + sizeof(struct iphdr) <= (void *)end)) {
		/* version and header length, TOS */
		unsigned int word = be16_to_cpup(h);

		return likely(word >> 12 == 4) ? word & 0xff : -1;
	}
	if (skb->protocol == htons(ETH_P_IPV6) &&
	    h + sizeof(struct ipv6hdr) <= (void *)end &&
	    ((struct ipv6hdr *)h)->version == 6)
		return ipv6_get_dsfield(h);
	return -1;
}

#endif /* _COLOR_IP_H */
