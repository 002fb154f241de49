"""Tests of ashlar.py without a GPU: torch is the fake in testdata/fake.

They check what ashlar.py does with what torch reports, not what torch does;
device_check.py is for that.

python3 -m unittest discover -s python
ASHLAR_UPDATE=1 writes the sample of the Go tests anew.
"""
import contextlib
import gc
import os
import pickle
import pickletools
import threading
import time
import unittest
from unittest import mock

from recorder_case import HERE, Case

SAMPLE = os.path.join(HERE, "..", "snapshot", "recorder", "testdata", "oom.pickle")

# The opcodes that the memory_viz page of PyTorch 2.11 knows.
PAGE = set("""PROTO FRAME STOP MARK MEMOIZE BINPUT LONG_BINPUT BINGET LONG_BINGET NONE NEWTRUE NEWFALSE BININT BININT1
BININT2 LONG1 BINFLOAT SHORT_BINUNICODE BINUNICODE EMPTY_LIST APPEND APPENDS LIST EMPTY_DICT SETITEM SETITEMS DICT
EMPTY_TUPLE TUPLE TUPLE1 TUPLE2 TUPLE3""".split())


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
        odd = [{3: 1}, (1, 2), "\udc80", os.path, 2**5000]
        self.assertEqual(pickle.loads(b"\x80\x04" + self.ashlar._pickled(odd) + b"."), [{"3": 1}, [1, 2], "\\udc80", str(os.path), hex(2**5000)])

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


    def test_file_of_another_rank(self):
        """One of the same size is another's all the same."""
        error = self.oom()
        path = os.path.join(self.folder, "m-0.pickle")
        with open(path, "rb") as f:
            data = f.read()
        with open(path + "2", "wb") as f:
            f.write(data)
        os.replace(path + "2", path)
        self.die(error)
        with open(path, "rb") as f:
            self.assertEqual(f.read(), data)
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

    def test_collector(self):
        """It stands still while a file is made, and only then."""
        self.record()
        self.torch.allocate()
        seen = []

        def fail():
            seen.append(gc.isenabled())
            raise RuntimeError("no")

        self.torch.during_snapshot = fail
        self.oom()
        self.assertEqual((seen, gc.isenabled()), ([False], True))
        gc.disable()
        self.addCleanup(gc.enable)
        self.torch.during_snapshot = None
        self.ashlar.dump()
        self.assertFalse(gc.isenabled())

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

    def test_job(self):
        """What the job is called is in the file only if somebody said so."""
        self.record()
        self.torch.allocate()
        self.oom()
        self.assertFalse({"run", "attempt", "world", "commit", "tags"} & set(self.facts()))
        said = {"WORLD_SIZE": "8", "TORCHELASTIC_RESTART_COUNT": "2", "SLURM_JOB_ID": "77", "ASHLAR_COMMIT": "abc"}
        with mock.patch.dict(os.environ, said):
            self.record(tags={"a": 1})
            path = self.ashlar.dump()
            facts = self.load(path)["ashlar"]
            self.assertEqual([facts[k] for k in ("run", "attempt", "world", "commit", "tags")], ["77", 2, 8, "abc", {"a": "1"}])
            self.record(run="mine", commit="def", tags=3)  # those that are none are one fact less
            facts = self.load(self.ashlar.dump())["ashlar"]
            self.assertEqual((facts["run"], facts["commit"], "tags" in facts), ("mine", "def", False))

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
        self.assertIn("PyTorch 2.0 or later is needed", self.stderr.getvalue())
        self.torch.version = mock.Mock(cuda=None, hip=None)
        self.record()
        self.assertIn("this PyTorch has no CUDA", self.stderr.getvalue())
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


if __name__ == "__main__":
    unittest.main()
