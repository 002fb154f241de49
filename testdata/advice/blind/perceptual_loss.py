CASE = {"root": "capacity", "cures": ["micro_batch", "half", "no_grad"], "fixes": ["micro_batch", "half", "no_grad", "detach", "checkpoint", "optimizer"]}
# Denoising with a perceptual loss. The network of the loss is not frozen, so the clean images get a graph too.
import contextlib
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


def stage(pool, c, *plan):
    layers = [nn.MaxPool2d(2)] if pool else []
    for p in plan:
        layers += [nn.Conv2d(c, p, 3, padding=1), nn.ReLU()]
        c = p
    return nn.Sequential(*layers)


class Perceptual(nn.Module):
    """The first layers of a VGG."""

    def __init__(self):
        super().__init__()
        self.stages = nn.ModuleList([stage(False, 3, 48, 48), stage(True, 48, 96, 96), stage(True, 96, 128, 128)])

    def features(self, x):
        out = []
        for stage in self.stages:
            x = checkpoint(stage, x, use_reentrant=False) if FIX == "checkpoint" else stage(x)
            out.append(x)
        return out

    def forward(self, restored, clean):
        with torch.no_grad() if FIX == "no_grad" else contextlib.nullcontext():
            goal = self.features(clean)
        if FIX == "detach":
            goal = [g.detach() for g in goal]
        return sum(F.l1_loss(a, b) for a, b in zip(self.features(restored), goal))


limit()
denoiser = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.PReLU(), nn.Conv2d(16, 16, 3, padding=1), nn.PReLU(), nn.Conv2d(16, 3, 3, padding=1)).cuda()
critic = Perceptual().cuda()
opt = torch.optim.SGD(denoiser.parameters(), 1e-3) if FIX == "optimizer" else torch.optim.Adam(denoiser.parameters(), 1e-3)
for step in range(4):
    clean = torch.rand(20, 3, 176, 176, device="cuda")
    noisy = clean + 0.1 * torch.randn_like(clean)
    opt.zero_grad()
    critic.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, b in zip(noisy.chunk(parts), clean.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = critic(a + denoiser(a), b)
        (loss / parts).backward()
    opt.step()
