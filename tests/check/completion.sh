#!/usr/bin/env bash
# The committed completions and the schema are those that the program describes, and each shell can read its own.
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_SOURCE/completions"
for file in dbtier.bash _dbtier dbtier.fish; do
	"$DBTIER" --describe <$file.in >"$TMP/$file"
	diff -u $file "$TMP/$file" || fail "run the build target 'completions' and commit the result"
done
bash -n dbtier.bash
! command -v zsh >/dev/null || zsh -n _dbtier
! command -v fish >/dev/null || fish --no-config -n dbtier.fish

cd "$DBT_SOURCE/cmd"
"$DBTIER" --describe <dbtier.schema.json.in >"$TMP/dbtier.schema.json"
diff -u dbtier.schema.json "$TMP/dbtier.schema.json" || fail "run the build target 'completions' and commit the result"
