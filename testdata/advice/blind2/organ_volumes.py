CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint", "half"], "fixes": ["micro_batch", "checkpoint", "half", "optimizer", "empty_cache"]}
# Organs in CT volumes: a 3D U-Net on patches that are too large.
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Double(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.body = nn.Sequential(nn.Conv3d(i, o, 3, padding=1, bias=False), nn.BatchNorm3d(o), nn.ReLU(),
                                  nn.Conv3d(o, o, 3, padding=1, bias=False), nn.BatchNorm3d(o), nn.ReLU())

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False) if FIX == "checkpoint" else self.body(x)


class UNet3d(nn.Module):
    def __init__(self, organs=6, c=14):
        super().__init__()
        self.first, self.second, self.deep = Double(1, c), Double(c, 2 * c), Double(2 * c, 4 * c)
        self.up2, self.up1 = nn.ConvTranspose3d(4 * c, 2 * c, 2, 2), nn.ConvTranspose3d(2 * c, c, 2, 2)
        self.back2, self.back1 = Double(4 * c, 2 * c), Double(2 * c, c)
        self.out = nn.Conv3d(c, organs, 1)

    def forward(self, x):
        a = self.first(x)
        b = self.second(F.max_pool3d(a, 2))
        x = self.up2(self.deep(F.max_pool3d(b, 2)))
        x = self.up1(self.back2(torch.cat([b, x], 1)))
        return self.out(self.back1(torch.cat([a, x], 1)))


def dice(logits, target):
    p, t = logits.float().softmax(1), F.one_hot(target, logits.shape[1]).movedim(-1, 1)
    return 1 - (2 * (p * t).sum((2, 3, 4)) / ((p + t).sum((2, 3, 4)) + 1)).mean()


def patches(n, side=80):
    for _ in range(n):
        yield torch.randn(2, 1, side, side, side, device="cuda"), torch.randint(0, 6, (2, side, side, side), device="cuda")


def train(model, steps):
    opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.0 if FIX == "optimizer" else 0.99)
    for step, (volume, organs) in enumerate(patches(steps)):
        opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for x, y in zip(volume.chunk(parts), organs.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                logits = model(x)
            (dice(logits, y) / parts).backward()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        opt.step()


limit()
train(UNet3d().cuda(), 3)
