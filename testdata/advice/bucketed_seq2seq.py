CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "chunked_loss", "empty_cache"], "limit": "tight"}
import random
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Seq2Seq(nn.Module):
    def __init__(self, vocab=9000, d=384):
        super().__init__()
        self.src, self.tgt, self.head = nn.Embedding(vocab, d), nn.Embedding(vocab, d), nn.Linear(d, vocab)
        self.core = nn.Transformer(d, 6, 2, 2, 4 * d, 0.0, batch_first=True)

    def hidden(self, s, t):
        return self.core(self.src(s), self.tgt(t))

    def loss(self, h, y):
        return F.cross_entropy(self.head(h), y, reduction="sum")


limit()
rng = random.Random(11)
model = Seq2Seq().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-4, betas=(0.9, 0.98))
for step in range(24):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    length = rng.randint(20, 400)
    rows = max(2, 7000 // length + rng.randint(-3, 3))  # about as many tokens in every batch
    src, tgt = torch.randint(0, 9000, (rows, length), device="cuda"), torch.randint(0, 9000, (rows, length + rng.randint(-9, 9)), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for s, t in zip(src.chunk(parts), tgt.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h, y = model.hidden(s, t[:, :-1]).flatten(0, 1), t[:, 1:].flatten()
            if FIX == "chunked_loss":
                loss = sum(checkpoint(model.loss, a, b, use_reentrant=False) for a, b in zip(h.chunk(4), y.chunk(4))) / len(y)
            else:
                loss = model.loss(h, y) / len(y)
        loss.backward()
    opt.step()
