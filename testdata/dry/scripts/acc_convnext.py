"""Image classification with Accelerate: bf16, gradient accumulation, clipping, cosine schedule."""
import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, Dataset
from torchvision.models import convnext_tiny


class FakeImages(Dataset):
    def __init__(self, n, classes=100):
        self.n, self.classes = n, classes

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        g = torch.Generator().manual_seed(i)
        return torch.randn(3, 192, 192, generator=g), int(torch.randint(0, self.classes, (1,), generator=g))


def main():
    set_seed(7)
    accelerator = Accelerator(mixed_precision="bf16", gradient_accumulation_steps=2)
    model = convnext_tiny(weights=None, num_classes=100)
    optimizer = torch.optim.AdamW(model.parameters(), lr=4e-4, weight_decay=0.05)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=5)
    train_dl = DataLoader(FakeImages(320), batch_size=32, shuffle=True, pin_memory=True)
    val_dl = DataLoader(FakeImages(64), batch_size=64)
    model, optimizer, train_dl, val_dl, scheduler = accelerator.prepare(model, optimizer, train_dl, val_dl, scheduler)
    criterion = torch.nn.CrossEntropyLoss(label_smoothing=0.1)
    model.train()
    for step, (images, target) in enumerate(train_dl):
        with accelerator.accumulate(model):
            loss = criterion(model(images), target)
            accelerator.backward(loss)
            if accelerator.sync_gradients:
                accelerator.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            scheduler.step()
            optimizer.zero_grad()
        if step % 2:
            accelerator.print(f"step {step} loss {loss.item():.4f}")
    model.eval()
    correct = 0
    for images, target in val_dl:
        with torch.no_grad():
            pred = model(images).argmax(-1)
        pred, target = accelerator.gather_for_metrics((pred, target))
        correct += (pred == target).sum().item()
    accelerator.print("val acc", correct / 64)


if __name__ == "__main__":
    main()
