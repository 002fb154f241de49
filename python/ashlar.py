"""Record the GPU memory of a PyTorch job, and keep the record when it dies.

    import ashlar
    ashlar.record()

Copy this one file beside the job; it needs nothing but Python 3.9 and PyTorch
2.1 or later. To leave a script unchanged, run it through this file instead:

    python ashlar.py train.py --batch 8
    torchrun --nproc-per-node 8 ashlar.py train.py --batch 8

A file is written when the job runs out of GPU memory, at a signal
(on_signal="SIGUSR1"), and at ashlar.dump(). It is the pickle that
torch.cuda.memory._dump_snapshot() writes, with one more key, "ashlar": what a
snapshot lacks (the statistics, the message, the limit, the devices, the step).
Ashlar, pickle.load without torch, and PyTorch's memory_viz page can read it.

Call ashlar.step() at the beginning of each step to number the steps.

ashlar.retry(), monitor() and async_save() act on the job: they try a pass again after an
OOM, give back idle cache, save while the job goes on. docs/jobs.md of Ashlar has more.

ashlar.watch() has a thread tell `ashlar watch` once a second how much memory the
job has, so that it can be seen while it runs. Without it, nothing is sent.

How it behaves in a job:

* record() does not import torch and does not touch the GPU. Recording starts
  when the job initialises CUDA, so the job may still set its environment.
* Nothing here raises into the job or takes GPU memory. A failure is one line on
  standard error.
* A file appears under its name when it is complete, and is never changed in
  place: a better version replaces it.
* Libraries provoke OOMs and catch them: cuDNN tries algorithms this way, and
  loops halve their batch. So the first OOM of a process is written under
  `path`, and some of the later ones replace `...-last`: writing may take a tenth
  of the time, and at least MIN_GAP seconds lie between two files. The OOM that
  kills the job is still written: if it was left out, the exception that reaches
  the top of a thread, or the end of the process soon after, causes it to be
  written; its event and what came before are in the history.
* The text of the error is not known yet when PyTorch reports an OOM. The file
  is written without it, and rewritten when the exception is seen: at the top of
  a thread, or at a `with ashlar.guard():` for jobs that catch exceptions
  themselves.

docs/recording.md of Ashlar describes the file.
"""
import atexit
import collections
import collections.abc
import functools
import gc
import importlib.machinery
import inspect
import io
import json
import mmap
import numbers
import os
import pickle
import shutil
import signal
import socket
import stat
import struct
import subprocess
import sys
import threading
import time
import traceback
import types

__all__ = ["record", "watch", "dump", "step", "guard", "stop", "retry", "oom_retry", "monitor", "async_save"]

VERSION = 1  # of the dictionary under "ashlar"

# The pause after an OOM file. A snapshot of a long history takes seconds, and
# an OOM that is caught must not slow the job down much.
MIN_GAP = 10.0  # seconds
GAP_PER_COST = 9  # times what the file took: at most a tenth of the time is spent

MAX_STEPS = 10000  # marks of steps that are kept
WAIT = 60.0  # seconds to wait for another thread that is writing

VARIABLES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF", "PYTORCH_ALLOC_CONF")
RANKS = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")

# Signals that end a process which does not handle them. SIGUSR1 and SIGUSR2 do
# too, but they exist to be given a meaning: the job goes on after them.
ENDS = ("SIGHUP", "SIGINT", "SIGQUIT", "SIGTERM", "SIGBREAK", "SIGABRT", "SIGALRM", "SIGVTALRM", "SIGPROF", "SIGPIPE", "SIGIO", "SIGPWR",
        "SIGSTKFLT", "SIGSYS", "SIGTRAP", "SIGXCPU", "SIGXFSZ")
# After a handler in Python the faulty instruction is run again, for ever.
CRASHES = ("SIGSEGV", "SIGBUS", "SIGFPE", "SIGILL")


def record(path="ashlar-{rank}-{pid}.pickle", max_entries=500_000, stacks="python", on_oom=True, on_signal=None, keep=2, run=None, commit=None, tags=None):
    """Switch the memory history on, and write it when the job runs out of memory.

    path         where to write; {rank} and {pid} are filled in
    max_entries  events that PyTorch keeps for each device; older ones are lost
    stacks       "python", or "all" for C++ frames too, which is slow
    on_oom       write when a request for memory fails
    on_signal    write at this signal as well: "SIGUSR1". One that would have ended
                 the job, "SIGTERM", still does, when the file is written
    keep         OOM files of one process: the first keep-1, and the last
    run          a name for the job, for `ashlar fleet`; by default ASHLAR_RUN, or
                 the job's number of torchrun, Slurm or Ray
    commit       of the code; by default ASHLAR_COMMIT
    tags         a dictionary of texts
    """
    try:
        _recorder.configure(path, max_entries, stacks, on_oom, on_signal, keep, {"run": run, "commit": commit, "tags": tags})
    except Exception as e:
        _log("nothing is recorded: %r" % e)
    if os.environ.get("ASHLAR_WATCH"):
        watch()


def watch(to=None, interval=1.0, run=None, commit=None, tags=None, allow=("snapshot",)):
    """Tell `ashlar watch` how much memory the job has, until it ends.

    to        where it listens: unix:PATH or 127.0.0.1:PORT; by default what
              ASHLAR_WATCH says, or its default socket
    interval  seconds between two samples, at most 3600
    run       a name for the job; by default that of torchrun, Slurm or Ray, or
              the script's
    commit    of the code; by default ASHLAR_COMMIT, or what .git says
    tags      a dictionary of texts
    allow     what an alarm may ask the job to do: "snapshot" (as dump() does),
              "empty_cache" (done inside step())
    """
    try:
        _watcher.configure(to, interval, run, commit, tags, allow)
    except Exception as e:
        _log("nothing is watched: %r" % e)


def dump(path=None, note=None):
    """Write a file now and return its name, or None if that failed."""
    return _recorder.write("call", path=path, note=note, wait=WAIT)


def step(n=None):
    """Say that step n begins; without n, the one after the last, from 1.

    Events that this thread causes from here on carry "step n" as user_metadata
    if this PyTorch can do that (2.10 and later can). Those of the backward pass, which has
    threads of its own, do not; the file has the time of each step for them.
    """
    try:
        _recorder.mark(n)
        _watcher.at_step()
    except Exception as e:
        _log("step: %r" % e)
    for each in list(_monitors):
        each.step()
    _mark_tiers()


def _mark_tiers():
    """With Ashlar as PyTorch's allocator, a step is a moment at which memory may move."""
    for name in ("ashlar_torch", "ashlar_mem.ashlar_torch"):
        allocator = sys.modules.get(name)
        try:
            if allocator is not None and allocator.enabled():
                allocator.step()
        except Exception as e:
            _log("step: %r" % e)


class guard:
    """A context that adds the text of an OOM error that leaves it to the file.

    For jobs in which something further out catches the exception. It passes
    every exception on.
    """

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        _recorder.saw(error, fatal=False)
        return False


def stop():
    """Switch the history off, write no more files, send nothing more."""
    try:
        _watcher.stop()
        _recorder.stop()
    except Exception as e:
        _log("stop: %r" % e)


class _Written:
    """An OOM file: enough to rewrite it with other facts."""

    def __init__(self, path, head, facts, ooms):
        self.path, self.head, self.facts, self.ooms = path, head, facts, ooms


