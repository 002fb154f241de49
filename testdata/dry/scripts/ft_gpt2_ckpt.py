# GPT-2 small from scratch, activation checkpointing + gradient accumulation, bf16 autocast
import argparse
import math

import torch
from transformers import AutoModelForCausalLM, GPT2Config

parser = argparse.ArgumentParser()
parser.add_argument("--micro-batch", type=int, default=4)
parser.add_argument("--accum", type=int, default=3)
parser.add_argument("--ctx", type=int, default=768)
parser.add_argument("--steps", type=int, default=4)
parser.add_argument("--lr", type=float, default=6e-4)
opts = parser.parse_args()

torch.manual_seed(1234)
torch.backends.cuda.matmul.allow_tf32 = True
model = AutoModelForCausalLM.from_config(GPT2Config(n_positions=1024))
model.gradient_checkpointing_enable(gradient_checkpointing_kwargs={"use_reentrant": False})
model.config.use_cache = False
model.to("cuda").train()

decay = [p for p in model.parameters() if p.dim() >= 2]
rest = [p for p in model.parameters() if p.dim() < 2]
optimizer = torch.optim.AdamW([{"params": decay, "weight_decay": 0.1}, {"params": rest, "weight_decay": 0.0}],
                              lr=opts.lr, betas=(0.9, 0.95), foreach=True)


def lr_at(step):
    return opts.lr * 0.5 * (1 + math.cos(math.pi * step / opts.steps))


tokens = torch.randint(0, 50257, (200_000,))


def get_batch():
    start = torch.randint(0, len(tokens) - opts.ctx, (opts.micro_batch,))
    return torch.stack([tokens[s:s + opts.ctx] for s in start]).pin_memory().to("cuda", non_blocking=True)


for step in range(opts.steps):
    for group in optimizer.param_groups:
        group["lr"] = lr_at(step)
    total = 0.0
    for micro in range(opts.accum):
        ids = get_batch()
        with torch.autocast(device_type="cuda", dtype=torch.bfloat16):
            loss = model(input_ids=ids, labels=ids).loss / opts.accum
        loss.backward()
        total += loss.item()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    print(f"step {step} loss {total:.4f} norm {norm.item():.2f} mem {torch.cuda.max_memory_allocated() / 2**20:.0f} MiB")
