#!/usr/bin/env bash
# kill -9 at every system call that changes something, of promote, rollback, reclaim and recover, one run per call.
# After each the path gives its bytes; then recover; then the path gives its bytes and everything is either promoted
# and healthy or as it was. DBT_FULL=1: on all filesystems, at every write of the ledger.
# DBT_PAIRS: other filesystems ("ext4 xfs,xfs btrfs"). DBT_ONLY=NAME: only operations with that in their name.
# timeout: 900
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
need_command setfattr attr
need_strace

total=0

# sweep NAME BASE HOW ARGS...: BASE is a function that makes the state to start from; HOW: inode, or noinode when the
# file may be another one with the same content afterwards.
sweep()
{
	local name=$1 base=$2 how=${3#inode} call n runs=0

	shift 3
	[[ $name == *${DBT_ONLY-}* ]] || return 0
	for call in "${SWEEP_CALLS[@]}" "${SWEEP_LEDGER_CALLS[@]}"; do
		for ((n = 1; ; n += $(step "$call"))); do
			WHEN="$name, killed at $call number $n"
			$base
			injected "$call" signal=SIGKILL "$n" "$@" || break
			runs=$((runs + 1))
			reads_right "${FILES[@]}"
			run dbtier recover
			[[ $status -eq 0 ]] || fail "recover failed: $WHEN"
			reads_right "${FILES[@]}"
			settle $how
		done
		[[ $status -eq 0 ]] || fail "$name failed by itself"
		settle $how
	done
	remember_world # the inodes may be others now
	echo "$types: $name: $runs kills"
	total=$((total + runs))
}

sweep_all()
{
	sweep "first promote" no_ledger inode promote --force --to "$FAST" "$SLOW/a.bin"
	sweep "promote" fresh_ledger inode promote --force --to "$FAST" "$SLOW/a.bin"
	sweep "promote of a set" fresh_ledger inode promote --force --to "$FAST" "$SLOW/set"
	sweep "promote --reclaim of a set" fresh_ledger noinode promote --force --reclaim --to "$FAST" "$SLOW/set"
	sweep "rollback" file_promoted inode rollback
	sweep "rollback of a set" set_promoted inode rollback
	sweep "rollback after reclaim" file_reclaimed noinode rollback
	sweep "rollback of a set after reclaim" set_reclaimed noinode rollback
	sweep "reclaim" file_promoted noinode reclaim a.bin
	sweep "reclaim of a set" set_promoted noinode reclaim nr
	sweep "recover of a half copy" while_copying inode recover
	sweep "recover of verified copies" set_verified inode recover
	sweep "recover of a half swap" set_half_swapped inode recover
	sweep "recover of a half rollback" set_half_rolled_back inode recover
	sweep "recover of a half copy back" set_half_copied_back noinode recover
	sweep "recover of a half return" set_half_returned noinode recover
	sweep "recover of a half reclaim" set_half_reclaimed noinode recover
	KEEPS_COPY=1
	sweep "rollback --keep-copy" file_promoted inode rollback --keep-copy
	KEEPS_COPY=
}

[[ -z ${DBT_FULL-} ]] || : "${DBT_PAIRS:=ext4 xfs,xfs btrfs,btrfs ext4}"
IFS=, read -ra pairs <<<"${DBT_PAIRS:-ext4 xfs}"
for types in "${pairs[@]}"; do
	# shellcheck disable=SC2086
	pair $types
	make_world
	sweep_all
done
echo "$total kills, 0 wrong"
