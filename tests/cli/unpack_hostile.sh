#!/usr/bin/env bash
# Archives that want to do harm: refused with a message that names the entry, or made harmless. Whatever they say, nothing
# outside the directories of the promotion is touched, and nothing is left of what was refused.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
MKTAR=$DBT_TOOLS/mktar
ARCHIVE=$SLOW/bad.tar
n=0

unpack()
{
	dbtier promote --force --to "$FAST" "$@"
}

# What must never change: everything around.
surroundings()
{
	facts_untouched "$SLOW/around"
	facts_untouched "$FAST/around"
	facts_untouched "$PAIR/outside"
}

# refused TEXT ENTRY...: the archive of these entries is refused with this text, and no trace is left.
refused()
{
	local text=$1

	shift
	"$MKTAR" "$ARCHIVE" "$@"
	refuse "$text" "$ARCHIVE"
}

# refuse TEXT ARCHIVE
refuse()
{
	local text=$1

	run unpack "$2"
	[[ $status -eq 3 || $status -eq 1 ]] || fail "'$text': exit status $status"
	err_has "$text"
	untouched
	rm -f "$2"
	n=$((n + 1))
}

untouched()
{
	surroundings >"$TMP/now"
	same_facts "$TMP/around" "$TMP/now" "something outside was touched"
	no_temporaries "$SLOW" "$FAST"
	[[ $(ls "$FAST") == around && ! -e $SLOW/bad ]] || fail "something is left: $(ls "$FAST" "$SLOW")"
}

# accepted ENTRY...: unpacked.
accepted()
{
	"$MKTAR" "$ARCHIVE" "$@"
	expect 0 unpack "$ARCHIVE"
	surroundings >"$TMP/now"
	same_facts "$TMP/around" "$TMP/now" "something outside was touched"
}

back()
{
	expect 0 dbtier rollback
	untouched
	n=$((n + 1))
}

pair ext4 ext4
mkdir "$SLOW/around" "$FAST/around" "$PAIR/outside"
for place in "$SLOW/around" "$FAST/around" "$PAIR/outside"; do
	echo "kept as it is" >"$place/file"
done
surroundings >"$TMP/around"
long=$(printf 'x%.0s' {1..4000})

# Names that lead elsewhere.
refused "'$PAIR/outside/new' in '$ARCHIVE' has an absolute name" file "$PAIR/outside/new" x
refused "leads upwards" file ../new x
refused "leads upwards" file a/../../around/file x
refused "leads upwards" dir ..
refused "has control characters in its name" file $'a\nb' x
refused "has control characters in its name" file $'\e[2Ja' x
refused "has a name that only dbtier itself gives" file .dbtier-0123456789abcdef-0.part/x x
refused "has a name that only dbtier itself gives" file a/.psc.dmnd.dbtier-original x
deep=$(printf 'd/%.0s' {1..70})
mkdir -p "$TMP/deep/$deep"
echo x >"$TMP/deep/${deep}psc.dmnd"
tar -C "$TMP/deep" -cf "$ARCHIVE" d
refuse "lies too deep" "$ARCHIVE"
# Links that lead out, and writing through links.
refused "is a link that leads out of the archive" link psc.dmnd "$PAIR/outside/file"
refused "is a link that leads out of the archive" link a ../around/file
refused "is a link that leads out of the archive" dir d link d/x ../../around
refused "is a link that leads out of the archive" dir d link d/x y/../../around
refused "lies below a link" link a . file a/new x
refused "lies below a link" dir d link d/l . file d/l/x/y z
refused "lies below a file" file a x file a/b x
refused "comes twice, as different things" dir d link l d file l x
refused "comes twice, as different things" file d/a x file d x
refused "comes twice, as links to different things" link l a link l b
refused "is a hard link to something that is no file before it" hard psc.dmnd "$PAIR/outside/file"
refused "is a hard link to something that is no file before it" hard psc.dmnd ../around/file
refused "is a hard link to something that is no file before it" link l x hard psc.dmnd l
refused "is a hard link to something that is no file before it" hard psc.dmnd psc.dmnd
# Without the one directory around everything a link may lead out that did not before.
refused "is a link that leads out of the archive" dir top file top/psc.dmnd x link top/l ../elsewhere
# Things that are no files.
refused "is a device, a FIFO or a socket" node 3 null
refused "is a device, a FIFO or a socket" node 4 sda
refused "is a device, a FIFO or a socket" node 6 pipe
# A name twice.
refused "comes twice, with different contents" file psc.dmnd x file psc.dmnd y
# Sizes.
refused "is damaged or cut short" file psc.dmnd x says 100000000 bakta.db x
refused "not enough space" sparse 1099511627776 psc.dmnd
refused "not enough space" says 1099511627776 psc.dmnd x
# Streams that end early.
refused "is cut short" file psc.dmnd "$long" noend
"$MKTAR" "$TMP/whole.tar" file psc.dmnd "$long"
for packer in gzip xz bzip2 zstd lz4; do
	command -v $packer >/dev/null || continue
	$packer -c <"$TMP/whole.tar" >"$TMP/whole"
	head -c $(($(stat -c %s "$TMP/whole") - 9)) "$TMP/whole" >"$ARCHIVE"
	refuse "is damaged or cut short" "$ARCHIVE"
