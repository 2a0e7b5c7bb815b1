#!/usr/bin/env bash
# needs: loop
# timeout: 300
# ladder: measures, tells cold from warm, leaves nothing behind, and shows the same numbers in every form.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command jq jq
need_command losetup mount

# A device that reads past the page cache, as a disk does.
truncate -s 400M "$TMP/disk.img"
loop=$(losetup --find --show --direct-io=on "$TMP/disk.img") || skip "no loop device"
mkdir "$TMP/disk" "$TMP/memory"
mkfs.ext4 -q -E 'lazy_itable_init=0,lazy_journal_init=0' "$loop" >/dev/null 2>&1
mount -o noatime "$loop" "$TMP/disk"
losetup -d "$loop" # gone with the mount
mount -t tmpfs -o size=200M tmpfs "$TMP/memory"

# nothing_left: no file, named or not, takes space in the two directories.
nothing_left()
{
	local dir

	for dir in disk memory; do
		equal "" "$(find "$TMP/$dir" -mindepth 1 ! -name lost+found)" "left in $dir ($1)"
	done
	# A file without a name is gone a moment after its process.
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		[[ $(df --output=iused "$TMP/memory" | tail -1) -gt 1 ]] || return 0
		sleep 0.2
	done
	fail "a file without a name is left in memory ($1)"
}

expect 0 dbtier ladder --dna --max 128K "$TMP/disk" "$TMP/memory" --json --svg "$TMP/dna.svg"
cp "$TMP/out" "$TMP/dna.json"
nothing_left "after the experiment"
ask() { jq -r "$1" "$TMP/dna.json"; }
equal "13" "$(ask '.series | length')" "number of series"
equal "39" "$(ask '[.series[].points[]] | length')" "number of points"
equal "32768 65536 131072" "$(ask '.series[0].points | map(.bytes) | join(" ")')" "lengths"
equal "true" "$(ask '[.series[] | select(.directory == null) | .points[].ns > 0] | all')" "memory has times"
disk=$(jq -n --arg d "$TMP/disk" '$d')
memory=$(jq -n --arg d "$TMP/memory" '$d')
# Cold: proved and slower than warm on the disk; refused where no device could have answered.
equal "true" "$(ask "[.series[] | select(.directory == $disk and .cold) | .proved and (.points | map(.ns > 0) | all)] | all")" "cold reads are proved"
equal "true" "$(ask "[.series[] | select(.directory == $memory and .cold) | (.proved | not) and (.points | map(.ns == null) | all)] | all")" "no device behind memory"
equal "4" "$(ask "[.series[] | select(.cold | not) | select(.directory != null) | select(.points | map(.ns > 0) | all)] | length")" "warm reads"
ask '.series[] | select(.cold | not) | select(.directory != null) | .series' | grep -qF '(memory)' || fail "warm files are not called memory"
equal "true" "$(ask '.conclusion | length > 3')" "a conclusion"

