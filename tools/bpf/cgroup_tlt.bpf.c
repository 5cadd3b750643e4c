// SPDX-License-Identifier: GPL-2.0
/* A congestion control for one cgroup: greenlane-cgroup(8) loads this program
 * once for each congestion control, writes its name into .data, and attaches it
 * to cgroups.
 *
 *	socket()  connect()  SYN  ------>  SYN  accept()  listen()  socket()
 *	             ^                                       ^
 *	         CONNECT_CB                              LISTEN_CB
 *
 * Both run before TLT announces itself in the handshake: before TCP builds the
 * SYN, and before a listener can answer one.  A child has its listener's
 * congestion control.
 */
#include <linux/bpf.h>

#define SEC(name)	__attribute__((section(name), used))

/* libbpf's header has a pointer, which bpf-gcc keeps in a register, and then
 * does not know any more that it is a helper.
 */
#ifdef __clang__
#define HELPER(name, ...)						\
	static long (*const bpf_##name)(__VA_ARGS__) = (void *)BPF_FUNC_##name
#else
#define HELPER(name, ...)						\
	long bpf_##name(__VA_ARGS__) __attribute__((kernel_helper(BPF_FUNC_##name)))
#endif
HELPER(setsockopt, void *ctx, int level, int name, void *val, int len);
HELPER(getsockopt, void *ctx, int level, int name, void *val, int len);

#define SOL_TCP		6
#define TCP_CONGESTION	13
#define CA_NAME_MAX	16

/**
 * struct wanted - configuration, which greenlane-cgroup writes once, before it attaches
 * @name: of the congestion control: tlt_*
 * @ecn: 1 if it needs ECN
 */
struct wanted {
	char name[CA_NAME_MAX];
	__u32 ecn;
};

/* Initialised, or it would be in .bss, and there is one map for each section. */
struct wanted wanted SEC(".data") = { .name = "reno" };

#define set(ops, name) \
	bpf_setsockopt(ops, SOL_TCP, TCP_CONGESTION, name, CA_NAME_MAX)

SEC("sockops")
int greenlane(struct bpf_sock_ops *ops)
{
	char now[CA_NAME_MAX] = "", reno[CA_NAME_MAX] = "reno";

	switch (ops->op) {
	case BPF_SOCK_OPS_NEEDS_ECN:
		/* Another program may want it if we do not. */
		if (wanted.ecn)
			ops->reply = wanted.ecn;
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
		/* TCP initialised the congestion control at CONNECT_CB, before
		 * the peer's abilities (SACK, ECN, TLT) were known.  TCP repeats
		 * that only for another congestion control.
		 */
		bpf_getsockopt(ops, SOL_TCP, TCP_CONGESTION, now, sizeof(now));
		/* tlt_*, aeolus_*: the compiler inlines a comparison of four bytes. */
		if (__builtin_memcmp(now, "tlt_", 4) && __builtin_memcmp(now, "aeol", 4))
			break;
		set(ops, reno);
		set(ops, wanted.name);
		break;
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		set(ops, wanted.name);
		break;
	}
	return 1;
}

char _license[] SEC("license") = "GPL";
