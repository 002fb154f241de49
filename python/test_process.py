"""Tests of what ashlar.py must leave alone: what is at its path, what a signal
does to the job, and the children of a fork. torch is the fake in testdata/fake.
"""
import gc
import os
import signal
import socket
import stat
import threading
import time
import unittest
import warnings
from unittest import mock

from recorder_case import HERE, Case, JobCase


def kinds(folder):
    """Put one of each kind into folder; returns their names."""
    os.mkdir(os.path.join(folder, "directory"))
    os.mkfifo(os.path.join(folder, "fifo"))
    with socket.socket(socket.AF_UNIX) as s:
        s.bind(os.path.join(folder, "socket"))
    names = ["directory", "fifo", "socket"]
    try:  # a null device of our own: the machine's must outlive a failure
        os.mknod(os.path.join(folder, "device"), stat.S_IFCHR | 0o666, os.makedev(1, 3))
        names.append("device")
    except OSError:
        pass
    for name in list(names):
        os.symlink(name, os.path.join(folder, "to-" + name))
        names.append("to-" + name)
    os.symlink("loop", os.path.join(folder, "loop"))
    return names + ["loop"]


@unittest.skipUnless(hasattr(os, "mkfifo"), "no fifos")
class TestTarget(Case):
    def state(self):
        return {e.name: (e.inode(), e.stat(follow_symlinks=False).st_mode) for e in os.scandir(self.folder)}

    def lines(self):
        return [line for line in self.stderr.getvalue().splitlines() if line.startswith("ashlar: ")]

    def test_not_a_file(self):
        """It stays what it is, and the job's error is its own."""
        names = kinds(self.folder)
        self.torch.allocate()
        before = self.state()
        for name in names:
            with self.subTest(name=name):
                path = os.path.join(self.folder, name)
                self.ashlar._recorder.ready = 0
                count = len(self.lines())
                self.record(path=path)
                self.assertEqual(len(self.lines()), count + 1)  # told before it matters
                self.assertIsInstance(self.oom(), self.torch.cuda.OutOfMemoryError)
                self.assertEqual(len(self.lines()), count + 2)
                self.assertIsNone(self.ashlar.dump(path))
                self.assertEqual(len(self.lines()), count + 3)
                self.assertIn("no file is written: OSError(", self.lines()[-1])
                self.assertEqual(self.state(), before)
        self.assertNotIn("snapshot", self.torch.calls)  # refused before the costly part

    def test_appears_while_writing(self):
        path = os.path.join(self.folder, "late")
        self.record()
        self.torch.allocate()
        self.torch.during_snapshot = lambda: os.mkfifo(path)
        self.assertIsNone(self.ashlar.dump(path))
        self.assertTrue(stat.S_ISFIFO(os.stat(path).st_mode))
        self.assertEqual(self.files(), ["late"])

    def test_link_to_a_file(self):
        """The link stays; what it leads to is replaced, or made."""
        self.record()
        self.torch.allocate()
        for content in (None, b"old"):
            target = os.path.join(self.folder, "there", "m.pickle")
            if content is not None:
                with open(target, "wb") as f:
                    f.write(content)
            else:
                os.symlink("there/m.pickle", os.path.join(self.folder, "link"))
            path = os.path.join(self.folder, "link")
            self.assertEqual(self.ashlar.dump(path), path)
            self.assertTrue(os.path.islink(path))
            self.assertEqual(self.load("there/m.pickle")["ashlar"]["reason"], "call")
            self.assertEqual(os.listdir(os.path.dirname(target)), ["m.pickle"])

    def test_standard_streams(self):
        """/dev/stdout may be a regular file: the job's log."""
        log = os.path.join(self.folder, "log")
        self.torch.allocate()
        for number in range(3):
            with self.subTest(number=number):
                kept = os.dup(number)
                with open(log, "w") as f:
                    f.write("epoch 1\n")
                    f.flush()
                    os.dup2(f.fileno(), number)
                try:
                    path = self.ashlar.dump(log)
                finally:
                    os.dup2(kept, number)
                    os.close(kept)
                self.assertIsNone(path)
                with open(log) as f:
                    self.assertEqual(f.read(), "epoch 1\n")

    def test_closed_streams(self):
        self.torch.allocate()
        path = os.path.join(self.folder, "m")
        for _ in range(2):  # the second finds a file
            with mock.patch("os.fstat", side_effect=OSError(9, "Bad file descriptor")):
                self.assertEqual(self.ashlar.dump(path), path)


