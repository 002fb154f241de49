CASE = {"root": "leak", "cures": ["bound", "cpu"], "fixes": ["bound", "cpu", "half", "micro_batch", "del"], "already": ["detach", "no_grad"]}
import collections, random
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

Transition = collections.namedtuple("Transition", "frames action reward next_frames")


class QNet(nn.Module):
    def __init__(self, actions=6):
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(4, 32, 8, 4), nn.ReLU(), nn.Conv2d(32, 64, 4, 2), nn.ReLU(), nn.Flatten(), nn.Linear(64 * 9 * 9, 512), nn.ReLU())
        self.head = nn.Linear(512, actions)

    def forward(self, frames):
        return self.head(self.body(frames))


class ReplayBuffer:
    def __init__(self, capacity=None):
        self.items = collections.deque(maxlen=capacity)

    def push(self, *values):
        if FIX == "cpu":
            values = [v.cpu() for v in values]
        if FIX == "half":
            values = [v.half() if v.is_floating_point() else v for v in values]
        self.items.append(Transition(*values))

    def sample(self, n):
        picked = [random.choice(self.items) for _ in range(n)]
        return [torch.cat([v.to("cuda") for v in column]) for column in zip(*picked)]


limit()
random.seed(0)
q, target = QNet().cuda(), QNet().cuda()
opt = torch.optim.Adam(q.parameters(), lr=1e-4)
buffer = ReplayBuffer(capacity=4 if FIX == "bound" else None)
frames = torch.rand(256, 4, 84, 84, device="cuda")
for step in range(30):
    with torch.no_grad():
        action = q(frames).argmax(1, keepdim=True)
    next_frames, reward = torch.rand(256, 4, 84, 84, device="cuda"), torch.randn(256, device="cuda")  # KEPT
    if FIX == "del":
        buffer.items.clear()
    buffer.push(frames, action, reward, next_frames)
    frames = next_frames
    opt.zero_grad()
    for part in range(2 if FIX == "micro_batch" else 1):
        s, a, r, s2 = buffer.sample(1 if FIX == "micro_batch" else 2)
        with torch.no_grad():
            best = target(s2.float()).amax(1)
        F.smooth_l1_loss(q(s.float()).gather(1, a).squeeze(1), r.float() + 0.99 * best).backward()
    opt.step()
