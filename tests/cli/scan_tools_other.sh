#!/usr/bin/env bash
# Databases made by the real tools with other parameters than usual: many volumes, 64-bit and big-endian indices, split and
# compressed sets, old versions of formats, and some cut short, which has to be told. See scan_tools.sh.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
. "$DBT_SOURCE/tests/support/corpus.sh"
inputs

make_blast()
{
	local v

	for v in $(seq 1 30); do sed "s/^>SYN/>V${v}_/" "$IN/prot.faa"; done >many.faa
	# As nr comes: volumes under an alias, with what is common to all of them.
	makeblastdb -in many.faa -dbtype prot -parse_seqids -blastdb_version 5 -max_file_sz 1MB -out vols5
	makeblastdb -in many.faa -dbtype prot -parse_seqids -blastdb_version 4 -max_file_sz 1MB -hash_index -out vols4
	makeblastdb -in "$IN/genome.fna" -dbtype nucl -hash_index -title 'a title: "quoted" and with blanks' -out with.dots.v1
	# An alias made by hand over volumes, and one over databases of other names, which stay their own.
	for v in 00 01; do makeblastdb -in "$IN/prot.faa" -dbtype prot -title part -out "hand.$v"; done
	blastdb_aliastool -dblist "hand.00 hand.01" -dbtype prot -title hand -out hand
	blastdb_aliastool -dblist "vols5 hand" -dbtype prot -title over -out over
	# One volume has lost its last bytes.
	makeblastdb -in many.faa -dbtype prot -max_file_sz 1MB -out torn
	truncate -s -1 torn.01.psq
	rm many.faa
}
want_blast()
{
	for base in vols5 vols4 with.dots.v1 hand over; do want blast $base "$(count "$base.*")"; done
	want blast torn "$(count 'torn.*')" cut
	[[ $(count 'vols5.0?.pin') -gt 1 ]] || fail "no volumes were made"
}

make_bowtie()
{
	bowtie-build -q --threads 1 --large-index "$IN/genome.fna" large
	bowtie-build -q --threads 1 --big "$IN/genome.fna" big
}
want_bowtie()
{
	want bowtie large 6
	want bowtie big 6
}

make_bowtie2()
{
	bowtie2-build -q --threads 1 --large-index "$IN/genome.fna" large
	bowtie2-build -q --threads 1 --big "$IN/genome.fna" big
	bowtie2-build -q --threads 1 -o 8 -t 6 "$IN/genome.fna" sparse
	# Both widths under one name, and one without its reverse half.
	bowtie2-build -q --threads 1 "$IN/genome.fna" both
	bowtie2-build -q --threads 1 --large-index "$IN/genome.fna" both
	bowtie2-build -q --threads 1 "$IN/genome.fna" half
	rm half.rev.2.bt2
}
want_bowtie2()
{
	for base in large big sparse both both; do want bowtie2 $base 6; done
	want bowtie2 half 5 cut
}

make_hisat2()
{
	hisat2-build -q -p 1 --large-index "$IN/genome.fna" large
	hisat2-build -q -p 1 --big "$IN/genome.fna" big
}
want_hisat2()
{
	want hisat2 large 8
	want hisat2 big 8
}

make_centrifuge()
{
	centrifuge-build -p 1 --big --conversion-table "$IN/taxids.tsv" --taxonomy-tree "$IN/nodes.dmp" \
		--name-table "$IN/names.dmp" "$IN/genome.fna" big
}
want_centrifuge()
{
	want centrifuge big "$(count 'big.*')"
}

make_bwa()
{
	cp "$IN/genome.fna" .
	bwa index -6 genome.fna # its names have .64, beside which the small ones may stand
	bwa index -p small -a is genome.fna
	bwa index -p torn genome.fna
	truncate -s -1 torn.sa
}
want_bwa()
{
	want bwa genome.fna.64 5
	want bwa small 5
	want bwa torn 5 cut
}

