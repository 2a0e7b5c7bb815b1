#!/usr/bin/env bash
# Completion in the real shells, on a pseudo-terminal: what Tab makes of a line, which words the program then gets, and
# what is offered. What was typed and shown is printed, a session for each shell. COMPLETION_SHELL=NAME: only that one.
# timeout: 300
. "$(dirname "$0")/../support/lib.sh"
need_command expect expect
cd "$TMP"

# A stand-in for dbtier: __complete answers odd names, everything else is noted with its exact words.
mkdir bin
cat >bin/dbtier <<'END'
#!/bin/bash
notes='' kind=''
for word; do
	case $word in
	--notes) notes=1 ;;
	plain | active | formats | targets) kind=$word ;;
	esac
done
say()
{
	printf '%s\0' "$1"
	[[ -z $notes ]] || printf '%s\0' "$2"
}
for word; do
	if [[ $word == __complete ]]; then
		printf '%s\n' "$*" >>log
		case $kind in
		targets)
			say /mnt/nvme '1.2T free'
			say '/mnt/second ssd' '300G free'
			exit
			;;
		formats)
			say diamond 'DIAMOND database'
			exit
			;;
		esac
		for name in 'my data' $'new\nline' 'dollar$(touch hacked)`x`' "quo'te" $'byte\xff' 'eq=1' 'col:on' '~tilde' \
			'-dash' '*glob' '!hist!' 'back\slash' '"double' 'semi;touch hacked' 'two one' 'two two'; do
			say "$name" '42.9G, hdd'
		done
		exit
	fi
done
{ printf '<%s>' "$@"; echo; } >>words
END
chmod +x bin/dbtier
mkdir 'a dir' home
export PATH=$TMP/bin:$PATH HOME=$TMP/home TERM=xterm

keys=() wanted=()
# press KEYS WANTED: KEYS are typed after "dbtier "; WANTED is what the program gets.
press()
{
	keys+=("run dbtier $1")
	wanted+=("$2")
}

# offer KEYS: what is offered lands in the session.
offer()
{
	keys+=("list dbtier $1")
}

# What all shells have in common: every odd name, whole and right, whatever the shell does to quote it.
common()
{
	press 'promot\tmy\t' '<promote><my data>'
	press 'promot\tdol\t' '<promote><dollar$(touch hacked)`x`>'
	press 'promot\tquo\t' "<promote><quo'te>"
	press 'promot\teq\t' '<promote><eq=1>'
	press 'promot\tcol\t' '<promote><col:on>'
	press 'promot\tbac\t' '<promote><back\slash>'
	press 'promot\tsem\t' '<promote><semi;touch hacked>'
	press 'promot\tnew\t' $'<promote><new\nline>'
	press 'promot\t-- -d\t' '<promote><--><-dash>'
	press 'promot\t\\"d\t' '<promote><"double>'
	press 'rollb\tmy\t' '<rollback><my data>'
	press 'verif\tmy\t' '<verify><my data>'
	press 'promot\t--dry\tmy\t' '<promote><--dry-run><my data>'
	press 'promot\tmy\t--to a\\ d\t' '<promote><my data><--to><a dir/>'
	press 'promot\tmy\t--to /mnt/n\t' '<promote><my data><--to></mnt/nvme/>'
	press 'scan -o na\t' '<scan><-o><name>'
	press 'scan --format dia\t' '<scan><--format><diamond>'
	press '--state-dir /x verif\tmy\t' '<--state-dir></x><verify><my data>'
	offer '\t\t'
	offer 'promote two\t\t\t'
	offer 'promote --to \t\t'
	offer 'promote --\t\t'
	offer 'status -o \t\t'
}

# session SHELL COMMAND...: types, and compares. $TMP/SHELL.session is what was seen.
session()
{
	local shell=$1 i

	shift
	rm -f words log hacked
	printf '%s\n' "${keys[@]}" >keys
	busy=0
	command expect "$DBT_SOURCE/tests/support/keys.exp" words keys "$@" >"$shell.session" 2>&1 || busy=1
	printf '== %s\n' "$shell"
	cat "$shell.session"
	[[ $busy -eq 0 ]] || fail "$shell: a line was not run"
	# A blank or a slash behind a directory is a matter of taste.
	printf '%s\n' "${wanted[@]}" | sed 's|/>|>|g' >wanted
	sed -i 's|/>|>|g' words
	diff -a wanted words || fail "$shell: completion inserted something else"
	[[ ! -e hacked ]] || fail "$shell: a name was evaluated"
	grep -q -- '--state-dir /x .*__complete\|--state-dir /x __complete' log || fail "$shell: --state-dir is not handed on"
	for i in rollback reclaim verify '/mnt/nvme' 'two one\|two\\ one' '--dry-run' health; do
		grep -qa -e "$i" "$shell.session" || fail "$shell: '$i' is not offered"
	done
	! grep -qa -e '__complete' "$shell.session" || fail "$shell: offers what is not for people"
}

described()
{
	grep -qa -e "$2" "$1.session" || fail "$1: '$2' is not told"
}

in_bash()
{
	keys=() wanted=()
	common
	press 'prom\t"my\t' '<promote><my data>'
	press "prom\\t'dol\\t" '<promote><dollar$(touch hacked)`x`>'
	press '--prog\tjs\t stat\t' '<--progress><json><status>'
	mkdir -p bash/completions
	cp "$DBT_SOURCE/completions/dbtier.bash" bash/completions/dbtier
	printf '%s\n' "PS1='$ ' HISTFILE=" 'set -o emacs' 'bind "set enable-bracketed-paste off"' \
		'. /usr/share/bash-completion/bash_completion' >bashrc
	BASH_COMPLETION_USER_DIR=$TMP/bash session bash bash --rcfile "$TMP/bashrc" -i
}

in_zsh()
{
	keys=() wanted=()
	common
	mkdir zsh
	printf '%s\n' "PS1='$ ' PROMPT_SP= HISTFILE=" 'bindkey -e; unset zle_bracketed_paste; setopt no_beep' \
		"fpath=($DBT_SOURCE/completions \$fpath)" 'autoload -Uz compinit; compinit -u -D' >zsh/.zshrc
	ZDOTDIR=$TMP/zsh session zsh zsh -d -i
	described zsh 'two one *-- 42.9G, hdd'
	described zsh '/mnt/nvme *-- 1.2T free'
	described zsh 'find databases, tell where they lie'
}

in_fish()
{
	keys=() wanted=()
	common
	mkdir -p fish/fish
	printf '%s\n' 'set -g fish_greeting' 'set -g fish_autosuggestion_enabled 0' 'function fish_prompt; echo "\$ "; end' \
		"set -p fish_complete_path $DBT_SOURCE/completions" >fish/fish/config.fish
	XDG_CONFIG_HOME=$TMP/fish XDG_DATA_HOME=$TMP/fish session fish fish -i
	described fish 'two one.*42.9G, hdd'
	described fish '/mnt/nvme.*1.2T free'
}

missing=()
for shell in bash zsh fish; do
	[[ ${COMPLETION_SHELL:-$shell} == "$shell" ]] || continue
	if ! command -v $shell >/dev/null; then
		missing+=("$shell")
	elif [[ $shell == bash && ! -e /usr/share/bash-completion/bash_completion ]]; then
		missing+=("bash-completion")
	else
		in_$shell
	fi
done
[[ ${#missing[@]} -eq 0 ]] || skip "not installed here, and so not tried: ${missing[*]}"
