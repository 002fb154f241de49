"""Changes of the program that `ashlar whatif` predicts, tried on a GPU: no cache, empty_cache().

usage: python3 tools/bench/gpu/nocache.py [--out DIR] [--ashlar PATH] [--seconds S]
       python3 tools/bench/gpu/nocache.py --compare DIR --ashlar PATH

Three scripts run in processes of their own: as they are, with empty_cache() before each step, and
with PYTORCH_NO_CUDA_MEMORY_CACHING=1. The first two leave a snapshot. Calls of the driver and
their time are counted by calls.c, which is compiled here and preloaded. `ashlar whatif` predicts from the snapshot of the plain run what
the other two did, and from that with the calls what the plain one did. Bars, for each script:

  calls      as many cudaMalloc and cudaFree as predicted
  reserved   peak reserved as predicted; without a cache, where PyTorch counts nothing, the peak of
             what was asked for, as PyTorch counted it with its cache
  time       of these calls, within a factor of 1.5

Kernels run one by one (CUDA_LAUNCH_BLOCKING), so that no cudaFree waits for the device: that wait is not
predicted. Without the command the runs are kept in DIR, for --compare. The costs of small requests are
printed too.
"""
import argparse
import ctypes as C
import json
import os
import statistics
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(os.path.dirname(os.path.dirname(HERE)))
MODES = ("plain", "empty", "uncached")
STEPS = 8
FACTOR = 1.5


# The scripts. Each is a function of a step's number; what it returns stays until the next step.

def batches():
    """A perceptron, trained with batches of different sizes."""
    import torch
    import torch.nn as nn

    net = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 10)).cuda()
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1, momentum=0.9, foreach=False)

    def step(i):
        optimizer.zero_grad(set_to_none=True)
        x = torch.zeros(256 * (1 + i * 5 % 7), 1024, device="cuda")
        net(x).sum().backward()
        optimizer.step()
    return step


def cache():
    """A cache of keys and values that grows by concatenation, as while generating."""
    import torch

    def step(i):
        keys = torch.zeros(16, 64 + 8 * i, 2048, device="cuda")
        for _ in range(24):
            keys = torch.cat([keys, keys[:, -1:]], dim=1)
        return keys
    return step


def pieces():
    """Large and small blocks of random sizes with random lives."""
    import random

    import torch

    chance = random.Random(27)
    kept = []

    def step(i):
        for _ in range(60 if i else 0):
            size = int(2 ** chance.uniform(9, 27))
            kept.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
            while len(kept) > 25:
                kept.pop(chance.randrange(len(kept)))
    return step


SCRIPTS = {"batches": batches, "cache": cache, "pieces": pieces}


def child(script, mode, out):
    """Runs one script in one mode and prints what it measured."""
    import torch

    library = C.CDLL(os.environ["LD_PRELOAD"])
    a = torch.zeros(64, 64, device="cuda")  # what libraries take for themselves, they take now
    (a @ a).sum().item()
    step = SCRIPTS[script]()
    step(0)  # once without a record, for what is made at the first use
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_stats()
    mark = getattr(torch.cuda.memory, "_set_memory_metadata", None)  # PyTorch 2.10 and later
    if mode != "uncached":
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    made = C.c_uint64.in_dll(library, "calls_made")
    first = made.value
    kept = None
    for i in range(1, STEPS + 1):
        if mark:
            mark(f"step {i}")
        if mode == "empty":
            torch.cuda.empty_cache()
        kept = step(i)
    torch.cuda.synchronize()
    made = made.value
    result = {"script": script, "mode": mode, "marked": bool(mark), "torch": torch.__version__, "card": torch.cuda.get_device_name()}
    if mode != "uncached":
        torch.cuda.memory._dump_snapshot(os.path.join(out, f"{script}-{mode}.pickle"))
        after = torch.cuda.memory_stats()
        result["stats"] = {k: after[k] for k in ("reserved_bytes.all.peak", "requested_bytes.all.peak")}
        result["stats"].update({k: after[k] - before[k] for k in ("num_device_alloc", "num_device_free")})
    log = (C.c_uint64 * (2 * made)).in_dll(library, "calls")[2 * first:]
    result["log"] = [[size, ns / 1e3] for size, ns in zip(log[::2], log[1::2])]
    for name, took in (("cudaMalloc", [us for size, us in result["log"] if size]), ("cudaFree", [us for size, us in result["log"] if not size])):
        result.setdefault("calls", {})[name] = {"count": len(took), "ms": sum(took) / 1e3}
    del kept
    print("RESULT " + json.dumps(result), flush=True)


