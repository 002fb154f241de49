"""Ashlar as the CUDA allocator of a PyTorch job.

    import ashlar_torch  # before the first CUDA call

or, for a script that should not be changed:

    python ashlar_torch.py train.py --batch 8
    python -m ashlar_torch -m package.train --batch 8

The module needs Python 3.9, PyTorch 2.4 for CUDA or later, and libashlar.so,
which `go build -buildmode=c-shared -o bin/libashlar.so ./cmd/libashlar` makes.
It is looked for at ASHLAR_LIBRARY, beside this file, in ../bin, and then where
the loader looks (LD_LIBRARY_PATH). Without -o, Go names it libashlar and writes it
to the current directory; that name is found beside this file and in the folder above.

Environment:

  ASHLAR=0         import does nothing; PyTorch keeps its own allocator
  ASHLAR_LIBRARY   the path of libashlar.so
  ASHLAR_CONF      settings: PyTorch's keys and Ashlar's own. Without it
                   PYTORCH_CUDA_ALLOC_CONF or PYTORCH_ALLOC_CONF is read.
  ASHLAR_TENANTS   tenants that every device has from the start, such as
                   "serve:guarantee=30GiB,priority=10;default:ceiling=40GiB"
  ASHLAR_TENANTS_HOLD=1
                   keeps the physical memory of their guarantees
  ASHLAR_PATCH_TORCH=0
                   leaves PyTorch's classes as they are (the last paragraph)

What a job sees:

* torch.cuda.memory_stats() and all that builds on it (memory_allocated, peaks and
  their resets, memory_summary), memory_snapshot, _record_memory_history,
  _snapshot, _dump_snapshot, out-of-memory observers, set_per_process_memory_fraction,
  empty_cache and the memory functions of torch.accelerator answer from Ashlar.
* Exhaustion is torch.OutOfMemoryError, with a diagnosis in its text.
* CUDA graphs own their memory until they are released.
* tenant("serve", guarantee="30GiB") gives a part of the process memory that it gets
  whatever the rest does: docs/tenants.md.
* region, park, restore: idle tensors go to the host's memory and come back to the same
  addresses; ASHLAR_CONF=overflow:64GiB serves requests that would fail from there:
  docs/tiers.md.
* torch.cuda.get_allocator_backend() says "pluggable".
* A process that is forked after the import can never use CUDA. PyTorch alone
  allows it as long as the parent has not started CUDA (accelerate's
  notebook_launcher, multiprocessing with fork); here it raises RuntimeError,
  because the library's runtime does not survive a fork. Either spawn, where each
  process imports this module itself, or fork first and import it in the children
  only (not with `python ashlar_torch.py`, which imports it in the parent). Forked
  processes that leave CUDA alone (DataLoader workers) are fine.

What PyTorch offers only with its own allocator: torch.cuda.MemPool, sharing of
CUDA tensors between processes, and the memory checkpoints that
torch.compile(mode="reduce-overhead") takes. They raise RuntimeError "... does
not yet support ...".

What has no effect: caching cannot be switched off (caching_allocator_enable(False),
caching_allocator_disabled(), PYTORCH_NO_CUDA_MEMORY_CACHING) and page-locked memory
is not recorded (record_pinned_host_memory): each warns once, as settings without
effect do. Silently: a profiler with profile_memory=True sees no allocations of the
device; snapshots have no external_annotations (record_function, _annotate_memory) and no compile_context.

torch.backends.cudnn.benchmark = True has cuDNN ask the allocator for its largest
free block (cacheInfo). PyTorch has no setter for the answer, so the library puts
its own function into the class's table of virtual functions, in the memory of
this process. info() says whether it could. Where it could not, or must not
(ASHLAR_PATCH_TORCH=0), the search raises RuntimeError "CUDAPluggableAllocator
does not yet support cacheInfo": leave torch.backends.cudnn.benchmark False there.
"""
import atexit
import collections.abc
import ctypes
import functools
import gc
import inspect
import json
import os
import pickle
import re
import sys
import threading
import traceback
import types
import warnings
import weakref

__all__ = ["checked", "cold", "dropped", "enabled", "info", "park", "region", "restore", "settings", "snapshot", "stats", "tenant"]

NAME = "libashlar.so"
PLAIN = "libashlar"  # as `go build` without -o names it
BUILD = "go build -buildmode=c-shared -o bin/%s ./cmd/libashlar" % NAME
TORCH = (2, 4)  # the first with all that is called here
INVALID = "Invalid device argument %d: did you call init?"  # PyTorch's words
FORKED = (
    "ashlar_torch: CUDA cannot be used in this process, which was forked from one with Ashlar in it. Start processes with spawn "
    "(torch.multiprocessing.set_start_method(\"spawn\")), or import ashlar_torch only in the children, after the fork."
)

_TEXT = ctypes.c_void_p  # a string that has to be given back
_WITNESS = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_int, ctypes.c_void_p, ctypes.c_size_t)
_NOTED = ctypes.CFUNCTYPE(None, ctypes.c_char_p)
_REPORT = ctypes.POINTER(ctypes.c_void_p)  # where a text goes that has to be given back
_BLOCKS = ctypes.POINTER(ctypes.c_void_p)
_OBSERVER = ctypes.CFUNCTYPE(None, ctypes.c_int, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint64)

# What is called here of ashlar.h, with result and arguments.
_API = {
    "ashlar_cold": (ctypes.c_int, ctypes.c_int, _BLOCKS, ctypes.c_size_t),
    "ashlar_complete_torch": (ctypes.c_int,),
    "ashlar_configure": (ctypes.c_int, ctypes.c_char_p),
    "ashlar_dropped": (ctypes.c_int, ctypes.c_int, ctypes.c_void_p),
    "ashlar_error_text": (ctypes.c_char_p,),
    "ashlar_get_memory_fraction": (ctypes.c_double, ctypes.c_int),
    "ashlar_get_metadata": (ctypes.c_char_p,),
    "ashlar_guess": (ctypes.c_int, ctypes.c_int, _BLOCKS, ctypes.c_size_t, ctypes.c_int),
    "ashlar_record_history": (ctypes.c_int, ctypes.c_int, ctypes.c_uint64),
    "ashlar_region_current": (ctypes.c_int, ctypes.c_int),
    "ashlar_region_delete": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p),
    "ashlar_region_enter": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int)),
    "ashlar_region_leave": (ctypes.c_int, ctypes.c_int, ctypes.c_int),
    "ashlar_reset_accumulated_stats": (ctypes.c_int, ctypes.c_int),
    "ashlar_reset_peak_stats": (ctypes.c_int, ctypes.c_int),
    "ashlar_set_metadata": (ctypes.c_int, ctypes.c_char_p),
    "ashlar_set_oom_observer": (ctypes.c_int, _OBSERVER),
    "ashlar_set_overflow_observer": (None, _NOTED),
    "ashlar_set_registered": (ctypes.c_int, ctypes.c_int),
    "ashlar_set_witness": (None, _WITNESS),
    "ashlar_settings_json": (_TEXT,),
    "ashlar_snapshot_pickle": (_TEXT, ctypes.c_int, ctypes.POINTER(ctypes.c_size_t)),
    "ashlar_snapshot_write": (ctypes.c_int, ctypes.c_char_p, ctypes.c_int),
    "ashlar_stats_json": (_TEXT, ctypes.c_int),
    "ashlar_string_free": (None, ctypes.c_void_p),
    "ashlar_tenant_bind_stream": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_void_p),
    "ashlar_tenant_create": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int),
    "ashlar_tenant_delete": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p),
    "ashlar_tenant_resize": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_uint64, ctypes.c_uint64, ctypes.c_int),
    "ashlar_tenant_set_limit": (ctypes.c_int, ctypes.c_int, ctypes.c_uint64),
    "ashlar_tenant_stats_json": (_TEXT, ctypes.c_int, ctypes.c_char_p),
    "ashlar_tiers_json": (_TEXT, ctypes.c_int),
    "ashlar_version": (ctypes.c_char_p,),
}

