"""Tests of what is beside the usual way of the tiers of ashlar_torch.py: limits, names that end, graphs, regions left out of order."""
import unittest

from tiers_case import TiersCase

HOSTS = """
            def on_host(t):
                before = ours("host_bytes")
                ashlar_torch.restore(t)
                return ours("host_bytes") < before
"""


class TestTiersEdges(TiersCase):
    def test_limits(self):
        """What comes home counts, and what is parked does not overflow."""
        self.run_job("""
            a = [write(torch.Tensor(20 * MIB), i) for i in range(2)]
            ashlar_torch.park(a)
            torch.cuda.set_per_process_memory_fraction(0.5)
            b = [torch.Tensor(20 * MIB) for _ in range(2)]
            refused(lambda: ashlar_torch.restore(a), "above the limit of 40.00 MiB", torch.OutOfMemoryError)
            assert reserved() == 40 * MIB and ours("host_bytes") == 40 * MIB
            for t in b:
                t.free()
            assert ashlar_torch.restore(a) == 40 * MIB and reserved() == 40 * MIB
            assert all(holds(t, i) for i, t in enumerate(a))
        """, memory=80)
        self.run_job("""
            so, p = ashlar_torch._answers.ashlar.so, ctypes.c_void_p()
            def request():
                return so.ashlar_front_malloc(ctypes.c_size_t(20 * MIB), 0, None, ctypes.byref(p))
            with ashlar_torch.region("parked"):
                t = torch.Tensor(20 * MIB)
            ashlar_torch.park("parked")
            assert request() == 0
            regions = []
            for name in "abcd":
                with ashlar_torch.region(name):
                    regions.append(request())
            assert regions == [0, 0, 1, 1] and ours("host_bytes") == 60 * MIB, (regions, ours("host_bytes"))
            torch.cuda.set_per_process_memory_fraction(0.0)
            ashlar_torch.settings()
        """, memory=20, stderr="device 0 is full", ASHLAR_CONF="overflow:40MiB")
        self.run_job("""
            so, p = ashlar_torch._answers.ashlar.so, ctypes.c_void_p()
            with ashlar_torch.region("r"):
                t = torch.Tensor(20 * MIB)
                torch.cuda.set_per_process_memory_fraction(0.0)
                assert so.ashlar_front_malloc(ctypes.c_size_t(20 * MIB), 0, None, ctypes.byref(p)) == 1
                torch.cuda.set_per_process_memory_fraction(1.0)
                made = [torch.Tensor(20 * MIB) for _ in range(3)]
        """, memory=200, ASHLAR_CONF="per_process_memory_fraction:0.2")

    def test_names_end_with_their_tensors(self):
        self.run_job("""
            so, size = ashlar_torch._answers.ashlar.so, ctypes.c_size_t()
            def share(t):  # with another process
                so.ashlar_base_alloc.restype = ctypes.c_void_p
                so.ashlar_base_alloc(ctypes.c_void_p(t.data_ptr()), ctypes.byref(size))
            for bytes in (4096, 30 * MIB):
                for _ in range(5):  # so that the cache in front holds the next one
                    torch.Tensor(bytes).free()
                t = torch.Tensor(bytes)
                share(t)
                refused(lambda: ashlar_torch.park(t), "shared with other processes")
                t.free()
                other = torch.Tensor(bytes)
                assert other.data_ptr() == t.data_ptr() and ashlar_torch.park(other) > 0
                other.free()
        """)
        self.run_job(HOSTS + """
            seldom = torch.Tensor(20 * MIB)
            ashlar_torch.cold(seldom)
            seldom.free()
            p = write(torch.nn.Parameter(20 * MIB), 1)
            assert p.data_ptr() == seldom.data_ptr()
            q = torch.nn.Parameter(20 * MIB)
            opt = torch.optim.Optimizer([p])
            for _ in range(3):
                opt.step()
            torch.Tensor(60 * MIB).free()
            assert not on_host(p) and on_host(q) and on_host(opt.state[p]["exp_avg"])
        """, memory=80, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_what_is_named(self):
        """State that was replaced is named again, and what is nobody's is left out."""
        self.run_job(HOSTS + """
            f = torch.nn.Parameter(4096)  # frozen, and not the allocator's
            f.requires_grad = False
            f.block = (1 << 40, *f.block[1:])
            refused(lambda: ashlar_torch.cold(f), "no block at 0x10000000000")
            class Odd(torch.nn.Parameter):  # as those that torch.compile makes up
                def untyped_storage(self):
                    raise NotImplementedError("no storage")
            odd = Odd(4096)
            odd.requires_grad = False
            p = write(torch.nn.Parameter(20 * MIB), 1)
            opt = torch.optim.Optimizer([p])
            opt.step()
            old, opt.state[p]["exp_avg"] = opt.state[p]["exp_avg"], torch.Tensor(20 * MIB)  # as load_state_dict does
            old.free()
            opt.step()
            workspace = torch.Tensor(20 * MIB)
            for _ in range(3):
                opt.step()
            torch.Tensor(40 * MIB).free()
            assert on_host(opt.state[p]["exp_avg"]) and not on_host(workspace) and not on_host(p)
        """, memory=82, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_all_devices_of_an_optimizer(self):
        self.run_job("""
            p, q = torch.nn.Parameter(20 * MIB, 0), torch.nn.Parameter(20 * MIB, 1)
            opt = torch.optim.Optimizer([p, q])
            opt.step()
            for i in (0, 1):
                for t in [torch.Tensor(20 * MIB, i) for _ in range(3)]:
                    t.free()
            host = lambda i: torch.cuda.memory_stats(i)["ashlar.host_bytes"]
            assert host(0) == host(1) == 20 * MIB
            for _ in range(20):
                opt.step()
            assert host(0) == host(1) == 0
        """, memory=82, stderr="device 1 is full", ASHLAR_CONF="overflow:200MiB", FAKE_DEVICES="2", FAKECUDA_DEVICES="2")

    def test_graphs(self):
        """Where NCCL may have registered memory nothing moves by itself, and no region begins in the middle of a capture."""
        job = """
            import types
            %s
            p = write(torch.nn.Parameter(20 * MIB), 1)
            capture(True)
            refused(lambda: ashlar_torch.region("late").__enter__(), "region late cannot be made while a CUDA graph is captured")
            refused(lambda: ashlar_torch.tenant("late"), "tenant late cannot be made while a CUDA graph is captured")
            capture(False)
            opt = torch.optim.Optimizer([p])
            %s
            made = [torch.Tensor(20 * MIB) for _ in range(4)]
            assert (ours("moves") > 0) == %s, torch.cuda.memory_stats()
            far = ours("host_bytes")
            for t in made:
                t.free()
            for _ in range(9):
                opt.step()
            assert far > 0 and (ours("moved_in_bytes") > 0) == %s, torch.cuda.memory_stats()
        """
        nccl = "torch.distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, get_backend=lambda: 'nccl')"
        for first, then, moves, home in ((nccl, "opt.step()", False, False), ("pass", "opt.step()", True, True), ("pass", "pass", False, True)):
            with self.subTest(first=first, then=then):
                self.run_job(job % (first, then, moves, home), memory=82, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_overflow_ends(self):
        """Switched off, overflow leaves nothing on the host for ever."""
        self.run_job("""
            made = [write(torch.Tensor(20 * MIB), i) for i in range(4)]
            assert ours("host_bytes") == 40 * MIB
            opt, seen = torch.optim.Optimizer([torch.Tensor(4)]), []
            torch.optim.optimizer.register_optimizer_step_post_hook(lambda *_: seen.append(1))  # is called after ours
            torch._C._accelerator_setAllocatorSettings("overflow:0")
            tiers = ashlar_torch._answers.tiers
            assert tiers.on
            for t in made[:2]:
                t.free()
            torch.cuda.empty_cache()
            for _ in range(30):
                opt.step()
            assert ours("host_bytes") == 0 and not tiers.on and ashlar_torch.step() == 0 and len(seen) == 30, (tiers.on, seen, torch.cuda.memory_stats())
            torch._C._accelerator_setAllocatorSettings("overflow:0")
            assert not tiers.hooks
            assert holds(made[2], 2) and holds(made[3], 3)
        """, memory=50, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_dropped_and_out_of_reach(self):
        self.run_job("""
            with ashlar_torch.region("kv") as kv:
                t = torch.Tensor(40 * MIB)
            ashlar_torch.park("kv", keep=False)
            settings = ashlar_torch._answers.snapshot()["allocator_settings"]
            assert settings["ashlar_dropped_bytes"] == 40 * MIB and "ashlar_host_bytes" not in settings
            assert ashlar_torch.dropped(t) and ashlar_torch.restore(t) == 40 * MIB and not ashlar_torch.dropped(t)
            with kv:  # all of it is there again
                pass
            assert not kv.stats()["dropped"]
            refused(lambda: ashlar_torch.region("nobody").stats(), "device 0 has no region 'nobody'")
        """)
        self.run_job("""
            a = write(torch.Tensor(40 * MIB), 5)
            for _ in range(2):  # the second tries again
                refused(lambda: ashlar_torch.park(a), "cannot be used until a later call has mapped them")
                assert not ashlar_torch.dropped(a) and list(ashlar_torch._behind(a)) == [2]
        """, FAKECUDA_FAIL="cuMemMap:5:999:ever")

    def test_regions_left_out_of_order(self):
        self.run_job("""
            def tensors():
                with ashlar_torch.region("g"):
                    yield
            def bytes_in(name):
                return ashlar_torch.region(name).stats()["device_bytes"]
            g = tensors()
            next(g)
            with ashlar_torch.region("a"):
                g.close()
                kept = torch.Tensor(20 * MIB)
            outside = torch.Tensor(20 * MIB)
            assert bytes_in("a") == 20 * MIB and bytes_in("g") == 0
            r = ashlar_torch.region("a").__enter__()
            def leave():
                refused(lambda: r.__exit__(None, None, None), "region a was not entered in this thread")
                done.append(True)
            done = []
            other = threading.Thread(target=leave)
            other.start()
            other.join()
            r.__exit__(None, None, None)
            assert done and ashlar_torch._answers.ashlar.so.ashlar_region_current(0) == 0
        """)

    def test_statistics_outlive_a_region(self):
        self.run_job("""
            with ashlar_torch.region("a") as r:
                made = [torch.Tensor(20 * MIB) for _ in range(3)]
            before = torch.cuda.memory_stats()
            for t in made:
                t.free()
            r.close()
            with ashlar_torch.region("b") as r:
                torch.Tensor(20 * MIB).free()
            r.close()
            after = torch.cuda.memory_stats()
            for key in before:
                if not key.endswith(".current") and not key.startswith("ashlar."):
                    assert after[key] >= before[key], key
                elif key.endswith(".current"):
                    assert after[key] == 0, key
            for family in ("allocation", "segment", "allocated_bytes", "reserved_bytes"):
                assert after[family + ".all.allocated"] == after[family + ".all.freed"], family
            assert after["allocated_bytes.all.peak"] == 60 * MIB
            torch.cuda.reset_peak_memory_stats()
            assert torch.cuda.memory_stats()["allocated_bytes.all.peak"] == 0
            torch.cuda.reset_accumulated_memory_stats()
            assert torch.cuda.memory_stats()["allocation.all.allocated"] == 0
        """)

    def test_what_tensors_are_made_of(self):
        self.run_job("""
            import types
            def sparse():
                return types.SimpleNamespace(untyped_storage=None, layout="torch.sparse_coo", _indices=lambda: parts[0], _values=lambda: parts[1])
            class Wrapper:
                untyped_storage = None
                def __tensor_flatten__(self):
                    return ["inner", "scale"], None
            parts = [torch.Tensor(20 * MIB) for _ in range(4)]
            wrapper = Wrapper()
            wrapper.inner, wrapper.scale = parts[2:]
            found = ashlar_torch._blocks({"a": [sparse(), "text", b"bytes", None, 3], "b": {"w": wrapper}.values()})
            assert list(found[0]) == [t.data_ptr() for t in parts], found
        """)


if __name__ == "__main__":
    unittest.main()
