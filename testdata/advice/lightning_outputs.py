CASE = {"root": "leak", "cures": ["del", "cpu"], "fixes": ["del", "cpu", "detach", "micro_batch", "half", "bound"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class LitTagger(nn.Module):
    """A module in Lightning's shape: what training_step returns is kept for the end of the epoch."""

    def __init__(self, vocab=12000, d=256, tags=1200):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(vocab, d), nn.LSTM(d, d, 2, batch_first=True, bidirectional=True), nn.Linear(2 * d, tags)

    def training_step(self, batch, batch_idx):
        ids, tags = batch
        logits = self.head(self.rnn(self.emb(ids))[0])  # KEPT
        loss = F.cross_entropy(logits.flatten(0, 1), tags.flatten())
        if FIX == "del":
            return {"loss": loss}
        if FIX == "cpu":
            return {"loss": loss, "logits": logits.detach().cpu()}
        return {"loss": loss, "logits": logits.detach() if FIX == "detach" else logits}

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters(), lr=1e-3)

    def on_train_epoch_end(self, outputs):
        return len(outputs)


class Loop:
    def fit(self, module, batches, epochs=1):
        opt = module.configure_optimizers()
        for epoch in range(epochs):
            outputs = []
            for step in range(batches):
                batch = torch.randint(0, 12000, (32, 96), device="cuda"), torch.randint(0, 1200, (32, 96), device="cuda")
                opt.zero_grad()
                parts = 2 if FIX == "micro_batch" else 1
                for part in zip(*[t.chunk(parts) for t in batch]):
                    with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
                        out = module.training_step(part, step)  # KEPT
                    out["loss"].backward()
                    outputs.append({k: v.detach() if k == "loss" else v for k, v in out.items()})
                    if FIX == "bound":
                        del outputs[:-1]
                opt.step()
            module.on_train_epoch_end(outputs)


limit()
Loop().fit(LitTagger().cuda(), 30)
