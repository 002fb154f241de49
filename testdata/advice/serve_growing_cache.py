CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "empty_cache", "bound"], "limit": "tight"}
import random
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Layer(nn.Module):
    def __init__(self, d=768, heads=12):
        super().__init__()
        self.heads, self.qkv, self.out = heads, nn.Linear(d, 3 * d), nn.Linear(d, d)
        self.mlp = nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 4 * d), nn.GELU(), nn.Linear(4 * d, d))

    def forward(self, x, past):
        b, t, d = x.shape
        q, k, v = [z.reshape(b, t, self.heads, -1).transpose(1, 2).contiguous() for z in self.qkv(x).chunk(3, -1)]
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        x = x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(b, t, d))
        return x + self.mlp(x), (k, v)


limit()
rng = random.Random(2)
dtype = torch.float16 if FIX == "half" else torch.float32
emb, layers = nn.Embedding(2000, 768).cuda().to(dtype), nn.ModuleList([Layer() for _ in range(4)]).cuda().to(dtype)
with torch.inference_mode():
    for step in range(16):  # requests of all sizes, answered one after the other
        rows, prompt, new = rng.choice([4, 8, 16, 24]), rng.randint(64, 900), rng.randint(2, 8)
        if FIX == "bound":
            prompt = min(prompt, 512)
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        for ids in torch.randint(0, 2000, (rows, prompt), device="cuda").chunk(2 if FIX == "micro_batch" else 1):
            cache = [None] * 4
            for token in range(new):
                x = emb(ids)
                for i, layer in enumerate(layers):
                    x, cache[i] = layer(x, cache[i])
                ids = torch.randint(0, 2000, (len(ids), 1), device="cuda")
            del cache, x
