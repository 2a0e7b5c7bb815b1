# Disks whose power can be cut, or that misbehave (fusedisks.c), with filesystems on them. Source it after pair.sh.
# shellcheck shell=bash

DISKS=$PAIR/disks

need_disks()
{
	[[ -x $DBT_TOOLS/fusedisks ]] || skip "fusedisks is not built (package libfuse3-dev)"
	[[ -w /dev/fuse ]] || skip "no /dev/fuse"
}

# disks_new NAME:MIB...
disks_new()
{
	mkdir -p "$DISKS"
	"$DBT_TOOLS/fusedisks" "$DISKS" "$@" &
	FUSEDISKS=$!
	until [[ -e $DISKS/control ]]; do
		kill -0 "$FUSEDISKS" 2>/dev/null || skip "no FUSE here"
		sleep 0.02
	done
	trap 'disks_end; pair_cleanup' EXIT
}

# control COMMAND...: see fusedisks.c.
control()
{
	echo "$*" >"$DISKS/control"
}

# flushes: how many since the mark.
flushes()
{
	cut -d' ' -f2 "$DISKS/control"
}

# disk_mkfs NAME TYPE
disk_mkfs()
{
	local options=(-q -K -f)

	need_command "mkfs.$2" "of mkfs.$2"
	[[ $2 != ext4 ]] || options=(-q -F -E "nodiscard,lazy_itable_init=0,lazy_journal_init=0")
	"mkfs.$2" "${options[@]}" "$DISKS/$1" >"$TMP/mkfs" 2>&1 || fail "mkfs.$2: $(cat "$TMP/mkfs")"
}

# disk_mount NAME TYPE POINT
disk_mount()
{
	mkdir -p "$3"
	mount -t "$2" -o loop "$DISKS/$1" "$3"
}

# disk_fsck NAME TYPE: nothing is to be repaired.
disk_fsck()
{
	case $2 in
	ext4) e2fsck -fn "$DISKS/$1" ;;
	xfs) xfs_repair -n -f "$DISKS/$1" ;;
	btrfs) btrfs check --readonly "$DISKS/$1" ;;
	esac >"$TMP/fsck" 2>&1 || fail "fsck finds errors on $1: ${WHEN-}: $(cat "$TMP/fsck")"
}

# disks_end: whatever is mounted from them goes first.
disks_end()
{
	local point

	for point in "$@" "$PAIR/slow" "$PAIR/fast" "$TMP/state"; do
		umount "$point" 2>/dev/null || true
	done
	umount "$DISKS" 2>/dev/null || umount -l "$DISKS" 2>/dev/null || true
	wait "${FUSEDISKS:-}" 2>/dev/null || true
}
