CASE = {"root": "spike", "cures": ["chunked_loss", "cpu", "shape"], "fixes": ["chunked_loss", "cpu", "shape", "micro_batch", "half", "empty_cache"], "already": ["no_grad"]}
# DeepCluster: after an epoch all features are clustered, with the distances by broadcasting.
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

N, K, D, BATCH = 24576, 48, 64, 3072


def distances(x, centres):
    if FIX == "shape":
        return torch.cdist(x, centres)
    return ((x[:, None, :] - centres[None, :, :]) ** 2).sum(-1)


@torch.no_grad()
def kmeans(features, rounds=3):
    if FIX == "cpu":
        features = features.cpu()
    elif FIX == "half":
        features = features.half()
    centres = features[torch.randperm(N)[:K].to(features.device)]
    for _ in range(rounds):
        pieces = features.split(1024 if FIX == "chunked_loss" else N // 2 if FIX == "micro_batch" else N)
        label = torch.cat([distances(p, centres).argmin(1) for p in pieces])
        total = torch.zeros_like(centres).index_add_(0, label, features)
        centres = total / label.bincount(minlength=K).clamp(min=1)[:, None].to(total.dtype)
    return label.cuda()


limit()
encoder = nn.Sequential(nn.Linear(128, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, D)).cuda()
head = nn.Linear(D, K).cuda()
opt = torch.optim.SGD([*encoder.parameters(), *head.parameters()], lr=0.05, momentum=0.9, nesterov=True)
data, pseudo = torch.randn(N, 128, device="cuda"), torch.randint(0, K, (N,), device="cuda")
for epoch in range(3):
    for step, rows in enumerate(torch.randperm(N, device="cuda").split(BATCH)):
        loss = F.cross_entropy(head(encoder(data[rows])), pseudo[rows])
        opt.zero_grad()
        loss.backward()
        opt.step()
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
    with torch.no_grad():
        features = torch.cat([encoder(x) for x in data.split(BATCH)])
    pseudo = kmeans(features)
