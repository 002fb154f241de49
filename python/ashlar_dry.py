"""Runs a training script on fake tensors and writes down what it would allocate.

    python ashlar_dry.py [--steps 8] [--out LEDGER] script.py args...

Shapes, strides, autograd and optimizers are PyTorch's own; there are no bytes
behind the tensors of the GPU. `ashlar dry LEDGER` says what the script takes
on a GPU. A single file that needs PyTorch alone; it may be copied.

    import ashlar_dry
    with ashlar_dry.record("run.dry.gz"):
        train()

Tensors of the CPU stay what they are, so that data loading works. Only new
ones of more than 1 MiB, such as weights that are about to be initialised, have
no bytes either. Small tensors of the GPU have a shadow on the CPU as long as
their values do not depend on large ones, so that lengths, masks and indices are
known. What the script reads beyond that is answered, and the answer is noted.

The ledger is a file of JSON lines, packed with gzip if its name ends in .gz. A
tensor is [dtype, shape, strides, device].

    {"ashlar_dry": 1, "torch": ..., "device": {...}, "argv": [...], ...}
    ["F", id, file, line, function]           a frame
    ["S", id, [frames, innermost first]]      a call stack
    ["K", id, op, inputs, outputs, args, kwargs, workspaces]
                                              a kind of call; a tensor in args is {"t": i}; the last is what cuDNN takes:
                                              for each pass of a convolution, or the workspace and
                                              the reserve of a recurrent layer; -1: it was not asked
    ["o", kind, stack, thread, stream, inputs, outputs]
                                              a call, with the storages; thread 1 is autograd's, 2 its own sum of two gradients
    ["b", storage, bytes, device]             born, before the call that made it
    ["r", storage, bytes]                     resized
    ["d", storage]                            gone
    ["c", class, [storages]]                  parameter, buffer, gradient, optimizer or input
    ["m", name, value]                        a moment: backward, optimizer, steps, ...; the last is end, with why
    ["n", text, stack]                        something that was answered for the script
    ["u", op, stack]                          an op that is none of PyTorch's
"""
import argparse
import atexit
import base64
import contextlib
import ctypes
import functools
import gc
import gzip
import itertools
import json
import mmap
import os
import platform
import runpy
import shutil
import struct
import sys
import tempfile
import threading
import types
import weakref
import zlib

try:
    import torch
except ImportError:
    if __name__ != "__main__":
        raise
    sys.exit("ashlar_dry: %s has no PyTorch; name the Python of the script's environment" % sys.executable)
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode, unset_fake_temporarily
from torch.utils._python_dispatch import TorchDispatchMode

VERSION = 1
LARGE = 1 << 20  # bytes from which on a new tensor of the CPU has none
SHADOW = 1 << 24  # elements up to which values are known
RANDOM = 1 << 20  # the same for those that are drawn, or are weights to be
MOST_DRAWN = 1 << 29  # elements that are drawn for nothing, a few seconds' work
aten = torch.ops.aten
DEVICE = torch.ops.prim.device.default


class Stop(BaseException):
    """Enough steps were run."""


# ---------------------------------------------------------------- the ledger


class Ledger:
    """Writes lines; each storage, frame, stack and kind of call has a number."""

    def __init__(self, path):
        self.path = path
        self.file = gzip.open(path, "wt", compresslevel=1) if path.endswith(".gz") else open(path, "w")
        self.lock = threading.RLock()
        self.alive, self.next = {}, 0
        self.frames, self.stacks, self.kinds, self.dtypes = {}, {}, {}, {}
        self.live = self.peak = 0
        self.cudnn = None
        self.closed = False

    def line(self, *what):
        with self.lock:
            if not self.closed:
                self.file.write(json.dumps(what, separators=(",", ":"), default=str) + "\n")

    def head(self, **facts):
        self.file.write(json.dumps(dict(ashlar_dry=VERSION, **facts)) + "\n")

    def close(self):
        with self.lock:
            if not self.closed:
                self.closed = True
                self.file.close()

    def storage(self, tensor):
        """The number of a tensor's storage, which is born if it is new; -1 if it has none."""
        try:
            s = tensor.untyped_storage()
        except (NotImplementedError, RuntimeError):
            return -1
        key = s._cdata
        known = self.resized(s)
        if known is not None:
            return known[0]
        number, self.next = self.next, self.next + 1
        size, device = s.nbytes(), str(tensor.device)
        self.line("b", number, size, device)
        on = device.startswith("cuda")
        self.alive[key] = (number, size, weakref.ref(s, functools.partial(self.gone, key, number)), on)
        if on:
            self.count(size)
        return number

    def resized(self, s):
        """What is known of a storage, which may have another size by now."""
        known, size = self.alive.get(s._cdata), s.nbytes()
        if known is not None and size != known[1]:
            self.line("r", known[0], size)
            self.alive[s._cdata] = (known[0], size, known[2], known[3])
            self.count(size - known[1] if known[3] else 0)
        return known

    def gone(self, key, number, _):
        known = self.alive.get(key)
        if known is not None and known[0] == number:
            del self.alive[key]
            if known[3]:
                self.count(-known[1])
        self.line("d", number)

    def count(self, bytes):
        self.live += bytes
        self.peak = max(self.peak, self.live)

    def stack(self):
        """The number of the script's call stack."""
        f, ids = sys._getframe(1), []
        while f is not None:
            code = f.f_code
            if code.co_filename != __file__:
                key = (code, f.f_lineno)
                number = self.frames.get(key)
                if number is None:
                    number = self.frames[key] = len(self.frames)
                    self.line("F", number, code.co_filename, f.f_lineno, code.co_name)
                ids.append(number)
            f = f.f_back
        key = tuple(ids)
        number = self.stacks.get(key)
        if number is None:
            number = self.stacks[key] = len(self.stacks)
            self.line("S", number, ids)
        return number

    def kind(self, func, args, kwargs, given, made):
        """The number of a kind of call."""
        key = [func]
        for t in given:
            key += (t.dtype, t.shape, t.stride() if t.layout == torch.strided else None, t.device)
        key.append(len(made))
        for t in made:
            key += (t.dtype, t.shape, t.stride() if t.layout == torch.strided else None, t.device)
        count = [0]
        a = [plain(x, count) for x in args]
        k = {n: plain(x, count) for n, x in kwargs.items()}
        key.append(repr(a))
        key.append(repr(k) if k else "")
        key = tuple(key)
        number = self.kinds.get(key)
        if number is None:
            number = self.kinds[key] = len(self.kinds)
            line = ["K", number, str(func), [self.describe(t) for t in given], [self.describe(t) for t in made], a, k]
            if self.cudnn is not None and func in ASKED:
                line.append(self.cudnn.workspaces(func, args, made))
            self.line(*line)
        return number

    def describe(self, x):
        dtype = self.dtypes.get(x.dtype)
        if dtype is None:
            dtype = self.dtypes[x.dtype] = str(x.dtype)[6:]
        return [dtype, list(x.shape), list(x.stride()) if x.layout == torch.strided else None, str(x.device)]


class Shadow:
    """The values of a tensor without bytes."""

    __slots__ = ("values",)

    def __init__(self, values):
        self.values = values

    def __deepcopy__(self, memo):
        with unset_fake_temporarily():
            return Shadow(self.values.clone())


def tensors(x, into):
    if isinstance(x, torch.Tensor):
        into.append(x)
    elif isinstance(x, (list, tuple)):
        for y in x:
            tensors(y, into)
    elif isinstance(x, dict):
        for y in x.values():
            tensors(y, into)
    return into


def plain(x, count):
    """An argument as JSON has it; tensors are numbered."""
    if isinstance(x, torch.Tensor):
        count[0] += 1
        return {"t": count[0] - 1}
    if isinstance(x, (bool, int, str)) or x is None:
        return x
    if isinstance(x, float):
        return x if x == x and abs(x) != float("inf") else str(x)
    if isinstance(x, (list, tuple)):
        return [plain(y, count) for y in x]
    return str(x)


def mapped(f, x):
    """x with f applied to its tensors."""
    if isinstance(x, torch.Tensor):
        return f(x)
    if isinstance(x, (list, tuple)):
        return type(x)(mapped(f, y) for y in x) if not hasattr(x, "_fields") else type(x)(*(mapped(f, y) for y in x))
    if isinstance(x, dict):
        return {k: mapped(f, y) for k, y in x.items()}
    return x


# -------------------------------------------------------------- the recorder


