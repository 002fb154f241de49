"""Bar 5, the soak: random sizes, streams, threads, graphs, errors and settings; nothing may grow.

usage: python3 tools/bench/gpu/soak.py [--library PATH] [--seed N] [--seconds S] [--gib N] [--threads N] [--no-control]
       python3 tools/bench/gpu/soak.py --add FILE...

Threads fill tensors with a number of their own, hold them a while, read them back and drop them;
some they hand to another thread, which reads them on its stream (record_stream). They capture
graphs and replay them, ask for more than the limit, fill the memory until the others meet the
limit too, change settings and the limit, record history, take snapshots and empty the cache.
Once a minute all of them give up all they have, which is a rest; what is left then is counted.

  data        not one number differs, and every tensor was looked at
  at rest     the bytes allocated are the same each time, as with native; those reserved do not grow
  limit       reserved memory is never above it by a granule (PyTorch's rule: it compares before it rounds to granules)
  slopes      reserved memory on the way and host memory at rest, by regression over the minutes:
              not above native's, which runs beside it on the same seed. A process takes some 128 MiB of
              host memory at once, under native too: one such jump in each part is told and left out

Several parts may run side by side, each with its own seed; --gib bounds what a part takes, half of
it for each allocator (a context of CUDA comes on top, about half a GiB each). A part leaves
soak-SEED.jsonl in $OUT; --add FILE... judges several as one.
"""
import argparse
import json
import os
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import allocators  # noqa: E402
import bars  # noqa: E402
import children  # noqa: E402
from report import Report, mib, table  # noqa: E402

MIB = bars.MIB
SILENCE_S = 300  # a worker tells every two seconds how it is, but not on the way to a rest
RSS_ALLOWED, RSS_BLIND = 1 * MIB, 6 * MIB  # a minute
RESERVED_ALLOWED, RESERVED_BLIND = 0.005, 0.03  # of the limit, a minute
JUMP = 64 * MIB  # of host memory: at some moment a process takes 128 MiB at once, native too
HAPPENS = ("handed", "captures", "replays_checked", "ooms", "settings", "limits", "histories", "snapshots", "empty_caches")


def kept(part, name):
    """The rests of a part that are judged: after the warm-up, with a whole period before them."""
    return [r for r in part["rests"].get(name, []) if r["at"] >= part["warm_up"] and r["worked"] >= part["period"] / 2]


def spread(series):
    """Between the least and the most that was allocated at a rest. PyTorch itself may keep something for graphs."""
    return max(r["allocated"] for r in series) - min(r["allocated"] for r in series)


def judge(report, parts, who):
    """Bars for one part, or for several as one. What native does is shown."""
    bar = who == "ashlar"

    def say(what, met, text):
        report.bar(5 if bar else "-", f"soak, {who}: {what}", met if bar else None, text)

    ends = [p["final"].get(who) for p in parts]
    rests = [kept(p, who) for p in parts]
    if None in ends or any(len(r) < 3 for r in rests):
        told = [e.get("errors") for e in ends if e] + [p["failed"][who] for p in parts if who in p["failed"]]
        say("runs", False, f"too short, or it did not end: nothing to judge; told: {told}")
        return
    total = {key: sum(e[key] for e in ends) for key in ends[0] if key != "errors"}
    errors = [text for e in ends for text in e["errors"]]
    say("data", total["wrong"] == 0 and total["checked"] == total["made"] > 0 and not errors,
        f"{total['wrong']} wrong of {total['checked']} tensors and {total['replays_checked']} replays checked; {total['made']} tensors made; errors: {errors[:3] or 'none'}")
    missing = [key for key in HAPPENS if total[key] == 0]
    say("all of it happened", not missing, ", ".join(f"{key} {n}" for key, n in total.items() if key not in ("wrong", "checked", "made")) +
        (f"; never: {missing}" if missing else ""))
    native = [kept(p, "expandable") for p in parts] if bar else []
    if any(len(series) < 3 for series in native):
        native = []
    allocated, theirs = [spread(series) for series in rests], max(map(spread, native), default=0)
    say("allocated at rest", max(allocated) <= theirs,
        f"{rests[0][0]['allocated']} bytes, {max(allocated)} between the least and the most of a part's rests ({sum(map(len, rests))} in all); native {theirs}")
    grown = max(r["reserved"] - series[0]["reserved"] for series in rests for r in series)
    say("reserved at rest", grown <= bars.GRANULE, f"{mib(rests[0][0]['reserved'])} MiB at the first rest, at most {mib(grown)} more later")
    over = max(r["peak_reserved"] - p["limit"] for p, series in zip(parts, rests) for r in series)
    say("limit", over < bars.GRANULE, f"reserved at most {mib(max(r['peak_reserved'] for series in rests for r in series))} MiB, limit {mib(parts[0]['limit'])}")
    theirs = sum(p["final"].get("expandable", {}).get("refused", 0) for p in parts)
    say("requests refused although others had made room", total["refused"] <= max(total["made"] / 1000, theirs),
        f"{total['refused']} of {total['made']}")
    for what, of, unit, allowed, blind, word in (
            ("reserved on the way", lambda r, p: r["mean_reserved"] / p["limit"], 0.01, RESERVED_ALLOWED, RESERVED_BLIND, "% of the limit a minute"),
            ("host memory at rest", lambda r, p: r["rss"], MIB, RSS_ALLOWED, RSS_BLIND, "MiB a minute")):
        ours = [[(r["at"] / 60, of(r, p)) for r in series] for p, series in zip(parts, rests)]
        theirs = [[(r["at"] / 60, of(r, p)) for r in series] for p, series in zip(parts, native)]
        jumps = ""
        if unit == MIB:
            (ours, told), (theirs, theirs_told) = once(ours), once(theirs)
            jumps = f"; without what was taken at once: {told or 0} MiB" + (f", native {theirs_told or 0}" if bar else "")
        own, own_error = bars.growth(ours, [])
        text = f"{own / unit:.2f} ± {own_error / unit:.2f} {word}"
        slope, error = own, own_error
        if theirs:
            slope, error = bars.growth(ours, theirs)
            text += f"; beyond native's {slope / unit:.2f} ± {error / unit:.2f}"
        say(what, bars.flat(slope, error, allowed, blind), text + jumps)


