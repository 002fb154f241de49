import torch
import torch.nn as nn
import torch.nn.functional as F
from einops import rearrange
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn
from torch.utils.checkpoint import checkpoint

class Block(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.heads = heads
        self.n1 = nn.LayerNorm(d, elementwise_affine=False)
        self.n2 = nn.LayerNorm(d, elementwise_affine=False)
        self.qkv, self.proj = nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.Linear(d, 4 * d), nn.GELU(approximate="tanh"), nn.Linear(4 * d, d))
        self.ada = nn.Sequential(nn.SiLU(), nn.Linear(d, 6 * d))

    def forward(self, x, c):
        s1, b1, g1, s2, b2, g2 = self.ada(c)[:, None].chunk(6, dim=-1)
        q, k, v = rearrange(self.qkv(self.n1(x) * (1 + s1) + b1), "b n (t h d) -> t b h n d", t=3, h=self.heads)
        att = F.scaled_dot_product_attention(q, k, v)
        x = x + g1 * self.proj(rearrange(att, "b h n d -> b n (h d)"))
        return x + g2 * self.mlp(self.n2(x) * (1 + s2) + b2)

class DiT(nn.Module):
    def __init__(self, size=32, patch=2, ch=4, d=384, depth=12, heads=6, classes=1000, ckpt_every=3):
        super().__init__()
        self.patch, self.grid, self.ckpt_every = patch, size // patch, ckpt_every
        self.embed = nn.Linear(ch * patch * patch, d)
        self.pos = nn.Parameter(torch.randn(1, self.grid ** 2, d) * 0.02)
        self.t_mlp = nn.Sequential(nn.Linear(1, d), nn.SiLU(), nn.Linear(d, d))
        self.label = nn.Embedding(classes + 1, d)
        self.blocks = nn.ModuleList(Block(d, heads) for _ in range(depth))
        self.head = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, ch * patch * patch))

    def forward(self, z, t, y):
        x = self.embed(rearrange(z, "b c (h p) (w q) -> b (h w) (c p q)", p=self.patch, q=self.patch)) + self.pos
        c = self.t_mlp(t[:, None]) + self.label(y)
        for i, blk in enumerate(self.blocks):
            x = checkpoint(blk, x, c, use_reentrant=False) if i % self.ckpt_every == 0 else blk(x, c)
        return rearrange(self.head(x), "b (h w) (c p q) -> b c (h p) (w q)", h=self.grid, p=self.patch, q=self.patch)

torch.manual_seed(0)
net = DiT().cuda()
ema = AveragedModel(net, multi_avg_fn=get_ema_multi_avg_fn(0.9999))
optim = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=0.0, betas=(0.9, 0.95))
for step in range(5):
    z1 = torch.randn(48, 4, 32, 32, device="cuda")
    z0, t = torch.randn_like(z1), torch.rand(48, device="cuda")
    y = torch.randint(0, 1001, (48,), device="cuda")
    tt = t.view(-1, 1, 1, 1)
    with torch.autocast("cuda", torch.bfloat16):
        pred = net((1 - tt) * z0 + tt * z1, t, y)
    loss = F.mse_loss(pred.float(), z1 - z0)
    loss.backward()
    gn = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optim.step()
    optim.zero_grad(set_to_none=True)
    ema.update_parameters(net)
    print(f"{step} loss {loss.item():.4f} gnorm {gn.item():.3f}")
