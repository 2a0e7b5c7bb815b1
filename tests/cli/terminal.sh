#!/usr/bin/env bash
# Tables on terminals of all widths, in the C locale and in UTF-8, with and without colours.
. "$(dirname "$0")/../support/lib.sh"
need_command script bsdutils
need_command stty coreutils

mkdir "$TMP/db"
odd=$'blank new\nline \xff\xc3\xa4 and a name that is longer than any narrow terminal.dmnd'
"$DBT_TOOLS/mkdb" diamond "$TMP/db/plain.dmnd" 200K
cp "$TMP/db/plain.dmnd" "$TMP/db/$odd"

# on WIDTH LOCALE ARG...: what a terminal of that width gets, in $TMP/out. Colours are off: NO_COLOR.
on()
{
	local width=$1 locale=$2 command
	shift 2
	command=$(printf '%q ' "$DBTIER" --state-dir "$TMP/state" "$@")
	NO_COLOR=1 LC_ALL=$locale TERM=xterm PAGER=cat script -qec "stty cols $width rows 50; $command" /dev/null </dev/null >"$TMP/raw" 2>"$TMP/err" ||
		fail "dbtier $* on $width columns in $locale ended with $?"
	tr -d '\r' <"$TMP/raw" | sed 's/.*\x1b\[K//' >"$TMP/out"
	cases=$((cases + 1))
}

cases=0
tables=("scan --no-probe $TMP/db" "devices" "formats" "config" "status --all" "recover --json" "ladder --dna --max 32K")
for locale in C C.UTF-8; do
	for width in 20 40 80 132 300; do
		for table in "${tables[@]}"; do
			# shellcheck disable=SC2086 # words
			on "$width" "$locale" $table
			! LC_ALL=C grep -q $'[\x01-\x08\x0b-\x1f\x7f]' "$TMP/out" || fail "control characters: $table, $width columns, $locale"
			[[ $locale != C ]] || ! LC_ALL=C grep -q $'[\x80-\xff]' "$TMP/out" || fail "no ASCII: $table, $width columns"
			LC_ALL=C.UTF-8 grep -qax '.*' "$TMP/out" || [[ $table == status* ]] || fail "nothing, or no UTF-8: $table, $width columns"
		done
	done
done

# Prose is wrapped where a terminal is narrow, whole elsewhere: the same words.
words() { tr -s ' \n' '  ' <"$TMP/out"; }
on 300 C.UTF-8 formats -o id,note
wide=$(words)
lines=$(wc -l <"$TMP/out")
on 60 C.UTF-8 formats -o id,note
[[ $(wc -l <"$TMP/out") -gt $lines ]] || fail "nothing was wrapped at 60 columns"
[[ -n $wide ]] || fail "no words"
longest=$(awk '{ if (length($0) > n) n = length($0) } END { print n }' "$TMP/out")
[[ $longest -le 60 ]] || fail "a line of $longest characters on 60 columns"
# Bars give way first.
on 132 C.UTF-8 ladder --dna --max 32K
grep -q '█' "$TMP/out" || fail "no bars in UTF-8"
on 132 C ladder --dna --max 32K
grep -q '##' "$TMP/out" || fail "no bars in the C locale"

# Colours: on a terminal only, and not against somebody's will.
on_color() { LC_ALL=C TERM=xterm script -qec "$1" /dev/null </dev/null | grep -c $'\x1b\[[0-9;]*m' || true; }
command=$(printf '%q ' "$DBTIER" --state-dir "$TMP/state" devices)
equal 0 "$(NO_COLOR=1 on_color "$command")" "coloured lines with NO_COLOR"
equal 0 "$(on_color "$command | cat")" "coloured lines in a pipe"
echo "$cases tables on terminals"
