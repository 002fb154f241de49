"""Bar 3: real training and serving under libashlar.so beside PyTorch's own allocator.

usage: python3 tools/bench/gpu/compare.py [--library PATH] [--budget S] [--only NAME,...] [--no-time] [--seed N]

For each workload five processes start together: native twice, native with expandable
segments, ours twice. Each makes one pass: its losses bit by bit, its peaks. Then, with
nothing else on the GPU, they take turns pass by pass and every step is timed. Under a
limit just above the live peak of the default run each allocator survives or dies; those
runs share the GPU with the next workload's first passes, which are not timed.
"""
import argparse
import gc
import os
import subprocess
import sys
import time

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import allocators  # noqa: E402
import bars  # noqa: E402
import children  # noqa: E402
import probe  # noqa: E402
from report import Report, mib, short, table  # noqa: E402

LANES = (("native_a", "native"), ("native_b", "native"), ("expandable", "expandable"),
         ("ashlar_a", "ashlar"), ("ashlar_b", "ashlar"))
NATIVE, OURS = ("native_a", "native_b"), ("ashlar_a", "ashlar_b")
TIGHT = ("native", "expandable", "ashlar")
EXTRA = "streams_graphs"  # no bar: its peaks follow the GPU's timing
PASS_S = 2.0  # a timed pass covers the first steps that took this long when all ran at once
FIRST_PASS_S = 60
ROUNDS = (2, 15)


class Group:
    """One workload: its five lanes, and what came of its runs under a limit."""

    def __init__(self, name):
        self.name = name
        self.workers, self.first, self.passes, self.errors, self.tight = {}, {}, {}, {}, {}
        self.outside, self.steps = {}, 0
        self.limit = None

    def fail(self, lane, error):
        self.errors[lane] = str(error)
        self.workers.pop(lane, None)

    def stats(self, lane, key):
        return (self.first.get(lane) or {}).get("stats", {}).get(key)


def start_worker(args, name, allocator, limit, cpus):
    fields = {"name": name, "allocator": allocator, "seed": args.seed, "limit_mib": limit}
    return children.Worker("workloads", "serve", fields, cpus, args.fork)


def first_passes(args, report, group, before):
    """Starts the lanes of a group and the runs under a limit of the group before it."""
    timed, others = children.cpus(6, 10), children.cpus(0, 6)
    jobs = []
    if group:
        for lane, allocator in LANES:
            group.workers[lane] = start_worker(args, group.name, allocator, 0, timed)
            jobs.append((lane, group.workers[lane]))
    tight = []
    if before and before.limit:
        for allocator in TIGHT:
            worker = start_worker(args, before.name, allocator, before.limit, others)
            tight.append(worker)
            jobs.append((allocator, worker))
    answers = children.gather([w for _, w in jobs], max(5.0, min(FIRST_PASS_S, report.left())))
    for (lane, worker), answer in zip(jobs, answers):
        error = str(answer) if isinstance(answer, children.Failed) else None
        owner = before if worker in tight else group
        report.line("pass", workload=owner.name, lane=lane, limit_mib=owner.limit if worker in tight else 0,
                    error=error, **({} if error else answer))
        if worker in tight:
            before.tight[lane] = answer
        elif error:
            if not group.errors:  # the others fail alike more often than not
                report.note(short(error, 900))
            group.fail(lane, error)
        elif answer["oom"]:
            group.fail(lane, "out of memory without a limit: " + answer["oom"][:200])
        else:
            group.first[lane] = answer
    for worker in tight:
        worker.stop(patience=0)


def outside_torch(group):
    """What the driver says a process uses beyond what its allocator reports: context and
    libraries. An allocator that reported too little would stand out."""
    try:
        out = subprocess.run(["nvidia-smi", "--query-compute-apps=pid,used_memory", "--format=csv,noheader,nounits"],
                             capture_output=True, text=True, timeout=10).stdout
        used = {int(p): int(m) for p, m in (line.split(",") for line in out.splitlines() if line.strip())}
    except (OSError, ValueError, subprocess.SubprocessError):
        return
    for lane, answer in group.first.items():
        if answer["pid"] in used:
            group.outside[lane] = used[answer["pid"]] - (answer["stats"]["reserved_bytes.all.current"] or 0) // bars.MIB


