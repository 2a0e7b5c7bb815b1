#!/usr/bin/env bash
# Faults that happen: a target that another process fills half-way, or that runs out of inodes or becomes read-only, a
# source with unreadable blocks, a target that gives back other bytes, refuses to write or to flush, a state directory
# that fills up, a filesystem damaged underneath. Each time the path gives its bytes, the message names the thing,
# nothing is left (or recover removes it), and when the fault is gone the same command succeeds. DBT_FULL=1: on more
# filesystems.
# needs: loop
# timeout: 300
# full: 1200
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/disks.sh"

faults=0

# begin WHAT: a file of 9 MiB at $A.
begin()
{
	WHEN=$*
	A=$SLOW/a.bin
	rm -rf "$TMP/state" "$TMP/reference"
	mkdir "$TMP/reference"
	head -c 9M /dev/urandom >"$A"
	cp "$A" "$TMP/reference/a.bin"
	sync
	remember_world
	faults=$((faults + 1))
	echo "fault $faults: $*"
}

# in_background ARGS...: a slow promotion of $A; returns when it copies.
in_background()
{
	"$@" --state-dir "$TMP/state" --progress=json promote --force --limit-rate 3M --to "$FAST" "${WHAT:-$A}" \
		>"$TMP/out" 2>"$TMP/err" &
	pid=$!
	until grep -q '"done":[1-9]' "$TMP/err" 2>/dev/null; do
		kill -0 "$pid" 2>/dev/null || fail "ended too early: $WHEN"
		sleep 0.02
	done
}

# ended STATUS TEXT: the promotion in the background ended so, with a message that has the text.
ended()
{
	status=0
	wait "$pid" || status=$?
	[[ $status -eq $1 ]] || fail "ended with $status, not $1: $WHEN"
	err_has "$2"
	[[ ! -L $A ]] || fail "promoted in spite of it: $WHEN"
}

# clean: nothing is left without recover, and the path is as it was.
clean()
{
	nothing_below "$FAST" "$WHEN"
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/world" "$TMP/after" "not as it was: $WHEN"
}

# works_again: without the fault the same command succeeds.
works_again()
{
	expect 0 promote "${WHAT:-$A}"
	reads_right "$A"
	expect 0 dbtier verify
	settle
}

# nearly_full: what is left is soon filled.
nearly_full()
{
	fallocate -l $(($(df --output=avail -B1 "$FAST" | tail -1) - 44000000)) "$FAST/filler.0"
}

# fill DIR: to the last block.
fill()
{
	cat /dev/zero >"$1/filler" 2>/dev/null || true
	cat /dev/zero >>"$1/filler.2" 2>/dev/null || true
}

# btrfs gives space back with its next commit.
unfill()
{
	rm -f "$FAST"/filler*
	sync -f "$FAST"
}

# --- the filesystem of the copies ------------------------------------------------------------------------

# With fallocate the space is taken before the first byte: whoever comes later gets the error.
filled_with_reservation()
{
	begin "$types: the target is filled by another process; the space was reserved"
	nearly_full
	in_background "$DBTIER"
	fill "$FAST"
	wait "$pid" || fail "failed although its space was reserved: $WHEN"
	reads_right "$A"
	unfill
	settle
}

filled_half_way()
{
	begin "$types: the target is filled by another process, and nothing could be reserved"
	"$DBT_TOOLS/runold" fallocate -- true || return 0
	nearly_full
	in_background "$DBT_TOOLS/runold" fallocate -- "$DBTIER"
	fill "$FAST"
	ended 1 "no space left"
	err_has "$FAST/a.bin"
	unfill
	clean
	works_again
}

# Nothing of it is a regular file, so that no space but inodes is used up. Many at a time, to be quicker than a copy.
fill_inodes()
{
	local i

	mkdir "$FAST/filler"
	for ((i = 0; ; i++)); do
		mkfifo "$FAST/filler/$i".{0..99} 2>/dev/null || break
	done
}

out_of_inodes()
{
	begin "$types: the target runs out of inodes"
	rm -f "$A"
	"$DBT_TOOLS/mkdb" blast "$SLOW/nr" 6M 30
	cp "$SLOW"/nr* "$TMP/reference/"
	remember_world
	A=$SLOW/nr.29.psq WHAT=$SLOW/nr
	in_background "$DBTIER"
	fill_inodes
	ended 1 "no space left"
	err_has "$FAST/nr/"
	rm -rf "$FAST/filler"
	clean
	# Seen in time when it is so from the beginning.
	fill_inodes
	run promote "$SLOW/nr"
	[[ $status -eq 3 ]] || fail "not refused: $WHEN"
	err_has "not enough inodes in '$FAST'"
	rm -rf "$FAST/filler"
	works_again
	rm -f "$SLOW"/nr*
	WHAT=
}

target_read_only()
{
	begin "$types: the target becomes read-only after an error of its own"
	in_background "$DBTIER"
	mount -o remount,abort "$FAST" 2>/dev/null || true
	ended 1 "$FAST/a.bin"
	umount "$FAST"
	mount -o loop "$PAIR/fast.img" "$FAST"
	# What could not be removed is removed now.
	expect 0 dbtier recover
	rm -rf "$FAST/lost+found"
	clean
	works_again
}

source_read_only()
{
	begin "$types: the source becomes read-only half-way"
	in_background "$DBTIER"
	mount -o remount,ro "$SLOW"
	ended 1 "read-only"
	err_has "$SLOW"
	mount -o remount,rw "$SLOW"
	expect 0 dbtier recover
	clean
	works_again
}

