"""Fine-tune style Faster R-CNN training on a synthetic detection set."""
import torch
import torchvision
from torch.utils.data import DataLoader, Dataset


class ToyBoxes(Dataset):
    def __init__(self, n=10, num_classes=5):
        self.n, self.num_classes = n, num_classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        h, w = 480, 600 + 8 * (i % 5)
        img = torch.rand(3, h, w, generator=g)
        k = 2 + i % 4
        xy = torch.rand(k, 2, generator=g) * torch.tensor([w - 200.0, h - 200.0])
        wh = 40 + torch.rand(k, 2, generator=g) * 150
        target = {
            "boxes": torch.cat([xy, xy + wh], dim=1),
            "labels": torch.randint(1, self.num_classes, (k,), generator=g),
        }
        return img, target


def collate(batch):
    return tuple(zip(*batch))


def main():
    torch.manual_seed(0)
    device = torch.device("cuda")
    loader = DataLoader(ToyBoxes(), batch_size=2, shuffle=True, collate_fn=collate)
    model = torchvision.models.detection.fasterrcnn_resnet50_fpn(
        weights=None, weights_backbone=None, num_classes=5, min_size=480, max_size=640)
    model.to(device).train()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.SGD(params, lr=0.002, momentum=0.9, weight_decay=5e-4)
    warmup = torch.optim.lr_scheduler.LinearLR(optimizer, start_factor=0.1, total_iters=5)

    for step, (images, targets) in enumerate(loader):
        images = [im.to(device) for im in images]
        targets = [{k: v.to(device) for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss_dict.values())
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        warmup.step()
        print(step, {k: round(v.item(), 4) for k, v in loss_dict.items()})


if __name__ == "__main__":
    main()
