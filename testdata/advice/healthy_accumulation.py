CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import limit


class Tagger(nn.Module):
    def __init__(self, vocab=9000, d=256):
        super().__init__()
        self.emb, self.head = nn.Embedding(vocab, d), nn.Linear(d, 40)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 4, 4 * d, 0.1, batch_first=True) for _ in range(3)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


limit()
model = Tagger().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
losses = []
for step in range(8):
    running = 0.0
    for micro in range(4):  # gradient accumulation, as it should be
        ids, tags = torch.randint(0, 9000, (16, 96), device="cuda"), torch.randint(0, 40, (16, 96), device="cuda")
        loss = F.cross_entropy(model(ids).flatten(0, 1), tags.flatten()) / 4
        loss.backward()
        running += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad(set_to_none=True)
    losses.append(running)