class Recorder(TorchDispatchMode):
    """Runs every operation without bytes and writes it down."""

    def __init__(self, ledger, fake):
        super().__init__()
        self.ledger, self.fake = ledger, fake
        self.streams, self.stream = {}, 0
        self.forward = {}  # stacks by autograd's sequence numbers
        self.poisoned = set()  # storages of shadows that are no longer true
        self.off = False  # in a forked process
        self.told = False
        self.makers = {}  # the nodes of the backward pass that made storages
        self.cuda_random = None  # the state of the generator that stands for CUDA's
        self.drawn = 0  # numbers that nobody needs

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        if func is DEVICE and isinstance(args[0], FakeTensor):
            return torch.device("meta") if args[0].fake_mode.in_kernel_invocation else args[0].fake_device
        kwargs = kwargs or {}
        if any(map(foreign, types)):
            return NotImplemented  # it is made of others, which come here by themselves
        if not hasattr(func, "_schema"):
            return func(*args, **kwargs)
        if not self.told and "transformers.utils.import_utils" in sys.modules:
            self.told = True  # it asks whether it is traced, and then reads no values
            sys.modules["transformers.utils.import_utils"].is_fake_tensor = lambda x: False
        given = tensors((args, kwargs), [])
        if self.off or self.on_cpu(func, given, args, kwargs):
            with unset_fake_temporarily():
                return func(*args, **kwargs)
        if composite(func):  # C++ takes it apart: Python's way, func.decompose, copies in dropout
            with self:
                return func._op_dk(torch._C.DispatchKey.CompositeImplicitAutograd, *args, **kwargs)
        out = self.run(func, given, args, kwargs)
        made = tensors(out, [])
        if func.namespace != "prim" and (any(t.device.type == "cuda" for t in made) or any(t.device.type == "cuda" for t in given)):
            self.write(func, args, kwargs, given, made)
        return out

    def on_cpu(self, func, given, args, kwargs):
        """Whether an operation is one of the CPU's that is run as it is."""
        device = kwargs.get("device")
        if device is not None and torch.device(device).type == "cuda":
            return False
        if given:
            return not any(isinstance(t, FakeTensor) or t.device.type == "cuda" for t in given)
        if func in FACTORIES and args and isinstance(args[0], (list, tuple, torch.Size)):
            n = 1
            for d in args[0]:
                n *= int(d)
            return n * torch.empty((), dtype=kwargs.get("dtype") or torch.get_default_dtype(), device="meta").element_size() < LARGE
        return True

    def run(self, func, given, args, kwargs):
        shadows = self.shadows(func, given, args, kwargs)
        special = ANSWERS.get(func) or ANSWERS.get(func._schema.name)
        out = NotImplemented
        if special is not None:
            out = special(self, func, args, kwargs, shadows)
        if out is NotImplemented:
            try:
                with self.fake:
                    if given and not any(isinstance(t, FakeTensor) for t in given):  # else PyTorch would run it
                        args, kwargs = mapped(self.fake.from_tensor, args), mapped(self.fake.from_tensor, kwargs)
                    out = func(*args, **kwargs)
            except (NotImplementedError, torch._subclasses.fake_tensor.UnsupportedOperatorException, torch._subclasses.fake_tensor.DynamicOutputShapeException,
                    torch._subclasses.fake_tensor.DataDependentOutputException) as e:
                out = self.by_hand(func, args, kwargs, shadows, e)
        self.shade(func, given, out, shadows)
        return out

    # ---- values

    def shadow(self, t):
        """The values of a tensor, if they are known."""
        if not isinstance(t, FakeTensor):
            return t if t.device.type == "cpu" and t.numel() <= SHADOW and t.layout == torch.strided else None
        s = t.__dict__.get("_ashlar_shadow")
        if s is None or s.values.untyped_storage()._cdata in self.poisoned:
            return None
        return s.values

    def shadows(self, func, given, args, kwargs):
        """The values of an operation's results if they are known, else None. The CPU's generator gives the script what it
        would give without ashlar: CUDA's numbers are drawn apart, and those of large weights are drawn and thrown away."""
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return self.values(func, given, args, kwargs)
        device = given[0].device if given else torch.device(kwargs.get("device") or "cpu")
        if device.type == "cuda":
            with self.apart():
                return self.values(func, given, args, kwargs)
        values = self.values(func, given, args, kwargs)
        if values is None and device.type == "cpu":  # on meta nothing is drawn
            self.draw(func, given, args, kwargs)
        return values

    @contextlib.contextmanager
    def apart(self):
        with unset_fake_temporarily():
            kept = torch.get_rng_state()
            if self.cuda_random is not None:
                torch.set_rng_state(self.cuda_random)
        try:
            yield
        finally:
            with unset_fake_temporarily():
                self.cuda_random = torch.get_rng_state()
                torch.set_rng_state(kept)

    def draw(self, func, given, args, kwargs):
        """Draw numbers for a tensor without bytes, a piece at a time."""
        name, piece = func._schema.name, 1 << 20
        if name in IN_PLACE_RANDOM and given:
            n, dtype = given[0].numel(), given[0].dtype
        elif func in FACTORIES and name in ("aten::rand", "aten::randn"):
            n, dtype = 1, kwargs.get("dtype") or torch.get_default_dtype()
            for d in args[0]:
                n *= int(d)
        else:
            return
        if self.drawn + n > MOST_DRAWN:
            if self.drawn <= MOST_DRAWN:
                self.note("%d random numbers were drawn for weights without bytes; those that the CPU draws from here on are others than in a real run" % MOST_DRAWN)
            self.drawn = MOST_DRAWN + 1
            return
        self.drawn += n
        with contextlib.suppress(Exception), unset_fake_temporarily(), torch.no_grad():
            buffer = torch.empty(min(n, 2 * piece), dtype=dtype)
            while n:
                m = n if n < 2 * piece else piece
                if given:
                    func(buffer[:m], *args[1:], **kwargs)
                else:
                    func([m], *args[1:], **dict(kwargs, device=None))
                n -= m

    def values(self, func, given, args, kwargs):
        """What the operation gives on the CPU if all values are known, else None."""
        if func in UNKNOWN or func._schema.name in HEAVY or any(t.numel() > SHADOW for t in given):
            return self.poison(func, args)
        if not given:
            if func not in FACTORIES and func not in COUNTING:
                return None
            if func in FACTORIES and args and isinstance(args[0], (list, tuple, torch.Size)):
                n = 1
                for d in args[0]:
                    n *= int(d)
                if n > (RANDOM if func._schema.name in DRAWN else SHADOW):
                    return None
        values = [self.shadow(t) for t in given]
        if any(v is None for v in values):
            return self.poison(func, args)
        values = iter(values)
        a = mapped(lambda t: next(values), args)
        k = mapped(lambda t: next(values), kwargs)
        if k.get("device") is not None:
            k["device"] = torch.device("cpu")
        if func is aten._to_copy.default:
            k.setdefault("device", torch.device("cpu"))
            k["pin_memory"] = None
        try:
            with unset_fake_temporarily(), torch.no_grad():
                return func(*a, **k)
        except Exception:
            return self.poison(func, args)

    def poison(self, func, args):
        """Forget the values of what an operation writes to."""
        if not func._schema.is_mutable:
            return None
        for i, a in enumerate(func._schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write and i < len(args):
                for t in tensors(args[i], []):
                    s = t.__dict__.get("_ashlar_shadow") if isinstance(t, FakeTensor) else None
                    if s is not None:
                        self.poisoned.add(s.values.untyped_storage()._cdata)
        return None

    def shade(self, func, given, out, shadows):
        if shadows is None:
            name = func._schema.name
            if name in HOLDS and isinstance(out, FakeTensor):
                out.__dict__["_ashlar_holds"] = not given[0].__dict__.get("_ashlar_holds", False) if name in NEGATES else True
            return
        for t, s in zip(tensors(out, []), tensors(shadows, [])):
            if isinstance(t, FakeTensor) and isinstance(s, torch.Tensor) and t.shape == s.shape and t.numel() <= SHADOW:
                if any(t is g for g in given):
                    continue
                self.poisoned.discard(s.untyped_storage()._cdata)
                t.__dict__["_ashlar_shadow"] = Shadow(s)

    def wrap(self, value, device):
        """A tensor of the CPU as one of another device without bytes."""
        with unset_fake_temporarily():
            meta = value.to("meta") if value.layout == torch.strided else value
        out = FakeTensor(self.fake, meta, torch.device(device))
        return out

    def by_hand(self, func, args, kwargs, shadows, error):
        """An operation that PyTorch cannot run without bytes: on the CPU, with zeros where nothing is known."""
        given = tensors((args, kwargs), [])
        device = next((t.device for t in given if t.device.type == "cuda"), torch.device("cuda", 0))
        if shadows is None:
            if sum(t.numel() * t.element_size() for t in given) > 1 << 30:
                raise error
            def value(t):
                v = self.shadow(t)
                with unset_fake_temporarily():
                    return v if v is not None else torch.zeros(t.shape, dtype=t.dtype)
            a, k = mapped(value, args), mapped(value, kwargs)
            if k.get("device") is not None:
                k["device"] = torch.device("cpu")
            try:
                with unset_fake_temporarily(), torch.no_grad():
                    shadows = func(*a, **k)
            except Exception:
                raise error from None
            self.note("%s ran on the CPU, with zeros for what is not known" % func)
        written = {}
        for i, a in enumerate(func._schema.arguments):
            if a.alias_info is not None and a.alias_info.is_write and i < len(args) and isinstance(args[i], torch.Tensor):
                return args[i]
        return mapped(lambda t: self.wrap(t, device), shadows)

    def note(self, text):
        self.ledger.line("n", text, self.ledger.stack())

    # ---- writing

    def write(self, func, args, kwargs, given, made):
        ledger = self.ledger
        node = torch._C._current_autograd_node()
        with ledger.lock:
            outputs = [ledger.storage(t) for t in made]
            inputs = [ledger.storage(t) for t in given]
            kind = ledger.kind(func, args, kwargs, given, made)
            stack = self.where(node)
            ledger.line("o", kind, stack, self.thread(func, node, given, inputs, outputs), self.stream, inputs, outputs)
            if func is aten._to_copy.default and given[0].device.type == "cpu" and made[0].device.type == "cuda":
                ledger.line("c", "input", outputs)
            if func.namespace not in NAMESPACES:
                ledger.line("u", str(func), stack)

    def thread(self, func, node, given, inputs, outputs):
        """0 is the script's, 1 autograd's. 2 is autograd's too: its own sum of gradients that come from two nodes. It is
        no such sum if the first is a view, whose base lives with it, or if the sum itself is to be differentiated."""
        if node is None:
            return 0
        number = node._sequence_nr()
        for s in outputs:
            self.makers.setdefault(s, number)
        if func is not aten.add.Tensor or torch.is_grad_enabled() or given[0]._is_view() or self.makers.get(inputs[0], number) == number:
            return 1
        return 1 if in_python() else 2

    def where(self, node):
        """The stack of the script; in the backward pass, of the line whose derivative it is."""
        if node is not None:
            known = self.forward.get(node._sequence_nr())
            if known is not None:
                return known
            return self.ledger.stack()
        stack = self.ledger.stack()
        if sequence_number is not None:
            self.forward[sequence_number() - 1] = stack
        return stack


def dispatching(code):
    """Whether a frame is PyTorch's, between an operation and the recorder."""
    return code.co_name == "_fn" and code.co_filename.endswith("eval_frame.py") or code.co_name == "inner" and code.co_filename.endswith("_compile.py")


def in_python():
    """Whether Python code called the operation, as a hook or the backward of an own function, and not the engine of autograd."""
    f = sys._getframe(1)
    while f is not None and (f.f_code.co_filename == __file__ or dispatching(f.f_code)):
        f = f.f_back
    return f is not None and not f.f_code.co_filename.endswith((os.path.join("autograd", "graph.py"), os.path.join("autograd", "__init__.py")))


@functools.cache
def foreign(kind):
    """Whether tensors of a class do their operations on others, as DTensor does."""
    return not issubclass(kind, FakeTensor) and kind.__torch_dispatch__ is not torch.Tensor.__torch_dispatch__


@functools.cache
def composite(func):
    """Whether an operation is made of others, as those of inference mode are that autograd does not take apart."""
    has = lambda key: torch._C._dispatch_has_kernel_for_dispatch_key(func.name(), key)
    return func.namespace == "aten" and has("CompositeImplicitAutograd") and not has("CUDA")


sequence_number = getattr(torch._C._autograd, "_get_sequence_nr", None) if hasattr(torch._C, "_autograd") else None
NAMESPACES = {"aten", "prim", "prims", "c10d", "_c10d_functional", "torchvision", "torchaudio", "inductor", "quantized", "profiler", "fsdp"}
FACTORIES = {getattr(getattr(aten, name), over) for name, over in (
    ("empty", "memory_format"), ("empty_strided", "default"), ("zeros", "default"), ("ones", "default"), ("full", "default"), ("rand", "default"), ("randn", "default"),
    ("randint", "default"), ("randint", "low"), ("rand", "generator"), ("randn", "generator"), ("randint", "generator"), ("randint", "low_generator"))}
COUNTING = {aten.arange.default, aten.arange.start, aten.arange.start_step, aten.linspace.default, aten.randperm.default, aten.scalar_tensor.default, aten.eye.default, aten.eye.m,
            aten.tril_indices.default, aten.triu_indices.default}
# Computing these on the CPU would take long, and nothing that a script reads depends on them.
HEAVY = {"aten::" + name for name in (
    "convolution", "convolution_backward", "mm", "addmm", "bmm", "baddbmm", "_cudnn_rnn", "_cudnn_rnn_backward", "cudnn_batch_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_scaled_dot_product_flash_attention", "_scaled_dot_product_efficient_attention", "_scaled_dot_product_cudnn_attention", "native_group_norm", "_batch_norm_with_update",
    "linalg_svd", "_linalg_svd", "linalg_eigh", "_linalg_eigh", "grid_sampler_2d", "upsample_bilinear2d", "upsample_bicubic2d")}
IN_PLACE_RANDOM = {"aten::normal_", "aten::uniform_", "aten::bernoulli_", "aten::exponential_", "aten::random_"}
DRAWN = {"aten::rand", "aten::randn", "aten::normal", "aten::empty", "aten::empty_strided"}
# Values of these are never known: empty has none, and the others are no tensors' business.
UNKNOWN = {aten._local_scalar_dense.default, aten._pin_memory.default, aten.is_pinned.default, aten.record_stream.default}


# --------------------------------------------------------------- the answers


class Unknown(float):
    """A number that was read from a tensor without values: no comparison holds."""

    __slots__ = ()
    __hash__ = float.__hash__

    def _no(self, other):
        return False

    __lt__ = __le__ = __gt__ = __ge__ = _no


ANSWERS = {}
# What a script checks is taken to hold: all(...), isfinite(...).
NEGATES = {"aten::logical_not", "aten::bitwise_not"}
HOLDS = {"aten::all", "aten::isfinite", "aten::_is_all_true", "aten::isclose"} | NEGATES


def answers(*ops):
    def register(f):
        for op in ops:
            ANSWERS[op] = f
        return f
    return register


@answers(aten._local_scalar_dense.default)
def scalar(r, func, args, kwargs, shadows):
    t = args[0]
    known = r.shadow(t)
    if known is not None:
        with unset_fake_temporarily():
            return known.item()
    if t.dtype == torch.bool:
        holds = t.__dict__.get("_ashlar_holds", False)
        r.note("a condition is %s" % holds)
        return holds
    r.note("item() of a %s: 0" % str(t.dtype)[6:])
    return 0.0 if t.is_floating_point() else 0


@answers(aten.equal.default)
def equal(r, func, args, kwargs, shadows):
    if isinstance(shadows, bool):
        return shadows
    r.note("equal(): False")
    return False


@answers(aten._pin_memory.default)
def pinned(r, func, args, kwargs, shadows):
    return args[0]


@answers(aten.is_pinned.default)
def is_pinned(r, func, args, kwargs, shadows):
    return False


@answers(aten.record_stream.default)
def record_stream(r, func, args, kwargs, shadows):
    return None


@answers(aten._assert_async.default, aten._assert_async.msg)
def no_assert(r, func, args, kwargs, shadows):
    return None


def drawn(r, t, values):
    """Gives a tensor values that may be wrong."""
    t.__dict__["_ashlar_shadow"] = Shadow(values)
    r.poisoned.discard(values.untyped_storage()._cdata)


@answers("aten::topk")
def topk(r, func, args, kwargs, shadows):
    if shadows is not None or args[0].numel() > SHADOW:
        return NotImplemented
    with r.fake:
        values, indices = func(*args, **kwargs)
    with unset_fake_temporarily():
        dim = args[2] if len(args) > 2 else kwargs.get("dim", -1)
        drawn(r, indices, torch.rand(args[0].shape).topk(args[1], dim).indices)
    r.note("topk(): indices are drawn")
    return values, indices


@answers("aten::argmax", "aten::argmin", "aten::multinomial")
def argmax(r, func, args, kwargs, shadows):
    if shadows is not None or args[0].numel() > SHADOW:
        return NotImplemented
    with r.fake:
        out = func(*args, **kwargs)
    dim = args[1] if func._schema.name != "aten::multinomial" and len(args) > 1 else kwargs.get("dim") if func._schema.name != "aten::multinomial" else -1
    n = args[0].numel() if dim is None else args[0].shape[dim]
    with unset_fake_temporarily():
        drawn(r, out, torch.randint(0, max(n, 1), out.shape))
    r.note("%s(): indices are drawn" % func._schema.name[6:])
    return out


def sized(r, func, shadows, t, what, make):
    """A result whose size depends on values: the known one, or the largest."""
    if shadows is not None:
        return mapped(lambda s: r.wrap(s, t.device), shadows)
    r.note("%s: the most there can be" % what)
    return make()


def new(r, t, shape, dtype=None):
    with r.fake:
        return torch.empty(shape, dtype=dtype or t.dtype, device=t.device)


@answers(aten.nonzero.default)
def nonzero(r, func, args, kwargs, shadows):
    t = args[0]
    def most():
        out = new(r, t, (max(t.dim(), 1), t.numel()), torch.int64)
        with r.fake:
            out = out.t()
        if t.numel() <= SHADOW:
            with unset_fake_temporarily():
                drawn(r, out, torch.ones(t.shape, dtype=torch.bool).nonzero())
        return out
    return sized(r, func, shadows, t, "nonzero()", most)


@answers(aten.masked_select.default)
def masked_select(r, func, args, kwargs, shadows):
    t = args[0]
    shape = torch.broadcast_shapes(args[0].shape, args[1].shape)
    return sized(r, func, shadows, t, "masked_select()", lambda: new(r, t, (shape.numel(),)))


@answers(aten._unique2.default, aten.unique_consecutive.default)
def unique(r, func, args, kwargs, shadows):
    t = args[0]
    inverse = args[2] if len(args) > 2 else kwargs.get("return_inverse", False)
    counts = args[3] if len(args) > 3 else kwargs.get("return_counts", False)
    if func is aten.unique_consecutive.default:
        inverse, counts = (args[1] if len(args) > 1 else kwargs.get("return_inverse", False)), (args[2] if len(args) > 2 else kwargs.get("return_counts", False))
    return sized(r, func, shadows, t, "unique()", lambda: (
        new(r, t, (t.numel(),)), new(r, t, t.shape if inverse else (0,), torch.int64), new(r, t, (t.numel() if counts else 0,), torch.int64)))


@answers(aten.repeat_interleave.Tensor)
def repeat_interleave(r, func, args, kwargs, shadows):
    t = args[0]
    n = kwargs.get("output_size")
    return sized(r, func, shadows, t, "repeat_interleave()", lambda: new(r, t, (n if n is not None else t.numel(),), torch.int64))


@answers(aten.bincount.default)
def bincount(r, func, args, kwargs, shadows):
    t = args[0]
    n = args[2] if len(args) > 2 else kwargs.get("minlength", 0)
    return sized(r, func, shadows, t, "bincount()", lambda: new(r, t, (max(n, 1),), torch.int64))


@answers(aten.index.Tensor)
def index(r, func, args, kwargs, shadows):
    masks = [i for i in args[1] if i is not None and i.dtype in (torch.bool, torch.uint8)]
    if not masks:
        return NotImplemented
    with r.fake:
        indices = []
        for i in args[1]:
            if i is None or i.dtype not in (torch.bool, torch.uint8):
                indices.append(i)
                continue
            known = r.shadow(i)
            if known is not None:
                with unset_fake_temporarily():
                    n = int(known.count_nonzero())
            else:
                n = i.numel()
                r.note("a mask selects all there is: %d" % n)
            indices += [torch.empty(n, dtype=torch.int64, device=args[0].device) for _ in range(i.dim())]
        return func(args[0], indices)


@answers(aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default)
def index_put(r, func, args, kwargs, shadows):
    if not any(i is not None and i.dtype in (torch.bool, torch.uint8) for i in args[1]):
        return NotImplemented
    if func is aten.index_put.default:
        with r.fake:
            return torch.empty_like(args[0])
    return args[0]


@answers(aten._cudnn_rnn.default)
def cudnn_rnn(r, func, args, kwargs, shadows):
    with r.fake:
        out, hy, cy, _, weights = func(*args, **kwargs)
        reserve = torch.empty(1 if args[12] else 0, dtype=torch.uint8, device=args[0].device)
        if isinstance(args[3], torch.Tensor):
            return out, hy, cy, reserve, weights
        # Weights that do not lie together are copied, and the copy is kept.
        return out, hy, cy, reserve, torch.empty(sum(w.numel() for w in args[1]), dtype=args[1][0].dtype, device=args[0].device)


@answers(aten._cudnn_rnn_backward.default)
def cudnn_rnn_backward(r, func, args, kwargs, shadows):
    x, weights, _, _, hx, cx = args[:6]
    mask = args[-1]
    with r.fake:
        dw = []
        if mask[3]:
            flat, at = torch.empty(sum(w.numel() for w in weights), dtype=x.dtype, device=x.device), 0
            for w in weights:
                dw.append(flat[at:at + w.numel()].view(w.shape))
                at += w.numel()
        return (torch.empty_like(x), torch.empty_like(hx), torch.empty_like(cx) if cx is not None and cx.numel() else None, dw)


@answers("aten::_thnn_fused_gru_cell")
def gru_cell(r, func, args, kwargs, shadows):
    h = args[2]
    return new(r, h, h.shape), new(r, h, (h.shape[0], 5 * h.shape[1]))


@answers("aten::_thnn_fused_gru_cell_backward")
def gru_cell_backward(r, func, args, kwargs, shadows):
    g = args[0]
    wide = (g.shape[0], 3 * g.shape[1])
    bias = [new(r, g, wide[1:]) if args[2] else None for _ in range(2)]
    return new(r, g, wide), new(r, g, wide), new(r, g, g.shape), bias[0], bias[1]


@answers("aten::_thnn_fused_lstm_cell")
def lstm_cell(r, func, args, kwargs, shadows):
    c = args[2]
    return new(r, c, c.shape), new(r, c, c.shape), new(r, c, (c.shape[0], 4 * c.shape[1]))


@answers("aten::_thnn_fused_lstm_cell_backward_impl")
def lstm_cell_backward(r, func, args, kwargs, shadows):
    c = args[2]
    return new(r, c, (c.shape[0], 4 * c.shape[1])), new(r, c, c.shape), new(r, c, (4 * c.shape[1],)) if args[5] else None


@answers("aten::_transformer_encoder_layer_fwd")
def encoder_layer(r, func, args, kwargs, shadows):
    return new(r, args[0], args[0].shape)


@answers(aten._cudnn_init_dropout_state.default)
def dropout_state(r, func, args, kwargs, shadows):
    with r.fake:
        return torch.empty(DROPOUT_STATE, dtype=torch.uint8, device=kwargs.get("device") or "cuda")


DROPOUT_STATE = 1  # and what an RNN keeps for its backward pass: ashlar dry knows how large they are


@answers(aten._cudnn_rnn_flatten_weight.default)
def flatten(r, func, args, kwargs, shadows):
    with r.fake, torch.no_grad():
        flat, at = torch.empty(sum(w.numel() for w in args[0]), dtype=args[0][0].dtype, device=args[0][0].device), 0
        for w in args[0]:
            aten.set_.source_Storage_storage_offset(w, flat.untyped_storage(), at, w.shape, w.stride())
            at += w.numel()
        return flat


@answers("torchvision::nms")
def nms(r, func, args, kwargs, shadows):
    return sized(r, func, shadows, args[0], "nms()", lambda: new(r, args[0], (args[0].shape[0],), torch.int64))


@answers("aten::_use_cudnn_ctc_loss", "aten::_use_miopen_ctc_loss")
def no_cudnn_ctc(r, func, args, kwargs, shadows):
    return False


@answers(aten._pack_padded_sequence.default)
def pack(r, func, args, kwargs, shadows):
    x, lengths, batch_first = args
    n = r.shadow(lengths)
    if n is None:
        return NotImplemented
    with unset_fake_temporarily():
        n = n.tolist()
        sizes = torch.tensor([sum(l > t for l in n) for t in range(max(n))])
    return new(r, x, (sum(n),) + tuple(x.shape[2:])), sizes


# ------------------------------------------------------------ the recording


class record:
    """Records what the code inside would allocate."""

    def __init__(self, path="run.dry.gz", steps=8, argv=None, save=True, card=None, data="real", world=1, rank=0):
        self.path, self.steps, self.argv, self.save, self.data = path, steps, argv or sys.argv, save, data
        self.card, self.world, self.rank = card or {}, world, rank
        self.done, self.undo, self.counts, self.idle = 0, [], {}, False
        self.optimizing = self.inside = False  # there is an optimizer; a module is being called
        self.passes = self.highest = self.held = 0  # forward passes since memory last grew, its peak, and the most that one left

    def __enter__(self):
        self.present = torch.cuda.is_available()
        facts = device_facts(self.card)
        self.facts = facts
        self.ledger = Ledger(self.path)
        self.ledger.head(torch=torch.__version__, cuda=torch.version.cuda, cudnn=torch.backends.cudnn.version() if torch.version.cuda else None, device=facts, argv=self.argv,
                         steps=self.steps, settings=os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "",
                         world={"size": self.world, "rank": self.rank})
        self.fake = FakeTensorMode(allow_non_fake_inputs=True, allow_fallback_kernels=False)
        self.recorder = Recorder(self.ledger, self.fake)
        if torch.version.cuda:
            self.ledger.cudnn = Cudnn(facts)
        self.fake.__enter__()  # before anything says that there is a GPU
        torch._C._set_only_lift_cpu_tensors(True)
        self.replace(FakeTensorMode, "avoid_device_init", lambda old: property(lambda mode: True))
        if not self.present:
            stand_in(self, facts)
        self.patch()
        self.recorder.__enter__()
        atexit.register(self.ledger.close)
        os.register_at_fork(after_in_child=self.forked)
        return self

    def __exit__(self, kind, error, trace):
        self.classify()
        why = "script"
        if kind is Stop:
            why = "steps" if self.optimizing else "passes"
        elif kind is not None and kind is not SystemExit:
            why = "interrupted" if kind is KeyboardInterrupt else "error: %s: %s" % (kind.__name__, str(error)[:300])
        self.mark("end", why)
        self.ledger.close()
        self.recorder.__exit__(None, None, None)
        self.fake.__exit__(None, None, None)
        for undo in reversed(self.undo):
            undo()
        return kind is Stop

    def forked(self):
        """A child loads data; it writes nothing here and its tensors have bytes."""
        self.recorder.off = True
        self.ledger.closed = True

    def mark(self, name, value=None):
        self.ledger.line("m", name, value)

    def replace(self, owner, name, make):
        if not hasattr(owner, name):
            return
        old = getattr(owner, name)
        setattr(owner, name, make(old))
        self.undo.append(lambda: setattr(owner, name, old))

    def patch(self):
        from torch.optim import optimizer as optim
        from torch.utils import _foreach_utils

        for module in (optim, _foreach_utils):  # a fake tensor is as good as any for foreach
            kinds = getattr(module, "_foreach_supported_types", None)
            if kinds is not None and FakeTensor not in kinds:
                kinds.append(FakeTensor)
                self.undo.append(functools.partial(kinds.remove, FakeTensor))
        self.replace(torch.utils, "swap_tensors", lambda old: swap)  # a fake tensor has weak references
        pre = optim.register_optimizer_step_pre_hook(lambda o, a, k: self.stepping(o))
        post = optim.register_optimizer_step_post_hook(lambda o, a, k: self.stepped(o))
        self.undo += [pre.remove, post.remove]
        self.replace(torch.autograd, "backward", lambda old: self.around("backward", old))
        self.replace(optim.Optimizer, "zero_grad", lambda old: self.around("zero_grad", old))
        for name in ("empty_cache", "synchronize"):
            self.replace(torch.cuda, name, lambda old, name=name: lambda *a, **k: self.mark(name))
        ledger = self.ledger
        for name, value in (("memory_allocated", lambda: ledger.live), ("max_memory_allocated", lambda: ledger.peak), ("memory_reserved", lambda: ledger.live),
                            ("max_memory_reserved", lambda: ledger.peak), ("reset_peak_memory_stats", lambda: None), ("reset_accumulated_memory_stats", lambda: None)):
            self.replace(torch.cuda, name, lambda old, value=value: lambda *a, **k: value())
        total = self.facts["total_bytes"]
        self.replace(torch.cuda, "mem_get_info", lambda old: lambda *a, **k: (max(total - ledger.live, 0), total))
        self.replace(torch.cuda, "memory_stats", lambda old: lambda *a, **k: Stats())
        self.replace(torch.cuda, "memory_summary", lambda old: lambda *a, **k: "")
        self.replace(torch.Tensor, "item", self.item)
        self.replace(torch.Tensor, "tolist", self.tolist)
        self.replace(torch.Tensor, "numpy", self.numpy)
        self.replace(torch.Tensor, "__array__", self.array)
        self.replace(torch.Tensor, "data_ptr", self.data_ptr)
        self.replace(torch.Tensor, "pin_memory", lambda old: lambda t, *a, **k: t)
        self.replace(torch, "save", self.saving)
        try:
            import safetensors.torch
            for name in ("save_file", "save_model"):
                self.replace(safetensors.torch, name, self.saving)
        except ImportError:
            pass
        self.replace(torch.utils.data.DataLoader, "__init__", self.unpinned)
        if self.data == "fake":
            self.replace(torch.utils.data.DataLoader, "__iter__", alike)
        self.replace(optim.Optimizer, "__init__", self.optimized)
        self.replace(torch.nn.Module, "__call__", self.passing)
        self.replace(FakeTensorMode, "may_turn_const", lambda old: lambda mode, t: False)
        FakeTensorMode.__deepcopy__ = lambda mode, memo: mode
        self.replace(torch, "compile", self.compiling)
        self.replace(torch, "ctc_loss", self.ctc)
        for mode, name in enumerate(("rnn_relu", "rnn_tanh", "lstm", "gru")):
            self.replace(torch._VF, name, functools.partial(recurrent, mode))
        self.replace(torch.UntypedStorage, "resize_", self.resizing)
        if self.world > 1:
            join(self)
        self.replace(torch.cuda, "stream", lambda old: functools.partial(self.on_stream, old))

    # ---- what is read

    def item(self, old):
        def item(t):
            value = old(t)
            return Unknown(value) if isinstance(value, float) and isinstance(t, FakeTensor) and self.recorder.shadow(t) is None else value
        return item

    def values(self, t, what):
        """The values of a tensor as one of the CPU."""
        if not isinstance(t, FakeTensor):
            return t
        known = self.recorder.shadow(t)
        if known is None:
            self.recorder.note("%s of a %s: zeros" % (what, str(t.dtype)[6:]))
            with unset_fake_temporarily():
                known = torch.zeros(t.shape, dtype=t.dtype)
        return known

    def tolist(self, old):
        return lambda t: old(self.values(t, "tolist()"))

    def numpy(self, old):
        def numpy(t, *args, **kwargs):
            if isinstance(t, FakeTensor) and t.device.type == "cuda":
                raise TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host memory first.")
            return old(self.values(t, "numpy()"), *args, **kwargs)
        return numpy

    def array(self, old):
        return lambda t, *args, **kwargs: old(self.values(t, "numpy()"), *args, **kwargs)

    def data_ptr(self, old):
        def data_ptr(t):
            if not isinstance(t, FakeTensor):
                return old(t)
            if sys._getframe(1).f_code.co_filename.endswith("_tensor.py"):
                return 0  # so that a copy is a clone
            return (1 << 46) + (self.ledger.storage(t) << 20) + t.storage_offset() * t.element_size()
        return data_ptr

    def saving(self, old):
        """torch.save and its kin: what has no bytes is not written over what has."""
        @functools.wraps(old)
        def save(*args, **kwargs):
            given = [*args, *kwargs.values()]
            what, f = given[0] if given else None, given[1] if len(given) > 1 else None
            parts = what.state_dict() if isinstance(what, torch.nn.Module) else what
            if not self.save or any(isinstance(t, FakeTensor) for t in tensors(parts, [])):
                name = f if isinstance(f, (str, os.PathLike)) else "a file"
                self.mark("save", str(name))
                print("ashlar_dry: %s is not written: %s" % (name, "its tensors have no bytes" if self.save else "--no-save"), file=sys.stderr)
                return None
            return old(*args, **kwargs)
        return save

    def compiling(self, old):
        def compile(model=None, **options):
            if model is None:
                return lambda m: compile(m, **options)
            if options.get("disable"):
                return model
            if not self.idle:
                self.idle = True
                idle_kernels(self)
            if isinstance(model, torch.nn.Module):
                model.forward = Compiled(self, model.forward, model)
                return model
            return functools.wraps(model)(Compiled(self, model, None))
        return compile

    def ctc(self, old):
        """Lengths that are known go as numbers; PyTorch would take another way for tensors without bytes."""
        def ctc_loss(probs, targets, lengths, target_lengths, *args, **kwargs):
            known = [x.tolist() if isinstance(x, torch.Tensor) else x for x in (lengths, target_lengths)]
            return old(probs, targets, *known, *args, **kwargs)
        return ctc_loss

    def resizing(self, old):
        def resize(storage, size):
            out = old(storage, size)
            with self.ledger.lock:
                self.ledger.resized(storage)
            return out
        return resize

    def unpinned(self, old):
        @functools.wraps(old)
        def init(loader, *args, **kwargs):
            old(loader, *args, **kwargs)
            loader.pin_memory = False
        return init

    @contextlib.contextmanager
    def on_stream(self, old, stream):
        r, before = self.recorder, self.recorder.stream
        if stream is not None:
            r.stream = r.streams.setdefault(getattr(stream, "stream_id", id(stream)), len(r.streams) + 1) if getattr(stream, "stream_id", 1) else 0
        try:
            yield
        finally:
            r.stream = before

    # ---- moments

    def around(self, name, old):
        @functools.wraps(old)
        def call(*args, **kwargs):
            if name == "backward" and not self.done:
                self.classify()
            self.mark(name, "begin")
            try:
                return old(*args, **kwargs)
            finally:
                self.mark(name, "end")
        return call

    def tell(self, kind, ts):
        ts = [getattr(t, "_local_tensor", t) for t in ts]  # of a DTensor what is here
        found = [self.ledger.storage(t) for t in ts if isinstance(t, FakeTensor) and t.device.type == "cuda"]
        if found:
            self.ledger.line("c", kind, found)

    def classify(self):
        """Tell what the storages of modules are."""
        for m in [o for o in gc.get_objects() if issubclass(type(o), torch.nn.Module)]:
            try:
                self.tell("buffer", [t for t in m._buffers.values() if t is not None])
                self.tell("parameter", [t for t in m._parameters.values() if t is not None])
            except Exception:
                continue

    def optimized(self, old):
        @functools.wraps(old)
        def init(*args, **kwargs):
            self.optimizing = True
            out = old(*args, **kwargs)
            if args:
                self.counts.setdefault(id(args[0]), 0)
            return out
        return init

    def passing(self, old):
        """Calls of modules. Without an optimizer the outermost ones are what a script is made of."""
        def call(module, *args, **kwargs):
            if self.optimizing or self.inside:
                return old(module, *args, **kwargs)
            self.inside = True
            try:
                out = old(module, *args, **kwargs)
            finally:
                self.inside = False
            self.passed()
            return out
        return call

    def passed(self):
        """A script without an optimizer ends when memory has not grown for as many forward passes as there would be steps:
        neither the peak nor what a pass leaves, as a cache of keys and values."""
        self.passes = self.passes + 1 if self.ledger.peak <= self.highest and self.ledger.live <= self.held else 0
        self.highest, self.held = self.ledger.peak, max(self.held, self.ledger.live)
        if self.steps and self.passes >= self.steps and not self.recorder.off:
            raise Stop()

    def stepping(self, optimizer):
        params = [p for g in optimizer.param_groups for p in g["params"]]
        self.tell("gradient", [p.grad for p in params if p.grad is not None])
        self.tell("parameter", params)
        self.mark("optimizer", "begin")

    def stepped(self, optimizer):
        self.mark("optimizer", "end")
        self.tell("optimizer", tensors([list(s.values()) if isinstance(s, dict) else s for s in optimizer.state.values()], []))
        self.done += 1
        n = self.counts[id(optimizer)] = self.counts.get(id(optimizer), 0) + 1
        self.mark("steps", self.done)
        if self.steps and (min(self.counts.values()) >= self.steps or n >= 4 * self.steps):  # some are made and never used
            raise Stop()


def alike(old):
    """The batches of a loader: the first is loaded, the others are copies of it."""
    @functools.wraps(old)
    def batches(loader):
        try:
            left = len(loader)
        except TypeError:  # of an iterable without a length
            left = None
        for first in old(loader):
            while left is None or left > 0:
                yield mapped(lambda t: t.clone(), first)
                left = None if left is None else left - 1
            return
    return batches


class Compiled:
    """A function that torch.compile would compile. Inductor compiles it here as well, for the same shapes; what
    comes out, a list of allocations, kernels and frees, is run with kernels that do nothing. Dynamo is left out:
    it skips whatever runs under a dispatch mode. A function that cannot be had so runs eagerly, which takes more."""

    def __init__(self, recording, forward, module):
        self.recording, self.forward, self.module, self.graphs = recording, forward, module, {}

    def __call__(self, *args, **kwargs):
        from torch.utils import _pytree

        flat, spec = _pytree.tree_flatten((args, kwargs))
        at = [i for i, x in enumerate(flat) if isinstance(x, torch.Tensor)]
        cast = torch.is_autocast_enabled("cuda") and torch.get_autocast_dtype("cuda")
        named = {**dict(self.module.named_parameters()), **dict(self.module.named_buffers())} if self.module is not None else {}
        given, weights = [flat[i] for i in at], list(named.values())
        key = (cast, torch.is_grad_enabled(), self.module is not None and self.module.training,
               tuple((x.dtype, x.shape, x.stride(), x.device, x.requires_grad) if isinstance(x, torch.Tensor) else repr(x) for x in flat))
        if key not in self.graphs:
            try:
                self.graphs[key] = self.compile(flat, spec, at, weights, list(named), cast)
                self.recording.mark("compile", "inductor")
            except Exception as e:
                self.graphs[key] = None
                why = "%s: %s" % (type(e).__name__, str(e).strip().split("\n")[0][:200])
                self.recording.mark("compile", "eager: " + why)
                self.recording.recorder.note("torch.compile failed here (%s): eager, which takes more" % why)
                if os.environ.get("ASHLAR_DRY_DEBUG"):
                    import traceback
                    traceback.print_exc()
        graph = self.graphs[key]
        if graph is None:
            return self.forward(*args, **kwargs)
        run, result = graph
        with torch.autocast("cuda", enabled=False):
            out = run(*weights, *given)
        return _pytree.tree_unflatten(list(out), result["spec"])

    def compile(self, flat, spec, at, weights, names, cast):
        from torch._inductor import compile_fx
        from torch.utils import _pytree
        from torch.utils._python_dispatch import _disable_current_modes

        module, forward, result = self.module, self.forward, {}
        others = [None if isinstance(x, torch.Tensor) else x for x in flat]  # tensors are not to be kept

        class Flat(torch.nn.Module):
            def forward(self, *xs):
                whole = list(others)
                for i, x in zip(at, xs[len(names):]):
                    whole[i] = x
                args, kwargs = _pytree.tree_unflatten(whole, spec)
                with torch.autocast("cuda", dtype=cast or torch.float16, enabled=bool(cast)):
                    if module is None:
                        out = forward(*args, **kwargs)
                    else:
                        out = torch.func.functional_call(module, dict(zip(names, xs)), args, kwargs)
                leaves, result["spec"] = _pytree.tree_flatten(out)
                return tuple(leaves)

        kept = module.__dict__.pop("forward") if module is not None else None
        try:
            with _disable_current_modes(), torch.autocast("cuda", enabled=False):
                with self.recording.fake:  # examples, which the compiled function may keep
                    like = [torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device=t.device).requires_grad_(t.requires_grad)
                            for t in [*weights, *(flat[i] for i in at)]]
                return compile_fx.compile_fx(Flat(), like), result
        finally:
            if module is not None:
                module.__dict__["forward"] = kept


