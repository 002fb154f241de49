#!/usr/bin/env python3
"""Measures the peak memory of training steps of small models on a GPU, one case per process.

usage: families.py CASE   one JSON line
       families.py list   the names of the cases, one in each line

The cases are in families.json beside this file. A case: m (fields of the config, fam is the model_type), head (causal, masked,
seq2seq, image, sequence, token, question, reward, contrastive), b, s, and optionally ts (target length), dtype (fp32, fp16; else
bf16), autocast, opt (adamw_fused, adamw_foreach, sgd, sgdm), ckpt (full), attn (eager), mask (left, right), accum, clip, lora.
The line has "trace": the allocations (size) and frees (minus the number of the allocation, from 1 on) of the third step.
"""
import json
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def cases():
    with open(os.path.join(HERE, "families.json")) as f:
        shared = json.load(f)
    out = {}
    for name, c in shared["cases"].items():
        c = dict(c)
        c["m"] = shared["models"][c["m"]]
        out[name] = c
    return out


def inputs(torch, c, cfg, fam, head, dt):
    b, s = c["b"], c.get("s", 0)
    if head == "reward":
        b *= 2
    kw = {}
    if fam == "whisper":
        size = (b, cfg.num_mel_bins, 2 * cfg.max_source_positions)
        kw["input_features"] = torch.randn(*size, device="cuda", dtype=dt)
        kw["labels"] = torch.randint(0, cfg.vocab_size, (b, c["ts"]), device="cuda")
        kw["use_cache"] = False
        return kw
    if head == "image":
        v = getattr(cfg, "vision_config", cfg)
        size = (b, v.num_channels, v.image_size, v.image_size)
        kw["pixel_values"] = torch.randn(*size, device="cuda", dtype=dt)
        kw["labels"] = torch.randint(0, cfg.num_labels, (b,), device="cuda")
        return kw
    if head == "contrastive":
        v = cfg.vision_config
        kw["input_ids"] = torch.randint(0, cfg.text_config.vocab_size, (b, s), device="cuda")
        size = (b, v.num_channels, v.image_size, v.image_size)
        kw["pixel_values"] = torch.randn(*size, device="cuda", dtype=dt)
        kw["return_loss"] = True
    else:
        kw["input_ids"] = torch.randint(0, cfg.vocab_size, (b, s), device="cuda")
    if head in ("causal", "masked"):
        kw["labels"] = kw["input_ids"]
    elif head == "seq2seq":
        kw["labels"] = torch.randint(0, cfg.vocab_size, (b, c["ts"]), device="cuda")
    elif head == "sequence":
        kw["labels"] = torch.randint(0, cfg.num_labels, (b,), device="cuda")
    elif head == "token":
        kw["labels"] = torch.randint(0, cfg.num_labels, (b, s), device="cuda")
    elif head == "question":
        kw["start_positions"] = torch.randint(0, s, (b,), device="cuda")
        kw["end_positions"] = torch.randint(0, s, (b,), device="cuda")
    if c.get("mask"):
        am = torch.ones(b, s, device="cuda", dtype=torch.long)
        if c["mask"] == "left":
            am[1:, : s // 2] = 0
        elif c["mask"] == "right":
            am[1:, s // 2 :] = 0
        kw["attention_mask"] = am
    if head in ("causal", "sequence", "token", "question", "reward", "seq2seq") and hasattr(cfg, "use_cache"):
        if fam not in ("bert", "roberta", "distilbert", "modernbert"):
            kw["use_cache"] = False
    return kw


def lora_class(torch):
    linear = torch.nn.functional.linear

    class LoRA(torch.nn.Module):
        def __init__(self, base, rank, dtype):
            super().__init__()
            self.base = base
            self.a = torch.nn.Parameter(torch.zeros(rank, base.in_features, device="cuda", dtype=dtype).normal_())
            self.b = torch.nn.Parameter(torch.zeros(base.out_features, rank, device="cuda", dtype=dtype))

        def forward(self, x):
            return self.base(x) + linear(linear(x, self.a), self.b)

    return LoRA


def one(name):
    c = cases()[name]
    import torch
    import transformers as T

    types = {"fp32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}
    rec = {"case": name, "spec": c, "torch": torch.__version__, "transformers": T.__version__}
    torch.manual_seed(0)
    torch.cuda.init()
    x = torch.zeros(1, device="cuda")
    del x
    torch.cuda.empty_cache()
    m = dict(c["m"])
    fam, head = m.pop("fam"), c.get("head", "causal")
    if head == "reward":
        m["num_labels"] = 1
    cfg = T.AutoConfig.for_model(fam, **m)
    heads = {
        "causal": T.AutoModelForCausalLM, "masked": T.AutoModelForMaskedLM, "seq2seq": T.AutoModelForSeq2SeqLM,
        "image": T.AutoModelForImageClassification, "sequence": T.AutoModelForSequenceClassification,
        "token": T.AutoModelForTokenClassification, "question": T.AutoModelForQuestionAnswering,
        "reward": T.AutoModelForSequenceClassification, "contrastive": T.AutoModel,
    }
    cls = T.AutoModelForSpeechSeq2Seq if fam == "whisper" else heads[head]
    dt = types[c.get("dtype", "bf16")]
    with torch.device("cuda"):
        model = cls.from_config(cfg, dtype=dt, attn_implementation=c.get("attn", "sdpa"))
    rec["class"] = type(model).__name__
    rec["params"] = sum(p.numel() for p in model.parameters())
    rec["named"] = [[n, list(p.shape)] for n, p in model.named_parameters()]
    rec["after_build"] = torch.cuda.memory_allocated()
    model.train()
    if c.get("lora"):
        LoRA = lora_class(torch)
        for p in model.parameters():
            p.requires_grad_(False)
        for mod in list(model.modules()):
            for k, ch in list(mod.named_children()):
                if isinstance(ch, torch.nn.Linear) and k != "lm_head":
                    setattr(mod, k, LoRA(ch, c["lora"], dt))
        model.enable_input_require_grads()
    if c.get("ckpt") == "full":
        model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
    ps = [p for p in model.parameters() if p.requires_grad]
    how = c.get("opt", "adamw_fused")
    if how in ("sgd", "sgdm"):
        opt = torch.optim.SGD(ps, lr=1e-4, momentum=0.9 if how == "sgdm" else 0)
    else:
        opt = torch.optim.AdamW(ps, lr=1e-5, fused=how == "adamw_fused", foreach=how == "adamw_foreach")
    for step in range(3):
        if step == 2:
            torch.cuda.synchronize()
            torch.cuda.reset_peak_memory_stats()
            rec["before_step"] = torch.cuda.memory_allocated()
            torch.cuda.memory._record_memory_history(enabled="all", context=None, max_entries=4_000_000)
        for _ in range(c.get("accum", 1)):
            kw = inputs(torch, c, cfg, fam, head, dt)
            with torch.autocast("cuda", torch.bfloat16, enabled=bool(c.get("autocast"))):
                if head == "reward":
                    logits = model(**kw).logits.squeeze(-1)
                    chosen, rejected = torch.chunk(logits, 2)
                    loss = -torch.nn.functional.logsigmoid(chosen - rejected).mean()
                    del logits, chosen, rejected
                else:
                    loss = model(**kw).loss
            loss.backward()
            del loss, kw
        if c.get("clip"):
            torch.nn.utils.clip_grad_norm_(ps, 1.0)
        opt.step()
        opt.zero_grad(set_to_none=True)
    torch.cuda.synchronize()
    st = torch.cuda.memory_stats()
    for k, short in (("allocated", "allocated"), ("reserved", "reserved"), ("requested", "requested")):
        rec[short] = st[k + "_bytes.all.peak"]
    rec["retries"] = st["num_alloc_retries"]
    trace, at, n = [], {}, 0
    for e in torch.cuda.memory._snapshot()["device_traces"][0]:
        if e["action"] == "alloc":
            n += 1
            at[e["addr"]] = n
            trace.append(e["size"])
        elif e["action"] == "free_completed":
            trace.append(-at.pop(e["addr"], 0))
    rec["trace"] = trace
    print(json.dumps(rec, default=str), flush=True)
    os._exit(0)


if __name__ == "__main__":
    if sys.argv[1:] == ["list"]:
        print("\n".join(cases()))
    elif len(sys.argv) == 2:
        one(sys.argv[1])
    else:
        sys.exit(__doc__)
