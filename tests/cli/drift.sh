#!/usr/bin/env bash
# The world changes behind the ledger: each health word of status by doing the thing, what recover makes of it, what
# rollback refuses and how it is told to go on; a lost and a damaged ledger.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

cases=0

# begin: a fresh promoted file $A with copy $COPY and original $KEPT, its bytes in $TMP/reference.
begin()
{
	rm -rf "$SLOW" 2>/dev/null || true # a mount point: only what is below goes
	rm -rf "$FAST" 2>/dev/null || true
	rm -rf "$TMP/state"
	A=$SLOW/a.bin COPY=$FAST/a.bin KEPT=$SLOW/.a.bin.dbtier-original
	head -c 200000 /dev/urandom >"$A"
	touch -d '2001-02-03 04:05:06.123456789' "$A"
	cp "$A" "$TMP/reference"
	facts "$SLOW" >"$TMP/world"
	expect 0 promote "$@" "$A"
	cases=$((cases + 1))
}

# health WORD [STATUS]: what status says, and that its detail names the path.
health()
{
	expect "${2:-4}" dbtier status
	equal "$1" "$(dbtier status -n -r -o health 2>/dev/null)" "health"
	[[ ${2:-4} -eq 0 ]] || err_has "$A"
}

verified()
{
	expect "${2:-4}" dbtier verify
	equal "$1" "$(dbtier verify -n -r -o health 2>/dev/null)" "health by verify"
}

right()
{
	cmp "$TMP/reference" "$A" || fail "the path does not give its bytes"
}

as_before()
{
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/world" "$TMP/after" "not as it was"
	nothing_below "$FAST" "after everything"
}

# Other bytes in the copy; with the times put back, as somebody may do who has something to hide.
modify_copy()
{
	printf 'changed' | dd of="$COPY" bs=1 seek=1000 conv=notrunc status=none
}

ok()
{
	begin
	health ok 0
	verified ok 0
	expect 0 dbtier recover
	err_has "nothing to recover"
}

copy_missing()
{
	begin
	rm "$COPY"
	health copy-missing
	expect 0 dbtier recover
	out_has "returned to the original"
	state_is rolled-back
	right
	as_before
}

copy_missing_after_reclaim()
{
	begin --reclaim
	mv "$COPY" "$TMP/copy"
	health copy-missing
	run dbtier recover
	health copy-missing
	expect 1 dbtier rollback
	err_has "restore the database from elsewhere"
	mv "$TMP/copy" "$COPY" # from another filesystem: another file
	health copy-modified
	right
}

copy_replaced()
{
	begin
	cp "$COPY" "$TMP/copy"
	rm "$COPY"
	cp "$TMP/copy" "$COPY"
	health copy-modified
	# It may hold a newer release: recover does not decide that, and nobody touches the file.
	run dbtier recover
	[[ -L $A ]] || fail "recover went back to an older file"
	expect 3 dbtier rollback
	expect 0 dbtier rollback --discard-changes
	right
	[[ -f $COPY ]] || fail "rollback removed a file that dbtier had not made"
}

copy_modified()
{
	begin
	modify_copy
	cp "$COPY" "$TMP/changed"
	health copy-modified
	verified copy-modified
	run dbtier recover
	health copy-modified
	expect 3 dbtier rollback
	err_has "--keep-changes"
	err_has "--discard-changes"
	cmp "$TMP/changed" "$A" || fail "a refused rollback changed something"
	expect 0 dbtier rollback --discard-changes
	right
	as_before
}

copy_modified_in_secret()
{
	begin
	modify_copy
	touch -r "$KEPT" "$COPY"
	health copy-modified # its ctime tells
	verified copy-modified
	expect 3 dbtier rollback
	expect 0 dbtier rollback --keep-changes
	[[ ! -L $A ]] || fail "still a link"
	! cmp -s "$TMP/reference" "$A" || fail "the changes were not kept"
	equal changed "$(dd if="$A" bs=1 skip=1000 count=7 status=none)" "the change"
	# The older original holds bytes that are nowhere else.
	cmp "$TMP/reference" "$KEPT" || fail "the older original is gone"
	nothing_below "$FAST" "after --keep-changes"
}

copy_touched()
{
	begin
	chmod 640 "$COPY"
	chmod 644 "$COPY"
	health copy-modified
	err_has "verify"
	verified ok 0
	expect 0 dbtier rollback
	as_before
}

link_replaced()
{
	begin
	rm "$A"
	echo "a newer release" >"$A"
	health link-replaced
	run dbtier recover
	health link-replaced
	expect 3 dbtier rollback
	err_has "something newer"
	equal "a newer release" "$(cat "$A")" "the newer file"
	[[ -f $KEPT && -f $COPY ]] || fail "a refused rollback removed something"
	# Who has cleaned up by hand is not told for ever that something is wrong.
	rm "$KEPT"
	run dbtier recover
	health link-replaced
	rm "$COPY"
	expect 0 dbtier recover
	out_has "nothing of it is left"
	expect 0 dbtier status
	equal "a newer release" "$(cat "$A")" "the newer file"
}

