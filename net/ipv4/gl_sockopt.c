// SPDX-License-Identifier: GPL-2.0
/* GREENLANE_INFO, GREENLANE_TLT: see include/uapi/linux/greenlane.h. */
#include <linux/netfilter.h>
#include <linux/uaccess.h>

#include <net/gl_compat.h>
#include "gl_internal.h"

static void gl_info_fill(const struct sock *sk, const struct gl_sock *gs,
			 struct greenlane_info *info)
{
	memset(info, 0, sizeof(*info));
	if (!gs) {
		info->flags = GREENLANE_F_UNSUPPORTED;
		info->peer = GREENLANE_PEER_NO;
		return;
	}
	info->peer = gs->peer;
	if (gs->off)
		info->flags |= GREENLANE_F_OFF;
	if (gs->fallback)
		info->flags |= GREENLANE_F_FALLBACK;
	info->echoes_sent = gs->echoes_sent;
	gl_transport(sk)->on_info(gs, info);
}

/* -ENOPROTOOPT unless it is a connection of ours; listeners and sockets that
 * are not connected have no state yet.
 */
static int gl_sockopt_check(const struct sock *sk)
{
	if (!sk_is_tcp(sk) || !gl_is_ours(sk))
		return -ENOPROTOOPT;
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return -ENOTCONN;
	return 0;
}

static int gl_getsockopt(struct sock *sk, int optval, void __user *user, int *len)
{
	struct greenlane_info info;
	const struct gl_sock *gs;
	const void *from;
	size_t size;
	int err, on;

	lock_sock(sk);
	err = gl_sockopt_check(sk);
	gs = err ? NULL : gl_sock(sk);
	if (optval == GREENLANE_TLT) {
		on = gs && !gs->off;
		from = &on;
		size = sizeof(on);
	} else {
		if (!err)
			gl_info_fill(sk, gs, &info);
		from = &info;
		size = sizeof(info);
	}
	release_sock(sk);
	if (err)
		return err;
	/* A struct may grow: an older program gets as much as it knows. */
	if (*len < 0 || (optval == GREENLANE_TLT && *len < sizeof(on)))
		return -EINVAL;
	size = min_t(size_t, size, *len);
	if (copy_to_user(user, from, size))
		return -EFAULT;
	*len = size;
	return 0;
}

static int gl_setsockopt(struct sock *sk, int optval, sockptr_t arg,
			 unsigned int len)
{
	struct gl_sock *gs;
	int err, on;
	bool was;

	if (optval != GREENLANE_TLT)
		return -ENOPROTOOPT;
	if (len < sizeof(on))
		return -EINVAL;
	if (copy_from_sockptr(&on, arg, sizeof(on)))
		return -EFAULT;
	if (on != 0 && on != 1)
		return -EINVAL;

	lock_sock(sk);
	err = gl_sockopt_check(sk);
	if (err)
		goto out;
	gs = gl_sock(sk);
	/* Without its codepoints a credit transport would never send. */
	if (!gs || gl_kind_of_credits(gl_transport(sk)->hello)) {
		err = on == !!gs ? 0 : -EOPNOTSUPP;
		goto out;
	}
	was = gl_marking(gs);
	gs->off = !on;
	if (gl_marking(gs) != was)
		gl_transport(sk)->on_switch(sk, gs, !was);
out:
	release_sock(sk);
	return err;
}

#define GL_SOCKOPT(family) {				\
	.pf		= family,			\
	.set_optmin	= GREENLANE_TLT,		\
	.set_optmax	= GREENLANE_TLT + 1,		\
	.set		= gl_setsockopt,		\
	.get_optmin	= GREENLANE_SO_BASE,		\
	.get_optmax	= GREENLANE_SO_MAX + 1,		\
	.get		= gl_getsockopt,		\
	.owner		= THIS_MODULE,			\
}

static struct nf_sockopt_ops gl_sockopts[] = {
	GL_SOCKOPT(PF_INET),
	GL_SOCKOPT(PF_INET6),
};

int gl_sockopt_init(void)
{
	int err;

	err = nf_register_sockopt(&gl_sockopts[0]);
	if (err)
		return err;
	err = nf_register_sockopt(&gl_sockopts[1]);
	if (err)
		nf_unregister_sockopt(&gl_sockopts[0]);
	return err;
}

void gl_sockopt_exit(void)
{
	nf_unregister_sockopt(&gl_sockopts[1]);
	nf_unregister_sockopt(&gl_sockopts[0]);
}
