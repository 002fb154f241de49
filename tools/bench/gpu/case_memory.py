"""Cases about running out of memory, statistics and streams."""
import gc
import json
import os
import threading

import torch
import torch.nn as nn

from case import GIB, MIB, check, rss, set_limit

OOM_TEXT = "CUDA out of memory. Tried to allocate "


def provoke(size):
    """Asks for more than there is; the error that came, without keeping anything alive."""
    try:
        x = torch.empty(size, dtype=torch.uint8, device="cuda")
    except Exception as e:
        check(type(e) is torch.OutOfMemoryError, f"the error is a {type(e).__module__}.{type(e).__name__}: {e}")
        return str(e)
    del x
    return None


def train(steps, interrupt=None):
    """Losses of a small training run; interrupt() runs in the middle of it."""
    torch.manual_seed(7)
    model = nn.Sequential(nn.Linear(512, 2048), nn.GELU(), nn.Linear(2048, 512)).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    losses = []
    for i in range(steps):
        x = torch.randn(256, 512, device="cuda")
        loss = (model(x) - x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        losses.append(loss.item())
        if interrupt and i == steps // 2:
            interrupt()
    return losses


def oom_caught():
    set_limit(GIB)
    plain = train(6)
    texts = []

    def fill():
        held = []
        try:
            while len(held) < 1000:
                held.append(torch.empty(40 * MIB, dtype=torch.uint8, device="cuda"))
        except torch.OutOfMemoryError as e:
            texts.append(str(e))
            check(type(e) is torch.OutOfMemoryError and torch.cuda.OutOfMemoryError is torch.OutOfMemoryError, "another type")
            check(isinstance(e, RuntimeError) and len(e.args) == 1, f"args {e.args!r}")
        check(len(held) > 10, f"only {len(held)} blocks of 40 MiB fitted under 1 GiB")
        held.clear()

    after = train(6, fill)
    check(len(texts) == 1, "nothing ran out")
    check(texts[0].startswith(OOM_TEXT), f"the text begins {texts[0][:100]!r}")
    check("of which" in texts[0] and "is free" in texts[0], "the text lacks PyTorch's numbers")
    check(plain == after, f"training went on with other losses: {plain} and {after}")
    return {"text": texts[0]}


def oom_whole_device():
    """More than the device has, without any limit."""
    total = torch.cuda.get_device_properties(0).total_memory
    text = provoke(2 * total)
    check(text and text.startswith(OOM_TEXT), f"text {text!r}")
    train(2)
    return {"text": text}


class Hungry(torch.autograd.Function):
    """Runs out of memory in backward, which runs on a thread of torch's own."""

    @staticmethod
    def forward(ctx, x):
        return x.clone()

    @staticmethod
    def backward(ctx, grad):
        torch.empty(8 * GIB, dtype=torch.uint8, device="cuda")
        return grad


def oom_in_backward():
    set_limit(GIB)
    x = torch.ones(10, device="cuda", requires_grad=True)
    for _ in range(5):
        try:
            Hungry.apply(x).sum().backward()
        except torch.OutOfMemoryError as e:
            check(str(e).startswith(OOM_TEXT), str(e)[:200])
        else:
            check(False, "nothing ran out")
    x.sum().backward()
    check(x.grad is not None and float(x.grad.sum()) == 10, "the gradient is wrong afterwards")
    return {}


def oom_many(count=1000):
    """200 is the bar; the growth from there to `count` shows smaller leaks."""
    set_limit(GIB)
    keep = torch.ones(3 * MIB, dtype=torch.uint8, device="cuda")
    sizes = (2 * GIB, 1025 * MIB, 8 * GIB)
    marks, allocated, reserved = {}, set(), set()
    for i in range(1, count + 1):
        check(provoke(sizes[i % 3]) is not None, "nothing ran out")
        if i in (20, 200, count):
            gc.collect()
            marks[i] = rss()
            allocated.add(torch.cuda.memory_allocated())
            reserved.add(torch.cuda.memory_reserved())
    check(len(allocated) == 1 and len(reserved) == 1, f"allocated {allocated}, reserved {reserved} bytes")
    check(int(keep.sum(dtype=torch.int64)) == 3 * MIB, "a live tensor changed")
    first, later = marks[200] - marks[20], marks[count] - marks[200]
    check(first <= 2 * MIB, f"RSS grew by {first} bytes from the 20th to the 200th")
    check(later <= 2 * MIB, f"RSS grew by {later} bytes from the 200th to the {count}th")
    ooms = torch.cuda.memory_stats()["num_ooms"]
    check(ooms == count, f"num_ooms is {ooms} after {count}")
    return {"rss_growth_bytes": first, "rss_growth_later_bytes": later}


def oom_cudnn():
    """cuDNN looks for an algorithm whose workspace fits, and must see running out as what it is."""
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(1)
    conv = nn.Conv2d(64, 128, 5, padding=2).cuda()
    outcomes = {}
    with torch.no_grad():
        x = torch.randn(16, 64, 192, 192, device="cuda")
        torch.backends.cudnn.benchmark = False
        wanted = conv(x).cpu()
        torch.cuda.synchronize()
        torch.cuda.empty_cache()
        torch.backends.cudnn.benchmark = True
        need = wanted.numel() * wanted.element_size()
        for slack in (0, 2, 8, 32, 128, 1024):
            torch.cuda.empty_cache()
            set_limit(torch.cuda.memory_reserved() + need + slack * MIB)
            try:
                got = conv(x)
            except torch.OutOfMemoryError as e:
                check(str(e).startswith(OOM_TEXT), str(e)[:200])
                outcomes[slack] = "out of memory"
                continue
            check(torch.allclose(got.cpu(), wanted, rtol=1e-3, atol=1e-3), f"the result is wrong with {slack} MiB to spare")
            outcomes[slack] = "right"
            del got
    check(outcomes[1024] == "right", f"1 GiB to spare does not do: {outcomes}")
    return {"outcomes": outcomes}


def cudnn_benchmark():
    """cudnn.benchmark = True in training, over several shapes."""
    import torchvision

    torch.backends.cudnn.benchmark = True
    torch.manual_seed(1)
    model = torchvision.models.resnet18().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    losses = []
    for size in (96, 128, 160, 96, 128):
        x = torch.randn(8, 3, size, size, device="cuda")
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
    check(all(v == v and abs(v) < 1e6 for v in losses), f"losses {losses}")
    return {"losses": losses}


def fraction():
    total = torch.cuda.get_device_properties(0).total_memory
    torch.cuda.set_per_process_memory_fraction(0.01)
    got = torch.cuda.get_per_process_memory_fraction()
    check(abs(got - 0.01) < 1e-12, f"the fraction reads {got}")
    check(provoke(int(total * 0.02)) is not None, "twice the limit was given")
    check(provoke(int(total * 0.005)) is None, "half of the limit was refused")
    torch.cuda.set_per_process_memory_fraction(1.0)
    check(provoke(int(total * 0.02)) is None, "refused after the limit was lifted")
    return {}


def stats():
    """The same calls under two allocators; the parent compares the facts. Torch's own calls, as
    trainers make them."""
    torch.cuda.init()
    keys = sorted(k for k in torch.cuda.memory_stats() if not k.startswith("ashlar."))  # those that torch has
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()
    seen = []

    def look():
        s = torch.cuda.memory_stats()
        seen.append([torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated(), s["requested_bytes.all.current"],
                     s["active_bytes.all.current"], s["allocation.all.current"], s["allocation.all.allocated"],
                     s["allocation.all.freed"], s["allocated_bytes.all.allocated"], s["allocated_bytes.small_pool.current"],
                     s["allocated_bytes.large_pool.current"], s["num_ooms"]])

    live = {}
    for i, size in enumerate((1, 512, 513, 1000, 1 << 20, (1 << 20) + 1, 3 << 20, 10 << 20, 30 << 20, (20 << 20) + 5, 200 << 20)):
        live[i] = torch.empty(size, dtype=torch.uint8, device="cuda")
        look()
    for i in (1, 3, 6, 10):
        del live[i]
        look()
    reserved = [torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved()]
    torch.cuda.reset_peak_memory_stats()
    look()
    for _ in range(100):
        x = torch.empty(4096, dtype=torch.uint8, device="cuda")
        del x
    look()
    torch.cuda.empty_cache()
    look()
    reserved += [torch.cuda.memory_reserved(), torch.cuda.max_memory_reserved()]

    segments = torch.cuda.memory_snapshot()
    check(sum(s["total_size"] for s in segments) == torch.cuda.memory_reserved(), "segments do not add up to memory_reserved()")
    check(sum(s["allocated_size"] for s in segments) == torch.cuda.memory_allocated(), "blocks do not add up to memory_allocated()")
    for abbreviated in (False, True):
        check("Allocated memory" in torch.cuda.memory_summary(abbreviated=abbreviated), "memory_summary() has no table")
    accelerator = getattr(torch, "accelerator", None)
    if hasattr(accelerator, "memory_allocated"):
        check(accelerator.memory_allocated() == torch.cuda.memory_allocated(), "torch.accelerator.memory_allocated() differs")
        check(accelerator.max_memory_reserved() == torch.cuda.max_memory_reserved(), "torch.accelerator.max_memory_reserved() differs")
        accelerator.reset_peak_memory_stats()
        accelerator.empty_cache()
    torch.cuda.memory_stats_as_nested_dict()
    torch.cuda.mem_get_info()
    torch.cuda.host_memory_stats()
    for device in (0, "cuda", "cuda:0", torch.device("cuda", 0), None):
        check(torch.cuda.memory_allocated(device) == torch.cuda.memory_allocated(), f"device {device!r} reads otherwise")
    with torch.profiler.profile(profile_memory=True):
        torch.ones(1000, device="cuda").sum().item()
    return {"keys": keys, "seen": seen, "reserved": reserved}


def dump(path):
    """A recorded history, written by torch's own function."""
    torch.cuda.memory._record_memory_history(max_entries=100000, stacks="python")
    losses = train(4)
    check(provoke_under_limit() is not None, "nothing ran out")
    torch.cuda.memory._dump_snapshot(path)
    snapshot = torch.cuda.memory._snapshot()
    events = sum(len(t) for t in snapshot["device_traces"])
    actions = sorted({e["action"] for t in snapshot["device_traces"] for e in t})
    framed = sum(1 for t in snapshot["device_traces"] for e in t if e["action"] == "alloc" and e.get("frames"))
    torch.cuda.memory._record_memory_history(enabled=None)
    check(events > 100, f"only {events} events")
    for action in ("alloc", "free_requested", "free_completed", "oom"):
        check(action in actions, f"no {action} among {actions}")
    return {"events": events, "with_stacks": framed, "actions": actions, "bytes": os.path.getsize(path), "loss": losses[-1]}


def provoke_under_limit():
    set_limit(2 * GIB)
    text = provoke(4 * GIB)
    torch.cuda.set_per_process_memory_fraction(1.0)
    return text


def record_stream(marked=True, rounds=60):
    """A side stream reads a tensor late; its owner is gone by then and the memory is asked for
    again. Without record_stream (marked=False) the data must go wrong, or the case proves nothing."""
    side = torch.cuda.Stream()
    wrong = 0
    torch.cuda.synchronize()
    for i in range(rounds):
        n = (1000, 100_000, 3 << 20)[i % 3]
        x = torch.full((n,), float(i + 1), device="cuda")
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            torch.cuda._sleep(4_000_000)  # about 2 ms
            late = x.double().sum()
        if marked:
            x.record_stream(side)
        del x
        others = [torch.full((n,), -1.0, device="cuda") for _ in range(3)]
        torch.cuda.synchronize()
        wrong += late.item() != float(i + 1) * n
        del others, late
    if marked:
        check(wrong == 0, f"{wrong} of {rounds} sums are wrong: memory in use by another stream was given away")
    else:
        check(wrong > 0, "nothing went wrong without record_stream: the case cannot tell")
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    check(torch.cuda.memory_allocated() == 0, f"{torch.cuda.memory_allocated()} bytes stay allocated")
    return {"wrong": wrong}


def threads(count=8, turns=300):
    """Every thread fills, reads back and frees on a stream of its own."""
    errors = []

    def work(number):
        try:
            generator = torch.Generator().manual_seed(number)
            stream = torch.cuda.Stream()
            with torch.cuda.stream(stream):
                live = []
                bad = torch.zeros((), dtype=torch.int64, device="cuda")
                for turn in range(turns):
                    n = int(torch.randint(1, 1 << 20, (), generator=generator))
                    value = number * 100_000 + turn
                    live.append((torch.full((n,), value, dtype=torch.int32, device="cuda"), value))
                    if len(live) > 12:
                        x, value = live.pop(int(torch.randint(0, 12, (), generator=generator)))
                        bad += (x != value).sum()
                        del x
                for x, value in live:
                    bad += (x != value).sum()
                if int(bad):
                    errors.append(f"thread {number}: {int(bad)} numbers changed")
        except Exception as e:
            errors.append(f"thread {number}: {type(e).__name__}: {e}")

    team = [threading.Thread(target=work, args=(k,)) for k in range(count)]
    for t in team:
        t.start()
    for t in team:
        t.join(100)
    check(not any(t.is_alive() for t in team), "a thread does not end")
    check(not errors, "; ".join(errors))
    return {}


def batch_finder():
    """accelerate tells out of memory by the error's type and text."""
    from accelerate.utils import find_executable_batch_size

    set_limit(GIB)
    tried = []

    @find_executable_batch_size(starting_batch_size=4096)
    def go(batch_size):
        tried.append(batch_size)
        return torch.empty(batch_size, MIB, dtype=torch.uint8, device="cuda").shape[0]

    check(go() == tried[-1] and 256 <= tried[-1] < 1024, f"batch sizes {tried}")
    return {"tried": tried}


def trainer(folder):
    """transformers' Trainer with its memory metrics, on a tiny model."""
    import dataclasses

    from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

    config = GPT2Config(n_layer=2, n_embd=128, n_head=4, vocab_size=1000)
    rows = [{"input_ids": torch.randint(0, 1000, (64,)), "labels": torch.randint(0, 1000, (64,))} for _ in range(64)]
    wanted = {"output_dir": folder, "max_steps": 6, "per_device_train_batch_size": 8, "report_to": "none", "logging_steps": 2,
              "save_strategy": "no", "disable_tqdm": True, "skip_memory_metrics": False, "bf16": True}
    known = {f.name for f in dataclasses.fields(TrainingArguments)}
    arguments = TrainingArguments(**{k: v for k, v in wanted.items() if k in known})
    result = Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=rows).train()
    check(result.global_step == 6 and result.training_loss > 0, f"{result}")
    return {"metrics": json.loads(json.dumps(result.metrics, default=float))}
