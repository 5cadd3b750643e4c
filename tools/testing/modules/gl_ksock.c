// SPDX-License-Identifier: GPL-2.0
/* A kernel TCP socket that holds no reference on its namespace, like sockets of sunrpc, cifs and
 * rds:
 *
 *	echo "connect ADDRESS PORT" > /proc/gl_ksock	in the writer's namespace, over IPv4
 *	echo "send BYTES" > /proc/gl_ksock
 *	echo release > /proc/gl_ksock
 *
 * connect does not wait.  For selftests/tlt_base.py.
 */
#include <linux/fcntl.h>
#include <linux/in.h>
#include <linux/inet.h>
#include <linux/module.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/proc_fs.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/uaccess.h>
#include <net/sock.h>

/* One at a time; the tests have one thread. */
static struct socket *gl_ksock;

static void gl_ksock_release(void)
{
	if (gl_ksock)
		sock_release(gl_ksock);
	gl_ksock = NULL;
}

static int gl_ksock_connect(const char *address, unsigned int port)
{
	struct sockaddr_in to = { .sin_family = AF_INET, .sin_port = htons(port) };
	int err;

	if (gl_ksock || !in4_pton(address, -1, (u8 *)&to.sin_addr, -1, NULL))
		return -EINVAL;
	err = sock_create_kern(current->nsproxy->net_ns, AF_INET, SOCK_STREAM, IPPROTO_TCP,
			       &gl_ksock);
	if (err)
		return err;
	err = kernel_connect(gl_ksock, (void *)&to, sizeof(to), O_NONBLOCK);
	if (err == -EINPROGRESS)
		return 0;
	gl_ksock_release();
	return err;
}

static int gl_ksock_send(size_t bytes)
{
	struct msghdr msg = { .msg_flags = MSG_DONTWAIT };
	struct kvec vec = { .iov_len = bytes };
	int err;

	if (!gl_ksock || bytes > 65536)
		return -EINVAL;
	vec.iov_base = kzalloc(bytes, GFP_KERNEL);
	if (!vec.iov_base)
		return -ENOMEM;
	err = kernel_sendmsg(gl_ksock, &msg, &vec, 1, bytes);
	kfree(vec.iov_base);
	return min(err, 0);
}

static ssize_t gl_ksock_write(struct file *file, const char __user *user, size_t len, loff_t *pos)
{
	char text[64], address[16];
	unsigned int n;
	int err = 0;

	if (len >= sizeof(text))
		return -EINVAL;
	if (copy_from_user(text, user, len))
		return -EFAULT;
	text[len] = '\0';
	if (sscanf(text, "connect %15s %u", address, &n) == 2)
		err = gl_ksock_connect(address, n);
	else if (sscanf(text, "send %u", &n) == 1)
		err = gl_ksock_send(n);
	else if (!strncmp(text, "release", strlen("release")))
		gl_ksock_release();
	else
		err = -EINVAL;
	return err ?: len;
}

static const struct proc_ops gl_ksock_ops = {
	.proc_write = gl_ksock_write,
};

static int __init gl_ksock_init(void)
{
	return proc_create("gl_ksock", 0200, NULL, &gl_ksock_ops) ? 0 : -ENOMEM;
}

static void __exit gl_ksock_exit(void)
{
	remove_proc_entry("gl_ksock", NULL);
	gl_ksock_release();
}

module_init(gl_ksock_init);
module_exit(gl_ksock_exit);

MODULE_DESCRIPTION("a kernel TCP socket (greenlane's selftests)");
MODULE_LICENSE("GPL");
