#!/usr/bin/env bash
# The same promises on kernels and filesystems that can less: without RENAME_EXCHANGE, openat2, cachestat, statx (no mount
# ids, no birth times), O_DIRECT, leases, RENAME_NOREPLACE, fallocate; each by itself and all at once. A promotion gives
# the same file back; kill -9 at every changing call of the fallbacks; readers see nothing but right bytes. And a
# filesystem that reports success for an exchange and renames is found out on scratch files. DBT_FULL=1: more kills, more
# cycles, all filesystems.
# needs: loop
# timeout: 900
# full: 14400
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
need_command setfattr attr

real=$DBTIER
"$DBT_TOOLS/runold" openat2 -- true || skip "no seccomp filters here"

# without FEATURE...: $DBTIER is a program that does without.
without()
{
	FEATURES=$*
	printf '#!/bin/sh\nexec "%s" %s -- "%s" "$@"\n' "$DBT_TOOLS/runold" "$*" "$real" >"$TMP/dbtier"
	chmod +x "$TMP/dbtier"
	DBTIER=$TMP/dbtier
}

# there_and_back WHAT [OPTION...]
there_and_back()
{
	facts "$SLOW" >"$TMP/before"
	expect 0 promote "$@"
	[[ $(find "$SLOW" -type l | wc -l) -gt 0 ]] || fail "nothing was promoted without $FEATURES"
	reads_right "${FILES[@]}"
	expect 0 dbtier status
	expect 0 dbtier verify
	expect 0 dbtier rollback
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "not what it was without $FEATURES"
	nothing_below "$FAST" "without $FEATURES"
	expect 0 dbtier recover
	err_has "nothing to recover"
}

all_features=(exchange noreplace openat2 cachestat statx direct lease fallocate)

check_features()
{
	local feature

	for feature in "${all_features[@]}" renameat2; do
		without "$feature"
		there_and_back "$SLOW/a.bin"
		there_and_back "$SLOW/set"
	done
	without "${all_features[@]}"
	there_and_back "$SLOW/a.bin"
	there_and_back "$SLOW/set"
	# Reclaimed, it comes back as another file with the same content.
	facts "$SLOW" noinode >"$TMP/before"
	expect 0 promote --reclaim "$SLOW/set"
	reads_right "${FILES[@]}"
	expect 0 dbtier rollback
	facts "$SLOW" noinode >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "another content after reclaim without $FEATURES"
	remember_world
	# Without an exchange only --force goes on, and says what the other way loses.
	without exchange
	facts_untouched "$SLOW" >"$TMP/before"
	run "$DBTIER" --state-dir "$TMP/state" promote --to "$FAST" "$SLOW/a.bin"
	[[ $status -eq 3 ]] || fail "promoted without exchange and without --force"
	err_has "--force"
	facts_untouched "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "a refusal changed something"
	echo "$types: with each of $((${#all_features[@]} + 1)) features missing, and all of them: the same files come back"
}

check_kills()
{
	command -v strace >/dev/null || return 0
	need_strace
	expect 0 dbtier recover
	rm -rf "$TMP/state0"
	mv "$TMP/state" "$TMP/state0"
	kill_sweep "promote by hard link" fresh_ledger inode promote --force --to "$FAST" "$SLOW/set"
	kill_sweep "rollback by rename" set_promoted inode rollback
	[[ ${DBT_FULL-} ]] || return 0
	kill_sweep "rollback by rename after reclaim" set_reclaimed noinode rollback
	kill_sweep "recover of a half swap by hard link" set_half_swapped inode recover
	kill_sweep "recover of a half rollback by rename" set_half_rolled_back inode recover
}

# check_readers CYCLES
check_readers()
{
	local reader i

	cp "$SLOW/a.bin" "$TMP/bytes"
	nice -n 19 "$DBT_TOOLS/runreaders" 8 "$SLOW/a.bin" "$TMP/bytes" >"$TMP/readers" &
	reader=$!
	until grep -q ready "$TMP/readers"; do
		kill -0 "$reader" || fail "the readers did not start"
		sleep 0.01
	done
	for ((i = 0; i < $1; i++)); do
		expect 0 promote "$SLOW/a.bin"
		expect 0 dbtier rollback
	done
	kill -TERM "$reader"
	wait "$reader" || fail "a reader failed: $(tail -1 "$TMP/readers")"
	echo "$types: $1 cycles by hard link, $(tail -1 "$TMP/readers")"
	expect 0 dbtier recover
}

# The lie of fuseodd.c is noticed before it can cost a file.
check_false_exchange()
{
	local odd

	[[ -x $DBT_TOOLS/fuseodd && -w /dev/fuse ]] || {
		echo "no FUSE here: false exchange is left to the unit tests"
		return
	}
	DBTIER=$real
	mkdir "$PAIR/odd"
	"$DBT_TOOLS/fuseodd" "$SLOW" "$PAIR/odd" 2>"$TMP/lies" &
	odd=$!
	until mountpoint -q "$PAIR/odd"; do
		kill -0 "$odd" 2>/dev/null || skip "no FUSE here"
		sleep 0.02
	done
	facts "$SLOW" >"$TMP/before"
	run dbtier promote --to "$FAST" "$PAIR/odd/a.bin"
	[[ $status -eq 3 ]] || fail "promoted on a filesystem that lies"
	err_has "cannot exchange two names"
	err_has "--force"
	grep -q "\.dbtier-.*-a\.part" "$TMP/lies" || fail "there was no lie"
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "a lie cost something"
	expect 0 promote "$PAIR/odd/a.bin"
	cmp "$TMP/bytes" "$PAIR/odd/a.bin" || fail "other bytes by hard link"
	[[ -L $SLOW/a.bin ]] || fail "not promoted"
	expect 0 dbtier rollback
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "not what it was after the lie"
	nothing_below "$FAST" "after the lie"
	! grep -v "\.dbtier-.*-a\.part" "$TMP/lies" || fail "data was exchanged"
	umount "$PAIR/odd"
	wait "$odd" || true
	echo "$types: a false exchange is found out on scratch files"
}

[[ -z ${DBT_FULL-} ]] || : "${DBT_PAIRS:=ext4 xfs,xfs btrfs,btrfs ext4}"
IFS=, read -ra pairs <<<"${DBT_PAIRS:-ext4 xfs}"
for types in "${pairs[@]}"; do
	# shellcheck disable=SC2086
	pair $types
	make_world
	check_features
	without exchange noreplace openat2 statx direct lease
	check_kills
	check_readers "$([[ -z ${DBT_FULL-} ]] && echo 10 || echo 300)"
	check_false_exchange
done
echo "$kills kills, 0 wrong"
