CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.5}
# A GAN as it should be: a moving average of the generator, a short pool of old images, a log of numbers.
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

from case import limit


def generator(z=64, c=32):
    return nn.Sequential(nn.Linear(z, 4 * c * 16), nn.Unflatten(1, (4 * c, 4, 4)), nn.ReLU(), nn.ConvTranspose2d(4 * c, 2 * c, 4, 2, 1), nn.ReLU(),
                         nn.ConvTranspose2d(2 * c, c, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(c, c, 4, 2, 1), nn.ReLU(), nn.Conv2d(c, 3, 3, padding=1), nn.Tanh())


def discriminator(c=32):
    return nn.Sequential(nn.Conv2d(3, c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(c, 2 * c, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(2 * c, 4 * c, 4, 2, 1), nn.LeakyReLU(0.2),
                         nn.Flatten(), nn.Linear(4 * c * 16, 1))


class Pool:
    """Images of earlier steps, for the discriminator."""

    def __init__(self, size):
        self.images, self.rng = deque(maxlen=size), random.Random(1)

    def swap(self, fresh):
        self.images.append(fresh)
        return self.rng.choice(self.images)


class Game:
    def __init__(self):
        self.g, self.d = generator().cuda(), discriminator().cuda()
        self.average = copy.deepcopy(self.g).requires_grad_(False)
        self.g_opt = torch.optim.Adam(self.g.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.d_opt = torch.optim.Adam(self.d.parameters(), lr=2e-4, betas=(0.5, 0.999))
        self.pool, self.log = Pool(12), []

    def play(self, real):
        fake = self.g(torch.randn(len(real), 64, device="cuda"))
        self.d_opt.zero_grad()
        d_loss = F.relu(1 - self.d(real)).mean() + F.relu(1 + self.d(self.pool.swap(fake.detach()))).mean()
        d_loss.backward()
        self.d_opt.step()
        self.g_opt.zero_grad()
        g_loss = -self.d(fake).mean()
        g_loss.backward()
        self.g_opt.step()
        self.follow()
        self.log.append((d_loss.item(), g_loss.item()))

    @torch.no_grad()
    def follow(self, decay=0.99):
        for mine, theirs in zip(self.average.parameters(), self.g.parameters()):
            mine.lerp_(theirs, 1 - decay)

    @torch.no_grad()
    def sheet(self, n=256):
        return self.average(torch.randn(n, 64, device="cuda")).clamp(-1, 1).cpu()


limit()
game, sheets = Game(), []
for step in range(60):
    game.play(torch.rand(192, 3, 32, 32, device="cuda") * 2 - 1)
    if step % 15 == 14:
        sheets.append(game.sheet())
