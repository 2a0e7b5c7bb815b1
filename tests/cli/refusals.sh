#!/usr/bin/env bash
# Every refusal: a message that names the thing and says which rule it is, the documented exit status, and nothing
# changed: names, inodes, times, bytes and ledger are the same before and after. Then what looks like a reason to
# refuse and is none: odd names, a file that stands at the target already.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
need_command setpriv util-linux
need_command sqlite3 sqlite3

cases=0

untouched()
{
	facts_untouched "$SLOW"
	facts_untouched "$FAST"
	dbtier status --all --json 2>/dev/null || true # what is unhealthy is no news here
}

# The next lines of test data lie in a directory of their own.
fresh()
{
	DIR=$SLOW/$((++dirs))
	mkdir "$DIR"
}
dirs=0

make()
{
	local file

	for file in "$@"; do
		head -c 70000 /dev/urandom >"$file"
	done
}

# refused STATUS TEXT COMMAND...: as it is said above.
refused()
{
	local wanted=$1 text=$2

	shift 2
	untouched >"$TMP/before"
	expect "$wanted" "$@"
	err_has "$text"
	[[ $2 == reclaim ]] || out_is_empty # that says which one failed
	untouched >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "'$*' changed something"
	cases=$((cases + 1))
}

# never STATUS TEXT WHAT [OPTION...]: promoting it is refused, with --force, too.
never()
{
	refused "$1" "$2" promote "${@:3}"
}

# works WHAT [OPTION...]: promotes, and gives the same file back.
works()
{
	facts "$SLOW" >"$TMP/before"
	expect 0 promote "$@"
	expect 0 dbtier status
	expect 0 dbtier rollback
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "'$*' is not what it was"
	cases=$((cases + 1))
}

as_nobody()
{
	setpriv --reuid 65534 --regid 65534 --clear-groups "$@"
}

# --- the two filesystems ---------------------------------------------------------------------------------

check_space()
{
	fresh
	make "$DIR/a"
	fallocate -l "$(($(df --output=avail -B1 "$FAST" | tail -1) - 40000))" "$FAST/filler"
	never 3 "not enough space in '$FAST'" "$DIR/a" --reserve 0
	rm "$FAST/filler"
	never 3 "not enough space in '$FAST'" "$DIR/a" --reserve 99.9%
	works "$DIR/a" --reserve 1M
}

check_target()
{
	fresh
	make "$DIR/a" "$FAST/file"
	never 1 "the target directory '$FAST/missing' does not exist" "$DIR/a" --to "$FAST/missing"
	never 1 "cannot use '$FAST/file' as target directory: not a directory" "$DIR/a" --to "$FAST/file"
	rm "$FAST/file"
	mount -o remount,ro "$FAST"
	never 3 "read-only" "$DIR/a"
	mount -o remount,rw "$FAST"
	refused 3 "'$SLOW' is on the same filesystem" dbtier promote --force "$DIR/a" --to "$SLOW"
	refused 3 "--force" dbtier promote "$DIR/a" --to "$FAST" # no faster, by the kind of device
	# Memory, and a place that is emptied at boot.
	mkdir -p "$PAIR/ram"
	refused 3 "is in memory (tmpfs)" dbtier promote "$DIR/a" --to "$PAIR/ram"
	refused 3 "needs a disk" dbtier promote --force --reclaim "$DIR/a" --to "$PAIR/ram"
	works "$DIR/a" --to "$PAIR/ram"
}

# Two filesystems on one disk.
check_same_disk()
{
	local type

	type=$(findmnt -n -o FSTYPE -T "$TMP")
	[[ $type != tmpfs && $type != overlay ]] || return 0
	FS_MOUNTS=$PAIR fs_new one ext4 32M
	FS_MOUNTS=$PAIR fs_new other ext4 32M
	make "$PAIR/one/a"
	refused 3 "are on the same disk" dbtier promote "$PAIR/one/a" --to "$PAIR/other"
	expect 0 dbtier promote --force "$PAIR/one/a" --to "$PAIR/other"
	expect 0 dbtier rollback
	umount "$PAIR/one" "$PAIR/other"
}