# Those that move memory. Python's lock is held meanwhile, so that other threads of Python begin no
# operator. One that has begun runs without the lock.
_MOVES = {
    "ashlar_park": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, ctypes.c_int, _REPORT),
    "ashlar_park_blocks": (ctypes.c_int, ctypes.c_int, _BLOCKS, ctypes.c_size_t, _REPORT),
    "ashlar_restore": (ctypes.c_int, ctypes.c_int, ctypes.c_char_p, _REPORT),
    "ashlar_restore_blocks": (ctypes.c_int, ctypes.c_int, _BLOCKS, ctypes.c_size_t, _REPORT),
    "ashlar_fetch": (ctypes.c_int, ctypes.c_int, _BLOCKS, ctypes.c_size_t, _REPORT),
    "ashlar_hand_over": (ctypes.c_int, ctypes.c_int),
    "ashlar_step": (ctypes.c_int, ctypes.c_int, _REPORT),
    "ashlar_take_back": (None, ctypes.c_int),
}

# What PyTorch calls by address: the setter, and the function.
_SETTERS = {
    "set_init_fn": "ashlar_torch_init",
    "set_reset_fn": "ashlar_torch_reset",
    "set_memory_fraction_fn": "ashlar_torch_set_memory_fraction",
    "set_base_alloc_fn": "ashlar_base_alloc",
    "set_record_stream_fn": "ashlar_record_stream",
    "set_begin_allocate_to_pool": "ashlar_begin_allocate_to_pool",
    "set_end_allocate_to_pool_fn": "ashlar_end_allocate_to_pool",
    "set_release_pool": "ashlar_release_pool",
}

ACTIONS = ("alloc", "free_requested", "free_completed", "segment_alloc", "segment_free", "segment_map", "segment_unmap", "oom", "snapshot", "annotate")


# The library.


def _candidates():
    here = os.path.dirname(os.path.realpath(__file__))
    above = os.path.dirname(here)
    return [os.path.join(here, NAME), os.path.join(above, "bin", NAME), os.path.join(here, PLAIN), os.path.join(above, PLAIN)]


def _open():
    """Load the library; returns it and the name it was loaded by."""
    path = os.environ.get("ASHLAR_LIBRARY")
    if path:
        if not os.path.exists(path):
            raise ImportError("ashlar_torch: there is no file at ASHLAR_LIBRARY=%s" % path)
        return _load(os.path.abspath(path))
    for path in _candidates():
        if os.path.isfile(path):
            return _load(path)
    try:
        return _load(NAME)
    except ImportError as e:
        raise ImportError(
            "ashlar_torch: %s was not found at %s, nor by the loader (%s). Build it with `%s` and set ASHLAR_LIBRARY to its path."
            % (NAME, " or ".join(_candidates()[:2]), e.__cause__, BUILD)
        ) from None


def _load(path):
    try:
        library = ctypes.CDLL(path)
    except OSError as e:
        raise ImportError("ashlar_torch: %s cannot be loaded: %s" % (path, e)) from e
    missing = [name for name in [*_API, *_MOVES, *_SETTERS.values()] if not hasattr(library, name)]
    if missing:
        raise ImportError("ashlar_torch: %s is of another version than %s: it has no %s. Build it anew: `%s`" % (path, __file__, missing[0], BUILD))
    _declare(library, _API)
    return library, path


def _declare(library, functions):
    for name, (result, *arguments) in functions.items():
        function = getattr(library, name)
        function.restype, function.argtypes = result, arguments


# The keys of the statistics in PyTorch's order.
_COUNTERS = "num_alloc_retries num_ooms max_split_size num_sync_all_streams num_device_alloc num_device_free".split()
_BY_POOL = "allocation segment active inactive_split allocated_bytes reserved_bytes active_bytes inactive_split_bytes requested_bytes".split()
_OVERSIZE = "oversize_allocations oversize_segments".split()
_TIERS = "host_bytes host_kept_bytes dropped_bytes overflows moves moved_out_bytes moved_in_bytes move_seconds".split()
_POOLS = "all small_pool large_pool".split()
_FIGURES = "current peak allocated freed".split()
_ORDER = {key: i for i, key in enumerate([*_COUNTERS, *_BY_POOL, *_OVERSIZE, *_POOLS, *_FIGURES])}


@functools.lru_cache(maxsize=None)
def _order(keys):
    return sorted(keys, key=lambda key: _ORDER.get(key, len(_ORDER)))


def _ordered(value):
    if not isinstance(value, dict):
        return value
    return {key: _ordered(value[key]) for key in _order(tuple(value))}


class _Ashlar:
    """The library with Python's types and exceptions."""

    def __init__(self, library, path):
        self.so, self.path = library, path
        self.moves = ctypes.PyDLL(path)  # the same library
        _declare(self.moves, _MOVES)
        self.cache_info_missing = None  # why; None: it is served

    def why(self):
        """Why the last call of this thread failed."""
        return (self.so.ashlar_error_text() or b"").decode("utf-8", "replace") or "ashlar: failed"

    def error(self):
        return RuntimeError(self.why())

    def complete_torch(self):
        """Answer what PyTorch asks although it has no setter for it."""
        self.cache_info_missing = None if self.so.ashlar_complete_torch() else self.why()

    def info(self):
        return {
            "library": self.path,
            "version": self.so.ashlar_version().decode(),
            "cache_info": self.cache_info_missing is None,
            "cache_info_missing": self.cache_info_missing,
        }

    def do(self, name, *args):
        if getattr(self.so, name)(*args) != 0:
            raise self.error()

    def take(self, pointer, length=None):
        """The bytes of a string of the library, which is given back."""
        if not pointer:
            raise self.error()
        try:
            return ctypes.string_at(pointer) if length is None else ctypes.string_at(pointer, length)
        finally:
            self.so.ashlar_string_free(pointer)

    def move(self, name, *args):
        """Call a function that moves memory; returns its report. What is out of memory is None."""
        report = ctypes.c_void_p()
        code = getattr(self.moves, name)(*args, ctypes.byref(report))
        if code == 1:  # ASHLAR_OOM
            return None
        if code != 0:
            raise self.error()
        return json.loads(self.take(report.value))

    def tiers(self, device):
        return json.loads(self.take(self.so.ashlar_tiers_json(int(device))))

    def settings(self):
        return json.loads(self.take(self.so.ashlar_settings_json()))

    def stats(self, device):
        return _ordered(json.loads(self.take(self.so.ashlar_stats_json(int(device)))))

    def unused_stats(self):
        """The statistics of a device that was not used."""

        def figures():
            return dict.fromkeys(_FIGURES, 0)

        stats = dict.fromkeys(_COUNTERS, 0)
        stats["max_split_size"] = self.settings()["max_split_size_bytes"]
        stats.update((key, {pool: figures() for pool in _POOLS}) for key in _BY_POOL)
        stats.update((key, figures()) for key in _OVERSIZE)
        stats["ashlar"] = dict.fromkeys(_TIERS, 0)
        return stats

    def snapshot(self):
        """The snapshot of all devices that are in use; its keys are always the same."""
        length = ctypes.c_size_t()
        pointer = self.so.ashlar_snapshot_pickle(-1, ctypes.byref(length))
        data = pickle.loads(self.take(pointer, length.value))
        data.setdefault("external_annotations", [])
        data.pop("ashlar_rules", None)  # PyTorch's have no such key
        return data


