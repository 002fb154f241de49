CASE = {"root": "capacity", "cures": ["optimizer", "half"], "fixes": ["optimizer", "half", "checkpoint", "micro_batch"], "needs": ["transformers"]}
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from case import FIX, limit

limit()
config = LlamaConfig(num_hidden_layers=4, hidden_size=768, num_attention_heads=12, num_key_value_heads=4, intermediate_size=2048, vocab_size=16000, max_position_embeddings=512)
model = LlamaForCausalLM(config).cuda().train()
if FIX == "half":
    model.to(torch.bfloat16)
if FIX == "checkpoint":
    model.gradient_checkpointing_enable()
opt = torch.optim.SGD(model.parameters(), lr=0.1) if FIX == "optimizer" else torch.optim.AdamW(model.parameters(), lr=2e-5)
for step in range(4):
    ids = torch.randint(0, 16000, (2, 64), device="cuda")
    for part in ids.chunk(2 if FIX == "micro_batch" else 1):
        model(input_ids=part, labels=part).loss.backward()
    opt.step()
    opt.zero_grad()
