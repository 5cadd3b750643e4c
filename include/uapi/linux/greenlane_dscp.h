/* SPDX-License-Identifier: GPL-2.0 WITH Linux-syscall-note */
/* The codepoint table: the classes of packets that switches distinguish, and their DSCPs.
 *
 * Every user of a codepoint takes it from here: the tagging layer (gl_codepoint.h), the
 * switch port's default map (color_map.c), tc's presets, and the tests.  The table has one row for
 * each class of packets that a switch treats differently, and no more.  The meaning of a packet for
 * the other end is in its TCP option.
 *
 *	GREENLANE_CODEPOINT(SYMBOL, name, DSCP, COLOUR)
 *
 * @name is the suffix of net.ipv4.greenlane_dscp_*, @COLOUR the colour in sch_color's default map.
 *
 * CS1 (8) and AF11 (10) are from the TLT authors' user-space stack.  The others are from the pool
 * that is for local use until IANA needs it (pool 3 of RFC 2474, xxxx01), because applications use
 * the remaining AF classes (AF41 for video conferences).  1 and 45 of that pool have been assigned
 * since (LE, NQB).  The sixteen DSCPs of pool 2 (xxxx11) mark packets that may be deflected: see
 * gl_deflect.h.
 */
#ifndef _UAPI_LINUX_GREENLANE_DSCP_H
#define _UAPI_LINUX_GREENLANE_DSCP_H

#define GREENLANE_CODEPOINTS							\
	/* data that is dropped first (TLT) */					\
	GREENLANE_CODEPOINT(DROPPABLE, "droppable", 8, RED)			\
	/* these keep the ACK clock alive: important data, packets without data */	\
	GREENLANE_CODEPOINT(PROTECTED, "protected", 10, GREEN)			\
	/* important data that ends a message (TLT around Dart) */		\
	GREENLANE_CODEPOINT(PROTECTED_END, "protected_end", 49, GREEN)		\
	/* a credit transport's data that had a credit, and its packets without data */	\
	GREENLANE_CODEPOINT(SCHEDULED, "scheduled", 25, GREEN)			\
	/* its data that had none (Aeolus) */					\
	GREENLANE_CODEPOINT(UNSCHEDULED, "unscheduled", 29, RED)		\
	/* the same, less urgent (Homa) */					\
	GREENLANE_CODEPOINT(UNSCHEDULED_2, "unscheduled_2", 5, RED)		\
	GREENLANE_CODEPOINT(UNSCHEDULED_3, "unscheduled_3", 9, RED)		\
	/* data that had a credit, less urgent, the last the least (Homa) */	\
	GREENLANE_CODEPOINT(SCHEDULED_2, "scheduled_2", 13, GREEN)		\
	GREENLANE_CODEPOINT(SCHEDULED_3, "scheduled_3", 17, GREEN)		\
	GREENLANE_CODEPOINT(SCHEDULED_4, "scheduled_4", 21, GREEN)		\
	/* a credit, which switches limit to a rate (ExpressPass) */		\
	GREENLANE_CODEPOINT(CREDIT, "credit", 33, GREEN)			\
	/* the headers of a packet whose data a switch has cut off (NDP) */	\
	GREENLANE_CODEPOINT(TRIMMED, "trimmed", 61, GREEN)			\
	/* data of a message, and its last packet (Dart) */			\
	GREENLANE_CODEPOINT(MESSAGE, "message", 37, YELLOW)			\
	GREENLANE_CODEPOINT(MESSAGE_END, "message_end", 41, YELLOW)		\
	/* the same of a short message, after its last permissible deflection */	\
	GREENLANE_CODEPOINT(SPENT, "spent", 53, YELLOW)				\
	GREENLANE_CODEPOINT(SPENT_END, "spent_end", 57, YELLOW)

/* GREENLANE_DSCP_DROPPABLE ... */
enum {
#define GREENLANE_CODEPOINT(symbol, name, dscp, colour)	GREENLANE_DSCP_##symbol = dscp,
	GREENLANE_CODEPOINTS
#undef GREENLANE_CODEPOINT
};

#endif /* _UAPI_LINUX_GREENLANE_DSCP_H */
