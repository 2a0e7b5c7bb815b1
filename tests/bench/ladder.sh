#!/usr/bin/env bash
# Does the ladder measure what others measure? Its memory against a pointer chase written otherwise, its devices against
# fio and against dbtier probe, in turn, in one run. Prints medians and ratios; ends with 1 where a ratio of medians is
# beyond 15 % (devices) or 20 % (memory).
#
#	DBTIER=build/release/dbtier DBT_TOOLS=build/release/tests tests/bench/ladder.sh [DIR...]
#
# BENCH_ROUNDS (5). DIR: default the working directory. It gets a file of BENCH_SIZE (1G), removed at the end.
set -euo pipefail
: "${DBTIER:?the program}" "${DBT_TOOLS:?the directory of runchase}"
rounds=${BENCH_ROUNDS:-5} size=${BENCH_SIZE:-1G}
for tool in fio jq; do
	command -v $tool >/dev/null || { echo "needs $tool" >&2; exit 2; }
done
[[ $# -gt 0 ]] || set -- .
work=$(mktemp -d)
made=()
trap 'rm -rf "$work" "${made[@]}"' EXIT
DBTIER_STATE_DIR=$work/state
export DBTIER_STATE_DIR
bad=0

median() { sort -g "$1" | awk '{ v[NR] = $1 } END { print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2 }'; }

# compare WHAT OURS THEIRS PERCENT: files with a number a line.
compare()
{
	local a b

	a=$(median "$2") b=$(median "$3")
	awk -v what="$1" -v a="$a" -v b="$b" -v most="$4" 'BEGIN {
		ratio = a / b; good = ratio <= 1 + most / 100 && ratio >= 1 - most / 100
		printf "%-44s %12.1f %12.1f %6.2f %s\n", what, a, b, ratio, good ? "" : "beyond " most " %"
		exit !good }' || bad=1
}

fio_run()
{
	fio --name=x --filename="$1/dbtier-bench.dat" --size="$size" --direct=1 --readonly --runtime=4 --time_based \
		--group_reporting --output-format=json "${@:2}" | jq '.jobs[0].read'
}

for dir; do
	made+=("$dir/dbtier-bench.dat")
	fio --name=x --filename="$dir/dbtier-bench.dat" --size="$size" --rw=write --bs=1M --direct=1 >/dev/null
done
for ((i = 0; i < rounds; i++)); do
	"$DBT_TOOLS/runchase" 256 >>"$work/chase"
	"$DBTIER" ladder --json | jq '.rungs[] | select(.rung == "memory").latency_4k_ns' >>"$work/memory"
	for dir; do
		key=$(tr / _ <<<"$dir")
		fio_run "$dir" --rw=randread --bs=4k --numjobs=1 >"$work/f"
		jq .iops "$work/f" >>"$work/fio1$key"
		fio_run "$dir" --rw=randread --bs=4k --numjobs=4 | jq .iops >>"$work/fio4$key"
		fio_run "$dir" --rw=read --bs=1M --numjobs=1 | jq .bw_bytes >>"$work/fios$key"
		"$DBTIER" ladder --json "$dir" | jq '.rungs[-1]' >"$work/l"
		"$DBTIER" probe --json "$dir" | jq '.probes' >"$work/p"
		jq .iops "$work/l" >>"$work/l1$key"
		jq .iops4 "$work/l" >>"$work/l4$key"
		jq .stream "$work/l" >>"$work/ls$key"
		jq '.[0].iops' "$work/p" >>"$work/p1$key"
		jq '.[1].iops' "$work/p" >>"$work/p4$key"
		jq '.[2].rate' "$work/p" >>"$work/ps$key"
	done
done
printf '%-44s %12s %12s %6s\n' "median of $rounds" ladder other ratio
compare "memory, ns a load: another pointer chase" "$work/memory" "$work/chase" 20
for dir; do
	key=$(tr / _ <<<"$dir")
	compare "$dir: random reads/s: fio" "$work/l1$key" "$work/fio1$key" 15
	compare "$dir: random reads/s: probe" "$work/l1$key" "$work/p1$key" 15
	compare "$dir: four jobs: fio" "$work/l4$key" "$work/fio4$key" 15
	compare "$dir: four jobs: probe" "$work/l4$key" "$work/p4$key" 15
	compare "$dir: one stream, bytes/s: fio" "$work/ls$key" "$work/fios$key" 15
	compare "$dir: one stream: probe" "$work/ls$key" "$work/ps$key" 15
done
exit $bad
