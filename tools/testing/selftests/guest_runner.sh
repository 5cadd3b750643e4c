#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# scripts/guest itself: statuses, output, isolation, virtual time, and that no
# kind of trouble in the guest goes unnoticed.  Runs on the host:
#
#	this script --> scripts/guest --> a guest --> one command
#
# With GL_DEBUG=1 also the trouble that only the debug kernel sees.
set -u
top=$(cd "$(dirname "$0")/../../.." && pwd)
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
which=(--kernel "${GL_KERNEL:-7.3}")
debug=${GL_DEBUG:-}
[ -z "$debug" ] || which+=(--debug)
kdir=$("$top/scripts/kernel" "${which[@]}") || exit 1
cp "$top"/tools/testing/lab/guest/trouble/* "$tmp" || exit 1
make -C "$kdir" ARCH=um M="$tmp" modules >"$tmp/build.log" 2>&1 ||
	{ cat "$tmp/build.log" >&2; exit 1; }

# guest ARGS...: its output in $tmp/out and $tmp/err; returns its status
guest() {
	"$top/scripts/guest" "${which[@]}" --built "$kdir" "$tmp" --log "$tmp/log" \
		"$@" >"$tmp/out" 2>"$tmp/err"
}

number=0
# check DESCRIPTION STATUS: one TAP line
check() {
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$tmp/err" | tail -n 5
	fi
}

# is DESCRIPTION SEEN EXPECTED
is() {
	[ "$2" = "$3" ]
	check "$1" $?
	[ "$2" = "$3" ] || echo "# expected '$3', saw '$2'"
}

# notices KIND PATTERN: trouble.ko makes this trouble, and the runner says so
notices() {
	guest -- insmod "$tmp/trouble.ko" kind="$1"
	[ $? = 70 ] && grep -Eq "guest: the kernel complained: .*$2" "$tmp/err"
	check "the guest's kernel: $1" $?
}

echo "TAP version 13"
# The kernel with the finer clock is built of the newest source only.
[ "${GL_KERNEL:-7.3}$debug" = 7.3 ] && fine=1 || fine=
echo "1..$((22 + ${fine:-0} + (${#debug} ? 4 : 0)))"

guest -- true
is "a command that succeeds" $? 0
guest -- sh -c 'exit 3'
is "a command that fails" $? 3
guest -- no-such-command
is "a command that does not exist" $? 127
guest -- sh -c 'kill -TERM $$'
is "a command that a signal kills" $? 143
guest -- sh -c 'echo one; echo two >&2'
is "stdout has the command's stdout only" "$(cat "$tmp/out")" one
is "stderr has the command's stderr only" "$(cat "$tmp/err")" two
guest -- python3 -c 'import os; os.write(1, bytes(range(256)) * 8192)'
python3 -c 'import os; os.write(1, bytes(range(256)) * 8192)' | cmp -s - "$tmp/out"
check "output arrives byte by byte, 2 MB of it" $?
# shellcheck disable=SC2016	# variables of the guest's
guest --env "A=b c" -- sh -c 'echo "$A $1"' sh 'd  e'
is "arguments and environment" "$(cat "$tmp/out")" "b c d  e"

began=$SECONDS
guest -- sleep 10000 && [ $((SECONDS - began)) -lt 60 ]
check "time is virtual: three hours of sleep are over at once" $?
began=$(date +%s%N)
guest --real-time -- sleep 1 && [ $(($(date +%s%N) - began)) -ge 1000000000 ]
check "--real-time: a second is a second" $?

look="import time; t = [time.monotonic_ns() for _ in range(9)]
print({b - a for a, b in zip(t, t[1:])})"
guest -- python3 -c "$look"
is "a look at the clock takes 256 ns" "$(cat "$tmp/out")" "{256}"
if [ "$fine" ]; then
	"$top/scripts/guest" --fine --no-modules -- python3 -c "$look" >"$tmp/out" 2>"$tmp/err"
	is "--fine: a look at the clock takes 8 ns" "$(cat "$tmp/out")" "{8}"
fi

touch "$tmp/there"
guest -- sh -c "echo x >$tmp/new; rm $tmp/there; echo x >/etc/greenlane-test && cat $tmp/new"
is "the guest can write anywhere" "$?$(cat "$tmp/out")" 0x
[ -e "$tmp/there" ] && [ ! -e "$tmp/new" ] && [ ! -e /etc/greenlane-test ]
check "and nothing of it reaches the host" $?
# shellcheck disable=SC2016	# a variable of the guest's
GL_OUT=$tmp/shared guest -- sh -c 'echo x >"$GL_OUT/result"'
is "except in GL_OUT" "$(cat "$tmp/shared/result")" x

guest -- sh -c 'echo "<3>BUG: as ordered" >/dev/kmsg'
is "a complaint in the kernel's log has a status of its own" $? 70
notices warn "WARNING"
notices oops "Kernel|Segfault|unable|BUG|Oops"
guest -- python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
is "a guest that goes away" "$?$(grep -c "the guest died" "$tmp/err")" 701

began=$SECONDS
guest --timeout 2 -- sh -c 'while :; do :; done'
is "a command that spins" "$?$(grep -c "no end after 2 s of processor time" "$tmp/err")" 701
[ $((SECONDS - began)) -lt 100 ]
check "is stopped in time" $?
guest --real-time --timeout 2 -- sleep 1000
is "a command that sleeps in real time" "$?$(grep -c "no end after 2 s of real time" "$tmp/err")" 701
# At the first moment at which there is a guest, several times.
left=
for _ in {1..20}; do
	"$top/scripts/guest" "${which[@]}" --built "$kdir" "$tmp" -- sleep 10000 &
	pid=$!
	uml='' end=$((SECONDS + 60))
	# Before it is Python it is a shell, whose children are not guests.
	until [ -n "$uml" ] && [ "$(<"/proc/$pid/comm")" = python3 ]; do
		[ $SECONDS -lt $end ] || break
		read -r uml _ <"/proc/$pid/task/$pid/children"
	done
	kill -TERM $pid
	wait $pid
	[ $? = 143 ] && [ ! -e "/proc/$uml" ] || left+=" $uml"
done 2>"$tmp/err"
is "who stops the runner stops the guest" "$left" ""

[ -n "$debug" ] || exit 0
notices leak "kmemleak: unreferenced object"
notices lock "possible circular locking"
notices atomic "scheduling while atomic|sleeping function"
notices overflow "KASAN"
