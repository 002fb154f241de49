import torch
import torch.nn as nn
import torch.nn.functional as F
from torchvision.models import vgg16

device = torch.device("cuda")
class VGGFeatures(nn.Module):
    def __init__(self, cuts=(4, 9, 16, 23)):
        super().__init__()
        feats = vgg16(weights=None).features
        self.slices = nn.ModuleList(feats[a:b] for a, b in zip((0, *cuts), cuts))
        self.requires_grad_(False)

    def forward(self, x):
        outs = []
        for s in self.slices:
            x = s(x)
            outs.append(x)
        return outs

def conv(i, o, k, s=1):
    return nn.Sequential(nn.ReflectionPad2d(k // 2), nn.Conv2d(i, o, k, s), nn.InstanceNorm2d(o, affine=True))

class Residual(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.a, self.b = conv(c, c, 3), conv(c, c, 3)

    def forward(self, x):
        return x + self.b(F.relu(self.a(x)))

net = nn.Sequential(
    conv(3, 32, 9), nn.ReLU(), conv(32, 64, 3, 2), nn.ReLU(), conv(64, 128, 3, 2), nn.ReLU(),
    *[Residual(128) for _ in range(5)],
    nn.Upsample(scale_factor=2), conv(128, 64, 3), nn.ReLU(), nn.Upsample(scale_factor=2), conv(64, 32, 3), nn.ReLU(),
    nn.ReflectionPad2d(4), nn.Conv2d(32, 3, 9), nn.Sigmoid()).to(device)

def gram(f):
    b, c, h, w = f.shape
    f = f.view(b, c, h * w)
    return f.bmm(f.transpose(1, 2)) / (c * h * w)

vgg = VGGFeatures().to(device).eval()
with torch.no_grad():
    style_grams = [gram(f) for f in vgg(torch.rand(1, 3, 256, 256, device=device))]
optimizer = torch.optim.Adam(net.parameters(), 1e-3)
for step in range(5):
    x = torch.rand(4, 3, 256, 256, device=device)
    y = net(x)
    fy = vgg(y)
    with torch.no_grad():
        fx = vgg(x)
    content = F.mse_loss(fy[1], fx[1])
    style = sum(F.mse_loss(gram(a), g.expand(x.size(0), -1, -1)) for a, g in zip(fy, style_grams))
    tv = (y[..., 1:] - y[..., :-1]).abs().mean() + (y[:, :, 1:] - y[:, :, :-1]).abs().mean()
    loss = content + 1e5 * style + 1e-4 * tv
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(step, content.item(), style.item(), tv.item())
