CASE = {"root": "capacity", "cures": ["micro_batch", "half"], "fixes": ["micro_batch", "half", "bound", "empty_cache"], "already": ["no_grad"]}
# Translation by beam search. Every sentence is decoded as many times as there are beams, and all of them at once.
import torch
from torch import nn
from case import FIX, limit

VOCAB, DIM, START = 6000, 512, 1
BEAMS = 3 if FIX == "bound" else 12


class Translator(nn.Module):
    def __init__(self, longest=96):
        super().__init__()
        self.source, self.target, self.place = nn.Embedding(VOCAB, DIM), nn.Embedding(VOCAB, DIM), nn.Embedding(longest, DIM)
        self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(DIM, 8, 4 * DIM, 0.0, batch_first=True, norm_first=True), 2, enable_nested_tensor=False)
        self.decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(DIM, 8, 4 * DIM, 0.0, batch_first=True, norm_first=True), 3)
        self.head = nn.Linear(DIM, VOCAB)

    def encode(self, ids):
        return self.encoder(self.source(ids) + self.place.weight[:ids.shape[1]])

    def decode(self, ids, memory):
        length = ids.shape[1]
        mask = torch.full((length, length), float("-inf"), device=ids.device, dtype=memory.dtype).triu(1)
        return self.decoder(self.target(ids) + self.place.weight[:length], memory, tgt_mask=mask)


class BeamSearch:
    def __init__(self, model, tokens=80):
        self.model, self.tokens = model, tokens

    def start(self, rows):
        ids = torch.zeros(rows * BEAMS, self.tokens, dtype=torch.long, device="cuda")
        ids[:, 0] = START
        score = torch.full((rows, BEAMS), -1e4, device="cuda")
        score[:, 0] = 0
        return ids, score

    def grow(self, ids, score, memory, step):
        rows = len(score)
        hidden = self.model.decode(ids, memory)[:, step]  # to the full length, so that shapes stay the same
        logp = self.model.head(hidden).float().log_softmax(-1).view(rows, BEAMS, VOCAB)
        score, best = (score[:, :, None] + logp).flatten(1).topk(BEAMS)
        parent = best // VOCAB + torch.arange(rows, device="cuda")[:, None] * BEAMS
        ids = ids[parent.flatten()]
        ids[:, step + 1] = (best % VOCAB).flatten()
        return ids, score

    @torch.no_grad()
    def __call__(self, sentences):
        memory = self.model.encode(sentences).repeat_interleave(BEAMS, 0)
        ids, score = self.start(len(sentences))
        for step in range(12):
            ids, score = self.grow(ids, score, memory, step)
        return ids.view(len(sentences), BEAMS, -1)[:, 0], score[:, 0]


limit()
model = Translator().cuda().eval()
if FIX == "half":
    model.half()
search = BeamSearch(model)
corpus = torch.randint(2, VOCAB, (64, 80), device="cuda")
for sentences in corpus.split(16 if FIX == "micro_batch" else 32):
    translation, score = search(sentences)
    if FIX == "empty_cache":
        torch.cuda.empty_cache()
