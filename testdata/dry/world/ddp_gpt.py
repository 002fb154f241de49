"""DDP over N ranks: a small GPT of one's own, bf16 autocast, accumulation with no_sync."""
import contextlib, os
import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

if os.environ.get("REAL_FAKE"):
    import torch.testing._internal.distributed.fake_pg
    dist.init_process_group("fake", rank=0, world_size=int(os.environ["WORLD_SIZE"]))
else:
    dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))


class Block(nn.Module):
    def __init__(self, c, h):
        super().__init__()
        self.h = h
        self.n1, self.n2 = nn.LayerNorm(c), nn.LayerNorm(c)
        self.qkv, self.out = nn.Linear(c, 3 * c), nn.Linear(c, c)
        self.mlp = nn.Sequential(nn.Linear(c, 4 * c), nn.GELU(), nn.Linear(4 * c, c))

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(self.n1(x)).view(b, t, 3, self.h, c // self.h).permute(2, 0, 3, 1, 4)
        y = nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.transpose(1, 2).reshape(b, t, c))
        return x + self.mlp(self.n2(x))


class GPT(nn.Module):
    def __init__(self, v=32000, c=768, n=8):
        super().__init__()
        self.emb, self.blocks = nn.Embedding(v, c), nn.Sequential(*[Block(c, 12) for _ in range(n)])
        self.norm, self.head = nn.LayerNorm(c), nn.Linear(c, v, bias=False)

    def forward(self, x, y):
        return nn.functional.cross_entropy(self.head(self.norm(self.blocks(self.emb(x)))).flatten(0, 1), y.flatten())


model = DDP(GPT().cuda(), device_ids=[0], gradient_as_bucket_view=bool(int(os.environ.get("VIEW", "0"))))
opt = torch.optim.AdamW(model.parameters(), lr=3e-4)
for step in range(4):
    for micro in range(2):
        x = torch.randint(0, 32000, (4, 513), device="cuda")
        with model.no_sync() if micro == 0 else contextlib.nullcontext(), torch.autocast("cuda", torch.bfloat16):
            loss = model(x[:, :-1], x[:, 1:])
        loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    opt.step()
    opt.zero_grad()
    print(step, float(loss))
