#!/usr/bin/env bash
# What other programs read: JSON that fits the schema, metrics that a strict parser takes, exit status.
. "$(dirname "$0")/../support/lib.sh"
need_mounts "$@"
. "$DBT_SOURCE/tests/support/pair.sh"
trap pair_cleanup EXIT
mkdir "$SLOW" "$FAST"
mount -t tmpfs -o mode=755 tmpfs "$FAST"

cat >"$TMP/schema.py" <<'END'
import json, sys
try:
    import jsonschema
except ImportError:
    sys.exit(77)
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
name = sys.argv[2]
answer = json.load(open(sys.argv[3]))
jsonschema.validate(answer, {"$ref": "#/$defs/" + name, "$defs": schema["$defs"]})
END

python=
for candidate in /usr/bin/python3 python3; do
	"$candidate" -c 'import jsonschema' 2>/dev/null && python=$candidate && break
done
schema()
{
	[[ -z $python ]] || "$python" "$TMP/schema.py" "$DBT_SOURCE/cmd/dbtier.schema.json" "$1" "$TMP/out" ||
		fail "the answer of $1 does not fit the schema"
}

mkdir "$SLOW/db"
odd=$'odd "name"\\ \xff\nx.dmnd'
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/a.dmnd" 200K
"$DBT_TOOLS/mkdb" diamond "$SLOW/db/$odd" 200K

# Every command that prints a table, full and empty.
expect 0 dbtier status --json && schema status
expect 0 dbtier scan --json --no-probe "$SLOW" && schema scan
expect 0 dbtier devices --json / && schema devices
expect 0 dbtier formats --json && schema formats
expect 0 dbtier config --json && schema config
run dbtier probe --json "$SLOW/db/a.dmnd" && schema probe
expect 0 dbtier ladder --json --seconds 1 && schema ladder
expect 0 dbtier ladder --json --dna --max 32K "$FAST" && schema ladder-other
expect 0 dbtier promote --json --plan --budget 1G --to "$FAST" --no-probe && schema promote-other
expect 0 dbtier promote --json --force --no-probe --dry-run "$SLOW/db/a.dmnd" --to "$FAST" && schema promote
expect 0 dbtier promote --json --force --no-probe "$SLOW/db/a.dmnd" "$SLOW/db/$odd" --to "$FAST" && schema promote
expect 0 dbtier status --json && schema status
expect 0 dbtier verify --json && schema verify
rm "$FAST/a.dmnd"
expect 4 dbtier status --json && schema status
cp "$TMP/out" "$TMP/full"
# The checker does see what is wrong.
if [[ $python ]]; then
	for slip in 's/"health": "[a-z-]*"/"health": 1/' 's/"id": [0-9]*,//' 's/"xxh128"/"hash"/'; do
		sed "$slip" "$TMP/full" >"$TMP/out"
		! (schema status) 2>/dev/null || fail "the schema lets pass $slip"
	done
fi

# The exposition format: HELP and TYPE before the samples of a metric, samples of one metric together, labels quoted,
# no sample twice, a line break at the end. What a strict reader of the textfile collector refuses is refused here.
cat >"$TMP/metrics.py" <<'END'
import re, sys
raw = open(sys.argv[1], "rb").read()
assert raw.endswith(b"\n") and b"\r" not in raw
lines = raw.decode("utf-8").split("\n")[:-1]
name = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
label = r'[a-zA-Z_][a-zA-Z0-9_]*="(?:[^"\\\n]|\\["\\n])*"'
sample = re.compile(r"^(%s)(?:\{(%s(?:,%s)*)\})? (-?[0-9]+(?:\.[0-9]+)?)$" % (name, label, label))
helped, typed, closed, seen, current = set(), set(), set(), set(), None
for line in lines:
    m = re.match(r"^# (HELP|TYPE) (%s) (.+)$" % name, line)
    if m:
        family = m.group(2)
        assert family not in closed, "metric in two places: " + line
        known = helped if m.group(1) == "HELP" else typed
        assert family not in known, "twice: " + line
        assert m.group(1) == "HELP" or m.group(3) in ("gauge", "counter"), line
        known.add(family)
    else:
        m = sample.match(line)
        assert m, "no sample: " + line
        family = m.group(1)
        assert family in helped and family in typed, "no HELP or TYPE before: " + line
        labels = re.findall(r"([a-zA-Z_][a-zA-Z0-9_]*)=", re.sub(r'"(?:[^"\\]|\\.)*"', '""', m.group(2) or ""))
        assert len(labels) == len(set(labels)), "label twice: " + line
        assert (family, m.group(2)) not in seen, "sample twice: " + line
        seen.add((family, m.group(2)))
    if current is not None and family != current:
        closed.add(current)
    assert family not in closed, "metric in two places: " + line
    current = family