check_cleaned_place()
{
	[[ -d /usr/lib/tmpfiles.d ]] || return 0
	fresh
	make "$DIR/a"
	mkdir "$FAST/cleaned"
	mount -t tmpfs tmpfs /usr/lib/tmpfiles.d
	echo "D $FAST/cleaned 1777 root root -" >/usr/lib/tmpfiles.d/test.conf
	never 3 "emptied at boot by systemd-tmpfiles (/usr/lib/tmpfiles.d/test.conf line 1" "$DIR/a" \
		--reclaim --to "$FAST/cleaned"
	# With the original kept it is allowed, with a warning that quotes the line.
	expect 0 promote "$DIR/a" --to "$FAST/cleaned"
	err_has "D $FAST/cleaned 1777 root root -"
	refused 3 "emptied at boot" dbtier reclaim "$DIR/a"
	expect 0 dbtier rollback
	umount /usr/lib/tmpfiles.d
	rmdir "$FAST/cleaned"
}

# --- the file --------------------------------------------------------------------------------------------

check_kind()
{
	fresh
	make "$DIR/a"
	: >"$DIR/empty"
	never 3 "'$DIR/empty' is empty" "$DIR/empty"
	mkfifo "$DIR/fifo"
	never 3 "'$DIR/fifo' is neither a regular file nor a directory" "$DIR/fifo"
	ln -s a "$DIR/link"
	never 3 "'$DIR/link' is a link already: its file is '$DIR/a'" "$DIR/link"
	ln -s nowhere "$DIR/dangling"
	never 3 "'$DIR/dangling' is a link that leads nowhere" "$DIR/dangling"
	rm "$DIR/empty" "$DIR/fifo" "$DIR/link" "$DIR/dangling"
	ln "$DIR/a" "$DIR/b"
	never 3 "'$DIR/a' has 2 names" "$DIR/a"
	rm "$DIR/b"
	mkdir "$DIR/none"
	echo text >"$DIR/none/notes.txt"
	never 3 "no database is recognised in the directory '$DIR/none'" "$DIR/none"
	make "$DIR/.a.dbtier-original"
	never 3 "'.a.dbtier-original' stands beside '$DIR/a'" "$DIR/a"
	rm "$DIR/.a.dbtier-original"
	make "$DIR/$(printf 'n%.0s' {1..240})"
	never 3 "is too long to keep the original" "$DIR/nnn"*
	touch "$PAIR/point"
	mount --bind "$DIR/a" "$DIR/a"
	never 3 "'$DIR/a' is a mount point" "$DIR/a"
	umount "$DIR/a"
	works "$DIR/a"
}

check_attributes()
{
	fresh
	make "$DIR/a"
	chattr +i "$DIR/a" 2>/dev/null || return 0
	never 3 "'$DIR/a' is immutable: 'chattr -i' lifts that" "$DIR/a"
	chattr -i "$DIR/a"
	chattr +a "$DIR/a"
	never 3 "'$DIR/a' is append-only: 'chattr -a' lifts that" "$DIR/a"
	chattr -a "$DIR/a"
	chattr +i "$DIR"
	never 3 "not writable" "$DIR/a"
	chattr -i "$DIR"
	mount -o remount,ro "$SLOW"
	never 3 "read-only" "$DIR/a"
	mount -o remount,rw "$SLOW"
	works "$DIR/a"
}

check_writers()
{
	fresh
	make "$DIR/a"
	exec 9>>"$DIR/a"
	never 3 "'$DIR/a' is open for writing" "$DIR/a"
	exec 9>&-
	works "$DIR/a"
	expect 0 promote "$DIR/a"
	exec 9>>"$DIR/.a.dbtier-original"
	refused 3 "is open for writing" dbtier reclaim "$DIR/a"
	exec 9>&-
	expect 0 dbtier rollback
}

