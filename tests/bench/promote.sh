#!/usr/bin/env bash
# How long a promotion takes against `cp && sync && xxh128sum source copy`, the same proof by hand, on the same two
# filesystems in turn, and how much memory it uses. A benchmark, not a test: it prints and does not judge.
#
#	DBTIER=... tests/bench/promote.sh [SIZE [ROUNDS]]        4G and 5
#
# The filesystems lie on loop devices with direct I/O below BENCH_SLOW and BENCH_FAST (/var/tmp both: one disk), of
# the types BENCH_SLOW_FS and BENCH_FAST_FS (ext4, xfs). Root, for the loop devices and for cold caches.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command xxh128sum xxhash
[[ -x /usr/bin/time ]] || skip "needs /usr/bin/time (package time)"

size=${1:-4G}
rounds=${2:-5}
bytes=$(numfmt --from=iec "$size")

# volume NAME DIR TYPE: a filesystem with room for the file at $MNT/NAME.
volume()
{
	local image device

	image=$(mktemp "$2/dbtier-bench.XXXXXX")
	images+=("$image")
	truncate -s $((bytes + bytes / 4 + (1 << 30))) "$image"
	device=$(losetup --find --show --direct-io=on "$image" 2>/dev/null || losetup --find --show "$image")
	"mkfs.$3" -q "$device" >/dev/null 2>&1
	mkdir -p "$MNT/$1"
	mount "$device" "$MNT/$1"
	losetup -d "$device" # when it is unmounted
}

cleanup()
{
	umount "$MNT/slow" "$MNT/fast" 2>/dev/null || true
	umount "$MNT" || true
	rm -f "${images[@]}"
	lib_cleanup
}

# seconds COMMAND...: with cold caches; in $took.
seconds()
{
	local start

	sync
	echo 3 >/proc/sys/vm/drop_caches
	start=$(date +%s%N)
	"$@"
	took=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.2f", ns / 1e9 }')
}

by_hand()
{
	cp "$MNT/slow/file" "$MNT/fast/file"
	sync
	xxh128sum "$MNT/slow/file" "$MNT/fast/file" 2>/dev/null | awk '{ print $1 }' | uniq | wc -l >"$TMP/sums"
	[[ $(cat "$TMP/sums") == 1 ]] || fail "cp made another file"
}

by_dbtier()
{
	/usr/bin/time -v -o "$TMP/time" "$DBTIER" --state-dir "$TMP/state" promote --force --no-probe --to "$MNT/fast" \
		"$MNT/slow/file" >/dev/null 2>"$TMP/err" || fail "promote: $(cat "$TMP/err")"
}

median()
{
	printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

images=()
MNT=/mnt # the namespace is this script's own; below /tmp there would be warnings
mount -t tmpfs -o mode=755 tmpfs "$MNT"
trap cleanup EXIT
volume slow "${BENCH_SLOW:-/var/tmp}" "${BENCH_SLOW_FS:-ext4}"
volume fast "${BENCH_FAST:-/var/tmp}" "${BENCH_FAST_FS:-xfs}"
head -c "$bytes" /dev/urandom >"$MNT/slow/file"

hand=() dbtier=() peak=()
for ((i = 1; i <= rounds; i++)); do
	seconds by_hand
	hand+=("$took")
	rm "$MNT/fast/file"
	seconds by_dbtier
	dbtier+=("$took")
	peak+=("$(awk '/Maximum resident/ { print $NF }' "$TMP/time")")
	"$DBTIER" --state-dir "$TMP/state" rollback >/dev/null 2>&1
	echo "round $i: cp && sync && xxh128sum ${hand[-1]} s, dbtier promote ${dbtier[-1]} s, peak ${peak[-1]} KiB"
done
a=$(median "${hand[@]}") b=$(median "${dbtier[@]}")
echo "$size, median of $rounds: by hand $a s, dbtier $b s, ratio $(awk -v a="$a" -v b="$b" 'BEGIN { printf "%.2f", b / a }'),\
 peak memory $(printf '%s\n' "${peak[@]}" | sort -n | tail -1) KiB"
