"""Tests of ashlar_torch.py without a GPU: what a job sees, installing, the
runner. test_torch_bounds.py has the rest.
"""
import collections
import os
import shutil
import subprocess
import textwrap
import unittest
from unittest import mock

from recorder_case import HERE, load_module
from torch_case import MIB, MODULE, JobCase, library


class TestAnswers(JobCase):
    def test_stats(self):
        self.job("""
            MIB = 1 << 20
            assert torch.cuda.memory_stats() == {}
            block = torch.take(3 * MIB)
            small = torch.take(1000)
            for which in (None, 0, "cuda", "cuda:0", torch.device("cuda:0")):
                nested = ashlar_torch.stats(which)
                assert nested == torch.cuda.memory_stats_as_nested_dict(which), which
            assert list(nested) == '''num_alloc_retries num_ooms max_split_size num_sync_all_streams num_device_alloc num_device_free allocation
                segment active inactive_split allocated_bytes reserved_bytes active_bytes inactive_split_bytes requested_bytes
                oversize_allocations oversize_segments ashlar'''.split(), list(nested)
            assert list(nested["segment"]) == ["all", "small_pool", "large_pool"]
            assert list(nested["segment"]["all"]) == ["current", "peak", "allocated", "freed"]
            stats = torch.cuda.memory_stats()
            ours = [key for key in stats if key.startswith("ashlar.")]
            assert ours == ["ashlar." + name for name in sorted(ashlar_torch._TIERS)] and not any(stats[key] for key in ours), ours
            assert len(stats) == 122 + len(ours) and {type(v) for v in stats.values()} == {int}
            assert torch.cuda.memory_allocated() == 3 * MIB + 1024
            assert stats["requested_bytes.all.current"] == 3 * MIB + 1000
            assert torch.cuda.memory_reserved() == 22 * MIB
            torch.drop(block)
            assert (torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()) == (1024, 3 * MIB + 1024)
            torch.cuda.reset_peak_memory_stats()
            assert torch.cuda.max_memory_allocated() == 1024
            assert torch.cuda.memory_stats()["allocation.all.freed"] == 1
            torch.cuda.reset_accumulated_memory_stats()
            assert torch.cuda.memory_stats()["allocation.all.freed"] == 0
            torch.cuda.empty_cache()
            assert torch.cuda.memory_reserved() == 2 * MIB
            torch.drop(small)
        """)

    def test_accelerator(self):
        self.job("""
            c = torch._C
            assert not c._accelerator_isAllocatorInitialized()
            torch.drop(torch.take(5000))
            assert c._accelerator_isAllocatorInitialized()
            stats = c._accelerator_getDeviceStats(0)
            assert (stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["current"]) == (5120, 2 << 20)
            c._accelerator_emptyCache()
            c._accelerator_resetPeakStats(0)
            c._accelerator_resetAccumulatedStats(0)
            stats = c._accelerator_getDeviceStats(0)
            assert (stats["allocated_bytes"]["all"]["peak"], stats["reserved_bytes"]["all"]["current"], stats["num_device_free"]) == (0, 0, 0)
        """)

    def test_settings(self):
        out = self.job("""
            torch.cuda.init()
            print(ashlar_torch.enabled(), ashlar_torch.settings()["expandable_segments"])
            torch._C._accelerator_setAllocatorSettings("expandable_segments:False,pinned_num_register_threads:2")
            print(ashlar_torch.settings()["expandable_segments"], torch.calls)
            try:
                torch._C._accelerator_setAllocatorSettings("no_such_key:1")
            except RuntimeError as e:
                print("no_such_key" in str(e))
            print(torch.cuda.get_per_process_memory_fraction())
            torch.cuda.set_per_process_memory_fraction(0.5, "cuda:0")
            print(torch.cuda.get_per_process_memory_fraction(0))
        """)
        self.assertEqual(out.splitlines(), ["True True", "False [('settings', 'pinned_num_register_threads:2')]", "True", "1.0", "0.5"])

    def test_snapshot(self):
        """The dictionary is PyTorch's, down to types and the order of keys."""
        self.job("""
            torch.cuda.init()
            torch.cuda.memory._record_memory_history(context=None)
            torch._C._cuda_setMemoryMetadata("step 1")
            assert torch._C._cuda_getMemoryMetadata() == "step 1"
            block = torch.take(3000)
            data = torch.cuda.memory._snapshot()
            assert torch.cuda.memory_snapshot() == data["segments"]
            assert torch.cuda.memory_snapshot((0, 5)) == []
            assert torch._C._cuda_memorySnapshot((0, 0, False))["device_traces"] == []
            import pickle
            with open("whole.pickle", "wb") as f:
                pickle.dump(data, f)
            ashlar_torch.snapshot("file.pickle")
        """, ASHLAR_CONF="expandable_segments:False")
        data, again = self.load("whole.pickle"), self.load("file.pickle")
        self.assertEqual(data["segments"], again["segments"])
        self.assertEqual(list(data), ["segments", "device_traces", "allocator_settings", "external_annotations"])
        (segment,) = data["segments"]
        self.assertEqual(list(segment), ["device", "address", "total_size", "allocated_size", "active_size", "requested_size", "stream",
                                         "segment_type", "segment_pool_id", "is_expandable", "frames", "blocks"])
        self.assertEqual((segment["total_size"], segment["segment_pool_id"], segment["is_expandable"], segment["frames"]), (2 * MIB, (0, 0), False, []))
        self.assertEqual([(list(b), b["size"], b["state"]) for b in segment["blocks"]], [
            (["address", "size", "requested_size", "state", "frames"], 3072, "active_allocated"),
            (["address", "size", "requested_size", "state", "frames"], 2 * MIB - 3072, "inactive"),
        ])
        trace = data["device_traces"][0]
        self.assertEqual([(e["action"], e["size"], e["user_metadata"]) for e in trace], [("segment_alloc", 2 * MIB, "step 1"), ("alloc", 3000, "step 1")])
        self.assertEqual(list(trace[0]), ["action", "addr", "size", "stream", "time_us", "compile_context", "user_metadata", "pool_id"])
        self.assertEqual(trace[0]["compile_context"], "N/A")
        self.assertEqual(data["allocator_settings"]["expandable_segments"], False)

    def test_stacks(self):
        self.job("""
            torch.cuda.init()
            import pickle
            def forward():
                return torch.take(3000)
            def backward(block):
                torch.drop(block)
            def dump(name):
                with open(name, "wb") as f:
                    pickle.dump(torch.cuda.memory._snapshot(), f)
            unknown = torch.take(100)
            torch.cuda.memory._record_memory_history(max_entries=1000)
            assert torch._C._cuda_isHistoryEnabled()
            first = forward()
            backward(first)
            first = forward()
            dump("all.pickle")
            torch.cuda.memory._record_memory_history(context="alloc", stacks="python", clear_history=True)
            backward(forward())
            dump("alloc.pickle")
            torch.cuda.memory._record_memory_history("state", context="state")
            second = forward()
            dump("state.pickle")
            torch.cuda.memory._record_memory_history(None)
            assert not torch._C._cuda_isHistoryEnabled()
            forward()
            dump("off.pickle")
            torch.cuda.memory._record_memory_history(True, True, 50, True, skip_actions=["free_completed"])
            backward(first)
            dump("legacy.pickle")
        """)

        def where(entry):
            return [f["name"] for f in entry["frames"]][:3] if entry.get("frames") else None

        def actions(name):
            return [(e["action"], where(e)) for e in self.load(name)["device_traces"][0]]

        def blocks(name):
            return [(b["requested_size"], where(b)) for s in self.load(name)["segments"] for b in s["blocks"] if b["state"] == "active_allocated"]

        taken, dropped = ["take", "forward", "<module>"], ["drop", "backward", "<module>"]
        self.assertEqual(actions("all.pickle"), [("alloc", taken), ("free_requested", dropped), ("free_completed", dropped), ("alloc", taken)])
        self.assertEqual(blocks("all.pickle"), [(100, None), (3000, taken)])
        self.assertEqual(actions("alloc.pickle"), [("alloc", taken), ("free_requested", taken), ("free_completed", taken)])
        self.assertEqual(actions("state.pickle"), [("alloc", None)])
        self.assertEqual(blocks("state.pickle"), [(100, None), (3000, None), (3000, taken)])
        self.assertEqual(actions("off.pickle"), [])
        self.assertEqual([a for a, _ in actions("legacy.pickle")], ["free_requested"])
        # One stack is one list, as PyTorch has it.
        trace = self.load("all.pickle")["device_traces"][0]
        self.assertIs(trace[1]["frames"], trace[2]["frames"])

    def test_history_errors(self):
        out = self.job("""
            for args in (("some",), ("all", "some"), ("all", "all", "some")):
                try:
                    torch._C._cuda_record_memory_history(*args)
                except RuntimeError as e:
                    print(e)
            try:
                torch._C._cuda_record_memory_history(skip_actions=["some"])
            except RuntimeError as e:
                print(e)
        """)
        self.assertEqual(out.splitlines(), [
            "expected state to be 'state', 'all', or None", "expected context to be 'state', 'alloc', 'all', or None",
            "expected stacks to be 'python', or 'all'", "Unknown TraceEntry action: some",
        ])

    def test_observers(self):
        """They may ask for a snapshot, and what they raise is not lost."""
        done = self.start("-c", textwrap.dedent("""
            import ashlar_torch, ctypes, torch
            torch.cuda.init()
            seen = []
            def observe(device, tried, total, free):
                seen.append((device, tried, total, free <= total, len(torch.cuda.memory._snapshot()["segments"])))
            def broken(*args):
                raise ValueError("broken")
            torch._C._cuda_attach_out_of_memory_observer(broken)
            torch._C._cuda_attach_out_of_memory_observer(observe)
            block = torch.take(1000)
            front = ashlar_torch._answers.ashlar.so.ashlar_front_malloc
            front.argtypes = [ctypes.c_size_t, ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p]
            assert front(1 << 40, 0, None, ctypes.byref(ctypes.c_void_p())) == 1
            print(seen)
        """))
        self.assertEqual((done.returncode, done.stdout), (0, "[(0, %d, %d, True, 1)]\n" % (1 << 40, 256 * MIB)), done.stderr)
        self.assertEqual(done.stderr.splitlines()[-1], "ValueError: broken")


