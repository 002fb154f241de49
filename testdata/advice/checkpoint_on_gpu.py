CASE = {"root": "spike", "cures": ["cpu", "del"], "fixes": ["cpu", "del", "half", "empty_cache", "micro_batch", "optimizer"]}
import copy, io
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class ConvNeXt(nn.Module):
    def __init__(self, d=768, layers=6, classes=100):
        super().__init__()
        self.stem = nn.Conv2d(3, d, 4, 4)
        self.layers = nn.ModuleList([nn.ModuleList([nn.Conv2d(d, d, 7, padding=3, groups=d), nn.GroupNorm(1, d), nn.Conv2d(d, 4 * d, 1), nn.Conv2d(4 * d, d, 1)]) for _ in range(layers)])
        self.fc = nn.Linear(d, classes)

    def forward(self, x):
        x = self.stem(x)
        for depth, norm, up, down in self.layers:
            x = x + down(F.gelu(up(norm(depth(x)))))
        return self.fc(x.mean((2, 3)))


def save(model, opt, step):
    if FIX == "cpu":
        state = {"model": {k: v.cpu() for k, v in model.state_dict().items()}, "step": step}
    elif FIX == "del":  # no copy: saving reads the tensors as they are
        state = {"step": step}
    elif FIX == "half":
        state = {"model": {k: v.half() for k, v in model.state_dict().items()}, "optimizer": copy.deepcopy(opt.state_dict()), "step": step}
    else:
        state = copy.deepcopy({"model": model.state_dict(), "optimizer": opt.state_dict(), "step": step})
    torch.save(state["step"], io.BytesIO())


limit()
model = ConvNeXt().cuda()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=1e-3)
for step in range(9):
    opt.zero_grad()
    for x in torch.randn(8, 3, 32, 32, device="cuda").chunk(2 if FIX == "micro_batch" else 1):
        F.cross_entropy(model(x), torch.randint(0, 100, (len(x),), device="cuda")).backward()
    opt.step()
    if step % 4 == 3:
        if FIX == "empty_cache":
            torch.cuda.empty_cache()
        save(model, opt, step)
