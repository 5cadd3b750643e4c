// SPDX-License-Identifier: GPL-2.0
/* net.ipv4.greenlane_protect: keep applications from sending packets that switches drop last.
 *
 * A switch port trusts the DSCP.  An application could set a protected DSCP (IP_TOS) and take
 * the buffer that is meant for important packets.  If the administrator switches this on, it clears
 * such a DSCP in packets of local sockets, unless their owner has CAP_NET_ADMIN and could send any
 * packet anyway.
 *
 * It is off by default, because the same DSCPs may have another meaning on this site.  It never
 * changes forwarded packets, nor packets of the kernel's own sockets (tunnels, ICMP, RSTs).
 */
#include <linux/capability.h>
#include <linux/fs.h>
#include <net/inet_ecn.h>

#include "gl_internal.h"

/* Number of namespaces with greenlane_protect: the hook reads a namespace's setting only if it is
 * not 0.  No static key: any user may write the sysctl in a user namespace, and patching the
 * kernel's code would interrupt all processors each time.
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

/* May the socket's owner send protected DSCPs?  The socket's file has the credentials of the
 * process that opened or accepted it.  An application's socket without a file was closed with data
 * left to send: its owner is no longer known.
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
 * @sk: the socket or request that sends a packet no transport has marked; NULL for an unknown
 *	socket of an application
 * @dsfield: the packet's DS field
 *
 * Return: the DS field to send.  Its ECN bits are @dsfield's.
 */
u8 gl_strip(const struct net *net, struct sock *sk, u8 dsfield)
{
	if (!gl_codepoint_protected(gl_codepoint(net, dsfield)))
		return dsfield;
	/* A SYN-ACK has the DSCP that the listener's owner has set. */
	if (sk && sk->sk_state == TCP_NEW_SYN_RECV)
		sk = inet_reqsk(sk)->rsk_listener;
	if (sk && (!sk_fullsock(sk) || gl_may_mark(sk)))
		return dsfield;
	gl_inc_stats(net, GL_MIB_STRIPPED);
	return dsfield & INET_ECN_MASK;
}
