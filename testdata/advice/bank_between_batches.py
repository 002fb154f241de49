CASE = {"root": "fragmentation", "cures": [], "fixes": ["cpu", "del", "micro_batch", "half", "empty_cache"], "limit": "tight"}
import collections, random
import torch, torch.nn as nn
from case import FIX, limit


class SpeechEncoder(nn.Module):
    def __init__(self, d=384):
        super().__init__()
        self.front = nn.Sequential(nn.Conv1d(80, d, 5, 2, 2), nn.GELU(), nn.Conv1d(d, d, 5, 2, 2), nn.GELU())
        self.layers = nn.ModuleList([nn.TransformerEncoderLayer(d, 6, 4 * d, 0.0, batch_first=True, norm_first=True) for _ in range(3)])
        self.ctc = nn.Linear(d, 1000)

    def forward(self, x):
        x = self.front(x).transpose(1, 2)
        for layer in self.layers:
            x = layer(x)
        return x, self.ctc(x)


limit()
rng = random.Random(19)
model = SpeechEncoder().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=5e-4)
bank = collections.deque(maxlen=8)  # the hidden states of the last batches, as negatives
for step in range(26):
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    frames, rows = rng.randint(300, 2400), rng.choice([4, 8, 12])
    opt.zero_grad()
    for x in torch.randn(rows, 80, frames, device="cuda").chunk(2 if FIX == "micro_batch" else 1):
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            h, logits = model(x)
        loss = logits.float().logsumexp(-1).mean()
        if bank:
            loss = loss + (h.float().mean(1) @ torch.cat([b.to("cuda").float().mean(1) for b in bank]).T).mean()
        loss.backward()
        if FIX != "del":
            bank.append(h.detach().cpu() if FIX == "cpu" else h.detach().clone())
    opt.step()
