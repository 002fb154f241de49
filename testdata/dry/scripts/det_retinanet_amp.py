import argparse
import torch
from torchvision.models.detection import retinanet_resnet50_fpn

p = argparse.ArgumentParser()
p.add_argument("--batch", type=int, default=4)
p.add_argument("--size", type=int, default=384)
p.add_argument("--steps", type=int, default=5)
p.add_argument("--clip", type=float, default=1.0)
args = p.parse_args()

torch.manual_seed(1)
dev = "cuda"
net = retinanet_resnet50_fpn(weights=None, weights_backbone=None, num_classes=21,
                             min_size=args.size, max_size=args.size).to(dev)
opt = torch.optim.AdamW(net.parameters(), lr=1e-4, weight_decay=1e-4)
scaler = torch.amp.GradScaler("cuda")


def fake_batch(n):
    imgs, tgts = [], []
    for _ in range(n):
        k = int(torch.randint(1, 6, (1,)))
        xy = torch.rand(k, 2) * (args.size * 0.5)
        wh = torch.rand(k, 2) * (args.size * 0.3) + 20
        imgs.append(torch.rand(3, args.size, args.size, device=dev))
        tgts.append(dict(boxes=torch.cat([xy, xy + wh], 1).to(dev),
                         labels=torch.randint(0, 21, (k,), device=dev)))
    return imgs, tgts


@torch.no_grad()
def evaluate():
    net.eval()
    imgs, _ = fake_batch(2)
    n_det = sum(len(o["boxes"]) for o in net(imgs))
    net.train()
    return n_det


net.train()
for it in range(args.steps):
    imgs, tgts = fake_batch(args.batch)
    opt.zero_grad(set_to_none=True)
    with torch.autocast("cuda", dtype=torch.float16):
        losses = net(imgs, tgts)
        loss = losses["classification"] + losses["bbox_regression"]
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(net.parameters(), args.clip)
    scaler.step(opt)
    scaler.update()
    print(f"it {it} loss {loss.item():.4f} scale {scaler.get_scale():.0f}")
    if it == 2:
        print("detections:", evaluate())
