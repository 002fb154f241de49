CASE = {"root": "leak", "cures": ["detach", "no_grad"], "fixes": ["detach", "no_grad", "cpu", "micro_batch", "del"], "already": ["half"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class UNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.d1, self.d2, self.mid = nn.Conv2d(3, c, 3, padding=1), nn.Conv2d(c, 2 * c, 3, padding=1), nn.Conv2d(2 * c, 2 * c, 3, padding=1)
        self.u2, self.u1 = nn.Conv2d(4 * c, c, 3, padding=1), nn.Conv2d(2 * c, 3, 3, padding=1)

    def forward(self, x):
        a = F.silu(self.d1(x))
        b = F.silu(self.d2(F.avg_pool2d(a, 2)))
        m = F.interpolate(F.silu(self.mid(F.avg_pool2d(b, 2))), scale_factor=2)
        return self.u1(torch.cat([F.interpolate(F.silu(self.u2(torch.cat([m, b], 1))), scale_factor=2), a], 1))


def total_variation(x):
    return (x[..., 1:] - x[..., :-1]).pow(2).mean() + (x[..., 1:, :] - x[..., :-1, :]).pow(2).mean()  # KEPT


limit()
model = UNet().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
epoch_tv, micro = 0.0, 4 if FIX == "micro_batch" else 8
for step in range(16):
    opt.zero_grad()
    for _ in range(16 // micro):  # gradient accumulation
        noisy = torch.randn(micro, 3, 256, 256, device="cuda")
        with torch.autocast("cuda", torch.bfloat16):
            clean = model(noisy)
            loss = F.l1_loss(clean.float(), noisy) * micro / 16
        with torch.set_grad_enabled(FIX != "no_grad"):
            tv = total_variation(clean.float())  # KEPT
        loss.backward()
        if FIX != "del":
            epoch_tv += tv.item() if FIX == "detach" else tv.detach().cpu() if FIX == "cpu" else tv
    opt.step()
