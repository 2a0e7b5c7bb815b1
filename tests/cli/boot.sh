#!/usr/bin/env bash
# What a reboot does to promoted databases, and what recover --boot makes of it: copies in a directory that is emptied,
# in memory, on a disk that is not mounted; originals on a disk that comes later; nothing at all.
# needs: loop
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
pair ext4 ext4
trap pair_cleanup EXIT

# As systemd runs it: stderr is the journal.
boot()
{
	local wanted=$1

	shift
	: >"$TMP/journal"
	status=0
	JOURNAL_STREAM=$(stat -c %d:%i "$TMP/journal") dbtier recover --boot "$@" >"$TMP/out" 2>"$TMP/journal" || status=$?
	cp "$TMP/journal" "$TMP/err"
	[[ $status -eq $wanted ]] || fail "recover --boot ended with $status, not $wanted"
	out_is_empty
}

journal_has()
{
	grep -qE -e "$1" "$TMP/journal" || fail "the journal lacks '$1'"
}

is_plain()
{
	[[ -f $1 && ! -L $1 ]] || fail "'$1' is no plain file"
	equal "$2" "$(file_facts "$1")" "facts of '$1'"
}

# Nothing was ever promoted: nothing happens, no ledger is made.
boot 0
err_is_empty
[[ ! -e $TMP/state ]] || fail "recover --boot made a state directory"

mkdir "$SLOW/db"
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/a.dmnd" 200K
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/b.dmnd" 200K
a=$(file_facts "$SLOW/db/a.dmnd") b=$(file_facts "$SLOW/db/b.dmnd")

# All is well: nothing is done, nothing said.
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" --to "$FAST"
boot 0
err_is_empty
[[ -L $SLOW/db/a.dmnd ]] || fail "a healthy promotion was returned"

# The directory was emptied.
rm "$FAST/a.dmnd"
boot 0
journal_has "^<4>promotion [0-9]+ \('$SLOW/db/a.dmnd'\): returned to the original: the copy is gone"
is_plain "$SLOW/db/a.dmnd" "$a"
expect 0 dbtier status

# The target was in memory.
memory=$PAIR/memory
mkdir "$memory"
mount -t tmpfs -o mode=755 tmpfs "$memory"
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" --to "$memory"
umount "$memory"
boot 0
is_plain "$SLOW/db/a.dmnd" "$a"
mount -t tmpfs -o mode=755 tmpfs "$memory"
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" --to "$memory"
umount "$memory"
mount -t tmpfs -o mode=755 tmpfs "$memory"
boot 0
is_plain "$SLOW/db/a.dmnd" "$a"

# ... and is filled again, at the administrator's wish. A second time there is nothing to do.
expect 0 dbtier recover --repromote
out_has "promoted again"
cmp "$memory/a.dmnd" "$SLOW/db/a.dmnd"
[[ -L $SLOW/db/a.dmnd ]] || fail "not promoted again"
expect 0 dbtier status
expect 0 dbtier recover --repromote
err_has "nothing to recover"
# A path that was rolled back by hand is not promoted again.
umount "$memory"
boot 0
mount -t tmpfs -o mode=755 tmpfs "$memory"
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" --to "$FAST"
expect 0 dbtier rollback
expect 0 dbtier recover --repromote
is_plain "$SLOW/db/a.dmnd" "$a"
umount "$memory"

# The disk of the copies is not mounted; it comes back later with the copies on it, which are used again.
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" "$SLOW/db/b.dmnd" --to "$FAST"
inode=$(stat -c %i "$FAST/a.dmnd")
umount "$FAST"
expect 4 dbtier status -no name,health
out_has not-mounted
boot 0
is_plain "$SLOW/db/a.dmnd" "$a"
is_plain "$SLOW/db/b.dmnd" "$b"
journal_has "^<4>promotion [0-9]+ \('$SLOW/db/a.dmnd'\): returned to the original: the filesystem of the copy was not mounted; the copy stays"
[[ -z $(ls -A "$FAST") ]] || fail "something was written below the empty mount point"
# Nothing forgets that copy, whatever runs before it is used again: while its filesystem is away ...
boot 0
journal_has "waits: the path is its original; the copy's filesystem is not mounted"
expect 0 dbtier recover
out_has "the copy's filesystem is not mounted"
# ... while it cannot be looked at ...
if command -v strace >/dev/null; then
	# The leak sanitizer needs ptrace for itself.
	expect 0 env ASAN_OPTIONS=detect_leaks=0 strace -f -qq -o "$TMP/calls" -P "$FAST" -e inject=%file:error=EIO \
		"$DBTIER" --state-dir "$TMP/state" recover
	out_has "whether the copy is left cannot be seen: "
	out_has "$FAST"
