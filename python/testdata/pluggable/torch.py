"""A fake: the part of torch that ashlar_torch.py works with, for its tests.

There is no GPU; behind it is the real libashlar.so over its simulated driver.
torch.cuda.memory asks torch._C, as PyTorch's does, and torch._C answers as it
does under a pluggable allocator: not at all. take() and drop() are what a
tensor does to the allocator, by the addresses that were set.
"""
import collections
import contextlib
import ctypes
import functools
import inspect
import os
import sys
import threading
import types

__version__ = os.environ.get("FAKE_TORCH", "2.11.0+fake")
version = types.SimpleNamespace(cuda="13.0" if "cpu" not in __version__ else None, hip=None)

DEVICES = int(os.environ.get("FAKE_DEVICES", "1"))

calls = []  # of interest to the tests
_process = None  # that initialised CUDA
_contexts = set()  # devices that have one


class device:
    def __init__(self, name):
        kind, _, index = str(name).partition(":")
        self.type, self.index = kind, int(index) if index else None

    def __str__(self):
        return self.type if self.index is None else "%s:%d" % (self.type, self.index)


def _index(which):
    if isinstance(which, int):
        return which
    if which is None or device(which).index is None:
        return cuda.current_device()
    return device(which).index


# torch._C


def _unsupported(name):
    def function(*args):
        raise RuntimeError("CUDAPluggableAllocator does not yet support %s. If you need it, please file an issue describing your use case." % name)

    return function


class _PluggableAllocator:
    def __init__(self, alloc, free):
        self.alloc = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(alloc)
        self.free = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p)(free)
        self.addresses = {}

    def __getattr__(self, name):
        if name not in SETTERS:
            raise AttributeError(name)
        return lambda address: self.addresses.__setitem__(name, address)

    def call(self, name, *types):
        return ctypes.CFUNCTYPE(None, *types)(self.addresses[name])


SETTERS = ["set_init_fn", "set_reset_fn", "set_memory_fraction_fn", "set_base_alloc_fn", "set_record_stream_fn", "set_begin_allocate_to_pool",
           "set_end_allocate_to_pool_fn", "set_release_pool"]
_allocator = None


def _change(allocator):
    global _allocator
    if _allocator is not None:
        raise RuntimeError("Can't swap an already initialized allocator")
    _allocator = allocator


_C = types.ModuleType("torch._C")
for _name in (
    "_cuda_memoryStats", "_cuda_resetPeakMemoryStats", "_cuda_resetAccumulatedMemoryStats", "_cuda_memorySnapshot", "_cuda_record_memory_history",
    "_cuda_record_memory_history_legacy", "_cuda_isHistoryEnabled", "_cuda_getMemoryFraction", "_cuda_attach_out_of_memory_observer",
    "_accelerator_getDeviceStats", "_accelerator_resetPeakStats", "_accelerator_resetAccumulatedStats", "_accelerator_emptyCache",
    "_cuda_allocationTraceback",
):
    setattr(_C, _name, _unsupported(_name))
_C._cuda_setMemoryMetadata = _C._cuda_getMemoryMetadata = _unsupported("metadata")
_C._cuda_memoryMetadataSupported = lambda: False
_C._cuda_cudaCachingAllocator_enable = lambda on: calls.append(("enable", on))
_C._cuda_cudaCachingAllocator_is_enabled = lambda: True
_C._cuda_hasPrimaryContext = lambda index: index in _contexts
_C._cuda_init = lambda: _allocator.call("set_init_fn", ctypes.c_int)(DEVICES) if _allocator is not None else None
_C._accelerator_isAllocatorInitialized = lambda: False
_C._accelerator_setAllocatorSettings = lambda conf: calls.append(("settings", conf))
_C._cuda_cudaCachingAllocator_set_allocator_settings = _C._accelerator_setAllocatorSettings
_C._accelerator_getAllocatorSettings = lambda: os.environ.get("PYTORCH_CUDA_ALLOC_CONF", "")
_C._cuda_customAllocator = _PluggableAllocator
_C._cuda_changeCurrentAllocator = _change
_C._cuda_emptyCache = lambda: _allocator.call("set_reset_fn")()


def _set_fraction(fraction, index):
    _contexts.add(index)  # which the library needs for it
    _allocator.call("set_memory_fraction_fn", ctypes.c_double, ctypes.c_int)(fraction, index)


_C._cuda_setMemoryFraction = _set_fraction


def _gather(python, script, cpp):
    """Innermost first, as PyTorch's."""
    stack, frame = [], sys._getframe(1)
    while frame is not None:
        stack.append({"name": frame.f_code.co_name, "filename": frame.f_code.co_filename, "line": frame.f_lineno})
        frame = frame.f_back
    if cpp:
        stack.insert(0, {"name": "gather", "filename": "??", "line": 0})
    return stack


_C._profiler = types.SimpleNamespace(gather_traceback=_gather, symbolize_tracebacks=lambda stacks: [list(s) for s in stacks])


