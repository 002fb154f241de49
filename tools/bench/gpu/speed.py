"""Bar 4: what an allocation costs, through Python and through torch's C++ interface.

usage: python3 tools/bench/gpu/speed.py [--library PATH] [--budget S] [--cuda-include DIR]

Python: torch.empty + del in many short processes that take turns on the same CPU, native,
expandable, ours; several such rows at once on CPUs of their own. Their timing falls into
two modes from process to process, so medians over processes are compared.
C++: pair.cpp is built against the installed torch and loaded into a process per allocator,
one at a time.
"""
import argparse
import os
import statistics
import subprocess
import sys
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import allocators  # noqa: E402
import bars  # noqa: E402
import children  # noqa: E402
import probe  # noqa: E402
from report import Report, table  # noqa: E402

ORDER = ("native", "ashlar", "expandable")
CPP_ORDER = ("native", "ashlar", "expandable", "ashlar_nofront", "noop", "ashlar", "native")
SHOWN = ("native", "expandable", "ashlar", "ashlar_nofront", "noop")
MAX_STATIONS = 7


def build(args, folder):
    """Starts the compilers; they run while Python is measured."""
    import torch

    root = os.path.dirname(torch.__file__)
    lib = os.path.join(root, "lib")
    pair, noop = os.path.join(folder, "pair.so"), os.path.join(folder, "noop.so")
    commands = [
        [os.environ.get("CXX", "g++"), "-O2", "-std=c++20", "-shared", "-fPIC", f"-D_GLIBCXX_USE_CXX11_ABI={abi(torch)}",
         "-I", os.path.join(root, "include"), "-I", args.cuda_include, os.path.join(HERE, "pair.cpp"), "-o", pair,
         os.path.join(lib, "libc10_cuda.so"), os.path.join(lib, "libc10.so"), f"-Wl,-rpath,{lib}",
         "-Wl,--allow-shlib-undefined", "-pthread"],
        [os.environ.get("CC", "gcc"), "-O2", "-shared", "-fPIC", os.path.join(HERE, "noop.c"), "-o", noop],
    ]
    os.environ["NOOP_LIBRARY"] = noop
    running = []
    last = sorted(os.sched_getaffinity(0))[-2:]  # the CPUs that no station uses
    for command in commands:
        log = tempfile.TemporaryFile(mode="w+")
        process = subprocess.Popen(command, stdout=log, stderr=log, preexec_fn=lambda: os.sched_setaffinity(0, last))
        running.append((command, process, log))
    return pair, running


def abi(torch):
    try:
        return int(bool(torch.compiled_with_cxx11_abi()))
    except AttributeError:
        return 1


def built(running):
    """Whether both compilers were content."""
    good = True
    for command, process, log in running:
        try:
            code = process.wait(timeout=120)
        except subprocess.TimeoutExpired:
            process.kill()
            code = "none within 120 s"
        if code != 0:
            log.seek(0)
            print(f"{command[0]} failed ({code}):\n{log.read()[:3000]}", flush=True)
            good = False
    return good


