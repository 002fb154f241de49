"""FSDP2 over N ranks: transformers' llama, bf16 parameters for computing, fp32 shards."""
import os
import torch
import torch.distributed as dist
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from transformers import LlamaConfig, LlamaForCausalLM

if os.environ.get("REAL_FAKE"):
    import torch.testing._internal.distributed.fake_pg
    dist.init_process_group("fake", rank=0, world_size=int(os.environ["WORLD_SIZE"]))
else:
    dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
config = LlamaConfig(vocab_size=32000, hidden_size=1024, intermediate_size=2816, num_hidden_layers=8, num_attention_heads=16, num_key_value_heads=8)
model = LlamaForCausalLM(config).cuda()
policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
for layer in model.model.layers:
    fully_shard(layer, mp_policy=policy)
fully_shard(model, mp_policy=policy)
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    x = torch.randint(0, 32000, (2, 1024), device="cuda")
    loss = model(input_ids=x, labels=x).loss
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(step, float(loss.detach()))
