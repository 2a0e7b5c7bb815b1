#!/usr/bin/env bash
# SIGINT and SIGTERM at random moments: the exit status is 130 or 143, everything is undone by the command itself, and
# nothing waits for recover. DBT_SEED, DBT_POLITE_ROUNDS (6 of each signal for each command).
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

rounds=${DBT_POLITE_ROUNDS:-6}
RANDOM=${DBT_SEED:-$$}
echo "seed ${DBT_SEED:-$$}"

stopped=0 finished=0

# stop_after MS SIGNAL STATUS ARGS...: only 0 and STATUS are right.
stop_after()
{
	local pid signal=$2 wanted=$3 ms=$1

	shift 3
	# The shell makes its background jobs ignore SIGINT, and dbtier leaves it ignored then.
	env --default-signal=INT "$DBTIER" --state-dir "$TMP/state" "$@" >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	sleep "0.$(printf '%03d' "$ms")"
	kill -"$signal" "$pid" 2>/dev/null || true
	status=0
	wait "$pid" || status=$?
	WHEN="SIG$signal to $1 after $ms ms"
	STOPPED=$(tail -n 3 "$TMP/err")
	if [[ $status -eq 0 ]]; then
		finished=$((finished + 1))
	elif [[ $status -eq $wanted ]]; then
		stopped=$((stopped + 1))
	else
		fail "exit status $status, not $wanted: $WHEN"
	fi
	reads_right "$SLOW/a.bin"
}

# Nothing is left to do, without recover.
in_order()
{
	expect 0 dbtier recover
	grep -qF "nothing to recover" "$TMP/err" || fail "recover finds work: $WHEN, which said '$STOPPED'"
	settle "$@"
}

pair ext4 xfs
mkdir "$TMP/reference"
head -c 48M /dev/urandom >"$SLOW/a.bin"
cp "$SLOW/a.bin" "$TMP/reference/a.bin"
remember_world
for ((i = 0; i < 2 * rounds; i++)); do
	((i % 2)) && signal=(INT 130) || signal=(TERM 143)
	# Slowed down, so that there is something to stop. A signal before the handlers stand ends the program at once.
	stop_after $((30 + RANDOM % 400)) "${signal[@]}" promote --force --limit-rate 128M --to "$FAST" "$SLOW/a.bin"
	in_order
	expect 0 promote --reclaim "$SLOW/a.bin"
	stop_after $((30 + RANDOM % 100)) "${signal[@]}" rollback
	in_order noinode
	remember_world
	expect 0 promote "$SLOW/a.bin"
	stop_after $((30 + RANDOM % 60)) "${signal[@]}" reclaim a.bin
	in_order noinode
	remember_world
done
[[ $stopped -gt 0 ]] || fail "no command was stopped"
echo "$stopped commands stopped, $finished were through already, 0 wrong"
