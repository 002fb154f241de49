CASE = {"root": "leak", "cures": ["cpu", "del"], "fixes": ["cpu", "del", "half", "detach", "micro_batch"], "already": ["no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class SegNet(nn.Module):
    def __init__(self, c=32, classes=21):
        super().__init__()
        self.down = nn.Sequential(nn.Conv2d(3, c, 3, 2, 1), nn.ReLU(), nn.Conv2d(c, 2 * c, 3, 2, 1), nn.ReLU())
        self.up = nn.Sequential(nn.ConvTranspose2d(2 * c, c, 2, 2), nn.ReLU(), nn.ConvTranspose2d(c, classes, 2, 2))

    def forward(self, x):
        return self.up(self.down(x))


@torch.no_grad()
def evaluate(model, batches):
    model.eval()
    outputs, targets = [], []
    for step in range(batches):
        images, masks = torch.randn(8, 3, 256, 256, device="cuda"), torch.randint(0, 21, (8, 256, 256), device="cuda")
        for x in images.chunk(2 if FIX == "micro_batch" else 1):
            probs = model(x).softmax(1)  # KEPT
            if FIX == "cpu":
                probs = probs.cpu()
            elif FIX == "half":
                probs = probs.half()
            elif FIX == "detach":
                probs = probs.detach()
            if FIX == "del":
                probs = probs.argmax(1).float().mean().item()
            outputs.append(probs)
        targets.append(masks.cpu())
    return outputs, targets


limit()
model = SegNet().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
for step in range(3):
    out = model(torch.randn(8, 3, 256, 256, device="cuda"))
    loss = F.cross_entropy(out, torch.randint(0, 21, (8, 256, 256), device="cuda"))
    opt.zero_grad()
    loss.backward()
    opt.step()
evaluate(model, 30)
