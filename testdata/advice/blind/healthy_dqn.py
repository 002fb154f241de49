CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.5}
# DQN as it should be: the replay memory fills, then forgets; the target network is a copy that is refreshed.
import copy
import random
from collections import deque

import torch
import torch.nn as nn
import torch.nn.functional as F

from case import limit

limit()
rng = random.Random(2)
online = nn.Sequential(nn.Conv2d(4, 16, 8, 4), nn.ReLU(), nn.Conv2d(16, 32, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(2592, 256), nn.ReLU(), nn.Linear(256, 6)).cuda()
target = copy.deepcopy(online).requires_grad_(False)
opt = torch.optim.RMSprop(online.parameters(), lr=2.5e-4, centered=True)
memory, scores, best = deque(maxlen=40), [], None
state = torch.rand(16, 4, 84, 84, device="cuda")
for step in range(90):
    with torch.no_grad():
        action = online(state).argmax(1)
    after, reward = torch.rand(16, 4, 84, 84, device="cuda"), torch.rand(16, device="cuda")
    memory.append((state, action, reward, after))
    state = after
    if len(memory) >= 8 and step % 2 == 0:
        s, a, r, n = (torch.cat(t) for t in zip(*rng.sample(list(memory), 4)))
        with torch.no_grad():
            goal = r + 0.99 * target(n).amax(1)
        loss = F.smooth_l1_loss(online(s).gather(1, a[:, None]).squeeze(1), goal)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(online.parameters(), 10.0)
        opt.step()
        scores.append(loss.item())
    if step % 30 == 29:
        target.load_state_dict(online.state_dict())
        best = {k: v.cpu() for k, v in online.state_dict().items()}
