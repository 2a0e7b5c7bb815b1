#!/usr/bin/env bash
# What others leave or do around a promotion: journals of SQLite beside a file or its copy, copies of another ledger,
# directories in strange hands, copies that are replaced, originals that are edited, ledgers that are garbled. Each
# case once went wrong, with the path reading other bytes or the only copy deleted.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

cases=0

begin()
{
	pair ext4 xfs
	cases=$((cases + 1))
	echo "case $cases: $*"
}

fill()
{
	head -c "${2:-300000}" /dev/urandom >"$1"
	sync "$1"
}

holds()
{
	[[ $(sha256sum <"$1") == "$2" ]] || fail "$1 holds other bytes"
}

# A database in WAL mode with 1000 rows, checkpointed.
make_wal_db()
{
	rm -f "$1" "$1-wal" "$1-shm"
	sqlite3 "$1" "PRAGMA journal_mode=WAL; CREATE TABLE t(x); WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1
		FROM n WHERE i<1000) INSERT INTO t SELECT i FROM n; PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
	rm -f "$1-wal" "$1-shm"
}

# Commits rows that stay in the -wal: the writer dies before it can write them back.
write_and_die()
{
	local pid

	mkfifo "$TMP/sql" 2>/dev/null || true
	sqlite3 "$1" <"$TMP/sql" >/dev/null 2>&1 &
	pid=$!
	exec 9>"$TMP/sql"
	echo "PRAGMA wal_autocheckpoint=0; WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i+1 FROM n WHERE i<500)
		INSERT INTO t SELECT i FROM n;" >&9
	until [[ -s $(readlink -f "$1")-wal ]]; do sleep 0.05; done
	sleep 0.2
	kill -KILL "$pid"
	exec 9>&-
	wait "$pid" 2>/dev/null || true
}

rows()
{
	sqlite3 "file:$1?mode=ro" 'SELECT count(*) FROM t'
}

if command -v sqlite3 >/dev/null; then
	begin "a -wal that lies where the copy shall stand is not replayed into it"
	make_wal_db "$SLOW/x.db"
	make_wal_db "$FAST/x.db"
	write_and_die "$FAST/x.db"
	rm "$FAST/x.db"
	expect 3 promote "$SLOW/x.db"
	err_has "$FAST/x.db-wal"
	[[ ! -L $SLOW/x.db && ! -e $FAST/x.db ]] || fail "something was changed"

	begin "rollback does not lose what SQLite left beside the copy"
	make_wal_db "$SLOW/x.db"
	expect 0 promote "$SLOW/x.db"
	write_and_die "$SLOW/x.db"
	equal 1500 "$(rows "$SLOW/x.db")" "rows before"
	expect 4 dbtier status
	expect 4 dbtier verify
	expect 3 dbtier rollback
	err_has wal_checkpoint
	expect 3 dbtier rollback --keep-changes
	expect 3 dbtier reclaim x.db
	equal 1500 "$(rows "$SLOW/x.db")" "rows after the refusals"
	sqlite3 "$SLOW/x.db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	rm -f "$FAST"/x.db-*
	expect 0 dbtier rollback --keep-changes
	equal 1500 "$(rows "$SLOW/x.db")" "rows after --keep-changes"

	begin "a -wal that comes during the copy stops the swap"
	make_wal_db "$SLOW/y.db"
	sqlite3 "$SLOW/y.db" "CREATE TABLE big(x); INSERT INTO big VALUES(randomblob(6000000)); PRAGMA wal_checkpoint(TRUNCATE)" >/dev/null
	rm -f "$SLOW"/y.db-*
	"$DBTIER" --state-dir "$TMP/state" promote --force --to "$FAST" --limit-rate 2M "$SLOW/y.db" >"$TMP/bg" 2>&1 &
	promoting=$!
	until compgen -G "$FAST/.dbtier-*.part" >/dev/null; do sleep 0.05; done
	write_and_die "$SLOW/y.db"
	! wait "$promoting" || fail "the promotion went on"
	equal 1500 "$(rows "$SLOW/y.db")" "rows afterwards"
	[[ ! -L $SLOW/y.db ]] || fail "it is a link"
fi

begin "two ledgers do not share a copy"
mkdir "$SLOW/a" "$SLOW/b"
fill "$SLOW/a/x.bin"
cp "$SLOW/a/x.bin" "$SLOW/b/x.bin"
sum=$(sha256sum <"$SLOW/a/x.bin")
expect 0 "$DBTIER" --state-dir "$TMP/state/A" promote --force --to "$FAST" "$SLOW/a/x.bin"
expect 3 "$DBTIER" --state-dir "$TMP/state/B" promote --force --to "$FAST" "$SLOW/b/x.bin" --reclaim
err_has "another ledger"
expect 0 "$DBTIER" --state-dir "$TMP/state/A" rollback
holds "$SLOW/a/x.bin" "$sum"
holds "$SLOW/b/x.bin" "$sum"

