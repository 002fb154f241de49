"""Bars 5 and 6, without the soak: what must not break a job.

usage: python3 tools/bench/gpu/robust.py [--library PATH] [--ashlar BINARY] [--budget S] [--jobs N] [--only TEXT]

Every case is a process with a time limit. Most also run under PyTorch's own allocator: where
that control fails too, the verdict says so, and the case itself is what to look at first.
"""
import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import allocators  # noqa: E402
from report import Report, short, table  # noqa: E402

SCRIPT = os.path.join(HERE, "case.py")


class Case:
    """What to run, and how its outcome is judged.

    bar      5 or 6; None: shown, but no bar
    control  the native allocator that runs the same, or None
    equal    facts that must be the control's
    beside   facts that are shown beside the control's
    silent   nothing may be printed to stderr
    """

    def __init__(self, bar, group, function, options=None, *, name=None, control="native", equal=(), beside=(), repeat=1,
                 timeout=120, silent=False, env=None, runner=None, by_hand=False, ours=True):
        self.bar, self.group, self.function, self.options = bar, group, function, dict(options or {})
        self.name = name or function.replace("_", " ")
        self.control, self.equal, self.beside, self.repeat, self.timeout = control, equal, beside, repeat, timeout
        self.silent, self.env, self.runner, self.ours = silent, env or {}, runner, ours
        if by_hand:
            self.options["by_hand"] = True
            self.control = None

    def command(self, allocator):
        front = [sys.executable, "-B"] + ([self.runner] if self.runner else [])
        return front + [SCRIPT, self.group, self.function, allocator, json.dumps(self.options)]


def cases(folder):
    """Long ones first: they decide how long the whole takes."""
    runner = os.path.join(allocators.module_dir(), "ashlar_torch.py")
    yield Case(None, "graphs", "compiled", {"mode": "reduce-overhead"}, name="torch.compile reduce-overhead", timeout=170)
    yield Case(None, "graphs", "compiled", {"mode": "default"}, name="torch.compile", timeout=170)
    yield Case(5, "memory", "trainer", {"folder": folder}, name="transformers Trainer", timeout=150)
    yield Case(5, "process", "loader", name="DataLoader, 4 forked workers, GC forced", repeat=10, timeout=120)
    yield Case(5, "memory", "oom_many", name="1,000 errors in a row")
    yield Case(6, "graphs", "replay_many", name="1,000 replays")
    yield Case(6, "graphs", "training_step", name="training step in a graph")
    yield Case(6, "graphs", "graphed_callables", name="make_graphed_callables")
    yield Case(6, "graphs", "release")
    yield Case(6, "graphs", "release_while_output_lives")
    yield Case(6, "graphs", "shared_pool", name="two graphs in one pool")
    yield Case(None, "graphs", "other_thread", name="capture beside a thread that allocates")
    yield Case(5, "memory", "oom_caught", name="out of memory, then training goes on")
    yield Case(5, "memory", "oom_whole_device", name="more than the device has")
    yield Case(5, "memory", "oom_in_backward", name="out of memory in backward")
    yield Case(5, "memory", "oom_cudnn", name="cudnn.benchmark under a limit")
    yield Case(5, "memory", "cudnn_benchmark", name="cudnn.benchmark")
    yield Case(5, "memory", "batch_finder", name="accelerate finds a batch size")
    yield Case(5, "memory", "fraction", name="memory fraction")
    yield Case(5, "memory", "stats", name="statistics as torch counts them", control="expandable", equal=("keys", "seen"),
               beside=("reserved",))
    yield Case(5, "memory", "dump", {"path": os.path.join(folder, "ours.pickle")}, name="history and snapshot file", control=None)
    yield Case(5, "memory", "record_stream")
    # Shows that the case above can fail.
    yield Case(None, "memory", "record_stream", {"marked": False}, name="record_stream left out", ours=False)
    yield Case(5, "memory", "threads", name="8 threads")
    yield Case(5, "process", "late_import", {"started_by": "tensor"}, name="import after a tensor", by_hand=True)
    yield Case(5, "process", "late_import", {"started_by": "init"}, name="import after cuda.init()", by_hand=True)
    yield Case(None, "process", "failed_import", {"expect": "nowhere.so"}, name="no library", by_hand=True,
               env={"ASHLAR_LIBRARY": os.path.join(folder, "nowhere.so")})
    yield Case(None, "process", "failed_import", {"expect": "expandable_segmnts"}, name="wrong setting", by_hand=True,
               env={"ASHLAR_CONF": "expandable_segmnts:True"})
    yield Case(None, "process", "switched_off", name="ASHLAR=0", by_hand=True, env={"ASHLAR": "0"})
    yield Case(None, "process", "own_backend", name="python ashlar_torch.py SCRIPT", by_hand=True, runner=runner)
    yield Case(None, "process", "signals", name="signals of Python")
    store = os.path.join(folder, "store-")
    yield Case(None, "process", "distributed", {"backend": "nccl", "rank": 0, "world": 1, "store": store + "nccl-%a"}, name="NCCL, one rank")
    for rank in (0, 1):
        yield Case(None, "process", "distributed", {"backend": "gloo", "rank": rank, "world": 2, "store": store + "gloo-%a"},
                   name=f"gloo, rank {rank} of 2 on one GPU", equal=("weights",))
    for kind, times in (("plain", 40), ("graph", 20), ("thread", 20), ("pending", 20)):
        yield Case(5, "process", "exit_live", {"kind": kind}, name=f"exit with live tensors, {kind}", repeat=times, silent=True)


