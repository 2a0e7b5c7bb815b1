#!/usr/bin/env bash
# needs: loop
# timeout: 240
# probe: measures what is a device without leaving a trace, and never gives a figure of what is none. Whether the figures
# are right is probe_accuracy.sh.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command python3 python3
need_command losetup mount

# device NAME TYPE SIZE: like fs_new on a loop device that reads past the page cache; its number is in $TMP/NAME.dev
device()
{
	local loop mkfs=()

	# Nothing is left for the kernel to write later.
	[[ $2 != ext4 ]] || mkfs=(-E 'lazy_itable_init=0,lazy_journal_init=0')

	need_command "mkfs.$2" "of mkfs.$2"
	truncate -s "$3" "$TMP/$1.img"
	loop=$(losetup --find --show --direct-io=on "$TMP/$1.img") || skip "no loop device"
	mkdir "$TMP/$1"
	cat "/sys/block/${loop#/dev/}/dev" >"$TMP/$1.dev"
	# mkfs after losetup: the image must hold blocks of the device's size.
	if ! "mkfs.$2" "${mkfs[@]}" -q "$loop" >/dev/null 2>&1 || ! mount -t "$2" -o "noatime${4+,$4}" "$loop" "$TMP/$1" 2>/dev/null; then
		losetup -d "$loop"
		return 1
	fi
	losetup -d "$loop" # gone with the mount
}

fill()
{
	dd if=/dev/urandom of="$1" bs=1M count="$2" oflag=direct status=none
}

# get FILTER: a Python expression on the probes p, by pattern and jobs.
get()
{
	python3 -c "
import json, sys
p = {(x['path'], x['pattern'], x['jobs']): x for x in json.load(sys.stdin)['probes']}
first = lambda pattern, jobs, path=None: [x for k, x in p.items() if k[1:] == (pattern, jobs) and path in (None, k[0])][0]
print($1)" <"$TMP/out"
}

written()
{
	awk '{ print $7 }' "/sys/dev/block/$(cat "$TMP/$1.dev")/stat"
}

device fast ext4 512M || skip "cannot mount ext4"
fill "$TMP/fast/db" 96
sync

# --- keys, proof, bounds ---
expect 0 dbtier probe --json --seconds 1 "$TMP/fast/db"
equal "path,path_raw,device,tier,pattern,jobs,block,iops,rate,lat_avg_ns,lat_p50_ns,lat_p99_ns,reads,seconds,proved,note" \
	"$(get '",".join(first("random", 1))')" "keys"
equal "4 True" "$(get 'str(len(p)) + " " + str(all(x["proved"] for x in p.values()))')" "four patterns, all proved"
equal "True" "$(get '4096 * (first("random", 1)["reads"] + first("random", 4)["reads"]) <= 8 << 20')" "bytes of the random reads"

# --- no write reaches the device, not even an access time later ---
mount -o remount,strictatime "$TMP/fast"
cat "$TMP/fast/db" >/dev/null # its access time is new, and written
sync -f "$TMP/fast"
for _ in 1 2 3; do # the kernel may write by itself once
	before=$(written fast)
	expect 0 dbtier probe --json --seconds 1 "$TMP/fast/db"
	sync -f "$TMP/fast"
	after=$(written fast)
	[[ $after != "$before" ]] || break
done
equal "$before" "$after" "sectors written by a probe"
mount -o remount,noatime "$TMP/fast"

# --- what is no device ---
# refused PATH TEXT: no figure at all, and the reason.
refused()
{
	expect 1 dbtier probe --json --seconds 1 "$1"
	err_has "$2"
	equal "True" "$(get 'all(x["iops"] is None and not x["proved"] for x in p.values())')" "figures of $1"
}

fallocate -l 64M "$TMP/fast/reserved"
refused "$TMP/fast/reserved" "never written"
truncate -s 64M "$TMP/fast/sparse"
refused "$TMP/fast/sparse" "of data on the device"
head -c 60000 /dev/urandom >"$TMP/fast/tiny"
sync
refused "$TMP/fast/tiny" "at least"
: >"$TMP/fast/empty"
refused "$TMP/fast/empty" "at least"
mkdir "$TMP/ram"
mount -t tmpfs none "$TMP/ram"
head -c 8M /dev/urandom >"$TMP/ram/db"
refused "$TMP/ram/db" "is memory"
expect 1 dbtier probe /proc/self/io
expect 2 dbtier probe --seconds 61 "$TMP/fast/db"
expect 2 dbtier probe
expect 1 dbtier probe "$TMP/ram"
expect 1 dbtier probe "$TMP/nothing"
mkfifo "$TMP/fifo"
expect 1 dbtier probe "$TMP/fifo"
mkdir "$TMP/fast/none"
expect 1 dbtier probe "$TMP/fast/none"
err_has "no file to measure"

