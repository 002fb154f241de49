CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.5}
import torch, torch.nn as nn, torch.nn.functional as F
from case import limit

limit()
encoder, decoder = nn.LSTM(64, 512, 2, batch_first=True).cuda(), nn.Linear(512, 64).cuda()
opt = torch.optim.RMSprop([*encoder.parameters(), *decoder.parameters()], lr=1e-3)
for step in range(12):
    series = torch.randn(128, 101, 64, device="cuda")
    hidden, _ = encoder(series[:, :-1])
    loss = F.smooth_l1_loss(decoder(hidden), series[:, 1:])
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(step, loss.item())
    torch.cuda.empty_cache()  # slow, and of no use here
