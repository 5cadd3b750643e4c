/* SPDX-License-Identifier: GPL-2.0-only */
/* What sch_color.ko has for a parent that calls it directly. */
#ifndef _COLOR_H
#define _COLOR_H

struct Qdisc;
struct sk_buff;

int color_enqueue(struct sk_buff *skb, struct Qdisc *sch, struct sk_buff **to_free);
struct sk_buff *color_dequeue(struct Qdisc *sch);

#endif /* _COLOR_H */