def idle_kernels(recording):
    """Code that Inductor writes from now on allocates and frees, and computes nothing. Backward passes are compiled
    when they first run, so this lasts."""
    from torch._inductor import async_compile, config

    guards = torch._C._dynamo.guards
    nothing = lambda *args, **kwargs: None
    for owner, name, value in (
            (async_compile.AsyncCompile, "triton", lambda *args, **kwargs: types.SimpleNamespace(run=nothing)),
            (guards, "assert_size_stride", nothing), (guards, "assert_alignment", nothing),
            (guards, "_empty_strided_cuda", lambda size, stride, dtype: torch.empty_strided(size, stride, dtype=dtype, device="cuda")),
            (guards, "_reinterpret_tensor", lambda t, size, stride, offset=0: torch.as_strided(t, size, stride, t.storage_offset() + offset)),
            (torch._C, "_cuda_getCurrentRawStream", lambda *args: 0),
            (config, "force_disable_caches", True), (config, "compile_threads", 1)):
        recording.replace(owner, name, lambda old, value=value: value)


def recurrent(mode, fallback):
    """torch._VF.lstm and its kin by cuDNN, which wants a GPU before it is asked."""
    dropout = {}

    def call(x, *args):
        packed = isinstance(args[1], (list, tuple)) and mode == 2 and isinstance(args[0], torch.Tensor) or mode != 2 and isinstance(args[1], torch.Tensor)
        if not x.is_cuda or not torch.backends.cudnn.enabled:
            return fallback(x, *args)
        sizes, args = (args[0], args[1:]) if packed else (None, args)
        hx, weights, bias, layers, drop, train, two = args[:7]
        batch_first = False if packed else args[7]
        h, c = hx if mode == 2 else (hx, None)
        state = None
        if drop > 0 and train:
            if x.device not in dropout:
                dropout[x.device] = aten._cudnn_init_dropout_state(drop, True, 0, dtype=torch.uint8, device=x.device)
            state = dropout[x.device]
        project = h.shape[2] if mode == 2 and h.shape[2] != c.shape[2] else 0
        each = (4 if bias else 2) + (1 if project else 0)
        flat = None
        if len({w.untyped_storage()._cdata for w in weights}) == 1:
            n = sum(w.numel() for w in weights)
            with torch.no_grad():
                flat = torch.as_strided(weights[0].detach(), (n,), (1,), 0)
        hidden = c.shape[2] if mode == 2 else h.shape[2]
        out, hy, cy, _, _ = aten._cudnn_rnn(x, list(weights), each, flat, h, c, mode, hidden, project, layers, batch_first, drop, train, two,
                                            sizes.tolist() if packed else [], state)
        return (out, hy, cy) if mode == 2 else (out, hy)
    return call


