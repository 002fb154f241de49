CASE = {"root": "spike", "cures": ["chunked_loss", "micro_batch"], "fixes": ["chunked_loss", "micro_batch", "half"], "already": ["no_grad"]}
import math
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class LM(nn.Module):
    def __init__(self, vocab=32000, d=320):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab, bias=False)
        self.body = nn.ModuleList([nn.TransformerEncoderLayer(d, 5, 4 * d, 0.0, batch_first=True, norm_first=True) for _ in range(3)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.body:
            x = layer(x)
        return x


@torch.no_grad()
def perplexity(model, rows, parts):
    total, count = 0.0, 0
    for ids in torch.randint(0, 32000, (rows, 257), device="cuda").chunk(parts):
        h, target = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
        chunks = 16 if FIX == "chunked_loss" else 1
        for a, b in zip(h.chunk(chunks), target.chunk(chunks)):
            logits = model.head(a)
            logp = F.log_softmax(logits.float(), -1)
            total -= logp.gather(1, b[:, None]).sum().item()
            count += len(b)
            del logits, logp
    return math.exp(min(20, total / count))


limit()
model = LM().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(8):
    ids = torch.randint(0, 32000, (4, 129), device="cuda")
    loss = F.cross_entropy(model.head(model(ids[:, :-1])).flatten(0, 1), ids[:, 1:].flatten())
    opt.zero_grad()
    loss.backward()
    opt.step()
    if step % 5 == 4:
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            perplexity(model, 32, 2 if FIX == "micro_batch" else 1)
