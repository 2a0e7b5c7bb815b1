#!/usr/bin/env bash
# What scan shows of databases made without any of their tools.
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
cd "$TMP"

mkdir -p store/sub
"$DBT_TOOLS/mkdb" bakta store/bakta 2M
"$DBT_TOOLS/mkdb" diamond store/sub/nr.dmnd 300K
"$DBT_TOOLS/mkdb" sqlite store/sub/look.up 200K
"$DBT_TOOLS/mkdb" blast store/sub/prot 300K 3
"$DBT_TOOLS/mkdb" kraken2 store/k2 200K
"$DBT_TOOLS/mkdb" hmmer store/sub/Pfam-A.hmm 200K
echo 'not a diamond file' >store/sub/fake.dmnd
head -c 200000 /dev/urandom >store/sub/junk.bin

# dbs FILTER: what jq makes of the databases of the last scan.
dbs()
{
	jq -r ".databases[] | $1" "$TMP/out"
}

expect 0 dbtier scan --no-probe --json store
equal "$(printf '%s\n' bakta:bakta k2:kraken2 Pfam-A:hmmer look.up:sqlite nr:diamond prot:blast)" \
	"$(dbs '"\(.name):\(.format)"')" "names and formats, by path"
equal "" "$(dbs 'select(.complete | not) | .name')" "what is incomplete"
equal mixed "$(dbs 'select(.format == "bakta") | .access')" "access of Bakta"
equal null "$(dbs 'select(.format == "bakta") | .class')" "class of Bakta"
equal "bakta.db psc.dmnd" "$(dbs 'select(.format == "bakta") | [.children[] | select(.hot) | .name] | join(" ")')" \
	"hot files of Bakta"
equal 10 "$(dbs 'select(.format == "blast") | .files')" "files of the volumes"
equal "[]" "$(dbs 'select(.format == "diamond") | .children | tostring')" "children of a single file"
equal "$TMP/store/sub/nr.dmnd" "$(dbs 'select(.format == "diamond") | .path')" "path"
equal "$(stat -c %s store/sub/nr.dmnd)" "$(dbs 'select(.format == "diamond") | .size')" "size"

# Every key of the record, also where it is unset.
equal "access advice cached children class complete device files format gain holds mount mount_raw name name_raw note observed path path_raw size state tier" \
	"$(jq -r '.databases[0] | keys | join(" ")' "$TMP/out")" "keys of a database"
equal "access class hot name name_raw observed path path_raw size" \
	"$(jq -r '.databases[0].children[0] | keys | join(" ")' "$TMP/out")" "keys of a child"

# Text: a line per database; the columns of the default, or those asked for.
expect 0 dbtier scan --no-probe store
equal 7 "$(wc -l <"$TMP/out")" "lines"
out_has "NAME"
out_lacks "fake"
expect 0 dbtier scan --no-probe -n -r -o name,size -b store/sub/nr.dmnd
equal "nr $(stat -c %s store/sub/nr.dmnd)" "$(cat "$TMP/out")" "raw line of one file"

# Given by a member, a set is found whole.
expect 0 dbtier scan --no-probe -n -o name,format store/bakta/psc.dmnd store/sub/prot.01.psq
equal "bakta bakta prot blast" "$(xargs <"$TMP/out")" "the sets of two members"

# The same directory twice, or one below the other, is shown once.
expect 0 dbtier scan --no-probe -n -o name store store/sub
equal 6 "$(wc -l <"$TMP/out")" "databases of overlapping paths"

# Narrowed.
expect 0 dbtier scan --no-probe -n -o name --format diamond --format sqlite store
equal "look.up nr" "$(xargs <"$TMP/out")" "two formats"
expect 2 dbtier scan --format nonsense store
err_has "unknown format 'nonsense'"
expect 0 dbtier scan --no-probe -n -o name --exclude sub store
equal "bakta k2" "$(xargs <"$TMP/out")" "without the excluded directory"
expect 0 dbtier scan --no-probe -n -o name --min-size 1M store
equal "bakta" "$(xargs <"$TMP/out")" "large ones"
expect 0 dbtier scan --no-probe -n -o name,format --all --min-size 150K store/sub
out_has "junk.bin unknown"

# Nothing there, and not there.
mkdir empty
expect 0 dbtier scan --no-probe empty
out_is_empty
err_has "no database found"
expect 0 dbtier scan --no-probe --json empty
equal 0 "$(jq '.databases | length' "$TMP/out")" "databases in an empty directory"
expect 1 dbtier scan --no-probe -n -o name missing store/k2
err_has "cannot open 'missing'"
equal k2 "$(xargs <"$TMP/out")" "what could be scanned all the same"

# Cut short: shown, with the reason.
truncate -s -1 store/bakta/psc.dmnd
expect 0 dbtier scan --no-probe --json store/bakta
equal false "$(dbs .complete)" "complete"
equal true "$(dbs '.advice | contains("psc.dmnd")')" "the advice names the file"

# Odd names are shown escaped, and exactly in JSON.
odd=$'odd/a\nb\xff.dmnd'
mkdir odd
"$DBT_TOOLS/mkdb" diamond "$odd" 50K
expect 0 dbtier scan --no-probe odd
equal 2 "$(wc -l <"$TMP/out")" "lines with a newline in a name"
expect 0 dbtier scan --no-probe --json odd
equal "$TMP/$odd" "$(dbs .path_raw | base64 -d)" "the bytes of an odd name"

# Later commands know the names.
expect 0 dbtier scan --no-probe store
expect 0 dbtier __complete plain
out_has nr.dmnd
