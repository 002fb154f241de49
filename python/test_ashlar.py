"""Tests of ashlar.py without a GPU: torch is the fake in testdata/fake.

They check what ashlar.py does with what torch tells it, not what torch does;
device_check.py is for that.

python3 -m unittest discover -s python
ASHLAR_UPDATE=1 writes the sample of the Go tests anew.
"""
import contextlib
import importlib.util
import io
import os
import pickle
import pickletools
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = os.path.join(HERE, "testdata", "fake")
ASHLAR = os.path.join(HERE, "ashlar.py")
SAMPLE = os.path.join(HERE, "..", "snapshot", "side", "testdata", "oom.pickle")

# The opcodes that the memory_viz page of PyTorch 2.11 knows.
PAGE = set("""PROTO FRAME STOP MARK MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1
BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT SETITEM SETITEMS DICT
EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3""".split())


def load_module(name, path):
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Case(unittest.TestCase):
    def setUp(self):
        self.folder = self.enter(tempfile.TemporaryDirectory())
        self.torch = load_module("torch", os.path.join(FAKE, "torch.py"))
        self.enter(mock.patch.dict(sys.modules, torch=self.torch))
        environment = {k: v for k, v in os.environ.items() if k not in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK") and "ALLOC_CONF" not in k}
        self.enter(mock.patch.dict(os.environ, environment, clear=True))
        self.exceptions = []
        self.enter(mock.patch.object(sys, "excepthook", lambda *args: self.exceptions.append(args[1])))
        self.enter(mock.patch.object(threading, "excepthook", lambda args: self.exceptions.append(args.exc_value)))
        self.ends = []
        self.enter(mock.patch("atexit.register", self.ends.append))
        self.stderr = self.enter(contextlib.redirect_stderr(io.StringIO()))
        self.ashlar = load_module("ashlar", ASHLAR)
        self.addCleanup(self.ashlar.stop)
        self.clock = 1000.0
        self.enter(mock.patch("time.monotonic", lambda: self.clock))

    def enter(self, context):
        value = context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        return value

    def record(self, **options):
        options.setdefault("path", os.path.join(self.folder, "m-{rank}.pickle"))
        self.ashlar.record(**options)

    def oom(self, message=None):
        """One OOM; returns the exception as a job would catch it."""
        try:
            self.torch.fail(message or self.torch.MESSAGE)
        except RuntimeError as e:
            return e

    def die(self, error):
        sys.excepthook(type(error), error, error.__traceback__)

    def files(self):
        return sorted(os.listdir(self.folder))

    def load(self, name="m-0.pickle"):
        with open(os.path.join(self.folder, name), "rb") as f:
            return pickle.load(f)

    def facts(self, name="m-0.pickle"):
        return self.load(name)["ashlar"]


class TestFile(Case):
    def test_content(self):
        self.record()
        self.ashlar.step(7)
        os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "max_split_size_mb:128"
        self.torch.allocate()
        self.ashlar.step()
        self.oom()
        data = self.load()
        facts = data.pop("ashlar")
        self.assertEqual(data, self.torch._snapshot())
        stats = facts.pop("memory_stats")
        self.assertEqual(stats, {"0": self.torch._memory_stats()})
        self.assertEqual(stats["0"]["num_ooms"], 1)
        self.assertAlmostEqual(facts.pop("time_us") / 1e6, time.time(), delta=60)
        self.assertEqual([n for n, _ in facts.pop("steps")], [7, 8])
        self.assertEqual(facts, {
            "version": 1, "torch": "2.11.0+fake", "cuda": "13.0", "hip": None, "reason": "oom", "late": False, "note": None,
            "message": None, "pid": os.getpid(), "rank": 0, "device": 0, "step": 8, "ooms": 1, "max_entries": 500000,
            "settings": {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:128"},
            "request_bytes": 30 << 20, "segment_bytes": 30 << 20, "device_free_bytes": 140_000_000_000,
            "limit_bytes": 40 << 20, "limit_known": True,
            "devices": [{
                "index": 0, "name": "Fake GPU", "capability": "9.0", "total_memory": 150_000_000_000,
                "free_bytes": 140_000_000_000, "total_bytes": 150_000_000_000, "limit_bytes": 40 << 20, "limit_known": True,
            }],
        })
        self.assertEqual([e["user_metadata"] for e in data["device_traces"][0]], ["step 7"] * 4 + ["step 8"])

    def test_readers(self):
        """The page's opcodes, and the unpickler that is strict about frames."""
        self.record()
        self.torch.allocate()
        with self.assertRaises(RuntimeError), self.ashlar.guard():
            self.torch.fail()
        with open(os.path.join(self.folder, "m-0.pickle"), "rb") as f:
            data = f.read()
        ops = [(op.name, arg) for op, arg, _ in pickletools.genops(data)]
        self.assertEqual({name for name, _ in ops} - PAGE, set())
        self.assertEqual([arg for name, arg in ops if name == "PROTO"], [4])
        self.assertEqual(pickle._loads(data), pickle.loads(data))
        self.assertEqual(list(pickle.loads(data)), ["segments", "device_traces", "allocator_settings", "external_annotations", "ashlar"])

    def test_values(self):
        values = [None, True, False, 0, 1, -1, 127, 128, 255, 256, -128, -129, 1 << 31, -(1 << 63), 1 << 64, 10**40, 0.0, -1.5, float("inf"),
                  "", "a" * 300, "ä€\U0001f600\n", [], {}, [[], [1]], {"": {"a": []}}]
        data = b"\x80\x04" + self.ashlar._pickled(values) + b"."
        self.assertEqual(pickle.loads(data), values)
        self.assertEqual([type(v) for v in pickle.loads(data)], [type(v) for v in values])
        odd = [{3: 1}, (1, 2), "\udc80", os.path]
        self.assertEqual(pickle.loads(b"\x80\x04" + self.ashlar._pickled(odd) + b"."), [{"3": 1}, [1, 2], "\\udc80", str(os.path)])

    def test_large(self):
        """Several frames of the pickle, and facts that are copied in pieces."""
        self.record()
        self.torch.allocate()
        for i in range(60000):
            self.torch._event("alloc", i, i, [])
        self.oom()
        before = self.load()
        self.assertGreater(os.path.getsize(os.path.join(self.folder, "m-0.pickle")), 2 << 20)
        self.die(self.oom_again())
        after = self.load()
        self.assertEqual(after["ashlar"].pop("message"), "CUDA out of memory: again")
        before["ashlar"].pop("message")
        self.assertEqual(after, before)

    def oom_again(self):
        return self.torch.cuda.OutOfMemoryError("CUDA out of memory: again")

    def test_sample(self):
        """The file that the Go tests read is what is written today."""
        with mock.patch("os.getpid", return_value=4242), mock.patch("time.time_ns", return_value=1_700_000_000_000_100_000):
            self.ashlar._recorder.reset()
            self.record()
            os.environ.update(PYTORCH_ALLOC_CONF="expandable_segments:True", RANK="3")
            self.torch.devices = 2
            self.ashlar.step(11)
            self.torch.allocate()
            self.ashlar.step()
            self.die(self.oom())
        path = os.path.join(self.folder, "m-3.pickle")
        if os.environ.get("ASHLAR_UPDATE"):
            with open(path, "rb") as new, open(SAMPLE, "wb") as old:
                old.write(new.read())
        with open(SAMPLE, "rb") as f:
            self.assertEqual(pickle.load(f), self.load("m-3.pickle"), "run with ASHLAR_UPDATE=1 and read what changed")

    def test_documented(self):
        with open(SAMPLE, "rb") as f:
            facts = pickle.load(f)["ashlar"]
        with open(os.path.join(HERE, "..", "docs", "recording.md"), encoding="utf-8") as f:
            text = f.read()
        for key in list(facts) + list(facts["devices"][0]):
            self.assertIn("`%s`" % key, text)


class TestMessage(Case):
    def setUp(self):
        super().setUp()
        self.record()
        self.torch.allocate()

    def test_excepthook(self):
        error = self.oom()
        before = self.load()
        self.assertIsNone(before["ashlar"]["message"])
        self.die(error)
        after = self.load()
        self.assertEqual(after["ashlar"]["message"], self.torch.MESSAGE)
        before["ashlar"]["message"] = self.torch.MESSAGE
        self.assertEqual(after, before)
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertEqual(self.exceptions, [error])
        self.assertEqual(self.torch.calls.count("snapshot"), 1)

    def test_guard_then_excepthook(self):
        error = None
        try:
            with self.ashlar.guard():
                self.torch.fail()
        except RuntimeError as e:
            error = e
        self.assertEqual(self.facts()["message"], self.torch.MESSAGE)
        self.die(error)
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertEqual(self.torch.calls.count("snapshot"), 1)

    def test_chain(self):
        for cause in (True, False):
            try:
                try:
                    self.torch.fail("CUDA out of memory, %s" % cause)
                except RuntimeError as e:
                    if cause:
                        raise ValueError("batch") from e
                    raise ValueError("batch")
            except ValueError as e:
                self.die(e)
        self.assertEqual(self.facts()["message"], "CUDA out of memory, True")
        self.assertEqual(self.facts("m-0-last.pickle")["message"], "CUDA out of memory, False")

    def test_thread(self):
        thread = threading.Thread(target=self.torch.fail)
        thread.start()
        thread.join()
        self.assertEqual(self.facts()["message"], self.torch.MESSAGE)
        self.assertEqual(len(self.exceptions), 1)

    def test_other_errors(self):
        self.die(ValueError("no"))
        with self.assertRaises(ZeroDivisionError), self.ashlar.guard():
            1 / 0
        self.assertEqual(self.files(), [])

    def test_not_the_allocator(self):
        """cuBLAS has no observer: the exception is the first to tell."""
        self.die(RuntimeError("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`"))
        facts = self.facts()
        self.assertIn("CUBLAS", facts["message"])
        self.assertTrue(facts["late"])
        self.assertIsNone(facts["request_bytes"])
        self.assertIsNone(facts["segment_bytes"])
        self.assertEqual(facts["limit_bytes"], 40 << 20)

    def test_not_the_allocator_later(self):
        """The request of an earlier OOM is not that of this error."""
        self.oom()
        self.die(RuntimeError("CUDA error: out of memory"))
        facts = self.facts("m-0-last.pickle")
        self.assertEqual((facts["request_bytes"], facts["segment_bytes"], facts["message"]), (None, None, "CUDA error: out of memory"))

    def test_file_changed(self):
        error = self.oom()
        path = os.path.join(self.folder, "m-0.pickle")
        with open(path, "wb") as f:
            f.write(b"mine now" * 10000)
        self.die(error)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), b"mine now" * 10000)
        self.assertIn("not added", self.stderr.getvalue())


