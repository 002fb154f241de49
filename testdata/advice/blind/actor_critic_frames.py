CASE = {"root": "leak", "cures": ["cpu", "del", "bound"], "fixes": ["cpu", "del", "bound", "half", "detach", "micro_batch"]}
# A2C on pixels. The rollouts of all updates are kept, for a video at the end.
from typing import NamedTuple

import torch
from torch import nn, Tensor
from torch.distributions import Categorical

from case import FIX, limit


class Transition(NamedTuple):
    frames: Tensor
    log_prob: Tensor
    value: Tensor
    entropy: Tensor
    reward: Tensor


class Policy(nn.Module):
    def __init__(self, actions: int = 6):
        super().__init__()
        self.eye = nn.Sequential(nn.Conv2d(4, 32, 8, stride=4), nn.ReLU(), nn.Conv2d(32, 64, 4, stride=2), nn.ReLU(), nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
        self.body = nn.Sequential(nn.Linear(3136, 512), nn.ReLU())
        self.actor = nn.Linear(512, actions)
        self.critic = nn.Linear(512, 1)

    def forward(self, frames: Tensor):
        h = self.body(self.eye(frames))
        return Categorical(logits=self.actor(h), validate_args=False), self.critic(h).squeeze(-1)


class Envs:
    """Stands for a vector of Atari games."""

    def __init__(self, n: int):
        self.n = n

    def observe(self) -> Tensor:
        screen = torch.randint(0, 256, (self.n, 4, 84, 84), dtype=torch.uint8, device="cuda")
        return screen.float().div_(255)  # KEPT

    def act(self, action: Tensor) -> Tensor:
        return (action == 0).float()


def collect(policy: Policy, envs: Envs, length: int) -> list:
    rollout = []
    for _ in range(length):
        frames = envs.observe()  # KEPT
        dist, value = policy(frames)
        action = dist.sample()
        rollout.append(Transition(frames, dist.log_prob(action), value, dist.entropy(), envs.act(action)))
    return rollout


def a2c_loss(rollout: list) -> Tensor:
    ret, total = torch.zeros_like(rollout[-1].value), 0.0
    for t in reversed(rollout):
        ret = t.reward + 0.99 * ret
        adv = ret - t.value
        total = total - (t.log_prob * adv.detach()).mean() + 0.5 * adv.pow(2).mean() - 0.01 * t.entropy.mean()
    return total / len(rollout)


def for_video(rollout: list) -> list:
    if FIX == "cpu":
        return [t.frames.detach().cpu() for t in rollout]
    if FIX == "half":
        return [t.frames.half() for t in rollout]
    if FIX == "detach":
        return [Transition(*(x.detach() for x in t)) for t in rollout]
    return rollout


def main(n: int = 64, updates: int = 16):
    limit()
    policy = Policy().cuda()
    opt = torch.optim.RMSprop(policy.parameters(), lr=7e-4)
    video = []
    for update in range(updates):
        opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for _ in range(parts):
            rollout = collect(policy, Envs(n // parts), 6)
            (a2c_loss(rollout) / parts).backward()
            if FIX != "del":
                video.append(for_video(rollout))
            if FIX == "bound":
                del video[:-2]
        nn.utils.clip_grad_norm_(policy.parameters(), 0.5)
        opt.step()
    return video


if __name__ == "__main__":
    main()
