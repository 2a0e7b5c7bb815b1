#!/usr/bin/env bash
# What is not all of a database is never called complete. Of each file that its readers cannot do without, one at a
# time, nothing is left, half is left, it is removed, or the user may not read it: scan says that the database is
# incomplete and names the file. Files of which nothing tells that they were cut are left out of "half".
# timeout: 120
. "$(dirname "$0")/../support/lib.sh"

IN=$TMP/in TREE=$TMP/tree
mkdir "$IN" "$TREE"
: >"$TMP/wanted"
cases=0 left_out=()

inputs()
{
	awk 'BEGIN { srand(3)
		for (i = 0; i < 60; i++) { s = "M"
			for (k = 0; k < 150; k++) s = s substr("ACDEFGHIKLMNPQRSTVWY", int(rand() * 20) + 1, 1)
			print ">p" i "\n" s } }' >"$IN/prot.faa"
	awk 'BEGIN { srand(4)
		for (i = 0; i < 4; i++) { s = ""
			for (k = 0; k < 5000; k++) s = s substr("ACGT", int(rand() * 4) + 1, 1)
			print ">c" i "\n" s } }' >"$IN/genome.fna"
	awk 'BEGIN { srand(5); print "# STOCKHOLM 1.0\n#=GF ID FAM"; s = ""
		for (k = 0; k < 60; k++) s = s substr("ACDEFGHIKLMNPQRSTVWY", int(rand() * 20) + 1, 1)
		for (i = 0; i < 4; i++) print "s" i " " s
		print "//" }' >"$IN/fam.sto"
}

# made "TOOLS" FORMAT: the tools are there; makes $DB, where the database is to be built.
made()
{
	local tool

	for tool in $1; do
		command -v "$tool" >/dev/null || {
			left_out+=("$2 ($tool)")
			return 1
		}
	done
	DB=$TMP/made/$2
	mkdir -p "$DB"
}

# spoil FORMAT FILE EFFECTS: a copy of $DB for each effect.
spoil()
{
	local effect copy size

	for effect in $3; do
		cases=$((cases + 1))
		copy=$TREE/$cases
		cp -a "$DB" "$copy"
		size=$(stat -c %s "$copy/$2")
		case $effect in
		empty) : >"$copy/$2" ;;
		half) truncate -s $((size / 2)) "$copy/$2" ;;
		missing) rm "$copy/$2" ;;
		secret) chmod 0 "$copy/$2" ;;
		esac
		printf '%s\t%s\t%s\t%s\n' "$cases" "$1" "$2" "$effect" >>"$TMP/wanted"
	done
}

inputs
all='empty half missing secret'
if made makeblastdb blast; then
	makeblastdb -in "$IN/prot.faa" -dbtype prot -blastdb_version 4 -out "$DB/p" >/dev/null
	for end in pin phr psq; do spoil blast p.$end "empty missing secret"; done
	spoil blast p.psq half
	spoil blast p.phr half
fi
if made makeblastdb blast_volumes; then
	makeblastdb -in "$IN/prot.faa" -title v -dbtype prot -out "$DB/v.00" >/dev/null
	makeblastdb -in "$IN/prot.faa" -dbtype prot -title w -out "$DB/v.01" >/dev/null
	printf 'TITLE volumes\nDBLIST v.00 v.01\n' >"$DB/v.pal"
	for end in pin phr psq; do spoil blast v.01.$end "empty half"; done
	spoil blast v.01.pdb "empty missing"
	spoil blast v.01.phr missing
fi
if made true kraken2; then
	"$DBT_TOOLS/mkdb" kraken2 "$DB" 64K
	for f in hash taxo opts; do spoil kraken2 $f.k2d "$all"; done
fi
if made hmmpress hmmer; then
	hmmbuild --seed 1 "$DB/f" "$IN/fam.sto" >/dev/null
	hmmpress "$DB/f" >/dev/null
	rm "$DB/f"
	for end in h3f h3p; do spoil hmmer f.$end "$all"; done
	spoil hmmer f.h3i "$all"
	spoil hmmer f.h3m "empty missing secret"
fi
if made diamond diamond; then
	diamond makedb --quiet -p 1 --in "$IN/prot.faa" -d "$DB/d"
	spoil diamond d.dmnd half