class _Recorder:
    def __init__(self):
        self.path = "ashlar-{rank}-{pid}.pickle"
        self.path = _attempt(os.path.abspath, self.path) or self.path  # the folder may be gone
        self.max_entries, self.stacks, self.keep = None, None, 2
        self.names = {}  # of the job: run, commit and tags
        self.on_oom = False
        self.hooked = False
        self.finder = None  # waits for torch
        self.attached = None  # the process in which the observer is attached
        self.previous = {}  # by signal, the handler before ours
        self.step = None
        self.steps = collections.deque(maxlen=MAX_STEPS)
        self.reset()

    def reset(self):
        """Start afresh, as in a forked process."""
        self.pid = os.getpid()
        self.begun = time.time_ns()
        self.mine = {}  # by path, what a file was like when it was written here
        self.lock = threading.RLock()  # a signal may come between taking it and saying so
        self.writer = None  # the thread that is writing
        self.collecting = False  # whether it switched the collector off
        self.ending = None  # the signal that ends the process after this file
        self.ooms = 0  # seen by the observer
        self.request = None  # what it was told at the last one
        self.files = 0  # written for OOMs
        self.dumps = 0  # written for calls and signals
        self.last = None  # the last OOM file
        self.skipped = None  # when an OOM was left out that no later file covers
        self.gap = MIN_GAP
        self.ready = 0.0  # when the next OOM may be written

    def forked(self):
        """In the child of a fork, where the thread that was writing is not.

        The child is not recorded before it initialises CUDA itself. If its
        parent had done that, PyTorch does not let it.
        """
        collecting = self.collecting
        self.reset()
        self.pid = None
        if collecting:
            gc.enable()

    def configure(self, path, max_entries, stacks, on_oom, on_signal, keep, names):
        self.path = os.path.abspath(os.fspath(path))
        self.names = names
        self.max_entries, self.stacks, self.keep = int(max_entries), stacks, max(1, int(keep))
        self.on_oom = bool(on_oom)
        if self.on_oom and not self.hooked:
            self.hooked = True
            self.hook()
        if self.on_oom:
            try:
                _check_target(self.path)
            except Exception as e:
                _log("no OOM will be written: %s" % e)
        if on_signal is not None:
            self.listen(on_signal)
        if "torch" in sys.modules:
            self.arm()
        elif self.finder is None:
            self.finder = _TorchFinder()
            sys.meta_path.insert(0, self.finder)

    def arm(self):
        """Call start when CUDA is initialised, or now if it is."""
        torch = sys.modules["torch"]
        if not hasattr(torch._C, "_cuda_attach_out_of_memory_observer"):
            built = _attempt(lambda: torch.version.cuda or torch.version.hip)
            _log("nothing is recorded: " + ("PyTorch 2.0 or later is needed" if built else "this PyTorch has no CUDA"))
            return
        torch.cuda._lazy_call(self.start)

    def start(self):
        if self.max_entries is None:  # stopped in the meantime
            return
        if self.pid != os.getpid():
            self.reset()
        torch = sys.modules["torch"]
        try:
            self.switch_on(torch.cuda.memory._record_memory_history)
        except Exception as e:
            _log("the memory history cannot be switched on: %s" % e)
        _attempt(self.tell_step, torch)
        if not self.on_oom or self.attached == self.pid:
            return
        try:
            torch._C._cuda_attach_out_of_memory_observer(self.observe)
            self.attached = self.pid
        except Exception as e:
            _log("OOMs are not seen before their exception: %s" % e)

    def switch_on(self, switch):
        known = inspect.signature(switch).parameters
        more = {}
        if "clear_history" in known:  # PyTorch crashes if max_entries shrinks without
            more["clear_history"] = True
        else:
            switch(enabled=None)
        # Annotations are taken from the thread that switches recording on.
        if "global_record_annotations" in known and threading.current_thread() is not threading.main_thread():
            more["global_record_annotations"] = True
        switch(enabled="all", context="all", stacks=self.stacks, max_entries=self.max_entries, **more)

    def stop(self):
        self.on_oom, self.max_entries = False, None
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            torch.cuda.memory._record_memory_history(enabled=None)
        for number, previous in list(self.previous.items()):
            if signal.getsignal(number) == self.signalled:
                signal.signal(number, previous)  # in the main thread only
            del self.previous[number]

    # Occasions to write.

    def observe(self, device, segment_bytes, allowed_bytes, free_bytes):
        """PyTorch calls this at each OOM, before it raises the error."""
        try:
            if not self.on_oom:
                return
            self.ooms += 1
            self.request = (device, segment_bytes, allowed_bytes, free_bytes)
            if time.monotonic() < self.ready or self.write("oom") is None:
                self.skipped = time.monotonic()
        except Exception as e:
            _log("OOM: %r" % e)

    def saw(self, error, fatal):
        """Note an exception. fatal: nobody will catch it."""
        try:
            error = _oom_of(error)
            if error is None or not self.on_oom or self.pid != os.getpid() or getattr(error, "_ashlar_seen", False):
                return
            text = str(error)
            if isinstance(error, _oom_type()) and self.last is not None and self.last.ooms == self.ooms and self.last.facts["message"] is None:
                done = self.amend(text)
            elif fatal or time.monotonic() >= self.ready:
                done = self.write("oom", message=text, late=True, wait=WAIT)
            else:
                return
            if done:
                error._ashlar_seen = True
        except Exception as e:
            _log("%r" % e)

    def listen(self, name):
        try:
            number = signal.Signals[name] if isinstance(name, str) else signal.Signals(name)
            if number.name in CRASHES:
                raise ValueError("a crash cannot be handled in Python")
            previous = signal.getsignal(number)
            if previous is None:
                raise ValueError("it has a handler that is not Python's")
            signal.signal(number, self.signalled)  # in the main thread only
        except (KeyError, ValueError, OSError) as e:
            _log("signal %s is not listened to: %s" % (name, e))
            return
        if previous != self.signalled:
            self.previous[number] = previous

    def signalled(self, number, frame):
        if number not in self.previous:  # stopped, and called by a handler that came after
            return
        previous = self.previous[number]
        # A handler that came after ours and calls it decides itself what the signal does.
        ends = previous == signal.SIG_DFL and signal.Signals(number).name in ENDS and signal.getsignal(number) == self.signalled
        later = ends and self.writer == threading.get_ident()
        if later:
            self.ending = number
        if self.pid == os.getpid() and self.max_entries is not None:
            self.write("signal", wait=WAIT if ends else 0.0)
        if callable(previous):
            previous(number, frame)
        elif ends and not later:
            self.end(number)

    def end(self, number):
        """Let a signal do what it would do without us."""
        try:
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        except Exception as e:
            _log("signal %d: %r" % (number, e))

    def hook(self):
        """Hook into uncaught exceptions and the end of the process."""
        top, thread_top = sys.excepthook, threading.excepthook

        def excepthook(kind, error, trace):
            self.saw(error, fatal=True)
            top(kind, error, trace)

        def thread_excepthook(args):
            self.saw(args.exc_value, fatal=True)
            thread_top(args)

        sys.excepthook, threading.excepthook = excepthook, thread_excepthook
        atexit.register(self.at_exit)

    def at_exit(self):
        """Write an OOM that was left out a moment ago: it may be why we end."""
        if self.on_oom and self.pid == os.getpid() and self.skipped is not None and time.monotonic() - self.skipped < self.gap:
            self.write("oom", late=True, wait=WAIT)

    # Writing.

    def enter(self, wait):
        """Take the lock and return it, or None if a file is being written."""
        lock = self.lock
        if not lock.acquire(timeout=wait):
            return None
        if self.writer is not None:  # this thread, which a signal interrupted
            lock.release()
            return None
        self.writer = threading.get_ident()
        return lock

    def leave(self, lock):
        ending, self.ending, self.writer = self.ending, None, None
        lock.release()
        if ending is not None:
            self.end(ending)

    def write(self, reason, path=None, note=None, message=None, late=False, wait=0.0):
        """Write a file. Returns its name, or None after saying why not."""
        lock = self.enter(wait)
        if lock is None:
            _log("%s: left out, a file is being written" % reason)
            return None
        begin, collecting = time.monotonic(), gc.isenabled()
        try:
            self.collecting = collecting
            gc.disable()  # millions of dictionaries come, none of them garbage
            path, size = self.write_locked(reason, path, note, message, late)
            _log("%s: wrote %s, %.1f MB in %.1f s" % (reason, path, size / 1e6, time.monotonic() - begin))
            return path
        except Exception as e:
            _log("%s: no file is written: %r" % (reason, e))
            return None
        finally:
            if collecting:
                gc.enable()
            self.collecting = False
            if reason == "oom":  # a failure may have taken as long
                end = time.monotonic()
                self.gap = max(MIN_GAP, GAP_PER_COST * (end - begin))
                self.ready = end + self.gap
            self.leave(lock)

    def write_locked(self, reason, path, note, message, late):
        torch = sys.modules.get("torch")
        if torch is None or not torch.cuda.is_initialized():
            raise RuntimeError("CUDA is not initialised in this process")
        ooms, request = self.ooms, None
        if reason == "oom" and ooms > (self.last.ooms if self.last else 0):
            request = self.request  # else this one is not the allocator's: cuBLAS, say
        facts = _facts(torch, reason, request)
        facts.update(note=note, message=message, late=late, ooms=ooms, max_entries=self.max_entries)
        facts.update(step=self.step, steps=list(self.steps))
        facts.update(_attempt(_job, self.names) or {})
        path = self.name(reason, facts["rank"], path)
        _check_target(path)
        snapshot = torch.cuda.memory._snapshot()
        if request is not None:
            facts["request_bytes"] = _failed_request(snapshot, facts["device"])
        path, head, size = self.store(path, snapshot, facts)
        if reason == "oom":
            self.files += 1
            self.skipped = None
            self.last = _Written(path, head, facts, ooms)
        else:
            self.dumps += 1
        return path, size

    def store(self, path, snapshot, facts):
        """Write a file, under a name of its own if another process of the job has taken this one."""
        there = _identity(path)
        if there is not None and there != self.mine.get(path) and there[0] >= self.begun and _attempt(_recorded, path):
            path = _own(path)
            there = _identity(path)
        tail = _tail(facts)
        with _Part(path, there) as part:
            pickle.dump(snapshot, part.file, protocol=4)  # the memory_viz page reads 2 to 4
            head = part.file.seek(-1, os.SEEK_END)
            part.file.write(tail)
            size = part.file.tell()
        if part.taken:
            path = _own(path)
        self.mine[path] = _identity(path)
        return path, head, size

    def name(self, reason, rank, path):
        """The name of the next file."""
        if path is None:
            stem, ending = os.path.splitext(self.path)
            if reason != "oom":
                stem += "-%s-%d" % (reason, self.dumps + 1)
            elif self.keep > 1 and self.files >= self.keep - 1:
                stem += "-last"
            elif self.keep > 1 and self.files > 0:
                stem += "-%d" % (self.files + 1)
            path = stem + ending
        path = os.path.abspath(os.fspath(path))
        return path.replace("{rank}", str(rank)).replace("{pid}", str(os.getpid()))

    def amend(self, message):
        """Rewrite the last OOM file with the text of the error."""
        lock = self.enter(WAIT)
        if lock is None:
            return False
        try:
            old = self.last
            facts = dict(old.facts, message=message)
            if _identity(old.path) != self.mine.get(old.path):
                raise RuntimeError("it was changed by somebody else")
            _replace(old.path, old.head, facts)
            self.mine[old.path] = _identity(old.path)
            self.last = _Written(old.path, old.head, facts, old.ooms)
            return True
        except Exception as e:
            _log("the error's text is not added to %s: %r" % (self.last.path, e))
            return False
        finally:
            self.leave(lock)

    def mark(self, n):
        if n is None:
            n = 1 if self.step is None else self.step + 1
        self.step = int(n)
        self.steps.append((self.step, time.time_ns() // 1000))
        torch = sys.modules.get("torch")
        if torch is not None and torch.cuda.is_initialized():
            self.tell_step(torch)

    def tell_step(self, torch):
        tell = getattr(torch.cuda.memory, "_set_memory_metadata", None)
        if tell is not None and self.step is not None:
            tell("step %d" % self.step)


# The facts.


def _facts(torch, reason, request):
    """What a snapshot lacks. request: what the observer was given."""
    cuda = torch.cuda
    device, segment, allowed, free = request or (None, None, None, None)
    if device is None:
        device = _attempt(cuda.current_device)
    facts = {
        "version": VERSION,
        "torch": str(torch.__version__),
        "cuda": getattr(torch.version, "cuda", None),
        "hip": getattr(torch.version, "hip", None),
        "reason": reason,
        "time_us": time.time_ns() // 1000,
        "pid": os.getpid(),
        "rank": _rank(torch),
        "device": device,
        "settings": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "segment_bytes": segment,
        "device_free_bytes": free,
        "request_bytes": None,
        "limit_bytes": None,
        "limit_known": False,
        "memory_stats": {},
        "devices": [],
    }
    for i in range(_attempt(cuda.device_count) or 0):
        here = _has_context(torch, i, device)
        if here:
            stats = _attempt(cuda.memory_stats, i)
            if stats:
                facts["memory_stats"][str(i)] = dict(stats)
        entry = _device(cuda, i, here, allowed if i == device else None)
        facts["devices"].append(entry)
        if i == device:
            facts["limit_bytes"], facts["limit_known"] = entry["limit_bytes"], entry["limit_known"]
    return facts


def _job(names):
    """What tells this job from others, as far as it was said."""
    tags = _attempt(dict, names.get("tags"))
    said = {
        "run": names.get("run") or os.environ.get("ASHLAR_RUN") or _job_number(), "attempt": _first_number(ATTEMPTS, None),
        "world": _first_number(WORLDS, None), "commit": names.get("commit") or os.environ.get("ASHLAR_COMMIT"),
        "tags": {str(k): str(v) for k, v in tags.items()} if tags else None,
    }
    return {k: v if k in ("attempt", "world", "tags") else str(v) for k, v in said.items() if v is not None}


def _device(cuda, i, here, allowed):
    """One device. Asking for free memory would make a context where there is
    none, and that takes memory."""
    properties = _attempt(cuda.get_device_properties, i)
    free, total = (_attempt(cuda.mem_get_info, i) if here else None) or (None, None)
    physical = getattr(properties, "total_memory", None)
    major, minor = getattr(properties, "major", None), getattr(properties, "minor", None)
    limit, known = None, False
    fraction = _attempt(getattr(cuda.memory, "get_per_process_memory_fraction", None), i) if here else None
    if allowed is not None and total is not None:  # the limit if there is one, else the total
        limit, known = None if allowed == total else allowed, True
    elif fraction is not None and physical is not None:
        # PyTorch returns limit/physical, so the product is whole but for the last digits.
        limit, known = None if fraction >= 1 else round(fraction * physical), True
    return {
        "index": i,
        "name": getattr(properties, "name", None),
        "capability": None if major is None else "%s.%s" % (major, minor),
        "total_memory": physical,
        "free_bytes": free,
        "total_bytes": total,
        "limit_bytes": limit,
        "limit_known": known,
    }


def _has_context(torch, i, device):
    ask = getattr(torch._C, "_cuda_hasPrimaryContext", None)
    return bool(_attempt(ask, i)) if ask is not None else i == device


def _rank(torch):
    distributed = getattr(torch, "distributed", None)
    if distributed is not None and _attempt(distributed.is_available) and _attempt(distributed.is_initialized):
        return _attempt(distributed.get_rank)
    for name in RANKS:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return 0


def _failed_request(snapshot, device):
    """The size of the last oom event: the request, rounded by the allocator."""
    traces = snapshot.get("device_traces", ())
    if device is not None and device < len(traces):
        for event in reversed(traces[device]):
            if event.get("action") == "oom":
                return event.get("size")
    return None


def _oom_of(error):
    """The OOM error that an exception is or was caused by, or None."""
    for each in _causes(error):
        if isinstance(each, _oom_type()):
            return each
        if isinstance(each, RuntimeError) and ("out of memory" in str(each) or "ALLOC_FAILED" in str(each)):
            return each
    return None


def _causes(error):
    """An exception and those behind it; only so many, as one may be its own cause."""
    for _ in range(20):
        if error is None:
            return
        yield error
        error = error.__cause__ or error.__context__


def _oom_type():
    """The error of the allocator. Libraries raise plain RuntimeErrors."""
    return getattr(getattr(sys.modules.get("torch"), "cuda", None), "OutOfMemoryError", ())


def _attempt(call, *args):
    """The result of call, or None if it fails: one fact less."""
    try:
        return call(*args)
    except Exception:
        return None


# The file. It is the pickle of the snapshot, whose last byte, STOP, gives way
# to opcodes that add the facts to the dictionary on the stack: MARK, key, value,
# SETITEMS, STOP. So the facts can be changed later by copying the head, without
# holding the snapshot in memory or loading it.


def _replace(path, head, facts):
    """Rewrite a file with other facts."""
    tail = _tail(facts)
    with open(path, "rb") as old, _Part(path, _identity(path)) as part:
        left = head
        while left > 0:
            piece = old.read(min(left, 1 << 20))
            if not piece:
                raise EOFError("the file is shorter than it was")
            part.file.write(piece)
            left -= len(piece)
        part.file.write(tail)


def _identity(path):
    """What tells a file from others of its name, its time first; None if there is none."""
    there = _attempt(os.stat, path)
    return there and (there.st_mtime_ns, there.st_size, there.st_ino, there.st_dev)


def _recorded(path):
    """Whether a recorder has written a file."""
    if not os.path.isfile(path):
        return False  # to open a pipe may wait for ever
    with open(path, "rb") as f:
        f.seek(max(0, os.path.getsize(path) - (1 << 21)))
        return _pickled("ashlar") + b"}(" in f.read()


def _own(path):
    folder, name = os.path.split(path)
    stem, ending = os.path.splitext(name)
    return os.path.join(folder, "%s-%d%s" % (_cut(stem), os.getpid(), ending))


def _cut(name):
    """As much of a file's name as leaves room for more: most file systems have 255 bytes."""
    data = os.fsencode(name)
    return name if len(data) <= 200 else data[:200].decode("utf-8", "ignore")


def _check_target(path):
    """Raise an error if what is at path must not be replaced by a file."""
    try:
        there = os.stat(path)
    except FileNotFoundError:
        return
    if not stat.S_ISREG(there.st_mode):
        raise OSError("%s is there and is not a regular file" % path)
    for number in range(3):  # path may be /dev/stdout, whatever that is
        stream = _attempt(os.fstat, number)
        if stream is not None and os.path.samestat(there, stream):
            raise OSError("%s is the job's standard input or output" % path)


class _Part:
    """A file that gets its name when it is complete.

    A symbolic link stays, and the file it leads to is the one that is replaced; who may
    read that one may read this one.
    old is the file that may be replaced, None if there is none. If another process
    has meanwhile written one of that name, this becomes one with our number. With
    newest, that takes a file which is new and was written meanwhile: where the old one
    was moved, deleted or touched, or an earlier one took its place, this one follows.

    Where Linux can, the file has no name before: a job that is killed leaves none.
    """

    def __init__(self, path, old, newest=False):
        path = os.path.realpath(path)
        self.folder, name = os.path.split(path)
        os.makedirs(self.folder, exist_ok=True)
        self.path, self.old, self.newest = path, old, newest
        there = _attempt(os.stat, path)
        self.mode = there and stat.S_IMODE(there.st_mode) & 0o777
        self.part = os.path.join(self.folder, ".%s.%d.part" % (_cut(name), os.getpid()))
        self.named = self.taken = False

    def __enter__(self):
        nameless = None
        if hasattr(os, "O_TMPFILE") and os.path.exists("/proc/self/fd"):  # by which it gets its name
            nameless = _attempt(os.open, self.folder, os.O_TMPFILE | os.O_RDWR, 0o666)
        self.named = nameless is None
        self.file = open(self.part if self.named else nameless, "wb")
        self.keep_mode(self.file)
        self.begun = os.stat(self.file.fileno()).st_mtime_ns  # by the clock of the file system
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                self.file.flush()  # the last bytes may not fit on the disk
                self.commit()
        finally:
            self.file.close()
            if self.named and os.path.exists(self.part):
                os.remove(self.part)
        return False

    def commit(self):
        _check_target(self.path)  # time has passed
        if not self.named:
            _attempt(os.remove, self.part)  # of an earlier process with our number
            try:
                os.link("/proc/self/fd/%d" % self.file.fileno(), self.part, src_dir_fd=0)  # which has links followed
                self.named = True
            except OSError:  # a file system without links, or a container that refuses them
                self.copy()
        if self.newest:
            os.utime(self.part)  # for the begun of others: bytes may have been written long before they are on the disk
        if _identity(self.path) is None and (self.old is None or self.newest):
            try:
                os.link(self.part, self.path)
                return
            except OSError:
                pass  # another was faster, or a file system without links
        if not self.free():
            self.taken, self.path = True, _own(self.path)
        os.replace(self.part, self.path)

    def copy(self):
        """Write what has no name once more, with one."""
        at, number = 0, self.file.fileno()
        with open(self.part, "wb") as named:
            self.named = True
            self.keep_mode(named)
            while True:
                piece = os.pread(number, 1 << 24, at)
                if not piece:
                    break
                named.write(piece)
                at += len(piece)
            named.flush()
            os.fsync(named.fileno())

    def keep_mode(self, file):
        if self.mode is not None:
            _attempt(os.chmod, file.fileno(), self.mode)

    def free(self):
        """Whether what has the name now may be replaced."""
        there = _identity(self.path)
        if there == self.old or not self.newest:
            return there == self.old
        return there is None or there[0] < self.begun or (self.old is not None and there[2:] == self.old[2:])


def _tail(facts):
    return b"(" + _pickled("ashlar") + _pickled(facts) + b"u."


def _pickled(value):
    """Plain values as opcodes that need no memo, as that is the snapshot's."""
    if value is None:
        return b"N"
    if isinstance(value, bool):
        return b"\x88" if value else b"\x89"
    if isinstance(value, int):
        data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
        if len(data) > 255:
            return _pickled(hex(value))
        return b"\x8a" + bytes([len(data)]) + data
    if isinstance(value, float):
        return b"G" + struct.pack(">d", value)
    if isinstance(value, dict):
        return b"}(" + b"".join(_pickled(str(k)) + _pickled(v) for k, v in value.items()) + b"u"
    if isinstance(value, (list, tuple)):
        return b"](" + b"".join(map(_pickled, value)) + b"e"
    text = str(value).encode("utf-8", "backslashreplace")
    return b"X" + struct.pack("<I", len(text)) + text


def _log(text):
    try:
        sys.stderr.write("ashlar: %s\n" % text)
        sys.stderr.flush()
    except Exception:
        pass


class _TorchFinder:
    """Waits for the job's own import of torch."""

    def find_spec(self, name, path=None, target=None):
        if name != "torch":
            return None
        for finder in list(sys.meta_path):
            if finder is self or not hasattr(finder, "find_spec"):
                continue
            spec = finder.find_spec(name, path, target)
            if spec is not None:
                self.wrap(spec.loader)
                return spec
        return None

    def wrap(self, loader):
        def exec_module(module):
            run(module)
            try:
                if self in sys.meta_path:
                    sys.meta_path.remove(self)
                    _recorder.finder = None
                    _recorder.arm()
            except Exception as e:
                _log("nothing is recorded: %r" % e)

        try:
            run = loader.exec_module
            loader.exec_module = exec_module
        except Exception as e:
            _log("nothing is recorded: %r" % e)


_recorder = _Recorder()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_recorder.forked)


# Watching. What is said to whom is in docs/watch.md of Ashlar.

RING = 600  # samples that wait for a server
BATCH = 100  # samples in one message
ANSWER = 5.0  # seconds that a server may take
LAST = 1.0  # seconds that it may take when the job ends
RETRY = 5.0  # seconds between attempts to reach it, at most
MOST_INTERVAL = 3600  # seconds between two samples: a server that starts knows the jobs of the last hour

LOCAL_RANKS = ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID")
WORLDS = ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE", "PMI_SIZE")
ATTEMPTS = ("TORCHELASTIC_RESTART_COUNT", "SLURM_RESTART_COUNT")


class _Watcher:
    def __init__(self):
        self.options = None  # of watch()
        self.registered = False
        self.reset()

    def reset(self):
        """Start afresh, as in a forked process."""
        self.pid = None  # the process whose thread runs
        self.thread = None
        self.ending = threading.Event()
        self.session = None
        self.seq = 0
        self.lost = 0
        self.ring = collections.deque()
        self.said = None  # the rank of the last hello; None: none
        self.connection = None
        self.statm = None  # /proc/self/statm
        self.silent_until = 0.0
        self.pause = 0.0
        self.reported = False
        self.done = collections.deque(maxlen=100)  # asks that were answered
        self.results = collections.deque(maxlen=100)
        self.empty = None  # the ask for empty_cache
        self.ready = 0.0  # when the next snapshot may be written
        self.said_large = False  # that one is too large for the server

    def configure(self, to, interval, run, commit, tags, allow):
        address = to or os.environ.get("ASHLAR_WATCH") or "unix:" + _default_socket()
        _parse_address(address)  # a wrong one is said here
        interval = float(interval)
        if not 0 < interval <= MOST_INTERVAL:  # nor is NaN
            raise ValueError("interval is %r: write seconds, more than 0 and at most %d" % (interval, MOST_INTERVAL))
        allow = (allow,) if isinstance(allow, str) else allow
        self.options = {
            "to": address, "interval": max(0.1, interval), "run": run, "commit": commit,
            "tags": {str(k): str(v) for k, v in dict(tags or {}).items()}, "allow": [str(a) for a in allow],
        }
        self.said = None  # called again, it may say other things
        if not self.registered:
            self.registered = True
            atexit.register(self.finish)
        self.start()

    def start(self):
        if self.pid == os.getpid():
            return
        self.reset()
        self.pid, self.session = os.getpid(), os.urandom(12).hex()
        self.thread = threading.Thread(target=self.loop, name="ashlar-watch", daemon=True)
        self.thread.start()

    def stop(self):
        self.finish()
        self.options = None

    def finish(self):
        """Send what is left. A server that hangs costs no more than LAST, twice."""
        thread, self.thread = self.thread, None
        if thread is None or self.pid != os.getpid():
            return
        self.ending.set()
        thread.join(2 * LAST + 1)

    def at_step(self):
        """Inside step(): what only the job's own thread may do."""
        if self.options is None:
            return
        if self.pid != os.getpid():  # a fork; it is watched if it has a GPU
            if _cuda() is not None:
                self.start()
            return
        asked, self.empty = self.empty, None
        torch = _cuda()
        if asked is None or torch is None:
            return
        before = _attempt(torch.cuda.memory_reserved)
        torch.cuda.empty_cache()
        after = _attempt(torch.cuda.memory_reserved)
        self.results.append({"id": asked, "result": "done", "before": before, "after": after})

    # In the thread.

    def loop(self):
        while not self.ending.wait(self.options["interval"]):
            try:
                self.sample()
                self.send()
            except Exception as e:
                self.report(e)
        try:
            self.silent_until = 0.0
            self.send(end=True)
        except Exception as e:
            self.report(e)
        _attempt(os.close, self.statm)

    def sample(self):
        torch = _cuda()
        if torch is None:
            return
        self.seq += 1
        steps = list(_recorder.steps)[-2:]
        common = {
            "seq": self.seq, "time_us": time.time_ns() // 1000, "step": steps[-1][0] if steps else None,
            "step_us": steps[1][1] - steps[0][1] if len(steps) == 2 else None, "host_rss": _attempt(self.resident),
        }
        rows = []
        for i in range(_attempt(torch.cuda.device_count) or 0):
            if _has_context(torch, i, _attempt(torch.cuda.current_device)):
                rows.append(dict(common, gpu=i, **_attempt(_numbers, torch, i) or {}))
        if not rows:
            return
        self.ring.append(rows)
        if len(self.ring) > RING:
            self.ring.popleft()
            self.lost += 1

    def resident(self):
        # It stays open: every call of the system gives the interpreter's lock away and waits for it again.
        if self.statm is None:
            self.statm = os.open("/proc/self/statm", os.O_RDONLY | os.O_CLOEXEC)
        return int(os.pread(self.statm, 200, 0).split()[1]) * mmap.PAGESIZE

    def send(self, end=False):
        if time.monotonic() < self.silent_until or self.seq == 0:
            return
        wait = LAST if end else ANSWER
        try:
            rank = _rank(sys.modules.get("torch"))
            if self.said != rank:
                self.hello(rank, wait)
            while self.results:
                self.post("/v1/result", dict(self.results[0], v=1, session=self.session), wait)
                self.results.popleft()
            while True:
                batch = list(self.ring)[:BATCH]
                last = end and len(batch) == len(self.ring)
                self.samples(batch, last, wait)
                if len(self.ring) == 0 or not batch:
                    break
            self.pause, self.reported = 0.0, False
        except Exception as e:
            self.disconnect()
            self.pause = min(RETRY, 2 * self.pause + self.options["interval"])
            self.silent_until = time.monotonic() + self.pause
            self.report(e)

    def hello(self, rank, wait):
        answer = self.post("/v1/hello", dict(_hello(sys.modules["torch"], self.options, rank), session=self.session), wait)
        if answer is None:
            raise OSError("the server does not take the hello")
        self.said = rank

    def samples(self, batch, end, wait):
        body = {"v": 1, "session": self.session, "samples": [row for rows in batch for row in rows], "lost": self.lost, "end": end}
        answer = self.post("/v1/samples", body, wait)
        if answer is None:  # it never will be taken
            self.lost += len(batch)
            stored = batch[-1][0]["seq"] if batch else 0
            asks = ()
        else:
            stored, asks = answer.get("stored", 0), answer.get("ask") or ()
        while self.ring and self.ring[0][0]["seq"] <= stored:
            self.ring.popleft()
        if batch and self.ring and self.ring[0] is batch[0]:
            raise OSError("the server stores nothing")
        for ask in asks if not end else ():
            early = ask["what"] == "snapshot" and time.monotonic() < self.ready  # it is asked for again
            if ask["id"] not in self.done and not early:
                self.answer(ask["id"], ask["what"])
                self.done.append(ask["id"])  # not before: the connection may break off

    def answer(self, ask, what):
        if what not in self.options["allow"]:
            self.results.append({"id": ask, "result": "left out: the job does not allow it"})
        elif what == "empty_cache":
            self.empty = ask
        elif what == "snapshot":
            begin = time.monotonic()
            try:
                problem = self.snapshot(ask)
            finally:
                self.ready = time.monotonic() + max(MIN_GAP, GAP_PER_COST * (time.monotonic() - begin))
            if problem:
                self.results.append({"id": ask, "result": problem})
        else:
            self.results.append({"id": ask, "result": "left out: this version does not know it"})

    def snapshot(self, ask):
        """Write a snapshot, send it, remove it. Returns what went wrong."""
        path = os.path.join(os.path.dirname(_recorder.path), ".ashlar-watch-%d.pickle" % os.getpid())
        if dump(path, note="alarm") is None:
            return "no snapshot could be written"
        try:
            from urllib.parse import quote

            with open(path, "rb") as f:
                length = os.fstat(f.fileno()).st_size
                target = "/v1/snapshot?session=%s&id=%s" % (self.session, quote(ask, safe=""))
                status, data = self.exchange(target, f, length, 10 * ANSWER)
        finally:
            os.remove(path)
        if status == 200:
            return None
        self.disconnect()  # it may not have read all
        if status == 413:  # the server notes that itself
            if not self.said_large:
                self.said_large = True
                _log("watch: a snapshot of %d MiB is too large for the server: start it with a larger --max-snapshot" % (length >> 20))
            return None
        if 400 <= status < 500:
            self.refused(target, data)
            return "the server does not take the snapshot"
        raise OSError("the server answers %d" % status)

    def post(self, target, document, wait):
        body = json.dumps(document).encode()
        return self.request(target, body, len(body), wait)

    def request(self, target, body, length, wait):
        """The answer, or None if the server will never take this."""
        status, data = self.exchange(target, body, length, wait)
        if status == 404 and target == "/v1/samples":  # another server, another store
            self.said = None
            raise OSError("the server does not know the job yet")
        if 400 <= status < 500:
            self.disconnect()  # it may not have read all
            self.refused(target, data)
            return None
        if status != 200:
            raise OSError("the server answers %d" % status)
        return json.loads(data)

    def exchange(self, target, body, length, wait):
        if self.connection is None:
            self.connection = _Connection(_parse_address(self.options["to"]), wait)
        return self.connection.post(target, body, length, wait)

    def refused(self, target, data):
        _log("watch: %s is refused: %s" % (target, data[:200].decode("utf-8", "replace").strip()))

    def disconnect(self):
        connection, self.connection = self.connection, None
        if connection is not None:
            _attempt(connection.close)

    def report(self, error):
        """Say once that nothing can be sent."""
        if not self.reported:
            self.reported = True
            _log("watch: nothing can be sent to %s for now: %s" % (self.options["to"] if self.options else "", error))

    def forked(self):
        """In the child of a fork: the thread and the connection are the parent's."""
        self.reset()


class _Connection:
    """HTTP over a unix socket or a port. http.client takes three times the CPU time."""

    def __init__(self, address, wait):
        if not isinstance(address, str):
            self.sock = socket.create_connection(address, wait)
            return
        if os.stat(address).st_uid not in (os.getuid(), 0):
            raise OSError("%s belongs to somebody else" % address)
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(wait)
        self.sock.connect(address)

    def close(self):
        self.sock.close()

    def post(self, target, body, length, wait):
        """Send bytes or a file; the answer's status and its body."""
        self.sock.settimeout(wait)
        # HTTP/1.0, so that the answer does not come in chunks.
        head = b"POST %s HTTP/1.0\r\nHost: localhost\r\nConnection: keep-alive\r\n" % target.encode()
        head += b"Content-Type: application/json\r\nContent-Length: %d\r\n\r\n" % length
        broken = None
        try:
            if isinstance(body, bytes):
                self.sock.sendall(head + body)
            else:
                self.sock.sendall(head)
                self.sock.sendfile(body)
        except (BrokenPipeError, ConnectionResetError) as e:
            broken = e  # a server that refuses may not read all before it answers
        try:
            return self.answer()
        except OSError as e:
            raise broken or e

    def answer(self):
        answer = self.receive(b"", lambda got: b"\r\n\r\n" in got)
        head, _, data = answer.partition(b"\r\n\r\n")
        lines = head.split(b"\r\n")
        status = int(lines[0].split()[1])
        fields = dict(line.lower().split(b": ", 1) for line in lines[1:] if b": " in line)
        size = int(fields[b"content-length"])
        return status, self.receive(data, lambda got: len(got) >= size)

    def receive(self, got, enough):
        while not enough(got):
            more = self.sock.recv(1 << 16)
            if not more or len(got) > 1 << 20:
                raise OSError("the server ended its answer early" if not more else "the server's answer is too long")
            got += more
        return got


def _default_socket():
    folder = os.environ.get("XDG_RUNTIME_DIR")
    folder = os.path.join(folder, "ashlar") if folder else "/tmp/ashlar-%d" % os.getuid()
    return os.path.join(folder, "watch.sock")


def _parse_address(address):
    """A path, or a pair of host and port."""
    if isinstance(address, str):
        path = address[5:] if address.startswith("unix:") else address if address.startswith("/") else None
        if path:
            return path
        host, colon, port = address.rpartition(":")
        if host in ("127.0.0.1", "localhost", "[::1]") and port.isdecimal() and len(port) < 6 and 0 < int(port) < 1 << 16:
            return host.strip("[]"), int(port)
    raise ValueError("%.200s is no address: write unix:PATH or 127.0.0.1:PORT" % (address,))


def _cuda():
    """torch if the job has initialised CUDA."""
    torch = sys.modules.get("torch")
    return torch if torch is not None and _attempt(lambda: torch.cuda.is_initialized()) else None


def _numbers(torch, i):
    """What the allocator and the driver say of device i, which has a context."""
    stats = torch.cuda.memory.memory_stats_as_nested_dict(i)

    def of(name, kind="current"):
        return stats.get(name, {}).get("all", {}).get(kind)

    device = _device(torch.cuda, i, True, None)
    pinned = _attempt(lambda: torch.cuda.memory.host_memory_stats_as_nested_dict()["allocated_bytes"]["current"])
    return {
        "allocated": of("allocated_bytes"), "active": of("active_bytes"), "reserved": of("reserved_bytes"),
        "requested": of("requested_bytes"), "inactive_split": of("inactive_split_bytes"), "pinned": pinned,
        "peak_allocated": of("allocated_bytes", "peak"), "peak_reserved": of("reserved_bytes", "peak"),
        "device_free": device["free_bytes"], "device_total": device["total_bytes"], "limit": device["limit_bytes"],
        "num_alloc_retries": stats.get("num_alloc_retries"), "num_ooms": stats.get("num_ooms"),
        "num_device_alloc": stats.get("num_device_alloc"), "num_device_free": stats.get("num_device_free"),
    }


def _hello(torch, options, rank):
    devices = []
    for i in range(_attempt(torch.cuda.device_count) or 0):
        properties = _attempt(torch.cuda.get_device_properties, i)
        uuid = getattr(properties, "uuid", None)
        devices.append({
            "index": i, "name": str(getattr(properties, "name", "")), "uuid": "GPU-%s" % uuid if uuid is not None else "",
            "total_bytes": getattr(properties, "total_memory", 0),
        })
    return {
        "v": 1, "run": str(options["run"] or _run_name()), "attempt": _first_number(ATTEMPTS, 0), "rank": rank or 0,
        "local_rank": _first_number(LOCAL_RANKS, 0), "world": _first_number(WORLDS, 1), "host": socket.gethostname(), "pid": os.getpid(),
        "torch": str(torch.__version__), "settings": {name: os.environ[name] for name in VARIABLES if name in os.environ},
        "devices": devices, "commit": str(options["commit"] or os.environ.get("ASHLAR_COMMIT") or _attempt(_commit) or ""),
        "tags": options["tags"], "allow": options["allow"],
    }


def _first_number(names, otherwise):
    for name in names:
        if os.environ.get(name, "").isdigit():
            return int(os.environ[name])
    return otherwise


def _job_number():
    """What torchrun, Slurm or Ray calls the job; None if none of them runs it."""
    of = os.environ.get
    if of("TORCHELASTIC_RUN_ID", "none") != "none":
        return of("TORCHELASTIC_RUN_ID")
    if of("SLURM_ARRAY_JOB_ID") and of("SLURM_ARRAY_TASK_ID"):
        return "%s_%s" % (of("SLURM_ARRAY_JOB_ID"), of("SLURM_ARRAY_TASK_ID"))
    return of("SLURM_JOB_ID") or of("RAY_JOB_ID")


def _run_name():
    return os.environ.get("ASHLAR_RUN") or _job_number() or os.path.basename(sys.argv[0] or "") or "python"


def _commit():
    """What HEAD is, read from .git: no program is run."""
    folder = os.path.dirname(os.path.abspath(sys.argv[0] or "."))
    while not os.path.exists(os.path.join(folder, ".git")):
        if folder == os.path.dirname(folder):
            return None
        folder = os.path.dirname(folder)
    git = os.path.join(folder, ".git")
    if os.path.isfile(git):  # a work tree
        git = os.path.join(folder, _read(git).partition("gitdir: ")[2])
    common = os.path.join(git, "commondir")
    common = os.path.join(git, _read(common)) if os.path.exists(common) else git
    head = _read(os.path.join(git, "HEAD"))
    if not head.startswith("ref: "):
        return head
    name = head[5:]
    for place in (git, common):
        if os.path.exists(os.path.join(place, name)):
            return _read(os.path.join(place, name))
    for line in _read(os.path.join(common, "packed-refs")).splitlines():
        if line.endswith(" " + name):
            return line.split()[0]
    return None


def _read(path):
    with open(path) as f:
        return f.read(1 << 20).strip()


_watcher = _Watcher()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_watcher.forked)