class Stats(dict):
    """Statistics of an allocator that has done nothing."""

    def __missing__(self, key):
        return 0


def swap(a, b):
    """Exchange two tensors, as a module does when it is moved."""
    a.__class__, b.__class__ = b.__class__, a.__class__
    a.__dict__, b.__dict__ = b.__dict__, a.__dict__
    torch._C._swap_tensor_impl(a, b)


# ------------------------------------------------------ several processes


def join(recording):
    """Make this process one of several that are not there: nothing is sent, and what comes has the right size."""
    import torch.distributed as dist
    from torch.distributed import device_mesh, distributed_c10d
    from torch.nn.parallel import distributed as parallel

    os.environ.update(WORLD_SIZE=str(recording.world), RANK=str(recording.rank), LOCAL_RANK="0", LOCAL_WORLD_SIZE="1")
    os.environ.setdefault("MASTER_ADDR", "127.0.0.1")
    os.environ.setdefault("MASTER_PORT", "29500")

    def init(old):
        @functools.wraps(old)
        def init_process_group(*args, **kwargs):
            import torch.testing._internal.distributed.fake_pg  # noqa: F401  (it registers the backend)

            return old("fake", rank=recording.rank, world_size=recording.world)
        return init_process_group

    def group(old):
        @functools.wraps(old)
        def new_group(ranks=None, *args, **kwargs):
            return old(ranks)
        return new_group

    for module in (dist, distributed_c10d, device_mesh):
        recording.replace(module, "init_process_group", init)
        recording.replace(module, "new_group", group)
    recording.replace(parallel, "_verify_param_shape_across_processes", lambda old: lambda *a, **k: None)  # it reads what came
    recording.replace(dist, "Reducer", lambda old: Buckets)
    recording.replace(dist, "Logger", lambda old: Silent)


