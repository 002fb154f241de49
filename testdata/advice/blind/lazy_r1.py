CASE = {"root": "spike", "cures": ["micro_batch", "half"], "fixes": ["micro_batch", "half", "empty_cache", "optimizer", "bound"]}
# A discriminator whose gradient penalty is computed at every fifth step alone.
import itertools
import torch
import torch.nn as nn
import torch.nn.functional as F
from case import FIX, limit


def discriminator(c=40):
    body = []
    for i, o in ((3, c), (c, 2 * c), (2 * c, 4 * c)):
        body += [nn.Conv2d(i, o, 3, padding=1), nn.LeakyReLU(0.2), nn.AvgPool2d(2)]
    return nn.Sequential(*body, nn.Flatten(), nn.Linear(4 * c * 64, 1))


def generator(z=64):
    return nn.Sequential(nn.Linear(z, 64 * 16 * 16), nn.Unflatten(1, (64, 16, 16)), nn.Upsample(scale_factor=2), nn.Conv2d(64, 24, 3, padding=1), nn.LeakyReLU(0.2),
                         nn.Upsample(scale_factor=2), nn.Conv2d(24, 3, 3, padding=1), nn.Tanh())


def r1(d, real):
    if FIX == "bound":
        real = real[:len(real) // 2]
    real = real.detach().requires_grad_()
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        score = d(real).sum()
    slope, = torch.autograd.grad(score, real, create_graph=True)
    return 5 * slope.square().sum((1, 2, 3)).mean()


limit()
D, G = discriminator().cuda(), generator().cuda()
Optimizer = torch.optim.SGD if FIX == "optimizer" else torch.optim.Adam
opt_d, opt_g = Optimizer(D.parameters(), lr=2e-4), Optimizer(G.parameters(), lr=2e-4)
parts = 2 if FIX == "micro_batch" else 1
for step in itertools.count(1):
    if step > 11:
        break
    for _ in range(parts):
        real, noise = torch.rand(96 // parts, 3, 64, 64, device="cuda") * 2 - 1, torch.randn(96 // parts, 64, device="cuda")
        with torch.no_grad(), torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            fake = G(noise)
        for images, sign in ((real, -1), (fake, 1)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = F.softplus(sign * D(images)).mean()
            (loss / parts).backward()
        if step % 5 == 0:
            if FIX == "empty_cache":
                torch.cuda.empty_cache()
            (r1(D, real) / parts).backward()
    opt_d.step()
    opt_d.zero_grad()
    for _ in range(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.softplus(-D(G(torch.randn(96 // parts, 64, device="cuda")))).mean()
        (loss / parts).backward()
    opt_g.step()
    opt_g.zero_grad()
    opt_d.zero_grad()
