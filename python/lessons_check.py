"""Checks ashlar.retry, monitor and async_save on a machine with an NVIDIA GPU.

    python lessons_check.py [--budget SECONDS] [--only NAME] [PATH-OF-ASHLAR]

retry: 20 jobs that run out of memory under a limit (five models; in the forward
pass, in the backward pass, by garbage, on top of gradients that are there) are
rescued, with losses, weights and buffers equal, bit by bit, to a run that had the
small batch from the beginning. monitor: what it gives back and costs. async_save:
what the file holds, what it takes on the GPU, how much longer 50 steps take. All
three: fork, Ctrl-C, exceptions. Each part is a process of its own. Prints a table
and exits with 1 if a check failed. Takes about three minutes, 20 GiB of GPU memory and
4 GiB of disk.
"""
import argparse
import gc
import itertools
import json
import os
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
STEPS = 4  # of a case of retry
SAVED_STEPS = 50  # that one save is averaged over
rows = []  # (what, got, ok) of this process


def row(what, got, good):
    rows.append((what, str(got), bool(good)))


# The cases of retry.

MODELS = ("mlp", "conv", "attention", "checkpointed", "autocast")
PLACES = ("forward", "backward", "garbage", "accumulated")
BATCH, WIDTH = 1024, 1024


def build(torch, name):
    nn = torch.nn
    if name == "conv":
        return nn.Sequential(nn.Unflatten(1, (4, 16, 16)), nn.Conv2d(4, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.Conv2d(64, 16, 3, padding=1),
                             nn.BatchNorm2d(16), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 256, WIDTH)).cuda()
    if name == "attention":
        layer = nn.TransformerEncoderLayer(64, 4, 256, dropout=0.1, batch_first=True)
        return nn.Sequential(nn.Unflatten(1, (16, 64)), layer, nn.Flatten()).cuda()
    return nn.Sequential(*itertools.chain.from_iterable((nn.Linear(WIDTH, WIDTH), nn.GELU(), nn.Dropout(0.1)) for _ in range(6))).cuda()


