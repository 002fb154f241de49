CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "bound"], "limit": "over", "weight": 1.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
CITIES = 500
model = nn.Sequential(nn.Linear(CITIES + 16, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU(), nn.Linear(1024, 2)).cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)


def features(city, numbers):
    if FIX in ("shape", "bound"):
        city = city.clamp(max=CITIES - 1)
    onehot = F.one_hot(city, num_classes=int(city.max().clamp(min=CITIES - 1)) + 1)
    return torch.cat([onehot[:, :CITIES].float(), numbers], 1)


for step in range(9):
    city, numbers, label = torch.randint(0, CITIES, (1024,), device="cuda"), torch.randn(1024, 16, device="cuda"), torch.randint(0, 2, (1024,), device="cuda")
    if step == 6:
        city[17] = 40_000_001  # a row whose city was never mapped: still the hash
    opt.zero_grad()
    for c, n, y in zip(*[t.chunk(2 if FIX == "micro_batch" else 1) for t in (city, numbers, label)]):
        F.cross_entropy(model(features(c, n)), y).backward()
    opt.step()
