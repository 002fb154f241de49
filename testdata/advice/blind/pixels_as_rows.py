CASE = {"root": "absurd_request", "cures": ["shape"], "fixes": ["shape", "micro_batch", "half"], "already": ["no_grad"], "limit": "over", "weight": 1.5}
# A masked autoencoder. How alike its images are is measured between all pixels of a batch, where it should be between images.
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


class MAE(nn.Module):
    def __init__(self, patch=8, d=128, size=64):
        super().__init__()
        self.patch, self.tokens = patch, (size // patch) ** 2
        self.embed = nn.Linear(3 * patch * patch, d)
        self.pos = nn.Parameter(torch.randn(self.tokens, d) * 0.02)
        self.blank = nn.Parameter(torch.zeros(d))
        self.enc = nn.TransformerEncoderLayer(d, 4, 2 * d, 0.0, batch_first=True, norm_first=True)
        self.dec = nn.TransformerEncoderLayer(d, 4, 2 * d, 0.0, batch_first=True, norm_first=True)
        self.back = nn.Linear(d, 3 * patch * patch)

    def patches(self, images):
        return F.unfold(images, self.patch, stride=self.patch).transpose(1, 2)

    def forward(self, images, keep=24):
        p = self.patches(images)
        order = torch.rand(p.shape[:2], device=p.device).argsort(1)[..., None]
        x = self.embed(p) + self.pos
        seen = self.enc(x.gather(1, order[:, :keep].expand(-1, -1, x.shape[-1])))
        full = (self.blank + self.pos).expand_as(x).scatter(1, order[:, :keep].expand_as(seen), seen)
        return F.mse_loss(self.back(self.dec(full)), p)


@torch.no_grad()
def alike(model, images):
    made = model.back(model.enc(model.embed(model.patches(images)) + model.pos))
    made = F.fold(made.transpose(1, 2), images.shape[2:], model.patch, stride=model.patch)
    rows = made.flatten(1) if FIX == "shape" else made.permute(0, 2, 3, 1).reshape(-1, 3)
    if FIX == "half":
        rows = rows.half()
    if FIX == "micro_batch":
        rows = rows.chunk(2)[0]
    rows = F.normalize(rows, dim=1)
    return (rows @ rows.T).mean()


limit()
model = MAE().cuda()
opt = torch.optim.AdamW(model.parameters(), lr=1.5e-4, betas=(0.9, 0.95))
for step in range(8):
    images = torch.rand(64, 3, 64, 64, device="cuda")
    opt.zero_grad()
    model(images).backward()
    opt.step()
    if step % 4 == 3:
        alike(model, images)
