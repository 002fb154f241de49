CASE = {"root": "spike", "cures": ["micro_batch", "half"], "fixes": ["micro_batch", "half", "empty_cache"], "already": ["no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class VGG(nn.Module):
    def __init__(self, plan=(48, 48, "M", 96, 96, "M", 192, "M")):
        super().__init__()
        layers, c = [], 3
        for n in plan:
            layers += [nn.MaxPool2d(2)] if n == "M" else [nn.Conv2d(c, n, 3, padding=1), nn.BatchNorm2d(n), nn.ReLU(inplace=True)]
            c = c if n == "M" else n
        self.body, self.head = nn.Sequential(*layers), nn.Linear(c * 8 * 8, 50)

    def forward(self, x):
        return self.head(self.body(x).flatten(1))


def train_epoch(model, opt):
    model.train()
    for step in range(6):
        loss = F.cross_entropy(model(torch.randn(16, 3, 64, 64, device="cuda")), torch.randint(0, 50, (16,), device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()


@torch.no_grad()
def validate(model):
    model.eval()
    correct = 0
    for step in range(2):
        images, labels = torch.randn(640, 3, 64, 64, device="cuda"), torch.randint(0, 50, (640,), device="cuda")
        for x, y in zip(images.chunk(2 if FIX == "micro_batch" else 1), labels.chunk(2 if FIX == "micro_batch" else 1)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                correct += (model(x).argmax(1) == y).sum().item()
    return correct


limit()
model = VGG().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=5e-4)
for epoch in range(2):
    train_epoch(model, opt)
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    validate(model)
