import torch
import torch.nn as nn
import torch.nn.functional as F
import torchvision
from torchvision.transforms import v2


class SimCLR(nn.Module):
    def __init__(self, dim=128):
        super().__init__()
        self.backbone = torchvision.models.resnet18(weights=None)
        self.backbone.conv1 = nn.Conv2d(3, 64, 3, 1, 1, bias=False)
        self.backbone.maxpool = nn.Identity()
        feat = self.backbone.fc.in_features
        self.backbone.fc = nn.Identity()
        self.projector = nn.Sequential(nn.Linear(feat, feat), nn.ReLU(inplace=True), nn.Linear(feat, dim))

    def forward(self, x):
        return F.normalize(self.projector(self.backbone(x)), dim=-1)


def nt_xent(z, temperature=0.2):
    n = z.shape[0] // 2
    sim = z @ z.t() / temperature
    sim.fill_diagonal_(float("-inf"))
    pos = torch.arange(2 * n, device=z.device).roll(n)
    return F.cross_entropy(sim, pos)


augment = v2.Compose([
    v2.RandomResizedCrop(32, scale=(0.2, 1.0), antialias=True),
    v2.RandomHorizontalFlip(),
    v2.ColorJitter(0.4, 0.4, 0.4, 0.1),
])

if __name__ == "__main__":
    torch.manual_seed(0)
    model = SimCLR().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.3, momentum=0.9, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.CosineAnnealingWarmRestarts(opt, T_0=5)
    scaler = torch.amp.GradScaler("cuda")
    for step in range(5):
        raw = torch.rand(256, 3, 40, 40, device="cuda")
        views = torch.cat([augment(raw), augment(raw)])
        with torch.autocast("cuda", dtype=torch.float16):
            z = model(views)
        loss = nt_xent(z.float())
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        sched.step()
        print(f"step {step} nt-xent {loss.item():.4f}")
