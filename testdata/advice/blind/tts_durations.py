CASE = {"root": "absurd_request", "cures": ["shape", "bound"], "fixes": ["shape", "bound", "micro_batch", "half", "checkpoint"], "limit": "over", "weight": 1.6}
# Speech synthesis: phonemes are repeated as long as they last. One utterance gives its durations in samples, not in frames.
import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.nn.utils.rnn import pad_sequence
from torch.utils.checkpoint import checkpoint
from case import FIX, limit

HOP, D = 256, 192


class Synthesizer(nn.Module):
    def __init__(self):
        super().__init__()
        self.phonemes = nn.Embedding(80, D)
        self.encoder = nn.Conv1d(D, D, 5, padding=2)
        self.decoder = nn.Sequential(nn.Conv1d(D, D, 5, padding=2), nn.ReLU(), nn.Conv1d(D, 80, 5, padding=2))

    def forward(self, ids, durations):
        h = self.encoder(self.phonemes(ids).transpose(1, 2)).relu().transpose(1, 2)
        long = pad_sequence([row.repeat_interleave(d, 0) for row, d in zip(h, durations)], batch_first=True)
        long = long.transpose(1, 2)
        return checkpoint(self.decoder, long, use_reentrant=False) if FIX == "checkpoint" else self.decoder(long)


def utterances(n, step):
    ids, durations = torch.randint(0, 80, (n, 60), device="cuda"), torch.randint(3, 10, (n, 60), device="cuda")
    if step == 6:
        durations[n // 3] *= HOP
    if FIX == "shape":
        durations = torch.where(durations > 100, durations // HOP, durations)
    elif FIX == "bound":
        durations = durations.clamp(max=12)
    return ids, durations


limit()
model = Synthesizer().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(10):
    ids, durations = utterances(24, step)
    opt.zero_grad()
    parts = 2 if FIX == "micro_batch" else 1
    for i, d in zip(ids.chunk(parts), durations.chunk(parts)):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            mel = model(i, d)
            loss = F.l1_loss(mel, torch.randn_like(mel))
        (loss / parts).backward()
    opt.step()
