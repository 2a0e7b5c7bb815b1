#!/usr/bin/env bash
# Which way to move is decided by measurement where there is one: a device that the kernel really slows down to the 207
# reads a second of a disk, against one of the same kind. Without a measurement the kind decides; on one disk only a
# measured gain lifts the refusal.
# needs: loop
# timeout: 300
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

# What is measured under load is not remembered, so there are some tries.
measure()
{
	local file known

	for _ in 1 2 3 4 5 6 7 8; do
		expect 0 dbtier probe --seconds 1 "$SLOW/psc.dmnd" "$FAST/other.dmnd"
		known=0
		for file in "$SLOW/psc.dmnd" "$FAST/other.dmnd"; do
			expect 0 dbtier devices -no rand_iops "$file"
			[[ ! $(cat "$TMP/out") =~ [0-9] ]] || known=$((known + 1))
		done
		[[ $known -lt 2 ]] || return 0
	done
	skip "others keep the processors or the disk busy: no measurement is remembered"
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

pair_down
if [[ $(findmnt -n -o FSTYPE -T "$TMP") =~ ^(ext4|xfs|btrfs)$ ]] && direct_fs slow && direct_fs fast; then
	begin
	refused "$SLOW/psc.dmnd" "$FAST" "are on the same disk"
	throttle 207
	measure
	moves "$SLOW/psc.dmnd" "$FAST"
fi
echo "$cases cases, 0 wrong"
