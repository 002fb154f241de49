CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "bound", "empty_cache", "optimizer"], "limit": "tight"}
# Detection in two stages: images of all sizes, and as many proposals as the first stage likes.
import random

import torch
from torch import nn
import torch.nn.functional as F

from case import FIX, limit

CHANNELS, CROP = 96, 7


class Backbone(nn.Sequential):
    def __init__(self):
        layers = []
        for i, o, stride in [(3, 32, 2), (32, 32, 1), (32, 64, 2), (64, 64, 1), (64, CHANNELS, 2), (CHANNELS, CHANNELS, 1)]:
            layers += [nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU()]
        super().__init__(*layers)


class BoxHead(nn.Module):
    def __init__(self, classes=31):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(CHANNELS * CROP * CROP, 1024), nn.ReLU(), nn.Linear(1024, 1024), nn.ReLU())
        self.label, self.box = nn.Linear(1024, classes), nn.Linear(1024, 4)

    def forward(self, crops):
        h = self.body(crops.flatten(1))
        return self.label(h), self.box(h)


def crop(features, boxes):
    """Bilinear samples at CROP x CROP points of each box; boxes are in [-1, 1]."""
    steps = torch.linspace(0, 1, CROP, device=boxes.device)
    corner, size = boxes[:, :2], boxes[:, 2:]
    x = corner[:, None, :1] + size[:, None, :1] * steps[None, None]
    y = corner[:, None, 1:] + size[:, None, 1:] * steps[None, :, None]
    grid = torch.stack([x.expand(-1, CROP, -1), y.expand(-1, -1, CROP)], -1)
    out = F.grid_sample(features[None].float(), grid.reshape(1, -1, CROP, 2), align_corners=False)
    return out[0].unflatten(1, (len(boxes), CROP)).transpose(0, 1)


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        self.backbone, self.head = Backbone(), BoxHead()

    def forward(self, images, proposals):
        features = self.backbone(images)
        crops = torch.cat([crop(f, boxes) for f, boxes in zip(features, proposals)])
        return self.head(crops)


def loss_of(model, images, proposals):
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        label, box = model(images, proposals)
    goal = torch.randint(0, 31, (len(label),), device="cuda")
    return F.cross_entropy(label.float(), goal) + F.smooth_l1_loss(box.float(), torch.cat(proposals))


def photographs(count, seed=9):
    rng = random.Random(seed)
    for _ in range(count):
        h, w, n = rng.randint(240, 760), rng.randint(240, 760), rng.choice([2, 3, 4])
        counts = [rng.randint(100, 1400) for _ in range(n)]
        if FIX == "bound":
            counts = [min(c, 500) for c in counts]
        yield torch.rand(n, 3, h, w, device="cuda"), [torch.rand(c, 4, device="cuda") - 0.5 for c in counts]


def train(model, count):
    opt = torch.optim.SGD(model.parameters(), lr=0.005, momentum=0.0 if FIX == "optimizer" else 0.9)
    for step, (images, proposals) in enumerate(photographs(count)):
        opt.zero_grad()
        size = 1 if FIX == "micro_batch" else len(images)
        for i in range(0, len(images), size):
            (loss_of(model, images[i:i + size], proposals[i:i + size]) * size / len(images)).backward()
        opt.step()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
train(Detector().cuda(), 26)