def once(series):
    """The series of the parts without a jump each, and the jumps in MiB."""
    found = [bars.without_jump(points, JUMP) for points in series]
    return [points for points, _ in found], ", ".join(str(mib(rise)) for _, rise in found if rise)


def one(worker):
    """gather() raises where one worker alone is asked."""
    try:
        return [worker.receive(SILENCE_S)]
    except children.Failed as e:
        return [e]


def run(report, args):
    """One part: ashlar, and native beside it."""
    names = ["ashlar"] + ([] if args.no_control else ["expandable"])
    limit = int(args.gib * 1024) * MIB // len(names)
    part = {"seed": args.seed, "seconds": args.seconds, "period": args.rest, "warm_up": args.warm_up, "threads": args.threads, "limit": limit,
            "rests": {n: [] for n in names}, "final": {}, "failed": {}}
    workers = {}
    for name in names:
        fields = {"allocator": name, "seconds": args.seconds, "rest": args.rest, "threads": args.threads, "limit": limit, "often": args.often,
                  "seed": args.seed}
        workers[name] = children.Worker("soak_worker", "soak", fields, None, False)
    told = time.monotonic()
    while workers:
        open_ = list(workers)
        answers = children.gather([workers[n] for n in open_], SILENCE_S) if len(open_) > 1 else one(workers[open_[0]])
        for name, answer in zip(open_, answers):
            if isinstance(answer, children.Failed):
                part["failed"][name] = str(answer)
                del workers[name]
            elif "final" in answer:
                part["final"][name] = answer["final"]
                workers.pop(name).stop()
            elif "rest" in answer:
                part["rests"][name].append(answer["rest"])
                report.line("rest", allocator=name, **answer["rest"])
            elif time.monotonic() - told > 60:
                told = time.monotonic()
                s = answer["sample"]
                report.note(f"{name}: {s['at']:.0f} s, reserved {mib(s['reserved'])} MiB, RSS {mib(s['rss'])}, {s['operations']} operations")
    report.line("part", **part)
    print("\nMiB at each rest")
    table(["allocator", "minute", "reserved before it, mean", "peak", "reserved at rest", "allocated, bytes", "host RSS"],
          [[n, f"{r['at'] / 60:.1f}", mib(r["mean_reserved"]), mib(r["peak_reserved"]), mib(r["reserved"]), r["allocated"], mib(r["rss"])]
           for n in names for r in part["rests"][n]])
    return part


def read_parts(paths):
    parts = []
    for path in paths:
        with open(path) as f:
            found = [line for line in map(json.loads, f) if line["kind"] == "part"]
        if not found:
            sys.exit(f"soak.py: {path} has no part that ended")
        parts += found
    return parts


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", dest="so", help="libashlar.so (default: ASHLAR_LIBRARY, then bin/gpu/libashlar.so)")
    parser.add_argument("--seconds", type=float, default=480)
    parser.add_argument("--rest", type=float, default=60, help="seconds between two rests")
    parser.add_argument("--warm-up", type=float, default=120, help="rests before this second are not judged")
    parser.add_argument("--threads", type=int, default=6)
    parser.add_argument("--gib", type=float, default=24, help="GPU memory of the part, both allocators together")
    parser.add_argument("--often", type=float, default=1, help="how often all but allocations happen, against what is usual; at most 10")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--no-control", action="store_true")
    parser.add_argument("--add", nargs="+", metavar="FILE", help="judge parts that have run as one")
    args = parser.parse_args()
    if args.so:
        os.environ["ASHLAR_LIBRARY"] = args.so
    if args.add:
        parts = read_parts(args.add)
        report = Report("soak", 0)
        seconds = sum(p["seconds"] for p in parts)
        print(f"{len(parts)} parts, seeds {', '.join(str(p['seed']) for p in parts)}: {seconds / 60:.0f} minutes")
    else:
        allocators.clean_environment()
        os.environ.update(OMP_NUM_THREADS="1")
        report = Report(f"soak-{args.seed}", args.seconds + 90)
        parts = [run(report, args)]
    for name in parts[0]["rests"]:
        judge(report, parts, name)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
