"""Perceiver on images: latents cross-attend to pixels; einops + einsum; latent blocks checkpointed."""
import torch
from einops import rearrange, repeat
from einops.layers.torch import Reduce
from torch import einsum, nn
from torch.utils.checkpoint import checkpoint

class Attention(nn.Module):
    def __init__(self, dim, ctx_dim=None, heads=8, dim_head=64):
        super().__init__()
        inner, ctx_dim = heads * dim_head, ctx_dim or dim
        self.heads, self.scale = heads, dim_head ** -0.5
        self.norm, self.norm_ctx = nn.LayerNorm(dim), nn.LayerNorm(ctx_dim)
        self.to_q, self.to_kv = nn.Linear(dim, inner, bias=False), nn.Linear(ctx_dim, 2 * inner, bias=False)
        self.to_out = nn.Linear(inner, dim)
    def forward(self, x, context=None):
        x = self.norm(x)
        context = x if context is None else self.norm_ctx(context)
        q, (k, v) = self.to_q(x), self.to_kv(context).chunk(2, dim=-1)
        q, k, v = (rearrange(t, "b n (h d) -> (b h) n d", h=self.heads) for t in (q, k, v))
        attn = (einsum("b i d, b j d -> b i j", q, k) * self.scale).softmax(dim=-1)
        out = einsum("b i j, b j d -> b i d", attn, v)
        return self.to_out(rearrange(out, "(b h) n d -> b n (h d)", h=self.heads))

def ff(dim):
    return nn.Sequential(nn.LayerNorm(dim), nn.Linear(dim, 4 * dim), nn.GELU(), nn.Linear(4 * dim, dim))

class Perceiver(nn.Module):
    def __init__(self, channels=3, bands=32, dim=384, n_latents=192, depth=3, classes=50):
        super().__init__()
        self.register_buffer("freqs", torch.linspace(1.0, 32.0, bands))
        in_dim = channels + 2 * 2 * bands
        self.latents = nn.Parameter(torch.randn(n_latents, dim) * 0.02)
        self.cross = nn.ModuleList(Attention(dim, in_dim, heads=1) for _ in range(depth))
        self.selfs = nn.ModuleList(Attention(dim) for _ in range(depth))
        self.ffs = nn.ModuleList(ff(dim) for _ in range(2 * depth))
        self.head = nn.Sequential(Reduce("b n d -> b d", "mean"), nn.LayerNorm(dim), nn.Linear(dim, classes))
    def forward(self, img):
        b, _, h, w = img.shape
        axes = [torch.linspace(-1, 1, s, device=img.device) for s in (h, w)]
        pos = rearrange(torch.stack(torch.meshgrid(*axes, indexing="ij"), -1), "h w c -> (h w) c 1") * self.freqs * torch.pi
        pos = rearrange(torch.cat([pos.sin(), pos.cos()], -1), "n c f -> n (c f)")
        tokens = torch.cat([rearrange(img, "b c h w -> b (h w) c"), repeat(pos, "n f -> b n f", b=b)], -1)
        x = repeat(self.latents, "n d -> b n d", b=b)
        for i, (ca, sa) in enumerate(zip(self.cross, self.selfs)):
            x = x + ca(x, tokens)
            x = x + self.ffs[2 * i](x)
            x = x + checkpoint(sa, x, use_reentrant=False)
            x = x + self.ffs[2 * i + 1](x)
        return self.head(x)

model = Perceiver().cuda()
opt = torch.optim.RAdam(model.parameters(), lr=1e-3)
for step in range(5):
    img, y = torch.randn(16, 3, 96, 96).cuda(), torch.randint(0, 50, (16,)).cuda()
    loss = nn.functional.cross_entropy(model(img), y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4))