class TestStorm(Case):
    def test_storm(self):
        self.record()
        self.torch.allocate()
        for i in range(112):
            self.oom("CUDA out of memory %d" % i)
            self.clock += 0.05
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertEqual(self.facts()["ooms"], 1)
        self.clock += 60
        self.oom("later")
        self.assertEqual(self.files(), ["m-0-last.pickle", "m-0.pickle"])
        self.assertEqual(self.facts("m-0-last.pickle")["ooms"], 113)
        self.clock += 60
        self.oom("later still")
        self.assertEqual(self.facts("m-0-last.pickle")["ooms"], 114)
        self.assertEqual(self.facts()["ooms"], 1)
        self.assertEqual(self.torch.calls.count("snapshot"), 3)

    def test_fatal_in_a_storm(self):
        self.record()
        self.torch.allocate()
        for i in range(5):
            error = self.oom("CUDA out of memory %d" % i)
        self.die(error)
        facts = self.facts("m-0-last.pickle")
        self.assertEqual((facts["message"], facts["ooms"], facts["late"]), ("CUDA out of memory 4", 5, True))
        self.assertEqual((facts["request_bytes"], facts["segment_bytes"], facts["reason"]), (30 << 20, 30 << 20, "oom"))
        events = self.load("m-0-last.pickle")["device_traces"][0]
        self.assertEqual([e["action"] for e in events].count("oom"), 5)
        self.assertIsNone(self.facts()["message"])

    def test_guard_in_a_storm(self):
        """A loop that tries again under a guard does not write each time."""
        self.record()
        self.torch.allocate()
        for i in range(20):
            with contextlib.suppress(RuntimeError), self.ashlar.guard():
                self.torch.fail("CUDA out of memory %d" % i)
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertEqual(self.facts()["message"], "CUDA out of memory 0")
        with contextlib.suppress(RuntimeError), self.ashlar.guard():
            self.clock += 11
            self.torch.fail("CUDA out of memory, late")
        self.assertEqual(self.facts("m-0-last.pickle")["message"], "CUDA out of memory, late")

    def test_end(self):
        for pause, written in ((5, True), (11, False)):
            with self.subTest(pause=pause):
                self.setUp()
                self.record()
                self.torch.allocate()
                self.oom()
                self.clock += 1
                self.oom()
                self.clock += pause
                for end in self.ends:
                    end()
                self.assertEqual(os.path.exists(os.path.join(self.folder, "m-0-last.pickle")), written)

    def test_cost(self):
        """Writing takes at most a tenth of the time."""
        self.record()
        self.torch.allocate()

        def slow():
            self.clock += 4

        self.torch.during_snapshot = slow
        begin = self.clock
        for _ in range(1000):
            self.oom()
            self.clock += 1
        writes = self.torch.calls.count("snapshot")
        self.assertGreater(writes, 10)
        self.assertLessEqual(4 * (writes - 1), (self.clock - begin) / 10)

    def test_keep(self):
        for keep, names in ((1, ["m-0.pickle"]), (2, ["m-0-last.pickle", "m-0.pickle"]), (4, ["m-0-2.pickle", "m-0-3.pickle", "m-0-last.pickle", "m-0.pickle"])):
            with self.subTest(keep=keep):
                self.setUp()
                self.record(keep=keep)
                self.torch.allocate()
                for _ in range(7):
                    self.oom()
                    self.clock += 60
                self.assertEqual(self.files(), names)
                self.assertEqual(self.facts(names[-2] if keep > 1 else names[0])["ooms"], 7)


