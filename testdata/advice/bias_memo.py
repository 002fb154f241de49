CASE = {"root": "leak", "cures": ["bound", "del", "cpu"], "fixes": ["bound", "del", "cpu", "half", "micro_batch"], "already": ["detach", "no_grad"]}
import random
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

BIAS = {}
SLOPES = torch.tensor([2.0 ** -(i + 1) for i in range(8)])


def alibi(t):
    """The bias of all heads for a length, made once."""
    if t not in BIAS:
        distance = torch.arange(t, device="cuda")[None, :] - torch.arange(t, device="cuda")[:, None]
        bias = (SLOPES.to("cuda")[:, None, None] * distance.clamp(max=0)).masked_fill(distance > 0, float("-inf"))  # KEPT
        if FIX == "del":
            return bias
        if FIX == "bound" and len(BIAS) >= 2:
            BIAS.pop(next(iter(BIAS)))
        BIAS[t] = bias.cpu() if FIX == "cpu" else bias.half() if FIX == "half" else bias
    return BIAS[t].to("cuda", torch.float32)


class Layer(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.qkv, self.out, self.norm = nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)

    def forward(self, x, bias):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, 8, d // 8).permute(2, 0, 3, 1, 4)
        return x + self.out(F.scaled_dot_product_attention(q, k, v, attn_mask=bias).transpose(1, 2).reshape(b, t, d))


limit()
rng = random.Random(1)
lengths = rng.sample(range(960, 1120, 8), 18)
emb, layers, head = nn.Embedding(1000, 256).cuda(), nn.ModuleList([Layer() for _ in range(3)]).cuda(), nn.Linear(256, 1000).cuda()
opt = torch.optim.NAdam([*emb.parameters(), *layers.parameters(), *head.parameters()], lr=1e-3)
for step, t in enumerate(lengths):
    ids = torch.randint(0, 1000, (2, t), device="cuda")
    opt.zero_grad()
    for part in ids.chunk(2 if FIX == "micro_batch" else 1):
        x = emb(part)
        for layer in layers:
            x = layer(x, alibi(t))  # KEPT
        F.cross_entropy(head(x[:, :-1]).flatten(0, 1), part[:, 1:].flatten()).backward()
    opt.step()