def timed_passes(group, seconds):
    """Round after round, each lane in turn; the order turns round each time."""
    reference = group.first.get("native_a") or next(iter(group.first.values()))
    total = 0.0
    for step in reference["seconds"]:
        group.steps += 1
        total += step
        if total > PASS_S and group.steps >= 3:
            break
    lanes = [lane for lane, _ in LANES if lane in group.workers]
    group.passes = {lane: [] for lane in lanes}
    cost = None
    for n in range(ROUNDS[1] + 1):
        begin = time.monotonic()
        for lane in lanes if n % 2 == 0 else lanes[::-1]:
            if lane not in group.workers:
                continue
            try:
                group.workers[lane].send({"steps": group.steps})
                answer = group.workers[lane].receive(30)
            except children.Failed as e:
                group.fail(lane, e)
                continue
            if n > 0:  # the first round warms up what the contended pass left cold
                group.passes[lane].append(answer["seconds"])
        spent = time.monotonic() - begin
        cost = spent if cost is None else min(cost, spent)
        seconds -= spent
        if n >= ROUNDS[0] and seconds < cost:
            break


def judge(report, group, timed):
    name, bar = group.name, 3
    extra = name == EXTRA

    def say(what, met, text):
        report.bar(bar, f"{name}: {what}", None if extra else met, text)

    missing = [lane for lane, _ in LANES if lane in group.errors]
    if missing:
        say("runs", False, f"{', '.join(missing)} failed; {missing[0]}: {group.errors[missing[0]]}")

    if all(lane in group.first for lane in NATIVE):
        a, b = (group.first[lane]["numbers"] for lane in NATIVE)
        for lane in OURS:
            if lane not in group.first:
                continue
            agree, differ = bars.same_numbers(a, b, group.first[lane]["numbers"])
            met = None if agree == 0 else not differ
            say(f"losses of {lane}", met, f"{agree - len(differ)} of the {agree} steps on which native agrees with itself, of {len(a)}"
                + (f"; first differs at step {differ[0]}" if differ else ""))

    theirs = group.stats("expandable", "reserved_bytes.all.peak")
    mine = [group.stats(lane, "reserved_bytes.all.peak") for lane in OURS]
    mine = [m for m in mine if m is not None]
    if theirs and mine:
        if group.stats("expandable", "segment.all.peak"):
            say("set-up", False, "the expandable lane has plain segments: the setting did not take effect")
        say("peak reserved", max(mine) <= theirs + bars.GRANULE,
            f"{mib(max(mine))} MiB, expandable {mib(theirs)}, default {mib(group.stats('native_a', 'reserved_bytes.all.peak'))}")

    if any(group.passes.get(lane) for lane in OURS) and any(group.passes.get(lane) for lane in NATIVE):
        def of(lanes):
            return [p for lane in lanes for p in group.passes.get(lane, [])]

        ratio, low, high, total = bars.step_ratio(of(OURS), of(NATIVE))
        noise = "-"
        if all(group.passes.get(lane) for lane in NATIVE):
            noise = f"{bars.step_ratio(of(NATIVE[1:]), of(NATIVE[:1]))[0]:.4f}"
        beside = f"{bars.step_ratio(of(OURS), of(['expandable']))[0]:.4f}" if group.passes.get("expandable") else "-"
        say("step time", ratio <= bars.STEP_RATIO,
            f"{ratio:.4f} of native (single passes {low:.4f} to {high:.4f}, of the sums {total:.4f}); of expandable {beside}; "
            f"native b over a {noise}; {len(of(OURS))} passes of {group.steps} steps")
        report.line("time", workload=name, steps=group.steps, passes=group.passes, ratio=ratio, low=low, high=high, total=total)
    elif timed:
        say("step time", False, "not measured")

    judge_tight(group, say)