# The versions that functions came with and went with, by the sources of 2.4 to 2.12 and of main in June 2026.
SINCE = {
    "_cuda_getMemoryFraction": 6, "_cuda_cudaCachingAllocator_enable": 6, "_accelerator_getDeviceStats": 9, "_accelerator_resetPeakStats": 9,
    "_accelerator_resetAccumulatedStats": 9, "_accelerator_emptyCache": 9, "_accelerator_isAllocatorInitialized": 9, "_cuda_setMemoryMetadata": 10,
    "_cuda_getMemoryMetadata": 10, "_accelerator_setAllocatorSettings": 10, "_accelerator_getAllocatorSettings": 12, "_cuda_allocationTraceback": 12,
    "_cuda_cudaCachingAllocator_is_enabled": 12, "_cuda_memoryMetadataSupported": 14,
}
UNTIL = {"_cuda_cudaCachingAllocator_set_allocator_settings": 9}
MINOR = int(__version__.split(".")[1])
if "FAKE_TORCH" in os.environ:  # without it there is all of it
    for _name in [n for n in (*SINCE, *UNTIL) if not SINCE.get(n, 0) <= MINOR <= UNTIL.get(n, MINOR)]:
        delattr(_C, _name)


# torch.cuda


class _CUDAPluggableAllocator:
    def __init__(self, path, alloc, free):
        library = ctypes.CDLL(path)
        address = [ctypes.cast(getattr(library, name), ctypes.c_void_p).value for name in (alloc, free)]
        self._allocator = _C._cuda_customAllocator(*address)

    def allocator(self):
        return self._allocator


def _init():
    global _process
    if cuda._is_in_bad_fork():
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    if _process is None:
        _C._cuda_init()
        _process = os.getpid()


def _nested(device=None):
    return _C._cuda_memoryStats(_index(device)) if cuda.is_initialized() else {}


def _flat(stats):
    out = []

    def add(prefix, value):
        if isinstance(value, dict):
            for k, v in value.items():
                add(prefix + "." + k if prefix else k, v)
        else:
            out.append((prefix, value))

    add("", stats)
    return collections.OrderedDict(sorted(out))


cuda = types.ModuleType("torch.cuda")
cuda.init = _init
cuda.is_initialized = lambda: _process == os.getpid()
cuda._is_in_bad_fork = lambda: _process not in (None, os.getpid())
cuda.device_count = lambda: DEVICES
cuda.current_device = lambda: (_init(), 0)[1]
cuda.empty_cache = lambda: _C._cuda_emptyCache() if cuda.is_initialized() else None
cuda.memory_stats_as_nested_dict = _nested
cuda.memory_stats = lambda device=None: _flat(_nested(device))
cuda.memory_allocated = lambda device=None: cuda.memory_stats(device).get("allocated_bytes.all.current", 0)
cuda.max_memory_allocated = lambda device=None: cuda.memory_stats(device).get("allocated_bytes.all.peak", 0)
cuda.memory_reserved = lambda device=None: cuda.memory_stats(device).get("reserved_bytes.all.current", 0)
cuda.reset_peak_memory_stats = lambda device=None: _C._cuda_resetPeakMemoryStats(_index(device))
cuda.reset_accumulated_memory_stats = lambda device=None: _C._cuda_resetAccumulatedMemoryStats(_index(device))
cuda.set_per_process_memory_fraction = lambda fraction, device=None: _C._cuda_setMemoryFraction(fraction, _index(device))
cuda.get_per_process_memory_fraction = lambda device=None: _C._cuda_getMemoryFraction(_index(device))
if MINOR < 8:
    _ask_snapshot = lambda pool=None, include_traces=True: _C._cuda_memorySnapshot()
elif MINOR < 11:
    _ask_snapshot = lambda pool=None, include_traces=True: _C._cuda_memorySnapshot(pool)
else:
    _ask_snapshot = lambda pool=None, include_traces=True: _C._cuda_memorySnapshot((*(pool or (0, 0)), include_traces))
cuda.memory_snapshot = lambda pool=None, include_traces=True: _ask_snapshot(pool, include_traces)["segments"]
cuda.memory = types.SimpleNamespace(
    CUDAPluggableAllocator=_CUDAPluggableAllocator,
    change_current_allocator=lambda allocator: _C._cuda_changeCurrentAllocator(allocator.allocator()),
    _snapshot=lambda: _C._cuda_memorySnapshot(*[None][:MINOR >= 8]),
)


class _Stream:
    """A stream that remembers what it waits for."""

    def __init__(self, device=None, handle=None):
        _handles.append(self)
        self.cuda_stream = 4096 * len(_handles) if handle is None else handle
        self.waits = []

    def wait_stream(self, other):
        self.waits.append(other.cuda_stream)


_handles = []
_current = threading.local()


def _current_stream(device=None):
    if not hasattr(_current, "stream"):
        _current.stream = _Stream(handle=0)
    return _current.stream


