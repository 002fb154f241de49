"""Tenants: a server with a guarantee beside a trainer that grows until it fails.

usage: python3 tools/bench/gpu/tenants.py [--library PATH] [--rounds N] [--seconds S]

One process serves a generate loop in a tenant with a guarantee. First it is alone; then a
trainer in the same process allocates until it fails, ten times. Bars:

  no request of the server fails, and its tokens are bit for bit those of serving alone
  200 out-of-memory errors of the trainer leave no memory behind
  a CUDA graph of the server replays the same numbers while the trainer fails
  forked DataLoader workers end well beside it
  with ASHLAR_TENANTS_HOLD=1 a second process that fills the card takes nothing of the guarantee

The server's latencies, p50 and p99, are shown with and without the trainer.
"""
import argparse
import json
import os
import subprocess
import sys
import threading
import time

import allocators

HERE = os.path.dirname(os.path.abspath(__file__))
MIB, GIB = 1 << 20, 1 << 30
GUARANTEE = 4 * GIB


def model():
    """A small decoder with a growing cache: what a server does to memory."""
    import torch
    import torch.nn as nn

    torch.manual_seed(1)
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(1024, 16, 4096, batch_first=True, dropout=0.0), 6).cuda().eval()


def serve(tenant, net, requests, out):
    """Answers requests on the tenant's stream: a checksum and a latency of each."""
    import torch

    with tenant, torch.no_grad():
        for i in range(requests):
            torch.manual_seed(i)
            begin = time.perf_counter()
            try:
                x = torch.randn(4, 64 + 16 * (i % 24), 1024, device="cuda")
                for _ in range(4):
                    x = torch.cat([x, net(x)[:, -1:]], dim=1)
                sum_ = x.double().sum().item()
            except torch.OutOfMemoryError as e:
                out["failures"].append(str(e)[:300])
                continue
            out["sums"].append(sum_.hex())
            out["ms"].append(1e3 * (time.perf_counter() - begin))


