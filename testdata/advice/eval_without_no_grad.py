CASE = {"root": "spike", "cures": ["no_grad", "detach", "micro_batch"], "fixes": ["no_grad", "micro_batch", "checkpoint", "half", "detach", "empty_cache"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class Encoder(nn.Module):
    def __init__(self, vocab=10000, d=384, layers=4):
        super().__init__()
        self.emb, self.out = nn.Embedding(vocab, d), nn.Linear(d, 3)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 6, 4 * d, 0.1, batch_first=True) for _ in range(layers)])

    def forward(self, ids):
        x = self.emb(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, use_reentrant=False) if FIX == "checkpoint" else layer(x)
        return self.out(x.mean(1))


def evaluate(model):
    correct = 0
    for step in range(4):
        ids, labels = torch.randint(0, 10000, (96, 128), device="cuda"), torch.randint(0, 3, (96,), device="cuda")
        parts = 2 if FIX == "micro_batch" else 1
        for x, y in zip(ids.chunk(parts), labels.chunk(parts)):
            with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                logits = model(x)
            logits = logits.detach() if FIX == "detach" else logits
            correct += (logits.argmax(-1) == y).sum().item()
    return correct


limit()
model = Encoder().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=2e-5)
for epoch in range(2):
    for step in range(5):
        ids, labels = torch.randint(0, 10000, (32, 128), device="cuda"), torch.randint(0, 3, (32,), device="cuda")
        loss = F.cross_entropy(model(ids), labels)
        opt.zero_grad()
        loss.backward()
        opt.step()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    with torch.set_grad_enabled(FIX != "no_grad"):
        evaluate(model)
