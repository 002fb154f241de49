#!/usr/bin/env python3
"""Reads the output of torch_alloc and of the Go benchmarks, prints a Markdown table.

usage: table.py FILE...     (each file may hold either output, or both)
       table.py --selftest
"""
import json
import re
import statistics
import sys

# case, Go benchmark, its column, how several results become one (both sides alike)
CASES = [
    ("hot_pair", "BenchmarkHotPair", "ns/op", statistics.median),
    ("window_512", "BenchmarkWindow/live=512", "ns/op", statistics.median),
    ("window_65536", "BenchmarkWindow/live=65536-small", "ns/op", statistics.median),
    ("equal_100k", "BenchmarkEqual", "ns/operation", min),
    ("equal_holes", "BenchmarkEqualHoles", "ns/operation", statistics.median),
    ("threads_2", "BenchmarkGoroutines/2", "ns/op", statistics.median),
    ("threads_8", "BenchmarkGoroutines/8", "ns/op", statistics.median),
]


def parse(lines):
    """Returns {case: [record]} of torch and {benchmark: {unit: [value]}} of Go."""
    torch, go = {}, {}
    for line in lines:
        line = line.strip()
        if line.startswith("{"):
            try:
                record = json.loads(line)
            except ValueError:
                continue  # a line cut off when its program was stopped
            if record.get("who") == "torch":
                torch.setdefault(record["case"], []).append(record)
            continue
        fields = line.split()
        # name, iterations, then value and unit in turn
        if len(fields) < 4 or not fields[0].startswith("Benchmark") or not fields[1].isdigit():
            continue
        name = re.sub(r"-\d+$", "", fields[0])  # the -GOMAXPROCS suffix
        name = name.removesuffix("/history=off")  # the history=on runs have no counterpart
        for value, unit in zip(fields[2::2], fields[3::2]):
            try:
                number = float(value)
            except ValueError:
                break
            go.setdefault(name, {}).setdefault(unit, []).append(number)
    return torch, go


def number(x):
    return "missing" if x is None else f"{x:,.1f}"


def table(torch, go):
    """Returns the text and the list of what was missing."""
    rows = ["| case | torch ns | ashlar ns | torch / ashlar |", "| --- | ---: | ---: | ---: |"]
    notes, missing = [], []
    for case, bench, unit, reduce in CASES:
        records = torch.get(case, [])
        values = go.get(bench, {}).get(unit, [])
        t = reduce([r["ns"] for r in records]) if records else None
        a = reduce(values) if values else None
        if t is None:
            missing.append(f"torch {case}")
        if a is None:
            missing.append(f"{bench} ({unit})")
        ratio = f"{t / a:.2f}" if t is not None and a else "missing"
        rows.append(f"| {case} | {number(t)} | {number(a)} | {ratio} |")
        if records and "exponents" in records[0]:
            lo, hi = records[0]["exponents"]
            notes.append(f"{case}: torch sizes are 2^uniform({lo},{hi})")
        if any(r.get("driver_allocs", 0) > 0 for r in records):
            counts = ", ".join(str(r["driver_allocs"]) for r in records)
            notes.append(f"{case}: torch called the driver inside the timed part ({counts} times)")
        if records and "ns_per_thread" in records[0]:
            each = statistics.median(r["ns_per_thread"] for r in records)
            notes.append(f"{case}: torch {each:,.1f} ns per pair seen by one thread; "
                         "the table counts the pairs of all threads")
    notes.append("ns per malloc+free pair (equal_100k: per operation, best result; others: median)")
    return "\n".join(rows + [""] + [f"- {n}" for n in notes]), missing


def report(lines):
    text, missing = table(*parse(lines))
    print(text)
    for m in missing:
        print(f"table.py: missing: {m}", file=sys.stderr)
    return 1 if missing else 0