# The history. The library keeps the events; the stacks are gathered here,
# because only Python and PyTorch know them.


class _History:
    """What is recorded, and the stack of each call that is in it."""

    ALLOC, FREE, OOM = range(3)  # ASHLAR_TOLD_ in ashlar.h

    def __init__(self, torch, ashlar):
        self.ashlar = ashlar
        self.profiler = getattr(torch._C, "_profiler", None)
        self.max_entries = None  # None: not recording
        self.skip = frozenset()
        self.context = None
        self.log = collections.deque()  # (what, device, address, size, stack), in the order of the calls
        self.live = {}  # (device, address) -> stack of the block's allocation
        self.gather = self.cpp = None
        self.witness = None  # told, as the library sees it

    def record(self, enabled="all", context="all", stacks="all", max_entries=sys.maxsize, clear_history=False, compile_context=False,
               global_record_annotations=False, skip_actions=(), record_pinned_host_memory=False, record_cuda=True, *later, **named_later):
        """torch._C._cuda_record_memory_history

        PyTorch 2.4 passes the first four; every version passes what it knows, and
        what versions to come may add is left aside.
        """
        if enabled not in ("state", "all", None):
            raise RuntimeError("expected state to be 'state', 'all', or None")
        if context not in ("state", "alloc", "all", None):
            raise RuntimeError("expected context to be 'state', 'alloc', 'all', or None")
        if stacks not in ("python", "all"):
            raise RuntimeError("expected stacks to be 'python', or 'all'")
        for action in skip_actions or ():
            if action not in ACTIONS:
                raise RuntimeError("Unknown TraceEntry action: %s" % action)
        if enabled is not None and record_pinned_host_memory:
            _warn_once("page-locked host memory is not recorded (record_pinned_host_memory): PyTorch tells of it only together with its own allocator")
        if not record_cuda:
            return
        if enabled is None:
            self.stop()
            return
        max_entries = 1 if enabled == "state" else max(1, int(max_entries))
        self.skip = frozenset(skip_actions or ())
        if clear_history or self.max_entries != max_entries:
            self.forget(max_entries)
            # The library counts in 64 bits, and 0 keeps all.
            self.ashlar.do("ashlar_record_history", 1, 0 if max_entries >= 1 << 62 else max_entries)
            self.max_entries = max_entries
        self.watch(context, stacks)

    def record_legacy(self, enabled, record_context=True, trace_alloc_max_entries=1, trace_alloc_record_context=False, record_context_cpp=False,
                      *others, **named):
        """torch._C._cuda_record_memory_history_legacy: it goes on as the other does after max_entries."""
        context = "alloc" if trace_alloc_record_context else "state" if record_context else None
        self.record("all" if enabled else None, context, "all" if record_context_cpp else "python", trace_alloc_max_entries, *others, **named)

    def stop(self):
        self.watch(None, None)
        self.max_entries = None
        self.forget(1)
        self.ashlar.do("ashlar_record_history", 0, 0)

    def forget(self, max_entries):
        self.log = collections.deque(maxlen=min(max_entries, sys.maxsize))
        self.live = {}

    def watch(self, context, stacks):
        """Switch the gathering of stacks on or off."""
        self.gather = getattr(self.profiler, "gather_traceback", None)
        self.context = context if self.gather is not None else None
        self.cpp = stacks == "all"
        if self.context is not None and self.witness is None:
            self.witness = _WITNESS(self.told)
            _forever.append(self.witness)
        self.ashlar.so.ashlar_set_witness(_WITNESS() if self.context is None else self.witness)

    def told(self, what, device, address, size):
        """Called by the library; ctypes prints what is raised and goes on.

        It is one frame of Python, so that it is easily told from the job's.
        """
        context = self.context
        if what == self.FREE:
            self.live.pop((device, address), None)
            if context != "all":
                return
        if context is None:  # stopped meanwhile
            return
        stack = self.gather(python=True, script=True, cpp=self.cpp)
        if what == self.ALLOC:
            self.live[device, address] = stack
        if context != "state":
            self.log.append((what, device, address, size, stack))

    def traceback(self, address):
        """The stack of the live allocation that begins there, or None."""
        for (_, begin), stack in list(self.live.items()):
            if begin == address:
                return _without_witness(self.profiler.symbolize_tracebacks([stack])[0])
        return None

    def add_stacks(self, snapshot):
        """Put the stacks into a snapshot, where PyTorch has them."""
        if not self.log and not self.live:
            return
        wanted = []  # (dictionary, stack)
        live = dict(self.live)
        for segment in snapshot["segments"]:
            for block in segment["blocks"]:
                stack = live.get((segment["device"], block["address"]))
                if stack is not None and block["state"] == "active_allocated":
                    wanted.append((block, stack))
        log = list(self.log)
        for device, trace in enumerate(snapshot["device_traces"]):
            wanted += _matched(trace, [entry for entry in log if entry[1] == device], self.context)
        distinct = {id(stack): stack for _, stack in wanted}
        frames = dict(zip(distinct, self.profiler.symbolize_tracebacks(list(distinct.values()))))
        frames = {key: _without_witness(value) for key, value in frames.items()}
        for place, stack in wanted:
            place["frames"] = frames[id(stack)]


_WHO = _History.told.__code__


def _matched(trace, log, context):
    """Pairs of an event and its stack.

    Allocations and frees of one address take turns, so the newest event of an
    address belongs to the newest call, and so on back in time. A call that is
    under way in another thread while the snapshot is taken can shift the stacks of
    its address by one; the size shows whether it was another call.
    """
    calls = collections.defaultdict(list)
    for what, _, address, size, stack in log:
        calls[what, address].append((size, stack))

    def newest(what, address, size):
        entries = calls.get((what, address))
        if entries and (size is None or entries[-1][0] == size):
            return entries.pop()[1]
        return None

    pairs, around = [], None  # around: the stack of the malloc that the event is part of
    for event in reversed(trace):
        action, stack = event["action"], None
        if action == "alloc":
            around = stack = newest(_History.ALLOC, event["addr"], event["size"])
        elif action == "oom":
            around = stack = newest(_History.OOM, None, None)
        elif action == "free_requested":
            stack = newest(_History.FREE, event["addr"], event["size"])
        elif action in ("segment_alloc", "segment_map"):
            stack = around
        if stack is not None:
            pairs.append((event, stack))
    # The end of a free has the stack of what began it: its request, or the allocation.
    known = {id(event): stack for event, stack in pairs}
    begun = {}
    for event in trace:
        action = event["action"]
        if action == ("alloc" if context == "alloc" else "free_requested"):
            begun[event["addr"]] = known.get(id(event))
        elif action in ("free_requested", "free_completed") and begun.get(event["addr"]) is not None:
            pairs.append((event, begun[event["addr"]]))
    return pairs


