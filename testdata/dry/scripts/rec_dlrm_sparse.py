import torch
import torch.nn as nn

TABLES, DIM, DENSE, BATCH = [200_000, 150_000, 100_000, 80_000] + [40_000] * 8, 64, 13, 8192


class DLRM(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb = nn.ModuleList(nn.EmbeddingBag(n, DIM, mode="sum", sparse=True) for n in TABLES)
        self.bot = nn.Sequential(nn.Linear(DENSE, 512), nn.ReLU(), nn.Linear(512, 256), nn.ReLU(), nn.Linear(256, DIM), nn.ReLU())
        f = len(TABLES) + 1
        self.register_buffer("tri", torch.tril_indices(f, f, offset=-1))
        self.top = nn.Sequential(nn.Linear(DIM + f * (f - 1) // 2, 1024), nn.ReLU(), nn.Linear(1024, 256), nn.ReLU(), nn.Linear(256, 1))

    def forward(self, dense, sparse):
        x = self.bot(dense)
        vecs = [x] + [e(idx, off) for e, (idx, off) in zip(self.emb, sparse)]
        t = torch.stack(vecs, dim=1)
        z = torch.bmm(t, t.transpose(1, 2))[:, self.tri[0], self.tri[1]]
        return self.top(torch.cat([x, z], dim=1)).squeeze(1)


def batch():
    sparse = []
    for n in TABLES:
        counts = torch.randint(1, 9, (BATCH,))
        offsets = torch.cat([torch.zeros(1, dtype=torch.long), counts.cumsum(0)[:-1]])
        sparse.append((torch.randint(0, n, (int(counts.sum()),)).cuda(), offsets.cuda()))
    return torch.randn(BATCH, DENSE).cuda(), sparse, torch.randint(0, 2, (BATCH,)).float().cuda()


torch.manual_seed(0)
model = DLRM().cuda()
sparse_opt = torch.optim.SparseAdam(list(model.emb.parameters()), lr=1e-3)
dense_opt = torch.optim.Adam(list(model.bot.parameters()) + list(model.top.parameters()), lr=1e-3)
loss_fn = nn.BCEWithLogitsLoss()
for step in range(6):
    dense, sparse, y = batch()
    loss = loss_fn(model(dense, sparse), y)
    for o in (sparse_opt, dense_opt):
        o.zero_grad()
    loss.backward()
    for o in (sparse_opt, dense_opt):
        o.step()
    print(f"step {step}: bce {loss.item():.4f}")
