CASE = {"root": "stranded", "cures": ["del", "cpu"], "fixes": ["del", "cpu", "empty_cache", "micro_batch", "half"], "limit": "reserved", "weight": 0.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
pool = torch.cuda.MemPool()


def build_index(rows=300000, d=512):
    """Makes the centroids of the retriever in a pool of its own."""
    with torch.cuda.use_mem_pool(pool):
        table = torch.randn(rows, d, device="cpu" if FIX == "cpu" else "cuda")
        centroids = table[::64].clone()
    return centroids.to("cuda")


index = build_index()
if FIX == "del":  # the copy lives elsewhere, so the pool can go
    index = index.clone()
    del pool
if FIX == "empty_cache":
    torch.cuda.empty_cache()


class Retriever(nn.Module):
    def __init__(self, vocab=8000, d=512):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 8, 2048, 0.0, batch_first=True) for _ in range(3)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return x.mean(1)


model = Retriever().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(6):
    ids, target = torch.randint(0, 8000, (48, 128), device="cuda"), torch.randint(0, len(index), (48,), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(ids.chunk(parts), target.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            scores = model(x) @ index.T
        F.cross_entropy(scores.float(), y).backward()
    opt.step()
