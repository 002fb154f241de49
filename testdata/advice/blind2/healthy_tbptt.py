CASE = {"root": "none", "cures": [], "fixes": [], "limit": "over", "weight": 1.5}
# A recurrent language model, trained on windows that grow twice; its state goes from window to window without a graph.
import torch
import torch.nn as nn
import torch.nn.functional as F

from case import limit

VOCAB, WIDTH, ROWS = 2000, 384, 48


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.emb, self.rnn, self.head = nn.Embedding(VOCAB, WIDTH), nn.LSTM(WIDTH, WIDTH, 2, batch_first=True), nn.Linear(WIDTH, VOCAB)

    def forward(self, ids, state=None):
        h, state = self.rnn(self.emb(ids), state)
        return self.head(h), state


class Stream:
    def __init__(self, tokens):
        self.tokens, self.at = tokens, 0

    def window(self, length):
        if self.at + length + 1 > self.tokens.shape[1]:
            self.at = 0
        piece = self.tokens[:, self.at:self.at + length + 1].cuda()
        self.at += length
        return piece[:, :-1], piece[:, 1:]


def length_at(step):
    return 24 if step < 14 else 48 if step < 28 else 96


@torch.no_grad()
def perplexity(model, stream):
    model.eval()
    state, total = None, 0.0
    for _ in range(4):
        x, y = stream.window(64)
        logits, state = model(x, state)
        total += F.cross_entropy(logits.flatten(0, 1), y.flatten()).item()
    model.train()
    return total / 4


def train(model, stream, held_out, steps):
    opt = torch.optim.AdamW(model.parameters(), lr=2e-3)
    state, best, kept = None, float("inf"), None
    for step in range(steps):
        x, y = stream.window(length_at(step))
        logits, state = model(x, state)
        state = tuple(s.detach() for s in state)
        loss = F.cross_entropy(logits.flatten(0, 1), y.flatten())
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step()
        if step % 14 == 13:
            score = perplexity(model, held_out)
            if score < best:
                best, kept = score, {k: v.cpu() for k, v in model.state_dict().items()}
    return kept


limit()
text = torch.randint(0, VOCAB, (ROWS, 6000))
train(Recurrent().cuda(), Stream(text[:, :5000]), Stream(text[:, 5000:]), 56)
