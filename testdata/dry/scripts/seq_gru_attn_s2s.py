"""Translation toy: packed bidirectional GRU encoder, Bahdanau attention decoder, teacher forcing."""
import random
import torch
import torch.nn as nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence, pad_sequence

PAD, BOS, V = 0, 1, 12000

class Encoder(nn.Module):
    def __init__(self, emb=256, hid=512):
        super().__init__()
        self.emb = nn.Embedding(V, emb, padding_idx=PAD)
        self.rnn = nn.GRU(emb, hid, num_layers=2, bidirectional=True, dropout=0.2, batch_first=True)
        self.bridge = nn.Linear(2 * hid, hid)

    def forward(self, src, lengths):
        packed = pack_padded_sequence(self.emb(src), lengths, batch_first=True, enforce_sorted=False)
        out, h = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, torch.tanh(self.bridge(torch.cat([h[-2], h[-1]], dim=1)))

class Decoder(nn.Module):
    def __init__(self, emb=256, hid=512):
        super().__init__()
        self.emb = nn.Embedding(V, emb, padding_idx=PAD)
        self.wq, self.wk, self.v = nn.Linear(hid, hid, bias=False), nn.Linear(2 * hid, hid, bias=False), nn.Linear(hid, 1)
        self.cell = nn.GRUCell(emb + 2 * hid, hid)
        self.out = nn.Linear(3 * hid, V)

    def step(self, tok, h, enc, keys, mask):
        score = self.v(torch.tanh(self.wq(h).unsqueeze(1) + keys)).squeeze(-1)
        w = score.masked_fill(~mask, float("-inf")).softmax(-1)
        ctx = torch.bmm(w.unsqueeze(1), enc).squeeze(1)
        h = self.cell(torch.cat([self.emb(tok), ctx], -1), h)
        return self.out(torch.cat([h, ctx], -1)), h

enc, dec = Encoder().cuda(), Decoder().cuda()
params = list(enc.parameters()) + list(dec.parameters())
opt = torch.optim.Adagrad(params, lr=0.02)
crit = nn.CrossEntropyLoss(ignore_index=PAD)
random.seed(0)
for it in range(4):
    lens = [random.randint(15, 80) for _ in range(64)]
    src = pad_sequence([torch.randint(2, V, (n,)) for n in lens], batch_first=True).cuda()
    tgt = pad_sequence([torch.randint(2, V, (max(4, n // 2),)) for n in lens], batch_first=True).cuda()
    memory, h = enc(src, torch.tensor(lens))
    keys, mask = dec.wk(memory), src != PAD
    tok, logits = torch.full((64,), BOS, device="cuda"), []
    for t in range(tgt.size(1)):
        o, h = dec.step(tok, h, memory, keys, mask)
        logits.append(o)
        tok = tgt[:, t] if random.random() < 0.7 else o.argmax(-1).detach()
    loss = crit(torch.stack(logits, 1).view(-1, V), tgt.reshape(-1))
    opt.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(params, 5.0)
    opt.step()
    print(it, tuple(src.shape), tuple(tgt.shape), loss.item())
