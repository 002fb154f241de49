CASE = {"root": "capacity", "cures": ["micro_batch", "half"], "fixes": ["micro_batch", "half", "optimizer", "checkpoint", "detach"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential
from case import FIX, limit


def g_block(a, b):
    return nn.Sequential(nn.Upsample(scale_factor=2), nn.Conv2d(a, b, 3, padding=1), nn.BatchNorm2d(b), nn.ReLU(), nn.Conv2d(b, b, 3, padding=1), nn.ReLU())


def d_block(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.LeakyReLU(0.2), nn.Conv2d(b, b, 4, 2, 1), nn.LeakyReLU(0.2))


class GAN(nn.Module):
    def __init__(self):
        super().__init__()
        self.g = nn.Sequential(g_block(256, 128), g_block(128, 64), g_block(64, 32), nn.Conv2d(32, 3, 3, padding=1), nn.Tanh())
        self.d = nn.Sequential(d_block(3, 32), d_block(32, 64), d_block(64, 128), d_block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 1))

    def run(self, net, x):
        return checkpoint_sequential(net, 3, x, use_reentrant=False) if FIX == "checkpoint" else net(x)


limit()
gan = GAN().cuda()
Opt = torch.optim.SGD if FIX == "optimizer" else torch.optim.Adam
opt_g, opt_d = Opt(gan.g.parameters(), lr=1e-4), Opt(gan.d.parameters(), lr=4e-4)
parts = 2 if FIX == "micro_batch" else 1
for step in range(4):
    real, z = torch.randn(64, 3, 64, 64, device="cuda"), torch.randn(64, 256, 8, 8, device="cuda")
    for x, n in zip(real.chunk(parts), z.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            fake = gan.run(gan.g, n)
            seen = fake.detach() if FIX == "detach" else fake
            loss_d = F.softplus(-gan.run(gan.d, x)).mean() + F.softplus(gan.run(gan.d, seen)).mean()
        loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    for n in z.chunk(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss_g = F.softplus(-gan.run(gan.d, gan.run(gan.g, n))).mean()
        loss_g.backward()
    opt_g.step()
    opt_d.zero_grad()
