CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer"], "limit": "tight"}
# Graph attention over batches of proteins, each with its own number of atoms and bonds.
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

H, D = 4, 40


class GAT(nn.Module):
    def __init__(self, n_in):
        super().__init__()
        self.lin = nn.Linear(n_in, H * D)
        self.src, self.dst = nn.Parameter(torch.randn(H, D) * 0.1), nn.Parameter(torch.randn(H, D) * 0.1)

    def forward(self, x, edges):
        i, j = edges
        z = self.lin(x).view(-1, H, D)
        score = F.leaky_relu((z * self.src).sum(-1)[i] + (z * self.dst).sum(-1)[j], 0.2)
        weight = score.clamp(max=20).exp()
        norm = torch.zeros(len(x), H, device=x.device, dtype=weight.dtype).index_add(0, j, weight)
        message = z[i] * (weight / norm[j].clamp(min=1e-6))[..., None]
        return F.elu(torch.zeros_like(z).index_add(0, j, message.to(z.dtype)).flatten(1))


class Proteins(nn.Module):
    def __init__(self):
        super().__init__()
        self.gats = nn.ModuleList([GAT(64), GAT(H * D), GAT(H * D)])
        self.read = nn.Linear(H * D, 10)

    def forward(self, x, edges, owner, count):
        for gat in self.gats:
            x = checkpoint(gat, x, edges, use_reentrant=False) if FIX == "checkpoint" else gat(x, edges)
        return self.read(torch.zeros(count, H * D, device=x.device, dtype=x.dtype).index_add(0, owner, x))


def collate(sizes):
    """One graph of many: (atoms, bonds) each."""
    x = torch.randn(sum(n for n, _ in sizes), 64, device="cuda")
    edges, owner, start = [], [], 0
    for k, (n, e) in enumerate(sizes):
        edges.append(torch.randint(0, n, (2, e), device="cuda") + start)
        owner.append(torch.full((n,), k, device="cuda"))
        start += n
    return x, torch.cat(edges, 1), torch.cat(owner), len(sizes)


limit()
rng = random.Random(29)
model = Proteins().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
for step in range(28):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    atoms = [rng.randint(150, 5000) for _ in range(6)]
    proteins = [(n, n * rng.randint(4, 12)) for n in atoms]
    opt.zero_grad()
    for group in (proteins[:3], proteins[3:]) if FIX == "micro_batch" else (proteins,):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            batch = collate(group)
            loss = F.cross_entropy(model(*batch), torch.randint(0, 10, (len(group),), device="cuda"))
        loss.backward()
    opt.step()
