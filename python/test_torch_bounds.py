"""Tests of ashlar_torch.py at its bounds: versions of PyTorch, devices that
were not used, forked processes, and what has no effect.
"""
import os
import shutil
import textwrap

from torch_case import MODULE, JobCase, library


class TestVersions(JobCase):
    """How many arguments PyTorch passes grew from 4 in 2.4 to 10 in 2.14, and functions came and went."""

    def test_history(self):
        for known in range(4, 12):
            with self.subTest(arguments=known):
                self.job("""
                    kept = []
                    def events():
                        return [e["action"] for e in torch.cuda.memory._snapshot()["device_traces"][0]]
                    def work():
                        kept.append(torch.take(3000))
                        torch.drop(torch.take(2000))
                    torch.cuda.init()
                    kept.append(torch.take(1000))
                    torch.cuda.memory._record_memory_history("all", "alloc", "python", 100)
                    work()
                    assert events() == ["alloc", "alloc", "free_requested", "free_completed"], events()
                    snapshot = torch.cuda.memory._snapshot()
                    assert [f["name"] for f in snapshot["device_traces"][0][0]["frames"]] == ["take", "work", "<module>"]
                    assert ("host_traces" in snapshot, "host_segments" in snapshot) == (known >= 9,) * 2
                    torch.cuda.memory._record_memory_history(None)
                    assert not torch._C._cuda_isHistoryEnabled() and events() == []
                    torch.cuda.memory._record_memory_history(True, False, 50, True)
                    work()
                    assert events() == ["alloc", "alloc", "free_requested", "free_completed"], events()
                    assert torch.cuda.memory._snapshot()["device_traces"][0][0]["frames"]
                    torch.cuda.memory._record_memory_history(False)
                    assert not torch._C._cuda_isHistoryEnabled()
                    if known >= 8:
                        torch.cuda.memory._record_memory_history(skip_actions=["free_requested"])
                        work()
                        assert events() == ["alloc", "alloc", "free_completed"], events()
                        torch.cuda.memory._record_memory_history(True, skip_actions=["alloc"], clear_history=True, trace_alloc_max_entries=9)
                        work()
                        assert events() == ["free_requested", "free_completed"], events()
                """.replace("known", str(known)), FAKE_HISTORY=str(known))

    def test_every_version(self):
        """What a job does, with the functions that each version has, called as it calls them."""
        for minor in range(4, 14):
            with self.subTest(version="2.%d" % minor):
                self.job("""
                    import warnings
                    c, memory = torch._C, torch.cuda.memory
                    seen = []
                    torch.cuda.init()
                    memory._record_memory_history("all", "all", "python", 100)
                    c._cuda_attach_out_of_memory_observer(lambda *args: seen.append(args))
                    if hasattr(c, "_cuda_setMemoryMetadata"):
                        c._cuda_setMemoryMetadata("step 1")
                    block = torch.take(3000)
                    stats = torch.cuda.memory_stats()
                    theirs = [key for key in stats if not key.startswith("ashlar.")]
                    assert len(theirs) == 122 + (minor >= 12) and len(stats) == len(theirs) + 8, len(stats)
                    assert stats.get("num_oom_rejections") == (0 if minor >= 12 else None)
                    assert torch.cuda.memory_allocated() == 3072
                    torch.cuda.set_per_process_memory_fraction(0.5)
                    if minor >= 6:
                        assert torch.cuda.get_per_process_memory_fraction() == 0.5
                        with warnings.catch_warnings(record=True) as warned:
                            memory.caching_allocator_enable(False)
                        assert len(warned) == 1
                    data = memory._snapshot()
                    assert data["segments"] == torch.cuda.memory_snapshot()
                    (mapped, event) = data["device_traces"][0]
                    assert [f["name"] for f in event["frames"]] == ["take", "<module>"]
                    assert event["user_metadata"] == ("step 1" if minor >= 10 else "")
                    old, new = "_cuda_cudaCachingAllocator_set_allocator_settings", "_accelerator_setAllocatorSettings"
                    assert (hasattr(c, old), hasattr(c, new)) == (minor < 10, minor >= 10)
                    getattr(c, new if minor >= 10 else old)("garbage_collection_threshold:0.5")
                    assert ashlar_torch.settings()["garbage_collection_threshold"] == 0.5
                    if minor >= 12:
                        assert c._accelerator_getAllocatorSettings() == "garbage_collection_threshold:0.5"
                        assert memory._allocation_traceback(block[0])
                    if minor >= 9:
                        assert c._accelerator_getDeviceStats(0)["allocation"]["all"]["current"] == 1
                    torch.drop(block)
                    torch.cuda.empty_cache()
                    assert torch.cuda.memory_reserved() == 0
                """.replace("minor", str(minor)), FAKE_TORCH="2.%d.0+fake" % minor)

    def test_by_name(self):
        """Nothing passes them by name today, and nothing forbids it."""
        self.job("""
            torch.cuda.init()
            torch._C._cuda_record_memory_history(enabled="all", context=None, stacks="all", max_entries=5, clear_history=True, new=1)
            torch.drop(torch.take(1000))
            assert len(torch.cuda.memory._snapshot()["device_traces"][0]) == 4
            torch._C._cuda_record_memory_history_legacy(False, record_cuda=True, new=1)
            assert not torch._C._cuda_isHistoryEnabled()
        """)

    def test_only_host_memory(self):
        """What is recorded of the device stays as it is, and the job is told that the rest is not."""
        done = self.start("-c", textwrap.dedent("""
            import ashlar_torch, torch
            torch.cuda.init()
            for i in range(2):
                torch.cuda.memory._record_memory_history(record_pinned_host_memory=True, record_cuda=False)
            assert not torch._C._cuda_isHistoryEnabled()
            torch.cuda.memory._record_memory_history(record_pinned_host_memory=True)
            torch.cuda.memory._record_memory_history(None, record_cuda=False)
            assert torch._C._cuda_isHistoryEnabled()
            snapshot = torch.cuda.memory._snapshot()
            assert list(snapshot)[-2:] == ["host_segments", "host_traces"] and snapshot["host_segments"] == snapshot["host_traces"] == []
        """), FAKE_HISTORY="10")
        self.assertEqual((done.returncode, done.stderr.count("RuntimeWarning")), (0, 1), done.stderr)
        self.assertIn("ashlar_torch: page-locked host memory is not recorded", done.stderr)

    def test_later_functions(self):
        self.job("""
            def owner():
                return torch.take(3000)
            torch.cuda.init()
            assert torch._C._cuda_memoryMetadataSupported()
            before = torch.take(500)
            torch.cuda.memory._record_memory_history()
            block = owner()
            assert [f["name"] for f in torch.cuda.memory._allocation_traceback(block[0])] == ["take", "owner", "<module>"]
            assert torch.cuda.memory._allocation_traceback(block[0] + 512) is None
            assert torch.cuda.memory._allocation_traceback(before[0]) is None
            torch.drop(block)
            assert torch.cuda.memory._allocation_traceback(block[0]) is None
        """)