START = "import os, signal, sys, threading, time; sys.path.append(%r)\nimport ashlar, torch\n" % HERE
KILL = "os.kill(os.getpid(), signal.SIGTERM)\ntime.sleep(0.01)\n"


@unittest.skipUnless(hasattr(signal, "SIGUSR1"), "no SIGUSR1")
class TestEnd(JobCase):
    """SIGTERM ends the job that it would have ended, after the file."""

    def job(self, text):
        self.add("job.py", START + text + "\nprint('alive')\n")
        done = self.run_job("job.py")
        self.assertNotIn("Traceback", done.stderr)
        files = sorted(set(os.listdir(self.folder)) - {"job.py"})
        for name in files:
            self.load(name)  # complete
        return done, files

    def ends(self, text, files):
        done, found = self.job(text)
        self.assertEqual((done.returncode, done.stdout), (-signal.SIGTERM, ""), done.stderr)
        self.assertEqual(found, files)
        return done

    def survives(self, text, stdout="alive\n"):
        done, found = self.job(text)
        self.assertEqual((done.returncode, done.stdout), (0, stdout), done.stderr)
        self.assertEqual(found, ["m-signal-1.pickle"])

    def test_default(self):
        self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n" + KILL, ["m-signal-1"])

    def test_nothing_to_write(self):
        done = self.ends("ashlar.record('m', on_signal='SIGTERM')\n" + KILL, [])
        self.assertIn("CUDA is not initialised", done.stderr)

    def test_while_writing(self):
        """The file that this thread is writing is finished first."""
        self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\ntorch.during_snapshot = lambda: os.kill(os.getpid(), signal.SIGTERM)\n"
                  "ashlar.dump('x')\n", ["x"])

    def test_while_amending(self):
        self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n"
                  "replace, calls = os.replace, []\n"
                  "def slow(*args):\n    calls.append(args)\n    if len(calls) == 1: os.kill(os.getpid(), signal.SIGTERM); time.sleep(0.01)\n    replace(*args)\n"
                  "os.replace = slow\nwith ashlar.guard(): torch.fail()\n", ["m"])
        self.assertEqual(self.load("m")["ashlar"]["message"][:18], "CUDA out of memory")

    def test_another_thread_writes(self):
        """Its file is waited for."""
        self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n"
                  "inside = threading.Event()\n"
                  "def slow():\n    torch.during_snapshot = None; inside.set(); time.sleep(0.3)\n"
                  "torch.during_snapshot = slow\n"
                  "threading.Thread(target=ashlar.dump, args=('x',)).start()\ninside.wait()\n" + KILL, ["m-signal-2", "x"])

    def test_failing_write(self):
        done = self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n"
                         "def fail(): raise MemoryError\ntorch.during_snapshot = fail\n" + KILL, [])
        self.assertIn("no file is written", done.stderr)

    def test_stopped(self):
        for stop in ("ashlar.stop()\n", "t = threading.Thread(target=ashlar.stop); t.start(); t.join()\n"):
            with self.subTest(stop=stop):
                self.ends("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n" + stop + KILL, [])

    def test_forked_child(self):
        """A worker that is terminated ends, and writes nothing."""
        done, found = self.job("ashlar.record('m', on_signal='SIGTERM')\ntorch.allocate()\n"
                               "ready, tell = os.pipe()\nchild = os.fork()\n"
                               "if child == 0:\n    os.write(tell, b'x'); time.sleep(5); os._exit(0)\n"
                               "os.read(ready, 1)\nos.kill(child, signal.SIGTERM)\nassert os.waitpid(child, 0)[1] == signal.SIGTERM\n")
        self.assertEqual((done.returncode, found), (0, []), done.stderr)

    def test_own_handler(self):
        self.survives("signal.signal(signal.SIGTERM, lambda *args: print('mine'))\n"
                      "ashlar.record('m.pickle', on_signal='SIGTERM')\ntorch.allocate()\n" + KILL, "mine\nalive\n")

    def test_ignored(self):
        self.survives("signal.signal(signal.SIGTERM, signal.SIG_IGN)\nashlar.record('m.pickle', on_signal='SIGTERM')\ntorch.allocate()\n" + KILL)

    def test_handler_that_calls_ours(self):
        """It saves a checkpoint after calling us; that must not be the end."""
        self.survives("ashlar.record('m.pickle', on_signal='SIGTERM')\ntorch.allocate()\nours = signal.getsignal(signal.SIGTERM)\n"
                      "def handler(*args):\n    ours(*args); print('saved')\n"
                      "signal.signal(signal.SIGTERM, handler)\n" + KILL, "saved\nalive\n")

    def test_user_signal(self):
        """SIGUSR1 ends a process by default too, but here it is a question."""
        for name in ("SIGUSR1", "SIGUSR2"):
            self.survives("ashlar.record('m.pickle', on_signal=%r)\ntorch.allocate()\nos.kill(os.getpid(), signal.%s)\ntime.sleep(0.01)\n" % (name, name))

    def test_interrupt(self):
        # A shell starts its background jobs with SIGINT ignored, and tests may run in one.
        self.survives("signal.signal(signal.SIGINT, signal.default_int_handler)\nashlar.record('m.pickle', on_signal='SIGINT')\ntorch.allocate()\n"
                      "try:\n    os.kill(os.getpid(), signal.SIGINT); time.sleep(1)\nexcept KeyboardInterrupt: print('interrupted')\n", "interrupted\nalive\n")

    def test_two_signals(self):
        """Each has its own handler before ours."""
        self.survives("signal.signal(signal.SIGTERM, lambda *args: print('term'))\n"
                      "ashlar.record('m.pickle', on_signal='SIGTERM')\nashlar.record('m.pickle', on_signal='SIGUSR1')\ntorch.allocate()\n"
                      "os.kill(os.getpid(), signal.SIGUSR1)\ntime.sleep(0.01)\nashlar.stop()\n" + KILL, "term\nalive\n")


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class TestSignals(Case):
    def status(self, number, listen):
        """How a child ends that sends itself a signal."""
        import resource

        child = os.fork()
        if child == 0:
            try:
                resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
                signal.signal(number, signal.SIG_DFL)
                signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
                if listen:
                    self.record(on_signal=number)
                os.kill(os.getpid(), number)
                time.sleep(0.01)
            finally:
                os._exit(0)
        status = os.waitpid(child, 0)[1]
        return os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0

    def test_every_signal(self):
        """The job ends at the signals at which it had ended, but for two."""
        stops = {"SIGSTOP", "SIGTSTP", "SIGTTIN", "SIGTTOU"}
        asks = {"SIGUSR1", "SIGUSR2", "SIGRTMIN", "SIGRTMAX"}
        ended = 0
        for number in signal.Signals:
            if number.name in stops or number == signal.SIGKILL:
                continue
            with self.subTest(signal=number.name):
                want = 0 if number.name in asks else self.status(number, listen=False)
                self.assertEqual(self.status(number, listen=True), want)
                ended += want != 0
        self.assertGreaterEqual(ended, 15)

    def test_crash(self):
        """A handler in Python would return to the fault for ever."""
        self.record(on_signal="SIGSEGV")
        self.assertNotEqual(signal.getsignal(signal.SIGSEGV), self.ashlar._recorder.signalled)
        self.assertIn("SIGSEGV is not listened to", self.stderr.getvalue())

    def test_foreign_handler(self):
        """One that was installed in C could not be called."""
        with mock.patch("signal.getsignal", return_value=None):
            self.record(on_signal="SIGUSR1")
        self.assertNotEqual(signal.getsignal(signal.SIGUSR1), self.ashlar._recorder.signalled)
        self.assertIn("SIGUSR1 is not listened to", self.stderr.getvalue())


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class TestFork(Case):
    def in_child(self, check):
        """Run check in a fork; it must return True."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)  # this process has threads, as jobs have
            child = os.fork()
        if child == 0:
            code = 1
            try:
                code = 0 if check() is True else 2
            finally:
                os._exit(code)
        return os.WEXITSTATUS(os.waitpid(child, 0)[1])

    def test_while_writing(self):
        """The child has a lock that is free, and its collector."""
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

        def check():
            begin = time.perf_counter()
            path = self.ashlar.dump()
            return path is None and time.perf_counter() - begin < self.ashlar.WAIT / 2 and gc.isenabled() and "CUDA is not initialised" in self.stderr.getvalue()

        try:
            self.assertFalse(gc.isenabled())
            self.assertEqual(self.in_child(check), 0)
        finally:
            leave.set()
            thread.join()
        self.assertEqual(self.files(), ["m-0-call-1.pickle"])
        self.assertTrue(gc.isenabled())

    def test_collector_of_the_job(self):
        """A job that does without it has children that do without it."""
        self.record()
        gc.disable()
        self.addCleanup(gc.enable)
        self.assertEqual(self.in_child(lambda: not gc.isenabled()), 0)

    def test_after_an_oom(self):
        """What the parent left out is not the child's to write."""
        self.record()
        self.torch.allocate()
        self.oom()
        error = self.oom()  # left out

        def check():
            told = self.stderr.getvalue()
            self.die(error)
            for end in self.ends:
                end()
            return len(self.files()) == 1 and self.stderr.getvalue() == told

        self.assertEqual(self.in_child(check), 0)
        self.die(error)
        self.assertEqual(self.facts("m-0-last.pickle")["ooms"], 2)

    def test_child_with_cuda(self):
        """record() before the fork is enough for a child that trains."""
        self.record()

        def check():
            self.torch.allocate()
            self.die(self.oom())
            facts = self.facts()
            return facts["pid"] == os.getpid() and facts["ooms"] == 1 and facts["message"] == self.torch.MESSAGE

        self.assertEqual(self.in_child(check), 0)

    def test_child_that_records(self):
        def check():
            self.record(on_signal="SIGUSR1")
            self.torch.allocate()
            os.kill(os.getpid(), signal.SIGUSR1)
            return self.files() == ["m-0-signal-1.pickle"]

        self.assertEqual(self.in_child(check), 0)

    def test_fork_in_the_writer(self):
        """The child finds its way out of the write that it was born in."""
        self.record()
        self.torch.allocate()
        seen = []

        def fork():
            child = os.fork()
            if child == 0:
                raise RuntimeError("the child goes on")
            seen.append(child)

        self.torch.during_snapshot = fork
        code = 1
        try:
            path = self.ashlar.dump()
            if not seen:
                code = 0 if path is None and gc.isenabled() else 2
        finally:
            if not seen:
                os._exit(code)
        self.assertEqual(os.waitpid(seen[0], 0)[1], 0)
        self.assertEqual(self.files(), ["m-0-call-1.pickle"])