check_sqlite()
{
	fresh
	# The log stays beside the file when its last user is killed.
	{
		sqlite3 "$DIR/live.db" 'PRAGMA journal_mode=wal; CREATE TABLE t(a); INSERT INTO t VALUES (1);' \
			".shell kill -9 \$PPID" || true
	} >/dev/null 2>&1
	[[ -s $DIR/live.db-wal ]] || fail "no write-ahead log to test with"
	never 3 "'$DIR/live.db' has a live" "$DIR/live.db"
	sqlite3 "$DIR/live.db" 'PRAGMA wal_checkpoint(TRUNCATE)' >/dev/null
	works "$DIR/live.db"
	make "$DIR/live.db-journal"
	never 3 "'$DIR/live.db' has a live" "$DIR/live.db"
}

check_sets()
{
	fresh
	"$DBT_TOOLS/mkdb" blast "$DIR/nr" 60K 2
	never 3 "belongs to the blast database 'nr', which must move whole: promote '$DIR/nr'" "$DIR/nr.00.psq"
	mv "$DIR/nr.01.pin" "$TMP/"
	never 3 "'$DIR/nr' is not complete" "$DIR/nr"
	mv "$TMP/nr.01.pin" "$DIR/"
	make "$FAST/nr"
	never 3 "'$FAST/nr' is in the way" "$DIR/nr"
	rm "$FAST/nr"
	works "$DIR/nr"
	"$DBT_TOOLS/mkdb" diamond "$DIR/other.dmnd" 60K
	never 1 "'$DIR' holds 2 databases, name the one that is meant" "$DIR"
}

check_names()
{
	never 1 "'nosuch.db' is neither a path nor a name from the last scan" nosuch.db
	never 1 "there is no '$SLOW/nosuch'" "$SLOW/nosuch"
	fresh
	mkdir "$DIR/one" "$DIR/two"
	"$DBT_TOOLS/mkdb" diamond "$DIR/one/same.dmnd" 60K
	"$DBT_TOOLS/mkdb" diamond "$DIR/two/same.dmnd" 60K
	expect 0 dbtier scan --no-probe "$DIR"
	never 1 "'same.dmnd' may mean '$DIR/one/same.dmnd', '$DIR/two/same.dmnd': give the path" same.dmnd
	never 1 "did you mean 'same.dmnd'?" sane.dmnd
	refused 1 "'same.dmnd' is no active promotion" dbtier rollback same.dmnd
	refused 1 "'same.dmnd' is no active promotion" dbtier reclaim same.dmnd
	refused 1 "nothing is promoted" dbtier verify 7
	refused 2 "--to" dbtier promote "$DIR/one/same.dmnd"
	refused 2 "--frobnicate" promote "$DIR/one/same.dmnd" --frobnicate
}

# --- what stands at the target ---------------------------------------------------------------------------

