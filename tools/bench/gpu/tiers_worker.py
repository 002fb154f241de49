"""The processes of tiers.py: each installs one allocator and does one case.

Every function is a target of children.Worker. What goes wrong is an answer, not a
crash, wherever the parent can still learn something from it.
"""
import os
import subprocess
import sys
import threading
import time

import torch

import allocators
import workloads

MIB, GIB = 1 << 20, 1 << 30
GPU = "cuda"


def start(conf=None, allocator="ashlar"):
    """Install the allocator; returns ashlar_torch, or None if PyTorch's own is used."""
    if conf is not None:
        os.environ["ASHLAR_CONF"] = conf
    allocators.install(allocator)
    torch.cuda.init()
    torch.cuda.synchronize()
    return sys.modules.get("ashlar_torch")


def filled(bytes_, seed):
    """A tensor whose every word depends on its place and the seed."""
    x = torch.arange(bytes_ // 8, dtype=torch.int64, device=GPU)
    x.mul_(0x9E3779B97F4A7C1).add_(seed)
    return x


def checksum(tensors):
    """Of all words, with their places; in pieces, which need little memory."""
    total = 0
    for t in tensors:
        for i, piece in enumerate(t.split(16 * MIB)):
            total = (total * 31 + int(piece.sum().item()) + i * int((piece >> 7).sum().item())) % (1 << 61)
    return total


def smi_free():
    """Free memory as nvidia-smi tells it, in bytes; None where it does not."""
    try:
        text = subprocess.run(["nvidia-smi", "--query-gpu=memory.free", "--format=csv,noheader,nounits", "--id=0"],
                              capture_output=True, text=True, timeout=30).stdout
        return int(text.split()[0]) * MIB
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired):
        return None


def driver_free():
    return torch.cuda.mem_get_info()[0]


def available():
    """MemAvailable of the host in bytes."""
    with open("/proc/meminfo") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("MemAvailable"))


def rss():
    with open("/proc/self/status") as f:
        return next(int(line.split()[1]) << 10 for line in f if line.startswith("VmRSS"))


OTHER = """
import sys, torch
size = int(sys.argv[1])
x = torch.full((size,), 7, dtype=torch.uint8, device="cuda")
print(int(x[:: 1 << 20].sum().item()) == 7 * len(x[:: 1 << 20]), flush=True)
"""


def other_process(bytes_):
    """A second process takes so much device memory and writes to all of it."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("ASHLAR")}
    done = subprocess.run([sys.executable, "-c", OTHER, str(bytes_)], env=env, capture_output=True, text=True, timeout=120)
    return done.stdout.strip() == "True" or (done.stderr or "it failed").strip()[-300:]


def park_rounds(channel, gib, rounds, other):
    """Park and restore a region, so many rounds: seconds, bytes, contents, and what a second
    process gets meanwhile. Each round is an answer of its own."""
    ashlar = start()
    with ashlar.region("big"):
        tensors = [filled(GIB, i) for i in range(gib)]
    view = tensors[0][1 << 20: 2 << 20]
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    want, pointers, words = checksum(tensors), [t.data_ptr() for t in tensors], int(view.sum().item())
    torch.cuda.empty_cache()
    channel.send({"built": True, "free": driver_free(), "smi": smi_free(), "allocated": torch.cuda.memory_allocated()})
    for n in range(rounds):
        row = {"round": n}
        free = driver_free()
        smi = smi_free() if n == 0 else None
        begin = time.perf_counter()
        row["freed"] = ashlar.park("big")
        row["park_s"] = time.perf_counter() - begin
        row["free_gain"] = driver_free() - free
        if n == 0:
            after = smi_free()
            row["smi_gain"] = after - smi if None not in (after, smi) else None
            row["reserved"] = torch.cuda.memory_reserved()
            if other:
                row["other"] = other_process(int(0.9 * row["freed"]))
            begin = time.perf_counter()
            torch.cuda.synchronize()
            row["touched"] = int(view.sum().item()) == words  # the device reads what lies in the host's memory
            row["touch_s"] = time.perf_counter() - begin
        begin = time.perf_counter()
        row["back"] = ashlar.restore("big")
        row["restore_s"] = time.perf_counter() - begin
        if n in (0, rounds - 1):
            row["same"] = checksum(tensors) == want and [t.data_ptr() for t in tensors] == pointers
        channel.send(row)
    stats = torch.cuda.memory_stats()
    channel.send({"done": True, "stats": {k: v for k, v in stats.items() if k.startswith("ashlar.")}})


def to_cpu(channel, gib):
    """What a job does without tiers: model.to("cpu") and back, under PyTorch's own allocator."""
    start(allocator="native")
    module = torch.nn.ParameterList([torch.nn.Parameter(filled(GIB, i).view(torch.float32), requires_grad=False) for i in range(gib)])
    view = module[0].data[1 << 10: 2 << 10]
    pointers = [p.data_ptr() for p in module]
    answers = []
    for _ in range(2):
        torch.cuda.synchronize()
        begin = time.perf_counter()
        module.to("cpu")
        torch.cuda.empty_cache()
        out = time.perf_counter() - begin
        begin = time.perf_counter()
        module.to(GPU)
        torch.cuda.synchronize()
        answers.append((out, time.perf_counter() - begin))
    module[0].data.zero_()
    torch.cuda.synchronize()
    channel.send({"seconds": answers, "same_addresses": [p.data_ptr() for p in module] == pointers, "views_follow": bool((view == 0).all())})


