// SPDX-License-Identifier: GPL-2.0-only
/* `int`: the port writes its utilisation into passing packets; see color_int.h. */

#include <linux/ip.h>
#include <linux/ipv6.h>
#include <linux/math64.h>
#include <linux/minmax.h>
#include <linux/skbuff.h>
#include <linux/swab.h>
#include <linux/tcp.h>
#include <linux/time64.h>
#include <net/checksum.h>
#include <net/gl_int.h>
#include <net/gl_option.h>
#include <net/ip.h>
#include <net/tcp.h>

#include "color_config.h"
#include "color_int.h"
#include "color_ip.h"

/**
 * color_int_set() - apply a configuration
 * @t: the state
 * @cfg: the configuration
 */
void color_int_set(struct color_int *t, const struct color_config *cfg)
{
	if (!cfg->int_rtt)
		return;
	t->rtt = cfg->int_rtt;
	t->inv = div_u64(U32_MAX, t->rtt);
	t->bdp = max_t(u64, 1, mul_u64_u32_div(cfg->rate, t->rtt, NSEC_PER_SEC));
}

/**
 * color_int_sent() - account a packet whose transmission starts
 * @t: the state
 * @now: start of the transmission, ns; not before the last one, unless the rate has changed
 * @len: bytes of the packet on the link
 */
void color_int_sent(struct color_int *t, u64 now, u64 len)
{
	u64 dt = now > t->last ? now - t->last : 0;

	t->last = now;
	if (dt >= t->rtt)
		t->sent = 0;
	else
		t->sent -= mul_u64_u32_shr(t->sent, dt * t->inv, 32);
	t->sent += len;
}

/**
 * color_int_utilisation() - utilisation of the port
 * @t: the state
 * @queued: bytes in the port's queues
 *
 * Return: the utilisation, in units of 2^-GL_INT_SHIFT, at most GL_INT_MAX.
 */
u32 color_int_utilisation(const struct color_int *t, u64 queued)
{
	return min_t(u64, div64_u64((queued + t->sent) << GL_INT_SHIFT, t->bdp), GL_INT_MAX);
}

/* Find the utilisation field in a complete TCP header.  NULL if the sender did not request the
 * utilisation, or if the header may not be changed.
 */
static u8 *color_int_field(struct tcphdr *th)
{
	const u8 *opt = gl_option_find(th, NULL);

	/* TCP-AO signs the options. */
	if (!opt || !(opt[GL_INT_OFFSET] & (GL_INT_COLLECT >> 8)) ||
	    gl_option_next(th, GL_TCPOPT_AO, NULL))
		return NULL;
	return (u8 *)opt + GL_INT_OFFSET;
}

/**
 * color_int_stamp() - write the utilisation into a packet whose sender has requested it
 * @t: the state
 * @skb: the packet
 * @h: its IP header, pulled
 * @queued: bytes in the port's queues
 *
 * The port changes the packet only if its utilisation is above the one in the packet.  TCP's
 * checksum stays correct: CHECKSUM_PARTIAL does not cover the field yet, and CHECKSUM_COMPLETE, a
 * sum over the whole packet, is the same after field and checksum have changed.  The segments of a
 * GSO packet get copies of the option.
 *
 * Return: true if the packet was changed.
 */
bool color_int_stamp(const struct color_int *t, struct sk_buff *skb, const void *h, u64 queued)
{
	unsigned int at = color_ip_tcp(h), len;
	__be16 from, to;
	u64 told;
	struct tcphdr *th;
	u8 *field;

	if (!at)
		return false;
	at += (const u8 *)h - skb->data;
	if (!pskb_may_pull(skb, at + sizeof(*th)))
		return false;
	th = (struct tcphdr *)(skb->data + at);
	len = th->doff * 4;
	if (len < sizeof(*th) + GL_OPT_LEN(0) || th->syn || !pskb_may_pull(skb, at + len))
		return false;
	th = (struct tcphdr *)(skb->data + at);
	field = color_int_field(th);
	if (!field)
		return false;
	/* Most packets do not need the division. */
	told = get_unaligned_be16(field) & GL_INT_MAX;
	if (told == GL_INT_MAX || (queued + t->sent) << GL_INT_SHIFT < (told + 1) * t->bdp)
		return false;

	len = field - (u8 *)th;
	if (skb_ensure_writable(skb, at + len + sizeof(from)))
		return false;
	th = (struct tcphdr *)(skb->data + at);
	field = (u8 *)th + len;
	from = get_unaligned((__be16 *)field);
	put_unaligned_be16(GL_INT_COLLECT | color_int_utilisation(t, queued), field);
	to = get_unaligned((__be16 *)field);
	/* Behind one NOP the field has an odd offset: its bytes are in two words of the sum. */
	if (len & 1) {
		from = (__force __be16)swab16((__force u16)from);
		to = (__force __be16)swab16((__force u16)to);
	}
	inet_proto_csum_replace2(&th->check, skb, from, to, false);
	return true;
}