assert len(seen) >= int(sys.argv[2]), "too few samples"
END
expect 4 dbtier status --prometheus
cp "$TMP/out" "$TMP/dbtier.prom"
out_has 'dbtier_unhealthy_promotions 1'
out_has "path=\"$SLOW/db/a.dmnd\",health=\"copy-missing\"} 1"
out_has "path=\"$SLOW/db/a.dmnd\",health=\"ok\"} 0"
out_has $'odd \\"name\\"\\\\ \xef\xbf\xbd\\nx.dmnd",health="ok"} 1'
for candidate in "$python" /usr/bin/python3 python3; do
	[[ $candidate ]] && command -v "$candidate" >/dev/null && "$candidate" -c 'pass' 2>/dev/null || continue
	"$candidate" "$TMP/metrics.py" "$TMP/dbtier.prom" 20 || fail "no valid metrics"
	# It does see what is wrong.
	for slip in '1d' '$d' 's/\\n//' 's/=/ = /' '2p' 's/} /}/'; do
		sed "$slip" "$TMP/dbtier.prom" >"$TMP/slip"
		cmp -s "$TMP/slip" "$TMP/dbtier.prom" || [[ $slip == 's/\\n//' || $slip == '$d' ]] ||
			! "$candidate" "$TMP/metrics.py" "$TMP/slip" 20 2>/dev/null || fail "the parser lets pass $slip"
	done
	break
done
if command -v promtool >/dev/null; then
	promtool check metrics <"$TMP/dbtier.prom"
fi
expect 2 dbtier status --prometheus --json
expect 0 dbtier recover
expect 0 dbtier status --prometheus
out_has 'dbtier_unhealthy_promotions 0'
expect 0 dbtier diagnose --json --seconds 1 && schema diagnose
expect 0 dbtier rollback --all --json && schema rollback
expect 0 dbtier promote -q --force --no-probe "$SLOW/db/a.dmnd" --to "$FAST"
# The target is in memory: refused, told in the same form.
expect 3 dbtier reclaim --json "$SLOW/db/a.dmnd" && schema reclaim
expect 0 dbtier rollback -q
expect 0 dbtier status --prometheus
out_lacks 'path='
expect 0 dbtier recover --json && schema recover
# A monitor that was given a wrong directory must not find that all is well.
expect 1 dbtier --state-dir "$TMP/nowhere" status --prometheus
out_is_empty
err_has "'$TMP/nowhere' does not exist"
mkdir -p "$TMP/odd/dbtier.db"
expect 1 dbtier --state-dir "$TMP/odd" status
err_has "the ledger '$TMP/odd/dbtier.db' is a directory"
rmdir "$TMP/odd/dbtier.db"
ln -s "$TMP/nowhere/x" "$TMP/odd/dbtier.db"
for command in status "rollback --all" recover; do
	# shellcheck disable=SC2086 # words
	expect 1 dbtier --state-dir "$TMP/odd" $command
	err_has "leads nowhere"
done
[[ $python ]] || skip "the schema was not tried: needs python3-jsonschema (the rest is right)"