class TestFailure(Case):
    """Whatever breaks, the job sees its own exception and no other."""

    def fails(self):
        error = self.oom()
        self.assertIsInstance(error, self.torch.cuda.OutOfMemoryError)
        self.die(error)
        return [line for line in self.stderr.getvalue().splitlines() if line.startswith("ashlar: ")]

    def test_snapshot(self):
        self.record()
        self.torch.allocate()
        self.torch.cuda.memory._snapshot = mock.Mock(side_effect=MemoryError)
        lines = self.fails()
        self.assertEqual(len(lines), 2)  # at the OOM, and at the exception
        self.assertIn("no file is written: MemoryError()", lines[0])
        self.assertEqual(self.files(), [])

    def test_full_disk(self):
        self.record()
        self.torch.allocate()
        self.oom()
        self.clock += 60
        self.oom()
        with open(os.path.join(self.folder, "m-0-last.pickle"), "rb") as f:
            before = f.read()

        def full(obj, f, protocol):
            f.write(b"half")
            raise OSError(28, "No space left on device")

        self.clock += 60
        with mock.patch("pickle.dump", full):
            lines = self.fails()
        self.assertIn("No space left", lines[-1])
        with open(os.path.join(self.folder, "m-0-last.pickle"), "rb") as f:
            self.assertEqual(f.read(), before)
        self.assertEqual(self.files(), ["m-0-last.pickle", "m-0.pickle"])

    def test_failures_pause_too(self):
        self.record()
        self.torch.allocate()
        self.torch.cuda.memory._snapshot = mock.Mock(side_effect=RuntimeError("no"))
        for _ in range(50):
            self.oom()
        self.assertEqual(self.torch.cuda.memory._snapshot.call_count, 1)

    def test_message_cannot_be_added(self):
        self.record()
        self.torch.allocate()
        error = self.oom()
        before = self.load()
        with mock.patch("os.replace", side_effect=OSError(5, "I/O error")):
            self.die(error)
        self.assertEqual(self.load(), before)
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertIn("not added", self.stderr.getvalue())

    def test_facts(self):
        """Each fact that cannot be had is one fact less."""
        self.record()
        self.torch.allocate()
        broken = mock.Mock(side_effect=RuntimeError("no"))
        for place, name in ((self.torch.cuda, "memory_stats"), (self.torch.cuda, "mem_get_info"), (self.torch.cuda, "get_device_properties"),
                            (self.torch.cuda.memory, "get_per_process_memory_fraction")):
            setattr(place, name, broken)
        self.oom()
        facts = self.facts()
        self.assertEqual((facts["memory_stats"], facts["limit_bytes"], facts["limit_known"]), ({}, None, False))
        self.assertEqual(facts["devices"], [{
            "index": 0, "name": None, "capability": None, "total_memory": None, "free_bytes": None, "total_bytes": None,
            "limit_bytes": None, "limit_known": False,
        }])
        self.assertEqual(facts["request_bytes"], 30 << 20)

    def test_history(self):
        self.torch.cuda.memory._record_memory_history = mock.Mock(side_effect=RuntimeError("cudaMallocAsync does not"))
        self.torch._C._cuda_attach_out_of_memory_observer = mock.Mock(side_effect=RuntimeError("cudaMallocAsync does not"))
        self.record()
        self.torch.cuda.init()
        self.assertEqual(len(self.stderr.getvalue().splitlines()), 2)
        self.die(self.oom())  # no observer, but the exception
        self.assertEqual(self.facts()["message"], self.torch.MESSAGE)

    def test_no_cuda(self):
        del self.torch._C._cuda_attach_out_of_memory_observer
        self.record()
        self.assertIn("no CUDA", self.stderr.getvalue())
        self.assertIsNone(self.ashlar.dump())
        self.ashlar.step()

    def test_arguments(self):
        self.record(max_entries="many")
        self.record(on_signal="SIGNOTHING")
        self.ashlar.step("x")
        self.assertEqual(self.stderr.getvalue().count("ashlar: "), 3)

    def test_stderr(self):
        self.record()
        self.torch.allocate()
        with contextlib.redirect_stderr(None):
            self.oom()
        self.assertEqual(self.files(), ["m-0.pickle"])


