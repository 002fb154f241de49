import copy, math
import torch, torch.nn as nn, torch.nn.functional as F

def t_embed(t, dim):
    half = dim // 2
    freqs = torch.exp(-math.log(10000) * torch.arange(half, device=t.device) / half)
    a = t[:, None].float() * freqs[None]
    return torch.cat([a.sin(), a.cos()], dim=-1)

class Res(nn.Module):
    def __init__(self, ci, co, td):
        super().__init__()
        self.n1, self.c1 = nn.GroupNorm(8, ci), nn.Conv2d(ci, co, 3, padding=1)
        self.emb = nn.Linear(td, co)
        self.n2, self.c2 = nn.GroupNorm(8, co), nn.Conv2d(co, co, 3, padding=1)
        self.skip = nn.Conv2d(ci, co, 1) if ci != co else nn.Identity()

    def forward(self, x, t):
        h = self.c1(F.silu(self.n1(x))) + self.emb(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.c2(F.silu(self.n2(h)))

class UNet(nn.Module):
    def __init__(self, ch=64, td=256):
        super().__init__()
        self.ch = ch
        self.time = nn.Sequential(nn.Linear(ch, td), nn.SiLU(), nn.Linear(td, td))
        self.inp = nn.Conv2d(3, ch, 3, padding=1)
        self.d1, self.d2 = Res(ch, ch, td), Res(ch, 2 * ch, td)
        self.d3, self.m = Res(2 * ch, 4 * ch, td), Res(4 * ch, 4 * ch, td)
        self.u3, self.u2, self.u1 = Res(8 * ch, 2 * ch, td), Res(4 * ch, ch, td), Res(2 * ch, ch, td)
        self.out = nn.Sequential(nn.GroupNorm(8, ch), nn.SiLU(), nn.Conv2d(ch, 3, 3, padding=1))

    def forward(self, x, t):
        t = self.time(t_embed(t, self.ch))
        h1 = self.d1(self.inp(x), t)
        h2 = self.d2(F.avg_pool2d(h1, 2), t)
        h3 = self.d3(F.avg_pool2d(h2, 2), t)
        h = self.u3(torch.cat([self.m(h3, t), h3], 1), t)
        h = self.u2(torch.cat([F.interpolate(h, scale_factor=2), h2], 1), t)
        return self.out(self.u1(torch.cat([F.interpolate(h, scale_factor=2), h1], 1), t))

model = UNet().cuda()
ema = copy.deepcopy(model).requires_grad_(False).eval()
opt = torch.optim.Adam(model.parameters(), lr=2e-4)
alphas_bar = torch.cumprod(1 - torch.linspace(1e-4, 0.02, 1000), 0).cuda()
for i in range(5):
    x0 = torch.rand(32, 3, 64, 64, device="cuda") * 2 - 1
    t = torch.randint(0, 1000, (32,), device="cuda")
    ab = alphas_bar[t].view(-1, 1, 1, 1)
    noise = torch.randn_like(x0)
    loss = F.mse_loss(model(ab.sqrt() * x0 + (1 - ab).sqrt() * noise, t), noise)
    opt.zero_grad()
    loss.backward()
    opt.step()
    with torch.no_grad():
        for pe, pm in zip(ema.parameters(), model.parameters()):
            pe.mul_(0.999).add_(pm, alpha=0.001)
    print(i, loss.item())