class Run:
    """One process and what came of it."""

    def __init__(self, case, allocator, number):
        self.case, self.allocator, self.number = case, allocator, number
        self.error, self.facts, self.seconds, self.stderr = "not run: the budget is spent", {}, 0.0, ""

    def go(self, report):
        left = report.left() - 3
        if left < 5:
            return
        env = dict(os.environ, **self.case.env)
        command = [part.replace("%a", self.allocator) for part in self.case.command(self.allocator)]
        begin = time.monotonic()
        limit = min(self.case.timeout, left)
        # Files and not pipes: a grandchild that lives on cannot keep us waiting. A session of its
        # own: what a case starts is ended with it.
        with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
            process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
            try:
                code = process.wait(timeout=limit)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                code = None
            out.seek(0)
            err.seek(0)
            self.stderr = err.read().decode(errors="replace")
            self.error = f"no end within {limit:.0f} s" if code is None else self.judge(code, out.read().decode(errors="replace"))
        self.seconds = time.monotonic() - begin
        report.line("case", case=self.case.name, bar=self.case.bar, allocator=self.allocator, number=self.number, error=self.error,
                    seconds=round(self.seconds, 2), facts=self.facts, stderr=self.stderr[-1500:] if self.error else "")

    def judge(self, code, out):
        for line in out.splitlines():
            if line.startswith("RESULT "):
                self.facts = json.loads(line[7:])
        last = self.stderr.strip().splitlines()[-1:]
        if code != 0:
            return f"exit code {code}: {' '.join(last)}"
        if "RESULT " not in out:
            return "ended without a result"
        if self.case.silent and self.stderr.strip():
            return f"printed: {short(self.stderr, 200)}"
        return None


def run_all(report, chosen, jobs):
    runs = []
    for case in chosen:
        if case.ours:
            runs += [Run(case, "ashlar", n) for n in range(case.repeat)]
        if case.control:
            # One control says whether the case is sound; where exits are counted, a few.
            runs += [Run(case, case.control, n) for n in range(min(case.repeat, 5))]
    done, lock = [0], threading.Lock()

    def go(run):
        run.go(report)
        with lock:
            done[0] += 1
            if done[0] % 25 == 0:
                report.note(f"{done[0]} of {len(runs)} processes done")

    with ThreadPoolExecutor(jobs) as pool:
        list(pool.map(go, runs))
    return runs