def small_rounds(channel, rounds, seconds):
    """Rounds of 1 GiB: does anything grow?"""
    ashlar = start()
    with ashlar.region("one"):
        tensors = [filled(GIB // 4, i) for i in range(4)]
    want = checksum(tensors)
    torch.cuda.empty_cache()

    def figures():
        return {"free": driver_free(), "rss": rss(), "available": available(), "reserved": torch.cuda.memory_reserved()}

    began, done, before = time.monotonic(), 0, None
    for n in range(rounds):
        ashlar.park("one")
        ashlar.restore("one")
        done += 1
        if n == 9:
            before = figures()
        if time.monotonic() - began > seconds:
            break
    channel.send({"rounds": done, "before": before or figures(), "after": figures(), "same": checksum(tensors) == want,
                  "seconds": time.monotonic() - began})


def graph(channel, rounds):
    """A CUDA graph over a region's weights replays the same bits after each park and restore,
    and while they are parked."""
    ashlar = start()
    torch.manual_seed(1)
    with ashlar.region("net"):
        net = torch.nn.Sequential(torch.nn.Linear(4096, 8192), torch.nn.GELU(), torch.nn.Linear(8192, 4096)).to(GPU)
    x = torch.randn(256, 4096, device=GPU)
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side), torch.no_grad():
        for _ in range(3):
            net(x)
    torch.cuda.current_stream().wait_stream(side)
    g = torch.cuda.CUDAGraph()
    with torch.no_grad(), torch.cuda.graph(g):
        y = net(x)

    def replay():
        y.zero_()
        g.replay()
        torch.cuda.synchronize()
        return workloads.bits(y.double().sum().item()) + workloads.bits(y.double().abs().max().item())

    want, got, parked = replay(), [], []
    for _ in range(rounds):
        ashlar.park("net")
        parked.append(replay())
        ashlar.restore("net")
        got.append(replay())
    answer = {"rounds": rounds, "same": set(got) == {want}, "same_parked": set(parked) == {want}}
    try:  # memory of the graph itself must stay
        answer["private"] = ashlar.park([y])
    except RuntimeError as e:
        answer["refused"] = str(e)
    channel.send(answer)


def optimizer(channel):
    """park(module) and park(optimizer) of an ordinary model, without a region."""
    ashlar = start()
    torch.manual_seed(1)

    def train(park):
        torch.manual_seed(2)
        net = torch.nn.Sequential(*[torch.nn.Linear(4096, 4096) for _ in range(8)]).to(GPU)
        opt = torch.optim.AdamW(net.parameters(), lr=1e-4)
        losses, freed = [], []
        for _ in range(6):
            loss = net(torch.randn(64, 4096, device=GPU)).square().mean()
            loss.backward()
            opt.step()
            opt.zero_grad(set_to_none=True)
            losses.append(workloads.bits(loss.item()))
            if park:
                torch.cuda.empty_cache()
                freed.append((ashlar.park(opt), ashlar.park(net)))
                ashlar.restore(net)
                ashlar.restore(opt)
        state = sum(v.numel() * v.element_size() for s in opt.state.values() for v in s.values() if v.is_cuda)
        return losses, freed, state, sum(p.numel() * p.element_size() for p in net.parameters())

    plain, _, _, _ = train(False)
    parked, freed, state, weights = train(True)
    channel.send({"same": plain == parked, "freed": freed, "state": state, "weights": weights})


def overflow(channel, name, allocator, conf, limit, save_on_cpu, record=None, seed=1):
    """A workload under a limit: a first pass, with its losses, and a timed one. record names the file for a recording."""
    start(conf, allocator)
    if record:
        torch.cuda.memory._record_memory_history(max_entries=1_000_000, stacks="python")
    workloads.deterministic(seed)
    if limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit / total)
    build, steps = workloads.WORKLOADS[name]
    answer = {"oom": None, "numbers": [], "first": [], "seconds": []}

    def once(numbers, seconds):
        if save_on_cpu:
            with torch.autograd.graph.save_on_cpu(pin_memory=True):
                workloads.run_pass(state, steps, seed, numbers, seconds)
        else:
            workloads.run_pass(state, steps, seed, numbers, seconds)

    try:
        state = build()
        torch.cuda.synchronize()
        once(answer["numbers"], answer["first"])
        again = []
        once(again, answer["seconds"])
        answer["again"] = again
    except torch.OutOfMemoryError as e:
        answer["oom"] = str(e)[:600]
    if record:
        torch.cuda.memory._dump_snapshot(record)
    stats = torch.cuda.memory_stats()
    keys = [*workloads.KEYS, *[k for k in stats if k.startswith("ashlar.")]]
    answer["stats"] = {k: stats.get(k) for k in keys}
    channel.send(answer)


