#!/usr/bin/env bash
# How long it takes until an archive on the slow disk is a database with its hot files on the fast one: dbtier, beside
# what people type instead, tar x on the slow disk and cp of the hot files, in turn. What is hot is two thirds. The slow
# disk gives and takes BENCH_LIMIT bytes a second (200M). CPU time and peak memory with it.
#
#	DBTIER=... tests/bench/unpack.sh [SIZE [ROUNDS]]         6G (all members together) and 5
#
#	BENCH_PACK    none (default: the disks are the limit), zstd, gzip, xz (as `xz -T`, whose blocks are unpacked on
#	              several processors)
# and what common.sh says. Numbers are random, so that nothing is packed well: then the archive is as large as what is in
# it, and the packer's own speed shows where it is the limit.
: "${BENCH_LIMIT:=200M}"
. "$(dirname "$0")/common.sh"

rounds=${2:-$rounds}
bytes=$(numfmt --from=iec "${1:-6G}")
pack=${BENCH_PACK:-none}

make_archive()
{
	mkdir "$MNT/slow/db"
	head -c $((bytes / 3)) /dev/urandom >"$MNT/slow/db/proteins.faa"
	"$DBT_TOOLS/mkdb" diamond "$MNT/slow/db/psc.dmnd" $((bytes / 3))
	"$DBT_TOOLS/mkdb" sqlite "$MNT/slow/db/bakta.db" $((bytes / 3))
	case $pack in
	none) archive=$MNT/slow/db.tar && tar -C "$MNT/slow" -cf "$archive" db ;;
	zstd) archive=$MNT/slow/db.tar.zst && tar -C "$MNT/slow" -c db | zstd -q -1 -o "$archive" ;;
	gzip) archive=$MNT/slow/db.tar.gz && tar -C "$MNT/slow" -c db | gzip -1 >"$archive" ;;
	xz) archive=$MNT/slow/db.tar.xz && tar -C "$MNT/slow" -c db | xz -0 -T0 >"$archive" ;;
	*) fail "BENCH_PACK is none, zstd, gzip or xz" ;;
	esac
	rm -r "$MNT/slow/db"
	sync
}

# limit_writes RATE: of the slow disk as a whole. What the page cache writes back counts for no group of version 1 but
# the root.
limit_writes()
{
	local number limit=/sys/fs/cgroup/blkio/blkio.throttle.write_bps_device

	number=$(stat -c %Hr:%Lr "$(findmnt -n -o SOURCE "$MNT/slow")")
	[[ -w $limit ]] || skip "no blkio cgroup of version 1, which limits what the page cache writes"
	echo "$number $1" >"$limit"
}

by_hand()
{
	tar -C "$MNT/slow" -xf "$archive"
	cp "$MNT/slow/db/psc.dmnd" "$MNT/slow/db/bakta.db" "$MNT/fast/"
	sync
}

by_dbtier()
{
	peak "$DBTIER" --state-dir "$TMP/state" promote --force --no-probe --to "$MNT/fast" "$archive" >/dev/null 2>"$TMP/err" ||
		fail "promote: $(cat "$TMP/err")"
}

two_volumes $((bytes * 2))
make_archive
limit_source
limit_writes "$(numfmt --from=si "$BENCH_LIMIT")"
echo "# $(numfmt --to=iec "$bytes") in an archive of $(stat -c %s "$archive" | numfmt --to=iec), packed by $pack"
echo "round by_hand_s dbtier_s ratio by_hand_cpu_s dbtier_cpu_s peak_KiB"
for ((round = 1; round <= rounds; round++)); do
	timed by_hand
	hand=$took hand_cpu=$cpu
	rm -rf "$MNT/slow/db" "$MNT/fast/psc.dmnd" "$MNT/fast/bakta.db"
	timed by_dbtier
	echo "$round $hand $took $(ratio "$took" "$hand") $hand_cpu $cpu $peak"
	hands+=("$hand") tooks+=("$took") cpus+=("$cpu") peaks+=("$peak")
	rollback
done
echo "median by hand $(median "${hands[@]}") s, dbtier $(median "${tooks[@]}") s:" \
	"$(ratio "$(median "${tooks[@]}")" "$(median "${hands[@]}")") of the time;" \
	"$(median "${cpus[@]}") s of CPU ($(ratio "$(median "${cpus[@]}")" "$(median "${tooks[@]}")") processors busy)," \
	"peak memory $(median "${peaks[@]}") KiB"
awk -v cpu="$(median "${cpus[@]}")" -v s="$(median "${tooks[@]}")" -v n="$(nproc)" \
	'BEGIN { if (cpu > 0.9 * s) print "# unpacking and hashing kept one processor of " n " busy: that is the limit, not the disks" }'
limit_writes 0
