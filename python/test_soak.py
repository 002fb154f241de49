"""Tests of tools/bench/gpu/soak.py without a GPU: the real libashlar.so over its simulated driver, torch is the fake in testdata/soak."""
import json
import os
import sys
import textwrap
import unittest

from recorder_case import HERE
from torch_case import MIB, JobCase

GPU = os.path.join(os.path.dirname(HERE), "tools", "bench", "gpu")
FAKE = os.path.join(HERE, "testdata", "soak")
sys.path.insert(0, GPU)
import soak  # noqa: E402

DEVICE = 4096 * MIB


class TestRun(JobCase):
    def soak(self, *args, **environment):
        """Runs a part of a few seconds; returns its exit status, its text, its part line and its verdicts by what they are about."""
        done = self.start(os.path.join(GPU, "soak.py"), "--seed", "7", "--seconds", "8", "--rest", "1", "--warm-up", "0", "--threads", "3", "--gib", "2", "--often", "5", *args,
                          PYTHONPATH=FAKE, OUT=self.folder, ASHLAR_SIM_MEMORY=str(DEVICE), ASHLAR_PYTHON=HERE, **environment)
        self.assertEqual(done.stderr, "")
        with open(os.path.join(self.folder, "soak-7.jsonl")) as f:
            lines = [json.loads(line) for line in f]
        part = [line for line in lines if line["kind"] == "part"][0]
        return done.returncode, done.stdout, part, {line["case"]: line["met"] for line in lines if line["kind"] == "bar"}

    def test_run(self):
        """How the slopes come out is a matter of seconds here; all the rest must hold."""
        _, text, part, bars = self.soak()
        for name in ("ashlar", "expandable"):
            final = part["final"][name]
            self.assertEqual((final["errors"], final["wrong"], final["checked"] - final["made"]), ([], 0, 0), text)
            self.assertEqual(len({r["allocated"] for r in part["rests"][name]}), 1, text)
            self.assertTrue(all(r["peak_reserved"] < part["limit"] + 20 * MIB for r in part["rests"][name]), text)
        for what in ("data", "allocated at rest", "reserved at rest", "limit", "requests refused although others had made room"):
            self.assertIs(bars["soak, ashlar: " + what], True, text)
            self.assertIs(bars["soak, expandable: " + what], None, text)

    def test_each_action(self):
        """Each of them once and again by one thread, in the order of their table."""
        for allocator in ("ashlar", "expandable"):
            out = self.start("-c", textwrap.dedent("""
            import sys, torch, allocators
            allocators.install(sys.argv[1])
            torch.cuda.init()
            import soak_worker as w
            w.set_limit(512 << 20)
            shared = w.Shared(sys.argv[1], 1, 512 << 20, 1)
            thread = w.Thread(shared, 0, 3)
            thread.bad = torch.zeros((), dtype=torch.int64, device="cuda")
            for _ in range(3):
                for _ in range(60):
                    thread.allocate()
                for name, _ in w.ACTIONS:
                    alone = getattr(thread, name)()
                    if alone is not None:
                        alone()
            shared.barrier.wait = lambda seconds: None
            thread.rest()
            found = w.at_rest(shared)
            assert not shared.errors, shared.errors
            assert found["allocated"] == 512, found
            n = shared.counts
            assert n["wrong"] == 0 and n["made"] == n["checked"] > 180, n
            assert not [k for k in n if n[k] == 0 and k not in ("operations", "ooms_met", "refused", "on_host", "wrong")], n
        """), allocator, PYTHONPATH=os.pathsep.join([FAKE, GPU]), ASHLAR_SIM_MEMORY=str(DEVICE), ASHLAR_PYTHON=HERE)
            self.assertEqual((out.returncode, out.stderr), (0, ""), allocator)

    def test_wrong_data(self):
        code, text, part, bars = self.soak("--no-control", FAKE_FAULT="data")
        self.assertEqual((code, bars["soak, ashlar: data"]), (1, False), text)
        self.assertGreater(part["final"]["ashlar"]["wrong"], 0)

    def test_leak(self):
        code, text, _, bars = self.soak("--no-control", FAKE_FAULT="leak")
        self.assertEqual((code, bars["soak, ashlar: allocated at rest"], bars["soak, ashlar: data"]), (1, False, True), text)


