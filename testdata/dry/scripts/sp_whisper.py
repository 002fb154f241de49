import torch
from transformers import WhisperConfig, WhisperForConditionalGeneration, get_cosine_schedule_with_warmup

ACCUM, UPDATES, BS, LABELS = 2, 4, 8, 96

cfg = WhisperConfig(
    d_model=512, encoder_layers=6, decoder_layers=6,
    encoder_attention_heads=8, decoder_attention_heads=8,
    encoder_ffn_dim=2048, decoder_ffn_dim=2048, dropout=0.1,
)
model = WhisperForConditionalGeneration(cfg)
model.config.use_cache = False
model.to("cuda")
model.train()

no_decay = [p for n, p in model.named_parameters() if p.ndim < 2 and p.requires_grad]
decay = [p for n, p in model.named_parameters() if p.ndim >= 2 and p.requires_grad]
optimizer = torch.optim.AdamW(
    [{"params": decay, "weight_decay": 0.01}, {"params": no_decay, "weight_decay": 0.0}], lr=1e-5)
scheduler = get_cosine_schedule_with_warmup(optimizer, num_warmup_steps=1, num_training_steps=UPDATES)


def get_batch():
    feats = torch.randn(BS, 80, 3000)
    labels = torch.randint(0, 50000, (BS, LABELS))
    for row, n in zip(labels, torch.randint(40, LABELS, (BS,)).tolist()):
        row[n:] = -100
    return feats.pin_memory().to("cuda", non_blocking=True), labels.to("cuda")


for update in range(UPDATES):
    total = 0.0
    for micro in range(ACCUM):
        feats, labels = get_batch()
        with torch.autocast("cuda", dtype=torch.bfloat16):
            out = model(input_features=feats, labels=labels)
        loss = out.loss / ACCUM
        loss.backward()
        total += loss.item()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    scheduler.step()
    optimizer.zero_grad()
    print(f"update {update} loss {total:.3f} lr {scheduler.get_last_lr()[0]:.2e}")
