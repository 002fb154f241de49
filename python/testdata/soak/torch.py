"""A fake: the part of torch that tools/bench/gpu/soak_worker.py works with, for its tests.

Under Ashlar the real libashlar.so over its simulated driver says where tensors lie (testdata/pluggable);
without it a counter does. What they hold is kept here, a number for each 512 bytes by address, so that
memory that is given out twice shows. FAKE_FAULT=data spoils a tensor now and then, FAKE_FAULT=leak keeps one.
"""
import array
import collections
import contextlib
import ctypes
import importlib.util
import os
import sys
import threading
import types

_file = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "pluggable", "torch.py")
_spec = importlib.util.spec_from_file_location("pluggable_torch", _file)
plugged = importlib.util.module_from_spec(_spec)
_spec.loader.exec_module(plugged)

__version__, version, _C, cuda = plugged.__version__, plugged.version, plugged._C, plugged.cuda
device, OutOfMemoryError, nn, autograd, optim = plugged.device, plugged.OutOfMemoryError, plugged.nn, plugged.autograd, plugged.optim
int32, int64, uint8 = (types.SimpleNamespace(itemsize=n) for n in (4, 8, 1))
TOTAL, PAGE, REGION = int(os.environ["ASHLAR_SIM_MEMORY"]), 512, 4096
FAULT = os.environ.get("FAKE_FAULT")
_local = threading.local()
os.environ["ASHLAR_DRIVER"] = "sim"  # which soak.py takes away, as it would on a GPU


# Where tensors lie.


