#!/usr/bin/env bash
# needs: loop
# timeout: 240
# probe: two devices with the same flags, one of which the kernel slows down to the 207 reads a second of a disk. The
# figures are those that a plain reader gets from the same file at the same time, and the verdicts follow them.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command python3 python3
. "$DBT_SOURCE/tests/support/pair.sh"

TRIES=4

# reference FILE JOBS: random 4k reads a second past the page cache, by other code than dbtier's. The first 0.3 s do not
# count: a throttle lets a burst pass.
reference()
{
	python3 - "$1" "$2" <<-'END'
		import mmap, os, random, sys, threading, time
		size, jobs, seconds, ramp = os.stat(sys.argv[1]).st_size // 4096, int(sys.argv[2]), 2.0, 0.3
		start, done = time.monotonic(), []
		def read(seed):
		    fd, buffer, pick = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT), mmap.mmap(-1, 4096), random.Random(seed)
		    while (now := time.monotonic() - start) < seconds:
		        assert os.preadv(fd, [buffer], pick.randrange(size) * 4096) == 4096
		        done.append(time.monotonic() - start)
		threads = [threading.Thread(target=read, args=(k,)) for k in range(jobs)]
		for t in threads: t.start()
		for t in threads: t.join()
		counted = [t for t in done if t > ramp]
		print(len(counted) / (max(counted) - ramp))
	END
}

# get EXPRESSION: of Python, on the probes p by pattern and jobs.
get()
{
	python3 -c "
import json, sys
p = {(x['pattern'], x['jobs']): x for x in json.load(sys.stdin)['probes']}
print($1)" <"$TMP/out"
}

# is_close GOT WANTED PERCENT
is_close()
{
	awk -v got="$1" -v wanted="$2" -v percent="$3" \
		'BEGIN { most = 1 + percent / 100; exit !(got >= wanted / most && got <= wanted * most) }'
}

tier_by()
{
	expect 0 dbtier "$@"
	tr -d ' ' <"$TMP/out"
}

# others_work: somebody else keeps the processors or the disk below $TMP busy, by this script's own look.
others_work()
{
	local disks='$3 !~ /^(loop|ram|dm-|md)/ { n += $4 + $8 } END { print n }' before

	before=$(awk "$disks" /proc/diskstats)
	sleep 0.3
	[[ $(($(awk "$disks" /proc/diskstats) - before)) -gt 10 ]] ||
		awk -v cpus="$(nproc)" '{ exit !($1 > cpus) }' /proc/loadavg
}

# One try: the probe's figures are the reference's, taken just before, and so is the verdict, by probe and by what is
# remembered of it. Whatever the load, a verdict that is not one of the wanted is wrong. Sets $told.
try_once()
{
	local file=$1 tiers=" $2 " percent=$3 jobs got tier notes
	local -A wanted

	for jobs in 1 4; do
		wanted[$jobs]=$(reference "$file" $jobs)
	done
	expect 0 dbtier probe --json --seconds 2 "$file"
	equal "True" "$(get 'all(x["proved"] for x in p.values())')" "all figures of $file are proved"
	tier=$(get 'p["random", 1]["tier"]')
	notes=$(get '"; ".join(x["note"] or "" for x in p.values())')
	told="$tier; $notes"
	[[ $tiers == *" $tier "* || $tier == unknown ]] || fail "${file##*/} is called $tier, not $2: $notes"
	[[ $tier != unknown || $notes =~ other\ work|waiting\ for\ a\ processor ]] || fail "unknown, and no load is told: $notes"
	for jobs in 1 4; do
		got=$(get "p['random', $jobs]['iops']")
		told="$jobs jobs: probe $got, reference ${wanted[$jobs]%.*}; $told"
		# No load makes a throttle let more reads pass.
		[[ $2 != hdd ]] || awk -v got="$got" 'BEGIN { exit !(got < 207 * 1.15) }' || fail "more than 207 a second: $told"
		is_close "$got" "${wanted[$jobs]}" "$percent" || return 1
	done
	[[ $tiers == *" $tier "* && $tiers == *" $(tier_by devices -no tier "$file") "* ]]
}

