#!/usr/bin/env bash
# What opening through the link costs a reader: SQLite look-ups and a diamond blastp on the copy by its real path and
# through the link, in turn.
#
#	DBTIER=... tests/bench/link.sh [SIZE [ROUNDS]]        256M and 5
#
# and what common.sh says.
. "$(dirname "$0")/common.sh"
need_command sqlite3 sqlite3

rounds=${2:-$rounds}
size=${1:-256M}

warm()
{
	local start

	start=$(date +%s%N)
	"$@"
	took=$(awk -v ns=$(($(date +%s%N) - start)) 'BEGIN { printf "%.3f", ns / 1e9 }')
}

look_up()
{
	for _ in 1 2 3 4 5 6 7 8 9 10; do
		sqlite3 -readonly "$1" "SELECT count(*) FROM (SELECT * FROM ups ORDER BY uniref100_id LIMIT 2000)" >/dev/null ||
			fail "sqlite3 $1"
	done
}

search()
{
	diamond blastp --quiet --threads "$(nproc)" -d "$1" -q "$MNT/slow/query" -o /dev/null 2>"$TMP/err" ||
		fail "diamond $1: $(cat "$TMP/err")"
}

compare()
{
	local way=$1 link=$2 copy=$3 by_link=() by_path=() i

	"$way" "$copy"
	for ((i = 0; i < rounds; i++)); do
		warm "$way" "$copy"
		by_path+=("$took")
		warm "$way" "$link"
		by_link+=("$took")
	done
	echo "$way: by its path $(median "${by_path[@]}") s (${by_path[*]}), through the link $(median "${by_link[@]}") s" \
		"(${by_link[*]}), ratio $(ratio "$(median "${by_link[@]}")" "$(median "${by_path[@]}")")"
}

two_volumes $(($(numfmt --from=iec "$size") * 2))
"$DBT_TOOLS/mkdb" sqlite "$MNT/slow/bakta.db" "$size"
promote "$MNT/slow/bakta.db"
compare look_up "$MNT/slow/bakta.db" "$MNT/fast/bakta.db"
if command -v diamond >/dev/null; then
	"$DBT_TOOLS/mkdb" diamond "$MNT/slow/psc.dmnd" 8M
	"$DBT_TOOLS/mkdb" query "$MNT/slow/query"
	promote "$MNT/slow/psc.dmnd"
	compare search "$MNT/slow/psc.dmnd" "$MNT/fast/psc.dmnd"
fi
