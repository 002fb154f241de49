CASE = {"root": "leak", "cures": ["no_grad", "detach"], "fixes": ["no_grad", "detach", "micro_batch", "checkpoint", "half", "del", "cpu"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint
from case import FIX, limit


class GPT(nn.Module):
    def __init__(self, vocab=6000, d=384, layers=3, heads=6):
        super().__init__()
        self.tok = nn.Embedding(vocab, d)
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, heads, 4 * d, dropout=0.0, batch_first=True, norm_first=True) for _ in range(layers)])
        self.head = nn.Linear(d, vocab, bias=False)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.shape[1], device=ids.device)
        x = self.tok(ids)
        for layer in self.layers:
            x = checkpoint(layer, x, mask, use_reentrant=False) if FIX == "checkpoint" else layer(x, mask)  # KEPT
        return self.head(x)  # KEPT


def loss_of(model, ids):
    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
        logits = model(ids[:, :-1])  # KEPT
    return F.cross_entropy(logits.flatten(0, 1).float(), ids[:, 1:].flatten())  # KEPT


limit()
model = GPT().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
for epoch in range(2):
    for step in range(3):
        loss = loss_of(model, torch.randint(0, 6000, (4, 257), device="cuda"))
        opt.zero_grad()
        loss.backward()
        opt.step()
    val_loss = 0.0
    with torch.set_grad_enabled(FIX != "no_grad"):
        for step in range(16):
            for ids in torch.randint(0, 6000, (4, 257), device="cuda").chunk(2 if FIX == "micro_batch" else 1):
                loss = loss_of(model, ids)  # KEPT
                if FIX != "del":
                    val_loss += loss.item() if FIX == "detach" else loss.detach().cpu() if FIX == "cpu" else loss
    print(epoch, float(val_loss) / 16)
