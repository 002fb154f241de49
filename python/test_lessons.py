"""Tests of retry, monitor and async_save without a GPU, on the fake in testdata/fake.

What PyTorch does with them is checked by lessons_check.py, on a machine with a GPU.
"""
import functools
import os
import pickle
import random
import signal
import stat
import sys
import textwrap
import threading
import types
import unittest
import weakref
from unittest import mock

from recorder_case import ASHLAR, FAKE, Case, JobCase, load_module

MIB = 1 << 20


class TensorCase(Case):
    def setUp(self):
        super().setUp()
        self.fake = load_module("tensors", os.path.join(FAKE, "tensors.py"))
        self.enter(mock.patch.dict(sys.modules, tensors=self.fake))  # for pickle
        self.fake.install(self.torch)
        self.torch.cuda.init()

    def parameter(self, *values):
        return self.fake.Parameter(self.fake.floats(*values))

    def oom(self, text="CUDA out of memory. Tried to allocate 1.00 GiB."):
        raise self.torch.cuda.OutOfMemoryError(text)

    def log(self):
        return self.stderr.getvalue()


class TestRetry(TensorCase):
    def setUp(self):
        super().setUp()
        self.weight, self.count = self.parameter(1, 2), self.fake.floats(5)
        self.model = self.fake.Module([self.weight], [self.count])
        self.sizes = []

    def passes(self, size, fits=16):
        """A pass that fails halfway, with everything changed that one changes."""
        self.sizes.append(size)
        gradient = self.fake.floats(size, size)
        if self.weight.grad is None:
            self.weight.grad = gradient
        else:
            self.weight.grad.fill(*[a + size for a in self.weight.grad.tolist()])
        self.count.fill(self.count.tolist()[0] + 1)
        self.torch.random.state += 1
        self.torch.cuda.random.state += 1
        drawn = random.random()
        if size > fits:
            self.oom()
        return size, drawn

    def halve(self, size, *rest):
        return (size // 2, *rest) if size > 1 else None

    def test_rescue(self):
        random.seed(3)
        want = random.random()
        random.seed(3)
        self.assertEqual(self.ashlar.retry(self.passes, 64, shrink=self.halve), (16, want))
        self.assertEqual(self.sizes, [64, 32, 16])
        self.assertEqual(self.weight.grad.tolist(), [16, 16], "gradients of passes that failed are gone")
        self.assertEqual(self.count.tolist(), [6])
        self.assertEqual((self.torch.random.state, self.torch.cuda.random.state), (1, 1))
        self.assertEqual(self.torch.calls.count(("empty_cache",)), 2)
        self.assertIn("retry: out of memory in passes; 0 B of tensors were freed, 0 B given back to the device; trying again with less\n", self.log())

    def test_gradients_that_were_there(self):
        self.weight.grad = before = self.fake.floats(100, 200)
        self.ashlar.retry(self.passes, 32, shrink=self.halve)
        self.assertIs(self.weight.grad, before)
        self.assertEqual(before.tolist(), [116, 216])

    def test_once_more(self):
        """Without shrink: the same again, once."""
        failed = []

        def first():
            if not failed:
                failed.append(1)
                self.oom()
            return 7

        self.assertEqual(self.ashlar.retry(first), 7)
        with self.assertRaises(RuntimeError) as raised:
            self.ashlar.retry(self.passes, 64)
        self.assertEqual(self.sizes, [64, 64])
        self.assertIn("nothing smaller is left to try", self.notes(raised.exception))

    def notes(self, error):
        return "\n".join(getattr(error, "__notes__", [self.log()]))

    def test_nothing_smaller(self):
        with self.assertRaises(RuntimeError) as raised:
            self.ashlar.retry(self.passes, 4, 0, shrink=self.halve)
        self.assertEqual(self.sizes, [4, 2, 1])
        self.assertIn("retry: 0 B of tensors were freed", self.notes(raised.exception))

    def test_shrink_never_ends(self):
        with self.assertRaises(RuntimeError):
            self.ashlar.retry(self.passes, 64, shrink=lambda size: size)
        self.assertEqual(len(self.sizes), self.ashlar.MOST_TRIES)

    def test_shrink_fails(self):
        with self.assertRaises(ZeroDivisionError):
            self.ashlar.retry(self.passes, 64, shrink=lambda size: size // 0)

    def test_optimizer(self):
        """An OOM in optimizer.step, or after it, is raised at once."""
        optimizer, calls = self.fake.Optimizer([self.weight]), []

        def within():
            calls.append(1)
            optimizer.step(self.oom)

        def after():
            calls.append(2)
            optimizer.step(lambda: self.weight.fill(8, 8))
            self.oom()

        for call, text in ((within, "in the optimizer"), (after, "weights were changed")):
            with self.assertRaises(RuntimeError) as raised:
                self.ashlar.retry(call)
            self.assertIn(text, self.notes(raised.exception))
        self.assertEqual(calls, [1, 2])
        self.assertEqual((len(self.fake.hooks), len(self.fake.post_hooks)), (1, 1), "one pair of hooks, however many calls")

    def test_step_that_no_search_finds(self):
        """A step is never made twice, wherever its optimizer and weights are."""
        optimizer, steps = [[[[[[self.fake.Optimizer([self.weight])]]]]]], []

        hide = Hidden(optimizer, None, None)
        del self.model, self.weight

        def step(*then):
            hide.place[0][0][0][0][0][0].step(lambda: [steps.append(1)] + [each() for each in then])

        def after():
            step()
            self.oom()

        def in_a_thread():  # as autograd's, with a step in the backward pass
            thread = threading.Thread(target=step)
            thread.start()
            thread.join()
            self.oom()

        for call, text in ((after, "weights were changed"), (in_a_thread, "weights were changed"), (lambda: step(self.oom), "in the optimizer")):
            del steps[:]
            with self.assertRaises(RuntimeError) as raised:
                self.ashlar.retry(call)
            self.assertIn(text, self.notes(raised.exception))
            self.assertEqual(steps, [1])

    def test_steps_without_hooks(self):
        """After torch.compile no hook tells of a step: the weights must be known."""

        class Compiled(self.fake.Optimizer):
            step = self.fake.Optimizer.step.__wrapped__

        class Broken(Compiled):
            param_groups = property(lambda self: self.absent)

            def __init__(self):
                pass

        weight, broken = self.parameter(1, 2), Broken()
        optimizer, steps = Compiled([weight]), []
        hide = Hidden([[[[[[optimizer]]]]]], None, None)

        def after():
            steps.append(1)
            hide.place[0][0][0][0][0][0].step(lambda: weights[0][0][0][0][0].fill(8, 8))
            self.oom()

        weights = [[[[[weight]]]]]
        for params, text in ((None, "steps of Compiled call no hooks"), (self.model, "steps of Compiled call no hooks"), (weight, "weights were changed")):
            del steps[:]
            with self.assertRaises(RuntimeError) as raised:
                self.ashlar.retry(after, params=params)
            self.assertIn(text, self.notes(raised.exception))
            self.assertEqual(steps, [1])
        self.ashlar.retry(self.passes, 64, shrink=self.halve, params=[self.model, optimizer])
        self.assertEqual(self.sizes, [64, 32, 16], "known weights that did not change")
        self.assertIsInstance(broken, Compiled)

    def test_within_a_step(self):
        """A closure of optimizer.step() may try again: the step began before."""
        self.fake.Optimizer([self.weight]).step(lambda: self.ashlar.retry(self.passes, 64, shrink=self.halve))
        self.assertEqual(self.sizes, [64, 32, 16])

    def test_distributed(self):
        yes = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_world_size=lambda: 2, get_rank=lambda: 0)
        with mock.patch.object(self.torch, "distributed", yes, create=True), self.assertRaises(RuntimeError) as raised:
            self.ashlar.retry(self.passes, 64, shrink=self.halve)
        self.assertIn("other processes", self.notes(raised.exception))
        self.assertEqual(self.sizes, [64])

    def test_finds_the_model(self):
        model, weight = self.model, self.weight
        owner = types.SimpleNamespace(net=model)
        body = Hidden([[[[[[weight]]]]]], self.fake.floats, self.torch.cuda.OutOfMemoryError("CUDA out of memory"))
        ways = {
            "closure": lambda size: body(size, model),
            "global": eval("lambda size: body(size, model)", {"body": body, "model": model}),
            "inner": eval("lambda size: [body(size, model) for _ in range(1)]", {"body": body, "model": model}),
            "method": types.MethodType(lambda self, size: body(size, self.net), owner),
            "partial": functools.partial(lambda net, size: body(size, net), model),
        }
        for name, call in ways.items():
            self.assertEqual(self.gradients(call, body), [None, None], name)
        for params in (model, self.fake.Optimizer([weight]), [weight], model.parameters()):
            self.assertEqual(self.gradients(body, body, params=params), [None, None], params)
        with self.assertRaisesRegex(ValueError, "params has no parameters"):
            self.ashlar.retry(body, 32, params=[])

    def test_finds_buffers(self):
        """What no gradient tells of: buffers, wherever a function has its model."""
        current, oom = self.fake.current, self.torch.cuda.OutOfMemoryError("CUDA out of memory")

        def passes(model, size):  # leads to no model, as it has not the name self
            current().flush(len(current().queue))
            model.kept[0].fill(model.kept[0].tolist()[0] + 1)
            if size > 16:
                raise oom

        model = self.model
        space = {"passes": passes, "model": model, "__name__": "job"}
        exec(textwrap.dedent("""
            class Calls:
                def __call__(self, size): passes(model, size)
            class Methods:
                def outer(self, size): return self.inner(size)
                def inner(self, size): return self.last(size)
                @staticmethod
                def last(size): passes(model, size)
            class Slots:
                __slots__ = ("__hidden",)
                def __init__(self, model): self.__hidden = model
                def go(self, size): passes(self.__hidden, size)
            class Named:
                def go(self, size): passes(self.the, size)
                @property
                def found(self): return model
                def by_property(self, size): passes(self.found, size)
            """), space)
        net, package = types.ModuleType("net"), types.ModuleType("package")
        net.model, package.net = model, net
        named, methods = type("Sub", (space["Named"],), {"the": model}), space["Methods"]()
        ways = {
            "closure": lambda size: passes(model, size),
            "a module": eval("lambda size: passes(net.model, size)", {"passes": passes, "net": net}),
            "a package": eval("lambda size: passes(package.net.model, size)", {"passes": passes, "package": package}),
            "a class": eval("lambda size: passes(Named.the, size)", {"passes": passes, "Named": named}),
            "a class's attribute, of an object": named().go,
            "a property": named().by_property,
            "a keyword's default": eval("lambda size, *, model: passes(model, size)", {"passes": passes}),
            "slots": space["Slots"](model).go,
            "an object that is called": space["Calls"](),
            "methods of methods": methods.outer,
            "a method, by a function": lambda size: methods.outer(size),
        }
        ways["a keyword's default"].__kwdefaults__ = {"model": model}
        for name, call in ways.items():
            self.count.fill(5)
            self.ashlar.retry(call, 64, shrink=self.halve)
            self.assertEqual(self.count.tolist(), [6], name)
        for params in (model, model.parameters(), self.fake.Optimizer([self.weight]), [self.weight]):
            self.count.fill(5)
            self.ashlar.retry(ways["closure"], 64, shrink=self.halve, params=params)
            self.assertEqual(self.count.tolist(), [6], params)

    def test_search_is_bounded(self):
        class Ring:
            __slots__ = ("next",)

        ring = Ring()
        ring.next = [ring] * 9000
        many = [[object() for _ in range(5000)] for _ in range(50)]

        def passes(size, model=self.model):
            return len(many) and ring and self.passes(size)

        with mock.patch.object(self.ashlar, "_inside", side_effect=self.ashlar._inside) as inside:
            self.assertEqual(self.ashlar.retry(passes, 64, shrink=self.halve)[0], 16)
        self.assertLessEqual(inside.call_count, self.ashlar.MOST_LOOKED)
        self.assertEqual(self.count.tolist(), [6], "the nearest are looked at first")

    def test_proxy(self):
        """An object that fails at whatever it is asked is passed by."""

        class Proxy:
            @property
            def __class__(self):
                raise RuntimeError("no request")

            def __getattr__(self, name):
                raise RuntimeError("no request")

        class Meta(type):
            __hash__ = None

        class Lazy(types.ModuleType):
            def __getattribute__(self, name):
                raise ImportError(name)

        self.proxy, self.odd, self.lazy = Proxy(), Meta("Odd", (), {})(), Lazy("lazy")
        self.assertEqual(self.ashlar.retry(self.passes, 64, shrink=self.halve)[0], 16)

    def gradients(self, call, body, **more):
        """The gradients that the passes of a call begin with."""
        body.inner.clear()
        self.weight.grad = None
        self.ashlar.retry(call, 32, shrink=self.halve, **more)
        return list(body.inner)

    def test_model_that_is_not_found(self):
        """A pass whose gradients are not known is not repeated."""
        body = Hidden([[[[[[self.weight]]]]]], self.fake.floats, self.torch.cuda.OutOfMemoryError("CUDA out of memory"))
        with self.assertRaises(RuntimeError) as raised:
            self.ashlar.retry(body, 64, shrink=self.halve)
        self.assertEqual(body.inner, [None])
        self.assertIn("1 parameters have gradients and were not found; name the model: params=model", self.notes(raised.exception))

    def test_own_cause(self):
        def circle(size):
            error = self.torch.cuda.OutOfMemoryError("CUDA out of memory")
            if size > 16:
                raise error from error
            return size

        self.assertEqual(self.ashlar.retry(circle, 64, shrink=self.halve), 16)

    def test_what_shrink_returns(self):
        def passes(batch, rows, *more, scale=1, **rest):
            self.passes(rows)
            return batch, rows, more, scale, rest

        halve = lambda batch, rows, *_, **__: {"rows": rows // 2}
        for args, kwargs in ((("b", 64), {}), (("b",), {"rows": 64}), ((), {"rows": 64, "batch": "b"})):
            self.assertEqual(self.ashlar.retry(passes, *args, shrink=halve, **kwargs), ("b", 16, (), 1, {}))
        self.assertEqual(self.ashlar.retry(passes, "b", 64, 7, shrink=lambda b, rows, *_, **__: {"rows": rows // 2, "scale": 2, "odd": 3}), ("b", 16, (7,), 2, {"odd": 3}))
        self.assertEqual(self.ashlar.retry(passes, "b", 64, scale=3, shrink=lambda b, rows, scale: [b, rows // 2]), ("b", 16, (), 3, {}))
        self.assertEqual(self.ashlar.retry(functools.partial(passes, "b"), 64, shrink=lambda rows: {"rows": rows // 2}), ("b", 16, (), 1, {}))

    def test_what_begins_later(self):
        async def coroutine():
            pass

        def generator():
            yield

        async def both():
            yield

        for fn in (coroutine, generator, both):
            with self.assertRaisesRegex(TypeError, "generator or async"):
                self.ashlar.oom_retry(fn)
            with self.assertRaisesRegex(TypeError, "generator or async"):
                self.ashlar.retry(fn)

    def test_what_is_not_ours(self):
        for error in (KeyError("mine"), KeyboardInterrupt(), RuntimeError("CUDA error: device-side assert")):
            with self.assertRaises(type(error)) as raised:
                self.ashlar.retry(mock.Mock(side_effect=error), shrink=self.halve)
            self.assertIs(raised.exception, error)
            self.assertFalse(hasattr(error, "__notes__"))

    def test_holds_nothing(self):
        """What the failed pass held is free before the cache is given back."""
        held, alive = [], []

        class Large:
            pass

        def call(size):
            large = Large()
            held.append(weakref.ref(large))
            if size > 16:
                self.oom()

        self.torch.cuda.empty_cache = lambda: alive.append([ref() is not None for ref in held])
        self.ashlar.retry(call, 64, shrink=self.halve)
        self.assertEqual(alive, [[False], [False, False]])

    def test_within_a_handler(self):
        """An exception that the caller handles keeps its frames."""

        def fails():
            kept = "kept"
            raise KeyError(kept)

        try:
            fails()
        except KeyError as e:
            self.ashlar.retry(self.passes, 64, shrink=self.halve)
            self.assertEqual(e.__traceback__.tb_next.tb_frame.f_locals, {"kept": "kept"})

    def test_decorator(self):
        @self.ashlar.oom_retry(smaller=lambda batch, rows: {"rows": rows // 2, "batch": batch})
        def forward_backward(batch, rows):
            """Does both."""
            return batch, self.passes(rows)[0]

        @self.ashlar.oom_retry
        def plain():
            return 3

        self.assertEqual(forward_backward(batch="b", rows=64), ("b", 16))
        self.assertEqual((forward_backward.__name__, forward_backward.__doc__, plain()), ("forward_backward", "Does both.", 3))

    @unittest.skipIf(sys.version_info < (3, 11), "exceptions have no notes")
    def test_verdict(self):
        command = os.path.join(self.folder, "ashlar")
        with open(command, "w") as f:
            f.write("#!%s\nprint('Cause: a leak\\n\\nmore')\n" % sys.executable)
        os.chmod(command, os.stat(command).st_mode | stat.S_IXUSR)
        os.environ["ASHLAR_BIN"] = command
        self.record()
        self.torch.allocate()
        with self.assertRaises(RuntimeError) as raised:
            self.ashlar.retry(self.torch.fail)
        self.assertRegex(self.notes(raised.exception), r"^retry: .*nothing smaller is left to try\nCause: a leak\nMore: ashlar explain --full .*m-0.*\.pickle$")


class Hidden:
    """A pass whose parameter no search finds."""

    __slots__ = ("place", "make", "error", "inner")

    def __init__(self, place, make, error):
        self.place, self.make, self.error, self.inner = place, make, error, []

    def __call__(self, size, *model):
        weight = self.place[0][0][0][0][0][0]
        self.inner.append(weight.grad)
        weight.grad = self.make(size)
        if size > 16:
            raise self.error


class TestMonitor(TensorCase):
    def setUp(self):
        super().setUp()
        self.active, self.reserved, self.emptied = 10 * MIB, 10 * MIB, []
        self.torch.cuda.memory.memory_stats_as_nested_dict = lambda device: {
            "active_bytes": {"all": {"current": self.active}}, "reserved_bytes": {"all": {"current": self.reserved}}}
        self.torch.cuda.empty_cache = self.empty

    def empty(self):
        self.emptied.append((self.reserved - self.active) // MIB)
        self.reserved = self.active

    def step(self, reserved):
        self.reserved = reserved * MIB
        self.clock += 60
        self.ashlar.step()

    def test_hysteresis(self):
        with self.ashlar.monitor(0.3) as m:
            self.step(12)
            self.assertEqual(self.emptied, [])
            self.step(40)  # 30 idle
            self.assertEqual(self.emptied, [30])
            for _ in range(5):
                self.step(40)  # taken again at once: the job needs it
            self.assertEqual(self.emptied, [30])
            self.step(100)
            self.assertEqual(self.emptied, [30, 90])
            self.step(11)
            self.step(11)
            self.step(40)
            self.assertEqual(self.emptied, [30, 90, 30])
        report = m.report()
        self.assertEqual((report["steps"], report["releases"], report["given_bytes"]), (11, 3, 150 * MIB))
        self.assertIn("monitor: 11 steps; gave back 150.00 MiB in 3 releases, ", self.log())
        self.step(100)
        self.assertEqual(len(self.emptied), 3, "it ended with the context")

    def test_cost_is_bounded(self):
        """Releases are as far apart as a hundredth of the time allows."""
        with self.ashlar.monitor(0.3), mock.patch("time.perf_counter", side_effect=(n * 10.0 for n in range(1000))):
            self.step(40)  # 10 s
            self.step(11)
            self.step(100)
            self.assertEqual(self.emptied, [30])
            self.clock += 1000
            self.step(100)
            self.assertEqual(self.emptied, [30, 90])

    def test_threshold(self):
        for threshold in (30, -0.1, 1, float("nan"), "0.3", None):
            with self.assertRaisesRegex(ValueError, "^threshold is a share of what the allocator holds, at least 0 and less than 1, not [^\\n]*$"):
                self.ashlar.monitor(threshold)
        self.ashlar.monitor(0)

    def test_only_say(self):
        with self.ashlar.monitor(0.3, release=False):
            self.step(40)
            self.step(40)
            self.step(11)
            self.step(40)
        self.assertEqual((self.emptied, self.log().count("monitor: 30.00 MiB of 40.00 MiB lie idle\n")), ([], 2))

    def test_capture(self):
        self.torch.cuda.is_current_stream_capturing = lambda: True
        with self.ashlar.monitor(0.3):
            self.step(40)
        self.assertEqual(self.emptied, [])

    def test_failures(self):
        self.torch.cuda.empty_cache = self.oom
        with self.assertRaises(KeyError), self.ashlar.monitor(0.3):
            self.step(40)
            raise KeyError("mine")
        self.assertIn("monitor: OutOfMemoryError", self.log().replace("_OutOf", "OutOf"))
        self.assertEqual(self.ashlar._monitors, [])

    def test_by_itself(self):
        m = self.ashlar.monitor(0.3)
        self.reserved = 40 * MIB
        m.step()
        self.assertEqual(self.emptied, [30])

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        with self.ashlar.monitor(0.3):
            pid = os.fork()
            if pid == 0:
                os._exit(len(self.ashlar._monitors))
            self.assertEqual(os.waitpid(pid, 0)[1], 0)
            self.assertEqual(len(self.ashlar._monitors), 1)


class TestSave(TensorCase):
    def setUp(self):
        super().setUp()
        self.path = os.path.join(self.folder, "c.pt")
        self.enter(mock.patch.object(self.ashlar, "SMALL", 8))
        self.addCleanup(self.fake.GATE.set)

    def read(self, path=None):
        with open(path or self.path, "rb") as f:
            return pickle.load(f)

    def test_content(self):
        large, small, host = self.fake.floats(1, 2, 3, 4), self.fake.floats(5), self.fake.floats(6, 7, device="cpu")
        part = self.fake.Tensor(large.storage, self.fake.float32, 1, (2,), (1,))
        shared = ["x"]
        obj = {"large": large, "part": part, "small": small, "host": host, "p": self.parameter(8, 8, 8, 8), "n": [1, (2.5, None)], "a": shared, "b": shared}
        save = self.ashlar.async_save(obj, self.path)
        shared.append("y")
        host.fill(0, 0)
        self.assertEqual(save.wait(), self.path)
        got = self.read()
        self.assertEqual([got[k].tolist() for k in ("large", "part", "small", "host", "p")], [[1, 2, 3, 4], [2, 3], [5], [6, 7], [8, 8, 8, 8]])
        self.assertIs(got["part"].storage, got["large"].storage)
        self.assertEqual((type(got["p"]).__name__, got["n"], got["a"]), ("Parameter", [1, (2.5, None)], ["x"]))
        self.assertIs(got["a"], got["b"])
        self.assertEqual({got[k].device.type for k in ("large", "small", "p")}, {"cpu"})
        self.assertEqual(self.files(), ["c.pt"])

    def test_moment(self):
        """A step after the call does not change the file: it waits for the copies."""
        weight, norm = self.fake.floats(1, 2, 3, 4), self.fake.floats(5)
        optimizer = self.fake.Optimizer([weight])
        for n in range(3):
            weight.fill(n, n, n, n)
            self.fake.GATE.clear()  # the host does not see the copies done
            save = self.ashlar.async_save({"weight": weight, "norm": norm}, self.path)
            norm.fill(50 + n)  # in a forward pass
            optimizer.step(lambda: weight.fill(9, 9, 9, 9))
            self.assertFalse(save.done())
            self.fake.GATE.set()
            save.wait()
            got = self.read()
            self.assertEqual((got["weight"].tolist(), got["norm"].tolist()), ([n] * 4, [49 + n if n else 5]))
        self.assertEqual(len(self.fake.hooks), 1)

    def test_moment_without_hooks(self):
        """After torch.compile no hook is called before a step: the call itself waits."""

        class Compiled(self.fake.Optimizer):
            step = self.fake.Optimizer.step.__wrapped__

        weight = self.fake.floats(1, 2, 3, 4)
        optimizer = Compiled([weight])
        self.fake.GATE.clear()
        save = self.ashlar.async_save(weight, self.path)
        optimizer.step(lambda: weight.fill(9, 9, 9, 9))
        self.fake.GATE.set()
        save.wait()
        self.assertEqual(self.read().tolist(), [1, 2, 3, 4])

    def test_short_writes(self):
        """The system may write less than it was given."""
        write = os.write
        with mock.patch.object(self.ashlar.os, "write", lambda file, data: write(file, data[:max(1, len(data) // 3)])):
            self.ashlar.async_save(self.fake.floats(*range(100)), self.path).wait()
        self.assertEqual(self.read().tolist(), list(range(100)))

    def test_full_disk(self):
        self.ashlar.async_save(self.fake.floats(1, 2), self.path).wait()
        with mock.patch.object(self.ashlar.os, "write", side_effect=[3, OSError(28, "No space left on device")]):
            with self.assertRaisesRegex(OSError, "No space left"):
                self.ashlar.async_save(self.fake.floats(3, 4), self.path).wait()
        self.assertEqual((self.read().tolist(), self.files()), ([1, 2], ["c.pt"]))

    def test_memory_is_kept(self):
        for count in (4, 4, 2000, 4):
            self.ashlar.async_save([self.fake.floats(*range(count))], self.path).wait()
        self.assertEqual([c for c in self.torch.calls if c[0] in ("register", "unregister")], [("register", 4096), ("unregister",), ("register", 8192)])

    def test_errors(self):
        weight = self.fake.floats(1, 2, 3, 4)
        with self.assertRaises((AttributeError, pickle.PicklingError)):
            self.ashlar.async_save({"f": lambda: 0}, self.path)
        file = os.path.join(self.folder, "file")
        with open(file, "w"):
            pass
        bad = os.path.join(file, "c.pt")
        with self.assertRaises(OSError):
            self.ashlar.async_save(weight, self.folder)  # at once
        with self.assertRaises(OSError):
            self.ashlar.async_save(weight, bad).wait()
        self.ashlar.async_save(weight, self.path).wait()
        with mock.patch.object(self.torch, "save", side_effect=OSError("disk full")):
            self.ashlar.async_save(weight, self.path).written.wait()
        self.assertIn("c.pt is not written: OSError('disk full')", self.log())
        self.assertEqual(self.read().tolist(), [1, 2, 3, 4], "the old file is still there")
        with self.assertRaisesRegex(OSError, "disk full"):
            self.ashlar.async_save(weight, self.path)  # nobody had waited
        self.ashlar.async_save(weight, self.path).wait()
        self.assertEqual(self.files(), ["c.pt", "file"])

    def test_one_after_the_other(self):
        self.fake.GATE.clear()
        first = self.ashlar.async_save(self.fake.floats(1, 2, 3, 4), self.path)
        timer = threading.Timer(0.05, self.fake.GATE.set)
        timer.start()
        second = self.ashlar.async_save(self.fake.floats(5, 6, 7, 8), self.path)
        self.assertTrue(first.done())
        second.wait()
        timer.join()
        self.assertEqual(self.read().tolist(), [5, 6, 7, 8])

    def test_interrupt(self):
        """Ctrl-C while the next save waits: the first goes on, and steps still wait for it."""
        self.fake.GATE.clear()
        first = self.ashlar.async_save(self.fake.floats(1, 2, 3, 4), self.path)
        with mock.patch.object(first.written, "wait", side_effect=KeyboardInterrupt), self.assertRaises(KeyboardInterrupt):
            self.ashlar.async_save(self.fake.floats(5, 6, 7, 8), self.path)
        self.assertEqual(self.ashlar._saver.saves, [first])
        self.fake.GATE.set()
        first.wait()
        self.assertEqual(self.read().tolist(), [1, 2, 3, 4])

    def test_threads(self):
        """Threads that save at once share the memory, one after the other."""
        weights = [self.fake.floats(*[n] * 4096) for n in range(4)]
        for _ in range(20):
            begin = threading.Barrier(len(weights))

            def job(n):
                begin.wait()
                self.ashlar.async_save(weights[n], "%s.%d" % (self.path, n)).wait()

            jobs = [threading.Thread(target=job, args=(n,)) for n in range(len(weights))]
            for thread in jobs:
                thread.start()
            for thread in jobs:
                thread.join()
            self.assertEqual([set(self.read("%s.%d" % (self.path, n)).tolist()) for n in range(len(weights))], [{0}, {1}, {2}, {3}])

    def test_handler(self):
        """A signal's handler saves while its thread is about to: both files are whole, and a step waits for both."""
        first, second = self.fake.floats(1, 2, 3, 4), self.fake.floats(5, 6, 7, 8)
        saves, pickled = [], self.ashlar._Staged.pickle

        def interrupted(staged, obj):
            if not saves:
                saves.append(None)
                saves[0] = self.ashlar.async_save(first, self.path + ".handler")
            return pickled(staged, obj)

        with mock.patch.object(self.ashlar._Staged, "pickle", interrupted):
            saves.append(self.ashlar.async_save(second, self.path))
        self.fake.Optimizer([]).step(lambda: (first.fill(0, 0, 0, 0), second.fill(0, 0, 0, 0)))
        for save in saves:
            save.wait()
        self.assertEqual((self.read(self.path + ".handler").tolist(), self.read().tolist()), ([1, 2, 3, 4], [5, 6, 7, 8]))

    def test_no_links(self):
        """Without /proc, or where links are refused, the file is there all the same."""
        exists = os.path.exists
        refused = mock.patch.object(self.ashlar.os, "link", side_effect=PermissionError(1, "no links"))
        absent = mock.patch.object(self.ashlar.os.path, "exists", lambda path: not str(path).startswith("/proc") and exists(path))
        for n, changes in enumerate(([refused], [absent], [refused, absent])):
            for values in ((1, 2), (3, 4)):  # without an old file, and with one
                for change in changes:
                    change.start()
                try:
                    path = self.ashlar.async_save(self.fake.floats(*values), "%s.%d" % (self.path, n)).wait()
                finally:
                    for change in changes:
                        change.stop()
                self.assertEqual(self.read(path).tolist(), list(values))
        self.assertEqual(self.files(), ["c.pt.0", "c.pt.1", "c.pt.2"])

    @unittest.skipUnless(os.name == "posix", "modes")
    def test_mode(self):
        self.ashlar.async_save(self.fake.floats(1, 2), self.path).wait()
        os.chmod(self.path, 0o600)
        self.ashlar.async_save(self.fake.floats(3, 4), self.path).wait()
        self.assertEqual((stat.S_IMODE(os.stat(self.path).st_mode), self.read().tolist()), (0o600, [3, 4]))
        with mock.patch.object(self.ashlar.os, "link", side_effect=PermissionError(1, "no links")):
            self.ashlar.async_save(self.fake.floats(5, 6), self.path).wait()
        self.assertEqual((stat.S_IMODE(os.stat(self.path).st_mode), self.read().tolist()), (0o600, [5, 6]))

    def test_tied(self):
        """A tensor that is there twice is one in the file; two views of a storage are two."""
        tied, other = self.parameter(1, 2, 3, 4), self.fake.floats(5, 6, 7)
        view = self.fake.Tensor(other.storage, self.fake.float32, 0, (3,), (1,))
        self.ashlar.async_save({"a": tied, "b": [tied], "c": other, "d": view}, self.path).wait()
        got = self.read()
        self.assertIs(got["a"], got["b"][0])
        self.assertIsNot(got["c"], got["d"])
        self.assertEqual((got["a"].tolist(), got["d"].tolist()), ([1, 2, 3, 4], [5, 6, 7]))

    def test_no_memory(self):
        """A save that gets no memory to grow into leaves none that is half given back."""
        self.ashlar.async_save(self.fake.floats(1, 2, 3, 4), self.path).wait()
        with mock.patch.object(self.ashlar.mmap, "mmap", side_effect=OSError(12, "no memory")), self.assertRaisesRegex(OSError, "no memory"):
            self.ashlar.async_save(self.fake.floats(*range(2000)), self.path).wait()
        self.assertIsNone(self.ashlar._saver.arena)
        self.ashlar.async_save(self.fake.floats(5, 6, 7, 8), self.path).wait()
        self.assertEqual(self.read().tolist(), [5, 6, 7, 8])
        self.assertEqual([c for c in self.torch.calls if c[0] in ("register", "unregister")], [("register", 4096), ("unregister",), ("register", 4096)])

    def test_names(self):
        long = os.path.join(self.folder, "\N{GREEK SMALL LETTER ALPHA}" * 125 + ".pt")  # 253 bytes
        for path in (os.fsencode(self.path), long):
            for _ in range(2):
                self.assertEqual(self.ashlar.async_save(self.fake.floats(1, 2), path).wait(), os.fsdecode(path))
                self.assertEqual(self.read(path).tolist(), [1, 2])
        self.assertLessEqual(len(os.fsencode(os.path.basename(self.ashlar._own(long)))), 255)

    def meanwhile(self, change):
        """Save where a file is, which is changed while the new one is written; the name of the new one."""
        self.ashlar.async_save(self.fake.floats(1, 2), self.path).wait()
        save = self.torch.save

        def slow(value, file):
            save(value, file)
            change()

        with mock.patch.object(self.torch, "save", slow):
            return self.ashlar.async_save(self.fake.floats(3, 4), self.path).wait()

    def test_old_file_changes(self):
        before = os.path.join(self.folder, "before")

        def earlier():
            os.utime(before, (1, 1))
            os.replace(before, self.path)

        for change in (lambda: os.replace(self.path, before), earlier, lambda: os.remove(self.path), lambda: os.utime(self.path)):
            self.assertEqual(self.meanwhile(change), self.path)
            self.assertEqual(self.read().tolist(), [3, 4])
        self.assertEqual((self.files(), self.log()), (["c.pt"], ""))

    def test_shared_name(self):
        """Another process has written a file of that name meanwhile: both stay, and a line says so."""
        other = os.path.join(self.folder, "other")

        def write():
            with open(other, "wb") as f:
                pickle.dump(5, f)
            os.replace(other, self.path)

        own = os.path.join(self.folder, "c-%d.pt" % os.getpid())
        self.assertEqual(self.meanwhile(write), own)
        self.assertEqual((self.read(), self.read(own).tolist(), self.files()), (5, [3, 4], sorted(["c.pt", os.path.basename(own)])))
        self.assertIn("another process has written %s meanwhile; this one is %s" % (self.path, own), self.log())

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork_of_another_thread(self):
        """A process forked while a thread is in async_save can save."""
        with self.ashlar._saver.lock:
            pids = []
            thread = threading.Thread(target=lambda: pids.append(self.forked()))
            thread.start()
            thread.join()
        self.assertEqual(os.waitpid(pids[0], 0)[1], 0)
        self.assertEqual(self.read().tolist(), [1, 2])

    def forked(self):
        pid = os.fork()
        if pid == 0:
            signal.alarm(20)  # a lock that is held for ever
            code = 1
            try:
                self.ashlar.async_save(self.fake.floats(1, 2), self.path).wait()
                code = 0
            finally:
                os._exit(code)
        return pid

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        self.fake.GATE.clear()
        save = self.ashlar.async_save(self.fake.floats(1, 2, 3, 4), self.path)
        pid = os.fork()
        if pid == 0:
            code = 1
            try:
                self.fake.Optimizer([]).step()  # waits for nothing
                save.wait()
            except RuntimeError as e:
                code = 0 if "fork" in str(e) else 2
            finally:
                os._exit(code)
        self.assertEqual(os.waitpid(pid, 0)[1], 0)
        self.fake.GATE.set()
        save.wait()
        self.assertEqual(self.read().tolist(), [1, 2, 3, 4])


class TestEnd(JobCase):
    """The end of the process waits for a save, however it comes."""

    def job(self, last):
        self.add("job.py", textwrap.dedent("""
            import os, signal, sys, threading, time
            sys.path.insert(0, %r)
            import ashlar, tensors, torch
            tensors.install(torch)
            torch.cuda.init()
            tensors.GATE.clear()
            threading.Timer(0.3, tensors.GATE.set).start()
            with ashlar.monitor(0.3):
                ashlar.step()
                ashlar.async_save(tensors.floats(1, 2), "c.pt")
                %s
            """) % (os.path.dirname(ASHLAR), last))
        return self.run_job("job.py")

    def test_end(self):
        # A shell has background jobs ignore SIGINT; then Python has no handler of its own.
        interrupt = "signal.signal(signal.SIGINT, signal.default_int_handler); os.kill(os.getpid(), signal.SIGINT); time.sleep(60)"
        for last, code in (("pass", 0), ("raise KeyError(1)", 1), ("sys.exit(3)", 3), (interrupt, -signal.SIGINT)):
            done = self.job(last)
            self.assertEqual(done.returncode, code, done.stderr)
            self.assertIn("monitor: 1 steps", done.stderr)
            sys.path.insert(0, FAKE)
            try:
                self.assertEqual(self.load("c.pt").tolist(), [1, 2])
            finally:
                sys.path.remove(FAKE)
                sys.modules.pop("tensors", None)
            os.remove(os.path.join(self.folder, "c.pt"))


if __name__ == "__main__":
    unittest.main()