fi
# ... and when it is there again.
mount -o loop "$PAIR/fast.img" "$FAST"
expect 0 dbtier recover
out_has "its copy is there again: 'dbtier recover --repromote' promotes again"
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/c.dmnd" 200K
expect 0 dbtier promote --force "$SLOW/db/c.dmnd" --to "$FAST"
expect 0 dbtier rollback "$SLOW/db/c.dmnd"
boot 0
equal "$inode" "$(stat -c %i "$FAST/a.dmnd")" "the copy that waits"
[[ -f $FAST/b.dmnd ]] || fail "the other copy that waits is gone"
umount "$FAST"
expect 4 dbtier recover --repromote
out_has "is not mounted"
[[ -z $(ls -A "$FAST") ]] || fail "copies were made below the empty mount point"
is_plain "$SLOW/db/a.dmnd" "$a"
mount -o loop "$PAIR/fast.img" "$FAST"
expect 0 dbtier recover --repromote
[[ -L $SLOW/db/a.dmnd && -L $SLOW/db/b.dmnd ]] || fail "not promoted again"
equal "$inode" "$(stat -c %i "$FAST/a.dmnd")" "the copy that came back"
expect 0 dbtier status

# A copy that waits is let go when it was deleted by hand, and when its path was promoted to elsewhere.
umount "$FAST"
boot 0
mount -o loop "$PAIR/fast.img" "$FAST"
rm "$FAST/a.dmnd"
mkdir "$FAST/other"
expect 0 dbtier promote --force "$SLOW/db/b.dmnd" --to "$FAST/other"
expect 0 dbtier recover
[[ ! -e $FAST/b.dmnd ]] || fail "a copy that nobody waits for is left"
expect 0 dbtier recover
err_has "nothing to recover"
expect 0 dbtier rollback "$SLOW/db/b.dmnd"
rmdir "$FAST/other"
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" "$SLOW/db/b.dmnd" --to "$FAST"

# The originals lie on a disk that is mounted later, and the copies are gone. Nothing is forgotten meanwhile, neither by
# recover --boot nor by what runs before another command.
rm "$FAST/a.dmnd" "$FAST/b.dmnd"
umount "$SLOW"
boot 0
journal_has "^<5>promotion [0-9]+ \('$SLOW/db/a.dmnd'\): waits: for its filesystem"
expect 0 dbtier recover
equal 2 "$(dbtier status -n -o id 2>/dev/null | wc -l)" "promotions that are remembered"
mount -o loop "$PAIR/slow.img" "$SLOW"
[[ ! -e $SLOW/db/a.dmnd && -L $SLOW/db/a.dmnd ]] || fail "this test proves nothing"
boot 0
is_plain "$SLOW/db/a.dmnd" "$a"
is_plain "$SLOW/db/b.dmnd" "$b"
expect 0 dbtier status

# A run that the reboot cut off is finished or undone.
expect 0 dbtier promote --force "$SLOW/db/a.dmnd" --to "$FAST"
sqlite3 "$TMP/state/dbtier.db" "UPDATE promotion SET state='swapping', owner_pid=1, owner_start=1, owner_boot='gone'
	WHERE id=(SELECT max(id) FROM promotion)" 2>/dev/null || skip "needs sqlite3 (package sqlite3)"
boot 0
journal_has "^<6>promotion [0-9]+ .*finished what an interrupted run had begun"
[[ -L $SLOW/db/a.dmnd ]] || fail "not finished"

# A damaged ledger is told, as an error.
printf 'garbage garbage garbage garbage ' >"$TMP/state/dbtier.db"
boot 1
journal_has '^<3>'
# Without the journal there is no priority.
expect 1 dbtier recover --boot
err_has 'dbtier: '
JOURNAL_STREAM=1:1 expect 1 dbtier recover --boot
err_has 'dbtier: '
