CASE = {"root": "spike", "cures": ["cpu", "chunked_loss", "bound"], "fixes": ["cpu", "chunked_loss", "bound", "half", "micro_batch", "empty_cache", "optimizer"], "already": ["no_grad"]}
# A one-stage detector. Anchors are matched with the boxes of an image, all with all, and one image shows a crowd.
import random
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

random.seed(5)
GRID, PER_CELL, IMAGES = 96, 5, 4


class Detector(nn.Module):
    def __init__(self):
        super().__init__()
        def conv(i, o):
            return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.SiLU())
        self.backbone = nn.Sequential(conv(3, 24), conv(24, 64))
        self.head = nn.Conv2d(64, PER_CELL * 5, 1)

    def forward(self, images):
        out = self.head(self.backbone(images))
        return out.unflatten(1, (PER_CELL, 5)).permute(0, 3, 4, 1, 2).flatten(1, 3)


def anchors():
    centre = (torch.arange(GRID, device="cuda") + 0.5) / GRID
    y, x = torch.meshgrid(centre, centre, indexing="ij")
    size = torch.tensor([0.02, 0.05, 0.1, 0.2, 0.4], device="cuda")
    xy = torch.stack([x, y], -1)[:, :, None].expand(-1, -1, PER_CELL, -1)
    return torch.cat([xy - size[:, None] / 2, xy + size[:, None] / 2], -1).reshape(-1, 4)


def iou(a, b):
    top_left = torch.maximum(a[:, None, :2], b[None, :, :2])
    bottom_right = torch.minimum(a[:, None, 2:], b[None, :, 2:])
    inter = (bottom_right - top_left).clamp(min=0).prod(-1)
    area = lambda t: (t[:, 2:] - t[:, :2]).prod(-1)
    return inter / (area(a)[:, None] + area(b)[None] - inter)


@torch.no_grad()
def match(all_anchors, boxes):
    if FIX == "bound":
        boxes = boxes[:100]
    if FIX == "cpu":
        all_anchors, boxes = all_anchors.cpu(), boxes.cpu()
    if FIX == "half":
        all_anchors, boxes = all_anchors.half(), boxes.half()
    parts = all_anchors.split(2048) if FIX == "chunked_loss" else [all_anchors]
    found = [iou(p, boxes).max(1) for p in parts]
    best, which = torch.cat([f.values for f in found]), torch.cat([f.indices for f in found])
    return (best > 0.5).cuda(), boxes[which].float().cuda()


def random_boxes(n):
    corner, size = torch.rand(n, 2, device="cuda") * 0.9, torch.rand(n, 2, device="cuda") * 0.1
    return torch.cat([corner, corner + size], 1)


limit()
net, grid = Detector().cuda(), anchors()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.0 if FIX == "optimizer" else 0.9)
for step in range(12):
    images = torch.rand(IMAGES, 3, 4 * GRID, 4 * GRID, device="cuda")
    truth = [random_boxes(random.randint(8, 70)) for _ in range(IMAGES)]
    if step == 8:
        truth[2] = random_boxes(640)
    opt.zero_grad()
    size = IMAGES // 2 if FIX == "micro_batch" else IMAGES
    for i in range(0, IMAGES, size):
        loss = 0.0
        for out, boxes in zip(net(images[i:i + size]), truth[i:i + size]):
            positive, goal = match(grid, boxes)
            loss = loss + F.binary_cross_entropy_with_logits(out[:, 0], positive.float()) + ((out[:, 1:] - goal).abs().sum(1) * positive).mean()
        (loss / IMAGES).backward()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    opt.step()
