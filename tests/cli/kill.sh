#!/usr/bin/env bash
# kill -9 at random moments of a promotion, rollbacks, reclaim and recover: the path gives the right bytes before and
# after recover, and recover leaves something healthy and nothing else. DBT_KILL_SIZE: the file's size (64M; 1G is
# the real proof), DBT_KILL_ROUNDS: kills of the promotion (20), half as many of each other command; DBT_SEED.
# needs: loop
# timeout: 900
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

size=${DBT_KILL_SIZE:-64M}
rounds=${DBT_KILL_ROUNDS:-20}
RANDOM=${DBT_SEED:-$$}
echo "seed ${DBT_SEED:-$$}, $size"

kills=0 # of this phase
all=0

now_ms()
{
	echo $(($(date +%s%N) / 1000000))
}

# duration COMMAND...: runs it; its milliseconds in $ms.
duration()
{
	local start

	start=$(now_ms)
	expect 0 "$@"
	ms=$(($(now_ms) - start))
}

# kill_after MS ARGS...: starts dbtier and kills it then.
kill_after()
{
	local pid wait_ms=$1

	shift
	"$DBTIER" --state-dir "$TMP/state" "$@" >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	sleep "$(printf '%d.%03d' $((wait_ms / 1000)) $((wait_ms % 1000)))"
	kill -KILL "$pid" 2>/dev/null && kills=$((kills + 1))
	wait "$pid" 2>/dev/null || true
	WHEN="kill -9 of $1 after $wait_ms of $ms ms"
	reads_right "$SLOW/a.bin"
}

# A moment of the command that took $ms.
moment()
{
	echo $(((RANDOM * 32768 + RANDOM) % (ms + 1)))
}

# more WANTED: true while fewer kills than that found a live process; a kill that came too late does not count.
more()
{
	[[ $kills -lt $1 ]]
}

phase_is_over()
{
	echo "$1 ($ms ms): $kills kills"
	all=$((all + kills))
	kills=0
}

recover_and_settle()
{
	expect 0 dbtier recover
	reads_right "$SLOW/a.bin"
	settle "$@"
}

pair "${DBT_KILL_SLOW:-ext4}" "${DBT_KILL_FAST:-xfs}" 4G
mkdir "$PAIR/reference"
ln -s "$PAIR/reference" "$TMP/reference"
head -c "$size" /dev/urandom >"$SLOW/a.bin"
cp "$SLOW/a.bin" "$TMP/reference/a.bin"
touch -d '2001-02-03 04:05:06.123456789' "$SLOW/a.bin"
remember_world
nice -n 19 "$DBT_TOOLS/runreaders" 1 "$SLOW/a.bin" "$TMP/reference/a.bin" >"$TMP/readers" &
READERS=$!
promotion=(promote --force --to "$FAST" "$SLOW/a.bin")

duration dbtier "${promotion[@]}"
promote_ms=$ms
expect 0 dbtier rollback
readers_let_go
while more "$rounds"; do
	kill_after "$(moment)" "${promotion[@]}"
	recover_and_settle
done
phase_is_over promote

kill -TERM "$READERS"
wait "$READERS" || fail "a reader failed: $(tail -1 "$TMP/readers")"
tail -1 "$TMP/readers"
READERS=

rounds=$(((rounds + 1) / 2))
expect 0 dbtier "${promotion[@]}"
duration dbtier rollback
while more "$rounds"; do
	expect 0 dbtier "${promotion[@]}"
	kill_after "$(moment)" rollback
	recover_and_settle
done
phase_is_over rollback

expect 0 dbtier "${promotion[@]}"
duration dbtier reclaim 'a.bin'
reclaim_ms=$ms
duration dbtier rollback
while more "$rounds"; do
	expect 0 dbtier "${promotion[@]}" --reclaim
	kill_after "$(moment)" rollback
	recover_and_settle noinode
done
phase_is_over "rollback after reclaim"
remember_world

ms=$reclaim_ms
while more "$rounds"; do
	expect 0 dbtier "${promotion[@]}"
	kill_after "$(moment)" reclaim a.bin
	recover_and_settle noinode
done
phase_is_over reclaim
remember_world

while more "$rounds"; do
	ms=$promote_ms
	kill_after "$(moment)" "${promotion[@]}"
	ms=10
	kill_after "$(moment)" recover
	recover_and_settle
done
phase_is_over "promote, then recover"
echo "$all kills, 0 wrong"
