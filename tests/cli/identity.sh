#!/usr/bin/env bash
# After promotion and rollback everything is as it was: bytes, inode, owner, mode, mtime, attributes, ACLs, for files
# and sets, from every filesystem to another, with the original kept and reclaimed. Nothing is left on either side.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
need_command setfacl acl
need_command setfattr attr

rounds=0

# A file with everything that a file can carry.
make_rich_file()
{
	head -c 1500000 /dev/urandom >"$1"
	setfattr -n user.note -v "kept with the file" "$1"
	setfattr -n user.bytes -v 0x00ff10 "$1"
	setfattr -n trusted.origin -v "a mirror" "$1"
	chown 1234:2345 "$1"
	chmod 2640 "$1"
	setfacl -m u:4321:r,g:100:r,m::r "$1"
	touch -d '2001-02-03 04:05:06.123456789' "$1"
}

# A file of 8 MiB of which 256 KiB are data.
make_holey_file()
{
	truncate -s 8M "$1"
	head -c 131072 /dev/urandom | dd of="$1" bs=64K seek=16 conv=notrunc status=none
	head -c 131072 /dev/urandom | dd of="$1" bs=64K seek=100 conv=notrunc status=none
}

make_blast()
{
	if command -v makeblastdb >/dev/null; then
		"$DBT_TOOLS/mkdb" query "$TMP/query.faa"
		makeblastdb -in "$TMP/query.faa" -dbtype prot -title test -out "$1" >/dev/null
	else
		"$DBT_TOOLS/mkdb" blast "$1" 200K
	fi
}

# How many paths below the source are links to a file of the same bytes on the target.
count_links()
{
	local link n=0

	while read -r -d '' link; do
		[[ $(readlink "$link") == "$FAST"/* ]] || fail "$link leads to $(readlink "$link")"
		[[ -f $(readlink "$link") ]] || fail "$link leads nowhere"
		n=$((n + 1))
	done < <(find "$SLOW" -type l ! -name latest -print0)
	echo "$n"
}

# round WHAT WANTED_LINKS [OPTION...]: promote and roll back, compare.
round()
{
	local what=$1 links=$2 inode=

	shift 2
	facts "$SLOW" >"$TMP/before"
	expect 0 promote "$@" "$SLOW/$what"
	equal "$links" "$(count_links)" "paths that are links now"
	expect 0 dbtier status
	if [[ " $* " == *" --reclaim "* ]]; then
		inode=noinode
		[[ -z $(find "$SLOW" -name '*.dbtier-original') ]] || fail "a reclaimed original is still there"
	else
		equal "$links" "$(find "$SLOW" -name '.*.dbtier-original' | wc -l)" "kept originals"
	fi
	expect 0 dbtier rollback
	state_is rolled-back
	facts "$SLOW" $inode >"$TMP/after"
	[[ -z $inode ]] || sed -i -E 's/^([^|]*\|)[0-9]+\|/\1-|/' "$TMP/before"
	same_facts "$TMP/before" "$TMP/after" "$* $what is not what it was"
	nothing_below "$FAST" "after rollback"
	expect 0 dbtier recover
	err_has "nothing to recover"
	rounds=$((rounds + 1))
}

for types in "ext4 xfs" "xfs btrfs" "btrfs ext4"; do
	# shellcheck disable=SC2086
	pair $types
	make_rich_file "$SLOW/rich.bin"
	make_holey_file "$SLOW/holes.bin"
	mkdir "$SLOW/blast" "$SLOW/kraken"
	make_blast "$SLOW/blast/nr"
	volumes=$(find "$SLOW/blast" -type f | wc -l)
	"$DBT_TOOLS/mkdb" bakta "$SLOW/bakta" 300K
	"$DBT_TOOLS/mkdb" kraken2 "$SLOW/kraken" 200K
	chown -R 1234:2345 "$SLOW/blast"
	# version.txt of AMRFinderPlus is no member of the database.
	members=$(find "$SLOW/bakta" -type f -size +0 | wc -l)
	for option in "" --reclaim; do
		blocks=$(stat -c %b "$SLOW/holes.bin")
		round rich.bin 1 $option
		round holes.bin 1 $option
		[[ $(stat -c %b "$SLOW/holes.bin") -le $((blocks + 64)) ]] || fail "the holes were filled"
		round blast "$volumes" $option
		round blast/nr "$volumes" $option
		round kraken 1 $option
		round kraken 3 --all-files $option
		round bakta 2 $option
		round bakta "$members" --all-files $option
	done
done
echo "$rounds promotions and rollbacks, 0 differences"
