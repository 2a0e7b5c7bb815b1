#!/usr/bin/env bash
# timeout: 120
# The counting loops do one letter a turn, the same work for each letter in every way to count.
. "$(dirname "$0")/../support/lib.sh"
need_command valgrind valgrind
! nm "$DBT_TOOLS/runcount" | grep -q __asan_init || skip "instructions of a sanitizer build are not ours"

letters=$((1 << 18))

# per_letter WAY FUNCTION: instructions of the function and what it calls, in hundredths for each letter.
per_letter()
{
	local total

	valgrind --tool=callgrind --callgrind-out-file=/dev/null --toggle-collect="$2" "$DBT_TOOLS/runcount" "$1" 18 2>"$TMP/err" >"$TMP/out" ||
		fail "runcount $1"
	total=$(sed -n 's/.*Collected : \([0-9]*\).*/\1/p' "$TMP/err")
	[[ $total ]] || fail "callgrind collected nothing for $1"
	echo $((total * 100 / letters))
}

order=$(per_letter order dbt_count_order)
shuffled=$(per_letter shuffled dbt_count_index)
small=$(per_letter small dbt_count_index)
dependent=$(per_letter dependent dbt_count_dependent)
printf 'instructions for 100 letters: in order %s, shuffled %s, index in cache %s, dependent %s\n' \
	"$order" "$shuffled" "$small" "$dependent"
# Taking a letter, finding its lane, adding, counting the turn: less would be many letters at once.
[[ $order -ge 400 ]] || fail "the loop in order counts several letters in one turn"
# The same loop whatever array it goes by.
[[ $((small > shuffled ? small - shuffled : shuffled - small)) -le 10 ]] || fail "two loops for one way"
# One more load, and what makes an address wait.
[[ $shuffled -ge $order && $shuffled -le $((order + 400)) ]] || fail "shuffled does other work than in order"
[[ $dependent -ge $shuffled && $dependent -le $((shuffled + 600)) ]] || fail "dependent does other work than shuffled"
# All found the same letters.
for way in order shuffled small dependent; do
	"$DBT_TOOLS/runcount" $way 18
done | sort -u >"$TMP/counts"
equal 1 "$(wc -l <"$TMP/counts")" "different counts"
