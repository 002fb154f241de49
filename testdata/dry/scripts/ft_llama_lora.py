import torch
from peft import LoraConfig, TaskType, get_peft_model
from transformers import LlamaConfig, LlamaForCausalLM

device = "cuda"
torch.manual_seed(0)

base_cfg = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=14,
                       num_attention_heads=16, num_key_value_heads=4, max_position_embeddings=1024,
                       rope_theta=500000.0, tie_word_embeddings=True, use_cache=False)
model = LlamaForCausalLM(base_cfg).to(torch.bfloat16)
model = get_peft_model(model, LoraConfig(
    task_type=TaskType.CAUSAL_LM,
    r=16,
    lora_alpha=32,
    lora_dropout=0.05,
    target_modules=["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"],
))
model.print_trainable_parameters()
model.to(device)
model.train()

trainable = [p for p in model.parameters() if p.requires_grad]
opt = torch.optim.AdamW(trainable, lr=2e-4, weight_decay=0.0)
warmup = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1.0, (s + 1) / 3))


def sample(bs=4, length=512, prompt=128):
    ids = torch.randint(3, base_cfg.vocab_size, (bs, length), device=device)
    labels = ids.clone()
    labels[:, :prompt] = -100
    return ids, torch.ones_like(ids), labels


for step in range(6):
    ids, mask, labels = sample()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        out = model(input_ids=ids, attention_mask=mask, labels=labels)
    out.loss.backward()
    torch.nn.utils.clip_grad_norm_(trainable, 0.3)
    opt.step()
    warmup.step()
    opt.zero_grad()
    print(f"[{step}] loss={out.loss.item():.4f} lr={warmup.get_last_lr()[0]:.1e}")

adapter = {k: v.cpu() for k, v in model.state_dict().items() if "lora_" in k}
print(len(adapter), "adapter tensors")
