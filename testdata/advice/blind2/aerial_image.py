CASE = {"root": "spike", "cures": ["cpu", "chunked_loss", "bound"], "fixes": ["cpu", "chunked_loss", "bound", "half", "micro_batch", "empty_cache"], "already": ["no_grad"]}
# Land cover. Predictions are scaled to the size of the original image, and one original of the validation set is an aerial mosaic.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

CLASSES, SIDE = 20, 192


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        def conv(i, o, stride, dilation=1):
            return nn.Sequential(nn.Conv2d(i, o, 3, stride, dilation, dilation, bias=False), nn.BatchNorm2d(o), nn.ReLU())
        self.body = nn.Sequential(conv(3, 24, 2), conv(24, 48, 2), conv(48, 48, 1, 2), conv(48, 48, 1, 4))
        self.out = nn.Conv2d(48, CLASSES, 1)

    def forward(self, x):
        return self.out(self.body(x))


def scale(logits, size):
    return F.interpolate(logits, size=size, mode="bilinear", align_corners=False)


def class_by_class(logits, size):
    """The same labels with memory for two planes."""
    best, label = None, None
    for c in range(CLASSES):
        plane = scale(logits[:, c:c + 1], size)[:, 0]
        if best is None:
            best, label = plane, torch.zeros_like(plane, dtype=torch.uint8)
        else:
            label.masked_fill_(plane > best, c)
            best = torch.maximum(best, plane)
    return label


def label_map(logits, size):
    if FIX == "bound":
        size = [min(n, 640) for n in size]
    if FIX == "chunked_loss":
        return class_by_class(logits, size)
    if FIX == "cpu":
        logits = logits.cpu()
    elif FIX == "half":
        logits = logits.half()
    confidence, label = scale(logits, size).softmax(1).max(1)
    label[confidence < 0.06] = 255
    return label.to(torch.uint8)


def train_epoch(net, opt, steps):
    net.train()
    for step in range(steps):
        x, y = torch.rand(8, 3, SIDE, SIDE, device="cuda"), torch.randint(0, CLASSES, (8, SIDE, SIDE), device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        opt.zero_grad()
        for a, b in zip(x.chunk(parts), y.chunk(parts)):
            (F.cross_entropy(scale(net(a), (SIDE, SIDE)), b) / parts).backward()
        opt.step()


@torch.no_grad()
def validate(net, sizes):
    net.eval()
    shares = []
    for step, size in enumerate(sizes):
        image = torch.rand(1, 3, 2 * SIDE, 2 * SIDE, device="cuda")  # every image is scaled down to this
        shares.append((label_map(net(image), size) == 0).float().mean().item())
    return sum(shares) / len(shares)


limit()
net = Net().cuda()
opt = torch.optim.SGD(net.parameters(), lr=0.01, momentum=0.9)
originals = [(480, 640)] * 6 + [(1800, 2600)] + [(480, 640)] * 3
for epoch in range(2):
    train_epoch(net, opt, 6)
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    validate(net, originals)
