#!/usr/bin/env bash
# How long a promotion takes, with flush and proof, beside what people type instead, on the same two filesystems in
# turn: cp; cp && sync; the same with the proof by hand, which reads the devices (caches dropped, xxh128sum of both
# ends); and what a fio sequential read of the source would take. CPU time and peak memory with it.
#
#	DBTIER=... tests/bench/promote.sh [SIZE [ROUNDS]]        2G and 5
#
#	BENCH_WORK    file (default); sparse: every other 64 MiB is a hole; set: about 100 files; tree: 10,000 files
#	BENCH_WITH    more to compare with, any of: rsync (also with -c afterwards), dd (4 MiB blocks, direct)
# and what common.sh says.
. "$(dirname "$0")/common.sh"
need_command xxh128sum xxhash

rounds=${2:-$rounds}
bytes=$(numfmt --from=iec "${1:-2G}")
work=${BENCH_WORK:-file}

make_work()
{
	what=$MNT/slow/$work
	case $work in
	file)
		head -c "$bytes" /dev/urandom >"$what"
		;;
	sparse)
		truncate -s "$bytes" "$what"
		for ((at = 0; at < bytes >> 20; at += 128)); do
			head -c 64M /dev/urandom | dd of="$what" bs=1M seek=$at conv=notrunc iflag=fullblock status=none
		done
		;;
	set | tree)
		mkdir "$what"
		"$DBT_TOOLS/mkdb" blast "$what/nr" "$bytes" "$([[ $work == set ]] && echo 33 || echo 3333)"
		;;
	esac
	files=$(find "$what" -type f | wc -l)
	sync
}

clear_fast()
{
	rm -rf "$MNT/fast/by-hand"
	sync -f "$MNT/fast"
}

# Each way: what it leaves lies at $MNT/fast/by-hand.
by_cp()
{
	cp -r "$what" "$MNT/fast/by-hand"
}

by_cp_sync()
{
	cp -r "$what" "$MNT/fast/by-hand"
	sync
}

by_cp_sync_sum()
{
	by_cp_sync
	echo 3 >/proc/sys/vm/drop_caches
	find "$what" -type f | sort | xargs xxh128sum 2>/dev/null | cut -c1-32 >"$TMP/a"
	find "$MNT/fast/by-hand" -type f | sort | xargs xxh128sum 2>/dev/null | cut -c1-32 >"$TMP/b"
	cmp -s "$TMP/a" "$TMP/b" || fail "cp made other files"
}

by_rsync()
{
	rsync -a "$what" "$MNT/fast/by-hand"
	sync
}

by_rsync_checked()
{
	by_rsync
	echo 3 >/proc/sys/vm/drop_caches
	rsync -ac "$what" "$MNT/fast/by-hand"
}

by_dd()
{
	dd if="$what" of="$MNT/fast/by-hand" bs=4M iflag=direct oflag=direct conv=fsync status=none
}

by_fio()
{
	fio --name=limit --filename="$1" --rw=read --bs=4M --direct=1 --ioengine=psync --readonly --output=/dev/null
}

# /usr/bin/time takes no functions.
cat >"$TMP/promote" <<END
#!/bin/sh
exec "$DBTIER" --state-dir "$TMP/state" promote --force --no-probe --to "$MNT/fast" "\$@" >/dev/null 2>"$TMP/err"
END
chmod +x "$TMP/promote"
run_dbtier()
{
	peak "$TMP/promote" "$what" || fail "promote: $(cat "$TMP/err")"
}

declare -A seconds cpus
peaks=()
two_volumes "$bytes"
make_work
limit_source
ways=(cp cp_sync cp_sync_sum)
for way in ${BENCH_WITH-}; do
	case $way in
	rsync)
		need_command rsync rsync
		ways+=(rsync rsync_checked)
		;;
	dd) [[ $work == set || $work == tree ]] || ways+=(dd) ;;
	esac
done
for ((i = 1; i <= rounds; i++)); do
	line="round $i:"
	for way in "${ways[@]}"; do
		timed "by_$way"
		clear_fast
		seconds[$way]+=" $took" cpus[$way]+=" $cpu" line+=" $way $took s,"
	done
	timed run_dbtier
	peaks+=("$peak")
	rollback
	seconds[dbtier]+=" $took" cpus[dbtier]+=" $cpu"
	if [[ $work == file ]]; then
		timed by_fio "$what"
		seconds[fio]+=" $took"
		line+=" fio $took s,"
	fi
	echo "$line dbtier $took s" | sed "s/dbtier .*/dbtier ${seconds[dbtier]##* } s/"
done
# shellcheck disable=SC2086
ours=$(median ${seconds[dbtier]})
# shellcheck disable=SC2086
ours_cpu=$(median ${cpus[dbtier]})
echo "$work of $bytes bytes in $files files, medians of $rounds: dbtier promote $ours s, CPU $ours_cpu s, peak memory" \
	"$(printf '%s\n' "${peaks[@]}" | sort -n | tail -1) KiB"
for way in "${ways[@]}" ${seconds[fio]:+fio}; do
	# shellcheck disable=SC2086
	a=$(median ${seconds[$way]})
	# shellcheck disable=SC2086
	c=$(median ${cpus[$way]:-0})
	echo "	dbtier / $way: $(ratio "$ours" "$a") ($a s); CPU $(ratio "$ours_cpu" "$c") ($c s)"
done
