#!/usr/bin/env bash
# Databases straight from their archives: every kind of archive, unpacked, read by the tool, verified, rolled back; sets
# of volumes; checksums; what is refused, what is repaired, what drift is called. The databases are mkdb's, or those of
# the tools themselves where they are installed.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command cmake cmake
. "$DBT_SOURCE/tests/support/pair.sh"

MAKE=$TMP/make # where databases are made
mkdir "$MAKE"

# pack NAME.tar.xz DIR...: of things in $MAKE, to $SLOW.
pack()
{
	local archive=$SLOW/$1

	shift
	case $archive in
	*.zip) (cd "$MAKE" && cmake -E tar cf "$archive" --format=zip -- "$@") ;;
	*.7z) (cd "$MAKE" && cmake -E tar cf "$archive" --format=7zip -- "$@") ;;
	*.zst) (cd "$MAKE" && cmake -E tar cf "$archive" --zstd -- "$@") ;;
	*) tar -C "$MAKE" -caf "$archive" "$@" ;;
	esac
}

unpack()
{
	dbtier promote --force --to "$FAST" "$@"
}

# same_tree WANTED GOT: names and bytes, through links.
same_tree()
{
	diff -r "$1" "$2" >"$TMP/diff" 2>&1 || fail "$2 is not $1: $(head -3 "$TMP/diff")"
}

nothing_left()
{
	no_temporaries "$SLOW" "$FAST"
	nothing_below "$FAST" "$1"
}

is_link()
{
	[[ $(readlink "$1") == "$2" ]] || fail "$1 is no link to $2"
}

# gone NAME: the archive is as it was, and nothing else is left of it.
gone()
{
	[[ ! -e $SLOW/$1 ]] || fail "$SLOW/$1 is left"
	nothing_left "$1"
}

# one_archive NAME ARCHIVE HOT COLD: HOT and COLD are files that belong on either tier.
one_archive()
{
	local name=$1 archive=$2 hot=$3 cold=$4

	file_facts "$SLOW/$archive" >"$TMP/before"
	expect 0 unpack "$SLOW/$archive"
	same_tree "$MAKE/$name" "$SLOW/$name"
	is_link "$SLOW/$name/$hot" "$FAST/$name/$hot"
	[[ -f $SLOW/$name/$cold && ! -L $SLOW/$name/$cold && ! -e $FAST/$name/$cold ]] || fail "$cold is not where it belongs"
	no_temporaries "$SLOW" "$FAST"
	expect 0 dbtier status
	expect 0 dbtier verify
	state_is promoted
	expect 0 dbtier rollback
	gone "$name"
	file_facts "$SLOW/$archive" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "the archive was touched"
	rm "$SLOW/$archive"
}

kinds()
{
	local kind

	for kind in tar tar.gz tar.xz tar.zst tar.bz2 tar.lz4 zip 7z; do
		if [[ $kind == tar.lz4 ]] && ! command -v lz4 >/dev/null; then
			echo "$kind: left out, lz4 is not installed"
			continue
		fi
		pack "db.$kind" db
		one_archive db "db.$kind" psc.dmnd version.json
		echo "$kind: unpacked, read, rolled back"
	done
}

# The tools find everything through the links, or where it all lies on the fast tier.
readers()
{
	if command -v diamond >/dev/null; then
		pack db.tar db
		expect 0 unpack "$SLOW/db.tar"
		"$DBT_TOOLS/mkdb" query "$TMP/query.fa"
		expect 0 patiently diamond blastp -q "$TMP/query.fa" -d "$SLOW/db/psc.dmnd" --quiet -o "$TMP/hits" -p 1
		[[ -s $TMP/hits ]] || fail "diamond finds nothing"
		expect 0 dbtier rollback
		rm "$SLOW/db.tar"
		echo "searched by diamond"
	fi
	if command -v makeblastdb >/dev/null; then
		volumes_of_blast
		echo "searched by blastp in three volumes"
	fi
	"$DBT_TOOLS/mkdb" kraken2 "$MAKE/k2" 1M
	tar -C "$MAKE/k2" -czf "$SLOW/k2.tar.gz" .
	expect 0 unpack --all-files "$SLOW/k2.tar.gz"
	same_tree "$MAKE/k2" "$FAST/k2"
	[[ ! -e $SLOW/k2 ]] || fail "--all-files left something on the slow tier"
	expect 0 dbtier rollback
	gone k2
	rm "$SLOW/k2.tar.gz"
	pack db.tar db # a directory around everything is left out there too
	expect 0 unpack --all-files "$SLOW/db.tar"
	same_tree "$MAKE/db" "$FAST/db"
	expect 0 dbtier rollback
	gone db
	rm "$SLOW/db.tar"
	echo "all of it on the fast tier"
}

