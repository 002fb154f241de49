CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint"], "fixes": ["micro_batch", "checkpoint", "half", "chunked_loss", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Attention(nn.Module):
    def __init__(self, d=256, heads=8):
        super().__init__()
        self.heads, self.qkv, self.out, self.norm = heads, nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)

    def forward(self, x, mask):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-2, -1) / (d // self.heads) ** 0.5
        scores = scores.masked_fill(mask, float("-inf"))
        y = torch.softmax(scores, dim=-1) @ v
        return x + self.out(y.transpose(1, 2).reshape(b, t, d))


limit()
inp, layers, head = nn.Linear(32, 256).cuda(), nn.ModuleList([Attention() for _ in range(4)]).cuda(), nn.Linear(256, 32).cuda()
params = [*inp.parameters(), *layers.parameters(), *head.parameters()]
opt = torch.optim.SGD(params, lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(params, lr=1e-3)
mask = torch.ones(1280, 1280, dtype=torch.bool, device="cuda").triu(1)
for step in range(4):
    series = torch.randn(4, 1280, 32, device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x in series.chunk(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h = inp(x)
            for layer in layers:
                h = checkpoint(layer, h, mask, use_reentrant=False) if FIX == "checkpoint" else layer(h, mask)
        out = head(h.float())
        chunks = 4 if FIX == "chunked_loss" else 1
        loss = sum(F.mse_loss(o, t) for o, t in zip(out.chunk(chunks, 1), x.chunk(chunks, 1))) / chunks
        (loss / parts).backward()
    opt.step()
