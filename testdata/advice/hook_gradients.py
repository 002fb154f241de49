CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "detach", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


def conv(a, b):
    return nn.Sequential(nn.Conv2d(a, b, 3, 2, 1), nn.GroupNorm(8, b), nn.SiLU())


limit()
net = nn.Sequential(conv(3, 64), conv(64, 128), conv(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10)).cuda()
gradients = []  # for a plot of the gradient flow


def keep(module, grad_input, grad_output):
    g = grad_output[0]
    gradients.append(g.cpu() if FIX == "cpu" else g.detach() if FIX == "detach" else g.clone())  # KEPT
    if FIX == "bound":
        del gradients[:-3]


for layer in net:
    if isinstance(layer, nn.Sequential) and FIX != "del":
        layer.register_full_backward_hook(keep)
opt = torch.optim.RMSprop(net.parameters(), lr=1e-3)
parts = 2 if FIX == "micro_batch" else 1
for step in range(20):
    images = torch.randn(64, 3, 96, 96, device="cuda")
    labels = torch.randint(0, 10, (64,), device="cuda")
    opt.zero_grad()
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        F.cross_entropy(net(x), y).backward()  # KEPT
    opt.step()
