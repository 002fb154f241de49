CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "checkpoint", "half", "empty_cache", "optimizer", "chunked_loss"], "limit": "tight"}
import random
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class LM(nn.Module):
    def __init__(self, vocab=12000, d=512, layers=4):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab, bias=False)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 8, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return x


def loss_of(model, ids):
    h, target = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
    if FIX == "chunked_loss":
        part = lambda a, b: F.cross_entropy(model.head(a), b, reduction="sum")
        return sum(checkpoint(part, a, b, use_reentrant=False) for a, b in zip(h.chunk(8), target.chunk(8))) / len(target)
    return F.cross_entropy(model.head(h), target)


limit()
rng = random.Random(7)
model = LM().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(24):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    ids = torch.randint(0, 12000, (rng.choice([4, 6, 8]), rng.randint(80, 600)), device="cuda")
    opt.zero_grad()
    for part in ids.chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = loss_of(model, part)
        loss.backward()
    opt.step()
