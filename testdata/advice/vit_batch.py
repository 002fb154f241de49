CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint", "half"], "fixes": ["micro_batch", "checkpoint", "half", "optimizer", "empty_cache"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class ViT(nn.Module):
    def __init__(self, d=384, layers=6):
        super().__init__()
        self.patch, self.pos, self.cls = nn.Conv2d(3, d, 16, 16), nn.Parameter(torch.zeros(1, 197, d)), nn.Parameter(torch.zeros(1, 1, d))
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(d, 6, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(layers)])
        self.head = nn.Linear(d, 1000)

    def forward(self, x):
        x = torch.cat([self.cls.expand(len(x), -1, -1), self.patch(x).flatten(2).transpose(1, 2)], 1) + self.pos
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if FIX == "checkpoint" else block(x)
        return self.head(x[:, 0])


limit()
model = ViT().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=5e-4)
for step in range(4):
    images, labels = torch.randn(48, 3, 224, 224, device="cuda"), torch.randint(0, 1000, (48,), device="cuda")
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    parts = 2 if FIX == "micro_batch" else 1
    opt.zero_grad()
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.cross_entropy(model(x), y, label_smoothing=0.1) / parts
        loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
