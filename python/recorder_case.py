"""What the tests of ashlar.py share: the recorder, loaded anew for each test,
on the fake torch in testdata/fake.
"""
import contextlib
import importlib.util
import io
import os
import pickle
import subprocess
import sys
import tempfile
import threading
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
FAKE = os.path.join(HERE, "testdata", "fake")
ASHLAR = os.path.join(HERE, "ashlar.py")
UNWANTED = ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK")


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
        environment = {k: v for k, v in os.environ.items() if k not in UNWANTED and "ALLOC_CONF" not in k}
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


class JobCase(unittest.TestCase):
    """Jobs in processes of their own, in the folder jobs."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = os.path.join(os.path.realpath(folder.name), "jobs")
        os.mkdir(self.folder)

    def add(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(text)

    def run_job(self, *args):
        environment = dict(os.environ, PYTHONPATH=FAKE, PYTHONDONTWRITEBYTECODE="1", RANK="1")
        return subprocess.run([sys.executable, *args], cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, universal_newlines=True, timeout=60)

    def load(self, name):
        with open(os.path.join(self.folder, name), "rb") as f:
            return pickle.load(f)
