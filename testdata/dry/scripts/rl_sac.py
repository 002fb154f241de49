import copy
import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.distributions import Normal

ap = argparse.ArgumentParser()
ap.add_argument("--obs", default=96, type=int)
ap.add_argument("--act", default=12, type=int)
ap.add_argument("--hidden", default=1024, type=int)
ap.add_argument("--batch", default=8192, type=int)
ap.add_argument("--buffer", default=500_000, type=int)
a = ap.parse_args()
dev = torch.device("cuda")

def net(i, o):
    return nn.Sequential(nn.Linear(i, a.hidden), nn.ReLU(), nn.Linear(a.hidden, a.hidden), nn.ReLU(), nn.Linear(a.hidden, o))

class Actor(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = net(a.obs, 2 * a.act)
    def forward(self, s):
        mu, log_std = self.body(s).chunk(2, -1)
        dist = Normal(mu, log_std.clamp(-20, 2).exp())
        u = dist.rsample()
        logp = dist.log_prob(u).sum(-1) - (2 * (0.6931472 - u - F.softplus(-2 * u))).sum(-1)
        return torch.tanh(u), logp

class Critic(nn.Module):
    def __init__(self):
        super().__init__()
        self.q1, self.q2 = net(a.obs + a.act, 1), net(a.obs + a.act, 1)
    def forward(self, s, act):
        x = torch.cat([s, act], -1)
        return self.q1(x).squeeze(-1), self.q2(x).squeeze(-1)

actor, critic = Actor().to(dev), Critic().to(dev)
critic_t = copy.deepcopy(critic).requires_grad_(False)
log_alpha = torch.zeros(1, device=dev, requires_grad=True)
opt_a, opt_c, opt_al = (torch.optim.Adam(p, lr=3e-4) for p in (actor.parameters(), critic.parameters(), [log_alpha]))
S, S2 = torch.randn(a.buffer, a.obs, device=dev), torch.randn(a.buffer, a.obs, device=dev)
U, R = torch.rand(a.buffer, a.act, device=dev) * 2 - 1, torch.randn(a.buffer, device=dev)
for step in range(5):
    idx = torch.randint(0, a.buffer, (a.batch,), device=dev)
    s, s2, u, r = S[idx], S2[idx], U[idx], R[idx]
    alpha = log_alpha.exp().detach()
    with torch.no_grad():
        u2, lp2 = actor(s2)
        y = r + 0.99 * (torch.min(*critic_t(s2, u2)) - alpha * lp2)
    q1, q2 = critic(s, u)
    loss_q = F.mse_loss(q1, y) + F.mse_loss(q2, y)
    opt_c.zero_grad(); loss_q.backward(); opt_c.step()
    pi, lp = actor(s)
    loss_pi = (alpha * lp - torch.min(*critic(s, pi))).mean()
    opt_a.zero_grad(); loss_pi.backward(); opt_a.step()
    loss_al = -(log_alpha * (lp.detach() - a.act)).mean()
    opt_al.zero_grad(); loss_al.backward(); opt_al.step()
    with torch.no_grad():
        for p, pt in zip(critic.parameters(), critic_t.parameters()):
            pt.mul_(0.995).add_(p, alpha=0.005)
    print(f"{step} q {loss_q.item():.3f} pi {loss_pi.item():.3f} alpha {alpha.item():.3f}")
