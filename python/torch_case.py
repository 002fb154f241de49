"""What the tests of ashlar_torch.py share: torch is the fake in
testdata/pluggable, libashlar.so is the real one over its simulated driver.

The library brings Go's runtime, which cannot be unloaded, so each test is a
job in a process of its own.
"""
import atexit
import functools
import os
import pickle
import shutil
import subprocess
import sys
import tempfile
import textwrap
import unittest

from recorder_case import HERE

MIB = 1 << 20
MODULE = os.path.join(HERE, "ashlar_torch.py")
FAKE = os.path.join(HERE, "testdata", "pluggable")
TOOLS = ("go", "gcc", "g++")


@functools.lru_cache(maxsize=None)
def library():
    """The path of the library, built once."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = os.path.join(folder, "libashlar.so")
    done = subprocess.run(["go", "build", "-buildmode=c-shared", "-o", path, "./cmd/libashlar"], cwd=os.path.dirname(HERE),
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, universal_newlines=True)
    if done.returncode != 0:
        raise RuntimeError("go build: " + done.stdout)
    return path


class JobCase(unittest.TestCase):
    def setUp(self):
        missing = [tool for tool in TOOLS if shutil.which(tool) is None]
        if missing:
            self.skipTest("libashlar.so cannot be built: no " + ", ".join(missing))
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.realpath(folder.name)
        self.home = HERE  # where ashlar_torch.py is

    def start(self, *args, **environment):
        clean = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k and not k.startswith("ASHLAR")}
        path = os.pathsep.join([self.home, FAKE])
        clean.update(ASHLAR_DRIVER="sim", ASHLAR_SIM_MEMORY=str(256 * MIB), ASHLAR_LIBRARY=library(), PYTHONPATH=path, PYTHONDONTWRITEBYTECODE="1")
        clean["PYTHONWARNINGS"] = "ignore::DeprecationWarning"  # Python 3.12 on forks of processes with threads
        clean.update(environment)
        environment = {k: v for k, v in clean.items() if v is not None}
        return subprocess.run([sys.executable, *args], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              universal_newlines=True, timeout=60)

    def job(self, text, end="", **environment):
        """Run a job that must end well and silently; returns what it printed."""
        done = self.start("-c", "import ashlar_torch, torch\n" + textwrap.dedent(text) + end, **environment)
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def refused(self, text="import ashlar_torch", **environment):
        """Run a job that must die; returns the last line of its error."""
        done = self.start("-c", textwrap.dedent(text), **environment)
        self.assertEqual((done.returncode, done.stdout), (1, ""), done.stderr)
        return done.stderr.splitlines()[-1]

    def load(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return pickle.load(f)