def capture(channel):
    """Moves beside a capture, on the same thread and on another."""
    ashlar = start()
    with ashlar.region("net"):
        w = filled(256 * MIB, 3)
    x = torch.ones(1 << 20, device=GPU)
    answer = {"refused": []}

    def attempt():
        try:
            ashlar.park("net")
            answer["refused"].append("it was moved")
        except RuntimeError as e:
            answer["refused"].append(str(e))

    want = (x * 2 + 1).double().sum().item()
    torch.cuda.synchronize()
    g = torch.cuda.CUDAGraph()
    with torch.cuda.graph(g, capture_error_mode="thread_local"):
        y = (x * 2 + 1)
        attempt()
        other = threading.Thread(target=attempt)
        other.start()
        other.join()
        z = y.double().sum()
    g.replay()
    torch.cuda.synchronize()
    answer["replayed"] = z.item() == want
    answer["freed"] = ashlar.park("net")
    ashlar.restore("net")
    answer["kept"] = checksum([w]) == checksum([filled(256 * MIB, 3)])
    channel.send(answer)


def refusals(channel):
    """Host memory refused; device full at the restore; an exception in a region; dropped."""
    ashlar = start("host_limit:1GiB")
    answer = {}
    with ashlar.region("big"):
        tensors = [filled(GIB, i) for i in range(3)]
    want = checksum(tensors)
    try:
        answer["host"] = "parked %d bytes" % ashlar.park("big")
    except RuntimeError as e:
        answer["host"] = str(e)
    ashlar.restore("big")
    answer["host_kept"] = checksum(tensors) == want

    with ashlar.region("small"):
        one = filled(512 * MIB, 9)
    small = checksum([one])
    ashlar.park("small")
    hog = []
    try:
        size = 1 * GIB
        while size >= 2 * MIB:
            try:
                hog.append(torch.empty(size, dtype=torch.uint8, device=GPU))
            except torch.OutOfMemoryError:
                size //= 2
        ashlar.restore("small")
        answer["full"] = "restored"
    except torch.OutOfMemoryError as e:
        answer["full"] = str(e)
    hog.clear()
    torch.cuda.empty_cache()
    ashlar.restore("small")
    answer["full_kept"] = checksum([one]) == small

    try:
        with ashlar.region("big"):
            tensors.append(filled(GIB, 4))
            raise KeyError("user code")
    except KeyError:
        pass
    outside = torch.empty(64 * MIB, dtype=torch.uint8, device=GPU)
    answer["exception"] = checksum(tensors[:3]) == want and outside.numel() > 0
    del outside

    with ashlar.region("kv"):
        cache = filled(512 * MIB, 1)
    answer["dropped_freed"] = ashlar.park("kv", keep=False)
    answer["dropped"] = ashlar.dropped(cache)
    for what in ("enter", "use"):
        try:
            if what == "enter":
                with ashlar.region("kv"):
                    pass
            else:
                with ashlar.checked():
                    cache.sum()
            answer["drop_" + what] = "it was allowed"
        except RuntimeError as e:
            answer["drop_" + what] = str(e)
    ashlar.restore("kv")
    cache.fill_(5)
    answer["usable"] = int(cache[:100].sum().item()) == 500
    channel.send(answer)


