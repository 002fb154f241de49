CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.4}
import collections
import torch, torch.nn as nn, torch.nn.functional as F
from case import limit


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv = nn.ModuleList([nn.Conv2d(a, b, 3, 2, 1) for a, b in ((3, 64), (64, 128), (128, 256))])
        self.fc = nn.Linear(256, 100)

    def forward(self, x):
        for conv in self.conv:
            x = F.gelu(conv(x))
        return self.fc(x.mean((2, 3)))


@torch.no_grad()
def evaluate(model):
    model.eval()
    correct = sum((model(torch.randn(64, 3, 64, 64, device="cuda")).argmax(1) == 3).sum().item() for _ in range(4))
    model.train()
    return correct


limit()
model = Net().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
scores, recent = [], collections.deque(maxlen=2)
for epoch in range(4):
    for step in range(4):
        with torch.autocast("cuda", torch.bfloat16):
            loss = F.cross_entropy(model(torch.randn(64, 3, 64, 64, device="cuda")), torch.randint(0, 100, (64,), device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
    scores.append(evaluate(model))
    recent.append({k: v.cpu() for k, v in model.state_dict().items()})
