CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint"], "fixes": ["micro_batch", "checkpoint", "optimizer"], "already": ["half"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


def block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU())


class UNet(nn.Module):
    def __init__(self, c=32):
        super().__init__()
        self.enc = nn.ModuleList([block(3, c), block(c, 2 * c), block(2 * c, 4 * c)])
        self.dec = nn.ModuleList([block(6 * c, 2 * c), block(3 * c, c)])
        self.out = nn.Conv2d(c, 1, 1)

    def run(self, layer, x):
        return checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)

    def forward(self, x):
        a = self.run(self.enc[0], x)
        b = self.run(self.enc[1], F.max_pool2d(a, 2))
        x = self.run(self.enc[2], F.max_pool2d(b, 2))
        x = self.run(self.dec[0], torch.cat([F.interpolate(x, scale_factor=2), b], 1))
        return self.out(self.run(self.dec[1], torch.cat([F.interpolate(x, scale_factor=2), a], 1)))


limit()
model = UNet().cuda()
opt = torch.optim.SGD(model.parameters(), lr=1e-3) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
scaler = torch.amp.GradScaler("cuda")
for step in range(5):
    images, masks = torch.randn(8, 3, 384, 384, device="cuda"), torch.rand(8, 1, 384, 384, device="cuda").round()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(images.chunk(parts), masks.chunk(parts)):
        with torch.autocast("cuda", torch.float16):
            loss = F.binary_cross_entropy_with_logits(model(x), y) / parts
        scaler.scale(loss).backward()
    scaler.step(opt)
    scaler.update()
    opt.zero_grad(set_to_none=True)