def _without_witness(frames):
    """Leave out the frame that gathered the stack, and those inside of it."""
    for i, frame in enumerate(frames):
        if frame.get("name") == _WHO.co_name and frame.get("filename") == _WHO.co_filename:
            return frames[i + 1:]
    return frames


def _event(event):
    """An event with the keys that PyTorch gives it, in its order, and pool_id as
    later versions have it."""
    frames = event.pop("frames", None)
    pool = event.pop("pool_id", None)
    metadata = event.pop("user_metadata", "")
    event["compile_context"] = event.pop("compile_context", "N/A")
    event["user_metadata"] = metadata
    if pool is not None:
        event["pool_id"] = pool
    if frames:
        event["frames"] = frames
    return event


# What PyTorch asks its allocator, answered by Ashlar.

_warned = set()


def _warn_once(text):
    """Warn once, from a function that replaces one of torch._C; the warning names the caller of PyTorch."""
    if text not in _warned:
        _warned.add(text)
        warnings.warn("ashlar_torch: " + text, RuntimeWarning, stacklevel=4)


class _Answers:
    """Functions that replace those of torch._C."""

    def __init__(self, torch, ashlar):
        self.torch, self.ashlar = torch, ashlar
        self.history = _History(torch, ashlar)
        self.observers = []
        self.observer = None
        self.lock = threading.Lock()
        self.replaced = {}
        self.process = os.getpid()
        self.started = set()  # devices that are in use
        parameters = inspect.signature(torch.cuda.memory._record_memory_history).parameters
        self.knows_host = "record_pinned_host_memory" in parameters  # then snapshots have keys for it
        # From 2.12 on, requests that throw_on_cudamalloc_oom refused. Ashlar does not have it.
        self.more_stats = {"num_oom_rejections": 0} if _version(torch) >= (2, 12) else {}
        self.conf = None  # the settings text that the job gave last
        self.tiers = _Tiers(self)

    def install(self):
        history = self.history
        for name, function in {
            "_cuda_init": self.start,
            "_cuda_memoryStats": self.stats,
            "_cuda_resetPeakMemoryStats": self.resetter("ashlar_reset_peak_stats", early=False),
            "_cuda_resetAccumulatedMemoryStats": self.resetter("ashlar_reset_accumulated_stats", early=False),
            "_cuda_memorySnapshot": self.snapshot,
            "_cuda_record_memory_history": history.record,
            "_cuda_record_memory_history_legacy": history.record_legacy,
            "_cuda_isHistoryEnabled": lambda: history.max_entries is not None,
            "_cuda_allocationTraceback": history.traceback,
            "_cuda_getMemoryFraction": self.fraction,
            "_cuda_attach_out_of_memory_observer": self.attach,
            "_cuda_setMemoryMetadata": self.set_metadata,
            "_cuda_getMemoryMetadata": self.get_metadata,
            "_cuda_memoryMetadataSupported": lambda: True,
            "_cuda_cudaCachingAllocator_enable": self.enable_caching,
            "_cuda_cudaCachingAllocator_set_allocator_settings": self.configurer("_cuda_cudaCachingAllocator_set_allocator_settings"),
            "_accelerator_setAllocatorSettings": self.configurer("_accelerator_setAllocatorSettings"),
            "_accelerator_getAllocatorSettings": self.configured,
            # These may ask PyTorch's own allocator, which nobody uses.
            "_accelerator_isAllocatorInitialized": lambda: self.torch.cuda.is_initialized(),
            "_accelerator_emptyCache": lambda: self.torch.cuda.empty_cache(),
            "_accelerator_getDeviceStats": self.stats,
            "_accelerator_resetPeakStats": self.resetter("ashlar_reset_peak_stats", early=True),
            "_accelerator_resetAccumulatedStats": self.resetter("ashlar_reset_accumulated_stats", early=True),
        }.items():
            if hasattr(self.torch._C, name):  # not all are in every version
                self.replaced[name] = getattr(self.torch._C, name)
                setattr(self.torch._C, name, function)

    def start(self):
        """The first thing that PyTorch calls to use CUDA."""
        if os.getpid() != self.process:
            raise RuntimeError(FORKED)
        return self.replaced["_cuda_init"]()

    def used(self, device):
        """Whether the device is in use.

        The library opens a device that it is asked about, which makes a context of
        some hundred MiB where there is none. PyTorch's own allocator answers without.
        """
        if os.getpid() != self.process:
            raise RuntimeError(FORKED)
        cuda = self.torch.cuda
        if device in self.started:
            return True
        if not cuda.is_initialized():
            return False
        if not 0 <= device < cuda.device_count():
            raise RuntimeError(INVALID % device)
        has_context = getattr(self.torch._C, "_cuda_hasPrimaryContext", None)
        if has_context and not has_context(device):
            return False
        self.started.add(device)
        return True

    def stats(self, device):
        return {**(self.ashlar.stats(device) if self.used(device) else self.ashlar.unused_stats()), **self.more_stats}

    def resetter(self, function, early):
        """early: whether it may be called before CUDA has started."""

        def reset(device):
            if self.used(device):
                self.ashlar.do(function, device)
            elif not early and not self.torch.cuda.is_initialized():
                raise RuntimeError(INVALID % device)

        return reset

    def enable_caching(self, on):
        if not on:
            _warn_once("caching cannot be switched off (caching_allocator_enable, caching_allocator_disabled): memory is cached as before; "
                       "run with ASHLAR=0 to have it off")
        return self.replaced["_cuda_cudaCachingAllocator_enable"](on)

    def snapshot(self, which=None):
        """which: None, or the two numbers of a pool and whether traces are wanted."""
        data = self.ashlar.snapshot()
        if self.knows_host:
            data.update(host_segments=[], host_traces=[])
        if which is not None and tuple(which[:2]) != (0, 0):
            data["segments"] = [s for s in data["segments"] if tuple(s["segment_pool_id"]) == tuple(which[:2])]
        if which is not None and len(which) > 2 and not which[2]:
            data["device_traces"] = []
        else:
            traces = data["device_traces"]
            traces += [[] for _ in range(self.torch.cuda.device_count() - len(traces))]
        self.history.add_stacks(data)
        data["device_traces"] = [[_event(e) for e in trace if e["action"] not in self.history.skip] for trace in data["device_traces"]]
        return data

    def fraction(self, device):
        if not self.used(device):
            return float(self.ashlar.settings()["per_process_memory_fraction"])
        value = self.ashlar.so.ashlar_get_memory_fraction(device)
        if value < 0:
            raise self.ashlar.error()
        return value

    def set_metadata(self, text):
        self.ashlar.do("ashlar_set_metadata", text.encode())

    def get_metadata(self):
        return (self.ashlar.so.ashlar_get_metadata() or b"").decode("utf-8", "replace")

    def attach(self, observer):
        """An observer is called with device, bytes tried, limit, bytes free."""
        with self.lock:
            if self.observer is None:
                self.observer = _OBSERVER(self.observe)
                _forever.append(self.observer)  # the library never lets go of it
                self.ashlar.do("ashlar_set_oom_observer", self.observer)
            self.observers.append(observer)

    def observe(self, device, tried, total, free):
        for observer in list(self.observers):
            try:
                observer(device, tried, total, free)
            except Exception:
                traceback.print_exc()

    def configurer(self, name):
        def configure(conf):
            self.ashlar.do("ashlar_configure", conf.encode())
            self.conf = conf
            for note in self.ashlar.settings()["notes"]:
                _warn_once(note)
            self.tiers.follow_optimizers()
            # Page-locked memory of the host stays PyTorch's.
            pinned = ",".join(item for item in conf.split(",") if item.strip().startswith("pinned_"))
            if pinned:
                self.replaced[name](pinned)

        return configure

    def configured(self):
        return self.replaced["_accelerator_getAllocatorSettings"]() if self.conf is None else self.conf

    def close(self):
        """Before Python ends, after which it must not be called back."""
        self.observers = []
        if os.getpid() == self.process:
            self.ashlar.so.ashlar_set_witness(_WITNESS())
            self.ashlar.so.ashlar_set_overflow_observer(_NOTED())


