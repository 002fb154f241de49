"""Short conditional diffusion run followed by DDIM sampling with classifier-free guidance."""
import torch
from torch import nn
from torch.nn import functional as F
DEV, T, NULL = "cuda", 1000, 10

class ResAttn(nn.Module):
    def __init__(self, c, attn=False):
        super().__init__()
        self.body = nn.Sequential(nn.GroupNorm(16, c), nn.SiLU(), nn.Conv2d(c, c, 3, 1, 1),
                                  nn.GroupNorm(16, c), nn.SiLU(), nn.Dropout(0.1), nn.Conv2d(c, c, 3, 1, 1))
        self.film = nn.Linear(256, 2 * c)
        self.attn = nn.MultiheadAttention(c, 4, batch_first=True) if attn else None

    def forward(self, x, e):
        scale, shift = self.film(e)[..., None, None].chunk(2, 1)
        x = x + self.body(x * (1 + scale) + shift)
        if self.attn is not None:
            s = x.flatten(2).transpose(1, 2)
            x = x + self.attn(s, s, s, need_weights=False)[0].transpose(1, 2).reshape(x.shape)
        return x

class Net(nn.Module):
    def __init__(self, c=96):
        super().__init__()
        self.temb, self.yemb = nn.Embedding(T, 256), nn.Embedding(11, 256)
        self.inp, self.out = nn.Conv2d(3, c, 3, 1, 1), nn.Conv2d(c, 3, 3, 1, 1)
        self.a, self.b = ResAttn(c), ResAttn(2 * c, attn=True)
        self.mid, self.z = ResAttn(2 * c, attn=True), ResAttn(c)
        self.down, self.up = nn.Conv2d(c, 2 * c, 3, 2, 1), nn.ConvTranspose2d(2 * c, c, 4, 2, 1)

    def forward(self, x, t, y):
        e = F.silu(self.temb(t) + self.yemb(y))
        h = self.a(self.inp(x), e)
        g = self.mid(self.b(self.down(h), e), e)
        return self.out(self.z(self.up(g) + h, e))
@torch.no_grad()
def ddim(net, abar, n=64, steps=20, w=3.0):
    net.eval()
    x, y = torch.randn(n, 3, 32, 32, device=DEV), torch.arange(n, device=DEV) % 10
    ts = torch.linspace(T - 1, 0, steps + 1).long().tolist()
    for cur, nxt in zip(ts[:-1], ts[1:]):
        t = torch.full((2 * n,), cur, device=DEV)
        c, u = net(torch.cat([x, x]), t, torch.cat([y, torch.full_like(y, NULL)])).chunk(2)
        eps = u + w * (c - u)
        x0 = ((x - (1 - abar[cur]).sqrt() * eps) / abar[cur].sqrt()).clamp(-1, 1)
        x = abar[nxt].sqrt() * x0 + (1 - abar[nxt]).sqrt() * eps
    return x
net = Net().to(DEV)
abar = torch.cumprod(1 - torch.linspace(1e-4, 2e-2, T, device=DEV), dim=0)
opt = torch.optim.AdamW(net.parameters(), lr=3e-4)
for it in range(4):
    x, y = torch.randn(64, 3, 32, 32, device=DEV), torch.randint(0, 10, (64,), device=DEV)
    y[torch.rand(64, device=DEV) < 0.1] = NULL
    t, eps = torch.randint(0, T, (64,), device=DEV), torch.randn_like(x)
    a = abar[t][:, None, None, None]
    loss = (net(a.sqrt() * x + (1 - a).sqrt() * eps, t, y) - eps).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    print(it, float(loss))
print("samples", ddim(net, abar).std().item())
