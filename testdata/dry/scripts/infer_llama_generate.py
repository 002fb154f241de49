import torch
from transformers import AutoModelForCausalLM, DynamicCache, LlamaConfig

torch.manual_seed(0)
config = LlamaConfig(
    vocab_size=32000,
    hidden_size=1280,
    intermediate_size=3456,
    num_hidden_layers=12,
    num_attention_heads=20,
    num_key_value_heads=10,
    max_position_embeddings=2048,
    pad_token_id=0,
)
model = AutoModelForCausalLM.from_config(config, dtype=torch.bfloat16).to("cuda").eval()
print(f"{sum(p.numel() for p in model.parameters()) / 1e6:.0f}M parameters")

prompts = [(16, 512), (24, 384), (16, 768), (32, 512)]
for bsz, plen in prompts:
    ids = torch.randint(3, config.vocab_size, (bsz, plen), device="cuda")
    mask = torch.ones_like(ids)
    mask[: bsz // 4, : plen // 4] = 0  # left padding on a quarter of the rows
    ids[mask == 0] = 0
    cache = DynamicCache(config=config)
    with torch.no_grad():
        out = model.generate(
            input_ids=ids,
            attention_mask=mask,
            past_key_values=cache,
            max_new_tokens=32,
            min_new_tokens=32,
            do_sample=True,
            top_k=50,
            temperature=0.8,
        )
    print(tuple(out.shape), "cached", cache.get_seq_length(), "first tokens", out[0, plen:plen + 5].tolist())
