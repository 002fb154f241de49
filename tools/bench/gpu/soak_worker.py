"""The process of soak.py: threads that allocate, check and free; between them a rest, at which all is counted."""
import collections
import contextlib
import gc
import random
import threading
import time

import torch

import allocators
from case import MIB, rss, set_limit

SAMPLE_S = 2.0
PATIENCE_S = 240  # for a thread that comes to a rest; a hang, however slow the machine

# Settings that are changed at run time. Each text says all it wants: a text resets only some keys.
SETTINGS = ("expandable_segments:True", "expandable_segments:False", "expandable_segments:True,roundup_power2_divisions:4",
            "expandable_segments:True,garbage_collection_threshold:0.7", "expandable_segments:False,garbage_collection_threshold:0.7")
AT_REST = SETTINGS[0]

# What a step does, and how often; else it allocates.
ACTIONS = (("provoke", 0.0004), ("fill", 0.00005), ("empty_cache", 0.0004), ("statistics", 0.005), ("settings", 0.0004), ("limit", 0.0004),
           ("history", 0.0002), ("snapshot", 0.0004), ("capture", 0.0005), ("replay", 0.02), ("release", 0.0003), ("hand_over", 0.055))
COUNTS = ("operations", "made", "checked", "wrong", "handed", "captures", "replays", "replays_checked", "ooms", "ooms_met", "refused", "on_host",
          "settings", "limits", "histories", "snapshots", "empty_caches")


class Held:
    """A tensor that should be full of one number; stream is where it was allocated."""

    def __init__(self, tensor, value, stream):
        self.tensor, self.value, self.stream = tensor, value, stream
        self.size = tensor.numel() * 4


class Graph:
    """A captured graph with what it reads and writes; expected is what the last replay should have written."""

    def __init__(self, graph, given, result, added):
        self.graph, self.given, self.result, self.added = graph, given, result, added
        self.expected = None


class Shared:
    """What the threads have in common."""

    def __init__(self, allocator, threads, limit, often):
        self.allocator, self.threads, self.limit, self.often = allocator, threads, limit, often
        self.live = limit * 2 // 5 // threads  # what a thread holds at most
        self.streams = [torch.cuda.Stream() for _ in range(2 * threads)]
        self.handed = [collections.deque() for _ in range(threads)]
        self.lock = threading.Lock()
        self.counts, self.errors = dict.fromkeys(COUNTS, 0), []
        self.gates, self.only = [threading.Lock() for _ in range(threads)], threading.Lock()
        self.filling, self.room = threading.Lock(), threading.Event()
        self.room.set()
        self.barrier = threading.Barrier(threads + 1)
        self.resting = self.stopped = False

    def count(self, what, n=1):
        with self.lock:
            self.counts[what] += n

    def failed(self, text):
        with self.lock:
            self.errors.append(text[:1500])

    @contextlib.contextmanager
    def alone(self):
        """No thread is within a step meanwhile."""
        with self.only, contextlib.ExitStack() as stack:
            for gate in self.gates:
                stack.enter_context(gate)
            yield


def random_size(rng, most):
    """Bytes: mostly small, seldom large, evenly over the powers of two."""
    return max(4, min(int(2 ** rng.uniform(7, 27.5)), most)) // 4 * 4


