import torch
from torch import nn

class LogSpec(nn.Module):
    def __init__(self, n_fft=512, hop=128):
        super().__init__()
        self.n_fft, self.hop = n_fft, hop
        self.register_buffer("window", torch.hann_window(n_fft))

    def forward(self, wav):
        spec = torch.stft(wav, self.n_fft, hop_length=self.hop, window=self.window, return_complex=True)
        return torch.log1p(spec.abs()).unsqueeze(1)

def conv_block(i, o, stride=1):
    return nn.Sequential(nn.Conv2d(i, o, 3, stride, 1, bias=False), nn.BatchNorm2d(o), nn.LeakyReLU(0.1))

class SpecNet(nn.Module):
    def __init__(self, classes=35):
        super().__init__()
        self.front = LogSpec()
        self.net = nn.Sequential(
            conv_block(1, 32, 2), conv_block(32, 32), nn.MaxPool2d(2),
            conv_block(32, 64), conv_block(64, 64), nn.MaxPool2d(2),
            conv_block(64, 128), conv_block(128, 128), nn.MaxPool2d(2),
            conv_block(128, 256), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Dropout(0.3))
        self.fc = nn.Linear(256, classes)

    def forward(self, wav):
        return self.fc(self.net(self.front(wav)))

def run(epochs=2, batch=48, per_epoch=3):
    model = SpecNet().cuda()
    opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=1e-4)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=0.1, total_steps=epochs * per_epoch)
    crit = nn.CrossEntropyLoss(label_smoothing=0.1)
    for ep in range(epochs):
        model.train()
        for _ in range(per_epoch):
            wav = torch.randn(batch, 48000).cuda()
            y = torch.randint(0, 35, (batch,)).cuda()
            loss = crit(model(wav), y)
            model.zero_grad()
            loss.backward()
            opt.step()
            sched.step()
        model.eval()
        hits = total = 0
        with torch.no_grad():
            for _ in range(2):
                wav, y = torch.randn(batch * 2, 48000, device="cuda"), torch.randint(0, 35, (batch * 2,), device="cuda")
                hits += (model(wav).argmax(-1) == y).sum().item()
                total += len(y)
        print(f"epoch {ep}: loss {loss.item():.3f} acc {hits / total:.3f}")

if __name__ == "__main__":
    torch.manual_seed(0)
    run()
