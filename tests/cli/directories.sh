#!/usr/bin/env bash
# A directory database moves as one name: what comes back is what was, from every filesystem to another, with the
# original kept and reclaimed; what may not be in it is refused; each word of status by doing the thing; readers open
# files in it without a pause while it goes to and fro; thousands of files take no time of a minute.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
. "$DBT_SOURCE/tests/support/tree.sh"
need_command setfattr attr
need_command setfacl acl

rounds=0 refusals=0 states=0

# Times of the directories below, which facts leaves out: those of the database itself stay, too.
dir_times()
{
	(cd "$1" && find . -type d -printf '%p %T@\n' | LC_ALL=C sort)
}

# --- there and back -------------------------------------------------------------------------------------------

odd_names()
{
	local name

	for name in $'new\nline' $'\xff\xfe' '-rf' ' blank ' "quote'"; do
		echo "$name" >"$1/$name"
	done
	truncate -s 8M "$1/holes"
	head -c 65536 /dev/urandom | dd of="$1/holes" bs=64K seek=50 conv=notrunc status=none
	chmod 4711 "$1/-rf"
	ln -s /etc/hostname "$1/absolute"
}

# What facts says without what only a copy has, or a filesystem says in its own way.
portable()
{
	sed -E '/^(user.dbtier.copy|trusted.SGI_ACL|# file: \.$|$)/d'
}

# round [OPTION]
round()
{
	local inode=

	[[ -z ${1-} ]] || inode=noinode
	facts "$SLOW" $inode >"$TMP/before"
	dir_times "$SLOW/rocks" >"$TMP/times"
	expect 0 promote "$@" "$SLOW/rocks"
	err_has "'$SLOW/rocks/..' is '$FAST'"
	equal "$FAST/rocks" "$(readlink "$SLOW/rocks")" "the link"
	facts "$SLOW/rocks/." noinode >"$TMP/copy"
	facts "$TMP/reference/rocks" noinode | portable >"$TMP/wanted"
	portable <"$TMP/copy" >"$TMP/now"
	same_facts "$TMP/wanted" "$TMP/now" "$types: the copy is not what was promoted"
	dir_times "$SLOW/rocks/." >"$TMP/now"
	same_facts "$TMP/times" "$TMP/now" "$types: times of directories in the copy"
	expect 0 dbtier scan "$SLOW" -n -r -o name,state
	equal 1 "$(grep -c rocks "$TMP/out")" "how often scan shows it"
	out_has "rocks promoted"
	expect 0 dbtier status
	expect 0 dbtier verify
	expect 0 dbtier rollback
	state_is rolled-back
	facts "$SLOW" $inode >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "$types: $* is not what it was"
	dir_times "$SLOW/rocks" >"$TMP/now"
	same_facts "$TMP/times" "$TMP/now" "$types: times of directories"
	nothing_below "$FAST" "$types: after rollback"
	equal "" "$(find "$TMP/state" -name '*.tree*' -o -name '*.back*')" "lists that are left"
	expect 0 dbtier recover
	err_has "nothing to recover"
	rounds=$((rounds + 1))
}

there_and_back()
{
	for types in "ext4 xfs" "xfs btrfs" "btrfs ext4"; do
		# shellcheck disable=SC2086
		pair $types
		make_tree "$SLOW/rocks"
		odd_names "$SLOW/rocks/sub"
		rm -rf "$TMP/reference"
		cp -a "$SLOW" "$TMP/reference"
		round
		round --reclaim
	done
}

# --- refusals -------------------------------------------------------------------------------------------------

