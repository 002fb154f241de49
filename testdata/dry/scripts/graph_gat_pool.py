import argparse

import torch
from torch import nn
from torch_geometric.data import Data
from torch_geometric.loader import DataLoader
from torch_geometric.nn import GATConv, global_max_pool, global_mean_pool


def random_graph(num_feats, num_classes, edge_dim):
    n = int(torch.randint(40, 160, (1,)))
    e = n * 8
    return Data(
        x=torch.randn(n, num_feats),
        edge_index=torch.randint(0, n, (2, e)),
        edge_attr=torch.randn(e, edge_dim),
        y=torch.randint(0, num_classes, (1,)),
    )


class GATNet(nn.Module):
    def __init__(self, args):
        super().__init__()
        dims = [args.feats] + [args.hidden * args.heads] * args.layers
        self.convs = nn.ModuleList(
            GATConv(d, args.hidden, heads=args.heads, edge_dim=args.edge_dim, dropout=0.1) for d in dims[:-1]
        )
        self.norms = nn.ModuleList(nn.LayerNorm(d) for d in dims[1:])
        self.head = nn.Sequential(nn.Linear(2 * dims[-1], 128), nn.ELU(), nn.Linear(128, args.classes))

    def forward(self, x, edge_index, edge_attr, batch):
        for conv, norm in zip(self.convs, self.norms):
            x = nn.functional.elu(norm(conv(x, edge_index, edge_attr)))
        return self.head(torch.cat([global_mean_pool(x, batch), global_max_pool(x, batch)], dim=1))


if __name__ == "__main__":
    p = argparse.ArgumentParser()
    p.add_argument("--feats", type=int, default=32)
    p.add_argument("--edge_dim", type=int, default=8)
    p.add_argument("--hidden", type=int, default=32)
    p.add_argument("--heads", type=int, default=8)
    p.add_argument("--layers", type=int, default=3)
    p.add_argument("--classes", type=int, default=6)
    p.add_argument("--batch_size", type=int, default=128)
    args = p.parse_args()
    torch.manual_seed(1)
    graphs = [random_graph(args.feats, args.classes, args.edge_dim) for _ in range(5 * args.batch_size)]
    loader = DataLoader(graphs, batch_size=args.batch_size, shuffle=True)
    model = GATNet(args).to("cuda")
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for step, batch in enumerate(loader):
        batch = batch.to("cuda")
        loss = nn.functional.cross_entropy(model(batch.x, batch.edge_index, batch.edge_attr, batch.batch), batch.y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 2.0)
        optimizer.step()
        print(step, batch.num_graphs, batch.num_nodes, loss.item())
