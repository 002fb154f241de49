CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "bound"], "limit": "over", "weight": 1.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
ITEMS = 20000
emb, tower = nn.Embedding(ITEMS, 128).cuda(), nn.Sequential(nn.Linear(128, 256), nn.ReLU(), nn.Linear(256, ITEMS)).cuda()
opt = torch.optim.SGD([*emb.parameters(), *tower.parameters()], lr=0.1, momentum=0.9)
popularity = torch.zeros(ITEMS, device="cuda")
for step in range(10):
    basket = torch.randint(0, ITEMS, (512, 20), device="cuda")
    raw = basket.clone()
    if step == 7:
        raw[3, 5] = 3_000_000_000  # a time stamp in the column of the item
    if FIX in ("shape", "bound"):
        raw = raw.clamp(max=ITEMS - 1)
    for part in raw.chunk(2 if FIX == "micro_batch" else 1):
        counts = torch.bincount(part.flatten(), minlength=ITEMS)
        popularity += counts[:ITEMS].to("cuda")
    logits = tower(emb(basket[:, :-1]).mean(1))
    loss = F.cross_entropy(logits - 0.1 * popularity.log1p(), basket[:, -1])
    opt.zero_grad()
    loss.backward()
    opt.step()