class TestInstall(JobCase):
    def test_setters(self):
        self.job("""
            addresses = torch._allocator.addresses
            assert sorted(addresses) == sorted(torch.SETTERS), addresses
            assert len(set(addresses.values())) == 8 and all(addresses.values())
        """)

    def test_cache_info(self):
        """Of a library like PyTorch's, which throws; it says 1 then."""
        self.job("""
            info = ashlar_torch.info()
            assert (info["cache_info"], info["cache_info_missing"]) == (False, "libtorch_cuda.so is not loaded"), info
            assert info["library"] == %r and info["version"], info
        """ % library())
        path = os.path.join(self.folder, "libtorch_cuda.so")
        source = os.path.join(os.path.dirname(HERE), "cmd", "libashlar", "testdata", "standin", "torch_cuda.cpp")
        subprocess.run(["g++", "-std=c++17", "-shared", "-fPIC", "-Wl,-z,relro,-z,now", "-o", path, source], check=True)
        text = """
            import ctypes
            ask = ctypes.CDLL("./libtorch_cuda.so").standin_cache_info
            ask.argtypes = [ctypes.c_byte, ctypes.POINTER(ctypes.c_ulong)]
            largest = ctypes.c_ulong(1)
            print(ask(0, largest), largest.value)
            import ashlar_torch, torch
            torch.drop(torch.take(40 << 20))
            print(ask(0, largest), largest.value >> 20, ashlar_torch.info()["cache_info"], ashlar_torch.info()["cache_info_missing"])
        """
        for environment, want in ({}, "1 1\n0 40 True None\n"), ({"ASHLAR_PATCH_TORCH": "0"}, "1 1\n1 0 False ASHLAR_PATCH_TORCH=0\n"):
            done = self.start("-c", textwrap.dedent(text), **environment)
            self.assertEqual((done.returncode, done.stdout, done.stderr), (0, want, ""))

    def test_off(self):
        out = self.job("""
            print(ashlar_torch.enabled(), torch._allocator)
            try:
                ashlar_torch.stats()
            except RuntimeError as e:
                print(e)
        """, ASHLAR="0", ASHLAR_LIBRARY="/nowhere")
        self.assertEqual(out, "False None\nashlar_torch: not installed (ASHLAR=0, or a forked process)\n")

    def test_too_late(self):
        line = self.refused("import torch; torch.cuda.init(); import ashlar_torch")
        self.assertEqual(line, "RuntimeError: ashlar_torch: CUDA is in use already; import ashlar_torch before the first CUDA call")
        line = self.refused("import torch; torch._allocator = 1; import ashlar_torch")
        self.assertIn("Can't swap an already initialized allocator", line)
        self.assertIn("import ashlar_torch before the first CUDA call", line)

    def test_not_found(self):
        line = self.refused(ASHLAR_LIBRARY="/nowhere/libashlar.so")
        self.assertEqual(line, "ImportError: ashlar_torch: there is no file at ASHLAR_LIBRARY=/nowhere/libashlar.so")
        self.home = os.path.join(self.folder, "home")
        os.mkdir(self.home)
        shutil.copy(MODULE, self.home)
        environment = dict(ASHLAR_LIBRARY=None, LD_LIBRARY_PATH=None)
        line = self.refused(**environment)
        for part in (os.path.join(self.home, "libashlar.so"), os.path.join(self.folder, "bin", "libashlar.so"), "go build -buildmode=c-shared", "ASHLAR_LIBRARY"):
            self.assertIn(part, line)
        # By the loader's path, in ../bin, beside the file.
        self.job("assert ashlar_torch.enabled()", **dict(environment, LD_LIBRARY_PATH=os.path.dirname(library())))
        for folder in (os.path.join(self.folder, "bin"), self.home):
            os.makedirs(folder, exist_ok=True)
            link = os.path.join(folder, "libashlar.so")
            os.symlink(library(), link)
            self.job("assert ashlar_torch.enabled()", **environment)
            os.remove(link)

    def test_wrong_library(self):
        path = os.path.join(self.folder, "libashlar.so")
        with open(path, "w") as f:
            f.write("not a library")
        self.assertIn("cannot be loaded", self.refused(ASHLAR_LIBRARY=path))
        source = os.path.join(self.folder, "other.c")
        with open(source, "w") as f:
            f.write("void ashlar_malloc(void) {}\n")
        subprocess.run(["gcc", "-shared", "-fPIC", "-o", path, source], check=True)
        self.assertIn("is of another version than", self.refused(ASHLAR_LIBRARY=path))

    def test_wrong_torch(self):
        self.assertIn("needs PyTorch 2.4 or later; this is 2.3.1+fake", self.refused(FAKE_TORCH="2.3.1+fake"))
        self.assertIn("PyTorch 2.11.0+cpu is built without CUDA", self.refused(FAKE_TORCH="2.11.0+cpu"))
        text = "import torch; torch.SETTERS.remove('set_release_pool'); import ashlar_torch"
        self.assertIn("PyTorch 2.11.0+fake does not offer set_release_pool", self.refused(text))

    def test_wrong_settings(self):
        line = self.refused(ASHLAR_CONF="front_cache:Maybe")
        self.assertTrue(line.startswith("RuntimeError: "), line)
        self.assertIn("front_cache", line)