# Trying again after an OOM.

MOST_TRIES = 20  # of one call, should shrink never say that it is enough
DEPTH = 3  # of functions and containers that are searched for models
MOST_LOOKED = 10_000  # values in that search, the nearest first


def retry(fn, *args, shrink=None, params=None, **kwargs):
    """Return fn(*args, **kwargs); after an OOM, collect garbage, give back the cache, and try again.

    shrink  called with the arguments that failed; returns smaller ones, or None if
            there are none: a tuple or list of all positional arguments, or a
            dictionary of those that change, by name. Without it the same call is
            tried once more
    params  the model, optimizer or parameters that fn trains, besides those that fn
            leads to by its arguments, its closure and its globals. Only a model
            leads to its buffers

    fn is a forward and a backward pass, or only the first. Before it is called again,
    gradients, buffers of the model and random state are what they were. The OOM is
    raised, with the verdict as a note, if it happened in optimizer.step() or after
    it, or in one of several processes that train together: to do part of that twice,
    or in one process alone, would spoil the training.
    """
    _check_call(fn)
    return _retry(fn, args, kwargs, shrink, _listed(params))


def oom_retry(fn=None, *, smaller=None, params=None):
    """Make of a function one that is called as retry does; smaller is retry's shrink.

        @ashlar.oom_retry(smaller=lambda batch, rows: (batch, rows // 2) if rows > 1 else None)
        def forward_backward(batch, rows): ...
    """

    params = _listed(params)

    def decorate(fn):
        _check_call(fn)

        @functools.wraps(fn)
        def call(*args, **kwargs):
            return _retry(fn, args, kwargs, smaller, params)

        return call

    return decorate if fn is None else decorate(fn)


