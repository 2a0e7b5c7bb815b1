#!/usr/bin/env bash
# Choosing for the user: promote --to auto, and promote --plan --budget.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
need_command jq jq
need_command sqlite3 sqlite3
. "$DBT_SOURCE/tests/support/pair.sh"
trap pair_cleanup EXIT
pair ext4 ext4 512M
mkdir -p "$TMP/xdg/dbtier"
printf 'tier %s hdd\ntier %s nvme\n' "$SLOW" "$FAST" >"$TMP/xdg/dbtier/dbtier.conf"
export XDG_CONFIG_HOME=$TMP/xdg

mkdir "$SLOW/db"
for name in a b c; do
	"$DBT_TOOLS/mkdb" diamond "$SLOW/db/$name.dmnd" 4M
done
expect 0 dbtier scan --no-probe "$SLOW"

# auto: a dry run makes nothing; the real one makes its directory at the fastest place with room.
run dbtier promote --to auto --no-probe -q --reserve 1M a
[[ $status -eq 0 ]] || fail "promote --to auto"
equal "$FAST/dbtier/a.dmnd" "$(readlink "$SLOW/db/a.dmnd")" "where auto went"
expect 0 dbtier rollback -q
# The configuration may say auto as well.
echo 'target auto' >>"$TMP/xdg/dbtier/dbtier.conf"
expect 0 dbtier promote --no-probe -q --reserve 1M b
equal "$FAST/dbtier/b.dmnd" "$(readlink "$SLOW/db/b.dmnd")" "where the configured auto went"
expect 0 dbtier rollback -q
# No place is faster than the fastest.
cp "$SLOW/db/a.dmnd" "$FAST/x.dmnd"
expect 3 dbtier promote "$FAST/x.dmnd" --to auto --no-probe
err_has "no faster place with room for '$FAST/x.dmnd' is known"

# --plan wants its options, and a scan.
expect 2 dbtier promote --plan --to auto
err_has "'--plan' wants '--budget SIZE'"
expect 2 dbtier promote --plan --budget 1G a --to auto
err_has "'--plan' takes no names"
expect 2 dbtier promote --plan --budget 1G --yes -o id --to auto
err_has "'--output' does not go with"
expect 2 dbtier promote --plan --budget 0 --to auto
err_has "'--budget' takes 1B or more"
expect 1 dbtier promote --plan --budget 1G --to "$TMP/nowhere"
err_has "cannot plan for the target '$TMP/nowhere'"
out_is_empty
expect 2 dbtier promote --budget 1G a --to auto
expect 2 dbtier promote --yes a --to auto
expect 2 dbtier promote --to auto
expect 1 "$DBTIER" --state-dir "$TMP/none" promote --plan --budget 1G --to auto
err_has "no scan is remembered"

# What fits into memory, or has no measured gain, is not chosen, and nothing is moved.
expect 0 dbtier promote --plan --budget 1G --to auto --json
equal 0 "$(jq '.plan | length' "$TMP/out")" "planned without a measured gain"
[[ ! -L $SLOW/db/a.dmnd ]] || fail "a plan moved something"
err_has "no database of the last scan would gain there within the budget"
# What is named twice is meant once.
expect 0 dbtier promote --dry-run --no-probe --force -rno path "$SLOW/db/a.dmnd" "$SLOW/db/a.dmnd" --to "$FAST"
equal 1 "$(wc -l <"$TMP/out")" "plans for a name that was given twice"

# With little memory and with measurements of a slow and a fast device, as the ledger keeps them.
printf 'MemTotal: 4096 kB\nMemFree: 1024 kB\nMemAvailable: 1024 kB\n' >"$TMP/meminfo"
mount --bind "$TMP/meminfo" /proc/meminfo 2>/dev/null || skip "cannot make memory scarce; the rest is right"
measurements()
{
	sqlite3 "$TMP/state/dbtier.db" "$1"
}
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/big.dmnd" 12M
"$DBT_TOOLS/mkdb" diamond "$FAST/some.dmnd" 12M
expect 0 dbtier scan --no-probe "$SLOW" "$FAST"
for name in slow fast; do
	point=$SLOW
	[[ $name == slow ]] || point=$FAST
	uuid=$(findmnt -n -o UUID "$point")
	loop=$(basename "$(findmnt -n -o SOURCE "$point")")
	key="$uuid|ext4|ext4 < loop $loop < tmpfs|$loop:|$(uname -r)" # as flow/remember.c makes it
	rate=60000000
	[[ $name == slow ]] || rate=3000000000
	for kind in "'random', 1" "'random', 4" "'stream', 1" "'stream', 4"; do
		measurements "INSERT OR REPLACE INTO measurement(key, pattern, jobs, wall_ns, iops, rate, lat_p50_ns, span, proved)
			VALUES('$key', $kind, $(date +%s)000000000, $((rate / 4096)), $rate, 100000, 12000000, 1)"
	done
done
expect 0 dbtier promote --plan --budget 1G --to auto --json
equal 4 "$(jq '.plan | length' "$TMP/out")" "databases with a gain"
jq -e 'all(.plan[]; .chosen and .gain > 1 and .use == null)' "$TMP/out" >/dev/null || fail "what is planned"
equal big "$(jq -r '.plan[-1].name' "$TMP/out")" "what brings least per byte"
# Jobs read the big one: it comes first, and the budget is spent on it.
measurements "CREATE TABLE observed(path BLOB PRIMARY KEY, class TEXT NOT NULL, wall_ns INTEGER NOT NULL,
	rate INTEGER NOT NULL, misses REAL NOT NULL, mean INTEGER NOT NULL, jumps REAL NOT NULL, waiting REAL NOT NULL)"
measurements "INSERT INTO observed
	VALUES(CAST('$SLOW/db/big.dmnd' AS BLOB), 'stream', $(date +%s)000000000, 50000000, 100, 500000, 0.1, 0.8)"
expect 0 dbtier promote --plan --budget 16M --to auto --json
equal 'big true,a true,b false,c false' "$(jq -r '[.plan[] | "\(.name) \(.chosen)"] | join(",")' "$TMP/out")" "the plan"
expect 0 dbtier promote --plan --budget 3M --to auto --json
jq -e 'all(.plan[]; .chosen | not)' "$TMP/out" >/dev/null || fail "chosen beyond the budget"
# Only --yes moves, and only what was chosen.
for name in a b c big; do
	[[ ! -L $SLOW/db/$name.dmnd ]] || fail "a plan moved '$name'"
done
expect 0 dbtier promote --plan --budget 16M --to auto --yes --no-probe --reserve 1M
[[ -L $SLOW/db/big.dmnd && -L $SLOW/db/a.dmnd && ! -L $SLOW/db/b.dmnd ]] || fail "something else was moved"
expect 0 dbtier rollback -q
[[ ! -L $SLOW/db/big.dmnd && ! -L $SLOW/db/a.dmnd ]] || fail "one rollback does not undo the plan"
