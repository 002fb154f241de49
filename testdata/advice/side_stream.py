CASE = {"root": "stranded", "cures": ["empty_cache", "cpu"], "fixes": ["empty_cache", "cpu", "micro_batch", "half", "checkpoint"], "limit": "reserved", "weight": 0.5}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

limit()
side = torch.cuda.Stream()


def prepare():
    """Shrinks the raw images on a stream of its own."""
    with torch.cuda.stream(side):
        raw = torch.randn(192, 3, 512, 512, device="cpu" if FIX == "cpu" else "cuda")
        small = F.interpolate(raw, size=(64, 64))
        del raw
        if FIX == "empty_cache":
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        small = torch.cat([small, small.flip(3), small.flip(2), small + 0.1]).to("cuda")
    torch.cuda.current_stream().wait_stream(side)
    return small


class Stage(nn.Module):
    def __init__(self, a, b):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(a, b, 3, padding=1), nn.GroupNorm(8, b), nn.SiLU(), nn.Conv2d(b, b, 3, 2, 1), nn.GroupNorm(8, b), nn.SiLU())

    def forward(self, x):
        return checkpoint(self.body, x, use_reentrant=False) if FIX == "checkpoint" else self.body(x)


data = prepare()
model = nn.Sequential(Stage(3, 64), Stage(64, 128), Stage(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
for step in range(6):
    opt.zero_grad()
    for x in data[step * 96:(step + 1) * 96].chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            loss = F.cross_entropy(model(x), torch.randint(0, 10, (len(x),), device="cuda"))
        loss.backward()
    opt.step()
