CASE = {"root": "leak", "cures": ["cpu", "bound"], "fixes": ["cpu", "bound", "detach", "half", "del", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


def up(a, b):
    return nn.Sequential(nn.ConvTranspose2d(a, b, 4, 2, 1), nn.BatchNorm2d(b), nn.ReLU(True))


def down(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 4, 2, 1), nn.LeakyReLU(0.2, True))


limit()
G = nn.Sequential(nn.ConvTranspose2d(100, 256, 4), nn.ReLU(True), up(256, 128), up(128, 64), up(64, 32), nn.ConvTranspose2d(32, 3, 4, 2, 1), nn.Tanh()).cuda()
D = nn.Sequential(down(3, 32), down(32, 64), down(64, 128), down(128, 256), nn.Conv2d(256, 1, 4), nn.Flatten()).cuda()
opt_g, opt_d = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.5, 0.999)), torch.optim.Adam(D.parameters(), 2e-4, betas=(0.5, 0.999))
fakes = []  # for the FID at the end of the epoch
parts = 2 if FIX == "micro_batch" else 1
for step in range(24):
    for real in torch.randn(128, 3, 64, 64, device="cuda").chunk(parts):
        ones, zeros = torch.ones(len(real), 1, device="cuda"), torch.zeros(len(real), 1, device="cuda")
        fake = G(torch.randn(len(real), 100, 1, 1, device="cuda"))  # KEPT
        loss_d = F.binary_cross_entropy_with_logits(D(real), ones) + F.binary_cross_entropy_with_logits(D(fake.detach()), zeros)
        opt_d.zero_grad()
        loss_d.backward()
        opt_d.step()
        loss_g = F.binary_cross_entropy_with_logits(D(fake), ones)
        opt_g.zero_grad()
        loss_g.backward()
        opt_g.step()
        large = F.interpolate(fake, scale_factor=2)  # KEPT
        if FIX == "cpu":
            large = large.detach().cpu()
        elif FIX == "half":
            large = large.detach().half()
        elif FIX == "detach":
            large = large.detach()
        if FIX != "del":
            fakes.append(large)
        if FIX == "bound":
            fakes = fakes[-2:]
