"""Cases about the life of a process: import, fork, exit, signals, several ranks."""
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time

import torch
import torch.nn as nn

import allocators
from case import MIB, check


def ashlar_library():
    """libashlar.so of this process, or None where it is not in use."""
    if torch.cuda.get_allocator_backend() != "pluggable":
        return None
    return ctypes.CDLL(os.environ["ASHLAR_LIBRARY"])


class Collector:
    """Has the library's garbage collector run again and again on a thread."""

    def __init__(self):
        self.so, self.stop, self.runs = ashlar_library(), threading.Event(), 0
        self.thread = threading.Thread(target=self.work, daemon=True)

    def work(self):
        while not self.stop.is_set():
            self.so.ashlar_force_gc()
            self.runs += 1
            time.sleep(0.0005)

    def __enter__(self):
        if self.so:
            self.thread.start()
        return self

    def __exit__(self, *_):
        self.stop.set()
        if self.so:
            self.thread.join(20)
            check(not self.thread.is_alive(), "the thread that collects hangs")


class Rows(torch.utils.data.Dataset):
    """Also carries GPU tensors into the workers, which let go of them there."""

    def __init__(self, held):
        self.held = held

    def __len__(self):
        return 256

    def __getitem__(self, i):
        self.held = None  # in a worker: a free in a forked child
        junk = [bytearray(1000) for _ in range(200)]
        return torch.full((64,), float(i)) + len(junk) * 0


def loader(epochs=3, workers=4):
    model = nn.Linear(64, 64).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-6)
    held = [torch.ones(n, device="cuda") for n in (10, 100_000, 5 * MIB)]
    rows, seen = Rows(held), 0
    with Collector() as collector:
        for _ in range(epochs):
            rows.held = held
            batches = torch.utils.data.DataLoader(rows, batch_size=16, shuffle=True, num_workers=workers,
                                                  multiprocessing_context="fork", pin_memory=True, timeout=30)
            for batch in batches:
                x = batch.cuda(non_blocking=True)
                loss = model(x).square().mean()
                loss.backward()
                optimizer.step()
                optimizer.zero_grad()
                seen += len(x)
    torch.cuda.synchronize()
    check(seen == 256 * epochs, f"{seen} rows came")
    check(all(float(h.min()) == 1 == float(h.max()) for h in held), "tensors of the parent changed")
    if collector.so:
        check(collector.runs > 20, f"the collector ran only {collector.runs} times")
    return {"rows": seen, "collections": collector.runs}


def late_import(started_by="tensor"):
    """CUDA has started: the import must say so, and leave torch as it was."""
    if started_by == "tensor":
        torch.zeros(1, device="cuda")
    else:
        torch.cuda.init()
    sys.path.insert(0, allocators.module_dir())
    try:
        import ashlar_torch  # noqa: F401
    except Exception as e:
        text = f"{type(e).__name__}: {e}"
    else:
        check(False, "the import went through")
    check("before" in text and "CUDA" in text, f"the error does not say what to do: {text}")
    check(torch.cuda.get_allocator_backend() == "native", "torch's allocator was changed all the same")
    check(float(torch.ones(10, device="cuda").sum()) == 10, "torch does not work afterwards")
    return {"text": text}


def failed_import(expect):
    """A wrong set-up: the error must name it."""
    sys.path.insert(0, allocators.module_dir())
    try:
        import ashlar_torch  # noqa: F401

        torch.zeros(1, device="cuda")
    except Exception as e:
        text = f"{type(e).__name__}: {e}"
    else:
        check(False, "it went through")
    check(expect in text, f"{expect!r} is not in: {text}")
    return {"text": text}


def switched_off():
    sys.path.insert(0, allocators.module_dir())
    import ashlar_torch

    check(not ashlar_torch.enabled() and torch.cuda.get_allocator_backend() == "native", "ASHLAR=0 has no effect")
    return {}


LIVE = {}  # lives until the interpreter is taken apart


