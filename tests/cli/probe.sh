#!/usr/bin/env bash
# needs: loop
# timeout: 240
# probe: tells a slow device from a fast one by measuring, and never measures what is no device.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command python3 python3
need_command losetup mount

throttle=/sys/fs/cgroup/blkio/blkio.throttle.read_iops_device

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

# is_called PATH TIERS: the verdict is one of the words, or none because others kept the disk busy.
is_called()
{
	local tier

	tier=$(get "first('random', 1, '$1')['tier']")
	grep -qw -e "$tier" <<<"$2" && return
	if [[ $tier != unknown ]] || ! get "first('random', 1, '$1')['note']" | grep -qF "other work"; then
		fail "$1 is called $tier, not $2"
	fi
	echo "the disk was too busy for a verdict on $1"
}

written()
{
	awk '{ print $7 }' "/sys/dev/block/$(cat "$TMP/$1.dev")/stat"
}

device fast ext4 512M || skip "cannot mount ext4"
fill "$TMP/fast/db" 96
sync

# --- keys, proof, no writes ---
before=$(written fast)
expect 0 dbtier probe --json --seconds 1 "$TMP/fast/db"
equal "$before" "$(written fast)" "sectors written by a probe"
equal "path,path_raw,device,tier,pattern,jobs,block,iops,rate,lat_avg_ns,lat_p50_ns,lat_p99_ns,reads,seconds,proved,note" \
	"$(get '",".join(first("random", 1))')" "keys"
equal "4 True" "$(get 'str(len(p)) + " " + str(all(x["proved"] for x in p.values()))')" "four patterns, all proved"
is_called "$TMP/fast/db" "ssd nvme"
equal "True" "$(get 'first("random", 1)["reads"] * 4096 + first("random", 4)["reads"] * 4096 <= 16 << 20')" "bytes of the random reads"

# --- the same flag, another device ---
if [[ -w $throttle ]]; then
	device slow ext4 256M
	fill "$TMP/slow/db" 96
	sync
	echo "$(cat "$TMP/slow.dev") 207" >$throttle
	expect 0 dbtier probe --seconds 1 "$TMP/slow/db" "$TMP/fast/db"
	out_has "$TMP/fast/db against $TMP/slow/db: "
	expect 0 dbtier probe --json "$TMP/slow/db" "$TMP/fast/db"
	out=$(cat "$TMP/out")
	echo "$(cat "$TMP/slow.dev") 0" >$throttle
	printf '%s' "$out" >"$TMP/out"
	busy=$(get '"".join(x["note"] or "" for x in p.values())' | grep -F "other work" || true)
	is_called "$TMP/slow/db" hdd
	is_called "$TMP/fast/db" "ssd nvme"
	# Never more than the throttle lets pass, its first burst left out. Less is what a busy machine gives.
	for jobs in 1 4; do
		equal "True" "$(get "first('random', $jobs, '$TMP/slow/db')['iops'] < 238")" \
			"207 reads a second with $jobs jobs: $(get "first('random', $jobs, '$TMP/slow/db')['iops']")"
	done
	equal "$(cat "/sys/dev/block/$(cat "$TMP/slow.dev")/queue/rotational")" \
		"$(cat "/sys/dev/block/$(cat "$TMP/fast.dev")/queue/rotational")" "rotational flags"
	# What was measured is remembered, unless others kept the disk busy.
	if [[ -z $busy ]]; then
		expect 0 dbtier devices -no tier "$TMP/slow/db"
		equal "hdd" "$(tr -d ' ' <"$TMP/out")" "the tier after the probe"
	fi
else
	echo "no blkio cgroup (version 1) here: the throttled device is left out"
fi

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

# --- a file that sits in memory: measured past the cache, which stays as it was ---
# Under memory pressure the kernel drops pages by itself: so three tries.
for _ in 1 2 3; do
	cat "$TMP/fast/db" >/dev/null
	cached=$(fincore -nbo PAGES "$TMP/fast/db")
	expect 0 dbtier probe --json --seconds 1 "$TMP/fast/db"
	equal "True" "$(get 'all(x["proved"] for x in p.values())')" "the cached file is measured on its device"
	after=$(fincore -nbo PAGES "$TMP/fast/db")
	[[ $after != "$cached" ]] || break
done
equal "$cached" "$after" "pages cached after the probe"

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

# --- a directory, a block device, an interrupt ---
expect 0 dbtier probe --json --seconds 1 "$TMP/fast"
loop=$(losetup --noheadings --output NAME --associated "$TMP/fast.img" | tr -d ' ')
expect 0 dbtier probe --json --seconds 1 "$loop"
equal "${loop#/dev/}" "$(get 'first("random", 1)["device"]')" "the device probed"
expect 130 timeout --signal=INT --preserve-status 0.3 "$DBTIER" --state-dir "$TMP/state" probe "$TMP/fast/db"
