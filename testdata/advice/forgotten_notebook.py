CASE = {"root": "shared_device", "cures": ["others"], "fixes": ["others", "micro_batch", "half"], "limit": "shared", "weight": 0.6, "alone": True}
import torch, torch.nn as nn
from case import FIX, neighbour


class Upscaler(nn.Module):
    def __init__(self, c=64):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, c, 3, padding=1), nn.ReLU(), nn.Conv2d(c, 48, 3, padding=1))
        self.shuffle = nn.PixelShuffle(4)

    def forward(self, x):
        return self.shuffle(self.body(x))


neighbour()  # a notebook that nobody closed
model = Upscaler().cuda().eval()
if FIX == "half":
    model.half()
with torch.inference_mode():
    for step in range(4):
        images = torch.rand(16, 3, 640, 640, device="cuda", dtype=torch.float16 if FIX == "half" else torch.float32)
        for x in images.chunk(2 if FIX == "micro_batch" else 1):
            large = model(x).clamp(0, 1)
        del large
