#!/usr/bin/env bash
# What a promotion leaves in the page cache, and whether a neighbour that was cached before still is; the same for cp.
# Everything runs in a memory cgroup in which cp's pages push the neighbour out (version 1 or 2; without one the machine's
# own memory decides, and a large machine shows no difference).
#
#	DBTIER=... tests/bench/cache.sh [SIZE [NEIGHBOUR [MEMORY]]]        8G, 2G and 3G
#
# and what common.sh says.
. "$(dirname "$0")/common.sh"
need_command fincore util-linux

bytes=$(numfmt --from=iec "${1:-8G}")
neighbour=$(numfmt --from=iec "${2:-2G}")
memory=$(numfmt --from=iec "${3:-3G}")

cached()
{
	fincore --bytes --noheadings --raw --output RES "$@" | awk '{ s += $1 } END { print s + 0 }'
}

limit_memory()
{
	local root

	for root in /sys/fs/cgroup/memory /sys/fs/cgroup; do
		[[ -w $root/cgroup.procs ]] || continue
		MEMORY_GROUP=$root/dbtier-bench-memory.$$
		mkdir "$MEMORY_GROUP" || continue
		echo "$memory" >"$MEMORY_GROUP/memory.limit_in_bytes" 2>/dev/null ||
			echo "$memory" >"$MEMORY_GROUP/memory.max" || continue
		echo $$ >"$MEMORY_GROUP/cgroup.procs"
		return
	done
	echo "# no memory cgroup: the machine's memory decides"
}

leave_memory()
{
	[[ ! -d ${MEMORY_GROUP-} ]] || echo $$ >"${MEMORY_GROUP%/*}/cgroup.procs"
	[[ ! -d ${MEMORY_GROUP-} ]] || rmdir "$MEMORY_GROUP" 2>/dev/null || true
	bench_cleanup
}
trap leave_memory EXIT

# show WAY SOURCE COPY
show()
{
	echo "after $1: $(percent "$(cached "$2" "$3")" "$bytes") % of what moved is cached of source and copy;" \
		"of the neighbour $(percent "$(cached "$MNT/slow/neighbour")" "$neighbour") %"
}

percent()
{
	awk -v a="$1" -v b="$2" 'BEGIN { printf "%.2f", 100 * a / b }'
}

two_volumes $((bytes + neighbour))
head -c "$bytes" /dev/urandom >"$MNT/slow/file"
head -c "$neighbour" /dev/urandom >"$MNT/slow/neighbour"
limit_memory
for way in dbtier cp; do
	cold
	cat "$MNT/slow/neighbour" "$MNT/slow/neighbour" >/dev/null
	if [[ $way == dbtier ]]; then
		promote "$MNT/slow/file"
		show dbtier "$MNT/slow/.file.dbtier-original" "$MNT/fast/file"
		rollback
	else
		cp "$MNT/slow/file" "$MNT/fast/copy"
		sync
		show cp "$MNT/slow/file" "$MNT/fast/copy"
	fi
done
