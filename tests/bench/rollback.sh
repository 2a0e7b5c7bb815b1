#!/usr/bin/env bash
# How long a rollback takes with the original kept, for 8 MiB and for SIZE: it must not depend on the size. Beside it what
# starting the program takes, and what a rollback waits for in fsync and fdatasync.
#
#	DBTIER=... tests/bench/rollback.sh [SIZE [ROUNDS]]        2G and 5
#
# and what common.sh says.
. "$(dirname "$0")/common.sh"

rounds=${2:-$rounds}
bytes=$(numfmt --from=iec "${1:-2G}")

# warm COMMAND...: as timed, with warm caches.
warm()
{
	local start

	start=$(date +%s%N)
	"$@"
	took=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.1f", ns / 1e6 }')
}

start_program()
{
	"$DBTIER" --version >/dev/null
}

traced_rollback()
{
	strace -f -T -qq -e trace=fsync,fdatasync,syncfs -o "$TMP/trace" \
		"$DBTIER" --state-dir "$TMP/state" rollback >/dev/null 2>&1
	flushed=$(sed -n 's/.*<\([0-9.]*\)>$/\1/p' "$TMP/trace" | awk '{ s += $1 } END { printf "%.1f", s * 1000 }')
}

declare -A ms flushes
two_volumes "$bytes"
head -c 8M /dev/urandom >"$MNT/slow/small"
head -c "$bytes" /dev/urandom >"$MNT/slow/large"
for ((i = 1; i <= rounds; i++)); do
	warm start_program
	ms[start]+=" $took"
	for name in small large; do
		promote "$MNT/slow/$name"
		warm rollback
		ms[$name]+=" $took"
	done
done
for name in small large; do
	promote "$MNT/slow/$name"
	if command -v strace >/dev/null; then
		traced_rollback
		flushes[$name]=$flushed
	else
		rollback
	fi
done
# shellcheck disable=SC2086
echo "medians of $rounds: start $(median ${ms[start]}) ms; rollback of 8 MiB $(median ${ms[small]}) ms (flushes" \
	"${flushes[small]:-?} ms), of $bytes bytes $(median ${ms[large]}) ms (flushes ${flushes[large]:-?} ms)"
