"""Corpus embedding with a half precision BERT: length-sorted batches, mean pooling, results to CPU."""
import random
import torch
import torch.nn.functional as F
from transformers import BertConfig, BertModel

random.seed(0)
config = BertConfig(hidden_size=1024, num_hidden_layers=16, num_attention_heads=16, intermediate_size=4096)
model = BertModel(config, add_pooling_layer=False).half().cuda().eval()

corpus = [[random.randint(1000, 30000) for _ in range(random.randint(20, 500))] for _ in range(6 * 160)]
order = sorted(range(len(corpus)), key=lambda i: -len(corpus[i]))


def collate(docs):
    width = max(map(len, docs))
    ids = torch.zeros(len(docs), width, dtype=torch.long)
    mask = torch.zeros_like(ids)
    for row, d in enumerate(docs):
        ids[row, : len(d)] = torch.tensor(d)
        mask[row, : len(d)] = 1
    return {"input_ids": ids.cuda(), "attention_mask": mask.cuda()}


def mean_pool(hidden, mask):
    m = mask.unsqueeze(-1).to(hidden.dtype)
    return (hidden * m).sum(1) / m.sum(1).clamp(min=1e-4)


embeddings = torch.empty(len(corpus), config.hidden_size)
with torch.no_grad():
    for start in range(0, len(order), 160):
        chunk = order[start:start + 160]
        batch = collate([corpus[i] for i in chunk])
        hidden = model(**batch).last_hidden_state
        emb = F.normalize(mean_pool(hidden, batch["attention_mask"]).float(), dim=-1)
        embeddings[chunk] = emb.cpu()
        print(tuple(batch["input_ids"].shape))

index = embeddings.cuda()
scores = index @ index.T
print("nearest", scores.fill_diagonal_(-1).argmax(1)[:5].tolist())
