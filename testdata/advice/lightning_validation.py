CASE = {"root": "leak", "cures": ["no_grad", "detach"], "fixes": ["no_grad", "detach", "cpu", "micro_batch", "half", "del"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Module(nn.Module):
    """Lightning's methods, called by a loop of our own."""

    def __init__(self):
        super().__init__()
        self.val_losses = []
        self.net = nn.Sequential(nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(64, 128, 3, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
                                 nn.MaxPool2d(2), nn.Conv2d(128, 256, 3, padding=1), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 200))

    def training_step(self, batch):
        return F.cross_entropy(self.net(batch[0]), batch[1])

    def validation_step(self, batch):
        loss = F.cross_entropy(self.net(batch[0]), batch[1])  # KEPT
        if FIX != "del":
            self.val_losses.append(loss.detach() if FIX == "detach" else loss.detach().cpu() if FIX == "cpu" else loss)

    def on_validation_epoch_end(self):
        if self.val_losses:
            print("val_loss", torch.stack(self.val_losses).mean().item())
        self.val_losses.clear()


def batches(n, size):
    for _ in range(n):
        yield torch.randn(size, 3, 48, 48, device="cuda"), torch.randint(0, 200, (size,), device="cuda")


def fit(module, epochs):
    opt = torch.optim.SGD(module.parameters(), lr=0.1, momentum=0.9, nesterov=True)
    size, more = (16, 2) if FIX == "micro_batch" else (32, 1)
    for epoch in range(epochs):
        module.train()
        for step, batch in enumerate(batches(3, 32)):
            opt.zero_grad()
            module.training_step(batch).backward()
            opt.step()
        module.eval()
        with torch.set_grad_enabled(FIX != "no_grad"), torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            for step, batch in enumerate(batches(20 * more, size)):
                module.validation_step(batch)  # KEPT
        module.on_validation_epoch_end()


limit()
fit(Module().cuda(), 2)