check_occupied()
{
	fresh
	make "$DIR/a" "$FAST/a"
	# The same size: only reading tells. That happens within the promotion, which the ledger then calls failed.
	facts "$SLOW" >"$TMP/before"
	facts "$FAST" >>"$TMP/before"
	expect 3 promote "$DIR/a"
	err_has "'$FAST/a' exists and holds other bytes"
	facts "$SLOW" >"$TMP/after"
	facts "$FAST" >>"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "an occupied name changed something"
	state_is failed
	echo more >>"$FAST/a"
	never 3 "'$FAST/a' exists with another size" "$DIR/a"
	cp "$DIR/a" "$FAST/a"
	ln "$FAST/a" "$FAST/b"
	never 3 "'$FAST/a' exists and has other names" "$DIR/a"
	rm "$FAST/b"
	chmod 666 "$FAST/a"
	never 3 "'$FAST/a' exists and others could write to it" "$DIR/a"
	chmod 644 "$FAST/a"
	chown 65534 "$FAST/a"
	never 3 "'$FAST/a' exists and others could write to it" "$DIR/a"
	chown 0 "$FAST/a"
	# Identical: taken over, and not deleted by the rollback.
	facts "$FAST" >"$TMP/theirs"
	works "$DIR/a"
	facts "$FAST" >"$TMP/after"
	same_facts "$TMP/theirs" "$TMP/after" "rollback touched a file that dbtier had not made"
	rm "$FAST/a"
	echo precious >"$TMP/victim"
	ln -s "$TMP/victim" "$FAST/a"
	never 3 "'$FAST/a' exists and is not a regular file" "$DIR/a"
	[[ $(cat "$TMP/victim") == precious ]] || fail "the file behind a link at the target was written"
	rm "$FAST/a"
	mkfifo "$FAST/a"
	never 3 "'$FAST/a' exists and is not a regular file" "$DIR/a"
	rm "$FAST/a"
	mkdir "$FAST/a"
	never 3 "'$FAST/a' exists and is not a regular file" "$DIR/a"
	rmdir "$FAST/a"
}

# --- who may ---------------------------------------------------------------------------------------------

check_permission()
{
	local mine

	fresh
	make "$DIR/a"
	cp "$DBTIER" "$PAIR/dbtier"
	mkdir -p "$PAIR/nobody"
	chmod 700 "$PAIR/nobody"
	chown 65534:65534 "$PAIR/nobody"
	mine=(as_nobody "$PAIR/dbtier" --state-dir "$PAIR/nobody" promote --force)
	mkdir "$FAST/open"
	chown 65534 "$FAST/open"
	refused 3 "the directory of '$DIR/a' is not writable" "${mine[@]}" "$DIR/a" --to "$FAST/open"
	chmod 1777 "$DIR"
	refused 3 "belongs to another user and its directory is sticky" "${mine[@]}" "$DIR/a" --to "$FAST/open"
	chmod 777 "$DIR"
	chmod 600 "$DIR/a"
	refused 1 "cannot open '$DIR/a': permission denied" "${mine[@]}" "$DIR/a" --to "$FAST/open"
	chown 65534:65534 "$DIR/a"
	refused 3 "the target directory '$FAST' is not writable" "${mine[@]}" "$DIR/a" --to "$FAST"
	# An ordinary user with a file and a target of their own.
	facts "$SLOW" >"$TMP/before"
	expect 0 "${mine[@]}" "$DIR/a" --to "$FAST/open"
	cases=$((cases + 1))
	expect 0 as_nobody "$PAIR/dbtier" --state-dir "$PAIR/nobody" rollback
	facts "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "a user's file is not what it was"
	nothing_below "$FAST/open" "after a user's rollback"
	# The readers of the file could not come to the copy.
	chown root:root "$DIR/a"
	chmod 644 "$DIR/a"
	mkdir -m 700 "$FAST/closed"
	never 3 "choose a directory that all readers may enter" "$DIR/a" --to "$FAST/closed"
	rmdir "$FAST/closed" "$FAST/open"
}

check_exports()
{
	fresh
	make "$DIR/a"
	mkdir -p "$PAIR/etc"
	echo "$SLOW *(ro)" >"$PAIR/etc/exports"
	[[ -e /etc/exports ]] || return 0
	mount --bind "$PAIR/etc/exports" /etc/exports
	refused 3 "'$DIR/a' is exported to other machines" dbtier promote "$DIR/a" --to "$FAST"
	works "$DIR/a"
	umount /etc/exports
}