class TestUnused(JobCase):
    """A device that PyTorch has not started is not opened: that makes a context."""

    # The library reads the variable when it opens a device, and then fails.
    CLOSED = """
            import os
            os.environ["ASHLAR_DRIVER"] = "no device may be opened"
    """

    def test_before_cuda(self):
        self.job(self.CLOSED + """
            nothing = ashlar_torch.stats()
            assert nothing == ashlar_torch.stats("cuda:0") == torch._C._accelerator_getDeviceStats(0)
            assert torch.cuda.memory_stats() == {}
            for function in "Peak", "Accumulated":
                getattr(torch._C, "_accelerator_reset%sStats" % function)(0)
                try:
                    getattr(torch._C, "_cuda_reset%sMemoryStats" % function)(0)
                except RuntimeError as e:
                    assert str(e) == "Invalid device argument 0: did you call init?", e
                else:
                    raise AssertionError(function)
            torch.cuda.memory._snapshot()
            ashlar_torch.snapshot("empty.pickle")
            assert not torch.cuda.is_initialized()
            torch.cuda.reset_peak_memory_stats()  # which has PyTorch start CUDA, but not the device
            assert torch.cuda.is_initialized()
            assert torch.cuda.get_per_process_memory_fraction() == 0.25
            assert torch.cuda.memory_stats_as_nested_dict() == nothing
            torch.cuda.empty_cache()

            # Zeros, and the keys and their order are those of a device that is used.
            assert nothing["max_split_size"] == 32 << 20, nothing
            nothing["max_split_size"] = 0
            assert {type(v) for v in torch._flat(nothing).values()} == {int} and not any(torch._flat(nothing).values())
            os.environ["ASHLAR_DRIVER"] = "sim"
            torch.drop(torch.take(1000))
            def keys(value):
                return [(k, keys(v)) for k, v in value.items()] if isinstance(value, dict) else None
            assert keys(nothing) == keys(ashlar_torch.stats())
            assert torch.cuda.get_per_process_memory_fraction() == 0.25
        """, ASHLAR_CONF="max_split_size_mb:32,per_process_memory_fraction:0.25")

    def test_other_devices(self):
        """Trainers ask for the statistics of all devices, and use one."""
        self.job("""
            torch.drop(torch.take(1000))
        """ + self.CLOSED + """
            for index in range(3):
                assert torch.cuda.memory_reserved(index) == (0 if index else 2 << 20)
                torch.cuda.reset_peak_memory_stats(index)
                torch.cuda.reset_accumulated_memory_stats(index)
                torch.cuda.get_per_process_memory_fraction(index)
            assert len(torch.cuda.memory._snapshot()["device_traces"]) == 3
            for index in (-1, 3):
                for function in torch.cuda.memory_stats, torch.cuda.reset_peak_memory_stats:
                    try:
                        function(index)
                    except RuntimeError as e:
                        assert str(e) == "Invalid device argument %d: did you call init?" % index, e
                    else:
                        raise AssertionError(index)
            torch._contexts.add(1)
            try:
                torch.cuda.memory_reserved(1)  # now it would be opened
            except RuntimeError as e:
                assert "no device may be opened" in str(e), e
            else:
                raise AssertionError("opened")
            os.environ["ASHLAR_DRIVER"] = "sim"
            block = torch.take(1000, index=1)
            assert torch.cuda.memory_allocated(1) == 1024
        """, FAKE_DEVICES="3")

    def test_snapshot(self):
        """Keys and settings are the same before the first allocation and after it."""
        for conf in ("", "expandable_segments:False,history:5", "front_cache:False", "release_lock_on_cudamalloc:True,garbage_collection_threshold:0.75,oom_snapshot:x",
                     "pinned_num_register_threads:4,pinned_use_cuda_host_register:True", "graph_capture_record_stream_reuse:True,max_split_size_mb:64",
                     "roundup_power2_divisions:[256:1,512:2,1024:4,>:8],release_lock_on_cudamalloc:True,front_cache:False"):
            with self.subTest(conf=conf):
                self.job("""
                    import pickle
                    def snapshots():
                        ashlar_torch.snapshot("file.pickle")
                        with open("file.pickle", "rb") as f:
                            file = pickle.load(f)
                        file.pop("ashlar_rules", None)  # of the library's own files
                        return [torch.cuda.memory._snapshot(), file]
                    before = snapshots()
                    torch.cuda.init()
                    before += snapshots()
                    torch.drop(torch.take(1000))
                    after = torch.cuda.memory._snapshot()
                    assert list(after) == ["segments", "device_traces", "allocator_settings", "external_annotations"]
                    for data in [*before, *snapshots()]:
                        assert list(data) == list(after), list(data)
                        assert repr(data["allocator_settings"]) == repr(after["allocator_settings"]), data["allocator_settings"]
                """, ASHLAR_CONF=conf, PYTHONWARNINGS="ignore")  # pinned_* has no effect