def counter(folder):
    """The library that counts the calls."""
    path = os.path.join(os.path.abspath(folder), "calls.so")
    subprocess.run(["cc", "-O2", "-shared", "-fPIC", "-o", path, os.path.join(HERE, "calls.c"), "-ldl"], check=True)
    return path


def run(script, mode, out, seconds, preload):
    env = dict(os.environ, CUDA_LAUNCH_BLOCKING="1", LD_PRELOAD=preload)
    env.pop("PYTORCH_CUDA_ALLOC_CONF", None)
    env.pop("PYTORCH_ALLOC_CONF", None)
    if mode == "uncached":
        env["PYTORCH_NO_CUDA_MEMORY_CACHING"] = "1"
    try:
        done = subprocess.run([sys.executable, __file__, "--child", script, mode, out], env=env, capture_output=True, text=True, timeout=seconds)
    except subprocess.TimeoutExpired:
        return {"script": script, "mode": mode, "error": f"not done after {seconds:.0f} s"}
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[len("RESULT "):])
    return {"script": script, "mode": mode, "error": (done.stderr or done.stdout).strip()[-400:]}


def ask(command, snapshot, *flags):
    done = subprocess.run([command, "whatif", snapshot, "--json", *flags], capture_output=True, text=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip())
    return json.loads(done.stdout)


def predicted(result):
    return {"allocs": result["num_device_alloc"], "frees": result["num_device_free"],
            "reserved": result["peak_reserved_bytes"], "ms": result["estimated_driver_ms"]}


def measured(row, plain):
    """What a run did. PyTorch's own counts are taken where it has them; the count of calls must agree."""
    calls = row["calls"]
    out = {"allocs": calls["cudaMalloc"]["count"], "frees": calls["cudaFree"]["count"],
           "ms": calls["cudaMalloc"]["ms"] + calls["cudaFree"]["ms"]}
    if row["mode"] == "uncached":
        out["reserved"] = plain["stats"]["requested_bytes.all.peak"]
    else:
        out["reserved"] = row["stats"]["reserved_bytes.all.peak"]
        own = row["stats"]["num_device_alloc"], row["stats"]["num_device_free"]
        if own != (out["allocs"], out["frees"]):
            print(f"{row['script']} {row['mode']}: PyTorch counts {own} calls, calls.c {out['allocs']}, {out['frees']}", file=sys.stderr)
        out["allocs"], out["frees"] = own
    return out


def verdicts(want, got):
    """Of calls, reserved and time, whether the bar is met."""
    high, low = max(want["ms"], got["ms"]), min(want["ms"], got["ms"])
    return {
        "calls": (want["allocs"], want["frees"]) == (got["allocs"], got["frees"]),
        "reserved": want["reserved"] == got["reserved"],
        "time": high <= FACTOR * low or high - low < 0.05,  # ms: below that there is nothing to compare
    }


