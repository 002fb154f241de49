CASE = {"root": "capacity", "cures": ["micro_batch", "checkpoint"], "fixes": ["micro_batch", "checkpoint", "optimizer", "half"]}
import torch, torch.nn as nn, torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential
from case import FIX, limit


class WaveBlock(nn.Module):
    def __init__(self, c, dilation):
        super().__init__()
        self.conv, self.out = nn.Conv1d(c, 2 * c, 3, padding=dilation, dilation=dilation), nn.Conv1d(c, c, 1)

    def forward(self, x):
        a, b = self.conv(x).chunk(2, 1)
        return x + self.out(torch.tanh(a) * torch.sigmoid(b))


limit()
stem, blocks, head = nn.Conv1d(1, 64, 1).cuda(), nn.Sequential(*[WaveBlock(64, 2**i) for i in range(8)]).cuda(), nn.Conv1d(64, 256, 1).cuda()
params = [*stem.parameters(), *blocks.parameters(), *head.parameters()]
opt = torch.optim.SGD(params, lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(params, lr=1e-3)
micro = 4 if FIX == "micro_batch" else 8
for step in range(4):
    for _ in range(16 // micro):
        wave = torch.rand(micro, 1, 16000, device="cuda") * 2 - 1
        with torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            x = stem(wave[..., :-1])
            x = checkpoint_sequential(blocks, 4, x, use_reentrant=False) if FIX == "checkpoint" else blocks(x)
            logits = head(x)
        target = ((wave[:, 0, 1:] + 1) * 127.5).long()
        loss = F.cross_entropy(logits.float(), target) * micro / 16
        loss.backward()
    opt.step()
    opt.zero_grad()
