#!/usr/bin/env bash
# Sets made by the real tools, promoted by name as scan calls them: their readers answer the same before, through the
# links, and after the rollback. Tools that are not installed are left out and named.
# needs: loop
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
pair ext4 ext4 512M
cd "$SLOW"

awk 'function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
	BEGIN { x = 4242
	for (i = 1; i <= 300; i++) {
		printf ">SYN%03d synthetic\n", i
		s = "M"; for (k = 0; k < 250; k++) s = s substr("ARNDCQEGHILKMFPSTWYV", rnd(20) + 1, 1); print s } }' >"$TMP/prot.faa"
awk '/^>/ { n++ } n > 5 { exit } { print }' "$TMP/prot.faa" >"$TMP/query.faa"
awk 'function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
	BEGIN { x = 777
	for (c = 1; c <= 4; c++) {
		printf ">ctg%d|kraken:taxid|%d\n", c, 100 + c
		for (l = 0; l < 500; l++) { s = ""; for (i = 0; i < 60; i++) s = s substr("ACGT", rnd(4) + 1, 1); print s } } }' >"$TMP/genome.fna"

tried=() left_out=()

# round NAME DB COMMAND...: DB is promoted with all its files and rolled back; COMMAND prints what its reader finds.
round()
{
	local name=$1 db=$2

	shift 2
	"$@" >"$TMP/before" 2>/dev/null || fail "$name: its reader fails before"
	[[ -s $TMP/before ]] || fail "$name: its reader finds nothing"
	expect 0 dbtier scan --no-probe "$SLOW/$name"
	expect 0 dbtier promote --force --all-files "$db" --to "$FAST"
	find "$SLOW/$name" -type l | grep -q . || fail "$name: nothing became a link"
	"$@" >"$TMP/linked" 2>/dev/null || fail "$name: its reader fails through the links"
	cmp "$TMP/before" "$TMP/linked" || fail "$name: other answers through the links"
	expect 0 dbtier scan --no-probe -n -o state "$SLOW/$name"
	equal promoted "$(sort -u "$TMP/out")" "$name: state"
	expect 0 dbtier status
	expect 0 dbtier rollback
	! find "$SLOW/$name" -type l | grep . || fail "$name: a link is left"
	"$@" >"$TMP/after" 2>/dev/null || fail "$name: its reader fails after the rollback"
	cmp "$TMP/before" "$TMP/after" || fail "$name: other answers after the rollback"
	tried+=("$name")
}

# with GROUP "TOOLS": 0 and in its directory when all are there.
with()
{
	local tool

	for tool in $2; do
		command -v "$tool" >/dev/null && continue
		left_out+=("$1 ($tool)")
		return 1
	done
	mkdir "$SLOW/$1"
	cd "$SLOW/$1"
}

build()
{
	"$@" >"$TMP/log" 2>&1 || { cat "$TMP/log" >&2; fail "cannot build: $*"; }
}

if with blast "makeblastdb blastp"; then
	for i in $(seq 1 20); do sed "s/^>SYN/>V${i}_/" "$TMP/prot.faa"; done >many.faa
	build makeblastdb -in many.faa -dbtype prot -max_file_sz 1MB -out vols
	rm many.faa
	round blast vols blastp -db "$SLOW/blast/vols" -query "$TMP/query.faa" -outfmt 6
fi
if with blastn "makeblastdb blastn"; then
	for i in $(seq 1 40); do sed "s/^>ctg/>V${i}_ctg/" "$TMP/genome.fna"; done >many.fna
	build makeblastdb -in many.fna -dbtype nucl -max_file_sz 1MB -out nvols
	rm many.fna
	awk '/^>/ { n++ } n > 1 { exit } { print } NR > 5 { exit }' "$TMP/genome.fna" >"$TMP/query.fna"
	round blastn nvols blastn -db "$SLOW/blastn/nvols" -query "$TMP/query.fna" -outfmt 6
	[[ $(find "$SLOW/blastn" -name 'nvols.*.nin' | wc -l) -gt 1 ]] || fail "no volumes were made"
