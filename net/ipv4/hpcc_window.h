/* SPDX-License-Identifier: GPL-2.0 */
/* HPCC's window: arithmetic without a socket; see hpcc_window.c. */
#ifndef _HPCC_WINDOW_H
#define _HPCC_WINDOW_H

#include <linux/types.h>

/* A window is in units of 2^-8 bytes: additive increases are smaller than a byte where many flows
 * share a link.  The largest, four BDPs of 1.6 Tbit/s and 1 s, has 50 bits.
 */
#define HPCC_SHIFT	8

/* Utilisations are in units of 2^-20; those of a packet in 2^-10 (GL_INT_SHIFT). */
#define HPCC_ONE_SHIFT	20

/* The maximum window in BDPs of the sender's own link; in the paper a switch that is not full
 * permits any window.  TCP may have measured the base RTT with packets shorter than data, so one
 * BDP would limit a sender below its line rate.
 */
#define HPCC_WINDOWS	4
/* The minimum window is the BDP divided by this: the share of more flows than any port has. */
#define HPCC_SHARES	4096

/* The longest base RTT, ns. */
#define HPCC_RTT_MAX	1000000000U

/**
 * struct hpcc_params - parameters, the same for all connections of a path
 * @init: Winit, the bandwidth-delay product of the sender's link, 2^-8 bytes
 * @ai: additive increase W_AI, 2^-8 bytes
 * @rtt: base RTT T, ns; 1 … HPCC_RTT_MAX
 * @eta: target utilisation, 2^-20
 * @stages: round trips of additive increase before a multiplicative one, maxStage
 * @average: the sender averages the utilisation over T
 */
struct hpcc_params {
	u64 init;
	u64 ai;
	u32 rtt;
	u32 eta;
	u16 stages;
	bool average;
};

/**
 * struct hpcc_window - the state of a sender
 * @now: W, the present window, 2^-8 bytes
 * @base: Wc, the window at the last update, from which @now is computed; 2^-8 bytes
 * @at: time of the last sample, ns
 * @util: U, the utilisation, 2^-20
 * @stage: incStage, updates with additive increase since the last multiplicative one
 * @begun: there was a sample
 */
struct hpcc_window {
	u64 now;
	u64 base;
	u64 at;
	u32 util;
	u16 stage;
	bool begun;
};

void hpcc_params_set(struct hpcc_params *p, u32 mbit, u32 rtt_us, u32 percent, u32 flows);
void hpcc_window_init(struct hpcc_window *w, const struct hpcc_params *p);
void hpcc_window_set(struct hpcc_window *w, const struct hpcc_params *p, u32 packets, u32 packet);
void hpcc_window_fit(struct hpcc_window *w, const struct hpcc_params *p);
void hpcc_window_sample(struct hpcc_window *w, const struct hpcc_params *p, u32 util, u64 now,
			bool update);
void hpcc_window_timeout(struct hpcc_window *w, const struct hpcc_params *p, u32 packet);
u64 hpcc_window_bytes(const struct hpcc_window *w);
u32 hpcc_window_packets(const struct hpcc_window *w, u32 packet);
u64 hpcc_window_rate(const struct hpcc_window *w, const struct hpcc_params *p);

#endif /* _HPCC_WINDOW_H */
