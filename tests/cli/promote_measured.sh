#!/usr/bin/env bash
# Which way to move is decided by measurement where there is one: a device that the kernel really slows down to the 207
# reads a second of a disk, against one of the same kind. Without a measurement the kind decides; on one disk only a
# measured gain lifts the refusal.
# needs: loop
# timeout: 120
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

cases=0

begin()
{
	"$DBT_TOOLS/mkdb" diamond "$SLOW/psc.dmnd" 24M
	"$DBT_TOOLS/mkdb" diamond "$FAST/other.dmnd" 24M
	sync
}

# moves FROM TO: promoted, with the gain that it brought, and rolled back.
moves()
{
	expect 0 dbtier promote "$1" --to "$2"
	err_has "measured, original and copy of '$1'"
	expect 0 dbtier rollback
	cases=$((cases + 1))
}

refused()
{
	expect 3 dbtier promote "$1" --to "$2"
	err_has "$3"
	err_has "--force"
	[[ ! -L $1 ]] || fail "promoted all the same"
	cases=$((cases + 1))
}

measure()
{
	expect 0 dbtier probe "$SLOW/psc.dmnd" "$FAST/other.dmnd"
}

# Two of a kind, both in memory.
pair ext4 xfs
begin
refused "$SLOW/psc.dmnd" "$FAST" "judged by the kind of device"
throttle 207 || skip "this kernel cannot limit reads by the blkio cgroup (version 1)"
measure
moves "$SLOW/psc.dmnd" "$FAST"
refused "$FAST/other.dmnd" "$SLOW" "was measured and is not faster"
expect 0 dbtier promote --force "$FAST/other.dmnd" --to "$SLOW"
expect 0 dbtier rollback

# direct_fs NAME: a filesystem whose reads reach the disk below $TMP. Through an ordinary loop device they may come from
# memory: that is no proof of anything, and dbtier says so.
direct_fs()
{
	local device

	truncate -s 64M "$TMP/$1.img"
	device=$(losetup --find --show --direct-io=on "$TMP/$1.img" 2>/dev/null) || return 1
	mkfs.ext4 -q "$device"
	mkdir "$PAIR/$1"
	mount "$device" "$PAIR/$1"
	losetup -d "$device" # when it is unmounted
}

pair_down
if [[ $(findmnt -n -o FSTYPE -T "$TMP") =~ ^(ext4|xfs|btrfs)$ ]] && direct_fs slow && direct_fs fast; then
	begin
	refused "$SLOW/psc.dmnd" "$FAST" "are on the same disk"
	throttle 207
	measure
	moves "$SLOW/psc.dmnd" "$FAST"
fi
echo "$cases cases, 0 wrong"
