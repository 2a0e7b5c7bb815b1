#!/usr/bin/env bash
# As errors.sh, for a directory that moves as one name.
# timeout: 900
DBT_WORLD=tree exec "$(dirname "$0")/errors.sh" "$@"
