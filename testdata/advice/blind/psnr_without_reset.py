CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "half", "micro_batch"], "already": ["no_grad", "detach"]}
# Super-resolution. The metric keeps the images of an epoch and is never reset.
import torch
import torch.nn as nn
import torch.nn.functional as F
from case import FIX, limit


class PSNR:
    def __init__(self):
        self.reset()

    def reset(self):
        self.pairs = []

    def update(self, sr, hr):
        if FIX == "cpu":
            sr, hr = sr.detach().cpu(), hr.detach().cpu()
        elif FIX == "half":
            sr, hr = sr.half(), hr.half()
        self.pairs.append((sr, hr))
        if FIX == "bound":
            self.pairs = self.pairs[-5:]

    def compute(self):
        errors = [F.mse_loss(sr, hr).item() for sr, hr in self.pairs]
        return -10 * torch.tensor(errors).mean().log10().item()


class Upscaler(nn.Module):
    def __init__(self, channels=48, blocks=3, scale=4):
        super().__init__()
        self.head = nn.Conv2d(3, channels, 3, padding=1)
        self.body = nn.ModuleList(nn.Conv2d(channels, channels, 3, padding=1) for _ in range(blocks))
        self.tail = nn.Sequential(nn.Conv2d(channels, 3 * scale**2, 3, padding=1), nn.PixelShuffle(scale))

    def forward(self, x):
        x = self.head(x)
        for conv in self.body:
            x = x + F.leaky_relu(conv(x), 0.1)
        return self.tail(x)


class Trainer:
    def __init__(self):
        self.net = Upscaler().cuda()
        self.opt = torch.optim.Adam(self.net.parameters(), lr=1e-4)
        self.metric = PSNR()

    def fit_batch(self, lr, hr):
        self.opt.zero_grad()
        n = 2 if FIX == "micro_batch" else 1
        for a, b in zip(lr.chunk(n), hr.chunk(n)):
            (F.l1_loss(self.net(a), b) / n).backward()
        self.opt.step()

    @torch.no_grad()
    def validate(self, batches=5):
        self.net.eval()
        for _ in range(batches):
            hr = torch.rand(16, 3, 256, 256, device="cuda")  # KEPT
            for part in hr.chunk(2 if FIX == "micro_batch" else 1):
                small = F.interpolate(part, scale_factor=0.25, mode="area")
                self.metric.update(self.net(small).clamp(0, 1), part)  # KEPT
        self.net.train()
        result = self.metric.compute()
        if FIX == "del":
            self.metric.reset()
        return result

    def fit(self, epochs):
        for epoch in range(epochs):
            for step in range(3):
                hr = torch.rand(16, 3, 192, 192, device="cuda")
                self.fit_batch(F.avg_pool2d(hr, 4), hr)
            print("epoch", epoch, "psnr", self.validate())


limit()
Trainer().fit(epochs=10)