# The picture shows those numbers, in that order.
svg_numbers() { grep -o ' data-ns="[^"]*"' "$1" | sed 's/.*="\(.*\)"/\1/' | jq -s 'map(. * 1000 | round)'; }
json_numbers() { jq "[$2 | numbers * 1000 | round]" "$1"; }
equal "$(json_numbers "$TMP/dna.json" '.series[].points[].ns')" "$(svg_numbers "$TMP/dna.svg")" "numbers of the picture"
equal "$(ask '[.series[].id] | join(" ")')" "$(grep -o 'data-id="[^"]*"' "$TMP/dna.svg" | sed 's/.*="\(.*\)"/\1/' | paste -sd' ')" "order of the picture"
if command -v xmllint >/dev/null; then
	xmllint --noout "$TMP/dna.svg"
fi

# Rungs: from fast to slow, directories last, the temporary file gone.
expect 0 dbtier ladder --seconds 1 "$TMP/disk" --json --svg "$TMP/rungs.svg"
cp "$TMP/out" "$TMP/rungs.json"
nothing_left "after the rungs"
equal "true" "$(jq '.rungs | map(.rung) | index("memory") == length - 2' "$TMP/rungs.json")" "memory stands before the directory"
equal "true" "$(jq '.rungs[-1] | .proved and .latency_ns > 0 and .iops > 0 and .iops4 > 0 and .stream > 0 and .streams > 0' "$TMP/rungs.json")" "the device is measured"
equal "true" "$(jq '.rungs | map(select(.rung == "memory"))[0] | .latency_ns > 0 and .latency_4k_ns > 0 and .stream > 1e8' "$TMP/rungs.json")" "the memory is measured"
equal "$(json_numbers "$TMP/rungs.json" '.rungs[].latency_ns')" "$(svg_numbers "$TMP/rungs.svg")" "numbers of the picture of rungs"

# With what was before beside it: at the same length, and of the same kind, or not at all.
expect 0 dbtier ladder --compare "$TMP/rungs.json" --json
equal "true" "$(jq --slurpfile b "$TMP/rungs.json" '.rungs[0].before_ns == $b[0].rungs[0].latency_ns' "$TMP/out")" "the earlier value"
jq '(.rungs[] | select(.rung == "memory")).set = 4096' "$TMP/rungs.json" >"$TMP/other.json"
expect 0 dbtier ladder --compare "$TMP/other.json" --json
equal "null null" "$(jq -r '.rungs[] | select(.rung == "memory") | "\(.before_ns) \(.change)"' "$TMP/out")" "memory over another length"
expect 0 dbtier ladder --dna --max 32K --compare "$TMP/dna.json"
out_has BEFORE_NS
out_has "memory in order"
expect 0 dbtier ladder --dna --max 64K --compare "$TMP/dna.json" --json
equal "true" "$(jq --slurpfile b "$TMP/dna.json" '.series[0].before_ns == ($b[0].series[0].points[] | select(.bytes == 65536).ns)' "$TMP/out")" "the earlier value at the same length"
cp "$TMP/out" "$TMP/short.json"
expect 0 dbtier ladder --dna --max 128K --compare "$TMP/short.json" --json
equal "[null,null]" "$(jq -c '.series[0] | [.before_ns, .change]' "$TMP/out")" "no earlier value at that length"
err_has "'$TMP/short.json' has no times at 2^17"
expect 2 dbtier ladder --dna --compare "$TMP/rungs.json"
err_has "leave out --dna"
expect 2 dbtier ladder --compare "$TMP/dna.json"
err_has "add --dna"
echo '{"rungs": [], "series": []}' >"$TMP/empty.json"
expect 2 dbtier ladder --compare "$TMP/empty.json"
err_has "neither rungs nor series"
expect 1 dbtier ladder --compare "$TMP/disk"
err_has "is a directory"
expect 2 dbtier ladder --compare "$TMP/rungs.json" --svg "$TMP/./rungs.json"
err_has "both compared with and drawn to"

# Tables: for programs without bars, for people with them.
expect 0 dbtier ladder --dna --max 32K -o id,longest_ns -n -r
equal "5" "$(grep -c '^memory-' "$TMP/out")" "rows without headings"
equal "5" "$(wc -l <"$TMP/out")" "nothing but rows for programs"
for form in -r -P; do
	expect 0 dbtier ladder --dna --max 32K $form
	! grep -qE 'BAR|xe2|##' "$TMP/out" || fail "bars with $form"
done
expect 0 dbtier ladder --dna --max 32K
out_has BAR
out_has "Only a longer text shows what grows."

# Killed or stopped at any moment: nothing is left.
for wait in 0.05 0.3 1; do
	for signal in KILL TERM; do
		"$DBTIER" --state-dir "$TMP/state" ladder --dna "$TMP/disk" "$TMP/memory" >"$TMP/out" 2>"$TMP/err" &
		pid=$!
		sleep "$wait"
		kill -s $signal $pid 2>/dev/null || true
		wait $pid || true
		nothing_left "after SIG$signal at $wait s"
	done
done
"$DBTIER" ladder --dna "$TMP/disk" >"$TMP/out" 2>"$TMP/err" &
pid=$!
sleep 0.5
kill -TERM $pid
status=0
wait $pid || status=$?
equal 143 "$status" "exit status after SIGTERM"

# What cannot be meant.
expect 1 dbtier ladder "$TMP/nowhere"
err_has "$TMP/nowhere"
expect 1 dbtier ladder "$TMP/dna.json"
err_has "not a directory"
for size in 0 1K 5G; do
	expect 2 dbtier ladder --dna --max $size
	err_has "'--max' takes 32K to 4G"
done
expect 2 dbtier ladder --dna --max 100K
err_has "a power of two, such as 64K or 128K"
expect 2 dbtier ladder --seconds 0
err_has "takes 1 to 60"
expect 2 dbtier ladder --max 1M
err_has "--dna"
expect 2 dbtier ladder --dna --seconds 1
err_has "without --dna"
expect 2 dbtier ladder --compare "$TMP/dna.svg"
err_has "no answer of 'dbtier ladder --json'"
expect 2 dbtier ladder -o longest_ns
err_has "unknown column"

# A picture is refused before anything is measured, and an old one stays until the new one is whole.
for svg in "$TMP/nowhere/x.svg" "$TMP/disk"; do
	expect 1 dbtier ladder --dna --max 32K --svg "$svg"
	err_has "cannot write '$svg'"
	equal "" "$(cat "$TMP/out")" "measured nothing"
done
ln -s rungs.svg "$TMP/link.svg"
expect 0 dbtier ladder --dna --max 32K --svg "$TMP/link.svg"
[[ -L $TMP/link.svg ]] || fail "the link to the picture was replaced"
equal "$(jq -n '5')" "$(grep -c 'data-id=' "$TMP/rungs.svg")" "drawn through the link"
dbtier ladder --dna --max 32K --svg /dev/stdout >"$TMP/piped"
grep -q '^</svg>' "$TMP/piped" || fail "no picture on stdout"
equal "" "$(find "$TMP" -maxdepth 1 -name '*.svg.*')" "temporary pictures"

# A directory in memory has no device; one that cannot be measured is named, and the others are measured.
expect 0 dbtier ladder "$TMP/memory" --json
equal "ram null lies in memory: no device to measure" "$(jq -r '.rungs[-1] | "\(.tier) \(.latency_ns) \(.note)"' "$TMP/out")" "memory is no device"
nothing_left "after a directory in memory"
mount -o remount,ro "$TMP/disk"
for kind in "--seconds 1" "--dna --max 32K"; do
	# shellcheck disable=SC2086 # two words
	expect 1 dbtier ladder $kind "$TMP/disk" "$TMP/memory" --json
	err_has "'$TMP/disk' could not be measured: cannot make a temporary file"
	err_has "read-only"
done
equal "true" "$(jq "[.series[] | select(.directory == $disk) | .points[] | .ns == null and (.note | test(\"read-only\"))] | all" "$TMP/out")" "why there are no times"
equal "true" "$(jq "[.series[] | select(.directory == $memory and (.cold | not)) | .points[].ns > 0] | all" "$TMP/out")" "the other directory has times"
jq -r '.conclusion[]' "$TMP/out" | grep -q "^'$TMP/disk' could not be measured" || fail "the conclusion says nothing of it"
mount -o remount,size=48K "$TMP/memory"
expect 1 dbtier ladder --dna --max 32K "$TMP/memory"
err_has "nothing was written"
nothing_left "after a refusal"
