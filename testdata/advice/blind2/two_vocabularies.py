CASE = {"root": "capacity", "cures": ["chunked_loss", "micro_batch"], "fixes": ["chunked_loss", "micro_batch", "half", "checkpoint", "optimizer"], "already": ["no_grad"]}
# Distillation of a language model: the logits of teacher and student over a large vocabulary, and a softmax of both.
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

VOCAB, HEAT = 40000, 2.0


class Mixer(nn.Module):
    """Causal averages in place of attention."""

    def __init__(self, d):
        super().__init__()
        self.norm, self.gate, self.ff = nn.LayerNorm(d), nn.Linear(d, d), nn.Sequential(nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d))

    def forward(self, x):
        h = self.norm(x)
        past = h.cumsum(1) / torch.arange(1, h.shape[1] + 1, device=h.device)[:, None]
        return x + self.ff(past * self.gate(h).sigmoid())


class LM(nn.Module):
    def __init__(self, d, depth):
        super().__init__()
        self.emb, self.layers, self.head = nn.Embedding(VOCAB, d), nn.ModuleList(Mixer(d) for _ in range(depth)), nn.Linear(d, VOCAB, bias=False)

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" and self.training else layer(x)
        return x


class Distiller:
    def __init__(self):
        self.student, self.teacher = LM(128, 2).cuda(), LM(256, 3).cuda().eval().requires_grad_(False)
        params = self.student.parameters()
        self.opt = torch.optim.SGD(params, lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(params, lr=5e-4)

    def divergence(self, mine, theirs):
        with torch.no_grad():
            goal = F.log_softmax(self.teacher.head(theirs) / HEAT, -1)
        guess = F.log_softmax(self.student.head(mine) / HEAT, -1)
        return F.kl_div(guess, goal, reduction="sum", log_target=True) * HEAT ** 2

    def loss(self, ids):
        mine = self.student(ids).flatten(0, 1)
        with torch.no_grad():
            theirs = self.teacher(ids).flatten(0, 1)
        if FIX == "chunked_loss":
            pieces = zip(mine.chunk(16), theirs.chunk(16))
            return sum(checkpoint(self.divergence, a, b, use_reentrant=False) for a, b in pieces) / len(mine)
        return self.divergence(mine, theirs) / len(mine)

    def step(self, ids):
        self.opt.zero_grad()
        parts = ids.chunk(2 if FIX == "micro_batch" else 1)
        for part in parts:
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = self.loss(part)
            (loss / len(parts)).backward()
        self.opt.step()


limit()
distiller = Distiller()
for step in range(4):
    distiller.step(torch.randint(0, VOCAB, (8, 256), device="cuda"))