def judge_tight(group, say):
    if not group.tight:
        say("tight limit", False, "not run")
        return

    def outcome(lane):
        answer = group.tight[lane]
        if isinstance(answer, children.Failed):
            return None, f"error: {short(answer)}"
        return answer["oom"] is None, "ok" if answer["oom"] is None else f"OOM after {len(answer['numbers'])} steps"

    (them, their_text), (we, our_text) = outcome("expandable"), outcome("ashlar")
    text = f"{group.limit} MiB: ours {our_text}, expandable {their_text}, default {outcome('native')[1]}"
    if them is None or we is None:
        say("tight limit", False, text)
    else:
        say("tight limit", we if them else None, text)


def overview(groups):
    head = ["workload", "lane", "peak active", "peak reserved", "at end", "outside", "retries", "driver calls", "median step ms"]
    rows = []
    for group in groups:
        for lane, _ in LANES:
            if lane not in group.first:
                rows.append([group.name, lane, "failed"] + ["-"] * (len(head) - 3))
                continue
            steps = bars.median_steps(group.passes[lane]) if group.passes.get(lane) else []
            rows.append([group.name, lane, mib(group.stats(lane, "active_bytes.all.peak")),
                         mib(group.stats(lane, "reserved_bytes.all.peak")), mib(group.stats(lane, "reserved_bytes.all.current")),
                         group.outside.get(lane, "-"), group.stats(lane, "num_alloc_retries"), group.stats(lane, "num_device_alloc"),
                         f"{1000 * bars.statistics.median(steps):.3f}" if steps else "-"])
    print("\nMiB; outside: what the driver counts beyond the allocator's reserved bytes at the end of the first pass")
    table(head, rows)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", dest="so", help="libashlar.so (default: ASHLAR_LIBRARY, then bin/gpu/libashlar.so)")
    parser.add_argument("--budget", type=float, default=235, help="seconds for everything")
    parser.add_argument("--only", help="workloads, separated by commas")
    parser.add_argument("--no-time", action="store_true", help="losses, peaks and limits only")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    if args.so:
        os.environ["ASHLAR_LIBRARY"] = args.so
    allocators.clean_environment()
    # Deterministic matrix products need this before CUDA starts; it is the same for every lane.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    os.environ.update(OMP_NUM_THREADS="1", OPENBLAS_NUM_THREADS="1", PYTORCH_NVML_BASED_CUDA_CHECK="1",
                      HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false", PYTHONWARNINGS="ignore")
    report = Report("compare", args.budget)

    import workloads

    workloads.preload()
    gc.collect()
    gc.freeze()  # what was imported is not looked through again in every child
    report.note(f"torch {workloads.torch.__version__} and the models' code are imported")
    args.fork, usable = probe.starts(report, TIGHT)
    if not usable:
        report.bar(3, "set-up", False, "an allocator does not start: see above")
        sys.exit(report.close())

    names = args.only.split(",") if args.only else list(workloads.WORKLOADS)
    unknown = [n for n in names if n not in workloads.WORKLOADS]
    if unknown:
        sys.exit(f"compare.py: no workload is called {unknown[0]}; there are {', '.join(workloads.WORKLOADS)}")
    groups, before = [], None
    for n, name in enumerate(names):
        if report.left() < 15:
            report.bar(3, f"{name}: runs", None if name == EXTRA else False, "not run: the budget is spent")
            continue
        group = Group(name)
        groups.append(group)
        first_passes(args, report, group, before)
        outside_torch(group)
        active = group.stats("native_a", "active_bytes.all.peak")
        group.limit = bars.tight_limit_mib(active) if active else None
        slowest = max((sum(f["seconds"]) for f in group.first.values()), default=0)
        report.note(f"{name}: first passes done, {len(group.first)} of {len(LANES)} lanes, slowest {slowest:.1f} s")
        if group.first and not args.no_time:
            # What is left, less the first passes to come, in equal parts.
            left, coming = report.left() - 10, len(names) - n - 1
            timed_passes(group, (left - 9 * coming) / (coming + 1))
            report.note(f"{name}: {max((len(p) for p in group.passes.values()), default=0)} timed passes of {group.steps} steps")
        for worker in list(group.workers.values()):
            worker.stop(patience=0)
        before = group
    if before and before.limit and report.left() > 3:
        first_passes(args, report, None, before)
    for group in groups:
        judge(report, group, not args.no_time)
    overview(groups)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