# Installing.

_forever = []  # what C code may still point at
_answers = None  # None: not installed


def _version(torch):
    found = re.match(r"(\d+)\.(\d+)", str(torch.__version__))
    return tuple(map(int, found.groups())) if found else (0, 0)


def _install():
    global _answers
    if os.environ.get("ASHLAR") == "0":
        return
    import torch

    if _version(torch) < TORCH:
        raise ImportError("ashlar_torch: needs PyTorch %d.%d or later; this is %s" % (*TORCH, torch.__version__))
    if torch.version.cuda is None:
        raise ImportError("ashlar_torch: PyTorch %s is built without CUDA; set ASHLAR=0 to run without Ashlar" % torch.__version__)
    if torch.cuda._is_in_bad_fork():
        return  # a fork of a process that uses CUDA, and cannot itself
    if torch.cuda.is_initialized():
        raise RuntimeError("ashlar_torch: CUDA is in use already; import ashlar_torch before the first CUDA call")
    if "PYTORCH_NO_CUDA_MEMORY_CACHING" in os.environ:
        _warn_once("PYTORCH_NO_CUDA_MEMORY_CACHING has no effect: memory is cached; run with ASHLAR=0 to have it off")
    library, path = _open()
    ashlar = _Ashlar(library, path)
    conf = ashlar.settings()  # wrong settings are told now
    for note in conf["notes"]:
        _warn_once(note)
    allocator = torch.cuda.memory.CUDAPluggableAllocator(path, "ashlar_malloc", "ashlar_free")
    for setter, name in _SETTERS.items():
        function = getattr(allocator.allocator(), setter, None)
        if function is None:
            raise ImportError("ashlar_torch: PyTorch %s does not offer %s" % (torch.__version__, setter))
        function(ctypes.cast(getattr(library, name), ctypes.c_void_p).value)
    try:
        torch.cuda.memory.change_current_allocator(allocator)
    except RuntimeError as e:
        raise RuntimeError("ashlar_torch: PyTorch does not change its allocator any more (%s); import ashlar_torch before the first CUDA call" % e) from None
    ashlar.complete_torch()
    _forever.extend([library, allocator])
    # Tensors that are alive at the end are freed after this module is gone.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(allocator.allocator()))
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(_forever))
    answers = _Answers(torch, ashlar)
    answers.history.max_entries = conf["history"] or None
    answers.install()
    answers.tiers.install()
    atexit.register(answers.close)
    _answers = answers


def _installed():
    if _answers is None:
        raise RuntimeError("ashlar_torch: not installed (ASHLAR=0, or a forked process)")
    return _answers


def enabled():
    """Whether PyTorch takes its memory from Ashlar."""
    return _answers is not None


def info():
    """What is installed: library (its path), version, cache_info: whether
    torch.backends.cudnn.benchmark = True can be used, and if not, why:
    cache_info_missing."""
    return _installed().ashlar.info()


def stats(device=None):
    """The statistics of a device, as torch.cuda.memory_stats_as_nested_dict()
    gives them; zeros if it was not used. device: int, str, torch.device, or None
    for the current one."""
    answers = _installed()
    cuda = answers.torch.cuda
    if device is not None and not isinstance(device, int):
        device = answers.torch.device(device).index
    if device is None:
        device = cuda.current_device() if cuda.is_initialized() else 0
    return answers.stats(device)


def settings():
    """The settings in force."""
    return _installed().ashlar.settings()


def snapshot(path):
    """Write a memory snapshot of all devices; `ashlar view PATH` shows it."""
    answers = _installed()
    devices = range(answers.torch.cuda.device_count())
    if answers.history.log or answers.history.live or not any(map(answers.used, devices)):
        with open(path, "wb") as f:
            pickle.dump(answers.snapshot(), f)
    else:
        answers.ashlar.do("ashlar_snapshot_write", os.fsencode(path), -1)


# Tenants.


def _bytes(size):
    """A size in bytes: a number, or a text such as 30GiB or 500MB; None is 0."""
    if size is None:
        return 0
    if isinstance(size, int):
        if size < 0:
            raise ValueError("ashlar_torch: the size %d is negative" % size)
        return size
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([KMGT]?)(i?B)?\s*", size)
    if found is None or found.group(3) and not found.group(2):
        raise ValueError("ashlar_torch: %r is no size; write for example 30GiB, 500MB or a number of bytes" % (size,))
    number, prefix, unit = found.groups()
    step = 1000 if unit == "B" else 1024
    return int(float(number) * step ** " KMGT".index(prefix or " "))


def _encoded(name):
    """A name as C takes it, which would end it at a NUL."""
    if "\0" in name:
        raise ValueError("ashlar_torch: the name %r has a NUL in it" % name)
    return name.encode()


