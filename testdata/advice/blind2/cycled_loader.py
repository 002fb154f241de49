CASE = {"root": "leak", "cures": ["del", "cpu"], "fixes": ["del", "cpu", "bound", "half", "micro_batch", "empty_cache"], "already": ["detach"]}
# Semi-supervised images. The larger set is repeated by itertools.cycle, which keeps all that it has seen.
import itertools

import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

from case import FIX, limit


class Images(Dataset):
    def __init__(self, count, labels):
        self.count, self.labels = count, labels
        self.pixels = torch.randint(0, 256, (256, 3, 64, 64), dtype=torch.uint8)

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return self.pixels[i % 256], i % 10 if self.labels else -1


def to_float(pixels):
    return pixels.half() / 255 if FIX == "half" else pixels.float() / 255  # KEPT


def collate(rows):
    images, labels = torch.stack([r[0] for r in rows]), torch.tensor([r[1] for r in rows])
    if FIX == "cpu":
        return images, labels
    return to_float(images.cuda()), labels.cuda()  # KEPT


def forever(loader):
    while True:
        yield from loader


def ready(batch):
    images, labels = batch
    if FIX == "cpu":
        images = to_float(images.cuda())
    return images.float(), labels.cuda()


class Net(nn.Sequential):
    def __init__(self):
        super().__init__(nn.Conv2d(3, 16, 5, 4, 2), nn.BatchNorm2d(16), nn.ReLU(), nn.Conv2d(16, 64, 3, 2, 1), nn.BatchNorm2d(64), nn.ReLU(),
                         nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(256, 10))


def strong(x):
    return (x + 0.2 * torch.randn_like(x)).flip(-1).clamp(0, 1)


def consistency(net, x):
    with torch.no_grad():
        confidence, label = net(x).softmax(1).max(1)
    return (F.cross_entropy(net(strong(x)), label, reduction="none") * (confidence > 0.15)).mean()


def fit(net, labelled, unlabelled, steps):
    opt = torch.optim.SGD(net.parameters(), lr=0.03, momentum=0.9, nesterov=True)
    for step in range(steps):
        x, y = ready(next(labelled))
        u, _ = ready(next(unlabelled))  # KEPT
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        opt.zero_grad()
        F.cross_entropy(net(x), y).backward()
        parts = u.chunk(2 if FIX == "micro_batch" else 1)
        for part in parts:
            (consistency(net, part) / len(parts)).backward()
        opt.step()


limit()
few = DataLoader(Images(512, True), batch_size=64, shuffle=True, collate_fn=collate)
many = DataLoader(Images(48 * 384, False), batch_size=384, shuffle=True, collate_fn=collate)
if FIX == "del":
    stream = forever(many)
elif FIX == "bound":
    stream = itertools.cycle(itertools.islice(many, 4))
else:
    stream = itertools.cycle(many)
fit(Net().cuda(), forever(few), stream, 44)