class TestNoEffect(JobCase):
    def test_caching(self):
        done = self.start("-c", textwrap.dedent("""
            import ashlar_torch, torch
            torch.cuda.memory.caching_allocator_enable(False)  # before CUDA, which PyTorch leaves unanswered
            torch.cuda.init()
            torch.cuda.memory.caching_allocator_enable(True)
            print(torch.calls)
            for i in range(3):
                torch.cuda.memory.caching_allocator_enable(False)
            with torch.cuda.memory.caching_allocator_disabled():
                torch.drop(torch.take(1000))
            print(torch.calls, torch.cuda.memory_reserved() >> 20)
        """))
        calls = [("enable", True)] + 4 * [("enable", False)] + [("enable", True)]
        self.assertEqual((done.returncode, done.stdout), (0, "%s\n%s 2\n" % (calls[:1], calls)), done.stderr)
        self.assertEqual(done.stderr.count("RuntimeWarning"), 1, done.stderr)
        self.assertTrue(done.stderr.startswith("<string>:8: RuntimeWarning: ashlar_torch: caching cannot be switched off"), done.stderr)

    def test_variable(self):
        done = self.start("-c", "import ashlar_torch", PYTORCH_NO_CUDA_MEMORY_CACHING="1")
        self.assertEqual(done.returncode, 0)
        self.assertTrue(done.stderr.startswith("<string>:1: RuntimeWarning: ashlar_torch: PYTORCH_NO_CUDA_MEMORY_CACHING has no effect"), done.stderr)