def _retry(fn, args, kwargs, shrink, params):
    torch = sys.modules.get("torch")
    if torch is None:
        return fn(*args, **kwargs)
    if params is not None and not _trained(torch, [params])[0]:
        raise ValueError("params has no parameters: name the model, the optimizer or a list of tensors")
    before = _Before(torch, [params, fn, args, kwargs], told=params is not None)
    said, outer = [], sys.exc_info()[1]
    while True:
        try:
            return fn(*args, **kwargs)
        except Exception as error:
            if _oom_of(error) is not error:
                raise
            problem = before.problem(error)
            if problem is None:
                said.append(_make_room(torch, error, outer))
                problem = before.restore()
            if problem is None:
                smaller = (args, kwargs) if shrink is None and len(said) == 1 else None
                if shrink is not None and len(said) < MOST_TRIES:
                    smaller = _smaller(shrink(*args, **kwargs), fn, args, kwargs)
                problem = "nothing smaller is left to try" if smaller is None else None
            if problem is not None:
                _give_verdict(error, "retry: %s%s" % ("".join("%s; " % s for s in said), problem))
                raise
            args, kwargs = smaller
            _log("retry: out of memory in %s; %s; trying again%s" % (getattr(fn, "__name__", "a call"), said[-1], " with less" if shrink else ""))


