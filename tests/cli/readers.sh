#!/usr/bin/env bash
# The real tools give identical results before, during and after promotion and rollback, reading through the link:
# sqlite3, diamond blastp, blastp, RocksDB's ldb and LMDB's mdb_dump, those of them that are installed; and the same
# after reclaim.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

runs=0 during=0

# Each reader prints its results, without what differs between two runs anyway.
read_sqlite3()
{
	sqlite3 -readonly "$SLOW/bakta.db" "SELECT count(*), sum(length) FROM ups; SELECT hex(hash), length, uniref100_id
		FROM ups ORDER BY hash LIMIT 500; PRAGMA integrity_check;"
}

# Without locks, as Bakta does.
read_immutable()
{
	sqlite3 "file:$SLOW/bakta.db?mode=ro&immutable=1" "SELECT count(*), min(hex(hash)), max(hex(hash)) FROM ups"
}

read_diamond()
{
	patiently diamond blastp --quiet --threads 1 --db "$SLOW/psc.dmnd" --query "$TMP/query.faa" --outfmt 6
}

read_blastp()
{
	blastp -db "$SLOW/nr/nr" -query "$TMP/query.faa" -outfmt 6 -num_threads 1
}

read_ldb()
{
	ldb --db="$SLOW/rocks" scan
}

# Through the lock file, which every reader writes to.
read_mdb()
{
	mdb_stat -e "$SLOW/lmdb"
	mdb_dump -p "$SLOW/lmdb"
}

# same READER: it gives what it gave before the promotion.
same()
{
	"$1" >"$TMP/now.$1" || fail "$1 failed $WHEN"
	cmp -s "$TMP/before.$1" "$TMP/now.$1" || fail "$1 gives other results $WHEN"
	runs=$((runs + 1))
}

# while_running COMMAND...: starts it and lets the reader run again and again until it ends.
while_running()
{
	local pid

	"$@" >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	while kill -0 "$pid" 2>/dev/null; do
		same "$READER"
		during=$((during + 1))
	done
	wait "$pid" || fail "'$*' failed"
}

# As while_running, for readers that have a file open for writing, which nothing is promoted under.
alone()
{
	expect 0 "$@"
}

# check READER PATH [alone]: through a whole life.
check()
{
	local while_running=${3:-while_running}

	READER=$1
	"$READER" >"$TMP/before.$READER" || fail "$READER does not work at all"
	[[ -s $TMP/before.$READER ]] || fail "$READER finds nothing"
	WHEN="during promotion"
	$while_running promote --limit-rate 4M "$2"
	WHEN="after promotion"
	same "$READER"
	WHEN="during rollback"
	$while_running dbtier rollback
	WHEN="after rollback"
	same "$READER"
	expect 0 promote --reclaim "$2"
	WHEN="after reclaim"
	same "$READER"
	expect 0 dbtier status
	WHEN="during the copy back"
	$while_running dbtier rollback
	WHEN="after the copy back"
	same "$READER"
	echo "$READER: $(wc -l <"$TMP/before.$READER") lines of results"
}

pair "${DBT_READERS_SLOW:-ext4}" "${DBT_READERS_FAST:-xfs}"
mkdir "$SLOW/nr"
"$DBT_TOOLS/mkdb" query "$TMP/query.faa"
if command -v sqlite3 >/dev/null; then
	"$DBT_TOOLS/mkdb" sqlite "$SLOW/bakta.db" 4M
	check read_sqlite3 "$SLOW/bakta.db"
	check read_immutable "$SLOW/bakta.db"
fi
if command -v diamond >/dev/null; then
	"$DBT_TOOLS/mkdb" diamond "$SLOW/psc.dmnd" 4M
	check read_diamond "$SLOW/psc.dmnd"
fi
if command -v blastp >/dev/null && command -v makeblastdb >/dev/null; then
	# The queries among 8,000 other proteins.
	awk 'BEGIN {
		srand(7)
		for (i = 0; i < 8000; i++) {
			protein = "M"
			for (j = 0; j < 300; j++)
				protein = protein substr("ACDEFGHIKLMNPQRSTVWY", int(rand() * 20) + 1, 1)
			print ">other_" i "\n" protein
		}
	}' | cat "$TMP/query.faa" - >"$TMP/all.faa"
	makeblastdb -in "$TMP/all.faa" -dbtype prot -title test -out "$SLOW/nr/nr" >/dev/null
	check read_blastp "$SLOW/nr/nr"
fi
if command -v ldb >/dev/null; then
	seq -f 'key%06.0f' 30000 | sed 's/.*/& ==> a value of &, and some more bytes/' |
		ldb --db="$SLOW/rocks" --create_if_missing load >/dev/null
	check read_ldb "$SLOW/rocks"
fi
if command -v mdb_load >/dev/null; then
	mkdir "$SLOW/lmdb"
	seq -f 'key%06.0f' 3000 | sed 'p; s/key/value of /' | mdb_load -T "$SLOW/lmdb"
	check read_mdb "$SLOW/lmdb" alone
fi
[[ $runs -gt 0 ]] || skip "none of sqlite3, diamond, blastp, ldb, mdb_load is installed"
# A copy that a reader had open at the rollback is removed when nobody has it any more.
expect 0 dbtier recover
nothing_below "$FAST" "at the end"
echo "$runs runs of readers, $during of them during a move, 0 differences"
