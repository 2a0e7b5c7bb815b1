# Two filesystems to move between, and what can be said about them. Source it after lib.sh; the script has called
# need_mounts "$@" before.
# shellcheck shell=bash

# The mount points must not lie below /tmp, which is emptied at boot and so no place for a promotion that must last:
# they lie in a tmpfs of this script's own over /mnt, or over /srv where the program itself is below /mnt. Their names
# are this script's own as well: dbtier keeps a copy that some process names on its command line, and a test that runs
# beside this one would be such a process.
if [[ $DBTIER$DBT_SOURCE == */mnt/* ]]; then
	PAIR=/srv
else
	PAIR=/mnt
fi
mount -t tmpfs -o size=80%,mode=755 tmpfs "$PAIR"
PAIR=$PAIR/$$
mkdir "$PAIR"
SLOW=$PAIR/slow FAST=$PAIR/fast

# pair SLOWTYPE FASTTYPE [SIZE]: fresh filesystems at $SLOW and $FAST. Their images lie in memory, so that hundreds
# of runs take seconds; for dbtier they are then equally fast, and promoting between them needs --force.
pair()
{
	local size=${3:-320M}

	pair_down
	FS_IMAGES=$PAIR FS_MOUNTS=$PAIR fs_new slow "$1" "$size"
	FS_IMAGES=$PAIR FS_MOUNTS=$PAIR fs_new fast "$2" "$size"
	rm -rf "$SLOW/lost+found" "$FAST/lost+found"
}

pair_down()
{
	local point

	for point in "$SLOW" "$FAST"; do
		[[ -d $point ]] || continue
		# A process that was killed may take a moment to let go of its files.
		for _ in 1 2 3 4 5 6 7 8 9 10; do
			umount "$point" 2>/dev/null && break
			sleep 0.2
		done
		rmdir "$point"
	done
	rm -rf "$PAIR"/*.img "$TMP"/*.img "$TMP/state"
}

# direct_fs NAME [SIZE]: a fresh ext4 at $PAIR/NAME whose reads reach the disk below $TMP. Through an ordinary loop device
# they may come from memory: that is no proof of anything, and dbtier says so. False where the kernel cannot.
direct_fs()
{
	local device

	truncate -s "${2:-64M}" "$TMP/$1.img"
	device=$(losetup --find --show --direct-io=on "$TMP/$1.img" 2>/dev/null) || return 1
	# Nothing is left for the kernel to write later.
	mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 "$device"
	mkdir "$PAIR/$1"
	mount -o noatime "$device" "$PAIR/$1"
	losetup -d "$device" # when it is unmounted
}

# throttle IOPS: the slow filesystem's device gives that many reads a second to this script and its children. False
# where the kernel has no blkio cgroup (version 1). The limit lies in a cgroup of this script, so that it is nobody
# else's even when it outlives the script.
throttle()
{
	local root=/sys/fs/cgroup/blkio device

	[[ -w $root/cgroup.procs ]] || return 1
	THROTTLE=$root/dbtier-test.$$
	mkdir -p "$THROTTLE" 2>/dev/null || return 1
	[[ -w $THROTTLE/blkio.throttle.read_iops_device ]] || return 1
	[[ -z ${THROTTLED-} ]] || echo "$THROTTLED 0" >"$THROTTLE/blkio.throttle.read_iops_device"
	device=$(findmnt -n -o SOURCE "$SLOW")
	THROTTLED=$(stat -c %Hr:%Lr "$device")
	echo "$THROTTLED $1" >"$THROTTLE/blkio.throttle.read_iops_device"
	echo $$ >"$THROTTLE/cgroup.procs"
}

pair_cleanup()
{
	local pid

	for pid in $(jobs -p); do
		kill -KILL "$pid" 2>/dev/null || true
	done
	wait 2>/dev/null || true
	if [[ -d ${THROTTLE-} ]]; then
		echo $$ >/sys/fs/cgroup/blkio/cgroup.procs
		rmdir "$THROTTLE" || true
	fi
	umount "$SLOW" "$FAST" 2>/dev/null || true
	umount -l "${PAIR%/*}"
	lib_cleanup
}
trap pair_cleanup EXIT

# promote WHAT... [OPTIONS]: to $FAST.
promote()
{
	dbtier promote --force --to "$FAST" "$@"
}

HASHSUM=$(command -v xxh128sum || command -v sha256sum)

# facts DIR [noinode]: every name below a directory and what it is: type, inode, mode, owner, size, mtime to the
# nanosecond, links, link text, extended attributes with ACLs, and the bytes. Of directories neither size nor time:
# both change when names come and go.
facts()
{
	local inode='%i'

	[[ ${2-} != noinode ]] || inode=-
	(
		cd "$1"
		find . -type d -printf "%p|$inode|%M|%U|%G\0" -o -printf "%p|$inode|%M|%U|%G|%s|%T@|%n|%l\0" |
			LC_ALL=C sort -z | tr '\0' '\n'
		find . -print0 | LC_ALL=C sort -z | xargs -0 getfattr -h -d -m - -e hex -- 2>/dev/null || true
		find . -type f -print0 | LC_ALL=C sort -z | xargs -0 -r "$HASHSUM" -- 2>/dev/null
	)
}

# The same with the times of directories, for what must not have been touched at all.
facts_untouched()
{
	facts "$1"
	find "$1" -type d -printf '%p|%T@|%C@\n' | LC_ALL=C sort
}

# same_facts WANTED GOT WHAT: two files that facts wrote.
same_facts()
{
	cmp -s "$1" "$2" && return
	diff "$1" "$2" >&2 || true
	fail "$3"
}

# nothing_below DIR WHAT
nothing_below()
{
	local found

	found=$(find "$1" -mindepth 1 -printf '%P ')
	[[ -z $found ]] || fail "$2: left in $1: $found"
}

# No unfinished or temporary name of dbtier is left below the directories.
no_temporaries()
{
	local found

	found=$(find "$@" -name '.dbtier-*' -o -name '*.part')
	[[ -z $found ]] || fail "temporary names are left: $found"
}

# state_is STATE: of the last promotion.
state_is()
{
	equal "$1" "$(dbtier status --all -n -r -o state 2>/dev/null | tail -1)" "the ledger's state"
}

# remember_world: what $SLOW holds before anything is promoted, for settle.
remember_world()
{
	facts "$SLOW" >"$TMP/world"
	facts "$SLOW" noinode >"$TMP/world-noinode"
}

# reads_right FILE...: each path opens and gives the bytes of the file of that name in $TMP/reference.
reads_right()
{
	local file

	for file in "$@"; do
		cmp -s "$TMP/reference/${file#"$SLOW/"}" "$file" || fail "$file does not give its bytes: $WHEN"
	done
}

# A copy that a reader has open stays until a recover finds it unused.
readers_let_go()
{
	[[ ${READERS-} ]] || return 0
	for ((tries = 0; tries < 600; tries++)); do
		expect 0 dbtier recover
		[[ $(ls -A "$FAST") ]] || return 0
		sleep 0.05
	done
}

# settle [noinode]: after recover everything is either promoted and healthy, or as it was and nothing is left. What
# is promoted is rolled back; then it must be as it was, too. $WHEN says in messages what happened before.
settle()
{
	local state

	run dbtier status
	[[ $status -eq 0 ]] || fail "status says unhealthy: $WHEN"
	no_temporaries "$SLOW" "$FAST"
	state=$(dbtier status --all -n -r -o state 2>/dev/null | tail -1)
	case $state in
	promoted)
		run dbtier verify
		[[ $status -eq 0 ]] || fail "verify finds other bytes: $WHEN"
		run dbtier rollback
		[[ $status -eq 0 ]] || fail "rollback fails: $WHEN"
		readers_let_go
		expect 0 dbtier recover
		err_has "nothing to recover"
		;;
	rolled-back | failed | "") readers_let_go ;;
	*) fail "the ledger is in state '$state': $WHEN" ;;
	esac
	# What 'rollback --keep-copy' leaves.
	[[ -z ${KEEPS_COPY-} ]] || rm -f "$FAST/a.bin"
	facts "$SLOW" "${1-}" >"$TMP/settled"
	same_facts "$TMP/world${1:+-noinode}" "$TMP/settled" "not as it was: $WHEN"
	nothing_below "$FAST" "$WHEN"
}
