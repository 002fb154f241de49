CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer"], "limit": "tight"}
# Restoration on tiles of any size, with local filters by F.unfold.
import random
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils import checkpoint as cp
from case import FIX, limit


class LocalFilter(nn.Module):
    """Each pixel weighs its 3 x 3 neighbours with weights of its own."""

    def __init__(self, c):
        super().__init__()
        self.weigh, self.mix = nn.Conv2d(c, 9, 3, padding=1), nn.Conv2d(c, c, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        near = F.unfold(x, 3, padding=1).view(b, c, 9, h * w)
        weights = self.weigh(x).flatten(2).softmax(1)
        return x + self.mix(F.relu((near * weights[:, None]).sum(2).view(b, c, h, w)))


class Restorer(nn.Module):
    def __init__(self, c=28, depth=3):
        super().__init__()
        self.into, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 3, 3, padding=1)
        self.filters = nn.ModuleList(LocalFilter(c) for _ in range(depth))

    def forward(self, x):
        h = self.into(x)
        for f in self.filters:
            h = cp.checkpoint(f, h, use_reentrant=False) if FIX == "checkpoint" else f(h)
        return x + self.out(h)


def tiles(count, seed=17):
    rng = random.Random(seed)
    for _ in range(count):
        h, w = rng.randint(40, 260), rng.randint(40, 260)
        n = max(2, rng.randint(70000, 110000) // (h * w))
        yield torch.rand(n, 3, h, w, device="cuda")


def run(count=26):
    model = Restorer().cuda()
    opt = torch.optim.SGD(model.parameters(), 0.01) if FIX == "optimizer" else torch.optim.RAdam(model.parameters(), 1e-3)
    for step, clean in enumerate(tiles(count)):
        for part in clean.chunk(2 if FIX == "micro_batch" else 1):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = F.huber_loss(model(part + 0.05 * torch.randn_like(part)), part)
            loss.backward()
        opt.step()
        opt.zero_grad()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
run()
