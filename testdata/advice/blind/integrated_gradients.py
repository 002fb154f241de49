CASE = {"root": "spike", "cures": ["micro_batch", "chunked_loss"], "fixes": ["micro_batch", "chunked_loss", "half", "checkpoint", "empty_cache", "optimizer"]}
# Attributions after an epoch: all points of the path go through the network as one batch.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Audio(nn.Module):
    """Keywords in spectrograms, depthwise separable."""

    def __init__(self, c=48, labels=12):
        super().__init__()
        self.stem = nn.Conv2d(1, c, 3, (2, 2), 1)
        self.deep = nn.ModuleList([nn.Conv2d(c, c, 3, padding=1, groups=c) for _ in range(3)])
        self.wide = nn.ModuleList([nn.Conv2d(c, c, 1) for _ in range(3)])
        self.norm = nn.ModuleList([nn.GroupNorm(6, c) for _ in range(3)])
        self.out = nn.Linear(c, labels)

    def body(self, x):
        for d, w, n in zip(self.deep, self.wide, self.norm):
            x = F.relu(n(w(d(x))))
        return x

    def forward(self, x):
        x = self.stem(x)
        x = checkpoint(self.body, x, use_reentrant=False) if FIX == "checkpoint" else self.body(x)
        return self.out(x.mean((2, 3)))


def attribute(model, x, label, points=16):
    alphas = torch.linspace(0, 1, points, device="cuda")
    path = (alphas[:, None, None, None, None] * x).flatten(0, 1).requires_grad_()
    pieces = path.chunk({"micro_batch": 2, "chunked_loss": points}.get(FIX, 1))
    labels = label.repeat(points).chunk(len(pieces))
    grads = []
    for p, y in zip(pieces, labels):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            picked = model(p).gather(1, y[:, None]).sum()
        grads.append(torch.autograd.grad(picked, p)[0])
        del picked
    return x * torch.cat(grads).unflatten(0, (points, -1)).mean(0)


limit()
model = Audio().cuda()
opt = torch.optim.SGD(model.parameters(), 1e-2) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), 1e-3, betas=(0.9, 0.99))
for epoch in range(2):
    for step in range(8):
        x, y = torch.randn(32, 1, 64, 96, device="cuda"), torch.randint(0, 12, (32,), device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        opt.zero_grad()
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = F.cross_entropy(model(a), b)
            (loss / parts).backward()
        opt.step()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    maps = attribute(model, x, y)
