# What the benchmarks share: two filesystems on loop devices, a rate limit on the source, runs in turn with cold caches,
# medians. Source it first. A benchmark prints and does not judge.
#
#	DBTIER             the program
#	BENCH_SLOW, BENCH_FAST        directories for the two images (/var/tmp both: one disk; /dev/shm: memory)
#	BENCH_SLOW_FS, BENCH_FAST_FS  their filesystems (ext4, xfs)
#	BENCH_LIMIT        bytes a second that the source's device gives, as 200M (of 1000): needs the blkio cgroup of
#	                   version 1 or io of version 2; without it the device gives what it can
#	BENCH_ROUNDS       5
#
# Root, for loop devices, mounts, caches and the limit.
# shellcheck shell=bash
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command fio fio
[[ -x /usr/bin/time ]] || skip "needs /usr/bin/time (package time)"

rounds=${BENCH_ROUNDS:-5}
images=()
MNT=/mnt # the namespace is this script's own; below /tmp there would be warnings
mount -t tmpfs -o mode=755 tmpfs "$MNT"
trap bench_cleanup EXIT

bench_cleanup()
{
	if [[ -d ${LIMIT_GROUP-} ]]; then
		echo $$ >"${LIMIT_GROUP%/*}/cgroup.procs"
		rmdir "$LIMIT_GROUP" || true
	fi
	umount "$MNT/slow" "$MNT/fast" 2>/dev/null || true
	umount "$MNT" || true
	rm -f "${images[@]}"
	lib_cleanup
}

# volume NAME DIR TYPE BYTES: a filesystem with room for so many bytes at $MNT/NAME.
volume()
{
	local image device

	image=$(mktemp "$2/dbtier-bench.XXXXXX")
	images+=("$image")
	truncate -s $(($4 + $4 / 8 + (600 << 20))) "$image"
	device=$(losetup --find --show --direct-io=on "$image" 2>/dev/null || losetup --find --show "$image")
	"mkfs.$3" -q "$device" >/dev/null 2>&1 || fail "mkfs.$3"
	mkdir -p "$MNT/$1"
	mount "$device" "$MNT/$1"
	losetup -d "$device" # when it is unmounted
}

# two_volumes BYTES
two_volumes()
{
	volume slow "${BENCH_SLOW:-/var/tmp}" "${BENCH_SLOW_FS:-ext4}" "$1"
	volume fast "${BENCH_FAST:-/var/tmp}" "${BENCH_FAST_FS:-xfs}" "$1"
	echo "# ${BENCH_SLOW_FS:-ext4} in ${BENCH_SLOW:-/var/tmp} to ${BENCH_FAST_FS:-xfs} in ${BENCH_FAST:-/var/tmp}," \
		"kernel $(uname -r), $(nproc) processors"
}

# limit_source: what this script and its children read from the source's device.
limit_source()
{
	local number rate

	[[ ${BENCH_LIMIT-} ]] || return 0
	rate=$(numfmt --from=si "$BENCH_LIMIT")
	number=$(stat -c %Hr:%Lr "$(findmnt -n -o SOURCE "$MNT/slow")")
	if [[ -w /sys/fs/cgroup/blkio/cgroup.procs ]]; then
		LIMIT_GROUP=/sys/fs/cgroup/blkio/dbtier-bench.$$
		mkdir "$LIMIT_GROUP"
		echo "$number $rate" >"$LIMIT_GROUP/blkio.throttle.read_bps_device"
	elif [[ -w /sys/fs/cgroup/cgroup.subtree_control ]]; then
		echo +io >/sys/fs/cgroup/cgroup.subtree_control
		LIMIT_GROUP=/sys/fs/cgroup/dbtier-bench.$$
		mkdir "$LIMIT_GROUP"
		echo "$number rbps=$rate" >"$LIMIT_GROUP/io.max"
	else
		skip "no cgroup that limits block devices"
	fi
	echo $$ >"$LIMIT_GROUP/cgroup.procs"
	echo "# the source's device gives $BENCH_LIMIT bytes a second"
}

cold()
{
	sync
	echo 3 >/proc/sys/vm/drop_caches
}

# timed COMMAND...: with cold caches. $took: seconds, $cpu: seconds of user and system time of this shell's children,
# kernel threads not among them.
timed()
{
	local start before after

	cold
	before=$(children_ms)
	start=$(date +%s%N)
	"$@"
	took=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.3f", ns / 1e9 }')
	after=$(children_ms)
	cpu=$(awk -v ms=$((after - before)) 'BEGIN { printf "%.3f", ms / 1e3 }')
}

# User and system time of all children that have ended, in ms.
children_ms()
{
	local stat

	read -r stat </proc/$$/stat
	stat=${stat##*) }
	# shellcheck disable=SC2086
	set -- $stat
	echo $(((${14} + ${15}) * 1000 / $(getconf CLK_TCK)))
}

# peak COMMAND...: its peak memory in KiB in $peak.
peak()
{
	/usr/bin/time -f %M -o "$TMP/peak" "$@"
	peak=$(tail -1 "$TMP/peak")
}

median()
{
	printf '%s\n' "$@" | sort -n | sed -n "$((($# + 1) / 2))p"
}

ratio()
{
	awk -v a="$1" -v b="$2" 'BEGIN { if (b > 0) printf "%.2f", a / b; else printf "-" }'
}

# promote ARGS...: to the fast volume, without a measurement of devices that are alike.
promote()
{
	"$DBTIER" --state-dir "$TMP/state" promote --force --no-probe --to "$MNT/fast" "$@" >/dev/null 2>"$TMP/err" ||
		fail "promote: $(cat "$TMP/err")"
}

rollback()
{
	"$DBTIER" --state-dir "$TMP/state" rollback >/dev/null 2>"$TMP/err" || fail "rollback: $(cat "$TMP/err")"
}
