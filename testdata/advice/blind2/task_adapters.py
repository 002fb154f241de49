CASE = {"root": "leak", "cures": ["del", "bound"], "fixes": ["del", "bound", "cpu", "optimizer", "half", "micro_batch"]}
# Continual learning with an adapter for each task. The optimizer gets the new one and is not told that the old one is gone.
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import FIX, limit

DTYPE = torch.bfloat16 if FIX == "half" else torch.float32


class Adapter(nn.Module):
    def __init__(self, d, inner):
        super().__init__()
        self.down = nn.Linear(d, inner, device="cuda", dtype=DTYPE)  # KEPT
        self.up = nn.Linear(inner, d, device="cuda", dtype=DTYPE)  # KEPT

    def forward(self, x):
        return x + self.up(F.silu(self.down(x)))


class Continual(nn.Module):
    def __init__(self, d=1024):
        super().__init__()
        self.trunk = nn.Sequential(nn.Linear(256, d), nn.GELU(), nn.Linear(d, d), nn.GELU()).requires_grad_(False)
        self.head = nn.Linear(d, 30)
        self.d, self.adapter = d, None

    def new_task(self):
        self.adapter = Adapter(self.d, 3072)  # KEPT
        return self.adapter.parameters()

    def forward(self, x):
        return self.head(self.adapter(self.trunk(x)))


def optimizer_for(params):
    return torch.optim.SGD(params, lr=0.01) if FIX == "optimizer" else torch.optim.Adam(params, lr=3e-4)


class Curriculum:
    def __init__(self, model):
        self.model = model
        self.opt = optimizer_for(model.head.parameters())

    def begin(self):
        fresh = list(self.model.new_task())  # KEPT
        if FIX == "del":
            self.opt = optimizer_for(self.model.head.parameters())
        self.opt.add_param_group({"params": fresh})
        if FIX == "bound":
            for group in self.opt.param_groups[1:-2]:
                for p in group["params"]:
                    self.opt.state.pop(p, None)
            del self.opt.param_groups[1:-2]
        if FIX == "cpu":
            for group in self.opt.param_groups[1:-1]:
                for p in group["params"]:
                    p.grad, p.data = None, p.data.cpu()
                    self.opt.state[p] = {k: v.cpu() for k, v in self.opt.state[p].items()}

    def learn(self, x, y):
        self.opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(self.model(a).float(), b) / parts).backward()
        self.opt.step()  # KEPT


def data(steps):
    for _ in range(steps):
        yield torch.randn(512, 256, device="cuda", dtype=DTYPE), torch.randint(0, 30, (512,), device="cuda")


limit()
curriculum = Curriculum(Continual().cuda().to(DTYPE))
for task in range(14):
    curriculum.begin()  # KEPT
    for step, (x, y) in enumerate(data(4)):
        curriculum.learn(x, y)  # KEPT