@unittest.skipUnless(hasattr(os, "fork"), "no fork")
class TestShared(JobCase):
    """Processes that share a name, and one that is killed."""

    def test_ranks(self):
        """None overwrites the file of another."""
        self.add("job.py", START + """
ashlar.record("m.pickle")
torch.allocate()
os.mkdir("begun-%d" % os.getpid())
while sum(n.startswith("begun") for n in os.listdir(".")) < 6:
    time.sleep(0.01)
assert ashlar.dump("m.pickle") and ashlar.dump("m.pickle")
""")
        done = []
        jobs = [threading.Thread(target=lambda: done.append(self.run_job("job.py"))) for _ in range(6)]
        for job in jobs:
            job.start()
        for job in jobs:
            job.join()
        self.assertEqual([job.returncode for job in done], [0] * 6, done)
        files = sorted(n for n in os.listdir(self.folder) if n.endswith(".pickle"))
        self.assertEqual(len(files), 6, files)
        self.assertEqual(len({self.load(n)["ashlar"]["pid"] for n in files}), 6)

    def test_earlier_run(self):
        self.add("job.py", START + "ashlar.record('m.pickle')\ntorch.allocate()\nassert ashlar.dump('m.pickle') == os.path.abspath('m.pickle')\n")
        for _ in range(2):
            self.assertEqual(self.run_job("job.py").returncode, 0)
        self.assertEqual(sorted(os.listdir(self.folder)), ["job.py", "m.pickle"])

    @unittest.skipUnless(hasattr(os, "O_TMPFILE"), "files without a name")
    def test_killed(self):
        self.add("job.py", START + """
import pickle
ashlar.record("m")
torch.allocate()
def dump(value, f, protocol):
    f.write(b"a part"); f.flush()
    os.kill(os.getpid(), signal.SIGKILL)
pickle.dump = dump
ashlar.dump("x")
""")
        self.assertEqual(self.run_job("job.py").returncode, -signal.SIGKILL)
        self.assertEqual(os.listdir(self.folder), ["job.py"])


class TestForkedFile(JobCase):
    @unittest.skipUnless(hasattr(os, "fork"), "no fork")
    def test_buffer(self):
        """A child that ends in the ordinary way does not write into the file."""
        self.add("job.py", START + """
import pickle, warnings
warnings.simplefilter("ignore")
ashlar.record("m")
torch.allocate()
dump, inside, leave = pickle.dump, threading.Event(), threading.Event()
def slow(value, f, protocol):
    dump(value, f, protocol)  # a part is still in the buffer
    inside.set()
    leave.wait(20)
pickle.dump = slow
thread = threading.Thread(target=ashlar.dump, args=("x",))
thread.start()
inside.wait()
child = os.fork()
if child == 0:
    sys.exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
leave.set()
thread.join()
""")
        done = self.run_job("job.py")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(list(self.load("x"))[-1], "ashlar")
        self.assertEqual(sorted(os.listdir(self.folder)), ["job.py", "x"])


if __name__ == "__main__":
    unittest.main()
