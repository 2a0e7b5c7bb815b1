#!/usr/bin/env bash
# How much of the source a promotion reads again after it was killed at SHARE percent: by the counters of the source's
# device.
#
#	DBTIER=... tests/bench/resume.sh [SIZE [ROUNDS [SHARE]]]        2G, 5 and 60
#
# and what common.sh says; a limit (200M) makes the moment of the kill sure.
: "${BENCH_LIMIT:=200M}"
. "$(dirname "$0")/common.sh"

rounds=${2:-$rounds}
bytes=$(numfmt --from=iec "${1:-2G}")
share=${3:-60}

# Bytes that the source's device gave so far.
given()
{
	awk '{ printf "%.0f\n", $3 * 512 }' "/sys/block/$(basename "$(findmnt -n -o SOURCE "$MNT/slow")")/stat"
}

two_volumes "$bytes"
head -c "$bytes" /dev/urandom >"$MNT/slow/file"
limit_source
parts=()
for ((i = 1; i <= rounds; i++)); do
	cold
	start=$(given)
	"$DBTIER" --state-dir "$TMP/state" promote --force --no-probe --to "$MNT/fast" "$MNT/slow/file" >/dev/null 2>&1 &
	pid=$!
	while (($(given) - start < bytes / 100 * share)); do
		kill -0 "$pid" 2>/dev/null || fail "the promotion ended before it was killed"
		sleep 0.01
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	killed=$(($(given) - start))
	cold
	start=$(given)
	promote "$MNT/slow/file"
	again=$(($(given) - start))
	parts+=("$(awk -v a="$again" -v b="$bytes" 'BEGIN { printf "%.1f", 100 * a / b }')")
	rollback
	echo "round $i: killed after $killed bytes, then read $again of $bytes (${parts[-1]} %)"
done
echo "median of $rounds: ${share} % before, $(median "${parts[@]}") % after the kill"
