#!/usr/bin/env python3
"""Measures the peak memory of training and generation on a GPU, to hold plans against.

usage: measure.py all PREDICTED OUT        every case of cases.json, several at a time as memory allows
       measure.py one CASE [--limit BYTES] [--record FILE]
       measure.py sdpa                     which attention backend torch picks
       measure.py selftest                 checks cases.json without a GPU

PREDICTED is what `go -C tools run ./plandiff -predict tools/bench/plan/cases.json` printed, a JSON line per case; cases that
it does not have are left out. It says how much memory a case needs, and the limits that `all` tries some cases under.
Each case runs in a process of its own: three steps of
training, the third one measured after a reset of the peaks, or a whole generation.

A case: m (fields of the config, fam is the model_type), b, s, and optionally ts (target length), dtype (fp32, fp16;
else bf16), autocast, opt (adamw_fused, adamw_foreach, adamw_loop, sgdm, adafactor, master), ckpt (full, selective,
every:K), attn (eager), sdpa (flash pins it; else torch's choice), mask (left, right), accum, clip, zero, lora (rank),
lora_dtype, chunk (tokens of a chunk of the loss), dist (ddp, fsdp, fsdp_mp), save (sync), gen (tokens), static
(length). conf is PYTORCH_CUDA_ALLOC_CONF. alone asks for the whole GPU, so that mem_get_info tells; limits has the case
run again a little above and a little below its smallest limit; record has it recorded, without stacks.
"""
import contextlib
import gzip
import json
import os
import pickle
import subprocess
import sys
import threading

HERE = os.path.dirname(os.path.abspath(__file__))
MARGIN = 0.03  # how far above and below the smallest limit


def cases():
    with open(os.path.join(HERE, "cases.json")) as f:
        shared = json.load(f)
    out = {}
    for name, c in shared["cases"].items():
        c = dict(c)
        if isinstance(c["m"], str):
            c["m"] = shared["models"][c["m"]]
        elif "like" in c["m"]:
            m = dict(c["m"])
            c["m"] = shared["models"][m.pop("like")] | m
        out[name] = c
    return out


def lora_class(torch):
    nn, linear = torch.nn, torch.nn.functional.linear

    class LoRA(nn.Module):
        """A frozen Linear with a low-rank adapter beside it."""

        def __init__(self, base, rank, dtype):
            super().__init__()
            self.base = base
            self.a = nn.Parameter(torch.zeros(rank, base.in_features, device="cuda", dtype=dtype).normal_())
            self.b = nn.Parameter(torch.zeros(base.out_features, rank, device="cuda", dtype=dtype))

        def forward(self, x):
            if self.a.dtype != x.dtype:
                return self.base(x) + linear(linear(x.to(self.a.dtype), self.a), self.b).to(x.dtype)
            return self.base(x) + linear(linear(x, self.a), self.b)

    return LoRA


def group_class(torch):
    from torch.utils.checkpoint import checkpoint

    class Group(torch.nn.Module):
        """Layers that are recomputed together."""

        def __init__(self, layers):
            super().__init__()
            self.layers = torch.nn.ModuleList(layers)

        def through(self, x, kw):
            for layer in self.layers:
                x = layer(x, **kw)
            return x

        def forward(self, x, **kw):
            return checkpoint(self.through, x, kw, use_reentrant=False)

    return Group


def one(name, limit=0, record=None):
    c = cases()[name]
    import torch
    import transformers as T
    from torch.nn.attention import SDPBackend, sdpa_kernel

    types = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    rec = {"case": name, "spec": c}
    torch.manual_seed(0)
    torch.cuda.init()
    x = torch.zeros(1, device="cuda")
    del x
    torch.cuda.empty_cache()
    if limit:
        total = torch.cuda.get_device_properties(0).total_memory
        torch.cuda.set_per_process_memory_fraction(limit / total)
        rec["limit"] = limit
    if c.get("dist"):
        import torch.distributed as dist

        where = f"file:///dev/shm/ashlar_{name}_{os.getpid()}"
        dist.init_process_group("nccl", init_method=where, rank=0, world_size=1, device_id=torch.device("cuda:0"))
    if record:
        torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=4_000_000)
    try:
        run(c, rec, torch, T, types, SDPBackend, sdpa_kernel)
    except torch.OutOfMemoryError as e:
        rec["died"] = str(e)[:300]
    st = torch.cuda.memory_stats()
    for k in ("allocated", "reserved", "requested"):
        rec["peak_" + k] = st[k + "_bytes.all.peak"]
    rec["retries"] = st["num_alloc_retries"]
    free, total = torch.cuda.mem_get_info()
    rec["device_used"] = total - free
    if record:
        with gzip.open(record, "wb") as f:
            pickle.dump(torch.cuda.memory._snapshot(), f)
    print(json.dumps(rec, default=str), flush=True)
    os._exit(0)