def grow(stop, out, times):
    """Allocates until there is no more, so many times; frees everything in between."""
    import torch

    for _ in range(times):
        held = []
        try:
            while not stop.is_set():
                held.append(torch.empty(256 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as e:
            out["ooms"] += 1
            out["text"] = str(e)[:400]
        held.clear()
        if stop.is_set():
            return


def child(role, rounds, requests):
    import ashlar_torch
    import torch

    torch.use_deterministic_algorithms(True, warn_only=True)
    t = ashlar_torch.tenant("serve", guarantee=GUARANTEE, priority=10)
    out = {"sums": [], "ms": [], "failures": [], "ooms": 0, "text": ""}
    with t:
        net = model()
    if role == "hold":
        serve(t, net, 1, {"sums": [], "ms": [], "failures": []})  # libraries take memory of their own at first
        print("ready", flush=True)
        sys.stdin.readline()  # the other process has filled the card
        serve(t, net, requests, out)
    elif role == "alone":
        serve(t, net, requests, out)
    elif role == "ooms":
        before = torch.cuda.memory_allocated()
        grow(threading.Event(), out, 200)
        torch.cuda.empty_cache()
        out["left"] = torch.cuda.memory_allocated() - before
    elif role == "graph":
        graph(t, out)
    elif role == "workers":
        loader = torch.utils.data.DataLoader(list(range(64)), batch_size=4, num_workers=4)
        out["batches"] = sum(1 for _ in loader)
        serve(t, net, requests, out)
    else:
        stop = threading.Event()
        trainer = threading.Thread(target=grow, args=(stop, out, rounds))
        trainer.start()
        serve(t, net, requests, out)
        stop.set()
        trainer.join()
    print(json.dumps(out), flush=True)


def graph(t, out):
    """Captures a graph in the tenant and replays it while the trainer fails."""
    import torch

    with t:
        x = torch.ones(1 << 20, device="cuda")
        y = (x * 2).sum()
        torch.cuda.synchronize()
        g = torch.cuda.CUDAGraph()
        with torch.cuda.graph(g, stream=t.stream):
            y = (x * 2 + 1).sum()
        stop = threading.Event()
        trainer = threading.Thread(target=grow, args=(stop, out, 5))
        trainer.start()
        for _ in range(500):
            g.replay()
            out["sums"].append(y.item().hex())
        stop.set()
        trainer.join()
    out["distinct"] = len(set(out["sums"]))


FILL = """
import torch
held = []
size = 1 << 30
while size >= 1 << 21:
    try:
        held.append(torch.empty(size, dtype=torch.uint8, device="cuda"))
    except torch.OutOfMemoryError:
        size //= 2
print("full", flush=True)
input()
"""


def start(args, role, **env):
    library = os.path.abspath(args.library) if args.library else allocators.library_path()
    environment = dict(os.environ, ASHLAR_LIBRARY=library, CUBLAS_WORKSPACE_CONFIG=":4096:8", **env)
    environment["PYTHONPATH"] = os.path.join(HERE, "..", "..", "..", "python")
    return subprocess.Popen([sys.executable, __file__, "--child", role, "--rounds", str(args.rounds), "--requests", str(args.requests)],
                            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def ended(process, args):
    try:
        text, _ = process.communicate(timeout=args.seconds)
        return json.loads(text.splitlines()[-1])
    except (subprocess.TimeoutExpired, ValueError, IndexError) as e:
        process.kill()
        return {"sums": [], "ms": [], "failures": ["the process did not end well: %s" % e], "ooms": 0, "text": ""}


def held(args):
    """A server that holds its guarantee beside a process that takes all the rest."""
    process = start(args, "hold", ASHLAR_TENANTS_HOLD="1", ASHLAR_TENANTS="serve:guarantee=%dMiB,priority=10" % (GUARANTEE // MIB))
    process.stdout.readline()
    other = subprocess.Popen([sys.executable, "-c", FILL], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    other.stdout.readline()
    process.stdin.write("\n")
    process.stdin.flush()
    result = ended(process, args)
    other.communicate("\n")
    return result


def percentile(values, p):
    return sorted(values)[min(int(len(values) * p), len(values) - 1)] if values else float("nan")


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--library")
    parser.add_argument("--rounds", type=int, default=10)
    parser.add_argument("--requests", type=int, default=400)
    parser.add_argument("--seconds", type=float, default=180, help="for each process")
    parser.add_argument("--child")
    args = parser.parse_args()
    if args.child:
        return child(args.child, args.rounds, args.requests)
    alone, both = ended(start(args, "alone"), args), ended(start(args, "both"), args)
    ooms, captured, workers, hold = (ended(start(args, "ooms"), args), ended(start(args, "graph"), args), ended(start(args, "workers"), args), held(args))
    rows = [
        ("serving alone", not alone["failures"], "%d requests, p50 %.2f ms, p99 %.2f ms" % (len(alone["ms"]), percentile(alone["ms"], 0.5), percentile(alone["ms"], 0.99))),
        ("beside a trainer that fails", not both["failures"] and both["ooms"] >= args.rounds,
         "%d requests failed, the trainer %d times; p50 %.2f ms, p99 %.2f ms" % (len(both["failures"]), both["ooms"], percentile(both["ms"], 0.5), percentile(both["ms"], 0.99))),
        ("the same numbers", alone["sums"] == both["sums"] != [], "%d of %d" % (sum(a == b for a, b in zip(alone["sums"], both["sums"])), len(alone["sums"]))),
        ("the error names the tenant", "Tenant default" in both["text"], both["text"][-200:]),
        ("200 errors leave nothing", ooms["ooms"] >= 200 and ooms.get("left") == 0, "%d errors, %s bytes left" % (ooms["ooms"], ooms.get("left"))),
        ("a graph replays", captured.get("distinct") == 1, "%d replays, %s results" % (len(captured["sums"]), captured.get("distinct"))),
        ("DataLoader workers", workers.get("batches") == 16 and not workers["failures"], "%s batches" % workers.get("batches")),
        ("hold beside a process that fills the card", not hold["failures"] and hold["sums"] == alone["sums"], "; ".join(hold["failures"][:1]) or "%d requests" % len(hold["ms"])),
    ]
    for what, met, text in rows:
        print("%-8s %-42s %s" % ("met" if met else "NOT MET", what, text))
    return 0 if all(met for _, met, _ in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
