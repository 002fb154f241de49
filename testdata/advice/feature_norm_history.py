CASE = {"root": "leak", "cures": ["detach", "del", "no_grad"], "fixes": ["detach", "del", "no_grad", "cpu", "bound", "micro_batch", "half"]}
import collections
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Residual(nn.Module):
    def __init__(self, c, out, stride):
        super().__init__()
        self.a, self.na = nn.Conv2d(c, out, 3, stride, 1, bias=False), nn.BatchNorm2d(out)
        self.b, self.nb = nn.Conv2d(out, out, 3, 1, 1, bias=False), nn.BatchNorm2d(out)
        self.skip = nn.Conv2d(c, out, 1, stride, bias=False)

    def forward(self, x):
        return F.relu(self.nb(self.b(F.relu(self.na(self.a(x))))) + self.skip(x))  # KEPT


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = nn.Conv2d(3, 48, 3, 1, 1)
        self.stages = nn.Sequential(Residual(48, 96, 2), Residual(96, 192, 2))
        self.fc = nn.Linear(192, 100)

    def features(self, x):
        return self.stages(F.relu(self.stem(x)))  # KEPT

    def forward(self, x):
        return self.fc(self.features(x).mean((2, 3)))


limit()
net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.05, momentum=0.9)
history = collections.defaultdict(list)
if FIX == "bound":
    history["norm"] = collections.deque(maxlen=2)
for step in range(14):
    images, labels = torch.randn(48, 3, 64, 64, device="cuda"), torch.randint(0, 100, (48,), device="cuda")
    opt.zero_grad()
    for x, y in zip(images.chunk(2 if FIX == "micro_batch" else 1), labels.chunk(2 if FIX == "micro_batch" else 1)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.cross_entropy(net(x), y)
        loss.backward()
    opt.step()
    history["loss"].append(loss.item())
    with torch.set_grad_enabled(FIX != "no_grad"):
        norm = net.features(images[:24]).pow(2).mean()  # KEPT
    if FIX != "del":
        history["norm"].append(norm.item() if FIX == "detach" else norm.detach().cpu() if FIX == "cpu" else norm)
