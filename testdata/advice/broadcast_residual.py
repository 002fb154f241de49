CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "half"], "already": ["no_grad"], "limit": "over", "weight": 1.6}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Regressor(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Linear(32, 512), nn.SiLU(), nn.Linear(512, 512), nn.SiLU(), nn.Linear(512, 1))

    def forward(self, x):
        return self.net(x)


@torch.no_grad()
def r2(pred, target):
    if FIX == "shape":
        pred = pred.squeeze(1)
    residual = (pred - target).pow(2).sum()  # (N, 1) - (N,) is (N, N)
    return (1 - residual / (target - target.mean()).pow(2).sum()).item()


limit()
model = Regressor().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
parts = 2 if FIX == "micro_batch" else 1
for step in range(8):
    x, y = torch.randn(40960, 32, device="cuda"), torch.randn(40960, device="cuda")
    opt.zero_grad()
    for a, b in zip(x.chunk(parts), y.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            pred = model(a)
        F.mse_loss(pred.float().squeeze(1), b).backward()
        if step % 6 == 5:
            print(step, r2(pred, b))
    opt.step()
