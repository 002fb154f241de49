CASE = {"root": "leak", "cures": ["no_grad", "detach"], "fixes": ["no_grad", "detach", "cpu", "half", "micro_batch"]}
import torch, torch.nn as nn
from case import FIX, limit


class Streamer(nn.Module):
    """Scores an endless stream of audio features, chunk by chunk."""

    def __init__(self, features=80, hidden=768):
        super().__init__()
        self.proj = nn.Linear(features, hidden)
        self.cells = nn.ModuleList([nn.GRUCell(hidden, hidden) for _ in range(2)])
        self.out = nn.Linear(hidden, 1)

    def forward(self, chunk, state):
        x = torch.tanh(self.proj(chunk))  # KEPT
        for t in range(x.shape[1]):
            h = x[:, t]
            for i, cell in enumerate(self.cells):
                state[i] = h = cell(h, state[i])  # KEPT
        return self.out(h), state


limit()
model = Streamer().cuda().eval()
parts = 2 if FIX == "micro_batch" else 1
states = [[torch.zeros(1024 // parts, 768, device="cuda") for _ in range(2)] for _ in range(parts)]
with torch.set_grad_enabled(FIX != "no_grad"), torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
    for step in range(24):
        chunk = torch.randn(1024, 4, 80, device="cuda")
        for i, part in enumerate(chunk.chunk(parts)):
            score, states[i] = model(part, states[i])  # KEPT
            if FIX == "detach":
                states[i] = [s.detach() for s in states[i]]
            if FIX == "cpu":
                states[i] = [s.detach().cpu().cuda() for s in states[i]]
        print(step, score.mean().item())