class _Tenant:
    """A part of the process with memory of its own; made by tenant().

    `with t:` makes the tenant's stream the current one: it continues after what the
    outer stream has queued, and the outer stream continues after it. What is
    allocated on a stream of the tenant belongs to it, in whatever thread, and goes
    back to it, whoever frees it.
    """

    def __init__(self, answers, name, device):
        self.name, self.device = name, device
        self._name = _encoded(name)
        self._answers = answers
        self._stream = None
        self._entered = threading.local()

    @property
    def stream(self):
        """The tenant's own stream, made at its first use."""
        if self._stream is None:
            self._stream = self._answers.torch.cuda.Stream(device=self.device)
            self.bind(self._stream)
        return self._stream

    def bind(self, stream):
        """What is allocated on this stream belongs to the tenant from now on."""
        self._answers.ashlar.do("ashlar_tenant_bind_stream", self.device, self._name, stream.cuda_stream)

    def resize(self, guarantee=0, ceiling=None, priority=0):
        """Change the terms; RuntimeError says who holds the memory if they cannot be met."""
        self._answers.ashlar.do("ashlar_tenant_resize", self.device, self._name, _bytes(guarantee), _bytes(ceiling), priority)

    def stats(self):
        """The statistics of the tenant alone, as ashlar_torch.stats() has those of all."""
        ashlar = self._answers.ashlar
        return _ordered(json.loads(ashlar.take(ashlar.so.ashlar_tenant_stats_json(self.device, self._name))))

    def usage(self):
        """What the device's memory is used for: the limit, and each tenant's part."""
        ashlar = self._answers.ashlar
        return json.loads(ashlar.take(ashlar.so.ashlar_tenant_stats_json(self.device, None)))

    def close(self):
        """Give the guarantee back; the tenant's tensors must be gone. Its streams are the default's again."""
        self._answers.ashlar.do("ashlar_tenant_delete", self.device, self._name)

    def __enter__(self):
        cuda = self._answers.torch.cuda
        outer = cuda.current_stream(self.device)
        self.stream.wait_stream(outer)
        inside = cuda.stream(self.stream)
        inside.__enter__()
        stack = self._entered.__dict__.setdefault("stack", [])
        stack.append((inside, outer))
        return self

    def __exit__(self, *error):
        inside, outer = self._entered.stack.pop()
        inside.__exit__(*error)
        outer.wait_stream(self.stream)


def tenant(name, guarantee=0, ceiling=None, priority=0, device=None, limit=None):
    """Make a tenant of a device: it gets its guarantee whatever the rest of the
    process does, and never exceeds its ceiling. Sizes are bytes or texts such as
    "30GiB". limit is what all tenants of the device have together; without it the
    first tenant sets it to what is reserved and free. If there is a tenant of that
    name, as from ASHLAR_TENANTS, it gets these terms."""
    answers = _installed()
    torch = answers.torch
    torch.cuda.init()
    device = _number(torch, device)
    t = _Tenant(answers, name, device)
    if limit is not None:
        answers.ashlar.do("ashlar_tenant_set_limit", device, _bytes(limit))
    if any(u["name"] == name for u in t.usage()["tenants"]):
        t.resize(guarantee, ceiling, priority)
    else:
        answers.ashlar.do("ashlar_tenant_create", device, t._name, _bytes(guarantee), _bytes(ceiling), priority)
    return t


# Tiers: memory that goes to the host and comes back.


def _blocks(things, found=None, lenient=False):
    """The blocks of the device behind tensors, modules, optimizers and collections of
    them, by device: addresses, in the order in which they were found. Lenient leaves out tensors
    that do not tell where they are, as those that torch.compile makes up."""
    found = {} if found is None else found
    if hasattr(things, "untyped_storage"):
        for tensor in _parts(things):
            try:
                address = tensor.untyped_storage().data_ptr() if tensor.device.type == "cuda" else 0
            except RuntimeError:
                if not lenient:
                    raise
                continue
            if address:
                found.setdefault(tensor.device.index, {})[address] = None
    elif hasattr(things, "param_groups") and hasattr(things, "state"):
        _blocks(things.state.values(), found, lenient)
    elif hasattr(things, "parameters") and hasattr(things, "buffers"):
        for parameter in things.parameters():
            _blocks((parameter, parameter.grad), found, lenient)
        _blocks(things.buffers(), found, lenient)
    elif isinstance(things, dict):
        _blocks(things.values(), found, lenient)
    elif isinstance(things, collections.abc.Iterable) and not isinstance(things, (str, bytes)):
        for value in things:
            _blocks(value, found, lenient)
    return found


_SPARSE = {
    "torch.sparse_coo": ("_indices", "_values"),
    "torch.sparse_csr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_csc": ("ccol_indices", "row_indices", "values"),
    "torch.sparse_bsr": ("crow_indices", "col_indices", "values"),
    "torch.sparse_bsc": ("ccol_indices", "row_indices", "values"),
}


def _parts(tensor):
    """The tensors with storages that a tensor is made of: itself, unless it is sparse, or wraps others
    as a DTensor does."""
    sparse = _SPARSE.get(str(getattr(tensor, "layout", None)), ())
    if sparse:
        inner = [getattr(tensor, name)() for name in sparse]
    elif hasattr(tensor, "__tensor_flatten__"):
        inner = [getattr(tensor, name) for name in tensor.__tensor_flatten__()[0]]
    elif hasattr(tensor, "_local_tensor"):
        inner = [tensor._local_tensor]
    else:
        return [tensor]
    return [part for each in inner for part in _parts(each)]


def _array(addresses):
    return (ctypes.c_void_p * len(addresses))(*addresses), len(addresses)


