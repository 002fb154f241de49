CASE = {"root": "leak", "cures": ["bound", "del"], "fixes": ["bound", "del", "cpu", "half", "micro_batch", "chunked_loss", "optimizer"], "already": ["detach"]}
# Retrieval with two towers and a queue of negatives. Nothing is ever taken from the queue.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint

from case import FIX, limit

DIM, BATCH, STEPS, TAU = 2048, 1024, 36, 0.07


def tower(n_in):
    return nn.Sequential(nn.Linear(n_in, 512), nn.GELU(), nn.LayerNorm(512), nn.Linear(512, DIM))


class Queue:
    def __init__(self):
        self.docs = torch.zeros(0, DIM, device="cpu" if FIX == "cpu" else "cuda", dtype=torch.bfloat16 if FIX == "half" else torch.float32)

    def push(self, docs):
        if FIX == "del":
            return
        self.docs = torch.cat([self.docs, docs.to(self.docs)])  # KEPT
        if FIX == "bound":
            self.docs = self.docs[-4 * BATCH:].clone()

    def negatives(self):
        return self.docs.to("cuda").float() if FIX in ("cpu", "half") else self.docs


def loss_of(q, d, negatives, first):
    logits = torch.cat([q @ d.T, q @ negatives.T], 1) / TAU
    return F.cross_entropy(logits, first + torch.arange(len(q), device=q.device), reduction="sum")


limit()
query, doc = tower(300).cuda(), tower(700).cuda()
optim = torch.optim.SGD if FIX == "optimizer" else torch.optim.AdamW
opt = optim([{"params": query.parameters()}, {"params": doc.parameters()}], lr=1e-3)
queue = Queue()
for step in range(STEPS):
    clicks = torch.randn(BATCH, 300, device="cuda"), torch.randn(BATCH, 700, device="cuda")
    opt.zero_grad()
    n = 2 if FIX == "micro_batch" else 1
    for a, b in zip(*(t.chunk(n) for t in clicks)):
        q, d = F.normalize(query(a), dim=-1), F.normalize(doc(b), dim=-1)
        if FIX == "chunked_loss":
            loss = sum(checkpoint(loss_of, part, d, queue.negatives(), i * len(part), use_reentrant=False) for i, part in enumerate(q.chunk(8)))
        else:
            loss = loss_of(q, d, queue.negatives(), 0)
        (loss / BATCH).backward()
        queue.push(d.detach())  # KEPT
    opt.step()
