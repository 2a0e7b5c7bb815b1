#!/usr/bin/env bash
# Each help text fits a screen of 80 by 24.
. "$(dirname "$0")/../support/lib.sh"

fits()
{
	local lines long

	"$DBTIER" "$@" --help >"$TMP/help"
	lines=$(wc -l <"$TMP/help")
	long=$(awk 'length($0) > 79' "$TMP/help")
	[[ $lines -le 24 ]] || fail "'dbtier $* --help' has $lines lines"
	[[ -z $long ]] || fail "'dbtier $* --help' has lines of 80 and more: $long"
}

fits
while read -r command; do
	fits "$command"
done < <("$DBTIER" --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p')
