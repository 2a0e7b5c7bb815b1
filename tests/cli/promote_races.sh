#!/usr/bin/env bash
# Promotions against each other and against the rest of the world: two of the same file, with one ledger and with two;
# against rollback, an updater that replaces the file, a writer, rm -r of the directory, a directory that becomes a
# link. Whoever wins, no byte is lost, nothing newer is replaced, and recover leaves order. DBT_RACES: rounds of each
# (8); DBT_SEED.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

rounds=${DBT_RACES:-8}
RANDOM=${DBT_SEED:-$$}
echo "seed ${DBT_SEED:-$$}"

races=0

# with LEDGER ARGS...: dbtier with that state directory, in the background; $pid.
with()
{
	"$DBTIER" --state-dir "$TMP/$1" "${@:2}" >"$TMP/out.$1" 2>"$TMP/err.$1" &
	pid=$!
}

# ended PID STATUS...: with one of these.
ended()
{
	local pid=$1 allowed

	shift
	status=0
	wait "$pid" || status=$?
	for allowed; do
		[[ $status -ne $allowed ]] || return 0
	done
	cat "$TMP"/err.* >&2
	fail "ended with $status, not $*: $WHEN"
}

nap()
{
	sleep "0.$(printf '%03d' $((RANDOM % 60)))"
}

