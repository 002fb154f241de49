CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "half", "empty_cache"], "limit": "over", "weight": 1.6}
# Communities as dense graphs. One of them still has the ids of its nodes in the whole network.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit


class Community:
    def __init__(self, nodes, offset=0):
        self.features = torch.randn(nodes, 64)
        self.edges = torch.randint(0, nodes, (2, 12 * nodes)) + offset
        self.label = torch.randint(0, 5, (1,))

    def local_edges(self):
        return torch.unique(self.edges, return_inverse=True)[1].view_as(self.edges) if FIX == "shape" else self.edges


def adjacency(edges):
    n = int(edges.max()) + 1
    a = torch.zeros(n, n, device="cuda", dtype=torch.float16 if FIX == "half" else torch.float32)
    a[edges[0], edges[1]] = 1
    a.fill_diagonal_(1)
    return a / a.sum(1, keepdim=True)


class GCN(nn.Module):
    def __init__(self, d=256):
        super().__init__()
        self.layers, self.out = nn.ModuleList([nn.Linear(64, d), nn.Linear(d, d), nn.Linear(d, d)]), nn.Linear(d, 5)

    def forward(self, x, a):
        for layer in self.layers:
            x = F.relu(a @ layer(x).to(a.dtype)).float()
        return self.out(x.mean(0, keepdim=True))


def load(community):
    a = adjacency(community.local_edges().cuda())
    return community.features.cuda()[:len(a)], a, community.label.cuda()


def train(model, communities, batch=4):
    opt = torch.optim.Adam(model.parameters(), lr=1e-3)
    for step in range(0, len(communities), batch):
        opt.zero_grad()
        group = communities[step:step + batch]
        size = 1 if FIX == "micro_batch" else batch
        for i in range(0, batch, size):
            total = 0.0
            for x, a, label in map(load, group[i:i + size]):
                total = total + F.cross_entropy(model(x, a), label)
            (total / batch).backward()
        opt.step()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()


limit()
network = [Community(1500, offset=88000 if i == 29 else 0) for i in range(40)]
train(GCN().cuda(), network)