def _listed(params):
    """What model.parameters() returns can be read once."""
    return list(params) if isinstance(params, collections.abc.Iterator) else params


def _check_call(fn):
    """Refuse what has done nothing yet when the call returns."""
    if inspect.iscoroutinefunction(fn) or inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise TypeError("%s is a generator or async: its work begins after the call, where no OOM of it is seen" % getattr(fn, "__name__", fn))


def _smaller(answer, fn, args, kwargs):
    """The next arguments and keywords, from what shrink returned."""
    if answer is None:
        return None
    if isinstance(answer, dict):
        names = _positional(fn)[:len(args)]
        changed = tuple(answer.get(name, arg) for name, arg in zip(names, args)) + tuple(args[len(names):])
        return changed, dict(kwargs, **{name: value for name, value in answer.items() if name not in names})
    return (tuple(answer) if isinstance(answer, (tuple, list)) else (answer,)), kwargs


def _positional(fn):
    """The names of the arguments that need not be keywords; none if fn does not tell."""
    try:
        parameters = inspect.signature(fn).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]


def _make_room(torch, error, outer):
    """Let go of what a failed call held, collect garbage, empty the cache; say what was freed.

    outer is the exception that the caller was handling, which is its own affair.
    """
    before = _attempt(_held, torch)
    for each in _causes(error):
        if each is outer:
            break
        traceback.clear_frames(each.__traceback__)  # the frames of a traceback hold their variables
    gc.collect()
    _attempt(torch.cuda.empty_cache)
    after = _attempt(_held, torch)
    if before is None or after is None:
        return "the cache was given back"
    tensors, reserved = (max(0, b - a) for b, a in zip(before, after))
    return "%s of tensors were freed, %s given back to the device" % (_size(tensors), _size(reserved))


