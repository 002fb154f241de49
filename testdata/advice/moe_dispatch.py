CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "detach", "half", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class MoE(nn.Module):
    def __init__(self, d=256, experts=8, capacity=320):
        super().__init__()
        self.router, self.capacity, self.experts = nn.Linear(d, experts), capacity, experts
        self.up, self.down = nn.Parameter(torch.randn(experts, d, 4 * d) * 0.02), nn.Parameter(torch.randn(experts, 4 * d, d) * 0.02)
        self.stats = []

    def forward(self, x):
        probs = self.router(x).softmax(-1)
        gate, chosen = probs.max(-1)
        onehot = F.one_hot(chosen, self.experts)
        place = ((onehot.cumsum(0) - 1) * onehot).sum(-1).clamp(max=self.capacity - 1)
        dispatch = onehot[:, :, None].float() * F.one_hot(place, self.capacity)[:, None, :]  # KEPT
        if FIX != "del":  # how evenly the experts are used
            self.stats.append(dispatch.detach().cpu() if FIX == "cpu" else dispatch.half() if FIX == "half" else dispatch.detach() if FIX == "detach" else dispatch)
        if FIX == "bound":
            del self.stats[:-1]
        inputs = torch.einsum("nec,nd->ecd", dispatch, x)
        return x + gate[:, None] * torch.einsum("nec,ecd->nd", dispatch, F.gelu(inputs @ self.up) @ self.down)


limit()
model = nn.Sequential(nn.Linear(64, 256), MoE(), MoE(), nn.Linear(256, 64)).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(20):
    x = torch.randn(2048, 64, device="cuda")
    opt.zero_grad()
    for part in x.chunk(2 if FIX == "micro_batch" else 1):
        F.mse_loss(model(part), part).backward()  # KEPT
    opt.step()
