"""The process of soak.py: threads that allocate, check and free; a clock that tells how it goes."""
import collections
import gc
import os
import random
import threading
import time

import torch

import allocators

SAMPLE_S = 2.0
PAGE = os.sysconf("SC_PAGE_SIZE")


def rss():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * PAGE


class Ledger:
    """What is live on each stream, by the generator's own count."""

    def __init__(self, streams):
        self.lock = threading.Lock()
        self.now, self.peak = [0] * streams, [0] * streams
        self.total = self.peak_total = self.operations = 0

    def add(self, stream, size):
        with self.lock:
            self.operations += 1
            self.now[stream] += size
            self.total += size
            self.peak[stream] = max(self.peak[stream], self.now[stream])
            self.peak_total = max(self.peak_total, self.total)

    def take(self, stream, size):
        with self.lock:
            self.operations += 1
            self.now[stream] -= size
            self.total -= size


class Held:
    """A tensor that should be full of one number; stream is where it was allocated."""

    def __init__(self, tensor, value, stream):
        self.tensor, self.value, self.stream = tensor, value, stream
        self.size = tensor.numel() * 4


class Shared:
    """What the threads have in common."""

    def __init__(self, threads, live, seconds):
        self.ledger = Ledger(2 * threads)
        self.streams = [torch.cuda.Stream() for _ in range(2 * threads)]
        self.live, self.end = live, time.monotonic() + seconds
        self.handed = [collections.deque() for _ in range(threads)]
        self.errors, self.wrong, self.checked, self.ooms = [], 0, 0, 0
        self.lock = threading.Lock()