class _Tiers:
    """What regions, parks and marks share."""

    def __init__(self, answers):
        self.answers = answers
        self.noted = _NOTED(self.note)
        self.wanted = False  # overflow
        self.on = False  # while it is, or something of it is left
        self.hooks = ()  # of optimizers
        self.named = weakref.WeakKeyDictionary()  # optimizers -> what of theirs was named, see stepped

    def install(self):
        _forever.append(self.noted)
        self.answers.ashlar.so.ashlar_set_overflow_observer(self.noted)
        self.follow_optimizers()

    def note(self, text):
        """Told of the first request that the host's memory has served."""
        sys.stderr.write("%s %s\n" % (text.decode("utf-8", "replace"), _asked_for_at(self.answers.torch)))

    def follow_optimizers(self):
        """With overflow on, each step of an optimizer is a mark, its state is cold and comes home
        before the step, and its parameters are busy. A backward pass works for the thread that waits for it."""
        self.wanted = self.answers.ashlar.settings()["overflow_bytes"] > 0
        self.on = self.wanted or bool(self.hooks) and self.remains()
        if self.wanted and not self.hooks:
            from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

            self.hooks = (register_optimizer_step_pre_hook(self.stepping), register_optimizer_step_post_hook(self.stepped))
            self.wrap_backward()
        elif not self.on:
            for hook in self.hooks:
                hook.remove()
            self.hooks = ()

    def remains(self):
        """Whether memory of some device lies on the host, which marks bring home."""
        try:
            return any(self.answers.ashlar.tiers(device)["host_used_bytes"] for device in self.answers.started)
        except RuntimeError:
            return False  # nothing can be moved there

    def wrap_backward(self):
        """The thread that calls it waits, so whoever works meanwhile has the device alone."""
        autograd = self.answers.torch.autograd
        if hasattr(autograd.backward, "_ashlar"):
            return
        so, answers = self.answers.ashlar.so, self.answers

        def wrapped(function):
            @functools.wraps(function)
            def call(*args, **kwargs):
                if not self.on or os.getpid() != answers.process:
                    return function(*args, **kwargs)
                handed = [device for device in range(answers.torch.cuda.device_count()) if so.ashlar_hand_over(device)]
                try:
                    return function(*args, **kwargs)
                finally:
                    for device in handed:
                        so.ashlar_take_back(device)

            call._ashlar = True
            return call

        autograd.backward, autograd.grad = wrapped(autograd.backward), wrapped(autograd.grad)

    def name(self, optimizer):
        """What is seldom used, an optimizer's state and parameters that nobody trains, and what is not."""
        torch = self.answers.torch
        self.guess(optimizer, True)
        # What another optimizer trains may be frozen for a while, as in a GAN.
        trained = {id(p) for other in list(self.named) for group in other.param_groups for p in group["params"]}
        # The kind as type() says it: an object may run code when it is asked for its class.
        frozen = [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Parameter) and o.is_cuda and not o.requires_grad and id(o) not in trained]
        self.guess(frozen, True)
        self.guess(_trained_by(optimizer), False)

    def stepping(self, optimizer, args, kwargs):
        """Before a step of any optimizer: its kernels go over the state again and again, so what of it lies on the host
        comes home, as far as there is room. A fused optimizer goes over it once, which takes less than two moves."""
        try:
            if not self.on or os.getpid() != self.answers.process or optimizer not in self.named:
                return
            found = None
            for device in self.named[optimizer].devices:
                state = self.ready(device)
                if state["capturing"] or not state["host_used_bytes"]:
                    continue
                if found is None:
                    groups = [group for group in optimizer.param_groups if not group.get("fused")]
                    found = _blocks([optimizer.state[p] for group in groups for p in group["params"] if p in optimizer.state], lenient=True)
                if device in found:
                    self.call("ashlar_fetch", device, "memory", *_array(found[device]))
        except Exception as e:
            _warn_once("before a step of %s: %s" % (type(optimizer).__name__, e))

    def stepped(self, optimizer, args, kwargs):
        """After a step of any optimizer: nothing that goes wrong here may end the job."""
        try:
            if not self.on or os.getpid() != self.answers.process:
                return
            named = self.named.setdefault(optimizer, types.SimpleNamespace(holds=None, first=None, devices=[], pause=0, left=0))
            holds = len(optimizer.state), sum(len(group["params"]) for group in optimizer.param_groups)
            # What was loaded from a checkpoint in the middle of a job is new, all of it; some optimizers make some of theirs anew in each step.
            first = _blocks(next(iter(optimizer.state.values()), ()), lenient=True)
            named.left -= 1
            if named.holds != holds or named.first != first and named.left <= 0:
                named.pause = 0 if named.holds != holds else min(2 * named.pause + 1, 63)
                named.holds, named.first, named.left = holds, first, named.pause
                named.devices = list(_blocks(_trained_by(optimizer), lenient=True))
                self.name(optimizer)
            self.step(named.devices)
        except Exception as e:
            _warn_once("after a step of %s: %s" % (type(optimizer).__name__, e))

    def ready(self, device):
        """The state of a device whose memory may be moved, with whether NCCL may have registered some: the library moves
        nothing by itself then."""
        if os.getpid() != self.answers.process:
            raise RuntimeError(FORKED)
        torch = self.answers.torch
        torch.cuda.init()
        state = self.answers.ashlar.tiers(device)
        state["registered"] = bool(state["captures"]) and os.environ.get("NCCL_GRAPH_REGISTER") != "0" and _uses_nccl(torch)
        if state["captures"]:
            self.answers.ashlar.do("ashlar_set_registered", int(state["registered"]))
        return state

    def move(self, name, device, what, *args):
        state = self.ready(device)
        if state["registered"]:
            raise RuntimeError(
                "ashlar_torch: %s cannot be moved: NCCL may have registered memory that captured graphs use, and would hang once other memory lies behind "
                "it; start the job with NCCL_GRAPH_REGISTER=0" % what)
        if not state["capturing"]:  # the library refuses otherwise, and waiting would break the capture
            self.answers.torch.cuda.synchronize(device)  # without Python's lock, which callbacks of streams may need
        return self.call(name, device, what, *args)

    def call(self, name, device, what, *args):
        report = self.answers.ashlar.move(name, device, *args)
        if report is None:
            torch = self.answers.torch
            error = getattr(torch, "OutOfMemoryError", None) or torch.cuda.OutOfMemoryError
            raise error("ashlar_torch: %s: %s" % (what, self.answers.ashlar.why()))
        return report

    def guess(self, things, cold):
        for device, blocks in _blocks(things, lenient=True).items():
            self.answers.ashlar.do("ashlar_guess", device, *_array(blocks), int(cold))

    def step(self, devices):
        """A mark. Most have nothing to move, so nobody waits for the device before."""
        if not self.on:
            return 0.0
        for device in devices:
            self.ready(device)
        seconds = sum(self.call("ashlar_step", device, "memory")["seconds"] for device in devices)
        if not self.wanted:
            self.on = self.remains()  # the hooks stay: one of them may be running
        return seconds


def _trained_by(optimizer):
    return [p for group in optimizer.param_groups for p in group["params"]]


def _uses_nccl(torch):
    """Whether the process has a group of NCCL, the default one or another."""
    distributed = getattr(torch, "distributed", None)
    if distributed is None or not distributed.is_available() or not distributed.is_initialized():
        return False
    world = getattr(getattr(distributed, "distributed_c10d", None), "_world", None)
    others = [backend for backend, *_ in getattr(world, "pg_map", {}).values()]
    return any("nccl" in str(backend) for backend in [distributed.get_backend(), *others])


def _asked_for_at(torch):
    """The line of the job that this thread is at."""
    inside = os.path.dirname(os.path.abspath(getattr(torch, "__file__", None) or "torch"))
    frame = sys._getframe(1)
    while frame is not None:
        path = frame.f_code.co_filename
        if path != __file__ and not os.path.abspath(path).startswith(inside + os.sep):
            return "It was asked for at %s:%d (%s)." % (path, frame.f_lineno, frame.f_code.co_name)
        frame = frame.f_back
    return "It was asked for in a thread without Python, as the backward pass is."


class _Region:
    """A part of the process whose memory can be parked; made by region().

    `with r:` puts what this thread allocates into the region. Other threads are not
    concerned, as those of the backward pass: gradients lie outside.
    """

    _inside = threading.local()  # device -> the regions that this thread has entered, with their slots

    def __init__(self, answers, name, device):
        self.name, self.device = name, device
        self._name = _encoded(name)
        self._answers = answers

    def __enter__(self):
        ashlar, outer = self._answers.ashlar, ctypes.c_int()
        ashlar.do("ashlar_region_enter", self.device, self._name, ctypes.byref(outer))
        entered = self._inside.__dict__.setdefault(self.device, [])
        entered.append((self, ashlar.so.ashlar_region_current(self.device)))
        return self

    def __exit__(self, *error):
        # A generator may be closed after the caller has entered another region.
        entered = self._inside.__dict__.get(self.device, [])
        at = max((i for i, (region, _) in enumerate(entered) if region is self), default=None)
        if at is None:
            raise RuntimeError("ashlar_torch: region %s was not entered in this thread; leave it in the thread that has entered it" % self.name)
        del entered[at]
        self._answers.ashlar.do("ashlar_region_leave", self.device, entered[-1][1] if entered else 0)

    def park(self, keep=True):
        """Give the region's device memory back; returns how much."""
        report = self._answers.tiers.move("ashlar_park", self.device, "region " + self.name, self._name, int(keep))
        if report["private_bytes"]:
            _warn_once("region %s: %d bytes belong to captured graphs and stay on the device" % (self.name, report["private_bytes"]))
        return report["freed_bytes"]

    def restore(self):
        """Bring the region back to the device; returns how many bytes came."""
        return self._answers.tiers.move("ashlar_restore", self.device, "region " + self.name, self._name)["in_bytes"]

    def stats(self):
        """The region's figures: device_bytes, host_bytes, dropped, moves and more."""
        for region in self._answers.ashlar.tiers(self.device)["regions"]:
            if region["name"] == self.name:
                return region
        raise RuntimeError("ashlar_torch: device %d has no region %r" % (self.device, self.name))

    def close(self):
        """Give up the region; its tensors must be gone."""
        self._answers.ashlar.do("ashlar_region_delete", self.device, self._name)


