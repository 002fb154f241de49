CASE = {"root": "leak", "cures": ["cpu", "bound"], "fixes": ["cpu", "bound", "half", "micro_batch", "optimizer", "del"], "already": ["detach", "no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class KeepBest:
    """A callback: keeps the weights of every epoch that was better."""

    def __init__(self):
        self.best, self.kept = float("inf"), []

    def on_validation_end(self, module, loss):
        if loss < self.best:
            self.best = loss
            device, dtype = "cpu" if FIX == "cpu" else "cuda", torch.float16 if FIX == "half" else torch.float32
            if FIX != "del":
                self.kept.append({k: v.detach().to(device, dtype, copy=True) for k, v in module.state_dict().items()})  # KEPT
            if FIX == "bound":
                del self.kept[:-1]


class TextCNN(nn.Module):
    def __init__(self, vocab=30000, d=300):
        super().__init__()
        self.emb = nn.Embedding(vocab, d)
        self.convs = nn.ModuleList([nn.Conv1d(d, 512, k, padding=k // 2) for k in (3, 5, 7)])
        self.fc = nn.Linear(3 * 512, 20)

    def forward(self, ids):
        x = self.emb(ids).transpose(1, 2)
        return self.fc(torch.cat([F.relu(c(x)).amax(2) for c in self.convs], 1))


limit()
model, callback = TextCNN().cuda(), KeepBest()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
for epoch in range(16):
    for step in range(3):
        opt.zero_grad()
        for ids in torch.randint(0, 30000, (64, 128), device="cuda").chunk(2 if FIX == "micro_batch" else 1):
            F.cross_entropy(model(ids), torch.randint(0, 20, (len(ids),), device="cuda")).backward()
        opt.step()
    with torch.no_grad():
        model(torch.randint(0, 30000, (64, 128), device="cuda"))
    callback.on_validation_end(model, 1.0 / (epoch + 1))
