import copy
from dataclasses import dataclass
import torch
import torch.nn as nn
import torch.nn.functional as F

@dataclass
class Cfg:
    vocab: int = 32000
    dim: int = 640
    layers: int = 8
    heads: int = 10
    ctx: int = 512

class RMSNorm(nn.Module):
    def __init__(self, d, eps=1e-6):
        super().__init__()
        self.g, self.eps = nn.Parameter(torch.ones(d)), eps
    def forward(self, x):
        xf = x.float()
        return (xf * torch.rsqrt(xf.pow(2).mean(-1, keepdim=True) + self.eps)).type_as(x) * self.g

def rope(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat([a * cos - b * sin, a * sin + b * cos], dim=-1).to(x.dtype)

class Block(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.h = c.heads
        self.n1, self.n2 = RMSNorm(c.dim), RMSNorm(c.dim)
        self.qkv, self.o = nn.Linear(c.dim, 3 * c.dim, bias=False), nn.Linear(c.dim, c.dim, bias=False)
        self.up, self.down = nn.Linear(c.dim, 8 * c.dim // 3 * 2, bias=False), nn.Linear(8 * c.dim // 3, c.dim, bias=False)
    def forward(self, x, cos, sin):
        B, T, D = x.shape
        q, k, v = (t.view(B, T, self.h, -1).transpose(1, 2) for t in self.qkv(self.n1(x)).split(D, dim=-1))
        y = F.scaled_dot_product_attention(rope(q, cos, sin), rope(k, cos, sin), v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(B, T, D))
        g, u = self.up(self.n2(x)).chunk(2, -1)
        return x + self.down(F.silu(g) * u)

class GPT(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.tok, self.norm = nn.Embedding(c.vocab, c.dim), RMSNorm(c.dim)
        self.blocks = nn.ModuleList(Block(c) for _ in range(c.layers))
        self.head = nn.Linear(c.dim, c.vocab, bias=False)
        nn.init.normal_(self.tok.weight, std=0.02)
        self.head.weight = self.tok.weight
        hd = c.dim // c.heads
        f = torch.outer(torch.arange(c.ctx).float(), 10000 ** (-torch.arange(0, hd, 2).float() / hd))
        self.register_buffer("cos", f.cos(), persistent=False)
        self.register_buffer("sin", f.sin(), persistent=False)
    def forward(self, idx, targets):
        x = self.tok(idx)
        for b in self.blocks:
            x = b(x, self.cos[: idx.size(1)], self.sin[: idx.size(1)])
        return F.cross_entropy(self.head(self.norm(x)).flatten(0, 1), targets.flatten())

torch.manual_seed(0)
model = GPT(Cfg()).cuda()
ema = copy.deepcopy(model).eval().requires_grad_(False)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, betas=(0.9, 0.95), fused=True)
for step in range(5):
    data = torch.randint(0, Cfg.vocab, (8, Cfg.ctx + 1), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(data[:, :-1], data[:, 1:])
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    with torch.no_grad():
        torch._foreach_lerp_(list(ema.parameters()), list(model.parameters()), 0.01)
    print(step, loss.item())
