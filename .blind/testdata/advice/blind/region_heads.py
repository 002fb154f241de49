CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer", "bound"], "limit": "tight"}
# The second stage of a detector: as many regions as the first stage has found.
import random
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

C, POOL = 96, 7


class RegionHead(nn.Module):
    def __init__(self, classes=30):
        super().__init__()
        self.conv1, self.conv2 = nn.Conv2d(C, C, 3, padding=1), nn.Conv2d(C, C, 3, padding=1)
        self.fc1, self.fc2 = nn.Linear(C * POOL * POOL, 512), nn.Linear(512, 512)
        self.cls, self.box = nn.Linear(512, classes), nn.Linear(512, 4)

    def features(self, regions):
        x = F.relu(self.conv2(F.relu(self.conv1(regions))))
        return F.relu(self.fc2(F.relu(self.fc1(x.flatten(1)))))

    def forward(self, regions):
        h = checkpoint(self.features, regions, use_reentrant=False) if FIX == "checkpoint" else self.features(regions)
        return self.cls(h), self.box(h)


class Backbone(nn.Module):
    def __init__(self):
        super().__init__()
        self.c1, self.c2 = nn.Conv2d(3, 32, 7, 4, 3), nn.Conv2d(32, C, 3, 2, 1)

    def forward(self, image):
        return F.relu(self.c2(F.relu(self.c1(image))))


def crop(features, boxes):
    """Bilinear samples of a grid in every box."""
    step = torch.linspace(0, 1, POOL, device="cuda")
    x = boxes[:, 0, None] + (boxes[:, 2] - boxes[:, 0])[:, None] * step
    y = boxes[:, 1, None] + (boxes[:, 3] - boxes[:, 1])[:, None] * step
    grid = torch.stack(torch.broadcast_tensors(x[:, None, :], y[:, :, None]), -1)
    found = F.grid_sample(features[None].float(), grid.view(1, -1, POOL, 2), align_corners=False)
    return found.view(C, -1, POOL, POOL).transpose(0, 1).contiguous()


limit()
rng = random.Random(41)
backbone, head = Backbone().cuda(), RegionHead().cuda()
params = [*backbone.parameters(), *head.parameters()]
opt = torch.optim.SGD(params, lr=0.01) if FIX == "optimizer" else torch.optim.Adam(params, lr=1e-4)
for step in range(30):
    height, width = rng.randint(320, 900), rng.randint(320, 900)
    images = torch.rand(2, 3, height, width, device="cuda")
    counts = [rng.randint(150, 3500) for _ in images]
    if FIX == "bound":
        counts = [min(n, 1000) for n in counts]
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    opt.zero_grad()
    for group in ([0], [1]) if FIX == "micro_batch" else ([0, 1],):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            maps = backbone(images[group])
            regions = torch.cat([crop(m, torch.rand(counts[i], 4, device="cuda") * 2 - 1) for m, i in zip(maps, group)])
            scores, boxes = head(regions)
            loss = F.cross_entropy(scores, torch.randint(0, 30, (len(scores),), device="cuda")) + F.smooth_l1_loss(boxes, torch.zeros_like(boxes))
        loss.backward()
    opt.step()