class TestTorch(Case):
    def history(self):
        return [c for c in self.torch.calls if c[0] == "history"]

    def test_waits_for_cuda(self):
        self.record(max_entries=1000)
        self.assertEqual((self.history(), self.torch.observers), ([], []))
        self.torch.cuda.init()
        self.assertEqual(self.history(), [("history", "all", "all", "python", 1000, True, False)])
        self.assertEqual(len(self.torch.observers), 1)

    def test_after_cuda(self):
        self.torch.cuda.init()
        self.record(stacks="all")
        self.record(stacks="all")
        self.assertEqual(len(self.history()), 2)
        self.assertEqual(len(self.torch.observers), 1)
        self.ashlar.stop()
        self.assertEqual(self.history()[-1][1], None)
        self.oom()
        self.assertEqual(self.files(), [])

    def test_other_thread(self):
        """A thread that initialises CUDA must not keep the annotations for itself."""
        self.record()
        thread = threading.Thread(target=self.torch.cuda.init)
        thread.start()
        thread.join()
        self.assertEqual(self.history()[0][-1], True)

    def test_old_torch(self):
        """PyTorch 2.1: fewer keywords, no fraction to ask for, no metadata."""
        seen = []

        def history(enabled="all", context="all", stacks="all", max_entries=1 << 62, device=None):
            seen.append((enabled, max_entries))

        self.torch.cuda.memory._record_memory_history = history
        del self.torch.cuda.memory._set_memory_metadata, self.torch.cuda.memory.get_per_process_memory_fraction, self.torch._C._cuda_hasPrimaryContext
        self.record(max_entries=5)
        self.torch.allocate()
        self.assertEqual(seen, [(None, 1 << 62), ("all", 5)])
        self.ashlar.step(3)
        path = self.ashlar.dump()
        self.assertEqual((self.facts(os.path.basename(path))["step"], self.facts(os.path.basename(path))["limit_known"]), (3, False))
        self.oom()
        self.assertEqual(self.facts()["limit_bytes"], 40 << 20)  # the observer tells

    def test_no_limit(self):
        self.torch.cuda.memory.get_per_process_memory_fraction = lambda device: 1.0
        self.record()
        self.torch.allocate()
        self.torch.LIMIT = self.torch.TOTAL
        self.oom()
        facts = self.facts(os.path.basename(self.ashlar.dump()))
        for facts in (facts, self.facts()):
            self.assertEqual((facts["limit_bytes"], facts["limit_known"]), (None, True))

    def test_limit_is_exact(self):
        """limit/total*total must give the limit again."""
        self.record()
        self.torch.allocate()
        for limit in (1, 9437183999, 9437184000, 149_999_999_999, 123_456_789_012):
            self.torch.LIMIT = limit
            self.assertEqual(self.facts(os.path.basename(self.ashlar.dump()))["limit_bytes"], limit)

    def test_device_without_context(self):
        """Asking it for its memory would take some."""
        self.torch.devices = 2
        self.record()
        self.torch.allocate()
        self.oom()
        facts = self.facts()
        self.assertNotIn(("mem_get_info", 1), self.torch.calls)
        self.assertEqual([d["free_bytes"] for d in facts["devices"]], [140_000_000_000, None])
        self.assertEqual(list(facts["memory_stats"]), ["0"])

    def test_rank(self):
        self.record()
        self.torch.allocate()
        os.environ["SLURM_PROCID"] = "9"
        self.assertTrue(self.ashlar.dump().endswith("m-9-call-1.pickle"))
        os.environ["RANK"] = "5"
        self.assertTrue(self.ashlar.dump().endswith("m-5-call-2.pickle"))
        self.torch.distributed = mock.Mock()
        self.torch.distributed.get_rank.return_value = 2
        self.assertTrue(self.ashlar.dump().endswith("m-2-call-3.pickle"))


