#!/usr/bin/env bash
# The configuration: what it sets, which file wins, how a slip in it is told, and who does not read it.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command jq jq

# The system's file is put over the machine's own one: nothing outside this namespace sees it.
etc=/etc/dbtier.conf
[[ -e $etc ]] || mount_dir=1
if [[ ${mount_dir-} ]]; then
	mkdir "$TMP/upper" "$TMP/work"
	mount -t tmpfs tmpfs "$TMP/work"
	mkdir "$TMP/work/u" "$TMP/work/w"
	mount -t overlay overlay -o "lowerdir=/etc,upperdir=$TMP/work/u,workdir=$TMP/work/w" /etc 2>/dev/null ||
		skip "cannot lay a file over /etc"
	: >$etc
else
	: >"$TMP/etc.conf"
	mount --bind "$TMP/etc.conf" $etc
fi
export XDG_CONFIG_HOME=$TMP/xdg
mkdir -p "$XDG_CONFIG_HOME/dbtier"
user=$XDG_CONFIG_HOME/dbtier/dbtier.conf

setting()
{
	expect 0 dbtier config --json
	jq -r --arg key "$1" '.settings[] | select(.key == $key) | "\(.value)|\(.source)"' "$TMP/out"
}

# Nothing set.
equal 'null|built in' "$(setting target)" "no target"
equal '5% of the target, at most 10G; twice that on /|built in' "$(setting reserve)" "no reserve"

# The system's file, then the user's over it. Remarks, blanks, tabs and odd characters.
cat >$etc <<'END'
# the system

  target	/srv/fast disk
reserve 5%
exclude *.partial
exclude /mnt/#odd; name=x
tier / ssd
END
equal "/srv/fast disk|$etc, line 3" "$(setting target)" "target"
equal "5%|$etc, line 4" "$(setting reserve)" "reserve"
equal "*.partial|$etc, line 5
/mnt/#odd; name=x|$etc, line 6" "$(setting exclude)" "excludes"
printf 'target /home/fast\ntier / hdd\nlimit-rate 20M' >"$user"
equal "/home/fast|$user, line 1" "$(setting target)" "target of the user"
equal "20M|$user, line 3" "$(setting limit-rate)" "a last line without an end"
equal "/ hdd|$user, line 2
/ ssd|$etc, line 7" "$(setting tier)" "tiers in the order in which they are asked"
expect 0 dbtier devices -rno tier /
equal hdd "$(cat "$TMP/out")" "the user's tier"

# What is set is done.
mkdir "$TMP/db" "$TMP/fast"
mount -t tmpfs -o size=16M tmpfs "$TMP/fast"
chmod 755 "$TMP/fast"
"$DBT_TOOLS/mkdb" diamond "$TMP/db/one.dmnd" 200K
"$DBT_TOOLS/mkdb" diamond "$TMP/db/two.partial" 200K
expect 0 dbtier scan --no-probe -rno name "$TMP/db"
equal one "$(cat "$TMP/out")" "what scan finds"
echo "target $TMP/fast" >"$user"
expect 0 dbtier promote --dry-run --force --no-probe -rno copy "$TMP/db/one.dmnd"
equal "$TMP/fast/one.dmnd" "$(cat "$TMP/out")" "where it would go"
mkdir "$TMP/fast/there"
expect 0 dbtier promote --dry-run --force --no-probe -rno copy "$TMP/db/one.dmnd" --to "$TMP/fast/there"
equal "$TMP/fast/there/one.dmnd" "$(cat "$TMP/out")" "the command line wins"
echo "reserve 99.9%" >>"$user"
expect 3 dbtier promote --dry-run --force --no-probe "$TMP/db/one.dmnd"
err_has "to be left free"
expect 0 dbtier promote --dry-run --force --no-probe --reserve 1M "$TMP/db/one.dmnd"

# Slips: the file, the line, what is wrong, what may have been meant. Nothing is done.
slip()
{
	printf '%s\n' "$1" >"$user"
	expect 2 dbtier config
	out_is_empty
	err_has "$user, line ${3-1}: $2"
}
slip 'traget /x' "unknown key 'traget' (did you mean 'target'?)"
slip 'target=/x' "unknown key 'target=/x'"
slip 'target' "'target' wants a value"
slip 'target x' "'target' wants an absolute directory, or auto, not 'x'"
slip 'reserve much' "'reserve' wants a size (10G) or a share (5%), not 'much'"
slip 'limit-rate 5%' "'limit-rate' wants a size such as 512K or 10G, not '5%'"
slip 'tier sda floppy' "'tier' wants WHAT ram|nvme|ssd|hdd|network, not 'sda floppy'"
slip 'tier ssd' "'tier' wants WHAT"
slip 'tier uuid= ssd' "'tier' wants WHAT"
slip 'tier model= ssd' "'tier' wants WHAT"
slip 'limit-rate 0' "'limit-rate' wants a size"
slip $'reserve 1G\rreserve 2G' 'the control character \x0d'
slip $'# \x1b[2J' 'the control character \x1b'
printf 'reserve 1G\n\0\ntraget /x\n' >"$user"
expect 2 dbtier config
err_has "$user, line 2: the control character \\x00"
# What editors of other systems write is understood.
printf '\xef\xbb\xbfreserve 7%%\r\nlimit-rate 20M\r\n' >"$user"
expect 0 dbtier config
equal "7%|$user, line 1" "$(setting reserve)" "after a byte order mark"
# A file of one's own that cannot be read is no missing one; a HOME that is somebody else's is none.
if command -v setpriv >/dev/null; then
	echo 'reserve 8%' >"$user"
	chmod 0600 "$user"
	as_nobody() { setpriv --reuid=65534 --regid=65534 --clear-groups env HOME="$HOME" XDG_CONFIG_HOME="${XDG_CONFIG_HOME-}" "$DBTIER" config; }
	status=0
	as_nobody >"$TMP/out" 2>"$TMP/err" || status=$?
	equal 1 "$status" "exit status with a file that cannot be read"
	err_has "cannot read '$user': permission denied"
	chmod 0700 "${user%/*}"
	as_nobody >"$TMP/out" 2>"$TMP/err" || fail "stumbles over the directory of somebody else"
	chmod 0755 "${user%/*}"
	chmod 0644 "$user"
fi
slip $'reserve 1G\n\n# again\nreserve 2G' "'reserve' was set before ($user, line 1)" 4
for command in "scan $TMP/db" devices "probe $TMP/db" "promote $TMP/db/one.dmnd"; do
	# shellcheck disable=SC2086
	expect 2 dbtier $command
	err_has "$user, line 4:"
done
# A slip in the file that is asked last is one as well.
echo >"$user"
echo 'colour red' >$etc
expect 2 dbtier config
err_has "$etc, line 1: unknown key 'colour'"
# Who undoes and repairs does not ask.
expect 0 dbtier status
expect 0 dbtier recover
expect 1 dbtier rollback --all
err_has "nothing is promoted"
# A directory in the file's place.
: >$etc
rm "$user"
mkdir "$user"
expect 1 dbtier config
err_has "cannot read '$user': is a directory"

# The example of the manual is understood.
rmdir "$user"
sed -n '/^\.Bd -literal/,/^\.Ed/{/^\./d;p}' "$DBT_BUILD/dbtier.conf.5" >"$user"
[[ -s $user ]] || fail "no example in dbtier.conf(5)"
expect 0 dbtier config
