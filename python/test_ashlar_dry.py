"""What of the dry recorder can be tested without PyTorch: the ledger it writes, and the driver that stands in for one."""
import base64
import ctypes
import gzip
import json
import os
import platform
import sys
import tempfile
import types
import unittest
import zlib
from unittest import mock


def load():
    """ashlar_dry with a torch that has nothing but the names."""
    torch = mock.MagicMock(name="torch")
    torch.Tensor = type("Tensor", (), {})
    torch.Size = tuple
    fake = types.ModuleType("torch._subclasses.fake_tensor")
    fake.FakeTensor = type("FakeTensor", (torch.Tensor,), {})
    fake.FakeTensorMode = type("FakeTensorMode", (), {})
    fake.unset_fake_temporarily = mock.MagicMock()
    dispatch = types.ModuleType("torch.utils._python_dispatch")
    dispatch.TorchDispatchMode = type("TorchDispatchMode", (), {})
    modules = {"torch": torch, "torch._subclasses": mock.MagicMock(), "torch._subclasses.fake_tensor": fake, "torch.utils": mock.MagicMock(),
               "torch.utils._python_dispatch": dispatch}
    with mock.patch.dict(sys.modules, modules):
        sys.modules.pop("ashlar_dry", None)
        sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
        try:
            import ashlar_dry
        finally:
            sys.path.pop(0)
    sys.modules.pop("ashlar_dry", None)
    return ashlar_dry


class TestLedger(unittest.TestCase):
    def test_lines(self):
        dry = load()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "run.dry.gz")
            ledger = dry.Ledger(path)
            ledger.head(torch="2.11.0", argv=["train.py"])
            first, again = [ledger.stack() for _ in range(2)]
            ledger.line("m", "steps", 1)
            ledger.close()
            ledger.line("m", "late", None)  # nothing is written after the end
            with gzip.open(path, "rt") as f:
                lines = [json.loads(line) for line in f]
        self.assertEqual(lines[0]["ashlar_dry"], dry.VERSION)
        self.assertEqual(lines[-1], ["m", "steps", 1])
        self.assertEqual(first, again)
        frames = [x for x in lines[1:] if x[0] == "F"]
        self.assertIn("test_lines", [f[4] for f in frames])
        self.assertNotIn(os.path.basename(dry.__file__), [os.path.basename(f[2]) for f in frames])

    def test_plain(self):
        dry = load()
        tensor = dry.torch.Tensor()
        count = [0]
        args = [dry.plain(x, count) for x in (tensor, [tensor, None], 1.5, float("inf"), True, (1, 2), "mean")]
        self.assertEqual(args, [{"t": 0}, [{"t": 1}, None], 1.5, "inf", True, [1, 2], "mean"])
        json.dumps(args)

    def test_unknown_compares_with_nothing(self):
        loss = load().Unknown(0.0)
        self.assertFalse(loss < 1.0 or loss > 1.0 or loss <= 1.0 or loss >= 1.0)
        self.assertEqual("%.2f" % loss, "0.00")


class TestScripts(unittest.TestCase):
    def test_batches_alike(self):
        dry = load()
        tensor = type("T", (dry.torch.Tensor,), {"clone": lambda t: "copy"})

        class Loader:
            loaded = 0

            def __len__(self):
                return 5

            def __iter__(self):
                while True:
                    self.loaded += 1
                    yield {"x": tensor(), "names": ["a"]}

        Loader.__iter__ = dry.alike(Loader.__iter__)
        loader = Loader()
        self.assertEqual(list(loader), [{"x": "copy", "names": ["a"]}] * 5)
        self.assertEqual(list(loader), [{"x": "copy", "names": ["a"]}] * 5)
        self.assertEqual(loader.loaded, 2)

    def test_passes_without_a_new_peak(self):
        """Calls of inner modules do not count, nor does any once there is an optimizer. A pass that leaves more than any before counts as growth."""
        dry = load()
        run = dry.record(steps=3)
        run.ledger, run.recorder = types.SimpleNamespace(peak=0, live=0), types.SimpleNamespace(off=False)
        memory = iter([(5, 1), (5, 2), (7, 1), (7, 3), (7, 3), (7, 2), (7, 3), (7, 3)])
        inner = run.passing(lambda module: None)

        def forward(module):
            inner(module)
            run.ledger.peak, run.ledger.live = next(memory)

        call = run.passing(forward)
        for _ in range(6):
            call(None)
        with self.assertRaises(dry.Stop):
            call(None)
        run.optimized(lambda: None)()
        call(None)
        self.assertFalse(run.inside)

    def test_a_pass_that_fails(self):
        dry = load()
        run = dry.record()
        with self.assertRaises(ZeroDivisionError):
            run.passing(lambda module: 1 / 0)(None)
        self.assertFalse(run.inside)


@unittest.skipUnless(platform.machine() == "x86_64" and sys.platform == "linux", "the stand-in is built for Linux on x86_64")
class TestStandIn(unittest.TestCase):
    def test_answers(self):
        dry = load()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "libcuda.so.1")
            with open(path, "wb") as f:
                f.write(zlib.decompress(base64.b85decode(dry.STAND_IN["x86_64"])))
            self.assertIn("cuDevicePrimaryCtxGetState", dry.symbols(path, [b"cuDevicePrimaryCtx"]))
            library = ctypes.CDLL(path)
        flags, active = ctypes.c_uint(7), ctypes.c_int(7)
        self.assertEqual(library.cuDevicePrimaryCtxGetState(0, ctypes.byref(flags), ctypes.byref(active)), 0)
        self.assertEqual((flags.value, active.value), (0, 0))
        self.assertNotEqual(library.cuInit(0), 0)

    def test_rewritten(self):
        dry = load()
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, "library.so")
            with open(path, "wb") as f:
                f.write(zlib.decompress(base64.b85decode(dry.STAND_IN["x86_64"])))
            library = ctypes.CDLL(path)
            dry.rewrite(path, {"cuInit": 42})
            self.assertEqual(library.cuInit(0), 42)


if __name__ == "__main__":
    unittest.main()