@contextlib.contextmanager
def _on_stream(stream):
    before, _current.stream = _current_stream(), stream
    yield
    _current.stream = before


cuda.Stream, cuda.current_stream, cuda.stream = _Stream, _current_stream, _on_stream

# What PyTorch passes on, always by position: the first four in 2.4, all of them in 2.14, and versions between go up to one between.
HISTORY = ["enabled", "context", "stacks", "max_entries", "clear_history", "compile_context", "global_record_annotations", "skip_actions",
           "record_pinned_host_memory", "record_cuda"]
LEGACY = ["enabled", "record_context", "trace_alloc_max_entries", "trace_alloc_record_context", "record_context_cpp", *HISTORY[4:]]
DEFAULTS = dict(context="all", stacks="all", max_entries=sys.maxsize, record_context=True, trace_alloc_max_entries=1, skip_actions=[], record_cuda=True)
_known = int(os.environ.get("FAKE_HISTORY", "4" if MINOR < 8 else "7" if MINOR < 11 else "8"))  # of the first list
_later = [object()] * (_known - len(HISTORY))  # of versions to come


def _record_memory_history(enabled="all", *args, **kwargs):
    legacy = isinstance(enabled, bool)
    names = LEGACY[:_known + 1] if legacy else HISTORY[:_known]
    values = dict(zip(names[1:], args), **kwargs)
    unknown = set(values) - set(names)
    if unknown:
        raise TypeError("_record_memory_history() got an unexpected keyword argument %r" % unknown.pop())
    function = _C._cuda_record_memory_history_legacy if legacy else _C._cuda_record_memory_history
    return function(enabled, *[values.get(name, DEFAULTS.get(name, False)) for name in names[1:]], *_later)


_record_memory_history.__signature__ = inspect.Signature([inspect.Parameter(name, inspect.Parameter.POSITIONAL_OR_KEYWORD) for name in HISTORY[:_known]])
cuda.memory._record_memory_history = _record_memory_history
cuda.memory._allocation_traceback = lambda pointer: _C._cuda_allocationTraceback(pointer)


def _enable_caching(on=True):
    if cuda.is_initialized():
        _C._cuda_cudaCachingAllocator_enable(on)


@contextlib.contextmanager
def _without_caching():
    before = _C._cuda_cudaCachingAllocator_is_enabled()
    _enable_caching(False)
    yield
    _enable_caching(before)


cuda.memory.caching_allocator_enable = _enable_caching
cuda.memory.caching_allocator_disabled = _without_caching


# What a tensor does.


def take(size, stream=None, index=0):
    _init()
    stream = _current_stream().cuda_stream if stream is None else stream
    _contexts.add(index)
    return _allocator.alloc(size, index, stream), size, stream


def drop(block):
    address, size, stream = block
    _allocator.free(address, size, 0, stream)


class Tensor:
    """A tensor of bytes that is its own storage."""

    def __init__(self, size, index=0):
        self.block, self.device, self.grad = take(size, index=index), device("cuda:%d" % index), None

    def untyped_storage(self):
        return self

    def data_ptr(self):
        return self.block[0]

    def free(self):
        drop(self.block)


class OutOfMemoryError(RuntimeError):
    pass


cuda.synchronize = lambda device=None: calls.append(("synchronize", device))


# torch.nn, torch.autograd


class Parameter(Tensor):
    is_cuda, requires_grad = True, True


nn = types.ModuleType("torch.nn")
nn.Parameter = Parameter
autograd = types.ModuleType("torch.autograd")


def backward(function):
    """Works on another thread, for which the caller waits; the gradient that it begins with is the caller's."""
    first = Tensor(4)
    worker = threading.Thread(target=function)
    worker.start()
    worker.join()
    first.free()


autograd.backward, autograd.grad = backward, backward
sys.modules.update({"torch.nn": nn, "torch.autograd": autograd})


# torch.optim


class _Hook:
    def __init__(self, hooks, function):
        hooks[id(self)] = function
        self.remove = lambda: hooks.pop(id(self))


class Optimizer:
    """Its state, as large as its parameters, appears at the first step."""

    def __init__(self, parameters):
        self.param_groups, self.state = [{"params": parameters}], {}

    def step(self):
        for hook in _before.values():
            hook(self, (), {})
        for p in self.param_groups[0]["params"]:
            if p not in self.state:
                self.state[p] = {"exp_avg": Tensor(p.block[1], p.device.index), "step": 1}
        for hook in _after.values():  # which must not change meanwhile
            hook(self, (), {})


_before, _after = {}, {}
optim = types.ModuleType("torch.optim")
optim.optimizer = types.ModuleType("torch.optim.optimizer")
optim.optimizer.register_optimizer_step_pre_hook = functools.partial(_Hook, _before)
optim.optimizer.register_optimizer_step_post_hook = functools.partial(_Hook, _after)
optim.Optimizer = Optimizer
sys.modules.update({"torch.optim": optim, "torch.optim.optimizer": optim.optimizer})
