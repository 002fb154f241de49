import torch
import torch.nn as nn
import torch.nn.functional as F

class Expert(nn.Module):
    def __init__(self, d, h):
        super().__init__()
        self.w1, self.w2, self.w3 = nn.Linear(d, h, bias=False), nn.Linear(h, d, bias=False), nn.Linear(d, h, bias=False)
    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))

class MoE(nn.Module):
    def __init__(self, d, h, n_experts=8, k=2):
        super().__init__()
        self.gate = nn.Linear(d, n_experts, bias=False)
        self.experts = nn.ModuleList(Expert(d, h) for _ in range(n_experts))
        self.k = k
    def forward(self, x):
        flat = x.reshape(-1, x.size(-1))
        probs = self.gate(flat).softmax(-1)
        weight, chosen = probs.topk(self.k, dim=-1)
        weight = weight / weight.sum(-1, keepdim=True)
        out = torch.zeros_like(flat)
        for e, expert in enumerate(self.experts):
            token, slot = torch.where(chosen == e)
            if token.numel() == 0:
                continue
            out.index_add_(0, token, expert(flat[token]) * weight[token, slot, None])
        load = F.one_hot(chosen, len(self.experts)).float().mean((0, 1))
        return out.view_as(x), len(self.experts) * (load * probs.mean(0)).sum()

class Layer(nn.Module):
    def __init__(self, d, heads):
        super().__init__()
        self.ln1, self.ln2 = nn.LayerNorm(d), nn.LayerNorm(d)
        self.attn = nn.MultiheadAttention(d, heads, batch_first=True)
        self.moe = MoE(d, 2 * d)
    def forward(self, x, mask):
        y = self.ln1(x)
        x = x + self.attn(y, y, y, attn_mask=mask, need_weights=False)[0]
        y, aux = self.moe(self.ln2(x))
        return x + y, aux

class MoELM(nn.Module):
    def __init__(self, vocab=10000, d=512, n=4, ctx=256):
        super().__init__()
        self.emb, self.pos = nn.Embedding(vocab, d), nn.Parameter(torch.zeros(ctx, d))
        self.layers, self.out = nn.ModuleList(Layer(d, 8) for _ in range(n)), nn.Linear(d, vocab)
        self.register_buffer("mask", torch.triu(torch.ones(ctx, ctx, dtype=torch.bool), 1))
    def forward(self, ids):
        x, aux = self.emb(ids) + self.pos, 0.0
        for layer in self.layers:
            x, a = layer(x, self.mask)
            aux = aux + a
        return self.out(x), aux

torch.manual_seed(0)
model = MoELM().to("cuda")
opt = torch.optim.NAdam(model.parameters(), lr=2e-4)
for step in range(5):
    ids = torch.randint(0, 10000, (16, 257), device="cuda")
    logits, aux = model(ids[:, :-1])
    ce = F.cross_entropy(logits.transpose(1, 2), ids[:, 1:])
    (ce + 0.01 * aux).backward()
    opt.step()
    model.zero_grad()
    print(f"{step} ce {ce.item():.3f} aux {aux.item():.3f}")
