#!/usr/bin/env bash
# What is peculiar to single formats and would break their readers after a move: scan tells it, promote refuses or warns.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
need_command jq jq
need_command sqlite3 sqlite3
pair ext4 ext4
chmod 755 "$SLOW" "$FAST"

# note PATH: what scan says that one should know before moving it.
note()
{
	expect 0 dbtier scan --no-probe --json "$1"
	jq -r '.databases[0].note' "$TMP/out"
}

# A reader of a database in WAL mode writes beside it: where it could and the target does not let it, it would fail.
mkdir -m 777 "$SLOW/shared" "$FAST/open"
mkdir -m 755 "$FAST/closed"
chmod 777 "$SLOW/shared" "$FAST/open"
sqlite3 "$SLOW/shared/wal.db" "PRAGMA journal_mode=WAL; CREATE TABLE t(a)" >/dev/null
chmod 644 "$SLOW/shared/wal.db"
[[ $(note "$SLOW/shared/wal.db") == *"in WAL mode"* ]] || fail "scan does not tell of the WAL mode"
expect 3 dbtier promote "$SLOW/shared/wal.db" --to "$FAST/closed" --dry-run
err_has "is in WAL mode: its readers write beside it, and everybody may do that"
expect 0 promote "$SLOW/shared/wal.db" --to "$FAST/closed"
err_has "readers may fail there"
expect 0 dbtier rollback
# Not where nobody but root could write before, and not for the usual journal.
chmod 755 "$SLOW/shared"
expect 0 promote "$SLOW/shared/wal.db" --to "$FAST/closed"
err_lacks "WAL mode, and"
expect 0 dbtier rollback
chmod 775 "$SLOW/shared"
chgrp 100 "$SLOW/shared"
expect 3 dbtier promote "$SLOW/shared/wal.db" --to "$FAST/closed" --dry-run
err_has "and its group may do that"
chown 1000:0 "$SLOW/shared"
chmod 755 "$SLOW/shared"
expect 3 dbtier promote "$SLOW/shared/wal.db" --to "$FAST/closed" --dry-run
err_has "and its owner may do that"
chown 0:0 "$SLOW/shared"
chmod 777 "$SLOW/shared"
sqlite3 "$SLOW/shared/wal.db" "PRAGMA journal_mode=DELETE" >/dev/null
expect 0 promote "$SLOW/shared/wal.db" --to "$FAST/closed"
err_lacks "WAL"
expect 0 dbtier rollback

# Bakta builds a file: URI from the path without escaping it.
"$DBT_TOOLS/mkdb" bakta "$SLOW/db" 1M
for sign in '?' '#' '%'; do
	mkdir "$FAST/a${sign}b"
	for what in db db/bakta.db; do
		expect 3 promote "$SLOW/$what" --to "$FAST/a${sign}b"
		err_has "is opened by its tool as a file: URI"
	done
done
mkdir "$FAST/with blanks"
expect 0 promote "$SLOW/db" --to "$FAST/with blanks"
# Its updater deletes the directory with the links.
err_has "bakta_db update deletes the directory with its links: roll back before"
equal "bakta.db psc.dmnd" "$(cd "$SLOW/db" && find . -maxdepth 1 -type l -printf '%P\n' | sort | xargs)" "what moves of Bakta"
expect 0 dbtier rollback
[[ $(note "$SLOW/db") == *"roll back before"* ]] || fail "scan does not tell of the updater"

# With --all-files the other files move too; a link that the database ships itself stays what it is.
latest=$(readlink "$SLOW/db/amrfinderplus-db/latest")
mv "$SLOW/db/oric.fna" "$SLOW/oric.fna"
ln -s ../oric.fna "$SLOW/db/oric.fna"
expect 0 promote --all-files "$SLOW/db" --to "$FAST"
equal ../oric.fna "$(readlink "$SLOW/db/oric.fna")" "the link of the database"
equal "$latest" "$(readlink "$SLOW/db/amrfinderplus-db/latest")" "the link to the latest version"
[[ ! -e $FAST/db/oric.fna ]] || fail "a link of the database was copied"
[[ -L $SLOW/db/sorf.dmnd && -L $SLOW/db/pfam.h3m ]] || fail "--all-files left files where they were"
expect 0 dbtier rollback

# An updater that puts a file in place of a link: status tells, and rollback does not lose the new file.
"$DBT_TOOLS/mkdb" diamond "$SLOW/nr.dmnd" 200K
expect 0 promote "$SLOW/nr.dmnd"
"$DBT_TOOLS/mkdb" diamond "$SLOW/nr.new" 300K
mv "$SLOW/nr.new" "$SLOW/nr.dmnd"
expect 4 dbtier status
out_has link-replaced
cp "$SLOW/nr.dmnd" "$TMP/nr.dmnd"
run dbtier rollback
cmp "$TMP/nr.dmnd" "$SLOW/nr.dmnd" || fail "the updater's file is gone"

# A faiss index names its lists by absolute path.
lists=$SLOW/lists.ivfdata
head -c 4096 /dev/zero >"$lists"
{
	printf 'IwFl\020\0\0\0'
	printf '\012\0\0\0\0\0\0\0'
	printf '\0\0\020\0\0\0\0\0\0\0\020\0\0\0\0\0'
	printf '\001\001\0\0\0ilod'
	# shellcheck disable=SC2059 # the length is an octal byte
	printf "\\$(printf %03o ${#lists})\0\0\0\0\0\0\0%s\0\020\0\0\0\0\0\0" "$lists"
} >"$SLOW/x.faiss"
[[ $(note "$SLOW/x.faiss") == *"it names '$lists' by that absolute path"* ]] || fail "scan does not tell of the lists"
equal "lists.ivfdata x.faiss" "$(jq -r '[.databases[0].children[].name] | join(" ")' "$TMP/out")" "files of the index"
expect 0 promote "$SLOW/x.faiss"
err_has "by that absolute path"
[[ -L $lists && $(stat -Lc %s "$lists") -eq 4096 ]] || fail "the lists do not lie behind their old path"
expect 0 dbtier rollback
rm "$lists"
expect 0 dbtier scan --no-probe -n -o advice "$SLOW/x.faiss"
out_has "'lists.ivfdata' is missing"
echo "all traps told"
