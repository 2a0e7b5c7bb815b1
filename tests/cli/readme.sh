#!/usr/bin/env bash
# The transcript in the README is what the program prints: the same commands on two small filesystems at the same
# places. Times are left out of the comparison, and the width of the gaps. README_SHOW=1 prints the transcript.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
[[ $DBTIER$DBT_SOURCE != */mnt/* ]] || skip "the program itself is below /mnt"

mount -t tmpfs -o mode=755 tmpfs /mnt
# The page cache of this machine must not decide what is worth moving.
for name in store nvme; do
	FS_IMAGES=/mnt FS_MOUNTS=/mnt fs_new "$name" ext4 200M
	rm -rf "/mnt/$name/lost+found"
done
mkdir /mnt/store/omics /mnt/nvme/db "$TMP/xdg" "$TMP/xdg/dbtier"
"$DBT_TOOLS/mkdb" diamond /mnt/store/omics/psc.dmnd 8M
"$DBT_TOOLS/mkdb" sqlite /mnt/store/omics/bakta.db 8M
mkdir "$TMP/db" /mnt/store/downloads
cp /mnt/store/omics/* "$TMP/db"
"$DBT_TOOLS/mkdb" kraken2 "$TMP/db" 100K
echo "a release" >"$TMP/db/README"
tar -C "$TMP" -cf /mnt/store/downloads/db.tar --sort=name db
# Files in memory play the disks: what they are instead, the configuration says.
printf 'tier /mnt/store hdd\ntier /mnt/nvme nvme\n' >"$TMP/xdg/dbtier/dbtier.conf"
export XDG_CONFIG_HOME=$TMP/xdg DBTIER_STATE_DIR=$TMP/state HOME=$TMP
mkdir "$TMP/bin"
ln -s "$DBTIER" "$TMP/bin/dbtier"
PATH=$TMP/bin:$PATH

# The lines of the ```console blocks.
sed -n '/^```console$/,/^```$/{/^```/d;p}' "$DBT_SOURCE/README.md" >"$TMP/told"
[[ -s $TMP/told ]] || fail "no transcript in the README"
sed -n 's/^\$ //p' "$TMP/told" >"$TMP/commands"
while IFS= read -r line; do
	printf '$ %s\n' "$line"
	bash -c "$line" 2>&1 </dev/null || echo "(exit status $?)"
done <"$TMP/commands" >"$TMP/seen"
[[ -z ${README_SHOW-} ]] || cat "$TMP/seen"

# Dates and durations, blanks at the end of a line, the width of gaps.
blur()
{
	sed -E 's/[0-9]{4}-[0-9]{2}-[0-9]{2} [0-9:]{8}/TIME/g; s/[0-9.]+ (ms|s|us)\b/DURATION/g; s/ [A-Z][a-z]{2} +[0-9]+ +[0-9:]+ / DATE /
		s/ +/ /g; s/ $//' "$1"
}
diff -u <(blur "$TMP/told") <(blur "$TMP/seen") || fail "the README tells another story"