# As NCBI has them: one archive a volume, each with what all volumes share.
volumes_of_blast()
{
	local i

	mkdir "$MAKE/nr"
	"$DBT_TOOLS/mkdb" query "$MAKE/nr/query.fa"
	for i in 0 1 2; do
		sed "s/^>/>v$i./" "$MAKE/nr/query.fa" >"$MAKE/nr/$i.fa"
		makeblastdb -in "$MAKE/nr/$i.fa" -dbtype prot -out "$MAKE/nr/nr.0$i" -blastdb_version 4 >/dev/null
	done
	printf 'TITLE nr\nDBLIST nr.00 nr.01 nr.02\n' >"$MAKE/nr/nr.pal"
	rm "$MAKE"/nr/[012].fa
	for i in 0 1 2; do
		(cd "$MAKE/nr" && tar -czf "$SLOW/nr.0$i.tar.gz" "nr.0$i".* nr.pal && cd "$SLOW" &&
			md5sum "nr.0$i.tar.gz" >"nr.0$i.tar.gz.md5")
	done
	mv "$MAKE/nr/query.fa" "$TMP/nr.fa"
	expect 0 unpack -j 3 "$SLOW"/nr.0?.tar.gz
	same_tree "$MAKE/nr" "$SLOW/nr"
	is_link "$SLOW/nr/nr.01.psq" "$FAST/nr/nr.01.psq"
	expect 0 blastp -query "$TMP/nr.fa" -db "$SLOW/nr/nr" -outfmt 6 -out "$TMP/hits"
	for i in 0 1 2; do
		grep -q "v$i\." "$TMP/hits" || fail "blastp finds nothing in volume $i"
	done
	expect 0 dbtier rollback
	gone nr
	# One volume that is not what its checksum says spoils all.
	printf 'X' | dd of="$SLOW/nr.01.tar.gz" bs=1 seek=6 conv=notrunc status=none
	expect 3 unpack -j 2 "$SLOW"/nr.0?.tar.gz
	err_has "is not what was published: its MD5"
	gone nr
	# The same name with other contents in two volumes.
	rm "$SLOW"/nr.0?.tar.gz*
	(cd "$MAKE/nr" && tar -czf "$SLOW/nr.00.tar.gz" nr.00.* nr.pal && echo >>nr.pal &&
		tar -czf "$SLOW/nr.01.tar.gz" nr.01.* nr.pal)
	expect 3 unpack "$SLOW"/nr.0?.tar.gz
	err_has "comes twice, with different contents"
	gone nr
	rm "$SLOW"/nr.0?.tar.gz
}

checksums()
{
	pack db.tar.xz db
	(cd "$SLOW" && sha256sum db.tar.xz >db.tar.xz.sha256)
	expect 0 unpack "$SLOW/db.tar.xz"
	expect 0 dbtier rollback
	sed -i 's/^./x/' "$SLOW/db.tar.xz.sha256"
	expect 3 unpack "$SLOW/db.tar.xz"
	err_has "holds no checksum of it"
	echo "$(printf '0%.0s' {1..64})  db.tar.xz" >"$SLOW/db.tar.xz.sha256"
	expect 3 unpack "$SLOW/db.tar.xz"
	err_has "is not what was published: its SHA-256"
	gone db
	rm "$SLOW"/db.tar.xz*
}

# Whatever the size: at most 128 MiB besides the dictionary of the packer (256 KiB with xz -0).
memory()
{
	local kind peak

	mkdir "$MAKE/large"
	"$DBT_TOOLS/mkdb" diamond "$MAKE/large/psc.dmnd" 40M
	"$DBT_TOOLS/mkdb" sqlite "$MAKE/large/bakta.db" 30M
	for kind in tar tar.gz tar.xz; do
		case $kind in
		tar.xz) tar -C "$MAKE" -c large | xz -0 -T2 >"$SLOW/large.$kind" ;;
		*) pack "large.$kind" large ;;
		esac
		expect 0 "$DBT_TOOLS/runpeak" "$TMP/peak" "$DBTIER" --state-dir "$TMP/state" promote --force --to "$FAST" \
			"$SLOW/large.$kind"
		peak=$(cat "$TMP/peak")
		[[ $peak -gt 1000 && $peak -le $((128 * 1024 + 256)) ]] || fail "$kind took $peak KiB of memory"
		expect 0 dbtier rollback
		rm "$SLOW/large.$kind"
	done
	rm -r "$MAKE/large"
	gone large
}

# What is not yet in the SQLite file itself lies beside it on the same tier: SQLite looks there, not beside the link.
sqlite_wal()
{
	mkdir "$MAKE/w"
	sqlite3 "$MAKE/w/wal.db" >/dev/null <<-'SQL'
		PRAGMA journal_mode=wal;
		.dbconfig no_ckpt_on_close on
		CREATE TABLE t(x);
		INSERT INTO t VALUES (1), (2), (3);
	SQL
	[[ -s $MAKE/w/wal.db-wal ]] || fail "no -wal was left"
	rm -f "$MAKE/w/wal.db-shm"
	pack w.tar w
	expect 0 unpack "$SLOW/w.tar"
	is_link "$SLOW/w/wal.db" "$FAST/w/wal.db"
	is_link "$SLOW/w/wal.db-wal" "$FAST/w/wal.db-wal"
	equal 3 "$(sqlite3 -readonly "$SLOW/w/wal.db" 'SELECT count(*) FROM t')" "rows through the link"
	rm -f "$FAST/w/wal.db-shm"
	expect 0 dbtier rollback --discard-changes
	gone w
	rm -r "$SLOW/w.tar" "$MAKE/w"
}

