CASE = {"root": "capacity", "cures": ["half", "micro_batch"], "fixes": ["half", "micro_batch", "bound", "empty_cache"], "already": ["no_grad"]}
# An engine that generates text. It reserves the keys and values of all its slots when it starts.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

LAYERS, HEADS, DIM, VOCAB = 6, 8, 512, 8000
SLOTS = 12 if FIX == "micro_batch" else 24
LENGTH = 512 if FIX == "bound" else 2048
DTYPE = torch.float16 if FIX == "half" else torch.float32


class Cache:
    def __init__(self):
        shape = (SLOTS, HEADS, LENGTH, DIM // HEADS)
        self.keys = torch.zeros(shape, device="cuda", dtype=DTYPE)
        self.values = torch.zeros(shape, device="cuda", dtype=DTYPE)

    def put(self, k, v, start):
        stop = start + k.shape[2]
        self.keys[:, :, start:stop] = k
        self.values[:, :, start:stop] = v
        return self.keys[:, :, :stop], self.values[:, :, :stop]


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.n1, self.n2 = nn.LayerNorm(DIM), nn.LayerNorm(DIM)
        self.qkv, self.o = nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.Linear(DIM, 4 * DIM), nn.GELU(), nn.Linear(4 * DIM, DIM))

    def forward(self, x, cache, start):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.n1(x)).chunk(3, -1))
        k, v = cache.put(k, v, start)
        att = F.scaled_dot_product_attention(q, k, v, is_causal=x.shape[1] > 1)
        x = x + self.o(att.transpose(1, 2).flatten(2))
        return x + self.ff(self.n2(x))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.blocks, self.head = nn.Embedding(VOCAB, DIM), nn.ModuleList(Block() for _ in range(LAYERS)), nn.Linear(DIM, VOCAB)

    def forward(self, ids, caches, start):
        x = self.emb(ids)
        for block, cache in zip(self.blocks, caches):
            x = block(x, cache, start)
        return self.head(x[:, -1])


class Engine:
    def __init__(self):
        self.model = Model().cuda().to(DTYPE).eval()
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        self.caches = [Cache() for _ in range(LAYERS)]

    @torch.inference_mode()
    def generate(self, prompts, new):
        out, ids, start = [], prompts, 0
        for step in range(new):
            token = self.model(ids, self.caches, start).argmax(-1, keepdim=True)
            start, ids = start + ids.shape[1], token
            out.append(token)
        return torch.cat(out, 1)


limit()
engine = Engine()
requests = torch.randint(0, VOCAB, (48, 128), device="cuda")
answers = [engine.generate(part, 24) for part in requests.split(SLOTS)]
