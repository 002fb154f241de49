CASE = {"root": "capacity", "cures": ["half", "checkpoint", "micro_batch"], "fixes": ["half", "checkpoint", "micro_batch", "optimizer", "empty_cache"]}
# LoRA on a frozen model in float32.
import math
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint as ckpt
from case import FIX, limit


class LoRA(nn.Module):
    def __init__(self, base, rank=8):
        super().__init__()
        self.base = base
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / math.sqrt(base.in_features))
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + F.linear(F.linear(x, self.a), self.b)


class Block(nn.Module):
    def __init__(self, d=1024, heads=16):
        super().__init__()
        self.heads = heads
        self.n1, self.n2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.q, self.k, self.v, self.o = (nn.Linear(d, d) for _ in range(4))
        self.ff1, self.ff2 = nn.Linear(d, 4 * d), nn.Linear(4 * d, d)

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        h = self.n1(x)
        att = F.scaled_dot_product_attention(self.split(self.q(h)), self.split(self.k(h)), self.split(self.v(h)), is_causal=True)
        x = x + self.o(att.transpose(1, 2).flatten(2))
        return x + self.ff2(F.gelu(self.ff1(self.n2(x))))


class Base(nn.Module):
    def __init__(self, depth=7, d=1024):
        super().__init__()
        self.emb, self.blocks, self.head = nn.Embedding(8000, d), nn.ModuleList(Block(d) for _ in range(depth)), nn.Linear(d, 2000)

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            x = ckpt.checkpoint(block, x, use_reentrant=False) if FIX == "checkpoint" else block(x)
        return self.head(x)


def adapt(model):
    model.requires_grad_(False)
    for block in model.blocks:
        block.q, block.v = LoRA(block.q), LoRA(block.v)
    return model


limit()
with torch.device("cuda"):
    torch.set_default_dtype(torch.bfloat16 if FIX == "half" else torch.float32)
    model = adapt(Base())
    torch.set_default_dtype(torch.float32)
tuned = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.SGD(tuned, lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(tuned, lr=2e-4)
for step in range(4):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    ids = torch.randint(0, 8000, (4, 257), device="cuda")
    parts = 2 if FIX == "micro_batch" else 1
    for rows in ids.chunk(parts):
        loss = F.cross_entropy(model(rows[:, :-1]).flatten(0, 1), rows[:, 1:].flatten() % 2000)
        (loss / parts).backward()
    opt.step()
    opt.zero_grad()
