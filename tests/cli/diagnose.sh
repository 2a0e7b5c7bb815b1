#!/usr/bin/env bash
# What jobs wait for: answers from recordings of real tools on a slow disk, and from this machine.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
RECORDINGS=$DBT_SOURCE/tests/fixtures/recordings

# verdict FILE KIND WORDS...: the recording gives that verdict, and its text and remedies have these words.
verdict()
{
	local file=$1 kind=$2 words

	shift 2
	expect 0 dbtier diagnose --replay "$RECORDINGS/$file.json"
	grep -qxF "$kind" "$TMP/out" || fail "$file: not '$kind'"
	tr -s ' \n' ' ' <"$TMP/out" >"$TMP/flat"
	for words in "$@"; do
		grep -qF -e "$words" "$TMP/flat" || fail "$file: lacks '$words'"
	done
	if [[ $kind != storage-bound ]]; then
		out_lacks "- promote"
	fi
	expect 0 dbtier diagnose --json --replay "$RECORDINGS/$file.json"
	python3 -m json.tool <"$TMP/out" >/dev/null || fail "$file: no JSON"
	out_has "\"kind\": \"$kind\""
}

need_command python3 python3
# One line each: the file is the name of a recording, what it must say follows.
while IFS='|' read -r file kind words; do
	[[ -e $RECORDINGS/$file.json ]] || fail "there is no recording $file"
	IFS=';' read -ra words <<<"$words"
	verdict "$file" "$kind" "${words[@]}"
done <"$RECORDINGS/verdicts"

# A recording of a recording is the same, and masks what is left to mask.
first=$(sed -n '1s/|.*//p' "$RECORDINGS/verdicts")
expect 0 dbtier diagnose --replay "$RECORDINGS/$first.json" --record "$TMP/again.json"
cp "$TMP/out" "$TMP/once"
expect 0 dbtier diagnose --replay "$TMP/again.json"
cmp "$TMP/once" "$TMP/out"
expect 2 dbtier diagnose --replay "$RECORDINGS/verdicts"
err_has "no JSON"
expect 2 dbtier diagnose --replay "$TMP/again.json" 1
expect 2 dbtier diagnose --watch -- true
expect 1 dbtier diagnose 99999999
err_has "no process"
expect 1 dbtier diagnose /nowhere
expect 1 dbtier diagnose -- /nowhere/command
err_has "cannot run '/nowhere/command': no such file or directory"

# --- live ---------------------------------------------------------------------------------------------------

# The command is run, its output stays its own, its end is told; what was seen goes to a file.
expect 0 dbtier diagnose --no-probe --mask --record "$TMP/run.json" -- sh -c 'echo spoken; exit 7'
out_has spoken
err_has "ended with status 7"
expect 0 dbtier diagnose --replay "$TMP/run.json"
! grep -qF "$TMP" "$TMP/run.json" || fail "a masked recording names a directory"

# Screens one after the other where there is no terminal, until a signal comes.
"$DBTIER" --state-dir "$TMP/state" diagnose --watch --seconds 1 --no-probe >"$TMP/watched" 2>"$TMP/err" &
watcher=$!
for _ in {1..100}; do
	[[ $(grep -c ' CPU.*: busy' "$TMP/watched") -lt 2 ]] || break
	sleep 0.2
done
kill -TERM "$watcher"
wait "$watcher" || true
[[ $(grep -c ' CPU.*: busy' "$TMP/watched") -ge 2 ]] || fail "--watch shows one screen only"

# Without root: own processes, no trace, and it says so.
if id nobody >/dev/null 2>&1 && command -v setpriv >/dev/null; then
	install -m 755 "$DBTIER" "$TMP/dbtier-user"
	mkdir -m 777 "$TMP/user"
	expect 0 setpriv --reuid=nobody --clear-groups "$TMP/dbtier-user" --state-dir "$TMP/user/state" \
		diagnose --no-probe --seconds 1
	tr -s ' \n' ' ' <"$TMP/out" >"$TMP/flat"
	grep -qF "tracing needs root" "$TMP/flat" || fail "it does not say what it cannot see"
