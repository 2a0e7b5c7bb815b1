#!/usr/bin/env bash
# What happens to the answer: a full disk, a closed pipe, closed descriptors, odd names, raw and JSON.
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq

mkdir "$TMP/db"
"$DBT_TOOLS/mkdb" diamond "$TMP/db/plain.dmnd" 200K
odd=$'blank new\nline \xff\xc3\xa4.dmnd'
cp "$TMP/db/plain.dmnd" "$TMP/db/$odd"

# Text and raw: one line a row whatever is in the name.
expect 0 dbtier scan --no-probe "$TMP/db"
equal 3 "$(wc -l <"$TMP/out")" "lines of text"
out_has 'blank new\x0aline \xffä'
expect 0 dbtier scan --no-probe -rn -o path,size "$TMP/db"
equal 2 "$(wc -l <"$TMP/out")" "lines of raw"
out_has 'blank\x20new\x0aline\x20\xff\xc3\xa4'
equal 2 "$(awk '{ print NF }' "$TMP/out" | sort -u)" "raw fields"

# JSON: valid, keys stable, the bytes of the odd name in base64, null for the ordinary one.
expect 0 dbtier scan --no-probe --json "$TMP/db"
jq -e . "$TMP/out" >/dev/null
equal 2 "$(jq '.databases | length' "$TMP/out")" "databases"
equal null "$(jq '.databases[] | select(.path | endswith("plain.dmnd")) | .path_raw' "$TMP/out")" "path_raw"
equal "$TMP/db/$odd" "$(jq -r '.databases[] | select(.path_raw) | .path_raw' "$TMP/out" | base64 -d)" "path_raw"
# shellcheck disable=SC2016 # jq's variables
jq -e 'all(.databases[]; .size | type == "number")' "$TMP/out" >/dev/null || fail "size is no number"
jq -e 'all(.databases[]; .complete | type == "boolean")' "$TMP/out" >/dev/null || fail "complete is no boolean"

# -b: the numbers of JSON.
expect 0 dbtier scan --no-probe -b -rn -o size "$TMP/db"
equal "$(stat -c %s "$TMP/db/plain.dmnd")" "$(head -n 1 "$TMP/out")" "size in bytes"

# As lsblk and findmnt take them: pairs for a shell, all columns, a list; a slip in a column's name.
expect 0 dbtier scan --no-probe -P -o format,size -b "$TMP/db"
equal 2 "$(grep -c '^FORMAT="diamond" SIZE="[0-9]*"$' "$TMP/out")" "pairs"
expect 0 dbtier formats -O
equal "ID NAME ACCESS MOVES TOOLS MEMBERS NOTE" "$(head -n 1 "$TMP/out" | xargs)" "all columns"
expect 0 dbtier formats -l -o id
equal ID "$(head -n 1 "$TMP/out")" "a list"
expect 2 dbtier formats -o acces
err_has "did you mean 'access'?"
expect 0 dbtier formats -rn -o id --sort id
equal "$(sort "$TMP/out")" "$(cat "$TMP/out")" "ordered by a column of text"
[[ $(wc -l <"$TMP/out") -gt 10 ]] || fail "too little to order"
head -c 300K /dev/zero >>"$TMP/db/$odd"
for form in "-brno size" "--json"; do
	# shellcheck disable=SC2086 # words
	expect 0 dbtier scan --no-probe $form --sort SIZE "$TMP/db"
	if [[ $form == --json ]]; then jq '.databases[].size' "$TMP/out" >"$TMP/sizes"; else cp "$TMP/out" "$TMP/sizes"; fi
	equal "$(sort -n "$TMP/sizes")" "$(cat "$TMP/sizes")" "ordered by a column of numbers: $form"
	equal 2 "$(wc -l <"$TMP/sizes")" "rows that were ordered"
done
cp "$TMP/db/plain.dmnd" "$TMP/db/$odd"
expect 2 dbtier formats --sort acces
err_has "did you mean 'access'?"
expect 2 dbtier formats --width 5
err_has "'--width' takes 10 to 10000"
expect 0 dbtier formats -o id,note --width 60
[[ $(awk 'length($0) > n { n = length($0) } END { print n }' "$TMP/out") -le 60 ]] || fail "wider than --width 60"
expect 2 dbtier formats -O -o id
err_has "exclude each other"

# A reason that holds a name of any bytes.
mkdir "$TMP/cut"
head -c 5000 "$TMP/db/plain.dmnd" >"$TMP/cut/"$'caf\xe9.dmnd'
cp "$TMP/db/plain.dmnd" "$TMP/cut/good.dmnd"
for form in "" --json --raw --pairs; do
	# shellcheck disable=SC2086 # none or one
	expect 0 dbtier scan --no-probe $form "$TMP/cut"
	out_has good
	out_has incomplete
done

# A full disk behind stdout.
status=0
dbtier scan --no-probe "$TMP/db" >/dev/full 2>"$TMP/err" || status=$?
equal 1 "$status" "exit status with a full disk"
err_has 'cannot write the answer: no space left on device'

# Closed descriptors: an error, and the ledger does not become stdout or stderr.
status=0
dbtier scan --no-probe "$TMP/db" >&- 2>"$TMP/err" || status=$?
equal 1 "$status" "exit status with stdout closed"
status=0
dbtier scan --no-probe "$TMP/db" >&- 2>&- <&- || status=$?
equal 1 "$status" "exit status with all closed"
expect 0 dbtier __complete plain
[[ -s $TMP/out ]] || fail "the ledger suffered"

# A reader that goes away: quiet, and the status that any program has then.
: >"$TMP/err"
set +e
dbtier --describe < <(yes 'a line of a template' | head -n 100000) 2>"$TMP/err" | head -n 1 >/dev/null
status=${PIPESTATUS[0]}
set -e
equal 141 "$status" "exit status after SIGPIPE"
err_is_empty

# Progress as JSON goes to stderr, the answer to stdout.
expect 0 dbtier --progress=json scan --no-probe --json "$TMP/db"
jq -e . "$TMP/out" >/dev/null

# Colors: only on a terminal, only for what is wrong, and not when somebody asks for none.
fast=$(mktemp -d /dev/shm/dbtier-test.XXXXXX) || skip "no /dev/shm"
trap 'rm -rf "$fast"; lib_cleanup' EXIT
chmod 755 "$fast"
expect 0 dbtier promote "$TMP/db/plain.dmnd" --to "$fast" --force --no-probe
on_terminal()
{
	script -qec "$* '$DBTIER' --state-dir '$TMP/state' status $color" /dev/null </dev/null >"$TMP/screen" || true
}
color=''
on_terminal env
! grep -q $'\e\\[' "$TMP/screen" || fail "a healthy promotion is colored"
rm "$fast/plain.dmnd"
on_terminal env
grep -q $'\e\\[31mcopy-missing' "$TMP/screen" || fail "a missing copy is not red"
on_terminal env NO_COLOR=1
! grep -q $'\e\\[' "$TMP/screen" || fail "NO_COLOR is ignored"
color=--no-color
on_terminal env
! grep -q $'\e\\[' "$TMP/screen" || fail "--no-color is ignored"
expect 4 dbtier status
! grep -q $'\e\\[' "$TMP/out" || fail "colors in a file"
