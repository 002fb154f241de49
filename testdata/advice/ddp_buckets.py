CASE = {"root": "capacity", "cures": ["optimizer"], "fixes": ["optimizer", "micro_batch", "half"]}
import os, tempfile
import torch, torch.distributed as dist, torch.nn as nn, torch.nn.functional as F
from torch.nn.parallel import DistributedDataParallel
from case import FIX, limit

limit()
dist.init_process_group("nccl", init_method="file://" + os.path.join(tempfile.mkdtemp(), "store"), rank=0, world_size=1)
torch.cuda.set_device(0)


class MLPMixer(nn.Module):
    def __init__(self, tokens=64, d=1024, layers=6):
        super().__init__()
        self.inp = nn.Linear(48, d)
        self.tokens = nn.ModuleList([nn.Linear(tokens, tokens) for _ in range(layers)])
        self.channels = nn.ModuleList([nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d)) for _ in range(layers)])
        self.head = nn.Linear(d, 100)

    def forward(self, x):
        x = self.inp(x)
        for mix, mlp in zip(self.tokens, self.channels):
            x = x + mix(x.transpose(1, 2)).transpose(1, 2)
            x = x + mlp(x)
        return self.head(x.mean(1))


model = DistributedDataParallel(MLPMixer().cuda(), device_ids=[0])
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(4):
    x, y = torch.randn(8, 64, 48, device="cuda"), torch.randint(0, 100, (8,), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, b in zip(x.chunk(parts), y.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.cross_entropy(model(a), b)
        loss.backward()
    opt.step()
dist.destroy_process_group()