class TestCall(Case):
    def test_dump(self):
        self.record()
        self.torch.allocate()
        path = self.ashlar.dump(os.path.join(self.folder, "new", "x-{rank}.pickle"), note="after load")
        self.assertEqual(path, os.path.join(self.folder, "new", "x-0.pickle"))
        facts = self.facts("new/x-0.pickle")
        self.assertEqual((facts["reason"], facts["note"], facts["device"], facts["request_bytes"]), ("call", "after load", 0, None))
        self.assertEqual(facts["limit_bytes"], 40 << 20)

    def test_without_record(self):
        self.torch.allocate()
        path = self.ashlar.dump(os.path.join(self.folder, "m-0.pickle"))
        self.assertEqual(self.facts()["max_entries"], None)
        self.assertIsNotNone(path)

    def test_too_early(self):
        self.record()
        self.assertIsNone(self.ashlar.dump())
        self.assertIn("CUDA is not initialised", self.stderr.getvalue())

    def test_two_threads(self):
        self.record()
        self.torch.allocate()
        inside, leave = threading.Event(), threading.Event()

        def wait():
            inside.set()
            leave.wait(10)

        self.torch.during_snapshot = wait
        thread = threading.Thread(target=self.ashlar.dump)
        thread.start()
        inside.wait(10)
        self.oom()  # must not wait for the other
        self.torch.during_snapshot = None
        leave.set()
        thread.join()
        self.assertEqual(self.files(), ["m-0-call-1.pickle"])
        for end in self.ends:
            end()
        self.assertEqual(self.facts()["ooms"], 1)

    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_fork(self):
        """A child that does not use the GPU writes nothing."""
        self.record(on_signal="SIGUSR1")
        self.torch.allocate()
        child = os.fork()
        if child == 0:
            try:
                self.die(self.torch.cuda.OutOfMemoryError("CUDA out of memory"))
                os.kill(os.getpid(), signal.SIGUSR1)
                for end in self.ends:
                    end()
            finally:
                os._exit(len(self.files()))
        self.assertEqual(os.waitpid(child, 0)[1], 0)


