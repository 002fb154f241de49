CASE = {"root": "leak", "cures": ["no_grad", "detach"], "fixes": ["no_grad", "detach", "cpu", "micro_batch", "half", "del"]}
import copy
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
obs_dim, actions = 512, 16
policy = nn.Sequential(nn.Linear(obs_dim, 1024), nn.Tanh(), nn.Linear(1024, 1024), nn.Tanh(), nn.Linear(1024, actions)).cuda()
critic = nn.Sequential(nn.Linear(obs_dim, 2048), nn.GELU(), nn.Linear(2048, 2048), nn.GELU(), nn.Linear(2048, 1)).cuda()
target_critic = copy.deepcopy(critic)
opt = torch.optim.Adam([*policy.parameters(), *critic.parameters()], lr=3e-4)
baseline = torch.zeros((), device="cuda")
if FIX == "half":
    target_critic.half()
for step in range(30):
    obs, next_obs = torch.randn(2048, obs_dim, device="cuda"), torch.randn(2048, obs_dim, device="cuda")
    reward = torch.randn(2048, device="cuda")
    with torch.set_grad_enabled(FIX != "no_grad"):
        parts = next_obs.half() if FIX == "half" else next_obs
        value = torch.cat([target_critic(p) for p in parts.chunk(2 if FIX == "micro_batch" else 1)]).mean()  # KEPT
    if FIX == "detach":
        value = value.detach()
    if FIX == "cpu":
        value = value.detach().cpu()
    if FIX != "del":
        baseline = 0.95 * baseline.to(value.device) + 0.05 * value
    logp = F.log_softmax(policy(obs), -1)
    action = torch.randint(0, actions, (2048, 1), device="cuda")
    advantage = reward - baseline.detach().to(reward.device)
    loss = -(logp.gather(1, action).squeeze(1) * advantage).mean() + F.mse_loss(critic(obs).squeeze(1), reward)
    opt.zero_grad()
    loss.backward()
    opt.step()
