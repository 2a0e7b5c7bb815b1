#!/usr/bin/env bash
# Databases made by the real tools: each found, with the right format, name and files, and nothing else. A tool that
# is not installed leaves its databases out; the table at the end tells what was tried.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
need_command awk awk
cd "$TMP"
mkdir in db

# Inputs: sequences that look like what the tools expect, the same on every run.
awk 'function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
	BEGIN { x = 4242
	for (f = 1; f <= 40; f++) for (m = 1; m <= 5; m++) {
		printf ">SYN%03d_%d synthetic\n", f, m
		s = "M"; for (i = 0; i < 200; i++) s = s substr("ARNDCQEGHILKMFPSTWYV", rnd(20) + 1, 1); print s } }' >in/prot.faa
awk 'function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
	BEGIN { x = 777
	for (c = 1; c <= 4; c++) {
		printf ">ctg%d synthetic\n", c
		for (l = 0; l < 500; l++) { s = ""; for (i = 0; i < 60; i++) s = s substr("ACGT", rnd(4) + 1, 1); print s } } }' >in/genome.fna
awk 'function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
	BEGIN { x = 5
	for (f = 1; f <= 4; f++) { b = ""; for (i = 0; i < 80; i++) b = b substr("ARNDCQEGHILKMFPSTWYV", rnd(20) + 1, 1)
		print "# STOCKHOLM 1.0"; printf "#=GF ID FAM%d\n", f
		for (m = 1; m <= 5; m++) printf "f%ds%d %s\n", f, m, b
		print "//" } }' >in/fam.sto
awk 'BEGIN { print "# STOCKHOLM 1.0"; print "#=GF ID RNA1"
	for (m = 1; m <= 5; m++) printf "r%d GGGCAUGCAAGAAAUUGCAUGCCC\n", m
	print "#=GC SS_cons <<<<<<<<<<....>>>>>>>>>>"; print "//" }' >in/rna.sto
awk '/^>/ { printf "%s|kraken:taxid|%d\n", $1, 100 + ++n; next } { print }' in/genome.fna >in/kraken.fna
printf '1\t|\t1\t|\tno rank\t|\t\t|\t8\t|\t0\t|\t1\t|\t0\t|\t0\t|\t0\t|\t0\t|\t0\t|\t\t|\n' >in/nodes.dmp
printf '1\t|\troot\t|\t\t|\tscientific name\t|\n' >in/names.dmp
for i in 1 2 3 4; do
	printf '%d\t|\t1\t|\tspecies\t|\t\t|\t0\t|\t1\t|\t11\t|\t1\t|\t0\t|\t1\t|\t1\t|\t0\t|\t\t|\n' $((100 + i)) >>in/nodes.dmp
	printf '%d\t|\tSynthetica %d\t|\t\t|\tscientific name\t|\n' $((100 + i)) "$i" >>in/names.dmp
done

wanted=() tried=() left_out=()

# want FORMAT NAME FILES DIR: a database that scan has to find.
want()
{
	wanted+=("$1 $2 $3 $4")
}

# build GROUP "TOOLS": runs make_GROUP in a directory of its own.
build()
{
	local tool

	for tool in $2; do
		if ! command -v "$tool" >/dev/null; then
			left_out+=("$1 ($tool)")
			return 0
		fi
	done
	mkdir "db/$1"
	(cd "db/$1" && "make_$1") >"$TMP/log" 2>&1 || { cat "$TMP/log"; fail "cannot build $1"; }
	"want_$1"
	tried+=("$1")
}

make_diamond()
{
	diamond makedb --quiet -p 2 --in ../../in/prot.faa -d prot
	cp prot.dmnd renamed.bin
	head -c 100 prot.dmnd >cut.dmnd
}
want_diamond()
{
	want diamond prot 1 diamond
	want diamond cut 1 diamond
	# Under an odd name only what is large enough is opened: this is not.
	[[ $(stat -c %s db/diamond/renamed.bin) -lt 65536 ]] || want diamond renamed.bin 1 diamond
}

