import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset
from torchvision.models.video import r3d_18


class Clips(Dataset):
    def __init__(self, length=40, frames=16, size=112):
        self.length, self.frames, self.size = length, frames, size

    def __len__(self):
        return self.length

    def __getitem__(self, i):
        clip = torch.randint(0, 255, (self.frames, self.size, self.size, 3), dtype=torch.uint8)
        return clip, i % 51


def preprocess(clip):
    mean = torch.tensor([0.432, 0.395, 0.377], device=clip.device)
    std = torch.tensor([0.228, 0.221, 0.217], device=clip.device)
    clip = (clip.float() / 255.0 - mean) / std
    return clip.permute(0, 4, 1, 2, 3)


device = torch.device("cuda:0" if torch.cuda.is_available() else "cpu")
model = r3d_18(weights=None, num_classes=51).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9, weight_decay=1e-4)
scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
criterion = nn.CrossEntropyLoss()
loader = DataLoader(Clips(), batch_size=8, shuffle=True, num_workers=2, pin_memory=True)

model.train()
correct = seen = 0
for step, (clip, target) in enumerate(loader):
    clip, target = clip.to(device, non_blocking=True), target.to(device, non_blocking=True)
    output = model(preprocess(clip))
    loss = criterion(output, target)
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_value_(model.parameters(), 0.5)
    optimizer.step()
    scheduler.step()
    correct += (output.argmax(1) == target).sum().item()
    seen += target.numel()
    print(f"step {step} loss {loss.item():.3f} acc {correct / seen:.3f}")
