#!/usr/bin/env bash
# SPDX-License-Identifier: GPL-2.0
# scripts/guest: exit statuses, output, isolation, virtual time, and detection of all
# kinds of failures of the guest.  Runs on the host:
#
#	this script --> scripts/guest --> a guest --> one command
#
# With GL_DEBUG=1 also the failures that only the debug kernel detects.
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

# guest ARGS...: run a guest, with its output in $tmp/out and $tmp/err; returns its status
guest() {
	"$top/scripts/guest" "${which[@]}" --built "$kdir" "$tmp" --log "$tmp/log" \
		"$@" >"$tmp/out" 2>"$tmp/err"
}

number=0
# check DESCRIPTION STATUS: report a test, which passes if STATUS is 0
check() {
	number=$((number + 1))
	if [ "$2" = 0 ]; then
		echo "ok $number - $1"
	else
		echo "not ok $number - $1"
		sed 's/^/# /' "$tmp/err" | tail -n 5
	fi
}

# is DESCRIPTION SEEN EXPECTED: report a test, which passes if both are equal
is() {
	[ "$2" = "$3" ]
	check "$1" $?
	[ "$2" = "$3" ] || echo "# expected '$3', saw '$2'"
}

# notices KIND PATTERN: report a test, which passes if the runner reports trouble.ko's failure
notices() {
	guest -- insmod "$tmp/trouble.ko" kind="$1"
	[ $? = 70 ] && grep -Eq "guest: the kernel complained: .*$2" "$tmp/err"
	check "the guest's kernel: $1" $?
}

echo "TAP version 13"
# Only the newest kernel has the finer clock.
[ "${GL_KERNEL:-7.3}" = 7.3 ] && fine=1 || fine=
echo "1..$((24 + ${fine:-0} + (${#debug} ? 4 : 0)))"

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
check "2 MB of output arrive unchanged" $?
# shellcheck disable=SC2016	# the guest's variables
guest --env "A=b c" -- sh -c 'echo "$A $1"' sh 'd  e'
is "arguments and environment" "$(cat "$tmp/out")" "b c d  e"

began=$SECONDS
guest -- sleep 10000 && [ $((SECONDS - began)) -lt 60 ]
check "time is virtual: three hours of sleep end at once" $?
began=$(date +%s%N)
guest --real-time -- sleep 1 && [ $(($(date +%s%N) - began)) -ge 1000000000 ]
check "--real-time: a second is a second" $?

look="import time; t = [time.monotonic_ns() for _ in range(9)]
print({b - a for a, b in zip(t, t[1:])})"
guest -- python3 -c "$look"
is "reading the clock takes 256 ns" "$(cat "$tmp/out")" "{256}"
if [ "$fine" ]; then
	guest --fine -- python3 -c "$look"
	is "--fine: reading the clock takes 8 ns" "$(cat "$tmp/out")" "{8}"
fi

touch "$tmp/there"
guest -- sh -c "echo x >$tmp/new; rm $tmp/there; echo x >/etc/greenlane-test && cat $tmp/new"
is "the guest can write anywhere" "$?$(cat "$tmp/out")" 0x
[ -e "$tmp/there" ] && [ ! -e "$tmp/new" ] && [ ! -e /etc/greenlane-test ]
check "the guest's writes do not reach the host" $?
# shellcheck disable=SC2016	# the guest's variable
GL_OUT=$tmp/shared guest -- sh -c 'echo x >"$GL_OUT/result"'
is "except writes to GL_OUT" "$(cat "$tmp/shared/result")" x

guest -- sh -c 'echo "<3>BUG: as ordered" >/dev/kmsg'
is "an error in the kernel's log has its own exit status" $? 70
notices warn "WARNING"
notices oops "Kernel|Segfault|unable|BUG|Oops"
guest -- python3 -c 'import ctypes; ctypes.CDLL(None).reboot(0x4321fedc)'
is "a guest that dies" "$?$(grep -c "the guest died" "$tmp/err")" 701

began=$SECONDS
guest --timeout 2 -- sh -c 'while :; do :; done'
is "a command that spins" "$?$(grep -c "no end after 2 s of processor time" "$tmp/err")" 701
[ $((SECONDS - began)) -lt 100 ]
check "is killed at the limit" $?
guest --real-time --timeout 2 -- sleep 1000
is "a command that sleeps in real time" "$?$(grep -c "no end after 2 s of real time" "$tmp/err")" 701
mkdir "$tmp/cache"
(
	flock 9
	GREENLANE_CACHE=$tmp/cache timeout 5 "$top/scripts/kernel"
) 9>"$tmp/cache/source-7.3.lock" >"$tmp/out" 2>"$tmp/err"
is "a second build of a kernel says that it waits" \
	"$?$(grep -c "waits for another process, which holds the source of 7.3" "$tmp/err")" 1241
# Two processors, if the host has them, no other guests, and one guest more.
mapfile -t cpus < <(python3 -c 'import os; print(*sorted(os.sched_getaffinity(0))[:2], sep="\n")')
here=(taskset -c "$(IFS=,; echo "${cpus[*]}")")
# shellcheck disable=SC2016	# awk's field
allowed='/^Cpus_allowed_list:/ { print $2 }'
runners=() seen=()
for _ in "${cpus[@]}" more; do
	GREENLANE_CACHE=$tmp/cache "${here[@]}" "$top/scripts/guest" "${which[@]}" \
		--built "$kdir" "$tmp" --real-time -- sleep 10000 &
	runners+=($!) uml=''
	for _ in {1..600}; do
		read -r uml _ <"/proc/$!/task/$!/children"
		[ -n "$uml" ] && [ "$(<"/proc/$uml/comm")" = linux ] && break
		sleep 0.1
	done
	seen+=("$(awk "$allowed" "/proc/$uml/status")")
done 2>"$tmp/err"
is "each guest reserves a processor, while one is free" "${seen[*]}" \
	"${cpus[*]} $("${here[@]}" awk "$allowed" /proc/self/status)"
kill "${runners[@]}"
wait "${runners[@]}"
# As soon as the guest exists, several times.
left=
for _ in {1..20}; do
	"$top/scripts/guest" "${which[@]}" --built "$kdir" "$tmp" -- sleep 10000 &
	pid=$!
	uml='' end=$((SECONDS + 60))
	# Until it becomes Python it is a shell, whose children are not guests.
	until [ -n "$uml" ] && [ "$(<"/proc/$pid/comm")" = python3 ]; do
		[ $SECONDS -lt $end ] || break
		read -r uml _ <"/proc/$pid/task/$pid/children"
	done
	kill -TERM $pid
	wait $pid
	[ $? = 143 ] && [ ! -e "/proc/$uml" ] || left+=" $uml"
done 2>"$tmp/err"
is "SIGTERM to the runner stops the guest" "$left" ""

[ -n "$debug" ] || exit 0
notices leak "kmemleak: unreferenced object"
notices lock "possible circular locking"
notices atomic "scheduling while atomic|sleeping function"
notices overflow "KASAN"
