import argparse
import torch
import torch.nn as nn
import torch.nn.functional as F

class ResBlock(nn.Module):
    def __init__(self, nf, scale=0.1):
        super().__init__()
        self.conv1 = nn.Conv2d(nf, nf, 3, padding=1)
        self.conv2 = nn.Conv2d(nf, nf, 3, padding=1)
        self.scale = scale

    def forward(self, x):
        return x + self.conv2(F.relu(self.conv1(x), inplace=True)) * self.scale

class EDSR(nn.Module):
    def __init__(self, nf=64, blocks=16, upscale=4):
        super().__init__()
        self.head = nn.Conv2d(3, nf, 3, padding=1)
        self.body = nn.Sequential(*[ResBlock(nf) for _ in range(blocks)], nn.Conv2d(nf, nf, 3, padding=1))
        tail = []
        for _ in range(upscale // 2):
            tail += [nn.Conv2d(nf, 4 * nf, 3, padding=1), nn.PixelShuffle(2)]
        self.tail = nn.Sequential(*tail, nn.Conv2d(nf, 3, 3, padding=1))

    def forward(self, x):
        x = self.head(x)
        return self.tail(x + self.body(x))

def psnr(a, b):
    return -10 * torch.log10(F.mse_loss(a.clamp(0, 1), b))

def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--patch", type=int, default=192)
    ap.add_argument("--batch-size", type=int, default=16)
    ap.add_argument("--steps", type=int, default=6)
    ap.add_argument("--val-size", type=int, default=1024)
    args = ap.parse_args()

    net = EDSR().cuda()
    optimizer = torch.optim.Adam(net.parameters(), lr=1e-4)
    scheduler = torch.optim.lr_scheduler.MultiStepLR(optimizer, milestones=[3, 5], gamma=0.5)
    for step in range(1, args.steps + 1):
        hr = torch.rand(args.batch_size, 3, args.patch, args.patch, device="cuda")
        lr = F.interpolate(hr, scale_factor=0.25, mode="bicubic", antialias=True, align_corners=False)
        loss = F.l1_loss(net(lr), hr)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        scheduler.step()
        if step % 3 == 0:
            with torch.no_grad():
                big = torch.rand(1, 3, args.val_size, args.val_size, device="cuda")
                sr = net(F.avg_pool2d(big, 4))
            print(f"step {step} l1 {loss.item():.4f} val psnr {psnr(sr, big).item():.2f}")

if __name__ == "__main__":
    main()
