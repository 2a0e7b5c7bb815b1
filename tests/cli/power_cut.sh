#!/usr/bin/env bash
# The power goes at every flush of any disk during promote, rollback, reclaim and recover: without what no flush had
# covered, with it, and with a random half of it. Source, target and ledger lie on three disks, each with a volatile
# cache of its own. After each cut the filesystems mount, every path gives its bytes, recover ends well, the paths give
# their bytes, everything is promoted and healthy or as it was, and fsck finds nothing. What a command reported as done
# is done. DBT_FULL=1: every flush, on all filesystems, torn twice. DBT_CUTS: how many cuts of each pair otherwise (6).
# DBT_PAIRS: other filesystems ("ext4 xfs,xfs btrfs"); DBT_SEED.
# needs: loop
# timeout: 900
# full: 14400
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
. "$DBT_SOURCE/tests/support/disks.sh"
need_command setfattr attr
need_disks

RANDOM=${DBT_SEED:-$$}
echo "seed ${DBT_SEED:-$$}"
cuts=0

# The filesystems' own directories beside lost+found.
SLOW=$PAIR/slow/db FAST=$PAIR/fast/db

up()
{
	disk_mount slow "$slow" "$PAIR/slow" && disk_mount fast "$fast" "$PAIR/fast" && disk_mount ledger ext4 "$TMP/state" ||
		fail "does not mount: ${WHEN-}"
}

down()
{
	umount "$PAIR/slow" "$PAIR/fast" "$TMP/state" || fail "cannot unmount: ${WHEN-}"
}

# then STATE ARGS...: an operation; when it says that it is done, a cut must leave this state ("-": none active).
then_do()
{
	local state=$1

	shift
	names+=("$*")
	expect 0 dbtier "$@"
	ends+=("$(flushes)")
	states+=("$state")
}

operate()
{
	names=() ends=() states=()
	then_do promoted promote --force --to "$FAST" "$SLOW/set"
	then_do - rollback
	then_do promoted promote --force --to "$FAST" "$SLOW/a.bin"
	then_do promoted reclaim a.bin
	then_do - rollback
	then_do promoted promote --force --reclaim --to "$FAST" "$SLOW/set"
	then_do - rollback
	command -v strace >/dev/null || return 0
	names+=("a promotion that is killed") states+=(-)
	{ run strace -f -qq -o /dev/null -e trace=symlinkat -e inject=symlinkat:signal=SIGKILL:when=2 \
		"$DBTIER" --state-dir "$TMP/state" promote --force --to "$FAST" "$SLOW/set"; } 2>/dev/null
	[[ $status -eq 137 ]] || fail "not killed"
	ends+=("$(flushes)")
	then_do promoted recover
	then_do - rollback
}

# during N: what was running at flush N; $wanted: what must be the state when nothing was.
during()
{
	local i

	wanted=
	for ((i = 0; i < ${#ends[@]}; i++)); do
		[[ $1 -gt $((ends[i] + 1)) ]] || break
	done
	WHAT=${names[i]:-the end}
	[[ $1 -ne $((${ends[i]:-0} + 1)) ]] || wanted=${states[i]}
}

# cut N HOW [SEED]
cut_at()
{
	local active

	during "$1"
	WHEN="power cut before flush $1 of $total, $2${3:+ }${3-}, during '$WHAT', $types"
	control cut "$@"
	up
	reads_right "${FILES[@]}"
	run dbtier recover
	[[ $status -eq 0 ]] || fail "recover failed: $WHEN"
	reads_right "${FILES[@]}"
	run dbtier status -n -r -o state
	[[ $status -eq 0 ]] || fail "status says unhealthy: $WHEN"
	active=$(tail -1 "$TMP/out")
	[[ -z $wanted || $WHAT == "a promotion"* || ${active:--} == "$wanted" ]] ||
		fail "was reported as done, but is '${active:--}', not '$wanted': $WHEN"
	settle noinode
	down
	disk_fsck slow "$slow"
	disk_fsck fast "$fast"
	disk_fsck ledger ext4
	cuts=$((cuts + 1))
}

# The same file systems, worlds and operations for each pair.
record()
{
	local file

	slow=${types% *} fast=${types#* }
	disk_mkfs slow "$slow"
	disk_mkfs fast "$fast"
	disk_mkfs ledger ext4
	up
	mkdir "$SLOW" "$FAST"
	make_world_data
	down
	up
	control mark
	operate
	total=$(flushes)
	# That flushes arrive here at all.
	file=$FAST/flush
	echo x >"$file"
	sync "$file"
	[[ $(flushes) -gt $total ]] || fail "a flush of a file does not reach the disk"
	total=$(($(flushes) - 1))
	down
}

cut_all()
{
	local n

	for ((n = 1; n <= total; n++)); do
		cut_at "$n" drop
		cut_at "$n" keep
		cut_at "$n" torn "$RANDOM"
		cut_at "$n" torn "$RANDOM"
	done
	# What is written before the flush after the last is this script's own.
	cut_at "$n" drop
}

cut_some()
{
	local n i

	for ((i = 0; i < ${DBT_CUTS:-6}; i++)); do
		n=$(((total * i + RANDOM % total) / ${DBT_CUTS:-6} + 1))
		case $((i % 4)) in
		0) cut_at "$n" keep ;;
		1) cut_at "$n" drop ;;
		*) cut_at "$n" torn "$RANDOM" ;;
		esac
	done
	# Nothing that was reported as done is lost.
	for n in "${ends[@]}"; do
		[[ $((RANDOM % 3)) -ne 0 ]] || cut_at $((n + 1)) drop
	done
}

mkdir "$TMP/state"
disks_new slow:320 fast:320 ledger:32
IFS=, read -ra pairs <<<"${DBT_PAIRS:-ext4 xfs,xfs btrfs,btrfs ext4}"
for types in "${pairs[@]}"; do
	before=$cuts
	WHEN=
	start=$SECONDS
	record
	if [[ ${DBT_FULL-} ]]; then
		cut_all
	else
		cut_some
	fi
	echo "$types: $((cuts - before)) power cuts over $total flushes, $((SECONDS - start)) s"
done
echo "$cuts power cuts, 0 wrong"