ledger_filled()
{
	begin "$types: the state directory fills up half-way"
	mkdir -p "$TMP/state"
	mount -t tmpfs -o size=256K tmpfs "$TMP/state"
	in_background "$DBTIER"
	fill "$TMP/state"
	ended 1 "$TMP/state"
	reads_right "$A"
	rm -f "$TMP"/state/filler*
	expect 0 dbtier recover
	clean
	works_again
	umount "$TMP/state"
}

# --- the disks underneath --------------------------------------------------------------------------------

# begin_disk WHAT: the file holds a sector that the disks may treat badly.
begin_disk()
{
	begin "$types: $*"
	printf 'A BAD SECTOR FOR TESTS' | dd of="$A" bs=4096 seek=700 conv=notrunc status=none
	cp "$A" "$TMP/reference/a.bin"
	sync
	remember_world
	echo 3 >/proc/sys/vm/drop_caches
}

# failed TEXT...: the promotion fails, with these in its message.
failed()
{
	local text

	run promote "$A"
	[[ $status -eq 1 ]] || fail "ended with $status: $WHEN"
	for text; do
		err_has "$text"
	done
}

unreadable_source()
{
	begin_disk "a block of the source cannot be read"
	control fault slow read
	failed "$A" "input/output error"
	control fault slow off
	clean
	works_again
}

other_bytes_back()
{
	begin_disk "the target gives back other bytes than were written"
	control fault fast flip
	failed "$FAST/a.bin" "reads back other bytes"
	control fault fast off
	clean
	expect 0 promote "$A"
	# Later as well: verify and reclaim read the device, not the memory.
	control fault fast flip
	expect 4 dbtier verify
	out_has copy-modified
	expect 1 dbtier reclaim a.bin
	err_has "the original stays"
	[[ -f $SLOW/.a.bin.dbtier-original ]] || fail "the only right bytes were deleted: $WHEN"
	control fault fast read
	expect 4 dbtier verify
	run dbtier reclaim a.bin
	[[ $status -ne 0 && -f $SLOW/.a.bin.dbtier-original ]] || fail "reclaimed from what cannot be read: $WHEN"
	# Whoever reads now gets the error; the original is there.
	expect 0 dbtier rollback --discard-changes
	control fault fast off
	reads_right "$A"
	run dbtier recover
	settle
}

unwritable_target()
{
	begin_disk "a block of the target cannot be written"
	control fault fast write
	failed "$FAST/a.bin" "input/output error"
	control fault fast off
	run dbtier recover
	remount_fast
	clean
	works_again
}

# A filesystem whose device fails a flush may go read-only until it is mounted anew.
unflushable_target()
{
	begin_disk "the target's disk fails its flushes"
	control fault fast flush
	failed "$FAST"
	reads_right "$A"
	[[ ! -L $A ]] || fail "promoted without a flush: $WHEN"
	control fault fast off
	remount_fast
	expect 0 dbtier recover
	clean
	works_again
}

unflushable_source()
{
	begin_disk "the source's disk fails its flushes"
	expect 0 dbtier recover # the ledger exists
	in_background "$DBTIER"
	control fault slow flush
	status=0
	wait "$pid" || status=$?
	[[ $status -eq 1 ]] || fail "ended with $status: $WHEN"
	err_has "$SLOW"
	control fault slow off
	# xfs gives nothing at all after such an error, until it is mounted anew.
	umount "$PAIR/slow" || fail "in use: $WHEN"
	disk_mount slow "$slow" "$PAIR/slow"
	expect 0 dbtier recover
	reads_right "$A"
	[[ $(dbtier status --all -n -r -o state | tail -1) == promoted ]] || clean
	settle
}

remount_fast()
{
	umount "$PAIR/fast" || fail "in use: $WHEN"
	disk_mount fast "$fast" "$PAIR/fast"
}

one=("xfs ext4") disks=("ext4 xfs")
[[ -z ${DBT_FULL-} ]] || one+=("ext4 btrfs" "btrfs xfs") disks+=("xfs ext4")
for types in "${one[@]}"; do
	# shellcheck disable=SC2086
	pair $types
	if [[ $types == *ext4 ]]; then
		until umount "$FAST" 2>/dev/null; do # whoever looks at new mounts may be at it
			sleep 0.1
		done
		mkfs.ext4 -q -F -N 128 "$PAIR/fast.img" 2>/dev/null
		mount -o loop "$PAIR/fast.img" "$FAST"
		rm -rf "$FAST/lost+found"
		out_of_inodes
		target_read_only
	fi
	filled_with_reservation
	filled_half_way
	source_read_only
	ledger_filled
done
pair_down

if [[ -x $DBT_TOOLS/fusedisks && -w /dev/fuse ]]; then
	disks_new slow:320 fast:320
	for types in "${disks[@]}"; do
		slow=${types% *} fast=${types#* } SLOW=$PAIR/slow/db FAST=$PAIR/fast/db
		disk_mkfs slow "$slow"
		disk_mkfs fast "$fast"
		disk_mount slow "$slow" "$PAIR/slow"
		disk_mount fast "$fast" "$PAIR/fast"
		mkdir "$SLOW" "$FAST"
		unreadable_source
		other_bytes_back
		unwritable_target
		unflushable_target
		unflushable_source
		umount "$PAIR/slow" "$PAIR/fast"
	done
else
	echo "no fusedisks or no FUSE here: faults of disks are left out"
fi
echo "$faults faults, 0 wrong"