# --- a file that sits in memory, whole or in part: measured past the cache, which stays as it was ---
# cached_pages FILE
cached_pages()
{
	fincore -nbo PAGES "$1" | tr -d ' '
}

# stays_cached FILE BYTES: these first bytes of it, and no others. Under memory pressure the kernel drops pages by itself: so
# three tries.
stays_cached()
{
	local cached after

	for _ in 1 2 3; do
		dd if="$1" iflag=nocache count=0 status=none
		head -c "$2" "$1" >/dev/null
		cached=$(cached_pages "$1")
		expect 0 dbtier probe --json --seconds 1 "$1"
		equal "True" "$(get 'all(x["proved"] for x in p.values())')" "$1 is measured on its device, with $2 bytes of it in memory"
		after=$(cached_pages "$1")
		[[ $after != "$cached" || $cached -lt $(($2 / 4096)) ]] || return 0
	done
	fail "$cached pages of $1 were in memory before the probe (of $(($2 / 4096)) read), $after after it"
}

size=$(stat -c %s "$TMP/fast/db")
stays_cached "$TMP/fast/db" "$size"
out_has "read past the page cache"
stays_cached "$TMP/fast/db" $((size / 4))

# --- a loop device whose file sits in memory: the disk below is not asked, so nothing is proved ---
head -c 32M /dev/urandom >"$TMP/memory.img"
sync "$TMP/memory.img"
loop=$(losetup --find --show "$TMP/memory.img")
run dbtier probe --json --seconds 1 "$loop"
losetup -d "$loop"
if "$DBTIER" devices -no tier "$TMP" | grep -q ram; then
	echo "$TMP is memory itself: a loop device on it has no disk below"
else
	equal "True" "$(get 'not any(x["proved"] for x in p.values())')" "a loop file in memory"
	grep -qE "came from memory" "$TMP/out" || fail "the reason is not told"
fi

# --- bytes that are not yet on the device are left alone ---
head -c 32M /dev/urandom >"$TMP/fast/dirty"
before=$(written fast)
run dbtier probe --json --seconds 1 "$TMP/fast/dirty"
[[ $(written fast) -eq $before ]] || echo "note: the kernel wrote by itself meanwhile"
equal "True" "$(get 'all(x["proved"] or x["iops"] is None for x in p.values())')" "a dirty file"

# --- compressed: zeros answer from the processor ---
if device zipped btrfs 512M compress-force=zstd 2>/dev/null; then
	dd if=/dev/zero of="$TMP/zipped/zeros" bs=1M count=128 status=none
	fill "$TMP/zipped/random" 64
	sync
	refused "$TMP/zipped/zeros" "compressed"
	expect 0 dbtier probe --json --seconds 1 "$TMP/zipped/random"
	equal "True" "$(get 'all(x["proved"] or "not proved" in x["note"] for x in p.values())')" "random data on a compressing btrfs"
else
	echo "no btrfs here: compressed files are left out"
fi

# --- overlay: the layer that holds the file ---
mkdir "$TMP/fast/upper" "$TMP/fast/work" "$TMP/merged"
if mount -t overlay overlay -o "lowerdir=$TMP/fast/none,upperdir=$TMP/fast/upper,workdir=$TMP/fast/work" "$TMP/merged" 2>/dev/null; then
	fill "$TMP/fast/upper/db" 32
	sync
	expect 0 dbtier devices -no stack "$TMP/merged/db"
	out_has "overlay < ext4 < loop loop"
	expect 0 dbtier probe --json --seconds 1 "$TMP/merged/db"
	equal "True" "$(get 'all(x["proved"] or "not proved" in x["note"] for x in p.values())')" "a file on an overlay"
fi

# --- one device on another: what the layers between cost ---
truncate -s 64M "$TMP/fast/inner.img"
fill "$TMP/fast/inner.img" 64
inner=$(losetup --find --show --direct-io=on "$TMP/fast/inner.img")
outer=$(losetup --noheadings --output NAME --associated "$TMP/fast.img" | tr -d ' ')
run dbtier probe --seconds 1 "$outer" "$inner"
losetup -d "$inner"
[[ $status -eq 0 ]] || fail "probing two devices ended with $status"
out_has "$inner lies on $outer; what the layers between costs: random 4k reads: "

# --- a directory, a block device ---
expect 0 dbtier probe --json --seconds 1 "$TMP/fast"
loop=$(losetup --noheadings --output NAME --associated "$TMP/fast.img" | tr -d ' ')
expect 0 dbtier probe --json --seconds 1 "$loop"
equal "${loop#/dev/}" "$(get 'first("random", 1)["device"]')" "the device probed"
