// SPDX-License-Identifier: GPL-2.0
/* GREENLANE_*: see include/uapi/linux/greenlane.h. */
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
	info->echoes_sent = gs->echoes_sent;
	gl_transport(sk)->on_info(gs, info);
}

/* Return: -ENOPROTOOPT if the socket does not run a transport; -ENOTCONN for a listener or a socket
 * that is not connected, which has no state yet; else 0.
 */
static int gl_sockopt_check(const struct sock *sk)
{
	if (!sk_is_tcp(sk) || !gl_is_ours(sk))
		return -ENOPROTOOPT;
	if ((1 << sk->sk_state) & (TCPF_LISTEN | TCPF_CLOSE | TCPF_SYN_SENT))
		return -ENOTCONN;
	return 0;
}

/* --- GREENLANE_TLT ----------------------------------------------------------- */

static int gl_get_marking(const struct sock *sk, struct gl_sock *gs)
{
	return gs && !gs->off;
}

static int gl_set_marking(struct sock *sk, struct gl_sock *gs, int on)
{
	bool was;

	if (!gs || gl_transport(sk)->always)
		return on == !!gs ? 0 : -EOPNOTSUPP;
	was = gl_marking(gs);
	gs->off = !on;
	if (gl_marking(gs) != was)
		gl_transport(sk)->on_switch(sk, gs, !was);
	return 0;
}

static const struct gl_sockopt gl_marking_sockopt = {
	.option	= GREENLANE_TLT,
	.max	= 1,
	.set	= gl_set_marking,
	.get	= gl_get_marking,
};

/* The entry of an option in the table of the layer or of the socket's transport, or NULL. */
static const struct gl_sockopt *gl_sockopt_find(const struct sock *sk, const struct gl_sock *gs,
						int option)
{
	const struct gl_sockopt *so;

	if (option == gl_marking_sockopt.option)
		return &gl_marking_sockopt;
	for (so = gs ? gl_transport(sk)->sockopt : NULL; so && so->option; so++)
		if (so->option == option)
			return so;
	return NULL;
}

/* --- get ----------------------------------------------------------------------- */

static int gl_get_int(const struct sock *sk, struct gl_sock *gs, int option, int *value)
{
	const struct gl_sockopt *so = gl_sockopt_find(sk, gs, option);

	if (!so)
		return -EOPNOTSUPP;
	*value = so->get(sk, gs);
	return min(*value, 0);
}

static int gl_getsockopt(struct sock *sk, int option, void __user *user, int *len)
{
	struct greenlane_info info;
	const void *from = &info;
	size_t size = sizeof(info);
	int err, value;

	lock_sock(sk);
	err = gl_sockopt_check(sk);
	if (!err && option == GREENLANE_INFO) {
		gl_info_fill(sk, gl_sock_locked(sk), &info);
	} else if (!err) {
		err = gl_get_int(sk, gl_sock_locked(sk), option, &value);
		from = &value;
		size = sizeof(value);
	}
	release_sock(sk);
	if (err)
		return err;
	/* The struct may grow; an older program gets the part that fits into its buffer. */
	if (*len < 0 || (option != GREENLANE_INFO && *len < sizeof(value)))
		return -EINVAL;
	size = min_t(size_t, size, *len);
	if (copy_to_user(user, from, size))
		return -EFAULT;
	*len = size;
	return 0;
}

/* --- set ----------------------------------------------------------------------- */

static int gl_set_int(struct sock *sk, struct gl_sock *gs, const struct gl_sockopt *so,
		      sockptr_t arg, unsigned int len)
{
	int value;

	if (len < sizeof(value))
		return -EINVAL;
	if (copy_from_sockptr(&value, arg, sizeof(value)))
		return -EFAULT;
	if (value < 0 || value > so->max)
		return -EINVAL;
	return so->set(sk, gs, value);
}

static int gl_set_list(struct sock *sk, struct gl_sock *gs, const struct gl_sockopt *so,
		       sockptr_t arg, unsigned int len)
{
	void *list = NULL;
	int err;

	if (len % so->unit || len > so->max * so->unit)
		return -EINVAL;
	if (len) {
		list = memdup_sockptr(arg, len);
		if (IS_ERR(list))
			return PTR_ERR(list);
	}
	err = so->set_list(sk, gs, list, len / so->unit);
	kfree(list);
	return err;
}

static int gl_setsockopt(struct sock *sk, int option, sockptr_t arg,
			 unsigned int len)
{
	const struct gl_sockopt *so;
	struct gl_sock *gs;
	int err;

	lock_sock(sk);
	err = gl_sockopt_check(sk);
	if (!err) {
		gs = gl_sock_locked(sk);
		so = gl_sockopt_find(sk, gs, option);
		if (!so)
			err = -EOPNOTSUPP;
		else if (so->unit)
			err = gl_set_list(sk, gs, so, arg, len);
		else
			err = gl_set_int(sk, gs, so, arg, len);
	}
	release_sock(sk);
	return err;
}

#define GL_SOCKOPT(family) {				\
	.pf		= family,			\
	.set_optmin	= GREENLANE_TLT,		\
	.set_optmax	= GREENLANE_SO_MAX + 1,		\
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
