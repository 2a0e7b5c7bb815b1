#!/usr/bin/env bash
# Databases made by the real tools, and files that only look like some: each database found with its format, its name
# and all its files, and nothing else. The table tells precision and recall; a tool that is not installed leaves its
# group out.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command jq jq
. "$DBT_SOURCE/tests/support/corpus.sh"
inputs

# --- whole databases in one file ----------------------------------------------------------------------------

make_diamond()
{
	diamond makedb --quiet -p 2 --in "$IN/prot.faa" -d prot
	# An index of seeds lies beside the database; newer versions may not make one.
	cp prot.dmnd indexed.dmnd
	diamond makeidx --quiet -p 2 -d indexed.dmnd || rm -f indexed.dmnd*
}
want_diamond()
{
	want diamond prot 1
	[[ ! -e $CORPUS/diamond/indexed.dmnd ]] || want diamond indexed "$(count 'indexed.dmnd*')"
}

make_sqlite()
{
	sqlite3 kv.db "CREATE TABLE ups (hash BLOB PRIMARY KEY, length INTEGER) WITHOUT ROWID; INSERT INTO ups VALUES (x'00', 1);"
	sqlite3 page64k.sqlite "PRAGMA page_size=65536; CREATE TABLE t(a); INSERT INTO t VALUES (1);"
	# A log with rows in it, as a writer has it that is still there.
	printf '%s\n' 'PRAGMA journal_mode=WAL; CREATE TABLE t(a); INSERT INTO t VALUES(1);' \
		'.shell cp w.db wal.db; cp w.db-wal wal.db-wal; cp w.db-shm wal.db-shm' | sqlite3 w.db
	rm w.db
}
want_sqlite()
{
	want sqlite kv.db 1
	want sqlite page64k.sqlite 1
	want sqlite wal.db 3
}

make_minimap2()
{
	minimap2 -d genome.mmi "$IN/genome.fna"
}
want_minimap2()
{
	want minimap2 genome 1
}

make_kallisto()
{
	kallisto index -i tx.idx -k 21 "$IN/transcripts.fna"
}
want_kallisto()
{
	want kallisto tx 1
}

make_mash()
{
	mash sketch -s 400 -i -o genome "$IN/genome.fna"
	mash sketch -s 400 -a -i -o prot "$IN/prot.faa"
}
want_mash()
{
	want mash genome 1
	want mash prot 1
}

make_vsearch()
{
	vsearch --quiet --makeudb_usearch "$IN/transcripts.fna" --output tx.udb
}
want_vsearch()
{
	want usearch-udb tx 1
}

make_jellyfish()
{
	jellyfish count -m 21 -s 200k -t 1 -o mers.jf "$IN/genome.fna"
}
want_jellyfish()
{
	want jellyfish mers 1
}

make_hdf5()
{
	printf '1 2 3 4\n' >in.txt
	printf 'PATH data\nINPUT-CLASS TEXTIN\nINPUT-SIZE 32\nRANK 2\nDIMENSION-SIZES 1 4\nOUTPUT-CLASS IN\nOUTPUT-SIZE 32\n' >conf.txt
	h5import in.txt -c conf.txt -o plain.h5
	# Foreign bytes before the signature, which then stands at 512.
	head -c 512 /dev/zero | tr '\0' u >block
	h5jam -u block -i plain.h5 -o userblock.h5
	rm in.txt conf.txt block
}
want_hdf5()
{
	want hdf5 plain.h5 1
	want hdf5 userblock.h5 1
}

make_faiss()
{
	/usr/bin/python3 - <<'PY'
import numpy as np, faiss
v = np.random.RandomState(7).rand(512, 16).astype("float32")
def write(index, name, train=False):
    if train: index.train(v)
    index.add(v); faiss.write_index(index, name)
write(faiss.IndexFlatL2(16), "flat.faiss")
write(faiss.IndexFlatIP(16), "ip.index")
write(faiss.IndexIVFFlat(faiss.IndexFlatL2(16), 16, 8), "ivf.faiss", True)
write(faiss.IndexIVFPQ(faiss.IndexFlatL2(16), 16, 8, 4, 4), "ivfpq.faiss", True)
write(faiss.IndexHNSWFlat(16, 8), "hnsw.faiss")
PY
}
want_faiss()
{
	want faiss ip.index 1
	for name in flat ivf ivfpq hnsw; do want faiss $name 1; done
}

