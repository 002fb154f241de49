CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer"], "limit": "tight"}
# Two voices are separated in recordings of any length.
import random

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from case import FIX, limit


class Temporal(nn.Module):
    def __init__(self, c, wide, dilation):
        super().__init__()
        self.inp, self.out = nn.Conv1d(c, wide, 1), nn.Conv1d(wide, c, 1)
        self.depth = nn.Conv1d(wide, wide, 3, padding=dilation, dilation=dilation, groups=wide)
        self.act1, self.act2 = nn.PReLU(), nn.PReLU()
        self.norm1, self.norm2 = nn.BatchNorm1d(wide), nn.BatchNorm1d(wide)

    def forward(self, x):
        h = self.norm1(self.act1(self.inp(x)))
        return x + self.out(self.norm2(self.act2(self.depth(h))))


class Separator(nn.Module):
    def __init__(self, c=160, wide=320, depth=4):
        super().__init__()
        self.encode, self.decode = nn.Conv1d(1, c, 16, 8, 4), nn.ConvTranspose1d(c, 1, 16, 8, 4)
        self.blocks = nn.ModuleList(Temporal(c, wide, 2 ** i) for i in range(depth))
        self.masks = nn.Conv1d(c, 2 * c, 1)

    def forward(self, wave):
        x = F.relu(self.encode(wave))
        h = x
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if FIX == "checkpoint" else block(h)
        first, second = self.masks(h).sigmoid().chunk(2, 1)
        return torch.cat([self.decode(x * first), self.decode(x * second)], 1)


def recordings(count, seed):
    rng = random.Random(seed)
    for _ in range(count):
        samples = 8 * rng.randint(800, 5200)
        yield torch.randn(rng.choice([2, 3, 4, 6]), 2, samples, device="cuda")


def ratio(guess, voices):
    noise = (guess.float() - voices).square().sum(-1)
    return (noise / voices.square().sum(-1)).log10().mean()


def fit(model, count):
    opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, voices in enumerate(recordings(count, 23)):
        opt.zero_grad()
        for part in voices.chunk(2 if FIX == "micro_batch" else 1):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                guess = model(part.sum(1, keepdim=True))
            ratio(guess, part).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
fit(Separator().cuda(), 26)
