"""What the driver's stream-ordered pool reserves, call by call.

    python3 tools/bench/policies/probe_async.py probe.jsonl

It runs PyTorch under backend:cudaMallocAsync, which sets the pool's release
threshold to the maximum, and writes one JSON line for each test, with reserved
bytes throughout:

    size     r: empty, after one block of n bytes, after a second, and after the
             first was freed and a third made
    holes    r: after k blocks of mib MiB, after every second was freed (and the
             device synchronised, if sync), and after one block as large as those
    random   trace: a random program on one stream; [id, bytes, reserved] for an
             allocation, [-id, 0, reserved] for a free, [0, 0, reserved] for a
             synchronisation
    streams  r: after a block on one stream, and after it was freed and another one
             made on a second stream; before that nothing (sync 0), the device
             synchronised (1), or the second stream waited for the first (2)

internal/policy's tests replay testdata/async/probe.jsonl.gz, which was found on an
H200. It needs PyTorch 2.11 with CUDA.
"""
import argparse
import json
import math
import os
import random

os.environ["PYTORCH_CUDA_ALLOC_CONF"] = os.environ["PYTORCH_ALLOC_CONF"] = "backend:cudaMallocAsync"

import torch  # after the environment, which it reads once

MIB = 1 << 20
SIZES = (1, 512, 4096, 1 << 16) + tuple(n * MIB for n in (1, 2, 3, 16, 31, 32, 33, 40, 63, 64, 65, 100, 129, 500, 1000, 3000))
HOLES = ((8, 100), (8, 32), (8, 64), (16, 16), (16, 24), (16, 48), (32, 8), (64, 3), (64, 2), (64, 4), (8, 33), (8, 40), (8, 256))
# Smallest and largest block, most blocks, how likely a free is, calls between synchronisations (0: none), calls.
PROGRAMS = (
    (64 << 10, 4 * MIB, 200, 0.5, 0, 3000),
    (MIB, 64 * MIB, 60, 0.5, 0, 2000),
    (512, MIB, 1500, 0.5, 0, 4000),
    (512, 256 * MIB, 80, 0.5, 0, 2500),
    (MIB, 64 * MIB, 60, 0.5, 40, 2000),
    (20 * MIB, 40 * MIB, 60, 0.5, 0, 1500),
    (512, 32 * MIB, 300, 0.48, 100, 3000),
    (4096, 300 * MIB, 40, 0.5, 25, 1500),
)
reserved = torch.cuda.memory_reserved
synchronize = torch.cuda.synchronize


def new(n):
    return torch.empty(n, dtype=torch.uint8, device="cuda")


def clear():
    synchronize()
    torch.cuda.empty_cache()
    synchronize()


def size(n):
    clear()
    r = [reserved()]
    first = new(n)
    synchronize()
    r.append(reserved())
    second = new(n)
    synchronize()
    r.append(reserved())
    del first
    synchronize()
    third = new(n)
    r.append(reserved())
    del second, third
    return {"test": "size", "n": n, "r": r}


def holes(k, mib, sync):
    clear()
    blocks = [new(mib * MIB) for _ in range(k)]
    r = [reserved()]
    for i in range(0, k, 2):
        blocks[i] = None
    if sync:
        synchronize()
    r.append(reserved())
    large = new(mib * MIB * k // 2)
    synchronize()
    r.append(reserved())
    del blocks, large
    return {"test": "holes", "k": k, "mib": mib, "sync": sync, "r": r}


def program(seed, low, high, most, free, every, calls):
    clear()
    rng = random.Random(seed)
    held, made, trace = {}, 0, []
    for i in range(calls):
        if held and (len(held) >= most or rng.random() < free * len(held) / most + 0.1):
            k = rng.choice(list(held))
            del held[k]
            trace.append([-k - 1, 0, reserved()])
        else:
            n = int(math.exp(rng.uniform(math.log(low), math.log(high))))
            held[made] = new(n)
            trace.append([made + 1, n, reserved()])
            made += 1
        if every and i % every == every - 1:
            synchronize()
            trace.append([0, 0, reserved()])
    held.clear()
    return {"test": "random", "seed": seed, "trace": trace}


def streams(sync, other):
    clear()
    first = new(100 * MIB)
    r = [reserved()]
    del first
    if sync == 1:
        synchronize()
    if sync == 2:
        other.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(other):
        second = new(100 * MIB)
    synchronize()
    r.append(reserved())
    del second
    return {"test": "streams", "sync": sync, "r": r}


def tests():
    for n in SIZES:
        yield size(n)
    for k, mib in HOLES:
        for sync in (True, False):
            yield holes(k, mib, sync)
    for seed, p in enumerate(PROGRAMS):
        yield program(seed, *p)
    other = torch.cuda.Stream()
    for sync in range(3):
        yield streams(sync, other)


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("out", help="the file for what is found")
    out = p.parse_args().out
    torch.zeros(1, device="cuda")  # starts CUDA
    with open(out, "w") as f:
        for t in tests():
            f.write(json.dumps(t) + "\n")


if __name__ == "__main__":
    main()
