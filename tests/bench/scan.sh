#!/usr/bin/env bash
# How long scan takes beside find and du on a tree of many files with some databases in it, warm and cold, and its peak
# memory.
#
#	tests/bench/scan.sh [FILES [DATABASES [DIR]]]
#
# DIR (default: a new directory below TMPDIR) is kept when it was given, so that a second run needs not build the
# tree again. The environment names the program as for the tests: DBTIER, DBT_TOOLS. For root the tree lies on a
# filesystem of its own in a file, and the cold part reads it at the 207 reads a second of a disk, where the kernel has
# a blkio cgroup (version 1). Prints medians, taken in turn. No test: figures depend on the machine.
set -euo pipefail
export LC_ALL=C

files=${1:-200000} databases=${2:-20} dir=${3-}
: "${DBTIER:?name the program in DBTIER}"
: "${DBT_TOOLS:=$(dirname "$DBTIER")/tests}"
runs=${DBT_BENCH_RUNS:-7} cold_runs=${DBT_BENCH_COLD_RUNS:-2}

# What is mounted ends with the namespace.
if [[ $(id -u) -eq 0 && -z ${DBT_BENCH_NAMESPACE-} ]] && unshare --mount true 2>/dev/null; then
	DBT_BENCH_NAMESPACE=1 exec unshare --mount --propagation private "$0" "$@"
fi

if [[ -z $dir ]]; then
	dir=$(mktemp -d "${TMPDIR:-/tmp}/dbtier-bench.XXXXXX")
	trap 'umount "$dir/mnt" 2>/dev/null || true; rm -rf --one-file-system "$dir"' EXIT
fi
tree=$dir/mnt/tree
state=$dir/state
image=$dir/image
mkdir -p "$dir/mnt"

# On a filesystem of its own, which can be mounted anew: nothing of it is in memory then.
mount_tree()
{
	mount -o loop,noatime "$image" "$dir/mnt"
}
if [[ ${DBT_BENCH_NAMESPACE-} && ! -e $image && ! -d $tree ]]; then
	# Two blocks of a file's data at most, and as many inodes as files and directories.
	truncate -s $((files * 1024 + 1024 * 1024 * 1024)) "$image"
	mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 -N $((files + files / 20 + 1000)) "$image"
fi
[[ ! -e $image ]] || mount_tree

if [[ ! -d $tree ]]; then
	echo "making $files files and $databases databases below $tree" >&2
	mkdir -p "$tree"
	# Names as a sequencing store has them, a hundred in a directory; a few of each hundred are large.
	awk -v n="$files" -v tree="$tree" 'BEGIN {
		split("fastq.gz bam bai vcf tsv json txt log html dat", ends, " ")
		for (i = 0; i < n; i++) {
			if (i % 100 == 0) printf "%s/run%03d/lane%05d\n", tree, i / 10000, i / 100 | "xargs mkdir -p"
			name[i] = sprintf("%s/run%03d/lane%05d/sample_%07d.%s", tree, i / 10000, i / 100, i, ends[i % 10 + 1])
		}
		close("xargs mkdir -p")
		for (i = 0; i < n; i++) print name[i] }' | xargs touch
	find "$tree" -name '*[05]00.*' -print0 | xargs -0 -r truncate -s 3M
	for ((i = 0; i < databases; i++)); do
		mkdir -p "$tree/db/set$i"
		case $((i % 4)) in
		0) "$DBT_TOOLS/mkdb" diamond "$tree/db/set$i/nr.dmnd" 2M ;;
		1) "$DBT_TOOLS/mkdb" sqlite "$tree/db/set$i/taxa.db" 2M ;;
		2) "$DBT_TOOLS/mkdb" blast "$tree/db/set$i/prot" 2M 3 ;;
		3) "$DBT_TOOLS/mkdb" kraken2 "$tree/db/set$i" 2M ;;
		esac
	done
fi

# seconds COMMAND...
seconds()
{
	local start=$EPOCHREALTIME

	"$@" >"$dir/out"
	awk -v a="$start" -v b="$EPOCHREALTIME" 'BEGIN { printf "%.3f\n", b - a }'
}

median()
{
	sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'
}

by_size=(find "$tree" -type f -size +1M)
by_print=(find "$tree" -type f -printf '%s %p\n')
by_du=(du -a "$tree")
scan=("$DBTIER" --state-dir "$state" scan --no-probe -n -o path "$tree")

# cold COMMAND...: seconds it takes when nothing is in memory.
cold()
{
	umount "$dir/mnt"
	mount_tree
	echo "$(stat -c %Hr:%Lr "$(findmnt -n -o SOURCE "$dir/mnt")") 207" >"$throttle/blkio.throttle.read_iops_device"
	# shellcheck disable=SC2016 # for the inner shell
	seconds bash -c 'echo $$ >"$1/cgroup.procs"; shift; exec "$@"' - "$throttle" "$@"
}

throttle=/sys/fs/cgroup/blkio/dbtier-bench.$$
if [[ $cold_runs -gt 0 && -e $image && -w /sys/fs/cgroup/blkio/blkio.throttle.read_iops_device ]] && mkdir "$throttle" 2>/dev/null; then
	sync
	rm -f "$dir"/{find,scan}
	for ((i = 0; i < cold_runs; i++)); do
		cold "${by_size[@]}" >>"$dir/find"
		cold "${scan[@]}" >>"$dir/scan"
	done
	rmdir "$throttle" 2>/dev/null || true
	find_s=$(median <"$dir/find") scan_s=$(median <"$dir/scan")
	echo "cold, 207 reads a second"
	echo "find -size +1M           $find_s s"
	echo "dbtier scan --no-probe   $scan_s s"
	awk -v a="$scan_s" -v b="$find_s" 'BEGIN { printf "scan / find -size        %.2f\n", a / b }'
	echo "warm"
fi

"${by_size[@]}" >/dev/null # warms the caches for all
rm -f "$dir"/{find,print,du,scan}
for ((i = 0; i < runs; i++)); do
	seconds "${by_size[@]}" >>"$dir/find"
	seconds "${scan[@]}" >>"$dir/scan"
	found=$(wc -l <"$dir/out")
	seconds "${by_print[@]}" >>"$dir/print"
	seconds "${by_du[@]}" >>"$dir/du"
done

find_s=$(median <"$dir/find") scan_s=$(median <"$dir/scan") print_s=$(median <"$dir/print") du_s=$(median <"$dir/du")
echo "files                    $files"
echo "databases found          $found of $databases"
echo "find -size +1M           $find_s s"
echo "find -printf '%s %p'     $print_s s"
echo "du -a                    $du_s s"
echo "dbtier scan --no-probe   $scan_s s"
awk -v a="$scan_s" -v b="$print_s" -v c="$du_s" 'BEGIN { printf "scan / find -printf      %.2f\nscan / du                %.2f\n", a / b, a / c }'
if [[ -x /usr/bin/time ]]; then
	/usr/bin/time -f '%M' -o "$dir/rss" "${scan[@]}" >"$dir/out"
	echo "peak memory of scan      $(tail -n 1 "$dir/rss") KiB"
fi