make_blast()
{
	local v

	for v in 4 5; do
		makeblastdb -in ../../in/prot.faa -dbtype prot -parse_seqids -blastdb_version $v -out prot_v$v
		makeblastdb -in ../../in/genome.fna -dbtype nucl -parse_seqids -blastdb_version $v -out nucl_v$v
	done
	awk '{ print } /^>/ { next }' ../../in/prot.faa >many.faa
	for v in $(seq 1 30); do awk -v v="$v" '/^>/ { print $1 "_" v; next } { print }' ../../in/prot.faa; done >many.faa
	makeblastdb -in many.faa -dbtype prot -max_file_sz 1MB -out vols
	rm many.faa
	mkdir partial
	cp prot_v5.pin prot_v5.phr partial/
}
want_blast()
{
	local base

	for base in prot_v4 nucl_v4 prot_v5 nucl_v5 vols; do
		want blast $base "$(find db/blast -maxdepth 1 -name "$base.*" | wc -l)" blast
	done
}

make_hmmer()
{
	hmmbuild --seed 1 fams.hmm ../../in/fam.sto
	hmmpress fams.hmm
	hmmbuild --seed 1 plain.hmm ../../in/fam.sto
}
want_hmmer()
{
	want hmmer fams 5 hmmer
	want hmmer plain 1 hmmer
}

make_infernal()
{
	cmbuild -F rna.cm ../../in/rna.sto
	cmcalibrate --cpu 2 --seed 1 -L 0.02 rna.cm
	cmpress rna.cm
}
want_infernal()
{
	want infernal rna 5 infernal
}

make_kraken2()
{
	mkdir -p k2/taxonomy
	cp ../../in/nodes.dmp ../../in/names.dmp k2/taxonomy/
	touch k2/taxonomy/accmap.dlflag
	kraken2-build --add-to-library ../../in/kraken.fna --db k2 --no-masking
	kraken2-build --build --db k2 --threads 2 --kmer-len 25 --minimizer-len 15 --minimizer-spaces 3 --fast-build
}
want_kraken2()
{
	want kraken2 k2 4 kraken2
}

make_sqlite()
{
	sqlite3 kv.db "CREATE TABLE t(a); INSERT INTO t VALUES(1);"
	sqlite3 page64k.sqlite "PRAGMA page_size=65536; CREATE TABLE t(a); INSERT INTO t VALUES (1);"
	: >empty.db
	printf 'SQLite format 3\000' >short.db
	echo 'SQLite format 3 is mentioned here' >note.db
}
want_sqlite()
{
	want sqlite kv.db 1 sqlite
	want sqlite page64k.sqlite 1 sqlite
}

make_mmseqs()
{
	mmseqs createdb ../../in/prot.faa protDB -v 1
	mmseqs createdb ../../in/genome.fna nuclDB --dbtype 2 -v 1
	mmseqs createindex nuclDB tmp --search-type 3 -k 9 --threads 2 -v 1
	mmseqs linclust protDB cluDB tmp --threads 2 -v 1
	rm -rf tmp
}
want_mmseqs()
{
	want mmseqs protDB 8 mmseqs
	want mmseqs nuclDB 11 mmseqs
	want mmseqs cluDB "$(find db/mmseqs -name 'cluDB*' | wc -l)" mmseqs
}

make_bowtie2()
{
	bowtie2-build -q --threads 1 --seed 1 ../../in/genome.fna small
	bowtie2-build -q --threads 1 --seed 1 --large-index ../../in/genome.fna large
}
want_bowtie2()
{
	want bowtie2 small 6 bowtie2
	want bowtie2 large 6 bowtie2
}

make_bowtie()
{
	bowtie-build -q --threads 1 --seed 1 ../../in/genome.fna small
}
want_bowtie()
{
	want bowtie small 6 bowtie
}

make_hisat2()
{
	hisat2-build -q -p 1 --seed 1 ../../in/genome.fna small
}
want_hisat2()
{
	want hisat2 small 8 hisat2
}

