#!/usr/bin/env bash
# Completion in a real bash on a pseudo-terminal: what Tab makes of a line, and which words the program then gets.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command script bsdutils
cd "$TMP"

# A stand-in for dbtier: __complete answers odd names, everything else is noted with its exact words.
mkdir bin
cat >bin/dbtier <<'END'
#!/bin/bash
for word; do
	if [[ $word == __complete ]]; then
		printf '%s\n' "$*" >>log
		printf '%s\0' 'my data' $'new\nline' 'dollar$(touch hacked)`x`' "quo'te" $'byte\xff' 'eq=1' 'col:on' '~tilde' \
			'-dash' '*glob' '!hist!' 'back\slash' '"double'
		exit
	fi
done
{ printf '<%s>' "$@"; echo; } >>words
END
chmod +x bin/dbtier
mkdir 'a dir'
touch "it's"

# press KEYS WANTED: KEYS are typed after "dbtier ", \t being Tab; WANTED is what the program gets.
keys=() wanted=()
press()
{
	keys+=("dbtier $1")
	wanted+=("$2")
}

press 'prom\tmy\t' '<promote><my data>'
press 'prom\tmy\\ d\t' '<promote><my data>'
press 'prom\t"my\t' '<promote><my data>'
press "prom\\t'my\\t" '<promote><my data>'
press 'prom\tnew\t' $'<promote><new\nline>'
press 'prom\tdol\t' '<promote><dollar$(touch hacked)`x`>'
press 'prom\t"dol\t' '<promote><dollar$(touch hacked)`x`>'
press "prom\\t'dol\\t" '<promote><dollar$(touch hacked)`x`>'
press 'prom\tquo\t' "<promote><quo'te>"
press 'prom\tbyte\t' $'<promote><byte\xff>'
press 'prom\teq\t' '<promote><eq=1>'
press 'prom\teq\\=\t' '<promote><eq=1>'
press 'prom\tcol\t' '<promote><col:on>'
press 'prom\tcol\\:\t' '<promote><col:on>'
press 'prom\t-- -\t' '<promote><--><-dash>'
press 'prom\t\\~t\t' '<promote><~tilde>'
press 'prom\t*g\t' '<promote><*glob>'
press 'prom\t!\t' '<promote><!hist!>'
press 'prom\tbac\t' '<promote><back\slash>'
press 'prom\t\\"\t' '<promote><"double>'
press 'rollb\tmy\t' '<rollback><my data>'
press 'prom\t--to a\t' '<promote><--to><a dir/>'
press 'prom\t--to=a\t' '<promote><--to=a dir/>'
press 'prom\tit\t' "<promote><it's>"
press '--prog\tjs\t stat\t' '<--progress><json><status>'
press '--progress=js\t stat\t' '<--progress=json><status>'
press 'prom\t--dry\tmy\t' '<promote><--dry-run><my data>'
press 'scan -o na\t' '<scan><-o><name>'
press 'scan -o name,ti\t' '<scan><-o><name,tier>'
press 'scan -o +gai\t' '<scan><-o><+gain>'
press 'scan --format my\t' '<scan><--format><my data>'
press 'scan a\t' '<scan><a dir/>'
press '--state-dir /x verify my\t' '<--state-dir></x><verify><my data>'

{
	printf '%s\n' "PATH=$TMP/bin:\$PATH PS1='$ ' HISTFILE=" 'set -o emacs' ". '$DBT_SOURCE/completions/dbtier.bash'"
} >rc
{
	for line in "${keys[@]}"; do
		printf '%b\n' "$line"
	done
	printf 'exit\n'
} >keys

# The terminal keeps what is typed before bash listens.
TERM=dumb timeout 30 script -qec "bash --rcfile $TMP/rc -i" /dev/null <keys >screen 2>&1 || true
[[ -e words ]] || { cat screen >&2; fail "nothing was run"; }
printf '%s\n' "${wanted[@]}" >wanted
diff -a wanted words || { cat -A screen >&2; fail "completion inserted something else"; }
[[ ! -e hacked ]] || fail "a name was evaluated"

# Which lists were asked for, and in which state directory.
grep -qx '__complete plain -- my' log || fail "promote did not ask for plain databases"
grep -qx '__complete formats -- my' log || fail "scan did not ask for formats"
grep -qx '__complete active -- my' log || fail "rollback did not ask for active promotions"
grep -qx -- '--state-dir /x __complete active -- my' log || fail "--state-dir was not handed on"

# The real names, from a real ledger, without touching the databases' disk.
mkdir db
"$DBT_TOOLS/mkdb" diamond "db/real one.dmnd" 200K
expect 0 dbtier scan --no-probe db
rm -r db
dbtier __complete plain | tr '\0' '\n' >names
grep -qx 'real one.dmnd' names || fail "the name of the file is not offered"
equal 'real one.dmnd' "$(dbtier __complete plain 'real one.' | tr '\0' '\n')" "names that begin so"
expect 0 dbtier __complete active
out_is_empty
dbtier __complete formats | tr '\0' '\n' >names
grep -qx diamond names || fail "the format is not offered"
expect 2 dbtier __complete everything
expect 0 "$DBTIER" --state-dir "$TMP/none" __complete plain
out_is_empty
[[ ! -e $TMP/none ]] || fail "completion made a state directory"

# Directories to promote to: the configured one and those used before first. Nothing hangs on a mount that is dead or
# slow, because none but local ones of a fast tier is asked; the time is a hint, not a promise.
mkdir fast
mkdir -p xdg/dbtier
echo "target $TMP/fast" >xdg/dbtier/dbtier.conf
export XDG_CONFIG_HOME=$TMP/xdg
expect 0 dbtier __complete --notes targets
equal "$TMP/fast
configured" "$(tr '\0' '\n' <out | head -n 2)" "the first target"
if command -v strace >/dev/null; then
	for kind in plain active formats targets; do
		strace -f -o trace "$DBTIER" --state-dir "$TMP/state" __complete $kind >/dev/null
		! grep -E 'open(at)?\(.*"/dev/[^n]|newfstatat\(.*"/(mnt|media|srv)|statfs\("/(mnt|media|srv)' trace ||
			fail "__complete $kind touches a device or a mount"
	done
fi
start=$(date +%s%N)
for _ in 1 2 3 4 5 6 7 8 9 10; do
	dbtier __complete targets >/dev/null
done
echo "targets: $((($(date +%s%N) - start) / 10000000)) ms"