def compare(folder, command):
    """Prints the table; returns how many bars were missed."""
    with open(os.path.join(folder, "nocache.json")) as f:
        rows = json.load(f)
    missed = 0
    print("| script | predicted from | for | cudaMalloc, predicted / measured | cudaFree | peak reserved, bytes | driver ms | calls | reserved | time |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for script in SCRIPTS:
        of = {r["mode"]: r for r in rows if r["script"] == script}
        broken = [r for r in of.values() if "error" in r]
        if broken or len(of) != len(MODES):
            for r in broken:
                print(f"{script} {r['mode']}: {r['error']}", file=sys.stderr)
            missed += 1
            continue
        for source, target, flags in (("plain", "plain", ("--no-cache",)), ("plain", "empty", ("--empty-cache", "every:1")),
                                      ("plain", "uncached", ("--no-cache",)), ("empty", "plain", ("--empty-cache", "none"))):
            try:
                answer = ask(command, os.path.join(folder, f"{script}-{source}.pickle"), *flags)
            except (RuntimeError, ValueError) as e:
                print(f"{script}, {target} from {source}: {e}", file=sys.stderr)
                missed += 1
                continue
            want = predicted(answer["results"][0 if source == target else 1])
            got = measured(of[target], of["plain"])
            met = verdicts(want, got)
            missed += sum(not ok for ok in met.values())
            words = ["met" if met[k] else "NOT MET" for k in ("calls", "reserved", "time")]
            print(f"| {script} | {source} | {target} | {want['allocs']} / {got['allocs']} | {want['frees']} / {got['frees']} | "
                  f"{want['reserved']} / {got['reserved']} | {want['ms']:.2f} / {got['ms']:.2f} | {' | '.join(words)} |")
    return missed


def costs():
    """What the driver takes for requests of all sizes, one alive at a time and many."""
    cuda = C.CDLL("libcuda.so.1")

    def call(name, *args):
        begin = time.perf_counter_ns()
        result = getattr(cuda, name)(*args)
        if result != 0:
            raise RuntimeError(f"{name} failed with error {result}")
        return (time.perf_counter_ns() - begin) / 1e3

    device, context = C.c_int(), C.c_void_p()
    call("cuInit", 0)
    call("cuDeviceGet", C.byref(device), 0)
    call("cuDevicePrimaryCtxRetain", C.byref(context), device)
    call("cuCtxSetCurrent", context)
    print("| size KiB | cuMemAlloc us, alone / among 64 | cuMemFree us |\n|---|---|---|")
    for kib in (0.5, 4, 64, 256, 512, 1024, 1536, 2048, 4096, 20480):
        cells = {"alloc": [], "free": []}
        for live in (1, 64):
            gets, gives = [], []
            for _ in range(max(1, 128 // live)):
                held = [C.c_uint64() for _ in range(live)]
                gets += [call("cuMemAlloc_v2", C.byref(p), C.c_size_t(int(kib * 1024))) for p in held]
                gives += [call("cuMemFree_v2", p) for p in held]
            cells["alloc"].append(statistics.mean(gets[len(gets) // 8:]))
            cells["free"].append(statistics.mean(gives[len(gives) // 8:]))
        print(f"| {kib:g} | {cells['alloc'][0]:.1f} / {cells['alloc'][1]:.1f} | {cells['free'][0]:.1f} / {cells['free'][1]:.1f} |")


    print("| MiB | 16 of them for the first time, us each | after all were freed, us each |\n|---|---|---|")
    for mib in (2, 20, 64, 128, 512):
        again = []
        for _ in range(3):
            held = [C.c_uint64() for _ in range(16)]
            again.append(statistics.mean(call("cuMemAlloc_v2", C.byref(p), C.c_size_t(mib << 20)) for p in held))
            for p in held:
                call("cuMemFree_v2", p)
        print(f"| {mib} | {again[0]:.1f} | {', '.join('%.1f' % us for us in again[1:])} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", default=os.path.join(HERE, "nocache"), help="the folder for the runs")
    parser.add_argument("--compare", metavar="DIR", help="only compare runs that were made before")
    parser.add_argument("--ashlar", default=os.path.join(ROOT, "bin", "gpu", "ashlar"), help="the command")
    parser.add_argument("--seconds", type=float, default=240, help="for all runs together")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.child:
        child(*args.child)
        return 0
    folder = args.compare or args.out
    if not args.compare:
        os.makedirs(folder, exist_ok=True)
        preload = counter(folder)
        end = time.monotonic() + args.seconds
        rows = [run(script, mode, folder, max(1.0, end - time.monotonic()), preload) for script in SCRIPTS for mode in MODES]
        with open(os.path.join(folder, "nocache.json"), "w") as f:
            json.dump(rows, f, indent=1)
        for r in rows:
            print(r.get("card", ""), r["script"], r["mode"], r.get("error") or r["calls"])
        costs()
    if not os.path.exists(args.ashlar):
        print(f"no command at {args.ashlar}: compare later with --compare {folder} --ashlar PATH")
        return 1
    missed = compare(folder, args.ashlar)
    print("every bar met" if missed == 0 else f"{missed} bars NOT MET")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
