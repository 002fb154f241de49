"""Tensor parallel over N ranks: column- and row-wise linear layers by DTensor."""
import os
import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

if os.environ.get("REAL_FAKE"):
    import torch.testing._internal.distributed.fake_pg
    dist.init_process_group("fake", rank=0, world_size=int(os.environ["WORLD_SIZE"]))
else:
    dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
mesh = init_device_mesh("cuda", (dist.get_world_size(),))


class MLP(nn.Module):
    def __init__(self, c=4096):
        super().__init__()
        self.up, self.down = nn.Linear(c, 4 * c), nn.Linear(4 * c, c)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


model = nn.Sequential(*[MLP() for _ in range(4)]).cuda()
for m in model:
    parallelize_module(m, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
opt = torch.optim.AdamW(model.parameters(), lr=1e-4)
for step in range(4):
    x = torch.randn(8, 512, 4096, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    opt.step()
    opt.zero_grad()
    print(step, float(loss.detach()))
