CASE = {"root": "leak", "cures": ["del", "cpu", "bound"], "fixes": ["del", "cpu", "bound", "half", "micro_batch"], "already": ["no_grad", "detach"]}
# Captions by beam search: a finished hypothesis takes its caches of keys and values with it.
from dataclasses import dataclass
import torch, torch.nn as nn
import torch.nn.functional as F
from case import FIX, limit

D, HEADS, VOCAB, BEAM, IMAGES, PREFIX, LENGTH = 1024, 8, 4000, 5, 16, 120, 9


@dataclass
class Hypothesis:
    tokens: torch.Tensor
    score: torch.Tensor
    cache: list


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out, self.ff = nn.Linear(D, 3 * D), nn.Linear(D, D), nn.Sequential(nn.Linear(D, D), nn.GELU(), nn.Linear(D, D))

    def forward(self, x, past):
        q, k, v = self.qkv(x).chunk(3, -1)
        if past is not None:
            k, v = torch.cat([past[0], k], 1), torch.cat([past[1], v], 1)  # KEPT
        heads = [t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in (q, k, v)]
        a = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        x = x + self.out(a)
        return x + self.ff(x), (k, v)


class Captioner(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.layers, self.head = nn.Embedding(VOCAB, D), nn.ModuleList([Layer(), Layer()]), nn.Linear(D, VOCAB)

    def forward(self, x, cache):
        new = []
        for layer, past in zip(self.layers, cache):
            x, kv = layer(x, past)  # KEPT
            new.append(kv)
        return self.head(x[:, -1]), new


@torch.inference_mode()
def beam_search(net, patches):
    n = len(patches)
    logits, cache = net(patches.repeat_interleave(BEAM, 0), [None, None])
    score = torch.full((n, BEAM), -1e9, device="cuda")
    score[:, 0] = 0
    tokens = torch.zeros(n * BEAM, 0, dtype=torch.long, device="cuda")
    base = torch.arange(n, device="cuda")[:, None] * BEAM
    for _ in range(LENGTH):
        total = score[..., None] + logits.log_softmax(-1).view(n, BEAM, VOCAB)
        score, index = total.flatten(1).topk(BEAM)
        parent, word = (base + index // VOCAB).flatten(), (index % VOCAB).flatten()
        tokens = torch.cat([tokens[parent], word[:, None]], 1)
        cache = [(k[parent], v[parent]) for k, v in cache]
        logits, cache = net(net.words(word)[:, None], cache)  # KEPT
    return [Hypothesis(t, s, cache) for t, s in zip(tokens.view(n, BEAM, -1), score)]


def strip(hypothesis):
    if FIX == "del":
        hypothesis.cache = None
    elif FIX == "cpu":
        hypothesis.cache = [tuple(t.cpu() for t in kv) for kv in hypothesis.cache]
    elif FIX == "half":
        hypothesis.cache = [tuple(t.bfloat16() for t in kv) for kv in hypothesis.cache]
    return hypothesis


if __name__ == "__main__":
    limit()
    net, captions = Captioner().cuda().eval(), []
    for step in range(9):
        photos = torch.randn(IMAGES, PREFIX, D, device="cuda")
        for part in photos.chunk(2 if FIX == "micro_batch" else 1):
            found = beam_search(net, part)  # KEPT
            if FIX in ("cpu", "half", "del"):
                first, *rest = found
                strip(first)
                for h in rest:  # all share the caches
                    h.cache = first.cache
            captions.extend(found)
        if FIX == "bound":
            del captions[:-IMAGES]
