# GIN for molecule-like graph regression, fixed graph size, batch on GPU assembled by hand
import torch
import torch.nn as nn
from torch_geometric.data import Batch, Data
from torch_geometric.nn import GINConv, global_add_pool

NODES, DEG, GRAPHS, DIM = 64, 6, 768, 256


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 2 * o), nn.BatchNorm1d(2 * o), nn.ReLU(), nn.Linear(2 * o, o))


class GIN(nn.Module):
    def __init__(self, n_atom=100, dim=DIM, depth=4):
        super().__init__()
        self.atom = nn.Embedding(n_atom, dim)
        self.layers = nn.ModuleList([GINConv(mlp(dim, dim), train_eps=True) for _ in range(depth)])
        self.bns = nn.ModuleList([nn.BatchNorm1d(dim) for _ in range(depth)])
        self.out = nn.Linear(dim * (depth + 1), 1)

    def forward(self, batch):
        h = self.atom(batch.x)
        pooled = [global_add_pool(h, batch.batch)]
        for conv, bn in zip(self.layers, self.bns):
            h = h + bn(conv(h, batch.edge_index)).relu()
            pooled.append(global_add_pool(h, batch.batch))
        return self.out(torch.cat(pooled, -1)).squeeze(-1)


def make_batch():
    items = []
    for _ in range(GRAPHS):
        ei = torch.randint(0, NODES, (2, NODES * DEG))
        items.append(Data(x=torch.randint(0, 100, (NODES,)), edge_index=ei, y=torch.randn(1)))
    return Batch.from_data_list(items)


torch.manual_seed(0)
model = GIN().cuda()
opt = torch.optim.Adam(model.parameters(), lr=1e-3)
sched = torch.optim.lr_scheduler.StepLR(opt, step_size=2, gamma=0.5)
running = 0.0
for it in range(6):
    batch = make_batch().to("cuda", non_blocking=True)
    pred = model(batch)
    loss = nn.functional.l1_loss(pred, batch.y)
    opt.zero_grad()
    loss.backward()
    opt.step()
    sched.step()
    running = 0.9 * running + 0.1 * loss.item()
print("mae", running, "lr", sched.get_last_lr())
