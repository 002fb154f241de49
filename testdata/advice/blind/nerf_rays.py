CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint", "half"], "fixes": ["micro_batch", "checkpoint", "half", "optimizer", "empty_cache"]}
# NeRF with more rays in a batch than the samples along them allow.
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

RAYS, SAMPLES = 1024, 96


def fourier(x, octaves):
    angles = x[..., None] * (2.0 ** torch.arange(octaves, device=x.device))
    return torch.cat([x, angles.sin().flatten(-2), angles.cos().flatten(-2)], -1)


class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        def hidden(i):
            return nn.Sequential(nn.Linear(i, width), nn.ReLU())
        self.first = nn.Sequential(hidden(63), hidden(width), hidden(width), hidden(width))
        self.second = nn.Sequential(hidden(width + 63), hidden(width), hidden(width))
        self.density = nn.Linear(width, 1)
        self.colour = nn.Sequential(nn.Linear(width + 27, width // 2), nn.ReLU(), nn.Linear(width // 2, 3), nn.Sigmoid())

    def features(self, points):
        run = (lambda part, x: checkpoint(part, x, use_reentrant=False)) if FIX == "checkpoint" else (lambda part, x: part(x))
        e = fourier(points, 10)
        return run(self.second, torch.cat([run(self.first, e), e], -1))

    def forward(self, points, directions):
        h = self.features(points)
        view = fourier(directions, 4)[:, None].expand(-1, points.shape[1], -1)
        return self.density(h).squeeze(-1).relu(), self.colour(torch.cat([h, view], -1))


def render(field, origins, directions):
    t = torch.linspace(2, 6, SAMPLES, device="cuda")
    sigma, rgb = field(origins[:, None] + directions[:, None] * t[:, None], directions)
    alpha = 1 - torch.exp(-sigma * (4 / SAMPLES))
    through = torch.cumprod(1 - alpha + 1e-10, 1).roll(1, 1)
    return ((alpha * through)[..., None] * rgb).sum(1)


def main():
    limit()
    field = Field().cuda()
    params = field.parameters()
    opt = torch.optim.SGD(params, lr=1e-2) if FIX == "optimizer" else torch.optim.Adam(params, lr=5e-4)
    for iteration in range(4):
        rays = torch.randn(RAYS, 9, device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        for o, d, c in (r.split(3, 1) for r in rays.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = (render(field, o, d) - c).square().mean()
            (loss / parts).backward()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        opt.step()
        opt.zero_grad()


main()
