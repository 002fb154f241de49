CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint", "half"], "fixes": ["micro_batch", "checkpoint", "half", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Bottleneck(nn.Module):
    def __init__(self, c, mid, stride=1):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(c, mid, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(), nn.Conv2d(mid, mid, 3, stride, 1, bias=False), nn.BatchNorm2d(mid), nn.ReLU(),
                                  nn.Conv2d(mid, 4 * mid, 1, bias=False), nn.BatchNorm2d(4 * mid))
        self.skip = nn.Sequential(nn.Conv2d(c, 4 * mid, 1, stride, bias=False), nn.BatchNorm2d(4 * mid)) if stride > 1 or c != 4 * mid else nn.Identity()

    def forward(self, x):
        return F.relu(self.body(x) + self.skip(x))


class ResNet(nn.Module):
    def __init__(self, classes=100):
        super().__init__()
        self.stem = nn.Sequential(nn.Conv2d(3, 32, 3, 1, 1, bias=False), nn.BatchNorm2d(32), nn.ReLU())
        self.blocks = nn.ModuleList([Bottleneck(32, 32), Bottleneck(128, 32), Bottleneck(128, 64, 2), Bottleneck(256, 64)])
        self.fc = nn.Linear(256, classes)

    def forward(self, x):
        x = self.stem(x)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if FIX == "checkpoint" else block(x)
        return self.fc(x.mean((2, 3)))


def train():
    model = ResNet().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.0 if FIX == "optimizer" else 0.9)
    parts = 2 if FIX == "micro_batch" else 1
    for step in range(5):
        images, labels = torch.randn(192, 3, 32, 32, device="cuda"), torch.randint(0, 100, (192,), device="cuda")
        opt.zero_grad()
        for x, y in zip(images.chunk(parts), labels.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                loss = F.cross_entropy(model(x), y) / parts
            loss.backward()
        opt.step()


limit()
train()
