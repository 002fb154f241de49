CASE = {"root": "capacity", "cures": ["half"], "fixes": ["half", "micro_batch", "optimizer"], "already": ["no_grad"]}
import torch, torch.nn as nn, torch.nn.functional as F
from case import FIX, limit


def encoder(d, layers):
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(d, d // 64, 4 * d, 0.0, batch_first=True), layers, enable_nested_tensor=False)


class Model(nn.Module):
    def __init__(self, d, layers, vocab=8000):
        super().__init__()
        self.emb, self.body, self.head = nn.Embedding(vocab, d), encoder(d, layers), nn.Linear(d, vocab)

    def forward(self, ids):
        return self.head(self.body(self.emb(ids)))


limit()
teacher = Model(1280, 8).cuda().eval().requires_grad_(False)
if FIX == "half":
    teacher.half()
student = Model(256, 3).cuda()
opt = torch.optim.SGD(student.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(student.parameters(), lr=5e-4)
for step in range(5):
    ids = torch.randint(0, 8000, (8, 128), device="cuda")
    opt.zero_grad()
    for part in ids.chunk(2 if FIX == "micro_batch" else 1):
        with torch.no_grad():
            target = F.softmax(teacher(part).float() / 2, -1)
        loss = F.kl_div(F.log_softmax(student(part) / 2, -1), target, reduction="batchmean")
        loss.backward()
    opt.step()
