"""Checks ashlar.watch() and `ashlar watch` on a machine with an NVIDIA GPU.

    python watch_check.py [--only cost|fragments|ddp|nvml] PATH-OF-ASHLAR

Five jobs: one that times the sender's thread, one that times its steps with and
without watching in turn, one that dies of fragmentation (with and without leave to
empty the cache), DDP of two processes on one GPU, and one that does not watch
itself. Prints a table and exits with 1 if a check failed. Takes about four minutes
and 3 GiB of GPU memory.
"""
import argparse
import json
import os
import pickle
import statistics
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
MIB = 1 << 20
LIMIT = 1024  # MiB, of the job that dies

ALARMS = """frag: inactive_split/reserved > 0.3 clear 0.2 for 2s -> log, snapshot, empty_cache
oom: rate(num_ooms) > 0 -> log
"""


# The jobs. Each prints a line of JSON.


def step_of(torch, width=1024):
    model = torch.nn.Sequential(torch.nn.Linear(width, 4 * width), torch.nn.GELU(), torch.nn.Linear(4 * width, width)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())

    def run():
        loss = model(torch.randn(256, width, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def job_thread():
    """What one sample costs the sender's thread."""
    import ashlar
    import torch

    watcher, costs = ashlar._watcher, []

    def timed(call):
        def run(*args, **more):
            begin = time.thread_time()
            try:
                return call(*args, **more)
            finally:
                costs.append(time.thread_time() - begin)

        return run

    watcher.sample, watcher.send = timed(watcher.sample), timed(watcher.send)
    step = step_of(torch)
    ashlar.watch(interval=0.1)
    end = time.monotonic() + 20
    while time.monotonic() < end:
        ashlar.step()
        step()
        torch.cuda.synchronize()
    pairs = [a + b for a, b in zip(costs[::2], costs[1::2])][10:]
    return {"samples": len(pairs), "ms": 1000 * statistics.mean(pairs)}


def job_steps():
    """Windows of steps with and without watching, in turn; samples are sent ten times
    as often as usual, so that what they cost stands out of what the machine varies by."""
    import ashlar
    import torch

    step, often = step_of(torch), 10

    def window():
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(400):
            ashlar.step()
            step()
        torch.cuda.synchronize()
        return time.perf_counter() - begin

    def watched():
        ashlar.watch(interval=1 / often)
        try:
            return window()
        finally:
            ashlar.stop()

    window()
    ratios = []
    for _ in range(20):
        off, on, again, last = window(), watched(), watched(), window()  # a drift cancels
        ratios.append((on + again) / (off + last) - 1)
    ratios.sort()
    kept = ratios[2:-2]
    return {"percent": 100 * statistics.mean(kept) / often, "spread": 100 * statistics.stdev(kept) / len(kept) ** 0.5 / often, "often": often}


def job_fragments(allow):
    """Holds a small tensor in each of more and more segments, until a large one
    has no place; calls step() all the while."""
    import ashlar
    import torch

    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(LIMIT * MIB / total)
    ashlar.record()
    ashlar.watch(interval=0.2, allow=allow)
    held, died = [], False
    try:
        for n in range(400):
            ashlar.step()
            large = torch.empty(24 * MIB, dtype=torch.uint8, device="cuda")
            del large
            if n % 4 == 0:
                held.append(torch.empty(13 * MIB, dtype=torch.uint8, device="cuda"))  # what is left of the segment holds no other
            if n > 40 and n % 20 == 0:
                torch.empty(256 * MIB, dtype=torch.uint8, device="cuda")
            time.sleep(0.1)
    except torch.cuda.OutOfMemoryError:
        died = True
        time.sleep(2)  # the last sample
    return {"died": died, "steps": n}


def job_ddp(rank, port):
    import ashlar
    import torch

    os.environ.update(RANK=str(rank), WORLD_SIZE="2", MASTER_ADDR="127.0.0.1", MASTER_PORT=port, LOCAL_RANK="0")
    torch.distributed.init_process_group("gloo")
    ashlar.watch(interval=0.2, run="ddp")
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(512, 512).cuda())
    for _ in range(100):
        ashlar.step()
        model(torch.randn(64, 512, device="cuda")).square().mean().backward()
        time.sleep(0.05)
    torch.distributed.destroy_process_group()
    return {"rank": rank}


def job_silent():
    """Holds a GiB, and says nothing of itself."""
    import torch

    held = torch.empty(1 << 30, dtype=torch.uint8, device="cuda")
    torch.cuda.synchronize()
    time.sleep(20)
    return {"held": held.numel()}


JOBS = {"silent": job_silent, "thread": job_thread, "steps": job_steps, "ddp0": lambda: job_ddp(0, sys.argv[3]), "ddp1": lambda: job_ddp(1, sys.argv[3]),
        "keeps": lambda: job_fragments(("snapshot",)), "empties": lambda: job_fragments(("snapshot", "empty_cache"))}


# The checks.


class Checks:
    def __init__(self, ashlar):
        self.ashlar, self.rows = os.path.abspath(ashlar), []
        self.folder = tempfile.mkdtemp(prefix="watch-check-")
        self.socket = "unix:" + os.path.join(self.folder, "w.sock")
        self.store = os.path.join(self.folder, "store")
        alarms = os.path.join(self.folder, "alarms.txt")
        with open(alarms, "w") as f:
            f.write(ALARMS)
        self.server = subprocess.Popen([self.ashlar, "watch", "--dir", self.store, "--listen", self.socket, "--alarms", alarms])
        time.sleep(2)

    def row(self, what, got, good):
        self.rows.append((what, got, "ok" if good else "FAILS"))

    def start(self, name, *args):
        environment = dict(os.environ, ASHLAR_WATCH=self.socket, PYTHONPATH=HERE)
        return subprocess.Popen([sys.executable, os.path.abspath(__file__), "--job", name, *args], cwd=self.folder, env=environment, stdout=subprocess.PIPE, text=True)

    def run(self, name):
        out = self.start(name).communicate()[0]
        return json.loads(out.splitlines()[-1])

    def state(self):
        out = subprocess.run([self.ashlar, "watch", "--once", "--json", "--listen", self.socket], stdout=subprocess.PIPE, check=True).stdout
        return json.loads(out)

    def cost(self):
        got = self.run("thread")
        self.row("CPU time of the sender's thread for a sample", "%.3f ms, mean of %d" % (got["ms"], got["samples"]), got["ms"] < 1)
        got = self.run("steps")
        self.row("steps take longer while watched", "%.2f %% +- %.2f, from %d samples a second" % (got["percent"], got["spread"], got["often"]), got["percent"] < 0.5)

    def fragments(self):
        kept = self.run("keeps")
        alarms = [a for a in self.state()["alarms"] if a["name"] in ("frag", "oom")]
        frag = [a for a in alarms if a["name"] == "frag"]
        ooms = [a["raised_us"] for a in alarms if a["name"] == "oom"]
        self.row("a job that keeps its cache dies", "%s at step %d" % (kept["died"], kept["steps"]), kept["died"])
        before = bool(frag and ooms and frag[0]["raised_us"] < ooms[0])
        self.row("the alarm comes before the OOM", "%.1f s" % ((ooms[0] - frag[0]["raised_us"]) / 1e6) if before else "no", before)
        name = frag[0]["snapshot"] if frag else None
        self.row("the alarm has a snapshot", name, name is not None)
        rescues, step = None, None
        if name is not None:
            path = os.path.join(self.folder, "alarm.pickle")
            subprocess.run([self.ashlar, "watch", "snapshot", name, "--dir", self.store, "-o", path], check=True)
            with open(path, "rb") as f:
                step = pickle.load(f)["ashlar"]["step"] + 1  # in which empty_cache would be called
            verdict = subprocess.run([self.ashlar, "explain", path], stdout=subprocess.PIPE, text=True)
            self.row("its verdict", verdict.stdout.splitlines()[0] if verdict.stdout else "none", verdict.returncode in (0, 1))
        death = [f for f in os.listdir(self.folder) if f.startswith("ashlar-") and f.endswith(".pickle")]
        if death and step is not None:
            when = "step:%d" % step
            out = subprocess.run([self.ashlar, "whatif", os.path.join(self.folder, death[0]), "--empty-cache", when, "--json"], stdout=subprocess.PIPE)
            rescues = [not r["fails"] for r in json.loads(out.stdout)["results"] if r["empty_cache"] == when][0]
        emptied = self.run("empties")
        self.row("empty_cache rescues it", "%s; whatif said %s" % (not emptied["died"], rescues), rescues == (not emptied["died"]))

    def ddp(self):
        jobs = [self.start("ddp%d" % rank, "29517") for rank in (0, 1)]
        for job in jobs:
            job.communicate()
        ranks = sorted(r["rank"] for r in self.state()["runs"] if r["run"] == "ddp" and r["ended"])
        self.row("both ranks of DDP are seen to their end", ranks, ranks == [0, 1])

    def nvml(self):
        job = self.start("silent")
        time.sleep(16)
        found = [r for r in self.state()["runs"] if r["source"] == "nvml"]
        mine = [r for r in found if r["pid"] == job.pid] or [r for r in found if r["run"] == os.path.basename(__file__)]
        held = mine[0]["reserved_bytes"] if mine else 0
        self.row("NVML shows a process that does not watch", "%d MiB of it, %d processes" % (held / MIB, len(found)), 1024 <= held / MIB < 3072)
        job.communicate()
        time.sleep(3)
        left = [r for r in self.state()["runs"] if r["source"] == "nvml" and mine and r["session"] == mine[0]["session"]]
        self.row("and drops it when it is gone", "%d left" % len(left), bool(mine) and not left)
        watched = {r["pid"] for r in self.state()["runs"] if r["source"] == "job"}
        self.row("no job is listed twice", "%d jobs" % len(watched), not watched & {r["pid"] for r in found})

    def end(self):
        self.server.terminate()
        self.server.wait()
        for what, got, verdict in self.rows:
            print("%-46s %-50s %s" % (what, got, verdict))
        return 1 if any(r[2] != "ok" for r in self.rows) else 0


def main():
    if sys.argv[1:2] == ["--job"]:
        print(json.dumps(JOBS[sys.argv[2]]()))
        return 0
    parts = {"cost": Checks.cost, "fragments": Checks.fragments, "ddp": Checks.ddp, "nvml": Checks.nvml}
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=parts)
    parser.add_argument("ashlar", help="the command")
    options = parser.parse_args()
    checks = Checks(options.ashlar)
    try:
        for name, part in parts.items():
            if options.only not in (None, name):
                continue
            try:
                part(checks)
            except Exception as e:  # the others are of interest all the same
                checks.row(name, repr(e), False)
    finally:
        code = checks.end()
    return code


if __name__ == "__main__":
    sys.exit(main())