fi
if with both "makeblastdb blastp blastn"; then
	# One base name for a nucleotide and a protein database: neither is taken by guess, a file says which is meant.
	build makeblastdb -in "$TMP/prot.faa" -dbtype prot -out nr
	build makeblastdb -in "$TMP/genome.fna" -dbtype nucl -out nr
	expect 1 dbtier promote --force --no-probe --all-files "$SLOW/both/nr" --to "$FAST"
	err_has "'$SLOW/both/nr' is the name of two databases"
	! find "$SLOW/both" -type l | grep . || fail "one of two databases of a name was promoted"
	blastn -db "$SLOW/both/nr" -query "$TMP/query.fna" -outfmt 6 >"$TMP/before"
	expect 0 dbtier promote --force --no-probe --all-files "$SLOW/both/nr.nsq" --to "$FAST"
	equal "$(find . -name 'nr.n*' ! -name '*.dbtier-original' | wc -l)" "$(find . -name 'nr.n*' -type l | wc -l)" "links of the nucleotide database"
	equal 0 "$(find . -name 'nr.p*' -type l | wc -l)" "links of the protein database"
	expect 0 dbtier promote --force --no-probe --all-files "$SLOW/both/nr.pin" --to "$FAST"
	blastn -db "$SLOW/both/nr" -query "$TMP/query.fna" -outfmt 6 | cmp "$TMP/before" - || fail "other answers of blastn"
	blastp -db "$SLOW/both/nr" -query "$TMP/query.faa" -outfmt 6 >"$TMP/after"
	[[ -s $TMP/before && -s $TMP/after ]] || fail "nothing was found"
	expect 0 dbtier rollback "$SLOW/both/nr.pin"
	expect 0 dbtier rollback "$SLOW/both/nr.nin"
	! find "$SLOW/both" -type l | grep . || fail "a link is left"
fi
if with diamond diamond; then
	build diamond makedb --quiet -p 1 --in "$TMP/prot.faa" -d prot
	round diamond prot patiently diamond blastp --quiet -p 1 -d "$SLOW/diamond/prot" -q "$TMP/query.faa"
fi
if with hmmer "hmmbuild hmmpress hmmscan"; then
	awk 'BEGIN { print "# STOCKHOLM 1.0"; print "#=GF ID FAM1" } /^>/ { n++; next } n == 1 && !done { for (m = 1; m <= 3; m++) print "s" m, $0; done = 1 } END { print "//" }' \
		"$TMP/prot.faa" >fam.sto
	build hmmbuild --seed 1 fams.hmm fam.sto
	rm fam.sto
	build hmmpress fams.hmm
	hmm()
	{
		hmmscan --noali --tblout /dev/stdout -o /dev/null "$SLOW/hmmer/fams.hmm" "$TMP/query.faa" | grep -v '^#'
	}
	round hmmer fams hmm
fi
if with kraken2 "kraken2 kraken2-build"; then
	mkdir -p k2/taxonomy
	printf '1\t|\t1\t|\tno rank\t|\t\t|\t8\t|\t0\t|\t1\t|\t0\t|\t0\t|\t0\t|\t0\t|\t0\t|\t\t|\n' >k2/taxonomy/nodes.dmp
	printf '1\t|\troot\t|\t\t|\tscientific name\t|\n' >k2/taxonomy/names.dmp
	for i in 1 2 3 4; do
		printf '%d\t|\t1\t|\tspecies\t|\t\t|\t0\t|\t1\t|\t11\t|\t1\t|\t0\t|\t1\t|\t1\t|\t0\t|\t\t|\n' $((100 + i)) >>k2/taxonomy/nodes.dmp
		printf '%d\t|\tSynthetica %d\t|\t\t|\tscientific name\t|\n' $((100 + i)) "$i" >>k2/taxonomy/names.dmp
	done
	touch k2/taxonomy/accmap.dlflag
	build kraken2-build --add-to-library "$TMP/genome.fna" --db k2 --no-masking
	build kraken2-build --build --db k2 --threads 1 --kmer-len 25 --minimizer-len 15 --minimizer-spaces 3 --fast-build
	rm -r k2/library k2/taxonomy
	round kraken2 k2 kraken2 --db "$SLOW/kraken2/k2" --threads 1 "$TMP/genome.fna"
	round kraken2 k2 kraken2 --db "$SLOW/kraken2/k2" --threads 1 --memory-mapping "$TMP/genome.fna"
