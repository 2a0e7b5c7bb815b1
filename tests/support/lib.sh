# Helpers for the test scripts: source it first.
#
#	. "$(dirname "$0")/../support/lib.sh"
#
# The environment comes from ctest: DBTIER (the program), DBT_SOURCE, DBT_BUILD, DBT_TOOLS (the directory of mkdb
# and other test programs). Every script gets an empty directory $TMP and its own state directory, both gone when
# it ends. A failing command ends the script (set -e); an assertion says what it wanted.
# shellcheck shell=bash

set -euo pipefail
unset XDG_STATE_HOME DBTIER_STATE_DIR NO_COLOR
export LC_ALL=C.UTF-8 TZ=UTC

: "${DBTIER:?run this by ctest, or set DBTIER, DBT_SOURCE, DBT_BUILD and DBT_TOOLS}"
: "${DBT_SOURCE:=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)}"
: "${DBT_BUILD:=$(dirname "$DBTIER")}"
: "${DBT_TOOLS:=$DBT_BUILD/tests}"

skip()
{
	echo "skipped: $*"
	exit 77
}

fail()
{
	echo "FAILED: $*" >&2
	if [[ -e ${TMP-}/err ]]; then
		printf '%s\n' "--- stdout of the last run:" >&2
		cat "$TMP/out" >&2
		printf '%s\n' "--- stderr of the last run:" >&2
		cat "$TMP/err" >&2
	fi
	exit 1
}

need_root()
{
	[[ $(id -u) -eq 0 ]] || skip "needs root"
}

# need_command NAME PACKAGE
need_command()
{
	command -v "$1" >/dev/null || skip "needs $1 (package $2)"
}

# Makes the script run in a mount namespace of its own, so that whatever it mounts ends with it. To be called
# before anything else, with the script's arguments. No tmpfiles.d rule of the machine is seen there: whether $TMP is
# cleaned must not decide what a test finds.
need_mounts()
{
	local dir

	need_root
	if [[ ${DBT_TEST_NAMESPACE-} ]]; then
		for dir in /{etc,run,usr/local/lib,usr/lib}/tmpfiles.d; do
			[[ ! -d $dir ]] || mount -t tmpfs tmpfs "$dir"
		done
		return
	fi
	unshare --mount true 2>/dev/null || skip "cannot make a mount namespace"
	rm -rf "$TMP"
	DBT_TEST_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
}

# fs_new NAME TYPE SIZE [mkfs options]: a filesystem in a file, mounted at $TMP/NAME through a loop device that goes
# away with the mount. FS_IMAGES and FS_MOUNTS name other directories for both. Skips where the kernel or mkfs is missing.
fs_new()
{
	local type=$2 size=$3 why image=${FS_IMAGES:-$TMP}/$1.img point=${FS_MOUNTS:-$TMP}/$1

	shift 3
	need_command "mkfs.$type" "of mkfs.$type"
	truncate -s "$size" "$image"
	"mkfs.$type" -q "$@" "$image" >/dev/null 2>&1 || fail "mkfs.$type $* on $size"
	mkdir "$point"
	why=$(mount -t "$type" -o loop "$image" "$point" 2>&1) || skip "cannot mount $type: $why"
}

# run COMMAND...: its output in $TMP/out and $TMP/err, its exit status in $status.
run()
{
	status=0
	"$@" >"$TMP/out" 2>"$TMP/err" </dev/null || status=$?
}

# expect STATUS COMMAND...
expect()
{
	local wanted=$1

	shift
	run "$@"
	[[ $status -eq $wanted ]] || fail "'$*' ended with $status, not $wanted"
}

# dbtier ARGS...: the built program with this script's state directory.
dbtier()
{
	"$DBTIER" --state-dir "$TMP/state" "$@"
}

# The last run's stdout or stderr holds the text (a fixed string), or does not.
out_has()
{
	grep -qF -e "$1" "$TMP/out" || fail "stdout lacks '$1'"
}

err_has()
{
	grep -qF -e "$1" "$TMP/err" || fail "stderr lacks '$1'"
}

out_lacks()
{
	! grep -qF -e "$1" "$TMP/out" || fail "stdout has '$1'"
}

err_lacks()
{
	! grep -qF -e "$1" "$TMP/err" || fail "stderr has '$1'"
}

out_is_empty()
{
	[[ ! -s $TMP/out ]] || fail "stdout is not empty"
}

err_is_empty()
{
	[[ ! -s $TMP/err ]] || fail "stderr is not empty"
}

# equal WANTED GOT WHAT
equal()
{
	[[ $1 == "$2" ]] || fail "$3: '$2', not '$1'"
}

# What a file is, for a comparison of before and after: all that a rollback has to bring back.
file_facts()
{
	stat -c '%i %f %u %g %s %h %.Y' "$1"
	getfattr --absolute-names -d -m - -e hex "$1" 2>/dev/null || true
	sha256sum <"$1"
}

TMP=$(mktemp -d "${TMPDIR:-/tmp}/dbtier-test.XXXXXX")
chmod 755 "$TMP"

lib_cleanup()
{
	local mounted

	# Deepest first; in a namespace of our own these are only ours.
	while read -r mounted; do
		umount "$mounted" 2>/dev/null || umount -l "$mounted" 2>/dev/null || true
	done < <(awk -v dir="$TMP/" 'index($5, dir) == 1 { print $5 }' /proc/self/mountinfo | sort -r)
	umount -l "$TMP" 2>/dev/null || true # where a script has put it into memory
	rm -rf --one-file-system "$TMP"
}
trap lib_cleanup EXIT

# patiently COMMAND...: a reader that now and then waits for ever for a thread of its own (diamond does) is run again.
patiently()
{
	local status=0

	for _ in 1 2 3; do
		status=0
		timeout -k 5 60 "$@" || status=$?
		[[ $status -eq 124 || $status -eq 137 ]] || break
	done
	return $status
}
