CASE = {"root": "capacity", "cures": ["chunked_loss", "micro_batch"], "fixes": ["chunked_loss", "micro_batch", "checkpoint", "half", "optimizer"]}
# The batch-all triplet loss: a value for each anchor, positive and negative.
import torch
import torch.nn as nn
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

limit()
N, CLASSES, MARGIN = 384, 24, 0.2
embed = nn.Sequential(nn.Conv1d(1, 32, 9, stride=4), nn.ReLU(), nn.Conv1d(32, 64, 9, stride=4), nn.ReLU(), nn.AdaptiveAvgPool1d(8), nn.Flatten(), nn.Linear(512, 128)).cuda()
opt = torch.optim.SGD(embed.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.Adam(embed.parameters(), lr=3e-4)


def triplets(anchors, z, mine, labels):
    d = torch.cdist(anchors, z)
    same = mine[:, None] == labels[None]
    valid = same[:, :, None] & ~same[:, None, :]
    if FIX == "half":
        d = d.bfloat16()
    slack = (d[:, :, None] - d[:, None, :] + MARGIN).relu()
    return (slack * valid).sum(dtype=torch.float32), valid.sum()


for step in range(5):
    signal, label = torch.randn(N, 1, 1024, device="cuda"), torch.randint(0, CLASSES, (N,), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(signal.chunk(parts), label.chunk(parts)):
        z = embed(x)
        if FIX == "chunked_loss":
            rows = [checkpoint(triplets, a, z, m, y, use_reentrant=False) for a, m in zip(z.chunk(12), y.chunk(12))]
            total, count = (sum(r) for r in zip(*rows))
        elif FIX == "checkpoint":
            total, count = checkpoint(triplets, z, z, y, y, use_reentrant=False)
        else:
            total, count = triplets(z, z, y, y)
        (total / count / parts).backward()
    opt.step()
