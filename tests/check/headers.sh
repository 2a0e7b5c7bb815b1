#!/usr/bin/env bash
# Every header compiles alone.
# timeout: 120
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_SOURCE"
flags=(-std=gnu17 -D_GNU_SOURCE -D_FILE_OFFSET_BITS=64 -Icore -I. -Wall -Wextra -Werror -fsyntax-only)
read -ra packages < <(pkg-config --cflags blkid mount smartcols libxxhash sqlite3 jansson libarchive)
bad=0
while IFS= read -r header; do
	# Used twice: the guard works too.
	if ! printf '#include "%s"\n#include "%s"\n' "$header" "$header" |
		"${CC:-cc}" "${flags[@]}" "${packages[@]}" -x c -; then
		echo "$header does not compile alone" >&2
		bad=1
	fi
done < <(find core cmd -name '*.h')
[[ $bad -eq 0 ]]
