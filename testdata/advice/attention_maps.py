CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "detach", "half", "micro_batch"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class Decoder(nn.Module):
    """An attentive decoder that remembers its alignments for the plots."""

    def __init__(self, vocab=5000, d=256):
        super().__init__()
        self.emb, self.rnn, self.out = nn.Embedding(vocab, d), nn.GRU(d, d, batch_first=True), nn.Linear(2 * d, vocab)
        self.alignments = []

    def forward(self, memory, ids):
        h, _ = self.rnn(self.emb(ids))
        weights = torch.softmax(h @ memory.transpose(1, 2) / 16, -1)  # KEPT
        if FIX == "cpu":
            self.alignments.append(weights.detach().cpu())
        elif FIX == "detach":
            self.alignments.append(weights.detach())
        elif FIX == "half":
            self.alignments.append(weights.detach().half())
        elif FIX != "del":
            self.alignments.append(weights)
        if FIX == "bound":
            self.alignments = self.alignments[-1:]
        return self.out(torch.cat([h, weights @ memory], -1))


limit()
encoder, decoder = nn.GRU(80, 256, batch_first=True).cuda(), Decoder().cuda()
opt = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for step in range(16):
    audio, text = torch.randn(32, 1600, 80, device="cuda"), torch.randint(0, 5000, (32, 201), device="cuda")
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for a, t in zip(audio.chunk(parts), text.chunk(parts)):
        memory, _ = encoder(a)
        logits = decoder(memory, t[:, :-1])  # KEPT
        loss = F.cross_entropy(logits.flatten(0, 1), t[:, 1:].flatten()) / parts
        loss.backward()
    opt.step()
