"""Measure runs of transformers' Trainer, and of PEFT's adapters in a loop of one's own.

usage: trainer.py CASE          one JSON line
       trainer.py list          the names of the cases
       trainer.py all FILE      every case, each in a process of its own

The cases are in trainer.json (or trainer.cases.json) beside this file; trainer.py and
`ashlar plan` both read them. The scored part is the last step with what Trainer does after it, or
the whole run where a case says so.
"""
import json, os, subprocess, sys, tempfile

here = os.path.dirname(os.path.abspath(__file__))
path = next(p for n in ("trainer.cases.json", "trainer.json") if os.path.exists(p := os.path.join(here, n)))
CASES = {c["case"]: c for c in json.load(open(path))}
PEFT_KEYS = {"use_peft", "lora_r", "lora_target_modules", "lora_dropout"}


def build(c, device):
    import torch, transformers as T
    m = dict(c["model"])
    m.pop("architectures", None)
    dtype = getattr(torch, m.pop("dtype"))
    cfg = T.AutoConfig.for_model(m.pop("model_type"), **m)
    cls = T.AutoModelForMaskedLM if cfg.model_type == "bert" else T.AutoModelForCausalLM
    with torch.device(device):
        return cls.from_config(cfg, dtype=dtype), cfg.vocab_size


def lora(model, r, targets, dropout=0.0):
    import peft
    return peft.get_peft_model(model, peft.LoraConfig(r=r, target_modules=targets, lora_dropout=dropout))


def reset(rec):
    import torch
    torch.cuda.synchronize()
    torch.cuda.reset_peak_memory_stats()
    rec["before_step"] = torch.cuda.memory_allocated()


def trainer(c, rec):
    import torch, transformers as T
    args = dict(c["args"])
    adapters = {k: args.pop(k) for k in list(args) if k in PEFT_KEYS}
    model, vocab = build(c, "cpu")
    rec["params"] = sum(p.numel() for p in model.parameters())
    if adapters:
        model = lora(model, adapters["lora_r"], adapters["lora_target_modules"], adapters.get("lora_dropout", 0.0))
    steps, seq = c.get("steps", 3), c["seq"]
    size, parts = args["per_device_train_batch_size"], args.get("gradient_accumulation_steps", 1)

    class Data(torch.utils.data.Dataset):
        def __init__(self, lengths): self.lengths = lengths
        def __len__(self): return len(self.lengths)
        def __getitem__(self, i):
            x = torch.randint(5, vocab, (self.lengths[i],))
            seen = torch.ones_like(x)
            if c.get("mask") == "right" and i % size: seen[seq // 2:] = 0
            return {"input_ids": x, "labels": x.clone(), "attention_mask": seen}

    def padded(rows):
        n = max(len(r["input_ids"]) for r in rows)
        fill = {"input_ids": 0, "labels": -100, "attention_mask": 0}
        return {k: torch.stack([torch.nn.functional.pad(r[k], (0, n - len(r[k])), value=v) for r in rows]) for k, v in fill.items()}

    class Scored(T.TrainerCallback):
        def on_train_begin(self, *a, **k): rec["after_build"] = torch.cuda.memory_allocated()
        def on_step_begin(self, a, state, control, **k):
            if state.global_step == steps - 1 and c.get("scored") != "run": reset(rec)

    more = {}
    if args.get("eval_strategy"):
        more["eval_dataset"] = Data([seq] * (c.get("kept", 2) * args.get("per_device_eval_batch_size", 8)))
        if c.get("kept"): more["compute_metrics"] = lambda p: {"n": float(len(p.label_ids))}
    if c.get("lengths"): more["data_collator"] = padded
    with tempfile.TemporaryDirectory() as out:
        a = T.TrainingArguments(out, max_steps=steps, report_to=[], disable_tqdm=True, **{"save_strategy": "no"} | args)
        t = T.Trainer(model=model, args=a, train_dataset=Data(c.get("lengths") or [seq] * (size * parts * (steps + 1))), callbacks=[Scored()], **more)
        if c.get("scored") == "run": torch.cuda.reset_peak_memory_stats()
        t.train()


def own(c, rec):
    import contextlib, torch
    model, vocab = build(c, "cuda")
    rec["params"] = sum(p.numel() for p in model.parameters())
    if c.get("checkpoint"): model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    model = lora(model, c["lora_r"], c["lora_target_modules"])
    model.train()
    rec["after_build"] = torch.cuda.memory_allocated()
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-5, fused=True)
    cache = {} if c["model"]["model_type"] == "bert" else {"use_cache": False}
    cast = lambda: torch.autocast("cuda", torch.bfloat16) if c.get("autocast") else contextlib.nullcontext()
    for step in range(3):
        if step == 2: reset(rec)
        ids = torch.randint(5, vocab, (c["batch"], c["seq"]), device="cuda")
        with cast():
            loss = model(input_ids=ids, labels=ids, **cache).loss
        loss.backward()
        del loss, ids
        opt.step()
        opt.zero_grad(set_to_none=True)


def main(name):
    import torch
    c, rec = CASES[name], {"case": name}
    torch.manual_seed(0)
    torch.cuda.init()
    x = torch.zeros(1, device="cuda")
    del x
    torch.cuda.empty_cache()
    (own if c.get("loop") == "own" else trainer)(c, rec)
    torch.cuda.synchronize()
    s = torch.cuda.memory_stats()
    rec |= {"allocated": s["allocated_bytes.all.peak"], "reserved": s["reserved_bytes.all.peak"], "requested": s["requested_bytes.all.peak"], "retries": s["num_alloc_retries"]}
    sys.stdout.flush()
    print("\n" + json.dumps(rec))


if sys.argv[1] == "list":
    print("\n".join(CASES))
elif sys.argv[1] == "all":
    with open(sys.argv[2], "w") as f:
        for name in CASES:
            p = subprocess.run([sys.executable, __file__, name], capture_output=True, text=True)
            line = p.stdout.strip().splitlines()[-1] if p.returncode == 0 else json.dumps({"case": name, "error": p.stderr[-800:]})
            f.write(line + "\n")
            print(line)
else:
    main(sys.argv[1])
