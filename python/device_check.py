"""Checks ashlar.py against a real PyTorch, on a machine with an NVIDIA GPU.

    python device_check.py

Each case is a small job of its own: one that dies, a storm of caught OOMs before
a fatal one, one that catches its OOM, one that is asked by a signal and by
calls, and one with a long history, to see what writing costs. A second observer,
attached behind that of ashlar.py, asks PyTorch for the truth at the same moment.
Prints a table and exits with 1 if a check failed. The files go to the folder
$OUT if that is set. Takes less than a minute and 2 GiB of GPU memory.
"""
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ASHLAR = os.path.join(HERE, "ashlar.py")
MIB = 1 << 20
STORM = 30  # OOMs that are caught


# The jobs. Each runs in a folder of its own and leaves its files there.


def limit_memory(torch, mib):
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(mib * MIB / total)


def take(torch, mib):
    return torch.empty(mib * MIB, dtype=torch.uint8, device="cuda")


def write_truth(**values):
    with open("truth.json", "w") as f:
        json.dump(values, f)


def state(torch):
    """Memory as PyTorch and as the driver see it."""
    return {"stats": dict(torch.cuda.memory_stats()), "info": list(torch.cuda.mem_get_info())}


def trainer(torch):
    """One step of a small training, with a backward pass in its own thread."""
    model = torch.nn.Sequential(torch.nn.Linear(256, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 256)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)

    def run():
        loss = model(torch.randn(64, 256, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return run


def job_fatal():
    """Dies of fragmentation: five segments, each held by a smaller tensor. Run
    through ashlar.py, and knows of it only by the steps."""
    import torch

    import ashlar

    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(lambda *args: write_truth(args=args, **state(torch)))
    limit_memory(torch, 640)
    train = trainer(torch)
    held, fillers = [], []
    for n in range(1, 6):
        ashlar.step(n)
        train()
        large = take(torch, 100)
        del large
        held.append(take(torch, 30))
        fillers.append(take(torch, 70))
    ashlar.step()
    del fillers[:]
    take(torch, 150)


def job_storm():
    """Catches many OOMs, and dies of the next."""
    import torch

    import ashlar

    before, differences = [], []
    torch.cuda.init()
    torch._C._cuda_attach_out_of_memory_observer(lambda *args: before.append(state(torch)))
    ashlar.record(path="m.pickle")

    def after(*args):
        differences.append(before[-1] != state(torch))
        write_truth(differences=sum(differences), ooms=len(differences), **state(torch))

    torch._C._cuda_attach_out_of_memory_observer(after)
    limit_memory(torch, 256)
    held = take(torch, 100)
    for _ in range(STORM):
        try:
            take(torch, 200)
        except torch.cuda.OutOfMemoryError:
            pass
    take(torch, 180)
    del held


def job_guard():
    """Sets its allocator itself, catches its OOM and goes on."""
    import ashlar

    ashlar.record(path="m.pickle", keep=1)
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = "expandable_segments:True"
    import torch

    torch.cuda.init()
    truth = {}
    torch._C._cuda_attach_out_of_memory_observer(lambda *args: truth.update(args=args, **state(torch)))
    limit_memory(torch, 128)
    held = take(torch, 50)
    try:
        with ashlar.guard():
            take(torch, 100)
    except torch.cuda.OutOfMemoryError as e:
        truth["message"] = str(e)
    del held
    truth["keys"] = list(torch.cuda.memory._snapshot())
    try:
        from torch.cuda import _memory_viz

        with open("m.pickle", "rb") as f:
            data = pickle.load(f)
        truth["viz"] = len(_memory_viz.segsum(data)) + len(_memory_viz.trace(data))
    except Exception as e:
        truth["viz_error"] = repr(e)
    write_truth(**truth)


def job_asked():
    """Is asked for its memory three times."""
    import torch

    import ashlar

    ashlar.record(path="m.pickle", on_signal="SIGUSR1")
    limit_memory(torch, 4096)
    train = trainer(torch)
    for n in range(3):
        ashlar.step(n)
        train()
    torch.cuda.synchronize()
    before = state(torch)
    os.kill(os.getpid(), signal.SIGUSR1)
    time.sleep(0.01)
    between = state(torch)
    ashlar.dump(note="by a call")
    ashlar.dump("x-{rank}.pickle")
    write_truth(before=before, between=between, **state(torch))


def job_cost():
    """A history of 300,000 events: what keeping and writing it costs."""
    import resource

    import torch

    import ashlar

    def rss():
        with open("/proc/self/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def loop(n):
        begin = time.perf_counter()
        for _ in range(n):
            torch.empty(1000, device="cuda")
        return (time.perf_counter() - begin) / n

    torch.cuda.init()
    loop(1000)
    plain = loop(20000)
    ashlar.record(path="m.pickle")
    before = rss()
    recorded = loop(100000)
    kept = rss() - before
    begin = time.perf_counter()
    ashlar.dump("m.pickle")
    seconds = time.perf_counter() - begin
    write_truth(plain=plain, recorded=recorded, kept=kept, seconds=seconds, peak=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 - before - kept)


# The checks.


class Table:
    def __init__(self):
        self.rows, self.failed = [], 0

    def check(self, case, what, good, detail=""):
        self.failed += not good
        self.rows.append((("PASS" if good else "FAIL"), case, what, str(detail)))

    def equal(self, case, what, got, want):
        shown = got if got == want else "%r, want %r" % (got, want)
        self.check(case, what, got == want, shown if len(str(shown)) < 300 else str(shown)[:300] + "...")

    def info(self, case, what, detail):
        self.rows.append(("    ", case, what, str(detail)))

    def print(self):
        for mark, case, what, detail in self.rows:
            print("%s  %-6s %-46s %s" % (mark, case, what, detail))
        passed = sum(row[0] == "PASS" for row in self.rows)
        print("%d passed, %d failed" % (passed, self.failed))


class Job:
    """One case: its process, and what it left."""

    def __init__(self, name, folder, runner=False):
        self.name, self.folder = name, os.path.join(folder, name)
        os.mkdir(self.folder)
        command = [sys.executable, os.path.abspath(__file__), "--job", name]
        if runner:
            command[1:1] = [ASHLAR, "--path", "m.pickle"]
        environment = {k: v for k, v in os.environ.items() if not k.endswith("ALLOC_CONF") and k not in ("RANK", "SLURM_PROCID")}
        environment["PYTHONPATH"] = HERE
        self.process = subprocess.Popen(command, cwd=self.folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    def finish(self):
        try:
            self.output = self.process.communicate(timeout=120)[0]
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.output = self.process.communicate()[0] + "\ntimed out"
        self.status = self.process.returncode
        self.files = sorted(n for n in os.listdir(self.folder) if n != "truth.json")
        self.truth = {}
        if os.path.exists(os.path.join(self.folder, "truth.json")):
            with open(os.path.join(self.folder, "truth.json")) as f:
                self.truth = json.load(f)

    def load(self, name="m.pickle"):
        with open(os.path.join(self.folder, name), "rb") as f:
            return pickle.load(f)

    def error(self):
        """The text of the exception that ended the process."""
        lines = [line for line in self.output.splitlines() if "OutOfMemoryError: " in line]
        return lines[-1].split("OutOfMemoryError: ", 1)[1] if lines else None


def reserved(data):
    return sum(s["total_size"] for s in data["segments"])


def check_common(table, job, name, data):
    """What holds for every file."""
    facts = data["ashlar"]
    keys = [k for k in data if k != "ashlar"]
    table.equal(job.name, name + ": the key of facts comes last", list(data)[-1], "ashlar")
    for key in ("segments", "device_traces", "allocator_settings", "external_annotations"):
        if key not in keys:
            table.check(job.name, name + ": key " + key, False, keys)
    table.equal(job.name, name + ": version", facts["version"], 1)
    stats = facts["memory_stats"].get("0", {})
    table.equal(job.name, name + ": reserved in stats and in segments", stats.get("reserved_bytes.all.current"), reserved(data))
    device = facts["devices"][0]
    table.check(job.name, name + ": device facts", all(device[k] for k in ("name", "total_memory", "free_bytes", "total_bytes", "capability")), device)
    events = data["device_traces"][0]
    ordered = all(a["time_us"] <= b["time_us"] for a, b in zip(events, events[1:]))
    late = facts["time_us"] >= events[-1]["time_us"] - 1000 if events else False
    table.check(job.name, name + ": clock of the facts and of the events", ordered and late, "%d us apart" % (facts["time_us"] - events[-1]["time_us"]))
    return facts, events


def check_fatal(table, job):
    table.equal("fatal", "exit status", job.status, 1)
    table.equal("fatal", "files", job.files, ["m.pickle"])
    data = job.load()
    facts, events = check_common(table, job, "m", data)
    device, segment, limit, free = job.truth["args"]
    table.equal("fatal", "memory_stats at the failure", facts["memory_stats"]["0"] == job.truth["stats"], True)
    table.equal("fatal", "number of statistics", len(facts["memory_stats"]["0"]), len(job.truth["stats"]))
    table.equal("fatal", "message", facts["message"], job.error())
    table.check("fatal", "message is PyTorch's", (facts["message"] or "").startswith("CUDA out of memory. Tried to allocate 150.00 MiB"), (facts["message"] or "")[:60])
    table.equal("fatal", "reason, late, ooms", (facts["reason"], facts["late"], facts["ooms"]), ("oom", False, 1))
    table.equal("fatal", "request, segment, free, device", (facts["request_bytes"], facts["segment_bytes"], facts["device_free_bytes"], facts["device"]), (150 * MIB, segment, free, device))
    table.equal("fatal", "limit", (facts["limit_bytes"], facts["limit_known"]), (limit, True))
    table.check("fatal", "limit is 640 MiB but for rounding", abs(limit - 640 * MIB) <= 1, limit)
    table.equal("fatal", "last event", (events[-1]["action"], events[-1]["user_metadata"], events[-1]["size"]), ("oom", "step 6", 150 * MIB))
    table.equal("fatal", "steps", ([n for n, _ in facts["steps"]], facts["step"]), ([1, 2, 3, 4, 5, 6], 6))
    table.check("fatal", "fragmented: live + request fit the limit", facts["memory_stats"]["0"]["allocated_bytes.all.current"] + 150 * MIB < limit,
                "%.0f of %.0f MiB" % (facts["memory_stats"]["0"]["allocated_bytes.all.current"] / MIB + 150, limit / MIB))
    first = facts["steps"][0][1]
    inside = [e for e in events if e["time_us"] >= first]
    told = sum(e["user_metadata"].startswith("step ") for e in inside)
    agree = sum(e["user_metadata"] == "step %d" % max(n for n, t in facts["steps"] if t <= e["time_us"]) for e in inside if e["user_metadata"])
    table.info("fatal", "events that carry their step", "%d of %d; the others are of other threads" % (told, len(inside)))
    table.check("fatal", "their step agrees with the times of steps", 0 < told <= agree + told // 20, "%d of %d" % (agree, told))
    names = {a["name"].split("#")[-1] for a in data["external_annotations"]}
    table.check("fatal", "annotations", any("SGD.step" in n for n in names), sorted(names)[:3])
    table.check("fatal", "stacks", any(f["filename"].endswith("device_check.py") for f in events[-1]["frames"]), len(events[-1]["frames"]))
    table.check("fatal", "the traceback is still printed", "Traceback" in job.output and "job_fatal" in job.output, "")


def check_storm(table, job):
    table.equal("storm", "exit status", job.status, 1)
    table.equal("storm", "files", job.files, ["m-last.pickle", "m.pickle"])
    first, last = job.load(), job.load("m-last.pickle")
    facts, events = check_common(table, job, "m", first)
    table.equal("storm", "first: ooms, late, message", (facts["ooms"], facts["late"], facts["message"]), (1, False, None))
    table.equal("storm", "first: oom events", sum(e["action"] == "oom" for e in events), 1)
    facts, events = check_common(table, job, "last", last)
    table.equal("storm", "last: ooms, late, message", (facts["ooms"], facts["late"], facts["message"]), (STORM + 1, True, job.error()))
    table.equal("storm", "last: oom events", sum(e["action"] == "oom" for e in events), STORM + 1)
    table.equal("storm", "last: request", facts["request_bytes"], 180 * MIB)
    table.equal("storm", "last: num_ooms", facts["memory_stats"]["0"]["num_ooms"], STORM + 1)
    table.equal("storm", "files written", job.output.count("ashlar: oom: wrote"), 2)
    table.equal("storm", "OOMs after which memory had changed", (job.truth["differences"], job.truth["ooms"]), (0, STORM + 1))


def check_guard(table, job):
    table.equal("guard", "exit status", job.status, 0)
    table.equal("guard", "files", job.files, ["m.pickle"])
    data = job.load()
    facts, _ = check_common(table, job, "m", data)
    table.equal("guard", "message", facts["message"], job.truth["message"])
    table.equal("guard", "memory_stats at the failure", facts["memory_stats"]["0"] == job.truth["stats"], True)
    table.equal("guard", "settings in force", data["allocator_settings"]["expandable_segments"], True)
    table.equal("guard", "settings of the environment", facts["settings"], {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"})
    table.equal("guard", "keys of PyTorch", [k for k in data if k != "ashlar"], job.truth["keys"])
    table.check("guard", "PyTorch's _memory_viz reads the file", job.truth.get("viz", 0) > 0, job.truth.get("viz_error", ""))


def check_asked(table, job):
    table.equal("asked", "exit status", job.status, 0)
    table.equal("asked", "files", job.files, ["m-call-2.pickle", "m-signal-1.pickle", "x-0.pickle"])
    for name, reason, note, when in (("m-signal-1", "signal", None, "before"), ("m-call-2", "call", "by a call", "between"), ("x-0", "call", None, "between")):
        facts, _ = check_common(table, job, name, job.load(name + ".pickle"))
        table.equal("asked", name + ": reason, note, step, ooms", (facts["reason"], facts["note"], facts["step"], facts["ooms"]), (reason, note, 2, 0))
        table.equal("asked", name + ": memory_stats", facts["memory_stats"]["0"] == job.truth[when]["stats"], True)
        total = facts["devices"][0]["total_memory"]
        table.equal("asked", name + ": limit from the fraction", facts["limit_bytes"], int(4096 * MIB / total * total))
    table.equal("asked", "allocator's statistics unchanged by writing", job.truth["before"]["stats"] == job.truth["stats"], True)


def check_cost(table, job):
    table.equal("cost", "exit status", job.status, 0)
    truth, data = job.truth, job.load()
    events, facts = len(data["device_traces"][0]), data["ashlar"]
    table.equal("cost", "no limit", (facts["limit_bytes"], facts["limit_known"]), (None, True))
    table.check("cost", "events", events >= 300000, events)
    table.info("cost", "an allocation and its free, us", "%.1f, recorded %.1f" % (truth["plain"] * 1e6, truth["recorded"] * 1e6))
    table.info("cost", "host memory of the history", "%.0f bytes an event" % (truth["kept"] / events))
    table.info("cost", "host memory while writing", "%.0f bytes an event" % (truth["peak"] / events))
    table.info("cost", "writing", "%.2f s, %.1f MB" % (truth["seconds"], os.path.getsize(os.path.join(job.folder, "m.pickle")) / 1e6))


def main():
    begin = time.time()
    table = Table()
    folder = tempfile.mkdtemp()
    try:
        # The storm looks at the driver's free memory, so nothing runs beside it.
        jobs = [Job("storm", folder)]
        jobs[0].finish()
        others = [Job("fatal", folder, runner=True), Job("guard", folder), Job("asked", folder), Job("cost", folder)]
        for job in others:
            job.finish()
        for job in jobs + others:
            try:
                globals()["check_" + job.name](table, job)
            except Exception as e:
                table.check(job.name, "checked to the end", False, "%r; output: %s" % (e, job.output[-2000:]))
        table.check("all", "read without torch", "torch" not in sys.modules, "Python %s" % sys.version.split()[0])
        out = os.environ.get("OUT")
        if out:
            for job in jobs + others:
                for name in job.files:
                    if job.name != "cost":
                        shutil.copy(os.path.join(job.folder, name), os.path.join(out, job.name + "-" + name))
    finally:
        shutil.rmtree(folder)
    table.info("all", "time", "%.0f s" % (time.time() - begin))
    table.print()
    return 1 if table.failed else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--job"]:
        globals()["job_" + sys.argv[2]]()
    else:
        sys.exit(main())
