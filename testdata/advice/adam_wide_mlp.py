CASE = {"root": "capacity", "cures": ["optimizer", "half"], "fixes": ["optimizer", "half", "micro_batch", "checkpoint", "empty_cache"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Ranker(nn.Module):
    """Click prediction: large embedding tables and a tower."""

    def __init__(self, tables=4, rows=200000, d=64):
        super().__init__()
        self.tables = nn.ModuleList([nn.Embedding(rows, d) for _ in range(tables)])
        self.tower = nn.Sequential(nn.Linear(tables * d, 4096), nn.ReLU(), nn.Linear(4096, 4096), nn.ReLU(), nn.Linear(4096, 1))

    def forward(self, ids):
        x = torch.cat([table(ids[:, i]) for i, table in enumerate(self.tables)], 1)
        return (checkpoint(self.tower, x, use_reentrant=False) if FIX == "checkpoint" else self.tower(x)).squeeze(1)


limit()
model = Ranker().cuda()
if FIX == "half":
    model.to(torch.bfloat16)
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(4):
    ids, clicks = torch.randint(0, 200000, (256, 4), device="cuda"), torch.rand(256, device="cuda").round()
    parts = 2 if FIX == "micro_batch" else 1
    opt.zero_grad()
    for x, y in zip(ids.chunk(parts), clicks.chunk(parts)):
        F.binary_cross_entropy_with_logits(model(x).float(), y).backward()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    opt.step()
