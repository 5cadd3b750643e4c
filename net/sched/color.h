/* SPDX-License-Identifier: GPL-2.0-only */
/* The functions of sch_color.ko that a parent qdisc calls directly. */
#ifndef _COLOR_H
#define _COLOR_H

struct Qdisc;
struct sk_buff;

int color_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *color_dequeue(struct Qdisc *sch);

#endif /* _COLOR_H */
