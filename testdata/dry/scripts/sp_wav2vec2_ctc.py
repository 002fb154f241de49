import torch
import torch.nn.functional as F
import torchaudio
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader

torch.manual_seed(3)
device = "cuda"


def make_dataset(n=20, sr=16000):
    data = []
    for i in range(n):
        secs = 6 + (i % 5)
        data.append((torch.randn(sr * secs), torch.randint(1, 32, (secs * 8,))))
    return data


def collate(items):
    wavs, labels = zip(*items)
    wav_len = torch.tensor([len(w) for w in wavs])
    lab_len = torch.tensor([len(l) for l in labels])
    return pad_sequence(wavs, batch_first=True), wav_len, pad_sequence(labels, batch_first=True), lab_len


model = torchaudio.models.wav2vec2_base(aux_num_out=32, encoder_layer_drop=0.0).to(device)
for p in model.feature_extractor.parameters():
    p.requires_grad = False

trainable = [p for p in model.parameters() if p.requires_grad]
print(f"trainable: {sum(p.numel() for p in trainable) / 1e6:.1f}M")
optimizer = torch.optim.AdamW(trainable, lr=5e-5)
scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=5e-5, total_steps=5)

loader = DataLoader(make_dataset(), batch_size=4, collate_fn=collate, shuffle=False, pin_memory=True)
model.train()
for step, (wav, wav_len, lab, lab_len) in enumerate(loader):
    wav, wav_len = wav.to(device, non_blocking=True), wav_len.to(device)
    lab, lab_len = lab.to(device), lab_len.to(device)
    logits, out_len = model(wav, wav_len)
    log_probs = F.log_softmax(logits, dim=-1).transpose(0, 1)
    loss = F.ctc_loss(log_probs, lab, out_len, lab_len, blank=0, zero_infinity=True)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    scheduler.step()
    print(step, tuple(wav.shape), f"{loss.item():.3f}")
