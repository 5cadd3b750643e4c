// SPDX-License-Identifier: GPL-2.0
/*
 * Kernel trouble to order, so that the guest runner can be seen to notice it:
 * insmod trouble.ko kind=warn|oops|leak|lock|atomic|overflow
 */
#include <linux/delay.h>
#include <linux/kernel.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>

static char *kind = "none";
module_param(kind, charp, 0444);
MODULE_PARM_DESC(kind, "which trouble");

static DEFINE_SPINLOCK(spin);
static DEFINE_MUTEX(first);
static DEFINE_MUTEX(second);

static void lock_both_ways(void)
{
	mutex_lock(&first);
	mutex_lock(&second);
	mutex_unlock(&second);
	mutex_unlock(&first);
	mutex_lock(&second);
	mutex_lock(&first);
	mutex_unlock(&first);
	mutex_unlock(&second);
}

static void write_behind_the_end(void)
{
	char *text = kmalloc(100, GFP_KERNEL);

	if (!text)
		return;
	/* The compiler must not see where the end is. */
	OPTIMIZER_HIDE_VAR(text);
	text[100] = 1;
	kfree(text);
}

static noinline void leak(void)
{
	int i;

	/* Many, since a stale register may keep one of them. */
	for (i = 0; i < 32; i++)
		if (!kmalloc(1000, GFP_KERNEL))
			return;
}

static int __init trouble_init(void)
{
	if (!strcmp(kind, "warn")) {
		WARN(1, "as ordered\n");
	} else if (!strcmp(kind, "oops")) {
		char *nowhere = NULL;

		OPTIMIZER_HIDE_VAR(nowhere);
		*nowhere = 1;
	} else if (!strcmp(kind, "leak")) {
		leak();
	} else if (!strcmp(kind, "lock")) {
		lock_both_ways();
	} else if (!strcmp(kind, "atomic")) {
		spin_lock(&spin);
		msleep(20);
		spin_unlock(&spin);
	} else if (!strcmp(kind, "overflow")) {
		write_behind_the_end();
	}
	return 0;
}

static void __exit trouble_exit(void)
{
}

module_init(trouble_init);
module_exit(trouble_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("Kernel trouble to order, for the tests of the guest runner");