class Silent:
    """Something that is told a lot and does nothing."""

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: None


class Buckets(Silent):
    """The reducer of DistributedDataParallel: buckets as large as all gradients. After the first backward pass they
    are made anew, in the order in which gradients came."""

    def __init__(self, parameters, indices, limits, group, sparse, cap, unused=False, views=False, names=None, first=1 << 20, *rest):
        self.parameters, self.cap, self.first, self.as_views = list(parameters), cap, first, views
        self.order, self.rebuilt, self.missing = [], unused, 0
        self.lay(indices)
        self.hooks = [p.register_post_accumulate_grad_hook(functools.partial(self.arrived, i)) for i, p in enumerate(self.parameters)]

    def lay(self, indices):
        self.buckets, self.views = [], {}  # those before are gone first
        for bucket in indices:
            first, at = self.parameters[bucket[0]], 0
            flat = torch.empty(sum(self.parameters[i].numel() for i in bucket), dtype=first.dtype, device=first.device)
            self.buckets.append(flat)
            for i in bucket:
                p = self.parameters[i]
                self.views[i], at = flat[at:at + p.numel()].view(p.shape), at + p.numel()

    def prepare_for_backward(self, outputs):
        self.missing = len(self.parameters)  # without it gradients are only summed up

    def arrived(self, i, p):
        if not self.missing:
            return
        self.missing -= 1
        if not self.rebuilt:
            self.order.append(i)
        if self.as_views:
            p.grad = self.views[i]

    def _rebuild_buckets(self):
        import torch.distributed as dist

        if self.rebuilt or not self.order:
            return False
        self.rebuilt = True
        of = [self.parameters[i] for i in self.order]
        indices, _ = dist._compute_bucket_assignment_by_size(of, [self.first, self.cap], [False] * len(of), self.order)
        self.lay(indices)
        return True

    def _remove_autograd_hooks(self):
        for hook in self.hooks:
            hook.remove()


