import math
import torch
import torch.nn as nn
import torch.nn.functional as F


class MambaBlock(nn.Module):
    """Selective state space block; the scan is a plain python loop over time."""

    def __init__(self, d_model, d_state=16, expand=2, d_conv=4):
        super().__init__()
        self.d_inner, self.d_state, self.dt_rank = expand * d_model, d_state, math.ceil(d_model / 16)
        self.norm = nn.LayerNorm(d_model)
        self.in_proj = nn.Linear(d_model, 2 * self.d_inner, bias=False)
        self.conv1d = nn.Conv1d(self.d_inner, self.d_inner, d_conv, groups=self.d_inner, padding=d_conv - 1)
        self.x_proj = nn.Linear(self.d_inner, self.dt_rank + 2 * d_state, bias=False)
        self.dt_proj = nn.Linear(self.dt_rank, self.d_inner)
        self.A_log = nn.Parameter(torch.log(torch.arange(1, d_state + 1).float()).repeat(self.d_inner, 1))
        self.D = nn.Parameter(torch.ones(self.d_inner))
        self.out_proj = nn.Linear(self.d_inner, d_model, bias=False)

    def scan(self, u, dt, B, C):
        A = -torch.exp(self.A_log)
        dA = torch.exp(dt.unsqueeze(-1) * A)                          # b l d n
        dBu = (dt * u).unsqueeze(-1) * B.unsqueeze(2)                 # b l d n
        h = torch.zeros_like(dA[:, 0])
        ys = []
        for t in range(u.size(1)):
            h = dA[:, t] * h + dBu[:, t]
            ys.append(torch.einsum("bdn,bn->bd", h, C[:, t]))
        return torch.stack(ys, dim=1) + u * self.D

    def forward(self, x):
        res, L = x, x.size(1)
        u, z = self.in_proj(self.norm(x)).chunk(2, dim=-1)
        u = F.silu(self.conv1d(u.transpose(1, 2))[..., :L].transpose(1, 2))
        dt, B, C = self.x_proj(u).split([self.dt_rank, self.d_state, self.d_state], dim=-1)
        y = self.scan(u, F.softplus(self.dt_proj(dt)), B, C)
        return res + self.out_proj(y * F.silu(z))


torch.manual_seed(0)
vocab, d, seq, bs = 8000, 256, 192, 12
embed = nn.Embedding(vocab, d)
model = nn.Sequential(embed, *[MambaBlock(d) for _ in range(3)], nn.LayerNorm(d), nn.Linear(d, vocab, bias=False)).cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
for step in range(4):
    x = torch.randint(0, vocab, (bs, seq + 1), device="cuda")
    logits = model(x[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, vocab), x[:, 1:].reshape(-1))
    opt.zero_grad(set_to_none=True)
    loss.backward()
    opt.step()
    print(step, f"{loss.item():.4f}", f"ppl {math.exp(loss.item()):.1f}")