def scratch_of(torch, place, size):
    """A layer that takes size bytes a row for a moment."""

    class Scratch(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            if place == "forward":
                torch.empty(size * len(x), dtype=torch.uint8, device="cuda")
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            if place != "forward":
                torch.empty(size * len(grad), dtype=torch.uint8, device="cuda")
            return grad.clone()

    return Scratch.apply


class Garbage:
    """Is freed by the collector alone."""

    def __init__(self, held):
        self.held, self.me = held, self


class Trial:
    """One case: a few steps of training that can be run in several ways."""

    def __init__(self, torch, ashlar, name, place):
        self.torch, self.ashlar, self.name, self.place = torch, ashlar, name, place
        self.scratch = scratch_of(torch, place, 512 << 10 if place in ("forward", "backward", "accumulated") else 0)

    def forward(self, part):
        torch = self.torch
        if self.name == "checkpointed":
            from torch.utils.checkpoint import checkpoint

            return checkpoint(self.model, part, use_reentrant=False)
        with torch.autocast("cuda", torch.bfloat16, enabled=self.name == "autocast"):
            return self.model(part)

    def passes(self, batch, size):
        """Forward and backward, size rows at a time; the loss and size."""
        total = 0.0
        if self.place == "garbage":
            Garbage(self.torch.empty(256 * MIB, dtype=self.torch.uint8, device="cuda"))
        for part in batch.split(size):
            loss = self.scratch(self.forward(part)).float().square().sum() / len(batch)
            loss.backward()
            total += float(loss.detach())
        return total, size

    def run(self, sizes=None, how=None, limit=None):
        """Train; sizes: rows at a time in each step, or None for retry."""
        torch = self.torch
        self.model = None
        gc.collect()
        torch.cuda.empty_cache()
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(min(1.0, limit / total) if limit else 1.0)
        torch.cuda.reset_peak_memory_stats()
        torch.manual_seed(7)
        self.model = build(torch, self.name)
        optimizer = torch.optim.AdamW(self.model.parameters(), lr=1e-3)
        data = torch.randn(STEPS, BATCH, WIDTH, device="cuda")
        losses, used = [], []
        for step in range(STEPS):
            optimizer.zero_grad(set_to_none=True)
            if self.place == "accumulated":
                self.forward(data[step][:8]).float().square().mean().backward()
            loss, size = how(self, data[step]) if how else self.passes(data[step], sizes[step])
            optimizer.step()
            losses.append(loss)
            used.append(size)
        state = {k: v.detach().cpu() for k, v in self.model.state_dict().items()}
        return losses, used, state, torch.cuda.max_memory_reserved()


def halve(batch, size):
    return (batch, size // 2) if size > 1 else None


# By which retry gets to know the model.
WAYS = {
    "a method": lambda t, batch: t.ashlar.retry(t.passes, batch, BATCH, shrink=halve),
    "a closure": lambda t, batch: t.ashlar.retry(lambda b, n: t.passes(b, n), batch, BATCH, shrink=halve),
    "params": lambda t, batch: t.ashlar.retry(t.passes, batch, BATCH, shrink=halve, params=t.model.parameters()),
    "the decorator": lambda t, batch: t.ashlar.oom_retry(smaller=halve)(t.passes)(batch, BATCH),
}


def part_retry():
    import torch

    import ashlar

    torch.use_deterministic_algorithms(True)
    torch.backends.cuda.enable_flash_sdp(False)
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    gc.disable()
    rescued, different, died = 0, [], []
    ways = itertools.cycle(WAYS.items())
    Trial(torch, ashlar, "mlp", "forward").run(sizes=[BATCH] * STEPS)  # what cuBLAS keeps
    for name, place in itertools.product(MODELS, PLACES):
        way, how = next(ways)
        trial = Trial(torch, ashlar, name, place)
        try:
            if place == "garbage":  # that of one step fits beside it, that of two does not
                way, how = "without shrink", lambda t, batch: t.ashlar.retry(t.passes, batch, BATCH)
                limit = Trial(torch, ashlar, name, "none").run(sizes=[BATCH] * STEPS)[3] + 300 * MIB
            else:
                whole = trial.run(sizes=[BATCH] * STEPS)[3]
                small = trial.run(sizes=[BATCH // 8] * STEPS)[3]
                limit = (whole + small) // 2
            ooms = torch.cuda.memory_stats()["num_ooms"]
            losses, used, state, _ = trial.run(how=how, limit=limit)
            ooms = torch.cuda.memory_stats()["num_ooms"] - ooms
        except torch.OutOfMemoryError as e:
            died.append("%s %s %s: %s" % (name, place, way, getattr(e, "__notes__", e)))
            continue
        if ooms == 0:
            died.append("%s %s: it never ran out of memory" % (name, place))
            continue
        rescued += 1
        wanted, _, right, _ = trial.run(sizes=used)
        if losses != wanted or any(not torch.equal(state[k], right[k]) for k in right):
            different.append("%s %s %s" % (name, place, way))
    count = len(MODELS) * len(PLACES)
    row("retry: jobs that are rescued", "%d of %d %s" % (rescued, count, "; ".join(died)), rescued == count)
    row("retry: losses, weights, buffers as with the small batch", "%d of %d %s" % (rescued - len(different), rescued, "; ".join(different)), not different)


def part_refusals():
    """What must not be tried again."""
    import torch

    import ashlar

    total = torch.cuda.get_device_properties(0).total_memory
    model = torch.nn.Linear(4096, 4096).cuda()  # 64 MiB
    optimizer = torch.optim.AdamW(model.parameters())
    data = torch.randn(16, 4096, device="cuda")
    calls = []
    model(data).square().mean().backward()  # what cuBLAS keeps
    optimizer.zero_grad()

    def whole():
        calls.append(1)
        model(data).square().mean().backward()
        optimizer.step()

    def note(call, limit):
        del calls[:]
        torch.cuda.empty_cache()
        torch.cuda.set_per_process_memory_fraction((torch.cuda.memory_reserved() + limit) / total)
        try:
            ashlar.retry(call)
        except torch.OutOfMemoryError as e:
            return " ".join(getattr(e, "__notes__", ["no note"])), len(calls)
        return "no OOM", len(calls)

    # Gradients take 64 MiB; the state of AdamW, 128 MiB, does not fit.
    text, times = note(whole, 130 * MIB)
    row("retry: an OOM in optimizer.step is raised", "%d call: %s" % (times, text[:80]), times == 1 and "optimizer" in text)
    torch.cuda.set_per_process_memory_fraction(1.0)
    optimizer = torch.optim.AdamW(model.parameters())  # the other has half of its state
    optimizer.zero_grad()
    whole()

    def after():
        whole()
        torch.empty(2048 * MIB, dtype=torch.uint8, device="cuda")

    text, times = note(after, 512 * MIB)
    row("retry: an OOM after optimizer.step is raised", "%d call: %s" % (times, text[:80]), times == 1 and "weights" in text)


def part_verdict():
    """The cause becomes a note of the error."""
    import torch

    import ashlar

    ashlar.record("oom.pickle")
    torch.cuda.set_per_process_memory_fraction(1024 * MIB / torch.cuda.get_device_properties(0).total_memory)
    held = []

    def leak():
        for _ in range(1000):
            held.append(torch.empty(64 * MIB, dtype=torch.uint8, device="cuda"))

    try:
        ashlar.retry(leak)
    except torch.OutOfMemoryError as e:
        notes = "\n".join(getattr(e, "__notes__", []))
        cause = [line for line in notes.splitlines() if line.startswith("Cause: ")]
        row("retry: the verdict is a note", cause or notes[-200:], cause)


# monitor.


def trainer(torch, width=2048, layers=8, batch=8192):
    model = torch.nn.Sequential(*(torch.nn.Sequential(torch.nn.Linear(width, width), torch.nn.GELU()) for _ in range(layers))).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
    data = torch.randn(batch, width, device="cuda")

    def step():
        model(data).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()

    return model, optimizer, step


def part_monitor():
    import torch

    import ashlar

    _, _, train = trainer(torch)
    train()
    torch.cuda.synchronize()
    with ashlar.monitor(0.3) as m:
        begin = time.perf_counter()
        for _ in range(300):
            ashlar.step()
            train()
        torch.cuda.synchronize()
    elapsed, r = time.perf_counter() - begin, m.report()
    row("monitor: releases in 300 equal steps of training", r["releases"], r["releases"] <= 1)
    row("monitor: looking costs a step", "%.0f us" % (1e6 * r["looking_s"] / r["steps"]), r["looking_s"] / r["steps"] < 200e-6)
    row("monitor: looking and giving back, of the time", "%.2f %%" % (100 * (r["looking_s"] + r["giving_s"]) / elapsed), r["looking_s"] + r["giving_s"] < 0.02 * elapsed)
    torch.cuda.empty_cache()
    with ashlar.monitor(0.3) as m:
        most, after = 0, []
        for n in range(200):
            ashlar.step()
            after.append(torch.cuda.memory_reserved())
            if n % 100 == 50:  # a burst of requests
                burst = [torch.empty(512 * MIB, dtype=torch.uint8, device="cuda") for _ in range(8)]
                most = torch.cuda.memory_reserved()
                del burst
            torch.empty(8 * MIB, dtype=torch.uint8, device="cuda")
            time.sleep(0.02)
    given = m.report()["given_bytes"]
    row("monitor: of two bursts of 4 GiB, given back", "%.2f GiB in %d releases" % (given / (1 << 30), m.report()["releases"]), given >= 2 * 4096 * MIB and after[-1] < most // 2)


# async_save.


def clones(state):
    return {k: v.detach().cpu().clone() for k, v in state.items()}


def part_save_content():
    import torch

    import ashlar

    model, optimizer, step = trainer(torch)
    norm = torch.nn.BatchNorm1d(2048).cuda()
    tied = torch.nn.Linear(2048, 2048, bias=False).cuda()
    tied.weight = model[0][0].weight
    step()
    wrong = []

    def equal(a, b):
        return torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))

    for n in range(5):
        state = {"model": model.state_dict(), "tied": tied.state_dict(), "norm": norm.state_dict(), "step": n, "more": ["x", (1, 2.5)],
                 "optimizer": optimizer.state_dict(), "odd": torch.arange(10, device="cuda")[2:8:3]}
        right = {k: clones(state[k]) for k in ("model", "norm")}
        moment = optimizer.state_dict()["state"][0]["exp_avg"].cpu().clone()
        save = ashlar.async_save(state, "content.pt")
        for group in optimizer.param_groups:
            group["lr"] = 0.01  # what comes later would be seen
        norm(torch.randn(4096, 2048, device="cuda"))
        step()
        step()
        got = torch.load(save.wait(), weights_only=True)
        same = all(equal(got[k][name], value) for k in right for name, value in right[k].items())
        if not same or not equal(got["optimizer"]["state"][0]["exp_avg"], moment) or got["step"] != n or got["odd"].tolist() != [2, 5]:
            wrong.append(n)
        if got["tied"]["weight"].data_ptr() != got["model"]["0.0.weight"].data_ptr():
            wrong.append("tied weights are stored twice")
    row("async_save: the file holds the moment of the call", "%d of 5 %s" % (5 - len(wrong), wrong), not wrong)


def part_save_cost():
    import torch

    import ashlar

    torch.backends.cuda.matmul.allow_tf32 = True  # else the steps are long, and the save a small part of them
    model, optimizer, step = trainer(torch, width=4096, layers=24, batch=12288)
    state = model.state_dict()
    weights = sum(v.nbytes for v in state.values())

    def steps(save):
        torch.cuda.synchronize()
        begin, handle = time.perf_counter(), None
        for n in range(SAVED_STEPS):
            if save and n == 5:
                handle = ashlar.async_save(model.state_dict(), "cost.pt")
            step()
        torch.cuda.synchronize()
        took = time.perf_counter() - begin
        if handle is not None:
            handle.wait()
        return took, handle

    for _ in range(5):
        step()
    before, _ = steps(False)
    torch.cuda.reset_peak_memory_stats()
    peak = torch.cuda.max_memory_allocated
    for _ in range(2):
        step()
    plain, reserved, free = peak(), torch.cuda.memory_reserved(), torch.cuda.mem_get_info()[0]
    cold, handle = steps(True)
    spike, more, outside = peak() - plain, torch.cuda.memory_reserved() - reserved, free - torch.cuda.mem_get_info()[0]
    between, _ = steps(False)
    warm, again = steps(True)
    after, _ = steps(False)
    base = (before + between + after) / 3
    row("async_save: allocated beyond a step's peak", "%.3f %% of %.2f GiB" % (100 * spike / weights, weights / (1 << 30)), spike <= 0.02 * weights)
    row("async_save: reserved, and taken from the driver, more", "%.3f %%, %.3f %%" % (100 * more / weights, 100 * outside / weights), max(more, outside) <= 0.02 * weights)
    row("async_save: %d steps of %.0f ms with the first save" % (SAVED_STEPS, 1e3 * base / SAVED_STEPS),
        "%+.2f %% (the optimizer waited %.0f ms)" % (100 * (cold / base - 1), 1e3 * handle.held), cold <= 1.05 * base)
    row("async_save: with the second", "%+.2f %% (%.0f ms); without %+.2f %% to %+.2f %%" % (
        100 * (warm / base - 1), 1e3 * again.held, 100 * (min(before, between, after) / base - 1), 100 * (max(before, between, after) / base - 1)), warm <= 1.05 * base)
    save = time.perf_counter()
    torch.save(state, "plain.pt")
    torch.cuda.reset_peak_memory_stats()
    now = torch.cuda.memory_allocated()
    torch.save(state, "plain.pt")
    row("torch.save: allocated meanwhile, and the time of one", "%.3f %%, %.1f s" % (100 * (peak() - now) / weights, (time.perf_counter() - save) / 2), True)


# Fork, Ctrl-C, exceptions. Each job uses all three.

JOB = """
import os, signal, sys, time
sys.path.insert(0, %r)
import ashlar, torch
model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(8))).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
data = torch.randn(64, 4096, device="cuda")
def passes(data, n):
    return [model(part).square().mean().backward() for part in data.split(n)]
def step():
    ashlar.step()
    ashlar.retry(passes, data, 64, shrink=lambda data, n: (data, n // 2))
    optimizer.step()
    optimizer.zero_grad()
""" % HERE

FORK = JOB + """
import multiprocessing
def child(save):
    ashlar.step()
    assert ashlar.retry(lambda: 5) == 5
    try:
        save.wait()
    except RuntimeError as e:
        assert "fork" in str(e), e
    else:
        raise AssertionError("a fork waits for its parent's save")
with ashlar.monitor(0.3):
    step()
    save = ashlar.async_save(model.state_dict(), "a.pt")
    p = multiprocessing.get_context("fork").Process(target=child, args=(save,))
    p.start()
    step()
    p.join()
    print("child", p.exitcode)
    pid = os.fork()
    if pid == 0:
        sys.exit(0)
    print("exit", os.waitpid(pid, 0)[1])
    save.wait()
torch.load("a.pt", weights_only=True)
print("whole")
"""

INTERRUPT = JOB + """
with ashlar.monitor(0.3):
    step()
    n = 0
    while True:
        step()
        n += 1
        if n == 20:
            print("ready", flush=True)
        if n % 5 == 0:
            ashlar.async_save(model.state_dict(), "a.pt")
"""

UNCAUGHT = JOB + """
with ashlar.monitor(0.3):
    step()
    ashlar.async_save(model.state_dict(), "a.pt")
    raise KeyError("mine")
"""


def run_job(text, interrupt=False):
    """The status, and the output, of a job."""
    job = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    out = ""
    if interrupt:
        for line in job.stdout:
            out += line
            if line == "ready\n":
                break
        time.sleep(0.3)
        job.send_signal(signal.SIGINT)
    out += job.communicate(timeout=60)[0]
    return job.returncode, out


def whole_file():
    import torch

    left = [name for name in os.listdir(".") if name.endswith(".part")]
    return not left and len(torch.load("a.pt", weights_only=True)) == 16


def part_process():
    code, out = run_job(FORK)
    row("all three: fork", out.splitlines()[-4:], code == 0 and "child 0" in out and "exit 0" in out and "whole" in out)
    os.remove("a.pt")
    code, out = run_job(INTERRUPT, interrupt=True)
    row("all three: Ctrl-C; the file is whole", "status %d, %s" % (code, whole_file()), code in (130, -signal.SIGINT, 1) and "KeyboardInterrupt" in out and whole_file())
    os.remove("a.pt")
    code, out = run_job(UNCAUGHT)
    row("all three: an exception; the file is whole", "status %d, %s" % (code, whole_file()), code == 1 and "KeyError: 'mine'" in out and "monitor: 1 steps" in out and whole_file())


def part_exceptions():
    import torch

    import ashlar

    mine, passed = KeyError("mine"), None
    weight = torch.nn.Parameter(torch.ones(4, device="cuda"))

    def fails():
        weight.sum().backward()
        raise mine

    try:
        ashlar.retry(fails, shrink=lambda: None)
    except KeyError as e:
        passed = e
    row("retry: an exception of the job's passes", repr(passed), passed is mine)
    texts = []
    for attempt in (lambda: ashlar.async_save({"f": lambda: 0}, "bad.pt"), lambda: ashlar.async_save({"w": weight}, "/proc/none/bad.pt").wait(),
                    lambda: (ashlar.async_save({"w": weight}, "/proc/none/bad.pt").written.wait(), ashlar.async_save({"w": weight}, "good.pt")),
                    lambda: ashlar.async_save({"w": weight}, "good.pt").wait()):
        try:
            texts.append(os.path.basename(attempt()))
        except Exception as e:
            texts.append(type(e).__name__)
    row("async_save: errors are raised, the next save works", texts, texts[-1] == "good.pt" and "good.pt" not in texts[:-1] and not os.path.exists("bad.pt"))


PARTS = {"retry": part_retry, "refusals": part_refusals, "verdict": part_verdict, "monitor": part_monitor, "content": part_save_content,
         "cost": part_save_cost, "process": part_process, "exceptions": part_exceptions}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--budget", type=float, default=240, help="seconds; parts that would begin later are left out and count as failed")
    parser.add_argument("--only", choices=PARTS)
    parser.add_argument("--part", choices=PARTS, help=argparse.SUPPRESS)
    parser.add_argument("ashlar", nargs="?", help="the command, for the verdict")
    options = parser.parse_args()
    if options.part:
        sys.path.insert(0, HERE)
        PARTS[options.part]()
        print("rows " + json.dumps(rows))
        return 0
    environment = dict(os.environ, CUBLAS_WORKSPACE_CONFIG=":4096:8")
    if options.ashlar:
        environment["ASHLAR_BIN"] = os.path.abspath(options.ashlar)
    end, failed = time.monotonic() + options.budget, False
    for name in [options.only] if options.only else PARTS:
        if name == "verdict" and not options.ashlar:
            continue
        left, begin = end - time.monotonic(), time.monotonic()
        found = []
        if left > 0:
            with tempfile.TemporaryDirectory(prefix="lessons-check-") as folder:
                command = [sys.executable, os.path.abspath(__file__), "--part", name]
                try:
                    done = subprocess.run(command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=left + 30)
                    out = done.stdout
                except subprocess.TimeoutExpired as e:
                    out = "%s\ntimed out" % e.stdout
            found = [line[5:] for line in out.splitlines() if line.startswith("rows ")]
            if not found:
                print(out[-3000:])
        for what, got, good in json.loads(found[0]) if found else [(name, "left out: no time" if left <= 0 else "no result", False)]:
            failed = failed or not good
            print("%-62s %-70s %s" % (what, got, "ok" if good else "FAILS"))
        print("%62s %.0f s" % ("(%s)" % name, time.monotonic() - begin), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
