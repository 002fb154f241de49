import torch
import torch.nn as nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, Dataset

N_MELS, N_CHARS = 80, 32


class FakeSpeech(Dataset):
    def __init__(self, n):
        self.frames = torch.randint(600, 1200, (n,)).tolist()

    def __len__(self):
        return len(self.frames)

    def __getitem__(self, i):
        t = self.frames[i]
        return torch.randn(t, N_MELS), torch.randint(1, N_CHARS, (t // 16,))


def collate(items):
    items.sort(key=lambda it: it[0].size(0), reverse=True)
    feats = nn.utils.rnn.pad_sequence([f for f, _ in items], batch_first=True)
    targets = torch.cat([t for _, t in items])
    return feats, torch.tensor([len(f) for f, _ in items]), targets, torch.tensor([len(t) for _, t in items])


class DeepSpeech(nn.Module):
    def __init__(self, hid=512):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 32, (11, 5), stride=(2, 2), padding=(5, 2)), nn.BatchNorm2d(32),
                                 nn.Hardtanh(0, 20), nn.Conv2d(32, 32, (11, 5), padding=(5, 2)), nn.BatchNorm2d(32),
                                 nn.Hardtanh(0, 20))
        self.lstm = nn.LSTM(32 * N_MELS // 2, hid, num_layers=3, bidirectional=True, dropout=0.1, batch_first=True)
        self.fc = nn.Linear(2 * hid, N_CHARS)

    def forward(self, x):
        x = self.sub(x.unsqueeze(1))                       # B, 32, T/2, mel/2
        x = x.permute(0, 2, 1, 3).flatten(2)
        x, _ = self.lstm(x)
        return self.fc(x).log_softmax(-1)


if __name__ == "__main__":
    torch.manual_seed(0)
    model = DeepSpeech().to("cuda")
    dl = DataLoader(FakeSpeech(16 * 5), batch_size=16, collate_fn=collate, num_workers=2, pin_memory=True)
    opt = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9, nesterov=True)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=5e-3, total_steps=5)
    for feats, flen, targets, tlen in dl:
        logp = model(feats.to("cuda", non_blocking=True))
        loss = F.ctc_loss(logp.transpose(0, 1), targets.to("cuda"), (flen + 1) // 2, tlen, blank=0, zero_infinity=True)
        opt.zero_grad()
        loss.backward()
        gn = nn.utils.clip_grad_norm_(model.parameters(), 400)
        opt.step()
        sched.step()
        print(f"T={feats.size(1)} ctc={loss.item():.3f} gn={gn.item():.2f}")
