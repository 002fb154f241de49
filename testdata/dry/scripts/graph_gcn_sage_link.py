"""Link prediction on one big random graph: GCN + SAGE encoder, dot product decoder, sampled negatives."""
import torch
import torch.nn.functional as F
from torch_geometric.data import Data
from torch_geometric.nn import GCNConv, SAGEConv

torch.manual_seed(0)
device = torch.device("cuda")

N, E = 40_000, 500_000
data = Data(x=torch.randn(N, 128), edge_index=torch.randint(0, N, (2, E)))
data = data.to(device)


class Encoder(torch.nn.Module):
    def __init__(self, cin, hid, cout):
        super().__init__()
        self.conv1 = GCNConv(cin, hid)
        self.conv2 = SAGEConv(hid, hid, aggr="mean")
        self.conv3 = SAGEConv(hid, cout, aggr="max")
        self.bn = torch.nn.BatchNorm1d(hid)

    def forward(self, x, edge_index):
        x = self.bn(self.conv1(x, edge_index)).relu()
        x = F.dropout(x, p=0.3, training=self.training)
        x = self.conv2(x, edge_index).relu()
        return self.conv3(x, edge_index)


def decode(z, pairs):
    return (z[pairs[0]] * z[pairs[1]]).sum(dim=-1)


model = Encoder(128, 256, 128).to(device)
opt = torch.optim.Adam(model.parameters(), lr=5e-3, weight_decay=5e-4)

for epoch in range(5):
    model.train()
    opt.zero_grad()
    z = model(data.x, data.edge_index)
    neg = torch.randint(0, N, (2, E), device=device)
    pos_logit, neg_logit = decode(z, data.edge_index), decode(z, neg)
    logits = torch.cat([pos_logit, neg_logit])
    labels = torch.cat([torch.ones_like(pos_logit), torch.zeros_like(neg_logit)])
    loss = F.binary_cross_entropy_with_logits(logits, labels)
    loss.backward()
    opt.step()
    if epoch % 2 == 1:
        model.eval()
        with torch.no_grad():
            z = model(data.x, data.edge_index)
            acc = (decode(z, data.edge_index[:, :50_000]) > 0).float().mean()
        print(f"epoch {epoch} loss {loss.item():.4f} pos-acc {acc.item():.3f}")
