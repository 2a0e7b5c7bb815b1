#!/usr/bin/env bash
# Includes point down only, and each foreign library stands behind one door.
. "$(dirname "$0")/../support/lib.sh"
cd "$DBT_SOURCE"
bad=0

# layer FOLDER ALLOWED...: the folder's files include only from these folders of ours.
layer()
{
	local folder=$1 allowed

	shift
	allowed=$(IFS='|'; echo "$*")
	if grep -rnE '^#include "' "$folder" --include='*.[ch]' | grep -vE "\"($allowed)/"; then
		echo "$folder may include from $* only" >&2
		bad=1
	fi
}

layer core/base base
layer core/sys base sys
layer core/survey base sys survey
layer core/ladder base sys survey ladder
layer core/move base sys move
layer core/record base sys record
# Speaks of databases and devices in the words of the survey; moves and records nothing.
layer core/observe base sys survey observe
[[ ! -d core/flow ]] || layer core/flow base sys survey move record observe flow
layer cmd base sys survey ladder move record observe flow cmd

# door HEADER FILES: only files whose path matches may include the system header.
door()
{
	if grep -rnE "^#include <$1" core cmd --include='*.[ch]' | grep -vE "^($2):"; then
		echo "<$1> is for $2 only" >&2
		bad=1
	fi
}

door 'libmount' 'core/survey/mounts\.c'
door 'blkid' 'core/survey/blkdev[a-z_]*\.c'
door 'archive' 'core/(survey/(capture|peek|formats/archive)|move/(archive|unpacker))\.c'
door 'xxhash' 'core/move/digest\.[ch]'
door 'sqlite3' 'core/record/[a-z_]*\.[ch]'
door '(libsmartcols|jansson)' 'cmd/[a-z_]*\.[ch]'

[[ $bad -eq 0 ]]
