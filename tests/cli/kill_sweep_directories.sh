#!/usr/bin/env bash
# As kill_sweep.sh, for a directory that moves as one name. Most calls are tried in a sample; DBT_FULL=1: all of them, on
# all filesystems. DBT_PAIRS, DBT_ONLY: as there.
# timeout: 900
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
. "$DBT_SOURCE/tests/support/tree.sh"
need_command setfattr attr
need_command setfacl acl
need_strace
SWEEP_CALLS+=(write)

# What matters most: what is the state of the disk at the calls that change names.
if [[ -z ${DBT_FULL-} ]]; then
	SWEEP_CALLS=(renameat2 symlinkat unlinkat mkdirat fsync syncfs)
	SWEEP_LEDGER_CALLS=(fdatasync)
	: "${DBT_SWEEP_STEP:=29}"
fi

sweep_all()
{
	kill_sweep "promote" fresh_ledger inode promote --force --to "$FAST" "$SLOW/rocks"
	kill_sweep "rollback" tree_promoted inode rollback
	kill_sweep "rollback after reclaim" tree_reclaimed noinode rollback
	kill_sweep "reclaim" tree_promoted noinode reclaim rocks
	[[ ${DBT_FULL-} ]] || return 0
	kill_sweep "promote --reclaim" fresh_ledger noinode promote --force --reclaim --to "$FAST" "$SLOW/rocks"
	kill_sweep "recover of a half copy" tree_half_copied inode recover
	kill_sweep "recover of a verified copy" tree_verified inode recover
	kill_sweep "recover of a half removal" tree_half_removed inode recover
	kill_sweep "recover of a half copy back" tree_half_copied_back noinode recover
	kill_sweep "recover of a half return" tree_half_returned noinode recover
	kill_sweep "recover of a half reclaim" tree_half_reclaimed noinode recover
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
