#!/usr/bin/env bash
# systemd understands the units, and the order that they ask for is possible.
. "$(dirname "$0")/../support/lib.sh"
need_command systemd-analyze systemd

DESTDIR=$TMP/root cmake --install "$DBT_BUILD" --prefix /usr >/dev/null
units=$TMP/units
mkdir "$units"
for file in "$TMP"/root/usr/lib/systemd/system/dbtier-*; do
	# The program need not be installed here; its path is checked apart.
	sed "s|^ExecStart=/usr/[a-z/]*/dbtier|ExecStart=$DBTIER|" "$file" >"$units/$(basename "$file")"
	! grep -q '@[a-z]*@' "$file" || fail "$(basename "$file") has a place holder left"
done
names=(dbtier-recover.service dbtier-recover@mnt-store.service dbtier-repromote.service dbtier-status.service
	dbtier-status.timer)
cat >"$units/mnt-store.mount" <<'END'
[Mount]
What=/dev/mapper/cryptstore
Where=/mnt/store
Options=nofail
END

# verify NAME...: what systemd has to say about our units, in $TMP/said. Units of the machine that it does not know
# are not our concern.
verify()
{
	(cd "$units" && SYSTEMD_UNIT_PATH=$units: systemd-analyze verify --man=no "${@/#/$units/}") >"$TMP/said" 2>&1 || true
	sed -i '/dbtier\|sysinit\|cycle/!d' "$TMP/said"
}
ln -s dbtier-recover@.service "$units/dbtier-recover@mnt-store.service"
verify "${names[@]}"
[[ ! -s $TMP/said ]] || fail "$(cat "$TMP/said")"

# The order is a real one: turned round, systemd finds the cycle.
mkdir "$units/sysinit.target.wants"
ln -s ../dbtier-recover.service "$units/sysinit.target.wants/"
verify dbtier-recover.service sysinit.target
[[ ! -s $TMP/said ]] || fail "$(cat "$TMP/said")"
sed -i 's/^Before=.*/After=sysinit.target/; s/^After=local.*/Before=local-fs.target/' "$units/dbtier-recover.service"
verify dbtier-recover.service sysinit.target
grep -q 'cycle' "$TMP/said" || echo "note: this systemd-analyze does not look for cycles"

# What they run is a command line that exists.
while read -r line; do
	# shellcheck disable=SC2086 # several words
	"$DBTIER" ${line#*dbtier } --help >/dev/null || fail "'$line' cannot be meant"
done < <(sed -n 's/^ExecStart=//p' "$TMP"/root/usr/lib/systemd/system/dbtier-*)