make_archive()
{
	tar -C "$IN" -cf db.tar prot.faa genome.fna
	gzip -nc db.tar >db.tar.gz
	bzip2 -kc db.tar >db.tar.bz2
	xz -T1 -kc db.tar >db.tar.xz
	zstd -q db.tar -o db.tar.zst
}
want_archive()
{
	for end in '' .gz .bz2 .xz .zst; do want archive db.tar$end 1; done
}

# --- sets -------------------------------------------------------------------------------------------------

make_blast()
{
	local v

	for v in 4 5; do
		makeblastdb -in "$IN/prot.faa" -dbtype prot -parse_seqids -blastdb_version $v -out prot_v$v
		makeblastdb -in "$IN/genome.fna" -dbtype nucl -parse_seqids -blastdb_version $v -out nucl_v$v
	done
	makeblastdb -in "$IN/genome.fna" -dbtype nucl -out megaidx
	makembindex -input megaidx -iformat blastdb -old_style_index false -nmer 8 -stride 5 -ws_hint 12
}
want_blast()
{
	for base in prot_v4 nucl_v4 prot_v5 nucl_v5 megaidx; do want blast $base "$(count "$base.*")"; done
}

make_rpsblast()
{
	makeblastdb -in "$IN/prot.faa" -dbtype prot -out db
	head -n 2 "$IN/prot.faa" >query.faa
	psiblast -query query.faa -db db -num_iterations 2 -out_pssm q.smp -save_pssm_after_last_round -out /dev/null
	echo q.smp >list.pn
	makeprofiledb -in list.pn -out profiles -dbtype rps -title synthetic
	rm db.* query.faa
}
want_rpsblast()
{
	want blast profiles "$(count 'profiles.*')"
}

make_hmmer()
{
	hmmbuild --seed 1 fams.hmm "$IN/fam.sto"
	hmmconvert -b fams.hmm >binary.hmm
	cp fams.hmm plain.hmm
	hmmpress fams.hmm
}
want_hmmer()
{
	want hmmer fams 5
	want hmmer plain 1
	want hmmer binary 1
}

# Calibrated models take a minute to make, for nothing that scan looks at: one is made for both groups.
covariance_model()
{
	[[ ! -e $TMP/rna.cm ]] || return 0
	cmbuild -F "$TMP/rna.cm" "$IN/rna.sto"
	cmcalibrate --cpu 2 --seed 1 -L 0.02 "$TMP/rna.cm"
}

make_infernal()
{
	covariance_model
	cp "$TMP/rna.cm" .
	cmpress rna.cm
}
want_infernal()
{
	want infernal rna 5
}

make_mmseqs()
{
	mmseqs createdb "$IN/prot.faa" protDB -v 1
	mmseqs createdb "$IN/genome.fna" nuclDB --dbtype 2 -v 1
	mmseqs createindex nuclDB tmp --search-type 3 -k 9 --threads 2 -v 1
	mmseqs linclust protDB cluDB tmp --threads 2 -v 1
	# Its data is a link to the FASTA file.
	cp "$IN/prot.faa" one.faa
	mmseqs createdb one.faa softDB --createdb-mode 1 --shuffle 0 -v 1
	rm -r tmp
}
want_mmseqs()
{
	want mmseqs protDB 8
	want mmseqs softDB 8
	want mmseqs nuclDB 11
	want mmseqs cluDB "$(count 'cluDB*')"
}