TORCH_SAMPLE = """\
torch_alloc: headers build, backend native, 1 device(s)
{"who":"torch","case":"hot_pair","ns":500.00,"n":2000000,"median":500.00,"min":490.00,"runs":5,"driver_allocs":0}
{"who":"torch","case":"hot_pair","ns":520.00,"n":2000000,"median":520.00,"min":490.00,"runs":5,"driver_allocs":0}
{"who":"torch","case":"window_512","ns":1000.00,"n":1000000,"median":1000.00,"min":900.00,"runs":5,"driver_allocs":3,"live":512,"exponents":[9,25]}
{"who":"torch","case":"window_65536","ns":2000.00,"n":1000000,"median":2000.00,"min":1900.00,"runs":5,"driver_allocs":0,"live":65536,"exponents":[9,20]}
{"who":"torch","case":"equal_100k","ns":300.00,"n":300000,"median":320.00,"min":300.00,"runs":5,"driver_allocs":0}
{"who":"torch","case":"equal_100k","ns":280.00,"n":300000,"median":300.00,"min":280.00,"runs":5,"driver_allocs":0}
{"who":"torch","case":"equal_holes","ns":600.00,"n":1000000,"median":600.00,"min":600.00,"runs":5,"driver_allocs":0}
{"who":"torch","case":"threads_2","ns":1200.00,"n":400000,"median":1200.00,"min":1100.00,"runs":5,"driver_allocs":0,"ns_per_thread":2400.00}
{"who":"torch","case":"threads_8","ns":4000.00,"n":1600000,"median":4000.00,"min":3900.00,"runs":3,"driver_allocs":0,"ns_per_thread":32000.00}
{"who":"torch","case":"threads_8","ns":41
"""

GO_SAMPLE = """\
goos: linux
goarch: amd64
pkg: example.org/some/package
cpu: Some CPU
BenchmarkHotPair/history=off \t12000000\t       100.0 ns/op\t       0 B/op\t       0 allocs/op
BenchmarkHotPair/history=off \t12000000\t       104.0 ns/op\t       0 B/op\t       0 allocs/op
BenchmarkHotPair/history=off \t12000000\t       102.0 ns/op\t       0 B/op\t       0 allocs/op
BenchmarkWindow/live=512/history=off \t 5000000\t       250.0 ns/op
BenchmarkWindow/live=65536-small/history=off \t 2000000\t       800 ns/op
BenchmarkEqual/history=off \t      50\t  21000000 ns/op\t        70.00 ns/operation
BenchmarkEqual/history=off \t      50\t  21600000 ns/op\t        72.00 ns/operation
BenchmarkEqualHoles/history=off \t   50000\t   240.0 ns/op\t        120.00 ns/operation
BenchmarkGoroutines/1/history=off-16 \t 5000000\t       111.0 ns/op
BenchmarkGoroutines/2/history=off-16 \t 5000000\t       150.0 ns/op
BenchmarkGoroutines/8/history=off-16 \t 5000000\t       200.0 ns/op
PASS
"""


def selftest():
    lines = (TORCH_SAMPLE + GO_SAMPLE).splitlines()
    text, missing = table(*parse(lines))
    assert missing == [], missing
    want = [
        "| hot_pair | 510.0 | 102.0 | 5.00 |",
        "| window_512 | 1,000.0 | 250.0 | 4.00 |",
        "| window_65536 | 2,000.0 | 800.0 | 2.50 |",
        "| equal_100k | 280.0 | 70.0 | 4.00 |",
        "| equal_holes | 600.0 | 120.0 | 5.00 |",
        "| threads_2 | 1,200.0 | 150.0 | 8.00 |",
        "| threads_8 | 4,000.0 | 200.0 | 20.00 |",
    ]
    got = text.splitlines()
    assert got[2:9] == want, "\n".join(got[2:9])
    assert "- window_65536: torch sizes are 2^uniform(9,20)" in got, text
    assert any("driver inside the timed part (3 times)" in g for g in got), text
    assert any("32,000.0 ns per pair seen by one thread" in g for g in got), text

    text, missing = table(*parse(GO_SAMPLE.replace("BenchmarkEqual", "BenchmarkOther").splitlines()))
    assert len(missing) == 9 and "BenchmarkEqual (ns/operation)" in missing, missing
    assert "| hot_pair | missing | 102.0 | missing |" in text, text
    print("table.py: selftest passed")
    return 0


if __name__ == "__main__":
    if sys.argv[1:] == ["--selftest"]:
        sys.exit(selftest())
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    text_lines = []
    for path in sys.argv[1:]:
        with open(path, errors="replace") as f:
            text_lines += f.readlines()
    sys.exit(report(text_lines))
