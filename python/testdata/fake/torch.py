"""A fake: the few functions of torch that ashlar.py calls, for its tests.

No GPU and no allocator is behind it. One script is played: two allocations, then
a request that does not fit under a limit of 40 MiB. Events, segments and
statistics are those that PyTorch's rules give for it. What PyTorch itself does
with ashlar.py is checked by device_check.py, on a machine with a GPU.
"""
import os
import types

MIB = 1 << 20
BEGIN = 1_700_000_000_000_000  # microseconds
A, B = 0x7F0000000000, 0x7F0002000000  # segments
LIMIT = 40 * MIB
TOTAL = 150_000_000_000
FREE = 140_000_000_000
REQUEST = 30 * MIB
MESSAGE = (
    "CUDA out of memory. Tried to allocate 30.00 MiB. GPU 0 has a total capacity of 139.70 GiB of which 130.39 GiB is free. "
    "Including non-PyTorch memory, this process has 9.31 GiB memory in use. 40.00 MiB allowed; Of the allocated memory 3.00 MiB "
    "is allocated by PyTorch, and 19.00 MiB is reserved by PyTorch but unallocated. If reserved but unallocated memory is large "
    "try setting PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True to avoid fragmentation.  See documentation for Memory "
    "Management  (https://docs.pytorch.org/docs/stable/notes/cuda.html#optimizing-memory-usage-with-pytorch-cuda-alloc-conf)"
)

__version__ = "2.11.0+fake"
version = types.SimpleNamespace(cuda="13.0", hip=None)

# What the tests look at and turn.
calls = []  # of interest
observers = []
queued = []
initialized = None  # the process that did it; its forks cannot use CUDA
events = []
num_ooms = 0
metadata = ""
devices = 1
during_snapshot = None  # called in _snapshot


def _frames(name, line):
    return [
        {"name": name, "filename": "/venv/lib/python3.12/site-packages/torch/nn/functional.py", "line": 10},
        {"name": "train", "filename": "train.py", "line": line},
    ]


def _event(action, where, size, frames):
    place = "device_free" if action == "oom" else "addr"
    events.append({
        "action": action, place: where, "size": size, "stream": 0, "time_us": BEGIN + 10 * len(events),
        "compile_context": "N/A", "user_metadata": metadata, "frames": frames,
    })


def allocate():
    """Play the two allocations."""
    cuda.init()
    small, large = _frames("linear", 7), _frames("relu", 8)
    _event("segment_alloc", A, 2 * MIB, small)
    _event("alloc", A, 1000, small)
    _event("segment_alloc", B, 20 * MIB, large)
    _event("alloc", B, 3 * MIB, large)


def fail(message=MESSAGE):
    """Play the request that does not fit."""
    global num_ooms
    num_ooms += 1
    _event("oom", FREE, REQUEST, _frames("matmul", 9))
    for observe in observers:
        observe(0, REQUEST, LIMIT, FREE)
    raise cuda.OutOfMemoryError(message)


def _block(address, size, requested, state, frames):
    return {"address": address, "size": size, "requested_size": requested, "state": state, "frames": frames}


def _segment(address, size, kind, active, requested, frames):
    return {
        "device": 0, "address": address, "total_size": size, "allocated_size": active, "active_size": active,
        "requested_size": requested, "stream": 0, "segment_type": kind, "segment_pool_id": (0, 0), "is_expandable": False,
        "frames": [],
        "blocks": [
            _block(address, active, requested, "active_allocated", frames),
            _block(address + active, size - active, 0, "inactive", []),
        ],
    }


def _snapshot(device=None):
    calls.append("snapshot")
    if during_snapshot is not None:
        during_snapshot()
    return {
        "segments": [
            _segment(A, 2 * MIB, "small", 1024, 1000, _frames("linear", 7)),
            _segment(B, 20 * MIB, "large", 3 * MIB, 3 * MIB, _frames("relu", 8)),
        ],
        "device_traces": [[dict(e) for e in events]] + [[] for _ in range(devices - 1)],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1, "garbage_collection_threshold": 0.0, "expandable_segments": False},
        "external_annotations": [{"stage": "START", "name": "Optimizer.step#SGD.step", "device": 0, "time_us": BEGIN}],
    }


def _memory_stats(device=None):
    stats = {}
    for field in ("current", "peak", "allocated", "freed"):
        for family in ("oversize_allocations", "oversize_segments"):
            stats[family + "." + field] = 0
        for family, small, large in (
            ("allocation", 1, 1), ("segment", 1, 1), ("active", 1, 1), ("inactive_split", 1, 1),
            ("allocated_bytes", 1024, 3 * MIB), ("reserved_bytes", 2 * MIB, 20 * MIB), ("active_bytes", 1024, 3 * MIB),
            ("inactive_split_bytes", 2 * MIB - 1024, 17 * MIB), ("requested_bytes", 1000, 3 * MIB),
        ):
            for pool, value in (("all", small + large), ("small_pool", small), ("large_pool", large)):
                stats["%s.%s.%s" % (family, pool, field)] = 0 if field == "freed" else value
    stats.update(num_alloc_retries=num_ooms, num_ooms=num_ooms, num_sync_all_streams=num_ooms, num_device_alloc=2, num_device_free=0, max_split_size=-1)
    return stats


def _nested_stats(device=None):
    nested = {}
    for name, value in _memory_stats(device).items():
        into = nested
        *outer, last = name.split(".")
        for part in outer:
            into = into.setdefault(part, {})
        into[last] = value
    return nested


def _record_memory_history(
    enabled="all", context="all", stacks="all", max_entries=1 << 62, device=None, clear_history=False, compile_context=False,
    global_record_annotations=False, skip_actions=None,
):
    calls.append(("history", enabled, context, stacks, max_entries, clear_history, global_record_annotations))


def _set_memory_metadata(text):
    global metadata
    metadata = text


class _OutOfMemoryError(RuntimeError):
    pass


def _init():
    global initialized
    if _is_initialized():
        return
    if initialized is not None:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess.")
    for call in queued:
        call()
    initialized = os.getpid()


def _is_initialized():
    return initialized == os.getpid()


def _lazy_call(call):
    if _is_initialized():
        call()
    else:
        queued.append(call)


def _mem_get_info(device):
    calls.append(("mem_get_info", device))
    return (FREE, TOTAL)


_C = types.SimpleNamespace(
    _cuda_attach_out_of_memory_observer=observers.append,
    _cuda_hasPrimaryContext=lambda device: device == 0,
)
cuda = types.SimpleNamespace(
    OutOfMemoryError=_OutOfMemoryError,
    init=_init,
    is_initialized=_is_initialized,
    _lazy_call=_lazy_call,
    device_count=lambda: devices,
    current_device=lambda: 0,
    memory_stats=_memory_stats,
    memory_reserved=lambda: 22 * MIB,
    empty_cache=lambda: calls.append(("empty_cache",)),
    mem_get_info=_mem_get_info,
    get_device_properties=lambda device: types.SimpleNamespace(name="Fake GPU", total_memory=TOTAL, major=9, minor=0),
    memory=types.SimpleNamespace(
        _record_memory_history=_record_memory_history,
        memory_stats_as_nested_dict=_nested_stats,
        _snapshot=_snapshot,
        _set_memory_metadata=_set_memory_metadata,
        get_per_process_memory_fraction=lambda device: LIMIT / TOTAL,
    ),
)
