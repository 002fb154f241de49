CASE = {"root": "leak", "cures": ["detach", "bound"], "fixes": ["detach", "bound", "cpu", "micro_batch", "half", "del"]}
import torch, torch.nn as nn
from case import FIX, limit

limit()
G = nn.Sequential(nn.ConvTranspose2d(64, 128, 4, 4), nn.ReLU(), nn.ConvTranspose2d(128, 64, 4, 4), nn.ReLU(), nn.ConvTranspose2d(64, 3, 4, 4), nn.Tanh()).cuda()
D = nn.Sequential(nn.Conv2d(3, 64, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(64, 128, 4, 2, 1), nn.LeakyReLU(0.2), nn.Conv2d(128, 1, 16)).cuda()
opt_g, opt_d = torch.optim.Adam(G.parameters(), 2e-4, betas=(0.0, 0.9)), torch.optim.Adam(D.parameters(), 2e-4, betas=(0.0, 0.9))
penalties = []


def gradient_penalty(real, fake):
    mix = torch.rand(real.shape[0], 1, 1, 1, device="cuda")
    x = (mix * real + (1 - mix) * fake).requires_grad_()  # KEPT
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        score = D(x)  # KEPT
    grad = torch.autograd.grad(score.float().sum(), x, create_graph=True)[0]  # KEPT
    return (grad.flatten(1).norm(dim=1) - 1).pow(2).mean()  # KEPT


for step in range(16):
    real = torch.randn(48, 3, 64, 64, device="cuda")
    fake = G(torch.randn(48, 64, 1, 1, device="cuda"))
    loss_d = D(fake.detach()).mean() - D(real).mean()
    n = 24 if FIX == "micro_batch" else 48
    gp = gradient_penalty(real[:n], fake[:n].detach())  # KEPT
    if step % 8 == 0:  # lazy regularisation
        loss_d = loss_d + 10 * gp
    if FIX != "del":
        penalties.append(gp.item() if FIX == "detach" else gp.detach().cpu() if FIX == "cpu" else gp)
    if FIX == "bound":
        penalties = penalties[-2:]
    opt_d.zero_grad()
    loss_d.backward()
    opt_d.step()
    opt_g.zero_grad()
    (-D(fake).mean()).backward()
    opt_g.step()
