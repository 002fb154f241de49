"""Tests of the tiers of ashlar_torch.py without a GPU."""
import unittest

from tiers_case import MIB, TiersCase


class TestTiers(TiersCase):
    def test_region(self):
        self.run_job("""
            outside = write(torch.Tensor(30 * MIB), 9)
            with ashlar_torch.region("actor") as actor:
                tensors = [write(torch.Tensor(size), i + 1) for i, size in enumerate((1000, 3 * MIB, 25 * MIB, 40 * MIB))]
                with ashlar_torch.region("inner"):
                    inner = write(torch.Tensor(21 * MIB), 8)
                again = write(torch.Tensor(21 * MIB), 7)
                thread = threading.Thread(target=lambda: tensors.append(write(torch.Tensor(22 * MIB), 5)))
                thread.start()
                thread.join()
            before, pointers = reserved(), [t.data_ptr() for t in tensors]
            assert actor.stats()["device_bytes"] >= 89 * MIB and before == sum(map(sum, [[
                r["device_bytes"] for r in ashlar_torch._answers.ashlar.tiers(0)["regions"]]])) + 60 * MIB, (before, actor.stats())
            freed = ashlar_torch.park("actor")
            assert 90 * MIB <= freed == before - reserved() and ours("host_bytes") >= 89 * MIB, (freed, before, reserved())
            assert all(holds(t, i + 1) for i, t in enumerate(tensors))  # what was kept can be used
            write(tensors[2], 33)
            assert ashlar_torch.park("actor") == 0
            assert ashlar_torch.restore("actor") == freed or ashlar_torch.restore("actor") == 0
            assert reserved() == before and ours("host_bytes") == 0 and ours("moves") >= 2 and ours("move_seconds") > 0
            assert [t.data_ptr() for t in tensors] == pointers
            assert [holds(t, v) for t, v in zip(tensors, (1, 2, 33, 4, 5))] == [True] * 5 and holds(outside, 9) and holds(inner, 8) and holds(again, 7)
            refused(actor.close, "in use")
            for t in [*tensors[:4], again]:  # anybody frees, and the region gets it back
                t.free()
            actor.close()
            assert "actor" not in [r["name"] for r in ashlar_torch._answers.ashlar.tiers(0)["regions"]]
        """)

    def test_rounds(self):
        self.run_job("""
            with ashlar_torch.region("a"):
                t = [write(torch.Tensor(20 * MIB), i) for i in range(5)]
            figures = set()
            for n in range(30):
                assert ashlar_torch.park("a") == 100 * MIB
                assert ashlar_torch.restore("a") == 100 * MIB
                figures.add((reserved(), ours("host_kept_bytes"), torch.cuda.memory_allocated()))
                x = torch.Tensor(20 * MIB)
                x.free()
            assert len(figures) <= 2, figures
            assert all(holds(x, i) for i, x in enumerate(t))
        """)

    def test_shared_with_others(self):
        """What others know by its address stays where it is, and a call that moves nothing says why."""
        self.run_job("""
            a, b = (write(torch.Tensor(40 * MIB), v) for v in (1, 2))
            share = ashlar_torch._answers.ashlar.so.ashlar_base_alloc
            share.restype, size = ctypes.c_void_p, ctypes.c_size_t()
            assert share(ctypes.c_void_p(a.data_ptr()), ctypes.byref(size)) == a.data_ptr()
            refused(lambda: ashlar_torch.park(a), "41943040 bytes are shared with other processes")
            assert ashlar_torch.park([a, b]) == 40 * MIB and holds(b, 2)
            share(ctypes.c_void_p(b.data_ptr()), ctypes.byref(size))  # by now it lies in the host's memory
            refused(lambda: ashlar_torch.restore(b), "41943040 bytes are shared with other processes")
            assert ashlar_torch.restore(a) == 0 and holds(a, 1) and holds(b, 2)
        """)

    def test_tensors(self):
        self.run_job("""
            a, b = (write(torch.Tensor(40 * MIB), v) for v in (1, 2))
            small = write(torch.Tensor(10 * MIB), 3)
            beside = write(torch.Tensor(10 * MIB), 4)  # in the same page of 20 MiB
            assert ashlar_torch.park(small) == 0 and ashlar_torch.park([small, {"x": beside}]) == 20 * MIB
            net = Module(a, buffers=[b])
            a.grad = write(torch.Tensor(20 * MIB), 6)
            opt = torch.optim.Optimizer([a])
            opt.step()
            state = write(opt.state[a]["exp_avg"], 5)
            assert ashlar_torch.park(net) == 100 * MIB and ashlar_torch.park(opt) == 40 * MIB
            assert ashlar_torch.park(state) == 0 and ours("host_bytes") == 160 * MIB
            assert ashlar_torch.restore([net, opt]) == 140 * MIB and ashlar_torch.restore(small) == 20 * MIB
            assert [holds(t, v) for t, v in ((a, 1), (b, 2), (small, 3), (beside, 4), (state, 5), (a.grad, 6))] == [True] * 6
            assert ours("host_bytes") == 0 and [c for c in torch.calls if c[0] == "synchronize"]
        """)

    def test_dropped(self):
        self.run_job("""
            with ashlar_torch.region("kv") as kv:
                t = write(torch.Tensor(40 * MIB), 1)
            assert not ashlar_torch.dropped(t)
            assert ashlar_torch.park("kv", keep=False) == 40 * MIB and ours("host_bytes") == 0 and ours("dropped_bytes") == 40 * MIB
            assert ashlar_torch.dropped([t]) and kv.stats()["dropped"]
            refused(kv.__enter__, "parked and not kept")
            refused(lambda: ashlar_torch.park(t), "restore the region first")
            assert ashlar_torch.restore("kv") == 40 * MIB and not ashlar_torch.dropped(t)
            assert holds(write(t, 2), 2)
            with kv:
                more = torch.Tensor(20 * MIB)
            ashlar_torch.park("kv", keep=False)
            t.free()  # may go while it is dropped
            more.free()
            ashlar_torch.restore("kv")
            kv.close()
        """)

    def test_refused(self):
        self.run_job("""
            t = write(torch.Tensor(20 * MIB), 1)
            refused(lambda: ashlar_torch.park(t, keep=False), "for regions only", ValueError)
            refused(lambda: ashlar_torch.park([]), "no tensor", ValueError)
            for nothing in (5, [], Module(), torch.optim.Optimizer([t])):
                refused(lambda: ashlar_torch.cold(nothing), "there is no tensor of a GPU in what was given", ValueError)
            for call in (ashlar_torch.region, ashlar_torch.park, ashlar_torch.restore):
                refused(lambda: call("act" + chr(0) + "or"), "has a NUL in it", ValueError)
            refused(lambda: ashlar_torch.park("nobody"), "has no region")
            refused(lambda: ashlar_torch.restore("nobody"), "has no region")
            refused(ashlar_torch.region("").__enter__, "needs a name")
            gone = torch.Tensor(20 * MIB)
            gone.block = (1 << 40, *gone.block[1:])
            refused(lambda: ashlar_torch.park(gone), "no block")
            class Elsewhere(torch.Tensor):
                def __init__(self):
                    self.device = torch.device("cpu")
            refused(lambda: ashlar_torch.cold(gone), "no block")
            ashlar_torch.cold([t, Elsewhere()])
            with ashlar_torch.region("big"):
                big = [write(torch.Tensor(20 * MIB), i) for i in range(4)]
            refused(lambda: ashlar_torch.park("big"), "host")
            assert all(holds(x, i) for i, x in enumerate(big))
            ashlar_torch.restore("big")
            assert ours("host_bytes") == 0 and reserved() == 120 * MIB
            try:
                with ashlar_torch.region("big"):
                    raise KeyError
            except KeyError:
                pass
            outside = torch.Tensor(20 * MIB)
            assert ashlar_torch.region("big").stats()["device_bytes"] == 80 * MIB
        """, ASHLAR_CONF="host_limit:40MiB")
        self.run_job("""
            refused(ashlar_torch.region("a").__enter__, "tiers:True")
            refused(lambda: ashlar_torch.park("a"), "tiers:True")
            assert ours("host_bytes") == 0
        """, ASHLAR_CONF="tiers:False")

    def test_capture(self):
        self.run_job("""
            with ashlar_torch.region("a"):
                t = write(torch.Tensor(20 * MIB), 1)
            capture(True)
            graph = write(torch.Tensor(20 * MIB), 2)
            refused(lambda: ashlar_torch.park("a"), "captured into a CUDA graph")
            refused(lambda: ashlar_torch.park(t), "captured into a CUDA graph")
            assert not torch.calls, torch.calls  # waiting would have broken the capture
            capture(False)
            refused(lambda: ashlar_torch.park(graph), "belong to captured graphs")
            assert ashlar_torch.park("a") == 20 * MIB and holds(t, 1) and holds(graph, 2)
            import types
            world = types.SimpleNamespace(_world=types.SimpleNamespace(pg_map={"default": ("gloo", None), "other": ("nccl", None)}))
            torch.distributed = types.SimpleNamespace(is_available=lambda: True, is_initialized=lambda: True, distributed_c10d=world,
                                                      get_backend=lambda: "gloo")
            refused(lambda: ashlar_torch.restore("a"), "NCCL_GRAPH_REGISTER=0")
            os.environ["NCCL_GRAPH_REGISTER"] = "0"
            ashlar_torch.restore("a")
        """)

    def test_full_at_restore(self):
        self.run_job("""
            with ashlar_torch.region("a"):
                t = [write(torch.Tensor(20 * MIB), i) for i in range(5)]
            ashlar_torch.park("a")
            hogs = [torch.Tensor(20 * MIB) for _ in range(6)]
            refused(lambda: ashlar_torch.restore("a"), "out of memory", torch.OutOfMemoryError)
            assert all(holds(x, i) for i, x in enumerate(t))
            for hog in hogs[:4]:
                hog.free()  # cached: a restore may have it
            ashlar_torch.restore("a")
            assert all(holds(x, i) for i, x in enumerate(t)) and ours("host_bytes") == 0
        """, memory=140)

    def test_overflow(self):
        said = self.run_job("""
            first = [write(torch.Tensor(20 * MIB), i) for i in range(4)]
            over = [write(torch.Tensor(20 * MIB), 10 + i) for i in range(3)]
            assert reserved() == 80 * MIB and ours("host_bytes") == 60 * MIB and ours("overflows") == 3, torch.cuda.memory_stats()
            so, p = ashlar_torch._answers.ashlar.so, ctypes.c_void_p()
            assert so.ashlar_front_malloc(ctypes.c_size_t(30 * MIB), 0, None, ctypes.byref(p)) == 1  # more than overflow allows
            for t in first[:3]:
                t.free()
            torch.cuda.empty_cache()
            for _ in range(100):  # as much at a time as the budget of a step allows
                ashlar_torch.step()
                if ours("host_bytes") == 0:
                    break
            assert ours("host_bytes") == 0 and reserved() <= 80 * MIB, torch.cuda.memory_stats()
            assert holds(first[3], 3) and all(holds(t, 10 + i) for i, t in enumerate(over))
        """, memory=80, stderr=r"^ashlar: device 0 is full: 20\.00 MiB .*GB/s.* It was asked for at <string>:\d+ \(", ASHLAR_CONF="overflow:64MiB")
        self.assertEqual(said.count("\n"), 1, said)

    def test_overflow_without_effect(self):
        """What switches it off is told, once, and no optimizer is followed."""
        job = """
            t = torch.Tensor(20 * MIB)
            optimizer = torch.optim.Optimizer([t])
            optimizer.step()
            assert not ashlar_torch._answers.tiers.hooks and len(ashlar_torch.settings()["notes"]) == 1
            torch._C._accelerator_setAllocatorSettings("garbage_collection_threshold:0.5")
        """
        for other in ("tiers:False", "expandable_segments:False", "ASHLAR_TENANTS_HOLD=1"):
            with self.subTest(other=other):
                name, _, value = other.rpartition("=")
                conf = "overflow:64MiB" if name else "overflow:64MiB," + other
                said = self.run_job(job, stderr="^<string>:1: RuntimeWarning: ashlar_torch: overflow has no effect beside %s: leave one of them out\n" % other,
                                    ASHLAR_CONF=conf, **({name: value} if name else {}))
                self.assertEqual(said.count("RuntimeWarning"), 1, said)
        self.run_job("""
            torch._C._accelerator_setAllocatorSettings("pinned_num_register_threads:2")  # which PyTorch is told of
            optimizer = torch.optim.Optimizer([torch.Tensor(20 * MIB)])
            ashlar_torch._answers.tiers.name(optimizer)  # without state on the GPU
        """, ASHLAR_CONF="overflow:64MiB")

    def test_optimizers_are_marks(self):
        self.run_job("""
            p = [write(torch.Tensor(20 * MIB), i) for i in range(2)]
            opt = torch.optim.Optimizer(p)
            opt.step()
            for q in p:
                write(opt.state[q]["exp_avg"], 7)
            other = threading.Thread(target=lambda: torch.Tensor(1).free())
            other.start()
            other.join()
            x = write(torch.Tensor(20 * MIB), 9)  # does not fit, and somebody else may use the device: it goes itself
            assert ours("host_bytes") == 20 * MIB and ours("moves") == 0
            x.free()
            opt.step()  # the other may have work under way: nothing moves at the mark
            assert ours("host_bytes") == 0 and ours("moves") == 0, torch.cuda.memory_stats()
            x = write(torch.Tensor(20 * MIB), 9)  # nor in the next step
            assert ours("host_bytes") == 20 * MIB and ours("moves") == 0 and ours("overflows") == 2
            x.free()
            for _ in range(16):
                torch.autograd.backward(lambda: torch.Tensor(1).free())  # no stranger: this thread waits for it
                opt.step()
            x = write(torch.Tensor(20 * MIB), 9)  # the state is cold: all of it goes at once
            assert ours("host_bytes") == 40 * MIB and ours("moves") == 2 and ours("overflows") == 3, torch.cuda.memory_stats()
            assert all(holds(q, i) for i, q in enumerate(p)) and holds(x, 9) and all(holds(opt.state[q]["exp_avg"], 7) for q in p)
        """, memory=82, stderr="device 0 is full", ASHLAR_CONF="overflow:64MiB")

    def test_requests_move_what_is_cold(self):
        self.run_job("""
            frozen = write(torch.nn.Parameter(20 * MIB), 1)
            frozen.requires_grad = False
            p = write(torch.nn.Parameter(20 * MIB), 2)
            opt = torch.optim.Optimizer([p])
            opt.step()
            state = write(opt.state[p]["exp_avg"], 3)
            made = [write(torch.Tensor(20 * MIB), 10)]
            made.append(write(torch.Tensor(20 * MIB), 11))  # does not fit: this thread has used the device alone, so the state goes
            assert ours("moves") > 0 and ours("overflows") == 1, torch.cuda.memory_stats()

            def backward():
                made.append(write(torch.Tensor(20 * MIB), 12))
                made.append(write(torch.Tensor(20 * MIB), 13))

            before = ours("moves")
            torch.autograd.backward(backward)  # another thread, alone while this one waits
            after = ours("moves")
            assert after > before, torch.cuda.memory_stats()
            made.append(write(torch.Tensor(20 * MIB), 14))
            assert ours("moves") > after, torch.cuda.memory_stats()
            assert reserved() <= 82 * MIB and ours("host_bytes") >= 80 * MIB, torch.cuda.memory_stats()
            assert holds(frozen, 1) and holds(p, 2) and holds(state, 3) and all(holds(t, 10 + i) for i, t in enumerate(made))
        """, memory=82, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_the_last_name_counts(self):
        self.run_job("""
            thawed, own, trained = (write(torch.nn.Parameter(20 * MIB), i) for i in range(3))
            thawed.requires_grad = False
            ashlar_torch.cold(own)
            torch.optim.Optimizer([trained]).step()  # thawed is cold
            thawed.requires_grad, trained.requires_grad = True, False
            opt = torch.optim.Optimizer([thawed, own])
            opt.step()  # trained by another optimizer, so only frozen for a while
            made = [write(torch.Tensor(20 * MIB), 10 + i) for i in range(4)]
            def on_host(t):
                before = ours("host_bytes")
                ashlar_torch.restore(t)
                return ours("host_bytes") < before
            assert not on_host(thawed), "it is trained now"
            assert on_host(own), "the job has named it cold"
        """, memory=162, stderr="device 0 is full", ASHLAR_CONF="overflow:200MiB")

    def test_state_comes_home_before_its_optimizer(self):
        job = """
            p = [write(torch.nn.Parameter(20 * MIB), i) for i in range(2)]
            opt = torch.optim.Optimizer(p)
            opt.param_groups[0]["fused"] = %s
            opt.step()
            state = [write(opt.state[q]["exp_avg"], 7 + i) for i, q in enumerate(p)]
            def work():
                made = [write(torch.Tensor(20 * MIB), 10 + i) for i in range(2)]
                for t in made:
                    t.free()
                return ours("host_bytes")
            assert work() == 40 * MIB and ours("moves") == 2, torch.cuda.memory_stats()
            opt.step()
            home = ours("host_bytes") == 0
            assert home == %s and ours("moved_in_bytes") == (40 * MIB if home else 0), torch.cuda.memory_stats()
            assert work() == 40 * MIB  # the same goes again
            other = threading.Thread(target=lambda: torch.Tensor(1).free())
            other.start()
            other.join()
            before = ours("moved_in_bytes")
            opt.step()  # somebody else may use the device
            assert ours("moved_in_bytes") == before, torch.cuda.memory_stats()
            assert all(holds(t, 7 + i) for i, t in enumerate(state)) and all(holds(q, i) for i, q in enumerate(p))
        """
        for fused in (False, True):
            with self.subTest(fused=fused):
                self.run_job(job % (fused, not fused), memory=82, stderr="device 0 is full", ASHLAR_CONF="overflow:40MiB")

    def test_fork_and_exit(self):
        self.run_job("""
            with ashlar_torch.region("a"):
                t = write(torch.Tensor(20 * MIB), 1)
            ashlar_torch.park("a")
            child = os.fork()
            if child == 0:
                refused(lambda: ashlar_torch.park("a"), "forked")
                refused(lambda: ashlar_torch.restore(t), "forked")
                refused(lambda: ashlar_torch.region("a").__enter__(), "forked")
                os._exit(5)
            assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 5
            assert holds(t, 1)
            entered = ashlar_torch.region("a").__enter__()  # never left; parked at the end
        """)


if __name__ == "__main__":
    unittest.main()
