/* SPDX-License-Identifier: GPL-2.0 */
/* Netlink attributes as a qdisc gets them parsed, made by a test. */
#ifndef _KUNIT_NLATTR_H
#define _KUNIT_NLATTR_H

#include <kunit/test.h>
#include <net/netlink.h>

/* Let @tb have an attribute of @type with these @len bytes, until the case ends. */
static inline void kunit_set_attr(struct kunit *test, struct nlattr **tb, int type,
				  const void *data, int len)
{
	struct nlattr *attr = kunit_kzalloc(test, nla_total_size(len), GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, attr);
	attr->nla_type = type;
	attr->nla_len = nla_attr_size(len);
	memcpy(nla_data(attr), data, len);
	tb[type] = attr;
}

#endif