link_led_elsewhere()
{
	begin
	ln -sfn "$TMP/reference" "$A"
	health link-replaced
	expect 3 dbtier rollback
}

# Somebody rolled back by hand.
original_put_back()
{
	begin
	mv -f "$KEPT" "$A"
	health link-replaced
	err_has "recover"
	expect 0 dbtier recover
	state_is rolled-back
	right
	as_before
}

original_missing()
{
	begin
	rm "$KEPT"
	health original-missing
	expect 3 dbtier reclaim "$A"
	expect 3 dbtier rollback
	err_has "--keep-changes"
	right
	expect 0 dbtier rollback --keep-changes
	right
	nothing_below "$FAST" "after --keep-changes"
}

original_changed()
{
	begin
	echo more >>"$KEPT"
	health original-changed
	expect 3 dbtier reclaim "$A"
	expect 3 dbtier rollback
	right
	expect 0 dbtier rollback --keep-changes
	right
}

# With size and times as they were: only reading tells.
original_changed_in_secret()
{
	begin
	touch -r "$KEPT" "$TMP/times"
	printf 'changed' | dd of="$KEPT" bs=1 seek=1000 conv=notrunc status=none
	touch -r "$TMP/times" "$KEPT"
	verified original-changed
	right
}

not_mounted()
{
	begin
	umount "$FAST"
	health not-mounted
	mount -o loop "$PAIR/fast.img" "$FAST"
	health ok 0
	umount "$FAST"
	expect 0 dbtier recover
	right
	mount -o loop "$PAIR/fast.img" "$FAST"
	# The copy stays for --repromote, until it is deleted by hand.
	expect 0 dbtier recover
	out_has "its copy is there again"
	state_is rolled-back
	cmp "$TMP/reference" "$COPY" || fail "the copy that waits is not left"
	rm "$COPY"
	expect 0 dbtier recover
	as_before
}

not_mounted_after_reclaim()
{
	begin --reclaim
	umount "$FAST"
	health not-mounted
	expect 3 dbtier rollback
	err_has "not mounted"
	run dbtier recover
	mount -o loop "$PAIR/fast.img" "$FAST"
	health ok 0
	right
	expect 0 dbtier rollback
	right
	nothing_below "$FAST" "after rollback"
}

