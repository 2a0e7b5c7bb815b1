#!/usr/bin/env bash
# A promotion that was killed goes on where it was: what is on the target and proved is not read from the source again.
# It starts over, and says so, when the source, the target or what lies there is not what it was; recover, and a
# promotion of something else, remove the half copy.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
need_command getfattr attr

size=$((136 << 20)) # two windows of the engine and a rest

# marks DIR: large unfinished copies below it whose mark says how much of them is flushed.
marks()
{
	find "$1" -name '*.part' -size +2M -exec getfattr --absolute-names -n user.dbtier.copy {} + 2>/dev/null |
		grep -cE '"[0-9a-f]{49,}"' || true
}

# interrupt MARKS ARGS...: kills a promotion as soon as so many copies are marked.
interrupt()
{
	local wanted=$1 pid

	shift
	"$DBTIER" --state-dir "$TMP/state" promote --force --limit-rate 60M "$@" >"$TMP/out" 2>"$TMP/err" &
	pid=$!
	until [[ $(marks "$PAIR") -ge $wanted ]]; do
		kill -0 "$pid" 2>/dev/null || fail "the promotion ended before it could be killed"
		sleep 0.02
	done
	kill -KILL "$pid"
	wait "$pid" 2>/dev/null || true
	state_is copying
}

# promote_and_count ARGS...: into $read, the bytes that the source's device gave meanwhile.
promote_and_count()
{
	local device before

	device=$(basename "$(findmnt -n -o SOURCE "$SLOW")")
	echo 3 >/proc/sys/vm/drop_caches
	before=$(awk '{ print $3 }' "/sys/block/$device/stat")
	expect 0 promote "$@"
	read=$((($(awk '{ print $3 }' "/sys/block/$device/stat") - before) * 512))
}

# back: rolled back to how it was, with nothing left.
back()
{
	expect 0 dbtier rollback
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "not as it was"
	nothing_below "$FAST" "after the rollback"
	no_temporaries "$SLOW" "$FAST"
}

# Its ctime must be older than a tick of the clock when the promotion begins.
fresh_world()
{
	expect 0 dbtier recover
	facts "$SLOW" >"$TMP/before"
	sleep 0.1
}

pair ext4 xfs 640M
head -c "$size" /dev/urandom >"$SLOW/a.bin"
head -c 20000 /dev/urandom >"$SLOW/b.bin"
mkdir "$TMP/reference"
cp "$SLOW/a.bin" "$TMP/reference/a.bin"
WHEN="at the beginning"
fresh_world

# It goes on: the source's first 64 MiB are not read again.
interrupt 1 --to "$FAST" "$SLOW/a.bin"
promote_and_count "$SLOW/a.bin"
err_has "were there already from an interrupted run"
[[ $read -le $((size - (64 << 20) + (4 << 20))) ]] || fail "$read bytes were read from the source"
[[ $read -ge $((8 << 20)) ]] || fail "the device's counter shows only $read bytes"
reads_right "$SLOW/a.bin"
equal 1 "$(dbtier status -n -r -o id)" "the number of the promotion"
equal "$(xxh128sum <"$TMP/reference/a.bin" | cut -d' ' -f1)" "$(dbtier status -n -r -o xxh128)" "the recorded hash"
expect 0 dbtier verify
back

# Killed twice.
interrupt 1 --to "$FAST" "$SLOW/a.bin"
interrupt 1 --to "$FAST" "$SLOW/a.bin"
expect 0 promote "$SLOW/a.bin"
err_has "were there already"
reads_right "$SLOW/a.bin"
back

# What lies on the target is not what it was.
interrupt 1 --to "$FAST" "$SLOW/a.bin"
printf X | dd of="$(echo "$FAST"/.dbtier-*.part)" bs=1 seek=$((5 << 20)) conv=notrunc status=none
promote_and_count "$SLOW/a.bin"
err_has "starts over"
[[ $read -ge $size ]] || fail "only $read bytes were read from the source"
reads_right "$SLOW/a.bin"
back

# The source is not what it was: the same bytes, but that is not known.
interrupt 1 --to "$FAST" "$SLOW/a.bin"
touch -c -d "@$(stat -c %.Y "$SLOW/a.bin")" "$SLOW/a.bin"
expect 0 promote "$SLOW/a.bin"
err_has "the source was changed since; it starts over"
reads_right "$SLOW/a.bin"
back

# To another directory; then the first one holds nothing any more.
mkdir "$FAST/one" "$FAST/two"
interrupt 1 --to "$FAST/one" "$SLOW/a.bin"
expect 0 dbtier promote --force --to "$FAST/two" "$SLOW/a.bin"
err_has "it went to another directory; it starts over"
nothing_below "$FAST/one" "after a promotion to another directory"
reads_right "$SLOW/a.bin"
expect 0 dbtier rollback
rmdir "$FAST/one" "$FAST/two"

# recover removes it, and so does a promotion of something else.
interrupt 1 --to "$FAST" "$SLOW/a.bin"
expect 0 dbtier recover
out_has "undid"
back_is_clean()
{
	no_temporaries "$SLOW" "$FAST"
	state_is "$1"
}
back_is_clean failed
interrupt 1 --to "$FAST" "$SLOW/a.bin"
expect 0 promote "$SLOW/b.bin"
err_has "undid what an interrupted run had begun"
back_is_clean promoted
expect 0 dbtier rollback

# While it runs nobody else takes it.
"$DBTIER" --state-dir "$TMP/state" promote --force --limit-rate 60M --to "$FAST" "$SLOW/a.bin" >/dev/null 2>&1 &
pid=$!
until [[ $(marks "$FAST") -ge 1 ]]; do
	sleep 0.02
done
expect 1 promote "$SLOW/a.bin"
err_has "wait for it to end"
kill -TERM "$pid"
wait "$pid" || true
no_temporaries "$SLOW" "$FAST"

# A set: whole files are kept.
rm "$SLOW"/*.bin
mkdir "$SLOW/set"
"$DBT_TOOLS/mkdb" blast "$SLOW/set/nr" 180M 6
chown 1234:2345 "$SLOW"/set/*
chmod 0444 "$SLOW"/set/*
rm -rf "$TMP/reference" "$TMP/state"
cp -a "$SLOW" "$TMP/reference"
fresh_world
interrupt 2 --to "$FAST" "$SLOW/set"
promote_and_count "$SLOW/set"
err_has "were there already"
[[ $read -lt $(($(du -sb "$SLOW/set" | cut -f1) * 9 / 10)) ]] || fail "$read bytes were read from the source"
mapfile -d '' files < <(find "$TMP/reference" -type f -printf "$SLOW/%P\0")
reads_right "${files[@]}"
expect 0 dbtier verify
back
