"""Tests of ashlar.py in its surroundings: versions of torch, threads, signals,
forks, and whole jobs. torch is the fake in testdata/fake.
"""
import os
import signal
import threading
import time
import unittest
from unittest import mock

from recorder_case import ASHLAR, FAKE, HERE, Case, JobCase


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

    def test_stopped_before_cuda(self):
        self.record()
        self.ashlar.stop()
        self.torch.cuda.init()
        self.assertEqual((self.history(), self.torch.observers), ([], []))

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
        self.ashlar.WAIT = 600.0
        begin = time.perf_counter()
        self.oom()
        self.assertLess(time.perf_counter() - begin, 300)
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


WHERE = """
import sys
print(__file__, sys.argv, sys.path, __name__, __spec__, __package__, __cached__, type(__loader__), __loader__.path, sep="\\n")
assert sys.modules["__main__"].__file__ == __file__
def fail():
    raise ValueError
fail()
"""


class TestRunner(JobCase):
    def setUp(self):
        super().setUp()
        self.add("job.py", JOB)

    def check(self, done, argv):
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, "%s __main__ jobs\n" % argv)
        self.assertIn("OutOfMemoryError: CUDA out of memory. Tried", done.stderr)
        facts = self.load("m-1.pickle")["ashlar"]
        self.assertTrue(facts["message"].startswith("CUDA out of memory. Tried"))
        self.assertEqual(facts["settings"]["PYTORCH_CUDA_ALLOC_CONF"], "set by the job")
        self.assertEqual((facts["step"], facts["max_entries"], facts["rank"]), (4, 77, 1))

    def test_script(self):
        done = self.run_job(ASHLAR, "--path", "m-{rank}.pickle", "--max-entries=77", "job.py", "--path", "x")
        self.check(done, ["job.py", "--path", "x"])

    def test_module(self):
        done = self.run_job(ASHLAR, "--path", "m-{rank}.pickle", "--max-entries=77", "-m", "job", "y")
        self.check(done, [os.path.join(self.folder, "job.py"), "y"])

    def test_as_python(self):
        """A script sees of itself what it sees without the runner."""
        self.add("where.py", WHERE)
        os.mkdir(os.path.join(self.folder, "links"))
        os.symlink("../where.py", os.path.join(self.folder, "links", "link.py"))
        for script in ("where.py", "./where.py", "../jobs/where.py", os.path.join(self.folder, "where.py"), "links/link.py"):
            for flags in ((), ("-I",)):
                with self.subTest(script=script, flags=flags):
                    plain = self.run_job(*flags, script, "a", "--b")
                    run = self.run_job(*flags, ASHLAR, script, "a", "--b")
                    self.assertEqual((plain.returncode, run.returncode), (1, 1), run.stderr)
                    self.assertEqual(run.stdout, plain.stdout)
                    self.assertTrue(os.path.isabs(plain.stdout.splitlines()[0]))
                    self.assertEqual(run.stderr.splitlines()[-3:], plain.stderr.splitlines()[-3:])  # the end of the traceback

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
        self.add("own.py", "import sys; sys.path.append(%r)\nimport ashlar; ashlar.record(); ashlar.record('m-1.pickle', max_entries=77)\n" % HERE + JOB)
        done = self.run_job("own.py")
        self.check(done, ["own.py"])

    def test_failed_import(self):
        """An import of torch that fails the first time is waited for again."""
        self.add(
            "own.py",
            "import sys; sys.path.append(%r); fake = sys.path.pop(1); assert fake == %r\n" % (HERE, FAKE)
            + "import ashlar; ashlar.record('m-1.pickle', max_entries=77)\n"
            + "try:\n    import torch\nexcept ImportError: sys.path.insert(1, fake)\n" + JOB,
        )
        self.check(self.run_job("own.py"), ["own.py"])


if __name__ == "__main__":
    unittest.main()
