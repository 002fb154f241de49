CASE = {"root": "leak", "cures": ["cpu", "bound"], "fixes": ["cpu", "bound", "detach", "half", "del", "micro_batch"], "already": ["no_grad"]}
import torch, torch.nn as nn
from case import FIX, limit


@torch.no_grad()
def embed(model, batches):
    store = []
    for step in range(batches):
        clips = torch.randn(16, 3, 8, 56, 56, device="cuda")
        tokens = torch.cat([model(c) for c in clips.chunk(2 if FIX == "micro_batch" else 1)])  # KEPT
        if FIX == "cpu":
            tokens = tokens.cpu()
        elif FIX == "half":
            tokens = tokens.half()
        elif FIX == "detach":
            tokens = tokens.detach()
        store.append(tokens.mean().item() if FIX == "del" else tokens)
        if FIX == "bound":
            store = store[-2:]
        del tokens
        torch.cuda.empty_cache()  # "it keeps growing otherwise"
    return store


class VideoEncoder(nn.Module):
    def __init__(self, d=384):
        super().__init__()
        self.stem = nn.Conv3d(3, d, (2, 4, 4), (2, 4, 4))
        self.mix = nn.ModuleList([nn.Sequential(nn.LayerNorm(d), nn.Linear(d, 2 * d), nn.GELU(), nn.Linear(2 * d, d)) for _ in range(3)])

    def forward(self, x):
        x = self.stem(x).flatten(2).transpose(1, 2).contiguous()  # KEPT
        for layer in self.mix:
            x = x + layer(x)  # KEPT
        return x


limit()
embed(VideoEncoder().cuda().eval(), 40)
