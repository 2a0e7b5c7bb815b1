#!/usr/bin/env bash
# The manual pages are built from the tables, name every command, and are clean mdoc.
. "$(dirname "$0")/../support/lib.sh"
template=$DBT_SOURCE/cmd/dbtier.1.in
pages=()
for file in "$DBT_SOURCE"/cmd/*.[0-9].in; do
	page=$(basename "$file" .in)
	"$DBTIER" --describe <"$file" >"$TMP/$page"
	cmp "$TMP/$page" "$DBT_BUILD/$page"
	! grep -n '^@' "$TMP/$page" || fail "a place holder is left in $page"
	pages+=("$TMP/$page")
done
while read -r command; do
	for part in synopsis options columns; do
		case $part in
		options) "$DBTIER" "$command" --help | grep "^ .*--" >/dev/null || continue ;;
		columns) "$DBTIER" "$command" --help | grep "^Columns:" >/dev/null || continue ;;
		esac
		grep -qxF "@man $part $command@" "$template" || fail "dbtier.1.in lacks '@man $part $command@'"
	done
done < <("$DBTIER" --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p')
need_command mandoc mandoc
mandoc -T lint -W warning "${pages[@]}"