def judge(report, case, runs):
    mine = [r for r in runs if r.case is case and r.allocator == "ashlar"]
    control = [r for r in runs if r.case is case and r.allocator != "ashlar"]
    bad = [r for r in mine if r.error]
    sound = not any(r.error for r in control)
    text = f"{len(mine) - len(bad)} of {len(mine)}" if mine else "control only"
    met = not bad if mine else None
    if bad:
        text += f"; {bad[0].error}"
    if met and case.equal and control and sound:
        differ = [k for k in case.equal if mine[0].facts.get(k) != control[0].facts.get(k)]
        met = not differ
        if differ:
            text += f"; differs from {case.control}: {difference(differ[0], mine[0], control[0])}"
        else:
            text += f"; equal to {case.control}: {', '.join(case.equal)}"
    if not sound:
        wrong = [r for r in control if r.error]
        text += f"; CONTROL {case.control} fails {len(wrong)} of {len(control)}: {wrong[0].error}"
    if mine and control:
        for key in case.beside:
            text += f"; {key} {mine[0].facts.get(key)}, {case.control} {control[0].facts.get(key)}"
    facts = (mine or control)[0].facts
    shown = {k: v for k, v in facts.items() if k not in ("keys", "seen", "losses", "metrics", *case.beside)}
    if shown:
        text += "; " + json.dumps(shown)
    if case.bar is None:
        report.bar("-", case.name, None, ("" if met in (True, None) else "FAILS: ") + text)
    else:
        report.bar(case.bar, case.name, met, text)
    return [case.name, text.split(";")[0], f"{max((r.seconds for r in mine + control), default=0):.1f}"]


def difference(key, mine, control):
    """Where two facts part."""
    a, b = mine.facts.get(key), control.facts.get(key)
    if isinstance(a, list) and isinstance(b, list):
        for i, (x, y) in enumerate(zip(a, b)):
            if x != y:
                return f"{key}[{i}] is {x} and not {y}"
        return f"{key} has {len(a)} entries and not {len(b)}"
    return f"{key} is {a} and not {b}"


def read_snapshot(report, args, folder):
    """The file that torch's _dump_snapshot wrote under our allocator goes through our own reader."""
    path = os.path.join(folder, "ours.pickle")
    if not os.path.exists(path):
        return
    out = os.environ.get("OUT")
    if out and os.path.getsize(path) < 8 << 20:
        shutil.copy(path, os.path.join(out, "robust.pickle"))
    if not os.path.exists(args.ashlar):
        report.bar(5, "ashlar verify and stats on the snapshot", None, f"not run: there is no {args.ashlar}")
        return
    for command in ("verify", "stats"):
        try:
            p = subprocess.run([args.ashlar, command, path], capture_output=True, text=True, timeout=30)
            lines = (p.stdout + p.stderr).strip().splitlines()
            told = (lines or [""])[-1 if command == "verify" else 0]
            report.bar(5, f"ashlar {command} on the snapshot", p.returncode == 0, f"exit code {p.returncode}: {told}")
        except (OSError, subprocess.SubprocessError) as e:
            report.bar(5, f"ashlar {command} on the snapshot", False, str(e))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library", dest="so", help="libashlar.so (default: ASHLAR_LIBRARY, then bin/gpu/libashlar.so)")
    parser.add_argument("--ashlar", default=os.path.join(allocators.ROOT, "bin", "gpu", "ashlar"), help="the ashlar program")
    parser.add_argument("--budget", type=float, default=200, help="seconds for everything")
    parser.add_argument("--jobs", type=int, default=max(2, min(12, (os.cpu_count() or 2) - 2)), help="processes at a time")
    parser.add_argument("--only", help="cases whose name or function contains this text")
    args = parser.parse_args()
    if args.so:
        os.environ["ASHLAR_LIBRARY"] = args.so
    allocators.clean_environment()
    os.environ.update(OMP_NUM_THREADS="1", CUBLAS_WORKSPACE_CONFIG=":4096:8", HF_HUB_OFFLINE="1", TOKENIZERS_PARALLELISM="false",
                      TORCHINDUCTOR_COMPILE_THREADS="1",
                      NCCL_SOCKET_IFNAME="lo", GLOO_SOCKET_IFNAME="lo")
    report = Report("robust", args.budget)
    with tempfile.TemporaryDirectory() as folder:
        chosen = [c for c in cases(folder) if not args.only or args.only in c.name or args.only in c.function]
        if not chosen:
            sys.exit(f"robust.py: no case has {args.only!r} in its name")
        runs = run_all(report, chosen, args.jobs)
        rows = [judge(report, case, runs) for case in chosen]
        read_snapshot(report, args, folder)
    slow = sorted(rows, key=lambda r: -float(r[2]))[:8]
    print("\nthe slowest")
    table(["case", "ours", "seconds"], slow)
    sys.exit(report.close())


if __name__ == "__main__":
    main()
