CASE = {"root": "spike", "cures": ["micro_batch", "half"], "fixes": ["micro_batch", "half", "bound", "empty_cache", "optimizer"], "already": ["no_grad"]}
# Latent diffusion. After an epoch a sheet of previews is drawn, and the decoder gets all the latents at once.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

LATENT, SHEET = 4, 16 if FIX == "bound" else 144


class Denoiser(nn.Module):
    def __init__(self, c=96):
        super().__init__()
        self.inp, self.out, self.time = nn.Conv2d(LATENT, c, 3, padding=1), nn.Conv2d(c, LATENT, 3, padding=1), nn.Linear(1, c)
        self.blocks = nn.ModuleList(nn.Sequential(nn.GroupNorm(8, c), nn.SiLU(), nn.Conv2d(c, c, 3, padding=1)) for _ in range(3))

    def forward(self, z, t):
        h = self.inp(z) + self.time(t[:, None])[:, :, None, None]
        for block in self.blocks:
            h = h + block(h)
        return self.out(h)


class Decoder(nn.Module):
    """From latents of 16 x 16 to images of 128 x 128."""

    def __init__(self):
        super().__init__()
        def up(i, o):
            return nn.Sequential(nn.ConvTranspose2d(i, o, 2, 2), nn.SiLU(), nn.Conv2d(o, o, 3, padding=1), nn.SiLU())
        self.stages = nn.Sequential(nn.Conv2d(LATENT, 128, 1), up(128, 96), up(96, 64), up(64, 48))
        self.out = nn.Conv2d(48, 3, 3, padding=1)

    def forward(self, z):
        return self.out(self.stages(z)).sigmoid()


def noised(z, t, noise):
    a = t[:, None, None, None]
    return (1 - a).sqrt() * z + a.sqrt() * noise


@torch.no_grad()
def previews(denoiser, decoder, rounds=5):
    z = torch.randn(SHEET, LATENT, 16, 16, device="cuda")
    for i in range(rounds, 0, -1):
        t = torch.full((SHEET,), i / rounds, device="cuda")
        z = z - denoiser(z, t) / rounds
    z = z.to(next(decoder.parameters()).dtype)
    images = [decoder(part) for part in z.split(8 if FIX == "micro_batch" else SHEET)]
    return (torch.cat(images) * 255).byte().cpu()


def epoch(denoiser, opt, steps):
    for step in range(steps):
        z, t = torch.randn(64, LATENT, 16, 16, device="cuda"), torch.rand(64, device="cuda")
        noise = torch.randn_like(z)
        loss = F.mse_loss(denoiser(noised(z, t, noise), t), noise)
        opt.zero_grad()
        loss.backward()
        opt.step()


limit()
denoiser, decoder = Denoiser().cuda(), Decoder().cuda().requires_grad_(False)
if FIX == "half":
    decoder.half()
opt = torch.optim.SGD(denoiser.parameters(), lr=1e-3) if FIX == "optimizer" else torch.optim.AdamW(denoiser.parameters(), lr=1e-4)
for number in range(3):
    epoch(denoiser, opt, 8)
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    sheet = previews(denoiser, decoder)
