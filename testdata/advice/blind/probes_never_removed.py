CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "half", "micro_batch"], "already": ["detach"]}
# A convolutional VAE. Every epoch hangs a new probe into the network and never removes the old one.
import functools
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit


class DeadUnits:
    """The share of units that do not fire, a layer."""

    def __init__(self, net):
        self.seen, self.handles = {}, []
        for name, module in net.named_modules():
            if isinstance(module, nn.ReLU):
                self.handles.append(module.register_forward_hook(functools.partial(self.look, name)))

    def look(self, name, module, inputs, out):
        fires = out.detach().clamp(max=1)  # KEPT
        self.seen[name] = fires.cpu() if FIX == "cpu" else fires.half() if FIX == "half" else fires

    def report(self):
        return {name: (fires == 0).float().mean().item() for name, fires in self.seen.items()}

    def remove(self):
        for h in self.handles:
            h.remove()


def down(i, o):
    return nn.Sequential(nn.Conv2d(i, o, 4, 2, 1), nn.ReLU())


def up(i, o):
    return nn.Sequential(nn.ConvTranspose2d(i, o, 4, 2, 1), nn.ReLU())


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc = nn.Sequential(down(3, 32), down(32, 64), nn.Conv2d(64, 32, 1))
        self.dec = nn.Sequential(up(16, 64), up(64, 32), nn.Conv2d(32, 3, 1))

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, 1)  # KEPT
        z = mu + torch.randn_like(mu) * (0.5 * logvar).exp()
        return self.dec(z), mu, logvar  # KEPT


def elbo(net, x):
    y, mu, logvar = net(x)  # KEPT
    return F.mse_loss(y, x) - 0.5e-3 * (1 + logvar - mu.pow(2) - logvar.exp()).mean()


limit()
vae = VAE().cuda()
opt = torch.optim.Adam(vae.parameters(), 2e-4)
for epoch in range(12):
    probe = DeadUnits(vae)
    for step in range(3):
        images = torch.rand(48, 3, 64, 64, device="cuda")
        opt.zero_grad()
        n = 2 if FIX == "micro_batch" else 1
        for part in images.chunk(n):
            (elbo(vae, part) / n).backward()  # KEPT
        opt.step()
    print(epoch, probe.report())
    if FIX in ("del", "bound"):
        probe.remove()