begin()
{
	rm -rf "$TMP/state" "$TMP/other"
	rm -rf "${SLOW:?}"/* "${FAST:?}"/* "$SLOW"/.[!.]* "$FAST"/.[!.]*
	mkdir -p "$SLOW/db" "$TMP/reference/db"
	A=$SLOW/db/a.bin
	head -c 3M /dev/urandom >"$A"
	cp "$A" "$TMP/reference/db/a.bin"
	remember_world
	races=$((races + 1))
}

promotion()
{
	echo promote --force --to "$FAST" "$A"
}

two_promotions()
{
	local first

	begin
	# shellcheck disable=SC2046
	with state $(promotion)
	first=$pid
	nap
	# shellcheck disable=SC2046
	with "$1" $(promotion)
	# The later one finds the file promoted, or the name of the copy taken.
	ended "$pid" 0 1 3
	ended "$first" 0 1 3
	reads_right "$A"
	[[ -L $A ]] || fail "neither came through: $WHEN"
	settle_with "$1"
}

# settle_with LEDGER: after recover of both, the one that has an active promotion decides.
settle_with()
{
	expect 0 dbtier recover
	[[ $1 == state ]] || expect 0 "$DBTIER" --state-dir "$TMP/$1" recover
	reads_right "$A"
	if [[ $1 != state && -z $(dbtier status -n) ]]; then
		rm -rf "$TMP/state"
		mv "$TMP/$1" "$TMP/state"
	fi
	settle
}

rollback_against_promotion()
{
	local first

	begin
	# shellcheck disable=SC2046
	expect 0 dbtier $(promotion)
	with state rollback
	first=$pid
	nap
	# shellcheck disable=SC2046
	with "$1" $(promotion)
	ended "$pid" 0 1 3
	ended "$first" 0 1
	reads_right "$A"
	settle_with "$1"
}

updater()
{
	begin
	head -c 3M /dev/urandom >"$TMP/new"
	# shellcheck disable=SC2046
	with state $(promotion)
	nap
	cp "$TMP/new" "$SLOW/db/.new"
	mv -f "$SLOW/db/.new" "$A"
	ended "$pid" 0 1 3
	run dbtier recover
	cmp -s "$TMP/new" "$A" || fail "the updater's file was replaced"
	no_temporaries "$SLOW" "$FAST"
}

writer()
{
	begin
	# shellcheck disable=SC2046
	with state $(promotion)
	nap
	printf 'changed' | dd of="$A" bs=1 seek=1000 conv=notrunc status=none
	ended "$pid" 0 1 3
	run dbtier recover
	equal changed "$(dd if="$A" bs=1 skip=1000 count=7 status=none)" "what the writer wrote"
	no_temporaries "$SLOW" "$FAST"
}

remover()
{
	begin
	# shellcheck disable=SC2046
	with state $(promotion)
	nap
	rm -rf "$SLOW/db" || rm -rf "$SLOW/db"
	ended "$pid" 0 1 3
	run dbtier recover
	[[ ! -e $SLOW/db ]] || [[ -z $(find "$SLOW/db" -name '.dbtier-*') ]] || fail "temporary names are left"
	no_temporaries "$FAST"
}

# Somebody takes the copy's name while the copy is made, in a directory where anybody may: a link to something precious,
# a FIFO, a device, a file of their own, a second name of another file.
usurper()
{
	local name=$FAST/shared/a.bin taken=

	begin
	mkdir -m 1777 "$FAST/shared"
	echo precious >"$FAST/precious"
	chown 65534 "$FAST/precious"
	with state promote --force --limit-rate 32M --to "$FAST/shared" "$A"
	while [[ -z $(find "$FAST/shared" -name '.dbtier-*') ]] && kill -0 "$pid" 2>/dev/null; do
		sleep 0.005
	done
	case $((i % 5)) in
	0) ln -s ../precious "$name" ;;
	1) mkfifo "$name" ;;
	2) mknod "$name" c 1 3 ;;
	3) (set -o noclobber && echo theirs >"$name") && chown 65534 "$name" ;;
	4) ln "$FAST/precious" "$name" ;;
	esac 2>/dev/null && taken=1
	if [[ $taken ]]; then
		stat -c '%i %f %u %h %s %y %z' "$name" >"$TMP/theirs.before"
		ended "$pid" 1 3
		grep -qF "$name" "$TMP/err.state" || fail "the name is not told: $WHEN"
		[[ ! -L $A ]] || fail "promoted to what somebody else put there: $WHEN"
		stat -c '%i %f %u %h %s %y %z' "$name" >"$TMP/theirs.after"
		same_facts "$TMP/theirs.before" "$TMP/theirs.after" "somebody else's file was touched: $WHEN"
		usurped=$((usurped + 1))
	else
		ended "$pid" 0
	fi
	equal precious "$(cat "$FAST/precious")" "somebody else's file"
	reads_right "$A"
	run dbtier recover
	reads_right "$A"
	[[ $(dbtier status -n -r -o state) != promoted ]] || expect 0 dbtier rollback
	reads_right "$A"
	no_temporaries "$SLOW" "$FAST"
}
usurped=0

# As root in a directory that somebody else owns: it must not be led elsewhere.
led_astray()
{
	begin
	mkdir "$SLOW/precious"
	echo precious >"$SLOW/precious/a.bin"
	facts "$SLOW/precious" >"$TMP/precious.before"
	# shellcheck disable=SC2046
	with state $(promotion) --limit-rate 32M
	# Once it copies it knows its file; before that, the path means what it leads to.
	while [[ -z $(find "$FAST" -name '.dbtier-*') ]] && kill -0 "$pid" 2>/dev/null; do
		sleep 0.005
	done
	nap
	mv "$SLOW/db" "$SLOW/moved"
	ln -s precious "$SLOW/db"
	ended "$pid" 0 1 3
	run dbtier recover
	facts "$SLOW/precious" >"$TMP/precious.after"
	same_facts "$TMP/precious.before" "$TMP/precious.after" "somebody else's directory was touched"
	# The file itself is there, as itself or behind the link.
	cmp -s "$TMP/reference/db/a.bin" "$SLOW/moved/a.bin" || fail "the moved file does not give its bytes"
}

pair ext4 xfs
mkdir "$TMP/reference"
for name in "two_promotions state" "two_promotions other" \
	"rollback_against_promotion state" "rollback_against_promotion other" updater writer remover led_astray usurper; do
	for ((i = 0; i < rounds; i++)); do
		WHEN="round $i of $name"
		$name
	done
	[[ -z ${DBT_TRACE-} ]] || echo "$name"
done
[[ $usurped -gt 0 ]] || fail "nobody was quick enough to take the copy's name"
echo "$races races, 0 wrong; $usurped times somebody took the copy's name"
