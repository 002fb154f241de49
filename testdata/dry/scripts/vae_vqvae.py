import torch
import torch.nn as nn
import torch.nn.functional as F

class ResBlock(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.f = nn.Sequential(nn.ReLU(), nn.Conv2d(c, c // 2, 3, 1, 1), nn.ReLU(), nn.Conv2d(c // 2, c, 1))

    def forward(self, x):
        return x + self.f(x)

class Quantizer(nn.Module):
    def __init__(self, k=1024, d=64, decay=0.99):
        super().__init__()
        self.k, self.decay = k, decay
        self.register_buffer("codes", torch.randn(k, d))
        self.register_buffer("count", torch.ones(k))
        self.register_buffer("accum", self.codes.clone())

    def forward(self, z):
        b, d, h, w = z.shape
        flat = z.permute(0, 2, 3, 1).reshape(-1, d)
        dist = flat.pow(2).sum(1, keepdim=True) - 2 * flat @ self.codes.t() + self.codes.pow(2).sum(1)
        idx = dist.argmin(1)
        if self.training:
            with torch.no_grad():
                onehot = F.one_hot(idx, self.k).type_as(flat)
                self.count.mul_(self.decay).add_(onehot.sum(0), alpha=1 - self.decay)
                self.accum.mul_(self.decay).add_(onehot.t() @ flat, alpha=1 - self.decay)
                n = self.count.sum()
                size = (self.count + 1e-5) / (n + self.k * 1e-5) * n
                self.codes.copy_(self.accum / size.unsqueeze(1))
        q = F.embedding(idx, self.codes).view(b, h, w, d).permute(0, 3, 1, 2)
        commit = F.mse_loss(z, q.detach())
        return z + (q - z).detach(), commit, idx

class VQVAE(nn.Module):
    def __init__(self, c=128, d=64):
        super().__init__()
        self.enc = nn.Sequential(nn.Conv2d(3, c // 2, 4, 2, 1), nn.ReLU(), nn.Conv2d(c // 2, c, 4, 2, 1),
                                 ResBlock(c), ResBlock(c), nn.ReLU(), nn.Conv2d(c, d, 1))
        self.vq = Quantizer(d=d)
        self.dec = nn.Sequential(nn.Conv2d(d, c, 3, 1, 1), ResBlock(c), ResBlock(c), nn.ReLU(),
                                 nn.ConvTranspose2d(c, c // 2, 4, 2, 1), nn.ReLU(), nn.ConvTranspose2d(c // 2, 3, 4, 2, 1))

    def forward(self, x):
        q, commit, idx = self.vq(self.enc(x))
        return self.dec(q), commit, idx

model = VQVAE().to("cuda")
opt = torch.optim.Adam(model.parameters(), lr=3e-4, amsgrad=True)
for step in range(6):
    x = torch.rand(32, 3, 128, 128).to("cuda") - 0.5
    recon, commit, idx = model(x)
    loss = F.mse_loss(recon, x) / 0.06 + 0.25 * commit
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, round(loss.item(), 4), "codes used:", idx.unique().numel())
