"""Kipf-Welling GCN with an explicit normalised sparse adjacency (torch.sparse.mm), full batch."""
import math
import torch
import torch.nn as nn
import torch.nn.functional as F


def normalized_adjacency(edge_index, n):
    loops = torch.arange(n).repeat(2, 1)
    idx = torch.cat([edge_index, edge_index.flip(0), loops], dim=1)
    adj = torch.sparse_coo_tensor(idx, torch.ones(idx.shape[1]), (n, n)).coalesce()
    deg = torch.zeros(n).scatter_add_(0, adj.indices()[0], adj.values())
    dinv = deg.pow(-0.5)
    val = dinv[adj.indices()[0]] * adj.values() * dinv[adj.indices()[1]]
    return torch.sparse_coo_tensor(adj.indices(), val, (n, n)).coalesce()


class GraphConvolution(nn.Module):
    def __init__(self, fin, fout):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(fin, fout))
        self.bias = nn.Parameter(torch.zeros(fout))
        nn.init.uniform_(self.weight, -1 / math.sqrt(fout), 1 / math.sqrt(fout))

    def forward(self, x, adj):
        return torch.sparse.mm(adj, x @ self.weight) + self.bias


class GCN(nn.Module):
    def __init__(self, nfeat, nhid, nclass, depth=4, dropout=0.5):
        super().__init__()
        dims = [nfeat] + [nhid] * (depth - 1) + [nclass]
        self.gcs = nn.ModuleList(GraphConvolution(a, b) for a, b in zip(dims[:-1], dims[1:]))
        self.dropout = dropout

    def forward(self, x, adj):
        for gc in self.gcs[:-1]:
            x = F.dropout(F.relu(gc(x, adj)), self.dropout, training=self.training)
        return F.log_softmax(self.gcs[-1](x, adj), dim=1)


n, classes = 80_000, 40
torch.manual_seed(42)
adj = normalized_adjacency(torch.randint(0, n, (2, 600_000)), n).cuda()
features = torch.rand(n, 300).cuda()
labels = torch.randint(0, classes, (n,)).cuda()
idx_train = torch.randperm(n)[: n // 2].cuda()

model = GCN(300, 384, classes).cuda()
optimizer = torch.optim.Adam(model.parameters(), lr=0.01, weight_decay=5e-4)
for epoch in range(6):
    model.train()
    optimizer.zero_grad()
    out = model(features, adj)
    loss = F.nll_loss(out[idx_train], labels[idx_train])
    loss.backward()
    optimizer.step()
    print("Epoch {:02d} loss {:.4f}".format(epoch, loss.item()))
