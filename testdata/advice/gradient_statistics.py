CASE = {"root": "spike", "cures": ["del", "cpu"], "fixes": ["del", "cpu", "half", "empty_cache", "micro_batch", "optimizer"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit

limit()
model = nn.Sequential(*[nn.Sequential(nn.Linear(2048, 2048), nn.GELU()) for _ in range(4)], nn.Linear(2048, 64)).cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.0 if FIX == "optimizer" else 0.9)


def statistics():
    if FIX == "del":  # one parameter after the other
        norms = torch.stack([p.grad.norm() for p in model.parameters()])
        return {"norm": norms.norm().item()}
    grads = torch.cat([(p.grad.cpu() if FIX == "cpu" else p.grad.half() if FIX == "half" else p.grad).flatten() for p in model.parameters()])
    ordered = grads.abs().sort().values
    return {"norm": grads.float().norm().item(), "p99": ordered[int(0.99 * len(ordered))].item()}


for step in range(11):
    opt.zero_grad()
    for x in torch.randn(512, 2048, device="cuda").chunk(2 if FIX == "micro_batch" else 1):
        F.mse_loss(model(x), torch.zeros(len(x), 64, device="cuda")).backward()
    if step % 5 == 4:
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        print(step, statistics())
    opt.step()
