CASE = {"root": "leak", "cures": ["no_grad", "detach", "cpu"], "fixes": ["no_grad", "detach", "cpu", "del", "bound", "half", "micro_batch"]}
# Distillation: the teacher's logits are cached for the later epochs, and with them the teacher's graph.
import contextlib
import torch
from torch import nn
import torch.nn.functional as F
from case import FIX, limit

VOCAB, LABELS = 5000, 20


def encoder(width, depth):
    layer = nn.TransformerEncoderLayer(width, width // 64, 4 * width, dropout=0.0, activation="gelu", batch_first=True)
    return nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)


class Classifier(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.emb, self.enc, self.cls = nn.Embedding(VOCAB, width), encoder(width, depth), nn.Linear(width, LABELS)

    def forward(self, tokens):
        return self.cls(self.enc(self.emb(tokens)).mean(1))  # KEPT


limit()
teacher, student = Classifier(256, 2).cuda().eval(), Classifier(64, 1).cuda()
opt = torch.optim.AdamW(student.parameters(), 5e-4)
dataset = [(torch.randint(0, VOCAB, (32, 112)), torch.randint(0, LABELS, (32,))) for _ in range(16)]
soft = {}


def targets(key, tokens):
    if key not in soft:
        with torch.no_grad() if FIX == "no_grad" else contextlib.nullcontext(), torch.autocast("cuda", torch.bfloat16, enabled=FIX == "half"):
            logits = teacher(tokens)  # KEPT
        if FIX == "del":
            return logits
        soft[key] = logits.detach() if FIX == "detach" else logits.detach().cpu() if FIX == "cpu" else logits
        if FIX == "bound":
            while len(soft) > 2:
                soft.pop(next(iter(soft)))
    return soft[key].cuda()


for epoch in range(2):
    for step, (tokens, labels) in enumerate(dataset):
        opt.zero_grad()
        n = 2 if FIX == "micro_batch" else 1
        for i, (x, y) in enumerate(zip(tokens.cuda().chunk(n), labels.cuda().chunk(n))):
            out, goal = student(x), targets((step, i), x).detach()  # KEPT
            loss = F.cross_entropy(out, y) + F.kl_div(out.log_softmax(-1), goal.float().softmax(-1), reduction="batchmean")
            (loss / n).backward()
        opt.step()
