#!/usr/bin/env bash
# Each help text fits a line of 80 characters, and a screen of 24 lines or it goes through a pager.
. "$(dirname "$0")/../support/lib.sh"
need_command script bsdutils

# A terminal of 24 lines of 80; the pager counts what it is given. $SCREEN: what is seen.
on_screen()
{
	printf 'stty rows 24 cols 80\n%s\n' "$*" >"$TMP/typed"
	TERM=vt100 script -qec "bash $TMP/typed" /dev/null </dev/null >"$TMP/screen"
	tr -d '\r' <"$TMP/screen" >"$TMP/seen"
}

fits()
{
	local lines long

	"$DBTIER" "$@" --help >"$TMP/help"
	lines=$(wc -l <"$TMP/help")
	long=$(awk 'length($0) > 79' "$TMP/help")
	[[ -z $long ]] || fail "'dbtier $* --help' has lines of 80 and more: $long"
	on_screen "export PAGER='sed s/^/paged:/'; '$DBTIER' $* --help"
	if [[ $lines -lt 24 ]]; then
		cmp "$TMP/help" "$TMP/seen" || fail "'dbtier $* --help' fits, and is paged"
	else
		sed 's/^/paged:/' "$TMP/help" | cmp - "$TMP/seen" || fail "'dbtier $* --help' is too long and not paged"
		# Nobody is left without the text.
		for pager in '' cat /nowhere/less; do
			on_screen "export PAGER='$pager'; '$DBTIER' $* --help 2>/dev/null"
			cmp "$TMP/help" "$TMP/seen" || fail "no text with PAGER='$pager'"
		done
		# Who leaves the pager early has done nothing wrong.
		on_screen "export PAGER=true; '$DBTIER' $* --help; echo \$?"
		equal 0 "$(cat "$TMP/seen")" "exit status after a pager that was left"
	fi
}

fits
while read -r command; do
	fits "$command"
done < <("$DBTIER" --help | sed -n 's/^  \([a-z]\+\)  .*/\1/p')
