import torch
import torch.nn as nn
import torch.nn.functional as F

class DoubleConv(nn.Sequential):
    def __init__(self, cin, cout):
        super().__init__(
            nn.Conv2d(cin, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True),
            nn.Conv2d(cout, cout, 3, padding=1, bias=False), nn.BatchNorm2d(cout), nn.ReLU(inplace=True))

class UNet(nn.Module):
    def __init__(self, cin=3, cout=1, feats=(32, 64, 128, 256)):
        super().__init__()
        self.downs, self.ups = nn.ModuleList(), nn.ModuleList()
        self.pool = nn.MaxPool2d(2)
        for f in feats:
            self.downs.append(DoubleConv(cin, f))
            cin = f
        self.mid = DoubleConv(feats[-1], feats[-1] * 2)
        for f in reversed(feats):
            self.ups.append(nn.ConvTranspose2d(f * 2, f, 2, stride=2))
            self.ups.append(DoubleConv(f * 2, f))
        self.head = nn.Conv2d(feats[0], cout, 1)

    def forward(self, x):
        skips = []
        for d in self.downs:
            x = d(x)
            skips.append(x)
            x = self.pool(x)
        x = self.mid(x)
        for i in range(0, len(self.ups), 2):
            x = self.ups[i](x)
            x = torch.cat([skips.pop(), x], dim=1)
            x = self.ups[i + 1](x)
        return self.head(x)

def dice_loss(logits, target, eps=1.0):
    p = torch.sigmoid(logits).flatten(1)
    t = target.flatten(1)
    return 1 - ((2 * (p * t).sum(1) + eps) / (p.sum(1) + t.sum(1) + eps)).mean()

if __name__ == "__main__":
    torch.manual_seed(42)
    model = UNet().to("cuda", memory_format=torch.channels_last)
    opt = torch.optim.RMSprop(model.parameters(), lr=1e-4, weight_decay=1e-8, momentum=0.9)
    scaler = torch.amp.GradScaler()
    for step in range(6):
        img = torch.rand(12, 3, 256, 256).to("cuda", memory_format=torch.channels_last)
        mask = (torch.rand(12, 1, 256, 256) > 0.7).float().to("cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            out = model(img)
            loss = F.binary_cross_entropy_with_logits(out, mask) + dice_loss(out.float(), mask)
        opt.zero_grad(set_to_none=True)
        scaler.scale(loss).backward()
        scaler.unscale_(opt)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(opt)
        scaler.update()
        print("step", step, "loss", loss.item())
