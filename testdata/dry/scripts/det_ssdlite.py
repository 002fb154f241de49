import torch
from torch.utils.data import DataLoader, Dataset
from torchvision.models.detection import ssdlite320_mobilenet_v3_large

CLASSES = 21
BATCH = 24


class Random(Dataset):
    def __len__(self):
        return BATCH * 5

    def __getitem__(self, idx):
        n = idx % 3 + 1
        tl = torch.rand(n, 2) * 180
        boxes = torch.cat([tl, tl + 30 + torch.rand(n, 2) * 100], dim=-1)
        return torch.rand(3, 320, 320), {"boxes": boxes, "labels": torch.randint(1, CLASSES, (n,))}


def collate_fn(samples):
    images, targets = [], []
    for im, t in samples:
        images.append(im)
        targets.append(t)
    return images, targets


def train():
    loader = DataLoader(Random(), batch_size=BATCH, collate_fn=collate_fn, num_workers=2, pin_memory=True,
                        drop_last=True)
    model = ssdlite320_mobilenet_v3_large(weights=None, weights_backbone=None, num_classes=CLASSES).cuda()
    model.train()
    optim = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=4e-5, nesterov=True)
    sched = torch.optim.lr_scheduler.CosineAnnealingLR(optim, T_max=5)
    running = 0.0
    for step, (images, targets) in enumerate(loader, 1):
        images = list(im.cuda(non_blocking=True) for im in images)
        targets = [{k: v.cuda(non_blocking=True) for k, v in t.items()} for t in targets]
        out = model(images, targets)
        loss = out["bbox_regression"] + out["classification"]
        loss.backward()
        optim.step()
        optim.zero_grad()
        sched.step()
        running += loss.item()
        print(f"[{step}] avg loss {running / step:.3f} lr {sched.get_last_lr()[0]:.5f}")


if __name__ == "__main__":
    torch.manual_seed(7)
    train()
