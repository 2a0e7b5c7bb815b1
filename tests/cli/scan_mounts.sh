#!/usr/bin/env bash
# Scan across mounts and links, and what it tells of the page cache.
# timeout: 60
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
need_command jq jq
pair ext4 ext4

# names OPTION...: the databases below $SLOW, by path.
names()
{
	expect 0 dbtier scan --no-probe -n -o name "$@" "$SLOW"
	xargs <"$TMP/out"
}

# cached: the share of psc.dmnd that is in the page cache.
cached()
{
	expect 0 dbtier scan --no-probe --json "$SLOW/psc.dmnd"
	jq '.databases[0].cached' "$TMP/out"
}

"$DBT_TOOLS/mkdb" diamond "$SLOW/psc.dmnd" 2M
mkdir "$FAST/deep"
"$DBT_TOOLS/mkdb" diamond "$FAST/deep/other.dmnd" 1M

# A filesystem below the other: walked, unless -x keeps to one.
mkdir "$SLOW/below"
mount --bind "$FAST" "$SLOW/below"
equal "other psc" "$(names)" "both filesystems"
equal "psc" "$(names -x)" "one filesystem"
equal "psc" "$(names --exclude "$SLOW/below")" "without what is excluded by its path"
umount "$SLOW/below"

# A link to the other one: only on request, then under its real path.
ln -s "$FAST" "$SLOW/link"
ln -s . "$SLOW/circle"
equal "psc" "$(names)" "links are not followed"
equal "other psc" "$(names --follow)" "links are followed"
equal "psc" "$(names -L -x)" "not to another filesystem"
expect 0 dbtier scan --no-probe -n -r -o path --follow "$SLOW"
out_has "$FAST/deep/other.dmnd"
# A file behind a link is told as such: it moves from where it lies.
rm "$SLOW/link"
ln -s "$FAST/deep/other.dmnd" "$SLOW/linked.dmnd"
equal "linked psc" "$(names --follow)" "a linked file"
expect 0 dbtier scan --no-probe -n -o mount,advice --follow "$SLOW/linked.dmnd"
out_has "$FAST"

sync
# The kernel drops what nobody uses at that moment: on a busy machine not all at once.
for _ in 1 2 3 4 5 6 7 8 9 10; do
	dd if="$SLOW/psc.dmnd" iflag=nocache count=0 status=none
	few=$(cached | jq '. < 0.1')
	[[ $few != true ]] || break
	sleep 0.2
done
equal true "$few" "hardly any of it is cached"
cat "$SLOW/psc.dmnd" >/dev/null
equal true "$(cached | jq '. == 1')" "all of it is cached"
