"""Physics-informed net for Burgers' equation: second derivatives by autograd.grad(create_graph=True)."""
import math
import torch
from torch import nn

torch.manual_seed(0)
device = "cuda"
NU = 0.01 / math.pi


class PINN(nn.Module):
    def __init__(self, width=256, depth=5):
        super().__init__()
        sizes = [2] + [width] * depth
        layers = []
        for a, b in zip(sizes[:-1], sizes[1:]):
            layers += [nn.Linear(a, b), nn.Tanh()]
        self.net = nn.Sequential(*layers, nn.Linear(width, 1))
        for m in self.net:
            if isinstance(m, nn.Linear):
                nn.init.xavier_normal_(m.weight)
                nn.init.zeros_(m.bias)

    def forward(self, x, t):
        return self.net(torch.cat([x, t], dim=1))


def grad(out, inp):
    return torch.autograd.grad(out, inp, grad_outputs=torch.ones_like(out), create_graph=True)[0]


def residual(model, x, t):
    u = model(x, t)
    u_t, u_x = grad(u, t), grad(u, x)
    u_xx = grad(u_x, x)
    return u_t + u * u_x - NU * u_xx


model = PINN().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
scheduler = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.95)

n_col, n_bc = 30_000, 2_000
for it in range(5):
    x = (torch.rand(n_col, 1, device=device) * 2 - 1).requires_grad_()
    t = torch.rand(n_col, 1, device=device).requires_grad_()
    x0 = torch.rand(n_bc, 1, device=device) * 2 - 1
    tb = torch.rand(n_bc, 1, device=device)
    sign = torch.where(torch.rand_like(tb) < 0.5, -1.0, 1.0)

    optimizer.zero_grad()
    loss_f = residual(model, x, t).pow(2).mean()
    loss_0 = (model(x0, torch.zeros_like(x0)) + torch.sin(math.pi * x0)).pow(2).mean()
    loss_b = model(sign, tb).pow(2).mean()
    loss = loss_f + loss_0 + loss_b
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(f"it {it} f {loss_f.item():.3e} ic {loss_0.item():.3e} bc {loss_b.item():.3e}")
