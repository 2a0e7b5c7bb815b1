#!/usr/bin/env bash
# The committed completion is the one that the program describes.
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_SOURCE/completions"
"$DBTIER" --describe <dbtier.bash.in >"$TMP/dbtier.bash"
diff -u dbtier.bash "$TMP/dbtier.bash" || fail "run the build target 'completions' and commit the result"
bash -n dbtier.bash
