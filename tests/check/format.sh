#!/usr/bin/env bash
# All C sources are formatted by .clang-format. Versions of clang-format differ: the one of Debian 12 decides.
. "$(dirname "$0")/../support/lib.sh"
need_command clang-format clang-format
version=$(clang-format --version | sed 's/.*version \([0-9]*\).*/\1/')
[[ $version == 14 ]] || skip "clang-format is version $version, not 14"
cd "$DBT_SOURCE"
find core cmd tests -name '*.[ch]' -print0 | xargs -0 clang-format --dry-run -Werror
