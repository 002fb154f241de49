CASE = {"root": "leak", "cures": ["detach", "no_grad"], "fixes": ["detach", "no_grad", "cpu", "bound", "half", "micro_batch"]}
# Centre loss on images. The running centres of the classes come from features with a graph, and both losses are sent back with retain_graph=True.
import contextlib

import torch
import torch.nn as nn
import torch.nn.functional as F

from case import FIX, limit

CLASSES, DIM = 40, 128


def make_encoder():
    def stage(i, o):
        return nn.Sequential(nn.Conv2d(i, o, 3, 2, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU(), nn.Conv2d(o, o, 3, 1, 1, bias=False), nn.BatchNorm2d(o), nn.ReLU())
    return nn.Sequential(stage(3, 32), stage(32, 64), stage(64, 96), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(96, DIM))


class Centres:
    def __init__(self, momentum=0.9):
        self.momentum, self.age = momentum, 0
        self.value = torch.zeros(CLASSES, DIM, device="cuda")

    def update(self, z, y):
        if FIX == "detach":
            z = z.detach()
        elif FIX == "cpu":
            z, y, self.value = z.detach().cpu(), y.cpu(), self.value.cpu()
        member = F.one_hot(y, CLASSES).float()
        means = member.T @ z.float() / member.sum(0).clamp(min=1)[:, None]
        self.value = self.momentum * self.value + (1 - self.momentum) * means
        self.age += 1
        if FIX == "bound" and self.age % 2 == 0:
            self.value = self.value.detach()

    def of(self, y):
        return self.value.data.to(y.device)[y]


class Learner:
    def __init__(self):
        self.encoder, self.head, self.centres = make_encoder().cuda(), nn.Linear(DIM, CLASSES).cuda(), Centres()
        self.opt = torch.optim.SGD([*self.encoder.parameters(), *self.head.parameters()], lr=0.05, momentum=0.9)

    def learn(self, x, y):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            z = self.encoder(x)  # KEPT
            classify = F.cross_entropy(self.head(z), y)
            pull = 0.01 * F.mse_loss(z.float(), self.centres.of(y))
        classify.backward(retain_graph=True)
        pull.backward(retain_graph=True)
        with torch.no_grad() if FIX == "no_grad" else contextlib.nullcontext():
            self.centres.update(z, y)
        return classify.item() + pull.item()


def batches(n, size=48):
    for _ in range(n):
        yield torch.rand(size, 3, 112, 112, device="cuda"), torch.randint(0, CLASSES, (size,), device="cuda")


limit()
learner = Learner()
for step, (images, labels) in enumerate(batches(18)):
    learner.opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        learner.learn(x, y)  # KEPT
    learner.opt.step()