def _held(torch):
    """Bytes of tensors, and what the allocator holds, on the current device."""
    stats = torch.cuda.memory.memory_stats_as_nested_dict(torch.cuda.current_device())
    return tuple(stats[name]["all"]["current"] for name in ("active_bytes", "reserved_bytes"))


def _size(n):
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if n >= unit:
            return "%.2f %s" % (n / unit, name)
    return "%d B" % n


class _Before:
    """What a forward and a backward pass change, as it was before them.

    A gradient that is None costs nothing to remember. One that is there is copied to
    page-locked memory on the current stream, and so are buffers of models in training.
    """

    def __init__(self, torch, roots, told):
        self.torch, self.told = torch, told
        parameters, buffers = _trained(torch, roots)
        self.versions = [(p, p._version) for p in parameters]
        self.grads = [(p, p.grad, self.copy(p.grad)) for p in parameters]
        self.buffers = [(b, self.copy(b)) for b in buffers]
        self.random = _random_state(torch)
        _steps.watch()
        self.begun, self.ended = _steps.begun, _steps.ended

    def copy(self, tensor):
        if tensor is None:
            return None
        with self.torch.no_grad():
            if type(tensor) is not self.torch.Tensor or tensor.layout != self.torch.strided:  # sparse, or in parts on several GPUs
                return tensor.clone()
            host = self.torch.empty_like(tensor, device="cpu", pin_memory=bool(tensor.is_cuda))
            return host.copy_(tensor, non_blocking=True)

    def problem(self, error):
        """Why the call must not be repeated, or None."""
        torch = self.torch
        distributed = getattr(torch, "distributed", None)
        if distributed is not None and _attempt(distributed.is_available) and _attempt(distributed.is_initialized) and distributed.get_world_size() > 1:
            return "other processes train with this one, so it cannot repeat a pass alone"
        begun, ended = _steps.begun - self.begun, _steps.ended - self.ended
        if begun > ended or _in_optimizer(torch, error):
            return "it happened in the optimizer, which may have changed some of the weights"
        if begun or any(p._version != version for p, version in self.versions):
            return "the weights were changed before it, so the pass cannot be repeated"
        return None

    def restore(self):
        """Undo the pass; say why that cannot be done, or return None."""
        torch, known = self.torch, {id(p) for p, _ in self.versions}
        unseen = [kind.__name__ for kind, params in _unhooked(torch) if not known.issuperset(params)]
        if unseen:
            return "steps of %s call no hooks, as after torch.compile, and its weights were not found; name all models: params=[model]" % unseen[0]
        if not self.told:
            strange = sum(1 for t in gc.get_objects() if id(t) not in known and _is_trained(torch, t) and t.grad is not None)
            if strange:
                return "%d parameters have gradients and were not found; name the model: params=model" % strange
        with torch.no_grad():
            for p, grad, saved in self.grads:
                p.grad = grad
                if grad is not None:
                    grad.copy_(saved, non_blocking=True)
            for buffer, saved in self.buffers:
                buffer.copy_(saved, non_blocking=True)
        for give, state in self.random:
            give(state)
        return None


class _Steps:
    """Counts the steps of all optimizers, in whatever thread and however they are reached.

    The hooks stay: to remove one while another thread is in a step breaks PyTorch's loop
    over them.
    """

    def __init__(self):
        self.begun = self.ended = 0
        self.hooks = ()

    def watch(self):
        if not self.hooks:
            from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook  # torch.optim has no such names

            self.hooks = (register_optimizer_step_pre_hook(self.begin), register_optimizer_step_post_hook(self.end))

    def begin(self, *_):
        self.begun += 1

    def end(self, *_):
        self.ended += 1


_steps = _Steps()


def _unhooked(torch):
    """Pairs of the class and the ids of the parameters, for optimizers whose steps call no hooks.

    torch.compile takes them from PyTorch's optimizers when it is first used: it replaces
    the function that calls them by the one inside. Nor has a wrapper of another
    optimizer hooks, if it leaves out Optimizer.__init__.
    """
    wrap = torch.optim.Optimizer.profile_hook_step
    for each in gc.get_objects():
        kind = type(each)
        if issubclass(kind, torch.optim.Optimizer) and getattr(kind.step, "__code__", None) is not wrap(kind.step).__code__:
            params = _attempt(lambda: {id(p) for group in each.param_groups for p in group["params"] if p.requires_grad})
            yield kind, params or ()


def _in_optimizer(torch, error):
    """Whether an error comes from the step() of an optimizer.

    Hooks do not tell it of all: see _unhooked. Looking into a frame's variables would keep them alive; so the code is looked at.
    """
    steps, left = set(), [torch.optim.Optimizer]
    while left:
        kind = left.pop()
        left.extend(kind.__subclasses__())
        step = kind.__dict__.get("step")
        while step is not None:
            steps.add(getattr(step, "__code__", None))
            step = getattr(step, "__wrapped__", None)
    file = getattr(torch.optim, "__file__", None)
    folder = file and os.path.join(os.path.dirname(file), "")
    trace = error.__traceback__
    while trace is not None:
        code = trace.tb_frame.f_code
        if code in steps or folder and code.co_filename.startswith(folder):
            return True
        trace = trace.tb_next
    return False


def _is_trained(torch, value):
    return issubclass(type(value), torch.Tensor) and value.is_leaf and value.requires_grad


def _trained(torch, roots):
    """The parameters, and the buffers of modules in training, that can be reached from roots."""
    module, optimizer = torch.nn.Module, torch.optim.Optimizer
    parameters, buffers = {}, {}
    search = _Search(roots)
    for value, depth in search:
        kind = type(value)  # isinstance asks proxies, which may fail
        if _is_trained(torch, value):
            parameters[id(value)] = value
        elif issubclass(kind, module):
            parameters.update((id(p), p) for p in value.parameters())
            for part in value.modules():
                buffers.update((id(b), b) for b in part.buffers(recurse=False) if part.training)
        elif issubclass(kind, optimizer):
            for group in value.param_groups:
                parameters.update((id(p), p) for p in group["params"] if _is_trained(torch, p))
        else:
            search.open(value, depth)
    return [p for p in parameters.values() if p.requires_grad], list(buffers.values())


class _Search:
    """Goes from functions, objects and containers to what they lead to, the nearest first.

    Of modules and classes, which hold far more than a pass uses, only the attributes
    are followed whose names the code of a function found has.
    """

    def __init__(self, roots):
        self.left = collections.deque((root, DEPTH + 1) for root in roots)
        self.seen, self.names = {}, set()
        self.owners = {}  # modules and classes, by id: where their attributes are, depth
        self.slots = {}  # by the id of a class: a metaclass may forbid to hash it

    def __iter__(self):
        while self.left and len(self.seen) < MOST_LOOKED:
            value, depth = self.left.popleft()
            if id(value) not in self.seen:
                self.seen[id(value)] = value  # kept, so that no other gets its id
                yield value, depth

    def follow(self, values, depth):
        if len(self.left) < MOST_LOOKED:
            self.left.extend((value, depth) for value in values if type(value) not in (int, float, bool, str, bytes, type(None)))

    def open(self, value, depth):
        kind = type(value)
        if issubclass(kind, types.ModuleType):
            space = object.__getattribute__(value, "__dict__")  # vars() would have a lazy module loaded
            self.own(value, space.get("__name__"), [space], depth)
        elif issubclass(kind, type):
            self.own(value, value.__module__, [vars(k) for k in value.__mro__ if not _foreign(k.__module__)], depth)
        elif depth > 0:
            if issubclass(kind, types.FunctionType):
                self.read(value)
            inside = _inside(value)
            self.follow(self.attributes(value, kind, depth) if inside is None else inside, depth - 1)

    def attributes(self, value, kind, depth):
        """What an object has, and how it is called."""
        if _top(kind.__module__) == "torch":
            return []
        if id(kind) not in self.slots:
            self.slots[id(kind)] = [each for k in kind.__mro__ for each in vars(k).values() if type(each) is types.MemberDescriptorType]
            self.follow([vars(k)["__call__"] for k in kind.__mro__ if "__call__" in vars(k)], depth - 1)
            self.open(kind, depth)
        return (_attempt(lambda: list(vars(value).values())) or []) + [_attempt(slot.__get__, value) for slot in self.slots[id(kind)]]

    def own(self, owner, module, spaces, depth):
        """Remember a module or class, for the names of functions that are found later."""
        if id(owner) not in self.owners and not _foreign(module):
            self.owners[id(owner)] = (spaces, depth)
            self.look(spaces, self.names, depth)

    def read(self, function):
        """Follow the names of a function's code in all that is remembered."""
        if not _foreign(function.__module__):
            new = set(_names(function.__code__)) - self.names
            self.names |= new
            for spaces, depth in self.owners.values():
                self.look(spaces, new, depth)

    def look(self, spaces, names, depth):
        for space in spaces:
            self.follow([space[name] for name in names if name in space], depth)  # properties and static methods have slots


def _top(module):
    return str(module or "").partition(".")[0]


def _foreign(module):
    """Whether a module, by its name, holds no model of the job."""
    return _top(module) in ("torch", "builtins") or _top(module) in getattr(sys, "stdlib_module_names", ())  # from Python 3.10 on


def _inside(value):
    """What a function, a method or a container leads to; None of another object."""
    kind = type(value)
    if issubclass(kind, functools.partial):
        return [value.func, value.args, value.keywords]
    if issubclass(kind, types.MethodType):
        return [value.__func__, value.__self__]
    if issubclass(kind, types.FunctionType):
        if _foreign(value.__module__):
            return []
        cells = [c.cell_contents for c in value.__closure__ or () if _attempt(lambda: c.cell_contents) is not None]
        named = [value.__globals__[name] for name in _names(value.__code__) if name in value.__globals__]
        return cells + named + list(value.__defaults__ or ()) + list((value.__kwdefaults__ or {}).values())
    if issubclass(kind, dict):
        return list(value.values()) if len(value) < 10000 else []
    if issubclass(kind, (list, tuple)):
        return value if len(value) < 10000 else []
    return None