orphan()
{
	begin
	rm -rf "${SLOW:?}"/* "$KEPT"
	health orphan
	run dbtier recover
	[[ -f $COPY ]] || fail "recover removed the only copy"
	expect 3 dbtier rollback
	[[ -f $COPY ]] || fail "rollback removed the only copy"
	rm "$COPY"
	expect 0 dbtier recover
	expect 0 dbtier status
}

# An updater removes the directory and makes a new one.
directory_recreated()
{
	mkdir "$SLOW/db"
	begin
	rm -rf "$TMP/state" "$A" "$KEPT" "$COPY"
	mkdir -p "$SLOW/db"
	A=$SLOW/db/a.bin
	cp "$TMP/reference" "$A"
	expect 0 promote "$A"
	rm -rf "$SLOW/db"
	health orphan
	mkdir "$SLOW/db"
	health orphan
	echo new >"$A"
	health link-replaced
	expect 3 dbtier rollback
	equal new "$(cat "$A")" "the new file"
}

# The state directory of another machine, where the same names lead to other files.
other_machine()
{
	begin
	cp -a "$TMP/state" "$TMP/theirs"
	pair ext4 xfs
	begin
	facts_untouched "$SLOW" >"$TMP/before"
	facts_untouched "$FAST" >>"$TMP/before"
	rm -rf "$TMP/ours"
	mv "$TMP/state" "$TMP/ours"
	mv "$TMP/theirs" "$TMP/state"
	expect 4 dbtier status
	[[ $(dbtier status -n -r -o health 2>/dev/null) != ok ]] || fail "files of another machine are called healthy"
	run dbtier verify
	[[ $status -eq 4 ]] || fail "verify ended with $status"
	run dbtier recover
	run dbtier rollback
	[[ $status -ne 0 ]] || fail "rolled back with the ledger of another machine"
	run dbtier rollback --discard-changes
	[[ $status -ne 0 ]] || fail "rolled back with the ledger of another machine"
	run dbtier reclaim "$A"
	[[ $status -ne 0 ]] || fail "reclaimed with the ledger of another machine"
	facts_untouched "$SLOW" >"$TMP/after"
	facts_untouched "$FAST" >>"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "the ledger of another machine changed something"
	rm -rf "$TMP/state"
	mv "$TMP/ours" "$TMP/state"
	health ok 0
	expect 0 dbtier rollback
	right
	as_before
}

# bytes_read COMMAND...: how many it read in all, from memory or not; what it says in $TMP/out.
bytes_read()
{
	(
		me=/proc/$BASHPID/io
		before=$(sed -n 's/^rchar: //p' "$me")
		"$@" >"$TMP/out" 2>"$TMP/err" || true
		echo $(($(sed -n 's/^rchar: //p' "$me") - before))
	)
}

# Drift is found by looking, not by reading: what status reads does not depend on the size of the files.
found_at_once()
{
	local small large

	begin
	printf x >>"$COPY"
	small=$(bytes_read dbtier status)
	out_has copy-modified
	expect 0 dbtier rollback --discard-changes
	rm -rf "$TMP/state"
	head -c 100M /dev/urandom >"$A"
	expect 0 promote "$A"
	printf x >>"$COPY"
	large=$(bytes_read dbtier status)
	out_has copy-modified
	[[ $large -lt $((small + 1000000)) ]] || fail "status reads $large bytes for a large file, $small for a small one"
	expect 0 dbtier rollback --discard-changes
	echo "status finds a modified copy of 100 MiB by reading $large bytes"
}

interrupted_and_finished()
{
	local trace=(strace -f -qq -o /dev/null -e trace=symlinkat -e inject=symlinkat:signal=SIGKILL)

	command -v strace >/dev/null || return 0
	begin
	expect 0 dbtier rollback
	{ run "${trace[@]}" "$DBTIER" --state-dir "$TMP/state" promote --force "$A" --to "$FAST"; } 2>/dev/null
	[[ $status -eq 137 ]] || return 0
	expect 4 dbtier status
	equal interrupted "$(dbtier status -n -r -o health 2>/dev/null)" "health"
	right
	expect 0 dbtier recover
	health ok 0
	right
}

# --- the ledger ------------------------------------------------------------------------------------------

lost_ledger()
{
	begin
	rm -rf "$TMP/state"
	expect 0 dbtier status
	expect 1 dbtier rollback a.bin
	expect 0 dbtier rollback "$A"
	right
	# Nothing proves any more that dbtier made the copy.
	cmp "$TMP/reference" "$COPY"
	[[ ! -e $KEPT ]] || fail "the kept name is left"
	equal "$(head -1 "$TMP/world")" "$(facts "$SLOW" | head -1)" "the file"
}

lost_ledger_and_other_bytes()
{
	begin
	rm -rf "$TMP/state"
	modify_copy
	expect 3 dbtier rollback "$A"
	err_has "differ"
	err_has "--discard-changes"
	[[ -L $A ]] || fail "a refused rollback changed something"
	expect 0 dbtier rollback --discard-changes "$A"
	right
	[[ -f $COPY ]] || fail "the other file is gone"
}

lost_ledger_and_no_original()
{
	begin --reclaim
	rm -rf "$TMP/state"
	expect 1 dbtier rollback "$A"
	err_has "no original"
	right
}

# Every command names the ledger and changes nothing; rollback PATH works from what stands beside the link.
check_damaged()
{
	local command

	for command in status verify recover "rollback a.bin" "reclaim $A" "promote $A --to $FAST"; do
		# shellcheck disable=SC2086
		expect 1 dbtier $command
		err_has "$TMP/state/dbtier.db"
	done
	[[ -L $A && -f $KEPT && -f $COPY ]] || fail "something was changed with a damaged ledger"
	right
	expect 0 dbtier rollback "$A"
	err_has "$TMP/state/dbtier.db"
	right
	[[ ! -L $A ]] || fail "still a link"
}

damaged_ledger()
{
	begin
	head -c 8192 /dev/urandom >"$TMP/state/dbtier.db"
	check_damaged
	begin
	dd if=/dev/urandom of="$TMP/state/dbtier.db" bs=4096 seek=1 count=3 conv=notrunc status=none
	check_damaged
}

unwritable_state()
{
	begin
	expect 0 dbtier rollback
	mkdir "$TMP/full"
	mount -t tmpfs -o size=64K tmpfs "$TMP/full"
	head -c 60000 /dev/zero >"$TMP/full/filler" 2>/dev/null || true
	expect 1 "$DBTIER" --state-dir "$TMP/full/state" promote --force "$A" --to "$FAST"
	err_has "$TMP/full/state"
	as_before
	mount -o remount,ro "$TMP/full"
	expect 1 "$DBTIER" --state-dir "$TMP/full/other" promote --force "$A" --to "$FAST"
	err_has "$TMP/full/other"
	as_before
	umount "$TMP/full"
}

pair ext4 xfs
for name in ok copy_missing copy_missing_after_reclaim copy_replaced copy_modified copy_modified_in_secret copy_touched \
	link_replaced link_led_elsewhere original_put_back original_missing original_changed original_changed_in_secret \
	not_mounted not_mounted_after_reclaim orphan directory_recreated other_machine found_at_once interrupted_and_finished lost_ledger \
	lost_ledger_and_other_bytes lost_ledger_and_no_original damaged_ledger unwritable_state; do
	[[ -z ${DBT_TRACE-} ]] || echo "$name"
	$name
done
echo "$cases states, 0 wrong"
