CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "half", "micro_batch"], "already": ["detach"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class AveragePrecision:
    """Keeps what it is given until compute() is called at the end of the epoch."""

    def __init__(self):
        self.scores, self.targets, self.count, self.mean = [], [], 0, 0.0

    def update(self, logits, target):
        scores = logits.detach().float().sigmoid()  # KEPT
        if FIX == "del":  # a running figure
            self.mean += ((scores > 0.5) == target.bool()).float().mean().item()
            return
        if FIX == "cpu":
            scores = scores.cpu()
        elif FIX == "half":
            scores = scores.half()
        self.scores.append(scores)
        self.targets.append(target.to(scores.device))
        if FIX == "bound":
            del self.scores[:-2], self.targets[:-2]


limit()
tagger = nn.Sequential(nn.EmbeddingBag(50000, 256), nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 8192)).cuda()
opt = torch.optim.Adagrad(tagger.parameters(), lr=0.05)
metric = AveragePrecision()
for step in range(20):
    docs = torch.randint(0, 50000, (2048, 64), device="cuda")
    labels = (torch.rand(2048, 8192, device="cuda") < 0.01).half()  # KEPT
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(docs.chunk(parts), labels.chunk(parts)):
        logits = tagger(x)
        F.binary_cross_entropy_with_logits(logits, y.float()).backward()
        metric.update(logits, y)  # KEPT
    opt.step()
