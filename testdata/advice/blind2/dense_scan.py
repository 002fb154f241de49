CASE = {"root": "spike", "cures": ["chunked_loss", "bound"], "fixes": ["chunked_loss", "bound", "half", "micro_batch", "empty_cache", "optimizer"], "already": ["no_grad"]}
# Segmentation of point clouds. The neighbours of a point are found among all distances, and one scan is far denser than the others.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

NEIGHBOURS = 8


@torch.no_grad()
def neighbours(x):
    x = x.float()
    rows = x.split(1024 if FIX == "chunked_loss" else len(x))
    return torch.cat([torch.cdist(r, x).topk(NEIGHBOURS, largest=False).indices for r in rows])


class EdgeConv(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.mlp = nn.Sequential(nn.Linear(2 * i, o), nn.LeakyReLU(0.2))

    def forward(self, x):
        near = x[neighbours(x)]
        centre = x[:, None].expand_as(near)
        return self.mlp(torch.cat([centre, near - centre], 2)).amax(1)


class Segmenter(nn.Module):
    def __init__(self, classes=12):
        super().__init__()
        self.first, self.second = EdgeConv(3, 32), EdgeConv(32, 48)
        self.head = nn.Sequential(nn.Linear(80, 128), nn.ReLU(), nn.Linear(128, classes))

    def forward(self, points):
        a = self.first(points)
        b = self.second(a)
        return self.head(torch.cat([a, b], 1))


class Scans:
    """Two scans for each step; the sizes come from the sensor."""

    def __init__(self, steps, dense):
        self.steps, self.dense = steps, dense

    def __iter__(self):
        for step in range(self.steps):
            pair = []
            for i in range(2):
                n = 18000 if (step, i) == self.dense else 3000
                points = torch.randn(n, 3, device="cuda")
                if FIX == "bound":
                    points = points[:4096]
                pair.append((points, (points.sum(1) > 0).long()))
            yield pair


def loss_of(model, points, label):
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        return F.cross_entropy(model(points).float(), label)


def train(model, scans):
    opt = torch.optim.SGD(model.parameters(), lr=0.02) if FIX == "optimizer" else torch.optim.Adam(model.parameters(), lr=1e-3)
    for step, pair in enumerate(scans):
        opt.zero_grad()
        if FIX == "micro_batch":
            for scan in pair:
                (loss_of(model, *scan) / 2).backward()
        else:
            (sum(loss_of(model, *scan) for scan in pair) / 2).backward()
        opt.step()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
train(Segmenter().cuda(), Scans(14, (9, 1)))
