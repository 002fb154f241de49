"""What needs a GPU of docs/claims.md: figures of common claims about PyTorch's memory.

usage: python3 tools/bench/gpu/claims.py [--budget SECONDS] [--only NAME] [--out FILE]

Each child is a process of its own, as an allocator's settings are read once. It prints one
line of JSON for each figure, and so does this: with id, figure, unit, how it came about, date,
card and versions. `make claims` reads them from testdata/claims/gpu.jsonl; --out FILE writes such a file.
A table follows. There are no bars here: docs/claims.md has the verdicts. A child that fails
or that there is no time for is named at the end, and the status is 1. Takes about 140 seconds
with the GPU to itself, and 60 GiB of its memory.
"""
import argparse
import datetime
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

MIB, GIB = 1 << 20, 1 << 30
TRAINING = "max_split_size_mb:128,garbage_collection_threshold:0.7,expandable_segments:True"
INFERENCE = "max_split_size_mb:512,garbage_collection_threshold:0.8,expandable_segments:True"

# The settings under which the workloads run: a name, the variable, its value.
SETTINGS = {
    "default": {},
    "no-cache": {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"},
    "training-preset": {"PYTORCH_CUDA_ALLOC_CONF": TRAINING},
    "async": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"},
    "inference-preset": {"PYTORCH_CUDA_ALLOC_CONF": INFERENCE},
    "expandable": {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"},
}
# Steps of each workload: with a cache, and without one, where they take long.
STEPS = {"resnet_batches": (11, 4), "gpt2_varlen": (14, 4), "unet_multires": (16, 4), "serve_generate": (4, 1)}


def figure(name, value, unit, how):
    print("figure " + json.dumps({"id": name, "figure": value, "unit": unit, "how": how}), flush=True)


def counters(torch):
    stats = torch.cuda.memory_stats()
    return stats.get("allocation.all.allocated", 0), stats.get("num_device_alloc", 0)


def run_settings(name):
    """The workloads under one setting: peaks, seconds of each step, calls of the driver."""
    import torch

    import workloads

    workloads.deterministic(1)
    cached = name != "no-cache"
    for work, (steps, few) in STEPS.items():
        build, body = workloads.WORKLOADS[work]
        gc.collect()
        torch.cuda.empty_cache()
        state = build()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = counters(torch)
        workloads.run_pass(state, body, 1, [], [], steps if cached else 1)
        middle, stats = counters(torch), torch.cuda.memory_stats()
        seconds = []
        workloads.run_pass(state, body, 1, [], seconds, steps if cached else few)
        after = counters(torch)
        figure("settings", {"setting": name, "workload": work, "seconds": seconds, "reserved": stats.get("reserved_bytes.all.peak", 0),
                            "active": stats.get("active_bytes.all.peak", 0), "retries": stats.get("num_alloc_retries", 0)}, "", "workloads.py")
        if name == "default":
            for when, (a, b) in (("first", (before, middle)), ("second", (middle, after))):
                if b[0] > a[0]:
                    figure("hit-rate", {"workload": work, "pass": when, "share": 1 - (b[1] - a[1]) / (b[0] - a[0])}, "share", "1 - num_device_alloc / allocations")
            segments, reserved = torch.cuda.memory_stats()["segment.all.current"], torch.cuda.memory_reserved()
            torch.cuda.synchronize()
            begin = time.perf_counter()
            torch.cuda.empty_cache()
            took = time.perf_counter() - begin
            again = []
            workloads.run_pass(state, body, 1, [], again, 1)
            figure("empty-cache", {"workload": work, "ms": 1e3 * took, "given": reserved - torch.cuda.memory_reserved(), "held": reserved, "segments": segments,
                                   "first_step_ms": 1e3 * seconds[0], "next_step_ms": 1e3 * again[0]}, "ms", "torch.cuda.empty_cache() when the GPU is idle")
        del state


def run_checkpointing():
    """24 encoder layers of 1024, batch 8 of 2048 tokens, fp32; and 20 linear layers of 4096."""
    import torch
    from torch.utils.checkpoint import checkpoint

    layers = torch.nn.ModuleList(torch.nn.TransformerEncoderLayer(1024, 16, batch_first=True) for _ in range(24)).cuda()
    linear = torch.nn.ModuleList(torch.nn.Linear(4096, 4096) for _ in range(20)).cuda()

    def through(part, x):
        for layer in part:
            x = torch.relu(layer(x)) if isinstance(layer, torch.nn.Linear) else layer(x)
        return x

    def measure(name, model, x, group):
        def step():
            y = x
            for i in range(0, len(model), group or len(model)):
                part = list(model)[i:i + (group or len(model))]
                y = checkpoint(through, part, y, use_reentrant=False) if group else through(part, y)
            y.sum().backward()
            for p in model.parameters():
                p.grad = None

        step()
        torch.cuda.synchronize()
        torch.cuda.reset_peak_memory_stats()
        base, begin = torch.cuda.memory_allocated(), time.perf_counter()
        for _ in range(2):
            step()
        torch.cuda.synchronize()
        figure("checkpointing", {"model": name, "layers_between": group, "seconds": (time.perf_counter() - begin) / 2,
                                 "peak": torch.cuda.max_memory_allocated(), "activations": torch.cuda.max_memory_allocated() - base}, "",
               "one forward and backward pass; activations: the peak beyond the weights")

    for group in (None, 1, 5):
        measure("encoder 24 x 1024, 8 x 2048", layers, torch.randn(8, 2048, 1024, device="cuda"), group)
        torch.cuda.empty_cache()
    for group in (None, 1):
        measure("20 linear of 4096, 64 rows", linear, torch.randn(64, 4096, device="cuda"), group)


def run_calls():
    """torch.empty and del, with a cache or, if the variable says so, without."""
    import torch

    for size in (4 << 10, 4 * MIB, 256 * MIB):
        for _ in range(20):
            torch.empty(size, dtype=torch.uint8, device="cuda")
        rounds, times = 200, []
        for _ in range(9):
            begin = time.perf_counter()
            for _ in range(rounds):
                torch.empty(size, dtype=torch.uint8, device="cuda")
            times.append((time.perf_counter() - begin) / rounds)
        cached = not os.environ.get("PYTORCH_NO_CUDA_MEMORY_CACHING")
        figure("empty-del", {"bytes": size, "cached": cached, "us": 1e6 * statistics.median(times)}, "us", "torch.empty and del, median of 9 x 200")


def run_save():
    """What torch.save(state_dict()) takes on the GPU."""
    import torch

    model = torch.nn.Sequential(*(torch.nn.Linear(4096, 4096) for _ in range(24))).cuda()
    state = model.state_dict()
    weights = sum(v.nbytes for v in state.values())
    with tempfile.TemporaryDirectory() as folder:
        for where, write in (("torch.save(state_dict())", lambda: torch.save(state, os.path.join(folder, "a.pt"))),
                             ("a clone of it on the GPU first", lambda: [v.clone() for v in state.values()])):
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            base, free, begin = torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0], time.perf_counter()
            write()
            torch.cuda.synchronize()
            figure("torch-save", {"what": where, "weights": weights, "allocated": torch.cuda.max_memory_allocated() - base,
                                  "driver": free - torch.cuda.mem_get_info()[0], "seconds": time.perf_counter() - begin}, "bytes", "max_memory_allocated meanwhile")


def run_exercises():
    """What the exercises of lessons about the allocator print."""
    import torch

    def take(n):
        return torch.empty(n, dtype=torch.uint8, device="cuda")

    def now():
        return {"allocated": torch.cuda.memory_allocated(), "reserved": torch.cuda.memory_reserved()}

    whole = take(GIB)
    states = [now()]
    del whole
    states.append(now())
    torch.cuda.empty_cache()
    states.append(now())
    figure("one-gib", states, "bytes", "a tensor of 1 GiB; after del; after empty_cache()")

    held = [torch.empty(1000, 1000, device="cuda") for _ in range(100)]
    held[::2] = [None] * 50
    before = now()
    large = torch.empty(25000, 1000, device="cuda")
    figure("every-second", {"before": before, "after": now(), "limit": None}, "bytes", "100 tensors of 4 MB, every second freed, then one of 100 MB")
    del held, large
    torch.cuda.empty_cache()

    sizes = [10, 50, 10, 100, 10, 200, 10, 50, 10, 100] * 3
    held = [take(n * MIB) for n in sizes]
    states = [now()]
    held[::2] = [None] * len(held[::2])
    states.append(now())
    torch.cuda.empty_cache()
    states.append(now())
    figure("mixed-sizes", states, "bytes", "30 tensors of 10 to 200 MiB; every second freed; after empty_cache()")
    del held
    torch.cuda.empty_cache()

    try:
        import torchvision
    except ImportError:
        return
    model, peaks = torchvision.models.resnet50().cuda(), []
    for batch in (1, 2, 4, 8, 16, 32, 64):
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats()
        model(torch.randn(batch, 3, 224, 224, device="cuda")).sum().backward()
        peaks.append([batch, torch.cuda.max_memory_allocated()])
        model.zero_grad()
    figure("resnet50", peaks, "bytes", "peak of a forward and backward pass by batch")


# In order: what may be left out comes last. A name, its environment, its function.
CHILDREN = {
    "default": SETTINGS["default"], "no-cache": SETTINGS["no-cache"], "training-preset": SETTINGS["training-preset"], "checkpointing": {}, "save": {}, "calls": {},
    "calls-no-cache": SETTINGS["no-cache"], "async": SETTINGS["async"], "exercises": {}, "inference-preset": SETTINGS["inference-preset"],
    "expandable": SETTINGS["expandable"],
}


def run_child(name):
    import torch

    torch.cuda.init()
    if name in SETTINGS:
        run_settings(name)
    else:
        {"checkpointing": run_checkpointing, "save": run_save, "calls": run_calls, "calls-no-cache": run_calls, "exercises": run_exercises}[name]()


def table(figures):
    """Lines for a person: step times and peaks beside the default's."""
    found = {(f["figure"]["setting"], f["figure"]["workload"]): f["figure"] for f in figures if f["id"] == "settings"}
    for (setting, work), f in found.items():
        base = found.get(("default", work))
        if base and setting != "default":
            n = min(len(f["seconds"]), len(base["seconds"]))
            ratio = statistics.median(a / b for a, b in zip(f["seconds"][:n], base["seconds"][:n]))
            print("%-18s %-16s steps take %.2f times the default's, reserved %6.2f GiB beside %6.2f" % (setting, work, ratio, f["reserved"] / GIB, base["reserved"] / GIB))
    for f in figures:
        if f["id"] != "settings":
            print("%-18s %s" % (f["id"], json.dumps(f["figure"])))


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--budget", type=float, default=150, help="seconds in all")
    parser.add_argument("--only", choices=CHILDREN)
    parser.add_argument("--out", help="a file for the lines")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        run_child(args.child)
        return 0
    about = subprocess.run([sys.executable, "-c", "import torch; print(torch.cuda.get_device_name(0)); print(torch.__version__)"], stdout=subprocess.PIPE, text=True)
    card, version = (about.stdout.splitlines() + ["", ""])[:2]
    about = {"date": datetime.date.today().isoformat(), "card": card, "torch": version, "command": "tools/bench/gpu/claims.py"}
    end, figures, missing = time.monotonic() + args.budget, [], []
    for name in [args.only] if args.only else CHILDREN:
        left = end - time.monotonic()
        if left < 5:
            missing.append("%s: no time" % name)
            continue
        env = {k: v for k, v in os.environ.items() if "ALLOC_CONF" not in k and k != "PYTORCH_NO_CUDA_MEMORY_CACHING"}
        env.update(CHILDREN[name], CUBLAS_WORKSPACE_CONFIG=":4096:8")
        child = subprocess.Popen([sys.executable, os.path.abspath(__file__), "--child", name], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        try:
            out = child.communicate(timeout=left)[0]
        except subprocess.TimeoutExpired:
            child.kill()
            out = child.communicate()[0]
        for line in out.splitlines():
            if line.startswith("figure "):
                figures.append(dict(json.loads(line[7:]), **about))
        if child.returncode != 0:
            missing.append("%s: status %d: %s" % (name, child.returncode, out[-500:]))
        print("%-18s %d s left" % (name, end - time.monotonic()), flush=True)
    if args.out:
        with open(args.out, "w") as f:
            f.writelines(json.dumps(x) + "\n" for x in figures)
    table(figures)
    for line in missing:
        print("NOT MEASURED " + line)
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main())
