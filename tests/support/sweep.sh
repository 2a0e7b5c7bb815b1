# Running dbtier once for every system call that changes something, with that call going wrong. Source it after
# pair.sh. strace counts the calls of each thread by itself: what the threads of the copy engine do is masked by the
# first calls of the same name of the main thread; the unit tests of the engine and kill.sh are for those.
# shellcheck shell=bash

# Calls on names and attributes: every one is tried, or each SWEEP_REST-th where a script sets that. Then those that
# SQLite makes by the dozen for each commit: some of them, spread evenly. With DBT_FULL=1 every one.
SWEEP_CALLS=(renameat2 symlinkat linkat unlinkat mkdirat fsync syncfs fallocate ftruncate fchmod fchownat utimensat
	fsetxattr unlink)
SWEEP_LEDGER_CALLS=(fdatasync pwrite64)

# The ledger in memory as well: it is flushed hundreds of times.
mount -t tmpfs -o size=80%,mode=755 tmpfs "$TMP"

need_strace()
{
	need_command strace strace
	strace -f -qq -o /dev/null -e trace=write -e inject=write:error=EIO true 2>/dev/null ||
		skip "strace cannot inject here"
	# The leak sanitizer needs ptrace for itself.
	export ASAN_OPTIONS=${ASAN_OPTIONS:+$ASAN_OPTIONS:}detect_leaks=0
}

# step CALL: to the next number of it.
step()
{
	[[ -z ${DBT_FULL-} ]] || {
		echo 1
		return
	}
	case $1 in
	pwrite64) echo "${DBT_SWEEP_STEP:-97}" ;;
	fdatasync) echo "${DBT_SWEEP_STEP:-29}" ;;
	openat) echo "${DBT_SWEEP_STEP:-397}" ;;
	statx | pread64) echo "${DBT_SWEEP_STEP:-71}" ;;
	*) echo "${SWEEP_REST:-1}" ;;
	esac
}

# first CALL: the number of the first one that is not the loader's.
first()
{
	strace -f -qq -o "$TMP/trace" -e "trace=$1" "$DBTIER" --version >/dev/null
	echo $(($(grep -c "$1(" "$TMP/trace") + 1))
}

# injected CALL WHAT NUMBER ARGS...: runs dbtier with it; 0 if it happened.
injected()
{
	local call=$1 what=$2 number=$3
	local -a filter=()

	shift 3
	# strace 6.1 loses a signal where only the traced calls stop.
	[[ $what == signal=* ]] || filter=(--seccomp-bpf)
	run strace -f "${filter[@]}" -y -qq -o "$TMP/trace" -e "trace=$call" -e "inject=$call:$what:when=$number" \
		"$DBTIER" --state-dir "$TMP/state" "$@"
	[[ $status -eq 137 ]] || grep -q INJECTED "$TMP/trace"
} 2>/dev/null

# interrupted BASE CALL NUMBER ARGS...: a state that a kill left.
interrupted()
{
	$1
	shift
	injected "$1" signal=SIGKILL "${@:2}" || fail "$1 number $2 of '${*:3}' was not reached"
}

# States to start from.
no_ledger()
{
	rm -rf "$TMP/state"
}

file_promoted()
{
	fresh_ledger
	expect 0 promote "$SLOW/a.bin"
}

set_promoted()
{
	fresh_ledger
	expect 0 promote "$SLOW/set"
}

file_reclaimed()
{
	fresh_ledger
	expect 0 promote --reclaim "$SLOW/a.bin"
}

set_reclaimed()
{
	fresh_ledger
	expect 0 promote --reclaim "$SLOW/set"
}

while_copying()
{
	interrupted fresh_ledger fallocate 1 promote --force --to "$FAST" "$SLOW/a.bin"
}

# The files of a set are written and marked, not flushed.
set_half_copied()
{
	interrupted fresh_ledger syncfs 1 promote --force --to "$FAST" "$SLOW/set"
}

set_verified()
{
	interrupted fresh_ledger symlinkat 1 promote --force --to "$FAST" "$SLOW/set"
}

set_half_swapped()
{
	interrupted fresh_ledger symlinkat 2 promote --force --to "$FAST" "$SLOW/set"
}

set_half_rolled_back()
{
	interrupted set_promoted renameat2 2 rollback
}

set_half_copied_back()
{
	interrupted set_reclaimed utimensat 2 rollback
}

set_half_returned()
{
	interrupted set_reclaimed renameat2 2 rollback
}

set_half_reclaimed()
{
	interrupted set_promoted unlinkat 2 reclaim nr
}

# fresh_ledger: as if nothing had been promoted yet, but the ledger exists.
fresh_ledger()
{
	rm -rf "$TMP/state"
	[[ ! -d $TMP/state0 ]] || cp -a "$TMP/state0" "$TMP/state"
}

# make_world_data: a file and a set of smaller ones, which the copy engine treats differently, at $SLOW, and their bytes
# in $TMP/reference; FILES names all.
make_world_data()
{
	head -c 1500000 /dev/urandom >"$SLOW/a.bin"
	chown 1234:2345 "$SLOW/a.bin"
	setfattr -n user.note -v "kept with the file" "$SLOW/a.bin"
	touch -d '2001-02-03 04:05:06.123456789' "$SLOW/a.bin"
	mkdir "$SLOW/set"
	"$DBT_TOOLS/mkdb" blast "$SLOW/set/nr" 100K
	rm -rf "$TMP/reference"
	cp -a "$SLOW" "$TMP/reference"
	mapfile -d '' FILES < <(find "$SLOW" -type f -print0)
	remember_world
}

# make_world: the same, and a ledger in $TMP/state0 that knows of nothing.
make_world()
{
	make_world_data
	rm -rf "$TMP/state" "$TMP/state0"
	expect 0 dbtier recover
	mv "$TMP/state" "$TMP/state0"
}

kills=0

# kill_sweep NAME BASE HOW ARGS...: kills dbtier at every call, one run each. BASE is a function that makes the state to
# start from; HOW: inode, or noinode when the file may be another one with the same content afterwards.
kill_sweep()
{
	local name=$1 base=$2 how=${3#inode} call n runs=0

	shift 3
	[[ $name == *${DBT_ONLY-}* ]] || return 0
	for call in "${SWEEP_CALLS[@]}" "${SWEEP_LEDGER_CALLS[@]}"; do
		for ((n = 1; ; n += $(step "$call"))); do
			WHEN="$name, killed at $call number $n"
			$base
			injected "$call" signal=SIGKILL "$n" "$@" || break
			runs=$((runs + 1))
			reads_right "${FILES[@]}"
			run dbtier recover
			[[ $status -eq 0 ]] || fail "recover failed: $WHEN"
			reads_right "${FILES[@]}"
			settle $how
		done
		[[ $status -eq 0 ]] || fail "$name failed by itself"
		settle $how
	done
	remember_world # the inodes may be others now
	echo "$types: $name: $runs kills"
	kills=$((kills + runs))
}
