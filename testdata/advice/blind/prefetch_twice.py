CASE = {"root": "leak", "cures": ["bound", "cpu", "del"], "fixes": ["bound", "cpu", "del", "half", "micro_batch"], "already": ["detach"]}
# A prefetcher that fetches two batches for each that it hands out.
from collections import deque
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit


class Prefetcher:
    def __init__(self, loader):
        self.loader, self.queue = iter(loader), deque()

    def preload(self):
        if FIX == "bound" and len(self.queue) >= 2:
            return
        batch = next(self.loader, None)
        if batch is None:
            return
        if FIX == "half":
            batch = {k: v.half() for k, v in batch.items()}
        if FIX != "cpu":
            batch = {k: v.to("cuda", non_blocking=True) for k, v in batch.items()}  # KEPT
        self.queue.append(batch)

    def __iter__(self):
        self.preload()
        while self.queue:
            self.preload()  # so that a batch is ready when this one is used up
            batch = self.queue.popleft()
            yield {k: v.to("cuda").float() for k, v in batch.items()}
            del batch
            if FIX != "del":
                self.preload()


def loader(n, pool=3):
    made = [{"image": torch.rand(96, 3, 144, 144), "depth": torch.rand(96, 1, 36, 36), "pose": torch.rand(96, 6)} for _ in range(pool)]
    for i in range(n):
        yield made[i % pool]


class MultiTask(nn.Module):
    def __init__(self):
        super().__init__()
        self.trunk = nn.Sequential(nn.Conv2d(3, 24, 5, 2, 2), nn.SiLU(), nn.Conv2d(24, 48, 3, 2, 1), nn.SiLU())
        self.depth, self.pose = nn.Conv2d(48, 1, 1), nn.Linear(48, 6)

    def forward(self, image):
        h = self.trunk(image)
        return self.depth(h), self.pose(h.mean((2, 3)))


limit()
model = MultiTask().cuda()
opt = torch.optim.NAdam(model.parameters(), lr=1e-3)
for step, batch in enumerate(Prefetcher(loader(56))):
    opt.zero_grad()
    n = 2 if FIX == "micro_batch" else 1
    for image, depth, pose in zip(*(batch[k].chunk(n) for k in ("image", "depth", "pose"))):
        d, p = model(image)
        ((F.smooth_l1_loss(d, depth) + F.mse_loss(p, pose)) / n).backward()
    opt.step()
