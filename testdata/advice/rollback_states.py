CASE = {"root": "leak", "cures": ["cpu", "bound", "optimizer"], "fixes": ["cpu", "bound", "optimizer", "del", "micro_batch"], "already": ["detach", "no_grad"]}
import copy
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
lstm, head = nn.LSTM(512, 1024, num_layers=2, batch_first=True).cuda(), nn.Linear(1024, 512).cuda()
params = [*lstm.parameters(), *head.parameters()]
opt = torch.optim.SGD(params, lr=0.01) if FIX == "optimizer" else torch.optim.AdamW(params, lr=1e-3)
history = []


def to_cpu(x):
    if torch.is_tensor(x):
        return x.cpu()
    if isinstance(x, dict):
        return {k: to_cpu(v) for k, v in x.items()}
    return [to_cpu(v) for v in x] if isinstance(x, list) else x


def remember():
    """For going back when the loss explodes."""
    if FIX == "del":
        return
    if FIX == "cpu":
        history.append(to_cpu(opt.state_dict()))
    else:
        history.append(copy.deepcopy(opt.state_dict()))  # KEPT
    if FIX == "bound":
        del history[:-1]


for step in range(18):
    series = torch.randn(32, 65, 512, device="cuda")
    opt.zero_grad()
    for part in series.chunk(2 if FIX == "micro_batch" else 1):
        out, _ = lstm(part[:, :-1])
        F.mse_loss(head(out), part[:, 1:]).backward()
    torch.nn.utils.clip_grad_norm_(params, 1.0)
    opt.step()
    remember()
