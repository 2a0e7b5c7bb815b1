#!/usr/bin/env bash
# No work left in comments, no check that cannot fail.
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_SOURCE"
words='TO''DO|FIX''ME|X''XX'
if grep -rnE "\b($words)\b" core cmd tests completions CMakeLists.txt README.md --include='*' --exclude-dir=fixtures; then
	fail "work left in a comment"
fi
if grep -rnE 'assert_true\((1|true)\)|assert_int_equal\(([0-9]+), *\2\)' tests --include='*.c'; then
	fail "an assertion that cannot fail"
fi