def exit_live(kind):
    """Ends with live tensors; the parent looks at the exit code and at stderr."""
    model = nn.Sequential(nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 256)).cuda()
    x = torch.randn(64, 256, device="cuda", requires_grad=True)
    loss = model(x).sum()
    loss.backward()
    cycle = [torch.randn(1000, device="cuda")]
    cycle.append(cycle)
    LIVE.update(model=model, x=x, loss=loss, cycle=cycle, big=torch.empty(64 * MIB, device="cuda"))
    if kind == "graph":
        static = torch.randn(64, 256, device="cuda")
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side), torch.no_grad():
            model(static)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.no_grad(), torch.cuda.graph(graph):
            out = model(static)
        graph.replay()
        LIVE.update(graph=graph, out=out, static=static)
    elif kind == "thread":
        started = threading.Event()

        # It waits outside torch: a thread that is inside of it when the interpreter ends is ended by
        # force there, which torch does not survive under any allocator.
        def work():
            kept = [torch.empty(100_000, device="cuda") for _ in range(100)]
            del kept[::2]
            started.set()
            threading.Event().wait()

        LIVE["thread"] = threading.Thread(target=work, daemon=True)
        LIVE["thread"].start()
        started.wait(10)
    elif kind == "pending":
        side = torch.cuda.Stream()
        with torch.cuda.stream(side):
            torch.cuda._sleep(20_000_000)
        y = torch.ones(1 << 20, device="cuda")
        y.record_stream(side)
        del y
    return {}


def signals():
    """Go's runtime brings signal handlers; Python's must still work."""
    torch.zeros(1, device="cuda")
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # so it is in a job that a shell put into the background
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        signal.raise_signal(signal.SIGINT)
        time.sleep(1)
        check(False, "SIGINT is lost")
    except KeyboardInterrupt:
        pass
    read, write = os.pipe()
    os.close(read)
    try:
        os.write(write, b"x")
        check(False, "no BrokenPipeError")
    except BrokenPipeError:
        pass
    out = subprocess.run([sys.executable, "-c", "print(6 * 7)"], capture_output=True, text=True, timeout=60)
    check(out.stdout.strip() == "42", f"a subprocess gave {out}")
    rang = []
    signal.signal(signal.SIGALRM, lambda *_: rang.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
    end = time.monotonic() + 0.6
    while time.monotonic() < end:
        torch.empty(1000, device="cuda")
    signal.setitimer(signal.ITIMER_REAL, 0)
    check(len(rang) >= 5, f"an interval timer rang {len(rang)} times in 0.6 s")
    return {"alarms": len(rang)}


def own_backend():
    """For a script that was started under `python -m ashlar_torch`."""
    x = torch.ones(1000, device="cuda")
    check(torch.cuda.get_allocator_backend() == "pluggable", "another allocator is in use")
    check(torch.cuda.memory_allocated() == 4096, f"{torch.cuda.memory_allocated()} bytes allocated")
    return {"sum": float(x.sum())}


def distributed(backend, rank, world, store):
    """Data-parallel training; NCCL takes one rank per GPU, gloo two on the same."""
    import datetime

    import torch.distributed as dist

    dist.init_process_group(backend, init_method=f"file://{store}", rank=rank, world_size=world,
                            timeout=datetime.timedelta(seconds=60))
    try:
        torch.cuda.set_device(0)
        torch.manual_seed(5)
        model = nn.parallel.DistributedDataParallel(nn.Linear(512, 512).cuda(), device_ids=[0])
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for step in range(5):
            x = torch.full((32, 512), float(rank + step + 1), device="cuda")
            loss = model(x).square().mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
        total = torch.ones(1 << 20, device="cuda") * (rank + 1)
        dist.all_reduce(total)
        check(float(total.max()) == float(total.min()) == world * (world + 1) / 2, "the sum over the ranks is wrong")
        weights = float(sum(p.double().sum() for p in model.parameters()))
    finally:
        dist.destroy_process_group()
    return {"weights": weights}
