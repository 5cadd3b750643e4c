// SPDX-License-Identifier: GPL-2.0
/* loadgen/play on a machine of its own: it samples no switch, and needs no libmnl. */
#include "loadgen.h"

void queues_add(const char *ns)
{
	die("switch %s: this program samples no queues", ns);
}

void queues_look(uint64_t times)
{
	(void)times;
}

void queues_print(void)
{
}