def run(c, rec, torch, T, types, SDPBackend, sdpa_kernel):
    nn, F = torch.nn, torch.nn.functional
    m = dict(c["m"])
    fam = m.pop("fam")
    cfg = T.AutoConfig.for_model(fam, **m)
    heads = {"bert": T.AutoModelForMaskedLM, "t5": T.AutoModelForSeq2SeqLM, "vit": T.AutoModelForImageClassification}
    dt = types[c.get("dtype", "bf16")]
    with torch.device("cuda"):
        model = heads.get(fam, T.AutoModelForCausalLM).from_config(
            cfg, dtype=dt, attn_implementation=c.get("attn", "sdpa")
        )
    rec["params"] = sum(p.numel() for p in model.parameters())
    rec["alloc_after_build"] = torch.cuda.memory_allocated()
    rec["config"] = {k: v for k, v in cfg.to_dict().items() if not isinstance(v, dict)}

    def pin():
        return sdpa_kernel(SDPBackend.FLASH_ATTENTION) if c.get("sdpa") == "flash" else contextlib.nullcontext()

    V, b, s = getattr(cfg, "vocab_size", 0), c["b"], c.get("s", 0)
    if c.get("gen"):
        model.eval()
        with torch.no_grad(), pin():
            torch.cuda.reset_peak_memory_stats()
            ids = torch.randint(0, V, (b, s), device="cuda")
            kind = dict(config=cfg)
            cache = T.StaticCache(max_cache_len=c["static"], **kind) if c.get("static") else T.DynamicCache(**kind)
            kw = dict(past_key_values=cache, use_cache=True, logits_to_keep=1)
            o = model(input_ids=ids, cache_position=torch.arange(s, device="cuda"), **kw)
            for i in range(c["gen"]):
                nxt = o.logits[:, -1:].argmax(-1)
                o = model(input_ids=nxt, cache_position=torch.tensor([s + i], device="cuda"), **kw)
            torch.cuda.synchronize()
        return

    model.train()
    if c.get("lora"):
        LoRA = lora_class(torch)
        for p in model.parameters():
            p.requires_grad_(False)
        for mod in list(model.modules()):
            for k, ch in list(mod.named_children()):
                if isinstance(ch, nn.Linear) and k != "lm_head":
                    setattr(mod, k, LoRA(ch, c["lora"], types[c.get("lora_dtype", c.get("dtype", "bf16"))]))
        model.enable_input_require_grads()
    ckpt = c.get("ckpt", "")
    if ckpt == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    elif ckpt == "selective":
        from functools import partial
        from torch.utils.checkpoint import CheckpointPolicy, create_selective_checkpoint_contexts

        a = torch.ops.aten
        save = {
            a.mm.default,
            a.addmm.default,
            a._scaled_dot_product_flash_attention.default,
            a._scaled_dot_product_efficient_attention.default,
            a._scaled_dot_product_cudnn_attention.default,
        }

        def policy(ctx, op, *args, **kwargs):
            return CheckpointPolicy.MUST_SAVE if op in save else CheckpointPolicy.PREFER_RECOMPUTE

        ctx = partial(create_selective_checkpoint_contexts, policy)
        model.gradient_checkpointing_enable(
            gradient_checkpointing_kwargs={"use_reentrant": False, "context_fn": ctx}
        )
    elif ckpt.startswith("every:"):
        k, layers, Group = int(ckpt[6:]), list(model.model.layers), group_class(torch)
        model.model.layers = nn.ModuleList([Group(layers[i : i + k]) for i in range(0, len(layers), k)])
        model.config.num_hidden_layers = len(model.model.layers)
    net, dist = model, c.get("dist", "")
    if dist == "ddp":
        net = nn.parallel.DistributedDataParallel(model, device_ids=[0])
    elif dist:
        from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

        kw = {}
        if dist == "fsdp_mp":
            kw["mp_policy"] = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for layer in model.model.layers:
            fully_shard(layer, **kw)
        fully_shard(model, **kw)
    ps = [p for p in model.parameters() if p.requires_grad]
    how, masters = c.get("opt", "adamw_fused"), None
    if how == "sgdm":
        opt = torch.optim.SGD(ps, lr=1e-4, momentum=0.9)
    elif how == "adafactor":
        opt = torch.optim.Adafactor(ps)
    elif how == "master":
        masters = [p.detach().float() for p in ps]
        opt = torch.optim.AdamW(masters, lr=1e-5, fused=True)
    else:
        opt = torch.optim.AdamW(ps, lr=1e-5, fused=how == "adamw_fused", foreach=how == "adamw_foreach")
    for step in range(3):
        if step == 2:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            rec["alloc_before_step"] = torch.cuda.memory_allocated()
        for _ in range(c.get("accum", 1)):
            kw = {}
            if fam == "vit":
                size = (b, cfg.num_channels, cfg.image_size, cfg.image_size)
                kw["pixel_values"] = torch.randn(*size, device="cuda", dtype=dt)
                kw["labels"] = torch.randint(0, cfg.num_labels, (b,), device="cuda")
            else:
                ids = torch.randint(0, V, (b, s), device="cuda")
                kw["input_ids"] = ids
                kw["labels"] = torch.randint(0, V, (b, c["ts"]), device="cuda") if c.get("ts") else ids
                del ids
            if c.get("mask"):
                am = torch.ones(b, s, device="cuda", dtype=torch.long)
                if c["mask"] == "left":
                    am[1:, : s // 2] = 0
                else:
                    am[1:, s // 2 :] = 0
                kw["attention_mask"] = am
                del am
            if fam not in ("bert", "vit"):
                kw["use_cache"] = False
            with pin():
                with torch.autocast("cuda", torch.bfloat16, enabled=bool(c.get("autocast"))):
                    if c.get("chunk"):
                        from torch.utils.checkpoint import checkpoint

                        h = net.model(input_ids=kw["input_ids"], use_cache=False).last_hidden_state
                        h = h[:, :-1].reshape(-1, h.shape[-1])
                        y = kw["input_ids"][:, 1:].reshape(-1)

                        def part(h, y):
                            return F.cross_entropy(model.lm_head(h).float(), y, reduction="sum")

                        loss, n = 0, c["chunk"]
                        for i in range(0, h.shape[0], n):
                            loss = loss + checkpoint(part, h[i : i + n], y[i : i + n], use_reentrant=False)
                        loss = loss / y.numel()
                        del h, y
                    else:
                        loss = net(**kw).loss
                loss.backward()
            del loss, kw
        if c.get("clip"):
            nn.utils.clip_grad_norm_(ps, 1.0)
        if masters:
            for mp, p in zip(masters, ps):
                mp.grad = p.grad.float()
                p.grad = None
            opt.step()
            opt.zero_grad(set_to_none=True)
            with torch.no_grad():
                for mp, p in zip(masters, ps):
                    p.copy_(mp)
        else:
            opt.step()
            opt.zero_grad(set_to_none=c.get("zero") != "keep")
        if c.get("save"):
            weights, state = model.state_dict(), opt.state_dict()["state"]
            copy = {k: v.detach().clone() for k, v in weights.items()}, [
                {k: v.clone() for k, v in st.items()} for st in state.values()
            ]
            torch.cuda.synchronize()
            del copy, weights, state
    torch.cuda.synchronize()


def sdpa():
    import torch

    names = {0: "math", 1: "flash", 2: "efficient", 3: "cudnn"}
    print("| dtype | d of q, k | d of v | mask | dropout | backend |\n|---|---|---|---|---|---|")
    for dt in (torch.bfloat16, torch.float32):
        for dq, dv in ((64, 64), (128, 128), (192, 128), (256, 256)):
            for mask in ("none (causal)", "padding", "with a gradient"):
                for p in (0.0, 0.1):
                    q = torch.empty(2, 1024, 8, dq, device="cuda", dtype=dt).transpose(1, 2).requires_grad_()
                    v = torch.empty(2, 1024, 8, dv, device="cuda", dtype=dt).transpose(1, 2).requires_grad_()
                    am = None
                    if mask == "padding":
                        am = torch.ones(2, 1, 1024, 1024, device="cuda", dtype=torch.bool)
                    elif mask != "none (causal)":
                        am = torch.zeros(1, 8, 1024, 1024, device="cuda", dtype=dt, requires_grad=True)
                    pick = names[torch._fused_sdp_choice(q, q, v, am, p, am is None)]
                    print(f"| {str(dt)[6:]} | {dq} | {dv} | {mask} | {p} | {pick} |", flush=True)


def everything(predicted, out):
    """Runs all cases, and those that ask for it under limits, alone or recorded."""
    plan = {}
    with open(predicted) as f:
        for line in f:
            p = json.loads(line)
            plan[p["case"]] = p
    todo = []  # (what, arguments, GiB, alone)
    for name, c in cases().items():
        if not plan.get(name, {}).get("peak_reserved_bytes"):
            continue  # what was not planned before is not measured
        need = plan[name]["peak_reserved_bytes"] / 2**30 * 1.08 + 2
        extra = ["--record", os.path.join(out, f"{name}.pickle.gz")] if c.get("record") else []
        todo.append((name, [name] + extra, need, bool(c.get("alone"))))
        if c.get("limits"):
            least = plan[name]["smallest_limit_bytes"]
            for sign in (1, -1):
                limit = int(least * (1 + sign * MARGIN))
                todo.append((f"{name} {sign * MARGIN:+.0%}", [name, "--limit", str(limit)], need, False))
    todo.sort(key=lambda t: (not t[3], -t[2]))
    free, lock, lines = [134.0], threading.Condition(), []

    def go(what, args, need):
        env = dict(os.environ)
        conf = cases()[args[0]].get("conf")
        if conf:
            env["PYTORCH_CUDA_ALLOC_CONF"] = conf
        p = subprocess.run([sys.executable, __file__, "one", *args], capture_output=True, text=True, env=env)
        got = [ln for ln in p.stdout.splitlines() if ln.startswith("{")]
        rec = json.loads(got[-1]) if got else {"case": args[0], "error": p.stderr[-800:]}
        with lock:
            lines.append(rec)
            free[0] += need
            lock.notify_all()
        gib = rec.get("peak_allocated", 0) / 2**30
        end = "died" if rec.get("died") else rec.get("error", "ok")[-300:]
        print(f"{what}: allocated {gib:.3f} GiB, reserved {rec.get('peak_reserved', 0) / 2**30:.3f}, {end}", flush=True)

    threads = []
    while todo:
        with lock:
            pick = next((t for t in todo if t[2] <= free[0] and (not t[3] or free[0] >= 133.9)), None)
            if pick is None or len([t for t in threads if t.is_alive()]) >= 12:
                lock.wait(2)
                continue
            todo.remove(pick)
            what, args, need, alone = pick
            need = 134.0 if alone else need
            free[0] -= need
        t = threading.Thread(target=go, args=(what, args, need))
        t.start()
        threads.append(t)
    for t in threads:
        t.join()
    with open(os.path.join(out, "measured.jsonl"), "w") as f:
        for rec in sorted(lines, key=lambda r: (r["case"], r.get("limit", 0))):
            f.write(json.dumps(rec) + "\n")


def selftest():
    known = set(
        "m b s ts dtype autocast opt ckpt attn sdpa mask accum clip zero lora lora_dtype chunk dist save gen static conf"
        " alone limits record".split()
    )
    for name, c in cases().items():
        assert c["m"].get("fam"), name
        assert not set(c) - known, (name, set(c) - known)
    print(len(cases()), "cases")


if __name__ == "__main__":
    args = sys.argv[1:]
    if args[:1] == ["one"]:
        opts = dict(zip(args[2::2], args[3::2]))
        one(args[1], int(opts.get("--limit", 0)), opts.get("--record"))
    elif args[:1] == ["all"] and len(args) == 3:
        everything(args[1], args[2])
    elif args == ["sdpa"]:
        sdpa()
    elif args == ["selftest"]:
        selftest()
    else:
        sys.exit(__doc__)