# check_kinds_of_filesystem: networks and programs in user space, as source and as target; overlays.
check_kinds_of_filesystem()
{
	local type pid

	fresh
	make "$DIR/a"
	mkdir -p "$PAIR/foreign" "$PAIR/layers"
	if mount -t tmpfs tmpfs "$PAIR/layers" && mkdir "$PAIR/layers"/{lower,upper,work} && make "$PAIR/layers/lower/a" &&
		mount -t overlay -o "lowerdir=$PAIR/layers/lower,upperdir=$PAIR/layers/upper,workdir=$PAIR/layers/work" \
			overlay "$PAIR/foreign" 2>/dev/null; then
		never 3 "choose a directory on a disk" "$DIR/a" --to "$PAIR/foreign"
		refused 3 "is inside an overlay (overlay): promote it where its layer lies" dbtier promote \
			"$PAIR/foreign/a" --to "$FAST"
		umount "$PAIR/foreign"
	fi
	umount "$PAIR/layers" 2>/dev/null || true
	[[ -x $DBT_TOOLS/fuseodd && -w /dev/fuse ]] || return 0
	for type in sshfs mergerfs; do
		"$DBT_TOOLS/fuseodd" "$DIR" "$PAIR/foreign" $type 2>/dev/null &
		pid=$!
		until mountpoint -q "$PAIR/foreign"; do
			kill -0 $pid 2>/dev/null || return 0
			sleep 0.02
		done
		if [[ $type == sshfs ]]; then
			never 3 "is on a network filesystem (fuse.sshfs): choose a local directory" "$DIR/a" --to "$PAIR/foreign"
			refused 3 "other machines would see a link that leads nowhere; --force does it all the same" \
				dbtier promote "$PAIR/foreign/a" --to "$FAST"
			expect 0 promote "$PAIR/foreign/a"
			[[ -L $DIR/a ]] || fail "not promoted from a network with --force"
			expect 0 dbtier rollback
		else
			never 3 "is on a filesystem in user space (fuse.mergerfs)" "$DIR/a" --to "$PAIR/foreign"
		fi
		umount "$PAIR/foreign"
		wait $pid || true
	done
}

# What is no reason to refuse, but has to be told.
check_told()
{
	fresh
	make "$DIR/a"
	# Who read the file before goes on reading the slow one.
	exec 9<"$DIR/a"
	expect 0 promote "$DIR/a"
	exec 9<&-
	err_has "1 process opened '$DIR/a' before and reads the slow file until it ends: "
	expect 0 dbtier rollback
	# Others see a link into their own disks.
	mkdir -p "$PAIR/etc"
	echo "$SLOW *(ro)" >"$PAIR/etc/exports"
	if [[ -e /etc/exports ]] && mount --bind "$PAIR/etc/exports" /etc/exports; then
		expect 0 promote "$DIR/a"
		err_has "'$DIR' is exported to other machines (/etc/exports:1: $SLOW *(ro)): they look for '$FAST/a'"
		expect 0 dbtier rollback
		umount /etc/exports
	fi
	# Files that nobody touches for ten days go.
	[[ -d /usr/lib/tmpfiles.d ]] || return 0
	mkdir "$FAST/aged"
	mount -t tmpfs tmpfs /usr/lib/tmpfiles.d
	echo "d $FAST/aged 1777 root root 10d" >/usr/lib/tmpfiles.d/test.conf
	expect 0 promote "$DIR/a" --to "$FAST/aged"
	err_has "d $FAST/aged 1777 root root 10d"
	expect 0 dbtier rollback
	umount /usr/lib/tmpfiles.d
	rmdir "$FAST/aged"
	cases=$((cases + 4))
}

# What reclaim refuses: a target that is away, an original that somebody has changed.
check_companions()
{
	local end

	fresh
	make "$DIR/a"
	for end in wal shm journal lock; do
		make "$DIR/a-$end"
		expect 3 promote "$DIR/a-$end"
		err_has "'$DIR/a-$end' belongs to 'a' beside it"
		[[ ! -L $DIR/a-$end ]] || fail "a-$end was moved"
		rm "$DIR/a-$end"
	done
	make "$DIR/b-wal"
	expect 0 promote "$DIR/b-wal"
	expect 0 dbtier rollback "$DIR/b-wal"
}

