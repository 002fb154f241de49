CASE = {"root": "shared_device", "cures": ["others"], "fixes": ["others", "micro_batch", "half", "checkpoint"], "limit": "shared", "weight": 0.6, "alone": True}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, neighbour


class Decoder(nn.Module):
    def __init__(self, vocab=16000, d=768, layers=4):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d), nn.Linear(d, vocab, bias=False)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 12, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return self.head(x)


neighbour()  # a colleague's job has most of the device
model = Decoder().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    ids = torch.randint(0, 16000, (16, 385), device="cuda")
    opt.zero_grad()
    for part in ids.chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            logits = model(part[:, :-1])
        F.cross_entropy(logits.flatten(0, 1), part[:, 1:].flatten()).backward()
    opt.step()