class TestFork(JobCase):
    def test_fork(self):
        self.job("""
            import gc, os
            kept = [torch.take(1000 + i) for i in range(10)]
            child = os.fork()
            if child == 0:
                assert torch.cuda.memory_stats() == {}
                torch.drop(kept.pop())
                try:
                    ashlar_torch.stats(0)
                except RuntimeError as e:
                    assert "spawn" in str(e), e
                    os._exit(7)
                os._exit(1)
            assert os.waitpid(child, 0)[1] >> 8 == 7
            assert torch.cuda.memory_allocated() == 9 * 1024 + 1024
        """)

    def test_import_in_a_fork(self):
        self.job("""
            import os, sys
            torch.cuda.init()
            child = os.fork()
            if child == 0:
                del sys.modules["ashlar_torch"]
                import ashlar_torch as again
                os._exit(3 if not again.enabled() else 1)
            assert os.waitpid(child, 0)[1] >> 8 == 3
        """)

    def test_before_cuda(self):
        """PyTorch alone would let this child use CUDA."""
        out = self.job("""
            import multiprocessing
            def child():
                assert torch.cuda.memory_stats() == {}  # harmless
                for what in torch.cuda.init, lambda: torch.take(1000), ashlar_torch.stats, torch.cuda.reset_peak_memory_stats:
                    try:
                        what()
                    except RuntimeError as e:
                        print(e, flush=True)
            process = multiprocessing.get_context("fork").Process(target=child)
            process.start()
            process.join()
            assert process.exitcode == 0
            torch.drop(torch.take(1000))  # the parent goes on
        """)
        lines = out.splitlines()
        self.assertEqual((len(lines), len(set(lines))), (4, 1), out)
        for part in ("was forked from one with Ashlar in it", "spawn", "import ashlar_torch only in the children, after the fork"):
            self.assertIn(part, lines[0])

    def test_imported_in_the_child(self):
        """A way out that needs no spawn: the parent imports torch, and not Ashlar."""
        done = self.start("-c", textwrap.dedent("""
            import multiprocessing, sys, torch
            def child(number):
                import ashlar_torch
                assert ashlar_torch.enabled()
                kept = [torch.take(1000 * number) for i in range(100)]
                torch.cuda.memory._record_memory_history()
                torch.drop(kept.pop())
                assert torch.cuda.memory._snapshot()["device_traces"][0][0]["action"] == "free_requested"
                return torch.cuda.memory_stats()["allocation.all.current"]
            with multiprocessing.get_context("fork").Pool(3) as pool:
                print(sorted(pool.map(child, [1] * 3, chunksize=1)))
            assert "ashlar_torch" not in sys.modules
        """))
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        self.assertEqual(len(done.stdout.split()), 3)

    def test_spawn(self):
        """The other way out; each process imports the module itself."""
        with open(os.path.join(self.folder, "train.py"), "w") as f:
            f.write(textwrap.dedent("""
                import multiprocessing, ashlar_torch, torch
                def child():
                    torch.drop(torch.take(1000))
                    print(ashlar_torch.enabled(), torch.cuda.max_memory_allocated())
                if __name__ == "__main__":
                    torch.drop(torch.take(5000))
                    process = multiprocessing.get_context("spawn").Process(target=child)
                    process.start()
                    process.join()
                    raise SystemExit(process.exitcode)
            """))
        done = self.start("train.py")
        self.assertEqual((done.returncode, done.stdout, done.stderr), (0, "True 1024\n", ""))


class TestPlainName(JobCase):
    def test_found(self):
        """`go build` without -o writes libashlar, without a suffix, where it is started."""
        self.home = os.path.join(self.folder, "python")
        os.makedirs(self.home)
        shutil.copy(MODULE, self.home)
        os.mkdir(os.path.join(self.home, "libashlar"))  # a folder is not the library
        environment = dict(ASHLAR_LIBRARY=None, LD_LIBRARY_PATH=None)
        self.refused(**environment)
        os.rmdir(os.path.join(self.home, "libashlar"))
        for folder in (self.folder, self.home):
            link = os.path.join(folder, "libashlar")
            os.symlink(library(), link)
            self.assertEqual(self.job("print(ashlar_torch.info()['library'])", **environment), link + "\n")
            os.remove(link)
