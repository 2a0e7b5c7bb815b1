# A world that is a directory database, instead of the file and the set of sweep.sh. Source it after that.
# shellcheck shell=bash
# shellcheck disable=SC2034 # variables of the scripts that source this

# make_table BYTES: as RocksDB's block based tables end.
make_table()
{
	head -c $(($1 - 8)) /dev/urandom
	printf '\xf7\xcf\xf4\x85\xb7\x41\xe2\x88'
}

# make_tree DIR: a directory that dbtier takes for RocksDB's, with everything in it that may be in one.
make_tree()
{
	mkdir -p "$1/sub/empty"
	echo MANIFEST-000004 >"$1/CURRENT"
	head -c 300 /dev/urandom >"$1/MANIFEST-000004"
	echo "[Version]" >"$1/OPTIONS-000005"
	make_table 20000 >"$1/000009.sst"
	make_table 90000 >"$1/sub/000011.sst"
	: >"$1/LOCK"
	ln -s ../CURRENT "$1/sub/link"
	setfattr -n user.note -v "kept with the directory" "$1/sub"
	setfacl -m u:4321:rx -m d:u:4321:rx "$1/sub"
	chown -hR 1234:2345 "$1"
	chmod 2750 "$1/sub"
	touch -h -d '2001-02-03 04:05:06.123456789' "$1/sub/link" "$1/000009.sst" "$1/sub" "$1"
}

make_world_data()
{
	make_tree "$SLOW/rocks"
	rm -rf "$TMP/reference"
	cp -a "$SLOW" "$TMP/reference"
	mapfile -d '' FILES < <(find "$SLOW" -type f -print0)
	remember_world
}

# States to start from.
tree_promoted()
{
	fresh_ledger
	expect 0 promote "$SLOW/rocks"
}

tree_reclaimed()
{
	fresh_ledger
	expect 0 promote --reclaim "$SLOW/rocks"
}

tree_half_copied()
{
	interrupted fresh_ledger mkdirat 2 promote --force --to "$FAST" "$SLOW/rocks"
}

# The copy is whole, the link does not stand yet.
tree_verified()
{
	interrupted fresh_ledger symlinkat 2 promote --force --to "$FAST" "$SLOW/rocks"
}

# What is to be deleted has its own name, and some of it is.
tree_half_removed()
{
	interrupted tree_promoted unlinkat 4 rollback
}

tree_half_copied_back()
{
	interrupted tree_reclaimed mkdirat 2 rollback
}

tree_half_returned()
{
	interrupted tree_reclaimed unlinkat 3 rollback
}

tree_half_reclaimed()
{
	interrupted tree_promoted unlinkat 3 reclaim rocks
}
