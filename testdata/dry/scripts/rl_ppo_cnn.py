import torch
import torch.nn as nn
from torch.distributions import Categorical

dev = "cuda"
T, N_ENV, A = 64, 64, 6
MINIBATCHES, GAMMA, LAM, CLIP = 4, 0.99, 0.95, 0.1

def layer_init(layer, std=2 ** 0.5):
    nn.init.orthogonal_(layer.weight, std)
    nn.init.constant_(layer.bias, 0.0)
    return layer

class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(
            layer_init(nn.Conv2d(4, 32, 8, stride=4)), nn.ReLU(),
            layer_init(nn.Conv2d(32, 64, 4, stride=2)), nn.ReLU(),
            layer_init(nn.Conv2d(64, 64, 3, stride=1)), nn.ReLU(), nn.Flatten(),
            layer_init(nn.Linear(64 * 7 * 7, 512)), nn.ReLU())
        self.actor, self.critic = layer_init(nn.Linear(512, A), 0.01), layer_init(nn.Linear(512, 1), 1.0)

    def forward(self, x, action=None):
        h = self.net(x / 255.0)
        dist = Categorical(logits=self.actor(h))
        action = dist.sample() if action is None else action
        return action, dist.log_prob(action), dist.entropy(), self.critic(h).flatten()

agent = Agent().to(dev)
opt = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
obs = torch.zeros((T, N_ENV, 4, 84, 84), device=dev)
actions, logprobs, rewards, dones, values = (torch.zeros((T, N_ENV), device=dev) for _ in range(5))
next_obs = torch.randint(0, 256, (N_ENV, 4, 84, 84)).float().to(dev)
for t in range(T):  # rollout against a random "environment"
    obs[t] = next_obs
    with torch.no_grad():
        a, lp, _, v = agent(next_obs)
    actions[t], logprobs[t], values[t] = a, lp, v
    next_obs = torch.randint(0, 256, (N_ENV, 4, 84, 84), device=dev).float()
    rewards[t], dones[t] = torch.randn(N_ENV, device=dev), (torch.rand(N_ENV, device=dev) < 0.02).float()
with torch.no_grad():
    last, adv, nextv = 0, torch.zeros_like(rewards), agent(next_obs)[3]
    for t in reversed(range(T)):
        nonterm = 1.0 - dones[t]
        delta = rewards[t] + GAMMA * nextv * nonterm - values[t]
        adv[t] = last = delta + GAMMA * LAM * nonterm * last
        nextv = values[t]
    b_obs, b_act, b_lp, b_adv, b_ret = [x.flatten(0, 1) for x in (obs, actions, logprobs, adv, adv + values)]
for mb in torch.randperm(T * N_ENV, device=dev).chunk(MINIBATCHES):
    _, lp, ent, v = agent(b_obs[mb], b_act[mb].long())
    ratio = (lp - b_lp[mb]).exp()
    mb_adv = (b_adv[mb] - b_adv[mb].mean()) / (b_adv[mb].std() + 1e-8)
    pg = torch.max(-mb_adv * ratio, -mb_adv * ratio.clamp(1 - CLIP, 1 + CLIP)).mean()
    loss = pg + 0.5 * 0.5 * ((v - b_ret[mb]) ** 2).mean() - 0.01 * ent.mean()
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
    opt.step()
    print(f"loss {loss.item():.3f} kl {(b_lp[mb] - lp).mean().item():.4f}")
