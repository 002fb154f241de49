"""For tests of the tiers of ashlar_torch.py without a GPU: torch is a fake, the library is the
real one over the stand-in for NVIDIA's driver, whose device memory is memory of this
process: the bytes can be looked at."""
import atexit
import functools
import glob
import os
import shutil
import subprocess
import tempfile
import textwrap

from recorder_case import HERE
from torch_case import MIB, JobCase


@functools.lru_cache(maxsize=None)
def driver():
    """The path of the stand-in, built once."""
    folder = tempfile.mkdtemp()
    atexit.register(shutil.rmtree, folder)
    path = os.path.join(folder, "libfakecuda.so")
    sources = glob.glob(os.path.join(os.path.dirname(HERE), "driver", "cuda", "cudatest", "fakecuda", "*.c"))
    subprocess.run(["gcc", "-shared", "-fPIC", "-O1", "-std=gnu11", "-pthread", "-Wl,-Bsymbolic", "-o", path, *sources], check=True)
    return path


START = textwrap.dedent("""
    import ctypes, os, threading
    MIB = 1 << 20
    def write(t, value):
        ctypes.memset(t.data_ptr(), value, t.block[1])
        return t
    def holds(t, value):
        return ctypes.string_at(t.data_ptr(), t.block[1]) == bytes([value]) * t.block[1]
    def reserved():
        return torch.cuda.memory_reserved()
    def ours(key):
        return torch.cuda.memory_stats()["ashlar." + key]
    def refused(call, want, kind=RuntimeError):
        try:
            call()
        except kind as e:
            assert want in str(e), e
        else:
            raise AssertionError(want)
    class Module:
        def __init__(self, *parameters, buffers=()):
            self.ps, self.bs = parameters, buffers
        def parameters(self):
            return iter(self.ps)
        def buffers(self):
            return iter(self.bs)
    accept = ctypes.CFUNCTYPE(ctypes.c_bool, ctypes.c_void_p, ctypes.c_void_p)(lambda ctx, stream: not stream)
    def capture(begin):
        so = ashlar_torch._answers.ashlar.so
        if begin:
            assert so.ashlar_front_begin_pool(0, ctypes.c_uint64(1), ctypes.c_uint64(2), accept, None) == 0
        else:
            assert so.ashlar_front_end_pool(0, ctypes.c_uint64(1), ctypes.c_uint64(2)) == 0
""")


class TiersCase(JobCase):
    maxDiff = None

    def run_job(self, text, memory=512, stderr=None, **environment):
        environment = dict(dict(ASHLAR_DRIVER="cuda", ASHLAR_LIBCUDA=driver(), ASHLAR_LIBNVML=driver(), FAKECUDA_CONTEXT="0",
                                FAKECUDA_MEMORY=str(memory * MIB)), **environment)
        environment["ASHLAR_CONF"] = "region_page:20MiB," + environment.get("ASHLAR_CONF", "tiers:True")
        text = START + textwrap.dedent(text)
        if stderr is None:
            return self.job(text, **environment)
        done = self.start("-c", "import ashlar_torch, torch\n" + text, **environment)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, stderr)
        return done.stderr
