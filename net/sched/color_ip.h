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

/* Does the linear part have @size bytes from the network header on?  Compares offsets, which most
 * kernels store in place of pointers, so the CPU waits for neither address.
 */
static __always_inline bool color_ip_linear(const struct sk_buff *skb, unsigned long size)
{
	return skb->network_header + size <= (unsigned long)(skb_tail_pointer(skb) - skb->head);
}

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
	const u8 *h = skb->head + skb->network_header;

	/* version and header length, TOS */
	if (likely(skb->protocol == htons(ETH_P_IP) && color_ip_linear(skb, sizeof(struct iphdr))))
		return likely((h[0] & 0xf0) == 0x40) ? h[1] : -1;
	if (skb->protocol == htons(ETH_P_IPV6) && color_ip_linear(skb, sizeof(struct ipv6hdr)) &&
	    (h[0] & 0xf0) == 0x60)
		return ipv6_get_dsfield((const struct ipv6hdr *)h);
	return -1;
}

#endif /* _COLOR_IP_H */
