import torch
import torch.nn as nn
import torchaudio
from torchaudio.models import Conformer

VOCAB, BLANK = 512, 511


class Transducer(nn.Module):
    def __init__(self, d=256, j=320):
        super().__init__()
        self.sub = nn.Sequential(nn.Conv2d(1, 64, 3, 2, 1), nn.ReLU(), nn.Conv2d(64, 64, 3, 2, 1), nn.ReLU())
        self.lin = nn.Linear(64 * 20, d)
        self.encoder = Conformer(input_dim=d, num_heads=4, ffn_dim=4 * d, num_layers=8,
                                 depthwise_conv_kernel_size=31, dropout=0.1)
        self.embed = nn.Embedding(VOCAB, d)
        self.pred = nn.LSTM(d, d, num_layers=1, batch_first=True)
        self.enc_j, self.pred_j = nn.Linear(d, j), nn.Linear(d, j)
        self.out = nn.Linear(j, VOCAB)

    def forward(self, mel, mel_len, y):
        x = self.sub(mel[:, None].transpose(2, 3))          # B, C, T/4, F/4
        x = self.lin(x.transpose(1, 2).flatten(2))
        x, lens = self.encoder(x, mel_len // 4)
        start = y.new_full((y.size(0), 1), BLANK)
        g, _ = self.pred(self.embed(torch.cat([start, y], dim=1)))
        joint = torch.tanh(self.enc_j(x)[:, :, None] + self.pred_j(g)[:, None])
        return self.out(joint).contiguous(), lens


def main():
    torch.manual_seed(0)
    dev = torch.device("cuda")
    to_mel = torchaudio.transforms.MelSpectrogram(16000, n_fft=400, hop_length=160, n_mels=80).to(dev)
    model = Transducer().to(dev)
    opt = torch.optim.Adam(model.parameters(), lr=1e-3, betas=(0.9, 0.98), eps=1e-9)
    sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min((s + 1) ** -0.5, (s + 1) * 1e-2))
    for step in range(5):
        wav = torch.randn(8, 16000 * 8, device=dev)
        with torch.no_grad():
            mel = torch.log(to_mel(wav) + 1e-6)[..., :800]
        mel_len = torch.tensor([800, 800, 760, 720, 700, 640, 600, 520], device=dev)
        y = torch.randint(0, VOCAB - 1, (8, 40), device=dev)
        y_len = torch.tensor([40, 38, 36, 30, 30, 28, 25, 20], device=dev, dtype=torch.int32)
        logits, lens = model(mel, mel_len, y)
        loss = torchaudio.functional.rnnt_loss(logits, y.int(), lens.int(), y_len, blank=BLANK)
        opt.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 5.0)
        opt.step()
        sched.step()
        print(f"step {step} rnnt {loss.item():.2f}")


if __name__ == "__main__":
    main()