def measure_python(args, report):
    """Rows of every process of every station."""
    mine = sorted(os.sched_getaffinity(0))
    count = max(1, min(MAX_STATIONS, (len(mine) - 1) // 2))
    stations = []
    for k in range(count):
        cpus = mine[2 * k:2 * k + 2] if len(mine) > 1 else None
        order = ORDER[k % 3:] + ORDER[:k % 3]
        fields = {"number": k, "cpus": cpus, "order": order, "rounds": args.rounds, "samples": 9, "n": args.loops}
        stations.append(children.Worker("speed_worker", "station", fields, cpus, False))
    rows, deadline = [], min(report.left() - 20, 75)
    open_ = list(stations)
    while open_:
        answers = children.gather(open_, max(1.0, deadline - (args.budget - report.left())))
        still = []
        for worker, answer in zip(open_, answers):
            if isinstance(answer, children.Failed):
                report.line("python", error=str(answer))
                report.note(str(answer)[:400])
            elif not answer.get("done"):
                rows.append(answer)
                report.line("python", **answer)
                still.append(worker)
        open_ = still
    for worker in stations:
        worker.stop()
    return rows


def judge_python(report, rows):
    import speed_worker

    good = [r for r in rows if "ns" in r]
    lost = [r for r in rows if "ns" not in r]
    if lost:
        report.bar(4, "python: processes", False, f"{len(lost)} of {len(rows)} failed: {lost[0].get('error', '')[:300]}")
    shown = []
    for size in speed_worker.PYTHON_SIZES:
        # One figure per process, then over processes.
        of = {a: [statistics.median(r["ns"][str(size)]) for r in good if r["allocator"] == a] for a in ORDER}
        for name in ORDER:
            if of[name]:
                v = of[name]
                shown.append([size, name, len(v), *(f"{x:.0f}" for x in (min(v), statistics.median(v), max(v)))])
        if not of["native"] or not of["ashlar"]:
            report.bar(4, f"python: empty + del, {size} B", False, "not measured")
            continue
        native, ours = statistics.median(of["native"]), statistics.median(of["ashlar"])
        turns = {(r["station"], r["turn"], r["allocator"]): statistics.median(r["ns"][str(size)]) for r in good}
        pairs = [turns[k[0], k[1], "ashlar"] / v for k, v in turns.items() if k[2] == "native" and (k[0], k[1], "ashlar") in turns]
        report.bar(4, f"python: empty + del, {size} B", ours <= native * bars.PYTHON_RATIO,
                   f"ratio {ours / native:.3f} ({ours:.0f} / {native:.0f} ns, medians of {len(of['ashlar'])} and {len(of['native'])} processes); "
                   f"neighbours in time: median {statistics.median(pairs):.3f}, {min(pairs):.3f} to {max(pairs):.3f}")
    print("\ntorch.empty + del from Python, ns; a process counts as its median")
    table(["bytes", "allocator", "processes", "min", "median", "max"], shown)


def measure_cpp(args, report, library, fork):
    """samples[allocator][case] over all processes of an allocator."""
    cpus = sorted(os.sched_getaffinity(0))
    samples = {}
    for allocator in CPP_ORDER:
        if report.left() < 8:
            report.bar(4, f"c++: {allocator}", False, "not run: the budget is spent")
            continue
        fields = {"allocator": allocator, "library": library, "cpus": cpus, "scale": args.scale}
        worker = children.Worker("speed_worker", "cpp", fields, None, fork)
        try:
            while True:
                answer = worker.receive(min(30, max(3, report.left())))
                if answer.get("done"):
                    break
                report.line("c++", allocator=allocator, **answer)
                mine = samples.setdefault(allocator, {})
                if "ns" in answer:
                    mine.setdefault(answer["case"], []).extend(answer["ns"])
                else:
                    for call, values in answer["latency"].items():
                        mine.setdefault(f"{call} {answer['case']}", []).extend(values)
        except children.Failed as e:
            # Only these two carry bars.
            report.bar(4, f"c++: {allocator}", False if allocator in ("native", "ashlar") else None, f"failed: {e}"[:500])
        worker.stop()
        report.note(f"c++: {allocator} done")
    return samples


def judge_cpp(report, samples):
    cases = list(dict.fromkeys(c for s in samples.values() for c in s if c.split()[0] in ("pair", "window", "threads", "trace")))
    rows = []
    for case in cases:
        row = [case]
        for name in SHOWN:
            v = samples.get(name, {}).get(case)
            row.append(f"{min(v):.0f} / {statistics.median(v):.0f}" if v else "-")
        rows.append(row)
    print("\nC++ through torch's interface, ns per malloc + free over all threads: least / median of the samples")
    table(["case", *SHOWN], rows)

    latencies = list(dict.fromkeys(c for s in samples.values() for c in s if c.split()[0] in ("malloc", "free")))
    rows = []
    for case in latencies:
        for name in SHOWN:
            v = samples.get(name, {}).get(case)
            if v:
                rows.append([case, name, len(v), *(f"{bars.quantile(v, q):.0f}" for q in (0.5, 0.99, 1.0))])
    print("\none call after 1 ms of other work in C, ns")
    table(["call", "allocator", "calls", "p50", "p99", "max"], rows)
    for case in latencies:
        mine, theirs = samples.get("ashlar", {}).get(case), samples.get("native", {}).get(case)
        if mine and theirs:
            report.bar(4, f"c++: {case}", None, "p50/p99/max " + " against native's ".join(
                "/".join(f"{bars.quantile(v, q):.0f}" for q in (0.5, 0.99, 1.0)) for v in (mine, theirs)) + " ns")

    for case in cases:
        mine, theirs = samples.get("ashlar", {}).get(case), samples.get("native", {}).get(case)
        if not mine or not theirs:
            report.bar(4, f"c++: {case}", False, "not measured")
            continue
        ours, native = statistics.median(mine), statistics.median(theirs)
        text = f"{ours:.0f} ns, native {native:.0f}: {native / ours:.2f} times native's throughput (least {min(mine):.0f} and {min(theirs):.0f})"
        if case == "threads 8":
            report.bar(4, f"c++: {case}", native / ours >= bars.THREADS_GAIN, text)
        elif not case.startswith("pair"):
            report.bar(4, f"c++: {case}", None, text)
        else:
            report.bar(4, f"c++: {case}", ours <= native, text)
    if "threads 8" not in cases:
        report.bar(4, "c++: threads 8", False, "not measured")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", dest="so", help="libashlar.so (default: ASHLAR_LIBRARY, then bin/gpu/libashlar.so)")
    parser.add_argument("--budget", type=float, default=120, help="seconds for everything")
    parser.add_argument("--cuda-include", default="/usr/local/cuda/include", help="folder of cuda_runtime_api.h")
    parser.add_argument("--rounds", type=int, default=6, help="processes per allocator and station in the Python part")
    parser.add_argument("--loops", type=int, default=10000, help="turns of a sample in the Python part")
    parser.add_argument("--scale", type=float, default=1.0, help="size of the C++ samples")
    parser.add_argument("--part", choices=("python", "c++", "both"), default="both")
    args = parser.parse_args()
    if args.so:
        os.environ["ASHLAR_LIBRARY"] = args.so
    allocators.clean_environment()
    os.environ.update(OMP_NUM_THREADS="1", PYTORCH_NVML_BASED_CUDA_CHECK="1", PYTHONWARNINGS="ignore")
    report = Report("speed", args.budget)
    with tempfile.TemporaryDirectory() as folder:
        import torch  # noqa: F401  (once, for all that are forked)

        library, running = build(args, folder)
        fork, usable = probe.starts(report, ("native", "ashlar"))
        if not usable:
            report.bar(4, "set-up", False, "an allocator does not start: see above")
            sys.exit(report.close())
        if args.part != "c++":
            rows = measure_python(args, report)
            report.note(f"python: {len(rows)} processes measured")
        compiled = built(running)
        if args.part != "python":
            if compiled:
                samples = measure_cpp(args, report, library, fork)
            else:
                report.bar(4, "c++", False, "pair.cpp did not build: see above")
        if args.part != "c++":
            judge_python(report, rows)
        if args.part != "python" and compiled:
            judge_cpp(report, samples)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
