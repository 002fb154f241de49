import copy
import torch
from torch import nn
import torch.nn.functional as F

class ReplayBuffer:
    """Frames stay on the GPU as uint8."""
    def __init__(self, capacity, shape, device):
        self.obs = torch.empty((capacity, *shape), dtype=torch.uint8, device=device)
        self.next_obs = torch.empty((capacity, *shape), dtype=torch.uint8, device=device)
        self.act = torch.empty(capacity, dtype=torch.int64, device=device)
        self.rew = torch.empty(capacity, device=device)
        self.done = torch.empty(capacity, dtype=torch.bool, device=device)
        self.capacity, self.ptr, self.size, self.device = capacity, 0, 0, device
    def push(self, o, a, r, o2, d):
        s = slice(self.ptr, self.ptr + len(a))
        self.obs[s], self.act[s], self.rew[s], self.next_obs[s], self.done[s] = o, a, r, o2, d
        self.ptr = (self.ptr + len(a)) % self.capacity
        self.size = min(self.size + len(a), self.capacity)
    def sample(self, n):
        i = torch.randint(0, self.size, (n,), device=self.device)
        return self.obs[i], self.act[i], self.rew[i], self.next_obs[i], self.done[i]

class DuelingQ(nn.Module):
    def __init__(self, actions=18):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(),
                                  nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten())
        self.adv = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, actions))
        self.val = nn.Sequential(nn.Linear(3136, 512), nn.ReLU(), nn.Linear(512, 1))
    def forward(self, x):
        h = self.body(x.float().div_(255))
        a = self.adv(h)
        return self.val(h) + a - a.mean(1, keepdim=True)

device = "cuda"
q = DuelingQ().to(device)
target = copy.deepcopy(q).requires_grad_(False)
buf = ReplayBuffer(12_000, (4, 84, 84), device)
opt = torch.optim.RMSprop(q.parameters(), lr=1e-4, alpha=0.95, eps=1e-6, centered=True)
for _ in range(12):
    frames = torch.randint(0, 256, (2, 1000, 4, 84, 84), dtype=torch.uint8)
    buf.push(frames[0].to(device), torch.randint(0, 18, (1000,)).to(device), torch.randn(1000).to(device),
             frames[1].to(device), (torch.rand(1000) < 0.01).to(device))
for step in range(6):
    o, a, r, o2, d = buf.sample(1024)
    with torch.no_grad():
        best = q(o2).argmax(1, keepdim=True)
        y = r + 0.99 * (~d).float() * target(o2).gather(1, best).squeeze(1)
    loss = F.smooth_l1_loss(q(o).gather(1, a[:, None]).squeeze(1), y)
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(q.parameters(), 10)
    opt.step()
    if step % 3 == 2:
        target.load_state_dict(q.state_dict())
    print(step, loss.item())