check_reclaim()
{
	fresh
	make "$DIR/a"
	expect 0 promote "$DIR/a"
	umount "$FAST"
	# The recovery that runs before has returned to the original: there is nothing to reclaim.
	expect 1 dbtier reclaim "$DIR/a"
	err_has "the filesystem of the copy was not mounted"
	[[ -f $DIR/a && ! -L $DIR/a ]] || fail "the original is gone"
	mount -o loop "$PAIR/fast.img" "$FAST"
	expect 0 dbtier recover
	expect 0 promote "$DIR/a"
	echo more >>"$DIR/.a.dbtier-original"
	refused 3 "was changed" dbtier reclaim "$DIR/a"
	expect 0 dbtier rollback --keep-changes
	rm -f "$DIR/.a.dbtier-original"
	cases=$((cases + 1))
}

# Somebody waits with a file under the copy's name, in a directory where anybody may: nothing is followed, opened for
# long, read or overwritten, also by root.
check_hostile_names()
{
	local name=$FAST/shared/a

	fresh
	make "$DIR/a"
	mkdir -m 1777 "$FAST/shared"
	echo precious >"$FAST/precious"
	ln -s ../precious "$name"
	never 3 "'$name' exists and is not a regular file" "$DIR/a" --to "$FAST/shared"
	rm "$name"
	ln -s "$DIR/a" "$name" # the source itself
	never 3 "'$name' exists and is not a regular file" "$DIR/a" --to "$FAST/shared"
	rm "$name"
	mkfifo "$name"
	never 3 "'$name' exists and is not a regular file" "$DIR/a" --to "$FAST/shared"
	rm "$name"
	mknod "$name" c 1 5
	never 3 "'$name' exists and is not a regular file" "$DIR/a" --to "$FAST/shared"
	rm "$name"
	cp "$DIR/a" "$name"
	chown 65534 "$name" # the same bytes, and somebody who can change them later
	never 3 "'$name' exists and others could write to it" "$DIR/a" --to "$FAST/shared"
	rm "$name"
	cp "$DIR/a" "$FAST/theirs"
	ln "$FAST/theirs" "$name"
	never 3 "'$name' exists and has other names" "$DIR/a" --to "$FAST/shared"
	rm -r "$FAST/shared" "$FAST/theirs" "$FAST/precious"
}

# --- names that must work --------------------------------------------------------------------------------

check_odd_names()
{
	local name

	fresh
	for name in "a blank" $'new\nline' "-dash" $'invalid\xff\xfeutf8' "quote'\"\$(x)" "percent%20#?" "ünï" ".hidden" \
		"$(printf 'n%.0s' {1..237})"; do
		make "$DIR/$name"
		works "$DIR/$name"
		expect 0 promote "$DIR/$name"
		expect 0 dbtier status --json
		equal 1 "$(sqlite3 :memory: "SELECT json_valid(readfile('$TMP/out'))")" "JSON of '$name'"
		expect 0 dbtier rollback "$DIR/$name"
		rm "$DIR/$name"
	done
	make "$DIR/-dash"
	cd "$DIR"
	expect 0 promote -- -dash
	cd "$DBT_SOURCE"
	expect 0 dbtier rollback
}

for types in "ext4 xfs" "btrfs ext4"; do
	# shellcheck disable=SC2086
	pair $types
	expect 0 dbtier recover
	before=$cases
	check_space
	check_target
	check_cleaned_place
	check_kind
	check_attributes
	check_writers
	check_sqlite
	check_sets
	check_names
	check_occupied
	check_permission
	check_exports
	check_told
	check_companions
	check_reclaim
	check_hostile_names
	check_kinds_of_filesystem
	check_odd_names
	nothing_below "$FAST" "at the end"
	echo "$types: $((cases - before)) cases"
done
check_same_disk
echo "$cases cases, 0 wrong"
