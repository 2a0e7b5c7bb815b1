#!/usr/bin/env bash
# devices: captured machines, paths, JSON keys, captures without names.
. "$(dirname "$0")/../support/lib.sh"
need_command python3 python3

machine=$DBT_SOURCE/tests/fixtures/sysroot/workstation

# get FILTER: a Python expression on the answer d.
get()
{
	python3 -c "import json, sys; d = json.load(sys.stdin)['devices']; print($1)" <"$TMP/out"
}

# Every column is a key, for every row; the flag and the verdict are two things.
expect 0 dbtier devices --sysroot "$machine" --json
err_is_empty
equal "mount,mount_raw,fstype,tier,disks,stack,size,free,rota,tran,model,rand_iops,rand_lat_ns,seq_rate,evidence,note" \
	"$(get '",".join(d[0])')" "keys"
equal "unknown True" "$(get '[(x["tier"], x["rota"]) for x in d if x["mount"] == "/"][0][0] + " True"')" "virtual disk"
equal "hdd ['sdd', 'sdf'] None" "$(get '[" ".join(map(str, (x["tier"], x["disks"], x["rota"]))) for x in d if x["mount"] == "/mnt/btrfs"][0]')" \
	"a mixed btrfs"
equal "0" "$(get 'sum(x["fstype"] in ("proc", "sysfs", "cgroup2", "nfsd") for x in d)')" "pseudo filesystems listed"
equal "True" "$(get 'all(isinstance(x["evidence"], list) for x in d)')" "evidence is a list"

# One path of a captured machine, and what is not on it.
expect 0 dbtier devices --sysroot "$machine" -rno mount,tier,stack /mnt/store/omics/psc.dmnd
equal "/mnt/store hdd ext4\x20<\x20crypt\x20cryptstore\x20<\x20disk\x20sda" "$(cat "$TMP/out")" "the row"
expect 2 dbtier devices --sysroot "$machine" relative
err_has "no working directory"
expect 1 dbtier devices --sysroot "$TMP/nothing"
expect 1 dbtier devices --sysroot "$TMP"
err_has "cannot read the mount table"

# The running system: a file, a directory, a name that is not there beside one that is.
expect 0 dbtier devices "$TMP" "$0"
expect 1 dbtier devices -no mount "$TMP/nothing" /
out_has "/"
err_has "$TMP/nothing"
expect 0 dbtier devices --json
equal "True" "$(get 'len(d) > 0 and all(x["mount"] for x in d)')" "mounts of this machine"

# A capture answers as the machine did, and names nobody.
expect 0 dbtier devices --sysroot "$machine" --capture "$TMP/one.tar"
out_is_empty
mkdir "$TMP/one"
tar -xf "$TMP/one.tar" -C "$TMP/one"
columns=mount,tier,disks,stack,rota,tran,model,note
dbtier devices --sysroot "$machine" -o $columns >"$TMP/before"
dbtier devices --sysroot "$TMP/one" -o $columns | diff "$TMP/before" -
expect 1 dbtier devices --capture "$TMP/one.tar"
err_has "file exists"
expect 2 dbtier devices --capture "$TMP/two.tar" /
expect 0 dbtier -q devices --capture "$TMP/live.tar"
err_is_empty
mkdir "$TMP/live"
tar -xf "$TMP/live.tar" -C "$TMP/live"
expect 0 dbtier devices --sysroot "$TMP/live"

# Names of people, hosts and servers, serial numbers, UUIDs.
mkdir -p "$TMP/named/proc/self" "$TMP/named/proc/sys/kernel" "$TMP/named/sys/devices/virtual/block/dm-0/dm" \
	"$TMP/named/sys/dev/block" "$TMP/named/run/udev/data"
echo "ada-box.example.org" >"$TMP/named/proc/sys/kernel/hostname"
cat >"$TMP/named/proc/self/mountinfo" <<-'END'
	20 1 253:0 / / rw - ext4 /dev/mapper/ada-box-root rw
	21 20 0:40 / /home/ada/far rw - nfs4 filer.example.org:/vol/ada rw,addr=192.0.2.7,clientaddr=192.0.2.8
	22 20 0:41 / /media/ada/stick rw - vfat /dev/sdz rw
	23 20 0:42 / /share rw - cifs //filer/secret rw,username=ada,domain=EXAMPLE
END
echo 253:0 >"$TMP/named/sys/devices/virtual/block/dm-0/dev"
echo ada-box-root >"$TMP/named/sys/devices/virtual/block/dm-0/dm/name"
echo LVM-abcdefghijklmnop0123456789ABCDEF >"$TMP/named/sys/devices/virtual/block/dm-0/dm/uuid"
ln -s ../../devices/virtual/block/dm-0 "$TMP/named/sys/dev/block/253:0"
printf '%s\n' E:ID_SERIAL=S3R1AL E:ID_FS_UUID=11-22 E:ID_FS_LABEL=ada E:ID_FS_TYPE=ext4 >"$TMP/named/run/udev/data/b253:0"
expect 0 dbtier devices --sysroot "$TMP/named" --capture "$TMP/named.tar"
for word in ada filer example 192.0.2 secret S3R1AL 11-22 abcdefgh EXAMPLE; do
	! tar -xOf "$TMP/named.tar" | grep -a "$word" || fail "the capture tells '$word'"
done
mkdir "$TMP/unnamed"
tar -xf "$TMP/named.tar" -C "$TMP/unnamed"
expect 0 dbtier devices --sysroot "$TMP/unnamed" -rno mount,tier,stack
out_has "/home/user1/far network nfs4"
out_has "lvm\\x20host-root"

# A configuration is shown as such; a line of it that makes no sense is an error.
mkdir -p "$TMP/config/dbtier"
printf 'tier / ssd\n' >"$TMP/config/dbtier/dbtier.conf"
XDG_CONFIG_HOME=$TMP/config expect 0 dbtier devices -no mount,tier,evidence / /
out_has "ssd"
out_has "by configuration ($TMP/config/dbtier/dbtier.conf, line 1)"
echo nonsense >>"$TMP/config/dbtier/dbtier.conf"
XDG_CONFIG_HOME=$TMP/config expect 2 dbtier devices /
err_has "$TMP/config/dbtier/dbtier.conf, line 2: unknown key 'nonsense'"
