#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# In a guest that counts (scripts/guest --gcov): run a command, then leave the
# counts of the tree's modules in $GL_OUT.  They outlive a module's unloading.
"$@"
status=$?
cd "/sys/kernel/debug/gcov$GL_MODDIR" || exit 1
find . -name '*.gcda' | while read -r file; do
	mkdir -p "$GL_OUT/${file%/*}"
	cat "$file" >"$GL_OUT/$file"
done
exit $status
