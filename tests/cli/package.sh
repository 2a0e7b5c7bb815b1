#!/usr/bin/env bash
# The packages: what is in them, what lintian says, and with DBT_FULL=1 the .deb installed in a fresh Debian tree, where
# the commands of the README are run and the demonstration is given.
# timeout: 900
. "$(dirname "$0")/../support/lib.sh"
[[ -z ${DBT_FULL-} ]] || need_mounts "$@"
need_command dpkg-deb dpkg
need_command dpkg-shlibdeps dpkg-dev
grep -q 'CMAKE_C_FLAGS:STRING=.*sanitize' "$DBT_BUILD/CMakeCache.txt" && skip "a sanitised program is not packaged"

cd "$TMP"
cpack --config "$DBT_BUILD/CPackConfig.cmake" -G DEB -B "$TMP/deb" >"$TMP/cpack" 2>&1 || {
	cat "$TMP/cpack" >&2
	fail "cpack -G DEB"
}
deb=$(find deb -maxdepth 1 -name '*.deb')
[[ $deb ]] || fail "no .deb"

# holds FILES: what both packages have.
holds()
{
	local file

	for file in /usr/bin/dbtier /usr/share/man/man1/dbtier.1 /usr/share/man/man5/dbtier.conf.5 \
		/usr/share/man/man7/dbtier-guarantees.7 /etc/dbtier.conf /usr/share/dbtier/dbtier.schema.json \
		/usr/share/bash-completion/completions/dbtier /usr/share/zsh/vendor-completions/_dbtier \
		/usr/share/fish/vendor_completions.d/dbtier.fish /lib/systemd/system/dbtier-recover.service \
		/lib/systemd/system/dbtier-recover@.service /lib/systemd/system/dbtier-status.timer /copyright; do
		grep -qE "$file(\.gz)?\$" "$1" || fail "the package lacks $file"
	done
	! grep -qE '/(tests?|mkdb|core)/' "$1" || fail "the package holds what belongs to the tests"
}
dpkg-deb -c "$deb" | awk '{ print $6 }' | sed 's/^\.//' >files
holds files
dpkg-deb -f "$deb" Depends >depends
for library in libc6 libblkid1 libmount1 libsmartcols1 libsqlite3-0 libjansson4 libxxhash0 'libarchive13'; do
	grep -q "$library" depends || fail "the dependency on $library is missing: $(cat depends)"
done
dpkg-deb -e "$deb" control
equal /etc/dbtier.conf "$(cat control/conffiles)" "conffiles"
for script in postinst prerm postrm; do
	sh -n "control/$script"
	[[ -x control/$script ]] || fail "$script is not executable"
done
if command -v lintian >/dev/null; then
	# A package without a bug of Debian's own to close, and without a source package around it.
	lintian --allow-root --fail-on error --suppress-tags initial-upload-closes-no-bugs "$deb" || fail "lintian"
else
	echo "lintian is not installed: not asked"
fi

if command -v rpmbuild >/dev/null; then
	cpack --config "$DBT_BUILD/CPackConfig.cmake" -G RPM -B "$TMP/rpm" >"$TMP/cpack" 2>&1 || {
		cat "$TMP/cpack" >&2
		fail "cpack -G RPM"
	}
	rpm=$(find rpm -maxdepth 1 -name '*.rpm')
	rpm -qpl "$rpm" >files 2>/dev/null
	holds files
	equal /etc/dbtier.conf "$(rpm -qpc "$rpm" 2>/dev/null)" "configuration files of the rpm"
	! grep -qxE '/etc|/usr|/usr/bin|/usr/lib/systemd|/usr/share/man' files || fail "the rpm owns directories of others"
else
	echo "rpmbuild is not installed: no .rpm was made"
fi

[[ ${DBT_FULL-} ]] || exit 0

# --- a fresh tree ---------------------------------------------------------------------------------------------------

need_root
need_command debootstrap debootstrap
mirror=$(find /etc/apt \( -name '*.list' -o -name '*.sources' \) -exec cat {} + |
	sed -n 's/^URIs: *\([^ ]*\).*/\1/p; s/^deb \(\[[^]]*\] \)\?\([^ ]*\) .*/\2/p' | sed -n 1p)
[[ $mirror ]] || skip "no mirror is configured"
suite=$(. /etc/os-release && echo "$VERSION_CODENAME")
root=${DBT_TREE:-$TMP/tree}
[[ -d $root/usr ]] || debootstrap --variant=minbase "$suite" "$root" "$mirror" >debootstrap.log 2>&1 || {
	tail -5 debootstrap.log >&2
	skip "debootstrap failed"
}
mount --bind "$root" "$root" # a mount of its own, as "/" is
mount -t proc proc "$root/proc"
mount --rbind /sys "$root/sys"
mount --rbind /dev "$root/dev"
mkdir -p "$root/root/dbtier/build/release/tests"
cp "$deb" "$root/root/dbtier.deb"
cp /etc/resolv.conf "$root/etc/resolv.conf" 2>/dev/null || true
inside()
{
	chroot "$root" /usr/bin/env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root DEBIAN_FRONTEND=noninteractive TERM=dumb \
		bash -ec "$1"
}
inside 'apt-get update -qq; apt-get install -qq -y --no-install-recommends /root/dbtier.deb man-db e2fsprogs' >install.log 2>&1 || {
	tail -20 install.log >&2
	fail "the package cannot be installed"
}
inside 'dbtier --version; dbtier devices / >/dev/null; dbtier config'
inside 'test -e /etc/dbtier.conf && test -e /usr/share/bash-completion/completions/dbtier'
# The commands of the README, as they stand there, with two filesystems that it speaks of.
mkdir -p "$root/mnt/store" "$root/nvme"
# Two devices: one on this machine's disk, one in memory.
mkdir memory
mount -t tmpfs -o size=300M tmpfs memory
truncate -s 200M slow.img memory/fast.img
mkfs.ext4 -q slow.img
mkfs.ext4 -q memory/fast.img
mount -o loop slow.img "$root/mnt/store"
mount -o loop memory/fast.img "$root/nvme"
mkdir -p "$root/mnt/store/omics" "$root/nvme/db"
"$DBT_TOOLS/mkdb" diamond "$root/mnt/store/omics/psc.dmnd" 32M
"$DBT_TOOLS/mkdb" sqlite "$root/mnt/store/omics/bakta.db" 32M
# What they are instead, the administrator says.
printf 'tier /mnt/store hdd\ntier /nvme nvme\n' >>"$root/etc/dbtier.conf"
sed -n '/^## /q; s/^    \(dbtier .*\)/\1/p' "$DBT_SOURCE/README.md" | sed 's/ *#.*//' >readme
[[ -s readme ]] || fail "no commands in the README"
while read -r line; do
	echo "\$ $line"
	inside "$line" || fail "'$line' of the README"
done <readme
inside 'test ! -L /mnt/store/omics/psc.dmnd'
# The demonstration, with the installed program in the place of a built one.
cp "$DBT_SOURCE/bootstrap" "$root/root/dbtier/"
cp "$DBT_TOOLS/mkdb" "$root/root/dbtier/build/release/tests/"
ln -sf /usr/bin/dbtier "$root/root/dbtier/build/release/dbtier"
inside 'cd /root/dbtier && ./bootstrap demo-inside' >demo.log 2>&1 || {
	tail -20 demo.log >&2
	fail "the demonstration in the fresh tree"
}
tail -5 demo.log
inside 'apt-get -qq -y purge dbtier >/dev/null; test ! -e /usr/bin/dbtier; test ! -e /etc/dbtier.conf; test -d /var/lib/dbtier'
