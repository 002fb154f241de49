CASE = {"root": "capacity", "cures": ["optimizer"], "fixes": ["optimizer", "micro_batch", "half", "checkpoint"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Translator(nn.Module):
    def __init__(self, vocab=16000, d=768):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab)
        self.core = nn.Transformer(d, 12, 3, 3, 3072, batch_first=True)

    def forward(self, src, tgt):
        s, t = self.emb(src), self.emb(tgt)
        return self.head(checkpoint(self.core, s, t, use_reentrant=False) if FIX == "checkpoint" else self.core(s, t))


def train(model, opt, steps):
    for step in range(steps):
        src, tgt = torch.randint(0, 16000, (4, 40), device="cuda"), torch.randint(0, 16000, (4, 33), device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        opt.zero_grad()
        for s, t in zip(src.chunk(parts), tgt.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                out = model(s, t[:, :-1])
            F.cross_entropy(out.float().flatten(0, 1), t[:, 1:].flatten()).backward()
        opt.step()


limit()
model = Translator().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
train(model, opt, 4)
