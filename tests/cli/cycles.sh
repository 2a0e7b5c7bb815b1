#!/usr/bin/env bash
# Readers open, read and compare a file by its path without a pause while it is promoted and rolled back again and
# again: no open fails, no byte is wrong. DBT_CYCLES sets how many on ext4 (100; DBT_FULL=1: 1000); xfs and btrfs get a
# fifth. DBT_READERS: how many of them (8).
# needs: loop
# timeout: 300
# full: 7200
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"

cycles=${DBT_CYCLES:-${DBT_FULL:+1000}}
cycles=${cycles:-100}

# cycle TYPE OTHERTYPE N
cycle()
{
	local reader i line

	pair "$1" "$2"
	head -c 1000000 /dev/urandom >"$SLOW/a.bin"
	cp "$SLOW/a.bin" "$TMP/reference"
	facts "$SLOW" >"$TMP/before"
	# Politely, so that the cycles are what takes the time on a machine with few processors.
	nice -n 19 "$DBT_TOOLS/runreaders" "${DBT_READERS:-8}" "$SLOW/a.bin" "$TMP/reference" >"$TMP/readers" &
	reader=$!
	until grep -q ready "$TMP/readers"; do
		kill -0 "$reader" || fail "the readers did not start"
		sleep 0.01
	done
	for ((i = 0; i < $3; i++)); do
		expect 0 promote "$SLOW/a.bin"
		[[ -L $SLOW/a.bin ]] || fail "not promoted in cycle $i"
		# The readers have the copy open most of the time: then it stays until recover, or is used again.
		expect 0 dbtier rollback
		[[ ! -L $SLOW/a.bin ]] || fail "not rolled back in cycle $i"
	done
	kill -TERM "$reader"
	wait "$reader" || fail "a reader failed: $(tail -1 "$TMP/readers")"
	line=$(tail -1 "$TMP/readers")
	echo "$1: $3 cycles, $line"
	[[ $line == *"devices: 2 "* ]] || fail "the readers did not see both places"
	expect 0 dbtier recover
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "the file is not what it was"
	nothing_below "$FAST" "after the last rollback and recover"
}

cycle ext4 xfs "$cycles"
cycle xfs btrfs $((cycles / 5))
cycle btrfs ext4 $((cycles / 5))