begin "a taken-over copy is no reason to delete the original"
fill "$SLOW/x.bin"
cp "$SLOW/x.bin" "$FAST/x.bin"
expect 0 promote "$SLOW/x.bin"
expect 3 dbtier reclaim x.bin
err_has "stood there before"
expect 0 dbtier rollback
[[ -f $FAST/x.bin ]] || fail "the taken-over copy was deleted"

begin "a copy that --keep-copy left is the user's: another ledger takes it over"
fill "$SLOW/x.bin"
expect 0 promote "$SLOW/x.bin"
expect 0 dbtier rollback --keep-copy
expect 0 "$DBTIER" --state-dir "$TMP/state/B" promote --force --to "$FAST" "$SLOW/x.bin"
expect 0 "$DBTIER" --state-dir "$TMP/state/B" rollback
[[ -f $FAST/x.bin ]] || fail "the copy was deleted"

begin "a set does not go into a directory of a stranger"
"$DBT_TOOLS/mkdb" kraken2 "$SLOW/kr" 400K
chmod 1777 "$FAST"
mkdir -m 755 "$FAST/kr"
chown 65534:65534 "$FAST/kr"
expect 3 promote "$SLOW/kr" --all-files
err_has "$FAST/kr"
rmdir "$FAST/kr"
mkdir -m 777 "$FAST/kr"
expect 3 promote "$SLOW/kr" --all-files
rmdir "$FAST/kr"
mkdir -m 755 "$FAST/kr"
expect 0 promote "$SLOW/kr" --all-files
expect 0 dbtier rollback

begin "nor into a directory where anybody may replace the files of others"
chmod 777 "$FAST"
fill "$SLOW/x.bin"
expect 3 promote "$SLOW/x.bin"
err_has "chmod +t"

begin "an interrupted reclaim deletes nothing that was not proved in that run"
need_command strace strace
fill "$SLOW/r.bin"
sum=$(sha256sum <"$SLOW/r.bin")
expect 0 promote "$SLOW/r.bin"
strace -f -qq -o /dev/null -e trace=unlinkat -e inject=unlinkat:signal=KILL:when=1 \
	"$DBTIER" --state-dir "$TMP/state" reclaim r.bin >/dev/null 2>&1 || true
[[ -f $SLOW/.r.bin.dbtier-original ]] || fail "the original is gone"
touch -r "$FAST/r.bin" "$TMP/time"
printf x | dd of="$FAST/r.bin" conv=notrunc status=none
touch -r "$TMP/time" "$FAST/r.bin"
expect 0 dbtier recover
[[ -f $SLOW/.r.bin.dbtier-original ]] || fail "the only good bytes were deleted"
holds "$SLOW/.r.bin.dbtier-original" "$sum"

begin "--discard-changes has nothing to return to after reclaim"
fill "$SLOW/e.bin"
expect 0 promote "$SLOW/e.bin" --reclaim
echo edited >>"$FAST/e.bin"
sum=$(sha256sum <"$FAST/e.bin")
expect 3 dbtier rollback
err_lacks --discard-changes
expect 3 dbtier rollback --discard-changes
holds "$SLOW/e.bin" "$sum"
expect 0 dbtier rollback --keep-changes
[[ ! -L $SLOW/e.bin && ! -e $FAST/e.bin ]] || fail "not rolled back"
holds "$SLOW/e.bin" "$sum"

begin "a copy that was replaced by rename is newer, not gone"
fill "$SLOW/n.txt"
fill "$SLOW/o.txt"
expect 0 promote "$SLOW/n.txt"
fill "$FAST/.new"
mv "$FAST/.new" "$FAST/n.txt"
sum=$(sha256sum <"$FAST/n.txt")
expect 0 promote "$SLOW/o.txt"
holds "$SLOW/n.txt" "$sum"
expect 4 dbtier status
out_has copy-modified
expect 4 dbtier verify
out_has copy-modified
expect 3 dbtier rollback n.txt
holds "$SLOW/n.txt" "$sum"
expect 0 dbtier rollback --keep-changes n.txt
holds "$SLOW/n.txt" "$sum"
holds "$FAST/n.txt" "$sum"

