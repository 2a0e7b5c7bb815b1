#!/usr/bin/env bash
# Archives that hold databases: scan shows them by a look at their first bytes, with what seems to be in them and what
# tells that; --deep reads them whole. What holds none is not shown. Cut short, unreadable, endless, oddly named or
# hostile ones hurt nothing.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
need_command cmake cmake

cd "$TMP"
mkdir in all
"$DBT_TOOLS/mkdb" bakta in/db 2M
"$DBT_TOOLS/mkdb" blast in/nr 300K 2
mkdir in/k2
"$DBT_TOOLS/mkdb" kraken2 in/k2 200K

# pack FILE FLAGS OPTIONS...: what lies in `in`, by cmake, which knows all kinds.
pack()
{
	local to=$TMP/$1 flags=$2

	shift 2
	(cd in && cmake -E tar "$flags" "$to" "$@" -- *)
}

# scanned DIR OPTIONS...: as JSON in $TMP/out.
scanned()
{
	expect 0 dbtier scan --no-probe --json "$@"
	jq -e '.databases | type == "array"' "$TMP/out" >/dev/null || fail "no JSON: scan $*"
}

# holds NAME: what scan says of it.
holds()
{
	jq -r --arg name "$1" '.databases[] | select(.name == $name and .state == "archive") | .holds' "$TMP/out"
}

is_listed()
{
	jq -e --arg name "$1" 'any(.databases[]; .name == $name)' "$TMP/out" >/dev/null
}

# --- each kind of archive ---

pack all/a.tar cf
pack all/a.tar.gz czf
pack all/a.tar.xz cJf
pack all/a.tar.bz2 cjf
pack all/a.tar.zst cf --zstd
pack all/a.zip cf --format=zip
pack all/a.7z cf --format=7zip
kinds=7
if command -v lz4 >/dev/null; then
	lz4 -q all/a.tar all/a.tar.lz4
	kinds=8
else
	echo "left out: lz4 is not installed"
fi
scanned all
equal $kinds "$(jq '[.databases[] | select(.state == "archive" and .format == "archive" and .complete)] | length' "$TMP/out")" \
	"archives found"
