CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "checkpoint", "empty_cache", "optimizer"], "already": ["half"], "limit": "tight"}
import random
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class NaViT(nn.Module):
    """Images of any size: the positions are interpolated."""

    def __init__(self, d=512, layers=4):
        super().__init__()
        self.patch, self.head = nn.Conv2d(3, d, 16, 16), nn.Linear(d, 200)
        self.pos = nn.Parameter(torch.zeros(1, d, 24, 24))
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 8, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers)])

    def forward(self, x):
        x = self.patch(x)
        x = (x + F.interpolate(self.pos, size=x.shape[-2:], mode="bilinear")).flatten(2).transpose(1, 2)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return self.head(x.mean(1))


limit()
rng = random.Random(13)
model = NaViT().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(26):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    side, rows = 16 * rng.randint(8, 26), rng.choice([4, 8, 12, 16])
    images, labels = torch.randn(rows, 3, side, 16 * rng.randint(8, 26), device="cuda"), torch.randint(0, 200, (rows,), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(x), y)
        loss.backward()
    opt.step()
