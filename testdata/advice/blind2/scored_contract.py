CASE = {"root": "spike", "cures": ["chunked_loss", "bound", "micro_batch"], "fixes": ["chunked_loss", "bound", "micro_batch", "half", "empty_cache"], "already": ["no_grad"]}
# A service that says how likely texts are. Somebody sends contracts where the others send messages.
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

VOCAB, DIM, HEADS = 20000, 384, 6


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm, self.qkv, self.out = nn.LayerNorm(DIM), nn.Linear(DIM, 3 * DIM), nn.Linear(DIM, DIM)
        self.ff = nn.Sequential(nn.LayerNorm(DIM), nn.Linear(DIM, 2 * DIM), nn.GELU(), nn.Linear(2 * DIM, DIM))

    def forward(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(self.norm(x)).chunk(3, -1))
        x = x + self.out(F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).flatten(2))
        return x + self.ff(x)


class Scorer(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.head = nn.Embedding(VOCAB, DIM), nn.Linear(DIM, VOCAB)
        self.layers = nn.Sequential(*(Layer() for _ in range(3)))

    def token_scores(self, h, ids):
        logp = self.head(h).float().log_softmax(-1)
        return logp.gather(-1, ids[..., None]).squeeze(-1)

    def forward(self, ids):
        h = self.layers(self.emb(ids[:, :-1]))
        if FIX == "chunked_loss":
            return torch.cat([self.token_scores(a, b) for a, b in zip(h.split(256, 1), ids[:, 1:].split(256, 1))], 1).sum(1)
        return self.token_scores(h, ids[:, 1:]).sum(1)


class Service:
    def __init__(self, model):
        self.model, self.answers = model, {}

    @torch.inference_mode()
    def handle(self, number, texts):
        if FIX == "bound":
            texts = texts[:, :513]
        ids = texts.cuda()
        scores = [self.model(part) for part in ids.chunk(2 if FIX == "micro_batch" else 1)]
        self.answers[number] = torch.cat(scores).tolist()


def requests():
    for number in range(24):
        yield torch.randint(0, VOCAB, (4, 2305 if number == 17 else 257))


limit()
model = Scorer().cuda().eval()
service = Service(model.half() if FIX == "half" else model)
for step, texts in enumerate(requests()):
    service.handle(step, texts)
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
