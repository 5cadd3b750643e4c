// SPDX-License-Identifier: GPL-2.0
/* Own a TCP socket for some time, like a process that sleeps in recvmsg():
 *
 *	echo "FD MILLISECONDS" > /proc/gl_hold
 *
 * Packets that arrive meanwhile enter the socket's backlog, for selftests/tlt_owned.py and
 * xpass_owned.py.
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/proc_fs.h>
#include <linux/uaccess.h>
#include <net/sock.h>

static ssize_t gl_hold_write(struct file *file, const char __user *user,
			     size_t len, loff_t *pos)
{
	unsigned int fd, ms;
	struct socket *sock;
	char text[32];
	int err;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "%u %u", &fd, &ms) != 2 || ms > 5000)
		return -EINVAL;
	sock = sockfd_lookup(fd, &err);
	if (!sock)
		return err;
	lock_sock(sock->sk);
	usleep_range(1000 * ms, 1000 * ms);
	release_sock(sock->sk);
	sockfd_put(sock);
	return len;
}

static const struct proc_ops gl_hold_ops = {
	.proc_write = gl_hold_write,
};

static int __init gl_hold_init(void)
{
	return proc_create("gl_hold", 0200, NULL, &gl_hold_ops) ? 0 : -ENOMEM;
}

static void __exit gl_hold_exit(void)
{
	remove_proc_entry("gl_hold", NULL);
}

module_init(gl_hold_init);
module_exit(gl_hold_exit);

MODULE_DESCRIPTION("own a socket for a while (greenlane's selftests)");
MODULE_LICENSE("GPL");
