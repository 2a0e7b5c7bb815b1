#!/usr/bin/env bash
# The manual page is built from the tables, names every command, and is clean mdoc.
. "$(dirname "$0")/../support/lib.sh"
template=$DBT_SOURCE/cmd/dbtier.1.in
"$DBTIER" --describe <"$template" >"$TMP/dbtier.1"
cmp "$TMP/dbtier.1" "$DBT_BUILD/dbtier.1"
! grep -n '^@' "$TMP/dbtier.1" || fail "a place holder is left"
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
mandoc -T lint -W warning "$TMP/dbtier.1"
