"""A fake: tensors, streams, modules and optimizers, as far as ashlar.py touches them.

install(torch) adds them to the fake torch beside this file. Copies between devices
wait in their stream until an event behind them is waited for; Event.synchronize also
waits for torch.gate, so that a test decides what the host sees first.
"""
import functools
import pickle
import struct
import sys
import threading
import types

GATE = threading.Event()


class Dtype:
    def __init__(self, name, size):
        self.name, self.size = name, size

    def __reduce__(self):
        return (named, (self.name,))


def named(dtype):
    return {"uint8": uint8, "float32": float32}[dtype]


uint8, float32 = Dtype("uint8", 1), Dtype("float32", 4)


class Device:
    def __init__(self, kind):
        self.type, self.index = kind, 0 if kind == "cuda" else None


DEVICES = {kind: Device(kind) for kind in ("cpu", "cuda")}


class Storage:
    def __init__(self, data, kind="cpu"):
        self.data, self.device = data, DEVICES[kind]

    _cdata = property(id)

    def nbytes(self):
        return len(self.data)

    def __reduce__(self):
        return (Storage, (bytearray(self.data),))


class Tensor:
    layout, is_quantized, is_leaf = "strided", False, True

    def __init__(self, storage, dtype, offset, size, stride):
        self.storage, self.dtype, self.offset, self.shape, self.strides = storage, dtype, offset, tuple(size), tuple(stride)
        self.requires_grad, self.grad, self._version = False, None, 0

    device = property(lambda self: self.storage.device)
    is_cuda = property(lambda self: self.device.type == "cuda")

    # What PyTorch's tensors have as attributes is not in vars().
    __dict__ = property(lambda self: {})
    __slots__ = ("storage", "dtype", "offset", "shape", "strides", "requires_grad", "grad", "_version", "__weakref__")

    def untyped_storage(self):
        return self.storage

    def storage_offset(self):
        return self.offset

    def size(self):
        return self.shape

    def stride(self):
        return self.strides

    def is_conj(self):
        return False

    is_neg = is_conj

    def data_ptr(self):
        return id(self.storage)

    def set_(self, storage, offset=0, size=None, stride=(1,)):
        size = (storage.nbytes() // self.dtype.size,) if size is None else size
        self.storage, self.offset, self.shape, self.strides = storage, offset, tuple(size), tuple(stride)
        return self

    def span(self):
        begin = self.offset * self.dtype.size
        return begin, begin + self.shape[0] * self.dtype.size

    def copy_(self, other, non_blocking=False):
        (a, b), (c, d) = self.span(), other.span()
        target, source = self.storage.data, other.storage.data

        def copy():
            target[a:b] = bytes(source[c:d])

        if non_blocking and self.is_cuda != other.is_cuda:
            current().queue.append(copy)
        else:
            copy()
        self._version += 1
        return self

    def clone(self):
        begin, end = self.span()
        return Tensor(Storage(bytearray(self.storage.data[begin:end]), self.device.type), self.dtype, 0, self.shape, (1,))

    def cpu(self):
        return self

    def zero_(self):
        begin, end = self.span()
        self.storage.data[begin:end] = bytes(end - begin)
        return self

    def __getitem__(self, part):
        return Tensor(self.storage, self.dtype, self.offset + part.start, (part.stop - part.start,), (1,))

    def requires_grad_(self, value=True):
        self.requires_grad = value
        return self

    def tolist(self):
        begin, end = self.span()
        return list(struct.unpack("%df" % self.shape[0], bytes(self.storage.data[begin:end])))

    def fill(self, *values):
        """Write as a kernel does, after what the stream holds."""
        current().flush(len(current().queue))
        begin, end = self.span()
        self.storage.data[begin:end] = struct.pack("%df" % self.shape[0], *values)
        self._version += 1
        return self

    def __reduce__(self):
        return (rebuild, (type(self).__name__, self.storage, self.dtype, self.offset, self.shape, self.strides))


class Parameter(Tensor):
    __slots__ = ()

    def __init__(self, data, requires_grad=True):
        super().__init__(data.storage, data.dtype, data.offset, data.shape, data.strides)
        self.requires_grad = requires_grad


def rebuild(kind, *args):
    tensor = Tensor(*args)
    return Parameter(tensor) if kind == "Parameter" else tensor


def floats(*values, device="cuda"):
    return Tensor(Storage(bytearray(4 * len(values)), device), float32, 0, (len(values),), (1,)).fill(*values)


class Event:
    def __init__(self, stream):
        self.stream, self.at = stream, len(stream.queue) + stream.done

    def flush(self):
        self.stream.flush(self.at - self.stream.done)

    def synchronize(self):
        GATE.wait()
        self.flush()


class Stream:
    def __init__(self, device=None):
        self.queue, self.done = [], 0

    def record_event(self):
        return Event(self)

    def wait_event(self, event):
        event.flush()

    def flush(self, count):
        for _ in range(count):
            self.queue.pop(0)()
            self.done += 1

    def __enter__(self):
        streams.append(self)

    def __exit__(self, *error):
        streams.pop()


streams = [Stream()]


def current(device=None):
    return streams[-1] if threading.current_thread().name == "ashlar-save" else streams[0]


class Module:
    def __init__(self, parameters=(), buffers=()):
        self.own, self.kept, self.training = list(parameters), list(buffers), True

    def parameters(self):
        return iter(self.own)

    def modules(self):
        return iter([self])

    def buffers(self, recurse=True):
        return iter(self.kept)


hooks, post_hooks = [], []


class Optimizer:
    def __init__(self, params):
        self.param_groups = [{"params": list(params)}]

    @staticmethod
    def profile_hook_step(step):
        @functools.wraps(step)
        def wrapper(self, *args):
            for hook in hooks:
                hook(self, (), {})
            step(self, *args)
            for hook in post_hooks:
                hook(self, (), {})

        return wrapper

    def step(self, update=lambda: None):
        update()


Optimizer.step = Optimizer.profile_hook_step(Optimizer.step)


class Nothing:
    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False


class Random:
    """A state that set and get exchange."""

    def __init__(self):
        self.state = 0

    def get(self, device=None):
        return self.state

    def set(self, state, device=None):
        self.state = state


def save(value, file):
    file.write(memoryview(pickle.dumps(value)))


def empty(size, dtype=float32, device="cpu", pin_memory=False):
    kind = device if isinstance(device, str) else device.type
    return Tensor(Storage(bytearray(size * dtype.size), kind), dtype, 0, (size,), (1,))


def install(torch):
    """Add all this to the fake torch."""
    GATE.set()
    del hooks[:], post_hooks[:], streams[0].queue[:]
    torch.Tensor, torch.strided, torch.uint8, torch.float32, torch.empty, torch.save = Tensor, "strided", uint8, float32, empty, save
    torch.empty_like = lambda tensor, device, pin_memory: empty(tensor.shape[0], tensor.dtype, device)
    torch.frombuffer = lambda memory, dtype, count, offset: Tensor(Storage(memoryview(memory)[offset:offset + count]), dtype, 0, (count,), (1,))
    torch.nn = types.SimpleNamespace(Module=Module, Parameter=Parameter)
    # As in PyTorch, torch.optim.optimizer is a module that torch.optim has no name for.
    torch.optim, module = types.ModuleType("torch.optim"), types.ModuleType("torch.optim.optimizer")
    torch.optim.Optimizer, torch.optim.__path__ = Optimizer, []
    module.register_optimizer_step_pre_hook = lambda hook: hooks.append(hook) or hook
    module.register_optimizer_step_post_hook = lambda hook: post_hooks.append(hook) or hook
    sys.modules.update({"torch.optim": torch.optim, "torch.optim.optimizer": module})
    torch.no_grad = Nothing
    torch.random, torch.cuda.random = Random(), Random()
    torch.get_rng_state, torch.set_rng_state = torch.random.get, torch.random.set
    torch.cuda.get_rng_state, torch.cuda.set_rng_state = torch.cuda.random.get, torch.cuda.random.set
    torch.cuda.Stream, torch.cuda.current_stream = Stream, current
    torch.cuda.stream = lambda stream: stream
    torch.cuda.device = lambda device: Nothing()
    torch.cuda.is_current_stream_capturing = lambda: False
    torch.cuda.cudart = lambda: types.SimpleNamespace(cudaHostRegister=lambda *args: torch.calls.append(("register", args[1])) or 0,
                                                      cudaHostUnregister=lambda *args: torch.calls.append(("unregister",)))