make_hhsuite()
{
	mkdir a3m hhm
	awk '/^#=GF ID/ { id = $3 } /^f[0-9]/ { print ">" $1 "\n" $2 >("a3m/" id) } /^\/\// { close("a3m/" id) }' "$IN/fam.sto"
	for f in a3m/*; do hhmake -i "$f" -o "hhm/${f#a3m/}" -v 0; done
	ffindex_build -s syn_a3m.ffdata syn_a3m.ffindex a3m
	ffindex_build -s syn_hhm.ffdata syn_hhm.ffindex hhm
	rm -r a3m hhm
	cp syn_hhm.ffdata syn_cs219.ffdata # its contents are nothing that scan looks at
	cp syn_hhm.ffindex syn_cs219.ffindex
}
want_hhsuite()
{
	want hhsuite syn 6
}

make_bowtie()
{
	bowtie-build -q --threads 1 --seed 1 "$IN/genome.fna" small
}
want_bowtie()
{
	want bowtie small 6
}

make_bowtie2()
{
	bowtie2-build -q --threads 1 --seed 1 "$IN/genome.fna" small
}
want_bowtie2()
{
	want bowtie2 small 6
}

make_hisat2()
{
	hisat2-build -q -p 1 --seed 1 "$IN/genome.fna" small
}
want_hisat2()
{
	want hisat2 small 8
}

make_bwa()
{
	cp "$IN/genome.fna" .
	bwa index genome.fna
}
want_bwa()
{
	want bwa genome.fna 6
}

make_centrifuge()
{
	centrifuge-build -p 1 --conversion-table "$IN/taxids.tsv" --taxonomy-tree "$IN/nodes.dmp" \
		--name-table "$IN/names.dmp" "$IN/genome.fna" cf
}
want_centrifuge()
{
	want centrifuge cf "$(count 'cf.*')"
}

make_last()
{
	lastdb -P1 lastN "$IN/genome.fna"
	lastdb -P1 -p lastP "$IN/prot.faa"
}
want_last()
{
	want last lastN 7
	want last lastP 7
}

make_kma()
{
	kma index -i "$IN/transcripts.fna" -o kmadb
}
want_kma()
{
	want kma kmadb "$(count 'kmadb.*')"
}

make_kmc()
{
	mkdir tmp
	kmc -k21 -m2 -sm -ci1 -fm -t1 "$IN/genome.fna" counts tmp
	rm -r tmp
}
want_kmc()
{
	want kmc counts 2
}

make_meryl()
{
	cp "$IN/genome.fna" m.fna # an index is written beside it
	meryl -B -C -m 12 -s m.fna -o mer
	rm m.fna*
}
want_meryl()
{
	want meryl1 mer 2
}

make_subread()
{
	subread-buildindex -M 500 -o sr "$IN/genome.fna"
}
want_subread()
{
	want subread sr "$(count 'sr.[!l]*')" # sr.log is none of it
}

make_rsem()
{
	rsem-prepare-reference --gtf "$IN/genes.gtf" "$IN/genome.fna" rs
}
want_rsem()
{
	want rsem rs "$(count 'rs.*')"
}

make_samtools()
{
	cp "$IN/genome.fna" ref.fa
	samtools faidx ref.fa
	bgzip -c ref.fa >packed.fa.gz
	samtools faidx packed.fa.gz
	gzip -nc ref.fa >plain.fa.gz
	printf '##fileformat=VCFv4.2\n##contig=<ID=ctg1,length=30000>\n#CHROM\tPOS\tID\tREF\tALT\tQUAL\tFILTER\tINFO\nctg1\t100\t.\tA\tG\t50\tPASS\t.\n' |
		bgzip -c >tbi.vcf.gz
	cp tbi.vcf.gz csi.vcf.gz
	tabix -p vcf tbi.vcf.gz
	tabix -C -p vcf csi.vcf.gz
	printf '@HD\tVN:1.6\tSO:coordinate\n@SQ\tSN:ctg1\tLN:30000\nr1\t0\tctg1\t100\t60\t10M\t*\t0\t0\tACGTACGTAC\tIIIIIIIIII\n' >a.sam
	samtools view -b -o a.bam a.sam
	samtools index a.bam
	samtools view -C -T ref.fa -o a.cram a.sam
	samtools index a.cram
	rm a.sam
}
want_samtools()
{
	want fasta ref.fa 2
	want bgzf packed.fa.gz 3
	want archive plain.fa.gz 1
	want bgzf tbi.vcf.gz 2
	want bgzf csi.vcf.gz 2
	want bam a.bam 2
	want cram a.cram 2
}

# --- directories ------------------------------------------------------------------------------------------

make_kraken2()
{
	mkdir -p k2/taxonomy
	cp "$IN/nodes.dmp" "$IN/names.dmp" k2/taxonomy/
	touch k2/taxonomy/accmap.dlflag
	kraken2-build --add-to-library "$IN/kraken.fna" --db k2 --no-masking
	kraken2-build --build --db k2 --threads 2 --kmer-len 25 --minimizer-len 15 --minimizer-spaces 3 --fast-build
}
want_kraken2()
{
	want kraken2 k2 4
}

make_star()
{
	STAR --runMode genomeGenerate --genomeDir star --genomeFastaFiles "$IN/genome.fna" --sjdbGTFfile "$IN/genes.gtf" \
		--sjdbOverhang 99 --genomeSAindexNbases 6 --genomeChrBinNbits 14 --runThreadN 1 --outFileNamePrefix ./
	rm -rf Log.out _STARtmp
}
want_star()
{
	want star star "$(count 'star/*')"
}

make_salmon()
{
	salmon index -t "$IN/transcripts.fna" -i idx -k 21 -p 2
}
want_salmon()
{
	want salmon idx "$(count 'idx/*')"
}

make_gmap()
{
	gmap_build -d syn -D . -k 10 "$IN/genome.fna"
}
want_gmap()
{
	want gmap syn "$(count 'syn/syn.*')"
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
	want lmdb env 2
	want lmdb single.mdb 2
}

make_rocksdb()
{
	ldb --db=rdb --create_if_missing put k v
	ldb --db=rdb compact
}
want_rocksdb()
{
	want rocksdb rdb "$(count 'rdb/*')"
}

make_bakta()
{
	local n

	mkdir -p db-light/amrfinderplus-db/2024-01-01.1
	cd db-light
	covariance_model
	for n in antifam pfam; do
		hmmbuild --seed 1 $n "$IN/fam.sto"
		hmmpress $n
	done
	for n in ncRNA-genes ncRNA-regions rRNA; do
		cp "$TMP/rna.cm" $n
		cmpress $n
	done
	rm antifam pfam ncRNA-genes ncRNA-regions rRNA # Bakta has the pressed parts only
	for n in expert-protein-sequences sorf pscc; do diamond makedb --quiet -p 1 --in "$IN/prot.faa" -d $n; done
	sqlite3 bakta.db "CREATE TABLE ups (hash BLOB PRIMARY KEY, length INTEGER) WITHOUT ROWID"
	cp "$IN/transcripts.fna" oric.fna
	cp "$IN/transcripts.fna" orit.fna
	printf 'Rfam:RF00001\tGO:0003735\n' >rfam-go.tsv
	printf '{ "date": "2025-02-24", "major": 6, "minor": 0, "type": "light" }\n' >version.json
	printf '2024-01-01.1\n' >amrfinderplus-db/2024-01-01.1/version.txt
	ln -s 2024-01-01.1 amrfinderplus-db/latest
}
want_bakta()
{
	want bakta db-light 28
}

# --- what is none, or not all of one ------------------------------------------------------------------------

make_decoys()
{
	echo 'not a diamond file, whatever its name says' >fake.dmnd
	echo 'SQLite format 3 is mentioned here' >note.db
	printf 'SQLite format 3\000' >short.db
	: >empty.db
	: >empty.h3m
	head -c 4096 /dev/zero >zeros.idx
	printf '\037\213\010\000' >stub.gz
	ln -s nowhere.dmnd dangling.dmnd
	ln -s loop.db loop.db
	if [[ -e ../diamond/prot.dmnd ]]; then
		head -c 100 ../diamond/prot.dmnd >cut.dmnd
		for _ in 1 2; do cat "$IN/prot.faa"; done >more.faa
		diamond makedb --quiet -p 1 --in more.faa -d renamed
		rm more.faa
		mv renamed.dmnd renamed.bin
	fi
	if [[ -e ../blast/prot_v5.pin ]]; then
		mkdir partial
		cp ../blast/prot_v5.{pin,phr} partial/
	fi
}
want_decoys()
{
	[[ -e $CORPUS/decoys/cut.dmnd ]] || return 0
	want diamond cut 1 cut
	want diamond renamed.bin 1
	[[ ! -e $CORPUS/decoys/partial ]] || want blast prot_v5 2 cut
}

build diamond diamond
build sqlite sqlite3
build minimap2 minimap2
build kallisto kallisto
build mash mash
build vsearch vsearch
build jellyfish jellyfish
build hdf5 "h5import h5jam"
if /usr/bin/python3 -c 'import faiss, numpy' 2>/dev/null; then build faiss true; else left_out+=("faiss (python3-faiss)"); fi
build archive "tar gzip bzip2 xz zstd"
build blast "makeblastdb makembindex"
build rpsblast "makeblastdb psiblast makeprofiledb"
build hmmer "hmmbuild hmmpress hmmconvert"
build infernal "cmbuild cmcalibrate cmpress"
build mmseqs mmseqs
build hhsuite "hhmake ffindex_build"
build bowtie bowtie-build
build bowtie2 bowtie2-build
build hisat2 hisat2-build
build bwa bwa
build centrifuge centrifuge-build
build last lastdb
build kma kma
build kmc kmc
build meryl meryl
build subread subread-buildindex
build rsem rsem-prepare-reference
build samtools "samtools bgzip tabix"
build kraken2 kraken2-build
build star STAR
build salmon salmon
if [[ ${DBT_FULL-} ]]; then build gmap gmap_build; else left_out+=("gmap (takes long: DBT_FULL)"); fi
build lmdb mdb_load
build rocksdb ldb
build bakta "diamond hmmbuild hmmpress cmbuild cmcalibrate cmpress sqlite3"
build decoys true
judge
