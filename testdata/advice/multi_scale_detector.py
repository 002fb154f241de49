CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "empty_cache", "checkpoint"], "limit": "tight"}
import random
import torch, torch.nn as nn
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.BatchNorm2d(b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.BatchNorm2d(b), nn.SiLU())
                                     for a, b in ((3, 32), (32, 64), (64, 128))])
        self.heads = nn.ModuleList([nn.Conv2d(c, 85, 1) for c in (32, 64, 128)])

    def forward(self, x):
        outs = []
        for stage, head in zip(self.stages, self.heads):
            x = checkpoint(stage, x, use_reentrant=False) if FIX == "checkpoint" else stage(x)
            outs.append(head(x))
        return outs


limit()
rng = random.Random(5)
model = Backbone().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(26):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    h, w = 32 * rng.randint(8, 22), 32 * rng.randint(8, 22)  # multi-scale training
    images = torch.randn(8, 3, h, w, device="cuda")
    opt.zero_grad()
    for x in images.chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = sum(o.float().square().mean() for o in model(x))
        loss.backward()
    opt.step()