fi
if with mmseqs mmseqs; then
	build mmseqs createdb "$TMP/prot.faa" protDB -v 1
	search()
	{
		rm -rf "$TMP/mm"
		mkdir "$TMP/mm"
		mmseqs easy-search "$TMP/query.faa" "$SLOW/mmseqs/protDB" "$TMP/mm/out" "$TMP/mm/tmp" --threads 1 -v 1 >/dev/null
		sort "$TMP/mm/out"
	}
	round mmseqs protDB search
fi
if with mmseqs-idx mmseqs; then
	build mmseqs createdb "$TMP/genome.fna" nuclDB --dbtype 2 -v 1
	build mmseqs createindex nuclDB tmp --search-type 3 -k 9 --threads 1 -v 1
	rm -r tmp
	head -n 10 "$TMP/genome.fna" >"$TMP/short.fna"
	indexed()
	{
		rm -rf "$TMP/mm"
		mkdir "$TMP/mm"
		mmseqs easy-search "$TMP/short.fna" "$SLOW/mmseqs-idx/nuclDB" "$TMP/mm/out" "$TMP/mm/tmp" --search-type 3 -k 9 --threads 1 -v 3 >"$TMP/mm/log"
		grep -q 'nuclDB\.idx ' "$TMP/mm/log" || return 1 # it is the index that is read
		sort "$TMP/mm/out"
	}
	round mmseqs-idx nuclDB indexed
fi
cstranslate=/usr/libexec/hhsuite/cstranslate-plain data=/usr/share/hhsuite/data
if [[ -x $cstranslate && -e $data/cs219.lib ]] && with hhsuite "hhmake hhblits ffindex_build"; then
	mkdir a3m
	awk '/^>/ { n++; next } n > 6 { exit } { for (m = 1; m <= 3; m++) print ">s" n "_" m "\n" $0 >("a3m/FAM" n) }' "$TMP/prot.faa"
	mkdir hhm
	for f in a3m/*; do build hhmake -i "$f" -o "hhm/${f#a3m/}" -v 0; done
	build ffindex_build -s syn_a3m.ffdata syn_a3m.ffindex a3m
	build ffindex_build -s syn_hhm.ffdata syn_hhm.ffindex hhm
	build "$cstranslate" -f -x 0.3 -c 4 -I a3m -i syn_a3m -o syn_cs219 -A $data/cs219.lib -D $data/context_data.lib
	cp a3m/FAM1 "$TMP/query.a3m"
	rm -r a3m hhm
	hhblits_table()
	{
		hhblits -i "$TMP/query.a3m" -d "$SLOW/hhsuite/syn" -n 1 -cpu 1 -v 0 -o /dev/null -blasttab "$TMP/hh.tab" && cat "$TMP/hh.tab"
	}
	round hhsuite syn hhblits_table
else
	left_out+=("hhsuite (hhsuite, hhsuite-data)")
fi
if with samtools samtools; then
	cp "$TMP/genome.fna" ref.fa
	build samtools faidx ref.fa
	round samtools ref.fa samtools faidx "$SLOW/samtools/ref.fa" 'ctg2|kraken:taxid|102:100-200'
fi
if with bowtie2 "bowtie2-build bowtie2"; then
	build bowtie2-build -q --threads 1 "$TMP/genome.fna" small
	awk 'NR == 2 || NR == 30 { printf "@r%d\n%s\n+\n%s\n", NR, $0, $0 } NR > 40 { exit }' "$TMP/genome.fna" |
		awk 'NR % 4 == 0 { gsub(/./, "I") } { print }' >"$TMP/reads.fq"
	round bowtie2 small bowtie2 --no-head -p 1 --seed 1 -x "$SLOW/bowtie2/small" -U "$TMP/reads.fq"
fi
[[ ${#tried[@]} -gt 0 ]] || skip "none of the tools is installed"
cd /
echo "same answers before, through the links and after: ${tried[*]}"
[[ ${#left_out[@]} -eq 0 ]] || echo "left out, not installed: ${left_out[*]}"
