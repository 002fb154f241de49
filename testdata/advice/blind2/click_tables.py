CASE = {"root": "capacity", "cures": ["optimizer", "half"], "fixes": ["optimizer", "half", "micro_batch", "checkpoint", "empty_cache"]}
# Click prediction: large embedding tables with Adam, whose gradients and moments are dense.
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

ROWS = [420_000, 260_000, 130_000, 40_000, 9_000]
DTYPE = torch.bfloat16 if FIX == "half" else torch.float32


def mlp(*sizes):
    layers = []
    for i, o in zip(sizes, sizes[1:]):
        layers += [nn.Linear(i, o), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class Clicks(nn.Module):
    def __init__(self, dim=64, dense=13):
        super().__init__()
        self.tables = nn.ModuleList(nn.Embedding(rows, dim) for rows in ROWS)
        self.bottom = mlp(dense, 256, dim)
        pairs = (len(ROWS) + 1) * len(ROWS) // 2
        self.top = mlp(dim + pairs, 256, 128, 1)
        self.register_buffer("pick", torch.triu_indices(len(ROWS) + 1, len(ROWS) + 1, 1))

    def forward(self, numbers, bags):
        x = self.bottom(numbers)
        vectors = torch.stack([x] + [table(bag).sum(1) for table, bag in zip(self.tables, bags)], 1)
        products = vectors @ vectors.transpose(1, 2)
        both = torch.cat([x, products[:, self.pick[0], self.pick[1]]], 1)
        return (checkpoint(self.top, both, use_reentrant=False) if FIX == "checkpoint" else self.top(both)).squeeze(1)


def day(batches, size=2048):
    for _ in range(batches):
        bags = [torch.randint(0, rows, (size, 4), device="cuda") for rows in ROWS]
        yield torch.randn(size, 13, device="cuda", dtype=DTYPE), bags, torch.rand(size, device="cuda").round()


class Job:
    def __init__(self):
        with torch.device("cuda"):
            self.model = Clicks().to(DTYPE)
        make = torch.optim.SGD if FIX == "optimizer" else torch.optim.Adam
        self.opt = make(self.model.parameters(), lr=1e-3)

    def step(self, numbers, bags, clicked):
        parts = 2 if FIX == "micro_batch" else 1
        self.opt.zero_grad()
        for n, c, *b in zip(numbers.chunk(parts), clicked.chunk(parts), *(bag.chunk(parts) for bag in bags)):
            (F.binary_cross_entropy_with_logits(self.model(n, b).float(), c) / parts).backward()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        self.opt.step()


limit()
job = Job()
for step, batch in enumerate(day(6)):
    job.step(*batch)