fi
if made sqlite3 sqlite; then
	sqlite3 "$DB/s.db" "CREATE TABLE t (a); INSERT INTO t SELECT hex(randomblob(500)) FROM
		(WITH RECURSIVE n (i) AS (SELECT 1 UNION SELECT i + 1 FROM n WHERE i < 100) SELECT i FROM n)"
	spoil sqlite s.db half
fi
if made mdb_load lmdb; then
	mkdir "$DB/env"
	seq 4000 | mdb_load -T "$DB/env"
	spoil lmdb env/data.mdb half
fi
if made ldb rocksdb; then
	ldb --db="$DB/r" --create_if_missing put k v >/dev/null
	ldb --db="$DB/r" compact >/dev/null
	table=$(cd "$DB" && ls r/*.sst)
	spoil rocksdb r/CURRENT "$all"
	spoil rocksdb "r/$(<"$DB/r/CURRENT")" missing
	spoil rocksdb "$table" "empty half secret"
fi
if made bowtie2-build bowtie2; then
	bowtie2-build -q --threads 1 "$IN/genome.fna" "$DB/b" >/dev/null 2>&1
	for part in 1 2 3 4 rev.1 rev.2; do spoil bowtie2 b.$part.bt2 "$all"; done
fi
if made bwa bwa; then
	cp "$IN/genome.fna" "$DB/g"
	bwa index "$DB/g" 2>/dev/null
	for part in bwt sa pac; do spoil bwa g.$part "$all"; done
	for part in ann amb; do spoil bwa g.$part "empty missing secret"; done
fi
if made mmseqs mmseqs; then
	mmseqs createdb "$IN/prot.faa" "$DB/m" -v 1 >/dev/null
	spoil mmseqs m "$all"
fi
[[ $cases -gt 0 ]] || skip "none of the tools is installed"

expect 0 dbtier scan --no-probe --json "$TMP/made"
jq -e '.databases | length > 0 and all(.complete)' "$TMP/out" >/dev/null || fail "not complete before anything was spoilt"
: >"$TMP/out" # too long to be shown

# Root may read everything.
who=()
if [[ $(id -u) -eq 0 ]]; then
	chmod 755 "$TMP"
	who=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
"${who[@]}" env DBTIER_STATE_DIR="$TMP/none" "$DBTIER" scan --no-probe --json "$TREE" >"$TMP/found" 2>"$TMP/err" ||
	fail "scan: $(<"$TMP/err")"
jq -r --arg root "$TREE/" '.databases[] | select(.complete | not) |
	[(.path | ltrimstr($root) | split("/")[0]), .format, .advice] | @tsv' "$TMP/found" >"$TMP/told"
wrong=0
while IFS=$'\t' read -r n format file effect; do
	# The file by its name, as a reason quotes it; of a cut MMseqs2 database, by that of the database.
	awk -F '\t' -v n="$n" -v format="$format" -v file="'${file##*/}'" \
		'$1 == n && $2 == format && index($3, file) { found = 1 } END { exit !found }' "$TMP/told" && continue
	echo "$format: $file $effect: $(awk -F '\t' -v n="$n" '$1 == n' "$TMP/told")" >&2
	wrong=$((wrong + 1))
done <"$TMP/wanted"
[[ $wrong -eq 0 ]] || fail "$wrong of $cases are not said to be incomplete"
echo "$cases spoilt databases, all said to be incomplete by the file's name"
[[ ${#left_out[@]} -eq 0 ]] || echo "left out ${#left_out[@]} formats, not installed: ${left_out[*]}"

# What only looks like one is no database, and is not passed over in silence.
mkdir -p "$TMP/odd/k2"
: >"$TMP/odd/none.dmnd"
cp "$TMP"/made/kraken2/* "$TMP/odd/k2/"
head -c 4096 /dev/zero >"$TMP/odd/k2/hash.k2d"
expect 0 dbtier scan --no-probe --json "$TMP/odd"
jq -e '.databases == []' "$TMP/out" >/dev/null || fail "a table of zeros is taken for one"
grep -qF "'$TMP/odd/none.dmnd' is empty, though it is called like a database" "$TMP/err" || fail "nothing is said of the empty file"
grep -qF "'$TMP/odd/k2/hash.k2d' is not what its name says" "$TMP/err" || fail "nothing is said of the table"
