CASE = {"root": "leak", "cures": ["no_grad", "detach"], "fixes": ["no_grad", "detach", "micro_batch", "half", "checkpoint", "cpu"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Denoiser(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.inp, self.down, self.mid, self.up, self.out = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.Conv2d(2 * c, 2 * c, 3, padding=1), nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.Conv2d(2 * c, 3, 3, padding=1)
        self.time = nn.Linear(1, 2 * c)

    def forward(self, x, t):
        skip = F.silu(self.inp(x))  # KEPT
        h = F.silu(self.down(skip) + self.time(t[:, None])[:, :, None, None])  # KEPT
        h = F.silu(self.up(F.silu(self.mid(h))))  # KEPT
        return self.out(torch.cat([h, skip], 1))  # KEPT


def sample(model, n, steps):
    x = torch.randn(n, 3, 32, 32, device="cuda")
    for step in range(steps):
        t = torch.full((n,), 1 - step / steps, device="cuda")
        noise = checkpoint(model, x, t, use_reentrant=False) if FIX == "checkpoint" else model(x, t)  # KEPT
        x = x - noise.float() / steps + 0.01 * torch.randn_like(x)  # KEPT
        if FIX == "detach":
            x = x.detach()
        elif FIX == "cpu":
            x = x.detach().cpu().cuda()
    return x


limit()
model = Denoiser().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=2e-4)
for step in range(4):
    x, t = torch.randn(64, 3, 32, 32, device="cuda"), torch.rand(64, device="cuda")
    noise = torch.randn_like(x)
    loss = F.mse_loss(model(x * (1 - t[:, None, None, None]) + noise * t[:, None, None, None], t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
with torch.set_grad_enabled(FIX != "no_grad"), torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
    images = [sample(model, 32, 40) for _ in range(2)] if FIX == "micro_batch" else sample(model, 64, 40)
