#!/usr/bin/env bash
# Signals: the first one stops in good order, the second one ends at once, and what was ignored stays ignored.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
fast=$(mktemp -d /dev/shm/dbtier-test.XXXXXX) || skip "no /dev/shm"
chmod 755 "$fast"
trap 'rm -rf "$fast"; lib_cleanup' EXIT
[[ $(stat -c %d "$fast") != "$(stat -c %d "$TMP")" ]] || skip "$TMP lies in /dev/shm"
set -m # background jobs keep the default of SIGINT

mkdir "$TMP/db"
"$DBT_TOOLS/mkdb" diamond "$TMP/db/a.dmnd" 96M
sum=$(sha256sum <"$TMP/db/a.dmnd")

# Starts a slow promotion in the background and waits until it copies.
start()
{
	"$DBTIER" --state-dir "$TMP/state" --progress=json promote "$TMP/db/a.dmnd" --to "$fast" --force --limit-rate 8M \
		>"$TMP/out" 2>"$TMP/err" &
	pid=$!
	for _ in {1..200}; do
		grep -q '"done":[1-9]' "$TMP/err" && return
		kill -0 "$pid" 2>/dev/null || fail "the promotion ended by itself"
		sleep 0.05
	done
	fail "no progress"
}

ended_with()
{
	status=0
	wait "$pid" || status=$?
	[[ $status -eq $1 ]] || fail "exit status $status, not $1"
}

untouched()
{
	[[ ! -L $TMP/db/a.dmnd ]] || fail "the path is a link"
	equal "$sum" "$(sha256sum <"$TMP/db/a.dmnd")" "bytes"
	equal a.dmnd "$(ls -A "$TMP/db")" "the source's directory"
}

for case in INT:130 TERM:143 HUP:129; do
	start
	kill -s "${case%:*}" "$pid"
	ended_with "${case#*:}"
	err_has 'interrupted'
	untouched
	equal '' "$(ls -A "$fast")" "the target's directory"
	expect 0 dbtier status
done

# The second one kills; what is left is undone by the next run.
start
kill -s STOP "$pid" # so that both are there before either is looked at
kill -s INT "$pid"
kill -s TERM "$pid"
kill -s INT "$pid"
kill -s CONT "$pid"
while :; do
	status=0
	wait "$pid" || status=$?
	[[ $status -eq $((128 + $(kill -l STOP))) ]] || break # bash reports the stop as well
done
[[ $status -eq 130 || $status -eq 143 ]] || fail "exit status $status"
untouched
expect 0 dbtier recover
equal '' "$(ls -A "$fast")" "the target's directory after recover"
untouched

# nohup: a signal that was ignored at the start stays ignored.
(
	trap '' HUP
	start
	kill -s HUP "$pid"
	sleep 0.3
	kill -0 "$pid" || fail "ended by an ignored signal"
	kill -s TERM "$pid"
	ended_with 143
)
untouched
