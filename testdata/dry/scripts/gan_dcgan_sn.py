import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.parametrizations import spectral_norm as sn

NZ, NGF, NDF, BS = 100, 96, 96, 128
dev = "cuda"


def weights_init(m):
    if isinstance(m, nn.ConvTranspose2d):
        nn.init.normal_(m.weight, 0.0, 0.02)
    elif isinstance(m, nn.BatchNorm2d):
        nn.init.normal_(m.weight, 1.0, 0.02)
        nn.init.zeros_(m.bias)


def up(i, o, s=2, p=1):
    return [nn.ConvTranspose2d(i, o, 4, s, p, bias=False), nn.BatchNorm2d(o), nn.ReLU(True)]


netG = nn.Sequential(*up(NZ, NGF * 8, 1, 0), *up(NGF * 8, NGF * 4), *up(NGF * 4, NGF * 2), *up(NGF * 2, NGF),
                     nn.ConvTranspose2d(NGF, 3, 4, 2, 1, bias=False), nn.Tanh()).to(dev)
netG.apply(weights_init)
netD = nn.Sequential(
    sn(nn.Conv2d(3, NDF, 4, 2, 1)), nn.LeakyReLU(0.2, True),
    sn(nn.Conv2d(NDF, NDF * 2, 4, 2, 1)), nn.LeakyReLU(0.2, True),
    sn(nn.Conv2d(NDF * 2, NDF * 4, 4, 2, 1)), nn.LeakyReLU(0.2, True),
    sn(nn.Conv2d(NDF * 4, NDF * 8, 4, 2, 1)), nn.LeakyReLU(0.2, True),
    sn(nn.Conv2d(NDF * 8, 1, 4, 1, 0))).to(dev)

optD = torch.optim.Adam(netD.parameters(), lr=4e-4, betas=(0.0, 0.9))
optG = torch.optim.Adam(netG.parameters(), lr=1e-4, betas=(0.0, 0.9))
fixed = torch.randn(64, NZ, 1, 1, device=dev)

for step in range(5):
    for _ in range(2):      # two critic updates per generator update
        real = torch.rand(BS, 3, 64, 64, device=dev) * 2 - 1
        with torch.no_grad():
            fake = netG(torch.randn(BS, NZ, 1, 1, device=dev))
        lossD = F.relu(1 - netD(real)).mean() + F.relu(1 + netD(fake)).mean()
        optD.zero_grad()
        lossD.backward()
        optD.step()
    for p in netD.parameters():
        p.requires_grad_(False)
    lossG = -netD(netG(torch.randn(BS, NZ, 1, 1, device=dev))).mean()
    optG.zero_grad()
    lossG.backward()
    optG.step()
    for p in netD.parameters():
        p.requires_grad_(True)
    print(f"[{step}] D {lossD.item():.3f} G {lossG.item():.3f}")

netG.eval()
with torch.no_grad():
    grid = netG(fixed).cpu()
print(grid.shape, grid.mean().item())