class TestProcess(JobCase):
    def test_end(self):
        """A job may end with live memory, stacks recorded and threads at work."""
        for end in ("", "import sys; sys.exit(0)", "import os; os._exit(0)"):
            self.job("""
                import threading
                torch.cuda.init()
                torch.cuda.memory._record_memory_history()
                kept = [torch.take(1000 + i) for i in range(100)]
                class Late:
                    def __del__(self):
                        torch.drop(self.block)
                late = Late()
                late.block = kept.pop()
                def work():
                    while True:
                        torch.drop(torch.take(5000))
                threading.Thread(target=work, daemon=True).start()
            """, end)


class TestRunner(JobCase):
    def add(self, name, text):
        path = os.path.join(self.folder, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as f:
            f.write(textwrap.dedent(text))

    SCRIPT = """
        import sys, beside, ashlar_torch, torch
        torch.drop(torch.take(1000))
        print(__name__, ashlar_torch.enabled(), sys.argv[1:], torch.cuda.max_memory_allocated(), __file__, sys.modules["__main__"].beside.__name__)
        sys.exit(4)
    """

    def test_script(self):
        self.add("jobs/train.py", self.SCRIPT)
        self.add("jobs/beside.py", "")
        expected = "__main__ True ['--batch', '8'] 1024 %s beside\n" % os.path.join(self.folder, "jobs", "train.py")
        for start in ([MODULE], ["-m", "ashlar_torch"]):
            done = self.start(*start, "jobs/train.py", "--batch", "8")
            self.assertEqual((done.returncode, done.stdout, done.stderr), (4, expected, ""))
        self.add("beside.py", "")
        done = self.start(MODULE, "-m", "jobs.train", "--batch", "8")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (4, expected, ""))

    def test_errors(self):
        done = self.start(MODULE)
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertIn("usage: ", done.stderr)
        done = self.start(MODULE, "none.py")
        self.assertEqual((done.returncode, done.stdout), (2, ""))
        self.assertEqual(done.stderr.count("\n"), 1, done.stderr)
        done = self.start(MODULE, "none.py", ASHLAR_LIBRARY="/nowhere")
        self.assertEqual((done.returncode, done.stderr), (2, "ashlar_torch: there is no file at ASHLAR_LIBRARY=/nowhere\n"))