def _number(torch, device):
    """The number of a device: int, str, torch.device, or None for the current one."""
    if isinstance(device, int):
        return device
    number = None if device is None else torch.device(device).index
    return torch.cuda.current_device() if number is None else number


def region(name, device=None):
    """A region of a device, as a context: tensors that this thread makes inside lie in
    memory of their own, which park() gives back as a whole and restore() brings back."""
    answers = _installed()
    answers.torch.cuda.init()
    return _Region(answers, name, _number(answers.torch, device))


def park(what, keep=True, device=None):
    """Move tensors to the host's memory and give their device memory back; returns the
    bytes of the device that became free, cached memory included.

    what: the name of a region; or tensors, a module (with its buffers and gradients), an
    optimizer (its state), or a list or dict of those. Of tensors whole pages move, of 2 MiB
    for tensors below 1 MiB and of 20 MiB for others, and only if all tensors in a page are
    named: regions have pages of their own.
    keep=False, for regions only, drops the contents: nothing may touch them until
    restore(). What was kept can be used while it is parked, slowly.

    It waits for the device; no thread may use it meanwhile. RuntimeError says why it cannot
    be done, as during a capture; what was moved before stays parked."""
    answers = _installed()
    if isinstance(what, (str, _Region)):
        return _as_region(answers, what, device).park(keep)
    if not keep:
        raise ValueError("ashlar_torch: keep=False is for regions only: others may have tensors in the same pages")
    reports = _move_blocks(answers, "ashlar_park_blocks", what)
    stayed = sum(r["private_bytes"] for r in reports)
    if stayed and not any(r["out_bytes"] for r in reports):
        raise RuntimeError("ashlar_torch: %d bytes belong to captured graphs, whose memory cannot be moved" % stayed)
    return _moved(reports, "out_bytes", "freed_bytes")


def restore(what, device=None):
    """Bring back what park() took, to the same addresses; returns the bytes that came. If
    the device has no room, it is torch.OutOfMemoryError, and nothing is lost."""
    answers = _installed()
    if isinstance(what, (str, _Region)):
        return _as_region(answers, what, device).restore()
    return _moved(_move_blocks(answers, "ashlar_restore_blocks", what), "in_bytes", "in_bytes")


def _as_region(answers, what, device):
    return what if isinstance(what, _Region) else _Region(answers, what, _number(answers.torch, device))


def _move_blocks(answers, name, things):
    return [answers.tiers.move(name, device, "tensors", *_array(blocks)) for device, blocks in _given(things).items()]


def _moved(reports, how, which):
    """The sum of what reports have; RuntimeError if nothing could move."""
    pinned = sum(r["pinned_bytes"] for r in reports)
    if pinned and not any(r[how] for r in reports):
        raise RuntimeError("ashlar_torch: %d bytes are shared with other processes or libraries, and cannot be moved" % pinned)
    return sum(r[which] for r in reports)


def _given(things):
    found = _blocks(things)
    if not found:
        raise ValueError("ashlar_torch: there is no tensor of a GPU in what was given")
    return found


def cold(what):
    """Say that tensors (or a module, an optimizer, a list of them) are seldom used: with
    overflow they leave the device before others do."""
    answers = _installed()
    for device, blocks in _given(what).items():
        answers.ashlar.do("ashlar_cold", device, *_array(blocks))


def step(device=None):
    """A step of the job ends: memory that is seldom used makes room for what overflowed,
    and comes home when there is room. With overflow on, each step of an optimizer and
    each ashlar.step() does it. Returns the seconds that it took."""
    answers = _installed()
    if device is not None:
        return answers.tiers.step([_number(answers.torch, device)])
    cuda = answers.torch.cuda
    return answers.tiers.step(sorted({cuda.current_device(), *answers.started})) if cuda.is_initialized() else 0.0


def dropped(tensor):
    """Whether a tensor's region was parked with keep=False: nothing is behind it."""
    return any(behind == 1 for behind in _behind(tensor))


def _behind(things):
    """What lies behind tensors, one after the other: 0 memory, 1 nothing, 2 what a later call has to map again."""
    ashlar = _installed().ashlar
    for device, blocks in _blocks(things).items():
        for address in blocks:
            behind = ashlar.so.ashlar_dropped(device, address)
            if behind < 0:
                raise ashlar.error()
            yield behind


def checked():
    """A context in which every operation of this thread on a dropped tensor is a
    RuntimeError before it reaches the GPU. It looks at each operation, so it is slow; without
    it such an operation ends in a CUDA error (illegal address)."""
    from torch.utils._python_dispatch import TorchDispatchMode

    class Checked(TorchDispatchMode):
        def __torch_dispatch__(self, function, types, args=(), kwargs=None):
            kwargs = kwargs or {}
            for behind in filter(None, _behind([args, kwargs])):
                why = ("a region that was parked with keep=False; restore the region first" if behind == 1
                       else "memory that could not be mapped back after a move that failed; park or restore it to try again")
                raise RuntimeError("ashlar_torch: %s uses a tensor of %s" % (function, why))
            return function(*args, **kwargs)

    return Checked()


# The runner.

USAGE = """usage: python ashlar_torch.py SCRIPT [ARGS...]
       python ashlar_torch.py -m MODULE [ARGS...]

Runs SCRIPT with Ashlar as PyTorch's CUDA allocator.
"""


def _main(argv):
    module = argv[:1] == ["-m"]
    argv = argv[1:] if module else list(argv)
    if not argv or argv[0].startswith("-"):
        sys.stderr.write(USAGE)
        return 0 if argv[:1] == ["--help"] else 2
    sys.modules["ashlar_torch"] = sys.modules[__name__]  # the script may import it, too
    sys.argv = argv
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = os.getcwd() if module else os.path.dirname(os.path.realpath(argv[0]))
    try:
        _install()
    except (ImportError, RuntimeError) as e:
        sys.stderr.write("%s\n" % e)
        return 2
    if module:
        import runpy

        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        return 0
    try:
        with open(argv[0], "rb") as f:
            source = f.read()
    except OSError as e:
        sys.stderr.write("ashlar_torch: cannot read the script: %s\n" % e)
        return 2
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    main.__file__ = os.path.abspath(argv[0])
    main.__builtins__ = __builtins__
    exec(compile(source, main.__file__, "exec", dont_inherit=True), main.__dict__)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
else:
    _install()
