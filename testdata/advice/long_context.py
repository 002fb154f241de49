CASE = {"root": "capacity", "cures": ["checkpoint", "half", "micro_batch"], "fixes": ["checkpoint", "half", "chunked_loss", "optimizer", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class SwiGLU(nn.Module):
    def __init__(self, d, hidden):
        super().__init__()
        self.gate, self.up, self.down = nn.Linear(d, hidden, bias=False), nn.Linear(d, hidden, bias=False), nn.Linear(hidden, d, bias=False)

    def forward(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))


class Block(nn.Module):
    def __init__(self, d=512, heads=8):
        super().__init__()
        self.heads, self.n1, self.n2 = heads, nn.RMSNorm(d), nn.RMSNorm(d)
        self.qkv, self.out, self.mlp = nn.Linear(d, 3 * d, bias=False), nn.Linear(d, d, bias=False), SwiGLU(d, 1408)

    def forward(self, x):
        b, t, d = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(self.n2(x))


class LM(nn.Module):
    def __init__(self, vocab=4000, layers=6):
        super().__init__()
        self.emb, self.blocks, self.norm, self.head = nn.Embedding(vocab, 512), nn.ModuleList([Block() for _ in range(layers)]), nn.RMSNorm(512), nn.Linear(512, vocab, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if FIX == "checkpoint" else block(x)
        return self.norm(x)


def loss_of(model, ids):
    hidden, target = model(ids[:, :-1]).flatten(0, 1), ids[:, 1:].flatten()
    chunks = 8 if FIX == "chunked_loss" else 1
    losses = [checkpoint(lambda h, t: F.cross_entropy(model.head(h), t, reduction="sum"), h, t, use_reentrant=False) if chunks > 1 else F.cross_entropy(model.head(h), t, reduction="sum")
              for h, t in zip(hidden.chunk(chunks), target.chunk(chunks))]
    return sum(losses) / len(target)


limit()
model = LM().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
parts = 2 if FIX == "micro_batch" else 1
for step in range(4):
    opt.zero_grad()
    for ids in torch.randint(0, 4000, (2, 4097), device="cuda").chunk(parts):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = loss_of(model, ids) / parts
        loss.backward()
    opt.step()