def forever(channel, gib):
    """Park and restore until somebody kills the process."""
    ashlar = start()
    with ashlar.region("big"):
        tensors = [filled(GIB, i) for i in range(gib)]
    channel.send({"ready": len(tensors)})
    while True:
        ashlar.park("big")
        ashlar.restore("big")


def idle_cost(channel, conf, unused, samples, n):
    """torch.empty and del, and steps of a small training: with tiers off, on, on and unused."""
    ashlar = start(conf)
    if unused:
        with ashlar.region("unused"):
            torch.empty(1, device=GPU)
    answer = {"ns": {}}
    sizes = (1 << 10, 1 << 20, 20 << 20)
    for _ in range(samples):
        for size in sizes:
            begin = time.perf_counter_ns()
            for _ in range(n):
                x = torch.empty(size, dtype=torch.uint8, device=GPU)
                del x
            answer["ns"].setdefault(str(size), []).append((time.perf_counter_ns() - begin) / n)
    workloads.deterministic(1)
    build, steps = workloads.WORKLOADS["leak_graph"]
    state = build()
    answer["steps"] = []
    for _ in range(4):
        seconds = []
        workloads.run_pass(state, steps, 1, [], seconds)
        answer["steps"].append(sum(seconds[1:]))
    channel.send(answer)


def rlhf(channel, layers, rounds, share):
    """Two models of 1.5 B parameters take turns on a device that holds one: the actor is
    trained, the other generates. Each lies in a region with its optimizer's state."""
    ashlar = start()
    torch.manual_seed(1)
    total = torch.cuda.get_device_properties(0).total_memory

    def sample(model):
        with torch.no_grad():
            x = torch.randint(0, 32000, (4, 256), device=GPU)
            return float(model(input_ids=x).logits.float().mean().item())

    def train(model, opt):
        x = torch.randint(0, 32000, (4, 256), device=GPU)
        loss = model(input_ids=x, labels=x).loss
        loss.backward()
        opt.step()
        opt.zero_grad(set_to_none=True)
        return loss.item()

    with ashlar.region("actor"):
        actor = workloads.llama(layers).train()
        opt = torch.optim.AdamW(actor.parameters(), lr=1e-5)
        train(actor, opt)  # the optimizer's state is made in the region
    count = sum(p.numel() for p in actor.parameters())
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    train(actor, opt)
    peak = torch.cuda.max_memory_allocated()
    limit = int(share * peak)
    ashlar.park("actor")
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(limit / total)
    with ashlar.region("judge"):
        judge = workloads.llama(layers).eval()
    held = sum(p.numel() * p.element_size() for p in judge.parameters())
    want = None
    channel.send({"parameters": count, "peak": peak, "limit": limit, "judge": held})
    for n in range(rounds):
        torch.manual_seed(100 + n % 2)
        row = {"round": n}
        begin = time.perf_counter()
        row["judged"] = sample(judge)
        row["judge_s"] = time.perf_counter() - begin
        begin = time.perf_counter()
        ashlar.park("judge")
        torch.cuda.empty_cache()
        ashlar.restore("actor")
        row["to_actor_s"] = time.perf_counter() - begin
        begin = time.perf_counter()
        row["loss"] = train(actor, opt)
        row["train_s"] = time.perf_counter() - begin
        begin = time.perf_counter()
        ashlar.park("actor")
        torch.cuda.empty_cache()
        ashlar.restore("judge")
        row["to_judge_s"] = time.perf_counter() - begin
        if n % 2 == 0:
            want = want if want is not None else row["judged"]
            row["same"] = row["judged"] == want  # the judge does not change
        channel.send(row)
    channel.send({"done": True, "reserved": torch.cuda.max_memory_reserved()})
