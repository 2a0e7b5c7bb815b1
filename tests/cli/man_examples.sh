#!/usr/bin/env bash
# The examples of the manual page do what they say: they are run in order on two small filesystems.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
[[ $DBTIER$DBT_SOURCE != */mnt/* ]] || skip "the program itself is below /mnt"

mount -t tmpfs -o mode=755 tmpfs /mnt
for name in store nvme; do
	FS_IMAGES=/mnt FS_MOUNTS=/mnt fs_new "$name" ext4 400M
	rm -rf "/mnt/$name/lost+found"
done
mkdir /mnt/store/omics /mnt/nvme/db "$TMP/bin"
"$DBT_TOOLS/mkdb" diamond /mnt/store/omics/psc.dmnd 8M
cp -p /mnt/store/omics/psc.dmnd "$TMP/before"
# Files in memory play the disks: what they are instead, the configuration says.
mkdir -p "$TMP/xdg/dbtier"
printf 'tier /mnt/store hdd\ntier /mnt/nvme nvme\n' >"$TMP/xdg/dbtier/dbtier.conf"
export XDG_CONFIG_HOME=$TMP/xdg DBTIER_STATE_DIR=$TMP/state HOME=$TMP
ln -s "$DBTIER" "$TMP/bin/dbtier"
PATH=$TMP/bin:$PATH

sed -n '/^\.Sh EXAMPLES/,/^\.Sh SEE ALSO/{s/^\.Dl //;s/\\-/-/g;/^dbtier /p}' "$DBT_BUILD/dbtier.1" >"$TMP/examples"
count=0
while IFS= read -r example; do
	expect 0 bash -c "$example"
	[[ -s $TMP/out ]] || fail "'$example' says nothing"
	count=$((count + 1))
	case $example in
	*promote*)
		[[ -L /mnt/store/omics/psc.dmnd ]] || fail "nothing was promoted"
		cmp "$TMP/before" /mnt/store/omics/psc.dmnd
		;;
	*rollback*)
		[[ ! -L /mnt/store/omics/psc.dmnd ]] || fail "nothing was rolled back"
		cmp "$TMP/before" /mnt/store/omics/psc.dmnd
		;;
	esac
done <"$TMP/examples"
[[ $count -ge 7 ]] || fail "only $count examples were found"
echo "$count examples"
