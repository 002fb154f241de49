CASE = {"root": "leak", "cures": ["cpu", "bound", "del"], "fixes": ["cpu", "bound", "del", "detach", "half", "micro_batch"]}
import collections
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class ViT(nn.Module):
    def __init__(self, d=320, layers=4, patch=8, size=96):
        super().__init__()
        self.patch = nn.Conv2d(3, d, patch, patch)
        self.pos = nn.Parameter(torch.zeros(1, (size // patch) ** 2, d))
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(d, 5, 4 * d, 0.0, "gelu", batch_first=True, norm_first=True) for _ in range(layers)])
        self.head = nn.Linear(d, 50)

    def forward(self, x):
        x = self.patch(x).flatten(2).transpose(1, 2) + self.pos
        for block in self.blocks:
            x = block(x)  # KEPT
        return self.head(x.mean(1))


limit()
model = ViT().cuda()
activations = collections.defaultdict(list)


def save(name):
    def hook(module, args, output):
        kept = output.detach().cpu() if FIX == "cpu" else output.detach() if FIX == "detach" else output.detach().half() if FIX == "half" else output
        activations[name].append(kept)
        if FIX == "bound":
            del activations[name][:-1]
    return hook


if FIX != "del":
    for name, module in model.blocks.named_modules():
        if isinstance(module, nn.Linear):
            module.register_forward_hook(save(name))
opt = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
for step in range(14):
    images, labels = torch.randn(32, 3, 96, 96, device="cuda"), torch.randint(0, 50, (32,), device="cuda")
    opt.zero_grad(set_to_none=True)
    parts = 2 if FIX == "micro_batch" else 1
    for x, y in zip(images.chunk(parts), labels.chunk(parts)):
        loss = F.cross_entropy(model(x), y)  # KEPT
        (loss / parts).backward()
    opt.step()