begin "an original that was edited with its time put back is not deleted, nor put back unasked"
fill "$SLOW/r.bin"
expect 0 promote "$SLOW/r.bin"
touch -r "$SLOW/.r.bin.dbtier-original" "$TMP/time"
printf x | dd of="$SLOW/.r.bin.dbtier-original" conv=notrunc status=none
touch -r "$TMP/time" "$SLOW/.r.bin.dbtier-original"
expect 3 dbtier reclaim r.bin
[[ -f $SLOW/.r.bin.dbtier-original ]] || fail "it was deleted"
expect 3 dbtier rollback
[[ -L $SLOW/r.bin ]] || fail "it was put back"

begin "a run in another PID namespace is a live one"
if unshare --pid --fork --mount-proc true 2>/dev/null; then
	fill "$SLOW/p.bin" 4000000
	unshare --pid --fork --mount-proc "$DBTIER" --state-dir "$TMP/state" promote --force --to "$FAST" \
		--limit-rate 2M "$SLOW/p.bin" >"$TMP/bg" 2>&1 &
	until compgen -G "$FAST/.dbtier-*.part" >/dev/null; do sleep 0.05; done
	expect 0 dbtier recover
	compgen -G "$FAST/.dbtier-*.part" >/dev/null || fail "its file was removed"
	wait $! || fail "it failed: $(cat "$TMP/bg")"
	expect 0 dbtier rollback
fi

begin "a run that fails leaves the promotion of another ledger alone"
fill "$SLOW/f.bin" 4000000
"$DBTIER" --state-dir "$TMP/state/A" promote --force --to "$FAST" --limit-rate 2M "$SLOW/f.bin" >"$TMP/bg" 2>&1 &
until compgen -G "$FAST/.dbtier-*.part" >/dev/null; do sleep 0.05; done
expect 0 "$DBTIER" --state-dir "$TMP/state/B" promote --force --to "$FAST" "$SLOW/f.bin"
! wait $! || fail "both promoted the same file"
[[ -L $SLOW/f.bin ]] || fail "the promotion was undone by the other"
expect 0 "$DBTIER" --state-dir "$TMP/state/B" status
expect 0 "$DBTIER" --state-dir "$TMP/state/B" rollback

begin "another filesystem in the target's place is not the target"
fill "$SLOW/u.bin"
expect 0 promote "$SLOW/u.bin" --reclaim
umount "$FAST"
truncate -s 320M "$PAIR/other.img"
mkfs.xfs -q "$PAIR/other.img"
mount -o loop "$PAIR/other.img" "$FAST"
expect 4 dbtier status
out_has not-mounted
umount "$FAST"
mount -o loop "$PAIR/fast.img" "$FAST"
expect 0 dbtier verify
expect 0 dbtier rollback

begin "sets of more files than a process may open"
"$DBT_TOOLS/mkdb" blast "$SLOW/nt" 3M 60
(
	ulimit -n 64
	expect 0 promote "$SLOW/nt"
	expect 0 dbtier rollback
)
[[ -z $(find "$FAST" -type f) ]] || fail "copies are left"

begin "a garbled ledger does not keep a path from being rolled back"
fill "$SLOW/g.bin"
sum=$(sha256sum <"$SLOW/g.bin")
expect 0 promote "$SLOW/g.bin"
head -c 8192 /dev/urandom >"$TMP/state/dbtier.db"
expect 1 dbtier status
err_has "dbtier.db"
expect 0 dbtier rollback "$SLOW/g.bin"
[[ ! -L $SLOW/g.bin ]] || fail "still a link"
holds "$SLOW/g.bin" "$sum"

begin "a ledger that is a FIFO is not waited for"
mkdir -p "$TMP/fifo"
mkfifo "$TMP/fifo/dbtier.db"
expect 1 timeout 10 "$DBTIER" --state-dir "$TMP/fifo" status
err_has "$TMP/fifo"

begin "a sparse file takes what it holds, not what it seems"
truncate -s 2G "$SLOW/sparse.bin"
head -c 100000 /dev/urandom | dd of="$SLOW/sparse.bin" bs=64K seek=100 conv=notrunc status=none
expect 0 promote "$SLOW/sparse.bin"
expect 0 dbtier rollback

begin "a limit on file sizes is an error like others"
fill "$SLOW/l.bin" 3000000
expect 1 bash -c "ulimit -f 1000; exec '$DBTIER' --state-dir '$TMP/state' promote --force --to '$FAST' '$SLOW/l.bin'"
err_has "file too large"
[[ -z $(find "$FAST" -type f) ]] || fail "an unfinished copy is left"

echo "$cases cases, 0 wrong"