def random_size(rng, live):
    """Bytes: mostly small, seldom large, evenly over the powers of two."""
    return max(4, min(int(2 ** rng.uniform(7, 27.5)), live // 4)) // 4 * 4


class Thread(threading.Thread):
    """Owns two streams and the tensors it allocated on them or was handed."""

    def __init__(self, shared, number, seed):
        super().__init__(daemon=True)
        self.shared, self.number = shared, number
        self.rng = random.Random(seed * 1000 + number)
        self.mine, self.bytes, self.turn = [], 0, 0
        self.waiting = []

    def run(self):
        try:
            self.bad = torch.zeros((), dtype=torch.int64, device="cuda")
            torch.cuda.synchronize()
            while time.monotonic() < self.shared.end:
                self.step()
            while self.shared.handed[self.number]:
                self.receive()
            while self.mine:
                self.drop(self.mine.pop())
            self.read_count()
        except Exception as e:
            self.shared.errors.append(f"thread {self.number}: {type(e).__name__}: {e}"[:400])
        finally:
            self.mine.clear()
            self.bad = None

    def step(self):
        self.turn += 1
        dice = self.rng.random()
        if self.shared.handed[self.number]:
            self.receive()
        if dice < 0.0002:
            self.provoke()
        elif dice < 0.0004:
            torch.cuda.empty_cache()
        elif dice < 0.005:
            torch.cuda.memory_stats()
        elif dice < 0.06 and self.mine:
            self.hand_over(self.mine.pop(self.rng.randrange(len(self.mine))))
        else:
            self.allocate()
        while self.bytes > self.shared.live or len(self.mine) > 200:
            self.drop(self.mine.pop(self.rng.randrange(len(self.mine))))
        if self.turn % 64 == 0:
            self.read_count()  # waits for the GPU: work in flight, and so pending frees, stay bounded

    def allocate(self):
        stream = 2 * self.number + (self.rng.random() < 0.3)
        size = random_size(self.rng, self.shared.live)
        value = self.rng.randrange(1 << 30)
        # Counted before it is asked for: the peak is never below what the allocator saw.
        self.shared.ledger.add(stream, size)
        with torch.cuda.stream(self.shared.streams[stream]):
            tensor = torch.full((size // 4,), value, dtype=torch.int32, device="cuda")
        self.mine.append(Held(tensor, value, stream))
        self.bytes += size

    def verify(self, held, stream):
        """Counts on the GPU whether a tensor is still full of its number."""
        compared = held.size // 4 + 1024  # one byte a number, and the two results
        self.shared.ledger.add(stream, compared)
        with torch.cuda.stream(self.shared.streams[stream]):
            self.pending = (held.tensor != held.value).any().to(torch.int64)
            self.shared.streams[2 * self.number].wait_stream(self.shared.streams[stream])
        with torch.cuda.stream(self.shared.streams[2 * self.number]):
            self.bad += self.pending
            self.pending.record_stream(self.shared.streams[2 * self.number])
        self.pending = None
        self.shared.ledger.take(stream, compared)
        with self.shared.lock:
            self.shared.checked += 1

    def drop(self, held):
        self.verify(held, held.stream)
        held.tensor = None
        self.bytes -= held.size
        self.shared.ledger.take(held.stream, held.size)

    def hand_over(self, held):
        """Another thread reads it on a stream of its own and lets go of it there."""
        other = self.rng.randrange(len(self.shared.handed))
        event = torch.cuda.Event()
        event.record(self.shared.streams[held.stream])
        self.bytes -= held.size
        self.shared.handed[other].append((held, event))

    def receive(self):
        held, event = self.shared.handed[self.number].popleft()
        mine = 2 * self.number + 1
        self.shared.streams[mine].wait_event(event)
        self.verify(held, mine)
        held.tensor.record_stream(self.shared.streams[mine])
        held.tensor = None
        # In use until this thread's stream is through: counted as live until it surely is.
        self.waiting.append((held.stream, held.size))

    def provoke(self):
        """More than the device has: everything cached is given back, and nothing else happens."""
        try:
            torch.empty(1 << 39, dtype=torch.uint8, device="cuda")
            self.shared.errors.append("512 GiB were given")
        except torch.OutOfMemoryError:
            with self.shared.lock:
                self.shared.ooms += 1

    def read_count(self):
        self.shared.streams[2 * self.number].synchronize()
        self.shared.streams[2 * self.number + 1].synchronize()
        for stream, size in self.waiting:
            self.shared.ledger.take(stream, size)
        self.waiting.clear()
        count = int(self.bad)
        if count:
            with self.shared.lock:
                self.shared.wrong += count
            self.bad.zero_()


def soak(channel, allocator, seconds, threads, live, seed):
    """Target of children.Worker: a sample every two seconds, then {"final": ...}."""
    allocators.install(allocator)
    torch.cuda.init()
    torch.zeros(1, device="cuda")
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    shared = Shared(threads, live, seconds)
    team = [Thread(shared, k, seed) for k in range(threads)]
    begin = time.monotonic()
    for t in team:
        t.start()
    while any(t.is_alive() for t in team) and time.monotonic() < shared.end + 40:
        time.sleep(SAMPLE_S)
        reserved = torch.cuda.max_memory_reserved()  # the highest since the sample before
        torch.cuda.reset_peak_memory_stats()
        channel.send({"at": time.monotonic() - begin, "reserved": reserved, "live": shared.ledger.total,
                      "rss": rss(), "operations": shared.ledger.operations})
    stuck = [t.number for t in team if t.is_alive()]
    if stuck:
        shared.errors.append(f"threads {stuck} do not end")
    for queue in shared.handed:  # handed over after the receiver's last look
        queue.clear()
    gc.collect()
    torch.cuda.synchronize()
    after = torch.cuda.memory_allocated()
    torch.cuda.empty_cache()
    channel.send({"final": {"wrong": shared.wrong, "checked": shared.checked, "ooms": shared.ooms, "errors": shared.errors[:20],
                            "operations": shared.ledger.operations, "peak_live": shared.ledger.peak_total,
                            "peak_live_by_stream": shared.ledger.peak, "allocated_before": before, "allocated_after": after,
                            "reserved_after": torch.cuda.memory_reserved()}})
