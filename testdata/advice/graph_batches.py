CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "empty_cache", "optimizer"], "limit": "below"}
import random
import torch, torch.nn as nn
from case import FIX, limit


class MessagePassing(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.message, self.update = nn.Sequential(nn.Linear(2 * d, d), nn.ReLU()), nn.GRUCell(d, d)

    def forward(self, h, edges):
        m = self.message(torch.cat([h[edges[0]], h[edges[1]]], 1))
        return self.update(torch.zeros_like(h).index_add(0, edges[1], m.float()), h)


limit()
rng = random.Random(17)
inp, layers, out = nn.Linear(32, 256).cuda(), nn.ModuleList([MessagePassing() for _ in range(3)]).cuda(), nn.Linear(256, 1).cuda()
params = [*inp.parameters(), *layers.parameters(), *out.parameters()]
opt = torch.optim.SGD(params, lr=0.01) if FIX == "optimizer" else torch.optim.Adam(params, lr=1e-3)
for step in range(24):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    nodes, degree = rng.randint(3000, 12000), rng.randint(3, 8)
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for n in [nodes // parts] * parts:  # graphs of every size
        edges = torch.randint(0, n, (2, n * degree), device="cuda")
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h = inp(torch.randn(n, 32, device="cuda")).float()
            for layer in layers:
                h = layer(h, edges).float()
            loss = out(h).float().square().mean()
        loss.backward()
    opt.step()
