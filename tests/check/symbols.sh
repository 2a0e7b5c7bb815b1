#!/usr/bin/env bash
# core is a library: its exported names begin with dbt_, it has no state that others can write, it neither prints
# nor exits.
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_BUILD"
libs=()
for folder in base sys survey move record observe flow; do
	[[ -f libdbt_$folder.a ]] && libs+=("libdbt_$folder.a")
done
[[ ${#libs[@]} -ge 2 ]] || fail "no libraries in $DBT_BUILD"
bad=0

# Sanitizers, coverage and the fuzzer add names of their own, which begin with an underscore or "asan".
exported=$(nm -g --defined-only "${libs[@]}" | awk 'NF == 3 { print $3 }' | grep -vE '^(_|asan|lsan|ubsan|mangle_path)' || true)
if foreign=$(grep -v '^dbt_' <<<"$exported"); then
	echo "exported without dbt_: $foreign" >&2
	bad=1
fi

# Constants with pointers inside lie in .data.rel.ro and its kind: those are read-only once the program runs. The
# address sanitizer puts them elsewhere.
if ! nm -u "${libs[@]}" | grep __asan_init >/dev/null && state=$(objdump -t "${libs[@]}" | grep -E '^[0-9a-f]+ g.* \.(data|bss)(\.dbt_[a-z_]*)?[[:space:]]' | grep -oE 'dbt_[a-z0-9_]+$'); then
	echo "exported and writable: $state" >&2
	bad=1
fi

forbidden='^(printf|puts|putchar|perror|stdout|stderr|exit|_exit|quick_exit|abort|system|popen|execv[a-z]*|execl[a-z]*|posix_spawn[a-z]*|setlocale|err|errx|warn|warnx|error)$'
if used=$(nm -u "${libs[@]}" | awk '{ print $NF }' | sed 's/@.*//' | grep -E "$forbidden" | sort -u); then
	echo "core uses: $used" >&2
	bad=1
fi
[[ $bad -eq 0 ]]
