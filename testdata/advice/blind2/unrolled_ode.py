CASE = {"root": "capacity", "cures": ["checkpoint", "micro_batch", "half"], "fixes": ["checkpoint", "micro_batch", "half", "optimizer", "empty_cache"]}
# A neural ODE for sensor series: the solver is unrolled, and autograd keeps all of its evaluations.
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Field(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.a, self.b, self.clock = nn.Linear(d, hidden), nn.Linear(hidden, d), nn.Parameter(torch.zeros(hidden))

    def forward(self, t, x):
        h = self.a(x)
        return self.b(torch.tanh(h + (t * self.clock).to(h.dtype)))


class Solver(nn.Module):
    """Runge and Kutta's, with steps of one size."""

    def __init__(self, field):
        super().__init__()
        self.field = field

    def advance(self, t, x, dt):
        k1 = self.field(t, x)
        k2 = self.field(t + dt / 2, x + dt / 2 * k1)
        k3 = self.field(t + dt / 2, x + dt / 2 * k2)
        k4 = self.field(t + dt, x + dt * k3)
        return x + dt / 6 * (k1 + 2 * k2 + 2 * k3 + k4)

    def forward(self, x, steps):
        dt, path = 1.0 / steps, []
        for i in range(steps):
            x = checkpoint(self.advance, i * dt, x, dt, use_reentrant=False) if FIX == "checkpoint" else self.advance(i * dt, x, dt)
            path.append(x.mean(1))
        return x, torch.stack(path, 1)


class LatentODE(nn.Module):
    def __init__(self, sensors=20, d=192):
        super().__init__()
        self.inp, self.out = nn.Linear(sensors, d), nn.Linear(d, sensors)
        self.solver = Solver(Field(d, 512))

    def forward(self, first, steps=28):
        last, path = self.solver(self.inp(first), steps)
        return self.out(last), path


def fit(model, steps):
    opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.Adamax(model.parameters(), lr=2e-3)
    for step in range(steps):
        first, last = torch.randn(4096, 20, device="cuda"), torch.randn(4096, 20, device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        opt.zero_grad()
        for a, b in zip(first.chunk(parts), last.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                guess, path = model(a)
                loss = F.mse_loss(guess, b) + 0.01 * path.diff(dim=1).square().mean()
            (loss / parts).backward()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        opt.step()


limit()
fit(LatentODE().cuda(), 4)