def _names(code):
    names = list(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names += _names(constant)
    return names


def _random_state(torch):
    """Pairs of a function and the state that it sets again."""
    pairs = [(torch.set_rng_state, torch.get_rng_state())]
    if _cuda() is not None:
        for i in range(torch.cuda.device_count()):
            if _has_context(torch, i, torch.cuda.current_device()):
                pairs.append((functools.partial(torch.cuda.set_rng_state, device=i), torch.cuda.get_rng_state(i)))
    if "random" in sys.modules:
        pairs.append((sys.modules["random"].setstate, sys.modules["random"].getstate()))
    if "numpy.random" in sys.modules:
        pairs.append((sys.modules["numpy.random"].set_state, sys.modules["numpy.random"].get_state()))
    return pairs


# The verdict.

EXPLAIN_LIMIT = 120  # seconds: the job is dead, but its node is not free before


def _command():
    """The command ashlar: $ASHLAR_BIN, beside the interpreter, or on PATH; None if there is none."""
    given = os.environ.get("ASHLAR_BIN")
    if given:
        return given
    beside = shutil.which("ashlar", path=os.path.dirname(sys.executable)) if sys.executable else None
    return beside or shutil.which("ashlar")


def _explain(path):
    """What `ashlar explain` says about a file; raises OSError or RuntimeError."""
    found = _command()
    if found is None:
        raise RuntimeError("no command ashlar beside Python or on PATH; set ASHLAR_BIN")
    done = subprocess.run([found, "explain", path], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=EXPLAIN_LIMIT)
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").split("\n")
        raise RuntimeError("%s explain: %s" % (found, next((line for line in lines if line.strip()), "exit status %d" % done.returncode)))
    return done.stdout.decode("utf-8", "replace").strip()


def _verdict(error):
    """Complete the file of an OOM and add its cause to the exception.

    Returns the whole text of `ashlar explain`, or None if the OOM was not recorded or
    has its verdict; raises an error if there is none to be had.
    """
    if getattr(error, "_ashlar_told", False):
        return None
    error._ashlar_told = True
    _recorder.saw(error, fatal=True)
    last = _recorder.last
    if last is None or not getattr(error, "_ashlar_seen", False):
        return None  # not recorded, or the recorder said why there is no file
    text = _explain(last.path)
    if hasattr(error, "add_note"):  # from Python 3.11 on
        error.add_note("%s\nMore: ashlar explain --full %s" % (text.partition("\n\n")[0], last.path))
    return text


def _give_verdict(error, tried):
    """Add to an OOM what was tried and, if it was recorded, its cause."""
    if hasattr(error, "add_note"):
        error.add_note(tried)
    else:
        _log(tried)
    try:
        _verdict(error)
    except Exception as e:
        _log("no verdict: %s" % e)


# Giving back idle cache.

GIVE_PER_COST = 99  # times what giving back took: at most a hundredth of the time is spent


class monitor:
    """A context in which cache that lies idle is given back at steps.

        with ashlar.monitor(0.3):
            for batch in loader:
                ashlar.step()
                ...

    threshold  a share of what the allocator holds
    release    False: only say that there is as much

    At each ashlar.step(), or step() of this, the memory that the allocator holds and
    no tensor uses is compared with the least it was at a step since cache was last
    given back: that much the job takes again at once. When the difference is more than
    threshold, the cache is given back. There is no thread. What it cost is in report().
    """

    def __init__(self, threshold=0.3, release=True):
        if not isinstance(threshold, numbers.Real) or not 0 <= threshold < 1:
            raise ValueError("threshold is a share of what the allocator holds, at least 0 and less than 1, not %r" % (threshold,))
        self.threshold, self.release = float(threshold), bool(release)
        self.begin, self.ready = time.monotonic(), 0.0
        self.steps = self.releases = self.given = 0
        self.looking = self.giving = 0.0  # seconds
        self.least = 0  # idle bytes at a step since the last release; None: no step since
        self.warned = False

    def __enter__(self):
        _monitors.append(self)
        return self

    def __exit__(self, kind, error, trace):
        if self in _monitors:  # not in the child of a fork
            _monitors.remove(self)
            _log("monitor: " + self.text())
        return False

    def step(self):
        """Look once."""
        try:
            self.look()
        except Exception as e:
            _log("monitor: %r" % e)

    def look(self):
        torch, begin = _cuda(), time.perf_counter()
        if torch is None:
            return
        active, reserved = _held(torch)
        idle = reserved - active
        self.least = idle if self.least is None else min(self.least, idle)
        grown = idle - self.least
        self.steps += 1
        high = reserved > 0 and grown > self.threshold * reserved
        self.looking += time.perf_counter() - begin
        if not high:
            self.warned = False
        elif not self.release:
            if not self.warned:
                self.warned = True
                _log("monitor: %s of %s lie idle" % (_size(idle), _size(reserved)))
        elif time.monotonic() >= self.ready and not torch.cuda.is_current_stream_capturing():
            self.give(torch, reserved)

    def give(self, torch, reserved):
        begin = time.perf_counter()
        torch.cuda.empty_cache()
        given, cost = reserved - _held(torch)[1], time.perf_counter() - begin
        self.releases, self.given, self.giving = self.releases + 1, self.given + given, self.giving + cost
        self.least = None
        self.ready = time.monotonic() + GIVE_PER_COST * cost

    def report(self):
        """What was given back, in bytes, and what it cost, in seconds."""
        return {"steps": self.steps, "releases": self.releases, "given_bytes": self.given, "looking_s": self.looking, "giving_s": self.giving,
                "elapsed_s": time.monotonic() - self.begin}

    def text(self):
        r = self.report()
        share = 100 * (r["looking_s"] + r["giving_s"]) / r["elapsed_s"] if r["elapsed_s"] > 0 else 0.0
        return "%d steps; gave back %s in %d releases, %.1f ms; looking took %.1f ms; together %.2f %% of the time" % (
            r["steps"], _size(r["given_bytes"]), r["releases"], 1e3 * r["giving_s"], 1e3 * r["looking_s"], share)


_monitors = []  # that are entered
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_monitors.clear)


# Saving while the job goes on.

SMALL = 1 << 20  # bytes; such storages are copied on the job's own stream
ALIGN = 4096
WRITTEN = 1 << 26  # bytes at a time


def async_save(obj, path):
    """Write obj to path as torch.save does, while the job goes on; returns the save.

    The file holds the moment of this call, and its tensors are on the CPU. They are
    copied through page-locked memory on a stream of their own, without a copy on the
    GPU; the next optimizer.step() waits for these copies, and this call does where
    torch.compile took the hooks of optimizers away. What changes tensors in
    another way (a CUDA graph that is replayed, say) calls copied() of the save before.

    The file appears under its name when it is complete. wait() of the save returns the
    name, or raises what went wrong; an error that nobody waited for is said on standard
    error, and raised by the next async_save. The end of the process waits for a save.
    Saves are written one after the other. The page-locked memory is kept for the next.
    """
    return _saver.save(obj, path)


class _Save:
    """A file that is being written."""

    def __init__(self, path):
        self.path, self.pid = path, os.getpid()
        self.events = []  # (device, event): the copies of a device are done
        self.queued = threading.Event()  # the copies are in their streams, or will never be
        self.written = threading.Event()
        self.error, self.seen = None, False
        self.thread = None
        self.held = 0.0  # seconds that optimizers waited for the copies to be queued

    def done(self):
        return self.written.is_set()

    def copied(self):
        """Have the current streams wait until everything is copied."""
        self.mine()
        begin = time.perf_counter()
        self.queued.wait()
        self.held += time.perf_counter() - begin
        torch = sys.modules["torch"]
        for device, event in list(self.events):
            torch.cuda.current_stream(device).wait_event(event)

    def wait(self, timeout=None):
        """The name of the file when it is complete; raises what went wrong."""
        self.mine()
        if not self.written.wait(timeout):
            raise TimeoutError("%s is still being written" % self.path)
        self.seen = True
        if self.error is not None:
            raise self.error
        return self.path

    def mine(self):
        if self.pid != os.getpid():
            raise RuntimeError("%s is written by process %d, of which this is a fork" % (self.path, self.pid))


class _Saver:
    def __init__(self):
        self.reset()

    def reset(self):
        """Start afresh, as in a forked process."""
        self.lock = threading.RLock()  # of callers; a signal's handler may save while its thread is in save()
        self.saves = []  # that may still be written: one, or two after such a handler
        self.writing = threading.Lock()  # of the threads, which share what follows
        self.arena = None  # page-locked memory
        self.streams = {}  # by device
        self.hook = None

    def save(self, obj, path):
        import torch

        with self.lock:
            for last in list(self.saves):
                last.written.wait()
                _attempt(self.saves.remove, last)  # a handler may have done so
                if last.error is not None and not last.seen:
                    raise last.error
            path = os.path.abspath(os.fsdecode(path))
            _check_target(path)
            return self.begin(torch, obj, path)

    def begin(self, torch, obj, path):
        save = _Save(path)
        staged = _Staged(torch)
        pickled = staged.pickle(obj)
        staged.copy_small()
        ready = {device: torch.cuda.current_stream(device).record_event() for device in staged.devices()}
        for device in ready:
            if device not in self.streams:
                self.streams[device] = _attempt(_single_stream, torch, device) or torch.cuda.Stream(device)
        if ready and self.hook is None:
            from torch.optim.optimizer import register_optimizer_step_pre_hook  # torch.optim has no such name

            self.hook = register_optimizer_step_pre_hook(self.before_step)
        save.thread = threading.Thread(target=self.run, args=(torch, save, staged, pickled, ready), name="ashlar-save")  # no daemon: the end waits
        self.saves.append(save)
        try:
            save.thread.start()
        except BaseException:  # Ctrl-C, or the end of the interpreter
            if not save.thread.is_alive():
                _attempt(self.saves.remove, save)
            raise
        if ready and next(_unhooked(torch), None) is not None:
            save.copied()  # no hook will do so before the next step
        return save

    def before_step(self, *_):
        for save in list(self.saves):
            if not save.written.is_set():
                save.copied()

    # In the thread.

    def run(self, torch, save, staged, pickled, ready):
        with self.writing:
            self.write(torch, save, staged, pickled, ready)

    def write(self, torch, save, staged, pickled, ready):
        try:
            self.copy(torch, save, staged, ready)
            save.queued.set()
            for _, event in save.events:
                event.synchronize()
            staged.sources = []
            obj = staged.unpickle(pickled)
            with _Part(save.path, _identity(save.path), newest=True) as part:
                torch.save(obj, _Unlocked(part.file))
                os.fsync(part.file.fileno())
            if part.taken:
                _log("async_save: another process has written %s meanwhile; this one is %s" % (save.path, part.path))
                save.path = part.path
        except BaseException as e:
            save.error = e
            _log("async_save: %s is not written: %r" % (save.path, e))
        finally:
            staged.release()
            save.queued.set()
            save.written.set()

    def copy(self, torch, save, staged, ready):
        arena, self.arena = self.arena, None  # place may fail after it has freed it
        self.arena = staged.place(arena)
        for device, event in ready.items():
            stream = self.streams[device]
            with torch.cuda.stream(stream):
                stream.wait_event(event)
                staged.copy_large(device)
                save.events.append((device, stream.record_event()))