# begin: a fresh directory at $DB.
begin()
{
	rm -rf "${SLOW:?}"/* "$SLOW"/.[a-z]* "${FAST:?}"/* "$TMP/state" 2>/dev/null || true
	DB=$SLOW/rocks COPY=$FAST/rocks KEPT=$SLOW/.rocks.dbtier-original
	make_tree "$DB"
	rm -rf "$TMP/reference"
	cp -a "$SLOW" "$TMP/reference"
}

# refused TEXT [WHAT]: promoting it is, with --force too, and nothing is changed.
refused()
{
	facts_untouched "$SLOW" >"$TMP/before"
	expect 3 promote "${2:-$DB}"
	err_has "$1"
	facts_untouched "$SLOW" >"$TMP/after"
	same_facts "$TMP/before" "$TMP/after" "a refused promotion changed something"
	nothing_below "$FAST" "a refused promotion"
	refusals=$((refusals + 1))
}

refuse()
{
	begin
	ln "$DB/000009.sst" "$DB/again"
	refused "hard links"
	rm "$DB/again"
	ln "$DB/000009.sst" "$SLOW/elsewhere"
	refused "hard links"
	rm "$SLOW/elsewhere"
	mkfifo "$DB/sub/fifo"
	refused "neither a file nor a directory"
	rm "$DB/sub/fifo"
	mknod "$DB/sub/null" c 1 3
	refused "neither a file nor a directory"
	rm "$DB/sub/null"
	for text in ../out sub/../../out ..; do
		ln -s "$text" "$DB/bad"
		refused "outside of the directory"
		rm "$DB/bad"
	done
	ln -s ../../out "$DB/sub/bad"
	refused "outside of the directory"
	rm "$DB/sub/bad"
	touch "$DB/.x.dbtier-original"
	refused "roll that one back first"
	rm "$DB/.x.dbtier-original"
	chattr +i "$DB/sub/000011.sst"
	refused "immutable"
	chattr -i "$DB/sub/000011.sst"
	mount -t tmpfs tmpfs "$DB/sub/empty"
	refused "another filesystem"
	umount "$DB/sub/empty"
	# The same filesystem, but another mount. Below itself, where find would complain.
	mount --bind "$DB/sub" "$DB/sub/empty"
	expect 3 promote "$DB"
	err_has "another filesystem"
	umount "$DB/sub/empty"
	mount --bind "$DB/000009.sst" "$DB/CURRENT"
	expect 3 promote "$DB"
	umount "$DB/CURRENT"
	mount --bind "$DB" "$DB"
	expect 3 promote "$DB"
	err_has "mount point"
	umount "$DB"
	touch "$KEPT"
	refused "stands beside"
	rm "$KEPT"
	exec 8>>"$DB/sub/000011.sst"
	refused "open for writing"
	exec 8>&-
	exec 8<>"$DB/LOCK"
	refused "open for writing"
	exec 8>&-
	# One of its files alone.
	refused "must move whole: promote '$DB'" "$DB/000009.sst"
	mkdir "$COPY"
	expect 3 promote "$DB"
	err_has "'$COPY' exists"
	rmdir "$COPY"
	# Inside a promoted directory nothing moves by itself.
	expect 0 promote "$DB"
	expect 3 promote "$DB/000009.sst"
	expect 1 dbtier rollback "$DB/000009.sst"
	err_has "'$DB'"
	expect 0 dbtier rollback
	if pair btrfs ext4 && command -v btrfs >/dev/null; then
		begin
		btrfs -q subvolume create "$DB/sub/volume"
		refused "subvolume"
		btrfs -q subvolume delete "$DB/sub/volume"
		mv "$DB" "$SLOW/old"
		btrfs -q subvolume create "$DB"
		cp -a "$SLOW/old/." "$DB"
		refused "is a subvolume"
	fi
}

# --- drift ----------------------------------------------------------------------------------------------------

# health WORD [STATUS]
health()
{
	expect "${2:-4}" dbtier status
	equal "$1" "$(dbtier status -n -r -o health 2>/dev/null)" "health"
}

right()
{
	diff -r "$TMP/reference/rocks" "$DB" >/dev/null || fail "the path does not give its bytes"
}

as_before()
{
	right
	nothing_below "$FAST" "after everything"
	[[ ! -e $KEPT ]] || fail "the kept name is left"
	states=$((states + 1))
}

# The copy was changed: refused, and undone when told to.
modified()
{
	health copy-modified
	run dbtier recover
	health copy-modified
	expect 3 dbtier rollback
	err_has "--keep-changes"
	[[ -L $DB ]] || fail "a refused rollback changed something"
	expect 1 dbtier reclaim rocks
	err_has "original stays"
	cp -a "$COPY" "$TMP/changed"
	if [[ $1 == keep ]]; then
		expect 0 dbtier rollback --keep-changes
		err_has "older original"
		diff -r "$TMP/changed" "$DB" >/dev/null || fail "the changes were not kept"
		diff -r "$TMP/reference/rocks" "$KEPT" >/dev/null || fail "the older original is gone"
		nothing_below "$FAST" "after --keep-changes"
		states=$((states + 1))
	else
		expect 0 dbtier rollback --discard-changes
		as_before
	fi
	rm -rf "$TMP/changed"
}

drift()
{
	local how

	pair ext4 xfs
	begin
	expect 0 promote "$DB"
	health ok 0
	rm -rf "$COPY"
	health copy-missing
	expect 0 dbtier recover
	out_has "returned to the original"
	as_before

	for how in keep discard; do
		begin
		expect 0 promote "$DB"
		echo more >>"$COPY/sub/000011.sst"
		modified $how
		begin
		expect 0 promote "$DB"
		echo new >"$COPY/sub/empty/new"
		modified $how
		begin
		expect 0 promote "$DB"
		rm "$COPY/sub/link"
		modified $how
		begin
		expect 0 promote "$DB"
		cp -a "$COPY/LOCK" "$TMP/lock"
		mv "$TMP/lock" "$COPY/LOCK"
		modified $how
	done

	# With the times put back only the ctime tells, and reading decides.
	begin
	expect 0 promote "$DB"
	chmod 600 "$COPY/000009.sst"
	chmod 644 "$COPY/000009.sst"
	health copy-modified
	expect 0 dbtier verify
	expect 0 dbtier rollback
	as_before
	begin
	expect 0 promote "$DB"
	printf x | dd of="$COPY/000009.sst" bs=1 seek=99 conv=notrunc status=none
	touch -r "$KEPT/000009.sst" "$COPY/000009.sst"
	health copy-modified
	expect 4 dbtier verify
	err_has "000009.sst"
	expect 3 dbtier rollback
	expect 0 dbtier rollback --discard-changes
	as_before

	begin
	expect 0 promote "$DB"
	rm "$DB"
	cp -a "$TMP/reference/rocks" "$DB"
	health link-replaced
	expect 3 dbtier rollback
	err_has "something newer"
	[[ -d $KEPT && -d $COPY ]] || fail "a refused rollback removed something"

	begin
	expect 0 promote "$DB"
	rm "$DB"
	mv "$KEPT" "$DB"
	health link-replaced
	expect 0 dbtier recover
	as_before

	begin
	expect 0 promote "$DB"
	rm -rf "$KEPT"
	health original-missing
	expect 3 dbtier reclaim rocks
	expect 3 dbtier rollback
	right
	expect 0 dbtier rollback --keep-changes
	as_before

	for how in "echo x >>$KEPT/CURRENT" "rm $KEPT/sub/link" "touch $KEPT/sub/empty/new"; do
		begin
		expect 0 promote "$DB"
		eval "$how"
		health original-changed
		expect 3 dbtier reclaim rocks
		expect 3 dbtier rollback
		right
		expect 0 dbtier rollback --keep-changes
		right
		nothing_below "$FAST" "after --keep-changes"
		states=$((states + 1))
	done

	begin
	expect 0 promote "$DB"
	umount "$FAST"
	health not-mounted
	mount -o loop "$PAIR/fast.img" "$FAST"
	health ok 0
	umount "$FAST"
	expect 0 dbtier recover
	right
	mount -o loop "$PAIR/fast.img" "$FAST"
	expect 0 dbtier recover
	out_has "its copy is there again"
	expect 0 dbtier recover --repromote
	health ok 0
	right
	expect 0 dbtier rollback "$DB"
	as_before

	begin
	expect 0 promote --reclaim "$DB"
	mv "$COPY" "$FAST/away"
	health copy-missing
	expect 1 dbtier rollback
	mv "$FAST/away" "$COPY"
	health ok 0
	expect 3 dbtier rollback --discard-changes
	expect 0 dbtier rollback
	as_before

	# A file that somebody puts into a kept original while it is reclaimed is not the original's.
	begin
	expect 0 promote "$DB"
	(cd "$KEPT/sub" && exec 9<. && rm -rf "$TMP/state/none" && expect 0 dbtier rollback)
	as_before

	# The ledger, and the list beside it.
	begin
	expect 0 promote "$DB"
	mv "$TMP/state" "$TMP/lost"
	expect 0 dbtier rollback "$DB"
	right
	diff -r "$COPY" "$DB" >/dev/null || fail "the copy is not whole"
	rm -rf "$TMP/lost"
	begin
	expect 0 promote "$DB"
	rm -rf "$TMP/state"
	echo x >>"$COPY/sub/000011.sst"
	expect 3 dbtier rollback "$DB"
	err_has "differ"
	expect 0 dbtier rollback --discard-changes "$DB"
	right
	begin
	expect 0 promote "$DB"
	for list in "$TMP/state"/*.tree; do
		printf 'X' | dd of="$list" bs=1 seek=40 conv=notrunc status=none
	done
	expect 4 dbtier status
	err_has "is damaged"
	expect 1 dbtier rollback
	err_has "is damaged"
	right
	expect 0 dbtier rollback --discard-changes
	right
	states=$((states + 4))
}

# --- readers --------------------------------------------------------------------------------------------------

# Files in it are opened, read and compared without a pause.
cycles()
{
	local reader i n=${DBT_CYCLES:-25}

	pair "$1" "$2"
	begin
	nice -n 19 "$DBT_TOOLS/runreaders" 4 "$DB/sub/000011.sst" "$TMP/reference/rocks/sub/000011.sst" >"$TMP/readers" &
	reader=$!
	until grep -q ready "$TMP/readers"; do
		kill -0 "$reader" || fail "the readers did not start"
		sleep 0.01
	done
	for ((i = 0; i < n; i++)); do
		expect 0 promote "$DB"
		expect 0 dbtier rollback
		# What a reader has open is removed when nobody has it any more.
		until [[ -z $(ls -A "$FAST") ]]; do
			expect 0 dbtier recover
		done
	done
	kill -TERM "$reader"
	wait "$reader" || fail "a reader failed: $(tail -1 "$TMP/readers")"
	echo "$1: $n cycles, $(tail -1 "$TMP/readers")"
	right
}

# --- many files -----------------------------------------------------------------------------------------------

many()
{
	local n=${DBT_FILES:-1000} begin_ns

	pair ext4 xfs "$((n / 8 + 400))M"
	begin
	python3 - "$DB" "$n" <<-'END' 2>/dev/null || skip "needs python3"
		import os, sys
		for i in range(int(sys.argv[2])):
		    d = "%s/many/%03d/%d" % (sys.argv[1], i % 100, i % 7)
		    os.makedirs(d, exist_ok=True)
		    with open("%s/%06d" % (d, i), "wb") as f:
		        f.write(os.urandom(65536 if i % 10 else 10))
	END
	sync
	facts "$SLOW" >"$TMP/before"
	for step in "promote $DB" "dbtier status" "dbtier rollback" "promote --reclaim $DB" "dbtier rollback"; do
		begin_ns=$(date +%s%N)
		# shellcheck disable=SC2086
		expect 0 $step
		echo "$n files: $step: $((($(date +%s%N) - begin_ns) / 1000000)) ms"
		[[ $step != "dbtier rollback" || ${once-} ]] || {
			once=1
			facts "$SLOW" >"$TMP/after"
			same_facts "$TMP/before" "$TMP/after" "many files are not what they were"
		}
	done
	nothing_below "$FAST" "after many files"
}

there_and_back
pair ext4 xfs
refuse
drift
cycles ext4 xfs
cycles btrfs ext4
many
echo "$rounds promotions and rollbacks, $refusals refusals, $states states, 0 wrong"
