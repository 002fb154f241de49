CASE = {"root": "leak", "cures": ["bound", "cpu", "del"], "fixes": ["bound", "cpu", "del", "half", "micro_batch"], "already": ["detach", "no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Attention(nn.Module):
    def __init__(self, d=512, heads=8):
        super().__init__()
        self.heads, self.qkv, self.out, self.norm = heads, nn.Linear(d, 3 * d), nn.Linear(d, d), nn.LayerNorm(d)

    def forward(self, x, past):
        b, t, d = x.shape
        q, k, v = self.qkv(self.norm(x)).view(b, t, 3, self.heads, d // self.heads).permute(2, 0, 3, 1, 4)
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)  # KEPT
        y = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return x + self.out(y.transpose(1, 2).reshape(b, t, d)), (k, v)


class Chat(nn.Module):
    def __init__(self, vocab=4000, layers=4):
        super().__init__()
        self.emb, self.layers, self.head = nn.Embedding(vocab, 512), nn.ModuleList([Attention() for _ in range(layers)]), nn.Linear(512, vocab)

    def forward(self, ids, cache):
        x, new = self.emb(ids), []
        for i, layer in enumerate(self.layers):
            x, kv = layer(x, cache[i] if cache else None)  # KEPT
            new.append(kv)
        return self.head(x[:, -1:]), new


limit()
model = Chat().cuda().eval()
if FIX == "half":
    model.half()
sessions = {}
with torch.inference_mode():
    for step in range(40):
        for prompt in torch.randint(0, 4000, (8, 512), device="cuda").chunk(2 if FIX == "micro_batch" else 1):
            logits, cache = model(prompt, None)  # KEPT
            for _ in range(2):
                logits, cache = model(logits.argmax(-1), cache)  # KEPT
            if FIX == "cpu":
                cache = [(k.cpu(), v.cpu()) for k, v in cache]
            if FIX != "del":
                sessions[step, len(sessions)] = cache  # in case the user comes back
            if FIX == "bound" and len(sessions) > 4:
                sessions.pop(next(iter(sessions)))
            del cache
