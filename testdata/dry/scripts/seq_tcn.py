import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm

class Chomp1d(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.n = n
    def forward(self, x):
        return x[:, :, : -self.n].contiguous()

class TemporalBlock(nn.Module):
    def __init__(self, cin, cout, k, dilation, dropout):
        super().__init__()
        pad = (k - 1) * dilation
        self.net = nn.Sequential(
            weight_norm(nn.Conv1d(cin, cout, k, padding=pad, dilation=dilation)), Chomp1d(pad), nn.ReLU(), nn.Dropout(dropout),
            weight_norm(nn.Conv1d(cout, cout, k, padding=pad, dilation=dilation)), Chomp1d(pad), nn.ReLU(), nn.Dropout(dropout),
        )
        self.down = nn.Conv1d(cin, cout, 1) if cin != cout else nn.Identity()
        self.relu = nn.ReLU()
    def forward(self, x):
        return self.relu(self.net(x) + self.down(x))

class TCN(nn.Module):
    def __init__(self, cin, channels, horizon, k=5, dropout=0.1):
        super().__init__()
        widths = [cin] + channels
        self.blocks = nn.Sequential(*[TemporalBlock(a, b, k, 2 ** i, dropout)
                                      for i, (a, b) in enumerate(zip(widths, channels))])
        self.head = nn.Linear(channels[-1], horizon)
    def forward(self, x):
        return self.head(self.blocks(x)[:, :, -1])

def train_epoch(model, opt, series, targets, bs=48):
    model.train()
    total = 0.0
    for i in range(0, len(series), bs):
        x, y = series[i:i + bs].to("cuda"), targets[i:i + bs].to("cuda")
        opt.zero_grad()
        loss = nn.functional.huber_loss(model(x), y)
        loss.backward()
        opt.step()
        total += loss.item() * len(x)
    return total / len(series)

torch.manual_seed(0)
net = TCN(24, [64, 96, 128, 128, 160, 160], horizon=48).cuda()
optim = torch.optim.RMSprop(net.parameters(), lr=5e-4, momentum=0.9)
plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(optim, patience=1)
series, targets = torch.randn(144, 24, 2048), torch.randn(144, 48)
for epoch in range(2):
    train_loss = train_epoch(net, optim, series, targets)
    net.eval()
    with torch.no_grad():
        val = nn.functional.mse_loss(net(series[:96].cuda()), targets[:96].cuda()).item()
    plateau.step(val)
    print(epoch, train_loss, val)
