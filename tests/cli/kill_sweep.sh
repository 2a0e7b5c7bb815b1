#!/usr/bin/env bash
# kill -9 at every system call that changes something, of promote, rollback, reclaim and recover, one run per call.
# After each the path gives its bytes; then recover; then the path gives its bytes and everything is either promoted
# and healthy or as it was. DBT_FULL=1: on all filesystems, at every write of the ledger.
# DBT_PAIRS: other filesystems ("ext4 xfs,xfs btrfs"). DBT_ONLY=NAME: only operations with that in their name.
# timeout: 900
# full: 14400
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
need_command setfattr attr
need_strace
SWEEP_REST=4

sweep_all()
{
	kill_sweep "first promote" no_ledger inode promote --force --to "$FAST" "$SLOW/a.bin"
	kill_sweep "promote" fresh_ledger inode promote --force --to "$FAST" "$SLOW/a.bin"
	kill_sweep "promote of a set" fresh_ledger inode promote --force --to "$FAST" "$SLOW/set"
	kill_sweep "promote --reclaim of a set" fresh_ledger noinode promote --force --reclaim --to "$FAST" "$SLOW/set"
	kill_sweep "promote over a half copy" while_copying inode promote --force --to "$FAST" "$SLOW/a.bin"
	kill_sweep "promote of a half-copied set" set_half_copied inode promote --force --to "$FAST" "$SLOW/set"
	kill_sweep "rollback" file_promoted inode rollback
	kill_sweep "rollback of a set" set_promoted inode rollback
	kill_sweep "rollback after reclaim" file_reclaimed noinode rollback
	kill_sweep "rollback of a set after reclaim" set_reclaimed noinode rollback
	kill_sweep "reclaim" file_promoted noinode reclaim a.bin
	kill_sweep "reclaim of a set" set_promoted noinode reclaim nr
	kill_sweep "recover of a half copy" while_copying inode recover
	kill_sweep "recover of verified copies" set_verified inode recover
	kill_sweep "recover of a half swap" set_half_swapped inode recover
	kill_sweep "recover of a half rollback" set_half_rolled_back inode recover
	kill_sweep "recover of a half copy back" set_half_copied_back noinode recover
	kill_sweep "recover of a half return" set_half_returned noinode recover
	kill_sweep "recover of a half reclaim" set_half_reclaimed noinode recover
	KEEPS_COPY=1
	kill_sweep "rollback --keep-copy" file_promoted inode rollback --keep-copy
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
echo "$kills kills, 0 wrong"