# In bytes of the archive, with what is left in seconds.
progress()
{
	local size

	pack db.tar.gz db
	size=$(stat -c %s "$SLOW/db.tar.gz")
	expect 0 unpack --progress=json "$SLOW/db.tar.gz"
	grep '"phase":"unpack"' "$TMP/err" >"$TMP/told" || fail "no progress of unpacking"
	grep -v "\"total\":$size," "$TMP/told" && fail "progress is not told in bytes of the archive"
	[[ $(grep -c '"seconds_left":' "$TMP/told") -eq $(wc -l <"$TMP/told") ]] || fail "no time is told"
	expect 0 dbtier rollback
	rm "$SLOW/db.tar.gz"
}

# Another place for the cold part; what is refused before anything is written.
places()
{
	pack db.tar db
	mkdir "$SLOW/elsewhere"
	expect 0 unpack --cold-to "$SLOW/elsewhere" "$SLOW/db.tar"
	same_tree "$MAKE/db" "$SLOW/elsewhere/db"
	expect 0 dbtier rollback db.tar # by the archive's name
	gone elsewhere/db
	rmdir "$SLOW/elsewhere"
	mkdir "$SLOW/db"
	expect 3 unpack "$SLOW/db.tar"
	err_has "'$SLOW/db' exists"
	rmdir "$SLOW/db"
	mkdir "$FAST/db"
	expect 3 unpack "$SLOW/db.tar"
	err_has "'$FAST/db' exists"
	rmdir "$FAST/db"
	expect 3 unpack --reclaim "$SLOW/db.tar"
	err_has "never deletes"
	expect 3 unpack --reserve 10G "$SLOW/db.tar"
	err_has "not enough space in '$FAST"
	exec 5>>"$SLOW/db.tar"
	expect 3 unpack "$SLOW/db.tar"
	exec 5>&-
	err_has "open for writing"
	echo plain >"$MAKE/plain"
	pack plain.tar plain
	expect 3 unpack "$SLOW/plain.tar"
	err_has "no database is recognised"
	rm "$SLOW/plain.tar" "$MAKE/plain"
	expect 2 unpack --cold-to "$SLOW" "$MAKE/db/psc.dmnd"
	gone db
	rm "$SLOW/db.tar"
}

# promoted_again: fresh from the archive.
promoted_again()
{
	expect 0 unpack "$SLOW/db.tar"
}

health_is()
{
	expect 4 dbtier status
	out_has "$1"
}

# What was changed since is not removed without being asked; what somebody put there never.
drift()
{
	pack db.tar db
	promoted_again
	echo more >>"$FAST/db/psc.dmnd"
	health_is copy-modified
	expect 3 dbtier rollback
	err_has "'$FAST/db/psc.dmnd' was changed since it was unpacked"
	expect 3 dbtier rollback --keep-changes
	expect 3 dbtier reclaim db
	err_has "never deletes"
	expect 0 dbtier rollback --discard-changes
	gone db
	promoted_again
	chmod g+r "$SLOW/db/version.json" # ctime alone, the bytes clear it
	health_is copy-modified
	expect 0 dbtier verify
	echo mine >"$SLOW/db/mine"
	expect 3 dbtier rollback --discard-changes
	err_has "'$SLOW/db/mine' was put there since it was unpacked"
	rm "$SLOW/db/mine" "$SLOW/db/version.json" "$FAST/db/psc.dmnd"
	health_is copy-missing
	expect 0 dbtier rollback
	gone db
	# The archive is the original: without it nothing is removed, whatever is asked for.
	promoted_again
	mv "$SLOW/db.tar" "$SLOW/away"
	health_is original-missing
	expect 3 dbtier rollback --discard-changes
	err_has "may be the only one"
	cp "$SLOW/away" "$SLOW/db.tar" # another inode and time, the same bytes
	expect 0 dbtier rollback
	gone db
	mv "$SLOW/away" "$SLOW/db.tar"
	# In use.
	promoted_again
	exec 5<"$SLOW/db/psc.dmnd"
	(
		exec 6<&5 5<&-
		sleep 60 &
		echo $! >"$TMP/reader"
	)
	exec 5<&-
	expect 3 dbtier rollback
	err_has "wait for it to end"
	kill "$(cat "$TMP/reader")"
	while kill -0 "$(cat "$TMP/reader")" 2>/dev/null; do sleep 0.05; done
	expect 0 dbtier rollback
	gone db
	# Deleted by hand altogether.
	promoted_again
	rm -r "$SLOW/db" "$FAST/db"
	expect 0 dbtier recover
	out_has "nothing of it is left"
	expect 0 dbtier status
	rm "$SLOW/db.tar"
}

pair ext4 xfs
"$DBT_TOOLS/mkdb" bakta "$MAKE/db" 6M
kinds
readers
checksums
sqlite_wal
memory
progress
places
drift
