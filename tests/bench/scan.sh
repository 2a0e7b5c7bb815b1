#!/usr/bin/env bash
# How long scan takes beside find, warm, on a tree of many files with some databases in it; and its peak memory.
#
#	tests/bench/scan.sh [FILES [DATABASES [DIR]]]
#
# DIR (default: a new directory below TMPDIR) is kept when it was given, so that a second run needs not build the
# tree again. The environment names the program as for the tests: DBTIER, DBT_TOOLS. Prints medians of seven runs,
# taken in turn. No test: figures depend on the machine.
set -euo pipefail
export LC_ALL=C

files=${1:-200000} databases=${2:-20} dir=${3-}
: "${DBTIER:?name the program in DBTIER}"
: "${DBT_TOOLS:=$(dirname "$DBTIER")/tests}"
runs=7

if [[ -z $dir ]]; then
	dir=$(mktemp -d "${TMPDIR:-/tmp}/dbtier-bench.XXXXXX")
	trap 'rm -rf "$dir"' EXIT
fi
tree=$dir/tree
state=$dir/state

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
awk -v a="$scan_s" -v b="$find_s" 'BEGIN { printf "scan / find -size        %.2f\n", a / b }'
if [[ -x /usr/bin/time ]]; then
	/usr/bin/time -f '%M' -o "$dir/rss" "${scan[@]}" >"$dir/out"
	echo "peak memory of scan      $(tail -n 1 "$dir/rss") KiB"
fi
