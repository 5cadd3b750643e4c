# SPDX-License-Identifier: GPL-2.0
# Shared by the scripts: where things are, and how they speak.  Sourced.

GL_TOP=$(CDPATH="" cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# Kernel builds take minutes and do not depend on the tree: keep them outside.
GL_CACHE=${GREENLANE_CACHE:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/greenlane}
GL_JOBS=${GREENLANE_JOBS:-$(nproc)}

say() { printf '%s\n' "$*" >&2; }
die() { printf '%s: %s\n' "${0##*/}" "$*" >&2; exit 2; }

# help_if_asked ARGS...: print the comment at the head of the script and end, if ARGS begin with --help
help_if_asked() {
	case ${1:-} in
	-h | --help)
		sed -nE '3,${ /^#/!q; /^# shellcheck/q; s/^# ?//p }' "$0"
		exit 0 ;;
	esac
}

# run_logged LOG CMD...: a command whose output matters only when it fails
run_logged() {
	local log=$1

	shift
	"$@" >"$log" 2>&1 && return
	tail -n 30 "$log" >&2
	die "failed: $* (whole output: $log)"
}

# own_git CMD...: git in the tree, as its owner: git refuses to read another user's tree, and root would
# leave files in it that the owner cannot read
own_git() {
	local owner

	owner=$(stat -c %u "$GL_TOP")
	if [ "$EUID" -ne 0 ] || [ "$owner" -eq 0 ]; then
		git -C "$GL_TOP" "$@"
		return
	fi
	HOME=/nonexistent setpriv --reuid "$owner" --regid "$(stat -c %g "$GL_TOP")" --clear-groups \
		git -C "$GL_TOP" "$@"
}

# export_epoch: SOURCE_DATE_EPOCH, by which a package of the same commit has the same bytes
export_epoch() {
	SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(own_git log -1 --format=%ct 2>/dev/null ||
		stat -c %Y "$GL_TOP/VERSION")}
	export SOURCE_DATE_EPOCH
}

# run_module MODULE ARGS...: run a module of the tests' package (lab) or of experiments
run_module() {
	export PYTHONPATH=$GL_TOP/tools:$GL_TOP/tools/testing${PYTHONPATH:+:$PYTHONPATH}
	exec /usr/bin/python3 -P -m "$@"
}

# The modules' sources, relative to the tree.
GL_SOURCES=(VERSION Kbuild net include tools/testing/kunit tools/testing/modules tools/experiments/bench)

# sources_in DIR [FORMAT]: its source files that belong to the tree; FORMAT is of find -printf
sources_in() {
	(cd "$1" && find "${GL_SOURCES[@]}" -type f \
		\( -name '*.[chS]' -o -name 'Kbuild' -o -name 'Makefile' -o -name VERSION -o -name '*.mk' \) \
		! -name '*.mod.c' ! -name '.*' -printf "${2:-%p}\\n" 2>/dev/null | sort)
}

# follow_tree DIR: make DIR's sources the tree's.  Contents decide, and a copy
# is as new as the copying, so that make misses nothing and redoes nothing.
follow_tree() {
	local dir=$1

	comm -13 <(sources_in "$GL_TOP") <(sources_in "$dir") |
		while read -r f; do
			# Its objects too, or a rule still finds them.
			rm -f "$dir/$f" "$dir/${f%.c}.o" "$dir/${f%.c}.ko"
		done
	sources_in "$GL_TOP" | while read -r f; do
		cmp -s "$GL_TOP/$f" "$dir/$f" && continue
		mkdir -p "$(dirname "$dir/$f")"
		cp "$GL_TOP/$f" "$dir/$f"
	done
}

# build_modules DIR KDIR ARGS...: warnings are shown, the rest only on failure
build_modules() {
	local dir=$1 kdir=$2 log=$1/build.log

	shift 2
	if ! make -C "$kdir" M="$dir" "$@" -j"$GL_JOBS" modules >"$log" 2>&1; then
		grep -vE '^ +(CC|LD|AR|MODPOST)|^make' "$log" | tail -n 60 >&2
		die "the modules do not build (whole output: $log)"
	fi
	grep -E -A5 'warning:|^WARNING' "$log" >&2 || true
}

# newest_clang: the suffix of the newest clang here, as make's LLVM= takes it: -16
newest_clang() { compgen -c clang- | sed -n 's/^clang\(-[0-9]*\)$/\1/p' | sort -V | tail -n 1 | grep .; }

# newest_headers: the build directory of the distribution's newest ones here
newest_headers() {
	find /usr/src -maxdepth 1 -name 'linux-headers-*-amd64' | sort -V | tail -n 1 | grep .
}
