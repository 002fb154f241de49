CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "half", "checkpoint"], "limit": "over", "weight": 1.5}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class CrossAttention(nn.Module):
    def __init__(self, d=128, heads=8):
        super().__init__()
        self.heads, self.q, self.kv, self.out = heads, nn.Linear(d, d), nn.Linear(d, 2 * d), nn.Linear(d, d)

    def forward(self, x, memory, padding):
        b, t, d = x.shape
        s = memory.shape[1]
        q = self.q(x).view(b, t, self.heads, -1).transpose(1, 2)
        k, v = self.kv(memory).view(b, s, 2, self.heads, -1).permute(2, 0, 3, 1, 4)
        if FIX == "shape":
            mask = padding[:, None, None, :].expand(b, 1, t, s)
        else:
            mask = padding.repeat(self.heads * t, 1, s).view(self.heads * t, b, s, s)[:t, :, :1].permute(1, 2, 0, 3)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=mask).transpose(1, 2).reshape(b, t, d))


limit()
inp, layer, out = nn.Linear(16, 128).cuda(), CrossAttention().cuda(), nn.Linear(128, 16).cuda()
opt = torch.optim.AdamW([*inp.parameters(), *layer.parameters(), *out.parameters()], lr=1e-3)
for step in range(5):
    x, memory = torch.randn(8, 64, 16, device="cuda"), torch.randn(8, 512, 128, device="cuda")
    padding = torch.arange(512, device="cuda")[None] < torch.randint(300, 512, (8, 1), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, m, p in zip(x.chunk(parts), memory.chunk(parts), padding.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h = checkpoint(layer, inp(a), m, p, use_reentrant=False) if FIX == "checkpoint" else layer(inp(a), m, p)
        F.mse_loss(out(h.float()), a).backward()
    opt.step()
