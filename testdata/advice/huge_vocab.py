CASE = {"root": "capacity", "cures": ["chunked_loss", "micro_batch"], "fixes": ["chunked_loss", "micro_batch", "checkpoint", "half", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

VOCAB, D = 100000, 256


class LM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.Embedding(VOCAB, D)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(D, 4, 4 * D, 0.0, batch_first=True, norm_first=True) for _ in range(2)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return x

    def head(self, h):
        return F.linear(h, self.emb.weight)


def loss_of(model, ids):
    hidden, target = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
    if FIX != "chunked_loss":
        logits = model.head(hidden)
        return F.cross_entropy(logits.float(), target)
    part = lambda h, t: F.cross_entropy(model.head(h).float(), t, reduction="sum")
    return sum(checkpoint(part, h, t, use_reentrant=False) for h, t in zip(hidden.chunk(8), target.chunk(8))) / len(target)


limit()
model = LM().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    ids = torch.randint(0, VOCAB, (8, 257), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for part in ids.chunk(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = loss_of(model, part) / parts
        loss.backward()
    opt.step()
