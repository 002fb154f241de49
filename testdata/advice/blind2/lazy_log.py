CASE = {"root": "leak", "cures": ["detach", "no_grad", "del"], "fixes": ["detach", "no_grad", "del", "bound", "cpu", "half", "micro_batch", "checkpoint"]}
# Forecasting. To spare the synchronization, values for the log are closures that are called after the epoch.
import torch
from torch import nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class CausalBlock(nn.Module):
    def __init__(self, channels, dilation):
        super().__init__()
        self.pad = 2 * dilation
        self.conv = nn.Conv1d(channels, channels, 3, dilation=dilation)
        self.mix = nn.Conv1d(channels, channels, 1)

    def forward(self, x):
        h = F.gelu(self.conv(F.pad(x, (self.pad, 0))))  # KEPT
        return x + self.mix(h)  # KEPT


class Forecaster(nn.Module):
    def __init__(self, series=24, channels=64, depth=5):
        super().__init__()
        self.inp, self.out = nn.Conv1d(series, channels, 1), nn.Conv1d(channels, series, 1)
        self.blocks = nn.ModuleList(CausalBlock(channels, 2 ** i) for i in range(depth))

    def forward(self, x):
        h = self.inp(x)  # KEPT
        for block in self.blocks:
            h = checkpoint(block, h, use_reentrant=False) if FIX == "checkpoint" else block(h)  # KEPT
        return self.out(h)  # KEPT


class LazyLog:
    def __init__(self):
        self.waiting, self.values = [], {}

    def add(self, name, value):
        self.waiting.append((name, value))
        if FIX == "bound" and len(self.waiting) >= 4:
            self.flush()

    def flush(self):
        for name, value in self.waiting:
            self.values.setdefault(name, []).append(value())
        self.waiting.clear()


class Run:
    def __init__(self, model):
        self.model, self.log = model, LazyLog()
        self.opt = torch.optim.AdamW(model.parameters(), lr=1e-3)

    def watch(self, window, forecast):
        """How much the forecast changes when the input is jittered: for the log only."""
        with torch.set_grad_enabled(FIX != "no_grad"):
            jittered = self.model(window + 0.01 * torch.randn_like(window))  # KEPT
            change = F.mse_loss(jittered, forecast.detach())
        if FIX == "detach":
            change = change.detach()
        elif FIX == "cpu":
            change = change.detach().cpu()
        elif FIX == "del":
            number = change.item()
            self.log.add("jitter", lambda: number)
            return
        self.log.add("jitter", lambda: change.item())

    def step(self, series):
        self.opt.zero_grad()
        parts = series.chunk(2 if FIX == "micro_batch" else 1)
        for part in parts:
            window, future = part[:, :, :-1], part[:, :, 1:]
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                forecast = self.model(window)
                loss = F.mse_loss(forecast, future)
                self.watch(window, forecast)  # KEPT
            (loss / len(parts)).backward()
        self.opt.step()


limit()
run = Run(Forecaster().cuda())
for epoch in range(2):
    for step in range(16):
        run.step(torch.randn(64, 24, 385, device="cuda").cumsum(2) * 0.1)  # KEPT
    run.log.flush()
