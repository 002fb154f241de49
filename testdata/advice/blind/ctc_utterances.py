CASE = {"root": "fragmentation", "cures": [], "fixes": ["micro_batch", "half", "checkpoint", "empty_cache", "optimizer", "chunked_loss"], "limit": "tight"}
# Speech recognition with CTC: as many frames in every batch, but utterances of all lengths.
import random
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

FRAMES, TOKENS, D, HEADS = 40000, 600, 256, 4


class ConvAttention(nn.Module):
    def __init__(self):
        super().__init__()
        self.qkv, self.out = nn.Linear(D, 3 * D), nn.Linear(D, D)
        self.conv = nn.Sequential(nn.Conv1d(D, 2 * D, 1), nn.GLU(1), nn.Conv1d(D, D, 15, padding=7, groups=D), nn.SiLU(), nn.Conv1d(D, D, 1))
        self.norms = nn.ModuleList([nn.LayerNorm(D), nn.LayerNorm(D)])

    def attend(self, x):
        q, k, v = (t.unflatten(-1, (HEADS, -1)).transpose(1, 2) for t in self.qkv(x).chunk(3, -1))
        scores = (q @ k.transpose(-1, -2) * (D // HEADS) ** -0.5).softmax(-1)  # with a bias per distance there is no fused kernel
        return self.out((scores @ v).transpose(1, 2).flatten(2))

    def forward(self, x):
        x = x + self.attend(self.norms[0](x))
        return x + self.conv(self.norms[1](x).transpose(1, 2)).transpose(1, 2)


class Recognizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.subsample = nn.Sequential(nn.Conv1d(80, D, 5, 2, 2), nn.GELU(), nn.Conv1d(D, D, 5, 2, 2), nn.GELU())
        self.layers = nn.ModuleList(ConvAttention() for _ in range(3))
        self.head = nn.Linear(D, TOKENS)

    def encode(self, mel):
        x = self.subsample(mel).transpose(1, 2)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return x


def ctc(model, h, text):
    logp = model.head(h).float().log_softmax(-1).transpose(0, 1)
    rows = len(text)
    return F.ctc_loss(logp, text, torch.full((rows,), len(logp)), torch.full((rows,), text.shape[1]), reduction="sum", zero_infinity=True)


limit()
rng = random.Random(3)
model = Recognizer().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(26):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    length = rng.randint(120, 1900)
    rows = max(2, FRAMES // length)
    mel, text = torch.randn(rows, 80, length, device="cuda"), torch.randint(1, TOKENS, (rows, length // 16), device="cuda")
    parts = 2 if FIX == "micro_batch" else 1
    opt.zero_grad()
    for m, t in zip(mel.chunk(parts), text.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h = model.encode(m)
            if FIX == "chunked_loss":
                loss = sum(checkpoint(ctc, model, a, b, use_reentrant=False) for a, b in zip(h.chunk(4), t.chunk(4)))
            else:
                loss = ctc(model, h, t)
        (loss / t.numel()).backward()
    opt.step()