# ----------------------------------------------------------- cuDNN's choices


RECURRENT = {aten._cudnn_rnn.default: 6, aten._cudnn_rnn_backward.default: 10}  # where their sizes begin
ASKED = {aten.convolution.default, aten.convolution_backward.default, *RECURRENT}
# Of cudnn_graph.h: kinds of descriptors, what they are made of, and types.
ENGINE, CONFIG, HEURISTICS, GRAPH, TENSOR, CONVOLUTION, CARD = 2, 3, 4, 15, 17, 1, 38
HANDLE, DTYPE, INT64, FLOAT, MODE, HEURISTIC, NOTE, DESCRIPTOR, CHAR = 0, 1, 3, 4, 7, 8, 11, 15, 24
C_TYPES = {HANDLE: ctypes.c_void_p, INT64: ctypes.c_int64, FLOAT: ctypes.c_float, DESCRIPTOR: ctypes.c_void_p, CHAR: ctypes.c_char}
FORWARD, FILTER, DATA = (10, 700, (704, 705, 703)), (11, 712, (716, 717, 715)), (12, 706, (710, 711, 709))  # x, y, w
CUDNN_TYPES = {torch.float32: 0, torch.float64: 1, torch.float16: 2, torch.bfloat16: 9}


class Cudnn:
    """Asks cuDNN which kernel it takes for a convolution and what workspace that needs, as PyTorch does. Nothing runs. Where
    there is no GPU the card is described to it; then it leaves out kernels that ask the driver."""

    def __init__(self, facts):
        self.facts, self.cudnn, self.made, self.lock = facts, None, [], threading.Lock()

    def load(self):
        self.of_graph = self.of_heuristics = None  # not to be asked, if what follows fails
        self.cudnn = ctypes.CDLL("libcudnn.so.9")
        self.cudnn.cudnnGetVersion.restype = ctypes.c_size_t
        signature = ctypes.c_void_p, ctypes.c_int, ctypes.c_int, ctypes.c_int64
        self.cudnn.cudnnBackendSetAttribute.argtypes = *signature, ctypes.c_void_p
        self.cudnn.cudnnBackendGetAttribute.argtypes = *signature, ctypes.c_void_p, ctypes.c_void_p
        for name in ("Finalize", "DestroyDescriptor"):
            getattr(self.cudnn, "cudnnBackend" + name).argtypes = [ctypes.c_void_p]
        if self.facts["present"]:
            self.handle = ctypes.c_void_p()
            self.plainly("cudnnCreate", ctypes.byref(self.handle))
            self.of_graph, self.of_heuristics = [(800, HANDLE, [self.handle])], []
            return
        if self.cudnn.cudnnGetVersion() < 90800:
            raise OSError("cuDNN before 9.8 knows the GPU of the machine alone")
        card = self.make(CARD, (2702, CHAR, json.dumps(described(self.facts)).encode()))
        self.of_graph, self.of_heuristics = [], [(204, DESCRIPTOR, [card])]

    def call(self, name, *args):
        status = getattr(self.cudnn, "cudnnBackend" + name)(*args)
        if status:
            raise OSError("cudnnBackend%s: status %d" % (name, status))

    def make(self, kind, *attributes, whole=True):
        d = ctypes.c_void_p()
        self.call("CreateDescriptor", kind, ctypes.byref(d))
        self.made.append(d)
        for name, type_, values in attributes:
            array = (C_TYPES.get(type_, ctypes.c_int) * len(values))(*values)
            self.call("SetAttribute", d, name, type_, len(values), array)
        if whole:
            self.call("Finalize", d)
        return d

    def read(self, d, name, type_, room):
        array, n = (C_TYPES.get(type_, ctypes.c_int) * room)(), ctypes.c_int64()
        self.call("GetAttribute", d, name, type_, room, ctypes.byref(n), array)
        return list(array[:n.value])

    def workspaces(self, func, args, made):
        """What a call takes beside its results, -1 for what is not known."""
        try:
            with self.lock:
                if self.cudnn is None:
                    self.load()
                return self.recurrent(func, args) if func in RECURRENT else self.convolution(func, args, made)
        except Exception:  # whatever it is, the run goes on without the answer
            return [-1, -1]

    def recurrent(self, func, args):
        """As RNN.cpp: workspace and reserve of a recurrent layer. cuDNN has no way to ask without a GPU."""
        if not self.facts["present"]:
            return [-1, -1]
        x, at, forward = args[0], RECURRENT[func], func is aten._cudnn_rnn.default
        mode, hidden, projected, layers, batch_first, dropout, train, both, sizes = args[at:at + 9]
        if sizes:
            lengths = [1] * sizes[0]
            for n in sizes[1:]:
                for i in range(n):
                    lengths[i] += 1
        else:
            batch, steps = (x.shape[0], x.shape[1]) if batch_first else (x.shape[1], x.shape[0])
            lengths = [int(steps)] * int(batch)
        small = {True: (384, 192), False: (256, 128)}[forward][mode >= 2]
        algorithm = 0  # the standard one
        if not projected and not sizes and x.dtype != torch.float64 and hidden <= small:
            algorithm = 3
        elif not projected and not sizes and x.dtype == torch.float16 and persistent(self.facts, mode, hidden, layers, both, int(x.shape[-1]), len(lengths)):
            algorithm = 1
        kind = CUDNN_TYPES[x.dtype]
        precision = kind if x.dtype == torch.float64 else 0
        math = 1 if x.dtype == torch.float16 else 0 if torch.backends.cudnn.allow_tf32 else 3
        call, made = self.plainly, []
        try:
            for name in ("Dropout", "RNN", "RNNData"):
                made.append((name, ctypes.c_void_p()))
                call("cudnnCreate%sDescriptor" % name, ctypes.byref(made[-1][1]))
            drop, layer, data = (d for _, d in made)
            states = ctypes.c_size_t()
            call("cudnnDropoutGetStatesSize", self.handle, ctypes.byref(states))
            p = float(dropout) if train else 0.0
            call("cudnnRestoreDropoutDescriptor", drop, self.handle, ctypes.c_float(p), ctypes.c_void_p(512 if p else None), ctypes.c_size_t(states.value if p else 0), ctypes.c_ulonglong(0))
            call("cudnnSetRNNDescriptor_v8", layer, algorithm, mode, 2, int(both), 0, kind, precision, math, int(x.shape[-1]), hidden, projected or hidden, layers, drop, int(not sizes))
            array = (ctypes.c_int * len(lengths))(*lengths)
            call("cudnnSetRNNDataDescriptor", data, kind, 1 if sizes else 0, max(lengths), len(lengths), int(x.shape[-1]), array, None)
            work, reserve = ctypes.c_size_t(), ctypes.c_size_t()
            call("cudnnGetRNNTempSpaceSizes", self.handle, layer, int(bool(train)), data, ctypes.byref(work), ctypes.byref(reserve))
            return [work.value, reserve.value]
        finally:
            for name, d in reversed(made):
                getattr(self.cudnn, "cudnnDestroy%sDescriptor" % name)(d)

    def plainly(self, name, *args):
        status = getattr(self.cudnn, name)(*args)
        if status:
            raise OSError("%s: status %d" % (name, status))

    def convolution(self, func, args, made):
        """The workspaces of a convolution, or of its gradients of input and weight."""
        if func is aten.convolution.default:
            (x, w), y, rest, passes = args[:2], made[0], args[3:], (True,)
        else:
            (y, x, w), rest, passes = args[:3], args[4:], args[10][:2]
        if torch.backends.cudnn.benchmark or not torch.backends.cudnn.enabled:  # then it is a matter of time, or of other kernels
            return [-1] * len(passes)
        stride, padding, dilation, transposed = ([int(n) for n in rest[0]], [int(n) for n in rest[1]], [int(n) for n in rest[2]], rest[3])
        last = x.dtype != torch.float64 and any(map(channels_last, (x, w)))
        shapes = [[int(n) for n in t.shape] for t in (x, y, w)]
        if len(shapes[0]) == 3:
            shapes = [s[:2] + [1] + s[2:] for s in shapes]
            stride, padding, dilation = [1] + stride[-1:], [0] + padding[-1:], [1] + dilation[-1:]
        space = len(shapes[0]) - 2
        stride, padding, dilation = ((list(p) * space)[:space] if len(p) == 1 else list(p) for p in (stride, padding, dilation))
        kinds = [FORWARD] if func is aten.convolution.default else [DATA, FILTER]
        if transposed:
            shapes[:2] = shapes[1::-1]
            kinds = [{FORWARD: DATA, DATA: FORWARD}.get(k, k) for k in kinds]
        return [self.workspace(k, x.dtype, shapes, last, stride, padding, dilation) if wanted else 0 for k, wanted in zip(kinds, passes)]

    def workspace(self, kind, dtype, shapes, last, stride, padding, dilation):
        """As Conv_v8.cpp: that of the first of cuDNN's proposals which PyTorch does not refuse."""
        number, first, places = kind
        self.made = []
        try:
            tensors = [self.make(TENSOR, (906, INT64, [ord(name)]), (900, INT64, [32]), (901, DTYPE, [CUDNN_TYPES[dtype]]), (902, INT64, s), (903, INT64, strides(s, last)))
                       for name, s in zip("xyw", shapes)]
            how = self.make(CONVOLUTION, (100, DTYPE, [1 if dtype == torch.float64 else 0]), (101, MODE, [1]), (106, INT64, [len(stride)]), (103, INT64, stride),
                            (105, INT64, padding), (104, INT64, padding), (102, INT64, dilation))
            operation = self.make(number, (first, FLOAT, [1.0]), (first + 1, FLOAT, [0.0]), (first + 2, DESCRIPTOR, [how]), *((at, DESCRIPTOR, [t]) for at, t in zip(places, tensors)))
            graph = self.make(GRAPH, *self.of_graph, (801, DESCRIPTOR, [operation]))
            for mode in (0, 2):  # instant, fallback
                proposals = self.make(HEURISTICS, (201, DESCRIPTOR, [graph]), (200, HEURISTIC, [mode]), *self.of_heuristics)
                for config in self.proposals(proposals):
                    if not self.refused(config, dtype, len(stride) == 3 and kind is DATA):
                        return self.read(config, 303, INT64, 1)[0]
            return -1
        finally:
            for d in reversed(self.made):
                self.cudnn.cudnnBackendDestroyDescriptor(d)
            self.made = []

    def proposals(self, heuristics):
        n = ctypes.c_int64()
        self.call("GetAttribute", heuristics, 202, DESCRIPTOR, 0, ctypes.byref(n), None)
        for count in (1, n.value):  # most often the first is taken, which is quick to have
            configs = [self.make(CONFIG, whole=False) for _ in range(count)]
            self.call("GetAttribute", heuristics, 202, DESCRIPTOR, count, ctypes.byref(n), (ctypes.c_void_p * count)(*configs))
            yield from configs[:n.value]  # not all that were counted can be had

    def refused(self, config, dtype, broken):
        """Whether PyTorch leaves a kernel out."""
        engine = self.make(ENGINE, whole=False)
        n = ctypes.c_int64()
        self.call("GetAttribute", config, 300, DESCRIPTOR, 1, ctypes.byref(n), ctypes.byref(engine))
        notes = self.read(engine, 1303, NOTE, 16)
        tensor_core, converts, random = 0 in notes, 1 in notes, 4 in notes
        if broken and self.read(engine, 1301, INT64, 1)[0] == 23:
            return True
        return converts or random and torch.backends.cudnn.deterministic or tensor_core and dtype == torch.float32 and not torch.backends.cudnn.allow_tf32