make_mmseqs()
{
	mmseqs createdb "$IN/genome.fna" split --dbtype 2 -v 1
	mmseqs createindex split tmp --search-type 3 -k 9 --split 3 --threads 2 -v 1
	mmseqs createdb "$IN/prot.faa" packed --compressed 1 -v 1
	mmseqs splitdb packed part --split 2 -v 1
	mmseqs linclust packed clu tmp --threads 2 -v 1
	mmseqs result2profile packed packed clu prof --threads 2 -v 1
	mmseqs createdb "$IN/prot.faa" torn --compressed 1 -v 1
	truncate -s -1 torn
	rm -r tmp
}
want_mmseqs()
{
	want mmseqs split "$(count 'split*')"
	[[ $(count 'split.idx.[0-9]') -gt 1 ]] || fail "the index was not split"
	for base in packed part_0_2 part_1_2 clu prof; do want mmseqs $base "$(count "$base*")"; done
	want mmseqs torn 8 cut
}

make_hmmer()
{
	local v

	hmmbuild --seed 1 now.hmm "$IN/fam.sto"
	for v in a b c d e; do hmmconvert --outfmt 3/$v now.hmm >old$v.hmm; done
	hmmconvert -b oldb.hmm >binary.hmm
	hmmconvert -2 now.hmm >two.hmm
	hmmpress oldb.hmm # the parts are of the present version
	hmmfetch --index now.hmm
	cp now.hmm torn
	hmmpress torn
	rm torn
	truncate -s -1 torn.h3p
}
want_hmmer()
{
	for base in olda oldc oldd olde binary two; do want hmmer $base 1; done
	want hmmer oldb 5
	want hmmer now 2
	want hmmer torn 4 cut
}

