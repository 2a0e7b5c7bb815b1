#!/usr/bin/env bash
# timeout: 300
# The shell scripts are clean for shellcheck.
. "$(dirname "$0")/../support/lib.sh"
need_command shellcheck shellcheck
cd "$DBT_SOURCE"
scripts=(bootstrap .ci/run tests/check/*.sh tests/cli/*.sh tests/support/*.sh)
found=()
for script in "${scripts[@]}"; do
	[[ -e $script ]] && found+=("$script")
done
# SC1091: lib.sh is sourced by a computed name. SC2034, SC2154: variables of one file that
# another uses. SC2164: it sets -e.
shellcheck --severity=warning --exclude=SC1091,SC2034,SC2154,SC2164 "${found[@]}"
shellcheck --severity=warning --shell=bash completions/dbtier.bash