done
# A wrong byte in the stream: gzip has a CRC for that, at its end.
head -c 300000 /dev/urandom >"$TMP/psc.dmnd"
for packer in gzip xz; do
	tar -C "$TMP" -c psc.dmnd | $packer -1 >"$ARCHIVE"
	printf 'X' | dd of="$ARCHIVE" bs=1 seek=150000 conv=notrunc status=none
	refuse "is damaged or cut short" "$ARCHIVE"
done
# zip says it all in its own way: names, links (mode), and what is damaged.
# zipped NAME TEXT [MODE]...: at $ARCHIVE; MODE as of st_mode, in octal.
zipped()
{
	python3 - "$ARCHIVE" "$@" <<'PYTHON'
import os, sys, warnings, zipfile
warnings.simplefilter("ignore")
with zipfile.ZipFile(sys.argv[1], "w") as archive:
    for i in range(2, len(sys.argv), 3):
        entry = zipfile.ZipInfo(os.fsencode(sys.argv[i]).decode("latin-1"))
        entry.create_system = 3
        entry.external_attr = int(sys.argv[i + 2], 8) << 16
        archive.writestr(entry, sys.argv[i + 1])
PYTHON
}

if command -v python3 >/dev/null; then
	zipped ../new x 100644
	refuse "leads upwards" "$ARCHIVE"
	zipped a/../../around/file x 100644
	refuse "leads upwards" "$ARCHIVE"
	zipped "$PAIR/outside/new" x 100644
	refuse "has an absolute name" "$ARCHIVE"
	zipped psc.dmnd ../around/file 120777
	refuse "is a link that leads out of the archive" "$ARCHIVE"
	zipped psc.dmnd x 100644 psc.dmnd y 100644
	refuse "comes twice, with different contents" "$ARCHIVE"
	zipped $'a\e[2J' x 100644
	refuse "has control characters in its name" "$ARCHIVE"
	(cd "$TMP" && cmake -E tar cf "$ARCHIVE" --format=zip -- psc.dmnd)
	printf 'X' | dd of="$ARCHIVE" bs=1 seek=150000 conv=notrunc status=none
	refuse "is damaged or cut short" "$ARCHIVE"
else
	echo "left out: zip archives, python3 is not installed"
fi
# Made harmless.
accepted mode 6777 psc.dmnd x mode 0 bakta.db y
equal 755 "$(stat -L -c %a "$SLOW/bad/psc.dmnd")" "the mode of a set-user-id file"
equal 644 "$(stat -L -c %a "$SLOW/bad/bakta.db")" "the mode of a file without one"
err_has "set-user-id"
back
accepted dir top dir top/d file top/d/psc.dmnd x hard top/d/other top/d/psc.dmnd hard top/up top/d/psc.dmnd
equal d/psc.dmnd "$(readlink "$SLOW/bad/up")" "a hard link further up"
equal psc.dmnd "$(readlink "$SLOW/bad/d/other")" "a hard link"
equal x "$(cat "$SLOW/bad/d/other")" "what a hard link leads to"
back
accepted dir v1 file v1/psc.dmnd x link latest v1 link v1/up ../v1/psc.dmnd file b z
equal x "$(cat "$SLOW/bad/latest/psc.dmnd" "$SLOW/bad/v1/up" | head -c 1)" "a link inside"
back
accepted file psc.dmnd same file ./psc.dmnd same file a//b x dir ./ file $'caf\xe9' y
equal same "$(cat "$SLOW/bad/psc.dmnd")" "a file that came twice"
[[ -f $SLOW/bad/$'caf\xe9' && -f $SLOW/bad/a/b ]] || fail "odd names are missing"
back
# A file that is sparse, and one that fills the tier up to what has to stay free.
accepted sparse 20000000 psc.dmnd file b x
equal 20000000 "$(stat -L -c %s "$SLOW/bad/psc.dmnd")" "the size of a sparse file"
back
echo "$n archives"
