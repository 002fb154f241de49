CASE = {"root": "leak", "cures": ["bound", "cpu"], "fixes": ["bound", "cpu", "half", "detach", "micro_batch", "del"], "already": ["no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
encoder = nn.Sequential(nn.Conv2d(3, 64, 5, 4), nn.ReLU(), nn.Conv2d(64, 128, 3, 2), nn.ReLU(), nn.AdaptiveAvgPool2d(4), nn.Flatten(), nn.Linear(2048, 4096)).cuda()
opt = torch.optim.SGD(encoder.parameters(), lr=0.03, momentum=0.9, weight_decay=1e-4)
bank = torch.zeros(0, 4096, device="cuda")
for step in range(24):
    view1, view2 = torch.randn(1024, 3, 32, 32, device="cuda"), torch.randn(1024, 3, 32, 32, device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, b in zip(view1.chunk(parts), view2.chunk(parts)):
        q = F.normalize(encoder(a), dim=1)
        with torch.no_grad():
            k = F.normalize(encoder(b), dim=1)
        positive = (q * k).sum(1, keepdim=True)
        negative = q @ bank[-2048:].to("cuda", torch.float32).T
        logits = torch.cat([positive, negative], 1) / 0.2
        loss = F.cross_entropy(logits, torch.zeros(len(q), dtype=torch.long, device="cuda"))
        loss.backward()
        new = k.detach() if FIX == "detach" else k.cpu() if FIX == "cpu" else k.half() if FIX == "half" else k
        if FIX != "del":
            bank = torch.cat([bank.to(new.device, new.dtype), new])  # KEPT
        if FIX == "bound":
            bank = bank[-2048:].clone()
    opt.step()