for file in all/*; do
	told=$(holds "${file#all/}")
	for want in "diamond ('db/" "sqlite ('db/bakta.db', by its first bytes)" "bakta ('db/version.json', by its first bytes)" \
		"kraken2 ('k2/hash.k2d', by its first bytes)" "blast ('"; do
		[[ $told == *"$want"* ]] || fail "$file: '$told' lacks '$want'"
	done
	[[ $told != *--deep* ]] || fail "$file was not read to its end: $told"
done
expect 0 dbtier scan --no-probe all
out_has "unpack with 'dbtier promote ARCHIVE --to DIR'"
# As a single file, too.
scanned all/a.tar.gz
[[ $(holds a.tar.gz) == *kraken2* ]] || fail "a file by itself is not looked into"
scanned all --format archive
equal $kinds "$(jq '.databases | length' "$TMP/out")" "archives by --format"

# --- no database in it ---

mkdir src none
for i in 1 2 3; do head -c 100K /dev/urandom | base64 >"src/file$i.c"; done
head -c 40K /dev/urandom >src/pages.db     # like an SQLite file by its name
head -c 40K /dev/urandom >src/psc.dmnd     # ... and like a DIAMOND one
tar cf none/src.tar src
gzip -k none/src.tar
(cd src && cmake -E tar cf "$TMP/none/src.zip" --format=zip -- *)
cp none/src.tar.gz none/renamed.zip
head -c 100K /dev/urandom >none/noise.tar.gz
gzip -c none/noise.tar.gz >none/packed.tar.gz
scanned none
equal "" "$(jq -r '.databases[].name' "$TMP/out")" "archives of no database"
scanned none --all --min-size 50K
[[ $(jq -r '.databases[] | select(.name == "src.tar") | .format' "$TMP/out") == unknown ]] || fail "--all lacks src.tar"

# --- what lies behind the first megabytes ---

mkdir far
(head -c 12M /dev/urandom >in/aaa && cd in && tar czf ../far/f.tar.gz aaa db k2 && rm aaa)
scanned far
! is_listed f.tar.gz || fail "more was read than should be"
scanned far --deep
[[ $(holds f.tar.gz) == *"kraken2 ('k2/hash.k2d', by its first bytes)"* ]] || fail "--deep does not reach it"
[[ $(holds f.tar.gz) != *--deep* ]] || fail "--deep calls for itself"
(cd in && head -c 12M /dev/urandom >zzz && tar czf ../far/f.tar.gz k2 zzz db && rm zzz)
scanned far
[[ $(holds f.tar.gz) == "kraken2 ('k2/hash.k2d', by its first bytes); more may follow: --deep reads all of it" ]] ||
	fail "the first of several: $(holds f.tar.gz)"
scanned far --deep
[[ $(holds f.tar.gz) == *"bakta ('db/version.json'"* ]] || fail "--deep lacks what follows: $(holds f.tar.gz)"
if command -v strace >/dev/null; then
	# The leak sanitizer needs ptrace for itself.
	expect 0 env ASAN_OPTIONS=detect_leaks=0 strace -f -y -qq -o calls -e trace=read,pread64,preadv2 "$DBTIER" --state-dir "$TMP/state" scan --no-probe far
	bytes=$(awk '/f\.tar\.gz>/ { sum += $NF } END { print sum + 0 }' calls)
	[[ $bytes -gt 1000000 && $bytes -le $((8 * 1048576 + 65536 + 4096)) ]] || fail "scan read $bytes bytes of the archive"
fi

# --- cut short ---

mkdir cut
size=$(stat -c %s all/a.tar.gz)
for ((n = 20000; n < size; n += size / 23)); do
	head -c "$n" all/a.tar.gz >cut/a.tar.gz
	scanned cut --deep
	! is_listed a.tar.gz || [[ $(jq -r '.databases[0].complete' "$TMP/out") == false ]] ||
		fail "cut at $n of $size it is called complete"
done
head -c $((size - 9)) all/a.tar.gz >cut/a.tar.gz
for kind in a.tar a.tar.xz a.tar.zst a.tar.bz2 a.zip a.7z; do
	head -c $(($(stat -c %s "all/$kind") * 2 / 3)) "all/$kind" >"cut/$kind"
done
scanned cut --deep
equal "" "$(jq -r '.databases[] | select(.complete) | .name' "$TMP/out")" "archives cut short"
jq -e 'any(.databases[]; .advice | test("damaged or cut short"))' "$TMP/out" >/dev/null || fail "no reason is given"

# --- odd ones ---

mkdir odd
"$DBT_TOOLS/mktar" odd/$'new\nline \xff.tar' file $'db/\e[31mhash\n.dmnd' "$(head -c 20000 /dev/zero | tr '\0' x)" \
	file ../../etc/bakta.db x
printf 'db/\xff\xfe.dmnd' >name
(cd in && cp db/psc.dmnd "$(printf 'p\xff\e[1m.dmnd')" && tar cf ../odd/-dash.tar -- p*.dmnd && rm -- p*.dmnd)
mkfifo odd/fifo.tar.gz
: >odd/empty.tar.gz
ln -s loop.tar odd/loop.tar
mkdir odd/dir.tar.gz
"$DBT_TOOLS/mktar" odd/bomb.tar sparse 9000000000000 hole.bin file k2/taxo.k2d "$(head -c 20000 /dev/zero | tr '\0' y)"
head -c 100K /dev/zero | gzip >odd/zeros.tar.gz
truncate -s 3G odd/hole.tar
scanned odd
[[ $(holds -dash.tar) == *"diamond ('"*", by its first bytes)"* ]] || fail "an oddly named member is not found"
expect 0 dbtier scan --no-probe odd
! grep -q $'\e' "$TMP/out" || fail "the terminal gets what an archive says"
scanned odd --deep

# Unreadable for whoever scans.
if [[ $(id -u) -eq 0 ]] && command -v setpriv >/dev/null; then
	mkdir closed
	cp all/a.tar.gz closed/
	chmod 000 closed/a.tar.gz
	expect 0 setpriv --reuid 65534 --regid 65534 --clear-groups "$DBTIER" --state-dir "$TMP/none-such" scan --no-probe closed
	err_has "cannot look at '$TMP/closed/a.tar.gz'"
fi
echo "$kinds kinds of archives, 0 wrong"