@unittest.skipUnless(hasattr(signal, "SIGUSR1"), "no SIGUSR1")
class TestSignal(Case):
    def test_signal(self):
        seen = []
        before = signal.signal(signal.SIGUSR1, lambda *args: seen.append(args))
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        self.record(on_signal="SIGUSR1")
        self.record(on_signal="SIGUSR1")
        self.torch.allocate()
        os.kill(os.getpid(), signal.SIGUSR1)
        self.assertEqual(self.files(), ["m-0-signal-1.pickle"])
        self.assertEqual(self.facts("m-0-signal-1.pickle")["reason"], "signal")
        self.assertEqual(len(seen), 1)  # the handler before still works
        self.ashlar.stop()
        os.kill(os.getpid(), signal.SIGUSR1)
        self.assertEqual((len(self.files()), len(seen)), (1, 2))

    def test_while_writing(self):
        self.record(on_signal=signal.SIGUSR1)
        self.torch.allocate()
        self.torch.during_snapshot = lambda: os.kill(os.getpid(), signal.SIGUSR1)
        self.oom()
        self.assertEqual(self.files(), ["m-0.pickle"])
        self.assertIn("signal: left out", self.stderr.getvalue())

    def test_dump_while_writing(self):
        """A handler of the job that dumps must not wait for the thread it runs in."""
        before = signal.signal(signal.SIGUSR1, lambda *args: self.ashlar.dump())
        self.addCleanup(signal.signal, signal.SIGUSR1, before)
        self.record()
        self.torch.allocate()
        self.torch.during_snapshot = lambda: os.kill(os.getpid(), signal.SIGUSR1)
        self.ashlar.WAIT = 5.0
        begin = time.perf_counter()
        self.oom()
        self.assertLess(time.perf_counter() - begin, 4)
        self.assertEqual(self.files(), ["m-0.pickle"])


