#!/usr/bin/env bash
# cmake --install puts the program, its manual and its completion where Debian looks for them.
. "$(dirname "$0")/../support/lib.sh"
DESTDIR=$TMP/root cmake --install "$DBT_BUILD" --prefix /usr >/dev/null
cd "$TMP/root"
wanted='./usr/bin/dbtier
./usr/lib/systemd/system/dbtier-recover.service
./usr/lib/systemd/system/dbtier-recover@.service
./usr/lib/systemd/system/dbtier-repromote.service
./usr/lib/systemd/system/dbtier-status.service
./usr/lib/systemd/system/dbtier-status.timer
./usr/share/bash-completion/completions/dbtier
./usr/share/dbtier/dbtier.schema.json
./usr/share/fish/vendor_completions.d/dbtier.fish
./usr/share/man/man1/dbtier.1
./usr/share/man/man5/dbtier.conf.5
./usr/share/man/man7/dbtier-guarantees.7
./usr/share/zsh/vendor-completions/_dbtier'
equal "$wanted" "$(find . -type f | sort)" "installed files"
[[ -x usr/bin/dbtier ]] || fail "dbtier is not executable"
equal "$("$DBTIER" --version)" "$(usr/bin/dbtier --version)" "version"
