#!/usr/bin/env bash
# An error at every system call that changes something, of promote, rollback, reclaim and recover, one run per call
# and error, once and from then on. The path always gives its bytes, a failure has a message that names something,
# recover leaves nothing behind, and a second run succeeds. DBT_FULL=1: on all filesystems, at every call.
# DBT_PAIRS: other filesystems ("ext4 xfs,xfs btrfs"). DBT_ONLY=NAME: only operations with that in their name.
# timeout: 900
# full: 14400
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/sweep.sh"
need_command setfattr attr
if [[ ${DBT_WORLD-} == tree ]]; then
	. "$DBT_SOURCE/tests/support/tree.sh"
	need_command setfacl acl
fi
need_strace

SWEEP_REST=6
[[ ${DBT_WORLD-} != tree ]] || SWEEP_REST=14
total=0 tolerated=0

# Each call with what may happen to it. A "+" after an error: all later calls of that name fail as well.
errors=(
	"renameat2 EIO EACCES+ ENOMEM"
	"symlinkat ENOSPC EACCES+"
	"unlinkat EIO EACCES+"
	"mkdirat ENOSPC EDQUOT"
	"fsync EIO EIO+"
	"syncfs EIO EIO+"
	"fallocate ENOSPC EDQUOT EINTR"
	"ftruncate EIO"
	"fchmod EPERM"
	"fchownat EPERM"
	"utimensat EIO"
	"fsetxattr ENOSPC"
	"flock ENOLCK"
	"unlink EIO"
	"fdatasync EIO EIO+"
	"pwrite64 ENOSPC EIO+ EDQUOT EINTR"
	"openat EMFILE+ EIO ENOMEM"
	"statx EIO"
	"pread64 EIO EINTR"
)

# The command failed: it must say so well, and succeed when it is run again.
check_failure()
{
	[[ $status -eq 1 || $status -eq 3 || $status -eq 4 ]] || fail "exit status $status: $WHEN"
	# recover puts its answer into a table, with the path.
	grep -q "could not be recovered" "$TMP/out" ||
		grep -qE "^dbtier: .*('.+'|/proc/|tmpfiles\.d|the ledger)" "$TMP/err" ||
		fail "no message that names something: $WHEN"
}

second_run()
{
	local state

	state=$(dbtier status --all -n -r -o state 2>/dev/null | tail -1)
	case $1:$state in
	promote:failed | promote:) expect 0 dbtier "$@" ;;
	rollback:promoted | reclaim:promoted) expect 0 dbtier "$@" ;;
	esac
}

# once NAME BASE HOW CALL ERROR NUMBER ARGS...: false when there is no such call.
once()
{
	local name=$1 base=$2 how=$3 call=$4 error=${5%+} number=$6${5##*[A-Z]}

	shift 6
	WHEN="$name with $error from $call number $number"
	$base
	if ! injected "$call" "error=$error" "$number" "$@"; then
		settle $how
		return 1
	fi
	[[ -z ${DBT_TRACE-} ]] || echo "$WHEN: $status $(tail -1 "$TMP/err")"
	reads_right "${FILES[@]}"
	if [[ $status -eq 0 ]]; then
		tolerated=$((tolerated + 1))
		# Nothing goes on without a flush that it needs (recover may go back instead). Whether the removal of an
		# empty directory from the target lasts is no such thing.
		if [[ $call == @(fsync|syncfs) && $1 != recover ]] && grep INJECTED "$TMP/trace" | grep -qv "<$FAST>"; then
			fail "a failing flush was passed over: $WHEN"
		fi
	else
		check_failure
	fi
	run dbtier recover
	[[ $status -eq 0 ]] || fail "recover failed: $WHEN"
	reads_right "${FILES[@]}"
	second_run "$@"
	settle $how
}

# sweep NAME BASE HOW ARGS...
sweep()
{
	local name=$1 base=$2 how=${3#inode} line call error n runs=0 late

	shift 3
	[[ $name == *${DBT_ONLY-}* ]] || return 0
	for line in "${errors[@]}"; do
		call=${line%% *} late=0
		for error in ${line#* }; do
			# In a sample each error begins one call later than the one before it, so that together they
			# meet all calls.
			for ((n = $(first "$call") + late++ % $(step "$call"); ; n += $(step "$call"))); do
				once "$name" "$base" "$how" "$call" "$error" "$n" "$@" || break
				runs=$((runs + 1))
			done
		done
	done
	remember_world
	echo "$types: $name: $runs errors"
	total=$((total + runs))
}

sweep_all()
{
	sweep "promote of a set" fresh_ledger inode promote --force --to "$FAST" "$SLOW/set"
	sweep "promote of a half-copied set" set_half_copied inode promote --force --to "$FAST" "$SLOW/set"
	sweep "promote --reclaim" fresh_ledger noinode promote --force --reclaim --to "$FAST" "$SLOW/a.bin"
	sweep "rollback of a set" set_promoted inode rollback
	sweep "rollback after reclaim" file_reclaimed noinode rollback
	sweep "reclaim of a set" set_promoted noinode reclaim nr
	sweep "recover of a half swap" set_half_swapped inode recover
	sweep "recover of a half return" set_half_returned noinode recover
}

sweep_directories()
{
	sweep "promote" fresh_ledger inode promote --force --to "$FAST" "$SLOW/rocks"
	sweep "rollback" tree_promoted inode rollback
	sweep "reclaim" tree_promoted noinode reclaim rocks
	sweep "rollback after reclaim" tree_reclaimed noinode rollback
	[[ ${DBT_FULL-} ]] || return 0
	sweep "recover of a verified copy" tree_verified inode recover
	sweep "recover of a half removal" tree_half_removed inode recover
	sweep "recover of a half reclaim" tree_half_reclaimed noinode recover
}

[[ -z ${DBT_FULL-} ]] || : "${DBT_PAIRS:=ext4 xfs,xfs btrfs,btrfs ext4}"
IFS=, read -ra pairs <<<"${DBT_PAIRS:-ext4 xfs}"
for types in "${pairs[@]}"; do
	# shellcheck disable=SC2086
	pair $types
	make_world
	if [[ ${DBT_WORLD-} == tree ]]; then
		sweep_directories
	else
		sweep_all
	fi
done
echo "$total errors, $tolerated of them without consequence, 0 wrong"