class Counter:
    """PyTorch's own allocator, as far as it matters: a limit and sums."""

    def __init__(self):
        self.lock, self.next, self.live, self.now, self.peak, self.limit = threading.Lock(), 1 << 40, {}, 0, 0, TOTAL
        self.free = collections.defaultdict(list)

    def take(self, size, stream):
        size = -(-size // PAGE) * PAGE
        with self.lock:
            if self.now + size > self.limit:
                raise OutOfMemoryError("CUDA out of memory")
            self.now += size
            self.peak = max(self.peak, self.now)
            if not self.free[size]:
                self.free[size].append(self.next)
                self.next += size
            address = self.free[size].pop()
            self.live[address] = size
            return address

    def drop(self, address):
        with self.lock:
            size = self.live.pop(address)
            self.now -= size
            self.free[size].append(address)

    def stats(self, index):
        figures = {"all": {"current": self.now, "peak": self.peak}}
        return {"allocated_bytes": figures, "reserved_bytes": figures}

    def snapshot(self, *args):
        with self.lock:
            return {"segments": [{"address": a, "total_size": n, "allocated_size": n, "blocks": [{"size": n}]} for a, n in self.live.items()]}

    def reset_peak(self, index):
        self.peak = self.now

    def set_fraction(self, fraction, index):
        self.limit = int(fraction * TOTAL)


class Library:
    """libashlar.so by its functions without exceptions."""

    def __init__(self):
        self.so = ctypes.CDLL(os.environ["ASHLAR_LIBRARY"])
        self.so.ashlar_front_free.argtypes = [ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p]
        self.so.ashlar_error_text.restype = ctypes.c_char_p

    def take(self, size, stream):
        out = ctypes.c_void_p()
        if self.so.ashlar_front_malloc(ctypes.c_size_t(size), 0, ctypes.c_void_p(stream), ctypes.byref(out)) != 0:
            raise OutOfMemoryError(self.so.ashlar_error_text().decode())
        return out.value

    def drop(self, address):
        self.so.ashlar_front_free(address, 0, 0, None)


counter = Counter()
library = None
_own = (_C._cuda_emptyCache, _C._cuda_setMemoryFraction)
_C._cuda_memoryStats, _C._cuda_resetPeakMemoryStats, _C._cuda_memorySnapshot = counter.stats, counter.reset_peak, counter.snapshot
_C._cuda_record_memory_history = lambda *args: None
_C._cuda_emptyCache = lambda: _own[0]() if plugged._allocator is not None else None
_C._cuda_setMemoryFraction = lambda *args: _own[1](*args) if plugged._allocator is not None else counter.set_fraction(*args)
_C._cuda_init = lambda: plugged._allocator.call("set_init_fn", ctypes.c_int)(1) if plugged._allocator is not None else None


def where():
    global library
    if plugged._allocator is None:
        return counter
    if library is None:
        library = Library()
    return library


# What they hold.

regions, EMPTY = {}, array.array("q", bytes(8 * REGION))
leaked, written = [], [0]


def spans(address, size):
    """(region, first, last) of the pages of size bytes."""
    first, last = address // PAGE, (address + max(size, 1) - 1) // PAGE + 1
    while first < last:
        end = min(last, (first // REGION + 1) * REGION)
        region = regions.get(first // REGION) or regions.setdefault(first // REGION, EMPTY[:])  # one array, whichever thread comes first
        yield region, first % REGION, end - first // REGION * REGION
        first = end


class Host:
    def __init__(self, differs):
        self.any = lambda: differs


class Tensor:
    def __init__(self, count, dtype, value=0, view=None):
        self.count, self.dtype, self.view = count, dtype, view
        if view is None:
            self.owner, self.address = where(), where().take(count * dtype.itemsize, cuda.current_stream().cuda_stream)
            self.write(value)
        else:
            self.address = view

    def __del__(self):
        if self.view is None and hasattr(self, "address"):
            self.owner.drop(self.address)

    def write(self, value):
        for region, first, last in spans(self.address, self.count * self.dtype.itemsize):
            region[first:last] = array.array("q", [value]) * (last - first)
        written[0] += 1
        if written[0] % 300 == 0 and self.dtype is int32:
            if FAULT == "data":
                regions[self.address // PAGE // REGION][self.address // PAGE % REGION] = -1
            elif FAULT == "leak":
                leaked.append(Tensor(1000, uint8))

    def differs(self, value):
        return any(region[first:last].count(value) != last - first for region, first, last in spans(self.address, self.count * self.dtype.itemsize))

    def read(self):
        region, first, _ = next(spans(self.address, 1))
        return region[first]

    def __ne__(self, value):
        return Tensor(self.count, uint8, int(self.differs(value)))

    def any(self):
        return Tensor(1, uint8, self.read())

    def to(self, dtype):
        return Tensor(1, dtype, self.read())

    def __add__(self, n):
        out = Tensor(self.count, self.dtype, self.read() + n)
        if getattr(_local, "captured", None) is not None:
            kept = self if where() is counter else None  # which has no pools: it stays as long as the graph
            _local.captured.append(lambda begin=self.address, kept=kept, into=(out.address, out.count, out.dtype): Tensor(*into[1:], view=into[0]).write(
                Tensor(1, int64, view=begin).read() + n))
        return out

    def __iadd__(self, other):
        self.write(self.read() + other.read())
        return self

    def __getitem__(self, part):
        return Tensor(len(range(self.count)[part]), self.dtype, view=self.address + part.start * self.dtype.itemsize)

    def cpu(self):
        return _Copy(self)

    def numel(self):
        return self.count

    def fill_(self, value):
        self.write(value)

    def zero_(self):
        self.write(0)

    def __int__(self):
        return self.read()

    def record_stream(self, stream):
        pass


class _Copy:
    def __init__(self, tensor):
        self.tensor = tensor

    def __ne__(self, value):
        return Host(self.tensor.differs(value))


def full(shape, value, dtype=int64, device=None):
    return Tensor(shape[0], dtype, value)


def zeros(shape, dtype=int64, device=None):
    return Tensor(shape if isinstance(shape, int) else (shape or (1,))[0], dtype)


def empty(count, dtype=uint8, device=None):
    return Tensor(count, dtype)


# torch.cuda


class Stream(plugged._Stream):
    def wait_event(self, event):
        pass

    def synchronize(self):
        pass


class CUDAGraph:
    """What was done while it was captured, to be done again."""

    pools = [0]

    def __init__(self):
        self.steps, self.pool = [], None

    def replay(self):
        for step in self.steps:
            step()

    def reset(self):
        if self.pool is not None:
            assert where().so.ashlar_front_release_pool(0, ctypes.c_uint64(self.pool), ctypes.c_uint64(0)) == 0
            self.pool = None
        self.steps = []


@contextlib.contextmanager
def graph(it, stream, capture_error_mode):
    cuda.empty_cache()  # as PyTorch does
    _local.captured = it.steps
    accept = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(lambda ctx, s: (s or 0) == stream.cuda_stream)
    CUDAGraph.pools[0] += 1
    pool = (0, ctypes.c_uint64(CUDAGraph.pools[0]), ctypes.c_uint64(0))
    own = where() is not counter
    assert not own or where().so.ashlar_front_begin_pool(*pool, accept, None) == 0
    try:
        with cuda.stream(stream):
            yield
    finally:
        assert not own or where().so.ashlar_front_end_pool(*pool) == 0
        it.pool = CUDAGraph.pools[0] if own else None
        _local.captured = None


cuda.Stream, cuda.CUDAGraph, cuda.graph = Stream, CUDAGraph, graph
cuda.Event = lambda: types.SimpleNamespace(record=lambda stream: None)
cuda.get_device_properties = lambda index: types.SimpleNamespace(total_memory=TOTAL)
cuda.max_memory_reserved = lambda device=None: cuda.memory_stats(device).get("reserved_bytes.all.peak", 0)
cuda.get_allocator_backend = lambda: "native" if plugged._allocator is None else "pluggable"
sys.modules["torch.cuda"] = cuda
