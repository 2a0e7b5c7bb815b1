# Databases made by the real tools, to see what scan makes of them. Source it after lib.sh.
#
#	make_X	builds the databases of a group, in the group's own directory; $IN has the inputs
#	want_X	says with `want` what has to be found there; all else that is found is wrong
#	build X "TOOLS"	does both, or leaves the group out and says so where a tool is not installed
#	judge	scans, prints a table with precision and recall, and fails below 100 %
# shellcheck shell=bash

IN=$TMP/in CORPUS=$TMP/corpus
mkdir "$IN" "$CORPUS"
: >"$TMP/wanted"
tried=() left_out=()

# Park and Miller's generator, exact in a double: every awk gives the same sequences.
# shellcheck disable=SC2034 # used by the scripts, too
RANDOM_AWK='
function rnd(n) { x = (16807 * x) % 2147483647; return int(x / 2147483647 * n) }
function draw(letters, n,   s) { for (s = ""; n > 0; n--) s = s substr(letters, rnd(length(letters)) + 1, 1); return s }
function dna(n) { return draw("ACGT", n) }
function protein(n) { return "M" draw("ARNDCQEGHILKMFPSTWYV", n) }
'

inputs()
{
	awk "$RANDOM_AWK"'BEGIN { x = 4242
		for (i = 0; i < 200; i++) printf ">SYN%03d synthetic\n%s\n", i, protein(200) }' >"$IN/prot.faa"
	awk "$RANDOM_AWK"'BEGIN { x = 777
		for (c = 1; c <= 4; c++) { printf ">ctg%d synthetic\n", c; for (l = 0; l < 500; l++) print dna(60) } }' >"$IN/genome.fna"
	awk "$RANDOM_AWK"'BEGIN { x = 99
		for (i = 1; i <= 40; i++) printf ">tx%02d gene=g%02d\n%s\n", i, (i + 1) / 2, dna(400 + rnd(600)) }' >"$IN/transcripts.fna"
	awk "$RANDOM_AWK"'BEGIN { x = 5
		for (f = 1; f <= 4; f++) { b = protein(80)
			print "# STOCKHOLM 1.0"; printf "#=GF ID FAM%d\n", f
			for (m = 1; m <= 5; m++) printf "f%ds%d %s\n", f, m, b
			print "//" } }' >"$IN/fam.sto"
	awk 'BEGIN { print "# STOCKHOLM 1.0"; print "#=GF ID RNA1"
		for (m = 1; m <= 5; m++) printf "r%d GGGCAUGCAAGAAAUUGCAUGCCC\n", m
		print "#=GC SS_cons <<<<<<<<<<....>>>>>>>>>>"; print "//" }' >"$IN/rna.sto"
	awk 'BEGIN { OFS = "\t"
		for (c = 1; c <= 4; c++) for (k = 0; k < 8; k++) { s = 1000 + k * 3500; a = sprintf("gene_id \"c%dg%d\"; transcript_id \"c%dg%d.t\";", c, k, c, k)
			print "ctg" c, "syn", "transcript", s, s + 899, ".", "+", ".", a
			print "ctg" c, "syn", "exon", s, s + 899, ".", "+", ".", a } }' >"$IN/genes.gtf"
	# A taxonomy as NCBI dumps it: a species for each contig.
	printf '1\t|\t1\t|\tno rank\t|\t\t|\t8\t|\t0\t|\t1\t|\t0\t|\t0\t|\t0\t|\t0\t|\t0\t|\t\t|\n' >"$IN/nodes.dmp"
	printf '1\t|\troot\t|\t\t|\tscientific name\t|\n' >"$IN/names.dmp"
	for i in 1 2 3 4; do
		printf '%d\t|\t1\t|\tspecies\t|\t\t|\t0\t|\t1\t|\t11\t|\t1\t|\t0\t|\t1\t|\t1\t|\t0\t|\t\t|\n' $((100 + i)) >>"$IN/nodes.dmp"
		printf '%d\t|\tSynthetica %d\t|\t\t|\tscientific name\t|\n' $((100 + i)) "$i" >>"$IN/names.dmp"
	done
	awk '/^>/ { printf "%s|kraken:taxid|%d\n", $1, 100 + ++n; next } { print }' "$IN/genome.fna" >"$IN/kraken.fna"
	awk '/^>/ { print substr($1, 2) "\t" 100 + ++n }' "$IN/genome.fna" >"$IN/taxids.tsv"
}

# want FORMAT NAME FILES [cut]: in the directory of this group.
want()
{
	printf '%s\t%s\t%s\t%s\t%s\n' "$GROUP" "$1" "$2" "$3" "${4-complete}" >>"$TMP/wanted"
}

# count PATTERN: how many files of the group fit, a find(1) -path pattern below its directory.
count()
{
	find "$CORPUS/$GROUP" ! -type d -path "$CORPUS/$GROUP/$1" | wc -l
}

# build GROUP "TOOLS"
build()
{
	local tool

	GROUP=$1
	for tool in $2; do
		if ! command -v "$tool" >/dev/null; then
			left_out+=("$1 ($tool)")
			return 0
		fi
	done
	mkdir "$CORPUS/$1"
	# In a shell of its own, that set -e ends.
	(cd "$CORPUS/$1"; set -e; "make_$1") >"$TMP/log" 2>&1 &
	if ! wait $!; then
		cat "$TMP/log" >&2
		fail "cannot build $1"
	fi
	"want_$1"
	tried+=("$1")
}

judge()
{
	[[ -s $TMP/wanted ]] || skip "none of the tools is installed"
	expect 0 dbtier scan --no-probe --json "$CORPUS"
	jq -r --arg root "$CORPUS/" '.databases[] | [(.path | ltrimstr($root) | split("/")[0]), .format, .name, .files,
		if .complete then "complete" else "cut" end] | @tsv' "$TMP/out" | sort >"$TMP/found"
	sort -o "$TMP/wanted" "$TMP/wanted"
	awk -F '\t' '
		function row(name, made, found, right) {
			printf "%-12s %6d %6d %6d %6d %10.1f %7.1f\n", name, made, found, right, found - right,
				found ? 100 * right / found : 100, made ? 100 * right / made : 100 }
		FNR == NR { wanted[$0]++; made[$1]++; groups[$1]; next }
		{ found[$1]++; groups[$1]; if (wanted[$0] > 0) { wanted[$0]--; right[$1]++ } }
		END {
			printf "%-12s %6s %6s %6s %6s %10s %7s\n", "GROUP", "MADE", "FOUND", "RIGHT", "WRONG", "PRECISION%", "RECALL%"
			n = 0
			for (g in groups) names[++n] = g
			for (i = 1; i <= n; i++) for (j = i + 1; j <= n; j++) if (names[j] < names[i]) { t = names[i]; names[i] = names[j]; names[j] = t }
			for (i = 1; i <= n; i++) { g = names[i]; row(g, made[g], found[g], right[g]); m += made[g]; f += found[g]; r += right[g] }
			row("all", m, f, r) }' "$TMP/wanted" "$TMP/found"
	[[ ${#left_out[@]} -eq 0 ]] || echo "left out ${#left_out[@]} groups, not installed: ${left_out[*]}"
	: >"$TMP/out" # too long to be shown
	diff -u "$TMP/wanted" "$TMP/found" >&2 || fail "what was found (+) is not what was made (-)"
}