def _single_stream(torch, device):
    """A stream, made by the driver: the first that PyTorch makes are 32, and take 70 MiB of an H200."""
    import ctypes

    stream = ctypes.c_void_p()
    with torch.cuda.device(device):  # whose context is current in this thread
        if ctypes.CDLL("libcuda.so.1").cuStreamCreate(ctypes.byref(stream), 1) != 0:  # 1: it does not wait for the default stream
            return None
    return torch.cuda.ExternalStream(stream.value, device=device)


class _Unlocked(io.RawIOBase):
    """A file for torch.save, of which each call leaves Python's lock to the job.

    By its name torch.save would close the file itself, and hold the lock meanwhile: ext4
    and NFS begin to write then, half a second for each GB.
    """

    def __init__(self, file):
        self.number = file.fileno()

    def writable(self):
        return True

    def seekable(self):
        return True

    def write(self, data):
        data = memoryview(data).cast("B")
        size = len(data)
        while len(data):
            data = data[os.write(self.number, data[:WRITTEN]):]
        return size

    def seek(self, offset, whence=os.SEEK_SET):
        return os.lseek(self.number, offset, whence)

    def tell(self):
        return os.lseek(self.number, 0, os.SEEK_CUR)


class _Staged:
    """The storages of an object on their way to the host.

    The object itself is pickled at the call and read back in the thread, with each
    tensor a number there and the copy of its storage here.
    """

    def __init__(self, torch):
        self.torch = torch
        self.sources = []  # storages
        self.hosts = []  # by number, the copy, once there is one
        self.numbers = {}  # by the storage's address
        self.small = None  # page-locked bytes of the small ones
        self.places = {}  # by number, where in small
        self.described = {}  # by id, (tensor, description): while it is here, no other has its id
        self.rebuilt = {}  # tensors by their number

    def pickle(self, obj):
        staged = self

        class Pickler(pickle.Pickler):
            def persistent_id(self, value):
                return staged.describe(value)

        buffer = io.BytesIO()
        Pickler(buffer, protocol=4).dump(obj)
        self.described = {}
        return buffer

    def unpickle(self, buffer):
        staged = self

        class Unpickler(pickle.Unpickler):
            def persistent_load(self, description):
                return staged.rebuild(*description)

        for number, (begin, end) in self.places.items():  # a tensor is saved with all of its storage
            self.hosts[number] = self.small[begin:end].clone().untyped_storage()
        buffer.seek(0)
        return Unpickler(buffer).load()

    def describe(self, value):
        if id(value) in self.described:
            return self.described[id(value)][1]
        torch = self.torch
        plain = type(value) in (torch.Tensor, torch.nn.Parameter) and value.layout == torch.strided and value.device.type in ("cuda", "cpu")
        if not plain or value.is_quantized or value.is_conj() or value.is_neg():
            return None  # as any other object, whose parts may be plain
        storage = value.untyped_storage()
        number = self.numbers.get(storage._cdata)
        if number is None:
            number = self.numbers[storage._cdata] = len(self.sources)
            self.sources.append(storage)
            self.hosts.append(None)
        kind = "parameter" if type(value) is torch.nn.Parameter else "tensor"
        description = (len(self.described), number, kind, value.dtype, value.storage_offset(), tuple(value.size()), tuple(value.stride()),
                       value.requires_grad and value.is_leaf, dict(vars(value)))
        self.described[id(value)] = value, description
        return description

    def rebuild(self, tensor_number, number, kind, dtype, offset, size, stride, grad, attributes):
        if tensor_number in self.rebuilt:
            return self.rebuilt[tensor_number]
        torch = self.torch
        tensor = torch.empty(0, dtype=dtype).set_(self.hosts[number], offset, size, stride)
        if kind == "parameter":
            tensor = torch.nn.Parameter(tensor, requires_grad=grad)
        else:
            tensor.requires_grad_(grad)
        vars(tensor).update(attributes)
        self.rebuilt[tensor_number] = tensor
        return tensor

    def bytes_of(self, storage):
        return self.torch.empty(0, dtype=self.torch.uint8, device=storage.device).set_(storage)

    def devices(self):
        return sorted({s.device.index for s in self.sources if s.device.type == "cuda"})

    def copy_small(self):
        """Copy what is on the host, and the small storages on the job's streams: batch norm changes such in the next forward pass."""
        torch, at = self.torch, 0
        for number, storage in enumerate(self.sources):
            if storage.device.type == "cpu" or storage.nbytes() == 0:
                self.hosts[number] = self.bytes_of(storage).cpu().clone().untyped_storage()
            elif storage.nbytes() <= SMALL:
                self.places[number] = (at, at + storage.nbytes())
                at += storage.nbytes()
        if at == 0:
            return
        self.small = torch.empty(at, dtype=torch.uint8, pin_memory=True)
        for number, (begin, end) in self.places.items():
            with torch.cuda.device(self.sources[number].device):
                self.small[begin:end].copy_(self.bytes_of(self.sources[number]), non_blocking=True)

    def large(self):
        return [n for n in range(len(self.sources)) if self.hosts[n] is None and n not in self.places]

    def place(self, arena):
        """Give each large storage its place in page-locked memory, which is made anew if it is too small."""
        at, places = 0, {}
        for number in self.large():
            places[number] = at
            at += -(-self.sources[number].nbytes() // ALIGN) * ALIGN
        if at > 0 and (arena is None or len(arena.memory) < at):
            if arena is not None:
                arena.free()
            arena = _Arena(self.torch, at)
        self.targets = {n: arena.bytes(at, self.sources[n].nbytes()) for n, at in places.items()}
        return arena

    def copy_large(self, device):
        for number, target in self.targets.items():
            if self.sources[number].device.index == device:
                target.copy_(self.bytes_of(self.sources[number]), non_blocking=True)
                self.hosts[number] = target.untyped_storage()

    def release(self):
        self.sources, self.hosts, self.targets, self.small, self.rebuilt = [], [], {}, None, {}


class _Arena:
    """Page-locked memory of exactly the size that is needed; PyTorch's would be rounded up to powers of two."""

    def __init__(self, torch, size):
        self.torch = torch
        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS} if hasattr(mmap, "MAP_ANONYMOUS") else {}  # shared memory gets no huge pages
        self.memory = mmap.mmap(-1, size, **private)
        for advice in ("MADV_HUGEPAGE", "MADV_DONTFORK"):
            if hasattr(mmap, advice):
                _attempt(self.memory.madvise, getattr(mmap, advice))
        whole = self.bytes(0, size).zero_()  # many threads bring the pages in; locking would by one
        self.address = whole.data_ptr()
        self.locked = _attempt(lambda: int(torch.cuda.cudart().cudaHostRegister(self.address, size, 0))) == 0
        if not self.locked:
            _log("async_save: the memory cannot be page-locked; copies are slower")

    def bytes(self, at, size):
        return self.torch.frombuffer(self.memory, dtype=self.torch.uint8, count=size, offset=at)

    def free(self):
        if self.locked:
            _attempt(self.torch.cuda.cudart().cudaHostUnregister, self.address)
        self.memory = None  # given back before there is another


_saver = _Saver()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_saver.reset)


# The runner.

USAGE = """usage: python ashlar.py [options] SCRIPT [ARGS...]
       python ashlar.py [options] -m MODULE [ARGS...]

Runs SCRIPT with its GPU memory recorded. Options, see ashlar.record():
  --path PATH  --max-entries N  --stacks python|all  --signal NAME  --keep N
  --run NAME  --commit SHA
  --watch or --watch=ADDRESS: also tell ashlar watch how it goes, see ashlar.watch()
"""


def _main(argv):
    names = {"--path": "path", "--max-entries": "max_entries", "--stacks": "stacks", "--signal": "on_signal", "--keep": "keep",
             "--run": "run", "--commit": "commit"}
    options, argv, watched = {}, list(argv), None
    while argv and argv[0].startswith("--"):
        name, equals, value = argv.pop(0).partition("=")
        if name == "--watch":
            watched = value
            continue
        if name not in names or not (equals or argv):
            sys.stderr.write(USAGE)
            return 0 if name == "--help" else 2
        options[names[name]] = value if equals else argv.pop(0)
    module = bool(argv) and argv[0] == "-m"
    if module:
        argv.pop(0)
    if not argv:
        sys.stderr.write(USAGE)
        return 2
    if __name__ == "__main__":
        sys.modules["ashlar"] = sys.modules[__name__]  # one recorder, also for a script that imports it
    record(**options)
    sys.argv = argv
    if watched is not None:
        watch(to=watched or None)
    here = _attempt(os.getcwd) or ""  # it may be gone
    folder = here if module else os.path.dirname(os.path.realpath(os.path.join(here, argv[0])))
    if not sys.flags.isolated and not getattr(sys.flags, "safe_path", False):
        sys.path[0] = folder
    if module:
        import runpy

        runpy.run_module(argv[0], run_name="__main__", alter_sys=True)
        return 0
    try:
        with open(argv[0], "rb") as f:
            source = f.read()
    except OSError as e:
        _log("cannot read the script: %s" % e)
        return 2
    main = sys.modules["__main__"] = types.ModuleType("__main__")
    path = os.path.join(here, argv[0])  # Python leaves ".." in it, too
    main.__file__, main.__cached__ = path, None
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", path)
    exec(compile(source, path, "exec", dont_inherit=True), main.__dict__)
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
