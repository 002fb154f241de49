"""How processes end: every kind of exit, many times, under PyTorch's allocator and ours.

usage: python3 exits.py [--budget S] [--scale X] [--only KIND,...] [--workers N] [--native X] [--no-load]

Children are forked from this process, which has imported torch and not started CUDA,
and end as any script does, by falling off its end; some are started afresh. All CPUs
are kept busy meanwhile. Jobs come in an order that is shuffled once, so that a run
whose budget is spent has seen something of everything. What went wrong is printed
with the end of its stderr.
"""
import argparse
import collections
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)

import allocators  # noqa: E402
from report import Report, short, table  # noqa: E402

# kind: how often under ours, the exit code, what stderr must hold ("" for nothing)
KINDS = {
    "plain": (300, 0, ""),
    "graph": (1000, 0, ""),
    "pending": (1000, 0, ""),
    "thread": (300, 0, ""),
    "_exit": (300, 0, ""),
    "exception in a thread": (300, 0, "on purpose"),
    "SIGTERM": (300, -signal.SIGTERM, ""),
    "SIGINT in backward": (300, -signal.SIGINT, "KeyboardInterrupt"),
    "tensors in globals": (300, 0, ""),
    "loader's workers alive": (300, 0, ""),
}
FRESH = 30  # of each kind are started afresh
PATIENCE = 60  # seconds until a process is ended by force

Job = collections.namedtuple("Job", "exit allocator fresh")


def end(kind, allocator, ending):
    """The child's life up to its last line. ending() is called right before it ends."""
    import torch

    allocators.install(allocator)
    import case_process as cases

    if kind in ("plain", "graph", "thread", "pending"):
        cases.exit_live(kind)
    elif kind == "exception in a thread":
        cases.exit_live("plain")

        def fail():
            kept = torch.ones(1000, device="cuda")
            raise RuntimeError("on purpose, with %d elements" % kept.numel())

        failing = threading.Thread(target=fail)
        failing.start()
        failing.join()
    elif kind == "SIGINT in backward":
        interrupted_backward(torch, ending)
    elif kind == "tensors in globals":
        tensors_in_globals(torch, cases)
    elif kind == "loader's workers alive":
        held = [torch.ones(n, device="cuda") for n in (10, 100_000)]
        loader = torch.utils.data.DataLoader(cases.Rows(held), batch_size=16, num_workers=2, persistent_workers=True,
                                             multiprocessing_context="fork")
        batches = iter(loader)
        next(batches)
        cases.LIVE.update(held=held, batches=batches)
    else:
        cases.exit_live("plain")
    ending()
    if kind == "_exit":
        os._exit(0)
    if kind == "SIGTERM":
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(PATIENCE)


def interrupted_backward(torch, ending):
    model = torch.nn.Sequential(*[torch.nn.Linear(512, 512) for _ in range(40)]).cuda()

    def interrupt():
        time.sleep(0.2)
        ending()
        os.kill(os.getpid(), signal.SIGINT)

    signal.signal(signal.SIGINT, signal.default_int_handler)
    threading.Thread(target=interrupt, daemon=True).start()
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until:
        model(torch.randn(64, 512, device="cuda")).sum().backward()


def tensors_in_globals(torch, cases):
    """Some of them are freed by whatever Python takes apart last."""
    import builtins

    class Late:
        def __init__(self):
            self.kept, self.myself = torch.ones(1000, device="cuda"), self

        def __del__(self):
            self.kept = None

    cases.exit_live("plain")
    globals()["kept"] = [torch.ones(n, device="cuda") for n in (1, 1000, 1 << 22)]
    builtins.ashlar_kept = torch.ones(1000, device="cuda")
    torch.ashlar_kept = torch.ones(1000, device="cuda")
    cases.LIVE["late"] = [Late() for _ in range(10)]