fi

instances()
{
	local dir=/sys/kernel/tracing/instances

	[[ ! -d $dir ]] || find "$dir" -maxdepth 1 -name "dbtier-$1-*"
}

# No tracefs instance is left, neither by an end nor, after the next run, by a kill.
mountpoint -q /sys/kernel/tracing || mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null || {
	echo "no tracefs: the live trace is not tested"
	exit 0
}
"$DBTIER" --state-dir "$TMP/state" diagnose --no-probe --seconds 60 >/dev/null 2>&1 &
killed=$!
for _ in {1..100}; do
	[[ -z $(instances "$killed") ]] || break
	sleep 0.1
done
[[ -n $(instances "$killed") ]] || fail "it does not trace"
kill -KILL "$killed"
wait "$killed" 2>/dev/null || true
[[ -n $(instances "$killed") ]] || fail "the kernel has cleaned up itself: the test shows nothing"
"$DBTIER" --state-dir "$TMP/state" diagnose --no-probe --seconds 60 >/dev/null 2>&1 &
ended=$!
for _ in {1..100}; do
	[[ -z $(instances "$ended") ]] || break
	sleep 0.1
done
[[ -z $(instances "$killed") ]] || fail "the instance of a killed run is left"
kill -TERM "$ended"
wait "$ended" || true
[[ -z $(instances "$ended") ]] || fail "an instance is left after a signal"

# A device that the kernel really slows down: the job, the file and the class are named, a mapped one, too.
. "$DBT_SOURCE/tests/support/pair.sh"
pair ext4 ext4
"$DBT_TOOLS/mkdb" diamond "$SLOW/psc.dmnd" 64M
sync -f "$SLOW"
throttle 207 || {
	echo "no blkio cgroup (version 1): the live stall is not tested"
	exit 0
}

forget()
{
	dd of="$1" oflag=nocache conv=notrunc,fdatasync count=0 2>/dev/null
}

cat >"$TMP/jumps.py" <<'PY'
import mmap, random, sys
f = open(sys.argv[1], 'rb')
random.seed(1)
if sys.argv[2] == 'mmap':
    m = mmap.mmap(f.fileno(), 0, prot=mmap.PROT_READ)
    m.madvise(mmap.MADV_RANDOM)
    for _ in range(1000):
        m[random.randrange(len(m))]
else:
    import os
    os.posix_fadvise(f.fileno(), 0, 0, os.POSIX_FADV_RANDOM)
    size = os.fstat(f.fileno()).st_size
    for _ in range(1000):
        os.pread(f.fileno(), 4096, random.randrange(size // 4096) * 4096)
PY

# stalls CLASS COMMAND...
stalls()
{
	local class=$1

	shift
	# What the interpreter itself reads is in memory.
	python3 "$TMP/jumps.py" "$TMP/jumps.py" "$class" >/dev/null 2>&1 || true
	forget "$SLOW/psc.dmnd"
	expect 0 dbtier diagnose --no-probe --json -- "$@"
	python3 - "$TMP/out" "$class" <<'PY' || fail "not what was done"
import json, sys
o = json.load(open(sys.argv[1]))
v, f = o['verdict'], o['databases'][0]
print(v['kind'], v['process'], f['name'], f['class'], f['misses_s'], f['jumps'])
assert v['kind'] == 'storage-bound', v
assert v['process'].startswith('python3'), v
assert v['file'].endswith('/psc.dmnd'), v
assert f['class'] == sys.argv[2] and f['declared'] == 'stream', f
assert f['format'] == 'diamond', f
PY
}

stalls random-pread python3 "$TMP/jumps.py" "$SLOW/psc.dmnd" pread
stalls random-mmap python3 "$TMP/jumps.py" "$SLOW/psc.dmnd" mmap
# It is remembered, and scan shows it instead of what the format declares.
expect 0 dbtier scan --no-probe -n -r -o class,observed "$SLOW"
equal "random-mmap yes" "$(cat "$TMP/out")" "what scan makes of it"