# Other work may spoil the probe or the reference, so there are some tries. A probe that reads the wrong thing or counts it
# wrongly spoils all of them, also where nobody else works. False when others worked in every try.
agrees()
{
	local try told="" quiet=0

	for ((try = 1; try <= TRIES; try++)); do
		others_work || quiet=1
		if try_once "$@"; then
			echo "${1##*/}: $told"
			return 0
		fi
		echo "try $try of ${1##*/}: $told"
	done
	[[ $quiet -eq 0 ]] || fail "${1##*/} is not $2, or not within $3 % of the reference: $told"
	return 1
}

[[ $(findmnt -n -o FSTYPE -T "$TMP") =~ ^(ext4|xfs|btrfs)$ ]] || skip "$TMP lies on no disk"
{ direct_fs slow 160M && direct_fs fast 160M; } || skip "no loop devices with direct I/O on $TMP"
"$DBT_TOOLS/mkdb" diamond "$SLOW/slow.dmnd" 24M
dd if=/dev/urandom of="$SLOW/slow" bs=1M count=80 oflag=direct status=none
dd if=/dev/urandom of="$FAST/fast" bs=1M count=80 oflag=direct status=none
sync -f "$SLOW"
sync -f "$FAST"
throttle 207 || skip "this kernel cannot limit reads by the blkio cgroup (version 1)"

known=1
agrees "$SLOW/slow" hdd 15 || known=0
# Python takes its time as well, the more with threads: this is to find figures that are no reads of this device at all.
agrees "$FAST/fast" "ssd nvme" 300 || known=0

# The measurement decides whatever the flag, which is the same for both.
slow_queue=/sys/dev/block/$THROTTLED/queue/rotational
fast_queue=/sys/dev/block/$(stat -c %Hr:%Lr "$(findmnt -n -o SOURCE "$FAST")")/queue/rotational
for flag in $([[ $known -eq 0 ]] || echo 0 1); do
	echo $flag >"$slow_queue"
	echo $flag >"$fast_queue"
	equal "$flag $flag" "$(cat "$slow_queue" "$fast_queue" | xargs)" "the flags"
	equal "hdd" "$(tier_by devices -no tier "$SLOW/slow")" "the slow one, flag $flag"
	tier=$(tier_by devices -no tier "$FAST/fast")
	[[ $tier == ssd || $tier == nvme ]] || fail "the fast one is called $tier, flag $flag"
done

# A signal ends it at once, with what is known.
# What it reads of its own program does not count: the device tells when the reads have begun.
reads_of_slow()
{
	awk '{ print $1 }' "/sys/dev/block/$THROTTLED/stat"
}
before=$(reads_of_slow)
env --default-signal=INT "$DBTIER" --state-dir "$TMP/none" probe --json --seconds 10 "$SLOW/slow" >"$TMP/out" 2>"$TMP/err" &
pid=$!
until [[ $(($(reads_of_slow) - before)) -gt 150 ]]; do
	kill -0 $pid 2>/dev/null || fail "the probe ended before it was interrupted"
	sleep 0.05
done
start=$(date +%s%N)
kill -INT $pid
status=0
wait $pid || status=$?
equal 130 $status "the status of an interrupted probe"
err_has "was stopped"
equal "True stopped early" "$(get 'str(p["random", 1]["iops"] > 0) + " " + str(p["random", 1]["note"])[-13:]')" "what is known"
[[ $(($(date +%s%N) - start)) -lt 5000000000 ]] || fail "an interrupt took more than five seconds of ten"

expect 0 dbtier --state-dir "$TMP/none" probe --seconds 1 "$SLOW/slow" "$FAST/fast"
out_has "$FAST/fast against $SLOW/slow: "

if [[ $known -eq 0 ]]; then
	echo "others worked all the time: what was measured is neither within 15 % nor remembered for certain"
	exit 0
fi

# What was measured is remembered for a day, also by scan, unless that shall measure again.
throttle 0
equal hdd "$(tier_by scan -no tier "$SLOW/slow.dmnd")" "the tier as remembered"
for ((try = 1; try <= TRIES; try++)); do
	tier=$(tier_by scan --fresh -no tier "$SLOW/slow.dmnd")
	[[ $tier == hdd || $tier == unknown ]] || break
done
[[ $tier == ssd || $tier == nvme ]] || fail "scan --fresh calls an unthrottled device $tier"
expect 2 dbtier scan --fresh --no-probe "$SLOW"