class Verdicts:
    """A report that only remembers."""

    def __init__(self):
        self.met = {}

    def bar(self, number, case, met, text):
        self.met[case.partition(": ")[2]] = met


class TestJudge(unittest.TestCase):
    def part(self, **slopes):
        """A part of 16 minutes whose figures are level, but for these: MiB a minute by allocator and figure."""
        final = {**dict.fromkeys((*soak.HAPPENS, "operations", "made", "checked", "replays"), 5), "refused": 0}
        rests = {}
        for name in ("ashlar", "expandable"):
            def at(figure, minute, level):
                return level * MIB + int(slopes.get(name + "_" + figure, 0) * MIB * minute)
            rests[name] = [{"at": 60 * m, "worked": 60, "allocated": 512, "peak_reserved": 1000 * MIB, "reserved": at("rest", m, 2),
                            "mean_reserved": at("reserved", m, 500) + (m % 2) * MIB, "rss": at("rss", m, 3000) + (m % 3) * MIB} for m in range(1, 17)]
        return {"seed": 1, "seconds": 960, "period": 60, "warm_up": 120, "limit": 1000 * MIB, "rests": rests, "failed": {},
                "final": {name: {**final, "wrong": 0, "errors": []} for name in rests}}

    def missed(self, *parts):
        report = Verdicts()
        soak.judge(report, list(parts), "ashlar")
        self.assertNotIn(None, report.met.values())
        return [what for what, met in report.met.items() if not met]

    def test_level(self):
        self.assertEqual(self.missed(self.part()), [])

    def test_grows(self):
        self.assertEqual(self.missed(self.part(ashlar_rss=3)), ["host memory at rest"])
        self.assertEqual(self.missed(self.part(ashlar_reserved=9)), ["reserved on the way"])
        self.assertEqual(self.missed(self.part(ashlar_rest=3)), ["reserved at rest"])

    def test_grows_as_native(self):
        self.assertEqual(self.missed(self.part(ashlar_rss=20, expandable_rss=20)), [])
        self.assertEqual(self.missed(self.part(ashlar_rss=3, expandable_rss=-3)), ["host memory at rest"])

    def test_parts(self):
        """One part of several grows a little less than all of them together may."""
        self.assertEqual(self.missed(self.part(), self.part(ashlar_rss=1.8)), [])
        self.assertEqual(self.missed(self.part(), self.part(ashlar_rss=6)), ["host memory at rest"])

    def test_not_done(self):
        part = self.part()
        part["final"]["ashlar"].update(captures=0, wrong=1)
        self.assertEqual(self.missed(part), ["data", "all of it happened"])
        part = self.part()
        part["final"]["ashlar"].update(checked=4)
        self.assertEqual(self.missed(part), ["data"])
        part = self.part()
        part["final"]["ashlar"].update(refused=1)
        self.assertEqual(self.missed(part), ["requests refused although others had made room"])
        part["final"]["expandable"].update(refused=1)
        self.assertEqual(self.missed(part), [])
        part = self.part()
        part["rests"]["ashlar"][9]["allocated"] += 512
        self.assertEqual(self.missed(part), ["allocated at rest"])

    def test_did_not_end(self):
        part = self.part()
        del part["final"]["ashlar"]
        self.assertEqual(self.missed(part), ["runs"])
        part = self.part()
        del part["rests"]["ashlar"][3:]
        self.assertEqual(self.missed(part), ["runs"])


if __name__ == "__main__":
    unittest.main()
