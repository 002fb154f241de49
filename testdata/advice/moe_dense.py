CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint", "half"], "fixes": ["micro_batch", "checkpoint", "half", "optimizer", "empty_cache"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class DenseMoE(nn.Module):
    """Every expert sees every token; the router only weights them."""

    def __init__(self, d=256, experts=8):
        super().__init__()
        self.router, self.norm = nn.Linear(d, experts), nn.LayerNorm(d)
        self.experts = nn.ModuleList([nn.Sequential(nn.Linear(d, 3 * d), nn.GELU(), nn.Linear(3 * d, d)) for _ in range(experts)])

    def forward(self, x):
        h = self.norm(x)
        weights = self.router(h).softmax(-1)
        return x + sum(w.unsqueeze(-1) * expert(h) for w, expert in zip(weights.unbind(-1), self.experts))


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.layers, self.head = nn.Embedding(4000, 256), nn.ModuleList([DenseMoE() for _ in range(4)]), nn.Linear(256, 4000)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return self.head(x)


limit()
model = LM().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    ids = torch.randint(0, 4000, (8, 513), device="cuda")
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for part in ids.chunk(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            logits = model(part[:, :-1])
        (F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()) / parts).backward()
    opt.step()