class Thread(threading.Thread):
    """Owns two streams and the tensors it allocated on them or was handed."""

    def __init__(self, shared, number, seed):
        super().__init__(daemon=True)
        self.shared, self.number = shared, number
        self.rng = random.Random(seed * 1000 + number)
        self.mine, self.graphs, self.bytes, self.turn = [], [], 0, 0

    def run(self):
        try:
            self.bad = torch.zeros((), dtype=torch.int64, device="cuda")
            torch.cuda.synchronize()
            while not self.shared.stopped:
                while not self.shared.resting:
                    with self.shared.gates[self.number]:
                        alone = self.step()
                    if alone is not None:
                        with self.shared.alone():
                            alone()
                self.rest()
        except BaseException as e:
            self.shared.failed(f"thread {self.number}: {type(e).__name__}: {e}")
            self.shared.barrier.abort()
            raise
        finally:
            self.mine.clear()
            self.graphs.clear()
            self.bad = None

    def rest(self):
        """Everything is checked and given up; nobody hands anything over any more."""
        self.shared.barrier.wait(PATIENCE_S)
        while self.shared.handed[self.number]:
            self.receive()
        while self.mine:
            self.drop(self.mine.pop())
        while self.graphs:
            self.release()
        self.read_count()
        self.shared.barrier.wait(PATIENCE_S)
        self.shared.barrier.wait(PATIENCE_S)  # all is counted between these two

    def step(self):
        """One action. What it returns is to be called while no other thread is within a step."""
        self.turn += 1
        self.shared.count("operations")
        if self.shared.handed[self.number]:
            self.receive()
        alone, dice = None, self.rng.random()
        for name, share in ACTIONS:
            dice -= share * self.shared.often
            if dice < 0:
                alone = getattr(self, name)()
                break
        else:
            self.allocate()
        while self.bytes > self.shared.live or len(self.mine) > 200:
            self.drop(self.mine.pop(self.rng.randrange(len(self.mine))))
        if self.turn % 64 == 0:
            self.read_count()  # waits for the GPU: work in flight, and so pending frees, stay bounded
        return alone

    def stream(self, index):
        return torch.cuda.stream(self.shared.streams[index])

    def attempt(self, make, times=50):
        """What make() gives; None where there was no room even after others had made some."""
        for turn in range(times):
            if turn:
                self.shared.room.wait(10)
                time.sleep(0.001)
            try:
                return make()
            except torch.OutOfMemoryError:
                self.shared.count("ooms_met")
        return None

    def make(self, size, stream):
        value = self.rng.randrange(1 << 30)
        with self.stream(stream):
            tensor = torch.full((size // 4,), value, dtype=torch.int32, device="cuda")
        self.shared.count("made")
        return Held(tensor, value, stream)

    def allocate(self):
        stream = 2 * self.number + (self.rng.random() < 0.3)
        size = random_size(self.rng, self.shared.live // 4)
        held = self.attempt(lambda: self.make(size, stream))
        if held is None:  # holes, in segments that cannot be given back
            self.shared.count("refused")
            for _ in range(len(self.mine) // 2):
                self.drop(self.mine.pop())
            return
        self.mine.append(held)
        self.bytes += size

    def verify(self, held, stream, counted="checked"):
        """Counts whether a tensor is still full of its number: on the GPU, or here where that has no room."""
        def compare():
            with self.stream(stream):
                return (held.tensor != held.value).any().to(torch.int64)

        found = self.attempt(compare, 1)
        if found is None:
            self.compare_here(held, stream)
        else:
            first = 2 * self.number
            self.shared.streams[first].wait_stream(self.shared.streams[stream])
            with self.stream(first):
                self.bad += found
                found.record_stream(self.shared.streams[first])
        self.shared.count(counted)

    def compare_here(self, held, stream):
        part = 4 * MIB // 4
        with self.stream(stream):
            wrong = any(bool((held.tensor[i:i + part].cpu() != held.value).any()) for i in range(0, held.size // 4, part))
        self.shared.count("on_host")
        self.shared.count("wrong", int(wrong))

    def drop(self, held):
        self.verify(held, held.stream)
        held.tensor = None
        self.bytes -= held.size

    def hand_over(self):
        """Another thread reads it on a stream of its own and lets go of it there."""
        if not self.mine:
            return
        held = self.mine.pop(self.rng.randrange(len(self.mine)))
        event = torch.cuda.Event()
        event.record(self.shared.streams[held.stream])
        self.bytes -= held.size
        self.shared.count("handed")
        self.shared.handed[self.rng.randrange(self.shared.threads)].append((held, event))

    def receive(self):
        held, event = self.shared.handed[self.number].popleft()
        mine = 2 * self.number + 1
        self.shared.streams[mine].wait_event(event)
        self.verify(held, mine)
        held.tensor.record_stream(self.shared.streams[mine])
        held.tensor = None

    def provoke(self):
        """More than the limit: everything cached is given back, and nothing else happens."""
        try:
            torch.empty(2 * self.shared.limit, dtype=torch.uint8, device="cuda")
            self.shared.failed("twice the limit was given")
        except torch.OutOfMemoryError:
            self.shared.count("ooms")

    def fill(self):
        """Takes all there is, so that the other threads meet the limit, too."""
        if not self.shared.filling.acquire(blocking=False):
            return
        taken, size = [], self.shared.limit // 32 // 4 * 4
        try:
            self.shared.room.clear()
            while len(taken) < 40:
                try:
                    taken.append(self.make(size, 2 * self.number))
                except torch.OutOfMemoryError:
                    self.shared.count("ooms")
                    break
            else:
                self.shared.failed("more than the limit was given, piece by piece")
            time.sleep(0.02)
            while taken:
                self.verify(taken[-1], taken[-1].stream)
                taken.pop()
        finally:
            self.shared.room.set()
            self.shared.filling.release()

    def empty_cache(self):
        torch.cuda.empty_cache()
        self.shared.count("empty_caches")

    def statistics(self):
        torch.cuda.memory_stats()

    def settings(self):
        text = self.rng.choice(SETTINGS)
        if self.shared.allocator.startswith("ashlar"):
            allocators.change_settings(text + self.rng.choice((",front_cache:True", ",front_cache:False")))
            self.shared.count("settings")
            return None

        def configure():  # PyTorch reads some settings without a lock
            allocators.change_settings(text)
            self.shared.count("settings")

        return configure

    def limit(self):
        set_limit(int(self.shared.limit * self.rng.uniform(0.9, 1)))
        self.shared.count("limits")

    def history(self):
        on = self.rng.random() < 0.5

        def record():
            record_history(on)
            self.shared.count("histories")

        return record

    def snapshot(self):
        whole = self.rng.random() < 0.2
        for s in torch.cuda.memory._snapshot()["segments"] if whole else torch.cuda.memory_snapshot():
            if sum(b["size"] for b in s["blocks"]) != s["total_size"]:
                self.shared.failed(f"snapshot: the blocks of the segment at {s['address']:#x} are not its size")
        self.shared.count("snapshots")

    def capture(self):
        if len(self.graphs) == 2:
            return None
        size, count = random_size(self.rng, self.shared.live // 16), self.rng.randrange(1, 6)

        def record():
            stream = self.shared.streams[2 * self.number]
            graph = torch.cuda.CUDAGraph()
            try:
                with torch.cuda.stream(stream):
                    given = torch.zeros((size // 4,), dtype=torch.int32, device="cuda")
                with torch.cuda.graph(graph, stream=stream, capture_error_mode="thread_local"):
                    result = given
                    for k in range(count):
                        result = result + (k + 1)
            except torch.OutOfMemoryError:  # nothing cached can be given back during a capture
                self.shared.count("ooms_met")
                return
            self.graphs.append(Graph(graph, given, result, count * (count + 1) // 2))
            self.shared.count("captures")

        return record

    def replay(self):
        if not self.graphs:
            return
        graph = self.rng.choice(self.graphs)
        self.check_replay(graph)
        value = self.rng.randrange(1 << 30)
        with self.stream(2 * self.number):
            graph.given.fill_(value)
            graph.graph.replay()
        graph.expected = value + graph.added
        self.shared.count("replays")

    def check_replay(self, graph):
        """What was replayed steps ago is still there, whatever was allocated since."""
        if graph.expected is not None:
            self.verify(Held(graph.result, graph.expected, 2 * self.number), 2 * self.number, "replays_checked")
            graph.expected = None

    def release(self):
        if self.graphs:
            graph = self.graphs.pop(self.rng.randrange(len(self.graphs)))
            self.check_replay(graph)
            self.shared.streams[2 * self.number].synchronize()
            graph.graph.reset()

    def read_count(self):
        self.shared.streams[2 * self.number].synchronize()
        self.shared.streams[2 * self.number + 1].synchronize()
        count = int(self.bad)
        if count:
            self.shared.count("wrong", count)
            self.bad.zero_()


def record_history(on):
    if on:
        torch.cuda.memory._record_memory_history(max_entries=4000, stacks="python")
    else:
        torch.cuda.memory._record_memory_history(enabled=None)


def at_rest(shared):
    """What is left when every thread has given up all it had."""
    allocators.change_settings(AT_REST + (",front_cache:True" if shared.allocator.startswith("ashlar") else ""))
    set_limit(shared.limit)
    record_history(False)
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    allocated, reserved = torch.cuda.memory_allocated(), torch.cuda.memory_reserved()
    segments = torch.cuda.memory_snapshot()
    shared.count("snapshots")
    if (sum(s["total_size"] for s in segments), sum(s["allocated_size"] for s in segments)) != (reserved, allocated):
        shared.failed("snapshot at rest: segments do not add up to memory_reserved(), or blocks to memory_allocated()")
    return {"allocated": allocated, "reserved": reserved, "rss": rss()}


def soak(channel, allocator, seconds, rest, threads, limit, often, seed):
    """Target of children.Worker: {"sample": ...} every two seconds, {"rest": ...} after each rest, and {"final": ...}."""
    allocators.install(allocator)
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    set_limit(limit)
    shared = Shared(allocator, threads, limit, often)
    allocators.change_settings(AT_REST)
    team = [Thread(shared, k, seed) for k in range(threads)]
    begin = time.monotonic()
    for t in team:
        t.start()
    try:
        while not shared.stopped:
            channel.send({"rest": period(channel, shared, team, begin, min(rest, begin + seconds - time.monotonic()), begin + seconds)})
    except threading.BrokenBarrierError:
        stuck = [t.number for t in team if t.is_alive()]
        if not shared.errors:
            shared.failed(f"threads {stuck} do not come to a rest")
    channel.send({"final": {"errors": shared.errors[:20], **shared.counts}})


def period(channel, shared, team, begin, seconds, end):
    """Lets the threads work, then brings them to a rest; what was seen on the way and there."""
    seen, until = [], time.monotonic() + seconds
    torch.cuda.reset_peak_memory_stats()
    while time.monotonic() < until and all(t.is_alive() for t in team):
        time.sleep(min(SAMPLE_S, max(0.01, until - time.monotonic())))
        seen.append(torch.cuda.memory_reserved())
        channel.send({"sample": {"at": time.monotonic() - begin, "reserved": seen[-1], "rss": rss(), "operations": shared.counts["operations"]}})
    peak = torch.cuda.max_memory_reserved()
    shared.resting = True
    shared.barrier.wait(PATIENCE_S)
    shared.barrier.wait(PATIENCE_S)
    found = at_rest(shared)
    shared.resting, shared.stopped = False, time.monotonic() >= end
    shared.barrier.wait(PATIENCE_S)
    return {"at": time.monotonic() - begin, "worked": seconds, "mean_reserved": sum(seen) / len(seen) if seen else 0, "peak_reserved": peak, **found}
