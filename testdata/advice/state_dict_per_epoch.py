CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "half", "optimizer", "micro_batch"], "already": ["detach", "no_grad"]}
import copy
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
model = nn.Transformer(d_model=512, nhead=8, num_encoder_layers=2, num_decoder_layers=2, dim_feedforward=2048, batch_first=True).cuda()
src_emb, tgt_emb, head = nn.Embedding(8000, 512).cuda(), nn.Embedding(8000, 512).cuda(), nn.Linear(512, 8000).cuda()
params = [p for m in (model, src_emb, tgt_emb, head) for p in m.parameters()]
opt = torch.optim.SGD(params, lr=0.1) if FIX == "optimizer" else torch.optim.Adam(params, lr=1e-4)
snapshots, best = [], None
for epoch in range(12):
    for step in range(2):
        src, tgt = torch.randint(0, 8000, (8, 64), device="cuda"), torch.randint(0, 8000, (8, 49), device="cuda")
        opt.zero_grad()
        parts = 2 if FIX == "micro_batch" else 1
        for s, t in zip(src.chunk(parts), tgt.chunk(parts)):
            out = head(model(src_emb(s), tgt_emb(t[:, :-1])))
            F.cross_entropy(out.flatten(0, 1), t[:, 1:].flatten()).backward()
        opt.step()
    # kept for averaging the weights of the best epochs later
    state = model.state_dict()
    if FIX == "cpu":
        snapshots.append({k: v.cpu() for k, v in state.items()})
    elif FIX == "half":
        snapshots.append({k: v.half() for k, v in state.items()})
    elif FIX != "del":
        snapshots.append(copy.deepcopy(state))  # KEPT
    if FIX == "bound":
        snapshots = snapshots[-1:]
