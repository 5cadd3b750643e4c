#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# The selftests as a kselftest target: installed from a kernel's tree, and run by
# run_kselftest.sh in a guest.
#
#	this script (host) --> scripts/kselftest --> a guest
top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
number=0

# check DESCRIPTION LAST PATTERN OPTIONS...: report a test, which passes if the output ends with
# LAST and PATTERN matches
check() {
	local title=$1 last=$2 pattern=$3

	shift 3
	number=$((number + 1))
	"$top/scripts/kselftest" "$@" >"$tmp/out" 2>&1
	if [ "$(tail -n 1 "$tmp/out")" = "$last" ] && grep -qE "$pattern" "$tmp/out"; then
		echo "ok $number $title"
	else
		echo "not ok $number $title"
		# Report both conditions, and the output around each test's end.
		echo "# last: '$(tail -n 1 "$tmp/out")', expected '$last'"
		echo "# matches of '$pattern': $(grep -cE "$pattern" "$tmp/out") of $(wc -l <"$tmp/out")"
		grep -nE 'selftests:|SKIP|^[^#]' "$tmp/out" | tail -n 40 | sed 's/^/# /'
	fi
}

# Run a case or two of each file: scripts/check runs all, and an emulated machine takes half a
# second for each tc command.
export KSELFTEST_COLOR_OPTIONS_PY_ARGS="statistics" KSELFTEST_TLT_LOSS_PY_ARGS="middle"

echo "KTAP version 1"
echo "1..3"
check "virtual time: a port's options, and losses on a wire" "2 passed, 0 failed, 0 skipped" \
	'^# ok [0-9]+ one packet is lost in the middle \[tlt_reno, IPv4\]' \
	--kernel "${GL_KERNEL:-7.3}" color_options tlt_loss
check "real time: tests that measure time are skipped" "1 passed, 0 failed, 1 skipped" \
	'SKIP time is not virtual' --machine qemu color_options tlt_loss
said=$("$top/scripts/kselftest" no_such_test 2>&1)
[ "$?$said" = "2kselftest: no test no_such_test.py" ] && echo "ok 3 no such test: one line" ||
	echo "not ok 3 no such test: $said"
