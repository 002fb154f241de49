"""Sequence classification with BERT: dynamic padding, fp16 autocast + GradScaler, no-decay groups, linear schedule."""
import torch
from torch.nn.utils.rnn import pad_sequence
from torch.utils.data import DataLoader, Dataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

class Reviews(Dataset):
    def __init__(self, n, seed):
        g = torch.Generator().manual_seed(seed)
        lens = torch.randint(32, 257, (n,), generator=g).tolist()
        self.items = [(torch.randint(1000, 30000, (l,), generator=g), i % 3) for i, l in enumerate(lens)]
    def __len__(self):
        return len(self.items)
    def __getitem__(self, i):
        return self.items[i]

def collate(batch):
    ids = pad_sequence([b[0] for b in batch], batch_first=True, padding_value=0)
    return {"input_ids": ids, "attention_mask": (ids != 0).long(), "labels": torch.tensor([b[1] for b in batch])}

def param_groups(model, wd):
    no_decay = ("bias", "LayerNorm.weight")
    named = list(model.named_parameters())
    return [
        {"params": [p for n, p in named if not any(k in n for k in no_decay)], "weight_decay": wd},
        {"params": [p for n, p in named if any(k in n for k in no_decay)], "weight_decay": 0.0},
    ]

@torch.no_grad()
def evaluate(model, loader):
    model.eval()
    hits = 0
    for batch in loader:
        batch = {k: v.cuda() for k, v in batch.items()}
        hits += (model(**batch).logits.argmax(-1) == batch["labels"]).sum().item()
    model.train()
    return hits / len(loader.dataset)

torch.manual_seed(0)
model = BertForSequenceClassification(BertConfig(num_labels=3)).cuda()
train_dl = DataLoader(Reviews(32 * 6, 0), batch_size=32, shuffle=True, collate_fn=collate, pin_memory=True)
eval_dl = DataLoader(Reviews(64, 1), batch_size=64, collate_fn=collate)
opt = torch.optim.AdamW(param_groups(model, 0.01), lr=2e-5)
sched = get_linear_schedule_with_warmup(opt, 1, len(train_dl))
scaler = torch.amp.GradScaler("cuda")
model.train()
for i, batch in enumerate(train_dl):
    batch = {k: v.cuda(non_blocking=True) for k, v in batch.items()}
    with torch.autocast("cuda", dtype=torch.float16):
        loss = model(**batch).loss
    scaler.scale(loss).backward()
    scaler.unscale_(opt)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(opt)
    scaler.update()
    sched.step()
    opt.zero_grad()
    if i == 2:
        print("acc", evaluate(model, eval_dl))
    print(i, tuple(batch["input_ids"].shape), loss.item())