def persistent(facts, mode, hidden, layers, both, width, batch):
    """Whether PyTorch chooses the persistent algorithm for a recurrent layer in fp16."""
    (major, minor), processors = facts["capability"], facts["processors"]
    if layers != 1 or hidden > 1024 or both or hidden % 128 or width % 128 or major < 8 or processors < 98 or minor == 6 or mode == 3:
        return False
    return batch % 8 == 0 and batch <= 128 and (mode == 2 or batch < 96 or hidden < 896)


def described(facts):
    """A card as cuDNN knows it. What a shared memory and a multiprocessor hold depends on the generation."""
    major, minor = facts["capability"]
    shared, blocks = {(8, 0): (166912, 32), (8, 6): (101376, 16), (8, 9): (101376, 24), (9, 0): (232448, 32), (10, 0): (232448, 32), (12, 0): (101376, 24)}.get((major, minor), (232448, 32))
    return {
        "maxGridSize": [2147483647, 65535, 65535], "maxBlockSize": [1024, 1024, 64], "regsPerBlock": 65536, "multiProcessorCount": facts["processors"], "warpSize": 32,
        "maxSharedMemoryPerBlock": 49152, "maxSharedMemoryPerBlockOptin": shared, "reservedSharedMemoryPerBlock": 1024, "maxRegistersPerSM": 65536, "maxCtasPerSM": blocks,
        "maxThreadsPerBlock": 1024, "maxThreadsPerSM": facts["threads"], "pciDeviceId": 6, "isTccDriver": 0, "supportCoopLaunch": 1, "totalGlobalMem": facts["total_bytes"],
        "smClockRateKHz": 1980000, "memClockRateKHz": 3201000, "l2CacheSize": 62914560, "cudaDeviceId": 0, "deviceVer": 100 * major + 10 * minor, "driverVer": 13000,
        "deviceName": facts["name"]}


def channels_last(t):
    return torch._prims_common.suggest_memory_format(t) in (torch.channels_last, torch.channels_last_3d)


def strides(shape, last):
    """Of a tensor that lies close, with the channels last or not."""
    order = range(len(shape) - 1, -1, -1) if not last else (1, *range(len(shape) - 1, 1, -1), 0)
    out, step = [0] * len(shape), 1
    for d in order:
        out[d] = step
        step *= shape[d]
    return out


# ----------------------------------------------- machines that have no GPU


def device_facts(card):
    facts = {"name": "NVIDIA H200", "total_bytes": 150109880320, "capability": [9, 0], "processors": 132, "threads": 2048, "present": False}
    p = torch.cuda.get_device_properties(0) if torch.cuda.is_available() else None
    if p is not None and (not card or card.get("capability") == [p.major, p.minor] and abs(card["total_bytes"] / p.total_memory - 1) < 0.05):
        facts = {"name": p.name, "total_bytes": p.total_memory, "capability": [p.major, p.minor], "processors": p.multi_processor_count,
                 "threads": p.max_threads_per_multi_processor, "present": True}
    facts.update(card)
    return facts


