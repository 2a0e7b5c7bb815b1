#!/usr/bin/env bash
# kill -9, and an error, at the system calls of unpacking an archive and of its rollback, one run per call. Nothing half
# is visible at any time; after recover everything is there and right, or nothing, and the archive is as it was.
# DBT_FULL=1: at every call.
# timeout: 600
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
need_strace

total=0
calls="renameat2 symlinkat mkdirat unlinkat fsync fchmod pwrite64"

nothing()
{
	rm -rf "$TMP/state"
	[[ ! -d $SLOW/db && ! -d $FAST/db ]] || fail "something is left: $WHEN"
}

unpacked()
{
	nothing
	expect 0 dbtier promote --force --to "$FAST" "$SLOW/db.tar"
}

# whole_or_nothing: what is visible is complete and right.
whole_or_nothing()
{
	if [[ -e $SLOW/db ]]; then
		diff -r "$TMP/make/db" "$SLOW/db" >"$TMP/diff" || fail "half of it is visible: $WHEN: $(head -3 "$TMP/diff")"
	fi
	[[ $(sha256sum <"$SLOW/db.tar") == "$archive" ]] || fail "the archive changed: $WHEN"
}

settled()
{
	expect 0 dbtier recover
	whole_or_nothing
	no_temporaries "$SLOW" "$FAST"
	expect 0 dbtier status
	if [[ -e $SLOW/db ]]; then
		expect 0 dbtier verify
		expect 0 dbtier rollback
	fi
	[[ ! -e $SLOW/db && ! -e $FAST/db ]] || fail "something is left: $WHEN"
	no_temporaries "$SLOW" "$FAST"
}

# sweep NAME BASE ARGS...
sweep()
{
	local name=$1 base=$2 call what n runs=0 step

	shift 2
	for call in $calls; do
		step=1
		[[ ${DBT_FULL-} ]] || step=$([[ $call == pwrite64 ]] && echo 97 || echo 5)
		for what in signal=SIGKILL error=EIO; do
			for ((n = 1; ; n += step)); do
				WHEN="$name, $what at $call number $n"
				$base
				injected "$call" "$what" "$n" "$@" || break
				whole_or_nothing
				settled
				runs=$((runs + 1))
			done
			settled
		done
	done
	echo "$name: $runs"
	total=$((total + runs))
}

pair ext4 xfs
mkdir "$TMP/make"
"$DBT_TOOLS/mkdb" bakta "$TMP/make/db" 2M
tar -C "$TMP/make" -cf "$SLOW/db.tar" db
archive=$(sha256sum <"$SLOW/db.tar")
WHEN=start
sweep "unpacking" nothing promote --force --to "$FAST" "$SLOW/db.tar"
sweep "rolling back" unpacked rollback
echo "$total interruptions, 0 wrong"
