CASE = {"root": "leak", "cures": ["del", "bound", "cpu"], "fixes": ["del", "bound", "cpu", "micro_batch"], "already": ["no_grad", "detach"]}
# Tagging a stream with a CRF. The list in viterbi's default argument lives as long as the function.
import torch
import torch.nn as nn
from case import FIX, limit

TAGS, WORDS, ROWS = 64, 11, 4096


def viterbi(emissions, transitions, history=[]):
    score = emissions[:, 0]
    for t in range(1, emissions.size(1)):
        best = (score[:, :, None] + transitions).max(1)  # KEPT
        history.append(type(best)((best.values.cpu(), best.indices.cpu())) if FIX == "cpu" else best)
        score = best.values + emissions[:, t]
    tag = score.argmax(1, keepdim=True)
    path = [tag]
    for best in reversed(history):
        tag = best.indices.to(tag.device).gather(1, tag)
        path.append(tag)
    if FIX == "bound":
        del history[:]
    return torch.cat(path[:emissions.size(1)][::-1], 1)


class Tagger(nn.Module):
    def __init__(self):
        super().__init__()
        self.words = nn.EmbeddingBag(30000, 96)
        self.mix = nn.Conv1d(96, 128, 3, padding=1)
        self.emit = nn.Linear(128, TAGS)
        self.transitions = nn.Parameter(torch.randn(TAGS, TAGS))

    def forward(self, ids):
        b, t, c = ids.shape
        x = self.words(ids.view(b * t, c)).view(b, t, -1)
        return self.emit(self.mix(x.transpose(1, 2)).relu().transpose(1, 2))


@torch.no_grad()
def serve(batches):
    model, counts = Tagger().cuda().eval(), torch.zeros(TAGS, dtype=torch.long)
    for step in range(batches):
        ids = torch.randint(0, 30000, (ROWS, WORDS, 4), device="cuda")
        for part in ids.chunk(2 if FIX == "micro_batch" else 1):
            emissions = model(part)
            found = viterbi(emissions, model.transitions, []) if FIX == "del" else viterbi(emissions, model.transitions)  # KEPT
            counts += found.flatten().cpu().bincount(minlength=TAGS)
    return counts


limit()
serve(16)  # KEPT