def stand_in(recording, facts):
    """Let PyTorch believe in a GPU. Three of its functions ask the driver; they are given the answers of the card."""
    props = (ctypes.c_char * 4096)()
    major, minor = facts["capability"]
    name = facts["name"].encode()[:255]
    ctypes.memmove(props, name, len(name))
    # struct cudaDeviceProp of CUDA 12 and 13
    ctypes.c_size_t.from_buffer(props, 288).value = facts["total_bytes"]
    ctypes.c_size_t.from_buffer(props, 296).value = 49152
    for at, value in ((304, 65536), (308, 32), (320, 1024), (360, major), (364, minor)):
        ctypes.c_int.from_buffer(props, at).value = value
    recording.props = props  # PyTorch reads it from now on
    recording.replace(torch._subclasses.fake_tensor, "init_gpu_context", lambda old: lambda device: None)
    for library in ("libc10_cuda.so", "libtorch_cuda.so"):
        rewrite(os.path.join(os.path.dirname(torch.__file__), "lib", library), {
            "_ZN3c104cuda12device_countEv": 16,  # autograd asks about more devices than there are
            "26getCurrentDevicePropertiesE": ctypes.addressof(props),
            "19getDevicePropertiesE": ctypes.addressof(props),
        })
    driver()
    view = types.SimpleNamespace(name=facts["name"], major=major, minor=minor, total_memory=facts["total_bytes"], multi_processor_count=facts["processors"],
                                 max_threads_per_multi_processor=facts["threads"], warp_size=32, is_integrated=0, is_multi_gpu_board=0, gcnArchName="",
                                 regs_per_multiprocessor=65536, shared_memory_per_block=49152, shared_memory_per_block_optin=232448, shared_memory_per_multiprocessor=233472,
                                 L2_cache_size=62914560, uuid="", pci_bus_id=0, pci_device_id=0, pci_domain_id=0)
    for name, value in (("is_available", True), ("device_count", 1), ("current_device", 0), ("get_device_properties", view), ("get_device_name", facts["name"]),
                        ("get_device_capability", (major, minor)), ("is_bf16_supported", major >= 8), ("is_initialized", True), ("_lazy_init", None), ("init", None),
                        ("set_device", None), ("manual_seed", None), ("manual_seed_all", None), ("seed_all", None), ("ipc_collect", None), ("is_current_stream_capturing", False),
                        ("_is_in_bad_fork", False), ("get_arch_list", ["sm_%d%d" % (major, minor)])):
        recording.replace(torch.cuda, name, lambda old, value=value: lambda *a, **k: value)
    recording.replace(torch.__config__, "show", lambda old: lambda: "")  # it asks the driver for its version
    state = torch.zeros(16, dtype=torch.uint8)
    recording.replace(torch.cuda, "get_rng_state", lambda old: lambda *a, **k: state)
    recording.replace(torch.cuda, "get_rng_state_all", lambda old: lambda *a, **k: [state])
    recording.replace(torch.cuda, "set_rng_state", lambda old: lambda *a, **k: None)
    recording.replace(torch.cuda, "set_rng_state_all", lambda old: lambda *a, **k: None)
    recording.replace(torch.cuda, "Stream", lambda old: AbsentStream)
    recording.replace(torch.cuda, "Event", lambda old: Nothing)
    recording.replace(torch.cuda, "current_stream", lambda old: lambda *a, **k: Nothing())
    recording.replace(torch.cuda, "default_stream", lambda old: lambda *a, **k: Nothing())
    recording.replace(torch.cuda, "device", lambda old: lambda *a, **k: contextlib.nullcontext())
    recording.replace(torch.cuda, "device_of", lambda old: lambda *a, **k: contextlib.nullcontext())


class Nothing:
    """A stream or an event of a GPU that is not there."""

    stream_id = 0

    def __init__(self, *args, **kwargs):
        pass

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return lambda *a, **k: 0.0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False

    def query(self):
        return True

    def record_event(self, event=None):
        return event or Nothing()


class AbsentStream(Nothing):
    """A stream that the script made; Nothing is the default one."""

    numbers = itertools.count(1)

    def __init__(self, *args, **kwargs):
        self.stream_id = next(self.numbers)


# standin/libcuda.c, compiled, packed: gcc -shared -fPIC -O2 -nostdlib -fno-asynchronous-unwind-tables -fno-stack-protector -s
# -Wl,-soname,libcuda.so.1 -Wl,--build-id=none -Wl,-z,noseparate-code
STAND_IN = {"x86_64": (
    'c-rk)&ubGw6n?vD(lnwGL9n1CAX23`c4LtuDwVWN1jTBr^roBLX|v$&!tA6ZCv(t41tEWe|A2SB6?*91gI>M(7l`%NxVw4N?hdTAAbOeau;0u#^M1_CUfz4Tcz;RPG!V$a9XOl;%p-SCC$%}qhu;!R'
    '#C!9QjSqU70sTaFg~(SKeOA)E4QUp3`Z4W_$dA5py8wR<aooqD-PkeWX$SW>8jEv=ncscWhj|Up5aHVA{nFRD?^}Z}w|)*MKVJM@KGEVC7=r;CPbA_+`g7DLQ9qA*A9Zo|8>qiS{iFzBbr$HRW6@>i'
    'xF+k>dAC9N3O6|om+pBEk9II;ld@2MN?G9eUMPi=MaF!#!kOc3zze5kb!?LaJ~3jq&DVRpuv-`nKZV0MuCcvSuJq&o!VW(>>!e(H74P32Pp>!M<|E_gRw2|pzuH)S0tyNW3JMAe3JMAe3jYJAkQ>N9'
    '_J@ANYgh=1+PEmyVFO$*;d~YO1oF9mlz*dMzgfM!KwFOKRgD^{k(sN;?6gf=My+F9K?#5a?SM0Gwt#GS9nv;~HW0h#1wD7foB`pq%YiW8Hn|Cewx6vt)1~pc={gn=%XeMs@xPFFbWeN3p)YD_ao>Vx'
    ';jmwj>;nj#MIXBK9)i149bc5*<pQqh()$WtmEvjA{8Fkn00;HE;0GD~2!Uy|ui^Z?p62n4_=2zFSkLOyNRaREHs+oKsV`Da_d{}$y*S4b#-GV(yi6UDzn1Ww#1z^;JmUU;0UKk9C;'
)}


def driver():
    """PyTorch asks the driver whether it has a context; it is told that there is none. Where there is no driver, a
    library takes its place that can say no more than that."""
    try:
        library = ctypes.CDLL("libcuda.so.1")
    except OSError:
        code = STAND_IN.get(platform.machine())
        if code is None:
            return
        folder = tempfile.mkdtemp()
        path = os.path.join(folder, "libcuda.so.1")
        with open(path, "wb") as f:
            f.write(zlib.decompress(base64.b85decode(code)))
        ctypes.CDLL(path, ctypes.RTLD_GLOBAL)
        shutil.rmtree(folder)
        return
    answer(library, ["cuDevicePrimaryCtxGetState"], {"": 0})


def rewrite(library, answers):
    """Make functions of a library return a number, in this process alone. They are known by a part of their mangled names."""
    try:
        names = symbols(library, [part.encode() for part in answers])
        answer(ctypes.CDLL(library), names, answers)
    except (OSError, ValueError):
        return


def answer(loaded, names, answers):
    for name in names:
        value = next(v for part, v in answers.items() if part in name)
        if os.environ.get("ASHLAR_DRY_DEBUG"):
            print("ashlar_dry: answers for", name, file=sys.stderr)
        try:
            address = ctypes.cast(getattr(loaded, name), ctypes.c_void_p).value
        except AttributeError:
            continue
        machine = platform.machine()
        if machine in ("x86_64", "AMD64"):
            code = b"\x48\xb8" + value.to_bytes(8, "little") + b"\xc3"  # mov rax, value; ret
        elif machine in ("aarch64", "arm64"):
            code = b"\x40\x00\x00\x58\xc0\x03\x5f\xd6" + value.to_bytes(8, "little")  # ldr x0, [pc, 8]; ret
        else:
            return
        first = address & -os.sysconf("SC_PAGESIZE")
        pages = ctypes.c_void_p(first), ctypes.c_size_t(address + len(code) - first)
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.mprotect(*pages, 7) == 0:
            ctypes.memmove(address, code, len(code))
            libc.mprotect(*pages, 5)


def symbols(library, parts):
    """The names of a library's dynamic symbols that have one of the parts."""
    out = set()
    with open(library, "rb") as f, mmap.mmap(f.fileno(), 0, access=mmap.ACCESS_READ) as m:
        table, size, count = struct.unpack_from("<Q", m, 40)[0], *struct.unpack_from("<HH", m, 58)
        for i in range(count):
            kind, _, _, at, length, link = struct.unpack_from("<IQQQQI", m, table + i * size + 4)
            if kind != 11:  # SHT_DYNSYM; its link is where the names are
                continue
            _, _, _, _, at, length = struct.unpack_from("<IIQQQQ", m, table + link * size)
            for part in parts:
                found = m.find(part, at, at + length)
                while found >= 0:
                    out.add(m[m.rfind(b"\0", at, found) + 1:m.find(b"\0", found)].decode())
                    found = m.find(part, found + 1, at + length)
    return out


# ------------------------------------------------------------- the command


def main():
    p = argparse.ArgumentParser(prog="ashlar_dry", description="Runs a script on fake tensors and writes down what it would allocate.")
    p.add_argument("--steps", type=int, default=8, help="optimizer steps to run, without an optimizer forward passes without a new peak; 0 runs the script to its end (default 8)")
    p.add_argument("--out", default="run.dry.gz", help="the ledger (default run.dry.gz)")
    p.add_argument("--data", choices=("real", "fake"), default="real", help="fake: the first batch of each DataLoader is loaded, the others are copies of it")
    p.add_argument("--no-save", action="store_true", help="torch.save and safetensors write nothing")
    p.add_argument("--card", type=json.loads, default={}, help="what the GPU is, as JSON: name, total_bytes, capability, processors, threads")
    p.add_argument("--world", type=int, default=1, help="the script is one process of so many (default 1)")
    p.add_argument("--rank", type=int, default=0, help="which of them (default 0)")
    p.add_argument("-m", dest="module", action="store_true", help="script is the name of a module")
    p.add_argument("script")
    p.add_argument("args", nargs=argparse.REMAINDER)
    o = p.parse_args()
    if not torch.version.cuda:
        print("ashlar_dry: this PyTorch is not built for CUDA; a dry run needs one that is, with or without a GPU", file=sys.stderr)
    sys.argv = [o.script] + o.args
    if not o.module:
        sys.path[0] = os.path.dirname(os.path.abspath(o.script))
    with record(o.out, o.steps, list(sys.argv), not o.no_save, o.card, o.data, o.world, o.rank):
        if o.module:
            runpy.run_module(o.script, run_name="__main__", alter_sys=True)
        else:
            runpy.run_path(o.script, run_name="__main__")
    print("ashlar_dry: wrote %s" % o.out, file=sys.stderr)


if __name__ == "__main__":
    main()