class Child:
    """A process that is about to end."""

    def __init__(self, job):
        self.job, self.begun, self.ending = job, time.monotonic(), None
        self.err = tempfile.TemporaryFile()
        self.read, write = os.pipe()
        if job.fresh:
            command = [sys.executable, "-B", os.path.abspath(__file__), "--child", job.exit, job.allocator, str(write)]
            self.pid = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=self.err, stderr=self.err, pass_fds=(write,)).pid
        else:
            sys.stdout.flush()
            sys.stderr.flush()
            self.pid = os.fork()
            if self.pid == 0:
                os.dup2(self.err.fileno(), 1)
                os.dup2(self.err.fileno(), 2)
                signal.signal(signal.SIGTERM, signal.SIG_DFL)
                end(job.exit, job.allocator, lambda: os.write(write, b"."))
                return
        os.close(write)

    def look(self):
        """What came of it, or None while it lives."""
        now = time.monotonic()
        if self.ending is None and self.told():
            self.ending = now
        pid, status = os.waitpid(self.pid, os.WNOHANG)
        if pid == 0:
            if now - (self.ending or self.begun) < PATIENCE:
                return None
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
            return self.result(None, now)
        return self.result(os.waitstatus_to_exitcode(status), now)

    def told(self):
        os.set_blocking(self.read, False)
        try:
            return os.read(self.read, 1) == b"."
        except BlockingIOError:
            return False

    def result(self, code, now):
        os.close(self.read)
        self.err.seek(0)
        text = self.err.read().decode(errors="replace")
        self.err.close()
        _, want, said = KINDS[self.job.exit]
        good = code == want and (said in text if said else not text.strip())
        why = "" if good else f"{'no end' if code is None else 'exit code %d' % code}: {short(text, 600)}"
        return {**self.job._asdict(), "good": good, "seconds": now - (self.ending or self.begun), "why": why}


def jobs(scale, only, native):
    out = []
    for kind, (count, _, _) in KINDS.items():
        if only and kind not in only:
            continue
        for allocator, share in (("ashlar", 1), ("native", native)):
            out += [Job(kind, allocator, False)] * max(1, round(count * share * scale))
            out += [Job(kind, allocator, True)] * max(1, round(FRESH * share * scale))
    random.Random(1).shuffle(out)
    return out


def verdicts(results, report):
    rows = []
    for kind, (count, _, _) in KINDS.items():
        slowest = {}
        for allocator in ("native", "ashlar"):
            for fresh in (False, True):
                some = [r for r in results if (r["exit"], r["allocator"], r["fresh"]) == (kind, allocator, fresh)]
                if not some:
                    continue
                times = [r["seconds"] for r in some]
                slowest[allocator] = max(slowest.get(allocator, 0), max(times))
                rows.append((kind, allocator, "afresh" if fresh else "forked", f"{sum(r['good'] for r in some)} of {len(some)}",
                             f"{statistics.median(times):.2f}", f"{max(times):.2f}"))
        ours = [r for r in results if r["exit"] == kind and r["allocator"] == "ashlar"]
        if ours:
            good = sum(r["good"] for r in ours)
            in_time = "native" in slowest and slowest["ashlar"] <= slowest["native"] + 1
            report.bar(3, kind, good == len(ours) and in_time and len(ours) >= count,
                       f"{good} of {len(ours)} (wanted {count} and {FRESH} afresh); slowest {slowest['ashlar']:.2f} s, native {slowest.get('native', 0):.2f} s")
    table(["exit", "allocator", "started", "good", "median s", "slowest s"], rows)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--budget", type=float, default=540)
    p.add_argument("--scale", type=float, default=1, help="of the counts")
    p.add_argument("--only", type=lambda s: s.split(","), default=[])
    p.add_argument("--workers", type=int, default=14)
    p.add_argument("--native", type=float, default=0.2, help="native processes for each of ours")
    p.add_argument("--no-load", action="store_true", help="leave the CPUs idle")
    args = p.parse_args()
    for kind in args.only:
        if kind not in KINDS:
            p.error(f"no exit is called {kind!r}; there are {', '.join(KINDS)}")
    allocators.clean_environment()
    import torch  # noqa: F401  (children inherit it)
    import case_process  # noqa: F401

    report = Report("exits", args.budget)
    load = [] if args.no_load else [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(os.cpu_count())]
    waiting, running, results = jobs(args.scale, args.only, args.native), [], []
    while running or (waiting and report.left() > 20):
        while waiting and len(running) < args.workers and report.left() > 20:
            child = Child(waiting.pop())
            if child.pid == 0:
                return None  # the child: it ends as a script does
            running.append(child)
        time.sleep(0.002)
        for child in list(running):
            result = child.look()
            if result is not None:
                running.remove(child)
                results.append(result)
                report.line("process", **result)
                if not result["good"]:
                    report.note(f"{result['exit']}, {result['allocator']}{', afresh' if result['fresh'] else ''}: {result['why']}")
    for busy in load:
        busy.kill()
        busy.wait()
    verdicts(results, report)
    if waiting:
        report.note(f"the budget is spent: {len(waiting)} processes were not started")
    return report.close()


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        end(sys.argv[2], sys.argv[3], lambda: os.write(int(sys.argv[4]), b"."))
    else:
        STATUS = main()
        if STATUS is not None:
            sys.exit(STATUS)
