CASE = {"root": "leak", "cures": ["del", "optimizer"], "fixes": ["del", "optimizer", "bound", "micro_batch", "half", "cpu"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
model = nn.Sequential(nn.Linear(784, 3072), nn.ReLU(), nn.Linear(3072, 3072), nn.ReLU(), nn.Linear(3072, 10)).cuda()
history = []  # (optimizer, loss) of every task of a continual learner


def train_task(task, steps=3):
    opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(steps):
        x, y = torch.randn(512, 784, device="cuda"), torch.randint(0, 10, (512,), device="cuda")
        opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = F.cross_entropy(model(a), b)
            loss.backward()
        opt.step()  # KEPT
    return opt, loss.item()


for task in range(14):
    opt, loss = train_task(task)  # KEPT
    if FIX == "cpu":
        for state in opt.state.values():
            state.update({k: v.cpu() for k, v in state.items()})
    history.append((None if FIX == "del" else opt, loss))
    if FIX == "bound":
        del history[:-1]