make_bwa()
{
	cp ../../in/genome.fna .
	bwa index genome.fna
}
want_bwa()
{
	want bwa genome.fna 6 bwa
}

make_minimap2()
{
	minimap2 -d genome.mmi ../../in/genome.fna
}
want_minimap2()
{
	want minimap2 genome 1 minimap2
}

make_star()
{
	STAR --runMode genomeGenerate --genomeDir star --genomeFastaFiles ../../in/genome.fna --genomeSAindexNbases 6 \
		--genomeChrBinNbits 14 --runThreadN 1 --outFileNamePrefix ./
	rm -rf Log.out _STARtmp
}
want_star()
{
	want star star "$(find db/star/star -type f | wc -l)" star
}

make_samtools()
{
	cp ../../in/genome.fna ref.fa
	samtools faidx ref.fa
	bgzip -c ref.fa >packed.fa.gz
	samtools faidx packed.fa.gz
	gzip -c ref.fa >plain.fa.gz
}
want_samtools()
{
	want fasta ref.fa 2 samtools
	want bgzf packed.fa.gz 3 samtools
	want archive plain.fa.gz 1 samtools
}

make_mash()
{
	mash sketch -s 400 -i -o genome ../../in/genome.fna
}
want_mash()
{
	want mash genome 1 mash
}

make_last()
{
	lastdb -P1 -p lastP ../../in/prot.faa
}
want_last()
{
	want last lastP 7 last
}

make_lmdb()
{
	printf 'VERSION=3\nformat=print\ntype=btree\nmapsize=1048576\nHEADER=END\n key\n value\nDATA=END\n' >in.txt
	mkdir env
	mdb_load -f in.txt env
	mdb_load -n -f in.txt single.mdb
}
want_lmdb()
{
	want lmdb env 2 lmdb
	want lmdb single.mdb 2 lmdb
}

make_rocksdb()
{
	ldb --db=rdb --create_if_missing put k v
	ldb --db=rdb compact
}
want_rocksdb()
{
	want rocksdb rdb "$(find db/rocksdb/rdb -type f | wc -l)" rocksdb
}

make_kmc()
{
	mkdir tmp
	kmc -k21 -m2 -sm -ci1 -fm -t1 ../../in/genome.fna counts tmp
	rm -r tmp
}
want_kmc()
{
	want kmc counts 2 kmc
}

build diamond diamond
build blast makeblastdb
build hmmer "hmmbuild hmmpress"
build infernal "cmbuild cmcalibrate cmpress"
build kraken2 kraken2-build
build sqlite sqlite3
build mmseqs mmseqs
build bowtie bowtie-build
build bowtie2 bowtie2-build
build hisat2 hisat2-build
build bwa bwa
build minimap2 minimap2
build star STAR
build samtools "samtools bgzip"
build mash mash
build last lastdb
build lmdb mdb_load
build rocksdb ldb
build kmc kmc
[[ ${#tried[@]} -gt 0 ]] || skip "none of the tools is installed"

expect 0 dbtier scan --no-probe --json db
jq -r '.databases[] | "\(.format) \(.name) \(.files) \(.path)"' "$TMP/out" |
	sed "s| $TMP/db/\([^/ ]*\).*| \1|" | sort >"$TMP/found"
printf '%s\n' "${wanted[@]}" | sort >"$TMP/wanted"
diff -u "$TMP/wanted" "$TMP/found" || fail "what was found (+) is not what was made (-)"
equal "cut" "$(jq -r '[.databases[] | select(.complete | not) | .name] | join(" ")' "$TMP/out")" "what is incomplete"

printf '%-10s %-16s %s\n' FORMAT NAME FILES
while read -r format name files _; do
	printf '%-10s %-16s %s\n' "$format" "$name" "$files"
done <"$TMP/found"
echo "found ${#wanted[@]} of ${#wanted[@]}, nothing else; tools: ${tried[*]}"
[[ ${#left_out[@]} -eq 0 ]] || echo "left out, not installed: ${left_out[*]}"