make_diamond()
{
	diamond makedb --quiet -p 1 --in "$IN/prot.faa" -d plain
	diamond makedb --quiet -p 1 --in "$IN/prot.faa" --taxonnodes "$IN/nodes.dmp" --taxonnames "$IN/names.dmp" \
		--taxonmap <(awk 'BEGIN { OFS = "\t"; print "accession", "accession.version", "taxid", "gi" }
			/^>/ { print substr($1, 2), substr($1, 2), 101, 0 }' "$IN/prot.faa") -d taxa
	cp plain.dmnd 'a name with blanks.dmnd'
}
want_diamond()
{
	for name in plain taxa 'a name with blanks'; do want diamond "$name" 1; done
}

make_minimap2()
{
	minimap2 -I 40k -d parts.mmi "$IN/genome.fna"
	minimap2 -H -k 19 -w 5 -d hpc.mmi "$IN/genome.fna"
}
want_minimap2()
{
	want minimap2 parts 1
	want minimap2 hpc 1
}

make_last()
{
	lastdb -P1 -s 20000 vols "$IN/genome.fna"
	lastdb -P1 -p -c -R01 masked "$IN/prot.faa"
}
want_last()
{
	want last vols "$(count 'vols*')"
	want last masked "$(count 'masked*')"
	[[ $(count 'vols[0-9].prj') -gt 1 ]] || fail "no volumes were made"
}

make_sqlite()
{
	sqlite3 p512.db "PRAGMA page_size=512; PRAGMA auto_vacuum=1; CREATE TABLE t(a); INSERT INTO t VALUES (zeroblob(100000));"
	sqlite3 log.db "PRAGMA journal_mode=WAL; CREATE TABLE t(a);"
	sqlite3 utf16.sqlite3 "PRAGMA encoding='UTF-16le'; PRAGMA application_id=1196437808; CREATE TABLE t(a);"
	cp p512.db torn.db
	truncate -s -512 torn.db
}
want_sqlite()
{
	for name in p512.db log.db utf16.sqlite3; do want sqlite $name 1; done
	want sqlite torn.db 1 cut
}

make_subread()
{
	subread-buildindex -B -F -M 500 -o full "$IN/genome.fna"
}
want_subread()
{
	want subread full "$(count 'full.[!l]*')"
}

make_kma()
{
	kma index -i "$IN/transcripts.fna" -o sparse -Sparse ATG
	kma index -i "$IN/transcripts.fna" -o k12 -k 12
}
want_kma()
{
	want kma sparse "$(count 'sparse.*')"
	want kma k12 "$(count 'k12.*')"
}

make_salmon()
{
	salmon index -t "$IN/transcripts.fna" -i sparse -k 31 --sparse -p 1
	salmon index -t "$IN/transcripts.fna" -i torn -k 15 -p 1
	rm torn/mphf.bin
}
want_salmon()
{
	want salmon sparse "$(count 'sparse/*')"
	want salmon torn "$(count 'torn/*')" cut
}

make_kallisto()
{
	kallisto index -i k31.idx -k 31 "$IN/transcripts.fna"
}
want_kallisto()
{
	want kallisto k31 1
}

make_vsearch()
{
	vsearch --quiet --makeudb_usearch "$IN/transcripts.fna" --wordlength 6 --dbmask none --output w6.udb
}
want_vsearch()
{
	want usearch-udb w6 1
}

make_jellyfish()
{
	jellyfish count -m 15 -s 100k -t 2 --out-counter-len 1 -o short.jf "$IN/genome.fna"
	jellyfish bc -m 15 -s 100k -t 1 -o bloom.bc "$IN/genome.fna"
}
want_jellyfish()
{
	want jellyfish short 1
	want jellyfish bloom.bc 1
}

make_kmc()
{
	mkdir tmp
	kmc -k31 -m2 -sm -ci1 -cs65000 -b -fm -t1 "$IN/genome.fna" k31 tmp
	rm -r tmp
}
want_kmc()
{
	want kmc k31 2
}

make_star()
{
	STAR --runMode genomeGenerate --genomeDir sparse --genomeFastaFiles "$IN/genome.fna" --genomeSAindexNbases 5 \
		--genomeSAsparseD 2 --runThreadN 1 --outFileNamePrefix ./
	cp -r sparse torn
	rm torn/SA
	rm -rf Log.out _STARtmp
}
want_star()
{
	want star sparse "$(count 'sparse/*')"
	want star torn "$(count 'torn/*')" cut
}

make_kraken2()
{
	local k

	for k in k35 torn; do
		mkdir -p $k/taxonomy
		cp "$IN/nodes.dmp" "$IN/names.dmp" $k/taxonomy/
		touch $k/taxonomy/accmap.dlflag
		kraken2-build --add-to-library "$IN/kraken.fna" --db $k --no-masking
		kraken2-build --build --db $k --threads 1 --fast-build
		kraken2-build --clean --db $k
	done
	printf 'mapped_taxid\t...\n' >k35/database100mers.kmer_distrib # as Bracken adds them
	truncate -s -4 torn/hash.k2d
}
want_kraken2()
{
	want kraken2 k35 "$(count 'k35/*')"
	want kraken2 torn "$(count 'torn/*')" cut
}

make_lmdb()
{
	local i

	{
		printf 'VERSION=3\nformat=print\ntype=btree\nmapsize=10485760\ndatabase=named\nduplicates=1\nHEADER=END\n'
		for i in $(seq 1000 3000); do printf ' key%d\n %0100d\n' "$i" "$i"; done
		printf 'DATA=END\n'
	} >in.txt
	mkdir env torn
	mdb_load -s named -f in.txt env
	mdb_load -n -s named -f in.txt file.lmdb
	cp env/* torn/
	truncate -s 8192 torn/data.mdb
	rm in.txt
}
want_lmdb()
{
	want lmdb env 2
	want lmdb file.lmdb 2
	want lmdb torn 2 cut
}

make_rocksdb()
{
	local i

	for i in 1 2 3; do ldb --db=many --create_if_missing put k$i v$i; done
	ldb --db=many create_column_family other
	cp -r many torn
	rm torn/MANIFEST-*
	# LevelDB, of which browsers keep dozens, is no RocksDB.
	mkdir level
	echo MANIFEST-000002 >level/CURRENT
	head -c 100 /dev/zero >level/MANIFEST-000002
}
want_rocksdb()
{
	want rocksdb many "$(count 'many/*')"
	want rocksdb torn "$(count 'torn/*')" cut
}

make_faiss()
{
	/usr/bin/python3 - <<'PY'
import os, numpy as np, faiss
from faiss.contrib.ondisk import merge_ondisk
v = np.random.RandomState(3).rand(600, 32).astype("float32")
# Lists on disk: the second file is named by its absolute path inside the first.
ivf = faiss.index_factory(32, "IVF4,Flat"); ivf.train(v); faiss.write_index(ivf, "empty")
ivf.add(v); faiss.write_index(ivf, "block")
ivf = faiss.read_index("empty")
merge_ondisk(ivf, ["block"], os.path.abspath("disk.ivfdata")); faiss.write_index(ivf, "disk.faiss")
os.remove("empty"); os.remove("block")
pre = faiss.index_factory(32, "PCA16,Flat"); pre.train(v); pre.add(v); faiss.write_index(pre, "pca.faiss")
sq = faiss.index_factory(32, "SQ8"); sq.train(v); sq.add(v); faiss.write_index(sq, "sq8.faiss")
PY
}
want_faiss()
{
	want faiss disk 2
	want faiss pca 1
	want faiss sq8 1
}

make_samtools()
{
	cp "$IN/genome.fna" ref.fasta
	samtools faidx ref.fasta
	samtools dict ref.fasta -o ref.dict
	printf 'ctg1\t10\t20\nctg1\t30\t40\n' | bgzip -c >regions.bed.gz
	tabix -p bed regions.bed.gz
	bgzip -c -l 0 ref.fasta >stored.fa.gz
	samtools faidx stored.fa.gz
	cp stored.fa.gz torn.fa.gz
	samtools faidx torn.fa.gz
	truncate -s -10 torn.fa.gz
	printf '@r\nACGT\n+\nIIII\n' >reads.fq # reads with an index are no reference
}
want_samtools()
{
	want fasta ref.fasta 3
	want bgzf regions.bed.gz 2
	want bgzf stored.fa.gz 3
	want bgzf torn.fa.gz 3 cut
}

make_archive()
{
	tar -C "$IN" --format=pax -cf pax.tar prot.faa
	tar -C "$IN" -c prot.faa | zstd -q -19 -o long.tar.zst
	tar -C "$IN" -c prot.faa | gzip -c >short.tgz
}
want_archive()
{
	for name in pax.tar long.tar.zst short.tgz; do want archive $name 1; done
}

build blast "makeblastdb blastdb_aliastool"
build bowtie bowtie-build
build bowtie2 bowtie2-build
build hisat2 hisat2-build
build centrifuge centrifuge-build
build bwa bwa
build mmseqs mmseqs
build hmmer "hmmbuild hmmpress hmmconvert hmmfetch"
build diamond diamond
build minimap2 minimap2
build last lastdb
build sqlite sqlite3
if [[ ${DBT_FULL-} ]]; then build subread subread-buildindex; else left_out+=("subread (220 MB: DBT_FULL)"); fi
build kma kma
build salmon salmon
build kallisto kallisto
build vsearch vsearch
build jellyfish jellyfish
build kmc kmc
build star STAR
build kraken2 kraken2-build
build lmdb mdb_load
build rocksdb ldb
if /usr/bin/python3 -c 'import faiss, numpy' 2>/dev/null; then build faiss true; else left_out+=("faiss (python3-faiss)"); fi
build samtools "samtools bgzip tabix"
build archive "tar gzip zstd"
judge
