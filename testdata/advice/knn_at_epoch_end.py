CASE = {"root": "spike", "cures": ["chunked_loss", "cpu", "micro_batch"], "fixes": ["chunked_loss", "cpu", "micro_batch", "half", "empty_cache"], "already": ["no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
encoder = nn.Sequential(nn.Linear(256, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 1024), nn.BatchNorm1d(1024), nn.ReLU(), nn.Linear(1024, 128)).cuda()
opt = torch.optim.SGD(encoder.parameters(), lr=0.1, momentum=0.9)


def info_nce(a, b, temperature=0.1):
    logits = F.normalize(a, dim=1) @ F.normalize(b, dim=1).T / temperature
    return F.cross_entropy(logits, torch.arange(len(a), device="cuda"))


@torch.no_grad()
def knn(data):
    encoder.eval()
    z = F.normalize(torch.cat([encoder(x) for x in data.split(2048)]), dim=1)
    if FIX == "cpu":
        z = z.cpu()
    if FIX == "half":
        z = z.half()
    rows = z.split(1024 if FIX == "chunked_loss" else 6144 if FIX == "micro_batch" else len(z))
    near = [(r @ z.T).topk(6, dim=1).indices for r in rows]
    encoder.train()
    return torch.cat(near)


data = torch.randn(12288, 256, device="cuda")
for epoch in range(2):
    for step in range(6):
        x = data[step * 2048:(step + 1) * 2048]
        loss = info_nce(encoder(x + 0.1 * torch.randn_like(x)), encoder(x + 0.1 * torch.randn_like(x)))
        opt.zero_grad()
        loss.backward()
        opt.step()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    knn(data)