class TestMatching(unittest.TestCase):
    """Which stack belongs to which event, without a library."""

    def setUp(self):
        with mock.patch.dict(os.environ, ASHLAR="0"):
            self.module = load_module("ashlar_torch", MODULE)

    def match(self, context, events, log):
        trace = [dict(zip(("action", "addr", "size"), e)) for e in events]
        pairs = self.module._matched(trace, [(what, 0, address, size, stack) for what, address, size, stack in log], context)
        found = collections.defaultdict(lambda: None, {id(e): stack for e, stack in pairs})
        self.assertEqual(len(found), len(pairs))  # none twice
        return [found[id(e)] for e in trace]

    def test_all(self):
        alloc, free, oom = range(3)
        events = [("free_completed", 1, 9), ("segment_map", 1, 99), ("alloc", 1, 10), ("free_requested", 1, 10), ("free_completed", 1, 10),
                  ("segment_unmap", 1, 99), ("segment_map", 2, 99), ("oom", 5, 512), ("segment_alloc", 1, 99), ("alloc", 1, 20), ("snapshot", 0, 0)]
        log = [(free, 1, 9, "lost"), (alloc, 1, 10, "a"), (free, 1, 10, "f"), (oom, None, 400, "o"), (alloc, 1, 20, "b")]
        self.assertEqual(self.match("all", events, log), [None, "a", "a", "f", "f", None, "o", "o", "b", "b", None])

    def test_alloc(self):
        events = [("free_requested", 1, 5), ("free_completed", 1, 5), ("alloc", 1, 10), ("free_requested", 1, 10), ("free_completed", 1, 10), ("alloc", 1, 20),
                  ("free_requested", 1, 20)]
        self.assertEqual(self.match("alloc", events, [(0, 1, 10, "a"), (0, 1, 20, "b")]), [None, None, "a", "a", "a", "b", "b"])

    def test_unknown(self):
        """An event whose call is not in the log has no stack rather than another's."""
        events = [("alloc", 1, 10), ("free_requested", 1, 10), ("free_completed", 1, 10), ("alloc", 1, 30), ("free_requested", 1, 30), ("free_completed", 1, 30)]
        log = [(0, 1, 10, "a"), (1, 1, 10, "f")]
        self.assertEqual(self.match("all", events, log), ["a", "f", "f", None, None, None])

    def test_own_frame(self):
        told = {"name": "told", "filename": self.module._WHO.co_filename, "line": 1}
        job = {"name": "told", "filename": "train.py", "line": 1}
        self.assertEqual(self.module._without_witness([{"name": "gather"}, told, job]), [job])
        self.assertEqual(self.module._without_witness([job]), [job])


if __name__ == "__main__":
    unittest.main()
