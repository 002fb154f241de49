CASE = {"root": "spike", "cures": ["no_grad", "half"], "fixes": ["no_grad", "half", "micro_batch", "detach", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


def cnn(c, depth):
    layers = [nn.Conv2d(3, c, 3, 2, 1), nn.ReLU()]
    for _ in range(depth):
        layers += [nn.Conv2d(c, c, 3, padding=1), nn.BatchNorm2d(c), nn.ReLU()]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(c, 100))


limit()
student, teacher = cnn(48, 3).cuda(), cnn(192, 6).cuda()
opt = torch.optim.SGD(student.parameters(), lr=0.05, momentum=0.0 if FIX == "optimizer" else 0.9)
if FIX == "half":
    teacher.half()
parts = 2 if FIX == "micro_batch" else 1
for step in range(10):
    images, labels = torch.randn(64, 3, 64, 64, device="cuda"), torch.randint(0, 100, (64,), device="cuda")
    opt.zero_grad()
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        logits = student(x)
        loss = F.cross_entropy(logits, y)
        if step >= 6:  # after the warm-up the student also follows the teacher
            with torch.set_grad_enabled(FIX != "no_grad"):
                soft = teacher(x.half() if FIX == "half" else x).float()
            soft = soft.detach() if FIX == "detach" else soft
            loss = loss + F.mse_loss(logits, soft)
        loss.backward()
    opt.step()