JOB = """
import os, sys
os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "set by the job"
assert "torch" not in sys.modules
import torch
import ashlar
ashlar.step(4)
torch.allocate()
print(sys.argv, __name__, os.path.basename(sys.path[0]))
if "exit" in sys.argv:
    sys.exit(3)
torch.fail()
"""


class TestRunner(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(folder.name, "jobs")
        os.mkdir(self.folder)
        with open(os.path.join(self.folder, "job.py"), "w") as f:
            f.write(JOB)

    def run_job(self, *args):
        environment = dict(os.environ, PYTHONPATH=FAKE, PYTHONDONTWRITEBYTECODE="1", RANK="1")
        return subprocess.run([sys.executable, *args], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True)

    def check(self, done, argv):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "%s __main__ jobs\n" % argv)
        self.assertIn("OutOfMemoryError: CUDA out of memory. Tried", done.stderr)
        with open(os.path.join(self.folder, "m-1.pickle"), "rb") as f:
            facts = pickle.load(f)["ashlar"]
        self.assertTrue(facts["message"].startswith("CUDA out of memory. Tried"))
        self.assertEqual(facts["settings"]["PYTORCH_CUDA_ALLOC_CONF"], "set by the job")
        self.assertEqual((facts["step"], facts["max_entries"], facts["rank"]), (4, 77, 1))

    def test_script(self):
        done = self.run_job(ASHLAR, "--path", "m-{rank}.pickle", "--max-entries=77", "job.py", "--path", "x")
        self.check(done, ["job.py", "--path", "x"])

    def test_module(self):
        done = self.run_job(ASHLAR, "--path", "m-{rank}.pickle", "--max-entries=77", "-m", "job", "y")
        self.check(done, [os.path.join(self.folder, "job.py"), "y"])

    def test_exit_status(self):
        done = self.run_job(ASHLAR, "job.py", "exit")
        self.assertEqual((done.returncode, done.stderr), (3, ""))
        self.assertEqual(sorted(os.listdir(self.folder)), ["job.py"])

    def test_usage(self):
        for args, status in (((), 2), (("--wrong", "job.py"), 2), (("--path",), 2), (("-m",), 2), (("--help",), 0), (("nowhere.py",), 2)):
            done = self.run_job(ASHLAR, *args)
            self.assertEqual(done.returncode, status, args)
            self.assertNotIn("Traceback", done.stderr)
            self.assertTrue(done.stderr)

    def test_two_lines(self):
        """record() in a script leaves torch to the script."""
        with open(os.path.join(self.folder, "own.py"), "w") as f:
            f.write("import sys; sys.path.append(%r)\nimport ashlar; ashlar.record(); ashlar.record('m-1.pickle', max_entries=77)\n" % HERE + JOB)
        done = self.run_job("own.py")
        self.check(done, ["own.py"])

    def test_failed_import(self):
        """An import of torch that fails the first time is waited for again."""
        with open(os.path.join(self.folder, "own.py"), "w") as f:
            f.write(
                "import sys; sys.path.append(%r); fake = sys.path.pop(1); assert fake == %r\n" % (HERE, FAKE)
                + "import ashlar; ashlar.record('m-1.pickle', max_entries=77)\n"
                + "try:\n    import torch\nexcept ImportError: sys.path.insert(1, fake)\n" + JOB
            )
        self.check(self.run_job("own.py"), ["own.py"])


if __name__ == "__main__":
    unittest.main()
