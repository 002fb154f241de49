CASE = {"root": "capacity", "cures": ["optimizer", "bound"], "fixes": ["optimizer", "bound", "micro_batch", "checkpoint", "empty_cache"]}
# A field fitted by L-BFGS with a long history: two vectors as long as the model for each of its last iterations.
import math

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential

from case import FIX, limit


class Field(nn.Module):
    def __init__(self, width=1024, depth=3):
        super().__init__()
        layers = [nn.Linear(32, width), nn.Tanh()]
        for _ in range(depth):
            layers += [nn.Linear(width, width), nn.Tanh()]
        self.body, self.out = nn.Sequential(*layers), nn.Linear(width, 1)
        self.register_buffer("waves", torch.randn(3, 16) * 2)

    def forward(self, x):
        angle = x @ self.waves
        h = torch.cat([angle.sin(), angle.cos()], 1)
        h = checkpoint_sequential(self.body, 4, h, use_reentrant=False) if FIX == "checkpoint" else self.body(h)
        return self.out(h).squeeze(1)


def sample(points):
    x = torch.rand(points, 3, device="cuda") * 2 - 1
    return x, 10 * (3 * math.pi * x[:, 0]).sin() * (2 * math.pi * x[:, 1]).cos() + 5 * torch.randn(points, device="cuda")


class Fit:
    def __init__(self, field):
        self.field, (self.x, self.y) = field, sample(3072)
        if FIX == "optimizer":
            self.opt = torch.optim.Adam(field.parameters(), lr=1e-3)
        else:
            self.opt = torch.optim.LBFGS(field.parameters(), max_iter=20, max_eval=60, history_size=5 if FIX == "bound" else 60, line_search_fn="strong_wolfe")

    def closure(self):
        self.opt.zero_grad()
        parts, total = 2 if FIX == "micro_batch" else 1, 0.0
        for x, y in zip(self.x.chunk(parts), self.y.chunk(parts)):
            loss = F.mse_loss(self.field(x), y) / parts
            loss.backward()
            total = total + loss.detach()
        return total

    def run(self, steps):
        for step in range(steps):
            print(step, float(self.opt.step(self.closure)))
            if FIX == "empty_cache":
                torch.cuda.empty_cache()


limit()
Fit(Field().cuda()).run(5)
