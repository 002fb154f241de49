CASE = {"root": "leak", "cures": ["del", "bound"], "fixes": ["del", "bound", "half", "micro_batch", "checkpoint"]}
# Batches that give no finite loss are skipped, and the exceptions kept for a report: with them their frames, and so the graph.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class NotFinite(ArithmeticError):
    pass


class Tabular(nn.Module):
    def __init__(self, cards=(1000, 50, 12, 7000), numbers=40, width=1024):
        super().__init__()
        self.embs = nn.ModuleList(nn.Embedding(c, 16) for c in cards)
        self.cards = cards
        self.stem = nn.Sequential(nn.Linear(16 * len(cards) + numbers, width), nn.BatchNorm1d(width), nn.GELU())
        self.deep = nn.Sequential(nn.Linear(width, width), nn.GELU(), nn.Linear(width, width), nn.GELU())
        self.out = nn.Linear(width, 1)


def train_on(model, opt, cats, nums, target):
    x = torch.cat([emb(c) for emb, c in zip(model.embs, cats.unbind(1))] + [nums], 1)
    h = model.stem(x)  # KEPT
    h = h + (checkpoint(model.deep, h, use_reentrant=False) if FIX == "checkpoint" else model.deep(h))  # KEPT
    prediction = model.out(h).squeeze(1)
    loss = F.mse_loss(prediction, target)
    if not loss.isfinite():
        raise NotFinite("loss is %s" % loss.item())
    opt.zero_grad()
    loss.backward()
    opt.step()


def batches(model, n, rows=4096):
    for i in range(n):
        cats = torch.stack([torch.randint(0, c, (rows,)) for c in model.cards], 1).cuda()
        target = torch.randn(rows)
        if i % 3 == 2:
            target[7::rows // 2] = float("nan")  # missing in the table
        yield cats, torch.randn(rows, 40, device="cuda"), target.cuda()


limit()
model, skipped = Tabular().cuda(), []
opt = torch.optim.Adagrad(model.parameters(), lr=0.01)
for step, batch in enumerate(batches(model, 33)):
    for part in zip(*(t.chunk(2 if FIX == "micro_batch" else 1) for t in batch)):
        try:
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                train_on(model, opt, *part)  # KEPT
        except NotFinite as e:
            skipped.append(str(e) if FIX == "del" else e)
    if FIX == "bound":
        del skipped[:-1]
print(len(skipped), "batches skipped")
