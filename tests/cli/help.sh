#!/usr/bin/env bash
# The front door: help, version, mistakes in the command line.
. "$(dirname "$0")/../support/lib.sh"

# Alone: a short help on stderr, because nothing was done.
expect 2 dbtier
out_is_empty
err_has 'Usage: dbtier COMMAND'

# Asked for: on stdout.
for words in --help -h; do
	expect 0 dbtier $words
	out_has 'Usage: dbtier COMMAND'
	out_has '  promote '
	out_lacks '__complete'
	out_lacks '--describe'
	err_is_empty
done
for words in 'promote --help' '--help promote' 'promote -h' '-h -- promote' 'promote --help --to' 'promote --dry-run -h x'; do
	case $words in *--to) wanted=2 ;; *) wanted=0 ;; esac
	# shellcheck disable=SC2086 # several words
	expect $wanted dbtier $words
	[[ $wanted -eq 2 ]] || out_has 'Usage: dbtier promote [OPTION...] NAME|PATH... [--to DIR]'
done
for words in --version -V 'scan -V'; do
	# shellcheck disable=SC2086
	expect 0 dbtier $words
	grep -qxE 'dbtier [0-9]+\.[0-9]+\.[0-9]+' "$TMP/out" || fail "version"
done

# Mistakes: exit status 2, nothing on stdout, what was wrong, and the nearest right thing.
mistake()
{
	local text=$1

	shift
	expect 2 dbtier "$@"
	out_is_empty
	err_has "$text"
}
mistake "unknown command 'scna' (did you mean 'scan'?)" scna
mistake "unknown command 'help'" help
mistake "unknown command ''" ''
mistake "unknown option '--jsno' (did you mean '--json'?)" --jsno scan
mistake "unknown option '--dry-rum' (did you mean '--dry-run'?); see 'dbtier promote --help'" promote --dry-rum
mistake "unknown option '-X'" scan -X
mistake "'--raw' and '--json' exclude each other" scan -r -J
mistake "'--quiet' and '--verbose' exclude each other" -q scan -v
mistake "'--to DIR' is missing" promote x
mistake "'promote' wants NAME|PATH... [--to DIR]" promote --to /tmp
mistake "'recover' has no use for 'x'" recover x
mistake "'--progress' cannot be 'bar'; it is one of json, none" --progress=bar status
mistake "unknown column 'colour'; there are " status -o colour
mistake "the column 'children' is shown with --json only" scan -o children
mistake "the state directory has an empty name" --state-dir= status
# Control characters do not reach the terminal.
mistake "unknown command '\\x1b[31m\\x0a'" $'\e[31m\n'

# Global options may stand on both sides of the command.
expect 0 dbtier --json status
cp "$TMP/out" "$TMP/before"
expect 0 dbtier status --json
cmp "$TMP/before" "$TMP/out"
equal '{ "promotions": [] }' "$(tr -s ' \n' ' ' <"$TMP/out" | sed 's/ $//')" "status of nothing"
[[ ! -e $TMP/state ]] || fail "status made a state directory"
