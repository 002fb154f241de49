"""The processes of speed.py: each installs one allocator and takes samples."""
import ctypes
import gzip
import os
import pickle
import time

import torch

import allocators
import children

PYTHON_SIZES = (1 << 10, 1 << 20, 20 << 20)
PAIR_SIZES = (4 << 10, 1 << 20, 20 << 20)
TRACES = ("gpt2_fixed", "leak_graph", "resnet_batches", "serve_generate")
TRACE_CALLS = 15000


def start(allocator):
    allocators.install(allocator)
    torch.cuda.init()
    torch.cuda.synchronize()


def python_loop(channel, allocator, cpu, samples, n):
    """torch.empty and del in a loop, on one CPU: ns of a turn, by size."""
    start(allocator)
    if cpu is not None:
        # Only this thread: the threads of the driver and of a library may run elsewhere.
        os.sched_setaffinity(0, [cpu])
    answer = {}
    for size in PYTHON_SIZES:
        for _ in range(n):
            x = torch.empty(size, dtype=torch.uint8, device="cuda")
            del x
    for _ in range(samples):  # sizes take turns, so that a slow moment does not hit one of them alone
        for size in PYTHON_SIZES:
            begin = time.perf_counter_ns()
            for _ in range(n):
                x = torch.empty(size, dtype=torch.uint8, device="cuda")
                del x
            answer.setdefault(str(size), []).append((time.perf_counter_ns() - begin) / n)
    channel.send(answer)


def station(channel, number, cpus, order, rounds, samples, n):
    """A fresh process that forks short ones, one after the other on the same CPU, in the given
    order of allocators. Several stations at once have CPUs and memory layouts of their own."""
    fork = True
    for turn in range(rounds):
        for allocator in order if turn % 2 == 0 else order[::-1]:
            args = {"allocator": allocator, "cpu": cpus[0] if cpus else None, "samples": samples, "n": n}
            row = {"station": number, "turn": turn, "allocator": allocator}
            for attempt in (fork, False):
                worker = children.Worker("speed_worker", "python_loop", args, cpus, attempt)
                try:
                    row["ns"] = worker.receive(40)
                    fork = attempt
                    break
                except children.Failed as e:
                    row["error"] = str(e)
                    if not attempt:
                        break
                finally:
                    worker.stop()
            channel.send(row)
    channel.send({"done": True})


class Pairs:
    """pair.so by ctypes."""

    def __init__(self, path):
        self.lib = ctypes.CDLL(path)
        self.lib.pair_error.restype = ctypes.c_char_p
        size, long, int_, double = ctypes.c_size_t, ctypes.c_long, ctypes.c_int, ctypes.c_double
        array = ctypes.POINTER(double)
        self.lib.pair_single.argtypes = [size, long, int_, int_, array]
        self.lib.pair_window.argtypes = [int_, int_, int_, long, int_, int_, array]
        self.lib.pair_threads.argtypes = [size, int_, long, int_, ctypes.POINTER(int_), int_, array]
        self.lib.pair_trace.argtypes = [ctypes.POINTER(ctypes.c_uint64), ctypes.POINTER(int_), int_, int_, int_, array]
        self.lib.pair_latency.argtypes = [size, size, double, int_, int_, array, array]

    def call(self, name, *args):
        if getattr(self.lib, name)(*args) != 0:
            raise RuntimeError(f"{name}: {self.lib.pair_error().decode(errors='replace')}")

    def single(self, size, n, samples, cpu):
        out = (ctypes.c_double * samples)()
        self.call("pair_single", size, n, samples, cpu, out)
        return list(out)

    def window(self, n, samples, cpu):
        out = (ctypes.c_double * samples)()
        self.call("pair_window", 512, 9, 25, n, samples, cpu, out)
        return list(out)

    def threads(self, count, total, samples, cpus, bound):
        out = (ctypes.c_double * samples)()
        where = (ctypes.c_int * count)(*[cpus[t % len(cpus)] for t in range(count)])
        self.call("pair_threads", PAIR_SIZES[0], count, max(1, total // count), samples, where, int(bound), out)
        return list(out)

    def trace(self, sizes, of, dirty_kb, cpu):
        """Mean ns of a malloc and its free over the calls of a run."""
        out = (ctypes.c_double * 2)()
        n = len(sizes)
        self.call("pair_trace", (ctypes.c_uint64 * n)(*sizes), (ctypes.c_int * n)(*of), n, dirty_kb, cpu, out)
        return (out[0] + out[1]) / sum(1 for s in sizes if s)

    def latency(self, step, calls, cpu):
        out, back = (ctypes.c_double * calls)(), (ctypes.c_double * calls)()
        self.call("pair_latency", 4096, step, 1000.0, calls, cpu, out, back)
        return {"malloc": list(out), "free": list(back)}


def traces():
    """The mallocs and frees of recorded runs, by name: sizes, and for a free (size 0) which call it undoes."""
    found = {}
    for name in TRACES:
        with gzip.open(os.path.join(allocators.ROOT, "testdata", "snapshots", f"{name}-default.pickle.gz")) as f:
            events = pickle.load(f)["device_traces"][0]
        sizes, of, live = [], [], {}
        for e in events:
            if len(sizes) >= TRACE_CALLS:
                break
            if e["action"] == "alloc":
                live[e["addr"]] = len(sizes)
                sizes.append(e["size"])
                of.append(-1)
            elif e["action"] == "free_requested" and e["addr"] in live:
                of.append(live.pop(e["addr"]))
                sizes.append(0)
        found[name] = (sizes, of)
    return found


def cpp(channel, allocator, library, cpus, scale=1.0):
    """Every C++ case under one allocator. Each answer is sent as it comes: what was measured
    before a failure is kept."""
    start(allocator)
    pairs = Pairs(library)
    one = cpus[1 % len(cpus)]
    turns = 4
    for turn in range(turns):  # spread over time: single figures jump within a process
        for size in PAIR_SIZES:
            channel.send({"case": f"pair {size}", "ns": pairs.single(size, int(2000 * scale), 15, one)})
        channel.send({"case": "window 512", "ns": pairs.window(int(2000 * scale), 15, one)})
    for count in (1, 2, 4, 8, 16):
        if count <= len(cpus):
            channel.send({"case": f"threads {count}", "ns": pairs.threads(count, int(80000 * scale), 7, cpus, True)})
    channel.send({"case": "threads without a context 8", "ns": pairs.threads(min(8, len(cpus)), int(20000 * scale), 5, cpus, False)})
    if allocator != "noop":
        for name, (sizes, of) in traces().items():
            for dirty_kb in (0, 256):
                channel.send({"case": f"trace {name}, {dirty_kb} KiB touched", "ns": [pairs.trace(sizes, of, dirty_kb, one) for _ in range(3)]})
    calls = int(400 * scale)
    channel.send({"case": "after 1 ms, same size", "latency": pairs.latency(0, calls, one)})
    if allocator != "noop":
        channel.send({"case": "after 1 ms, new size", "latency": pairs.latency(512, calls, one)})
    channel.send({"done": True})
