// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.greenlane_protect: keep applications from sending what switches drop last.
 *
 * A switch port trusts the DSCP.  An application could set a protected one (IP_TOS) and take
 * the room that is meant for important packets.  If the administrator switches this on, such a
 * DSCP is cleared from what local sockets send, unless their owner has CAP_NET_ADMIN and could
 * send anything anyway.
 *
 * It is off by default, because the same DSCPs may mean something else on this site.  Forwarded
 * packets and those of the kernel's own sockets (tunnels, ICMP, RSTs) are never touched.
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <net/inet_ecn.h>

#include "gl_internal.h"

/* Namespaces with greenlane_protect, so that the hook looks for a namespace's only if there is
 * one.  No static key: any user may write the sysctl in a user namespace, and patching the kernel's
 * code would interrupt all processors each time.
 */
atomic_t gl_protect_n = ATOMIC_INIT(0);

/**
 * gl_protect_set() - switch greenlane_protect on or off
 * @gn: the namespace's state; the caller is its only writer
 * @protect: 0 or 1
 */
void gl_protect_set(struct gl_net *gn, u8 protect)
{
	atomic_add(protect - gn->protect, &gl_protect_n);
	WRITE_ONCE(gn->protect, protect);
}

/* The file is the one that opened or accepted the socket.  Without one it is an application's
 * socket that was closed, with data left to send: whose it was is not known any more.
 */
static bool gl_may_mark(struct sock *sk)
{
	const struct file *file;
	bool may;

	if (sk->sk_kern_sock)
		return true;
	/* As xt_owner: sock_orphan() takes the lock before it clears sk_socket. */
	read_lock_bh(&sk->sk_callback_lock);
	file = sk->sk_socket ? sk->sk_socket->file : NULL;
	may = file && file_ns_capable(file, sock_net(sk)->user_ns, CAP_NET_ADMIN);
	read_unlock_bh(&sk->sk_callback_lock);
	return may;
}

/**
 * gl_strip() - clear a protected DSCP that the application may not send
 * @net: the namespace
 * @sk: the socket or request that sends a packet no transport has marked; NULL if it is an
 *	application's that is not known
 * @dsfield: the packet's DS field
 *
 * Return: the DS field to send.  Its ECN bits are @dsfield's.
 */
u8 gl_strip(const struct net *net, struct sock *sk, u8 dsfield)
{
	if (!gl_codepoint_protected(gl_codepoint(net, dsfield)))
		return dsfield;
	/* A SYN-ACK has the DSCP that its listener's owner chose. */
	if (sk && sk->sk_state == TCP_NEW_SYN_RECV)
		sk = inet_reqsk(sk)->rsk_listener;
	if (sk && (!sk_fullsock(sk) || gl_may_mark(sk)))
		return dsfield;
	gl_inc_stats(net, GL_MIB_STRIPPED);
	return dsfield & INET_ECN_MASK;
}
