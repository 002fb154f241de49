CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer"], "limit": "tight"}
# Protein structure: a vector for each pair of residues, and proteins of all lengths.
import random

import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from case import FIX, limit


class Triangle(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.norm, self.left, self.right = nn.LayerNorm(d), nn.Linear(d, d), nn.Linear(d, d)
        self.gate, self.out = nn.Linear(d, d), nn.Linear(d, d)

    def forward(self, z):
        h = self.norm(z)
        product = torch.einsum("bikc,bjkc->bijc", self.left(h), self.right(h)) / z.shape[1]
        return z + self.gate(h).sigmoid() * self.out(product)


class Transition(nn.Module):
    def __init__(self, d):
        super().__init__()
        self.body = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.ReLU(), nn.Linear(2 * d, d))

    def forward(self, z):
        return z + self.body(z)


class Folder(nn.Module):
    def __init__(self, d=48, depth=3):
        super().__init__()
        self.a, self.b, self.place = nn.Embedding(21, d), nn.Embedding(21, d), nn.Embedding(65, d)
        self.blocks = nn.ModuleList(m for _ in range(depth) for m in (Triangle(d), Transition(d)))
        self.bins = nn.Linear(d, 24)

    def forward(self, sequence):
        n = torch.arange(sequence.shape[1], device=sequence.device)
        offset = (n[:, None] - n[None]).clamp(-32, 32) + 32
        z = self.a(sequence)[:, :, None] + self.b(sequence)[:, None] + self.place(offset)
        for block in self.blocks:
            z = checkpoint(block, z, use_reentrant=False) if FIX == "checkpoint" else block(z)
        return self.bins(z + z.transpose(1, 2))


class Proteins:
    def __init__(self, count, seed):
        self.count, self.rng = count, random.Random(seed)

    def __iter__(self):
        for _ in range(self.count):
            rows, length = self.rng.choice([2, 3, 4]), self.rng.randint(70, 250)
            yield torch.randint(0, 21, (rows, length), device="cuda"), torch.randint(0, 24, (rows, length, length), device="cuda")


def train(model, proteins):
    opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, (sequence, distance) in enumerate(proteins):
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for s, d in zip(sequence.chunk(parts), distance.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                bins = model(s)
            (F.cross_entropy(bins.float().flatten(0, 2), d.flatten()) / parts).backward()
        opt.step()


limit()
train(Folder().cuda(), Proteins(26, 31))
