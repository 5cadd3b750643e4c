/* SPDX-License-Identifier: GPL-2.0 */
/*
 * The clock and the report of the benchmark modules.
 *
 * Cycles, not nanoseconds: the guest's time may be virtual, rdtsc is real.
 */
#ifndef _BENCH_TURNS_H
#define _BENCH_TURNS_H

#include <linux/printk.h>
#include <linux/sort.h>
#include <linux/types.h>

#define TURNS		41

static inline u64 tsc(void)
{
	u32 low, high;

	asm volatile("lfence; rdtsc" : "=a"(low), "=d"(high) : : "memory");
	return (u64)high << 32 | low;
}

static inline int by_size(const void *a, const void *b)
{
	u64 x = *(const u64 *)a, y = *(const u64 *)b;

	return x < y ? -1 : x > y;
}

/* Log the cycles of a packet in the fastest and in the median repetition, each of @packets. */
static inline void report(const char *module, const char *what, u64 cycles[TURNS], u64 packets)
{
	sort(cycles, TURNS, sizeof(u64), by_size, NULL);
	pr_info("%s: %s best %llu median %llu millicycles\n", module, what,
		cycles[0] * 1000 / packets, cycles[TURNS / 2] * 1000 / packets);
}

#endif /* _BENCH_TURNS_H */
