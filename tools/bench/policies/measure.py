"""The models of ashlar policies against a real GPU: bars 4 and 5 of docs/policies.md.

    python3 tools/bench/policies/measure.py --ashlar bin/ashlar --out measured

For each of the ten workloads of tools/bench/gpu/workloads.py, and for a script with
two streams, it makes two runs: one under backend:cudaMallocAsync, whose peak of
reserved memory is measured (PyTorch sets the pool's release threshold to the
maximum), and one under the default allocator with its history recorded, which
ashlar policies replays. Then it runs ashlar gpu bench and compares managed memory
with the model at three sizes. It prints two tables and exits with 1 if a bar is
missed. It needs PyTorch 2.11 with CUDA, transformers and torchvision.
"""
import argparse
import concurrent.futures
import gzip
import json
import os
import pickle
import random
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NAMES = ("gpt2_fixed", "gpt2_varlen", "llama_ckpt", "resnet_batches", "unet_multires", "streams_graphs", "serve_generate",
         "moe_train", "leak_graph", "ckpt_spike")
TWO_STREAMS = "two_streams"
ASYNC = "backend:cudaMallocAsync"
MIB = 1 << 20


def two_streams(steps=12):
    """Two streams that hand tensors to each other, as a loader and a trainer do."""
    import torch

    rng = random.Random(1)
    side, main = torch.cuda.Stream(), torch.cuda.current_stream()
    kept = []
    for _ in range(steps):
        with torch.cuda.stream(side):
            batch = [torch.empty(rng.randrange(1, 64) * MIB, dtype=torch.uint8, device="cuda") for _ in range(6)]
        main.wait_stream(side)
        work = []
        for b in batch:
            work.append(b.float())
            b.record_stream(main)
        kept.append(torch.empty(rng.randrange(1, 8) * MIB, dtype=torch.uint8, device="cuda"))
        del batch, work
        if len(kept) > 4:
            kept.pop(0)
        torch.cuda.synchronize()


def child(name, out):
    """Makes one run in this process; the allocator is chosen by the environment."""
    import torch

    backend = torch.cuda.get_allocator_backend()
    if backend == "native":
        torch.cuda.memory._record_memory_history(max_entries=4_000_000, stacks="python")
    if name == TWO_STREAMS:
        two_streams()
    else:
        sys.path.insert(0, os.path.join(HERE, "..", "gpu"))
        import workloads

        workloads.deterministic(1)
        build, steps = workloads.WORKLOADS[name]
        state = build()
        for _ in steps(state, random.Random(1)):
            pass
    torch.cuda.synchronize()
    stats = torch.cuda.memory_stats()
    if backend == "native":
        with gzip.open(out, "wb") as f:
            pickle.dump(torch.cuda.memory._snapshot(), f)
    print(json.dumps({"backend": backend, "reserved": stats["reserved_bytes.all.peak"], "allocated": stats["allocated_bytes.all.peak"]}))


def run(name, conf, out):
    env = dict(os.environ, PYTORCH_CUDA_ALLOC_CONF=conf, PYTORCH_ALLOC_CONF=conf)
    done = subprocess.run([sys.executable, os.path.abspath(__file__), "--child", name, "--file", out], env=env, capture_output=True, text=True, timeout=300)
    if done.returncode != 0:
        raise RuntimeError(f"{name} under {conf or 'the defaults'}: {done.stderr.strip().splitlines()[-1:]}")
    found = json.loads(done.stdout.strip().splitlines()[-1])
    want = "cudaMallocAsync" if conf == ASYNC else "native"
    if found["backend"] != want:
        raise RuntimeError(f"{name}: the backend is {found['backend']}, not {want}")
    return found


def both(name, file):
    """Runs under the pool and under the default allocator; the pool's peak."""
    measured = run(name, ASYNC, file)["reserved"]
    run(name, "", file)
    return measured


def off(got, want):
    return abs(got - want) / want


def pools(ashlar, out, names):
    """Compares async:max with the measured pool."""
    rows, lines = [], []
    print("| run | measured MiB | async:max | off | caching | off |\n|---|---|---|---|---|---|")
    with concurrent.futures.ThreadPoolExecutor(4) as pool:  # of processes: memory is measured, not time
        runs = [(name, pool.submit(both, name, os.path.join(out, name + ".pickle.gz"))) for name in names]
    for name, done in runs:
        file = os.path.join(out, name + ".pickle.gz")
        try:
            measured = done.result()
        except (RuntimeError, subprocess.TimeoutExpired) as e:
            print(f"| {name} | {e} | | | | |")
            continue
        answer = json.loads(subprocess.check_output([ashlar, "policies", file, "--policy", "caching,async:max", "--json"]))
        caching, pool = (r["peak_reserved_bytes"] for r in answer["results"])
        rows.append((off(pool, measured), off(caching, measured)))
        lines.append({"name": name, "label": "async", "conf": ASYNC, "reserved_bytes.all.peak": measured, "async_max": pool, "caching": caching})
        print(f"| {name} | {measured / MIB:.0f} | {pool / MIB:.0f} | {100 * rows[-1][0]:.1f} % | {caching / MIB:.0f} | {100 * rows[-1][1]:.1f} % |", flush=True)
    with open(os.path.join(out, "async.jsonl"), "w") as f:
        f.writelines(json.dumps(x) + "\n" for x in lines)
    return [
        ("reserved within 3 %", sum(p <= 0.03 for p, _ in rows), 8),
        ("reserved within 8 %", sum(p <= 0.08 for p, _ in rows), len(names)),
        ("closer than caching", sum(p < c for p, c in rows), 8),
    ]


def managed(ashlar, out):
    """Compares the cost of moving managed memory, as the model has it from the largest size, with each size."""
    bench = json.loads(subprocess.check_output([ashlar, "gpu", "bench", "--json"]))
    with open(os.path.join(out, "gpu-bench.json"), "w") as f:
        json.dump(bench, f)
    within = total = 0
    print("\n| case | MiB | measured ms | model ms | off |\n|---|---|---|---|---|")
    for case in ("on_demand", "prefetch"):
        rows = [r for r in bench["rows"] if r["group"] == "managed" and r["case"] == case and r["part"] == "all"][-3:]
        for r in rows:
            last = rows[-1]
            model = last["median_ns"] / last["size_bytes"] * r["size_bytes"]
            o = off(model, r["median_ns"])
            total += 1
            within += o <= 0.2
            print(f"| {case} | {r['size_bytes'] / MIB:.0f} | {r['median_ns'] / 1e6:.2f} | {model / 1e6:.2f} | {100 * o:.0f} % |")
    return [("managed memory within 20 %", within, max(total, 6))]


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--ashlar", default="bin/ashlar", help="the command")
    p.add_argument("--out", default="measured", help="the folder for what is recorded")
    p.add_argument("--only", help="one workload")
    p.add_argument("--child", help=argparse.SUPPRESS)
    p.add_argument("--file", help=argparse.SUPPRESS)
    o = p.parse_args()
    if o.child:
        child(o.child, o.file)
        return 0
    os.makedirs(o.out, exist_ok=True)
    names = (o.only,) if o.only else NAMES + (TWO_STREAMS,)
    bars = pools(o.ashlar, o.out, names) + managed(o.ashlar, o.out)
    print()
    for what, got, need in bars:
        print(f"{'met' if got >= need else 'NOT MET'}: {what}: {got}, {need} are wanted")
    return 0 if all(got >= need for _, got, need in bars) else 1


if __name__ == "__main__":
    sys.exit(main())
