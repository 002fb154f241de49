import torch
import torch.nn as nn
import torch.nn.functional as F

V, D, H, L, T, B = 16000, 512, 8, 4, 512, 16

def apply_rope(x, cos, sin):
    x1, x2 = x[..., ::2], x[..., 1::2]
    return torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), -1).flatten(-2).type_as(x)

class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.an, self.fn = nn.RMSNorm(D), nn.RMSNorm(D)
        self.wq, self.wk, self.wv, self.wo = (nn.Linear(D, D, bias=False) for _ in range(4))
        self.w1, self.w3, self.w2 = nn.Linear(D, 1408, bias=False), nn.Linear(D, 1408, bias=False), nn.Linear(1408, D, bias=False)
    def forward(self, x, cos, sin):
        h = self.an(x)
        q, k, v = [w(h).view(x.size(0), x.size(1), H, D // H).transpose(1, 2) for w in (self.wq, self.wk, self.wv)]
        a = F.scaled_dot_product_attention(apply_rope(q, cos, sin), apply_rope(k, cos, sin), v, is_causal=True)
        x = x + self.wo(a.transpose(1, 2).reshape(x.shape))
        h = self.fn(x)
        return x + self.w2(F.silu(self.w1(h)) * self.w3(h))

class Llama(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.norm, self.out = nn.Embedding(V, D), nn.RMSNorm(D), nn.Linear(D, V, bias=False)
        self.layers = nn.ModuleList(Layer() for _ in range(L))
        ang = torch.outer(torch.arange(T).float(), 1e4 ** (-torch.arange(0, D // H, 2).float() / (D // H)))
        self.register_buffer("cos", ang.cos())
        self.register_buffer("sin", ang.sin())
    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x, self.cos, self.sin)
        return self.out(self.norm(x))

model = Llama().cuda()
model = torch.compile(model)
opt = torch.optim.AdamW(model.parameters(), lr=3e-4, fused=True)
for step in range(5):
    ids = torch.randint(0, V, (B, T + 1), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        logits = model(ids[:, :-1])
        loss = F.cross_entropy(logits.view(-1, V), ids[:, 1:].reshape(-1))
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    print(step, loss.item())
