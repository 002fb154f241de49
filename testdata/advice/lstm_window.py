CASE = {"root": "capacity", "cures": ["micro_batch", "chunked_loss"], "fixes": ["micro_batch", "chunked_loss", "half", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class WordLM(nn.Module):
    def __init__(self, vocab=20000, d=384):
        super().__init__()
        self.emb, self.rnn, self.drop, self.head = nn.Embedding(vocab, d), nn.LSTM(d, d, 2, batch_first=True, dropout=0.2), nn.Dropout(0.3), nn.Linear(d, vocab)

    def loss(self, h, target):
        return F.cross_entropy(self.head(h), target, reduction="sum")

    def forward(self, ids):
        out, _ = self.rnn(self.drop(self.emb(ids[:, :-1])))
        h, target = self.drop(out).flatten(0, 1), ids[:, 1:].flatten()
        if FIX == "chunked_loss":
            return sum(checkpoint(self.loss, a, b, use_reentrant=False) for a, b in zip(h.chunk(8), target.chunk(8))) / len(target)
        return self.loss(h, target) / len(target)


limit()
model = WordLM().cuda()
opt = torch.optim.SGD(model.parameters(), lr=1.0) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(5):
    text = torch.randint(0, 20000, (32, 141), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for part in text.chunk(parts):
        with torch.autocast("cuda", torch.float16, enabled=FIX == "half"):
            loss = model(part) / parts
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 0.25)
    opt.step()
